//! Errors of agents and tournaments, with their statuses and codes.

use std::io;
use std::time::Duration;

use axum::http::StatusCode;

use crate::error::ApiError;

/// The reason for refusing a request about agents or tournaments. The text is for the caller.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TournamentRefusal {
    #[error("agent {0} not found")]
    NoAgent(String),
    #[error("tournament {0} not found")]
    NoTournament(String),
    #[error("unknown game `{0}`; available: {known}", known = arena_games::games().map(|game| game.name).collect::<Vec<_>>().join(", "))]
    NoGame(String),
    #[error("there is no ladder of {0} yet; upload an agent with game={0}")]
    NoLadder(&'static str),
    #[error("the ladder of {game} has no season {season}")]
    NoSeason { game: &'static str, season: usize },
    #[error("ladders are disabled on this server (tournaments.ladder_share is 0, or workers play its tournaments)")]
    LaddersOff,
    #[error("{0}")]
    Plan(String),
    #[error("{0}")]
    Agent(String),
    #[error("{0}")]
    Url(&'static str),
    #[error("uploads are disabled on this server (tournaments.upload)")]
    UploadsOff,
    #[error("remote agents are disabled on this server (tournaments.urls)")]
    UrlsOff,
    #[error("the sandbox for agents is not available: {0}")]
    NoSandbox(String),
    #[error("the limit of {0} agents is reached (tournaments.agents); remove an agent first")]
    TooManyAgents(usize),
    #[error("{0} agents of this address are stored already (tournaments.agents_per_address); remove one first")]
    TooManyOwnAgents(usize),
    #[error(
        "{0} tournaments of this address haven't ended (tournaments.max_tournaments_per_address); it can create another \
         when one of them ends"
    )]
    TooManyOwnTournaments(usize),
    #[error("the limit of {0} tournaments is reached (tournaments.tournaments); remove a tournament first")]
    TooManyTournaments(usize),
    #[error(
        "the limit of {0} queued and running tournaments is reached (tournaments.max_tournaments); try again later"
    )]
    QueueFull(usize),
    #[error("too many other uploads are in progress; try again")]
    Busy,
    #[error("the agent plays in an unfinished tournament; stop the tournament first")]
    InUse,
    #[error("a match of the tournament has not stopped yet; try again")]
    Running,
    #[error("the tournament is not over yet; replays and formats that contain seeds are available after its end")]
    NotOver,
    #[error("the Idempotency-Key was used for a different request")]
    KeyReused,
    #[error("the tournament's data is damaged")]
    Damaged(String),
    #[error("cannot write to the data folder")]
    Write(#[from] io::Error),
}

impl From<TournamentRefusal> for ApiError {
    fn from(refusal: TournamentRefusal) -> ApiError {
        let text = refusal.to_string();
        let refuse = |status, code| ApiError::new(status, code, text.clone());
        let later = |code, wait| refuse(StatusCode::SERVICE_UNAVAILABLE, code).retry_after(wait);
        let too_many = |code| refuse(StatusCode::TOO_MANY_REQUESTS, code).retry_after(Duration::from_secs(60));
        let conflict = |code| refuse(StatusCode::CONFLICT, code);
        let forbidden = |code| refuse(StatusCode::FORBIDDEN, code);
        match &refusal {
            TournamentRefusal::NoAgent(_) => ApiError::not_found("AGENT_NOT_FOUND", text),
            TournamentRefusal::NoTournament(_) => ApiError::not_found("TOURNAMENT_NOT_FOUND", text),
            TournamentRefusal::NoGame(_) => ApiError::bad_request("UNKNOWN_GAME", text),
            TournamentRefusal::NoLadder(_) => ApiError::not_found("LADDER_NOT_FOUND", text),
            TournamentRefusal::NoSeason { .. } => ApiError::not_found("SEASON_NOT_FOUND", text),
            TournamentRefusal::LaddersOff => forbidden("LADDERS_OFF"),
            TournamentRefusal::Plan(_) => ApiError::bad_request("INVALID_TOURNAMENT", text),
            TournamentRefusal::Agent(_) => ApiError::bad_request("INVALID_AGENT", text),
            TournamentRefusal::Url(_) => ApiError::bad_request("INVALID_URL", text),
            TournamentRefusal::UploadsOff => forbidden("UPLOADS_OFF"),
            TournamentRefusal::UrlsOff => forbidden("URLS_OFF"),
            TournamentRefusal::NoSandbox(_) => conflict("NO_SANDBOX"),
            TournamentRefusal::TooManyAgents(_) => conflict("TOO_MANY_AGENTS"),
            TournamentRefusal::TooManyOwnAgents(_) => too_many("TOO_MANY_OWN_AGENTS"),
            TournamentRefusal::TooManyOwnTournaments(_) => too_many("TOO_MANY_OWN_TOURNAMENTS"),
            TournamentRefusal::TooManyTournaments(_) => conflict("TOO_MANY_TOURNAMENTS"),
            TournamentRefusal::QueueFull(_) => later("QUEUE_FULL", Duration::from_secs(60)),
            TournamentRefusal::Busy => later("UPLOADS_BUSY", Duration::from_secs(1)),
            TournamentRefusal::InUse => conflict("AGENT_IN_USE"),
            TournamentRefusal::Running => conflict("TOURNAMENT_RUNNING"),
            TournamentRefusal::NotOver => conflict("TOURNAMENT_NOT_OVER"),
            TournamentRefusal::KeyReused => refuse(StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED"),
            TournamentRefusal::Damaged(cause) => {
                tracing::error!(%cause, "cannot read a tournament: {cause}");
                refuse(StatusCode::INTERNAL_SERVER_ERROR, "TOURNAMENT_DAMAGED")
            }
            TournamentRefusal::Write(cause) => {
                tracing::error!(%cause, "cannot write to the data folder: {cause}");
                later("STORE_UNAVAILABLE", Duration::from_secs(1))
            }
        }
    }
}
