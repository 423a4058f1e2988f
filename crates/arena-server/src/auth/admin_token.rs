//! The administrator's token, which authorizes all routes of `/api/admin`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use arena_identity::ServerSecret;
use axum::http::{HeaderMap, HeaderValue, header};
use sha2::{Digest, Sha256};

use super::secret_file::{SecretFile, SecretFileError};

/// The file in the data folder that holds the generated token.
const TOKEN_FILE: SecretFile =
    SecretFile { file: AdminToken::FILE, what: "the administrator's token", loss: "administrators need the new one" };

/// An administrator's token, sent as `Authorization: Bearer TOKEN`. `Debug` doesn't print it.
#[derive(Clone)]
pub struct AdminToken {
    text: String,
    /// SHA-256, so that the duration of a comparison reveals nothing about the token.
    digest: [u8; 32],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdminTokenError {
    #[error("an administrator's token must have at least {} characters; this one has {chars}", AdminToken::MIN_CHARS)]
    TooShort { chars: usize },
    /// The token has characters other than printable ASCII, so it can't be sent in a header.
    #[error("an administrator's token must be printable ASCII without spaces")]
    Unprintable,
}

impl AdminToken {
    /// Name of the generated token's file in the data folder.
    pub const FILE: &str = "admin.token";

    /// Minimum number of characters. 24 random characters can't be guessed.
    pub const MIN_CHARS: usize = 24;

    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Returns a digest of the token. Servers compare these digests to check that they have the same token.
    pub(crate) fn fingerprint(&self) -> String {
        // A token always has the minimum length of a secret, so the empty fallback is never used.
        ServerSecret::new(self.text.as_bytes()).map_or_else(|_| String::new(), |secret| secret.fingerprint())
    }

    /// True if the `Authorization` header contains this token as a bearer token.
    pub(crate) fn authorizes(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(header::AUTHORIZATION).map_or("", bearer);
        digest(shown) == self.digest
    }

    /// Loads the token from the data folder, or generates one if there is none. The returned bool is true for a new
    /// token.
    ///
    /// # Errors
    /// If the file can't be read or written, is readable by others, or is invalid.
    pub(crate) fn load_or_make(folder: &Path) -> Result<(AdminToken, bool), AdminTokenFileError> {
        let loaded = TOKEN_FILE.load_or_make(folder)?;
        let bad =
            |source| AdminTokenFileError::Bad { file: folder.join(TOKEN_FILE.file).display().to_string(), source };
        Ok((loaded.text.parse().map_err(bad)?, loaded.is_new))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AdminTokenFileError {
    #[error(transparent)]
    File(#[from] SecretFileError),
    #[error("invalid token in {file}")]
    Bad {
        file: String,
        #[source]
        source: AdminTokenError,
    },
}

/// Returns the key in an `Authorization` header. For any other form than `Bearer KEY` the key is empty and so invalid:
/// the caller gets an error instead of anonymous access.
pub(crate) fn bearer(value: &HeaderValue) -> &str {
    let credentials = value.to_str().ok().and_then(|text| text.split_once(' '));
    match credentials {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim_matches(' '),
        _ => "",
    }
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
            token.authorizes(&headers)
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
        assert!(!token.authorizes(&HeaderMap::new()));
    }
}
