//! Options of `arena tournament run` and `arena tournament resume`.

use std::path::PathBuf;
use std::time::Duration;

use arena_ratings::EloModel;
use arena_tournament::Format;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::workers::WorkerPoolArgs;
use crate::matches::options::{PlayArgs, agent_help, game_help, games};

/// Options of `arena tournament run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena tournament run snake --agent ./a --agent ./b --agent ./c
  arena tournament run chess --agent new=./a --agent old=./b --rounds 50 --concurrency 2 --out chess-50
  arena tournament run snake --agent ./a --agent ./b --agent ./c --agent ./d --seats 4
  arena tournament run snake --agent ./a --agent ./b -- python3 bot.py --level 3
  arena tournament run snake --agent ./a --agent house --agent random
  arena tournament run chess --agent ./a --agent ./b --agent ./c --format swiss --rounds 5
  arena tournament run chess --agent new=./a --agent old=./b --sprt elo0=0 elo1=5
  arena tournament run chess --agent new=uci:./new --agent old=uci:./old --tc 10+0.1 --openings file=book.epd,order=random \
    --sprt elo0=0,elo1=5
  arena tournament run snake --agent ./a --agent ./b --agent ./c --format adaptive --games 300
  arena tournament run snake --agent ./a --agent ./b --agent ./c --format adaptive --until-margin 30
  arena tournament run snake --agent ./a --agent ./b --rounds 500 --nats-url nats://hub    on workers
  arena tournament run snake --agent ./a --agent ./b --format league --out ladder    until Ctrl-C
  arena tournament run snake --agent ./a --agent ./b --format league --until-margin 50 --for 2h

A pairing is one game for each seat: all with the same seed, and each agent on each seat once, so that neither luck nor a \
better seat decides. With --no-pairs it is one game, and agents swap seats from pairing to pairing.

--sprt stops when it is decided whether the first of two agents is better: by elo0 Elo or less (H0), or by elo1 or more (H1). The \
test counts pairs in the order of their numbers. Games in progress at the decision are kept but not counted.

--format adaptive chooses the next pairings after each wave: the agents with the most uncertain ratings, and the opponents that \
reduce this uncertainty most.

--format league has no end: it plays until Ctrl-C, or to the first of the limits --games, --for and --until-margin, and \
`resume` plays on. Agents join and leave between runs (`add`, `remove`). The agent with the most uncertain rating plays next, \
against the opponents that reduce this uncertainty most. A pairing that has begun is always played to its end.

Each result is durable as soon as its game ends. Ctrl-C finishes the games in progress and prints how to resume; a second \
Ctrl-C stops at once. `arena tournament resume` continues after either, and after a crash, to the same standings.

--nats-url distributes the games to workers (`arena worker`) on any number of machines. Each agent is sent there with its folder. \
Every replay that returns is verified here by the rules. A worker that returns a false replay, or a result that two other \
workers contradict, is excluded, and its games are played again.")]
pub struct TournamentArgs {
    /// The game.
    #[arg(help = game_help(""))]
    pub game: String,
    /// Agent, optionally with a name.
    #[arg(long = "agent", value_name = "[NAME=]PATH", help = agent_help("Agent", ", optionally with a name"))]
    pub agents: Vec<String>,
    /// Further agents as command lines, with `--` before each of them.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub commands: Vec<String>,
    /// Pairing format
    #[arg(long, value_parser = format_parser(), default_value_t = Format::RoundRobin)]
    pub format: Format,
    /// Number of rounds: of all pairings (round robin, gauntlet), of a pairing before tie-breaks (knockout), or of the
    /// tournament (Swiss) [default: 1; Swiss: enough for one winner; with --sprt: at most 10000]
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,
    /// Maximum number of games (adaptive format and league only) [default: 10 pairings per agent; with --until-margin:
    /// 1000; league: no limit]
    #[arg(long, value_name = "N", value_parser = games::<u32>)]
    pub games: Option<u32>,
    /// Stop when every rating's 95 % interval is within ±ELO (adaptive format and league only)
    #[arg(long, value_name = "ELO")]
    pub until_margin: Option<f64>,
    /// Stop after this time: 90s, 10m, 1h30m (league only)
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Stop when a sequential probability ratio test of two agents is decided: elo0=0 elo1=5 [alpha=0.05] [beta=0.05]
    /// [model=normalized|logistic]
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..=5, value_delimiter = ',', value_parser = sprt_part)]
    pub sprt: Vec<SprtPart>,
    /// Chess: initial positions from a book: file=FILE [format=epd|pgn] [order=sequential|random] [start=N] [plies=8]
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..=5, value_delimiter = ',')]
    pub openings: Vec<String>,
    /// Chess: draw games with even scores of both engines: score=10 [movenumber=40] [movecount=8]
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..=3, value_delimiter = ',')]
    pub draw: Vec<String>,
    /// Chess: resign for engines with lost positions: score=400 [movecount=3] [twosided=true]
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..=3, value_delimiter = ',')]
    pub resign: Vec<String>,
    /// Number of agents in a game [default: 2]
    #[arg(long, value_name = "N")]
    pub seats: Option<u32>,
    /// Play one game for each pairing, instead of one for each seat.
    #[arg(long)]
    pub no_pairs: bool,
    /// Folder of the tournament [default: a new one here, named after the game and the time]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Keep replays and the agents' stderr in DIR/replays.
    #[arg(long)]
    pub replays: bool,
    /// File with the Ed25519 private key that signs the replays.
    #[arg(long, value_name = "FILE", requires = "replays")]
    pub sign_key: Option<PathBuf>,
    /// Print the standings after every N games; 0: only at the end [default: 50, more in long tournaments]
    #[arg(long, value_name = "N")]
    pub table_every: Option<usize>,
    /// The workers.
    #[command(flatten)]
    pub pool: WorkerPoolArgs,
    /// Options of every match.
    #[command(flatten)]
    pub play: PlayArgs,
}

/// Options of `arena tournament resume`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena tournament resume snakes
  arena tournament resume snakes --concurrency 4
  arena tournament resume snakes --accept-changed    even if an agent has changed
  arena tournament resume snakes --nats-url nats://hub    on workers; without it, on this machine
  arena tournament resume ladder --for 10m --concurrency 2    a league, until Ctrl-C or a limit")]
pub struct ResumeArgs {
    /// Folder of the tournament.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Stop after this number of games (league only)
    #[arg(long, value_name = "N", value_parser = games::<u32>)]
    pub games: Option<u32>,
    /// Stop when every rating's 95 % interval is within ±ELO (league only)
    #[arg(long, value_name = "ELO")]
    pub until_margin: Option<f64>,
    /// Stop after this time: 90s, 10m, 1h30m (league only)
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Number of games in parallel [default: as before]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: Option<u32>,
    /// Resume even if agents have changed; the journal records it.
    #[arg(long)]
    pub accept_changed: bool,
    /// Print the standings after every N games; 0: only at the end [default: 50, more in long tournaments]
    #[arg(long, value_name = "N")]
    pub table_every: Option<usize>,
    /// File with the Ed25519 private key that signs the replays of the remaining games.
    #[arg(long, value_name = "FILE")]
    pub sign_key: Option<PathBuf>,
    /// The workers for the remaining games.
    #[command(flatten)]
    pub pool: WorkerPoolArgs,
}

/// Parses the name of a format; the help lists all of them.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    let value = |format: &Format| PossibleValue::new(format.name()).help(format.info().help);
    PossibleValuesParser::new(Format::ALL.iter().map(value)).try_map(|name| Format::find(&name).ok_or("unknown format"))
}

/// A parameter of a sequential test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SprtPart {
    /// The lower hypothesis, in Elo.
    Elo0(f64),
    /// The higher hypothesis, in Elo.
    Elo1(f64),
    /// The probability of accepting H1 if H0 is true.
    Alpha(f64),
    /// The probability of accepting H0 if H1 is true.
    Beta(f64),
    /// The unit of both hypotheses.
    Model(EloModel),
}

fn sprt_part(text: &str) -> Result<SprtPart, String> {
    let (key, value) =
        text.split_once('=').ok_or("expected KEY=VALUE, as in elo0=0 elo1=5 alpha=0.05 beta=0.05 model=normalized")?;
    let number = || value.parse::<f64>().map_err(|_| format!("{key} must be a number, not `{value}`"));
    match key {
        "elo0" => Ok(SprtPart::Elo0(number()?)),
        "elo1" => Ok(SprtPart::Elo1(number()?)),
        "alpha" => Ok(SprtPart::Alpha(number()?)),
        "beta" => Ok(SprtPart::Beta(number()?)),
        "model" => [EloModel::Normalized, EloModel::Logistic]
            .into_iter()
            .find(|model| model.name() == value)
            .map(SprtPart::Model)
            .ok_or_else(|| format!("model must be normalized or logistic, not `{value}`")),
        _ => Err(format!("unknown parameter `{key}`; expected elo0, elo1, alpha, beta or model")),
    }
}

/// Parses a time as numbers with units: `90s`, `10m`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time with units, such as 90s, 10m, 1h30m or 2d".to_owned();
    let mut seconds: u64 = 0;
    let mut rest = text;
    while let Some(end) = rest.find(|char: char| !char.is_ascii_digit()) {
        let unit = match rest.as_bytes()[end] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            _ => return Err(wrong()),
        };
        let count: u64 = rest[..end].parse().map_err(|_| wrong())?;
        seconds = count.checked_mul(unit).and_then(|more| seconds.checked_add(more)).ok_or_else(wrong)?;
        rest = &rest[end + 1..];
    }
    // The maximum is a hundred years, so that adding the time to the clock can't overflow.
    match rest.is_empty() && (1..=3_155_760_000).contains(&seconds) {
        true => Ok(Duration::from_secs(seconds)),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let seconds = |text: &str| duration(text).ok().map(|time| time.as_secs());
        let known = [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800), ("1m1m", 120)];
        for (text, expected) in known {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "10", "m", "0s", "1.5h", "-1s", "1h30", "5 m", "5é", "99999999999999999999s", "999999999999d"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
