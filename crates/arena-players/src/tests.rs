//! Tests of sessions in memory with the built-in challenges.

use std::sync::{Arc, Mutex};

use arena_house::Step;
use arena_model::{
    ActError, ChallengeMetadata, ChallengeOption, ChallengeType, ChatMessage, InviteCode, MemorySession, Operator,
    OptionsError, Rejection, RestoreError, Seat, Seed, SessionFacts, SessionId, Table, Timestamp,
};
use serde_json::{Map, Value};

use crate::{Answer, Answering, GameEnd, Heard, PlayPolicy, Player, SeatEnd, StepResult, message_for, play};

fn built_in(challenge: &str) -> Arc<dyn ChallengeType> {
    arena_games::challenge(challenge, &Map::new()).expect("built in").expect("the defaults are valid")
}

/// Opens a session with all players.
pub fn seated(challenge: &str, seed: u64) -> MemorySession {
    seated_in(built_in(challenge), seed)
}

fn seated_in(challenge: Arc<dyn ChallengeType>, seed: u64) -> MemorySession {
    let options = challenge.resolve(&Map::new()).expect("the defaults are valid");
    let seed = Seed::from_number(seed);
    let player = |seat: usize| InviteCode(seed.derive_uuid(&format!("player/{seat}")));
    let invites = (0..challenge.seats(&options)).map(player).collect();
    let bare = SessionFacts::bare(SessionId(seed.derive_uuid("session")), challenge.id(), Timestamp(0));
    let facts = SessionFacts { seed: Some(seed), options, invites, ..bare };
    MemorySession::seated(challenge, facts).expect("the rules don't fail")
}

fn awaited(session: &MemorySession) -> Vec<bool> {
    (0..session.names().len()).map(|seat| session.awaits(Seat(seat))).collect()
}

#[test]
fn private_messages_reach_their_player_only() {
    let mut session = seated("psi", 7);
    let to = session.names()[0].clone();
    session.say(Seat(1), "for you", Some(&to)).unwrap();
    assert!(session.say(Seat(1), "for no one", Some("inv_nobody")).is_err());
    let last = session.messages().last().unwrap();
    for seat in [Seat(0), Seat(1)] {
        let message = message_for(&session, last, seat);
        assert_eq!((message.content.as_str(), message.redacted), ("for you", false));
    }
    let is_dealt = |message: &&ChatMessage| message.to.is_some() && message.channel != last.channel;
    let secret = session.messages().iter().find(is_dealt).unwrap();
    let owner = session.seat_of(secret.to.as_ref().unwrap()).unwrap();
    let other = message_for(&session, secret, Seat(1 - owner.0));
    assert_eq!((other.content.as_str(), other.redacted), ("", true));
    assert!(!message_for(&session, secret, owner).content.is_empty());
}

#[test]
fn the_game_awaits_the_players_that_have_not_acted() {
    let mut psi = seated("psi", 7);
    assert_eq!(awaited(&psi), [true, true]);
    let Err(ActError::Rejected(refusal)) = psi.act(Seat(0), "guess", "x") else { panic!() };
    assert_eq!(refusal.code, "INVALID_GUESS");
    assert_eq!(awaited(&psi), [true, true]);
    psi.act(Seat(0), "guess", "1").unwrap();
    assert_eq!(awaited(&psi), [false, true]);
    assert!(!psi.advance().unwrap(), "psi has no deadline");

    let mut chess = seated("chess", 7);
    let mover = awaited(&chess).iter().position(|is_awaited| *is_awaited).unwrap();
    assert!(!chess.awaits(Seat(1 - mover)));
    let e4 = r#"[{"action": "move", "move": "e2e4"}]"#;
    let moved = chess.act(Seat(mover), "actions", e4);
    assert_eq!(moved.is_ok(), chess.awaits(Seat(1 - mover)), "{moved:?}");
    assert!(chess.advance().unwrap(), "a player without an answer is out");
    assert!(chess.is_over());
}

#[test]
fn a_resumed_session_awaits_the_same_players() {
    for challenge in arena_games::challenges() {
        let mut session = seated(challenge, 7);
        for (seat, content) in [(Seat(0), "1"), (Seat(1), r#"[{"action": "move", "move": "e2e4"}]"#), (Seat(0), "")] {
            for method in session.challenge().metadata().methods.clone() {
                // Refused actions change nothing.
                let _ = session.act(seat, &method.name, content);
            }
        }
        let (state, messages) = session.clone().into_parts();
        let resumed = MemorySession::resume(session.challenge().clone(), state, messages);
        assert_eq!(awaited(&resumed), awaited(&session), "{challenge}");
        assert_eq!(resumed.announces_turns(), session.announces_turns(), "{challenge}");
    }
}

/// A challenge whose rules can't determine the awaited seats, like those of a script.
struct Scriptlike(Arc<dyn ChallengeType>);

struct ScriptlikeOperator(Box<dyn Operator>);

impl Operator for ScriptlikeOperator {
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection> {
        self.0.join(table, seat)
    }

    fn start(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        self.0.start(table)
    }

    fn message(&mut self, table: &mut Table<'_>, seat: Seat, _method: &str, _content: &str) -> Result<(), Rejection> {
        table.send(seat, "Your guess is noted.");
        Ok(())
    }

    fn serialize(&self) -> String {
        self.0.serialize()
    }
}

impl ChallengeType for Scriptlike {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn metadata(&self) -> &ChallengeMetadata {
        self.0.metadata()
    }

    fn options(&self) -> &[ChallengeOption] {
        self.0.options()
    }

    fn resolve(&self, overrides: &Map<String, Value>) -> Result<Value, OptionsError> {
        self.0.resolve(overrides)
    }

    fn seats(&self, options: &Value) -> usize {
        self.0.seats(options)
    }

    fn create(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        Ok(Box::new(ScriptlikeOperator(self.0.create(facts)?)))
    }

    fn restore(&self, facts: &SessionFacts, state: &str) -> Result<Box<dyn Operator>, RestoreError> {
        Ok(Box::new(ScriptlikeOperator(self.0.restore(facts, state)?)))
    }
}

/// A player that waits, and notes the seat of each reminder.
struct Reminded(Arc<Mutex<Vec<Seat>>>);

impl Player for Reminded {
    fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a> {
        if heard.is_reminded {
            self.0.lock().unwrap().push(heard.seat);
        }
        Box::pin(async { Ok(Answer::Steps { steps: Vec::new(), waits: true, call: None }) })
    }

    fn learn(&mut self, _steps: &[Step], _results: &[StepResult]) -> Option<SeatEnd> {
        None
    }
}

#[tokio::test]
async fn a_player_that_has_acted_before_the_fork_is_not_reminded() {
    let mut session = seated_in(Arc::new(Scriptlike(built_in("psi"))), 7);
    let before = session.messages().len();
    session.act(Seat(0), "guess", "1").unwrap();
    let to_actor = |message: &ChatMessage| message.to.as_ref().and_then(|to| session.seat_of(to)) == Some(Seat(0));
    assert!(session.messages()[before..].iter().any(to_actor), "the rules answer the actor");
    let challenge = Arc::clone(session.challenge());
    let (session, messages) = session.into_parts();
    let reminded = Arc::new(Mutex::new(Vec::new()));
    let player = || Box::new(Reminded(Arc::clone(&reminded))) as Box<dyn Player>;
    let fork = MemorySession::resume(challenge, session, messages);
    let game = play(fork, vec![player(), player()], &PlayPolicy::IN_TURN).await.unwrap();
    assert_eq!(game.end, GameEnd::Stalled);
    assert_eq!(*reminded.lock().unwrap(), [Seat(1); PlayPolicy::IN_TURN.reminders as usize]);
}
