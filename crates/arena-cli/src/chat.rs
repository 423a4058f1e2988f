//! `arena chat …`: each command is one request. Answers are printed as lines for people, and unchanged for programs.

use arena_players::http::{Arena, ChannelKind};
use clap::Subcommand;
use serde_json::Value;

use crate::challenges::{SyncArgs, sync};
use crate::exit::Failure;
use crate::output::{Style, print_answer, printable};

/// Subcommands of `arena chat`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena chat send ID 'shall we compare notes?' --from inv_…
  arena chat sync ID --from inv_… --wait 20")]
pub enum ChatVerb {
    /// Send a message to all players of a session, or to one.
    #[command(after_help = "\
Examples:
  arena chat send ID 'shall we compare notes?' --from inv_…
  arena chat send ID 'between us two' --to inv_… --from inv_…
  arena chat send ID --from inv_… -- '--anything, even if it looks like an option'")]
    Send {
        /// Session id.
        id: String,
        /// Text of the message.
        #[arg(allow_hyphen_values = true)]
        text: String,
        /// Player id of the only recipient [default: all]
        #[arg(long, value_name = "ID")]
        to: Option<String>,
    },
    /// Read the chat of a session.
    #[command(after_help = "\
Examples:
  arena chat sync ID --from inv_…
  arena chat sync ID --from inv_… --index 2 --wait 20    wait for message 2
  arena chat sync invites           the public channel: open invites")]
    Sync(SyncArgs),
}

pub fn run(verb: ChatVerb, arena: &Arena, style: Style) -> Result<(), Failure> {
    match verb {
        ChatVerb::Send { id, text, to } => print_answer(&arena.say(&id, &text, to.as_deref())?, style, describe_sent),
        ChatVerb::Sync(args) => sync(ChannelKind::Chat, &args, arena, style),
    }
}

/// Formats the answer to a sent chat message.
fn describe_sent(answer: &Value) -> Option<String> {
    let to = answer["to"].as_str().unwrap_or("all");
    let text = format!("message {} of {}, to {to}", answer["index"].as_u64()?, answer["channel"].as_str()?);
    Some(printable(&text).into_owned())
}
