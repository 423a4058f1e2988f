//! `/tournaments`: the list of tournaments; `/tournaments/{id}`: one tournament with its schedule, standings and
//! matches.

use std::collections::BTreeMap;

use arena_report::{
    EXPORTERS, Picture, cross_table_picture, grid, number_of, progress_picture, ratings_picture, remarks,
};
use arena_tournament::Record;
use axum::extract::State;
use maud::{Markup, PreEscaped, html};

use super::layout::{NavEntry, Page, cut, shown, time};
use super::plots::embed;
use super::{PageResult, Visit, answer, base, pager};
use crate::arena::Arena;
use crate::routes::{MatchView, TournamentView, id_of_tournament};
use crate::tournaments::{AgentId, TournamentRefusal, Tournaments};

/// Number of tournaments or agents per page.
pub(super) const LISTED: usize = 30;

/// Number of matches per page.
const MATCHES: usize = 50;

/// Maximum number of upcoming games on a page.
const TO_COME: usize = 12;
/// Maximum number of rounds on a page.
const ROUNDS: usize = 40;

/// Maximum number of agents for a head-to-head table. The table's size grows with the square of that number.
const MOST_CROSSED: usize = 24;

/// Renders the notice that tournaments are disabled on this server.
pub(super) fn none() -> Markup {
    html! {
        p.empty { "Tournaments are disabled on this server. To enable them, start it with " code { "arena serve --tournaments" } "." }
    }
}

/// `GET /tournaments`.
pub(super) async fn list(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let offset = visit.query.number("offset").unwrap_or(0);
    let body = html! {
        h1 { "Tournaments" }
        p.lead { "Scheduled games between uploaded agents." }
        @match &arena.tournaments {
            None => (none()),
            Some(tournaments) => {
                @let (looks, total) = tournaments.list(offset, LISTED, |_| true);
                @if looks.is_empty() {
                    p.empty { "No tournaments yet. Create one from " a href="/agents" { "this server's agents" } " with " code { "POST /api/tournaments" } " (see the " a href="/docs#tournaments" { "API reference" } ")." }
                } @else {
                    div.scroll tabindex="0" { table {
                        thead { tr { th scope="col" { "Tournament" } th scope="col" { "Game" } th scope="col" { "Format" } th scope="col" { "State" } th.number scope="col" { "Agents" } th.number scope="col" { "Games" } th scope="col" { "Created" } } }
                        tbody { @for view in looks.iter().map(TournamentView::of) { tr {
                            td { a href={ "/tournaments/" (view.id) } { (title(&view)) } }
                            td { (view.game) } td { (view.format.name()) } td { (state(&view)) }
                            td.number { (view.agents.len()) } td.number { (view.games_played) " of " (view.games) }
                            td { (time(view.created_at)) }
                        } } }
                    } }
                }
                (pager("/tournaments", &visit.query, (offset, LISTED, total as u64)))
                p.more { a href="/agents" { "All agents" } }
            }
        }
    };
    Ok(answer(&Page::new("Tournaments", NavEntry::Tournaments, body)))
}

pub(super) fn title(view: &TournamentView) -> Markup {
    html! { @match &view.name { Some(name) => (cut(name, 60)), None => { (view.game) ", " (view.agents.len()) " agents" } } }
}

pub(super) fn state(view: &TournamentView) -> Markup {
    html! { span.badge.{ "is-" (view.state.name()) } { (view.state.name()) } }
}

/// `GET /tournaments/{id}`.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let id = id_of_tournament(visit.param("id"))?;
    let Some(tournaments) = &arena.tournaments else {
        return Err(TournamentRefusal::NoTournament(id.to_string()).into());
    };
    let offset = visit.query.number("offset").unwrap_or(0);
    let query = visit.query.clone();
    let base = base(&arena, &visit.headers);
    let shown = tournaments.read(move |tournaments| {
        let (snapshot, record) = tournaments.record(id)?;
        let view = TournamentView::of(&snapshot);
        let passed = usize::try_from(offset).unwrap_or(usize::MAX);
        let games = record.games().skip(passed).take(MATCHES);
        let matches: Vec<MatchView> = games.map(|game| MatchView::of(tournaments, &snapshot, game)).collect();
        let path = format!("/tournaments/{id}");
        let is_going_on = !view.is_over();
        let total = record.games().count() as u64;
        let body = html! {
            div id="live" data-going-on=(is_going_on) {
                (heading(&view))
                @if is_going_on { (schedule(&record)) }
                (standing(&record, |name| kept_agent(tournaments, &view, name)))
                @if total > 0 { (embed(&base, &format!("{path}/standings.svg"), &path, "Ratings")) }
                @if !matches.is_empty() { (list_matches(&view, &matches)) }
                (pager(&path, &query, (offset, MATCHES, total)))
                (forms(&view))
            }
        };
        let body = tournaments.redacted(&body.into_string()).into_owned();
        let name = view.name.clone().unwrap_or_else(|| format!("{}, {} agents", view.game, view.agents.len()));
        Ok::<_, TournamentRefusal>(
            Page::new(&name, NavEntry::Tournaments, PreEscaped(body)).with_script("tournament.js"),
        )
    });
    Ok(answer(&shown.await?))
}

fn heading(view: &TournamentView) -> Markup {
    html! {
        div.intro {
            h1 { (title(view)) " " (state(view)) }
            p.soft {
                (view.game) ", " (view.format.name()) ", " (view.agents.len()) " agents, " (view.rounds) " rounds, created " (time(view.created_at))
                @if let Some(at) = view.ended_at { ", ended " (time(at)) } "."
            }
            @if let Some(reason) = &view.reason { p.error { (shown(reason)) } }
            @if !view.is_over() {
                p {
                    progress max=(view.games) value=(view.games_played) {} " "
                    span.counts { (view.games_played) " of " (view.games) " games" @if let Some(rate) = view.games_per_minute { ", " (number_of(rate)) " per minute" } }
                }
            }
        }
    }
}

/// Returns the id of the tournament's agent with this name, if this server still has the agent.
fn kept_agent(tournaments: &Tournaments, view: &TournamentView, name: &str) -> Option<AgentId> {
    let agent = view.agents.iter().find(|agent| agent.name == name)?;
    tournaments.find_agent(agent.id).map(|agent| agent.id)
}

/// Renders the progress of each round, and the upcoming games without their seeds, which are secret until the
/// tournament ends.
fn schedule(record: &Record) -> Markup {
    let mut rounds: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for fixture in record.schedule.pairings() {
        let (played, all) = rounds.entry(fixture.round).or_default();
        *all += 1;
        *played += usize::from(record.game(fixture.number).is_some());
    }
    // The list starts three rounds before the first unfinished one.
    let first = rounds.iter().find(|(_, (played, all))| played < all).map_or(1, |(round, _)| round.saturating_sub(3));
    let shown: Vec<_> = rounds.range(first..).take(ROUNDS).collect();
    let next: Vec<_> = record.schedule.pending().take(TO_COME).collect();
    html! {
        @if !next.is_empty() {
            section {
                h2 { "Current and upcoming games" }
                div.beside {
                    div.scroll tabindex="0" { table {
                        thead { tr { th.number scope="col" { "#" } th.number scope="col" { "Round" } th scope="col" { "Agents" } } }
                        tbody { @for fixture in &next { tr {
                            td.number { (fixture.number) } td.number { (fixture.round) }
                            td { @for (seat, agent) in fixture.agents.iter().enumerate() { @if seat > 0 { " : " } (cut(record.name(*agent), 24)) } }
                        } } }
                    } }
                    div.scroll tabindex="0" { table {
                        thead { tr { th.number scope="col" { "Round" } th scope="col" { "Progress" } th.number scope="col" { "Games" } } }
                        tbody { @for (round, (played, all)) in &shown { tr {
                            td.number { (round) }
                            td { progress max=(all) value=(played) aria-label={ "Round " (round) } {} }
                            td.number { (played) " of " (all) }
                        } } }
                    } }
                }
            }
        }
    }
}

/// Renders the standings as a table and plots.
fn standing(record: &Record, agent: impl Fn(&str) -> Option<AgentId>) -> Markup {
    let standings = grid(record);
    let is_crossed = record.plan.agents.len() <= MOST_CROSSED;
    let pictures =
        [ratings_picture(record), is_crossed.then(|| cross_table_picture(record)).flatten(), progress_picture(record)];
    html! {
        section {
            h2 { "Standings" }
            div.scroll tabindex="0" { table {
                thead { tr { @for (at, name) in standings.header.iter().enumerate() { th.number[at != 1] scope="col" { (name) } } } }
                tbody { @for row in &standings.rows { tr { @for (at, cell) in row.iter().enumerate() { td.number[at != 1] {
                    @match agent(cell).filter(|_| at == 1) { Some(agent) => a href={ "/agents/" (agent) } { (cut(cell, 60)) }, None => (cut(cell, 60)) }
                } } } } }
            } }
            @for remark in remarks(record) { p.more { (shown(&remark)) } }
        }
        @if pictures.iter().any(Option::is_some) {
            section.pictures { @for picture in pictures.iter().flatten() { (figure(picture)) } }
        }
    }
}

fn figure(picture: &Picture) -> Markup {
    html! { figure { h3 { (picture.title) } div.scroll tabindex="0" { (PreEscaped(picture.to_element())) } } }
}

fn list_matches(view: &TournamentView, matches: &[MatchView]) -> Markup {
    html! {
        section {
            h2 { "Matches" }
            div.scroll tabindex="0" { table {
                thead { tr { th.number scope="col" { "#" } th.number scope="col" { "Round" } th scope="col" { "Agents" } th scope="col" { "Scores" } th scope="col" { "End" } th.number scope="col" { "Epochs" } th scope="col" { "Replay" } } }
                tbody { @for game in matches { tr {
                    td.number { (game.number) } td.number { (game.round) }
                    td { @for (seat, agent) in game.agents.iter().enumerate() {
                        @if seat > 0 { " : " }
                        @if winner(game) == Some(seat) { b { (cut(agent, 24)) } } @else { (cut(agent, 24)) }
                    } }
                    td { (game.scores.iter().map(|score| number_of(*score)).collect::<Vec<_>>().join(" : ")) }
                    td.cause { (cause(game)) }
                    td.number { (game.epochs) }
                    td { @if view.is_over() { a href={ "/tournaments/" (view.id) "/matches/" (game.number) "/replay" } { "Watch" } } @else { span.soft { "not yet" } } }
                } } }
            } }
        }
    }
}

/// Returns the seat of the winner: the only agent on the first rank.
fn winner(game: &MatchView) -> Option<usize> {
    let mut first = (0..game.ranks.len()).filter(|seat| game.ranks[*seat] == 1 && !game.is_void);
    first.next().filter(|_| first.next().is_none())
}

/// Renders a match's winner or draw, with its termination cause and disqualifications.
fn cause(game: &MatchView) -> Markup {
    let out = || game.verdicts.iter().enumerate().filter_map(|(seat, verdict)| Some((seat, (*verdict)?)));
    html! {
        @match winner(game) {
            _ if game.is_void => "void, counts for no agent",
            Some(seat) => { (cut(&game.agents[seat], 24)) " won" },
            None => "drawn",
        }
        // `TAINTED` means that a disqualification ended the match. The list below has the disqualifications.
        @if game.termination != "TAINTED" { ", " (in_words(&game.termination)) }
        @for (seat, verdict) in out() {
            br; (cut(&game.agents[seat], 24)) " disqualified: " span.badge { (verdict) }
            @if let Some(Some(detail)) = game.details.get(seat) { small.below { (cut(detail, 120)) } }
        }
    }
}

/// Returns a termination cause in lower case.
fn in_words(termination: &str) -> String {
    match termination {
        "GAME_ENDED" => "played to the end".to_owned(),
        other => other.to_lowercase().replace('_', " "),
    }
}

/// Renders links to the standings in other formats.
fn forms(view: &TournamentView) -> Markup {
    let path = format!("/api/tournaments/{}/standings", view.id);
    html! {
        p.more {
            "Standings as " a href=(path) { "JSON" }
            @for exporter in EXPORTERS.iter().filter(|exporter| view.is_over() || !exporter.has_seed) {
                " · " a href={ (path) "?format=" (exporter.name) } { (exporter.label) }
            }
        }
    }
}
