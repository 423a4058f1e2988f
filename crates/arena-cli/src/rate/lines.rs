//! Results in JSON lines: output of matches and tournaments with `--json`, journals, and ends of replays.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use arena_match::{HeaderLine, ResultLine, agent_ids};
use arena_model::{Moves, Seat, Seed, Setup, VOID};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::games::{Games, PlayedGame};

/// The maximum length of a line, in bytes. A file with a longer line contains no JSON lines.
const LONGEST: u64 = 64 << 20;

#[derive(Debug)]
pub enum LineKind {
    /// The plan of a tournament, which is the first line of its journal.
    Journal,
    /// The header of a replay.
    Replay,
    /// The result of a match, which has been added to the games.
    Game(About),
    /// The result of a match under another version of the rules than the requested one.
    OtherRules,
    /// The result of a fork, which isn't a game of its own.
    Fork,
    /// The standings that a tournament prints after its games.
    Standings,
    Other,
}

/// Further data of a result.
#[derive(Debug, Default)]
pub struct About {
    pub game: Option<String>,
    pub rules_version: Option<u32>,
    /// True if an agent was disqualified.
    pub is_tainted: bool,
}

#[derive(Debug)]
pub enum LineError {
    /// The line isn't valid JSON; for example, an incomplete line.
    NoJson,
    Result(String),
}

/// A text, borrowed if it has no escapes.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The fields that identify the kind of a line.
#[derive(Deserialize)]
struct Head {
    arena_tournament: Option<IgnoredAny>,
    arena_replay: Option<IgnoredAny>,
    standings: Option<IgnoredAny>,
    cross_table: Option<IgnoredAny>,
}

/// The fields of a game's result that are used here. A journal omits the game's name; the output of a tournament
/// includes it.
#[derive(Deserialize)]
struct GameText<'a> {
    #[serde(borrow, default)]
    game: Option<Text<'a>>,
    rules_version: Option<u32>,
    #[serde(borrow)]
    agents: Vec<Text<'a>>,
    ranks: Vec<u32>,
    #[serde(borrow)]
    seed: Text<'a>,
    #[serde(borrow)]
    outcome: OutcomeText<'a>,
    #[serde(default)]
    moves: Option<Moves>,
}

/// The fields of a match result that are used here.
#[derive(Deserialize)]
struct MatchText<'a> {
    #[serde(borrow)]
    game: Text<'a>,
    /// Results written before rules had versions lack this field and count as the first version.
    rules_version: Option<u32>,
    #[serde(borrow)]
    scores: Vec<ScoreText<'a>>,
    #[serde(borrow)]
    seed: Text<'a>,
    #[serde(borrow)]
    outcome: OutcomeText<'a>,
    #[serde(default)]
    moves: Option<Moves>,
    fork: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ScoreText<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    seat: usize,
    rank: u32,
}

#[derive(Deserialize)]
struct OutcomeText<'a> {
    #[serde(borrow)]
    result: Option<Text<'a>>,
    #[serde(borrow)]
    winner: Option<Text<'a>>,
    tainted_reason: Option<IgnoredAny>,
}

/// Determines the order of two agents: in games with sides, White comes first.
#[derive(Debug, Default)]
pub struct Sides {
    /// For each game by name: true if it has sides. Avoids setting up a game without sides again for each draw.
    known: BTreeMap<String, bool>,
}

impl OutcomeText<'_> {
    fn result(&self) -> Option<&str> {
        self.result.as_ref().map(|result| &*result.0)
    }

    fn is_void(&self) -> bool {
        self.winner.as_ref().is_some_and(|winner| winner.0 == VOID)
    }
}

/// Parses a line. Adds its game if the line is a result under version `only` of the rules, or under an unknown version.
pub fn take(line: &[u8], only: Option<u32>, games: &mut Games, sides: &mut Sides) -> Result<LineKind, LineError> {
    let is_other = |version: Option<u32>| only.zip(version).is_some_and(|(only, version)| only != version);
    // Most lines come from journals, so the format of journals is tried first.
    if let Ok(text) = serde_json::from_slice::<GameText<'_>>(line) {
        if is_other(text.rules_version) {
            return Ok(LineKind::OtherRules);
        }
        let game = SeatedGame {
            game: text.game.as_ref().map(|game| &*game.0),
            options: &Map::new(),
            names: text.agents.iter().map(|name| &*name.0).collect(),
            ranks: text.ranks,
            result: text.outcome.result(),
            seed: &text.seed.0,
            moves: text.moves.as_ref(),
            is_void: text.outcome.is_void(),
        };
        game.add_to(games, sides).map_err(LineError::Result)?;
        return Ok(LineKind::Game(About {
            game: text.game.map(|game| game.0.into_owned()),
            rules_version: text.rules_version,
            is_tainted: text.outcome.tainted_reason.is_some(),
        }));
    }
    if let Ok(mut text) = serde_json::from_slice::<MatchText<'_>>(line) {
        if text.fork.is_some() {
            return Ok(LineKind::Fork);
        }
        let rules_version = Some(text.rules_version.unwrap_or(1));
        if is_other(rules_version) {
            return Ok(LineKind::OtherRules);
        }
        text.scores.sort_by_key(|score| score.seat);
        let game = SeatedGame {
            game: Some(&text.game.0),
            options: &Map::new(),
            names: text.scores.iter().map(|score| &*score.name.0).collect(),
            ranks: text.scores.iter().map(|score| score.rank).collect(),
            result: text.outcome.result(),
            seed: &text.seed.0,
            moves: text.moves.as_ref(),
            is_void: text.outcome.is_void(),
        };
        game.add_to(games, sides).map_err(LineError::Result)?;
        let is_tainted = text.outcome.tainted_reason.is_some();
        return Ok(LineKind::Game(About { game: Some(text.game.0.into_owned()), rules_version, is_tainted }));
    }
    match serde_json::from_slice::<Head>(line) {
        Ok(Head { arena_tournament: Some(_), .. }) => Ok(LineKind::Journal),
        Ok(Head { arena_replay: Some(_), .. }) => Ok(LineKind::Replay),
        Ok(Head { standings: Some(_), cross_table: Some(_), .. }) => Ok(LineKind::Standings),
        _ if serde_json::from_slice::<IgnoredAny>(line).is_ok() => Ok(LineKind::Other),
        _ => Err(LineError::NoJson),
    }
}

/// Adds the game of a replay from the replay's first line and its result, like [`take`].
pub fn take_replay(
    header: &[u8],
    result: &[u8],
    only: Option<u32>,
    games: &mut Games,
    sides: &mut Sides,
) -> Result<LineKind, LineError> {
    let wrong = |error: serde_json::Error| LineError::Result(error.to_string());
    let header: HeaderLine = serde_json::from_slice(header).map_err(wrong)?;
    if header.fork.is_some() {
        return Ok(LineKind::Fork);
    }
    if only.is_some_and(|only| only != header.rules_version) {
        return Ok(LineKind::OtherRules);
    }
    let ResultLine { result, .. } = serde_json::from_slice(result).map_err(|_| LineError::NoJson)?;
    let game = SeatedGame {
        game: Some(&header.game),
        options: &header.options,
        names: header.agents.iter().map(|agent| agent.name.as_str()).collect(),
        ranks: result.ranks.iter().map(|rank| u32::try_from(*rank).unwrap_or(u32::MAX)).collect(),
        result: result.outcome.result.as_deref(),
        seed: &header.seed,
        moves: None,
        is_void: result.outcome.is_void(),
    };
    game.add_to(games, sides).map_err(LineError::Result)?;
    let is_tainted = result.outcome.tainted_reason.is_some();
    Ok(LineKind::Game(About { game: Some(header.game), rules_version: Some(header.rules_version), is_tainted }))
}

/// A game with its agents in the order of seats.
pub struct SeatedGame<'a> {
    /// The name of the game; `None` if it isn't known.
    pub game: Option<&'a str>,
    pub options: &'a Map<String, Value>,
    pub names: Vec<&'a str>,
    pub ranks: Vec<u32>,
    /// The result from the view of the agent listed first, in games of two.
    pub result: Option<&'a str>,
    pub seed: &'a str,
    pub moves: Option<&'a Moves>,
    pub is_void: bool,
}

impl SeatedGame<'_> {
    /// Adds the game, with the agents in the order of sides.
    pub fn add_to(self, games: &mut Games, sides: &mut Sides) -> Result<(), String> {
        let first = sides.first(&self);
        let SeatedGame { mut names, mut ranks, seed, moves, is_void, .. } = self;
        if is_void {
            games.void += 1;
            return Ok(());
        }
        let alike = moves.map(|moves| {
            let mut by_side = names.clone();
            by_side.rotate_left(moves.first % names.len().max(1));
            games.alike(&by_side, &moves.sha256)
        });
        if let ([_, _], [_, _], 1) = (&names[..], &ranks[..], first) {
            names.swap(0, 1);
            ranks.swap(0, 1);
        }
        games.add(&PlayedGame { names: &names, ranks: &ranks, seed: Some(seed), alike })
    }
}

impl Sides {
    /// Returns the seat of the agent listed first. A win determines it, since `1-0` means that this agent won; for a
    /// draw, the seed determines it.
    fn first(&mut self, played: &SeatedGame<'_>) -> usize {
        if played.ranks.len() != 2 || played.game.is_some_and(|game| self.known.get(game) == Some(&false)) {
            return 0;
        }
        if let Some(first) = first_by_result(&played.ranks, played.result) {
            return first;
        }
        // The agents' sides in a draw can't be determined without the game.
        let Some(game) = played.game else { return 0 };
        let white = white(game, played.options, played.seed);
        self.known.insert(game.to_owned(), white.is_some());
        white.unwrap_or(0)
    }
}

fn first_by_result(ranks: &[u32], result: Option<&str>) -> Option<usize> {
    let winner = ranks.iter().position(|rank| *rank == 1)?;
    match (ranks.len(), result?) {
        (2, "1-0") => Some(winner),
        (2, "0-1") => Some(1 - winner),
        _ => None,
    }
}

/// Returns White's seat by setting up the game with its seed.
fn white(game: &str, options: &Map<String, Value>, seed: &str) -> Option<usize> {
    let seed = Seed::from_revealed(seed)?;
    let setup = Setup { agents: agent_ids(&seed, 2), seed };
    let game = arena_games::game(game)?.start(options, setup).ok()?;
    (0..2).find(|seat| game.side(Seat(*seat)) == Some("WHITE"))
}

/// Reads the next line into `line`, without its line end. Returns true if there was a line end, and `None` after the
/// last line.
pub fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    let length = from.by_ref().take(LONGEST).read_until(b'\n', line)?;
    let is_whole = line.ends_with(b"\n");
    line.truncate(line.trim_ascii_end().len());
    Ok((length > 0).then_some(is_whole))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the name of the agent listed first after a drawn match with this seed. The agents are `first` and
    /// `second`, in order of seats.
    fn first_of_draw(game: &str, seed: u64) -> String {
        let score = |name: &str, seat: usize| json!({"name": name, "seat": seat, "rank": 1});
        let line = json!({
            "game": game,
            "scores": [score("second", 1), score("first", 0)],
            "seed": Seed::from_number(seed).reveal(),
            "outcome": {"termination": "STALEMATE", "winner": "DRAW", "result": "1/2-1/2"},
        });
        let mut games = Games::default();
        let kind = take(line.to_string().as_bytes(), None, &mut games, &mut Sides::default()).unwrap();
        assert!(matches!(kind, LineKind::Game(About { game: Some(known), is_tainted: false, .. }) if known == game));
        games.names()[0].clone()
    }

    #[test]
    fn white_comes_first_also_of_a_draw() {
        let white: Vec<String> = (0..8).map(|seed| first_of_draw("chess", seed)).collect();
        assert!(["first", "second"].iter().all(|name| white.iter().any(|first| first == name)), "{white:?}");
        assert!((0..8).all(|seed| first_of_draw("snake", seed) == "first"));
    }

    #[test]
    fn a_result_names_the_first_by_its_view() {
        let first = |ranks: &[u32], result| {
            let (names, ranks) = (Vec::new(), ranks.to_vec());
            let (options, seed, result) = (&Map::new(), "", Some(result));
            let game = Some("chess");
            Sides::default().first(&SeatedGame {
                game,
                options,
                names,
                ranks,
                result,
                seed,
                moves: None,
                is_void: false,
            })
        };
        assert_eq!([first(&[1, 2], "1-0"), first(&[1, 2], "0-1"), first(&[2, 1], "1-0")], [0, 1, 1]);
        assert_eq!(first(&[2, 1, 3], "1-0"), 0);
    }

    #[test]
    fn each_kind_of_line_is_recognized() {
        let kind =
            |line: &str| format!("{:?}", take(line.as_bytes(), None, &mut Games::default(), &mut Sides::default()));
        assert_eq!(kind(r#"{"arena_tournament":1,"agents":[{"name":"a"}]}"#), "Ok(Journal)");
        assert_eq!(kind(r#"{"arena_replay":1,"agents":[]}"#), "Ok(Replay)");
        assert_eq!(kind(r#"{"game":"snake","standings":[],"cross_table":[]}"#), "Ok(Standings)");
        assert_eq!(kind(r#"{"epoch":1}"#), "Ok(Other)");
        let fork = r#"{"game":"snake","scores":[],"seed":"","outcome":{},"fork":{"of":"","at":1}}"#;
        assert_eq!(kind(fork), "Ok(Fork)");
        assert_eq!(kind(r#"{"epo"#), "Err(NoJson)");
    }
}
