//! `GET /users/{id}`: a user's profile, standings and games.

use arena_model::{Board, UserId};
use arena_report::number_of;
use arena_store::Page as Listed;
use axum::extract::State;
use maud::{PreEscaped, html};

use super::board::user_path;
use super::history::History;
use super::layout::{NavEntry, Page, cut, shown};
use super::plots::embed;
use super::seen;
use super::sessions::SessionTable;
use super::{PageResult, Visit, answer, base, pager};
use crate::arena::Arena;
use crate::error::ApiError;

/// Number of sessions per page.
const SESSIONS: usize = 20;

/// `GET /users/{id}`.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let unknown = || ApiError::not_found("USER_NOT_FOUND", "User not found");
    let id: UserId = visit.param("id").parse().map_err(|_| unknown())?;
    let engine = &arena.engine;
    let profiles = engine.find_profiles(std::slice::from_ref(&id)).await?;
    let profile = profiles.get(&id).ok_or_else(unknown)?;
    let offset = visit.query.number("offset").unwrap_or(0);
    let played = engine.list_played(&id, offset, SESSIONS).await?;
    let played = played.unwrap_or(Listed { items: Vec::new(), total: 0 });
    let sessions = SessionTable::of(&arena, played).await?;
    let standings = engine.find_standings(&id).await?.unwrap_or_default();
    let scoring = engine.scoring();
    let hosted = engine.challenges();
    let of_types = hosted.keys().flat_map(|challenge| engine.main_boards(challenge));
    let boards: Vec<_> = [engine.global_board()]
        .into_iter()
        .chain(of_types)
        .filter_map(|board| Some((scoring.entry(&board, &standings)?, board)))
        .collect();
    let path = user_path(id.as_str());
    let history = History::read(&arena, &id).await?;
    let picture = history.as_ref().and_then(|history| history.picture(&arena, &id));
    let met = match &history {
        Some(history) if !boards.is_empty() => Some(history.head_to_head(&arena, &id).await?),
        _ => None,
    };
    let name = seen::name_of(&id, Some(profile));
    let body = html! {
        div.intro {
            h1 { (cut(name, 60)) @if profile.is_benchmark { " " span.badge { "benchmark" } } }
            p.soft { "User " code { (shown(id.as_str())) } @if let Some(model) = &profile.model { ", model " (shown(model.as_str())) } }
        }
        section {
            h2 { "Standings" }
            @if boards.is_empty() {
                p.empty { "No finished rated games yet." }
            } @else {
                div.scroll tabindex="0" { table {
                    thead { tr { th scope="col" { "Challenge" } th scope="col" { "Measure" } th.number scope="col" { "Value" } th.number scope="col" { "95 % interval" } th.number scope="col" { "Games" } } }
                    tbody {
                        @for (entry, board) in &boards {
                            @for metric in scoring.metrics(board) {
                                tr {
                                    td { @match board { Board::Global(_) => "all", Board::Of { challenge, .. } => a href={ "/challenges/" (challenge) "#boards" } { (challenge) } } }
                                    td { (metric.label) @if let Board::Of { strategy, .. } = board { " " small { (strategy) } } }
                                    td.number { (entry.metrics.get(metric.key).map_or_else(|| "–".to_owned(), |value| number_of(*value))) }
                                    td.number { (entry.intervals.get(metric.key).map_or_else(|| "–".to_owned(), |[low, high]| format!("{} … {}", number_of(*low), number_of(*high)))) }
                                    td.number { (entry.games_played) }
                                }
                            }
                        }
                    }
                } }
            }
        }
        @if let Some(picture) = &picture {
            section {
                h2 { "Over time" }
                figure {
                    div.scroll tabindex="0" { (PreEscaped(picture.to_element())) }
                    figcaption { (picture.title) "." }
                }
                (embed(&base(&arena, &visit.headers), &format!("{path}/rating.svg"), &path, "Security and utility over time"))
            }
        }
        @if let Some(met) = met { section { h2 { "Head to head" } (met) } }
        section {
            h2 { "Games" }
            @if sessions.sessions.is_empty() { p.empty { "No games yet." } } @else { (sessions.table()) }
            (pager(&path, &visit.query, (offset, SESSIONS, sessions.total)))
        }
    };
    Ok(answer(&Page::new(name, NavEntry::Elsewhere, body)))
}
