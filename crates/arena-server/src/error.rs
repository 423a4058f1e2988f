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
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        let bad_request = |code: &str| ApiError::bad_request(code, message.clone());
        match &error {
            EngineError::UnknownChallenge(_) => bad_request("UNKNOWN_CHALLENGE"),
            EngineError::UnknownSession => bad_request("CHALLENGE_NOT_FOUND"),
            EngineError::SessionEnded => ApiError::new(StatusCode::CONFLICT, "SESSION_ENDED", message),
            EngineError::RatedGame => ApiError::new(StatusCode::CONFLICT, "RATED_GAME", message),
            EngineError::RecordTooLong { .. } => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "RECORD_TOO_LONG", message)
            }
            EngineError::UnknownInvite(_) => bad_request("INVITE_NOT_FOUND"),
            EngineError::InviteUsed(_) => bad_request("INVITE_ALREADY_USED"),
            EngineError::SelfPlay => bad_request("SELF_PLAY"),
            EngineError::Banned { .. } => ApiError::new(StatusCode::FORBIDDEN, "BANNED", message),
            EngineError::UnknownUser => ApiError::not_found("USER_NOT_FOUND", "User not found"),
            EngineError::UserPlays { .. } => ApiError::new(StatusCode::CONFLICT, "USER_PLAYS", message),
            EngineError::UnknownMessage { .. } => ApiError::not_found("MESSAGE_NOT_FOUND", message),
            EngineError::SignatureUsed => {
                ApiError::new(StatusCode::UNAUTHORIZED, "SIGNATURE_USED", "the signature was used before; sign again")
            }
            EngineError::Options(_) => bad_request("INVALID_OPTIONS"),
            EngineError::Failed(rejection) => bad_request(&rejection.code),
            EngineError::NoScript { .. } => {
                tracing::warn!("{message}");
                ApiError::new(StatusCode::CONFLICT, "SCRIPT_MISSING", message)
            }
            EngineError::Act(ActError::NotAPlayer) => bad_request("PLAYER_NOT_FOUND"),
            EngineError::Act(ActError::Rejected(rejection)) => bad_request(&rejection.code),
            EngineError::Chat(ChatError::NotAPlayer) => bad_request("PLAYER_NOT_FOUND"),
            EngineError::Chat(ChatError::UnknownRecipient) => bad_request("RECIPIENT_NOT_FOUND"),
            EngineError::ChannelFull { .. } => {
                ApiError::too_large("CHANNEL_FULL", format!("{message} (limits.channel_messages)"))
            }
            EngineError::ChatFull { .. } => ApiError::too_large("CHAT_FULL", format!("{message} (limits.chat_bytes)")),
            EngineError::KeyReused => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED", message)
            }
            EngineError::QueueFull => ApiError::new(StatusCode::CONFLICT, "QUEUE_FULL", message),
            EngineError::TooManyTickets { .. } => {
                let message = format!("{message} (limits.tickets_per_address)");
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_TICKETS", message)
                    .retry_after(Duration::from_secs(1))
            }
            EngineError::Contended => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "CONTENDED", message)
                .retry_after(Duration::from_millis(50)),
            EngineError::Unavailable(cause) => {
                match cause {
                    // The store logs the beginning and the end of such an outage, so single requests need no error in
                    // the log.
                    StoreError::Unreachable { .. } | StoreError::Refused { .. } => {
                        tracing::debug!(%cause, "a request failed at the store: {cause}");
                    }
                    _ => tracing::error!(%cause, "a request failed at the store: {cause}"),
                }
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "STORE_UNAVAILABLE", message)
                    .retry_after(Duration::from_secs(1))
            }
            EngineError::NoArchive => ApiError::new(StatusCode::CONFLICT, "NO_ARCHIVE", message),
            EngineError::Archive { reason } => {
                tracing::error!("a request failed at the archive: {reason}");
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "ARCHIVE_UNAVAILABLE", message)
                    .retry_after(Duration::from_secs(60))
            }
            EngineError::Act(ActError::Restore(cause)) | EngineError::Damaged(cause) => {
                tracing::error!(%cause, "cannot continue a session: {cause}");
                ApiError::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "SESSION_DAMAGED",
                    "the session's stored data is damaged",
                )
            }
        }
    }
}
