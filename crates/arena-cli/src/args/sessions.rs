//! The arguments of `arena challenges` and `arena chat`: what a player does with a session, a call at a time.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value};

/// What can be done with challenges.
#[derive(Debug, Subcommand)]
pub enum ChallengesVerb {
    /// Print what can be played: rules, methods, number of players, options of sessions.
    #[command(after_help = "\
Examples:
  arena challenges metadata
  arena challenges metadata psi")]
    Metadata {
        /// One challenge type only, such as psi.
        name: Option<String>,
    },
    /// List sessions, newest first.
    #[command(after_help = "\
Examples:
  arena challenges list
  arena challenges list psi --status ended --limit 5")]
    List {
        /// Of one challenge type only.
        name: Option<String>,
        /// In one state only.
        #[arg(long, value_enum)]
        status: Option<StatusFilter>,
        /// At most so many (the server allows up to 100).
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Leave out so many of the newest.
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
    },
    /// Create a session; the answer holds an invite for each player.
    #[command(after_help = "\
Examples:
  arena challenges create psi
  arena challenges create psi --options '{\"setSize\": 5}'
  arena challenges metadata psi      among the rest, its options: what each is for, its default and bounds")]
    Create {
        /// The challenge type, such as psi.
        name: String,
        /// Options for this session. Which there are, and what they may be, `arena challenges metadata NAME` says.
        #[arg(long, value_name = "JSON", value_parser = json_object)]
        options: Option<Map<String, Value>>,
    },
    /// Take the seat of an invite. The answer holds the session's id.
    #[command(after_help = "\
Examples:
  arena challenges join inv_0192d4c8-…
  arena challenges join inv_0192d4c8-… --user-id ada
  arena challenges join inv_0192d4c8-… --sign            signed with your only key
  arena challenges join inv_0192d4c8-… --sign USER_ID    with one of several
  arena challenges join inv_0192d4c8-… --sign my.key

Where an arena asks who you are, the answer holds a sessionKey. It stands for your seat from then on:
give it as --auth, or in ARENA_AUTH.")]
    Join {
        /// The invite.
        invite: String,
        /// Who you are, for scores; the others learn it when the game has ended.
        #[arg(long, value_name = "ID")]
        user_id: Option<String>,
        /// Sign with a private key: a file, or a user id of ~/.arena/keys; needless if there is only one in there.
        #[arg(long, value_name = "KEYFILE", num_args = 0..=1, conflicts_with = "user_id")]
        sign: Option<Option<String>>,
    },
    /// Read what the operator says: your private information, the state of play, the result.
    #[command(after_help = "\
Examples:
  arena challenges sync ID --from inv_…
  arena challenges sync ID --from inv_… --index 4 --wait 20    wait for message 4")]
    Sync(SyncArgs),
    /// Act: send the operator a message.
    #[command(after_help = "\
Examples:
  arena challenges send ID guess '142, 377, 801' --from inv_…
  arena challenges send ID guess --from inv_… -- '--anything, even if it looks like an option'")]
    Send {
        /// The session.
        id: String,
        /// The action, one of the challenge's methods.
        method: String,
        /// What the action needs.
        #[arg(allow_hyphen_values = true)]
        content: String,
    },
}

/// What can be done with the chat.
#[derive(Debug, Subcommand)]
pub enum ChatVerb {
    /// Say something to the others in a session, or to one of them.
    #[command(after_help = "\
Examples:
  arena chat send ID 'shall we compare notes?' --from inv_…
  arena chat send ID 'between us two' --to inv_… --from inv_…
  arena chat send ID --from inv_… -- '--anything, even if it looks like an option'")]
    Send {
        /// The session.
        id: String,
        /// What to say.
        #[arg(allow_hyphen_values = true)]
        text: String,
        /// Say it to this player only.
        #[arg(long, value_name = "ID")]
        to: Option<String>,
    },
    /// Read the chat of a session.
    #[command(after_help = "\
Examples:
  arena chat sync ID --from inv_…
  arena chat sync ID --from inv_… --index 2 --wait 20    wait for message 2
  arena chat sync invites           invites that wait for an opponent")]
    Sync(SyncArgs),
}

/// Which messages to read.
#[derive(Debug, Args)]
pub struct SyncArgs {
    /// The session; challenge_ID names the operator's channel.
    pub id: String,
    /// From this message on; the first is 1.
    #[arg(long, value_name = "N")]
    pub index: Option<u64>,
    /// Wait up to so many seconds until there is something.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u8).range(0..=50))]
    pub wait: Option<u8>,
}

/// States in which a session may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatusFilter {
    /// Waiting for players.
    Open,
    /// Being played.
    Active,
    /// Over.
    Ended,
}

impl StatusFilter {
    /// The wire's word.
    pub fn as_str(self) -> &'static str {
        match self {
            StatusFilter::Open => "open",
            StatusFilter::Active => "active",
            StatusFilter::Ended => "ended",
        }
    }
}

fn json_object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}
