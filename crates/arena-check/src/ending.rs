//! Whether games end, what becomes of those in which somebody stays away, and whether scores can be compared.

use arena_model::{Score, Seat};

use crate::play::{Outcome, Subject, Table};
use crate::words::Words;
use crate::{Fault, Finding, Plan};

/// More deadlines than a game passes in which nobody does anything.
const MAX_WAITS: u32 = 1000;

/// What is usual: the scoring strategies call a game won at 1.
const USUAL: f64 = 1.0;

/// Scores that can't be meant: sums over many games would lose the others.
const MOST: f64 = 1e6;

/// Plays at random, and not at all.
pub fn check(subject: Subject<'_>, plan: &Plan) -> Vec<Finding> {
    let mut scores = Scores::default();
    let mut findings = vec![at_random(subject, plan, &mut scores)];
    findings.push(silent(subject, plan, &mut scores));
    findings.extend(scores.findings());
    findings
}

/// Players who try this and that.
fn at_random(subject: Subject<'_>, plan: &Plan, scores: &mut Scores) -> Finding {
    const CHECK: &str = "ending";
    let words = Words::of(subject.challenge.metadata());
    let mut lengths = Vec::new();
    let (mut late, mut best) = (0, 0);
    for game in 0..plan.games {
        let seed = plan.seed.derive(&format!("ending/{game}"));
        let mut rng = seed.rng("actions");
        let Ok(mut table) = Table::seated(subject, &seed) else { continue };
        let mut taken = 0;
        for _ in 0..plan.actions {
            let seat = Seat(rng.below(table.seats() as u64) as usize);
            let action = words.draw(&table, seat, &mut rng);
            taken += u32::from(table.act(&action) == Outcome::Taken);
            if table.has_ended() {
                break;
            }
        }
        let acted = table.has_ended();
        // A failure is found again in the game in which nobody acts.
        let _ = pass_deadlines(&mut table);
        if table.has_ended() {
            late += u32::from(!acted);
            lengths.push(taken);
            scores.add(&table);
        }
        best = best.max(taken);
    }
    let (games, ended) = (plan.games, lengths.len());
    let actions = plan.actions;
    match (lengths.iter().min(), lengths.iter().max()) {
        (Some(least), Some(most)) if best > 0 => Finding::fine(
            CHECK,
            match late {
                0 => {
                    format!("{ended} of {games} games at random ended, after {least} to {most} actions that were taken")
                }
                late => format!(
                    "{ended} of {games} games at random ended, {late} of them by a deadline, after {least} to {most} actions that \
                     were taken"
                ),
            },
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

/// Lets deadlines pass until the game has ended, or has none. Tells how many did.
fn pass_deadlines(table: &mut Table<'_>) -> Result<u32, Fault> {
    let mut waits = 0;
    while !table.has_ended() && waits < MAX_WAITS && table.wait()? {
        waits += 1;
    }
    Ok(waits)
}

/// Players who do nothing at all.
fn silent(subject: Subject<'_>, plan: &Plan, scores: &mut Scores) -> Finding {
    const CHECK: &str = "ending";
    let mut table = match Table::seated(subject, &plan.seed.derive("silent")) {
        Ok(table) => table,
        Err(fault) => return Finding::of_fault(CHECK, "no game can begin", &fault, &[]),
    };
    let began = table.now;
    let waits = match pass_deadlines(&mut table) {
        Ok(waits) => waits,
        Err(fault) => return Finding::of_fault(CHECK, "it fails when a deadline passes", &fault, &[]),
    };
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
