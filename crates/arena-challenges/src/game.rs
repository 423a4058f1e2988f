//! A game as text, for the tests of challenges: who does what, who is told what, and the scores.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use arena_model::{
    After, ChallengeType, Draft, House, InviteCode, Party, Patience, Phase, Seed, Session, SessionFacts, SessionId,
    Timestamp, Transition, act, join, open,
};
use serde_json::{Map, Value};

const HOUSE: House<'static> =
    House { patience: Patience { open_ms: None, active_ms: None }, self_play: true, benchmarks: &BTreeSet::new() };

/// One session of a challenge, and what has been said in it.
pub(crate) struct Game {
    challenge: Arc<dyn ChallengeType>,
    session: Session,
    log: String,
}

impl Game {
    /// A new session with these options, and with the seed that is all `seed`.
    pub(crate) fn new(challenge: &str, options: &Value, seed: u8) -> Game {
        let options = options.as_object().cloned().unwrap_or_default();
        let challenge = crate::builtin(challenge, &options).expect("it is built in").expect("the options are good");
        let id = |n: u8| format!("00000000-0000-7000-8000-0000000000{n:02x}");
        let facts = SessionFacts {
            id: id(0).parse::<SessionId>().expect("a UUID"),
            challenge: challenge.id().to_owned(),
            created_at: Timestamp(0),
            seed: Seed([seed; 32]),
            options: challenge.resolve(&Map::new()).expect("no overrides"),
            invites: (1..=challenge.metadata().players)
                .map(|n| format!("inv_{}", id(n as u8)).parse::<InviteCode>().expect("an invite"))
                .collect(),
        };
        let session = open(facts, &*challenge, HOUSE.patience);
        Game { challenge, session, log: String::new() }
    }

    /// Everybody joins, in order.
    pub(crate) fn start(mut self) -> Game {
        for invite in self.session.facts.invites.clone() {
            let now = Timestamp(1);
            let transition =
                join(&self.session, &*self.challenge, &HOUSE, invite, None, now).expect("the seat is free");
            self.take(transition);
        }
        self
    }

    /// The player with this number (from 1) acts. In `content`, `@name` stands for what the state has to say: see
    /// [`Game::fill_in`].
    pub(crate) fn act(mut self, player: usize, method: &str, content: &str) -> Game {
        let content = &self.fill_in(content);
        let from = self.session.facts.invites[player - 1];
        match act(&self.session, &*self.challenge, &HOUSE, from, Some(method), content, Timestamp(2)) {
            Ok(transition) => self.take(transition),
            Err(arena_model::ActError::Rejected(rejection)) => {
                let _ = writeln!(self.log, "{player} is refused: {} {}", rejection.code, rejection.message);
            }
            Err(error) => {
                let _ = writeln!(self.log, "{player} is refused: {error}");
            }
        }
        self
    }

    /// For `psi`: `@common` are the common numbers, `@one` the first of them, `@set2` the set of player 2.
    fn fill_in(&self, content: &str) -> String {
        let state = self.state();
        match content.strip_prefix('@') {
            Some("common") => state["intersectionSet"].to_string(),
            Some("one") => state["intersectionSet"][0].to_string(),
            Some(set) if set.starts_with("set") => {
                let player: usize = set[3..].parse().expect("a number");
                state["userSets"][player - 1].to_string()
            }
            _ => content.to_owned(),
        }
    }

    fn take(&mut self, transition: Transition) {
        for draft in &transition.drafts {
            let line = self.line(draft);
            let _ = writeln!(self.log, "{line}");
        }
        if let After::Becomes(after) = transition.after {
            assert_eq!(after.version, self.session.version + 1, "each change has a version of its own");
            assert_eq!(after.scores.len(), after.facts.invites.len(), "a score per seat");
            self.session = *after;
        }
    }

    fn line(&self, draft: &Draft) -> String {
        let name = |party: &Party| match party {
            Party::Operator => "operator".to_owned(),
            Party::Player(invite) => {
                (self.session.facts.invites.iter().position(|i| i == invite).unwrap_or(99) + 1).to_string()
            }
            Party::Other(name) => name.to_string(),
        };
        let to = draft.to.as_ref().map_or("all".to_owned(), name);
        format!("{} → {to}: {}", name(&draft.from), draft.content.escape_debug())
    }

    /// What was said since the last time, and how things stand if the game is over.
    pub(crate) fn told(&mut self) -> String {
        let mut text = std::mem::take(&mut self.log);
        if let Phase::Ended { .. } = self.session.phase {
            for attribution in &self.session.attributions {
                let (from, to) = (attribution.from.number(), attribution.to.number());
                let _ = writeln!(text, "{from} did {} to {to}", attribution.kind);
            }
        }
        text
    }

    /// What the operator remembers.
    pub(crate) fn state(&self) -> Value {
        serde_json::from_str(&self.session.state).expect("the state is JSON")
    }
}
