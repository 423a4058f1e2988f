//! The registry of exporters: the output formats of `arena tournament standings` and of the HTTP API that need only the
//! tournament's record.

use arena_tournament::Record;

use crate::{export, html};

#[derive(Debug)]
pub struct Exporter {
    /// The name: the option on the command line, and the value of `format` in the HTTP API.
    pub name: &'static str,
    pub label: &'static str,
    pub content_type: &'static str,
    pub help: &'static str,
    /// True if the export contains the tournament's seed, which is secret while games are left.
    pub has_seed: bool,
    /// The content security policy of a page; `None` for other formats.
    pub policy: Option<&'static str>,
    pub write: fn(&Record) -> String,
}

/// All exporters, in the order of help texts.
pub static EXPORTERS: &[Exporter] = &[export::CSV, export::MARKDOWN, html::HTML];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lowercase() {
        for (at, exporter) in EXPORTERS.iter().enumerate() {
            assert!(exporter.name.bytes().all(|byte| byte.is_ascii_lowercase()), "{}", exporter.name);
            assert!(EXPORTERS[..at].iter().all(|other| other.name != exporter.name), "{}", exporter.name);
        }
    }
}
