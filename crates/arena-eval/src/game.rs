//! One game of the run: its session, and its record after the end.

use std::sync::Arc;

use arena_model::{
    ChallengeType, Channel, InviteCode, MemorySession, Party, Script, Seed, SessionFacts, SessionId, Timestamp,
};
use arena_players::{Cause, Halt, Origin, PlayPolicy, PlayedGame, Player, run_rules};
use serde_json::Value;

use crate::{GameRecord, SeatRecord, Transcript, TranscriptMessage};

/// The identity of a game in the records.
#[derive(Debug, Clone)]
pub(crate) struct GameLabel {
    pub(crate) game: String,
    /// The label of the challenge.
    pub(crate) challenge: String,
    /// The number of the seed, from 0.
    pub(crate) seed: usize,
    /// The names of the agents by seat.
    pub(crate) agents: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct FinishedGame {
    pub(crate) record: GameRecord,
    pub(crate) transcript: Transcript,
}

/// Opens a session and seats all players. All its ids follow from the seed.
///
/// # Errors
/// If the rules fail.
pub(crate) fn open(
    challenge: &Arc<dyn ChallengeType>,
    options: &Value,
    seats: usize,
    seed: &Seed,
) -> Result<MemorySession, Halt> {
    let player = |seat| InviteCode(seed.derive_uuid(&format!("eval/player/{seat}")));
    let facts = SessionFacts {
        script: challenge.script().map(Script::version),
        seed: Some(seed.clone()),
        options: options.clone(),
        invites: (0..seats).map(player).collect(),
        ..SessionFacts::bare(SessionId(seed.derive_uuid("eval/session")), challenge.id(), Timestamp(0))
    };
    let seated = run_rules(&**challenge, || MemorySession::seated(Arc::clone(challenge), facts));
    seated.map_err(|error| Halt::Failed(format!("the session cannot start: {error}")))
}

/// Plays a game to its end.
///
/// # Errors
/// [`Halt`] if the game can't go on in this invocation.
pub(crate) async fn play(
    label: &GameLabel,
    session: MemorySession,
    players: Vec<Box<dyn Player>>,
) -> Result<FinishedGame, Halt> {
    let played = arena_players::play(session, players, &PlayPolicy::AT_ONCE).await?;
    Ok(finish(label, &played))
}

fn finish(label: &GameLabel, played: &PlayedGame) -> FinishedGame {
    let PlayedGame { session, end, rounds, seats, origins } = played;
    let outcome = session.session();
    let seats = seats.iter().zip(&label.agents).zip(&outcome.scores).map(|((seat, agent), score)| SeatRecord {
        agent: agent.clone(),
        cause: seat.end.as_ref().map_or(Cause::Completed, |end| end.cause),
        detail: seat.end.as_ref().map(|end| end.detail.clone()),
        security: score.security,
        utility: score.utility,
        measured: seat.measured,
    });
    let attributions = outcome.attributions.iter();
    let record = GameRecord {
        game: label.game.clone(),
        challenge: label.challenge.clone(),
        seed: label.seed,
        seats: seats.collect(),
        end: *end,
        attributions: attributions.map(|each| (each.from.0, each.to.0, each.kind.clone())).collect(),
        told: run_rules(&**session.challenge(), || session.tell(&distinct_names(&label.agents))),
        rounds: *rounds,
    };
    let seat_of = |party: &Party| session.seat_of(party).map(|seat| seat.0);
    let messages = session.messages().iter().zip(origins).filter(|(message, _)| !message.channel.is_inputs());
    let messages = messages.map(|(message, Origin { round, call })| TranscriptMessage {
        round: *round,
        chat: matches!(message.channel, Channel::Chat(_)),
        from: seat_of(&message.from),
        to: message.to.as_ref().and_then(seat_of),
        content: message.content.clone(),
        method: message.method.clone(),
        call: call.filter(|_| message.from != Party::Operator),
    });
    let transcript = Transcript {
        game: label.game.clone(),
        players: session.names().to_vec(),
        messages: messages.collect(),
        state: outcome.state.clone(),
    };
    FinishedGame { record, transcript }
}

/// Returns the agents' names by seat. Copies of an agent have the number of their seat after the name.
pub(crate) fn distinct_names(agents: &[String]) -> Vec<String> {
    let name = |(seat, agent): (usize, &String)| {
        let is_single = agents.iter().filter(|other| *other == agent).count() == 1;
        if is_single { agent.clone() } else { format!("{agent} (player {})", seat + 1) }
    };
    agents.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_an_agent_have_different_names() {
        let names = |agents: &[&str]| {
            distinct_names(&agents.iter().map(|agent| (*agent).to_owned()).collect::<Vec<_>>()).join(", ")
        };
        assert_eq!(names(&["a", "b"]), "a, b");
        assert_eq!(names(&["a", "b", "a"]), "a (player 1), b, a (player 3)");
    }
}
