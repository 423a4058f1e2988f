//! Properties of schedules with random results, and small schedules checked in full.

use std::collections::{BTreeMap, BTreeSet};

use arena_model::SeedRng;
use arena_ratings::bradley_terry::{FitOptions, fit};
use arena_ratings::{AgentIndex, EloModel, Scores, Sprt};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::Format;
use crate::{cross_table, results, standings};

fn shape(format: Format, agents: usize, rounds: usize, seats: usize, paired: bool, seed: u64) -> Shape {
    Shape { format, agents, rounds, seats, paired, stop: None, seed: Seed::from_number(seed) }
}

/// Returns an SPRT between 0 and `elo`.
fn sprt(elo: f64) -> Stop {
    Stop::Sprt(Sprt::new(0.0, elo, 0.05, 0.05, EloModel::Normalized).unwrap())
}

/// Returns a random result of a game, which depends on its number and `luck` only. Draws are frequent.
fn result(pairing: &Pairing, luck: u64) -> Vec<usize> {
    let mut rng = Seed::from_number(luck).rng(&format!("game {}", pairing.number));
    let scores: Vec<u64> = pairing.agents.iter().map(|_| rng.below(3)).collect();
    scores.iter().map(|score| 1 + scores.iter().filter(|other| *other > score).count()).collect()
}

/// Plays a tournament to the end. `order` is the seed of the order in which scheduled games end.
fn play(shape: &Shape, luck: u64, order: u64) -> Schedule {
    let mut schedule = Schedule::new(shape.clone()).unwrap();
    let mut rng: SeedRng = Seed::from_number(order).rng("order");
    while !schedule.is_complete() {
        let pending: Vec<Pairing> = schedule.pending().cloned().collect();
        let pairing = &pending[rng.below(pending.len() as u64) as usize];
        schedule.record(pairing.number, &result(pairing, luck)).unwrap();
    }
    assert!(schedule.pending().next().is_none());
    schedule
}

/// Returns the number of games of each set of agents.
fn sets(schedule: &Schedule) -> BTreeMap<BTreeSet<usize>, usize> {
    let mut sets = BTreeMap::new();
    for pairing in schedule.pairings() {
        *sets.entry(pairing.agents.iter().copied().collect()).or_default() += 1;
    }
    sets
}

/// Returns the number of games of each agent on each seat.
fn seats(schedule: &Schedule) -> Vec<Vec<usize>> {
    let mut seats = vec![vec![0; schedule.shape().seats]; schedule.shape().agents];
    for pairing in schedule.pairings() {
        for (seat, agent) in pairing.agents.iter().enumerate() {
            seats[*agent][seat] += 1;
        }
    }
    seats
}

fn is_balanced(counts: &[usize], by: usize) -> bool {
    counts.iter().max().unwrap() - counts.iter().min().unwrap() <= by
}

fn check_all(schedule: &Schedule) -> Result<(), TestCaseError> {
    let shape = schedule.shape();
    for (number, pairing) in (1..).zip(schedule.pairings()) {
        prop_assert_eq!(pairing.number, number);
        let different: BTreeSet<usize> = pairing.agents.iter().copied().collect();
        prop_assert_eq!(different.len(), shape.seats, "an agent plays itself");
        prop_assert!(pairing.agents.iter().all(|agent| *agent < shape.agents));
    }
    prop_assert_eq!(schedule.games(), schedule.pairings().len());
    let mut by_meeting: BTreeMap<u64, Vec<&Pairing>> = BTreeMap::new();
    for pairing in schedule.pairings() {
        by_meeting.entry(pairing.meeting).or_default().push(pairing);
    }
    let seeds: BTreeSet<String> = by_meeting.values().map(|games| games[0].seed.reveal()).collect();
    prop_assert_eq!(seeds.len(), by_meeting.len(), "two meetings share a seed");
    for games in by_meeting.values() {
        prop_assert_eq!(games.len(), shape.games_a_meeting());
        prop_assert!(games.iter().all(|game| game.seed == games[0].seed));
        for seat in 0..games.len() {
            let there: BTreeSet<usize> = games.iter().map(|game| game.agents[seat]).collect();
            prop_assert_eq!(there.len(), games.len(), "seats of a meeting aren't balanced");
        }
    }
    // Points are a zero-sum: half a point per agent and game, plus byes.
    let lines = standings(schedule);
    let games: u64 = lines.iter().map(|line| line.games).sum();
    prop_assert_eq!(games, (schedule.pairings().len() * shape.seats) as u64);
    let byes: u64 = lines.iter().map(|line| line.byes * shape.games_a_meeting() as u64).sum();
    let points: f64 = lines.iter().map(|line| line.points).sum();
    prop_assert!((points - byes as f64 - games as f64 / 2.0).abs() < 1e-9);
    prop_assert!(lines.iter().all(|line| line.wins + line.draws + line.losses == line.games));
    let table = cross_table(schedule);
    for (a, row) in table.iter().enumerate() {
        for (b, versus) in row.iter().enumerate() {
            prop_assert_eq!(versus.games, table[b][a].games);
            prop_assert_eq!(versus.half_points + table[b][a].half_points, 2 * versus.games);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn in_a_round_robin_all_sets_meet_equally_often(
        (agents, seats_each) in (2usize..=9).prop_flat_map(|agents| (Just(agents), 2..=agents.min(4))),
        rounds in 1usize..=3,
        paired: bool,
        seed: u64,
    ) {
        let shape = shape(Format::RoundRobin, agents, rounds, seats_each, paired, seed);
        let schedule = play(&shape, seed, seed);
        check_all(&schedule)?;
        let met = sets(&schedule);
        prop_assert!(met.values().all(|games| *games == rounds * shape.games_a_meeting()));
        prop_assert_eq!(met.len() * rounds * shape.games_a_meeting(), shape.games().unwrap() as usize);
        let counts = seats(&schedule);
        let exact = paired || rounds % seats_each == 0;
        let by = match (exact, seats_each) {
            (true, _) => 0,
            (false, 2) => 1,
            // The balance of seats is greedy, meeting by meeting, so it isn't perfect for more than two seats.
            (false, _) => 4,
        };
        prop_assert!(counts.iter().all(|counts| is_balanced(counts, by)), "{:?}", counts);
    }

    #[test]
    fn in_a_gauntlet_the_first_meets_all_others(
        (agents, seats_each) in (2usize..=9).prop_flat_map(|agents| (Just(agents), 2..=agents.min(4))),
        rounds in 1usize..=3,
        paired: bool,
        seed: u64,
    ) {
        let shape = shape(Format::Gauntlet, agents, rounds, seats_each, paired, seed);
        let schedule = play(&shape, seed, seed);
        check_all(&schedule)?;
        let met = sets(&schedule);
        prop_assert!(met.iter().all(|(set, games)| set.contains(&0) && *games == rounds * shape.games_a_meeting()));
        prop_assert_eq!(met.len() * rounds * shape.games_a_meeting(), shape.games().unwrap() as usize);
        let by = match (paired, seats_each) {
            (true, _) => 0,
            (false, 2) => 1,
            (false, _) => rounds,
        };
        prop_assert!(is_balanced(&seats(&schedule)[0], by));
    }

    #[test]
    fn a_swiss_pairs_each_agent_once_a_round_without_rematches_if_possible(
        agents in 2usize..=9,
        rounds in 1usize..=10,
        paired: bool,
        seed: u64,
    ) {
        let shape = shape(Format::Swiss, agents, rounds, 2, paired, seed);
        let schedule = play(&shape, seed, seed);
        check_all(&schedule)?;
        let mut met: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut byes = vec![0; agents];
        for round in 1..=rounds {
            let pairs: BTreeSet<(usize, usize)> = schedule.pairings().iter()
                .filter(|pairing| pairing.round == round)
                .map(|pairing| (*pairing.agents.iter().min().unwrap(), *pairing.agents.iter().max().unwrap()))
                .collect();
            let paired_up: Vec<usize> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
            let different: BTreeSet<usize> = paired_up.iter().copied().collect();
            prop_assert_eq!((different.len(), paired_up.len()), (agents / 2 * 2, agents / 2 * 2));
            let bye = (0..agents).find(|agent| !different.contains(agent));
            prop_assert!(bye.is_none_or(|agent| byes[agent] == *byes.iter().min().unwrap()));
            if pairs.iter().any(|pair| met.contains(pair)) {
                let fresh = |a: usize, b: usize| !met.contains(&(a.min(b), a.max(b)));
                let least = *byes.iter().min().unwrap();
                let all: Vec<usize> = (0..agents).collect();
                let fields: Vec<Vec<usize>> = match agents % 2 {
                    0 => vec![all],
                    _ => all.iter().filter(|bye| byes[**bye] == least)
                        .map(|bye| all.iter().copied().filter(|agent| agent != bye).collect()).collect(),
                };
                prop_assert!(!fields.iter().any(|field| crate::matching::tests::can_pair(field, &fresh)));
            }
            met.extend(pairs);
            if let Some(agent) = bye {
                byes[agent] += 1;
            }
        }
        prop_assert_eq!(schedule.byes(), byes);
        prop_assert!(paired || seats(&schedule).iter().all(|counts| is_balanced(counts, 3)));
    }

    #[test]
    fn a_knockout_has_one_winner_who_never_lost(agents in 2usize..=20, rounds in 1usize..=3, paired: bool, seed: u64) {
        let shape = shape(Format::Knockout, agents, rounds, 2, paired, seed);
        let schedule = play(&shape, seed, seed);
        check_all(&schedule)?;
        let survived = schedule.survived().unwrap();
        let all = agents.next_power_of_two().trailing_zeros() as usize;
        let reached = |round: usize| survived.iter().filter(|survived| **survived >= round).count();
        prop_assert!((1..=all).all(|round| reached(round) == 1 << (all - round)), "{:?}", survived);
        prop_assert_eq!(standings(&schedule)[0].survived, Some(all));
        prop_assert_eq!(standings(&schedule).iter().filter(|line| line.rank == 1).count(), 1);
        for pairing in schedule.pairings() {
            prop_assert!(pairing.agents.iter().all(|agent| survived[*agent] + 1 >= pairing.round));
        }
    }

    #[test]
    fn the_order_in_which_games_end_changes_nothing(
        format in prop::sample::select(Format::ALL.iter().copied().filter(|format| !format.is_open_ended()).collect::<Vec<_>>()),
        agents in 2usize..=9,
        rounds in 1usize..=4,
        paired: bool,
        seed: u64,
        orders: (u64, u64),
    ) {
        let rounds = if format == Format::Adaptive { rounds * agents } else { rounds };
        let shape = shape(format, agents, rounds, 2, paired, seed);
        let (a, b) = (play(&shape, seed, orders.0), play(&shape, seed, orders.1));
        prop_assert_eq!(a.pairings(), b.pairings());
        prop_assert_eq!(standings(&a), standings(&b));
        // Equal seeds give equal schedules, and another seed another order.
        let other = Shape { seed: Seed::from_number(seed ^ 1), ..shape };
        let c = play(&other, seed, orders.0);
        prop_assert_ne!(a.pairings(), c.pairings());
    }

    #[test]
    fn an_adaptive_tournament_connects_all_and_then_has_as_many_games_as_it_may(
        (agents, seats_each) in (2usize..=7).prop_flat_map(|agents| (Just(agents), 2..=agents.min(4))),
        more in 0usize..=40,
        paired: bool,
        seed: u64,
    ) {
        let mut shape = shape(Format::Adaptive, agents, 1, seats_each, paired, seed);
        shape.rounds = adaptive::opening_meetings(&shape) + more;
        let schedule = play(&shape, seed, seed);
        check_all(&schedule)?;
        prop_assert_eq!(schedule.games_played(), shape.rounds * shape.games_a_meeting());
        let opening: Vec<_> = schedule.pairings().iter().filter(|pairing| pairing.round == 1).collect();
        let mut connected = BTreeSet::from([opening[0].agents[0]]);
        for _ in 0..agents {
            for pairing in &opening {
                if pairing.agents.iter().any(|agent| connected.contains(agent)) {
                    connected.extend(&pairing.agents);
                }
            }
        }
        prop_assert_eq!(connected.len(), agents);
        let by = if paired { 0 } else { 4 };
        prop_assert!(seats(&schedule).iter().all(|counts| is_balanced(counts, by)));
    }

    #[test]
    fn an_adaptive_tournament_ends_when_ratings_are_sure(agents in 2usize..=5, margin in 60.0..200.0, seed: u64) {
        let mut shape = shape(Format::Adaptive, agents, 100 * agents, 2, false, seed);
        shape.stop = Some(Stop::Margin(margin));
        let schedule = play(&shape, seed, seed);
        let fit = fit(&results(&schedule), &FitOptions::default()).unwrap();
        let is_sure = |agent: &usize| {
            let (rating, interval) = (fit.rating(AgentIndex(*agent)), fit.interval(AgentIndex(*agent)));
            (rating - interval.low).max(interval.high - rating) <= margin
        };
        let unsure: Vec<usize> = (0..agents).filter(|agent| !is_sure(agent)).collect();
        prop_assert_eq!(schedule.unsure().unwrap(), &unsure[..]);
        prop_assert!(unsure.is_empty() || schedule.games_played() == 100 * agents, "{:?}", unsure);
    }

    #[test]
    fn a_test_ends_at_the_first_meeting_that_decides_it_and_nothing_beyond_counts(
        paired: bool,
        beside in 1usize..=9,
        elo in 20.0..400.0,
        seed: u64,
    ) {
        let mut shape = shape(Format::RoundRobin, 2, 60, 2, paired, seed);
        shape.stop = Some(sprt(elo));
        // Sequential play has the same result as concurrent games that end in any order.
        let mut first = Schedule::new(shape.clone()).unwrap();
        for pairing in first.pairings().to_vec() {
            if !first.is_complete() {
                first.record(pairing.number, &result(&pairing, seed)).unwrap();
            }
        }
        let mut second = Schedule::new(shape.clone()).unwrap();
        let mut rng: SeedRng = Seed::from_number(seed).rng("order");
        let mut begun: Vec<Pairing> = Vec::new();
        let mut rest = second.pending().cloned().collect::<Vec<_>>().into_iter();
        loop {
            while begun.len() < beside && !second.is_complete() {
                let Some(next) = rest.next() else { break };
                begun.push(next);
            }
            if begun.is_empty() {
                break;
            }
            let pairing = begun.swap_remove(rng.below(begun.len() as u64) as usize);
            second.record(pairing.number, &result(&pairing, seed)).unwrap();
        }
        let played: Vec<_> = second.played().collect();
        prop_assert_eq!(&first.played().collect::<Vec<_>>(), &played);
        prop_assert_eq!(standings(&first), standings(&second));
        prop_assert_eq!(cross_table(&first), cross_table(&second));
        prop_assert_eq!(first.sequential_test(), second.sequential_test());
        prop_assert_eq!(first.games(), played.len());
        prop_assert!(first.is_complete() && second.is_complete() && second.pending().next().is_none());
        prop_assert_eq!(first.surplus(), 0);
        prop_assert!(beside > 1 || second.surplus() == 0);
        // The verdict is that of all games that count, and there is none before the last meeting.
        let test = first.sequential_test().unwrap();
        let (one, two) = (AgentIndex(0), AgentIndex(1));
        let all = results(&first);
        let scores = match paired {
            true => Scores::pentanomial(&all, one, two),
            false => Scores::trinomial(&all, one, two),
        };
        prop_assert_eq!(test.scores(), scores);
        prop_assert_eq!(test.state(), test.sprt().judge(&scores));
        prop_assert!(test.is_decided() || played.len() == shape.games().unwrap() as usize);
    }
}

/// Plays a tournament in which the lower number always wins, unless `draws` has the pair. Checks the list of games and
/// the standings.
#[track_caller]
fn check(format: Format, agents: usize, rounds: usize, draws: &[[usize; 2]], expected: Expect) {
    let mut schedule = Schedule::new(shape(format, agents, rounds, 2, false, 5)).unwrap();
    let mut lines = String::new();
    loop {
        let next = schedule.pending().next().cloned();
        let Some(pairing) = next else { break };
        let (a, b) = (pairing.agents[0], pairing.agents[1]);
        let ranks = match a < b {
            _ if draws.contains(&[a.min(b), a.max(b)]) => [1, 1],
            true => [1, 2],
            false => [2, 1],
        };
        lines += &format!(
            "{}: {a} {} {b}\n",
            pairing.round,
            ["draws with", "beats", "loses to"][if ranks == [1, 1] { 0 } else { ranks[0] }]
        );
        schedule.record(pairing.number, &ranks).unwrap();
    }
    for line in standings(&schedule) {
        lines += &format!("{}. {}: {} of {}", line.rank, line.agent, line.points, line.games);
        lines += &if line.byes > 0 { format!(" and {} byes\n", line.byes) } else { "\n".to_owned() };
    }
    lines +=
        &schedule.by_lot().iter().map(|(a, b, round)| format!("{a} over {b} by lot in {round}\n")).collect::<String>();
    expected.assert_eq(&lines);
}

#[test]
fn a_knockout_by_hand() {
    check(
        Format::Knockout,
        6,
        1,
        &[[2, 4], [0, 1]],
        expect![[r#"
            1: 3 loses to 0
            1: 5 loses to 4
            2: 1 beats 4
            2: 2 loses to 0
            3: 1 draws with 0
            3: 0 draws with 1
            3: 1 draws with 0
            3: 0 draws with 1
            1. 1: 3 of 5
            2. 0: 4 of 6
            3. 4: 1 of 2
            4. 2: 0 of 1
            5. 3: 0 of 1
            5. 5: 0 of 1
            1 over 0 by lot in 3
        "#]],
    );
}

#[test]
fn an_adaptive_tournament_by_hand() {
    check(
        Format::Adaptive,
        4,
        12,
        &[[1, 2], [2, 3]],
        expect![[r#"
        1: 1 draws with 2
        1: 2 draws with 3
        1: 3 loses to 0
        1: 0 beats 1
        2: 0 beats 2
        2: 2 loses to 0
        2: 0 beats 1
        2: 3 loses to 0
        3: 0 beats 2
        3: 1 loses to 0
        3: 0 beats 3
        3: 2 loses to 0
        1. 0: 10 of 10
        2. 2: 1 of 6
        3. 1: 0.5 of 4
        3. 3: 0.5 of 4
    "#]],
    );
}

/// Plays an adaptive tournament of single games with results from `ranks`. Returns the number of games of each agent.
fn games_of_each(agents: usize, margin: Option<f64>, ranks: impl Fn(&Pairing) -> [usize; 2]) -> (Vec<u64>, Schedule) {
    let rounds = 100 * agents;
    let stop = margin.map(Stop::Margin);
    let shape = Shape { stop, ..shape(Format::Adaptive, agents, rounds, 2, false, 1) };
    let mut schedule = Schedule::new(shape).unwrap();
    while !schedule.is_complete() {
        for pairing in schedule.pending().cloned().collect::<Vec<_>>() {
            schedule.record(pairing.number, &ranks(&pairing)).unwrap();
        }
    }
    let mut games: Vec<(usize, u64)> = standings(&schedule).iter().map(|line| (line.agent, line.games)).collect();
    games.sort_unstable();
    (games.into_iter().map(|(_, games)| games).collect(), schedule)
}

// An agent that loses all games never has a bounded interval, so more games for it would be wasted.
#[test]
fn an_agent_that_loses_all_its_games_does_not_take_those_of_the_others() {
    let ranks = |pairing: &Pairing| match pairing.agents[..] {
        [0, _] => [2, 1],
        [_, 0] => [1, 2],
        _ if pairing.number.is_multiple_of(2) => [1, 2],
        _ => [2, 1],
    };
    let (games, schedule) = games_of_each(5, None, ranks);
    expect!["[33, 244, 238, 233, 252], 500"].assert_eq(&format!("{games:?}, {}", schedule.games_played()));
    let (games, schedule) = games_of_each(5, Some(50.0), ranks);
    expect!["[33, 117, 108, 108, 126], 246, unsure: [0]"].assert_eq(&format!(
        "{games:?}, {}, unsure: {:?}",
        schedule.games_played(),
        schedule.unsure().unwrap()
    ));
}

#[test]
fn a_swiss_by_hand() {
    check(
        Format::Swiss,
        5,
        3,
        &[],
        expect![[r#"
        1: 2 loses to 1
        1: 3 loses to 0
        2: 1 loses to 0
        2: 4 loses to 2
        3: 0 beats 2
        3: 3 beats 4
        1. 0: 3 of 3
        2. 1: 2 of 2 and 1 byes
        2. 3: 2 of 2 and 1 byes
        4. 2: 1 of 3
        4. 4: 1 of 2 and 1 byes
    "#]],
    );
}

#[test]
fn results_that_do_not_belong_are_refused() {
    let mut schedule = Schedule::new(shape(Format::Swiss, 4, 2, 2, false, 1)).unwrap();
    let mut check = |number: usize, ranks: &[usize], expected: Expect| {
        let recorded = schedule.record(number, ranks);
        expected.assert_eq(&recorded.map_or_else(|error| error.to_string(), |()| "taken".to_owned()));
    };
    check(0, &[1, 2], expect!["there is no game 0; games scheduled so far: 2"]);
    check(3, &[1, 2], expect!["there is no game 3; games scheduled so far: 2"]);
    check(1, &[1, 2, 3], expect!["game 1 has 2 seats; their ranks cannot be [1, 2, 3]"]);
    check(1, &[2, 2], expect!["game 1 has 2 seats; their ranks cannot be [2, 2]"]);
    check(1, &[1, 2], expect!["taken"]);
    check(1, &[1, 2], expect!["game 1 already has a result"]);
    check(2, &[1, 1], expect!["taken"]);
    check(3, &[1, 1], expect!["taken"]);
}

#[test]
fn hundreds_of_agents_are_paired_in_time() {
    let shape = shape(Format::Swiss, 301, 9, 2, true, 1);
    let schedule = play(&shape, 1, 1);
    assert_eq!(schedule.pairings().len(), 9 * 300);
}

// In every format, a tournament in which each third game is void ends, and void games count for no agent.
#[test]
fn void_games_count_for_no_agent() {
    let margin = Some(Stop::Margin(1000.0));
    for (format, rounds, stop) in [
        (Format::RoundRobin, 3, None),
        (Format::Gauntlet, 3, None),
        (Format::Swiss, 3, None),
        (Format::Knockout, 1, None),
        (Format::Adaptive, 40, margin),
    ] {
        let mut schedule = Schedule::new(Shape { stop, ..shape(format, 4, rounds, 2, true, 5) }).unwrap();
        let mut void = 0;
        while !schedule.is_complete() {
            let number = schedule.pending().next().unwrap().number;
            if number.is_multiple_of(3) {
                void += 1;
                schedule.record_void(number).unwrap();
            } else {
                schedule.record(number, &[1, 2]).unwrap();
            }
        }
        assert!(schedule.is_complete() && void > 0, "{format:?}");
        assert_eq!((schedule.void(), results(&schedule).len()), (void, schedule.games_played() - void), "{format:?}");
        let games: u64 = standings(&schedule).iter().map(|line| line.games).sum();
        let draws: u64 = standings(&schedule).iter().map(|line| line.draws).sum();
        assert_eq!((games as usize, draws), (2 * (schedule.games_played() - void), 0), "{format:?}");
    }
}

#[test]
fn a_test_takes_nothing_from_a_meeting_with_a_void_game() {
    let tested = Shape { stop: Some(sprt(300.0)), ..shape(Format::RoundRobin, 2, 1000, 2, true, 5) };
    let mut schedule = Schedule::new(tested).unwrap();
    for (number, ranks) in [(1, Some([1, 2])), (2, None), (3, Some([1, 2])), (4, Some([1, 2]))] {
        match ranks {
            Some(ranks) => schedule.record(number, &ranks).unwrap(),
            None => schedule.record_void(number).unwrap(),
        }
    }
    let test = schedule.sequential_test().unwrap();
    assert_eq!((test.judged(), test.scores()), (4, Scores::Pentanomial([0, 0, 1, 0, 0])));
    assert!(schedule.record_void(4).is_err() && schedule.record(5, &[]).is_err());
}

#[test]
fn games_that_repeat_earlier_ones_decide_no_test_and_narrow_no_interval() {
    let shape = Shape {
        format: Format::RoundRobin,
        agents: 2,
        rounds: 50,
        seats: 2,
        paired: true,
        stop: Some(sprt(100.0)),
        seed: Seed::from_number(5),
    };
    // The first agent wins all games. Each game repeats the first one with the same agents on the same seats.
    let play = |moves: &dyn Fn(usize) -> Option<String>| {
        let mut schedule = Schedule::new(shape.clone()).unwrap();
        loop {
            let next = schedule.pending().next().cloned();
            let Some(pairing) = next else { break };
            let ranks = if pairing.agents[0] == 0 { [1, 2] } else { [2, 1] };
            let moves = moves(pairing.number);
            schedule.record_moves(pairing.number, &ranks, moves.as_deref().map(|moves| (0, moves))).unwrap();
        }
        schedule
    };
    let unknown = play(&|_| None);
    assert!(unknown.sequential_test().unwrap().is_decided() && unknown.games_played() < 100);
    let distinct = play(&|number| Some(number.to_string()));
    assert_eq!(distinct.games_played(), unknown.games_played());
    let repeated = play(&|_| Some("same".to_owned()));
    let test = repeated.sequential_test().unwrap();
    assert_eq!((repeated.games_played(), test.is_decided(), test.repeated()), (100, false, 98));
    assert_eq!(test.scores().counts().iter().sum::<u64>(), 1);
    let first: Vec<Option<usize>> = repeated.repeats();
    assert_eq!((&first[..2], first[2..].iter().flatten().count()), (&[None, None][..], 98));
    let results = results(&repeated);
    assert_eq!((results.len(), results.repeats()), (100, 98));
    // White's seat is random: games with the same moves by the same sides are repeats, regardless of the seats.
    let mut sides = Schedule::new(Shape { stop: None, rounds: 1, ..shape }).unwrap();
    let agents: Vec<Vec<usize>> = sides.pairings().iter().map(|pairing| pairing.agents.clone()).collect();
    assert_eq!(agents[0], [agents[1][1], agents[1][0]]);
    sides.record_moves(1, &[1, 2], Some((0, "same"))).unwrap();
    sides.record_moves(2, &[2, 1], Some((1, "same"))).unwrap();
    assert_eq!(sides.repeats(), [None, Some(1)]);
}
