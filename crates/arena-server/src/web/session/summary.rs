//! Names, sentences and pictures of a session: the challenge's name, the players' names, the result, the picture and,
//! after the end, the players' secrets.

use std::collections::BTreeMap;

use arena_model::{
    Attribution, Channel, EndedGame, Said, Scene, Score, Seat, Secret, SessionId, Status, UserId, UserProfile, Viewer,
    printable,
};
use arena_wire::Message;
use maud::{Markup, PreEscaped};

use super::redacted::{RedactedSession, read_message};
use super::unknown_session;
use crate::arena::Arena;
use crate::web::PageResult;
use crate::web::components::picture;

/// Number of characters after which a name in a sentence is cut.
const LONGEST_NAME: usize = 40;

/// Number of the operator's latest messages from which the picture of a live session is drawn.
const LATEST: usize = 24;

/// Maximum size of a picture, in bytes. With the rest, a page stays below 100 KB.
const PICTURE_BYTES: usize = 16_000;

/// The names and the result of a session, for viewers without identity.
#[derive(Clone)]
pub(crate) struct SessionSummary {
    /// The challenge's name, such as `Private Set Intersection`.
    pub(crate) challenge: String,
    /// The players' names by seat: `Player 1` until names are public.
    pub(crate) names: Vec<String>,
    /// The names for sentences: names in right-to-left scripts are isolated from the words around them.
    pub(crate) isolated: Vec<String>,
    /// The result as a sentence; `None` until the end.
    pub(crate) sentence: Option<String>,
    scores: Vec<Score>,
    attributions: Vec<Attribution>,
}

impl SessionSummary {
    pub(crate) fn of(
        arena: &Arena,
        session: &RedactedSession,
        profiles: &BTreeMap<UserId, UserProfile>,
    ) -> SessionSummary {
        let challenges = arena.engine.challenges();
        let challenge = challenges.get(&session.challenge_type);
        let name = |(seat, player): (usize, &String)| match session.name_of(player, profiles) {
            Some((_, name)) => shorten(name),
            None => format!("Player {}", seat + 1),
        };
        let attributions = session.state.attributions.iter().filter_map(|attribution| {
            let [from, to] = [&attribution.from, &attribution.to].map(|player| session.seat_of(player).map(Seat));
            Some(Attribution { from: from?, to: to?, kind: attribution.kind.clone() })
        });
        let names: Vec<String> = session.state.players.iter().enumerate().map(name).collect();
        let mut summary = SessionSummary {
            challenge: challenge.map_or(&session.challenge_type, |challenge| &challenge.metadata().name).clone(),
            isolated: names.iter().map(|name| isolate(name)).collect(),
            names,
            sentence: None,
            scores: session.state.scores.clone(),
            attributions: attributions.collect(),
        };
        summary.sentence = match (session.status(), challenge) {
            (Status::Open | Status::Active, _) => None,
            _ if session.state.abandoned => Some("The game ended because nobody moved for too long.".to_owned()),
            (Status::Ended, Some(challenge)) => Some(challenge.tell(&summary.ended(session))),
            (Status::Ended, None) => Some(summary.ended(session).tell_scores()),
        };
        summary
    }

    /// Returns the result as a sentence for the player at a seat: `You found the common numbers.` `None` until the end.
    pub(crate) fn tell_player(&self, arena: &Arena, session: &RedactedSession, seat: usize) -> Option<String> {
        let challenges = arena.engine.challenges();
        let challenge = challenges.get(&session.challenge_type).filter(|_| !session.state.abandoned);
        let (Some(challenge), Some(_)) = (challenge, &self.sentence) else { return self.sentence.clone() };
        let mut names = self.isolated.clone();
        *names.get_mut(seat)? = ADDRESSED.to_owned();
        Some(in_second_person(&challenge.tell(&self.ended_with(&names, session))))
    }

    /// Returns the summary for the player at a seat, whose name is `You`.
    pub(crate) fn addressing(&self, seat: usize) -> SessionSummary {
        let mut summary = self.clone();
        for (names, name) in [(&mut summary.names, "You"), (&mut summary.isolated, ADDRESSED)] {
            if let Some(own) = names.get_mut(seat) {
                name.clone_into(own);
            }
        }
        summary
    }

    fn ended<'t>(&'t self, session: &'t RedactedSession) -> EndedGame<'t> {
        self.ended_with(&self.isolated, session)
    }

    fn ended_with<'t>(&'t self, names: &'t [String], session: &'t RedactedSession) -> EndedGame<'t> {
        EndedGame { names, scores: &self.scores, attributions: &self.attributions, state: session.game_state.get() }
    }

    /// Returns the page's title: the result, or the challenge's name until the end.
    pub(crate) fn title(&self) -> &str {
        self.sentence.as_deref().unwrap_or(&self.challenge)
    }

    /// Draws a session for viewers without identity: the public state of a live game, or all of an ended one. Without
    /// such a picture, returns the picture of the challenge type.
    pub(crate) async fn picture(&self, arena: &Arena, session: &RedactedSession) -> PageResult<Markup> {
        let texts = match session.status() {
            Status::Active => public_texts(arena, session).await?,
            Status::Open | Status::Ended => Vec::new(),
        };
        let scene = Scene {
            names: &self.isolated,
            players: &session.state.players,
            options: &session.options,
            ended: (session.status() == Status::Ended).then(|| self.ended(session)),
            texts: &texts,
        };
        let challenges = arena.engine.challenges();
        let drawn = challenges.get(&session.challenge_type).and_then(|challenge| challenge.draw(&scene));
        let drawn = drawn.filter(|drawn| drawn.len() <= PICTURE_BYTES);
        Ok(drawn.map_or_else(|| picture(&session.challenge_type), |drawn| PreEscaped(in_labels(drawn))))
    }

    /// Returns the players' secrets; none until the end.
    pub(crate) fn secrets(&self, arena: &Arena, session: &RedactedSession) -> Vec<Secret> {
        let challenges = arena.engine.challenges();
        let challenge = challenges.get(&session.challenge_type).filter(|_| session.status() == Status::Ended);
        let secrets = challenge.map_or_else(Vec::new, |challenge| challenge.disclose(&self.ended(session)));
        secrets.into_iter().map(|secret| Secret { title: in_labels(secret.title), ..secret }).collect()
    }

    /// Returns a remark for each message with a secret that another player learned. There are none until the end.
    pub(crate) fn remarks(
        &self,
        arena: &Arena,
        session: &RedactedSession,
        messages: &[&Message],
    ) -> Vec<Option<String>> {
        let challenges = arena.engine.challenges();
        let challenge = challenges.get(&session.challenge_type).filter(|_| !self.attributions.is_empty());
        let mut remarks = vec![None; messages.len()];
        let Some(challenge) = challenge.filter(|_| session.status() == Status::Ended) else { return remarks };
        let said = |(at, message): (usize, &&Message)| {
            let seat = session.seat_of(&message.from).filter(|_| !message.redacted)?;
            Some((at, seat))
        };
        let places: Vec<(usize, usize)> = messages.iter().enumerate().filter_map(said).collect();
        let said: Vec<Said<'_>> = places
            .iter()
            .map(|(at, seat)| {
                let message = messages[*at];
                Said { seat: Seat(*seat), method: message.method.as_deref(), content: &message.content }
            })
            .collect();
        for ((at, _), remark) in places.iter().zip(challenge.remark(&self.ended(session), &said)) {
            remarks[*at] = remark;
        }
        remarks
    }
}

/// Reads the operator's latest texts to all players, oldest first.
async fn public_texts(arena: &Arena, session: &RedactedSession) -> PageResult<Vec<String>> {
    let id: SessionId = session.id.parse().map_err(|_| unknown_session())?;
    let Some(channel) = arena.engine.subscribe(Channel::Operator(id)).await? else { return Ok(Vec::new()) };
    let len = channel.read(u64::MAX, 1).await?.len;
    let read = channel.read(len.saturating_sub(LATEST as u64) + 1, LATEST).await?.messages;
    let messages = read.iter().map(|posted| read_message(posted, Viewer::Nobody, false, false));
    let is_public = |message: &Message| message.from == "operator" && message.to.is_none() && !message.redacted;
    Ok(messages.filter(is_public).map(|message| message.content).collect())
}

/// Encloses a name in Unicode's isolates if it has letters of a right-to-left script, so that it doesn't reorder the
/// words of a sentence. Unlike `bdi`, isolates also work in titles and pictures.
fn isolate(name: &str) -> String {
    let is_turned = |char: char| matches!(char, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}');
    if name.contains(is_turned) { format!("\u{2068}{name}\u{2069}") } else { name.to_owned() }
}

/// The name of the addressed player in a sentence that becomes one in the second person.
const ADDRESSED: &str = "\u{e000}";

/// Replaces the addressed player's name: `You won`, `learned your whole set`.
fn in_second_person(sentence: &str) -> String {
    let text = sentence.replace(&format!("{ADDRESSED} was "), &format!("{ADDRESSED} were "));
    let text = text.replace(&format!("{ADDRESSED}'s"), "your");
    match text.strip_prefix(ADDRESSED) {
        Some(rest) => format!("You{rest}").replace(ADDRESSED, "you"),
        None => text.replace(ADDRESSED, "you"),
    }
}

/// Replaces the addressed player's name in labels: `You`, `Your set`.
fn in_labels(text: String) -> String {
    if !text.contains(ADDRESSED) {
        return text;
    }
    text.replace(&format!("{ADDRESSED}'s"), "Your").replace(ADDRESSED, "You")
}

/// Returns a name for a sentence: on one line, without control characters, and cut.
fn shorten(name: &str) -> String {
    let name = printable(name).replace('\n', " ");
    match name.char_indices().nth(LONGEST_NAME) {
        None => name,
        Some((at, _)) => format!("{}…", &name[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::{in_labels, in_second_person, isolate};

    #[test]
    fn the_addressed_player_is_you() {
        for (sentence, expected) in [
            (
                "@ found the common numbers and learned Bob's whole set.",
                "You found the common numbers and learned Bob's whole set.",
            ),
            ("Ada missed some; @ learned nothing.", "Ada missed some; you learned nothing."),
            (
                "Ada found out who is richer and guessed @'s exact wealth; @ was wrong about who is richer.",
                "Ada found out who is richer and guessed your exact wealth; you were wrong about who is richer.",
            ),
            ("@ and Bob agreed: 61 for @, 39 for Bob.", "You and Bob agreed: 61 for you, 39 for Bob."),
            ("You and @ drew by stalemate.", "You and you drew by stalemate."),
        ] {
            assert_eq!(in_second_person(&sentence.replace('@', super::ADDRESSED)), expected);
        }
    }

    #[test]
    fn labels_address_the_player() {
        for (label, expected) in [("@'s set", "Your set"), ("@", "You"), ("Bob's set", "Bob's set")] {
            assert_eq!(in_labels(label.replace('@', super::ADDRESSED)), expected);
        }
    }

    #[test]
    fn names_in_right_to_left_scripts_are_isolated() {
        assert_eq!(isolate("Zoë 王"), "Zoë 王");
        assert_eq!(isolate("\u{5d0}da"), "\u{2068}\u{5d0}da\u{2069}");
    }
}
