//! `GET /users/{id}`: a user's profile, standings and games.

pub(super) mod history;

use arena_engine::EngineError;
use arena_model::{Board, MetricKind, ScoringEntry, UserId, UserProfile};
use arena_store::Page as Listed;
use axum::extract::State;
use maud::{Markup, PreEscaped, html};

use super::boards::board::{counted, encoded, estimate, metric_text, outcomes, user_path};
use super::boards::measures::Measures;
use super::boards::{path_of_board, title_of};
use super::challenges::against_user;
use super::components::embed;
use super::layout::{NavEntry, Page, cut, player_name, shown};
use super::session::SessionTable;
use super::session::redacted::name_of;
use super::{PageResult, Visit, base, components, pager, unrendered};
use crate::arena::Arena;
use history::History;

/// Number of sessions per page.
const SESSIONS: usize = 20;

pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let id: UserId = visit.param("id").parse().map_err(|_| EngineError::UnknownUser)?;
    let engine = &arena.engine;
    let profiles = engine.find_profiles(std::slice::from_ref(&id)).await?;
    let profile = profiles.get(&id).ok_or(EngineError::UnknownUser)?;
    let offset = visit.query.number("offset").unwrap_or(0);
    let played = engine.list_played(&id, offset, SESSIONS).await?;
    let played = played.unwrap_or(Listed { items: Vec::new(), total: 0 });
    let sessions = SessionTable::of(&arena, played).await?;
    let standings = engine.find_standings(&id).await?.unwrap_or_default();
    let scoring = engine.scoring();
    let hosted = engine.challenges();
    let of_types = hosted.keys().flat_map(|challenge| engine.main_boards(challenge));
    let all = [engine.global_board()].into_iter().chain(of_types);
    let entries: Vec<_> = all.filter_map(|board| Some((scoring.entry(&board, &standings)?, board))).collect();
    let boards = measured(&arena, entries);
    let path = user_path(id.as_str());
    let history = History::read(&arena, &id).await?;
    let picture = history.as_ref().and_then(|history| history.picture(&arena, &id));
    let met = match &history {
        Some(history) if !boards.is_empty() => Some(history.head_to_head(&arena, &id).await?),
        _ => None,
    };
    let body = html! {
        (heading(&arena, profile, &sentence(&arena, &boards, sessions.total)))
        section {
            h2 { "Scores" }
            @if boards.is_empty() {
                (components::empty("No finished rated games yet.", Some(("/challenges", "Play a game"))))
            } @else {
                (scores(&arena, &boards))
                // A comma separates the ids of two players.
                @if !id.as_str().contains(',') { p.more { a href={ "/leaderboards?compare=" (encoded(id.as_str())) "#compare" } { "Compare with another player" } } }
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
            @if sessions.sessions.is_empty() { (components::empty("No games yet.", None)) } @else { (sessions.table()) }
            (pager(&path, &visit.query, (offset, SESSIONS, sessions.total)))
        }
        (details(profile))
    };
    Ok(unrendered(Page::new(name_of(&id, Some(profile)), NavEntry::Leaderboards, body).with_style("tables.css")))
}

fn heading(arena: &Arena, profile: &UserProfile, lead: &str) -> Markup {
    html! {
        div.intro {
            p.row {
                span.chip { (kind_of(profile)) }
                @if let Some(model) = &profile.model { span.chip { (cut(model.as_str(), 40)) } }
            }
            h1 { (player_name(name_of(&profile.user_id, Some(profile)), 60)) }
            p.lead { (lead) }
            @if let Some(start) = against_user(arena, profile.user_id.as_str()) { (start) }
        }
    }
}

/// A user's entry on a board, with the measures to show.
type Standing = (ScoringEntry, Board, Measures);

/// Adds the measures that mean something to these entries. A player of games without secrets has no measures of them on
/// the board of all challenges either.
fn measured(arena: &Arena, entries: Vec<(ScoringEntry, Board)>) -> Vec<Standing> {
    let mut boards: Vec<Standing> = (entries.into_iter())
        .map(|(entry, board)| {
            let measures = Measures::of(arena, &board);
            (measures.scaled(entry), board, measures)
        })
        .collect();
    let has_secrets =
        boards.iter().any(|(_, board, measures)| matches!(board, Board::Of { .. }) && measures.has_secrets());
    if !has_secrets {
        boards =
            boards.into_iter().map(|(entry, board, measures)| (entry, board, measures.without_secrets())).collect();
    }
    boards
}

/// Renders the user's scores on these boards.
fn scores(arena: &Arena, boards: &[Standing]) -> Markup {
    html! {
        div.scroll tabindex="0" { table.ranks {
            thead { tr { th scope="col" { "Leaderboard" } th scope="col" { "Measure" } th.number scope="col" { "Score, 95 % interval" } th.number.games scope="col" { "Games" } } }
            tbody {
                @for (entry, board, measures) in boards {
                    @let (challenge, strategy) = title_of(arena, board);
                    @for metric in &measures.metrics {
                        tr {
                            td.name { a href=(path_of_board(board)) { (challenge) } small.below { (strategy) } small.below.played { (counted(entry.games_played)) } }
                            td.name { (metric.label) @if measures.has_outcomes() { small.below { "W–D–L " (outcomes(entry)) } } }
                            td.number { (estimate(metric, entry)) }
                            td.number.games { (entry.games_played) }
                        }
                    }
                }
            }
        } }
    }
}

fn details(profile: &UserProfile) -> Markup {
    let id = profile.user_id.as_str();
    html! {
        details {
            summary { "Details" }
            dl.details {
                dt { "User id" } dd { code { (shown(id)) } }
                @if let Some(model) = &profile.model { dt { "Model" } dd { (shown(model.as_str())) } }
                dt { "Profile" } dd { a href={ "/api/users/" (encoded(id)) } { "JSON" } }
            }
        }
    }
}

fn kind_of(profile: &UserProfile) -> &'static str {
    match (profile.is_benchmark, &profile.model) {
        (true, _) => "benchmark model",
        (false, Some(_)) => "model or program",
        (false, None) => "person",
    }
}

/// Returns a sentence on the player's best measure.
fn sentence(arena: &Arena, boards: &[Standing], played: u64) -> String {
    // The lower end of an interval doesn't favor a few lucky games.
    let of_games = boards.iter().filter(|(_, board, _)| matches!(board, Board::Of { .. }));
    let measures = of_games.flat_map(|(entry, board, measures)| {
        let utility = measures.metrics.iter().filter(|metric| metric.key.ends_with(":utility"));
        utility.filter_map(move |metric| {
            let MetricKind::Mean { low, high } = metric.kind else { return None };
            Some(((entry.intervals.get(metric.key)?[0] - low) / (high - low), metric, entry, board))
        })
    });
    // Of equal measures, the first is the most important.
    let best = measures.reduce(|best, next| if next.0 > best.0 { next } else { best });
    let Some((_, metric, entry, board)) = best else {
        return match played {
            0 => "Has not played yet.".to_owned(),
            _ => "No finished rated games yet.".to_owned(),
        };
    };
    let (challenge, _) = title_of(arena, board);
    let value = entry.metrics.get(metric.key).copied().unwrap_or_default();
    let games = counted(entry.games_played);
    format!("Best at {challenge}: {} {} in {games}.", metric.label.to_lowercase(), metric_text(metric, value))
}
