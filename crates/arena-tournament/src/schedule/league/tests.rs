//! Simulated seasons: the stronger agent usually wins, depending on the meeting's seed.

use std::fmt::Write;

use expect_test::expect;

use super::*;
use crate::format::Format;

/// A recorded game: its number, the agents by seat and their ranks.
type Played = (usize, Vec<usize>, Vec<usize>);

/// Returns a season of games of `seats` agents, with these games.
fn season(seats: usize, paired: bool, agents: usize, games: &[Played]) -> Season {
    let seed = Seed::from_number(1);
    let mut season =
        Season::first(&Shape { format: Format::League, agents: 0, rounds: 0, seats, paired, stop: None, seed });
    for _ in 0..agents {
        season.add_agent();
    }
    for (number, agents, ranks) in games {
        season.add(*number, agents.clone(), Some(ranks));
    }
    season
}

/// Returns a simulated result. Later agents are stronger, but chance also affects the result.
fn ranks(game: &Pairing) -> Vec<usize> {
    let mut rng = game.seed.rng(&format!("leg {}", game.leg));
    let form: Vec<u64> = game.agents.iter().map(|agent| *agent as u64 * 3 + rng.below(12)).collect();
    form.iter().map(|own| 1 + form.iter().filter(|other| *other > own).count()).collect()
}

fn choose(season: &mut Season) -> Pairing {
    season.next_leg().unwrap_or_else(|| {
        let fit = season.fit(season.fitted()).unwrap();
        assert!(season.meet(&fit, |_| true));
        season.next_leg().unwrap()
    })
}

/// Plays a number of games one by one.
fn play(season: &mut Season, games: usize) -> Vec<Played> {
    let mut played = Vec::new();
    for _ in 0..games {
        let game = choose(season);
        let ranks = ranks(&game);
        season.check(game.number, &game.agents, &game.seed, Some(&ranks)).unwrap();
        season.add(game.number, game.agents.clone(), Some(&ranks));
        played.push((game.number, game.agents, ranks));
    }
    played
}

/// Returns the games' numbers and agents.
fn text(games: &[Played]) -> String {
    let mut text = String::new();
    for (number, agents, _) in games {
        let names: String = agents.iter().map(|agent| char::from(b'a' + *agent as u8)).collect();
        write!(text, "{number} {names}  ").unwrap();
    }
    text.trim_end().to_owned()
}

#[test]
fn an_interruption_makes_no_difference() {
    for (seats, paired, agents) in [(2, true, 5), (2, false, 5), (4, true, 6), (2, true, 2)] {
        let whole = play(&mut season(seats, paired, agents, &[]), 150);
        for stop in [0, 1, 2, 7, 39, 131, 148] {
            let rest = play(&mut season(seats, paired, agents, &whole[..stop]), 150 - stop);
            assert_eq!(rest, whole[stop..], "{seats} seats, paired {paired}, stopped after {stop}");
        }
    }
}

#[test]
fn all_agents_play_and_newcomers_play_first() {
    let mut season = season(2, true, 4, &[]);
    expect!["1 ba  2 ab  3 cd  4 dc  5 ca  6 ac  7 bd  8 db"].assert_eq(&text(&play(&mut season, 8)));
    season.add_agent();
    expect!["9 ce  10 ec"].assert_eq(&text(&play(&mut season, 2)));
    play(&mut season, 90);
    let counts: Vec<u64> = arena_ratings::tallies(season.results()).iter().map(|tally| tally.games).collect();
    assert!(counts.iter().all(|games| (20..=60).contains(games)), "{counts:?}");
}

#[test]
fn a_wanted_agent_connects_agents_that_have_only_met_each_other() {
    let games = [(1, vec![0, 1], vec![1, 2]), (2, vec![1, 0], vec![1, 2])];
    let later = (3..30).map(|number| (number, vec![2, 3], vec![1 + number % 2, 2 - number % 2]));
    let mut season = season(2, true, 4, &games.into_iter().chain(later).collect::<Vec<_>>());
    let fit = season.fit(season.fitted()).unwrap();
    assert!(season.meet(&fit, |agent| agent.0 == 3));
    let mut agents = season.meetings.last_key_value().unwrap().1.agents.clone();
    agents.sort_unstable();
    assert_eq!(agents, [0, 3]);
}

#[test]
fn games_of_excluded_agents_still_count() {
    let mut season = season(2, true, 4, &[]);
    // A meeting of the third agent is interrupted.
    play(&mut season, 3);
    let broken: Vec<(u64, usize)> =
        season.meetings.iter().map(|(number, meeting)| (*number, meeting.agents[0])).collect();
    let [(broken, gone)] = broken[..] else { panic!("{broken:?}") };
    season.set_ready(gone, false);
    for _ in 0..20 {
        let game = choose(&mut season);
        assert!(!game.agents.contains(&gone) && game.meeting != broken, "{game:?}");
        season.add(game.number, game.agents.clone(), Some(&ranks(&game)));
    }
    assert_eq!(season.results().len(), 23);
    // The agent comes back, and the interrupted meeting is finished first.
    season.set_ready(gone, true);
    let first = choose(&mut season);
    assert_eq!((first.meeting, first.leg), (broken, 2));
}

#[test]
fn concurrent_games_have_different_agents_and_those_given_back_are_played_again() {
    let mut season = season(2, true, 6, &[]);
    let games: Vec<Pairing> = (0..6).map(|_| choose(&mut season)).collect();
    let mut seated: Vec<usize> = games.iter().flat_map(|game| game.agents.clone()).collect();
    seated.sort_unstable();
    assert_eq!(seated, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], "three meetings, both legs of each");
    assert!(games.chunks(2).all(|legs| {
        let swapped: Vec<usize> = legs[1].agents.iter().rev().copied().collect();
        legs[0].seed == legs[1].seed && legs[0].agents == swapped
    }));
    assert!(!season.is_waiting(games[3].number));
    season.give_back(&games[3]);
    assert!(season.is_waiting(games[3].number));
    assert_eq!(season.next_leg().as_ref(), Some(&games[3]));
    assert_eq!(season.next_leg(), None);
    season.give_back_all();
    let again: Vec<Option<Pairing>> = games.iter().map(|_| season.next_leg()).collect();
    assert_eq!(again.into_iter().flatten().collect::<Vec<_>>(), games);
}

#[test]
fn games_may_end_in_any_order() {
    let mut first = season(2, true, 4, &[]);
    let games: Vec<Pairing> = (0..4).map(|_| choose(&mut first)).collect();
    let mut played: Vec<Played> = games.iter().map(|game| (game.number, game.agents.clone(), ranks(game))).collect();
    played.reverse();
    let again = season(2, true, 4, &played[..3]);
    assert_eq!((again.pairing(1).as_ref(), again.is_waiting(1)), (Some(&games[0]), true));
    assert_eq!((again.pairing(4).as_ref(), again.pairing(5)), (Some(&games[3]), None));
}

#[test]
fn fits_have_all_games_at_first_and_nearly_all_later() {
    let mut season = season(2, true, 3, &[]);
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
    let mut lonely = season(2, true, 1, &[]);
    let fit = lonely.fit(0).unwrap();
    assert!(!lonely.meet(&fit, |_| true));
    let mut content = season(2, true, 3, &[]);
    let fit = content.fit(0).unwrap();
    assert!(!content.meet(&fit, |_| false));
    assert!(content.meet(&fit, |agent| agent.0 == 2));
    assert!(content.next_leg().unwrap().agents.contains(&2));
}

#[test]
fn void_games_are_no_evidence_and_connect_no_agents() {
    let mut alone = season(2, false, 2, &[]);
    let game = choose(&mut alone);
    alone.add(game.number, game.agents, None);
    assert_eq!((alone.games.len(), alone.results().len(), alone.meetings.len()), (1, 0, 0));
    assert!(alone.isolated().is_some());
    // A void leg of a pair doesn't count either, but the other leg does.
    let mut pair = season(2, true, 2, &[]);
    let game = choose(&mut pair);
    pair.add(game.number, game.agents, None);
    let second = choose(&mut pair);
    assert_eq!((second.meeting, second.leg), (game.meeting, 2));
    assert!(pair.isolated().is_none(), "a meeting under way connects its agents");
    pair.add(second.number, second.agents.clone(), Some(&ranks(&second)));
    assert_eq!((pair.games.len(), pair.results().len()), (2, 1));
    assert!(pair.isolated().is_none());
    assert_eq!(pair.connections.games, [1, 1]);
}

#[test]
fn a_void_game_leaves_a_newcomer_unconnected() {
    let mut season = season(2, false, 3, &[]);
    while season.isolated().is_some() {
        play(&mut season, 1);
    }
    let newcomer = season.add_agent();
    let game = choose(&mut season);
    assert!(game.agents.contains(&newcomer), "{game:?}");
    season.add(game.number, game.agents, None);
    let groups = &season.connections.groups;
    assert!(groups[..newcomer].iter().all(|group| *group == groups[0] && *group != groups[newcomer]), "{groups:?}");
    assert_eq!((season.connections.games[newcomer], season.isolated().map(|(agent, _)| agent)), (0, Some(newcomer)));
    // The next game is played, and connects the newcomer.
    let game = choose(&mut season);
    assert!(game.agents.contains(&newcomer), "{game:?}");
    season.add(game.number, game.agents.clone(), Some(&ranks(&game)));
    assert_eq!((season.connections.games[newcomer], season.isolated()), (1, None));
}

#[test]
fn invalid_games_are_refused() {
    let mut season = season(2, true, 3, &[]);
    let game = choose(&mut season);
    let Pairing { number, agents, seed, .. } = game;
    let check = |number, agents: &[usize], seed: &Seed, ranks: &[usize]| {
        season.check(number, agents, seed, Some(ranks)).err().unwrap_or_default()
    };
    let other = 3 - agents[0] - agents[1];
    let wrong = [
        check(0, &agents, &seed, &[1, 2]),
        check(number, &agents[..1], &seed, &[1]),
        check(number, &[agents[0]; 2], &seed, &[1, 2]),
        check(number, &[agents[0], other], &seed, &[1, 2]),
        check(number + 2, &agents, &seed, &[1, 2]),
        check(number, &agents, &seed, &[2, 2]),
        check(number, &agents, &seed, &[1, 9]),
    ];
    expect![[r#"
        games are numbered from 1
        game 1 has 1 seats, but games of this league have 2
        an agent has two seats in game 1
        game 1 is between other agents than the games with the same seed
        game 3 has another seed in this league
        game 1 has 2 seats; their ranks cannot be [2, 2]
        game 1 has 2 seats; their ranks cannot be [1, 9]"#]]
    .assert_eq(&wrong.join("\n"));
}
