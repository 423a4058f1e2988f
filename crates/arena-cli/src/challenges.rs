//! `arena challenges …`: each verb is one call, its answer printed as the server gave it.

use arena_engine::Environment;

use crate::args::ChallengesVerb;
use crate::client::{Arena, Read};
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::output::{Style, print_json};

/// Does what `verb` says at `arena`.
pub fn run(verb: ChallengesVerb, arena: &Arena, style: Style) -> Result<(), Failure> {
    let answer = match verb {
        ChallengesVerb::Metadata { name } => arena.metadata(name.as_deref()),
        ChallengesVerb::List { name, status, limit, offset } => {
            arena.list(name.as_deref(), status.map(|status| status.as_str()), limit, offset)
        }
        ChallengesVerb::Create { name, options } => arena.create(&name, options.as_ref()),
        ChallengesVerb::Join { invite, user_id, sign: None } => arena.join(&invite, user_id.as_deref()),
        ChallengesVerb::Join { invite, sign: Some(name), .. } => {
            let pair = Keys::at_home()?.read(name.as_deref())?;
            let invite =
                invite.parse().map_err(|error| Failure::new(Exit::Usage, format_args!("{invite} is {error}")))?;
            arena.join_signed(invite, &pair, Environment::system().now())
        }
        ChallengesVerb::Sync(args) => arena.operator_messages(&args.id, Read::from(&args)),
        ChallengesVerb::Send { id, method, content } => arena.act(&id, &method, &content),
    }?;
    print_json(answer.text(), style)
}
