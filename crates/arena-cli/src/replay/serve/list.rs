//! The list of replays: a page without scripts.

use arena_games::board::row::number;
use arena_match::{HeaderLine, ResultPart};
use maud::html;

use super::library::{PAGE, ReplayPage};
use crate::output::one_line;

pub fn page(page: &ReplayPage) -> String {
    let root = one_line(&page.root);
    let end = page.from + page.entries.len();
    let body = html! {
        h1 { "Replays" }
        p.soft { (root) " · " (page.all) @if page.all == 1 { " replay" } @else { " replays" } }
        main {
            div.scroll { table {
                thead { tr {
                    th scope="col" { "Replay" } th scope="col" { "Game" } th scope="col" { "Agents and scores" }
                    th scope="col" { "End" } th.number scope="col" { "Epochs" }
                } }
                tbody {
                    @for entry in &page.entries {
                        tr {
                            th scope="row" { a href={ "replays/" (entry.number) "/" } { (one_line(&entry.name)) } }
                            @match &entry.ends {
                                Ok((header, result)) => {
                                    td { (one_line(&header.game)) }
                                    td { (agents(header, result.as_ref())) }
                                    @if let Some(result) = result {
                                        td { (one_line(result.outcome.termination.as_ref())) }
                                        td.number { (result.epochs) }
                                    } @else {
                                        td.alarm colspan="2" { "incomplete" }
                                    }
                                }
                                Err(what) => { td.alarm colspan="4" { (one_line(what)) } }
                            }
                        }
                    }
                }
            } }
            @if page.all > page.entries.len() {
                p {
                    (page.from + 1) " to " (end) " of " (page.all)
                    @if page.from > 0 { " · " a href={ "?from=" (page.from.saturating_sub(PAGE)) } { "previous" } }
                    @if end < page.all { " · " a href={ "?from=" (end) } { "next" } }
                }
            }
        }
    };
    arena_web::page("Replays", "assets/", None, &body)
}

fn agents(header: &HeaderLine, result: Option<&ResultPart>) -> String {
    let score = |seat: usize| result.and_then(|result| result.scores.get(seat)).map(|score| number(*score));
    let agent = |(seat, name): (usize, &str)| match score(seat) {
        Some(score) => format!("{} {score}", one_line(name)),
        None => one_line(name),
    };
    let names = header.agents.iter().map(|agent| agent.name.as_str());
    names.enumerate().map(agent).collect::<Vec<_>>().join(", ")
}
