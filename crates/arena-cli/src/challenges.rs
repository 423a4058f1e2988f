//! `arena challenges …`: each command is one request. Answers are printed as tables for people, and unchanged for
//! programs.

use arena_players::http::{Arena, CallError, ChannelKind, HttpAnswer, Read};

use crate::answers;
use crate::args::{ChallengesVerb, JoinArgs, SyncArgs};
use crate::client::join;
use crate::exit::{Exit, Failure};
use crate::output::{Style, print_answer};

pub fn run(verb: ChallengesVerb, arena: &Arena, style: Style) -> Result<(), Failure> {
    match verb {
        ChallengesVerb::Metadata { name } => {
            let tell = if name.is_some() { answers::challenge_type } else { answers::challenge_types };
            print_answer(&arena.metadata(name.as_deref())?, style, tell)
        }
        ChallengesVerb::List { name, status, limit, offset } => {
            let answer = arena.list(name.as_deref(), status.map(|status| status.as_str()), limit, offset)?;
            // Servers return an empty list for an unknown challenge type. So after an empty list, a second request
            // checks that the type exists.
            if let Some(name) = name.filter(|_| is_empty(&answer, "challenges")) {
                arena.metadata(Some(&name))?;
            }
            print_answer(&answer, style, answers::sessions)
        }
        ChallengesVerb::Create { name, options, unlisted } => {
            let create = if unlisted { Arena::create_unlisted } else { Arena::create };
            print_answer(&create(arena, &name, options.as_ref())?, style, answers::created)
        }
        ChallengesVerb::Join { invite, user_id, sign } => {
            let answer = join(arena, &invite, &JoinArgs { user_id, sign })??;
            print_answer(&answer, style, |answer| answers::joined(answer, &invite))
        }
        ChallengesVerb::Sync(args) => {
            let id = args.id.strip_prefix("challenge_").unwrap_or(&args.id);
            let answer = arena.messages(ChannelKind::Operator, &args.id, Read::from(&args))?;
            print_messages(&answer, &args, &format!("challenge_{id}"), arena, style)
        }
        ChallengesVerb::Send { id, method, content } => {
            print_answer(&arena.act(&id, &method, &content)?, style, |_| Some("sent".to_owned()))
        }
    }
}

/// Prints the messages of a channel. Servers return an empty list for an unknown channel. So after an empty list, the
/// function checks that the channel exists.
///
/// # Errors
/// If the channel doesn't exist.
pub fn print_messages(
    answer: &HttpAnswer,
    args: &SyncArgs,
    channel: &str,
    arena: &Arena,
    style: Style,
) -> Result<(), Failure> {
    if is_empty(answer, "messages")
        && let Err(CallError::Refused { status: 404, .. }) = arena.stream(channel, None)
    {
        let id = &args.id;
        return Err(Failure::new(Exit::Refused, format_args!("this server has no session or channel {id}")));
    }
    print_answer(answer, style, answers::messages)
}

fn is_empty(answer: &HttpAnswer, list: &str) -> bool {
    let answer = answer.read::<serde_json::Value>().unwrap_or_default();
    answer[list].as_array().is_some_and(Vec::is_empty)
}
