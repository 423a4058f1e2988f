//! `arena chat …`: each command is one request. Answers are printed as lines for people, and unchanged for programs.

use arena_players::http::{Arena, ChannelKind, Read};

use crate::answers;
use crate::args::ChatVerb;
use crate::challenges::print_messages;
use crate::exit::Failure;
use crate::output::{Style, print_answer};

pub fn run(verb: ChatVerb, arena: &Arena, style: Style) -> Result<(), Failure> {
    match verb {
        ChatVerb::Send { id, text, to } => print_answer(&arena.say(&id, &text, to.as_deref())?, style, answers::said),
        ChatVerb::Sync(args) => {
            let answer = arena.messages(ChannelKind::Chat, &args.id, Read::from(&args))?;
            print_messages(&answer, &args, &args.id, arena, style)
        }
    }
}
