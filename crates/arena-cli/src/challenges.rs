//! `arena challenges …`: each verb is one call. Its answer is printed as tables for people, and as the server gave it for programs.

use arena_engine::Environment;

use crate::answers;
use crate::args::{ChallengesVerb, SyncArgs};
use crate::client::{Answer, Arena, CallError, Read};
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::output::{Style, print_answer};

/// Does what `verb` says at `arena`.
pub fn run(verb: ChallengesVerb, arena: &Arena, style: Style) -> Result<(), Failure> {
    match verb {
        ChallengesVerb::Metadata { name } => {
            let tell = if name.is_some() { answers::challenge_type } else { answers::challenge_types };
            print_answer(&arena.metadata(name.as_deref())?, style, tell)
        }
        ChallengesVerb::List { name, status, limit, offset } => {
            let answer = arena.list(name.as_deref(), status.map(|status| status.as_str()), limit, offset)?;
            // Arenas list no sessions of a challenge type that they don't know.
            if let Some(name) = name.filter(|_| is_empty(&answer, "challenges")) {
                arena.metadata(Some(&name))?;
            }
            print_answer(&answer, style, answers::sessions)
        }
        ChallengesVerb::Create { name, options } => {
            print_answer(&arena.create(&name, options.as_ref())?, style, answers::created)
        }
        ChallengesVerb::Join { invite, user_id, sign } => {
            let answer = match sign {
                None => arena.join(&invite, user_id.as_deref()),
                Some(name) => {
                    let pair = Keys::at_home()?.read(name.as_deref())?;
                    let code = invite
                        .parse()
                        .map_err(|error| Failure::new(Exit::Usage, format_args!("{invite} is {error}")))?;
                    arena.join_signed(code, &pair, Environment::system().now())
                }
            }?;
            print_answer(&answer, style, |answer| answers::joined(answer, &invite))
        }
        ChallengesVerb::Sync(args) => {
            let id = args.id.strip_prefix("challenge_").unwrap_or(&args.id);
            let answer = arena.operator_messages(&args.id, Read::from(&args))?;
            print_messages(&answer, &args, &format!("challenge_{id}"), arena, style)
        }
        ChallengesVerb::Send { id, method, content } => {
            print_answer(&arena.act(&id, &method, &content)?, style, |_| Some("sent".to_owned()))
        }
    }
}

/// Prints the messages of a channel. Arenas have no messages in a channel that they don't know, so one that is empty is asked for.
///
/// # Errors
/// When there is no such channel.
pub fn print_messages(
    answer: &Answer,
    args: &SyncArgs,
    channel: &str,
    arena: &Arena,
    style: Style,
) -> Result<(), Failure> {
    if is_empty(answer, "messages")
        && let Err(CallError::Refused { status: 404, .. }) = arena.stream(channel, None)
    {
        let id = &args.id;
        return Err(Failure::new(Exit::Refused, format_args!("this arena has no session or channel {id}")));
    }
    print_answer(answer, style, answers::messages)
}

/// True if the list of this name in an answer is empty.
fn is_empty(answer: &Answer, list: &str) -> bool {
    let answer = answer.read::<serde_json::Value>().unwrap_or_default();
    answer[list].as_array().is_some_and(Vec::is_empty)
}
