//! Forks that earlier versions created on the server: sessions that continue from an event of an ended session. Their
//! records name the original.

use std::sync::Arc;

use arena_engine::RecordSource;
use arena_model::{Seed, SessionFacts};
use arena_record::{ForkOf, Hash};
use serde::Deserialize;

/// The origin of a fork, as stored with the session.
#[derive(Deserialize)]
struct StoredOrigin {
    fork: ForkOf,
    /// The seed of the original. A reseeded fork plays with a seed that follows from it.
    seed: Hash,
}

fn stored_origin(source: &RecordSource) -> Option<StoredOrigin> {
    serde_json::from_str(source.origin()?).ok()
}

/// Returns the origin of a fork for its record; `None` for other sessions.
pub(super) fn origin_of(source: &RecordSource) -> Option<ForkOf> {
    stored_origin(source).map(|origin| origin.fork)
}

/// Gives a reseeded fork the seed of its original, which its record contains. Other sessions stay unchanged.
pub(super) fn with_original_seed(mut source: RecordSource) -> RecordSource {
    if let Some(origin) = stored_origin(&source).filter(|origin| origin.fork.reseeded) {
        let mut session = (*source.session).clone();
        let facts = SessionFacts { seed: Some(Seed(origin.seed.0)), ..(*session.facts).clone() };
        session.facts = Arc::new(facts);
        source.session = Arc::new(session);
    }
    source
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arena_model::{Channel, Draft, Party, Phase, Session, Timestamp};

    use super::*;

    #[test]
    fn the_record_of_a_stored_fork_names_the_original_and_has_its_seed() {
        let (id, of) = ("018f6b2e-0000-7000-8000-00000000abcd", "018f6b2e-0000-7000-8000-00000000abce");
        let facts = SessionFacts {
            seed: Some(Seed([1; 32])),
            is_unlisted: true,
            ..SessionFacts::bare(id.parse().unwrap(), "psi", Timestamp(5))
        };
        let session = Session { phase: Phase::Active, ..Session::blank(facts, "{}".to_owned()) };
        let source = |reseeded: bool| {
            let content =
                format!(r#"{{"fork":{{"of":"{of}","at":2,"reseeded":{reseeded}}},"seed":"{}"}}"#, "02".repeat(32));
            let channel = Channel::Inputs(session.facts.id);
            let draft = Draft { channel, from: Party::Operator, to: None, content, method: Some("fork".to_owned()) };
            let messages = vec![draft.at(0, Timestamp(5))];
            RecordSource { session: Arc::new(session.clone()), messages, commitments: BTreeMap::new() }
        };
        for (reseeded, seed) in [(true, 2), (false, 1)] {
            let of = of.parse().unwrap();
            assert_eq!(origin_of(&source(reseeded)), Some(ForkOf { of, at: 2, reseeded }));
            assert_eq!(with_original_seed(source(reseeded)).session.facts.seed, Some(Seed([seed; 32])));
        }
    }
}
