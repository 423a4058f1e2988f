//! Arguments of the `arena` binary: each command, its options and its help. Commands that belong together share a file.

mod admin;
mod agent;
mod challenge;
mod eval;
mod groups;
mod matches;
pub mod play;
mod rate;
mod records;
mod records_boards;
#[cfg(test)]
mod reference;
mod replay;
mod serve;
mod sessions;
mod tournament;
mod url;
mod users;
mod worker;

use std::path::PathBuf;

use arena_wire::removed::{self, Kind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Parser, Subcommand};

use crate::exit::{Exit, Failure, exit_codes};
use crate::output::Style;

pub use admin::{AdminArgs, AdminVerb, ApiMethod};
pub use agent::{AgentVerb, CheckArgs, Language, NewAgentArgs, UploadArgs};
pub use challenge::{ChallengeVerb, CheckChallengeArgs, FairnessArgs, NewArgs, PlayChallengeArgs};
pub use eval::{
    CallsArgs, DiffArgs, EvalVerb, GameEvalArgs, PlanEvalArgs, PlayEvalArgs, ReportEvalArgs, ResumeEvalArgs,
    RunEvalArgs,
};
pub use groups::command;
pub use matches::{Affinity, AgentIds, MatchVerb, PlayArgs, RunArgs, Sandbox, SandboxArgs};
pub use play::{BotArgs, JoinArgs, ModelArgs, SeatArgs};
pub use rate::{RATE_EXAMPLES, RateArgs};
pub use records::{LogKeyArgs, LogSourceArgs, LogVerb, RecordVerb, VERIFY_EXAMPLES, VerifyArgs};
pub use records_boards::{BoardVerb, CreatorArgs, ForkSessionArgs, RebuildArgs, SessionVerb};
pub use replay::{Format, ReplayServeArgs, ReplayVerb, ShowArgs};
pub use serve::{DemoArgs, ListenArgs, LogArgs, LogFormat, ServeArgs};
pub use sessions::{ChallengesVerb, ChatVerb, SyncArgs};
pub use tournament::{
    AddArgs, PictureArg, ResumeArgs, SprtPart, StandingsArgs, TournamentArgs, TournamentVerb, WorkerPoolArgs,
};
pub use users::{IdentityVerb, UsersVerb};
pub use worker::WorkerArgs;

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

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// URL of the server.
    #[arg(long, global = true, env = "ARENA_URL", default_value = "http://localhost:3001", value_parser = base_url)]
    pub url: String,
    /// Your player id: the invite that you joined with.
    #[arg(long, global = true, value_name = "INVITE")]
    pub from: Option<String>,
    // Not global: `serve` has an `--auth` flag of its own. Commands that call a server take KeyArgs.
    /// Session key, for servers with authentication.
    #[arg(long, env = "ARENA_AUTH", hide_env_values = true, value_name = "KEY", value_parser = header_text)]
    pub auth: Option<String>,
    /// PEM file of CA certificates to trust instead of the system's.
    #[arg(long, global = true, env = "ARENA_CACERT", value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Print JSON, one object a line.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The `--auth` option after a command. It overrides [`Global::auth`], which stands before the command and also reads
/// the environment variable.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct KeyArgs {
    /// Session key, for servers with authentication [env: ARENA_AUTH]
    #[arg(id = "session_key", long = "auth", global = true, value_name = "KEY", value_parser = header_text)]
    pub auth: Option<String>,
}

impl Global {
    /// Returns these options, with the session key of `key` if it contains one.
    pub fn with(self, key: KeyArgs) -> Global {
        Global { auth: key.auth.or(self.auth), ..self }
    }

    /// Returns the output style.
    pub fn style(&self) -> Style {
        Style::choose(self.json)
    }
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
                Err(Failure::new(Exit::Usage, removed.unwrap_or_else(unused)))
            }
        }
    }
}

/// The commands. `groups.rs` assigns each of them to a group of `arena --help`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start a server.
    #[command(after_help = "\
Examples:
  arena serve                       http://127.0.0.1:3001, data in ./arena-data
  arena serve --port 0 --data here  a free port, another data folder
  arena serve --auth --listen 0.0.0.0:3001             open to the network; players sign their joins
  arena serve --trust-network --listen 0.0.0.0:3001    open to the network; user ids aren't checked
  arena serve --config arena.toml --log-format json
  arena serve --database-url URL --nats-url URL        one of several nodes on one Postgres database

The server stores its data in a folder or in Postgres. When it accepts connections, it prints its address on stdout:
arena listens on http://ADDRESS:PORT

On its first start, the server also prints the administrator's token and keeps it in admin.token in the data folder. To \
choose the token yourself, set ADMIN_TOKEN (at least 24 characters).

With --auth, the server derives session keys from the environment variable AUTH_SECRET (at least 16 bytes). If it isn't \
set, the server generates a secret once and keeps it in the data folder.

Ctrl-C or SIGTERM stops the server after it has finished the requests that it accepted. A second signal stops it at once.")]
    Serve(ServeArgs),
    /// Start a server and let house bots play.
    #[command(after_help = "\
Examples:
  arena demo                        play, print scores, keep serving until Ctrl-C
  arena demo --once                 exit after the first games
  arena demo --games 12 --pace 1    play 12 games first, then one every second
  arena demo --data demo-data       keep the data")]
    Demo(DemoArgs),
    /// Play as a person, bot or language model.
    #[command(after_help = "\
Examples:
  arena play inv_…                                 play at this terminal
  arena play --from inv_…                          return to a seat that you took before
  arena play inv_… --agent ./bot                   let a bot play, in the sandbox of `arena match run`
  arena play inv_… --agent house                   let a house bot play; `random` plays at random
  arena play inv_… --agent model:NAME@ollama       let a language model play
  arena play inv_… --url https://arena.example --sign -- python3 bot.py
  arena play inv_… --model NAME --api-base http://127.0.0.1:8080/v1
  arena play inv_… --model NAME --max-turns 20 --price-in 3 --price-out 15 --max-cost 0.50

At the terminal:
  A line that begins with / is an action or a command: `/guess 1, 2, 3` calls the challenge's method `guess`, and /help \
  lists all of them. Any other line is a chat message to all players; `@2 text` sends it to Player 2 only.
  If the connection breaks or the server restarts, the program retries for up to 5 minutes. Ctrl-C or /quit leaves; the \
  seat stays yours and the session continues without you.

Bots:
  A bot receives the states of games (snake, chess, …) as in a match. docs/agents.md in the repository describes its \
  input in other challenges. A bot that crashes, times out or violates the protocol resigns if the challenge has a method for resigning; \
  the exit code is 12.

Language models:
  The model receives the rules, the challenge's methods as tools, and each message as it arrives. Set the API key in \
  OPENAI_API_KEY or ANTHROPIC_API_KEY.
  If the endpoint is busy or unreachable, requests are retried for --patience seconds. If it still fails, or rejects the \
  key or the payment, the seat is parked: the model doesn't resign, the exit code is 17, and
  `arena play --from INVITE --model NAME` resumes the seat. The game's time limit keeps running, and the server closes \
  idle sessions without counting them.
  A model that reaches a limit, or gives five answers in a row without a tool call, stops; the exit code is 18. It resigns \
  if the challenge has a method for resigning. Otherwise it notifies the other players and stays silent until the session \
  ends or --max-time is reached.")]
    Play(Box<SeatArgs>),
    /// Play matches between agents.
    #[command(after_help = "\
Examples:
  arena match games                 list the games
  arena match run snake --agent ./a --agent ./b
  arena match run chess --agent ./a --agent ./b --games 100 --concurrency 2

Matches need no server. Agents can be written in any language.")]
    Match {
        #[command(subcommand)]
        verb: MatchVerb,
    },
    /// Run tournaments between agents.
    #[command(after_help = "\
Examples:
  arena tournament run snake --agent ./a --agent ./b --agent ./c --out snakes
  arena tournament resume snakes    continue after Ctrl-C or a crash
  arena tournament standings snakes
  arena tournament rate snakes games.pgn    rate all results by Bradley–Terry and Elo")]
    Tournament {
        #[command(subcommand)]
        verb: TournamentVerb,
    },
    /// Measure language models in games against each other.
    #[command(after_help = "\
Examples:
  arena eval plan autumn.toml --pilot 1            the games, and an estimate of tokens, dollars and hours
  arena eval run autumn.toml --out autumn          play, or continue after Ctrl-C or a crash
  arena eval status autumn                         the progress, also while it plays
  arena eval report autumn                         tables, and pages for browsers in autumn/report

A run file names models, challenges, seeds and caps. Every model plays every challenge on every seat, against every other \
model and against baselines. docs/evaluations.md in the repository describes the file and the statistics.")]
    Eval {
        #[command(subcommand)]
        verb: EvalVerb,
    },
    /// Play matches for tournaments on other machines.
    #[command(after_help = "\
Examples:
  arena worker --nats-url nats://hub --concurrency 8
  ARENA_NATS_URL='tls://worker:password@hub' arena worker --concurrency 8
  arena tournament run snake --agent ./a --agent ./b --rounds 500 --nats-url nats://hub    on another machine

The NATS server needs JetStream (`nats-server -js`); docs/workers.md in the repository explains the setup. Other users of the machine can \
read a command line, so set a URL with a password in ARENA_NATS_URL.

Anyone who can write to the NATS server can run programs on this machine, in the sandbox chosen here. Give access only to \
people you trust: with --sandbox off their programs have all of your rights.

Ctrl-C or SIGTERM: the worker takes no more games and finishes those in progress. A second signal returns the games in \
progress to the queue and stops the worker at once. If a worker fails, other workers play its games.")]
    Worker(WorkerArgs),
    /// Rate results by Bradley–Terry and Elo.
    #[command(after_help = RATE_EXAMPLES)]
    Rate(RateArgs),
    /// Create, check and upload agents.
    #[command(after_help = "\
Examples:
  arena agent new snake bot
  arena agent check ./bot --game snake
  arena agent upload ./bot --game snake")]
    Agent {
        #[command(subcommand)]
        verb: AgentVerb,
    },
    /// Show, verify and export replays.
    #[command(after_help = "\
Examples:
  arena match run snake --agent ./a --agent ./b --replay game.jsonl
  arena replay show game.jsonl --play
  arena replay serve game.jsonl                        in the browser
  arena replay verify game.jsonl
  arena replay export game.jsonl --format reference --out reference.jsonl")]
    Replay {
        #[command(subcommand)]
        verb: ReplayVerb,
    },
    /// Verify records of sessions, and replays.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Get, show and redact records of sessions.
    #[command(after_help = "\
Examples:
  arena record get ID --out game.jsonl
  arena record show game.jsonl
  arena record redact game.jsonl --withhold chat --out public.jsonl

A record is the signed file of a session. `arena verify` checks it without a server.")]
    Record {
        #[command(flatten)]
        key: KeyArgs,
        #[command(subcommand)]
        verb: RecordVerb,
    },
    /// Check an arena's public log of sessions.
    #[command(after_help = "\
Examples:
  arena log checkpoint --log https://arena.example --out today.txt
  arena log check --log https://arena.example --since today.txt
  arena log prove ID --log https://arena.example

The log has a leaf for each session's creation, and one for its end or removal. Leaves are never changed or removed, so \
a session that was played can't be left out unnoticed.")]
    Log {
        #[command(subcommand)]
        verb: LogVerb,
    },
    /// Compute leaderboards from records.
    #[command(after_help = "\
Examples:
  arena board rebuild --records season
  arena board rebuild --records season --log https://arena.example --policy policy.toml")]
    Board {
        #[command(subcommand)]
        verb: BoardVerb,
    },
    /// Continue sessions differently; cancel and unlist them.
    #[command(after_help = "\
Examples:
  arena session fork game.jsonl --at 12 --swap 1=house --out fork.jsonl
  arena session fork game.jsonl --at 12 --swap 1=model:NAME@ollama
  arena session cancel ID --creator-key o_…

On a server, commands need the key of the session's creator, which `arena challenges create` prints, from \
--creator-key or ARENA_CREATOR_KEY. Other users of the machine can read a command line, so prefer the variable. \
Administrators give --admin instead.")]
    Session {
        #[command(subcommand)]
        verb: SessionVerb,
    },
    /// Write, check and try your own challenges.
    #[command(
        alias = "challenge",
        after_help = "\
Examples:
  arena author new number-duel      create a challenge from a template
  arena author check number-duel    find faults by playing it
  arena author play number-duel     play all seats at this terminal
  arena serve --challenges .        start a server that offers it

docs/writing-challenges.md in the repository is a tutorial. To play the challenges of a server, use `arena challenges`."
    )]
    Author {
        #[command(subcommand)]
        verb: ChallengeVerb,
    },
    /// List, create and join sessions on a server.
    #[command(after_help = "\
Examples:
  arena challenges metadata psi     print rules, methods and number of players
  arena challenges create psi       create a session
  arena challenges join inv_…       take a seat
  arena challenges sync ID --from inv_…    read the operator's messages
  arena challenges send ID guess '142, 377' --from inv_…

To write your own challenge, use `arena author`.")]
    Challenges {
        #[command(flatten)]
        key: KeyArgs,
        #[command(subcommand)]
        verb: ChallengesVerb,
    },
    /// Read and send chat messages.
    #[command(after_help = "\
Examples:
  arena chat send ID 'shall we compare notes?' --from inv_…
  arena chat sync ID --from inv_… --wait 20")]
    Chat {
        #[command(flatten)]
        key: KeyArgs,
        #[command(subcommand)]
        verb: ChatVerb,
    },
    /// Print leaderboards.
    #[command(after_help = "\
Examples:
  arena scoring                     all challenge types together
  arena scoring psi                 one board for each scoring strategy
  arena scoring psi --sort win-rate:utility --limit 10

Averages are printed with their 95 % confidence interval. Boards are sorted by the lower end of this interval, so that a few \
lucky games don't rank above many good ones. --sort names another metric; add :low to sort by the lower end of its interval.")]
    Scoring {
        /// Challenge type, such as psi [default: all together]
        name: Option<String>,
        /// Metric to sort by, such as win-rate:utility.
        #[arg(long, value_name = "KEY")]
        sort: Option<String>,
        /// Maximum number of players, up to 100 [default: the server's]
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Number of players to skip [default: 0]
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
    },
    /// Show and edit user profiles.
    #[command(after_help = "\
Examples:
  arena users get                   all users
  arena users get ada
  arena users update --username Ada --model engine-1 --user-id ada")]
    Users {
        #[command(subcommand)]
        verb: UsersVerb,
    },
    /// Administer a server: bans, removals, export, import.
    #[command(after_help = "\
Examples:
  arena admin api GET /admin/audit --data arena-data      the log of administrators' actions
  arena admin api POST /admin/sessions/SESSION/remove
  arena admin export --out arena.jsonl

The commands need the server's administrator token: from --token, ARENA_ADMIN_TOKEN, or admin.token in the data folder \
(--data). For a server on this machine the default folder is arena-data. Other users of the machine can read a command \
line, so avoid --token.

The output is text for people; --json prints the server's answer.")]
    Admin {
        #[command(flatten)]
        args: AdminArgs,
        #[command(subcommand)]
        verb: AdminVerb,
    },
    /// Manage the keys that sign your joins.
    #[command(after_help = "\
Examples:
  arena identity new                create a key pair in ~/.arena/keys
  arena identity list
  arena challenges join inv_… --sign")]
    Identity {
        #[command(subcommand)]
        verb: IdentityVerb,
    },
    /// Print a completion script for a shell.
    #[command(after_help = "\
Examples:
  arena completions bash > ~/.local/share/bash-completion/completions/arena
  arena completions zsh > ~/.zfunc/_arena
  arena completions fish > ~/.config/fish/completions/arena.fish")]
    Completions {
        /// Shell.
        shell: clap_complete::Shell,
    },
    /// Write man pages.
    #[command(after_help = "\
Examples:
  arena man ~/.local/share/man/man1
  arena man man && man -l man/arena-match-run.1")]
    Man {
        /// Folder for the pages: one file for each command; created if missing.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Parses the URL of a server; removes the trailing slash.
pub fn base_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['?', '#', ' ']) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err("expected http://HOST:PORT or https://HOST".to_owned()),
    }
}

/// Parses a key: text that fits into an HTTP header.
fn header_text(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        false => Err("expected ASCII characters without spaces".to_owned()),
    }
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
                format!("{:?}", global.with(key).auth)
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

    #[test]
    fn url_needs_a_scheme_and_loses_its_last_slash() {
        assert_eq!(base_url("http://localhost:1/"), Ok("http://localhost:1".to_owned()));
        assert!(base_url("localhost:1").is_err());
        assert!(base_url("http://").is_err());
        assert!(base_url("http:///x").is_err());
    }
}
