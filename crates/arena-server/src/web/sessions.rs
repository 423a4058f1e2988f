//! Tables of sessions, and `GET /sessions/{id}`: the public page of a session with its operator channel and its chat.

use std::collections::BTreeMap;

use arena_model::{Channel, ProfileText, SessionId, Status, UsageTotal, UserId, UserProfile, Viewer};
use arena_report::number_of;
use arena_store::{Page as Listed, SessionFilter};
use arena_web::seat_class;
use arena_wire::Message;
use axum::extract::State;
use maud::{Markup, html};
use serde_json::Value;

use super::board::user_path;
use super::layout::{NavEntry, Page, badge, cut, explained, moment, short, shown, time};
use super::seen::{RedactedSession, read_message};
use super::{PageResult, Visit, answer, with_query};
use crate::arena::Arena;
use crate::error::ApiError;

/// Number of messages of a channel per page.
const MESSAGES: usize = 60;

/// Maximum size of a channel's messages as HTML, in bytes. With two channels a page stays below 100 KB.
const CHANNEL_BYTES: usize = 32_000;

/// Number of characters after which a message is cut.
const LONGEST: usize = 1500;

/// One page of a list of sessions, redacted for a viewer without identity.
pub(super) struct SessionTable {
    pub(super) sessions: Vec<RedactedSession>,
    pub(super) total: u64,
    pub(super) profiles: BTreeMap<UserId, UserProfile>,
}

/// Reads the sessions that match a filter, newest first.
pub(super) async fn read_list(
    arena: &Arena,
    filter: &SessionFilter,
    offset: u64,
    limit: usize,
) -> PageResult<SessionTable> {
    let page = arena.engine.list_sessions(filter, offset, limit).await?;
    SessionTable::of(arena, page).await
}

impl SessionTable {
    pub(super) async fn of(arena: &Arena, page: Listed<arena_model::Session>) -> PageResult<SessionTable> {
        let profiles = arena.engine.profiles(&page.items).await?;
        let sessions = page.items.iter().map(|session| RedactedSession::by(session, Viewer::Nobody)).collect();
        Ok(SessionTable { sessions, total: page.total, profiles })
    }

    pub(super) fn table(&self) -> Markup {
        html! {
            div.scroll tabindex="0" { table.stacked {
                thead { tr {
                    th scope="col" { "Session" } th scope="col" { "State" } th scope="col" { "Players" }
                    th.number scope="col" { "Security" } th.number scope="col" { "Utility" } th scope="col" { "Started" }
                } }
                tbody {
                    @for session in &self.sessions {
                        tr {
                            td { a href={ "/sessions/" (session.id) } { (session.challenge_type) " " code { (short(&session.id)) } } }
                            td { (badge(session.status())) @if session.state.abandoned { " " span.soft { "abandoned" } } }
                            td { (self.players(session)) }
                            td.number data-label="Security" { (scores(session.state.scores.iter().map(|score| score.security))) }
                            td.number data-label="Utility" { (scores(session.state.scores.iter().map(|score| score.utility))) }
                            td data-label="Started" { (time(session.created_at)) }
                        }
                    }
                }
            } }
        }
    }

    /// Returns the players' names, or the number of players until the names are public.
    fn players(&self, session: &RedactedSession) -> Markup {
        let names: Vec<_> =
            session.state.players.iter().map(|player| session.name_of(player, &self.profiles)).collect();
        html! {
            @if names.iter().any(Option::is_some) {
                @for (at, name) in names.iter().enumerate() {
                    @if at > 0 { " : " }
                    @match name {
                        Some((user, name)) => a href=(user_path(user.as_str())) { (cut(name, 16)) },
                        None => span.soft { "anonymous" }
                    }
                }
            } @else {
                (session.state.players.len()) " of " (session.invites.len())
            }
        }
    }
}

/// Formats the scores by seat; a dash if there are no scores.
fn scores(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<String> = values.map(number_of).collect();
    if values.is_empty() { "–".to_owned() } else { values.join(" : ") }
}

/// Consecutive messages of a channel.
pub(super) struct Log {
    messages: Vec<Message>,
    /// Number of messages in the whole channel.
    len: u64,
}

impl Log {
    /// Reads a page of messages, which ends with the message at the index `until`, or with the channel's last message.
    pub(super) async fn read(arena: &Arena, channel: Channel, viewer: Viewer, until: Option<u64>) -> PageResult<Log> {
        let len = arena.engine.read(channel, u64::MAX, 1).await?.len;
        let until = until.unwrap_or(len).min(len);
        let from = until.saturating_sub(MESSAGES as u64 - 1).max(1);
        let limit = usize::try_from(until + 1 - from.min(until + 1)).unwrap_or(MESSAGES);
        if limit == 0 {
            return Ok(Log { messages: Vec::new(), len });
        }
        let snapshot = arena.engine.read(channel, from, limit).await?;
        let (ended, reveal) = (snapshot.ended(), arena.settings.sessions.reveal_chat);
        let messages = snapshot.messages.iter().map(|posted| read_message(posted, viewer, ended, reveal)).collect();
        Ok(Log { messages, len: snapshot.len })
    }

    /// Renders the list of messages, with a link to earlier messages. `name` is the channel's parameter in the page's
    /// query.
    pub(super) fn list(&self, name: &str, session: &RedactedSession, visit: &Visit, path: &str) -> Markup {
        let mut room = CHANNEL_BYTES;
        let mut items: Vec<String> = Vec::new();
        let mut first = None;
        for message in self.messages.iter().rev() {
            let item = say(message, name, session).into_string();
            if item.len() > room && first.is_some() {
                break;
            }
            room = room.saturating_sub(item.len());
            first = Some(message.index);
            items.push(item);
        }
        let last = self.messages.last().map_or(0, |message| message.index);
        html! {
            @if let Some(first) = first.filter(|first| *first > 1) {
                p.more { a href=(with_query(path, &visit.query, name, &(first - 1).to_string())) { "Earlier messages" } }
            }
            ol.messages id=(name) data-last=(last) data-len=(self.len) tabindex="0" aria-live="polite" aria-relevant="additions" {
                @for item in items.iter().rev() { (maud::PreEscaped(item)) }
            }
            @if last < self.len {
                p.more { a href=(with_query(path, &visit.query, name, "")) { "Latest messages" } }
            } @else if self.len == 0 {
                p.empty data-empty=(name) { "No messages yet." }
            }
        }
    }

    /// Returns the game's termination cause in lower case, if the operator has sent it.
    pub(super) fn ending(&self) -> Option<String> {
        let word = self.messages.iter().rev().find_map(|message| OperatorUpdate::by(message)?.ending)?;
        Some(word.to_lowercase().replace('_', " "))
    }

    /// Returns the deadline of the latest request for moves, in milliseconds since 1970.
    pub(super) fn deadline(&self) -> Option<i64> {
        self.messages.iter().rev().find_map(|message| OperatorUpdate::by(message)?.deadline)
    }
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
        let begins = content.starts_with("{\"config\"");
        let beginnings = ["{\"config\"", "{\"world_state\"", "{\"public_state\"", "{\"result\""];
        if !beginnings.iter().any(|beginning| content.starts_with(beginning)) {
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

/// Renders a party's label: the operator, the player's number, or the sender's own name.
pub(super) fn party_name(session: &RedactedSession, party: &str) -> Markup {
    html! {
        @match (party, session.seat_of(party)) {
            ("operator", _) => b.who.operator { "Operator" },
            (_, Some(seat)) => b.who.{ (seat_class(seat)) } title=(party) { "Player " (seat + 1) },
            _ => b.who { (cut(party, 40)) },
        }
    }
}

/// Renders a message as a list item. `message.js` renders later messages in the same way.
fn say(message: &Message, channel: &str, session: &RedactedSession) -> Markup {
    let id = format!("{channel}-{}", message.index);
    html! {
        li.message.private[message.to.is_some()] id=(id) {
            p.head {
                (party_name(session, &message.from))
                @if let Some(to) = &message.to { " → " (party_name(session, to)) }
                @if let Some(method) = &message.method { " " code { (cut(method, 40)) } }
                a.at href={ "#" (id) } { (moment(message.timestamp.0)) }
            }
            (text(message, session))
        }
    }
}

fn text(message: &Message, session: &RedactedSession) -> Markup {
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
                    Some(ending) => { "Game ended: " (cut(ending, 60)) "." }
                }
                @if !update.asked.is_empty() { " To move: " @for (at, player) in update.asked.iter().enumerate() { @if at > 0 { ", " } (party_name(session, player)) } "." }
                " "
                a href={ "/api/arena/sync?channel=" (session.id) "&limit=1&index=" (message.index) } { "JSON" }
            }
        };
    }
    let rest = message.content.chars().count().saturating_sub(LONGEST);
    let shorter: String = message.content.chars().take(LONGEST).collect();
    html! {
        p.text { (shown(&shorter)) @if rest > 0 { span.soft { " … " (rest) " more characters" } } }
    }
}

/// `GET /sessions/{id}`.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let unknown = || ApiError::not_found("CHALLENGE_NOT_FOUND", "session not found");
    let id: SessionId = visit.param("id").parse().map_err(|_| unknown())?;
    let session = arena.engine.find_session(id).await?.ok_or_else(unknown)?;
    let seen = RedactedSession::by(&session, Viewer::Nobody);
    let profiles = arena.engine.profiles([&*session]).await?;
    let challenges = arena.engine.challenges();
    let path = format!("/sessions/{id}");
    let log = async |channel, name| Log::read(&arena, channel, Viewer::Nobody, visit.query.number(name)).await;
    let (operator, chat) = (log(Channel::Operator(id), "operator").await?, log(Channel::Chat(id), "chat").await?);
    let body = html! {
        (heading(&seen))
        (result(&seen, &profiles, operator.ending()))
        (board(&seen, operator.deadline()))
        div.channels {
            section aria-labelledby="operator-title" {
                h2 id="operator-title" { "Operator" }
                (operator.list("operator", &seen, &visit, &path))
            }
            section aria-labelledby="chat-title" {
                h2 id="chat-title" { "Chat" }
                (chat.list("chat", &seen, &visit, &path))
            }
        }
        @if let Some(challenge) = challenges.get(&seen.challenge_type) {
            details { summary { "Rules" } div.prose.rules { (explained(&challenge.metadata_with(&seen.options).prompt)) } }
        }
        (deal(&seen))
    };
    let title = format!("{} {}", seen.challenge_type, short(&seen.id));
    Ok(answer(&Page::new(&title, NavEntry::Elsewhere, body).with_script("session.js").with_script("moderate.js")))
}

/// Renders the session's heading. Data attributes of the heading pass the session's data to the scripts.
pub(super) fn heading(session: &RedactedSession) -> Markup {
    let state = &session.state;
    html! {
        div.intro id="session" data-session=(session.id) data-challenge=(session.challenge_type) data-status=(session.status().as_str())
            data-players=(state.players.join(" ")) data-options=(session.options) {
            h1 { a href={ "/challenges/" (session.challenge_type) } { (session.challenge_type) } " " (badge(session.status())) }
            p.soft {
                "Session " a href={ "/sessions/" (session.id) } { code { (session.id) } } ", created " (time(session.created_at))
                @if let Some(at) = state.completed_at { @if state.abandoned { ", abandoned " } @else { ", ended " } (time(at)) }
                ". " (state.players.len()) " of " (session.invites.len()) " seats taken."
            }
            @if session.status() == Status::Open {
                p.soft { "The game begins when all seats are taken. Each seat needs an invite from the session's creator." }
            }
        }
        p role="status" id="connection" .soft {}
    }
}

/// Renders the elements in which scripts draw the board and the clock.
pub(super) fn board(session: &RedactedSession, deadline: Option<i64>) -> Markup {
    let deadline = deadline.filter(|_| session.status() == Status::Active);
    html! {
        p.clock id="clock" hidden[deadline.is_none()] data-deadline=[deadline] {
            @if let Some(deadline) = deadline { "Next move due by " (time(deadline)) }
        }
        section.live id="board" hidden aria-label="Board" {}
    }
}

/// Renders the element for the result, with a link to the replay. Scripts fill the element when the game ends.
pub(super) fn result(
    session: &RedactedSession,
    profiles: &BTreeMap<UserId, UserProfile>,
    how: Option<String>,
) -> Markup {
    html! {
        div id="result" {
            @if session.status() == Status::Ended {
                p { a.button href={ "/sessions/" (session.id) "/replay" } { "Watch replay" } }
                (ending(session, profiles, how.as_deref()))
            }
        }
    }
}

/// Renders the result: scores, players' identities and attributions.
pub(super) fn ending(session: &RedactedSession, profiles: &BTreeMap<UserId, UserProfile>, how: Option<&str>) -> Markup {
    let state = &session.state;
    html! {
        section {
            h2 { "Result" @if let Some(how) = how { ": " (cut(how, 60)) } }
            div.scroll tabindex="0" { table {
                thead { tr { th scope="col" { "Seat" } th scope="col" { "Player" } th.number scope="col" { "Security" } th.number scope="col" { "Utility" } } }
                tbody {
                    @for (seat, player) in state.players.iter().enumerate() {
                        tr {
                            td { (party_name(session, player)) }
                            td {
                                @match session.name_of(player, profiles) {
                                    Some((user, name)) => a href=(user_path(user.as_str())) { (cut(name, 40)) },
                                    None => span.soft { "anonymous" }
                                }
                            }
                            @let score = state.scores.get(seat);
                            td.number { (scores(score.map(|score| score.security).into_iter())) }
                            td.number { (scores(score.map(|score| score.utility).into_iter())) }
                        }
                    }
                }
            } }
            (usage(session))
            @if !state.attributions.is_empty() {
                ul.attributions {
                    @for attribution in &state.attributions {
                        li { (party_name(session, &attribution.from)) " caused " code { (cut(&attribution.kind, 60)) } " of " (party_name(session, &attribution.to)) }
                    }
                }
            }
        }
    }
}

/// Renders the usage that players reported. The server can't verify the numbers, so the caption says that they aren't
/// verified.
fn usage(session: &RedactedSession) -> Markup {
    let reported = session.state.players.iter().zip(&session.state.reported_usage);
    let reported: Vec<(&String, &UsageTotal)> = reported.filter(|(_, total)| total.reports > 0).collect();
    html! {
        @if !reported.is_empty() {
            div.scroll tabindex="0" { table {
                caption { "Usage reported by the players (not verified)" }
                thead { tr {
                    th scope="col" { "Seat" } th scope="col" { "Model" } th.number scope="col" { "Requests" }
                    th.number scope="col" { "Tokens in" } th.number scope="col" { "From cache" } th.number scope="col" { "Tokens out" }
                    th.number scope="col" { "Cost" } th.number scope="col" { "Time" }
                } }
                tbody {
                    @for (player, total) in reported {
                        @let models: Vec<&str> = total.models.iter().map(ProfileText::as_str).collect();
                        @let about = if total.estimated { "≈ " } else { "" };
                        tr {
                            td { (party_name(session, player)) }
                            td { (cut(&models.join(", "), 60)) }
                            td.number { (total.reports) }
                            td.number { (about) (total.input_tokens) } td.number { (total.cached_tokens) } td.number { (about) (total.output_tokens) }
                            td.number { @if let Some(cost) = total.cost_usd { (format!("${cost:.4}")) } }
                            td.number { @if let Some(ms) = total.ms { (format!("{:.1} s", ms as f64 / 1000.0)) } }
                        }
                    }
                }
            } }
        }
    }
}

/// Renders the session's options, and the seed once it is public.
pub(super) fn deal(session: &RedactedSession) -> Markup {
    let options = session.options.as_object().filter(|options| !options.is_empty());
    html! {
        @if !session.rated {
            p.soft { "Unrated: the options differ from this arena's defaults, so the game counts on no leaderboard." }
        }
        @if session.seed_commitment.is_some() || options.is_some() {
            details.deal {
                summary { "Seed and options" }
                dl id="deal" {
                    @if let Some(commitment) = &session.seed_commitment {
                        dt { "SHA-256 of the seed, published at the start" } dd { code { (commitment) } }
                    }
                    @if session.seed_commitment.is_some() {
                        dt { "Seed" }
                        dd { @match &session.seed { Some(seed) => code { (seed) }, None => span.soft { "shown when the session has ended" } } }
                    }
                    @for (name, value) in options.into_iter().flatten() {
                        dt { code { (cut(name, 60)) } } dd { code { (cut(&value.to_string(), 200)) } }
                    }
                }
            }
        }
    }
}
