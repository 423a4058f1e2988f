//! Authentication mode: the secret behind session keys, the proofs in requests, and where signatures are checked.
//! Who makes a request is found out in `identity.rs`.

use std::path::Path;

use arena_identity::{Proof, ProofError, SecretError, ServerSecret};
use arena_model::Timestamp;
use axum::http::StatusCode;

use crate::error::{ApiError, ApiResult};
use crate::fields::ByKey;
use crate::secret::{Kept, SecretFileError};
use crate::settings::Settings;
use crate::verifier::Verifier;

/// The secret behind session keys.
const SECRET: Kept = Kept {
    file: "auth.secret",
    what: "the secret behind session keys, and behind those of the owners of agents and tournaments",
    loss: "players who are in the middle of a game can't go on, nor owners prove what is theirs",
};

/// Why a server can't authenticate.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The secret in the data folder can't be used.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// It isn't a secret.
    #[error("the secret {file} is no good")]
    Bad {
        /// Which file.
        file: String,
        /// What is wrong with it.
        #[source]
        source: SecretError,
    },
    /// The system gives no thread to check signatures on.
    #[error("can't start the thread that checks signatures")]
    Thread(#[source] std::io::Error),
}

/// What a server needs to know whom it talks to. A server in standalone mode has none of it.
pub(crate) struct Auth {
    pub(crate) secret: ServerSecret,
    pub(crate) verifier: Verifier,
}

impl Auth {
    /// Authentication as the settings ask for it. The data folder has to be there, and nobody else's.
    ///
    /// # Errors
    /// If the secret in the data folder can't be used, or no thread be started.
    pub(crate) fn start(settings: &Settings) -> Result<Option<Auth>, AuthError> {
        if !settings.auth.enabled {
            return Ok(None);
        }
        let secret = secret(settings)?;
        let verifier = Verifier::start(settings.limits.signature_queue).map_err(AuthError::Thread)?;
        Ok(Some(Auth { secret, verifier }))
    }
}

/// The secret behind the keys that this server gives out, in either mode. The data folder has to be there, and nobody else's.
///
/// # Errors
/// If the one in the data folder can't be used.
pub(crate) fn secret(settings: &Settings) -> Result<ServerSecret, AuthError> {
    match &settings.auth.secret {
        Some(secret) => Ok(secret.clone()),
        None => load_secret(&settings.data),
    }
}

fn load_secret(folder: &Path) -> Result<ServerSecret, AuthError> {
    let loaded = SECRET.load_or_make(folder)?;
    let bad = |source| AuthError::Bad { file: folder.join(SECRET.file).display().to_string(), source };
    ServerSecret::new(loaded.text.as_bytes()).map_err(bad)
}

/// Puts the fields of a proof together, and holds its time against `now`. Its signature is still to be checked.
///
/// # Errors
/// 400 if a field is missing, 401 if what it says can't be or is too old.
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
            // What exactly is wrong with it helps those who try things out more than those whose clients work.
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
            std::fs::write(folder.path().join(SECRET.file), text).expect("its mode stays");
            let error = load_secret(folder.path()).expect_err("no secret to use");
            assert!(matches!(error, AuthError::Bad { .. }), "{error}");
        }
    }
}
