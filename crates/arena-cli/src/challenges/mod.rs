//! `arena challenges …`: each command is one request. Answers are printed as tables for people, and unchanged for
//! programs.

pub mod answers;

use arena_players::http::{Arena, CallError, ChannelKind, HttpAnswer, Read};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value};

use crate::client::{JoinArgs, join, session_id};
use crate::exit::{Exit, Failure};
use crate::output::{Style, print_answer};

/// Subcommands of `arena challenges`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena challenges metadata psi     print rules, methods and number of players
  arena challenges create psi       create a session
  arena challenges join inv_…       take a seat
  arena challenges sync ID --from inv_…    read the operator's messages
  arena challenges send ID guess '142, 377' --from inv_…

To write your own challenge, use `arena author`.")]
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
        #[command(flatten)]
        join: JoinArgs,
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

pub fn run(verb: ChallengesVerb, arena: &Arena, style: Style) -> Result<(), Failure> {
    match verb {
        ChallengesVerb::Metadata { name } => {
            let describe = if name.is_some() { answers::challenge_type } else { answers::challenge_types };
            print_answer(&arena.metadata(name.as_deref())?, style, describe)
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
        ChallengesVerb::Join { invite, join: args } => {
            let answer = join(arena, &invite, &args)??;
            print_answer(&answer, style, |answer| answers::joined(answer, &invite))
        }
        ChallengesVerb::Sync(args) => sync(ChannelKind::Operator, &args, arena, style),
        ChallengesVerb::Send { id, method, content } => {
            print_answer(&arena.act(&id, &method, &content)?, style, |_| Some("sent".to_owned()))
        }
    }
}

/// Prints the messages of a channel. Servers return an empty list for an unknown channel. So after an empty list, a
/// second request checks that the channel exists.
///
/// # Errors
/// If the channel doesn't exist.
pub fn sync(kind: ChannelKind, args: &SyncArgs, arena: &Arena, style: Style) -> Result<(), Failure> {
    let SyncArgs { id, index, wait } = args;
    let answer = arena.messages(kind, id, Read { index: *index, wait: *wait })?;
    let channel = match kind {
        ChannelKind::Chat => id.clone(),
        ChannelKind::Operator => format!("challenge_{}", session_id(id)),
    };
    if is_empty(&answer, "messages")
        && let Err(CallError::Refused { status: 404, .. }) = arena.stream(&channel, None)
    {
        return Err(Failure::new(Exit::Refused, format_args!("this server has no session or channel {id}")));
    }
    print_answer(&answer, style, answers::messages)
}

fn is_empty(answer: &HttpAnswer, list: &str) -> bool {
    let answer = answer.read::<Value>().unwrap_or_default();
    answer[list].as_array().is_some_and(Vec::is_empty)
}
