//! The arguments of the `arena` binary: every verb, its options, and the help that people read. What a verb takes is in a file of its
//! own, those that go together in one.

mod admin;
mod agent;
mod challenge;
mod league;
mod matches;
mod play;
mod rate;
mod replay;
mod serve;
mod sessions;
mod tournament;
mod url;
mod users;
mod worker;

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Parser, Subcommand};

use crate::exit::{EXIT_CODES, Exit, Failure};
use crate::output::Style;

pub use admin::{AdminArgs, AdminVerb, SubjectArgs};
pub use agent::{AgentVerb, CheckArgs, Language, NewAgentArgs};
pub use challenge::{ChallengeVerb, CheckChallengeArgs, FairnessArgs, NewArgs, PlayChallengeArgs};
pub use league::{AddArgs, CreateArgs, DataArgs, LeagueVerb, RunLeagueArgs, ShowLeagueArgs};
pub use matches::{Affinity, MatchVerb, PlayArgs, RunArgs, Sandbox, SandboxArgs};
pub use play::{Api, BotArgs, JoinArgs, ModelArgs, SeatArgs};
pub use rate::{RATE_EXAMPLES, RateArgs};
pub use replay::{Format, ReplayVerb, ServeArgs as ReplayServeArgs, ShowArgs};
pub use serve::{DemoArgs, ListenArgs, LogArgs, LogFormat, ServeArgs};
pub use sessions::{ChallengesVerb, ChatVerb, SyncArgs};
pub use tournament::{FleetArgs, PictureArg, ResumeArgs, SprtPart, StandingsArgs, TournamentArgs, TournamentVerb};
pub use users::{IdentityVerb, UsersVerb};
pub use worker::WorkerArgs;

/// A multi-agent arena: challenges in which agents meet, chat, act and are scored.
#[derive(Debug, Parser)]
#[command(
    name = "arena",
    version,
    arg_required_else_help = true,
    after_help = format!("\
Examples:
  arena demo                        a server, and house bots that play
  arena serve                       an arena on this machine
  arena match run snake --agent ./a --agent ./b    a match between two bots
  arena replay show game.jsonl --play              a match that was recorded, as a film
  arena challenges create psi       a session, with an invite for each player
  arena play inv_…                  take a seat and play
  arena play inv_… --agent ./bot    let a bot play

{EXIT_CODES}")
)]
pub struct Cli {
    /// Options of every verb.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Options that every verb takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Address of the arena to talk to.
    #[arg(long, global = true, env = "ARENA_URL", default_value = "http://localhost:3001", value_parser = base_url)]
    pub url: String,
    /// Who speaks: the invite that you joined with.
    #[arg(long, global = true, value_name = "INVITE")]
    pub from: Option<String>,
    // Not for every verb, as the others are: `serve` has an `--auth` of its own. Verbs that talk to an arena take a KeyArgs.
    /// Session key, for an arena with authentication.
    #[arg(long, env = "ARENA_AUTH", hide_env_values = true, value_name = "KEY", value_parser = header_text)]
    pub auth: Option<String>,
    /// Certificates of the authorities to trust instead of the usual ones, in PEM, for an arena with a private one.
    #[arg(long, global = true, env = "ARENA_CACERT", value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Print JSON on one line, on a terminal as well.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The `--auth` of [`Global`] behind a verb, where people expect it. The environment is that one's affair: what is said
/// before the verb shall win over it, and what is said behind over both.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct KeyArgs {
    /// Session key, for an arena with authentication [env: ARENA_AUTH]
    #[arg(id = "session_key", long = "auth", global = true, value_name = "KEY", value_parser = header_text)]
    pub auth: Option<String>,
}

impl Global {
    /// These options, with what was said behind the verb.
    pub fn with(self, key: KeyArgs) -> Global {
        Global { auth: key.auth.or(self.auth), ..self }
    }

    /// How answers are to be printed.
    pub fn style(&self) -> Style {
        Style::choose(self.json)
    }
}

impl Cli {
    /// Refuses options of the command line that a verb has no use for. The environment may hold them for other verbs.
    ///
    /// # Errors
    /// Names the option.
    pub fn refuse_unused(&self, matches: &ArgMatches) -> Result<(), Failure> {
        let talks = matches!(
            self.verb,
            Verb::Play(_)
                | Verb::Challenges { .. }
                | Verb::Chat { .. }
                | Verb::Scoring { .. }
                | Verb::Users { .. }
                | Verb::Admin { .. }
                // Keys and completions are for those verbs.
                | Verb::Identity { .. }
                | Verb::Completions { .. }
        );
        let given = |name: &&str| matches.value_source(name) == Some(ValueSource::CommandLine);
        match ["url", "from", "auth", "cacert"].into_iter().find(given).filter(|_| !talks) {
            None => Ok(()),
            Some(name) => {
                let verb = matches.subcommand_name().unwrap_or_default();
                Err(Failure::new(Exit::Usage, format_args!("--{name}: `arena {verb}` talks to no arena")))
            }
        }
    }
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run an arena on this machine, with its store in a folder or in Postgres.
    #[command(after_help = "\
Examples:
  arena serve                       http://127.0.0.1:3001, data in ./arena-data
  arena serve --port 0 --data here  a free port, another folder
  arena serve --auth --listen 0.0.0.0:3001             for others, who have to prove who they are
  arena serve --trust-network --listen 0.0.0.0:3001    for all who can reach it, as they say
  arena serve --config arena.toml --log-format json
  arena serve --database-url URL --nats-url URL        one of several nodes on a Postgres

When it listens, it prints one line on stdout: arena listens on http://ADDRESS:PORT
At the first start it also prints the administrator's token, which is kept in the data folder as
admin.token. Set ADMIN_TOKEN to have another one (at least 24 characters).
With --auth, session keys are made with the secret in the environment variable AUTH_SECRET (at least
16 bytes) or, if that isn't set, with one that is made once and kept in the data folder.
Ctrl-C or SIGTERM stops it after finishing what it accepted; a second one stops it at once.")]
    Serve(ServeArgs),
    /// Serve an arena and let house bots play in it: the five-minute tour.
    #[command(after_help = "\
Examples:
  arena demo                        play, print scores, stay up until Ctrl-C
  arena demo --once                 exit after the first games
  arena demo --games 12 --pace 1    more games, and a new one every second
  arena demo --data demo-data       keep what was played")]
    Demo(DemoArgs),
    /// Play: a person, a bot or a language model takes a seat in a session of any arena, and plays to the end.
    #[command(after_help = "\
Examples:
  arena play inv_…                                 you play, at this terminal
  arena play --from inv_…                          back to a seat that you have taken before
  arena play inv_… --agent ./bot                   a bot plays, in the sandbox of arena match run
  arena play inv_… --url https://arena.example --sign -- python3 bot.py
  arena play inv_… --model NAME --api-base http://127.0.0.1:8080/v1
  arena play inv_… --model NAME --max-turns 20 --price-in 3 --price-out 15 --max-cost 0.50

At the terminal (or in a pipe), a line that begins with / is an action or a command: `/guess 1, 2, 3` uses the
challenge's method `guess`, /help lists all. Everything else is said to all; `@2 text`, to Player 2 alone.

Broken connections, and servers that are started anew, are waited for up to 5 minutes. Ctrl-C or /quit leaves: the seat stays
yours, and the session goes on without you.

A bot gets the states of games (snake, chess, …) as in a match; docs/agents.md tells what it gets of other challenges. A bot
that crashes, is late or breaks the protocol resigns, where the challenge lets it, and the exit code is 12.

A language model is given the rules, the challenge's methods as tools, and messages as they come. The key of its endpoint is in
OPENAI_API_KEY or ANTHROPIC_API_KEY.

An endpoint that is busy or away is asked again for --patience seconds. If it still fails, or refuses the key or the payment,
the seat is parked: nothing is resigned, the exit code is 17, and `arena play --from INVITE --model NAME` comes back to it. A
game's time limit for a turn goes on, and an arena ends a session in which nothing happens; such a session doesn't count.

A model that reaches a limit, or gives five answers in a row without a tool call, stops: it resigns where the challenge has a
method for that. Elsewhere the other players are told. The seat then keeps silent to the end of the session, or until
--max-time; the exit code is 18.")]
    Play(Box<SeatArgs>),
    /// Matches: bots in any language play games against each other, without a server.
    #[command(after_help = "\
Examples:
  arena match games                 what can be played
  arena match run snake --agent ./a --agent ./b
  arena match run chess --agent ./a --agent ./b --games 100 --concurrency 2")]
    Match {
        /// What to do.
        #[command(subcommand)]
        verb: MatchVerb,
    },
    /// Tournaments: every agent meets the others, and nothing is lost when the machine goes down.
    #[command(after_help = "\
Examples:
  arena tournament run snake --agent ./a --agent ./b --agent ./c --out snakes
  arena tournament resume snakes    go on after Ctrl-C, or after the machine went down
  arena tournament standings snakes
  arena tournament rate snakes games.pgn    whatever holds results, rated by all systems")]
    Tournament {
        /// What to do.
        #[command(subcommand)]
        verb: TournamentVerb,
    },
    /// Play games of tournaments that others run, as many as this machine takes.
    #[command(after_help = "\
Examples:
  arena worker --nats-url nats://hub --concurrency 8
  ARENA_NATS_URL='tls://worker:password@hub' arena worker --concurrency 8
  arena tournament run snake --agent ./a --agent ./b --rounds 500 --nats-url nats://hub    elsewhere, what it plays

The NATS server needs JetStream (`nats-server -js`). Whoever may write to it has programs of theirs run here, in the sandbox
that this command line says, so let in those that you trust; --sandbox off lets their programs do whatever you may.
docs/operations.md tells how to set it up. A command line can be read by every user of a machine: a password belongs into
ARENA_NATS_URL.

Ctrl-C or SIGTERM takes no more games and finishes those that run; a second one hands them back to the queue and stops at once.
Whatever happens to a worker, its games are played by others.")]
    Worker(WorkerArgs),
    /// Leagues: agents come and go, and whoever's rating is least sure plays next, season after season.
    #[command(after_help = "\
Examples:
  arena league create snakes --game snake
  arena league add snakes ./a ./b new=./c
  arena league run snakes --for 10m
  arena league show snakes

Leagues are in the store of an arena, in the folder that --data names. Only one process at a time writes to it:
a server, or `arena league`; `show` and `list` read beside either.")]
    League {
        /// Where leagues are kept.
        #[command(flatten)]
        data: DataArgs,
        /// What to do.
        #[command(subcommand)]
        verb: LeagueVerb,
    },
    /// Rate the results in files and folders, by all systems side by side.
    #[command(after_help = RATE_EXAMPLES)]
    Rate(RateArgs),
    /// Agents: write a sample to start from, and find out what one gets wrong before it loses matches by it.
    #[command(after_help = "\
Examples:
  arena agent new snake bot
  arena agent check ./bot
  arena agent check ./bot --game snake")]
    Agent {
        /// What to do.
        #[command(subcommand)]
        verb: AgentVerb,
    },
    /// Replays: look at them, verify them, write them in other formats.
    #[command(after_help = "\
Examples:
  arena match run snake --agent ./a --agent ./b --replay game.jsonl
  arena replay show game.jsonl --play
  arena replay serve game.jsonl                        in the browser
  arena replay verify game.jsonl
  arena replay export game.jsonl --format reference --out reference.jsonl")]
    Replay {
        /// What to do.
        #[command(subcommand)]
        verb: ReplayVerb,
    },
    /// Make a challenge of your own: begin it, check it, try it out. (To play in an arena: `arena challenges`.)
    #[command(after_help = "\
Examples:
  arena challenge new number-duel   a folder to start from
  arena challenge check number-duel what it gets wrong
  arena challenge play number-duel  at this terminal, on all seats
  arena serve --challenges .        an arena that has it

docs/writing-challenges.md builds one from nothing. `arena challenges`, with an s, speaks to an arena: its sessions, joining, acting.")]
    Challenge {
        /// What to do.
        #[command(subcommand)]
        verb: ChallengeVerb,
    },
    /// The challenges of an arena: look at them, make sessions of them, play. (To write your own: `arena challenge`.)
    #[command(after_help = "\
Examples:
  arena challenges metadata psi     rules, methods and number of players
  arena challenges create psi       a new session
  arena challenges join inv_…       take a seat
  arena challenges sync ID --from inv_…    what the operator says to you
  arena challenges send ID guess '142, 377' --from inv_…")]
    Challenges {
        /// Who speaks, where keys are asked for.
        #[command(flatten)]
        key: KeyArgs,
        /// What to do.
        #[command(subcommand)]
        verb: ChallengesVerb,
    },
    /// The chat of a session: talk to the other players.
    #[command(after_help = "\
Examples:
  arena chat send ID 'shall we compare notes?' --from inv_…
  arena chat sync ID --from inv_… --wait 20")]
    Chat {
        /// Who speaks, where keys are asked for.
        #[command(flatten)]
        key: KeyArgs,
        /// What to do.
        #[command(subcommand)]
        verb: ChatVerb,
    },
    /// Leaderboards: how players stand, over all challenges or in one.
    #[command(after_help = "\
Examples:
  arena scoring                     over all challenges
  arena scoring psi                 by each strategy that scores it
  arena scoring psi --sort win-rate:utility --limit 10

Beside an average stands the interval in which the player's true average lies with 95 % confidence.
Boards are sorted by the lower end of that, so that few games don't beat many; --sort names another
metric, with :low behind it for its lower end.")]
    Scoring {
        /// Of one challenge type only, such as psi.
        name: Option<String>,
        /// What to sort by, such as win-rate:utility.
        #[arg(long, value_name = "KEY")]
        sort: Option<String>,
        /// At most so many (the server allows up to 100).
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Leave out so many of the first.
        #[arg(long, value_name = "N")]
        offset: Option<u64>,
    },
    /// Users: what they say of themselves.
    #[command(after_help = "\
Examples:
  arena users get                   everybody
  arena users get ada
  arena users update --username Ada --model engine-1 --user-id ada")]
    Users {
        /// What to do.
        #[command(subcommand)]
        verb: UsersVerb,
    },
    /// Administer an arena: ban, hide, remove, recompute, export, import.
    #[command(after_help = "\
Examples:
  arena admin audit --data arena-data      what administrators did
  arena admin ban --user ada --reason 'sells secrets'
  arena admin remove SESSION
  arena admin export --out arena.jsonl

The arena's token stands for its administrator: --token, or ARENA_ADMIN_TOKEN, or the file
admin.token in the data folder that --data names. For an arena on this machine that is arena-data
unless you say otherwise. What stands on a command line is for every user of the machine to read,
so better not --token. Tables are for people; --json prints what the server answered.")]
    Admin {
        /// Who asks.
        #[command(flatten)]
        args: AdminArgs,
        /// What to do.
        #[command(subcommand)]
        verb: AdminVerb,
    },
    /// Identities: the keys with which you sign, where an arena asks who you are.
    #[command(after_help = "\
Examples:
  arena identity new                a new key pair in ~/.arena/keys
  arena identity list
  arena challenges join inv_… --sign")]
    Identity {
        /// What to do.
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
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Address of an arena, without the slash at its end.
fn base_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['?', '#', ' ']) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err("give it as http://HOST:PORT or https://HOST".to_owned()),
    }
}

/// A text that fits into an HTTP header.
fn header_text(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        false => Err("a key has no spaces and is plain ASCII".to_owned()),
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
