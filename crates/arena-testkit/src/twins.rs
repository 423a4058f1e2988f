//! A challenge with a replaced secret, for tests that compare two sessions with different secrets.

use std::borrow::Cow;
use std::sync::Arc;

use arena_model::{
    ChallengeMetadata, ChallengeOption, ChallengeType, Operator, OptionsError, Rejection, RestoreError, Seat,
    SessionFacts, Table,
};
use serde_json::{Map, Value};

/// A built-in challenge in which a secret is replaced after the deal. Its sessions have the same seed and commitment
/// as without the replacement.
pub struct WithSecret {
    challenge: Arc<dyn ChallengeType>,
    change: Box<dyn Fn(&mut Value) + Send + Sync>,
    greets_users: bool,
}

impl WithSecret {
    /// Returns the built-in challenge `id` with its default options. `change` replaces the secret in the operator's
    /// state, which is JSON.
    pub fn new(id: &str, change: impl Fn(&mut Value) + Send + Sync + 'static) -> WithSecret {
        let challenge =
            arena_games::challenge(id, &Map::new()).expect("a built-in challenge").expect("valid default options");
        WithSecret { challenge, change: Box::new(change), greets_users: false }
    }

    /// Lets the operator send each player its own user id in private, at the start.
    #[must_use]
    pub fn greeting_users(self) -> WithSecret {
        WithSecret { greets_users: true, ..self }
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
        let operator = self.challenge.restore(facts, state)?;
        Ok(if self.greets_users { Box::new(Greeting(operator)) } else { operator })
    }
}

/// An operator that sends each player its own user id in private, at the start.
struct Greeting(Box<dyn Operator>);

impl Operator for Greeting {
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection> {
        self.0.join(table, seat)
    }

    fn start(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        self.0.start(table)?;
        for seat in table.seats() {
            if let Some(user) = table.user(seat) {
                table.send(seat, format!("Welcome, {user}."));
            }
        }
        Ok(())
    }

    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection> {
        self.0.message(table, seat, method, content)
    }

    fn deadline(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        self.0.deadline(table)
    }

    fn awaited(&self) -> Option<Vec<Seat>> {
        self.0.awaited()
    }

    fn serialize(&self) -> String {
        self.0.serialize()
    }
}
