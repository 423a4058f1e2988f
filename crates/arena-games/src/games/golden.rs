//! Golden transcripts: every state of a seeded game, played by a policy that reads the state as an agent does.

use arena_model::{AgentId, AnyGame, Events, GameType, Seat, Seed, Setup};
use serde_json::{Map, Value};

/// An agent's strategy: a function from its seat and state to the text of its `actions`, or `None` for no reply.
pub trait Policy: FnMut(Seat, &Value) -> Option<String> {}

impl<F: FnMut(Seat, &Value) -> Option<String>> Policy for F {}

/// Starts a game of agents `a0`, `a1`, … with the seed of [`Seed::from_number`].
pub fn start(game: &'static GameType, agents: usize, seed: u64, options: Value) -> Box<dyn AnyGame> {
    let agents: Vec<AgentId> = (0..agents).map(|number| format!("a{number}").parse().unwrap()).collect();
    let options: Map<String, Value> = serde_json::from_value(options).unwrap();
    game.start(&options, Setup { seed: Seed::from_number(seed), agents }).unwrap()
}

pub fn state(game: &dyn AnyGame, seat: Seat) -> String {
    let mut state = b"{".to_vec();
    game.write_state(seat, &mut state);
    state.push(b'}');
    String::from_utf8(state).unwrap()
}

/// Plays at most `epochs` epochs and returns the transcript: each moving seat's state, the accepted and the rejected
/// actions, and the end.
pub fn transcript(game: &mut dyn AnyGame, seats: usize, epochs: u64, mut policy: impl Policy) -> String {
    let mut output = format!("config {}\n", Value::Object(game.config()));
    let mut events = Events::default();
    for epoch in 1..=epochs {
        if game.termination().is_some() {
            break;
        }
        let mut replies = vec![None; seats];
        let mut seen = String::new();
        for seat in (0..seats).map(Seat).filter(|seat| game.is_asked(*seat)) {
            let state = state(game, seat);
            replies[seat.0] = policy(seat, &serde_json::from_str(&state).unwrap());
            if state != seen {
                output += &format!("{epoch} seat {} sees {state}\n", seat.0);
                seen = state;
            }
        }
        let mut taken = Vec::new();
        let replies: Vec<Option<&str>> = replies.iter().map(Option::as_deref).collect();
        game.play(&replies, &mut taken, &mut events);
        output += &format!("{epoch} taken {}\n", String::from_utf8(taken).unwrap());
        for rejected in events.rejections() {
            output += &format!("{epoch} rejected {}\n", serde_json::to_string(rejected).unwrap());
        }
        for forfeit in events.forfeits() {
            output += &format!("{epoch} seat {} forfeits by {}: {}\n", forfeit.seat.0, forfeit.verdict, forfeit.detail);
        }
    }
    output += &format!("end {:?} scores {:?}\n", game.termination(), game.scores());
    output
}
