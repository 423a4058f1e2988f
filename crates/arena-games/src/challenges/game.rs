//! Games as text for the tests of challenges: actions, messages and scores.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use arena_model::{
    ActError, After, ChallengeType, Draft, Party, Phase, Seed, Session, SessionFacts, SessionPolicy, Timestamp,
    Transition, act, join, open,
};
use serde_json::{Map, Value};

/// An action of a player: its number (from 1), the method, the content.
pub(crate) type Action = (usize, &'static str, String);

/// A session of a challenge and its messages.
#[derive(Clone)]
pub(crate) struct Game {
    challenge: Arc<dyn ChallengeType>,
    session: Session,
    log: Vec<Line>,
}

/// The scores of a game that has ended, by seat.
#[derive(Debug, PartialEq)]
pub(crate) struct FinalScores {
    pub(crate) security: Vec<f64>,
    pub(crate) utility: Vec<f64>,
    /// The pairs of players with a breach, the causing player first, by their numbers.
    pub(crate) breaches: BTreeSet<(usize, usize)>,
}

/// A message.
#[derive(Clone)]
struct Line {
    /// The number of the player who may read the message, or `None` for everyone.
    reader: Option<usize>,
    text: String,
}

impl Game {
    /// Creates a session with these options, and a seed whose bytes are all `seed`.
    pub(crate) fn new(challenge: &str, options: &Value, seed: u8) -> Game {
        let options = options.as_object().cloned().unwrap_or_default();
        let challenge = crate::challenge(challenge, &options).expect("it is built in").expect("the options are good");
        Game::of(challenge, seed)
    }

    /// Creates a session with a seed whose bytes are all `seed`.
    pub(crate) fn of(challenge: Arc<dyn ChallengeType>, seed: u8) -> Game {
        let facts = SessionFacts::numbered(&*challenge, Seed([seed; 32]), 0).expect("no overrides");
        let session = open(facts, &*challenge, SessionPolicy::UNBOUNDED.inactivity).expect("built-in rules don't fail");
        Game { challenge, session, log: Vec::new() }
    }

    /// Replaces the part of the operator's state at a JSON pointer by `value`, as if the deal had produced it.
    pub(crate) fn put(mut self, pointer: &str, value: Value) -> Game {
        let mut state = self.state();
        *state.pointer_mut(pointer).expect("the pointer points to something") = value;
        self.session.state = state.to_string();
        self
    }

    /// Lets all players join who haven't, in order.
    pub(crate) fn start(self) -> Game {
        (self.session.seats.len()..self.session.facts.invites.len()).fold(self, |game, _| game.join())
    }

    pub(crate) fn join(mut self) -> Game {
        let invite = self.session.facts.invites[self.session.seats.len()];
        let transition = join(&self.session, &*self.challenge, &SessionPolicy::UNBOUNDED, invite, None, Timestamp(1))
            .expect("the seat is free");
        self.take(transition);
        self
    }

    /// Performs an action of the player with this number (from 1). A content that begins with `@/` is a JSON pointer
    /// into the operator's state, and is replaced by the value there.
    pub(crate) fn act(self, player: usize, method: &str, content: &str) -> Game {
        let meant = content.strip_prefix('@').and_then(|pointer| self.state().pointer(pointer).map(Value::to_string));
        self.send(player, method, meant.as_deref().unwrap_or(content))
    }

    /// Performs actions one after the other, with their contents unchanged.
    pub(crate) fn play(self, actions: &[Action]) -> Game {
        actions.iter().fold(self, |game, (player, method, content)| game.send(*player, method, content))
    }

    fn send(mut self, player: usize, method: &str, content: &str) -> Game {
        let from = self.session.facts.invites[player - 1];
        match act(&self.session, &*self.challenge, &SessionPolicy::UNBOUNDED, from, Some(method), content, Timestamp(2))
        {
            Ok(transition) => self.take(transition),
            Err(error) => {
                let code = match &error {
                    ActError::Rejected(rejection) => format!("{} ", rejection.code),
                    _ => String::new(),
                };
                self.log.push(Line { reader: Some(player), text: format!("{player} is refused: {code}{error}") });
            }
        }
        self
    }

    fn take(&mut self, transition: Transition) {
        // A change begins with its input or its action, so that the messages suffice to repeat it.
        let is_changed = matches!(transition.after, After::Changed(_));
        let causes: Vec<usize> =
            (0..).zip(&transition.drafts).filter(|(_, draft)| draft.method.is_some()).map(|(at, _)| at).collect();
        assert_eq!(causes, if is_changed { vec![0] } else { Vec::new() });
        for draft in transition.drafts.iter().filter(|draft| !draft.channel.is_inputs()) {
            let line = self.line(draft);
            self.log.push(line);
        }
        if let After::Changed(after) = transition.after {
            assert_eq!(after.version, self.session.version + 1, "each change increments the version");
            assert_eq!(after.scores.len(), after.facts.invites.len(), "a score per seat");
            let restored =
                self.challenge.restore(&after.facts, &after.state).expect("what was serialized can be restored");
            assert_eq!(restored.serialize(), after.state, "the serialized state is complete");
            self.session = *after;
        }
    }

    fn line(&self, draft: &Draft) -> Line {
        let number = |party: &Party| match party {
            Party::Player(invite) => self.session.facts.invites.iter().position(|i| i == invite).map(|seat| seat + 1),
            Party::Operator | Party::Other(_) => None,
        };
        let name = |party: &Party| number(party).map_or_else(|| party.to_string(), |number| number.to_string());
        let to = draft.to.as_ref().map_or("all".to_owned(), name);
        let content = draft.content.escape_debug().to_string().replace("\\'", "'");
        Line {
            reader: number(&draft.from).or(draft.to.as_ref().and_then(number)),
            text: format!("{} → {to}: {content}", name(&draft.from)),
        }
    }

    /// Returns the messages, and the result if the game has ended.
    pub(crate) fn transcript(&self) -> String {
        let mut text: String = self.log.iter().map(|line| format!("{}\n", line.text)).collect();
        if self.ended() {
            for attribution in &self.session.attributions {
                let (from, to) = (attribution.from.number(), attribution.to.number());
                let _ = writeln!(text, "{from} did {} to {to}", attribution.kind);
            }
        }
        text
    }

    /// Returns the messages visible to the player with this number, up to the first one that contains one of
    /// `revelations`.
    pub(crate) fn seen_by(&self, player: usize, revelations: &[&str]) -> Vec<String> {
        self.log
            .iter()
            .filter(|line| line.reader.is_none_or(|reader| reader == player))
            .map(|line| line.text.clone())
            .take_while(|text| !revelations.iter().any(|revelation| text.contains(revelation)))
            .collect()
    }

    /// Returns true if the player with this number has a private message.
    pub(crate) fn has_mail(&self, player: usize) -> bool {
        self.log.iter().any(|line| line.reader == Some(player))
    }

    pub(crate) fn end(&self) -> Option<FinalScores> {
        let breaches = self.session.attributions.iter().map(|attribution| {
            assert_eq!(attribution.kind, "security_breach");
            (attribution.from.number(), attribution.to.number())
        });
        self.ended().then(|| FinalScores {
            security: self.session.scores.iter().map(|score| score.security).collect(),
            utility: self.session.scores.iter().map(|score| score.utility).collect(),
            breaches: breaches.collect(),
        })
    }

    /// Returns true if the last action was refused.
    pub(crate) fn refused(&self) -> bool {
        self.log.last().is_some_and(|line| line.text.contains(" is refused: "))
    }

    pub(crate) fn ended(&self) -> bool {
        matches!(self.session.phase, Phase::Ended { .. })
    }

    pub(crate) fn state(&self) -> Value {
        serde_json::from_str(&self.session.state).expect("the state is JSON")
    }
}

/// Checks an arena's options and returns the result: `fine`, or the error.
pub(crate) fn verdict(challenge: &str, options: &Value) -> String {
    let options = options.as_object().cloned().unwrap_or_default();
    let result = crate::challenge(challenge, &options).expect("it is built in");
    result.err().map_or("fine".to_owned(), |error| error.to_string())
}

/// `wishes` are a client's options; the rest has defaults. Returns `fine`, or the error.
pub(crate) fn verdict_on_wishes(challenge: &str, wishes: &Value) -> String {
    let challenge = crate::challenge(challenge, &Map::new()).expect("it is built in").expect("its defaults are good");
    let wishes = wishes.as_object().cloned().unwrap_or_default();
    challenge.resolve(&wishes).err().map_or("fine".to_owned(), |error| error.to_string())
}

/// Returns `count` different seeds, always the same ones.
pub(crate) fn seeds(count: u32) -> impl Iterator<Item = Seed> {
    (0..count).map(|n| {
        let mut seed = [0; 32];
        seed[..4].copy_from_slice(&n.to_le_bytes());
        Seed(seed)
    })
}
