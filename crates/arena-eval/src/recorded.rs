//! The calls of a run: those of a run that goes on, or those of a folder from which games are played again. The latter
//! are only read, and compared with the calls that the game needs.

use std::sync::Arc;

use arena_llm::Spent;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use crate::calls::CallStore;
use crate::folder::{CallFile, FolderError};
use crate::record::{CallLine, CallRecord};

/// The calls of the models of a run.
pub(crate) enum Calls {
    /// The answers of endpoints are added.
    Store(Arc<CallStore>),
    Recorded(Arc<RecordedCalls>),
}

impl Calls {
    pub(crate) fn find(&self, key: &str) -> Result<Option<CallLine>, FolderError> {
        match self {
            Calls::Store(store) => store.find(key),
            Calls::Recorded(calls) => calls.file.find(key),
        }
    }

    /// Returns the costs of a request's attempts without an answer.
    pub(crate) fn paid(&self, key: &str) -> Spent {
        match self {
            Calls::Store(store) => store.paid(key),
            Calls::Recorded(calls) => calls.file.index.paid(key),
        }
    }
}

/// A value of a file that the recorded answers don't give.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The file and the place in its line, such as `journal.jsonl: seats[0].security`.
    pub place: String,
    /// The value in the file.
    pub recorded: Value,
    /// The value that the recorded answers give.
    pub replayed: Value,
}

impl Difference {
    pub(crate) fn new(place: impl Into<String>, recorded: impl Into<Value>, replayed: impl Into<Value>) -> Difference {
        Difference { place: place.into(), recorded: recorded.into(), replayed: replayed.into() }
    }
}

/// Adds the differences of two values to `found`.
pub(crate) fn compare(place: &str, recorded: &Value, replayed: &Value, found: &mut Vec<Difference>) {
    match (recorded, replayed) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let [old, new] = [old, new].map(|map| map.get(key).unwrap_or(&Value::Null));
                compare(&format!("{place}{}{key}", if place.ends_with(": ") { "" } else { "." }), old, new, found);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for at in 0..old.len().max(new.len()) {
                let [old, new] = [old, new].map(|list| list.get(at).unwrap_or(&Value::Null));
                compare(&format!("{place}[{at}]"), old, new, found);
            }
        }
        _ if recorded == replayed => {}
        _ => found.push(Difference::new(place, recorded.clone(), replayed.clone())),
    }
}

/// The calls of a recorded run.
pub(crate) struct RecordedCalls {
    file: Arc<CallFile>,
    needed: Mutex<NeededCalls>,
}

/// The calls that a game has needed.
#[derive(Default)]
pub(crate) struct NeededCalls {
    /// The seats and numbers of the calls that were found.
    pub(crate) found: Vec<(usize, u32)>,
    /// The seat and number of a call that isn't recorded.
    pub(crate) missing: Option<(usize, u32)>,
    /// The values in lines of calls that differ.
    pub(crate) differences: Vec<Difference>,
}

impl RecordedCalls {
    pub(crate) fn new(file: Arc<CallFile>) -> RecordedCalls {
        RecordedCalls { file, needed: Mutex::default() }
    }

    /// Notes a call that a game needs. `expected` has the values that follow from the game.
    pub(crate) fn note(&self, recorded: &CallRecord, expected: &CallRecord) {
        let mut needed = self.needed.lock();
        needed.found.extend(expected.seat.map(|seat| (seat, expected.number)));
        let [recorded, expected] = [recorded, expected].map(|call| serde_json::to_value(call).unwrap_or_default());
        let place = format!("calls.jsonl, seat {}, number {}: ", expected["seat"], expected["number"]);
        compare(&place, &recorded, &expected, &mut needed.differences);
    }

    /// Notes a call that a game needs and that isn't recorded.
    pub(crate) fn miss(&self, seat: usize, number: u32) {
        self.needed.lock().missing.get_or_insert((seat, number));
    }

    /// Returns what was noted since the last time.
    pub(crate) fn take(&self) -> NeededCalls {
        std::mem::take(&mut self.needed.lock())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_have_a_place() {
        let mut found = Vec::new();
        let recorded = json!({"end": "completed", "seats": [{"security": 1.0}, {"security": 0.0}], "told": "A."});
        let replayed = json!({"end": "completed", "seats": [{"security": -1.0}], "rounds": 2, "told": "A."});
        compare("journal: ", &recorded, &replayed, &mut found);
        let places: Vec<&str> = found.iter().map(|difference| difference.place.as_str()).collect();
        assert_eq!(places, ["journal: seats[0].security", "journal: seats[1]", "journal: rounds"]);
        assert_eq!((&found[0].recorded, &found[0].replayed), (&json!(1.0), &json!(-1.0)));
        assert_eq!(found[1].replayed, Value::Null);
    }
}
