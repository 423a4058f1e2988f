//! The checks `determinism` and `restore`: equal seeds and actions give equal bytes, and the state survives
//! serialization.

use std::sync::{Arc, Mutex, PoisonError};

use arena_model::{
    ChallengeMetadata, ChallengeOption, ChallengeType, Operator, OptionsError, Rejection, RestoreError, Script, Seat,
    SessionFacts,
};
use serde_json::{Map, Value};

use crate::play::{Action, ActionResult, Subject, TestSession, excerpt};
use crate::words::Words;
use crate::{CheckPlan, Finding};

/// The number of games that are played twice.
const GAMES: u32 = 5;

/// The number of games that are played once with the rules kept in memory, and once with the rules restored before each
/// action.
const LASTING_GAMES: u32 = 4;

/// The number of actions in each of these games. It is small, because a script with rules kept in memory repeats all
/// earlier calls for each action.
const LASTING_ACTIONS: u32 = 40;

/// The maximum number of attempted actions in each of these games. Refused actions count.
const MAX_TRIED: u32 = 400;

/// Plays games twice, and serializes and restores the state after each action.
pub fn check(subject: Subject<'_>, plan: &CheckPlan) -> Vec<Finding> {
    let words = Words::of(subject.challenge.metadata());
    let (mut same, mut restored) = (None, None);
    let (mut actions, mut states) = (0, 0);
    for game in 0..plan.games.min(GAMES) {
        let seed = plan.seed.derive(&format!("repeat/{game}"));
        let mut rng = seed.rng("actions");
        // Both runs play each action before the next one, so that the action before the first difference is known.
        let (Ok(mut table), Ok(mut twin)) = (TestSession::seated(subject, &seed), TestSession::seated(subject, &seed))
        else {
            continue;
        };
        same = same.or_else(|| difference(&table, &twin, "the players have joined"));
        for _ in 0..plan.actions {
            if table.has_ended() || same.is_some() || restored.is_some() {
                break;
            }
            restored = restored.or_else(|| loss(subject, &table));
            states += 1;
            let seat = Seat(rng.below(table.seats() as u64) as usize);
            let action: Action = words.draw(&table, seat, &mut rng);
            let outcomes: [ActionResult; 2] = [table.act(&action), twin.act(&action)];
            actions += 1;
            if outcomes[0] != outcomes[1] {
                let what =
                    "the same action in the same game is once accepted and once refused, or refused with another text";
                same = Some(Finding::wrong("determinism", what).shown_by([
                    action.describe(),
                    format!("{:?}", outcomes[0]),
                    format!("{:?}", outcomes[1]),
                ]));
            }
            same = same.or_else(|| difference(&table, &twin, &action.describe()));
        }
    }
    let same = same.unwrap_or_else(|| {
        Finding::fine("determinism", format!("{actions} actions gave the same bytes when they were played again"))
    });
    let restored = restored
        .or_else(|| (0..LASTING_GAMES).find_map(|game| forgotten(subject, plan, &words, game)))
        .unwrap_or_else(|| Finding::fine("restore", format!("{states} states were restored unchanged")));
    vec![same, restored]
}

/// Returns the first difference between two runs of one game.
fn difference(table: &TestSession<'_>, twin: &TestSession<'_>, after: &str) -> Option<Finding> {
    let (a, b) = (table.bytes(), twin.bytes());
    if a == b {
        return None;
    }
    let lines =
        a.lines().zip(b.lines()).find(|(a, b)| a != b).unwrap_or(("(further messages)", "(no further messages)"));
    let what = "equal seeds and equal actions give different games: use the session's randomness only, and no state \
                outside of the challenge";
    let shown = [format!("after: {after}"), format!("once:  {}", lines.0), format!("again: {}", lines.1)];
    Some(Finding::wrong("determinism", what).shown_by(shown))
}

/// Restores and serializes the state, and returns a finding if the state has changed.
fn loss(subject: Subject<'_>, table: &TestSession<'_>) -> Option<Finding> {
    let state = &table.session().state;
    let again = match subject.challenge.restore(&table.session().facts, state) {
        Ok(operator) => operator.serialize(),
        Err(error) => {
            let what = format!("the serialized state cannot be restored: {error}");
            return Some(Finding::wrong("restore", what).shown_by([format!("state: {state}")]));
        }
    };
    let [before, after]: [Value; 2] = [state, &again].map(|text| serde_json::from_str(text).unwrap_or_default());
    let (path, [was, is]) = first_difference(String::new(), &before, &after)?;
    let what = format!(
        "the state changes when it is serialized and restored, at `{path}`: use only values that JSON can represent"
    );
    Some(Finding::wrong("restore", what).shown_by([format!("before: {was}"), format!("after:  {is}")]))
}

/// Returns the first difference between rules that stay in memory and rules that are restored before each action. A
/// difference means that the rules keep data outside of the state.
fn forgotten(subject: Subject<'_>, plan: &CheckPlan, words: &Words, game: u32) -> Option<Finding> {
    let seed = plan.seed.derive(&format!("repeat/lasting/{game}"));
    let mut rng = seed.rng("actions");
    let lasting: Arc<dyn ChallengeType> =
        Arc::new(Lasting { inner: Arc::clone(subject.challenge), operator: Arc::default() });
    let mut table = TestSession::seated(subject, &seed).ok()?;
    let twin = TestSession::seated(Subject { challenge: &lasting, ..subject }, &seed);
    let found = |after: &str, restored: &str, lasting: &str| {
        let what = "data is kept outside of the state, in a module's variable or a field that isn't serialized: it \
                    is lost before the next action, which starts from the state";
        let shown = [format!("after: {after}"), format!("restored:  {restored}"), format!("in memory: {lasting}")];
        Some(Finding::wrong("restore", what).shown_by(shown))
    };
    let mut twin = match twin {
        Ok(twin) => twin,
        Err(fault) => return found("the players join", "they can join", &fault.what),
    };
    let compared = |table: &TestSession<'_>, twin: &TestSession<'_>, after: &str| {
        let (a, b) = (table.bytes(), twin.bytes());
        let lines = || {
            a.lines().zip(b.lines()).find(|(a, b)| a != b).unwrap_or(("(further messages)", "(no further messages)"))
        };
        if a == b { None } else { found(after, lines().0, lines().1) }
    };
    if let Some(finding) = compared(&table, &twin, "the players have joined") {
        return Some(finding);
    }
    let mut taken = 0;
    for _ in 0..MAX_TRIED {
        if table.has_ended() || taken == LASTING_ACTIONS {
            return None;
        }
        let seat = Seat(rng.below(table.seats() as u64) as usize);
        let action = words.draw(&table, seat, &mut rng);
        // A refused action may have changed the rules in memory, whereas a server discards the changes.
        if table.act(&action) != ActionResult::Taken {
            continue;
        }
        taken += 1;
        let outcome = twin.act(&action);
        if outcome != ActionResult::Taken {
            return found(&action.describe(), "Taken", &format!("{outcome:?}"));
        }
        if let Some(finding) = compared(&table, &twin, &action.describe()) {
            return Some(finding);
        }
    }
    None
}

/// A challenge with one session. The session's rules stay in memory between actions.
struct Lasting {
    inner: Arc<dyn ChallengeType>,
    operator: SharedOperator,
}

/// The rules of the session in memory, or `None` before the session's creation.
type SharedOperator = Arc<Mutex<Option<Box<dyn Operator>>>>;

/// An operator that calls the rules in memory.
struct OperatorHandle(SharedOperator);

impl OperatorHandle {
    fn with<T>(&self, work: impl FnOnce(&mut dyn Operator) -> T) -> T {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(held.as_mut().expect("the session has been created").as_mut())
    }
}

impl Operator for OperatorHandle {
    fn join(&mut self, table: &mut arena_model::Table<'_>, seat: Seat) -> Result<(), Rejection> {
        self.with(|operator| operator.join(table, seat))
    }

    fn start(&mut self, table: &mut arena_model::Table<'_>) -> Result<(), Rejection> {
        self.with(|operator| operator.start(table))
    }

    fn message(
        &mut self,
        table: &mut arena_model::Table<'_>,
        seat: Seat,
        method: &str,
        content: &str,
    ) -> Result<(), Rejection> {
        self.with(|operator| operator.message(table, seat, method, content))
    }

    fn deadline(&mut self, table: &mut arena_model::Table<'_>) -> Result<(), Rejection> {
        self.with(|operator| operator.deadline(table))
    }

    fn serialize(&self) -> String {
        self.with(|operator| operator.serialize())
    }
}

impl ChallengeType for Lasting {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn metadata(&self) -> &ChallengeMetadata {
        self.inner.metadata()
    }

    fn options(&self) -> &[ChallengeOption] {
        self.inner.options()
    }

    fn resolve(&self, overrides: &Map<String, Value>) -> Result<Value, OptionsError> {
        self.inner.resolve(overrides)
    }

    fn seats(&self, options: &Value) -> usize {
        self.inner.seats(options)
    }

    fn script(&self) -> Option<&Script> {
        self.inner.script()
    }

    fn create(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        let operator = self.inner.create_lasting(facts)?;
        *self.operator.lock().unwrap_or_else(PoisonError::into_inner) = Some(operator);
        Ok(Box::new(OperatorHandle(Arc::clone(&self.operator))))
    }

    fn restore(&self, _facts: &SessionFacts, _state: &str) -> Result<Box<dyn Operator>, RestoreError> {
        Ok(Box::new(OperatorHandle(Arc::clone(&self.operator))))
    }
}

/// Returns the path of the first difference between two values, with a description.
fn first_difference(path: String, a: &Value, b: &Value) -> Option<(String, [String; 2])> {
    match (a, b) {
        _ if a == b => None,
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            let null = Value::Null;
            let value = |of: &Map<String, Value>, key: &str| of.get(key).unwrap_or(&null).clone();
            keys.into_iter().find_map(|key| {
                let [a, b] = [value(a, key), value(b, key)];
                first_difference(format!("{path}/{key}"), &a, &b)
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(index, (a, b))| first_difference(format!("{path}/{index}"), a, b))
        }
        _ => Some((path, [a, b].map(|value| excerpt(&value.to_string())))),
    }
}
