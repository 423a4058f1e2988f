//! The timeline of a session: the operator's messages, the moves and the chat in the order of their timestamps.
//!
//! Chat is shown as bubbles in the seats' colors, the operator's messages and the moves as lines between them, and
//! private notes of the operator folded. Runs of quiet lines (states and moves of a game, withheld messages) are folded
//! into one line. A page has a bounded number of events, and links to earlier ones.

use std::sync::Arc;

use arena_engine::Posted;
use arena_model::{SessionId, Status, Viewer, printable};
use arena_web::seat_class;
use arena_wire::Message;
use maud::{Markup, html};
use serde_json::Value;

use super::events::Channels;
use super::redacted::RedactedSession;
use super::summary::SessionSummary;
use super::{has_controls, has_drawn_board, unknown_session};
use crate::arena::Arena;
use crate::web::layout::{cut, moment, player_name};
use crate::web::{PageResult, Visit, with_query};

/// Maximum number of events per page.
const EVENTS: u64 = 100;

/// Maximum size of the events as HTML, in bytes. With the rest, a page stays below 100 KB.
const EVENTS_BYTES: usize = 60_000;

/// Size of the messages' texts after which no earlier ones are read for a page, in bytes.
const TEXT_BYTES: usize = 256 * 1024;

/// Number of events that are read first.
const FIRST_READ: u64 = 8;

/// Number of characters after which a message is cut.
const LONGEST: usize = 1500;

/// Minimum number of consecutive quiet lines that are folded.
const RUN: usize = 4;

/// Consecutive events of a session.
pub(crate) struct Timeline {
    events: Vec<TimelineEvent>,
    /// The number of the last of these events, from 1.
    until: u64,
    /// Number of events of the whole session.
    total: u64,
    /// True if the viewer is a player. Its private notes are open.
    is_player: bool,
}

/// A message with its channel, `operator` or `chat`.
struct TimelineEvent {
    channel: &'static str,
    message: Message,
    /// The remark on a message that gave away a secret.
    remark: Option<String>,
}

/// The kind of an event that says little by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quiet {
    /// An action of a player in a game with a board.
    Move,
    /// A state of such a game.
    State,
    /// A message to another player, withheld until the end.
    Private,
}

impl Quiet {
    /// Returns the kind's name in the element's data.
    fn name(self) -> &'static str {
        match self {
            Quiet::Move => "move",
            Quiet::State => "state",
            Quiet::Private => "private",
        }
    }
}

impl Timeline {
    /// Reads a page of events. It ends with the event of the query's `until`, or soon after the message of the query's
    /// `at` (such as `chat-12`), or with the latest event.
    pub(crate) async fn read(
        arena: &Arena,
        (session, summary): (&RedactedSession, &SessionSummary),
        viewer: Viewer,
        visit: &Visit,
    ) -> PageResult<Timeline> {
        let id: SessionId = session.id.parse().map_err(|_| unknown_session())?;
        let channels = Channels::open(arena, id, viewer, visit.address).await?;
        let total = channels.len();
        let asked = visit.query.get("at").and_then(|at| at.split_once('-'));
        let place = match asked.and_then(|(channel, index)| Some((channel, index.parse().ok()?))) {
            Some((channel, index)) => channels.position(channel == "operator", index).await?,
            None => None,
        };
        let wanted = place.map(|place| place + EVENTS / 4).or(visit.query.number("until"));
        let until = wanted.unwrap_or(total).clamp(total.min(1), total);
        let read = latest(&channels, until).await?;
        let read: Vec<(&'static str, Message)> =
            read.iter().map(|(channel, posted)| (*channel, channels.message(posted))).collect();
        let messages: Vec<&Message> = read.iter().map(|(_, message)| message).collect();
        let remarks = summary.remarks(arena, session, &messages);
        let events = read.into_iter().zip(remarks);
        let events = events.map(|((channel, message), remark)| TimelineEvent { channel, message, remark });
        Ok(Timeline { events: events.collect(), until, total, is_player: viewer != Viewer::Nobody })
    }

    /// Renders the transcript: the events and the links to earlier and later ones.
    pub(crate) fn transcript(
        &self,
        (session, summary): (&RedactedSession, &SessionSummary),
        own: Option<&str>,
        visit: &Visit,
        path: &str,
    ) -> Markup {
        let mut room = EVENTS_BYTES;
        let mut items: Vec<String> = Vec::new();
        let is_open = session.status() == Status::Ended || self.is_player;
        for event in self.events.iter().rev() {
            let item = event.item((session, summary), own, is_open).into_string();
            if item.len() > room && !items.is_empty() {
                break;
            }
            room = room.saturating_sub(item.len());
            items.push(item);
        }
        let visible = &self.events[self.events.len() - items.len()..];
        let before = self.until - (items.len() as u64).min(self.until);
        let leak = visible.iter().find(|event| event.remark.is_some());
        items.reverse();
        let items: Vec<(Option<Quiet>, String)> = visible.iter().map(|event| event.quiet(session)).zip(items).collect();
        let last = |channel: &str| {
            visible.iter().rev().find(|event| event.channel == channel).map_or(0, |event| event.message.index)
        };
        html! {
            section.transcript.brief[own.is_some() && has_controls(&session.challenge_type)] id="transcript" aria-labelledby="transcript-title" {
                div.row.head {
                    h2 id="transcript-title" { @if own.is_some() { "Chat" } @else { "Transcript" } }
                    @if let Some(leak) = leak { a.small href={ "#" (leak.id()) } { "Jump to the leak" } }
                }
                @if before > 0 {
                    p.more { a href=(with_query(path, &visit.query, "until", &before.to_string())) { "Earlier messages" } }
                }
                ol.timeline.messages id="timeline" data-last-operator=(last("operator")) data-last-chat=(last("chat"))
                    data-latest=(self.until == self.total) tabindex="0" aria-live="polite" aria-relevant="additions" {
                    @for run in items.chunk_by(|(one, _), (other, _)| one.is_some() && other.is_some()) { (fold(run)) }
                }
                @if self.until < self.total {
                    p.more { a href=(with_query(path, &visit.query, "until", "")) { "Latest messages" } }
                } @else if self.total == 0 {
                    p.soft data-empty { "Nothing has happened yet." }
                }
            }
        }
    }

    /// Returns the deadline of the latest request for moves, in milliseconds since 1970.
    pub(crate) fn deadline(&self) -> Option<i64> {
        self.updates().find_map(|update| update.deadline)
    }

    /// Returns the seats of the players that the operator has asked for a move: by a state of a game, or by a line that
    /// begins with `Player 2's turn`.
    pub(crate) fn to_move(&self, session: &RedactedSession) -> Vec<usize> {
        let asked = self.updates().map(|update| update.asked).find(|asked| !asked.is_empty());
        match asked {
            Some(asked) => asked.iter().filter_map(|player| session.seat_of(player)).collect(),
            None => self.events.iter().rev().find_map(|event| turn_of(&event.message)).into_iter().collect(),
        }
    }

    /// Returns how the only player who is out left the game, if not by a fault: `resigned` or `ran out of time`.
    pub(crate) fn departure(&self) -> Option<&'static str> {
        let reason = |event: &TimelineEvent| {
            let content = event.message.content.as_str();
            let is_notice = event.message.from == "operator" && content.starts_with("{\"detail\"");
            let notice: Value = serde_json::from_str(content).ok().filter(|_| is_notice)?;
            notice["reason"].as_str().map(str::to_owned)
        };
        let reasons: Vec<String> = self.events.iter().filter_map(reason).collect();
        match &reasons.iter().map(String::as_str).collect::<Vec<&str>>()[..] {
            ["RESIGNED"] => Some("resigned"),
            ["TIMEOUT"] => Some("ran out of time"),
            _ => None,
        }
    }

    /// Returns the operator's structured messages, latest first.
    fn updates(&self) -> impl Iterator<Item = OperatorUpdate> {
        self.events.iter().rev().filter_map(|event| OperatorUpdate::by(&event.message))
    }
}

/// Reads the events that end with event `until`, as many as a page may have. If they are long, fewer are read.
async fn latest(channels: &Channels, until: u64) -> PageResult<Vec<(&'static str, Arc<Posted>)>> {
    let (mut from, mut bytes, mut step) = (until, 0, FIRST_READ);
    let mut read = Vec::new();
    while from > until.saturating_sub(EVENTS) && bytes < TEXT_BYTES {
        let first = from.saturating_sub(step).max(until.saturating_sub(EVENTS));
        let mut earlier = channels.read(first, usize::try_from(from - first).unwrap_or(0)).await?;
        bytes += earlier.iter().map(|(_, posted)| posted.text_bytes()).sum::<usize>();
        earlier.append(&mut read);
        (read, from) = (earlier, first);
        // After the first read it is known whether the rest may be read at once.
        step = if bytes < TEXT_BYTES / 16 { EVENTS } else { FIRST_READ };
    }
    Ok(read)
}

impl TimelineEvent {
    fn id(&self) -> String {
        format!("{}-{}", self.channel, self.message.index)
    }

    /// Returns the kind of a quiet event; `None` for events that are worth reading.
    fn quiet(&self, session: &RedactedSession) -> Option<Quiet> {
        let message = &self.message;
        if self.channel != "operator" || self.remark.is_some() || message.content_sha256.is_some() {
            return None;
        }
        if message.from != "operator" {
            return has_drawn_board(session).then_some(Quiet::Move);
        }
        if message.redacted {
            return Some(Quiet::Private);
        }
        let update = OperatorUpdate::by(message)?;
        (update.ending.is_none() && !update.begins).then_some(Quiet::State)
    }

    /// Renders the event. `message.js` renders later events in the same way.
    fn item(
        &self,
        (session, summary): (&RedactedSession, &SessionSummary),
        own: Option<&str>,
        is_open: bool,
    ) -> Markup {
        let TimelineEvent { channel, message, remark } = self;
        let (id, seat) = (self.id(), session.seat_of(&message.from));
        let who = |party: &str| party_label(session, summary, party);
        let link = html! { a.at href={ "#" (id) } { (moment(message.timestamp.0)) } };
        let flag = html! { @if let Some(remark) = remark { p.flag { (remark) } } };
        let quiet = self.quiet(session).map(Quiet::name);
        if *channel == "chat" {
            let is_right = own.map_or(seat.is_some_and(|seat| seat % 2 == 1), |own| own == message.from);
            let color = seat.map(seat_class).unwrap_or_default();
            return html! {
                li.message.bubble.{ (color) }.own[is_right].leak[remark.is_some()].private[message.to.is_some()] id=(id)
                    data-at=(message.timestamp.0) {
                    small.head { (who(&message.from)) @if let Some(to) = &message.to { " → " (who(to)) } (link) }
                    (text(message, session, summary)) (flag)
                }
            };
        }
        if let (Some(to), "operator") = (&message.to, message.from.as_str()) {
            return html! {
                li.message.note.private id=(id) data-at=(message.timestamp.0) data-quiet=[quiet] {
                    @if message.redacted {
                        div { "To " (who(to)) ": " (text(message, session, summary)) }
                    } @else {
                        details open[is_open && !is_state(&message.content)] { summary { "Private to " (who(to)) } (text(message, session, summary)) }
                    }
                    (link)
                }
            };
        }
        html! {
            li.message.event.leak[remark.is_some()].private[message.to.is_some()] id=(id) data-at=(message.timestamp.0)
                data-quiet=[quiet] {
                @if message.from != "operator" { (who(&message.from)) " " }
                @if let Some(method) = &message.method { code { (cut(method, 40)) } " " }
                (text(message, session, summary)) (link) (flag)
            }
        }
    }
}

/// Renders consecutive events. A run of quiet ones is folded into a line with their number; `message.js` folds later
/// events in the same way.
fn fold(run: &[(Option<Quiet>, String)]) -> Markup {
    let is_quiet = run.first().is_some_and(|(quiet, _)| quiet.is_some());
    let count = |kind| run.iter().filter(|(quiet, _)| *quiet == Some(kind)).count();
    let items = html! { @for (_, item) in run { (maud::PreEscaped(item)) } };
    if !is_quiet || run.len() < RUN {
        return items;
    }
    let (number, noun) = match (count(Quiet::Move), count(Quiet::State)) {
        (0, 0) => (run.len(), "private message"),
        (0, states) => (states, "state"),
        (moves, _) => (moves, "move"),
    };
    html! {
        li.run {
            details { summary { (number) " " (noun) @if number != 1 { "s" } } ol { (items) } }
        }
    }
}

/// Returns the seat whose turn the operator announces to all players, as in `Player 2's turn. (Round 1/10)`.
fn turn_of(message: &Message) -> Option<usize> {
    if message.from != "operator" || message.to.is_some() || message.redacted {
        return None;
    }
    message.content.lines().find_map(|line| {
        let (number, _) = line.strip_prefix("Player ")?.split_once("'s turn")?;
        number.parse::<usize>().ok()?.checked_sub(1)
    })
}

/// A structured message of a game's operator: the start, a state with the players to move, or the result.
struct OperatorUpdate {
    begins: bool,
    ending: Option<String>,
    asked: Vec<String>,
    deadline: Option<i64>,
}

impl OperatorUpdate {
    /// Parses an operator's message. `None` for other messages, even if a player's text has the same form.
    fn by(message: &Message) -> Option<OperatorUpdate> {
        let content = &message.content;
        if message.from != "operator" {
            return None;
        }
        let begins = ["{\"config\"", "{\"set_agent_id\""].iter().any(|beginning| content.starts_with(beginning));
        let beginnings = ["{\"world_state\"", "{\"public_state\"", "{\"result\""];
        if !begins && !beginnings.iter().any(|beginning| content.starts_with(beginning)) {
            return None;
        }
        let value: Value = serde_json::from_str(content).ok()?;
        let asked = value["asked"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let ending = value["result"]["termination"].as_str().map(str::to_owned);
        Some(OperatorUpdate {
            begins,
            ending,
            asked: asked.map(str::to_owned).collect(),
            deadline: value["deadline"].as_i64(),
        })
    }
}

/// True if an operator's note is a game's state or its constants, which are long and which boards show.
fn is_state(content: &str) -> bool {
    ["{\"world_state\"", "{\"config\"", "{\"set_agent_id\""].iter().any(|begin| content.starts_with(begin))
}

/// Returns an operator's notice about actions without effect, or about a player who is out, with its JSON replaced by
/// a sentence. `None` for other messages.
fn notice_in_words(message: &Message) -> Option<Message> {
    let content = &message.content;
    let is_notice = ["{\"epoch\"", "{\"detail\""].iter().any(|beginning| content.starts_with(beginning));
    if message.from != "operator" || !is_notice {
        return None;
    }
    let notice: Value = serde_json::from_str(content).ok()?;
    let content = if let (Some(player), Some(detail)) = (notice["disqualified"].as_str(), notice["detail"].as_str()) {
        format!("{player} is out of the game: {detail}.")
    } else {
        let rejected = notice["rejected"].as_array()?;
        let mut reasons: Vec<&str> = rejected.iter().filter_map(|action| action["reason"].as_str()).collect();
        reasons.dedup();
        let actions = if rejected.len() == 1 { "One action" } else { "Some actions" };
        format!("{actions} in turn {} had no effect: {}.", notice["epoch"], reasons.join("; "))
    };
    Some(Message { content, ..message.clone() })
}

/// Renders a party's label: the operator, the player's name, or the sender's own name.
pub(crate) fn party_label(session: &RedactedSession, summary: &SessionSummary, party: &str) -> Markup {
    html! {
        @match (party, session.seat_of(party)) {
            ("operator", _) => b.who.operator { "Operator" },
            (_, Some(seat)) => b.who.{ (seat_class(seat)) } title=(party) { (player_name(summary.names.get(seat).map_or("", String::as_str), 40)) },
            _ => b.who { (player_name(party, 40)) },
        }
    }
}

/// Returns the text with control characters escaped. The players' names replace their invites.
fn with_names(message: &Message, session: &RedactedSession, summary: &SessionSummary) -> String {
    let mut text = printable(&message.content).into_owned();
    for (player, name) in session.state.players.iter().zip(&summary.isolated) {
        text = text.replace(&format!("Player {player}"), name).replace(player.as_str(), name);
    }
    if message.from == "operator" { with_scores(&text) } else { text }
}

/// Returns an operator's text with words for scores in JSON: `{"security":1,"utility":0}` becomes
/// `security 1, utility 0`.
fn with_scores(text: &str) -> String {
    let in_words = |line: &str| {
        let scores = line.strip_suffix('}').and_then(|line| line.split_once("{\"security\":"));
        let parts = scores.and_then(|(before, scores)| Some((before, scores.split_once(",\"utility\":")?)));
        match parts {
            Some((before, (security, utility))) => format!("{before}security {security}, utility {utility}"),
            None => line.to_owned(),
        }
    };
    text.split('\n').map(in_words).collect::<Vec<String>>().join("\n")
}

/// Returns a move's content without the method, which the page shows beside it: `(guess) 131` becomes `131`.
fn without_method(content: String, method: Option<&str>) -> String {
    let rest = method.and_then(|method| content.strip_prefix(&*format!("({method}) ")).map(str::to_owned));
    rest.unwrap_or(content)
}

/// Returns words such as `move to 34.2, 15.8; take food`. `None` for contents that aren't a JSON list of actions.
fn actions_in_words(content: &str) -> Option<String> {
    let actions: Vec<Value> = serde_json::from_str(content).ok()?;
    let in_words = |action: &Value| {
        let name = action["action"].as_str()?.replace('_', " ");
        match action["target"].as_array().map(Vec::as_slice) {
            Some([x, y]) => Some(format!("{name} to {:.1}, {:.1}", x.as_f64()?, y.as_f64()?)),
            _ => Some(name),
        }
    };
    let words: Vec<String> = actions.iter().map(in_words).collect::<Option<_>>()?;
    let words = if words.is_empty() { "no action".to_owned() } else { words.join("; ") };
    // An escape in JSON can stand for a control character.
    Some(printable(&words).into_owned())
}

fn text(message: &Message, session: &RedactedSession, summary: &SessionSummary) -> Markup {
    if message.redacted {
        return match &message.content_sha256 {
            Some(hash) => html! { p.withheld { "Hidden by the administrator. SHA-256 of the text: " code { (hash) } } },
            None => html! { p.withheld { "Private message" } },
        };
    }
    if let Some(update) = OperatorUpdate::by(message) {
        return html! {
            p.text {
                @match &update.ending {
                    None if update.begins => "Game started.",
                    None => "Game state.",
                    // The message before says who is out, if that ended the game.
                    Some(ending) if ["GAME_ENDED", "TAINTED"].contains(&ending.as_str()) => "Game ended.",
                    Some(ending) => { "Game ended: " (cut(ending, 60)) "." }
                }
                @if !update.asked.is_empty() {
                    " To move: "
                    @for (at, player) in update.asked.iter().enumerate() { @if at > 0 { ", " } (party_label(session, summary, player)) }
                    "."
                }
                " "
                a href={ "/api/arena/sync?channel=" (session.id) "&limit=1&index=" (message.index) } { "JSON" }
            }
        };
    }
    let notice = notice_in_words(message);
    let message = notice.as_ref().unwrap_or(message);
    let content = without_method(with_names(message, session, summary), message.method.as_deref());
    let words = (message.method.as_deref() == Some("actions")).then(|| actions_in_words(&content)).flatten();
    let content = words.unwrap_or(content);
    let rest = content.chars().count().saturating_sub(LONGEST);
    let shorter: String = content.chars().take(LONGEST).collect();
    html! {
        p.text { bdi { (shorter) } @if rest > 0 { span.soft { " … " (rest) " more characters" } } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn moves_show_their_method_once() {
        for (content, method, expected) in [
            ("(guess) 131, 146", Some("guess"), "131, 146"),
            ("(guess) 131", Some("offer"), "(guess) 131"),
            ("(guess) 131", None, "(guess) 131"),
            ("131", Some("guess"), "131"),
        ] {
            assert_eq!(without_method(content.to_owned(), method), expected, "{content} {method:?}");
        }
    }

    #[test]
    fn scores_are_words() {
        let text = "Scores are:\n- Player 1: {\"security\":1,\"utility\":-0.5}\n- Player 2: {\"x\":1}\n";
        let expected = "Scores are:\n- Player 1: security 1, utility -0.5\n- Player 2: {\"x\":1}\n";
        assert_eq!(with_scores(text), expected);
    }

    #[test]
    fn actions_are_words() {
        for (content, expected) in [
            (r#"[{"action":"move","actor_id":"Ab3dE6","target":[34.18,15.8]}]"#, Some("move to 34.2, 15.8")),
            (r#"[{"action":"take_food","food_id":"Food01"},{"action":"spawn"}]"#, Some("take food; spawn")),
            (r#"[{"action":"attack","target":"Enemy1"}]"#, Some("attack")),
            ("[]", Some("no action")),
            (r#"[{"action":"move","target":[1,"2"]}]"#, None),
            (r#"[{"action":7}]"#, None),
            (r#"{"action":"move"}"#, None),
            ("UP", None),
        ] {
            assert_eq!(actions_in_words(content).as_deref(), expected, "{content}");
        }
    }

    #[test]
    fn notices_of_the_operator_are_sentences() {
        for (from, content, expected) in [
            (
                "operator",
                r#"{"epoch":3,"rejected":[{"index":1,"reason":"too far away"}]}"#,
                Some("One action in turn 3 had no effect: too far away."),
            ),
            (
                "operator",
                r#"{"epoch":3,"rejected":[{"index":0,"reason":"no such actor"},{"index":1,"reason":"no such actor"}]}"#,
                Some("Some actions in turn 3 had no effect: no such actor."),
            ),
            (
                "operator",
                r#"{"detail":"no answer within 5 s","disqualified":"inv_1","reason":"TIMEOUT"}"#,
                Some("inv_1 is out of the game: no answer within 5 s."),
            ),
            ("operator", r#"{"epoch":3}"#, None),
            ("operator", "The game begins.", None),
            ("inv_1", r#"{"epoch":3,"rejected":[{"index":1,"reason":"mine"}]}"#, None),
        ] {
            let message = json!({ "from": from, "content": content, "index": 1 });
            let message: Message = serde_json::from_value(message).unwrap();
            let summary = notice_in_words(&message).map(|notice| notice.content);
            assert_eq!(summary.as_deref(), expected, "{content}");
        }
    }
}
