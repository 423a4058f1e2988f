//! The command line: all commands, and the options that they share. The arguments and the help of a command are beside
//! its code.

mod groups;
mod options;
#[cfg(test)]
mod reference;

use arena_wire::removed::{self, Kind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Parser, Subcommand};

use crate::admin::{AdminArgs, AdminVerb};
use crate::agent::AgentVerb;
use crate::author::AuthorVerb;
use crate::board::BoardVerb;
use crate::challenges::ChallengesVerb;
use crate::chat::ChatVerb;
use crate::completions::{CompletionsArgs, ManArgs};
use crate::demo::DemoArgs;
use crate::eval::EvalVerb;
use crate::exit::{Failure, exit_codes};
use crate::identity::IdentityVerb;
use crate::log::LogVerb;
use crate::matches::MatchVerb;
use crate::play::args::SeatArgs;
use crate::rate::RateArgs;
use crate::record::RecordVerb;
use crate::replay::ReplayVerb;
use crate::scoring::ScoringArgs;
use crate::serve::ServeArgs;
use crate::session::SessionVerb;
use crate::tournament::TournamentVerb;
use crate::users::UsersVerb;
use crate::verify::VerifyArgs;
use crate::worker::WorkerArgs;

pub use groups::command;
pub use options::{Global, KeyArgs, NatsUrlParser, base_url, first_given, header_text};

/// The end of the help of `arena` alone.
const EXAMPLES: &str = "\
Examples:
  arena demo                        start a server and watch house bots play
  arena serve                       start a server on this machine
  arena match run snake --agent ./a --agent ./b    play a match between two agents
  arena replay show game.jsonl --play              play back a recorded match
  arena challenges create psi       create a session and print its invites
  arena play inv_…                  take a seat and play it yourself
  arena play inv_… --agent ./bot    let an agent play the seat

Run `arena COMMAND --help` for the options of a command.";

/// Run, play and host multi-agent challenges.
#[derive(Debug, Parser)]
#[command(
    name = "arena",
    version,
    arg_required_else_help = true,
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", exit_codes()),
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

impl Cli {
    /// Refuses global options on the command line that the command doesn't use. Environment variables are ignored.
    ///
    /// # Errors
    /// A usage error that names the option.
    pub fn refuse_unused(matches: &ArgMatches) -> Result<(), Failure> {
        let path = groups::path(matches);
        let given = |name: &&str| matches.value_source(name) == Some(ValueSource::CommandLine);
        match ["url", "from", "auth", "cacert"].into_iter().filter(given).find(|name| !groups::is_used(name, &path)) {
            None => Ok(()),
            Some(name) => {
                let verb = matches.subcommand_name().unwrap_or_default();
                let removed = removed::sentence(Kind::Option, &format!("{verb} --{name}"));
                let unused = || format!("--{name}: `arena {verb}` doesn't call a server; remove the option");
                Err(Failure::usage(removed.unwrap_or_else(unused)))
            }
        }
    }
}

/// The commands. `groups.rs` assigns each of them to a group of `arena --help`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start a server.
    Serve(ServeArgs),
    /// Start a server and let house bots play.
    Demo(DemoArgs),
    /// Play as a person, program or language model.
    Play(Box<SeatArgs>),
    /// Play matches between agents.
    #[command(subcommand)]
    Match(MatchVerb),
    /// Run tournaments between agents.
    #[command(subcommand)]
    Tournament(TournamentVerb),
    /// Measure language models in games against each other.
    #[command(subcommand)]
    Eval(EvalVerb),
    /// Play matches for tournaments on other machines.
    Worker(WorkerArgs),
    /// Rate results by Bradley–Terry and Elo.
    Rate(RateArgs),
    /// Create, check and upload agents.
    #[command(subcommand)]
    Agent(AgentVerb),
    /// Show, verify and export replays.
    #[command(subcommand)]
    Replay(ReplayVerb),
    /// Verify records of sessions, and replays.
    Verify(VerifyArgs),
    /// Get, show and redact records of sessions.
    Record {
        #[command(flatten)]
        key: KeyArgs,
        #[command(subcommand)]
        verb: RecordVerb,
    },
    /// Check an arena's public log of sessions.
    #[command(subcommand)]
    Log(LogVerb),
    /// Compute leaderboards from records.
    #[command(subcommand)]
    Board(BoardVerb),
    /// Continue sessions differently; cancel and unlist them.
    #[command(subcommand)]
    Session(SessionVerb),
    /// Write, check and try your own challenges.
    #[command(subcommand, alias = "challenge")]
    Author(AuthorVerb),
    /// List, create and join sessions on a server.
    Challenges {
        #[command(flatten)]
        key: KeyArgs,
        #[command(subcommand)]
        verb: ChallengesVerb,
    },
    /// Read and send chat messages.
    Chat {
        #[command(flatten)]
        key: KeyArgs,
        #[command(subcommand)]
        verb: ChatVerb,
    },
    /// Print leaderboards.
    Scoring(ScoringArgs),
    /// Show and edit user profiles.
    #[command(subcommand)]
    Users(UsersVerb),
    /// Administer a server: bans, removals, export, import.
    Admin {
        #[command(flatten)]
        args: AdminArgs,
        #[command(subcommand)]
        verb: AdminVerb,
    },
    /// Manage the keys that sign your joins.
    #[command(subcommand)]
    Identity(IdentityVerb),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write man pages.
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn content_may_look_like_an_option() {
        let sent =
            |args: &[&str]| match Cli::try_parse_from([&["arena", "challenges", "send", "ID", "guess"], args].concat())
            {
                Ok(Cli { verb: Verb::Challenges { verb: ChallengesVerb::Send { content, .. }, .. }, global }) => {
                    format!("{content:?} from {:?}", global.from)
                }
                other => format!("{other:?}"),
            };
        assert_eq!(sent(&["-5, 3", "--from", "inv_1"]), r#""-5, 3" from Some("inv_1")"#);
        assert_eq!(sent(&["--from", "inv_1", "-x"]), r#""-x" from Some("inv_1")"#);
        assert_eq!(sent(&["--from", "inv_1", "--", "--from"]), r#""--from" from Some("inv_1")"#);
        assert_eq!(sent(&[""]), r#""" from None"#);
    }

    #[test]
    fn auth_is_a_key_before_and_behind_verbs_and_a_flag_of_serve() {
        let parsed = |args: &str| match Cli::try_parse_from(["arena"].into_iter().chain(args.split(' '))) {
            Ok(Cli { verb: Verb::Serve(args), global }) => format!("serve {} {:?}", args.auth, global.auth),
            Ok(Cli { verb: Verb::Challenges { key, .. } | Verb::Chat { key, .. }, global }) => {
                format!("{:?}", global.with(&key).auth)
            }
            other => format!("{:?}", other.map_err(|error| error.kind())),
        };
        for (args, expected) in [
            ("serve", "serve false None"),
            ("serve --auth", "serve true None"),
            ("serve --auth --port 0", "serve true None"),
            ("--auth K serve", r#"serve false Some("K")"#),
            ("--auth K challenges list", r#"Some("K")"#),
            ("challenges --auth K list", r#"Some("K")"#),
            ("challenges list --auth K", r#"Some("K")"#),
            ("--auth K challenges list --auth L", r#"Some("L")"#),
            ("chat sync ID --auth K --from inv_1", r#"Some("K")"#),
            ("challenges list", "None"),
            ("serve --auth K", "Err(UnknownArgument)"),
            ("challenges list --auth", "Err(InvalidValue)"),
            ("--auth serve", "Err(MissingSubcommand)"),
        ] {
            assert_eq!(parsed(args), expected, "{args}");
        }
    }
}
