//! Sessions that differ in nothing but a secret.

use std::sync::Arc;

use arena_model::{ChallengeMetadata, ChallengeType, Operator, OptionsError, RestoreError, Seed};
use serde_json::{Map, Value, json};

/// `psi`, but what only seat 1 holds is replaced after dealing: the same seed, the same commitment, another secret.
pub struct PsiWithSecret {
    psi: Arc<dyn ChallengeType>,
    secret: Vec<u64>,
}

impl PsiWithSecret {
    /// `psi` in which seat 1 holds the common numbers and `secret`. These shouldn't be in the range that is dealt from, so
    /// that nobody else has them.
    pub fn new(secret: Vec<u64>) -> PsiWithSecret {
        let psi =
            arena_challenges::builtin("psi", &Map::new()).expect("psi is built in").expect("its defaults are good");
        PsiWithSecret { psi, secret }
    }
}

impl ChallengeType for PsiWithSecret {
    fn id(&self) -> &str {
        self.psi.id()
    }

    fn metadata(&self) -> &ChallengeMetadata {
        self.psi.metadata()
    }

    fn resolve(&self, overrides: &Map<String, Value>) -> Result<Value, OptionsError> {
        self.psi.resolve(overrides)
    }

    fn create(&self, options: &Value, seed: &Seed) -> Box<dyn Operator> {
        let dealt = self.psi.create(options, seed).serialize();
        let mut state: Value = serde_json::from_str(&dealt).expect("the state is JSON");
        let mut numbers: Vec<u64> =
            serde_json::from_value(state["intersectionSet"].clone()).expect("a list of numbers");
        numbers.extend(&self.secret);
        numbers.sort_unstable();
        state["userSets"][1] = json!(numbers);
        self.restore(&state.to_string()).expect("only numbers were replaced")
    }

    fn restore(&self, state: &str) -> Result<Box<dyn Operator>, RestoreError> {
        self.psi.restore(state)
    }
}
