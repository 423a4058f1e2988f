//! The links of the people who run the arena, in the footer of all pages: `[site]` in `arena.toml`.

use serde::{Deserialize, Deserializer};

/// Links in the footer of all pages: `[site]` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteSettings {
    /// The terms of use.
    pub terms: Option<SiteLink>,
    /// A page or address for messages to the people who run the arena.
    pub contact: Option<SiteLink>,
}

/// A link that pages may contain: `https://…`, `http://…` or `mailto:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteLink(String);

impl SiteLink {
    pub(crate) fn target(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for SiteLink {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SiteLink, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Other schemes, such as `javascript:`, would run in the arena's own pages.
        let scheme = ["https://", "http://", "mailto:"].into_iter().find(|scheme| text.starts_with(scheme));
        match scheme {
            Some(scheme) if text.len() > scheme.len() && !text.contains(char::is_whitespace) => Ok(SiteLink(text)),
            _ => {
                let text = format!("{text:?} is not a link that begins with https://, http:// or mailto:");
                Err(serde::de::Error::custom(text))
            }
        }
    }
}
