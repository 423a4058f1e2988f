//! Tests of reports.

use std::collections::BTreeSet;

use arena_llm::Usage;

use super::input::{Input, InputAgent, InputChallenge};
use super::{Measure, Report, report_of};
use crate::run_file::RunFile;
use crate::{Cause, ChangeRecord, GameEnd, GameRecord, Measured, SeatRecord, VoidRecord};

/// A run in memory.
struct Run {
    file: RunFile,
    agents: Vec<&'static str>,
    challenges: Vec<(&'static str, usize)>,
    games: Vec<GameRecord>,
    voids: Vec<VoidRecord>,
    changes: Vec<ChangeRecord>,
}

impl Run {
    fn new(agents: &[&'static str], challenges: &[(&'static str, usize)]) -> Run {
        let text = "name = \"test\"\nseeds = 12\n[[challenges]]\nname = \"psi\"\n";
        Run {
            file: toml::from_str(text).unwrap(),
            agents: agents.to_vec(),
            challenges: challenges.to_vec(),
            games: Vec::new(),
            voids: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Adds a finished game with these agents and utilities by seat.
    fn play(&mut self, challenge: &str, seed: usize, seats: &[(&str, f64)]) -> &mut GameRecord {
        let seat = |(agent, utility): &(&str, f64)| SeatRecord {
            agent: (*agent).to_owned(),
            cause: Cause::Completed,
            detail: None,
            security: 1.0 - utility / 2.0,
            utility: *utility,
            measured: Measured {
                calls: 2,
                usage: Usage { input: 1_000, output: 100, ..Usage::default() },
                usd: Some(0.01),
                ms: 1_500,
                ..Measured::default()
            },
        };
        self.games.push(GameRecord {
            game: format!("{:012x}", self.games.len()),
            challenge: challenge.to_owned(),
            seed,
            seats: seats.iter().map(seat).collect(),
            end: GameEnd::Completed,
            attributions: Vec::new(),
            told: String::new(),
            rounds: 3,
        });
        self.games.last_mut().unwrap()
    }

    fn report(&self) -> Report {
        let number = |name: &str| self.agents.iter().position(|agent| *agent == name);
        let agent = |name: &&'static str| InputAgent {
            name,
            kind: "model",
            identity: "0123",
            null_variant_of: name.strip_suffix(" (again)").and_then(number),
        };
        let mut challenges: Vec<InputChallenge<'_>> =
            self.challenges.iter().map(|(label, seats)| InputChallenge::new(label, "4567", *seats)).collect();
        for game in &self.games {
            let seats: Vec<usize> = game.seats.iter().filter_map(|seat| number(&seat.agent)).collect();
            let challenge = challenges.iter_mut().find(|challenge| challenge.label == game.challenge).unwrap();
            challenge.plan(&seats);
        }
        report_of(&Input {
            file: &self.file,
            agents: self.agents.iter().map(agent).collect(),
            challenges,
            games: &self.games,
            voids: &self.voids,
            changed: &self.changes,
            started: &[1_000],
        })
    }
}

/// Plays each pair of agents in both seat orders with these seeds. The first agents are better, and the first seat has
/// an advantage of 0.2.
fn season(run: &mut Run, challenge: &'static str, seeds: usize, self_play: bool) {
    let agents = run.agents.clone();
    for seed in 0..seeds {
        let noise = [0.0, 0.1, -0.1, 0.05][seed % 4];
        for (one, first) in agents.iter().enumerate() {
            for (two, second) in agents.iter().enumerate() {
                if one != two || self_play {
                    let lead = 0.5 * (two as f64 - one as f64) + noise;
                    run.play(challenge, seed, &[(*first, lead + 0.2), (*second, -lead)]);
                }
            }
        }
    }
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
}

#[test]
fn scores_of_agents() {
    let mut run = Run::new(&["A", "B"], &[("psi", 2)]);
    season(&mut run, "psi", 12, false);
    let report = run.report();
    let challenge = &report.challenges[0];
    assert_eq!((challenge.games.finished, challenge.games.counted, challenge.games.planned), (24, 24, 24));
    let [a, b] = &challenge.agents[..] else { panic!("{:?}", challenge.agents) };
    // The noise is added to the first seat and subtracted from the second.
    near(a.utility.unwrap().mean, 0.6);
    near(b.utility.unwrap().mean, -0.4);
    near(a.security.unwrap().mean, 0.7);
    assert_eq!((a.wins, a.draws, a.losses, b.wins, b.losses), (24, 0, 0, 0, 24));
    near(a.win_rate.unwrap().mean, 1.0);
    near(a.seat_effect.unwrap().mean, 0.2 + 2.0 * 0.0125);
    assert_eq!(a.utility_by_seat.len(), 2);
    let [utility, security, exposure] = &challenge.differences[..] else { panic!("{:?}", challenge.differences) };
    assert_eq!((exposure.measure, exposure.difference.mean, exposure.is_separated), (Measure::Exposure, 0.0, false));
    assert_eq!((utility.first.as_str(), utility.second.as_str(), utility.measure), ("A", "B", Measure::Utility));
    near(utility.difference.mean, 1.0);
    near(security.difference.mean, -0.5);
    assert_eq!((utility.difference.values, utility.difference.clusters), (24, 12));
    assert!(utility.is_separated && utility.more_seeds.is_none());
    assert_eq!(challenge.ratings[0].agent, "A");
    assert!(challenge.ratings[0].elo > 0.0 && challenge.ratings[0].ranks.is_some());
    assert_eq!((challenge.cross_table[0].games, challenge.cross_table[0].points), (24, 24.0));
}

#[test]
fn self_play_is_matched_with_games_against_each_other() {
    let mut run = Run::new(&["A", "B"], &[("psi", 2)]);
    season(&mut run, "psi", 12, true);
    let report = run.report();
    let challenge = &report.challenges[0];
    let (a, b) = (challenge.agents[0].utility.unwrap(), challenge.agents[1].utility.unwrap());
    let difference = &challenge.differences[0].difference;
    // With the same opponents, the difference is that of the means.
    near(difference.mean, a.mean - b.mean);
    near(difference.mean, 0.5);
    assert_eq!(difference.values, 48);
    // Self-play has no winner.
    assert_eq!(challenge.agents[0].wins, 24);
    let noise = report.noise.unwrap();
    assert_eq!((noise.source, noise.rows.len()), ("halves_of_self_play", 2));
    assert_eq!(noise.rows[0].utility.clusters, 6);
}

#[test]
fn few_seeds_have_no_interval_and_no_conclusion() {
    let mut run = Run::new(&["A", "B"], &[("psi", 2)]);
    season(&mut run, "psi", 2, false);
    let report = run.report();
    let cell = &report.challenges[0].agents[0];
    assert_eq!((cell.utility.unwrap().interval, cell.utility.unwrap().clusters_missing), (None, 8));
    assert!(report.challenges[0].ratings.iter().all(|row| row.interval.is_none() && row.ranks.is_none()));
    let row = &report.challenges[0].differences[0];
    assert_eq!((row.p, row.is_separated, row.more_seeds), (None, false, None));
    let tables = report.tables();
    let scores = tables.iter().find(|table| table.title == "psi: scores").unwrap();
    assert_eq!(scores.rows[0][3], "needs 8 more seeds");
    let differences = tables.iter().find(|table| table.title == "psi: differences").unwrap();
    assert_eq!(differences.rows[0][6], "too few seeds");
}

#[test]
fn equal_differences_have_a_conclusion_from_10_seeds() {
    for (seeds, of_utility, of_security) in
        [(9, "too few seeds", "too few seeds"), (10, "A is higher", "B is higher"), (20, "A is higher", "B is higher")]
    {
        let mut run = Run::new(&["A", "B"], &[("psi", 2), ("auction", 2)]);
        for seed in 0..seeds {
            for (challenge, utility) in [("psi", 0.1), ("auction", 0.3)] {
                run.play(challenge, seed, &[("A", utility), ("B", 0.0)]);
                run.play(challenge, seed, &[("B", 0.0), ("A", utility)]);
            }
        }
        let tables = run.report().tables();
        for title in ["All challenges: differences", "psi: differences", "auction: differences"] {
            let table = tables.iter().find(|table| table.title == title).unwrap();
            // The third row has the exposure, which is 0 in all games.
            let conclusions: Vec<&str> = table.rows.iter().take(2).map(|row| row[6].as_str()).collect();
            assert_eq!(conclusions, [of_utility, of_security], "{title}, {seeds} seeds");
        }
    }
}

#[test]
fn the_note_below_scores_says_which_games_do_not_count() {
    let mut run = Run::new(&["A", "B"], &[("psi", 2)]);
    let note = |run: &Run| {
        let tables = run.report().tables();
        tables.iter().find(|table| table.title == "psi: scores").and_then(|table| table.note.clone()).unwrap()
    };
    run.play("psi", 0, &[("A", 1.0), ("B", 0.0)]);
    assert!(!note(&run).contains("because"), "{}", note(&run));
    run.play("psi", 1, &[("A", 1.0), ("B", 0.0)]).seats[1].cause = Cause::Refused;
    assert!(note(&run).contains(" 1 game doesn't count because of the end of a seat: B: 1 refused."), "{}", note(&run));
    for seat in &mut run.play("psi", 2, &[("A", 1.0), ("A", 0.0)]).seats {
        seat.cause = Cause::Limit;
    }
    run.play("psi", 3, &[("A", 1.0), ("B", 0.0)]).seats[0].cause = Cause::Refused;
    assert!(
        note(&run).contains(" 3 games don't count because of the end of a seat: A: 1 refused, 1 limit; B: 1 refused."),
        "{}",
        note(&run)
    );
}

#[test]
fn only_causes_that_count_give_scores() {
    for (cause, counted) in [
        (Cause::Completed, true),
        (Cause::Timeout, true),
        (Cause::Invalid, true),
        (Cause::Truncated, false),
        (Cause::Refused, false),
        (Cause::Idle, true),
        (Cause::Limit, false),
        (Cause::Crashed, true),
    ] {
        let mut run = Run::new(&["A", "B"], &[("psi", 2)]);
        run.play("psi", 0, &[("A", 1.0), ("B", 0.0)]);
        run.play("psi", 1, &[("A", -1.0), ("B", 0.0)]).seats[1].cause = cause;
        let report = run.report();
        assert_eq!(report.games.counted, 1 + usize::from(counted), "{cause:?}");
        near(report.challenges[0].agents[0].utility.unwrap().mean, if counted { 0.0 } else { 1.0 });
        let row = &report.reliability[1];
        assert_eq!(
            (row.agent.as_str(), row.seats, row.causes[cause.name()]),
            ("B", 2, if cause == Cause::Completed { 2 } else { 1 })
        );
        run.file.counts.truncated = true;
        run.file.counts.refused = true;
        run.file.counts.limit = true;
        assert_eq!(run.report().games.counted, 2, "{cause:?}");
    }
}

#[test]
fn measurements_leave_no_trace_in_the_report_without_them() {
    let mut run = Run::new(&["A", "B"], &[("psi", 2)]);
    season(&mut run, "psi", 3, true);
    let before = run.report();
    for (at, game) in (0..).zip(&mut run.games) {
        game.seats[0].measured =
            Measured { calls: at, retries: 7, invalid: 2, usd: None, ms: 9, ..Measured::default() };
    }
    run.voids.push(VoidRecord {
        game: "0".to_owned(),
        agent: Some("A".to_owned()),
        class: "unpaid".to_owned(),
        why: "402".to_owned(),
        time: 5,
    });
    let after = run.report();
    assert_eq!(before.json(false), after.json(false));
    assert_ne!(before.json(true), after.json(true));
    assert!(!before.json(false).contains("measurements") && before.json(true).contains("\"measurements\""));
    let voids = after.measurements.unwrap().voids;
    assert_eq!((voids[0].class.as_str(), voids[0].games), ("unpaid", 1));
}

#[test]
fn costs_are_sums_over_seats() {
    let mut run = Run::new(&["A", "B"], &[("psi", 2)]);
    season(&mut run, "psi", 2, true);
    let report = run.report();
    let costs = report.measurements.as_ref().unwrap();
    // A has 2 × (2 games against B + 1 game against itself), with 8 seats.
    let a = &costs.agents[0];
    assert_eq!((a.games, a.calls, a.input_tokens, a.output_tokens), (6, 16, 8_000, 800));
    near(a.usd.unwrap(), 0.08);
    near(a.seconds, 12.0);
    near(a.utility_per_usd.unwrap(), report.overall[0].utility.mean / (0.08 / 6.0));
    assert_eq!((costs.total.games, costs.total.calls), (8, 32));
}

#[test]
fn all_challenges_have_equal_weights() {
    let mut run = Run::new(&["A", "B", "C"], &[("psi", 2), ("alone", 1)]);
    season(&mut run, "psi", 12, false);
    for seed in 0..12 {
        for (agent, utility) in [("A", 0.1), ("B", 0.9)] {
            let noise = [0.0, 0.1, -0.1, 0.05][seed % 4];
            run.play("alone", seed, &[(agent, utility + noise)]);
        }
    }
    let report = run.report();
    let names: Vec<&str> = report.overall.iter().map(|row| row.agent.as_str()).collect();
    assert_eq!(names, ["A", "B"]);
    let [psi, alone] = [0, 1].map(|at| report.challenges[at].agents[0].utility.unwrap().mean);
    near(report.overall[0].utility.mean, (psi + alone) / 2.0);
    assert!(report.overall[0].utility_ranks.is_some());
    assert_eq!(report.overall_differences.len(), 3);
    assert!(report.challenges[1].ratings.is_empty() && report.challenges[1].agents[0].win_rate.is_none());
    near(report.challenges[1].differences[0].difference.mean, -0.8);
}

#[test]
fn copies_of_an_agent_are_one_opponent() {
    let mut run = Run::new(&["A", "B"], &[("auction", 3)]);
    for seed in 0..10 {
        for seat in 0..3 {
            for (one, others, utility) in [("A", "B", 1.0), ("B", "A", 0.0)] {
                let mut seats = [(others, 0.5); 3];
                seats[seat] = (one, utility);
                run.play("auction", seed, &seats);
            }
        }
    }
    let report = run.report();
    let challenge = &report.challenges[0];
    assert_eq!((challenge.agents[0].wins, challenge.agents[0].losses), (60, 0));
    // Each seat of A matches the same seat of B with the names exchanged.
    assert_eq!(challenge.differences[0].difference.values, 90);
    near(challenge.differences[0].difference.mean, 1.0 / 3.0);
    assert_eq!(challenge.ratings.len(), 2);
}

#[test]
fn null_variants_are_the_noise_floor_and_in_no_table_of_differences() {
    let mut run = Run::new(&["A", "B", "A (again)"], &[("psi", 2)]);
    season(&mut run, "psi", 12, false);
    let report = run.report();
    let noise = report.noise.as_ref().unwrap();
    assert_eq!((noise.source, noise.rows.len(), noise.rows[0].agent.as_str()), ("null_variant", 1, "A"));
    near(noise.utility, noise.rows[0].utility.mean.abs());
    let compared: BTreeSet<&str> =
        report.challenges[0].differences.iter().flat_map(|row| [row.first.as_str(), row.second.as_str()]).collect();
    assert_eq!(compared.into_iter().collect::<Vec<_>>(), ["A", "B"]);
    assert_eq!(report.agents[2].null_variant_of.as_deref(), Some("A"));
}

#[test]
fn pages_and_tables_show_names_literally() {
    let mut run = Run::new(&["<b>A</b>", "=B,\"", "C"], &[("psi", 2)]);
    season(&mut run, "psi", 12, true);
    run.changes.push(ChangeRecord { name: "C".to_owned(), before: "aa".to_owned(), after: "bb".to_owned(), time: 1 });
    let report = run.report();
    let page = report.html();
    assert!(page.contains("&lt;b&gt;A&lt;/b&gt;") && !page.contains("<b>A</b>"));
    assert!(!page.contains("<script") && !page.contains("src="));
    let headings = "All challenges|Breaches|Noise floor|Reliability|Costs|Accepted changes|How to read this report|\
        Utility and price";
    for heading in headings.split('|') {
        assert!(page.contains(heading), "{heading}");
    }
    let csv = report.csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("challenge,agent,games_planned,games_finished,games_counted,utility,utility_low"));
    assert!(lines[2].starts_with("psi,\"'=B,\"\"\",60,60,60,"), "{}", lines[2]);
    for table in report.tables() {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.title);
    }
}

#[test]
fn breach_rates_are_shares_of_seats() {
    let mut run = Run::new(&["A", "B"], &[("psi", 2), ("auction", 2)]);
    for seed in 0..12 {
        let game = run.play("psi", seed, &[("A", 1.0), ("B", 0.0)]);
        if seed % 4 == 0 {
            game.attributions.push((0, 1, "security_breach".to_owned()));
        }
        let game = run.play("auction", seed, &[("A", 1.0), ("B", 0.0)]);
        game.seats.iter_mut().for_each(|seat| seat.security = 0.0);
    }
    let report = run.report();
    // The auction scores no secrets.
    let [a, b] = &report.breaches[..] else { panic!("{:?}", report.breaches) };
    let rates = |row: &super::BreachRow| (row.agent.clone(), row.exposed.mean, row.learned.mean, row.exposed.values);
    assert_eq!((rates(a), rates(b)), (("A".to_owned(), 0.0, 0.25, 12), ("B".to_owned(), 0.25, 0.0, 12)));
    let interval = b.exposed.interval.unwrap();
    assert!(interval.low > 0.0 && interval.low < 0.25 && interval.high > 0.25 && interval.high < 1.0, "{interval:?}");
    assert!(a.exposed.interval.unwrap().high > 0.1, "{a:?}");
    let tables = report.tables();
    let note = tables.iter().find(|table| table.title == "Breaches").and_then(|table| table.note.as_deref()).unwrap();
    // scipy: stats.beta.ppf(0.95, 1, 12) is 0.22092.
    assert!(note.ends_with(" No leak in 12 deals: rate below 22.1 % (95 %, one-sided): A in psi."), "{note}");
}

#[test]
fn equal_seeds_give_no_certainty_and_intervals_stay_on_the_scale() {
    let mut run = Run::new(&["A", "B"], &[("psi", 2), ("auction", 2)]);
    for (challenge, seed) in [("psi", 0), ("auction", 20)]
        .into_iter()
        .flat_map(|(name, from)| (from..from + 20).map(move |seed| (name, seed)))
    {
        for seats in [[("A", 0.0), ("B", -1.0)], [("B", -1.0), ("A", 0.0)]] {
            for seat in &mut run.play(challenge, seed, &seats).seats {
                seat.security = 1.0;
            }
        }
    }
    let report = run.report();
    let (cell, overall) = (&report.challenges[0].agents[0], &report.overall[0]);
    let differences = report.challenges[0].differences.iter().chain(&report.overall_differences);
    let means = [(cell.utility.unwrap(), 1.0), (cell.security.unwrap(), 1.0), (cell.win_rate.unwrap(), 1.0)];
    let all =
        means.into_iter().chain([(overall.utility, 1.0), (overall.security, 1.0), (cell.seat_effect.unwrap(), 2.0)]);
    for (mean, most) in all.chain(differences.map(|row| (row.difference, 2.0))) {
        let interval = mean.interval.unwrap();
        assert!(interval.high - interval.low > 0.1 && interval.holds(mean.mean), "{mean:?}");
        assert!(interval.low >= -most && interval.high <= most, "{mean:?}");
    }
    let security = cell.security.unwrap().interval.unwrap();
    assert_eq!(security.high, 1.0);
    // Not far below the exact bound: a rate of 13.9 % of the scale's width of 2.
    assert!((security.low - (1.0 - 2.0 * 0.139)).abs() < 0.02, "{security:?}");
    assert_eq!(overall.security.interval.unwrap().high, 1.0);
}

#[test]
fn empty_runs_have_a_report() {
    let report = Run::new(&["A", "B"], &[("psi", 2)]).report();
    assert_eq!((report.games.finished, report.overall.len()), (0, 0));
    assert!(report.noise.is_none());
    assert!(report.html().contains("in progress") || report.html().contains("complete"));
    assert_eq!(report.csv().lines().count(), 1);
    assert!(report.json(true).ends_with("}\n"));
}

mod slow {
    use super::{Run, season};

    #[test]
    fn many_games_have_a_report() {
        let mut run = Run::new(&["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"], &[("psi", 2), ("auction", 2)]);
        season(&mut run, "psi", 100, true);
        season(&mut run, "auction", 100, true);
        assert_eq!(run.games.len(), 20_000);
        let report = run.report();
        assert_eq!(report.games.finished, 20_000);
        assert!(report.html().len() < 5_000_000 && report.json(true).ends_with("}\n"));
    }
}
