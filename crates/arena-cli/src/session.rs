//! `arena session`: forks of records, and the rights of a session's creator.

use arena_players::http::Arena;

use crate::admin;
use crate::answers;
use crate::args::{CreatorArgs, Global, SessionVerb};
use crate::exit::{Exit, Failure};
use crate::fork;
use crate::output::{Style, print_answer};

pub fn run(verb: SessionVerb, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        SessionVerb::Fork(args) => fork::fork_session(&args, style),
        SessionVerb::Cancel { id, creator } => {
            let answer = client(creator, global)?.cancel(session_id(&id))?;
            print_answer(&answer, style, |_| Some(format!("session {} is canceled", session_id(&id))))
        }
        SessionVerb::Unlist { id, creator } => {
            let answer = client(creator, global)?.unlist(session_id(&id))?;
            print_answer(&answer, style, |_| Some(format!("session {} is unlisted and unrated", session_id(&id))))
        }
        SessionVerb::Invites { id, creator } => {
            let answer = client(creator, global)?.free_invites(session_id(&id))?;
            print_answer(&answer, style, answers::free_invites)
        }
    }
}

/// Returns the id of a session. The id of its operator channel is accepted too, as in `arena record get`.
fn session_id(id: &str) -> &str {
    id.strip_prefix("challenge_").unwrap_or(id)
}

/// Returns a client with the key of the session's creator, or with the administrator's token.
fn client(creator: CreatorArgs, global: &Global) -> Result<Arena, Failure> {
    let arena = global.arena()?;
    if creator.admin {
        return Ok(arena.administered(&admin::token(creator.credentials, &global.url)?));
    }
    let key = creator.creator_key.ok_or_else(|| {
        let sentence = "the creator's key is missing: give --creator-key KEY, or set ARENA_CREATOR_KEY; `arena challenges \
                        create` prints the key; administrators give --admin";
        Failure::new(Exit::Usage, sentence)
    })?;
    Ok(arena.created_by(&key))
}
