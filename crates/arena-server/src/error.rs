//! Error responses: a status, a sentence and a stable code. The cause of an error of the server is only logged.

use std::time::Duration;

use arena_engine::EngineError;
use arena_model::{ActError, ChatError};
use arena_store::StoreError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: String,
    message: String,
    /// Time until a retry can succeed, if known.
    retry_after: Option<Duration>,
}

/// The body of an error response.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Error, example = json!({ "error": "User not found", "code": "USER_NOT_FOUND" }))]
pub(crate) struct Refusal<'e> {
    /// A sentence for people. Its wording may change.
    error: &'e str,
    /// The stable code for programs.
    code: &'e str,
    /// Time until a retry can succeed, in milliseconds, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// The code of an error response, among the extensions of the response.
#[derive(Debug, Clone)]
pub(crate) struct RefusalCode(pub(crate) String);

pub(crate) type ApiResult<T = Response> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> ApiError {
        ApiError { status, code: code.to_owned(), message: message.into(), retry_after: None }
    }

    pub(crate) fn bad_request(code: &str, message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn not_found(code: &str, message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, code, message)
    }

    /// The error of a session or challenge type that doesn't exist.
    pub(crate) fn challenge_not_found() -> ApiError {
        ApiError::not_found("CHALLENGE_NOT_FOUND", "Challenge not found")
    }

    pub(crate) fn too_large(code: &str, message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, code, message)
    }

    /// Builds the error of a server without free capacity: 503, with a retry after one second.
    pub(crate) fn busy(message: &str) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "SERVER_BUSY", message).retry_after(Duration::from_secs(1))
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn missing(field: &str) -> ApiError {
        ApiError::bad_request("MISSING_FIELD", format!("{field} is required"))
    }

    pub(crate) fn retry_after(mut self, wait: Duration) -> ApiError {
        self.retry_after = Some(wait);
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let retry_after_ms = self.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1));
        let body = Refusal { error: &self.message, code: &self.code, retry_after_ms };
        let body = serde_json::to_string(&body).expect("texts are JSON");
        let mut response = crate::answer::json_with(self.status, body);
        response.extensions_mut().insert(RefusalCode(self.code));
        if let Some(ms) = retry_after_ms {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000)));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<EngineError> for ApiError {
    // One line for most errors: a table of statuses and codes.
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        let refuse = |status, code: &str| ApiError::new(status, code, message.clone());
        let bad_request = |code: &str| refuse(StatusCode::BAD_REQUEST, code);
        match &error {
            EngineError::UnknownChallenge(_) => bad_request("UNKNOWN_CHALLENGE"),
            EngineError::UnknownSession => bad_request("CHALLENGE_NOT_FOUND"),
            EngineError::SessionEnded => refuse(StatusCode::CONFLICT, "SESSION_ENDED"),
            EngineError::RatedGame => refuse(StatusCode::CONFLICT, "RATED_GAME"),
            EngineError::RecordTooLong { .. } => refuse(StatusCode::UNPROCESSABLE_ENTITY, "RECORD_TOO_LONG"),
            EngineError::UnknownInvite(_) => bad_request("INVITE_NOT_FOUND"),
            EngineError::InviteUsed(_) => bad_request("INVITE_ALREADY_USED"),
            EngineError::SelfPlay => bad_request("SELF_PLAY"),
            EngineError::Banned { .. } => refuse(StatusCode::FORBIDDEN, "BANNED"),
            EngineError::UnknownUser => ApiError::not_found("USER_NOT_FOUND", "User not found"),
            EngineError::UserPlays { .. } => refuse(StatusCode::CONFLICT, "USER_PLAYS"),
            EngineError::UnknownMessage { .. } => refuse(StatusCode::NOT_FOUND, "MESSAGE_NOT_FOUND"),
            EngineError::SignatureUsed => {
                ApiError::new(StatusCode::UNAUTHORIZED, "SIGNATURE_USED", "the signature was used before; sign again")
            }
            EngineError::Options(_) => bad_request("INVALID_OPTIONS"),
            EngineError::Failed(rejection) => bad_request(&rejection.code),
            EngineError::NoScript { .. } => {
                tracing::warn!("{message}");
                refuse(StatusCode::CONFLICT, "SCRIPT_MISSING")
            }
            EngineError::Act(ActError::NotAPlayer) => bad_request("PLAYER_NOT_FOUND"),
            EngineError::Act(ActError::Rejected(rejection)) => bad_request(&rejection.code),
            EngineError::Chat(ChatError::NotAPlayer) => bad_request("PLAYER_NOT_FOUND"),
            EngineError::Chat(ChatError::UnknownRecipient) => bad_request("RECIPIENT_NOT_FOUND"),
            EngineError::ChannelFull { .. } => {
                ApiError::too_large("CHANNEL_FULL", format!("{message} (limits.channel_messages)"))
            }
            EngineError::ChatFull { .. } => ApiError::too_large("CHAT_FULL", format!("{message} (limits.chat_bytes)")),
            EngineError::KeyReused => refuse(StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED"),
            EngineError::QueueFull => refuse(StatusCode::CONFLICT, "QUEUE_FULL"),
            EngineError::TooManyTickets { .. } => {
                let message = format!("{message} (limits.tickets_per_address)");
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_TICKETS", message)
                    .retry_after(Duration::from_secs(1))
            }
            EngineError::Contended => {
                refuse(StatusCode::SERVICE_UNAVAILABLE, "CONTENDED").retry_after(Duration::from_millis(50))
            }
            EngineError::Unavailable(cause) => {
                match cause {
                    // The store logs the beginning and the end of such an outage, so single requests need no error in
                    // the log.
                    StoreError::Unreachable { .. } | StoreError::Refused { .. } => {
                        tracing::debug!(%cause, "a request failed at the store: {cause}");
                    }
                    _ => tracing::error!(%cause, "a request failed at the store: {cause}"),
                }
                refuse(StatusCode::SERVICE_UNAVAILABLE, "STORE_UNAVAILABLE").retry_after(Duration::from_secs(1))
            }
            EngineError::NoArchive => refuse(StatusCode::CONFLICT, "NO_ARCHIVE"),
            EngineError::Archive { reason } => {
                tracing::error!("a request failed at the archive: {reason}");
                refuse(StatusCode::SERVICE_UNAVAILABLE, "ARCHIVE_UNAVAILABLE").retry_after(Duration::from_secs(60))
            }
            EngineError::Act(ActError::Restore(cause)) | EngineError::Damaged(cause) => {
                tracing::error!(%cause, "cannot continue a session: {cause}");
                let message = "the session's stored data is damaged";
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "SESSION_DAMAGED", message)
            }
        }
    }
}
