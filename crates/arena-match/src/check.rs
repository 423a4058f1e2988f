//! The check of an agent. It starts the agent alone and sends it messages as in a match. The findings name
//! the agent's errors and their remedies. A check uses the links, seats and messages of matches.

mod finding;
mod partner;
mod session;
mod trial;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arena_model::Dialect;
use arena_model::{GameType, Seed};
use serde::Serialize;
use session::{NotStarted, Session, Start};
use trial::{Trial, TrialMatch, TrialResult, play};

use crate::agent::Agent;
use crate::match_plan::Confinement;
use crate::play::MatchError;

pub use finding::{Finding, Severity};

/// The number of states in a trial of a game.
const STEPS: u64 = 30;

/// The number of states in a trial of unusual messages or of the agent's dialect.
const FEW_STEPS: u64 = 3;

#[derive(Clone, Copy)]
pub struct CheckPlan<'a> {
    pub agent: &'a Agent,
    /// The games to check. If there are several, the agent must play at least one of them.
    pub games: &'a [&'static GameType],
    pub seed: &'a Seed,
    /// The sandbox of the agent's process.
    pub confinement: &'a Confinement,
}

#[derive(Debug, Serialize)]
pub struct CheckReport {
    /// The agent, as the user named it.
    pub agent: String,
    /// The name that the agent sent, or else its default name.
    pub name: String,
    pub version: Option<String>,
    /// True if no finding costs matches.
    pub is_fine: bool,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
    /// The descriptions of successful trials, one sentence each.
    pub fine: Vec<String>,
    pub games: BTreeMap<&'static str, GameCheck>,
}

#[derive(Debug, Serialize)]
pub struct GameCheck {
    /// True if the agent answers correctly and the game accepts actions of it.
    pub plays: bool,
    /// The number of states sent.
    pub steps: u64,
    /// The number of correct answers.
    pub answered: u64,
    /// The number of accepted actions.
    pub taken: u64,
    pub rejected: u64,
    /// The longest wait for an answer, in milliseconds.
    pub longest_step_ms: f64,
    /// The limit of a step, in milliseconds.
    pub step_limit_ms: u64,
    pub findings: Vec<Finding>,
}

impl GameCheck {
    fn is_wrong(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Wrong)
    }
}

/// Checks an agent. The duration depends on the agent; for a silent agent it is a few seconds.
///
/// # Errors
/// See [`MatchError`]. An agent's behavior is never an error.
pub fn check(plan: CheckPlan<'_>, called_off: &AtomicBool) -> Result<CheckReport, MatchError> {
    let mut check = Check {
        plan,
        start: Start { agent: plan.agent, confinement: plan.confinement, called_off },
        checked: CheckReport {
            agent: plan.agent.path.clone(),
            name: plan.agent.name.clone(),
            version: plan.agent.version.clone(),
            is_fine: false,
            findings: Vec::new(),
            fine: Vec::new(),
            games: BTreeMap::new(),
        },
    };
    check.try_games()?;
    let mut checked = check.checked;
    checked.findings.sort_by_key(|finding| finding.severity);
    checked.is_fine = checked.findings.iter().all(|finding| finding.severity == Severity::Advice);
    Ok(checked)
}

struct Check<'a> {
    plan: CheckPlan<'a>,
    start: Start<'a>,
    checked: CheckReport,
}

/// The result of one run in a game.
struct Run {
    tried: TrialResult,
    findings: Vec<Finding>,
    /// The description of the agent's end, if it ended correctly.
    end: Option<String>,
}

impl<'a> Check<'a> {
    fn try_games(&mut self) -> Result<(), MatchError> {
        let mut ends = BTreeMap::new();
        for (number, game) in self.plan.games.iter().enumerate() {
            let trial = Trial { game, steps: STEPS, is_odd: false, is_patient: true };
            let Some(run) = self.run(trial, self.plan.agent.dialect, number == 0, true)? else { return Ok(()) };
            ends.insert(game.name, run.end);
            self.checked.games.insert(game.name, judge(game, run.tried, run.findings));
        }
        // The agent was presumably written for the game that it plays best.
        let games = &self.checked.games;
        let Some(best) = (self.plan.games.iter().copied())
            .max_by_key(|game| games.get(game.name).map(|found| (!found.is_wrong(), found.taken, found.answered)))
        else {
            return Ok(());
        };
        self.add_findings(best, ends.remove(best.name).flatten());
        let has_answered = self.checked.games[best.name].answered > 0;
        if has_answered {
            self.try_odd_messages(best)?;
        }
        // An agent without valid answers may expect the state under another key of the message.
        if has_answered || self.plan.agent.dialect != Dialect::Both {
            self.try_dialects(best)?;
        }
        Ok(())
    }

    /// Adds the findings in the games. `best` is the game that the agent plays best.
    fn add_findings(&mut self, best: &'static GameType, end: Option<String>) {
        let is_choice = self.plan.games.len() > 1;
        let CheckReport { findings, fine, games, .. } = &mut self.checked;
        for (name, found) in games.iter() {
            if found.plays || *name == best.name {
                findings.extend(found.findings.iter().cloned());
            }
            if found.plays {
                fine.push(format!(
                    "plays {name}: {} states, {} actions taken, the longest step {} ms of {} ms",
                    found.steps,
                    found.taken,
                    found.longest_step_ms.ceil(),
                    found.step_limit_ms
                ));
            }
        }
        fine.extend(end);
        if games.values().all(|found| found.taken == 0) && !games[best.name].is_wrong() {
            let what = match is_choice {
                true => "answers correctly, but does nothing in any of the games".to_owned(),
                false => format!("answers correctly, but does nothing in {} steps", games[best.name].steps),
            };
            findings.push(Finding::advice(
                what,
                "put actions into the list `actions`; docs/games in the repository has the actions of each game",
            ));
        }
    }

    /// Tries states with an unknown key and with a ping, then the end of the input without `stop`.
    fn try_odd_messages(&mut self, game: &'static GameType) -> Result<(), MatchError> {
        let trial = Trial { game, steps: FEW_STEPS, is_odd: true, is_patient: true };
        let Some(run) = self.run(trial, self.plan.agent.dialect, false, false)? else { return Ok(()) };
        if run.tried.answered == FEW_STEPS {
            self.checked
                .fine
                .push("ignores keys that it doesn't know, and answers a `ping` that comes with a state".to_owned());
        }
        self.checked.fine.extend(run.end);
        self.add_new(run.findings);
        Ok(())
    }

    /// Tests the agent with each dialect: the state under `world_state`, and at the top level.
    fn try_dialects(&mut self, game: &'static GameType) -> Result<(), MatchError> {
        let acts = self.checked.games[game.name].taken > 0;
        let mut understands = |dialect: Dialect| -> Result<bool, MatchError> {
            let trial = Trial { game, steps: FEW_STEPS, is_odd: false, is_patient: false };
            let run = self.run(trial, dialect, false, true)?;
            Ok(run.is_some_and(|run| run.tried.answered == run.tried.steps && (!acts || run.tried.taken > 0)))
        };
        let (spec, flat) = (understands(Dialect::Spec)?, understands(Dialect::Flat)?);
        let place = match (spec, flat) {
            (true, true) => "finds the state under `world_state` and at the top level",
            (true, false) => "reads the state under `world_state`",
            (false, true) => "reads the state at the top level",
            (false, false) => return Ok(()),
        };
        let better = if spec { "spec" } else { "flat" };
        let finding = match self.plan.agent.dialect {
            Dialect::Both => Finding::advice(
                format!("receives each state twice, and {place}"),
                format!("{{\"dialect\": \"{better}\"}} in its manifest.json halves its messages"),
            ),
            Dialect::Spec if !spec => Finding::wrong(
                format!("{place}, but its manifest asks for it under `world_state`"),
                "put {\"dialect\": \"flat\"} into manifest.json",
            ),
            Dialect::Flat if !flat => Finding::wrong(
                format!("{place}, but its manifest asks for it at the top level"),
                "put {\"dialect\": \"spec\"} into manifest.json",
            ),
            _ => {
                self.checked.fine.push(format!("{place}, as its manifest says"));
                return Ok(());
            }
        };
        self.checked.findings.push(finding);
        Ok(())
    }

    /// Starts the agent and plays a trial with it. Returns `None` if no further trial is possible; the
    /// findings contain the reason.
    fn run(
        &mut self,
        trial: Trial,
        dialect: Dialect,
        is_first: bool,
        sends_stop: bool,
    ) -> Result<Option<Run>, MatchError> {
        let mut trial_match = TrialMatch::new(trial.game, self.plan.seed)?;
        let mut session =
            match Session::start(self.start, trial_match.play.agents()[0].clone(), dialect, trial.game.limits) {
                Ok(session) => session,
                Err(NotStarted::System(error)) => return Err(error),
                Err(NotStarted::Agent(finding)) => {
                    self.add_new(vec![*finding]);
                    return Ok(None);
                }
            };
        session.seat.meet(trial_match.play.agents().iter().map(arena_model::AgentId::as_str));
        let took = session.shake_hands(&trial_match.config())?;
        let shaken = std::mem::take(&mut session.findings).finish(None);
        if is_first || took.is_none() {
            self.add_new(shaken);
        }
        let Some(took) = took else { return Ok(None) };
        if is_first {
            self.checked.fine.push(format!("starts and answers the ping in {} ms of 5000 ms", took.as_millis().max(1)));
            self.checked.name.clone_from(&session.seat.name);
            self.checked.version.clone_from(&session.seat.version);
        }
        let tried = play(&mut session, &mut trial_match, trial)?;
        let end = session.end(sends_stop, tried.steps);
        let findings = std::mem::take(&mut session.findings).finish(Some(trial.game.name));
        Ok(Some(Run { tried, findings, end }))
    }

    /// Adds the findings that the check hasn't made before.
    fn add_new(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            if !self.checked.findings.iter().any(|known| known.what == finding.what) {
                self.checked.findings.push(finding);
            }
        }
    }
}

/// Evaluates the times and counts of a run.
fn judge(game: &'static GameType, tried: TrialResult, mut findings: Vec<Finding>) -> GameCheck {
    let (limit, longest) = (Duration::from_millis(game.limits.step_ms), tried.longest);
    let times = format!(
        "the longest of {} steps took {} ms, and the limit is {} ms",
        tried.steps,
        longest.as_millis(),
        limit.as_millis()
    );
    let bank_ms = game.limits.bank_ms;
    let slow = if tried.overtime * 2 > tried.steps {
        let advice = format!(
            "decide faster: time beyond the limit comes from a bank of {bank_ms} ms, which won't last for the whole match"
        );
        Some(Finding::wrong(format!("is too slow: {times}"), advice))
    } else if tried.overtime > 0 {
        let advice = format!("time beyond the limit comes from a bank of {bank_ms} ms for the whole match");
        Some(Finding::advice(format!("sometimes takes too long: {times}"), advice))
    } else if longest * 2 > limit {
        Some(Finding::advice(
            format!("is close to the limit: {times}"),
            "decide faster, because a busy machine is slower than yours",
        ))
    } else {
        None
    };
    if tried.rejected > 0 && tried.taken == 0 {
        let what = format!("the game accepted none of its {} actions", tried.rejected);
        findings.push(Finding::wrong(what, "docs/games in the repository has the actions of each game"));
    }
    findings.extend(slow);
    for finding in &mut findings {
        finding.game = Some(game.name);
    }
    let is_wrong = findings.iter().any(|finding| finding.severity == Severity::Wrong);
    GameCheck {
        plays: !is_wrong && tried.taken > 0,
        steps: tried.steps,
        answered: tried.answered,
        taken: tried.taken,
        rejected: tried.rejected,
        longest_step_ms: (longest.as_secs_f64() * 1e6).round() / 1e3,
        step_limit_ms: game.limits.step_ms,
        findings,
    }
}
