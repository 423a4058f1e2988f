//! Parts of sessions for other programs and pages, with public data only: `/sessions/{id}/picture.svg`, a picture with
//! the result, and `/sessions/{id}/game.pgn`, the moves of a game of chess.

use arena_match::{SessionGame, session_pgn};
use arena_model::{Channel, SessionId, Status, Viewer};
use arena_report::{number_of, printable, utc};
use arena_web::BOARDS_STYLE;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::find;
use super::redacted::{RedactedSession, read_message};
use super::summary::SessionSummary;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::web::assets::svg;
use crate::web::{GUARDS, PageResult, Visit};

/// `GET /sessions/{id}/picture.svg`.
pub(crate) async fn picture(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let (session, summary, _) = find(&arena, &visit).await?;
    let text = draw(&session, &summary, &summary.picture(&arena, &session).await?).into_string();
    Ok(svg(&visit.headers, text, HeaderValue::from_static("no-cache")))
}

/// Maximum number of lines of the picture's text, and the number of characters in a line.
const LINES: usize = 5;
const COLUMNS: usize = 28;

/// Maximum number of players in the picture.
const PLAYERS: usize = 5;

/// Draws the picture: the result, the players with their scores, and the picture of the game.
fn draw(session: &RedactedSession, summary: &SessionSummary, picture: &Markup) -> Markup {
    let lines = wrap(summary.title());
    let top = 140 + 56 * lines.len();
    let note = |seat: usize| match (session.state.scores.get(seat), session.status()) {
        (Some(score), Status::Ended) => {
            format!("utility {} · security {}", number_of(score.utility), number_of(score.security))
        }
        _ => String::new(),
    };
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 630" width="1200" height="630" role="img" aria-label=(summary.title()) {
            style { (style()) }
            rect width="1200" height="630" fill="var(--bg)" {}
            text x="64" y="92" font-size="28" fill="var(--soft)" { (summary.challenge) }
            @for (at, line) in lines.iter().enumerate() {
                text x="64" y=(156 + 56 * at) font-size="46" font-weight="700" fill="var(--ink)" { (line) }
            }
            @for (seat, name) in summary.names.iter().take(PLAYERS).enumerate() {
                g.{ (arena_web::seat_class(seat)) } transform={ "translate(64 " (top + 48 * seat) ")" } {
                    circle cx="12" cy="-9" r="12" fill="var(--seat)" {}
                    text x="40" y="0" font-size="28" fill="var(--ink)" { (printable(name)) }
                    text x="700" y="0" font-size="24" text-anchor="end" fill="var(--soft)" { (note(seat)) }
                }
            }
            svg x="760" y="140" width="400" height="350" { (picture) }
        }
    }
}

/// Returns the picture's style: the colors of the light mode.
fn style() -> String {
    // Programs that show pictures don't know `light-dark()`.
    let light = |line: &str| {
        let (name, value) = line.trim().split_once(": light-dark(")?;
        let value = value.split(',').next()?;
        name.starts_with("--").then(|| format!("{name}:{value};"))
    };
    let seats: String = BOARDS_STYLE.lines().filter_map(light).collect();
    let classes: String = (0..8).map(|seat| format!(".seat-{seat}{{--seat:var(--seat-{seat})}}")).collect();
    format!(
        "svg{{--bg:#faf9f6;--panel:#fff;--ink:#17191c;--soft:#5d6369;--line:#d9d6cf;--good:#1f7a4d;--bad:#b3261e;\
         --food:#2f6b2a;{seats}font-family:system-ui,sans-serif}}{classes}\
         .art:not(.game) text{{font-size:13px;font-weight:650;text-anchor:middle}}"
    )
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
            &["Ada found the common numbers", "and learned Bob's whole set."],
        );
        assert_eq!(wrap(&"word ".repeat(100)).len(), LINES);
        check("", &[""]);
    }

    #[test]
    fn a_picture_has_the_colors_of_the_seats() {
        let style = style();
        assert!(
            style.contains("--seat-0:#") && style.contains("--seat-7-bg:#") && !style.contains("light-dark"),
            "{style}"
        );
    }
}
