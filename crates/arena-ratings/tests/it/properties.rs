//! Properties of ratings for random results.

use std::collections::HashSet;

use arena_ratings::bradley_terry::{Covariance, Fit, FitOptions, Forecast, fit};
use arena_ratings::{AgentIndex, ELO_PER_LOGIT, EloOptions, RatingOptions, RatingRow, Results, elo, rate_all, tallies};
use proptest::prelude::*;

/// The agents in seat order with their ranks, and the pair.
type Played = (Vec<(usize, u32)>, Option<u64>);

const AGENTS: usize = 5;

fn results(games: &[Played]) -> Results {
    let mut results = Results::new(AGENTS);
    for (seats, pair) in games {
        let seats: Vec<_> = seats.iter().map(|&(agent, rank)| (AgentIndex(agent), rank)).collect();
        results.push(&seats, *pair).expect("the game is valid");
    }
    results
}

/// Generates a game of two to `most` seats.
fn game(most: usize) -> impl Strategy<Value = Played> {
    let agents = Just((0..AGENTS).collect::<Vec<_>>()).prop_shuffle();
    let points = prop::collection::vec(0..3u32, AGENTS);
    (agents, 2..=most, points, prop::option::of(0..6u64)).prop_map(|(agents, seats, points, pair)| {
        let points = &points[..seats];
        let rank = |own: u32| 1 + points.iter().filter(|other| **other > own).count() as u32;
        (agents.into_iter().zip(points.iter().map(|own| rank(*own))).collect(), pair)
    })
}

fn games(most: usize) -> impl Strategy<Value = Vec<Played>> {
    prop::collection::vec(game(most), 0..40)
}

fn options() -> impl Strategy<Value = FitOptions> {
    prop::sample::select(vec![Covariance::Auto, Covariance::Fisher, Covariance::Sandwich])
        .prop_map(|covariance| FitOptions { covariance, ..FitOptions::default() })
}

fn all() -> impl Iterator<Item = AgentIndex> {
    (0..AGENTS).map(AgentIndex)
}

fn next_game(fit: &Fit, seats: usize) -> Vec<AgentIndex> {
    Forecast::new(fit, seats, 1).next(|_, _| true)
}

/// Returns true if the numbers are nearly equal, or both infinite in the same direction.
fn alike(one: f64, two: f64) -> bool {
    one == two || (one - two).abs() < 1e-4 * (1.0 + one.abs())
}

proptest! {
    #[test]
    fn everything_is_finite_and_intervals_hold_their_rating(games in games(4), options in options()) {
        let fit = fit(&results(&games), &options).unwrap();
        for agent in all() {
            let interval = fit.interval(agent);
            prop_assert!(fit.rating(agent).is_finite() && fit.error(agent).is_finite());
            prop_assert!(interval.holds(fit.rating(agent)), "{interval:?}");
        }
        prop_assert!(fit.games_to_lose_lead().is_some());
    }

    #[test]
    fn next_game_is_of_different_agents_and_the_least_sure_one_first(games in games(4), options in options()) {
        let fit = fit(&results(&games), &options).unwrap();
        let sure = Forecast::new(&fit, 2, 1);
        for seats in 0..=AGENTS + 1 {
            let game = next_game(&fit, seats);
            let expected = if (2..=AGENTS).contains(&seats) { seats } else { 0 };
            prop_assert_eq!(game.iter().collect::<HashSet<_>>().len(), expected);
            prop_assert_eq!(game.len(), expected);
            if let Some(first) = game.first() {
                let widest = all().map(|agent| sure.half_width(agent)).fold(0.0, f64::max);
                prop_assert!(sure.half_width(*first) >= widest * (1.0 - 1e-6));
            }
        }
    }

    #[test]
    fn intervals_only_narrow_as_games_are_chosen(games in games(4), seats in 2..=AGENTS, count in 1..3usize) {
        let fit = fit(&results(&games), &FitOptions::default()).unwrap();
        let mut forecast = Forecast::new(&fit, seats, count);
        for _ in 0..10 {
            let before: Vec<f64> = all().map(|agent| forecast.half_width(agent)).collect();
            let first = forecast.next(|_, _| true)[0];
            for agent in all() {
                prop_assert!(forecast.half_width(agent) <= before[agent.0] * (1.0 + 1e-9));
            }
            prop_assert!(forecast.half_width(first) < before[first.0]);
        }
    }

    #[test]
    fn order_of_games_leaves_no_trace(
        (games, shuffled) in games(4).prop_flat_map(|games| (Just(games.clone()), Just(games).prop_shuffle())),
        options in options(),
    ) {
        let (one, two) = (fit(&results(&games), &options).unwrap(), fit(&results(&shuffled), &options).unwrap());
        for agent in all() {
            prop_assert_eq!(one.rating(agent).to_bits(), two.rating(agent).to_bits());
            prop_assert_eq!(one.error(agent).to_bits(), two.error(agent).to_bits());
        }
        prop_assert_eq!(one.ranking(), two.ranking());
        prop_assert_eq!(next_game(&one, 3), next_game(&two, 3));
    }

    #[test]
    fn names_of_agents_dont_matter(games in games(4), names in Just((0..AGENTS).collect::<Vec<_>>()).prop_shuffle()) {
        let renamed: Vec<Played> = games
            .iter()
            .map(|(seats, pair)| (seats.iter().map(|(agent, rank)| (names[*agent], *rank)).collect(), *pair))
            .collect();
        let (before, after) = (results(&games), results(&renamed));
        let (one, two) = (fit(&before, &FitOptions::default()).unwrap(), fit(&after, &FitOptions::default()).unwrap());
        let elos = [elo(&before, &EloOptions::default()), elo(&after, &EloOptions::default())];
        for agent in all() {
            let name = AgentIndex(names[agent.0]);
            prop_assert!(alike(one.rating(agent), two.rating(name)));
            prop_assert!(alike(one.interval(agent).low, two.interval(name).low));
            prop_assert!(alike(one.interval(agent).high, two.interval(name).high));
            prop_assert!(alike(elos[0][agent.0], elos[1][name.0]));
        }
    }

    #[test]
    fn sums_are_kept(games in games(5)) {
        let results = results(&games);
        let tallies = tallies(&results);
        let points: f64 = tallies.iter().map(|tally| tally.points).sum();
        let expected: f64 = results.games().map(|game| game.seats.len() as f64 / 2.0).sum();
        prop_assert!((points - expected).abs() < 1e-9);
        for tally in &tallies {
            prop_assert_eq!(tally.games, tally.wins + tally.draws + tally.losses);
        }
        let elo = elo(&results, &EloOptions { rounded: false, ..EloOptions::default() });
        prop_assert!((elo.iter().sum::<f64>() - 1200.0 * AGENTS as f64).abs() < 1e-6);
    }

    #[test]
    fn ranks_and_groups_agree_with_each_other(games in games(3)) {
        let table = rate_all(&results(&games), &RatingOptions::default()).unwrap();
        let (mut place, mut tie) = (1, 0);
        let mut in_group = 0;
        for (row_at, row) in table.rows.iter().enumerate() {
            let rank = row.rank;
            if row_at > 0 && table.rows[row_at - 1].group != row.group {
                (place, tie, in_group) = (1, 0, row_at);
            }
            let at = row_at - in_group;
            prop_assert!(rank.best <= at + 1 && at < rank.worst, "{rank:?} at {at}");
            if rank.tie != tie {
                (place, tie) = (at + 1, tie + 1);
            }
            prop_assert_eq!((rank.place, rank.tie), (place, tie));
            prop_assert!(at == 0 || table.rows[row_at - 1].rating >= row.rating);
        }
    }

    #[test]
    fn ranks_follow_from_the_intervals(games in games(4), options in options()) {
        let fit = fit(&results(&games), &options).unwrap();
        let ranking = fit.ranking();
        let interval = |agent: AgentIndex| fit.interval(agent);
        for agent in all() {
            let above = all().filter(|other| interval(*other).low > interval(agent).high).count();
            let below = all().filter(|other| interval(*other).high < interval(agent).low).count();
            let rank = ranking.ranks[agent.0];
            prop_assert_eq!((rank.best, rank.worst), (1 + above, AGENTS - below));
        }
    }

    #[test]
    fn groups_that_share_no_games_are_rated_separately(one in games(4), two in games(3), order: u64) {
        // The agents of the second list follow those of the first, and the games are shuffled.
        let moved = |(seats, pair): &Played| -> Played {
            (seats.iter().map(|(agent, rank)| (agent + AGENTS, *rank)).collect(), pair.map(|pair| pair + 100))
        };
        let (mut first, mut second) = (one.iter().cloned(), two.iter().map(moved));
        let mut together = Results::new(2 * AGENTS);
        for place in 0..one.len() + two.len() {
            let is_first = order >> (place % 64) & 1 == 0;
            let next = if is_first { first.next().or_else(|| second.next()) } else { second.next().or_else(|| first.next()) };
            let (seats, pair) = next.unwrap();
            let seats: Vec<_> = seats.into_iter().map(|(agent, rank)| (AgentIndex(agent), rank)).collect();
            together.push(&seats, pair).unwrap();
        }
        let together = rate_all(&together, &RatingOptions::default()).unwrap();
        for (games, shift) in [(&one, 0), (&two, AGENTS)] {
            let alone = rate_all(&results(games), &RatingOptions::default()).unwrap();
            for row in &alone.rows {
                let same = together.rows.iter().find(|other| other.agent.0 == row.agent.0 + shift).unwrap();
                let text = |row: &RatingRow| format!("{:?}", RatingRow { agent: AgentIndex(0), group: 0, ..*row });
                prop_assert_eq!(text(row), text(same));
            }
        }
    }

    #[test]
    fn repeated_games_are_no_evidence(games in games(4), again in prop::collection::vec(0..40usize, 0..10)) {
        let once = results(&games);
        let mut repeated = once.clone();
        for place in again.iter().filter(|place| **place < games.len()) {
            let (seats, pair) = &games[*place];
            let seats: Vec<_> = seats.iter().map(|&(agent, rank)| (AgentIndex(agent), rank)).collect();
            repeated.push_repeat(&seats, pair.map(|pair| pair + 100)).unwrap();
        }
        let [one, two] = [&once, &repeated].map(|results| rate_all(results, &RatingOptions::default()).unwrap());
        let text = |row: &RatingRow| {
            format!("{:?} {:?} {:?}", row.rating, row.interval, row.rank)
        };
        prop_assert_eq!(one.rows.iter().map(text).collect::<Vec<_>>(), two.rows.iter().map(text).collect::<Vec<_>>());
        let games = |results: &Results| tallies(results).iter().map(|tally| tally.games).sum::<u64>();
        prop_assert!(games(&repeated) >= games(&once));
    }

    #[test]
    fn mirrored_results_have_mirrored_ratings(games in games(2)) {
        let mirrored: Vec<Played> = games
            .iter()
            .map(|(seats, pair)| {
                let top = seats.iter().map(|(_, rank)| *rank).max().unwrap();
                (seats.iter().map(|(agent, rank)| (*agent, top + 1 - rank)).collect(), *pair)
            })
            .collect();
        let [one, two] =
            [&games, &mirrored].map(|games| fit(&results(games), &FitOptions::default()).unwrap());
        for agent in all() {
            prop_assert!(alike(one.rating(agent), -two.rating(agent)));
            prop_assert!(alike(one.interval(agent).low, -two.interval(agent).high));
        }
    }
}

/// Returns games of each agent against each from both seats; the agent with the lower number wins two of three.
fn season(rounds: usize) -> Vec<Played> {
    let mut games = Vec::new();
    for round in 0..rounds {
        for one in 0..AGENTS {
            for two in (0..AGENTS).filter(|two| *two != one) {
                let is_upset = (round + one + two) % 3 == 0;
                let ranks = if (one < two) != is_upset { [1, 2] } else { [2, 1] };
                games.push((vec![(one, ranks[0]), (two, ranks[1])], None));
            }
        }
    }
    games
}

#[test]
fn errors_shrink_with_the_root_of_the_number_of_games() {
    let errors =
        [3, 300].map(|rounds| fit(&results(&season(rounds)), &FitOptions::default()).unwrap().error(AgentIndex(0)));
    let ratio = errors[0] / errors[1];
    assert!((9.0..11.0).contains(&ratio), "{ratio}");
}

#[test]
fn sandwich_of_lone_games_is_near_the_models_covariance() {
    let results = results(&season(300));
    let [fisher, sandwich] = [Covariance::Fisher, Covariance::Sandwich].map(|covariance| {
        fit(&results, &FitOptions { covariance, ..FitOptions::default() }).unwrap().error(AgentIndex(2))
    });
    assert!((sandwich / fisher - 1.0).abs() < 0.05, "{sandwich} {fisher}");
}

// Each game is doubled within its pair, which adds no information.
#[test]
fn games_of_a_pair_that_always_agree_count_as_one() {
    let games = season(30);
    let doubled: Vec<Played> = (0..)
        .zip(&games)
        .flat_map(|(pair, (seats, _))| [(seats.clone(), Some(pair)), (seats.clone(), Some(pair))])
        .collect();
    let options = FitOptions { covariance: Covariance::Sandwich, ..FitOptions::default() };
    let [once, twice] = [&games, &doubled].map(|games| fit(&results(games), &options).unwrap().error(AgentIndex(1)));
    assert!((twice / once - 1.0).abs() < 0.02, "{twice} {once}");
}

#[test]
fn enough_games_separate_all_agents() {
    let ranking = fit(&results(&season(300)), &FitOptions::default()).unwrap().ranking();
    assert_eq!(ranking.order, all().collect::<Vec<_>>());
    for (at, rank) in ranking.ranks.iter().enumerate() {
        assert_eq!((rank.place, rank.tie, rank.best, rank.worst), (at + 1, at, at + 1, at + 1));
    }
}

// Two rounds of a game of eight seats with each agent on each seat. One agent loses all 16 games.
#[test]
fn an_agent_that_lost_every_game_is_not_ranked_with_those_whose_intervals_lie_above() {
    let mut results = Results::new(8);
    for round in 0..2 {
        for turn in 0..8 {
            // The other seven rotate through the ranks, biased by their numbers.
            let rank = |agent: usize| match agent {
                7 => 8,
                _ => 1 + ((agent + 3 * turn * usize::from(turn % 3 == 0) + round as usize) % 7) as u32,
            };
            let seats: Vec<_> =
                (0..8).map(|seat| (seat + turn) % 8).map(|agent| (AgentIndex(agent), rank(agent))).collect();
            results.push(&seats, Some(round)).unwrap();
        }
    }
    let fit = fit(&results, &FitOptions::default()).unwrap();
    let ranking = fit.ranking();
    let last = fit.interval(AgentIndex(7));
    assert_eq!(last.low, f64::NEG_INFINITY);
    let above = (0..7).filter(|agent| fit.interval(AgentIndex(*agent)).low > last.high).count();
    assert!(above >= 3, "{above}");
    assert_eq!((ranking.ranks[7].best, ranking.ranks[7].worst), (1 + above, 8));
}

/// Returns a pseudorandom number from 0 to 1, and advances the state.
fn chance(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) as f64 + 0.5) / (1u64 << 31) as f64
}

// Intervals hold an agent's rating in 95 of 100 tournaments, and ranges hold its rank at least as often. The benchmark
// scenario `coverage` has more such tournaments.
#[test]
fn ranges_hold_the_true_ranks_as_often_as_they_say() {
    let mut state = 7;
    for (deviation, least) in [(150.0, 0.98), (30.0, 0.98), (0.0, 0.90)] {
        let (mut held, mut all) = (0, 0);
        for _ in 0..60 {
            let normal =
                |state: &mut u64| (-2.0 * chance(state).ln()).sqrt() * (std::f64::consts::TAU * chance(state)).cos();
            let strengths: Vec<f64> = (0..8).map(|_| deviation / ELO_PER_LOGIT * normal(&mut state)).collect();
            let mut results = Results::new(8);
            for (pair, (one, two)) in
                (0..8).flat_map(|one| (0..one).map(move |two| (one, two))).cycle().take(84).enumerate()
            {
                for [first, second] in [[one, two], [two, one]] {
                    let wins = 1.0 / (1.0 + (strengths[second] - strengths[first]).exp());
                    let ranks = if chance(&mut state) < wins { [1, 2] } else { [2, 1] };
                    results
                        .push(&[(AgentIndex(first), ranks[0]), (AgentIndex(second), ranks[1])], Some(pair as u64))
                        .unwrap();
                }
            }
            let ranking = fit(&results, &FitOptions::default()).unwrap().ranking();
            for (agent, strength) in strengths.iter().enumerate() {
                // Agents of equal strength share all their ranks.
                let best = 1 + strengths.iter().filter(|other| *other > strength).count();
                let worst = strengths.iter().filter(|other| *other >= strength).count();
                let rank = ranking.ranks[agent];
                held += usize::from(rank.best <= best && worst <= rank.worst);
                all += 1;
            }
        }
        let share = held as f64 / all as f64;
        assert!(share >= least, "{share} of the ranges held, with a deviation of {deviation} Elo");
    }
}

#[test]
fn a_newcomer_plays_next() {
    let games: Vec<Played> =
        season(5).into_iter().filter(|(seats, _)| seats.iter().all(|(agent, _)| *agent != 3)).collect();
    let fit = fit(&results(&games), &FitOptions::default()).unwrap();
    assert_eq!(next_game(&fit, 2)[0], AgentIndex(3));
}

#[test]
fn first_game_of_all_is_of_the_first_agents() {
    let fit = fit(&results(&[]), &FitOptions::default()).unwrap();
    assert_eq!(next_game(&fit, 3), [0, 1, 2].map(AgentIndex));
    // The interval of a chosen agent narrows, so all agents are chosen in turn.
    let mut forecast = Forecast::new(&fit, 2, 1);
    let games: Vec<AgentIndex> = (0..AGENTS).flat_map(|_| forecast.next(|_, _| true)).collect();
    assert_eq!(games.into_iter().collect::<HashSet<_>>().len(), AGENTS);
}

#[test]
fn no_game_is_chosen_for_narrow_intervals() {
    let fit = fit(&results(&season(5)), &FitOptions::default()).unwrap();
    let mut forecast = Forecast::new(&fit, 2, 1);
    let goal = 0.7 * forecast.half_width(AgentIndex(2));
    assert_eq!(forecast.clone().next(|agent, _| agent == AgentIndex(2))[0], AgentIndex(2));
    let chosen = std::iter::repeat_with(|| forecast.next(|_, half_width| half_width > goal))
        .take_while(|game| !game.is_empty())
        .count();
    // Twice the games narrow intervals to 0.7 of their width, and 100 games have been played.
    assert!((80..150).contains(&chosen), "{chosen}");
}

#[test]
fn games_narrow_intervals_as_forecast() {
    let [some, more] = [20, 40].map(|rounds| fit(&results(&season(rounds)), &FitOptions::default()).unwrap());
    let mut forecast = Forecast::new(&some, 2, 1);
    for _ in 0..season(20).len() {
        forecast.next(|_, _| true);
    }
    let found = Forecast::new(&more, 2, 1);
    for agent in all() {
        let ratio = forecast.half_width(agent) / found.half_width(agent);
        assert!((0.9..1.1).contains(&ratio), "{agent:?}: {ratio}");
    }
}
