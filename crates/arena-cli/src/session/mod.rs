//! `arena session`: forks of records, and the rights of a session's creator.

mod fork;

use arena_players::http::{Arena, CallError, HttpAnswer};
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::admin::{self, AdminArgs};
use crate::client::session_id;
use crate::command_line::{Global, header_text};
use crate::exit::Failure;
use crate::output::{Style, print_answer, printable};

use self::fork::ForkSessionArgs;

/// Subcommands of `arena session`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena session fork game.jsonl --at 12 --swap 1=house --out fork.jsonl
  arena session fork game.jsonl --at 12 --swap 1=model:NAME@ollama
  arena session cancel ID --creator-key o_…

On a server, commands need the key of the session's creator, which `arena challenges create` prints, from \
--creator-key or ARENA_CREATOR_KEY. Other users of the machine can read a command line, so prefer the variable. \
Administrators give --admin instead.")]
pub enum SessionVerb {
    /// Continue a recorded session from one of its events.
    Fork(ForkSessionArgs),
    /// Remove a session that hasn't ended. The arena's log shows the removal.
    #[command(after_help = "\
Examples:
  arena session cancel ID --creator-key o_…
  ARENA_CREATOR_KEY=o_… arena session cancel ID
  arena session cancel ID --admin

Once all players have joined a rated game, only an administrator can cancel it.")]
    Cancel(CreatedSessionArgs),
    /// Take a session that hasn't ended from all lists. Its game becomes unrated.
    #[command(after_help = "\
Examples:
  arena session unlist ID --creator-key o_…
  arena session unlist ID --admin

Once all players have joined a rated game, only an administrator can unlist it.")]
    Unlist(CreatedSessionArgs),
    /// List the invites of a session's free seats.
    #[command(after_help = "\
Examples:
  arena session invites ID --creator-key o_…
  arena session invites ID --admin

Invites that were announced to the public are left out.")]
    Invites(CreatedSessionArgs),
}

/// A session, and the credentials of its creator.
#[derive(Debug, Args)]
pub struct CreatedSessionArgs {
    /// Session id.
    pub id: String,
    #[command(flatten)]
    pub creator: CreatorArgs,
}

/// The credentials of a session's creator or of the administrator.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct CreatorArgs {
    /// Key of the session's creator, which `arena challenges create` prints.
    #[arg(long, env = "ARENA_CREATOR_KEY", hide_env_values = true, value_name = "KEY", value_parser = header_text)]
    pub creator_key: Option<String>,
    /// Use the administrator token from ARENA_ADMIN_TOKEN or the data folder instead.
    #[arg(long)]
    pub admin: bool,
    #[command(flatten)]
    pub credentials: AdminArgs,
}

pub fn run(verb: SessionVerb, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        SessionVerb::Fork(args) => fork::run(&args, style),
        SessionVerb::Cancel(args) => change(args, global, style, Arena::cancel, "canceled"),
        SessionVerb::Unlist(args) => change(args, global, style, Arena::unlist, "unlisted and unrated"),
        SessionVerb::Invites(CreatedSessionArgs { id, creator }) => {
            let answer = client(creator, global)?.free_invites(session_id(&id))?;
            print_answer(&answer, style, free_invites)
        }
    }
}

fn change(
    CreatedSessionArgs { id, creator }: CreatedSessionArgs,
    global: &Global,
    style: Style,
    request: fn(&Arena, &str) -> Result<HttpAnswer, CallError>,
    done: &str,
) -> Result<(), Failure> {
    let id = session_id(&id);
    let answer = request(&client(creator, global)?, id)?;
    print_answer(&answer, style, |_| Some(format!("session {id} is {done}")))
}

/// Returns a client with the key of the session's creator, or with the administrator's token.
fn client(creator: CreatorArgs, global: &Global) -> Result<Arena, Failure> {
    if creator.admin {
        return admin::client(creator.credentials, global);
    }
    let arena = global.arena()?;
    let key = creator.creator_key.ok_or_else(|| {
        Failure::usage(
            "the creator's key is missing: give --creator-key KEY, or set ARENA_CREATOR_KEY; `arena challenges create` \
             prints the key; administrators give --admin",
        )
    })?;
    Ok(arena.created_by(&key))
}

fn free_invites(answer: &Value) -> Option<String> {
    let invites = answer["invites"].as_array()?;
    let lines: Option<Vec<&str>> = invites.iter().map(Value::as_str).collect();
    let text = lines?.join("\n");
    Some(if text.is_empty() { "no free invites".to_owned() } else { printable(&text).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_invites_have_a_line_each() {
        assert_eq!(free_invites(&serde_json::json!({"invites": ["inv_1", "inv_2"]})).unwrap(), "inv_1\ninv_2");
        assert_eq!(free_invites(&serde_json::json!({"invites": []})).unwrap(), "no free invites");
    }
}
