//! `/tournaments`: what bots play against each other here; `/tournaments/{id}`: how one stands.

use std::collections::BTreeMap;

use arena_report::{Picture, cross_table_picture, grid, number_of, progress_picture, ratings_picture, remarks};
use arena_tournament::Record;
use axum::extract::State;
use maud::{Markup, PreEscaped, html};

use super::layout::{Page, Place, cut, shown, time};
use super::plots::embed;
use super::{PageResult, Visit, answer, base, pager};
use crate::arena::Arena;
use crate::routes::{MatchView, TournamentView, id_of_tournament};
use crate::tournaments::{AgentId, Refusal, Tournaments};

/// Tournaments or bots on a page.
pub(super) const LISTED: usize = 30;

/// Matches on a page.
const MATCHES: usize = 50;

/// Games that are to come, and rounds, on a page.
const TO_COME: usize = 12;
const ROUNDS: usize = 40;

/// Agents of which a page shows the cross table; it grows with their square.
const MOST_CROSSED: usize = 24;

/// Says so where no tournaments are played.
pub(super) fn none() -> Markup {
    html! {
        p.empty { "No tournaments are played on this server. Its owner starts it with " code { "arena serve --tournaments" } " to have some." }
    }
}

/// `GET /tournaments`.
pub(super) async fn list(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let offset = visit.query.number("offset").unwrap_or(0);
    let body = html! {
        h1 { "Tournaments" }
        p.lead { "Bots play against each other, by a plan and on their own." }
        @match &arena.tournaments {
            None => (none()),
            Some(tournaments) => {
                @let (looks, total) = tournaments.list(offset, LISTED, |_| true);
                @if looks.is_empty() {
                    p.empty { "None yet. " a href="/agents" { "The bots" } " that are here can be sent into one with " code { "POST /api/tournaments" } "; " a href="/docs#tournaments" { "the description" } " says how." }
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
                p.more { a href="/agents" { "The bots" } }
            }
        }
    };
    Ok(answer(&Page::new("Tournaments", Place::Tournaments, body)))
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
    let Some(tournaments) = &arena.tournaments else { return Err(Refusal::NoTournament(id.to_string()).into()) };
    let offset = visit.query.number("offset").unwrap_or(0);
    let query = visit.query.clone();
    let base = base(&arena, &visit.headers);
    let shown = tournaments.read(move |tournaments| {
        let (look, record) = tournaments.record(id)?;
        let view = TournamentView::of(&look);
        let passed = usize::try_from(offset).unwrap_or(usize::MAX);
        let games = record.games().skip(passed).take(MATCHES);
        let matches: Vec<MatchView> = games.map(|game| MatchView::of(tournaments, &look, game)).collect();
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
        Ok::<_, Refusal>(Page::new(&name, Place::Tournaments, PreEscaped(body)).with_script("tournament.js"))
    });
    Ok(answer(&shown.await?))
}

fn heading(view: &TournamentView) -> Markup {
    html! {
        div.intro {
            h1 { (title(view)) " " (state(view)) }
            p.soft {
                (view.game) ", " (view.format.name()) ", " (view.agents.len()) " agents, " (view.rounds) " rounds, since " (time(view.created_at))
                @if let Some(at) = view.ended_at { ", ended " (time(at)) } "."
            }
            @if let Some(reason) = &view.reason { p.error { (shown(reason)) } }
            @if !view.is_over() {
                p {
                    progress max=(view.games) value=(view.games_played) {} " "
                    span.counts { (view.games_played) " of " (view.games) " games" @if let Some(rate) = view.games_per_minute { ", " (number_of(rate)) " a minute" } }
                }
            }
        }
    }
}

/// The agent of a name in a tournament, if this server still keeps it.
fn kept_agent(tournaments: &Tournaments, view: &TournamentView, name: &str) -> Option<AgentId> {
    let agent = view.agents.iter().find(|agent| agent.name == name)?;
    tournaments.find_agent(agent.id).map(|agent| agent.id)
}

/// How far each round is, and which games come next. Nothing is told of what they are dealt from.
fn schedule(record: &Record) -> Markup {
    let mut rounds: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for fixture in record.schedule.pairings() {
        let (played, all) = rounds.entry(fixture.round).or_default();
        *all += 1;
        *played += usize::from(record.game(fixture.number).is_some());
    }
    // The last rounds that are over, and those that follow.
    let first = rounds.iter().find(|(_, (played, all))| played < all).map_or(1, |(round, _)| round.saturating_sub(3));
    let shown: Vec<_> = rounds.range(first..).take(ROUNDS).collect();
    let next: Vec<_> = record.schedule.pending().take(TO_COME).collect();
    html! {
        @if !next.is_empty() {
            section {
                h2 { "Being played, and next" }
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

/// Who leads, as table and as pictures.
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
                    td { @if view.is_over() { a href={ "/tournaments/" (view.id) "/matches/" (game.number) "/replay" } { "watch" } } @else { span.soft { "at the end" } } }
                } } }
            } }
        }
    }
}

/// The seat that won, if one was ranked first alone.
fn winner(game: &MatchView) -> Option<usize> {
    let mut first = (0..game.ranks.len()).filter(|seat| game.ranks[*seat] == 1 && !game.is_void);
    first.next().filter(|_| first.next().is_none())
}

/// The winner of a match, or that it was drawn, and the cause of its end: the game's own, or the disqualifications.
fn cause(game: &MatchView) -> Markup {
    let out = || game.verdicts.iter().enumerate().filter_map(|(seat, verdict)| Some((seat, (*verdict)?)));
    html! {
        @match winner(game) {
            _ if game.is_void => "void, counts for no agent",
            Some(seat) => { (cut(&game.agents[seat], 24)) " won" },
            None => "drawn",
        }
        // A match that a disqualification ended has no other cause.
        @if game.termination != "TAINTED" { ", " (in_words(&game.termination)) }
        @for (seat, verdict) in out() {
            br; (cut(&game.agents[seat], 24)) " disqualified: " span.badge { (verdict) }
            @if let Some(Some(detail)) = game.details.get(seat) { small.below { (cut(detail, 120)) } }
        }
    }
}

/// A termination as people read it.
fn in_words(termination: &str) -> String {
    match termination {
        "GAME_ENDED" => "played to the end".to_owned(),
        other => other.to_lowercase().replace('_', " "),
    }
}

/// The same in forms for other programs.
fn forms(view: &TournamentView) -> Markup {
    let path = format!("/api/tournaments/{}/standings", view.id);
    html! {
        p.more {
            "As data: " a href=(path) { "JSON" } " · " a href={ (path) "?format=csv" } { "CSV" }
            @if view.is_over() { " · " a href={ (path) "?format=markdown" } { "Markdown" } " · " a href={ (path) "?format=html" } { "the whole report" } }
        }
    }
}
