//! The checks `ending` and `scores`: games end even if a player doesn't act, and scores are comparable.

use arena_model::{Score, Seat};

use crate::play::{ActionResult, Subject, TestSession};
use crate::words::Words;
use crate::{CheckPlan, Fault, Finding};

/// The maximum number of deadlines in a game in which no player acts.
const MAX_WAITS: u32 = 1000;

/// The usual largest score: the scoring strategies count 1 as a win.
const USUAL_SCORE: f64 = 1.0;

/// The largest plausible score. A larger score would dominate the sum over many games.
const MAX_SCORE: f64 = 1e6;

/// Plays games with random actions, and games without actions.
pub fn check(subject: Subject<'_>, plan: &CheckPlan) -> Vec<Finding> {
    let mut scores = Scores::default();
    let mut findings = vec![at_random(subject, plan, &mut scores)];
    findings.push(silent(subject, plan, &mut scores));
    findings.extend(scores.findings());
    findings
}

/// Plays games with random actions.
fn at_random(subject: Subject<'_>, plan: &CheckPlan, scores: &mut Scores) -> Finding {
    const CHECK: &str = "ending";
    let words = Words::of(subject.challenge.metadata());
    let mut lengths = Vec::new();
    let (mut late, mut best) = (0, 0);
    for game in 0..plan.games {
        let seed = plan.seed.derive(&format!("ending/{game}"));
        let mut rng = seed.rng("actions");
        let Ok(mut table) = TestSession::seated(subject, &seed) else { continue };
        let mut taken = 0;
        for _ in 0..plan.actions {
            let seat = Seat(rng.below(table.seats() as u64) as usize);
            let action = words.draw(&table, seat, &mut rng);
            taken += u32::from(table.act(&action) == ActionResult::Taken);
            if table.has_ended() {
                break;
            }
        }
        let acted = table.has_ended();
        // A failure is ignored here, because the games without actions report failures at deadlines.
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
                    format!("{ended} of {games} random games ended, after {least} to {most} accepted actions")
                }
                late => format!(
                    "{ended} of {games} random games ended, {late} of them by a deadline, after {least} to {most} \
                     accepted actions"
                ),
            },
        ),
        _ if best == 0 => Finding::advice(
            CHECK,
            "the rules accepted no random action, so the checks covered little: show an example of each method's \
             content in its description, in backticks",
        ),
        _ => Finding::advice(
            CHECK,
            format!(
                "none of {games} random games ended within {actions} actions (at most {best} were accepted): a game \
                 must also end if no player plays well"
            ),
        ),
    }
}

/// Lets deadlines pass until the game has ended or has no deadline, and returns their number.
fn pass_deadlines(table: &mut TestSession<'_>) -> Result<u32, Fault> {
    let mut waits = 0;
    while !table.has_ended() && waits < MAX_WAITS && table.wait()? {
        waits += 1;
    }
    Ok(waits)
}

/// Plays games without actions.
fn silent(subject: Subject<'_>, plan: &CheckPlan, scores: &mut Scores) -> Finding {
    const CHECK: &str = "ending";
    let mut table = match TestSession::seated(subject, &plan.seed.derive("silent")) {
        Ok(table) => table,
        Err(fault) => return Finding::of_fault(CHECK, "no game can start", &fault, &[]),
    };
    let began = table.now();
    let waits = match pass_deadlines(&mut table) {
        Ok(waits) => waits,
        Err(fault) => return Finding::of_fault(CHECK, "the rules fail at a deadline", &fault, &[]),
    };
    let seconds = (table.now().0 - began.0) as f64 / 1000.0;
    if table.has_ended() {
        scores.add(&table);
        return Finding::fine(CHECK, format!("a game without actions ends by its rules after {seconds} s"));
    }
    if waits > 0 && table.session().deadline.is_some() {
        let what = format!("a game without actions never ends: it still runs after {waits} deadlines and {seconds} s");
        return Finding::wrong(CHECK, what);
    }
    Finding::advice(
        CHECK,
        "a game doesn't end by its rules if a player stays away: the arena ends it after a time without activity \
         (`stale_active_s`, 30 minutes), and then it doesn't count",
    )
}

#[derive(Default)]
struct Scores {
    seen: Vec<Score>,
    /// A score that isn't a number or isn't plausible, with the actions that led to it.
    wild: Option<String>,
    attributed: Vec<String>,
}

impl Scores {
    fn add(&mut self, table: &TestSession<'_>) {
        for (number, score) in (1..).zip(table.scores()) {
            let fits = |value: f64| value.is_finite() && value.abs() <= MAX_SCORE;
            if !(fits(score.security) && fits(score.utility)) {
                self.wild.get_or_insert_with(|| format!("player {number} has {score:?}"));
            }
            self.seen.push(*score);
        }
        for attribution in &table.session().attributions {
            if !self.attributed.contains(&attribution.kind) {
                self.attributed.push(attribution.kind.clone());
            }
        }
    }

    fn findings(self) -> Vec<Finding> {
        const CHECK: &str = "scores";
        if let Some(wild) = self.wild {
            let what = format!("a score must be a number between -{MAX_SCORE} and {MAX_SCORE}");
            return vec![Finding::wrong(CHECK, what).shown_by([wild])];
        }
        if self.seen.is_empty() {
            return vec![Finding::advice(CHECK, "no game ended, so there were no scores to check")];
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
        let summary = format!(
            "utility from {} to {}, security from {} to {}{kinds}",
            utility.0, utility.1, security.0, security.1
        );
        let is_usual = [utility, security].iter().all(|(least, most)| *least >= -USUAL_SCORE && *most <= USUAL_SCORE);
        if !is_usual {
            let what = format!(
                "{summary}: -1 to 1 is usual, and boards add scores up, so a challenge with larger scores weighs more \
                 than others"
            );
            return vec![Finding::advice(CHECK, what)];
        }
        if self.seen.iter().all(|score| *score == self.seen[0]) && self.seen.len() > 1 {
            let what = format!("all random games ended with the same scores for all: {summary}");
            return vec![Finding::advice(CHECK, what)];
        }
        vec![Finding::fine(CHECK, summary)]
    }
}
