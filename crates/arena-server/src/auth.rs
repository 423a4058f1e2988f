//! Authentication mode: the secret for session keys, the proofs in requests, and the verifier of signatures.
//! `auth/identity.rs` identifies callers in sessions, `auth/authority.rs` administrators and owners.

mod admin_token;
mod authority;
mod identity;
mod secret_file;
mod verifier;

use std::path::Path;

use arena_identity::{Proof, ProofError, SecretError, ServerSecret};
use arena_model::Timestamp;
use axum::http::StatusCode;

use crate::error::{ApiError, ApiResult};
use crate::request::ByKey;
use crate::settings::Settings;
pub use admin_token::{AdminToken, AdminTokenError, AdminTokenFileError};
pub(crate) use authority::{Authority, administrator_at};
pub(crate) use identity::{Caller, Claim, unauthenticated};
pub(crate) use secret_file::SecretFile;
pub use secret_file::SecretFileError;
use verifier::Verifier;

/// The file in the data folder that holds the secret.
const SECRET_FILE: SecretFile = SecretFile {
    file: "auth.secret",
    what: "the secret for session keys and for the keys of agents' and tournaments' owners",
    loss: "all session keys and owner keys become invalid",
};

#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    #[error("invalid secret in {file}")]
    Bad {
        file: String,
        #[source]
        source: SecretError,
    },
    #[error("cannot start the thread for signature checks")]
    Thread(#[source] std::io::Error),
}

pub(crate) struct Auth {
    pub(crate) secret: ServerSecret,
    pub(crate) verifier: Verifier,
}

impl Auth {
    /// Loads the secret and starts the verifier; returns `None` in standalone mode. The data folder must exist and be
    /// locked.
    ///
    /// # Errors
    /// If the secret in the data folder is unusable, or the thread can't be started.
    pub(crate) fn start(settings: &Settings) -> Result<Option<Auth>, AuthError> {
        if !settings.auth.enabled {
            return Ok(None);
        }
        let secret = secret(settings)?;
        let verifier = Verifier::start(settings.limits.signature_queue).map_err(AuthError::Thread)?;
        Ok(Some(Auth { secret, verifier }))
    }
}

/// Returns the secret from which session keys and owners' keys are computed: the one in the settings, or else the one
/// in the data folder, which the first call generates. Owners' keys exist in both modes. The data folder must exist and
/// be locked.
///
/// # Errors
/// If the secret in the data folder is unusable.
pub(crate) fn secret(settings: &Settings) -> Result<ServerSecret, AuthError> {
    match &settings.auth.secret {
        Some(secret) => Ok(secret.clone()),
        None => load_secret(&settings.data),
    }
}

fn load_secret(folder: &Path) -> Result<ServerSecret, AuthError> {
    let loaded = SECRET_FILE.load_or_make(folder)?;
    let bad = |source| AuthError::Bad { file: folder.join(SECRET_FILE.file).display().to_string(), source };
    ServerSecret::new(loaded.text.as_bytes()).map_err(bad)
}

/// Parses the fields of a proof and checks its time. The signature is checked later.
///
/// # Errors
/// 400 if a field is missing; 401 if a field is malformed or the timestamp has expired.
pub(crate) fn parse_proof(
    ByKey(public_key): &ByKey<String>,
    ByKey(signature): &ByKey<String>,
    ByKey(timestamp): &ByKey<i64>,
    now: Timestamp,
) -> ApiResult<Proof> {
    let (Some(public_key), Some(signature), Some(at)) = (public_key, signature, timestamp) else {
        let text = "publicKey, signature, and timestamp are required";
        return Err(ApiError::bad_request("MISSING_FIELD", text));
    };
    Ok(Proof::parse(public_key, signature, Timestamp(*at), now)?)
}

impl From<ProofError> for ApiError {
    fn from(error: ProofError) -> Self {
        let refuse = |code, message| ApiError::new(StatusCode::UNAUTHORIZED, code, message);
        match error {
            ProofError::Expired => refuse("TIMESTAMP_EXPIRED", "Timestamp expired"),
            // All causes share one message, since details would help attackers more than clients.
            ProofError::MalformedKey(_) | ProofError::MalformedSignature | ProofError::Invalid => {
                refuse("INVALID_SIGNATURE", "Invalid signature")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_in_the_data_folder_has_to_be_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = load_secret(folder.path()).expect("made");
        assert_eq!(load_secret(folder.path()).expect("read"), made);
        for text in ["", "\n\n\n                  \n"] {
            std::fs::write(folder.path().join(SECRET_FILE.file), text).expect("its mode stays");
            let error = load_secret(folder.path()).expect_err("no secret to use");
            assert!(matches!(error, AuthError::Bad { .. }), "{error}");
        }
    }
}
