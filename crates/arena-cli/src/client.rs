//! The client of the server that the command line names, and the exit codes of its errors.

use arena_engine::Environment;
use arena_model::InviteCode;
use arena_players::http::{Arena, CallError, HttpAnswer, Identity, Read, SeatError};

use crate::args::{Global, JoinArgs, SyncArgs};
use crate::exit::{Exit, Failure};
use crate::keys::Keys;

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
        let wrong = |why: String| Failure::new(Exit::Usage, format_args!("--cacert {}: {why}", file.display()));
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
        Err(error) => Err(Failure::new(Exit::Usage, format_args!("{invite} is {error}"))),
    }
}

impl From<&SyncArgs> for Read {
    fn from(args: &SyncArgs) -> Read {
        Read { index: args.index, wait: args.wait }
    }
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
