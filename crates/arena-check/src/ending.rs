//! Whether games end, what becomes of those in which somebody stays away, and whether scores can be compared.

use arena_model::{ChallengeType, Score, Seat};

use crate::play::{Outcome, Table};
use crate::words::Words;
use crate::{Finding, Plan};

/// More deadlines than a game passes in which nobody does anything.
const MAX_WAITS: u32 = 1000;

/// What is usual: the scoring strategies call a game won at 1.
const USUAL: f64 = 1.0;

/// Scores that can't be meant: sums over many games would lose the others.
const MOST: f64 = 1e6;

/// Plays at random, and not at all.
pub fn check(challenge: &dyn ChallengeType, plan: &Plan) -> Vec<Finding> {
    let mut scores = Scores::default();
    let mut findings = vec![at_random(challenge, plan, &mut scores)];
    findings.push(silent(challenge, plan, &mut scores));
    findings.extend(scores.findings());
    findings
}

/// Players who try this and that.
fn at_random(challenge: &dyn ChallengeType, plan: &Plan, scores: &mut Scores) -> Finding {
    const CHECK: &str = "ending";
    let words = Words::of(challenge.metadata());
    let mut lengths = Vec::new();
    let mut best = 0;
    for game in 0..plan.games {
        let seed = plan.seed.derive(&format!("ending/{game}"));
        let mut rng = seed.rng("actions");
        let Ok(mut table) = Table::seated(challenge, &seed) else { continue };
        let mut taken = 0;
        for _ in 0..plan.actions {
            let seat = Seat(rng.below(table.seats() as u64) as usize);
            let action = words.draw(&table, seat, &mut rng);
            taken += u32::from(table.act(&action) == Outcome::Taken);
            if table.has_ended() {
                lengths.push(taken);
                scores.add(&table);
                break;
            }
        }
        best = best.max(taken);
    }
    let (games, ended) = (plan.games, lengths.len());
    let actions = plan.actions;
    match (lengths.iter().min(), lengths.iter().max()) {
        (Some(least), Some(most)) => Finding::fine(
            CHECK,
            format!("{ended} of {games} games at random ended, after {least} to {most} actions that were taken"),
        ),
        _ if best == 0 => Finding::advice(
            CHECK,
            "players at random found nothing that the rules take, so little could be tried: show an example of what each \
             method is sent in its description, in backticks",
        ),
        _ => Finding::advice(
            CHECK,
            format!(
                "none of {games} games at random ended within {actions} actions ({best} were taken at most): see that a game \
                 ends also when nobody plays well"
            ),
        ),
    }
}

/// Players who do nothing at all.
fn silent(challenge: &dyn ChallengeType, plan: &Plan, scores: &mut Scores) -> Finding {
    const CHECK: &str = "ending";
    let Ok(mut table) = Table::seated(challenge, &plan.seed.derive("silent")) else {
        return Finding::wrong(CHECK, "no game can begin");
    };
    let began = table.now;
    let mut waits = 0;
    while !table.has_ended() && waits < MAX_WAITS {
        match table.wait() {
            Ok(true) => waits += 1,
            Ok(false) => break,
            Err(error) => return Finding::wrong(CHECK, format!("it fails when a deadline passes: {error}")),
        }
    }
    let seconds = (table.now.0 - began.0) as f64 / 1000.0;
    if table.has_ended() {
        scores.add(&table);
        return Finding::fine(CHECK, format!("a game in which nobody acts ends by its rules after {seconds} s"));
    }
    if waits > 0 && table.session.deadline.is_some() {
        let what = format!("after {waits} deadlines and {seconds} s in which nobody acts the game goes on for ever");
        return Finding::wrong(CHECK, what);
    }
    Finding::advice(
        CHECK,
        "a game in which somebody stays away doesn't end by its rules: the arena breaks it off when nothing has happened for a \
         while (`stale_active`, 30 minutes), and then it counts for nobody",
    )
}

/// The scores that were seen at ends of games.
#[derive(Default)]
struct Scores {
    seen: Vec<Score>,
    /// What isn't a number, or none that is meant, with what led there.
    wild: Option<String>,
    attributed: Vec<String>,
}

impl Scores {
    fn add(&mut self, table: &Table<'_>) {
        for (number, score) in (1..).zip(table.scores()) {
            let fits = |value: f64| value.is_finite() && value.abs() <= MOST;
            if !(fits(score.security) && fits(score.utility)) {
                self.wild.get_or_insert_with(|| format!("player {number} has {score:?}"));
            }
            self.seen.push(*score);
        }
        for attribution in &table.session.attributions {
            if !self.attributed.contains(&attribution.kind) {
                self.attributed.push(attribution.kind.clone());
            }
        }
    }

    fn findings(self) -> Vec<Finding> {
        const CHECK: &str = "scores";
        if let Some(wild) = self.wild {
            let what = format!("a score has to be a number, and one between -{MOST} and {MOST}");
            return vec![Finding::wrong(CHECK, what).shown_by([wild])];
        }
        if self.seen.is_empty() {
            return vec![Finding::advice(CHECK, "no game came to its end, so no scores were seen")];
        }
        let range = |of: fn(&Score) -> f64| {
            let values = || self.seen.iter().map(of);
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
        };
        let (utility, security) = (range(|score| score.utility), range(|score| score.security));
        let kinds = match self.attributed.is_empty() {
            true => String::new(),
            false => format!("; attributions: {}", self.attributed.join(", ")),
        };
        let told = format!(
            "utility from {} to {}, security from {} to {}{kinds}",
            utility.0, utility.1, security.0, security.1
        );
        let is_usual = [utility, security].iter().all(|(least, most)| *least >= -USUAL && *most <= USUAL);
        if !is_usual {
            let what = format!(
                "{told}: usual is -1 to 1, and boards add up what they are given, so a challenge with larger scores weighs more \
                 than others"
            );
            return vec![Finding::advice(CHECK, what)];
        }
        if self.seen.iter().all(|score| *score == self.seen[0]) && self.seen.len() > 1 {
            let what = format!("all games at random ended with the same scores for all: {told}");
            return vec![Finding::advice(CHECK, what)];
        }
        vec![Finding::fine(CHECK, told)]
    }
}
