//! Simulated seasons: the stronger agent usually wins, depending on the meeting's seed.

use std::fmt::Write;

use arena_model::{MatchOutcome, MatchResult, SeatResult, TimeLimits, Timestamp, VOID};
use arena_store::{LeagueNo, LeagueRules, NewLeagueAgent};
use expect_test::expect;
use serde_json::{Map, Value};

use super::*;

fn league(seats: usize, paired: bool) -> League {
    let rules = LeagueRules {
        game: "snake".to_owned(),
        options: Map::new(),
        seats,
        paired,
        limits: TimeLimits { step_ms: 1, bank_ms: 1 },
        sandbox: Value::Null,
    };
    let (name, seed) = ("ladder".to_owned(), Seed::from_number(1));
    League { no: LeagueNo(1), name, rules, seed, created_at: Timestamp(0), season: 1, rules_version: 2 }
}

fn agent(no: i64) -> LeagueAgent {
    let facts = NewLeagueAgent {
        name: format!("{}", char::from(b'a' + no as u8)),
        version: None,
        path: String::new(),
        dialect: "both".to_owned(),
        reach: Value::Null,
        files: Vec::new(),
        sha256: None,
    };
    LeagueAgent { no: LeagueAgentNo(no), generation: 1, facts, added_at: Timestamp(0), removed_at: None }
}

fn season(league: League, agents: usize, games: Vec<LeagueGame>) -> Season {
    let last_meeting = games.iter().map(|game| game.meeting).max().unwrap_or(0);
    Season::new(league, 1, (0..agents as i64).map(agent).collect(), games, last_meeting).unwrap()
}

/// Returns a simulated result. Later agents are stronger, but chance also affects the result.
fn played(season: &Season, game: &Pairing) -> LeagueGame {
    let mut rng = game.seed.rng(&format!("leg {}", game.leg));
    let form: Vec<u64> = game.agents.iter().map(|agent| *agent as u64 * 3 + rng.below(12)).collect();
    let rank = |form_of: u64| 1 + form.iter().filter(|other| **other > form_of).count();
    let seats = game.agents.iter().zip(&form).map(|(agent, form)| SeatResult {
        agent: season.agents()[*agent].no,
        rank: rank(*form),
        score: *form as f64,
        challenge_score: None,
        verdict: None,
        detail: None,
        faults: 0,
        refused: 0,
        waited_ms: 0.0,
        longest_step_ms: 0.0,
    });
    LeagueGame {
        number: season.games().len() as u64 + 1,
        season: 1,
        meeting: game.meeting,
        leg: game.leg,
        ended_at: Timestamp(0),
        result: MatchResult {
            seats: seats.collect(),
            outcome: MatchOutcome {
                termination: "OVER".into(),
                winner: "DRAW".to_owned(),
                result: None,
                tainted_reason: None,
            },
            seed: game.seed.clone(),
            epochs: 1,
            moves: None,
            took_ms: 1.0,
        },
    }
}

fn choose(season: &mut Season) -> Pairing {
    season.next_leg().unwrap_or_else(|| {
        let fit = season.fit(season.fitted()).unwrap();
        assert!(season.meet(&fit, |_| true));
        season.next_leg().unwrap()
    })
}

/// Plays a number of games one by one, and returns their agents by seat.
fn play(season: &mut Season, games: usize) -> String {
    let mut text = String::new();
    for _ in 0..games {
        let game = choose(season);
        let names: String = game.agents.iter().map(|agent| season.agents()[*agent].facts.name.as_str()).collect();
        write!(text, "{}.{} {names}  ", game.meeting, game.leg).unwrap();
        let game = played(season, &game);
        season.add(game).unwrap();
    }
    text.trim_end().to_owned()
}

#[test]
fn an_interruption_makes_no_difference() {
    for (seats, paired, agents) in [(2, true, 5), (2, false, 5), (4, true, 6), (2, true, 2)] {
        let mut whole = season(league(seats, paired), agents, Vec::new());
        play(&mut whole, 150);
        for stop in [0, 1, 2, 7, 39, 131, 148] {
            let mut again = season(league(seats, paired), agents, whole.games()[..stop].to_vec());
            play(&mut again, 150 - stop);
            assert_eq!(again.games(), whole.games(), "{seats} seats, paired {paired}, stopped after {stop}");
        }
    }
}

#[test]
fn all_agents_play_and_newcomers_play_first() {
    let mut season = season(league(2, true), 4, Vec::new());
    expect!["1.1 ba  1.2 ab  2.1 cd  2.2 dc  3.1 ca  3.2 ac  4.1 bd  4.2 db"].assert_eq(&play(&mut season, 8));
    let mut later = self::season(league(2, true), 5, season.games().to_vec());
    expect!["5.1 ce  5.2 ec"].assert_eq(&play(&mut later, 2));
    let counts = |season: &Season| -> Vec<u64> {
        arena_ratings::tallies(season.results()).iter().map(|tally| tally.games).collect()
    };
    play(&mut later, 90);
    let counts = counts(&later);
    assert!(counts.iter().all(|games| (20..=60).contains(games)), "{counts:?}");
}

#[test]
fn games_of_excluded_agents_still_count() {
    let mut season = season(league(2, true), 4, Vec::new());
    // A meeting of the third agent is interrupted.
    play(&mut season, 3);
    let broken: Vec<_> =
        season.unfinished().map(|(number, agents, missing)| (number, agents.to_vec(), missing)).collect();
    assert_eq!(broken.len(), 1);
    let gone = broken[0].1[0];
    season.exclude(season.agents()[gone].no);
    for _ in 0..20 {
        let game = choose(&mut season);
        assert!(!game.agents.contains(&gone) && game.meeting != broken[0].0, "{game:?}");
        let game = played(&season, &game);
        season.add(game).unwrap();
    }
    assert_eq!(season.results().len(), 23);
    // The agent comes back, and the interrupted meeting is finished first.
    let mut back = self::season(league(2, true), 4, season.games().to_vec());
    let first = choose(&mut back);
    assert_eq!((first.meeting, first.leg), (broken[0].0, 2));
}

#[test]
fn concurrent_games_have_different_agents_and_those_given_back_are_played_again() {
    let mut season = season(league(2, true), 6, Vec::new());
    let games: Vec<Pairing> = (0..6).map(|_| choose(&mut season)).collect();
    let mut seated: Vec<usize> = games.iter().flat_map(|game| game.agents.clone()).collect();
    seated.sort_unstable();
    assert_eq!(seated, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], "three meetings, both legs of each");
    assert!(games.chunks(2).all(|legs| {
        let swapped: Vec<usize> = legs[1].agents.iter().rev().copied().collect();
        legs[0].seed == legs[1].seed && legs[0].agents == swapped
    }));
    season.give_back(&games[3]);
    assert_eq!(season.next_leg().as_ref(), Some(&games[3]));
    assert_eq!(season.next_leg(), None);
}

#[test]
fn fits_have_all_games_at_first_and_nearly_all_later() {
    let mut season = season(league(2, true), 3, Vec::new());
    let mut fitted = BTreeMap::new();
    for games in 1..=200 {
        play(&mut season, 1);
        fitted.insert(games, season.fitted());
    }
    assert!(fitted.iter().all(|(games, fitted)| fitted <= games && games - fitted <= games / 30), "{fitted:?}");
    assert!((1..=64).all(|games| fitted[&games] == games), "{fitted:?}");
    assert!(fitted[&200] > 190 && fitted.values().collect::<std::collections::BTreeSet<_>>().len() < 130);
}

#[test]
fn a_meeting_needs_opponents_and_a_wanted_agent() {
    let mut lonely = season(league(2, true), 1, Vec::new());
    let fit = lonely.fit(0).unwrap();
    assert!(!lonely.meet(&fit, |_| true));
    let mut content = season(league(2, true), 3, Vec::new());
    let fit = content.fit(0).unwrap();
    assert!(!content.meet(&fit, |_| false));
    assert!(content.meet(&fit, |agent| agent.0 == 2));
    assert!(content.next_leg().unwrap().agents.contains(&2));
}

fn void(season: &Season, game: &Pairing) -> LeagueGame {
    let mut game = played(season, game);
    game.result.outcome.winner = VOID.to_owned();
    game
}

#[test]
fn void_games_are_no_evidence_and_connect_no_agents() {
    let mut season = season(league(2, false), 2, Vec::new());
    let game = choose(&mut season);
    season.add(void(&season, &game)).unwrap();
    assert_eq!((season.games().len(), season.results().len(), season.unfinished().count()), (1, 0, 0));
    assert!(season.isolated().is_some());
    // A void leg of a pair doesn't count either, but the other leg does.
    let mut pair = self::season(league(2, true), 2, season.games().to_vec());
    let second = choose(&mut pair);
    assert_eq!((second.meeting, second.leg), (game.meeting, 2));
    assert!(pair.isolated().is_none(), "a meeting under way connects its agents");
    pair.add(played(&pair, &second)).unwrap();
    assert_eq!((pair.games().len(), pair.results().len()), (2, 1));
    assert!(pair.isolated().is_none());
    assert_eq!(pair.connections.games, [1, 1]);
}

#[test]
fn a_void_game_leaves_a_newcomer_unconnected() {
    let mut before = season(league(2, false), 3, Vec::new());
    while before.isolated().is_some() {
        play(&mut before, 1);
    }
    let mut season = season(league(2, false), 4, before.games().to_vec());
    let newcomer = 3;
    let game = choose(&mut season);
    assert!(game.agents.contains(&newcomer), "{game:?}");
    season.add(void(&season, &game)).unwrap();
    let groups = &season.connections.groups;
    assert!(groups[..newcomer].iter().all(|group| *group == groups[0] && *group != groups[newcomer]), "{groups:?}");
    assert_eq!((season.connections.games[newcomer], season.isolated().map(|(agent, _)| agent)), (0, Some(newcomer)));
    // The next game is played, and connects the newcomer.
    let game = choose(&mut season);
    assert!(game.agents.contains(&newcomer), "{game:?}");
    season.add(played(&season, &game)).unwrap();
    assert_eq!((season.connections.games[newcomer], season.isolated()), (1, None));
}

#[test]
fn invalid_games_are_refused() {
    let mut season = season(league(2, true), 3, Vec::new());
    let game = choose(&mut season);
    let game = played(&season, &game);
    let with_seats = |change: &dyn Fn(&mut Vec<SeatResult<LeagueAgentNo>>)| {
        let mut game = game.clone();
        change(&mut game.result.seats);
        game
    };
    let wrong = [
        LeagueGame { leg: 3, ..game.clone() },
        LeagueGame { leg: 0, ..game.clone() },
        with_seats(&|seats| seats.truncate(1)),
        with_seats(&|seats| seats[1] = seats[0].clone()),
        with_seats(&|seats| seats.iter_mut().for_each(|seat| seat.agent = LeagueAgentNo(99))),
        with_seats(&|seats| seats.iter_mut().for_each(|seat| seat.rank = 9)),
    ];
    for game in wrong {
        assert!(season.add(game.clone()).is_err(), "{game:?}");
    }
    assert!(season.results().is_empty() && season.games().is_empty());
}
