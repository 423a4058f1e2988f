//! Parts of sessions for other programs and pages, with public data only: `/sessions/{id}/picture.svg` and
//! `picture.png`, a picture with the result, and `/sessions/{id}/game.pgn`, the moves of a game of chess.

use std::collections::HashMap;

use arena_match::{SessionGame, session_pgn};
use arena_model::{Channel, SessionId, Status, Viewer};
use arena_report::{number_of, printable, utc};
use arena_web::BOARDS_STYLE;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::redacted::{RedactedSession, read_message};
use super::summary::SessionSummary;
use super::{find, seats_taken};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::web::assets::{png, svg};
use crate::web::layout::Card;
use crate::web::{GUARDS, PageResult, Visit, base};

/// `GET /sessions/{id}/picture.svg`.
pub(crate) async fn picture(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let (session, summary, _) = find(&arena, &visit).await?;
    let text = draw(&session, &summary, &summary.picture(&arena, &session).await?);
    Ok(svg(&visit.headers, text, HeaderValue::from_static("no-cache")))
}

/// `GET /sessions/{id}/picture.png`: the same picture for the previews of links, once the game has ended.
pub(crate) async fn picture_file(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let (session, summary, _) = find(&arena, &visit).await?;
    let none = || ApiError::not_found("NO_PICTURE", "only ended games have this picture");
    if session.status() != Status::Ended {
        return Err(none().into());
    }
    let text = draw(&session, &summary, &summary.picture(&arena, &session).await?);
    let file = arena.pictures.png(text).await.ok_or_else(none)?;
    Ok(png(&visit.headers, file))
}

/// Returns the addresses for previews of links to an ended session. Other sessions have none, since their pictures
/// change.
pub(super) fn card(arena: &Arena, visit: &Visit, session: &RedactedSession) -> Option<Card> {
    let url = format!("{}/sessions/{}", base(arena, &visit.headers), session.id);
    let image = format!("{url}/picture.png");
    (session.status() == Status::Ended).then_some(Card { url, image })
}

/// Returns the description of a session's page: the challenge and the players with their scores.
pub(super) fn description(session: &RedactedSession, summary: &SessionSummary) -> String {
    let player = |(seat, name): (usize, &String)| match session.state.scores.get(seat) {
        Some(score) => format!("{name} {}", number_of(score.utility).replace('-', "−")),
        None => name.clone(),
    };
    let players: Vec<String> = summary.isolated.iter().enumerate().map(player).collect();
    match session.status() {
        Status::Ended => {
            format!("{}: {}. Replay the game and check its record.", summary.challenge, players.join(", "))
        }
        _ => format!("{}: {}. Watch the game live.", summary.challenge, seats_taken(session)),
    }
}

/// Maximum number of lines of the picture's text, and the number of characters in a line.
const LINES: usize = 5;
const COLUMNS: usize = 26;

/// The lowest line of a player, above the logo.
const LOWEST: usize = 540;

/// Draws the picture: the result, the players with their scores, and the picture of the game.
fn draw(session: &RedactedSession, summary: &SessionSummary, picture: &Markup) -> String {
    let lines = wrap(summary.title());
    let top = 172 + 56 * lines.len();
    let shown = LOWEST.saturating_sub(top) / 50 + 1;
    // Pictures of challenge types rely on the pages' style of texts.
    let weight = (!picture.0.contains("\"art game\"")).then_some("650");
    let is_exposed = |seat: usize| {
        let player = session.state.players.get(seat);
        session.state.attributions.iter().any(|found| found.kind == "security_breach" && Some(&found.to) == player)
    };
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 630" width="1200" height="630" role="img" aria-label=(summary.title())
            font-family="Inter,system-ui,sans-serif" {
            rect width="1200" height="630" fill="var(--bg)" {}
            text x="64" y="92" font-size="28" fill="var(--soft)" { (summary.challenge) }
            @for (at, line) in lines.iter().enumerate() {
                text x="64" y=(156 + 56 * at) font-size="44" font-weight="700" fill="var(--ink)" { (line) }
            }
            @for (seat, name) in summary.names.iter().take(shown).enumerate() {
                g transform={ "translate(64 " (top + 50 * seat) ")" } font-size="28" fill="var(--ink)" {
                    circle cx="12" cy="-10" r="12" fill={ "var(--seat-" (seat % 8) ")" } {}
                    text x="40" y="0" { (printable(name)) }
                    @if let (Some(score), Status::Ended) = (session.state.scores.get(seat), session.status()) {
                        text x="640" y="0" font-weight="700" text-anchor="end" { (number_of(score.utility).replace('-', "−")) }
                    }
                    @if is_exposed(seat) { text x="550" y="0" font-size="24" text-anchor="end" fill="var(--bad)" { "secret leaked" } }
                }
            }
            svg x="740" y="95" width="420" height="440" font-size="13" font-weight=[weight] text-anchor="middle" { (picture) }
            (PreEscaped(LOGO))
            text x="106" y="586" font-size="24" font-weight="700" fill="var(--soft)" { "Arena" }
        }
    };
    paint(&drawing.into_string())
}

/// The logo of the pages, in the lower left corner.
const LOGO: &str = r##"<svg x="60" y="560" width="36" height="36" viewBox="0 0 28 28"><g fill="none" stroke-width="2"><circle cx="10.5" cy="14" r="9.5" fill="var(--seat-0)" fill-opacity=".3" stroke="var(--seat-0)"/><circle cx="17.5" cy="14" r="9.5" fill="var(--seat-1)" fill-opacity=".3" stroke="var(--seat-1)"/></g></svg>"##;

/// The colors of the light mode that [`BOARDS_STYLE`] doesn't have.
const COLORS: [(&str, &str); 8] = [
    ("--bg", "#faf9f6"),
    ("--panel", "#ffffff"),
    ("--ink", "#17191c"),
    ("--soft", "#5d6369"),
    ("--line", "#d9d6cf"),
    ("--good", "#1f7a4d"),
    ("--bad", "#b3261e"),
    ("--food", "#2f6b2a"),
];

/// Replaces the names of colors by the colors of the light mode: programs that show pictures know neither CSS variables
/// nor `light-dark()`.
fn paint(svg: &str) -> String {
    let light = |line: &'static str| {
        let (name, value) = line.trim().split_once(": light-dark(")?;
        Some((name, value.split(',').next()?))
    };
    let colors: HashMap<&str, &str> = BOARDS_STYLE.lines().filter_map(light).chain(COLORS).collect();
    // Names of players and challenges may contain anything but quotation marks, which are escaped.
    let mut parts = svg.split("\"var(");
    let mut painted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(")\"").unwrap_or((part, ""));
        painted.push_str(&format!("\"{}\"", colors.get(name).unwrap_or(&"#808080")));
        painted.push_str(rest);
    }
    painted
}

fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("the list begins with a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    if lines.len() > LINES {
        lines.truncate(LINES);
        if let Some(last) = lines.last_mut() {
            last.push_str(" …");
        }
    }
    lines
}

/// Number of messages in a read, and the number of messages after which a game has no file.
const MESSAGES: usize = 500;
const MOST_MESSAGES: usize = 20_000;

#[derive(Deserialize)]
struct ChessUpdate {
    public_state: Option<Box<RawValue>>,
    #[serde(default)]
    asked: Vec<String>,
    result: Option<ChessResult>,
}

#[derive(Deserialize)]
struct ChessResult {
    termination: String,
    winners: Vec<String>,
}

/// `GET /sessions/{id}/game.pgn`.
pub(crate) async fn pgn(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let (session, summary, _) = find(&arena, &visit).await?;
    let none = |text: &str| ApiError::not_found("NO_PGN", text);
    if session.challenge_type != "chess" {
        return Err(none("only games of chess have a PGN file").into());
    }
    let id: SessionId = session.id.parse().map_err(|_| none("session not found"))?;
    let updates = read_updates(&arena, id).await?;
    let mut white = None;
    let (mut result, mut termination) = ("*", "unfinished".to_owned());
    let mut states = Vec::new();
    for update in updates {
        let is_white = update.public_state.as_ref().is_some_and(|state| state.get().contains("\"turn\":true"));
        if let (None, [mover]) = (white, &update.asked[..]) {
            white = session.seat_of(mover).map(|seat| if is_white { seat } else { 1 - seat.min(1) });
        }
        if let Some(ended) = update.result {
            result = match (&ended.winners[..], white) {
                ([winner], Some(white)) if session.seat_of(winner) == Some(white) => "1-0",
                ([_], Some(_)) => "0-1",
                _ => "1/2-1/2",
            };
            termination = ended.termination;
        }
        states.extend(update.public_state);
    }
    let name = |seat: usize| summary.names.get(seat).map_or("?", String::as_str);
    let white = white.unwrap_or(0);
    let date = utc(session.created_at);
    let date = date.get(..10).unwrap_or("????-??-??").replace('-', ".");
    let names = [name(white), name(1 - white)];
    let game = SessionGame { names, date: &date, states: &states, result, termination: &termination };
    let text = session_pgn(&game).map_err(|reason| none(&format!("the game has no PGN file: {reason}")))?;
    let mut response = text.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-chess-pgn"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"game.pgn\""));
    headers.extend(GUARDS);
    Ok(response)
}

/// Reads the public states and the result of a chess session.
async fn read_updates(arena: &Arena, id: SessionId) -> PageResult<Vec<ChessUpdate>> {
    let reveal = arena.settings.sessions.reveal_chat;
    let (mut updates, mut from) = (Vec::new(), 1);
    loop {
        let snapshot = arena.engine.read(Channel::Operator(id), from, MESSAGES).await?;
        let Some(last) = snapshot.messages.last() else { return Ok(updates) };
        from = last.index() + 1;
        let ended = snapshot.ended();
        for posted in &snapshot.messages {
            let message = read_message(posted, Viewer::Nobody, ended, reveal);
            let is_public = message.from == "operator" && message.to.is_none();
            updates.extend(serde_json::from_str::<ChessUpdate>(&message.content).ok().filter(|_| is_public));
        }
        if updates.len() > MOST_MESSAGES {
            return Err(ApiError::not_found("NO_PGN", "the game is too long for a PGN file").into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_broken_into_lines() {
        let check = |text: &str, expected: &[&str]| assert_eq!(wrap(text), expected);
        check("Chess", &["Chess"]);
        check(
            "Ada found the common numbers and learned Bob's whole set.",
            &["Ada found the common", "numbers and learned Bob's", "whole set."],
        );
        assert_eq!(wrap(&"word ".repeat(100)).len(), LINES);
        check("", &[""]);
    }

    #[test]
    fn names_of_colors_are_replaced() {
        let painted = paint("<rect fill=\"var(--seat-7-bg)\" stroke=\"var(--food)\"/><g fill=\"var(--none)\"/>");
        assert_eq!(painted, "<rect fill=\"#f3e8e2\" stroke=\"#2f6b2a\"/><g fill=\"#808080\"/>");
        // A name stays as it is.
        let name = html! { text fill="var(--ink)" { "var(--ink) \"var( var(" } }.into_string();
        assert_eq!(paint(&name), "<text fill=\"#17191c\">var(--ink) &quot;var( var(</text>");
    }
}
