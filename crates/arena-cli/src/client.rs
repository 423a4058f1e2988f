//! The client of the server that the command line names, and the exit codes of its errors.

use arena_engine::Environment;
use arena_model::InviteCode;
use arena_players::http::{Arena, CallError, HttpAnswer, Identity, SeatError};
use clap::Args;

use crate::command_line::Global;
use crate::exit::{Exit, Failure};
use crate::identity::Keys;

/// The player's identity on a seat.
#[derive(Debug, Args)]
pub struct JoinArgs {
    /// Your user id for scores; other players see it when the session has ended.
    #[arg(long, value_name = "ID")]
    pub user_id: Option<String>,
    /// Sign with a private key: a file, or a user id in ~/.arena/keys [default: the only key there]
    #[arg(long, value_name = "KEYFILE", num_args = 0..=1, conflicts_with = "user_id")]
    pub sign: Option<Option<String>>,
}

impl Global {
    /// Creates the client for the server and the player given on the command line.
    ///
    /// # Errors
    /// As for [`Global::observer_of`].
    pub fn arena(&self) -> Result<Arena, Failure> {
        let arena = self.observer_of(&self.url)?.with_key(self.auth.clone());
        Ok(match &self.from {
            Some(from) => arena.seen_by(from),
            None => arena,
        })
    }

    /// Creates the client of an anonymous observer for the server at `url` (without a trailing slash). It trusts the
    /// certificates given on the command line.
    ///
    /// # Errors
    /// If the certificate file can't be read or contains no valid certificate.
    pub fn observer_of(&self, url: &str) -> Result<Arena, Failure> {
        let Some(file) = &self.cacert else { return Ok(Arena::at(url)) };
        let wrong = |why: String| Failure::usage(format_args!("--cacert {}: {why}", file.display()));
        let pem = std::fs::read(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        Arena::trusting(url, &pem).map_err(wrong)
    }
}

/// Joins as the user or the owner of the key that the options name. The inner error is the server's.
///
/// # Errors
/// If the key can't be read, or a signature is wanted and the invite is malformed.
pub fn join(arena: &Arena, invite: &str, args: &JoinArgs) -> Result<Result<HttpAnswer, CallError>, Failure> {
    let Some(name) = &args.sign else { return Ok(arena.join(invite, Identity::Name(args.user_id.as_deref()))) };
    let pair = Keys::at_home()?.read(name.as_deref())?;
    match invite.parse::<InviteCode>() {
        Ok(_) => Ok(arena.join(invite, Identity::Key(&pair, Environment::system().now()))),
        Err(error) => Err(Failure::usage(format_args!("{invite} is {error}"))),
    }
}

/// Returns the id of a session. The id of its operator channel is accepted too.
pub fn session_id(id: &str) -> &str {
    id.strip_prefix("challenge_").unwrap_or(id)
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let exit = match error {
            CallError::Unreachable { .. } | CallError::TimedOut { .. } | CallError::NotAnArena { .. } => {
                Exit::Unreachable
            }
            CallError::Refused { .. } => Exit::Refused,
            CallError::Failed { .. } => Exit::ServerFailed,
            CallError::Request(_) => Exit::Internal,
        };
        Failure::new(exit, error)
    }
}

impl From<SeatError> for Failure {
    fn from(error: SeatError) -> Failure {
        match error {
            SeatError::Call(error) => error.into(),
            SeatError::Interrupted => Failure::new(Exit::Interrupted, error),
        }
    }
}
