//! Redaction of public texts about tournaments. They must not contain paths on this machine, or reveal facts about host
//! names in its network. Otherwise a client could add an agent at `db.internal` and find out if the host exists.

use std::borrow::Cow;
use std::path::PathBuf;

/// The text that precedes the reason in an error of `arena-match` about an unreachable remote agent.
const UNREACHABLE: &str = "can't be reached: ";

/// Reasons in errors of `arena-match` that reveal facts about a host name. A text of the system follows the last one.
const REASONS: [&str; 3] =
    ["its address isn't a public one", "host not found", "failed to lookup address information: "];

/// The public reason that replaces each of [`REASONS`].
const REASON: &str = "its host isn't known, or isn't at a public address";

/// The facts that are redacted.
pub(crate) struct Redaction {
    /// The absolute paths of these folders; their last names stay.
    pub(super) folders: [PathBuf; 3],
    /// True if agents may be at private addresses. Then facts about host names stay.
    pub(super) private_urls: bool,
}

impl Redaction {
    pub(crate) fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = if self.private_urls { Cow::Borrowed(text) } else { without_names(text) };
        for folder in &self.folders {
            let (folder, name) = (folder.to_string_lossy(), folder.file_name().unwrap_or_default().to_string_lossy());
            if text.contains(&*folder) {
                text = text.replace(&*folder, &name).into();
            }
        }
        text
    }
}

/// Replaces each reason that reveals facts about a host name by [`REASON`].
fn without_names(text: &str) -> Cow<'_, str> {
    if !text.contains(UNREACHABLE) {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split(UNREACHABLE);
    let mut redacted = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        redacted += UNREACHABLE;
        match REASONS.iter().find_map(|reason| piece.strip_prefix(reason)) {
            Some(rest) => {
                redacted += REASON;
                redacted += rest.trim_start_matches(|char: char| char.is_ascii_alphabetic() || " -_".contains(char));
            }
            None => redacted += piece,
        }
    }
    redacted.into()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&without_names(text));
    }

    #[test]
    fn reasons_about_host_names_are_redacted() {
        check(
            "can't be reached: its address isn't a public one",
            expect!["can't be reached: its host isn't known, or isn't at a public address"],
        );
        check(
            "can't be reached: host not found",
            expect!["can't be reached: its host isn't known, or isn't at a public address"],
        );
        check(
            r#"{"detail":"can't be reached: failed to lookup address information: Name or service not known","seat":1}"#,
            expect![[r#"{"detail":"can't be reached: its host isn't known, or isn't at a public address","seat":1}"#]],
        );
        for text in ["", "closed the connection", "can't be reached: Connection refused (os error 111)"] {
            assert_eq!(without_names(text), text);
        }
    }
}
