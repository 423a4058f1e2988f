//! `/leaderboards`: all boards in words; `/leaderboards/{challenge}`: one challenge's boards, with filters, the games
//! that don't count, and a comparison of two players.

pub(super) mod board;
mod compare;
pub(super) mod measures;

use std::collections::BTreeMap;
use std::sync::Arc;

use arena_model::{Board, BoardId, Ending, GameResult, Phase, Session, Status, Strategy};
use arena_record::log::SessionOutcome;
use arena_store::{RemovedSession, SessionFilter};
use axum::extract::State;
use maud::{Markup, html};

use super::components::{embed, tabs};
use super::layout::{NavEntry, Page};
use super::{PageResult, Visit, base, components, unrendered};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::records::PublishedLog;
use board::{DOTS, Leaderboard, PlayerKind};
use compare::Comparison;
use measures::{Measures, board_summary, board_title};

/// Number of latest ended games that are checked for games that don't count.
const CHECKED: usize = 100;

/// Returns the board that a query selects with `challenge` and `strategy`: the global board without `challenge`, the
/// first board of the challenge without `strategy`. `None` if the arena has no such board yet.
///
/// # Errors
/// If the challenge or the strategy is unknown.
pub(super) fn wanted_board(
    arena: &Arena,
    challenge: Option<&str>,
    strategy: Option<&str>,
) -> PageResult<Option<Board>> {
    let Some(challenge) = challenge else {
        return Ok(arena.engine.scoring().has_global().then(|| arena.engine.global_board()));
    };
    if !arena.engine.challenges().contains_key(challenge) {
        return Err(ApiError::challenge_not_found().into());
    }
    let boards = arena.engine.main_boards(challenge);
    let Some(wanted) = strategy.filter(|strategy| !strategy.is_empty()) else { return Ok(boards.into_iter().next()) };
    let is_wanted = |board: &Board| matches!(board, Board::Of { strategy, .. } if *strategy == wanted);
    let found = boards.into_iter().find(is_wanted);
    let unknown = || ApiError::bad_request("UNKNOWN_STRATEGY", "this challenge has no leaderboard of that strategy");
    Ok(Some(found.ok_or_else(unknown)?))
}

pub(super) async fn list(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let global = wanted_board(&arena, None, None)?;
    let shown = match global {
        Some(board) => {
            Some(section(&arena, &visit, board, ("/leaderboards", "/leaderboard.svg", "All challenges")).await?)
        }
        None => None,
    };
    let hosted = arena.engine.challenges();
    let mut leads: BTreeMap<&str, String> = BTreeMap::new();
    for challenge in hosted.keys() {
        let Some(board) = arena.engine.main_boards(challenge).into_iter().next() else { continue };
        let read = Leaderboard::read(&arena, board, None, (PlayerKind::All, 10)).await?;
        leads.insert(challenge, read.map_or_else(|| "No players yet.".to_owned(), |board| board.lead()));
    }
    let body = html! {
        h1 { "Leaderboards" }
        p.lead {
            b { "Utility" } " measures success at the task. " b { "Security" }
            " measures whether private data stayed private. Both range from −1 to 1; larger is better."
        }
        section {
            h2 { "By challenge" }
            @if hosted.is_empty() { (components::empty("This server hosts no challenges.", None)) }
            ul.boards {
                @for (id, challenge) in &*hosted {
                    li.card.pad {
                        h3 { a href={ "/leaderboards/" (id) } { (challenge.metadata().name) } }
                        @if let Some(lead) = leads.get(id.as_str()) { p { (lead) } }
                        p.small.row {
                            @for strategy in shown_strategies(&arena, id) {
                                a href=(path_of(id, strategy)) title=(board_summary(id, strategy)) { (board_title(id, strategy)) }
                            }
                        }
                    }
                }
            }
        }
        @if arena.settings.evals.folder.is_some() {
            p { a href="/evals" { "Evaluations" } " compare language models, with intervals and costs." }
        }
        @if let Some(shown) = &shown {
            section id="board" {
                h2 { "All challenges" }
                p.soft { "The mean over challenges. Every challenge has the same weight." }
                (shown)
            }
        }
    };
    Ok(unrendered(Page::new("Leaderboards", NavEntry::Leaderboards, body).with_style("tables.css")))
}

/// `GET /leaderboards/{challenge}`, with the parameters `strategy`, `players`, `sort` and `compare`.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let name = visit.param("challenge");
    let board = wanted_board(&arena, Some(name), visit.query.get("strategy"))?;
    let title = arena.engine.challenges().get(name).map_or_else(|| name.to_owned(), |it| it.metadata().name.clone());
    let here = match &board {
        Some(Board::Of { strategy, .. }) => arena.engine.scoring().find(strategy),
        _ => None,
    };
    let paths: Vec<(String, &Strategy)> =
        shown_strategies(&arena, name).into_iter().map(|strategy| (path_of(name, strategy), strategy)).collect();
    let entries: Vec<(&str, &str, bool)> = paths
        .iter()
        .map(|(path, strategy)| {
            (path.as_str(), board_title(name, strategy), here.is_some_and(|here| here.name == strategy.name))
        })
        .collect();
    let path = format!("/leaderboards/{name}");
    let picture = format!("/leaderboard.svg?challenge={name}");
    let shown = match board {
        Some(board) => section(&arena, &visit, board, (&path, &picture, &title)).await?,
        None => components::empty("No finished games yet.", None),
    };
    let body = html! {
        div.intro {
            p.small { a href="/leaderboards" { "All leaderboards" } " · " a href={ "/challenges/" (name) } { "Play or read the rules" } }
            h1 { (title) ": leaderboard" }
            @if let Some(strategy) = here { p.lead { (board_summary(name, strategy)) } }
        }
        @if entries.len() > 1 { (tabs(&entries)) }
        section id="board" { (shown) }
    };
    Ok(unrendered(Page::new(&format!("{title}: leaderboard"), NavEntry::Leaderboards, body).with_style("tables.css")))
}

/// Returns the strategies with a board of this challenge that means something.
pub(super) fn shown_strategies(arena: &Arena, challenge: &str) -> Vec<&'static Strategy> {
    let boards = arena.engine.main_boards(challenge);
    let has_measures = |name: &str| {
        let is_of = |board: &&Board| matches!(board, Board::Of { strategy, .. } if *strategy == name);
        boards.iter().find(is_of).is_some_and(|board| !Measures::of(arena, board).metrics.is_empty())
    };
    arena.engine.scoring().strategies(challenge).filter(|strategy| has_measures(strategy.name)).collect()
}

pub(super) fn path_of(challenge: &str, strategy: &Strategy) -> String {
    format!("/leaderboards/{challenge}?strategy={}", strategy.name)
}

/// Renders a board with its filters, picture, table, comparison and the games that don't count. `path` and `picture`
/// are the URL paths of the page and of the plot.
async fn section(
    arena: &Arena,
    visit: &Visit,
    board: Board,
    (path, picture, title): (&str, &str, &str),
) -> PageResult<Markup> {
    let query = &visit.query;
    let kind = PlayerKind::of(query)?;
    let excluded = Excluded::read(arena, &board).await?;
    let compared = compare::wanted(query)?;
    let comparison = match &compared[..] {
        [one, other] => Some(Comparison::read(arena, &board, [one, other]).await?),
        _ => None,
    };
    let strategy = match &board {
        Board::Of { .. } => query.get("strategy").unwrap_or(""),
        Board::Global(_) => "",
    };
    let state = count_state(arena, &board).await?;
    let Some(read) = Leaderboard::read(arena, board, query.get("sort"), (kind, DOTS)).await? else {
        return Ok(components::empty("This leaderboard has no metrics.", None));
    };
    let filtered = |kind: PlayerKind| path_with(path, &[("strategy", strategy), ("players", kind.name())]);
    let sort = query.get("sort").unwrap_or("");
    let image = path_with(picture, &[("strategy", strategy), ("players", kind.name()), ("sort", sort)]);
    Ok(html! {
        @if let Some(state) = state { p.soft id="count" role="status" { (state) } }
        @if !read.is_empty() || kind != PlayerKind::All {
            nav.filters aria-label="Players" {
                @for each in PlayerKind::ALL {
                    a href=(filtered(each)) aria-current=[(each == kind).then_some("true")] { (each.title()) }
                }
            }
        }
        @match (read.is_empty(), kind) {
            (true, PlayerKind::All) => (components::empty("No players yet. Named players appear here after their first finished game.", Some(("/challenges", "Play a game")))),
            (true, _) => (components::empty("No players of this kind are on the board yet.", None)),
            (false, _) => {
                (read.both(title, path, query))
                @if read.picture(title).is_some() { (embed(&base(arena, &visit.headers), &image, &filtered(kind), title)) }
            }
        }
        @if !read.is_empty() { (compare::section(&read, path, query, &compared, comparison.as_ref())) }
        (excluded.shown())
        p.more { a href=(json_of(path, strategy)) { "This leaderboard as JSON" } }
    })
}

/// Returns a path with these parameters, without the empty ones.
fn path_with(path: &str, parameters: &[(&str, &str)]) -> String {
    parameters.iter().filter(|(_, value)| !value.is_empty()).fold(path.to_owned(), |path, (name, value)| {
        let separator = if path.contains('?') { '&' } else { '?' };
        format!("{path}{separator}{name}={value}")
    })
}

/// The number of unprocessed games above which a board says that it isn't current.
const SHOWN_BEHIND: u64 = 200;

/// Returns a sentence about the count of a scripted strategy; `None` if the board is as current as built-in ones.
async fn count_state(arena: &Arena, board: &Board) -> PageResult<Option<String>> {
    let Board::Of { strategy, .. } = board else { return Ok(None) };
    if !arena.engine.scoring().scripted().iter().any(|scripted| scripted.strategy.name == *strategy) {
        return Ok(None);
    }
    let state = arena.engine.find_strategy(strategy).await?;
    let recomputing =
        state.percent().map(|percent| format!("Recomputing, {percent} %: until then, these are the old numbers."));
    let failing = state.error().map(|error| format!("The strategy cannot count its next game: {error}."));
    let is_behind = failing.is_some() || (recomputing.is_none() && state.behind() > SHOWN_BEHIND);
    let behind = is_behind.then(|| format!("Ended games that it has still to process: {}.", state.behind()));
    let sentences: Vec<String> = [recomputing, failing, behind].into_iter().flatten().collect();
    Ok(if sentences.is_empty() { None } else { Some(sentences.join(" ")) })
}

/// Returns the path of a board in the HTTP API.
fn json_of(path: &str, strategy: &str) -> String {
    match path.strip_prefix("/leaderboards/") {
        None => "/api/scoring".to_owned(),
        Some(challenge) if strategy.is_empty() => format!("/api/scoring/{challenge}"),
        Some(challenge) => format!("/api/scoring/{challenge}?strategy={strategy}"),
    }
}

/// The latest ended games that a board doesn't count, by reason.
struct Excluded {
    /// Number of checked games.
    checked: usize,
    reasons: BTreeMap<&'static str, usize>,
    /// The log at the time of the page; `None` if the arena keeps none.
    log: Option<Arc<PublishedLog>>,
}

impl Excluded {
    /// Checks the latest ended games of the board's challenges.
    async fn read(arena: &Arena, board: &Board) -> PageResult<Excluded> {
        let challenge = match board {
            Board::Of { challenge, .. } => Some(challenge.clone()),
            Board::Global(_) => None,
        };
        let strategy = match board {
            Board::Of { strategy, .. } => Some(*strategy),
            Board::Global(_) => arena.engine.scoring().global_source(),
        };
        let known = strategy.and_then(|name| arena.engine.scoring().find(name));
        let needs_names = known.is_some_and(|strategy| strategy.needs_known_players);
        let filter = SessionFilter { challenge, status: Some(Status::Ended) };
        let games = arena.engine.list_sessions(&filter, 0, CHECKED).await?.items;
        let is_on = |id: &BoardId| match board {
            Board::Of { id: own, .. } => own == id,
            Board::Global(boards) => boards.contains(id),
        };
        let mut reasons = BTreeMap::new();
        for reason in games.iter().filter_map(|game| reason(game, is_on, needs_names)) {
            *reasons.entry(reason).or_default() += 1;
        }
        let log = Some(arena.records.published()).filter(|log| log.size() > 0);
        Ok(Excluded { checked: games.len(), reasons, log })
    }

    fn shown(&self) -> Markup {
        let excluded: usize = self.reasons.values().sum();
        html! {
            section id="excluded" {
                h2 { "Games that count" }
                @if self.checked == 0 {
                    p.soft { "No game has ended yet." }
                } @else if excluded == 0 {
                    p { "All of the latest " (self.checked) " ended games count." }
                } @else {
                    p { (self.checked - excluded) " of the latest " (self.checked) " ended games count. The others don't:" }
                    ul { @for (reason, games) in &self.reasons { li { (games) ": " (reason) } } }
                }
                @if let Some(log) = &self.log { (logged(log)) }
            }
        }
    }
}

/// Renders the numbers of games in the log with its checkpoint: those of `arena board rebuild`, with the same reasons.
fn logged(log: &PublishedLog) -> Markup {
    let counts = &log.counts;
    html! {
        div id="logged" {
            p {
                "Games of all challenges in the " a href="/log" { "log" } ": " (counts.counted) " counted, "
                (counts.excluded_games()) " excluded."
            }
            @if !counts.excluded.is_empty() {
                ul {
                    @for (reason, games) in &counts.excluded {
                        li { (reason) " ×" (games) @if let Some(text) = explanation(reason) { " (" (text) ")" } }
                    }
                }
            }
            p.small.soft {
                "This page was computed at the " a href="/log/checkpoint" { "checkpoint" } " of size " (log.size())
                " with the hash " code { (log.root()) } ". A game that ended in the last second may not be in it."
            }
        }
    }
}

/// Explains a reason of the log; `None` for reasons that need no explanation.
fn explanation(reason: &str) -> Option<&'static str> {
    match (reason, reason.strip_prefix("removed: ")) {
        (SessionOutcome::UNRATED, _) => Some("created without a leaderboard"),
        (SessionOutcome::ABANDONED, _) => Some("no player acted in time"),
        (SessionOutcome::SELF_PLAY, _) => Some("one player held several seats"),
        (SessionOutcome::BAN, _) => Some("abandoned, and a player was banned"),
        (_, Some(RemovedSession::EXPIRED)) => Some("no player joined in time"),
        (_, Some(RemovedSession::ADMINISTRATOR)) => Some("by an administrator"),
        (_, Some(RemovedSession::CREATOR)) => Some("canceled by the creator before the end"),
        _ => None,
    }
}

/// Returns the reason why a board doesn't count an ended game; `None` if the board counts it.
fn reason(game: &Session, is_on: impl Fn(&BoardId) -> bool, needs_names: bool) -> Option<&'static str> {
    let Some(board) = game.facts.board() else { return Some("played with other options, or unrated") };
    if !is_on(&board) {
        return Some("played with an earlier version of the rules, options or instructions");
    }
    let Phase::Ended { ending, .. } = game.phase else { return None };
    if ending != Ending::Completed {
        return Some("abandoned, since no player acted in time");
    }
    let Some(result) = GameResult::of(game) else { return Some("one player held several seats") };
    let named = result.users.iter().flatten().count();
    match named {
        0 => Some("no player was named"),
        named if needs_names && (named < result.users.len() || named < 2) => Some("a player wasn't named"),
        _ => None,
    }
}

/// Returns the page of a board, for links from other pages.
pub(super) fn path_of_board(board: &Board) -> String {
    match board {
        Board::Global(_) => "/leaderboards".to_owned(),
        Board::Of { challenge, strategy, .. } => format!("/leaderboards/{challenge}?strategy={strategy}"),
    }
}

/// Returns a board's name for people, as challenge and strategy.
pub(super) fn title_of(arena: &Arena, board: &Board) -> (String, &'static str) {
    match board {
        Board::Global(_) => ("All challenges".to_owned(), "Mean over challenges"),
        Board::Of { challenge, strategy, .. } => {
            let name = arena.engine.challenges().get(challenge).map(|it| it.metadata().name.clone());
            let title = arena.engine.scoring().find(strategy).map_or("", |strategy| board_title(challenge, strategy));
            (name.unwrap_or_else(|| challenge.clone()), title)
        }
    }
}
