//! The arguments of `arena tournament`.

use std::path::PathBuf;

use arena_nats::NatsUrl;
use arena_ratings::EloModel;
use arena_tournament::Format;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};

use super::matches::game_help;
use super::url::UrlParser;
use super::{PlayArgs, RATE_EXAMPLES, RateArgs};

/// What can be done with tournaments.
#[derive(Debug, Subcommand)]
pub enum TournamentVerb {
    /// Begin a tournament and play it.
    #[command(after_help = "\
Examples:
  arena tournament run snake --agent ./a --agent ./b --agent ./c
  arena tournament run chess --agent new=./a --agent old=./b --rounds 50 --concurrency 2 --out chess-50
  arena tournament run snake --agent ./a --agent ./b --agent ./c --agent ./d --seats 4
  arena tournament run snake --agent ./a --agent ./b -- python3 bot.py --level 3
  arena tournament run chess --agent ./a --agent ./b --agent ./c --format swiss --rounds 5
  arena tournament run chess --agent new=./a --agent old=./b --sprt elo0=0 elo1=5
  arena tournament run snake --agent ./a --agent ./b --agent ./c --format adaptive --games 300
  arena tournament run snake --agent ./a --agent ./b --agent ./c --format adaptive --until-margin 30
  arena tournament run snake --agent ./a --agent ./b --rounds 500 --nats-url nats://hub    played by workers

A meeting of agents is as many games as seats: with the same seed, and each agent on each seat once, so that neither luck nor
a better seat decides. --no-pairs makes it one game, and seats change from meeting to meeting.

--sprt plays two agents until it is clear whether the first is better: by elo0 Elo or less (H0), or by elo1 or more (H1). It is judged
pair by pair, in the order of their numbers; games that still ran when it was decided are kept, and don't count.

--format adaptive looks after each wave of games whose rating is least sure, and against whom a game would tell most about it.

Every result is on the disk as soon as it is there. Ctrl-C once finishes the games that run and says how to go on, twice stops at
once; `arena tournament resume` goes on after either, and after the machine went down, to the same standings.

--nats-url lets workers play, on as many machines as there are: start them with `arena worker`. Agents travel there, each with the folder
that it is in. Every replay that comes back is played again here by the rules; a worker that sends another one, or plays a game otherwise
than two other workers, is believed no more, and its games are played again.")]
    Run(Box<TournamentArgs>),
    /// Go on with a tournament that was broken off.
    #[command(after_help = "\
Examples:
  arena tournament resume snakes
  arena tournament resume snakes --concurrency 4
  arena tournament resume snakes --accept-changed    although an agent isn't what it was
  arena tournament resume snakes --nats-url nats://hub    by workers; without it, here")]
    Resume(ResumeArgs),
    /// Print the standings of a tournament, also while it is played.
    #[command(after_help = "\
Examples:
  arena tournament standings snakes
  arena tournament standings snakes --markdown > STANDINGS.md
  arena tournament standings snakes --html > snakes.html          one file with pictures, to be published
  arena tournament standings snakes --svg ratings > ratings.svg
  arena tournament standings chess-50 --pgn > chess-50.pgn")]
    Standings(StandingsArgs),
    /// Rate the results in files and folders, by all systems side by side: the same as `arena rate`.
    #[command(after_help = RATE_EXAMPLES)]
    Rate(RateArgs),
}

/// Options of `arena tournament run`.
#[derive(Debug, Args)]
pub struct TournamentArgs {
    /// The game.
    #[arg(help = game_help(""))]
    pub game: String,
    /// An agent: a file, a folder or an address; a name before it is what it is called.
    #[arg(long = "agent", value_name = "[NAME=]PATH")]
    pub agents: Vec<String>,
    /// Further agents as command lines, each behind a `--`.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub commands: Vec<String>,
    /// Pairing format
    #[arg(long, value_parser = format_parser(), default_value_t = Format::RoundRobin)]
    pub format: Format,
    /// How often all meet (round robin, gauntlet), or two before tie-breaks (knockout), or the rounds (Swiss) [default: 1; Swiss: enough
    /// for one winner; with --sprt: 10000, of which it plays as many as it needs]
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,
    /// Adaptive: how many games there are at most [default: 10 times as many meetings as agents; with --until-margin: 1000 times]
    #[arg(long, value_name = "N")]
    pub games: Option<u32>,
    /// Adaptive: end when all ratings are known to so many Elo in either direction, with 95 % confidence.
    #[arg(long, value_name = "ELO")]
    pub until_margin: Option<f64>,
    /// Two agents: end when a sequential probability ratio test is decided, as in `elo0=0 elo1=5 alpha=0.05 beta=0.05 model=normalized`;
    /// the last three are the defaults, and the other model is logistic.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..=5, value_delimiter = ',', value_parser = sprt_part)]
    pub sprt: Vec<SprtPart>,
    /// How many agents a game has [default: 2]
    #[arg(long, value_name = "N")]
    pub seats: Option<u32>,
    /// One game a meeting, rather than one for each seat.
    #[arg(long)]
    pub no_pairs: bool,
    /// The folder of the tournament [default: a new one here, named after the game and the time]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Keep the replay of each game, and what agents wrote to stderr, in DIR/replays.
    #[arg(long)]
    pub replays: bool,
    /// Print the standings after so many games, 0: at the end only [default: 50, or more in long tournaments]
    #[arg(long, value_name = "N")]
    pub table_every: Option<usize>,
    /// Who plays them.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// How matches are played.
    #[command(flatten)]
    pub play: PlayArgs,
}

/// Which workers play a tournament, and how they are checked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workers")]
pub struct FleetArgs {
    /// Let workers play (`arena worker`) that take games from this NATS server, rather than this machine: nats://host or tls://user:password@host.
    #[arg(long, value_name = "URL", env = "ARENA_NATS_URL", hide_env_values = true, value_parser = UrlParser)]
    pub nats_url: Option<NatsUrl>,
    /// The share of games that two workers play, to find those that play something else [default: 0.05]
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "nats_url")]
    pub cross_check: Option<f64>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is from 0 (no game) to 1 (all games)".to_owned())
}

/// Takes the name of a format; help lists all of them.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    let value = |format: &Format| PossibleValue::new(format.name()).help(format.info().help);
    PossibleValuesParser::new(Format::ALL.iter().map(value))
        .try_map(|name| Format::find(&name).ok_or("there is no such format"))
}

/// One of the numbers of a sequential test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SprtPart {
    /// The lesser of the two hypotheses, in Elo.
    Elo0(f64),
    /// The greater one.
    Elo1(f64),
    /// How often H1 may be accepted where H0 is true, from 0 to 1.
    Alpha(f64),
    /// How often H0 may be accepted where H1 is true.
    Beta(f64),
    /// In what both are given.
    Model(EloModel),
}

fn sprt_part(text: &str) -> Result<SprtPart, String> {
    let (key, value) =
        text.split_once('=').ok_or("a test is as in elo0=0 elo1=5 alpha=0.05 beta=0.05 model=normalized")?;
    let number = || value.parse::<f64>().map_err(|_| format!("{key} is a number, not `{value}`"));
    match key {
        "elo0" => Ok(SprtPart::Elo0(number()?)),
        "elo1" => Ok(SprtPart::Elo1(number()?)),
        "alpha" => Ok(SprtPart::Alpha(number()?)),
        "beta" => Ok(SprtPart::Beta(number()?)),
        "model" => [EloModel::Normalized, EloModel::Logistic]
            .into_iter()
            .find(|model| model.name() == value)
            .map(SprtPart::Model)
            .ok_or_else(|| format!("model is normalized or logistic, not `{value}`")),
        _ => Err(format!("a test has elo0, elo1, alpha, beta and model, not `{key}`")),
    }
}

/// Options of `arena tournament resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The folder of the tournament.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Play so many games beside each other [default: as before]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: Option<u32>,
    /// Go on although agents aren't what they were; the tournament remembers it.
    #[arg(long)]
    pub accept_changed: bool,
    /// Print the standings after so many games, 0: at the end only [default: 50, or more in long tournaments]
    #[arg(long, value_name = "N")]
    pub table_every: Option<usize>,
    /// Who plays from here on.
    #[command(flatten)]
    pub fleet: FleetArgs,
}

/// Options of `arena tournament standings`.
#[derive(Debug, Args)]
pub struct StandingsArgs {
    /// The folder of the tournament.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// As comma-separated values, for spreadsheets.
    #[arg(long, group = "form", conflicts_with = "json")]
    pub csv: bool,
    /// As a table in Markdown.
    #[arg(long, group = "form", conflicts_with = "json")]
    pub markdown: bool,
    /// As a report with pictures: one page that needs nothing else.
    #[arg(long, group = "form", conflicts_with = "json")]
    pub html: bool,
    /// A picture alone, for a README or a page: light or dark as its reader's screen.
    #[arg(long, group = "form", conflicts_with = "json", value_enum, value_name = "PICTURE")]
    pub svg: Option<PictureArg>,
    /// The games in Portable Game Notation: with moves if it is chess and replays were kept, else results alone, for rating tools.
    #[arg(long, group = "form", conflicts_with = "json")]
    pub pgn: bool,
}

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PictureArg {
    /// The Elo of each agent, with its interval.
    Ratings,
    /// Who won how much against whom.
    CrossTable,
    /// The points of each agent, as games were played.
    Points,
}
