//! `arena chat …`: each verb is one call, its answer printed as the server gave it.

use crate::args::ChatVerb;
use crate::client::{Arena, Read};
use crate::exit::Failure;
use crate::output::{Style, print_json};

/// Does what `verb` says at `arena`.
pub fn run(verb: ChatVerb, arena: &Arena, style: Style) -> Result<(), Failure> {
    let answer = match verb {
        ChatVerb::Send { id, text, to } => arena.say(&id, &text, to.as_deref()),
        ChatVerb::Sync(args) => arena.chat_messages(&args.id, Read::from(&args)),
    }?;
    print_json(answer.text(), style)
}
