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
