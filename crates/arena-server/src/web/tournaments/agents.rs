//! `/agents`: the agents of this server's tournaments; `/agents/{id}`: one agent with its tournaments, ratings and
//! head-to-head results.

use std::collections::BTreeMap;
use std::sync::Arc;

use arena_report::{Curve, Estimate, Interval, Picture, TimeAxis, number_of, over_time};
use axum::extract::State;
use maud::{Markup, PreEscaped, html};

use super::{LISTED, elo, none, scale_of, state, title};
use crate::arena::Arena;
use crate::routes::{AgentView, TournamentView, id_of_agent};
use crate::tournaments::{AgentFacts, TournamentOutcome, TournamentRefusal, TournamentSnapshot, Tournaments};
use crate::web::components::embed;
use crate::web::layout::{NavEntry, Page, cut, player_name, time};
use crate::web::{PageResult, Visit, base, components, pager, unrendered};

/// Number of latest tournaments on an agent's page.
const LATEST: usize = 24;

/// Maximum number of listed opponents.
const OPPONENTS: usize = 20;

pub(crate) async fn list(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let offset = visit.query.number("offset").unwrap_or(0);
    let body = html! {
        h1 { "Agents" }
        p.lead { "Programs that play in this server's tournaments." }
        @match &arena.tournaments { None => (none()), Some(tournaments) => (agent_table(tournaments, &visit, offset)) }
    };
    Ok(unrendered(Page::new("Agents", NavEntry::Tournaments, body).with_style("tables.css")))
}

fn agent_table(tournaments: &Tournaments, visit: &Visit, offset: u64) -> Markup {
    let (agents, total) = tournaments.list_agents(offset, LISTED);
    html! {
        @if agents.is_empty() {
            div.empty { p { "No agents yet. Upload one with " code { "POST /api/agents" } " (see the " a href="/docs/api#tournaments" { "API reference" } ")." } }
        } @else {
            div.scroll tabindex="0" { table.stacked {
                thead { tr { th scope="col" { "Name" } th scope="col" { "Version" } th scope="col" { "Added" } } }
                tbody { @for agent in agents.iter().map(|facts| AgentView::of(facts)) { tr {
                    td { a href={ "/agents/" (agent.id) } { (player_name(&agent.name, 64)) } }
                    td data-label="Version" { @match &agent.version { Some(version) => (cut(version, 40)), None => "–" } }
                    td data-label="Added" { (time(agent.created_at)) }
                } } }
            } }
        }
        (pager("/agents", &visit.query, (offset, LISTED, total as u64)))
    }
}

pub(crate) struct AgentHistory {
    facts: Arc<AgentFacts>,
    /// The latest tournaments, newest first, with their results. The results are missing if the journal can't be read.
    latest: Vec<(TournamentSnapshot, Option<TournamentResults>)>,
    /// Number of all tournaments of the agent.
    total: usize,
}

/// A tournament's results, and the agent's number in that tournament.
type TournamentResults = (Arc<TournamentOutcome>, usize);

pub(crate) async fn history(arena: &Arena, id: &str) -> PageResult<AgentHistory> {
    let id = id_of_agent(id)?;
    let unknown = move || TournamentRefusal::NoAgent(id.to_string());
    let Some(tournaments) = &arena.tournaments else { return Err(unknown().into()) };
    let history = tournaments.read(move |tournaments| {
        let facts = tournaments.find_agent(id).ok_or_else(unknown)?;
        let plays = |snapshot: &TournamentSnapshot| snapshot.entry.facts.agents.iter().any(|agent| agent.id == id);
        let (snapshots, total) = tournaments.list(0, LATEST, plays);
        let latest = snapshots.into_iter().map(|snapshot| {
            // A damaged journal is not an error here, since the tournament's own page reports it.
            let outcome = tournaments.outcome(snapshot.entry.facts.id).ok();
            let number = snapshot.entry.facts.agents.iter().position(|agent| agent.id == id);
            let outcome = outcome.zip(number);
            (snapshot, outcome)
        });
        Ok::<_, TournamentRefusal>(AgentHistory { facts, latest: latest.collect(), total })
    });
    Ok(history.await?)
}

impl AgentHistory {
    /// Draws the agent's Elo in each tournament in which it was rated.
    pub(crate) fn picture(&self) -> Option<Picture> {
        let rated = self.latest.iter().rev().filter_map(|(_, outcome)| {
            let (value, interval) = rating(outcome)?;
            value.is_finite().then_some(Estimate { value, interval })
        });
        let curve = Curve { name: "Elo".to_owned(), values: rated.collect() };
        over_time(&TimeAxis { title: "Elo in each tournament, with 95 % interval", x: "tournaments" }, &[curve])
    }

    /// Returns a sentence on the agent's games and its latest rating.
    fn sentence(&self, met: &[(String, [u32; 3])]) -> String {
        let sum = |at: usize| met.iter().map(|(_, results)| results[at]).sum::<u32>();
        let (won, all) = (sum(0), (0..3).map(sum).sum::<u32>());
        let tournaments = match self.total {
            0 => return "Has not played a tournament yet.".to_owned(),
            1 => "1 tournament".to_owned(),
            many => format!("{many} tournaments"),
        };
        let mut ratings = self.latest.iter().filter_map(|(_, outcome)| rating(outcome));
        let rating = ratings.find(|(elo, _)| elo.is_finite());
        let rating = rating.map_or_else(String::new, |(elo, interval)| {
            format!(" Latest rating: Elo {}, 95 % interval {} to {}.", end(elo), end(interval.low), end(interval.high))
        });
        match all {
            0 => format!("Entered {tournaments}; no games yet."),
            all => format!("Ranked above the opponent in {won} of {all} results in {tournaments}.{rating}"),
        }
    }

    /// Counts the games won, drawn and lost against each opponent, most frequent opponents first.
    fn head_to_head(&self) -> Vec<(String, [u32; 3])> {
        let mut against: BTreeMap<String, [u32; 3]> = BTreeMap::new();
        for (snapshot, outcome) in &self.latest {
            let Some((outcome, number)) = outcome else { continue };
            for ((one, other), results) in outcome.against.range((*number, 0)..=(*number, usize::MAX)) {
                debug_assert_eq!(one, number);
                let Some(agent) = snapshot.entry.facts.agents.get(*other) else { continue };
                let sum = against.entry(agent.name.clone()).or_default();
                for (sum, count) in sum.iter_mut().zip(results) {
                    *sum += count;
                }
            }
        }
        let mut all: Vec<_> = against.into_iter().collect();
        all.sort_by_key(|(name, results)| (std::cmp::Reverse(results.iter().sum::<u32>()), name.clone()));
        all
    }
}

pub(crate) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let history = history(&arena, visit.param("id")).await?;
    let agent = AgentView::of(&history.facts);
    let path = format!("/agents/{}", agent.id);
    let met = history.head_to_head();
    let body = html! {
        div.intro {
            p.row { a.small href="/agents" { "All agents" } @if let Some(version) = &agent.version { span.chip { "version " (cut(version, 40)) } } @if let Some(game) = &agent.ladder { a.small href={ "/ladders/" (game) } { "Ladder of " (game) } } }
            h1 { (player_name(&agent.name, 64)) }
            p.lead { (history.sentence(&met)) }
        }
        @if let Some(picture) = history.picture() {
            section {
                h2 { "Rating" }
                figure {
                    div.scroll tabindex="0" { (PreEscaped(picture.to_element())) }
                    figcaption { (picture.title) ". The mean Elo of each tournament's agents is 0." }
                }
                (embed(&base(&arena, &visit.headers), &format!("{path}/rating.svg"), &path, "Elo in each tournament"))
            }
        }
        section {
            h2 { "Tournaments" }
            @if history.latest.is_empty() {
                (components::empty("No tournaments yet.", Some(("/tournaments", "All tournaments"))))
            } @else {
                (tournaments(&history))
            }
            @if history.total > history.latest.len() { p.more { "Latest " (history.latest.len()) " of " (history.total) " tournaments." } }
        }
        @if !met.is_empty() {
            section {
                h2 { "Head to head" }
                div.scroll tabindex="0" { table {
                    thead { tr { th scope="col" { "Agent" } th.number scope="col" { "Games" } th.number scope="col" { "Won" } th.number scope="col" { "Drawn" } th.number scope="col" { "Lost" } } }
                    tbody { @for (name, results) in met.iter().take(OPPONENTS) { tr {
                        td { (cut(name, 40)) } td.number { (results.iter().sum::<u32>()) }
                        @for count in results { td.number { (count) } }
                    } } }
                } }
                p.more {
                    "Games of the tournaments listed above. A game counts as won if the agent ranked above the opponent. "
                    @if met.len() > OPPONENTS { (met.len() - OPPONENTS) " less frequent opponents are not listed." }
                }
            }
        }
        details {
            summary { "Details" }
            dl.details {
                dt { "Id" } dd { code { (agent.id) } }
                dt { "Added" } dd { (time(agent.created_at)) }
                dt { "Profile" } dd { a href={ "/api/agents/" (agent.id) } { "JSON" } }
            }
        }
    };
    Ok(unrendered(Page::new(&agent.name, NavEntry::Tournaments, body).with_style("tables.css")))
}

fn tournaments(history: &AgentHistory) -> Markup {
    let ratings = history.latest.iter().filter_map(|(_, outcome)| rating(outcome));
    let scale = scale_of(ratings.flat_map(|(elo, interval)| [elo, interval.low, interval.high]));
    html! {
        div.scroll tabindex="0" { table.ranks {
            thead { tr { th scope="col" { "Tournament" } th scope="col" { "State" } th.number.games scope="col" { "Agents" } th.number scope="col" { "Elo, 95 % interval" } th.games scope="col" { "Created" } } }
            tbody { @for (snapshot, outcome) in &history.latest { tr {
                @let view = TournamentView::of(snapshot);
                td.name { a href={ "/tournaments/" (view.id) } { (title(&view)) } small.below { (view.game) } } td { (state(&view)) }
                td.number.games { (view.agents.len()) }
                td.number { @match rating(outcome) { Some((value, interval)) => (elo(value, interval, Some(scale))), None => "–" } }
                td.games { (time(view.created_at)) }
            } } }
        } }
    }
}

/// Returns the agent's rating in a tournament.
fn rating(outcome: &Option<TournamentResults>) -> Option<(f64, Interval)> {
    let (outcome, number) = outcome.as_ref()?;
    *outcome.ratings.get(*number)?
}

fn end(value: f64) -> String {
    if value.is_finite() { number_of(value.round()) } else { "?".to_owned() }
}
