//! Why something can't be done with agents and tournaments, and how that is told.

use std::io;
use std::time::Duration;

use axum::http::StatusCode;

use crate::error::ApiError;

/// Something can't be done. The sentence is for the caller.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("there is no agent {0}")]
    NoAgent(String),
    #[error("there is no tournament {0}")]
    NoTournament(String),
    #[error("there is no game `{0}`; there are {known}", known = arena_games::games().map(|game| game.name).collect::<Vec<_>>().join(", "))]
    NoGame(String),
    /// It can't be played so.
    #[error("{0}")]
    Plan(String),
    /// What was uploaded or named is no agent.
    #[error("{0}")]
    Agent(String),
    #[error("{0}")]
    Url(&'static str),
    #[error("agents can't be uploaded here (tournaments.upload)")]
    UploadsOff,
    #[error("agents that are servers aren't asked here (tournaments.urls)")]
    UrlsOff,
    #[error("agents can't be run here safely: {0}")]
    NoSandbox(String),
    #[error("this server keeps {0} agents already, and no more (tournaments.agents)")]
    TooManyAgents(usize),
    #[error("this server keeps {0} tournaments already, and no more (tournaments.tournaments)")]
    TooManyTournaments(usize),
    #[error("{0} tournaments wait already (tournaments.max_tournaments)")]
    QueueFull(usize),
    #[error("other uploads are under way")]
    Busy,
    #[error("the agent takes part in a tournament that isn't over")]
    InUse,
    #[error("a match of the tournament takes long to stop; ask again")]
    Running,
    #[error("that is told when the tournament is over")]
    NotOver,
    #[error("the Idempotency-Key was used for another request")]
    KeyReused,
    /// What is kept can't be read.
    #[error("what is kept of the tournament can't be read")]
    Damaged(String),
    #[error("the data folder can't be written")]
    Write(#[from] io::Error),
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> ApiError {
        let text = refusal.to_string();
        let later = |code, wait| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, text.clone()).retry_after(wait);
        let conflict = |code| ApiError::new(StatusCode::CONFLICT, code, text.clone());
        let forbidden = |code| ApiError::new(StatusCode::FORBIDDEN, code, text.clone());
        match &refusal {
            Refusal::NoAgent(_) => ApiError::not_found("AGENT_NOT_FOUND", text),
            Refusal::NoTournament(_) => ApiError::not_found("TOURNAMENT_NOT_FOUND", text),
            Refusal::NoGame(_) => ApiError::bad_request("UNKNOWN_GAME", text),
            Refusal::Plan(_) => ApiError::bad_request("INVALID_TOURNAMENT", text),
            Refusal::Agent(_) => ApiError::bad_request("INVALID_AGENT", text),
            Refusal::Url(_) => ApiError::bad_request("INVALID_URL", text),
            Refusal::UploadsOff => forbidden("UPLOADS_OFF"),
            Refusal::UrlsOff => forbidden("URLS_OFF"),
            Refusal::NoSandbox(_) => conflict("NO_SANDBOX"),
            Refusal::TooManyAgents(_) => conflict("TOO_MANY_AGENTS"),
            Refusal::TooManyTournaments(_) => conflict("TOO_MANY_TOURNAMENTS"),
            Refusal::QueueFull(_) => later("QUEUE_FULL", Duration::from_secs(60)),
            Refusal::Busy => later("UPLOADS_BUSY", Duration::from_secs(1)),
            Refusal::InUse => conflict("AGENT_IN_USE"),
            Refusal::Running => conflict("TOURNAMENT_RUNNING"),
            Refusal::NotOver => conflict("TOURNAMENT_NOT_OVER"),
            Refusal::KeyReused => ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED", text),
            Refusal::Damaged(cause) => {
                tracing::error!(%cause, "a tournament can't be read: {cause}");
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "TOURNAMENT_DAMAGED", text)
            }
            Refusal::Write(cause) => {
                tracing::error!(%cause, "the data folder can't be written: {cause}");
                later("STORE_UNAVAILABLE", Duration::from_secs(1))
            }
        }
    }
}
