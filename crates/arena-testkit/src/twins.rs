//! A challenge with a replaced secret, for tests that compare two sessions with different secrets.

use std::borrow::Cow;
use std::sync::Arc;

use arena_model::{
    ChallengeMetadata, ChallengeOption, ChallengeType, Operator, OptionsError, Rejection, RestoreError, SessionFacts,
};
use serde_json::{Map, Value};

/// A built-in challenge in which a secret is replaced after the deal. Its sessions have the same seed and commitment
/// as without the replacement.
pub struct WithSecret {
    challenge: Arc<dyn ChallengeType>,
    change: Box<dyn Fn(&mut Value) + Send + Sync>,
}

impl WithSecret {
    /// Returns the built-in challenge `id` with its default options. `change` replaces the secret in the operator's
    /// state, which is JSON.
    pub fn new(id: &str, change: impl Fn(&mut Value) + Send + Sync + 'static) -> WithSecret {
        let challenge =
            arena_games::challenge(id, &Map::new()).expect("a built-in challenge").expect("valid default options");
        WithSecret { challenge, change: Box::new(change) }
    }
}

impl ChallengeType for WithSecret {
    fn id(&self) -> &str {
        self.challenge.id()
    }

    fn metadata(&self) -> &ChallengeMetadata {
        self.challenge.metadata()
    }

    fn metadata_with(&self, options: &Value) -> Cow<'_, ChallengeMetadata> {
        self.challenge.metadata_with(options)
    }

    fn options(&self) -> &[ChallengeOption] {
        self.challenge.options()
    }

    fn resolve(&self, overrides: &Map<String, Value>) -> Result<Value, OptionsError> {
        self.challenge.resolve(overrides)
    }

    fn create(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        let dealt = self.challenge.create(facts)?.serialize();
        let mut state: Value = serde_json::from_str(&dealt).expect("the state is JSON");
        (self.change)(&mut state);
        Ok(self.restore(facts, &state.to_string()).expect("only a secret was replaced"))
    }

    fn restore(&self, facts: &SessionFacts, state: &str) -> Result<Box<dyn Operator>, RestoreError> {
        self.challenge.restore(facts, state)
    }
}
