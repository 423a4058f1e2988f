//! Tests of the games, agents and pairings of a league.

use arena_model::{MatchOutcome, SeatResult, Seed};

use super::*;
use crate::format::Format;
use crate::journal::{ChangedLine, RemovedLine, SuspendedLine};
use crate::plan::AgentAddress;
use crate::shape::Shape;

fn entrant(name: &str, sha256: &str) -> Entrant {
    let reach = AgentAddress::Url(format!("http://127.0.0.1/{name}"));
    Entrant { sha256: Some(sha256.to_owned()), ..Entrant::new(name, name, reach) }
}

fn plan(agents: &[&str]) -> TournamentPlan {
    let seed = Seed::from_number(5);
    let shape = Shape { format: Format::League, agents: 0, rounds: 0, seats: 2, paired: true, stop: None, seed };
    let agents = agents.iter().map(|name| entrant(name, "1")).collect();
    TournamentPlan::new(arena_games::game("snake").unwrap(), agents, &shape)
}

fn added(name: &str, sha256: &str) -> JournalLine {
    JournalLine::Added(Box::new(entrant(name, sha256)))
}

fn removed(name: &str) -> JournalLine {
    JournalLine::Removed(RemovedLine { agent: name.to_owned() })
}

fn closed() -> JournalLine {
    JournalLine::SeasonClosed(SeasonClosedLine { rules_version: 9, texts: None })
}

/// Chooses the next game and returns its line, in which the first seat wins.
fn next(league: &mut League) -> JournalLine {
    let season = league.season_mut();
    let pairing = season.next_leg().unwrap_or_else(|| {
        let fit = season.fit(season.fitted()).unwrap();
        assert!(season.meet(&fit, |_| true));
        season.next_leg().unwrap()
    });
    let seats = [1, 2].map(|rank| SeatResult::<()> { rank, ..SeatResult::default() });
    let (termination, winner) = ("GAME_ENDED".into(), "DRAW".to_owned());
    let outcome = MatchOutcome { termination, winner, result: None, tainted_reason: None };
    let (seats, seed) = (seats.into(), pairing.seed.clone());
    let result = MatchResult { seats, outcome, seed, epochs: 1, moves: None, took_ms: 0.0 };
    JournalLine::Game(Box::new(league.line_of(&pairing, result, None)))
}

/// Applies lines as they come, and returns the journal.
fn journal(agents: &[&str], mut lines: Vec<Option<JournalLine>>) -> (League, Vec<u8>) {
    let mut league = League::new(plan(agents)).unwrap();
    let mut text = serde_json::to_vec(&league.plan).unwrap();
    for line in lines.drain(..) {
        let line = line.unwrap_or_else(|| next(&mut league));
        text.push(b'\n');
        text.extend(serde_json::to_vec(&line).unwrap());
        league.check_line(&line).unwrap();
        league.take(line).unwrap();
    }
    text.push(b'\n');
    (league, text)
}

/// Returns the agents of the season with their versions, membership and number of games.
fn table(league: &League) -> String {
    let tallies = arena_ratings::tallies(league.season().results());
    let line = |(agent, tally): (&LeagueAgent, &arena_ratings::Tally)| {
        format!("{} {} {:?} {}", agent.entrant.name, agent.generation, agent.membership, tally.games)
    };
    league.members().zip(&tallies).map(line).collect::<Vec<_>>().join(", ")
}

#[test]
fn all_follows_from_the_journal() {
    let lines = vec![
        None,
        None,
        Some(added("c", "1")),
        None,
        None,
        // Another version begins without games, and the first one continues when it returns.
        Some(added("a", "2")),
        None,
        Some(added("a", "1")),
        Some(removed("c")),
        Some(JournalLine::Suspended(SuspendedLine { agent: "b".to_owned(), reason: "it crashed".to_owned() })),
        Some(closed()),
        Some(added("b", "1")),
        None,
    ];
    let (league, text) = journal(&["a", "b"], lines);
    let read = League::read(&text, None).unwrap();
    assert_eq!(table(&read), table(&league));
    assert_eq!(table(&read), "a 1 Present 1, b 1 Present 1");
    assert_eq!((read.season().number(), read.plan.rules_version, read.is_closed), (2, 9, false));
    assert_eq!(read.games(), league.games());
    assert!(read.games()[0].number > 4, "numbers continue across seasons");
    let first = League::read(&text, Some(1)).unwrap();
    assert_eq!((first.season().number(), first.is_closed, first.games().len()), (1, true, 5));
    let members = table(&first);
    assert!(members.contains("b 1 Suspended(\"it crashed\")") && members.contains("c 1 Gone"), "{members}");
    assert!(members.contains("a 2 Gone") && members.starts_with("a 1 Present"), "{members}");
    assert_eq!(league.generations_of("a"), 2);
    // A line that was written partly is ignored, and so the journal can be cut anywhere.
    for end in 0..text.len() {
        match League::read(&text[..end], None) {
            Ok(part) => assert_eq!(part.cut_off, text[..end].rsplit(|byte| *byte == b'\n').next().unwrap().len()),
            Err(error) => assert_eq!(error.line, 1),
        }
    }
}

#[test]
fn contradicting_lines_are_refused() {
    let (mut league, _) = journal(&["a", "b"], vec![None]);
    let JournalLine::Game(game) = next(&mut league) else { unreachable!() };
    let line = |change: &dyn Fn(&mut GameLine)| {
        let mut game = game.clone();
        change(&mut game);
        JournalLine::Game(game)
    };
    let checked = CheckedLine { fixture: 9, worker: "one".into(), id: "one".into(), differs: false };
    let lines = [
        (line(&|game| game.number = 1), "game 1 has a result on an earlier line; remove one of the lines"),
        (line(&|game| game.round = 2), "game 2 is of season 2, but season 1 is under way"),
        (line(&|game| game.generations.clear()), "game 2 doesn't have the version of each agent"),
        (line(&|game| game.generations = vec![1, 2]), "there is no version 2 of an agent"),
        (removed("x"), "there is no agent x in the league"),
        (JournalLine::Checked(checked), "game 9 was checked before it was played"),
        (
            JournalLine::Changed(ChangedLine { agent: "a".into(), sha256: None }),
            "such lines aren't in the journal of a league",
        ),
    ];
    for (line, reason) in lines {
        assert!(league.check_line(&line).unwrap_err().starts_with(reason), "{reason}");
        assert!(league.take(line).unwrap_err().starts_with(reason), "{reason}");
    }
    league.take(JournalLine::Game(game)).unwrap();
    assert_eq!(league.games().len(), 2);
}

#[test]
fn tournaments_and_leagues_have_different_journals() {
    let text = |plan: &TournamentPlan| [&serde_json::to_vec(plan).unwrap()[..], b"\n"].concat();
    let league = text(&plan(&["a", "b"]));
    let reason = "a league has no end: it has no rounds, no stop condition and no schedule";
    assert_eq!(crate::Record::read(&league).unwrap_err().what, reason);
    let mut swiss = plan(&["a", "b"]);
    (swiss.format, swiss.rounds) = (Format::Swiss, 1);
    let error = League::read(&text(&swiss), None).unwrap_err();
    assert_eq!(error.what, reason);
    let mut bounded = plan(&["a", "b"]);
    bounded.rounds = 3;
    assert_eq!(League::new(bounded).unwrap_err().to_string(), reason);
}
