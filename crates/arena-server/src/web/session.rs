//! Tables of sessions, and `GET /sessions/{id}`: the public page of a session, with its board or result, and its
//! transcript.

pub(super) mod deals;
pub(super) mod events;
pub(super) mod redacted;
pub(super) mod share;
pub(super) mod summary;
pub(super) mod timeline;

use std::collections::BTreeMap;

use arena_games::ScoreKind;
use arena_model::{ChallengeOption, Knowledge, SessionId, Status, UserId, UserProfile, Viewer};
use arena_report::number_of;
use arena_store::{Page as Listed, SessionFilter};
use arena_web::{seat_class, seat_mark};
use axum::extract::State;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::boards::board::user_path;
use super::boards::measures::kind_of;
use super::components::{btn, live_dot, primary};
use super::layout::{NavEntry, Page, badge, cut, explained, player_name, time};
use super::{PageResult, Visit, unrendered};
use crate::answer::to_text;
use crate::arena::Arena;
use crate::error::ApiError;
use redacted::RedactedSession;
use summary::SessionSummary;
use timeline::{Timeline, party_label};

/// One page of a list of sessions, redacted for a viewer without identity.
pub(super) struct SessionTable {
    pub(super) sessions: Vec<RedactedSession>,
    pub(super) total: u64,
    /// The names and the result of each session.
    pub(super) summaries: Vec<SessionSummary>,
    profiles: BTreeMap<UserId, UserProfile>,
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
        let sessions: Vec<RedactedSession> =
            page.items.iter().map(|session| RedactedSession::by(session, Viewer::Nobody)).collect();
        let summaries = sessions.iter().map(|session| SessionSummary::of(arena, session, &profiles)).collect();
        Ok(SessionTable { sessions, total: page.total, summaries, profiles })
    }

    pub(super) fn table(&self) -> Markup {
        let has_secrets = self.sessions.iter().any(|game| kind_of(&game.challenge_type) == ScoreKind::Secrets);
        html! {
            div.scroll tabindex="0" { table.stacked {
                thead { tr {
                    th scope="col" { "Game" } th scope="col" { "State" } th scope="col" { "Players" }
                    th.number scope="col" { "Utility" } @if has_secrets { th.number scope="col" { "Security" } } th scope="col" { "Started" }
                } }
                tbody {
                    @for (session, summary) in self.sessions.iter().zip(&self.summaries) {
                        tr {
                            td {
                                a href={ "/sessions/" (session.id) } { (summary.title()) }
                                @if summary.sentence.is_some() { br; span.small.soft { (summary.challenge) } }
                            }
                            td { (badge(session.status())) @if session.state.abandoned { " " span.soft { "abandoned" } } }
                            td { (self.players(session)) }
                            td.number data-label="Utility" { (scores(session.state.scores.iter().map(|score| score.utility))) }
                            @if has_secrets { td.number data-label="Security" { (scores(session.state.scores.iter().map(|score| score.security))) } }
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
                        Some((user, name)) => a href=(user_path(user.as_str())) { (player_name(name, 16)) },
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
    let values: Vec<String> = values.map(|value| number_of(value).replace('-', "−")).collect();
    if values.is_empty() { "–".to_owned() } else { values.join(" : ") }
}

pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let (session, summary, profiles) = find(&arena, &visit).await?;
    let timeline = Timeline::read(&arena, (&session, &summary), Viewer::Nobody, &visit).await?;
    let challenges = arena.engine.challenges();
    let path = format!("/sessions/{}", session.id);
    let has_ended = session.status() == Status::Ended;
    let picture = summary.picture(&arena, &session).await?;
    let same_deal = deals::compare(&arena, &session, &summary).await?;
    let body = html! {
        (heading(&session, &summary, &actions(&arena, &session)))
        div id="result" { @if has_ended { (ending(&session, &summary, &profiles)) } }
        (same_deal)
        div.two.session data-loading[session.status() != Status::Open && has_drawn_board(&session)] {
            div {
                (board(&session, timeline.deadline()))
                @if has_drawn_board(&session) {
                    noscript { div.card.tile { div.pic { (picture) } } }
                } @else {
                    div.card.tile id="picture" { div.pic { (picture) } }
                }
                (knowledge(&arena, &session, &summary))
                (turn(&session, &timeline))
                @if let Some(challenge) = challenges.get(&session.challenge_type) {
                    details { summary { "Rules" } div.prose.rules { (explained(&challenge.metadata_with(&session.options).prompt)) } }
                }
                (deal(&arena, &session))
                (record_check(&session))
                p { a href={ "/sessions/" (session.id) "/picture.svg" } { "Picture of this session" } }
            }
            (timeline.transcript((&session, &summary), None, &visit, &path))
        }
    };
    let title = if has_ended {
        summary.title().to_owned()
    } else {
        format!("{}: {}", summary.challenge, seats_taken(&session))
    };
    let page = Page::new(&title, NavEntry::Elsewhere, body).with_style("session.css");
    let page = page.with_description(&share::description(&session, &summary));
    let page = page
        .with_card(share::card(&arena, &visit, &session))
        .with_script("session.js")
        .with_script("transcript.js")
        .with_script("moderate.js");
    Ok(unrendered(page.with_script("record.js")))
}

/// Maximum number of parts of a secret on the page.
const PARTS: usize = 60;

/// Renders the players' secrets of an ended session, with marks for the parts that others learned. A script fills the
/// element when the game ends.
pub(super) fn knowledge(arena: &Arena, session: &RedactedSession, summary: &SessionSummary) -> Markup {
    let secrets = summary.secrets(arena, session);
    let has = |knowledge| secrets.iter().flat_map(|secret| &secret.parts).any(|part| part.knowledge == knowledge);
    html! {
        div id="knowledge" {
            @if !secrets.is_empty() {
                section.card.pad.knowledge {
                    h2 { "Who knew what" }
                    @for secret in &secrets {
                        p.small.soft { (secret.title) }
                        p.chips {
                            @for part in secret.parts.iter().take(PARTS) {
                                span.chip.common[part.knowledge == Knowledge::Common].leak[part.knowledge == Knowledge::Learned] { (part.text) }
                                " "
                            }
                            @if secret.parts.len() > PARTS { span.small.soft { "and " (secret.parts.len() - PARTS) " more" } }
                        }
                    }
                    @if has(Knowledge::Common) || has(Knowledge::Learned) {
                        p.small.soft.legend {
                            @if has(Knowledge::Common) { span.chip.common { "common" } " " }
                            @if has(Knowledge::Learned) { span.chip.leak { "learned by another player" } }
                        }
                    }
                }
            }
        }
    }
}

/// Finds the session of the path's `id`, as a viewer without identity sees it, with names and players' profiles.
pub(super) async fn find(
    arena: &Arena,
    visit: &Visit,
) -> PageResult<(RedactedSession, SessionSummary, BTreeMap<UserId, UserProfile>)> {
    let id: SessionId = visit.param("id").parse().map_err(|_| unknown_session())?;
    let stored = arena.engine.find_session(id).await?.ok_or_else(unknown_session)?;
    let session = RedactedSession::by(&stored, Viewer::Nobody);
    let profiles = arena.engine.profiles([&*stored]).await?;
    let summary = SessionSummary::of(arena, &session, &profiles);
    Ok((session, summary, profiles))
}

fn unknown_session() -> ApiError {
    ApiError::not_found("CHALLENGE_NOT_FOUND", "session not found")
}

/// True if a script draws the states of the session's game.
pub(super) fn has_drawn_board(session: &RedactedSession) -> bool {
    arena_games::all().any(|playable| playable.id == session.challenge_type && playable.kit.module.is_some())
}

/// True if a script has controls for the seats of the session's game. A seat of other games shows all messages, since they
/// contain the player's secrets.
pub(super) fn has_controls(challenge: &str) -> bool {
    arena_games::all().any(|playable| playable.id == challenge && playable.kit.controls.is_some())
}

fn actions(arena: &Arena, session: &RedactedSession) -> Markup {
    html! {
        (primary(&format!("/sessions/{}/replay", session.id), "Replay"))
        (btn(&format!("/challenges/{}", session.challenge_type), "Play this"))
        (deals::offer(arena, session))
        // A script shares the page, or copies its link.
        button.btn type="button" data-share={ "/sessions/" (session.id) } aria-live="polite" { "Share" }
        @if session.challenge_type == "chess" { (btn(&format!("/sessions/{}/game.pgn", session.id), "Moves as PGN")) }
    }
}

pub(super) fn status(session: &RedactedSession) -> Markup {
    match session.status() {
        Status::Active => live_dot("Live"),
        other => badge(other),
    }
}

pub(super) fn seats_taken(session: &RedactedSession) -> String {
    format!("{} of {} seats taken", session.state.players.len(), session.invites.len())
}

/// Renders the session's heading: the result with its `actions` or, until the end, the challenge with its seats. Data
/// attributes pass the session's data to the scripts.
pub(super) fn heading(session: &RedactedSession, summary: &SessionSummary, actions: &Markup) -> Markup {
    let state = &session.state;
    let challenge = html! { a href={ "/challenges/" (session.challenge_type) } { (summary.challenge) } };
    html! {
        div id="session" data-session=(session.id) data-challenge=(session.challenge_type) data-status=(session.status().as_str())
            data-players=(state.players.join(" ")) data-names=(to_text(&summary.names)) data-options=(session.options) {
            @if let Some(sentence) = &summary.sentence {
                div.card.verdict.{ (best(session)) } {
                    div {
                        p.small.soft {
                            (challenge) " · " (state.players.len()) " players"
                            @if let Some(at) = state.completed_at { " · " (time(at)) " · " (lasted(at - session.created_at)) }
                            @if state.abandoned { " · abandoned" }
                        }
                        h1 { (sentence) }
                    }
                    div.row { (actions) }
                }
            } @else {
                div.intro {
                    p.small {
                        (status(session)) span.soft { " · " (seats_taken(session)) " · Created " (time(session.created_at)) }
                    }
                    h1 { (challenge) }
                    ul.seats.row {
                        @for seat in 0..session.invites.len() {
                            li.seat.{ (seat_class(seat)) } {
                                (seat_mark(seat))
                                @match summary.names.get(seat) {
                                    Some(name) => b { (player_name(name, 40)) },
                                    None => span { "free" }
                                }
                            }
                        }
                    }
                    @if session.status() == Status::Open {
                        p.soft { "The game begins when all seats are taken. Each seat needs an invite from the session's creator." }
                    }
                }
            }
        }
        p role="status" id="connection" .soft {}
    }
}

/// Returns the class of the seat with the most utility; an empty text if several seats share the most.
fn best(session: &RedactedSession) -> String {
    let scores = &session.state.scores;
    let most = scores.iter().map(|score| score.utility).fold(f64::NEG_INFINITY, f64::max);
    let first: Vec<usize> = (0..scores.len()).filter(|seat| scores[*seat].utility >= most).collect();
    if let [only] = first[..] { seat_class(only) } else { String::new() }
}

/// Formats the time that a session took, given in milliseconds.
fn lasted(ms: i64) -> String {
    match ms / 1000 {
        seconds @ ..120 => format!("{} s", seconds.max(0)),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// Renders the players that the game waits for. A script updates the element.
fn turn(session: &RedactedSession, timeline: &Timeline) -> Markup {
    let asked = timeline.to_move(session);
    let is_shown = session.status() == Status::Active && !asked.is_empty();
    html! {
        p.turn.wait id="turn" hidden[!is_shown] {
            @if is_shown {
                b { @for (at, seat) in asked.iter().enumerate() { @if at > 0 { ", " } "Player " (seat + 1) } " to move" }
            }
        }
    }
}

/// Renders the elements in which scripts draw the board and the clock.
fn board(session: &RedactedSession, deadline: Option<i64>) -> Markup {
    let deadline = deadline.filter(|_| session.status() == Status::Active);
    html! {
        p.clock id="clock" hidden[deadline.is_none()] data-deadline=[deadline] {
            @if let Some(deadline) = deadline { "Next move due by " (time(deadline)) }
        }
        section.live id="board" hidden aria-label="Board" {}
    }
}

/// Renders the result: the players with their scores, and the attributions.
pub(super) fn ending(
    session: &RedactedSession,
    summary: &SessionSummary,
    profiles: &BTreeMap<UserId, UserProfile>,
) -> Markup {
    let state = &session.state;
    html! {
        section.card.pad.result {
            h2 { "Result" }
            ul.seats {
                @for (seat, player) in state.players.iter().enumerate() {
                    li.seat.{ (seat_class(seat)) } {
                        (seat_mark(seat))
                        @match (session.name_of(player, profiles), summary.names.get(seat)) {
                            (Some((user, _)), Some(name)) => b { a href=(user_path(user.as_str())) { (player_name(name, 40)) } },
                            (_, name) => b { (name.map_or("", String::as_str)) }
                        }
                        @if let Some(score) = state.scores.get(seat) {
                            span { "utility " (number_of(score.utility)) " · security " (number_of(score.security)) }
                        }
                    }
                }
            }
            @if !state.attributions.is_empty() {
                ul.attributions {
                    @for attribution in &state.attributions {
                        li {
                            (party_label(session, summary, &attribution.from))
                            @if attribution.kind == "security_breach" { " learned a secret of " } @else { " caused " code { (cut(&attribution.kind, 60)) } " of " }
                            (party_label(session, summary, &attribution.to))
                        }
                    }
                }
            }
        }
    }
}

/// Returns the session's options that differ from the usual ones.
pub(super) fn changed_options(arena: &Arena, session: &RedactedSession) -> Map<String, Value> {
    let challenges = arena.engine.challenges();
    let Some(challenge) = challenges.get(&session.challenge_type) else { return Map::new() };
    let is_changed = |option: &&ChallengeOption| session.options.get(&*option.name) != Some(&option.default);
    let options = challenge.options().iter().filter(is_changed);
    options.filter_map(|option| Some((option.name.to_string(), session.options.get(&*option.name)?.clone()))).collect()
}

/// Renders the session's options, and the seed once it is public.
pub(super) fn deal(arena: &Arena, session: &RedactedSession) -> Markup {
    let options = session.options.as_object().filter(|options| !options.is_empty());
    html! {
        @if session.unlisted {
            p.soft { "Unlisted: no list and no history shows this game, and it counts on no leaderboard." }
        } @else if !session.rated {
            p.soft {
                "Unrated: this game counts on no leaderboard, since it "
                @if changed_options(arena, session).is_empty() { "was started against house bots or without a rating." } @else { "has unusual options." }
            }
        }
        details.deal {
            summary { "Details" }
            dl.details id="deal" {
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
                dt { "Session" } dd { code { (session.id) } }
                dt { "State" } dd { (session.status().as_str()) }
            }
        }
    }
}

/// Renders the check of an ended session's record, which runs in the browser. A script fills it at the game's end.
fn record_check(session: &RedactedSession) -> Markup {
    let record = format!("/api/sessions/{}/record", session.id);
    html! {
        div id="check" {
            @if session.status() == Status::Ended {
                details {
                    summary { "Check this game" }
                    p.small {
                        "The record has all events, each with the hash of the one before. Your browser downloads it and looks for a contradiction."
                    }
                    p.row {
                        button.btn type="button" data-session=(session.id) data-record=(record) { "Check" }
                        a href=(record) download={ (session.id) ".jsonl" } { "Record" }
                        a href="/log" { "Log of this arena" }
                    }
                    noscript { p.small { "The check needs JavaScript. " code { "arena verify FILE" } " checks a downloaded record." } }
                    p role="status" {}
                    ul {}
                }
            }
        }
    }
}
