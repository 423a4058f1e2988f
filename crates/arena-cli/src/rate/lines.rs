//! Results out of JSON lines: as matches and tournaments print them with `--json`, as journals have them, and as replays end.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use arena_match::{HeaderLine, ResultLine, agent_ids};
use arena_model::{Moves, Seat, Seed, Setup, VOID};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::games::{Games, Played};

/// No line of results is longer; one that is comes from a file that has no lines.
const LONGEST: u64 = 64 << 20;

/// What a line of JSON is.
#[derive(Debug)]
pub enum Kind {
    /// The plan of a tournament: the file is its journal.
    Journal,
    /// The header of a replay.
    Replay,
    /// The result of a match, which was added.
    Game(About),
    /// The result of a match by another version of its rules than the one that was asked for.
    OtherRules,
    /// The standings that a tournament prints behind its games.
    Standings,
    /// Something else.
    Other,
}

/// What else a result says.
#[derive(Debug, Default)]
pub struct About {
    /// The game, where it is named.
    pub game: Option<String>,
    /// The version of its rules, where it is told.
    pub rules_version: Option<u32>,
    /// Whether anybody was disqualified.
    pub is_tainted: bool,
}

/// Why a line counts for nothing.
#[derive(Debug)]
pub enum Wrong {
    /// It isn't JSON, as a line isn't that was cut off.
    NoJson,
    /// It is a result that can't be, in a sentence.
    Result(String),
}

/// A text that is borrowed where it has no escapes.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The parts of any line by which it is known.
#[derive(Deserialize)]
struct Head {
    arena_tournament: Option<IgnoredAny>,
    arena_replay: Option<IgnoredAny>,
    standings: Option<IgnoredAny>,
    cross_table: Option<IgnoredAny>,
}

/// The parts that matter of a result in a journal, or as a tournament prints it, with its game.
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

/// The parts that matter of the result of a match.
#[derive(Deserialize)]
struct MatchText<'a> {
    #[serde(borrow)]
    game: Text<'a>,
    /// Absent in results from before there were versions, which are by the first.
    rules_version: Option<u32>,
    #[serde(borrow)]
    scores: Vec<ScoreText<'a>>,
    #[serde(borrow)]
    seed: Text<'a>,
    #[serde(borrow)]
    outcome: OutcomeText<'a>,
    #[serde(default)]
    moves: Option<Moves>,
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

/// Which of two agents comes first: the one with the white pieces, in games that have such.
#[derive(Debug, Default)]
pub struct Sides {
    /// Whether a game has them, so that others needn't be set up for each draw.
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

/// Reads a line, and adds the game if it is the result of one by the version `only` of its rules, or by one that isn't told.
pub fn take(line: &[u8], only: Option<u32>, games: &mut Games, sides: &mut Sides) -> Result<Kind, Wrong> {
    let is_other = |version: Option<u32>| only.zip(version).is_some_and(|(only, version)| only != version);
    // Most lines are of journals, so these are tried first.
    if let Ok(text) = serde_json::from_slice::<GameText<'_>>(line) {
        if is_other(text.rules_version) {
            return Ok(Kind::OtherRules);
        }
        let mut names: Vec<&str> = text.agents.iter().map(|name| &*name.0).collect();
        let result = text.outcome.result();
        let first = match &text.game {
            Some(game) => sides.first(&game.0, &Map::new(), &text.seed.0, &text.ranks, result),
            // The side of each agent in a draw isn't known without the game.
            None => first_by_result(&text.ranks, result).unwrap_or(0),
        };
        match text.outcome.is_void() {
            true => games.void += 1,
            false => {
                add(&mut names, text.ranks, first, &text.seed.0, text.moves.as_ref(), games).map_err(Wrong::Result)?
            }
        }
        return Ok(Kind::Game(About {
            game: text.game.map(|game| game.0.into_owned()),
            rules_version: text.rules_version,
            is_tainted: text.outcome.tainted_reason.is_some(),
        }));
    }
    if let Ok(mut text) = serde_json::from_slice::<MatchText<'_>>(line) {
        let rules_version = Some(text.rules_version.unwrap_or(1));
        if is_other(rules_version) {
            return Ok(Kind::OtherRules);
        }
        text.scores.sort_by_key(|score| score.seat);
        let mut names: Vec<&str> = text.scores.iter().map(|score| &*score.name.0).collect();
        let ranks: Vec<u32> = text.scores.iter().map(|score| score.rank).collect();
        let first = sides.first(&text.game.0, &Map::new(), &text.seed.0, &ranks, text.outcome.result());
        match text.outcome.is_void() {
            true => games.void += 1,
            false => add(&mut names, ranks, first, &text.seed.0, text.moves.as_ref(), games).map_err(Wrong::Result)?,
        }
        let is_tainted = text.outcome.tainted_reason.is_some();
        return Ok(Kind::Game(About { game: Some(text.game.0.into_owned()), rules_version, is_tainted }));
    }
    match serde_json::from_slice::<Head>(line) {
        Ok(Head { arena_tournament: Some(_), .. }) => Ok(Kind::Journal),
        Ok(Head { arena_replay: Some(_), .. }) => Ok(Kind::Replay),
        Ok(Head { standings: Some(_), cross_table: Some(_), .. }) => Ok(Kind::Standings),
        _ if serde_json::from_slice::<IgnoredAny>(line).is_ok() => Ok(Kind::Other),
        _ => Err(Wrong::NoJson),
    }
}

/// Adds the game of a replay from its first line and its last, as [`take`]. `None` for one by another version of its rules.
pub fn take_replay(
    header: &[u8],
    result: &[u8],
    only: Option<u32>,
    games: &mut Games,
    sides: &mut Sides,
) -> Result<Option<About>, Wrong> {
    let wrong = |error: serde_json::Error| Wrong::Result(error.to_string());
    let header: HeaderLine = serde_json::from_slice(header).map_err(wrong)?;
    if only.is_some_and(|only| only != header.rules_version) {
        return Ok(None);
    }
    let ResultLine { result, .. } = serde_json::from_slice(result).map_err(|_| Wrong::NoJson)?;
    let mut names: Vec<&str> = header.agents.iter().map(|agent| agent.name.as_str()).collect();
    let ranks: Vec<u32> = result.ranks.iter().map(|rank| u32::try_from(*rank).unwrap_or(u32::MAX)).collect();
    let is_tainted = result.outcome.tainted_reason.is_some();
    let first = sides.first(&header.game, &header.options, &header.seed, &ranks, result.outcome.result.as_deref());
    match result.outcome.is_void() {
        true => games.void += 1,
        false => add(&mut names, ranks, first, &header.seed, None, games).map_err(Wrong::Result)?,
    }
    Ok(Some(About { game: Some(header.game), rules_version: Some(header.rules_version), is_tainted }))
}

/// Adds a game whose lists are by seat. `first`: the one of two that comes first.
pub fn add(
    names: &mut [&str],
    mut ranks: Vec<u32>,
    first: usize,
    seed: &str,
    moves: Option<&Moves>,
    games: &mut Games,
) -> Result<(), String> {
    let alike = moves.map(|moves| {
        let mut by_side = names.to_vec();
        by_side.rotate_left(moves.first % names.len().max(1));
        games.alike(&by_side, &moves.sha256)
    });
    if let ([_, _], [_, _], 1) = (&*names, &ranks[..], first) {
        names.swap(0, 1);
        ranks.swap(0, 1);
    }
    games.add(&Played { names, ranks: &ranks, seed: Some(seed), alike })
}

impl Sides {
    /// The seat that comes first. It follows from the result, which is written from its view, and for draws from the seed.
    pub fn first(
        &mut self,
        game: &str,
        options: &Map<String, Value>,
        seed: &str,
        ranks: &[u32],
        result: Option<&str>,
    ) -> usize {
        if ranks.len() != 2 || self.known.get(game) == Some(&false) {
            return 0;
        }
        if let Some(first) = first_by_result(ranks, result) {
            return first;
        }
        let white = white(game, options, seed);
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

/// The seat with the white pieces, which follows from the seed.
fn white(game: &str, options: &Map<String, Value>, seed: &str) -> Option<usize> {
    let seed = Seed::from_revealed(seed)?;
    let setup = Setup { agents: agent_ids(&seed, 2), seed };
    let game = arena_games::game(game)?.start(options, setup).ok()?;
    (0..2).find(|seat| game.side(Seat(*seat)) == Some("WHITE"))
}

/// Reads the next line into `line`, without its end; tells whether it had one. `None` after the last.
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

    /// Who comes first of two agents `first` and `second`, by seat, in a match with this seed that was drawn.
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
        assert!(matches!(kind, Kind::Game(About { game: Some(known), is_tainted: false, .. }) if known == game));
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
        let mut sides = Sides::default();
        let mut first = |ranks: &[u32], result| sides.first("chess", &Map::new(), "", ranks, Some(result));
        assert_eq!([first(&[1, 2], "1-0"), first(&[1, 2], "0-1"), first(&[2, 1], "1-0")], [0, 1, 1]);
        assert_eq!(first(&[2, 1, 3], "1-0"), 0);
    }

    #[test]
    fn lines_are_told_apart() {
        let kind =
            |line: &str| format!("{:?}", take(line.as_bytes(), None, &mut Games::default(), &mut Sides::default()));
        assert_eq!(kind(r#"{"arena_tournament":1,"agents":[{"name":"a"}]}"#), "Ok(Journal)");
        assert_eq!(kind(r#"{"arena_replay":1,"agents":[]}"#), "Ok(Replay)");
        assert_eq!(kind(r#"{"game":"snake","standings":[],"cross_table":[]}"#), "Ok(Standings)");
        assert_eq!(kind(r#"{"epoch":1}"#), "Ok(Other)");
        assert_eq!(kind(r#"{"epo"#), "Err(NoJson)");
    }
}
