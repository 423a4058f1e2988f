//! The administrator's token: whoever has it may do what `/api/admin` offers, and nothing else is asked of them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use arena_identity::ServerSecret;
use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use crate::identity::bearer;
use crate::secret::{Kept, SecretFileError};

/// The token that a server makes for itself.
const KEPT: Kept = Kept {
    file: AdminToken::FILE,
    what: "the administrator's token",
    loss: "whoever administers this arena has to be told",
};

/// What an administrator shows as `Authorization: Bearer TOKEN`. It isn't printed by `Debug`.
#[derive(Clone)]
pub struct AdminToken {
    text: String,
    /// What is compared, so that how long a comparison takes tells nothing about the token.
    digest: [u8; 32],
}

/// A text that can't be an administrator's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdminTokenError {
    /// It could be guessed.
    #[error("an administrator's token needs at least {} characters, and this one has {chars}", AdminToken::MIN_CHARS)]
    TooShort {
        /// How long it is.
        chars: usize,
    },
    /// It doesn't fit into a header.
    #[error("an administrator's token has no spaces and is plain ASCII")]
    Unprintable,
}

impl AdminToken {
    /// Where a server keeps its own, in its data folder.
    pub const FILE: &str = "admin.token";

    /// Fewest characters of a token. One of 24 that were drawn at random can't be guessed.
    pub const MIN_CHARS: usize = 24;

    /// The token itself, for its owner's eyes.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// What shows whether two servers have the same token, and nothing else of it.
    pub(crate) fn fingerprint(&self) -> String {
        // Its fewest characters are more than a secret's fewest bytes.
        ServerSecret::new(self.text.as_bytes()).map_or_else(|_| String::new(), |secret| secret.fingerprint())
    }

    /// Whether these are the headers of a request of the administrator's.
    pub(crate) fn opens(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(header::AUTHORIZATION).map_or("", bearer);
        digest(shown) == self.digest
    }

    /// The token of a data folder, and whether it was made just now, because there was none.
    ///
    /// # Errors
    /// If it can't be read or made, could be read by others, or is none.
    pub(crate) fn load_or_make(folder: &Path) -> Result<(AdminToken, bool), AdminTokenFileError> {
        let loaded = KEPT.load_or_make(folder)?;
        let bad = |source| AdminTokenFileError::Bad { file: folder.join(KEPT.file).display().to_string(), source };
        Ok((loaded.text.parse().map_err(bad)?, loaded.is_new))
    }
}

/// Why the token in the data folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum AdminTokenFileError {
    /// The file can't be used.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// It isn't a token.
    #[error("{file} is no good")]
    Bad {
        /// Which file.
        file: String,
        /// What is wrong with it.
        #[source]
        source: AdminTokenError,
    },
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

impl FromStr for AdminToken {
    type Err = AdminTokenError;

    fn from_str(text: &str) -> Result<Self, AdminTokenError> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(AdminTokenError::Unprintable);
        }
        if text.len() < AdminToken::MIN_CHARS {
            return Err(AdminTokenError::TooShort { chars: text.len() });
        }
        Ok(AdminToken { text: text.to_owned(), digest: digest(text) })
    }
}

impl PartialEq for AdminToken {
    fn eq(&self, other: &AdminToken) -> bool {
        self.digest == other.digest
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_plain_and_not_shown() {
        let token: AdminToken = "abcdefghijklmnopqrstuvwx".parse().expect("long enough");
        assert_eq!(format!("{token:?}"), "AdminToken(…)");
        assert_eq!("".parse::<AdminToken>(), Err(AdminTokenError::TooShort { chars: 0 }));
        assert_eq!("secret".parse::<AdminToken>(), Err(AdminTokenError::TooShort { chars: 6 }));
        for text in ["a token with spaces in it, and long", "abcdefghijklmnopqrstuvwx\n", "äbcdefghijklmnopqrstuvwx"] {
            assert_eq!(text.parse::<AdminToken>(), Err(AdminTokenError::Unprintable), "{text:?}");
        }
    }

    #[test]
    fn only_the_whole_token_opens() {
        let token: AdminToken = "abcdefghijklmnopqrstuvwx".parse().expect("long enough");
        let opens = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
            token.opens(&headers)
        };
        assert!(opens("Bearer abcdefghijklmnopqrstuvwx") && opens("bearer  abcdefghijklmnopqrstuvwx"));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "abcdefghijklmnopqrstuvwx",
            "Basic abcdefghijklmnopqrstuvwx",
            "Bearer abcdefghijklmnopqrstuvw",
            "Bearer abcdefghijklmnopqrstuvwxy",
            "Bearer ABCDEFGHIJKLMNOPQRSTUVWX",
        ] {
            assert!(!opens(wrong), "{wrong:?}");
        }
        assert!(!token.opens(&HeaderMap::new()));
    }
}
