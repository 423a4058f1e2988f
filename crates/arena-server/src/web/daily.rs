//! `/daily` and `/daily/{day}`: the deal of a day, the same for all visitors, with one try for each browser and the
//! results of all.
//!
//! The sessions are unlisted, because the seed of an ended session is public. A cookie, which names no person, has the
//! invite of the browser's game.

use arena_engine::Deal;
use arena_games::ScoreKind;
use arena_model::{Ending, InviteCode, Score, Session, Status};
use arena_report::number_of;
use arena_store::DealResult;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use maud::{Markup, html};

use super::boards::measures::{kind_of, verdict};
use super::challenges::create::start_against_house;
use super::challenges::{copyable, in_short};
use super::components::{empty, picture, primary};
use super::form::Form;
use super::layout::{NavEntry, Page, time};
use super::{PageResult, Visit, base, unrendered};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::records::deals::{LoggedDeal, day_of, find_end};

/// The cookie with the day and the invite of a browser's game.
const COOKIE: &str = "daily";

/// The lifetime of the cookie, in seconds: two days.
const COOKIE_S: u32 = 172_800;

/// Maximum number of different results in the table.
const RESULTS: usize = 20;

/// The browser's own game.
struct OwnGame {
    invite: InviteCode,
    /// The score, once the game has ended.
    score: Option<Score>,
}

fn unknown_day() -> ApiError {
    ApiError::not_found("NOT_FOUND", "there is no deal of this day")
}

/// `GET /daily`: the deal of today.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let day = day_of(arena.engine.now());
    match arena.records.published().deals.get(&day) {
        Some(deal) => render(&arena, &visit.headers, &day, deal).await,
        None => {
            let sentence = "This server has no deal of the day. It needs house bots, a log, and seats without keys.";
            let body = html! { h1 { "Deal of the day" } (empty(sentence, Some(("/challenges", "Choose a game")))) };
            Ok(unrendered(Page::new("Deal of the day", NavEntry::Challenges, body)))
        }
    }
}

/// `GET /daily/{day}`.
pub(super) async fn show_day(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let day = visit.param("day");
    let log = arena.records.published();
    render(&arena, &visit.headers, day, log.deals.get(day).ok_or_else(unknown_day)?).await
}

/// `POST /daily`: starts the browser's game. A second try leads back to the page.
pub(super) async fn play(State(arena): State<Arena>, form: Form) -> PageResult {
    let day = day_of(arena.engine.now());
    let log = arena.records.published();
    let deal = log.deals.get(&day).ok_or_else(unknown_day)?;
    if own_game(&arena, &form.headers, &day).await?.is_some() {
        return Ok((StatusCode::SEE_OTHER, [(header::LOCATION, "/daily")]).into_response());
    }
    let seed = Deal::of_day(arena.records.seed_of_day(&day));
    let started = start_against_house(&arena, &deal.challenge, form.address, Some(seed), async { Ok(true) }).await?;
    let invite = started.ok_or_else(unknown_day)?;
    let secure = if base(&arena, &form.headers).starts_with("https:") { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={day}.{invite}; Path=/daily; Max-Age={COOKIE_S}; HttpOnly; SameSite=Lax{secure}");
    let mut response = super::play::to_seat(&invite);
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| unknown_day())?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Returns the game of the request's cookie, if it is of this day and exists.
async fn own_game(arena: &Arena, headers: &HeaderMap, day: &str) -> PageResult<Option<OwnGame>> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let value = pairs.find(|(name, _)| *name == COOKIE).and_then(|(_, value)| value.split_once('.'));
    let Some(invite) = value.filter(|(of, _)| *of == day).and_then(|(_, invite)| invite.parse().ok()) else {
        return Ok(None);
    };
    let found = arena.engine.find_invited(invite).await?;
    Ok(found.map(|session| OwnGame { invite, score: score_of(&session, invite) }))
}

/// Returns the score of an invite's seat; `None` until the end.
fn score_of(session: &Session, invite: InviteCode) -> Option<Score> {
    let seat = session.seat_of(invite).filter(|_| session.status() == Status::Ended)?;
    session.scores.get(seat.0).copied()
}

async fn render(arena: &Arena, headers: &HeaderMap, day: &str, deal: &LoggedDeal) -> PageResult {
    let now = arena.engine.now();
    let is_today = day == day_of(now);
    let own = own_game(arena, headers, day).await?;
    let seed = arena.records.seed_of_day(day);
    // The seed is public from the end of the day on, so later games don't count.
    let end = find_end(day, now).ok_or_else(unknown_day)?;
    let results = arena.engine.count_results(&seed, end).await?;
    let kind = kind_of(&deal.challenge);
    let challenges = arena.engine.challenges();
    let name = challenges.get(&deal.challenge).map_or(&deal.challenge, |challenge| &challenge.metadata().name);
    let own_score = own.as_ref().and_then(|own| own.score);
    let body = html! {
        div.hero {
            div.intro {
                h1 { @if is_today { "Deal of the day" } @else { "Deal of " (day) } }
                p.lead {
                    @if is_today { "Everyone plays the same game of " (name) " today, against the same house bots, and has one try." }
                    @else { "A game of " (name) " against house bots, the same for everyone on that day." }
                }
                @if let Some(rules) = in_short(&deal.challenge) { p.soft { (rules) } }
                div.row id="actions" {
                    @match &own {
                        Some(OwnGame { invite, score: None }) => (primary(&format!("/play/{invite}"), "Go on with your game")),
                        Some(OwnGame { invite, .. }) => {
                            a.btn href={ "/play/" (invite) } { "Your game" }
                            a.btn href={ "/challenges/" (deal.challenge) } { "Play another deal" }
                        }
                        None if is_today && challenges.contains_key(&deal.challenge) => {
                            form method="post" action="/daily" { button.btn.primary.big { "Play" } }
                        }
                        None if is_today => p { "This server no longer hosts the game." },
                        None => (primary("/daily", "Today's deal")),
                    }
                }
                @if let Some(score) = own_score {
                    p.small.soft { "You had your try. To tell others, paste this:" }
                    (copyable(&share_text(name, day, kind, score, &base(arena, headers))))
                }
            }
            div.card.tile { div.pic { (picture(&deal.challenge)) } }
        }
        section id="results" {
            h2 { "Results" }
            (table(kind, &results, own_score))
        }
        details {
            summary { "Check that the deal was fixed before" }
            p {
                "The " a href="/log" { "log" } " has had the hash of the deal's seed since " (time(deal.at.0)) ", as entry " (deal.leaf) ", so nobody could choose the deal later. "
                @if is_today { "The seed will be here when the day ends, " (time(end.0)) "." }
            }
            dl.details {
                dt { "Hash" } dd { code { (deal.commitment) } }
                @if !is_today { dt { "Seed" } dd { code { (seed.reveal()) } } }
            }
            @if !is_today {
                p.small.soft { "This prints the hash:" }
                (copyable(&format!("printf {} | xxd -r -p | sha256sum", seed.reveal())))
            }
            @if let Some((before, _)) = arena.records.published().deals.range(..day.to_owned()).next_back() {
                p { a href={ "/daily/" (before) } { "The deal of " (before) } }
            }
        }
    };
    let description = format!("The same game of {name} for everyone on {day}, with one try.");
    let page = Page::new("Deal of the day", NavEntry::Challenges, body).with_style("tables.css");
    // The invite of the own game.
    let page = if own.is_some() { page.with_secrets() } else { page };
    Ok(unrendered(page.with_description(&description)))
}

/// Renders the number of games with each result of the person's seat, which is the first, the best result first.
fn table(kind: ScoreKind, results: &[DealResult], own: Option<Score>) -> Markup {
    let own = own.map(|score| in_words(kind, score));
    let mut rows: Vec<(String, Score, u64)> = Vec::new();
    let mut left = 0;
    for result in results {
        match result.scores.first().filter(|_| result.ending == Ending::Completed) {
            None => left += result.games,
            Some(score) => {
                let words = in_words(kind, *score);
                match rows.iter_mut().find(|(known, ..)| *known == words) {
                    Some((.., games)) => *games += result.games,
                    None => rows.push((words, *score, result.games)),
                }
            }
        }
    }
    rows.sort_by(|(_, a, _), (_, b, _)| {
        b.utility.total_cmp(&a.utility).then_with(|| b.security.total_cmp(&a.security))
    });
    if rows.is_empty() {
        return empty("Nobody has finished this deal yet.", None);
    }
    let most = rows.iter().map(|(.., games)| *games).max().unwrap_or(1);
    let hidden: u64 = rows.iter().skip(RESULTS).map(|(.., games)| *games).sum();
    html! {
        div.scroll tabindex="0" { table {
            thead { tr { th scope="col" { "Result" } th.number scope="col" { "Games" } th scope="col" {} } }
            tbody {
                @for (words, _, games) in rows.iter().take(RESULTS) {
                    tr {
                        td { (words) @if own.as_ref() == Some(words) { " " span.badge { "you" } } }
                        td.number { (games) }
                        td { meter min="0" max=(most) value=(games) aria-hidden="true" {} }
                    }
                }
            }
        } }
        @if hidden > 0 { p.small.soft { "and " (hidden) " games with lower scores" } }
        @if left > 0 { p.small.soft { (left) " left before the end" } }
    }
}

/// Returns a score in words, such as `won` or `goal reached, secret kept`.
fn in_words(kind: ScoreKind, score: Score) -> String {
    let number = |value: f64| number_of(value).replace('-', "−");
    match kind {
        ScoreKind::Outcome if score.utility > 0.0 => "won".to_owned(),
        ScoreKind::Outcome if score.utility < 0.0 => "lost".to_owned(),
        ScoreKind::Outcome => "drawn".to_owned(),
        ScoreKind::Points => format!("score {}", number(score.utility)),
        ScoreKind::Secrets => match verdict(kind, score) {
            Some(verdict) => verdict.to_lowercase(),
            None => format!("utility {}, security {}", number(score.utility), number(score.security)),
        },
    }
}

/// Returns the line that a player may paste elsewhere. It doesn't link the game, whose page shows the deal.
fn share_text(name: &str, day: &str, kind: ScoreKind, score: Score, base: &str) -> String {
    let square = |value: f64| match value {
        _ if value > 0.0 => "🟩",
        _ if value < 0.0 => "🟥",
        _ => "🟨",
    };
    let lock = match kind {
        ScoreKind::Secrets if score.security < 0.0 => "🔓",
        ScoreKind::Secrets => "🔒",
        ScoreKind::Points | ScoreKind::Outcome => "",
    };
    format!("Arena {day}, {name}: {}{lock} {}\n{base}/daily", square(score.utility), in_words(kind, score))
}
