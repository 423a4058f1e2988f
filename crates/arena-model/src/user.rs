//! User profiles, and the changes that users make to them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::UserId;

/// A user's public profile: `UserProfile` on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserProfile {
    /// The user's id.
    pub user_id: UserId,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<ProfileText>,
    /// The player's kind, such as the name of a language model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ProfileText>,
    /// True if the arena's administrator marked the user as a benchmark model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub is_benchmark: bool,
}

impl UserProfile {
    /// Returns the empty profile of a user.
    pub fn of(user_id: UserId) -> UserProfile {
        UserProfile { user_id, username: None, model: None, is_benchmark: false }
    }
}

/// A profile text: 0 to [`ProfileText::MAX_BYTES`] bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 200)]
pub struct ProfileText(String);

/// The error for a text that can't be in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a string of at most {} bytes without control characters", ProfileText::MAX_BYTES)]
pub struct ProfileTextError;

impl ProfileText {
    /// The maximum length in bytes.
    pub const MAX_BYTES: usize = 200;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<ProfileText> for String {
    fn from(text: ProfileText) -> String {
        text.0
    }
}

impl TryFrom<String> for ProfileText {
    type Error = ProfileTextError;

    fn try_from(text: String) -> Result<Self, ProfileTextError> {
        text.parse()
    }
}

impl std::str::FromStr for ProfileText {
    type Err = ProfileTextError;

    fn from_str(text: &str) -> Result<Self, ProfileTextError> {
        let fits = text.len() <= ProfileText::MAX_BYTES && !text.chars().any(char::is_control);
        fits.then(|| ProfileText(text.to_owned())).ok_or(ProfileTextError)
    }
}

/// A change to a profile. Missing fields stay; an empty text removes the value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileChange {
    /// The display name.
    pub username: Option<ProfileText>,
    /// The player's kind, such as the name of a language model.
    pub model: Option<ProfileText>,
}

impl ProfileChange {
    pub fn apply(self, profile: &mut UserProfile) {
        let set = |field: &mut Option<ProfileText>, change: Option<ProfileText>| {
            if let Some(text) = change {
                *field = Some(text).filter(|text| !text.0.is_empty());
            }
        };
        set(&mut profile.username, self.username);
        set(&mut profile.model, self.model);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_merged() {
        let text = |text: &str| Some(text.parse::<ProfileText>().expect("short"));
        let mut profile = UserProfile::of("ada".parse().expect("an id"));
        ProfileChange { username: text("Ada"), model: None }.apply(&mut profile);
        ProfileChange { username: None, model: text("opus") }.apply(&mut profile);
        let json = |profile: &UserProfile| serde_json::to_string(profile).expect("texts");
        assert_eq!(json(&profile), r#"{"userId":"ada","username":"Ada","model":"opus"}"#);
        ProfileChange { username: text(""), model: None }.apply(&mut profile);
        assert_eq!(json(&profile), r#"{"userId":"ada","model":"opus"}"#);
        assert!("a\u{0}".parse::<ProfileText>().is_err());
        assert!("x".repeat(201).parse::<ProfileText>().is_err());
    }
}
