//! The page of a cell of the matrix: the games of an agent with another agent in a challenge.

use arena_eval::{GameRecord, PlannedGame};
use arena_report::number_of;
use maud::{Markup, html};

use super::super::components::{empty, seat_mark};
use super::super::layout::{cut, shown};
use super::loaded::{LoadedEval, is_in_cell};
use super::run::{cell_path, trail_run};
use super::texts::{ListPart, counted, grouped, maybe_dollars, part_links, seat_names};
use super::{EvalPageError, EvalPageResult, EvalSite, EvalVisit};

/// The number of games on a page.
const GAMES: usize = 100;

/// `GET /runs/{run}/cell`, with `challenge`, `agent` and `against` in the query.
pub(super) fn show(site: &EvalSite, visit: &EvalVisit) -> EvalPageResult {
    let loaded = site.run(visit)?;
    let plan = &loaded.run.plan;
    let wanted = |name: &str| visit.query.get(name).unwrap_or_default();
    let find = |name: &str| plan.agents.iter().position(|agent| agent.name == wanted(name));
    let challenge = plan.challenges.iter().position(|challenge| challenge.label == wanted("challenge"));
    let (Some(challenge), Some(agent), Some(against)) = (challenge, find("agent"), find("against")) else {
        return Err(EvalPageError::absent("the cell"));
    };
    let is_here = |planned: &PlannedGame| planned.challenge == challenge && is_in_cell(&planned.seats, agent, against);
    let games: Vec<&GameRecord> =
        loaded.games().filter(|(_, planned)| is_here(planned)).map(|(record, _)| record).collect();
    let cell = loaded.cell(challenge, agent, against);
    let planned = plan.games.iter().filter(|planned| is_here(planned)).count();
    let label = &plan.challenges[challenge].label;
    let (agent_name, against_name) = (&plan.agents[agent].name, &plan.agents[against].name);
    let heading = match (agent == against, plan.challenges[challenge].seats) {
        (true, 1) => format!("{agent_name} alone in {label}"),
        (true, _) => format!("{agent_name} against itself in {label}"),
        (false, _) => format!("{agent_name} with {against_name} in {label}"),
    };
    let part = ListPart { offset: visit.offset(), most: GAMES, total: games.len() };
    let path = cell_path(site, &loaded, (challenge, agent, against));
    let path = path.split('?').next().unwrap_or_default();
    let body = html! {
        h1 { (shown(&heading)) }
        p {
            (grouped(games.len() as u64)) " of " (counted(planned, "game")) " finished."
            @if let Some(mean) = cell.mean() { " Mean utility of " (cut(agent_name, 40)) ": " b { (number_of(mean)) } "." }
            @if agent != against {
                " " a href=(cell_path(site, &loaded, (challenge, against, agent))) { "The same games for " (cut(against_name, 40)) }
            }
        }
        @if games.is_empty() {
            (empty("No game of this cell is finished.", None))
        } @else {
            (list(site, &loaded, games.iter().copied().skip(part.offset).take(part.most)))
            (part_links(path, &visit.query, part, "Games"))
        }
    };
    Ok(site.answer(&heading, &trail_run(site, &loaded), &body))
}

fn list<'r>(site: &EvalSite, loaded: &LoadedEval, games: impl Iterator<Item = &'r GameRecord>) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table.stacked {
                thead { tr {
                    th scope="col" { "Game" } th.number scope="col" { "Seed" } th scope="col" { "Seats" }
                    th scope="col" { "Utility" } th scope="col" { "Security" } th scope="col" { "End" }
                    th.number scope="col" { "Rounds" } th.number scope="col" { "Tokens" } th.number scope="col" { "Cost" }
                } }
                tbody { @for record in games { (line(site, loaded, record)) } }
            }
        }
    }
}

fn line(site: &EvalSite, loaded: &LoadedEval, record: &GameRecord) -> Markup {
    let by_seat =
        |value: &dyn Fn(usize) -> String| (0..record.seats.len()).map(value).collect::<Vec<String>>().join(" : ");
    let mut causes: Vec<&str> = record.seats.iter().map(|seat| seat.cause.name()).collect();
    causes.dedup();
    let measured = record.seats.iter().map(|seat| &seat.measured);
    let tokens: u64 = measured.clone().map(|measured| measured.usage.input + measured.usage.output).sum();
    let costs: Vec<f64> = measured.filter_map(|measured| measured.usd).collect();
    let cost = (!costs.is_empty()).then(|| costs.iter().sum::<f64>());
    html! {
        tr {
            td { a href=(site.game_path(&loaded.name, &record.game, "")) { (cut(&record.told, 90)) } }
            td.number data-label="Seed:" { (record.seed + 1) }
            td data-label="Seats:" {
                @for (seat, name) in seat_names(record).iter().enumerate() { (seat_mark(seat)) " " (cut(name, 24)) " " }
            }
            td data-label="Utility:" { (by_seat(&|seat| number_of(record.seats[seat].utility))) }
            td data-label="Security:" { (by_seat(&|seat| number_of(record.seats[seat].security))) }
            td data-label="End:" {
                (causes.join(", "))
                @if !loaded.counts(record) { " " span.badge { "doesn't count" } }
            }
            td.number data-label="Rounds:" { (record.rounds) }
            td.number data-label="Tokens:" { (grouped(tokens)) }
            td.number data-label="Cost:" { (maybe_dollars(cost)) }
        }
    }
}
