//! Authentication mode: the secret behind session keys, the proofs in requests, and where signatures are checked.
//! Who makes a request is found out in `identity.rs`.

use arena_identity::{Proof, ProofError, ServerSecret};
use arena_model::Timestamp;
use axum::http::StatusCode;

use crate::error::{ApiError, ApiResult};
use crate::request::Fields;
use crate::secret::{self, AuthError};
use crate::settings::Settings;
use crate::verifier::Verifier;

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
        let secret = match &settings.auth.secret {
            Some(secret) => secret.clone(),
            None => secret::load_or_make(&settings.data)?,
        };
        let verifier = Verifier::start(settings.limits.signature_queue).map_err(AuthError::Thread)?;
        Ok(Some(Auth { secret, verifier }))
    }
}

/// The fields of a proof, each of which has to be there.
const PROOF: [&str; 3] = ["publicKey", "signature", "timestamp"];

/// Reads a proof out of a body, and holds its time against `now`. Its signature is still to be checked.
///
/// # Errors
/// 400 if a field is missing or of another type, 401 if what it says can't be or is too old.
pub(crate) fn parse_proof(fields: &Fields, now: Timestamp) -> ApiResult<Proof> {
    if PROOF.iter().any(|name| !fields.has(name)) {
        let text = "publicKey, signature, and timestamp are required";
        return Err(ApiError::bad_request("MISSING_FIELD", text));
    }
    let [public_key, signature] = [fields.text("publicKey")?, fields.text("signature")?];
    let at = Timestamp(fields.integer("timestamp")?);
    Ok(Proof::parse(public_key, signature, at, now)?)
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
