//! A league's folder without real matches: the first seat wins each game.

use std::fs;

use arena_model::{MatchOutcome, SeatResult, Seed};
use arena_tournament::{AgentAddress, Format, Shape};
use expect_test::expect;

use super::*;

/// Describes an agent with this file.
fn entrant(file: &Path) -> Entrant {
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let reach = AgentAddress::Command { program: file.to_owned(), args: Vec::new(), folder: "/".into() };
    let mut entrant = Entrant { files: vec![file.to_owned()], ..Entrant::new(&name, &name, reach) };
    entrant.sha256 = fingerprint_of(&entrant, Path::new("/nowhere")).unwrap();
    entrant
}

fn create(folder: &Path, agents: Vec<Entrant>) -> LeagueFolder {
    let seed = Seed::from_number(5);
    let shape = Shape { format: Format::League, agents: 0, rounds: 0, seats: 2, paired: true, stop: None, seed };
    let game = arena_games::game("snake").unwrap();
    LeagueFolder::create(folder, TournamentPlan::new(game, agents, &shape)).unwrap()
}

fn result(pairing: &Pairing) -> MatchResult<()> {
    let seats = [1, 2].map(|rank| SeatResult::<()> { rank, ..SeatResult::default() });
    let (termination, winner) = ("GAME_ENDED".into(), "DRAW".to_owned());
    let outcome = MatchOutcome { termination, winner, result: None, tainted_reason: None };
    let seed = pairing.seed.clone();
    MatchResult { seats: seats.into(), outcome, seed, epochs: 1, moves: None, took_ms: 0.0 }
}

fn next(league: &mut LeagueFolder) -> Option<Pairing> {
    match league.next::<()>().unwrap() {
        Next::Play(pairing) => Some(pairing),
        Next::Wait | Next::Nothing => None,
    }
}

/// Plays a run, and returns the agents of each game.
fn play(league: &mut LeagueFolder, games: u64) -> String {
    league.set_limits(Until { games: Some(games), ..Until::default() });
    league.begin();
    let mut played = Vec::new();
    while let Some(pairing) = next(league) {
        let names = pairing.agents.iter().map(|agent| league.league().member(*agent).entrant.name.clone());
        played.push(names.collect::<Vec<_>>().join("-"));
        league.record(&pairing, result(&pairing), None).unwrap();
    }
    played.join(" ")
}

#[test]
fn agents_come_and_go_between_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let [a, b, c] = ["a", "b", "c"].map(|name| file(name, "1"));
    let ladder = folder.path().join("ladder");
    let mut league = create(&ladder, vec![entrant(&a), entrant(&b)]);
    expect!["b-a a-b"].assert_eq(&play(&mut league, 1));
    assert!(league.add_agent(entrant(&c)).unwrap().is_new);
    assert!(!league.add_agent(entrant(&c)).unwrap().is_new, "it is in the league already");
    let size = fs::metadata(ladder.join("tournament.jsonl")).unwrap().len();
    league.add_agent(entrant(&c)).unwrap();
    assert_eq!(fs::metadata(ladder.join("tournament.jsonl")).unwrap().len(), size);
    assert!(play(&mut league, 2).contains('c'), "a new agent plays first");
    league.suspend("c", "it crashed ten times").unwrap();
    assert!(!play(&mut league, 8).contains('c'));
    drop(league);

    let mut league = LeagueFolder::open(&ladder).unwrap();
    assert!(matches!(JournalFile::open(&ladder, |_| Ok(())), Err(JournalError::Locked(_))));
    let (_, suspended) = league.league().find("c").unwrap();
    assert_eq!(suspended.membership, Membership::Suspended("it crashed ten times".to_owned()));
    assert_eq!(league.league().games().len(), 12);
    let back = league.add_agent(entrant(&c)).unwrap();
    assert_eq!((back.is_new, back.agent.generation), (false, 1));
    // Changed files are another version, and an agent without files doesn't play.
    file("a", "2");
    fs::remove_file(&b).unwrap();
    let changes = league.check_files("").unwrap();
    let [Change::NextVersion { now, .. }, Change::Absent { name, .. }] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((now.agent.generation, now.is_new, &name[..]), (2, true, "b"));
    assert!(!play(&mut league, 4).contains('b'));
    league.remove("c").unwrap();
    assert!(league.remove("c").is_err());
    assert_eq!(play(&mut league, 4), "", "one agent is left");
    file("b", "1");
    assert!(league.check_files("").unwrap().is_empty());
    assert_eq!(league.close_season().unwrap(), 2);
    assert!(!play(&mut league, 4).is_empty());
    drop(league);

    let first = LeagueFolder::load(&ladder, Some(1)).unwrap();
    assert_eq!((first.is_closed, first.games().len(), first.agents().len()), (true, 16, 4));
    let second = LeagueFolder::load(&ladder, None).unwrap();
    assert_eq!((second.season().number(), second.games().len(), second.members().count()), (2, 4, 2));
}

#[test]
fn games_under_way_are_played_again() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["a", "b"].map(|name| folder.path().join(name));
    files.iter().for_each(|file| fs::write(file, "1").unwrap());
    let mut league = create(&folder.path().join("ladder"), files.iter().map(|file| entrant(file)).collect());
    league.begin();
    let (first, second) = (next(&mut league).unwrap(), next(&mut league).unwrap());
    league.record(&second, result(&second), None).unwrap();
    league.begin();
    assert_eq!(next(&mut league), Some(first.clone()));
    assert_eq!((league.pairing(1), league.has_result(1), league.has_result(2)), (Some(first.clone()), false, true));
    assert!(league.record(&second, result(&second), None).is_err(), "it has a result");
    league.record(&first, result(&first), None).unwrap();
    assert!(!league.league().season().is_unfinished(1));
}
