//! Arguments of `arena challenges` and `arena chat`. Each subcommand makes one request.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value};

/// Subcommands of `arena challenges`.
#[derive(Debug, Subcommand)]
pub enum ChallengesVerb {
    /// Print challenge types: rules, methods, players, options.
    #[command(after_help = "\
Examples:
  arena challenges metadata
  arena challenges metadata psi")]
    Metadata {
        /// Challenge type, such as psi [default: all]
        name: Option<String>,
    },
    /// List sessions, newest first.
    #[command(after_help = "\
Examples:
  arena challenges list
  arena challenges list psi --status ended --limit 5")]
    List {
        /// Challenge type [default: all]
        name: Option<String>,
        /// State of the sessions [default: all]
        #[arg(long, value_enum)]
        status: Option<StatusFilter>,
        /// Maximum number of sessions, up to 100 [default: the server's]
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Number of newest sessions to skip [default: 0]
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
    },
    /// Create a session and print an invite for each player.
    #[command(after_help = "\
Examples:
  arena challenges create psi
  arena challenges create psi --options '{\"setSize\": 5}'
  arena challenges create psi --unlisted
  arena challenges metadata psi      lists the options, their defaults and bounds

The answer also contains the creator's key (creatorKey), which is printed only here. With it, `arena session` lists the \
free invites, and cancels and unlists the session.")]
    Create {
        /// Challenge type, such as psi.
        name: String,
        /// Options of the session (`arena challenges metadata NAME` lists them).
        #[arg(long, value_name = "JSON", value_parser = json_object)]
        options: Option<Map<String, Value>>,
        /// Keep the session out of all lists and histories; its game is unrated.
        #[arg(long)]
        unlisted: bool,
    },
    /// Take the seat of an invite and print the session's id.
    #[command(after_help = "\
Examples:
  arena challenges join inv_0192d4c8-…
  arena challenges join inv_0192d4c8-… --user-id ada
  arena challenges join inv_0192d4c8-… --sign            sign with your only key
  arena challenges join inv_0192d4c8-… --sign USER_ID    sign with one of several
  arena challenges join inv_0192d4c8-… --sign my.key

A server with authentication answers with a session key (sessionKey), which authenticates all later requests for the seat: \
pass it as --auth or in ARENA_AUTH.")]
    Join {
        /// Invite.
        invite: String,
        /// Your user id for scores; other players see it when the session has ended.
        #[arg(long, value_name = "ID")]
        user_id: Option<String>,
        /// Sign with a private key: a file, or a user id in ~/.arena/keys [default: the only key there]
        #[arg(long, value_name = "KEYFILE", num_args = 0..=1, conflicts_with = "user_id")]
        sign: Option<Option<String>>,
    },
    /// Read the operator's messages: your private information, the state, the result.
    #[command(after_help = "\
Examples:
  arena challenges sync ID --from inv_…
  arena challenges sync ID --from inv_… --index 4 --wait 20    wait for message 4")]
    Sync(SyncArgs),
    /// Perform an action: call a method of the challenge.
    #[command(after_help = "\
Examples:
  arena challenges send ID guess '142, 377, 801' --from inv_…
  arena challenges send ID guess --from inv_… -- '--anything, even if it looks like an option'")]
    Send {
        /// Session id.
        id: String,
        /// Method of the challenge.
        method: String,
        /// Content of the action.
        #[arg(allow_hyphen_values = true)]
        content: String,
    },
}

/// Subcommands of `arena chat`.
#[derive(Debug, Subcommand)]
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

/// The messages to read.
#[derive(Debug, Args)]
pub struct SyncArgs {
    /// Channel: a session id for its chat, challenge_ID for its operator channel, or invites.
    pub id: String,
    /// Index of the first message to print [default: 1]
    #[arg(long, value_name = "N")]
    pub index: Option<u64>,
    /// Maximum time to wait for a message, in seconds [default: 0]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u8).range(0..=50))]
    pub wait: Option<u8>,
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatusFilter {
    /// Waiting for players.
    Open,
    /// In progress.
    Active,
    /// Over.
    Ended,
}

impl StatusFilter {
    /// Returns the name on the wire.
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
