//! The list of runs, and the page of a run with its progress, cost, matrices and tables.

use std::collections::BTreeMap;

use arena_eval::{TextTable, VoidRecord, now};
use arena_report::{HTML_POLICY, number_of};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};

use super::super::GUARDS;
use super::super::components::empty;
use super::super::layout::{cut, shown, time};
use super::library::ListedRun;
use super::loaded::{LoadedEval, RunStatus, state_of};
use super::texts::{counted, dollars, grouped};
use super::{EvalPageError, EvalPageResult, EvalSite, EvalVisit, encode};

/// The number of rows from which a table is folded.
const MANY_ROWS: usize = 30;

/// `GET /`: the list of runs.
pub(super) fn list(site: &EvalSite, _visit: &EvalVisit) -> EvalPageResult {
    let runs = site.library.list();
    let now = now();
    let body = html! {
        h1 { "Evaluations" }
        @if runs.is_empty() {
            (empty("There are no runs. The command `arena eval run FILE --out DIR` makes one.", None))
        } @else {
            div.scroll tabindex="0" {
                table.stacked {
                    thead { tr {
                        th scope="col" { "Run" } th scope="col" { "State" } th.number scope="col" { "Games" }
                        th scope="col" { "Last change" }
                    } }
                    tbody { @for ListedRun { name, summary, status } in &runs { tr {
                        @match summary {
                            Ok(summary) => {
                                @let state = state_of(status.as_ref(), summary.finished, summary.planned, now);
                                td {
                                    a href=(site.path(name, "")) { (shown(name)) }
                                    @if summary.title != *name { span.below.soft { (cut(&summary.title, 80)) } }
                                }
                                td data-label="State:" { (state_badge(&state)) }
                                td.number data-label="Games:" {
                                    (grouped(summary.finished as u64)) " of " (grouped(summary.planned as u64))
                                }
                                td data-label="Last change:" { (time(summary.changed)) }
                            }
                            Err(_) => {
                                td { a href=(site.path(name, "")) { (shown(name)) } }
                                td colspan="3" { span.badge { "can't be read" } }
                            }
                        }
                    } } }
                }
            }
        }
    };
    Ok(site.answer("Evaluations", &[], &body))
}

/// `GET /runs/{run}`.
pub(super) fn show(site: &EvalSite, visit: &EvalVisit) -> EvalPageResult {
    let loaded = site.run(visit)?;
    let plan = &loaded.run.plan;
    let (finished, planned) = (loaded.run.games.len(), plan.games.len());
    let status = RunStatus::read(&loaded.run.dir);
    let now = now();
    let state = state_of(status.as_ref(), finished, planned, now);
    let report = loaded.report();
    let spend = spend(&loaded, status.as_ref().filter(|_| state.1))?;
    let title = &plan.file.name;
    let below = |path: &str| site.path(&loaded.name, path);
    let body = html! {
        h1 { (shown(title)) " " (state_badge(&state)) }
        p.row {
            progress max=(planned.max(1)) value=(finished) aria-label="Finished games" {}
            span {
                b { (grouped(finished as u64)) } " of " (counted(planned, "game")) " finished"
                @if let Some(status) = status.as_ref().filter(|_| state.1) { ", " (grouped(status.open)) " in progress" }
            }
        }
        (warnings(&loaded, status.as_ref()))
        (spend)
        form.row role="search" action=(below("/search")) {
            label.hidden for="q" { "Text in calls" }
            input.find id="q" name="q" type="search" required placeholder="Text in prompts and answers";
            button type="submit" { "Search calls" }
        }
        p.row {
            a href=(below("/report.html")) { "Report" } a href=(below("/report.json")) { "JSON" }
            a href=(below("/report.csv")) { "CSV" }
        }
        @for (at, challenge) in plan.challenges.iter().enumerate() {
            section aria-label={ "Matrix of " (challenge.label) } {
                h2 { (shown(&challenge.label)) }
                (matrix(site, &loaded, at))
            }
        }
        section {
            h2 { "Tables" }
            @for table in report.tables() { (text_table(&table)) }
        }
        (changes(&loaded))
    };
    Ok(site.answer(title, &[trail_home(site)], &body))
}

/// `GET /runs/{run}/report.html`.
pub(super) fn report_html(site: &EvalSite, visit: &EvalVisit) -> EvalPageResult {
    let html = site.run(visit)?.report().html();
    // The report has its own style sheet inline, and no scripts.
    let policy = HeaderValue::try_from(format!("{HTML_POLICY}; frame-ancestors 'none'"))
        .map_err(|error| EvalPageError::broken(format!("the policy is invalid: {error}")))?;
    let mut response = Html(html).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(guarded(response))
}

/// `GET /runs/{run}/report.json`.
pub(super) fn report_json(site: &EvalSite, visit: &EvalVisit) -> EvalPageResult {
    let text = site.run(visit)?.report().json(true);
    Ok(guarded(([(header::CONTENT_TYPE, "application/json")], text).into_response()))
}

/// `GET /runs/{run}/report.csv`.
pub(super) fn report_csv(site: &EvalSite, visit: &EvalVisit) -> EvalPageResult {
    let text = site.run(visit)?.report().csv();
    Ok(guarded(([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], text).into_response()))
}

fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(GUARDS);
    response
}

/// Returns the path and name of the list of runs.
pub(super) fn trail_home(site: &EvalSite) -> (String, String) {
    (site.home().to_owned(), "Evaluations".to_owned())
}

/// Returns the paths and names of the list of runs and of a run.
pub(super) fn trail_run(site: &EvalSite, loaded: &LoadedEval) -> Vec<(String, String)> {
    vec![trail_home(site), (site.path(&loaded.name, ""), loaded.run.plan.file.name.clone())]
}

pub(super) fn cell_path(
    site: &EvalSite,
    loaded: &LoadedEval,
    (challenge, agent, against): (usize, usize, usize),
) -> String {
    let plan = &loaded.run.plan;
    let name = |agent: usize| encode(&plan.agents[agent].name);
    let challenge = encode(&plan.challenges[challenge].label);
    site.path(&loaded.name, &format!("/cell?challenge={challenge}&agent={}&against={}", name(agent), name(against)))
}

fn state_badge((state, is_running): &(String, bool)) -> Markup {
    html! { span.badge.is-active[*is_running] { (shown(state)) } }
}

/// Renders the paused models and the void games.
fn warnings(loaded: &LoadedEval, status: Option<&RunStatus>) -> Markup {
    let paused: Vec<(&str, &str)> = status.map_or_else(Vec::new, |status| {
        status.models.iter().filter_map(|model| Some((&*model.name, model.paused.as_deref()?))).collect()
    });
    // The last reason of each agent and class stands for the others.
    let mut voids: BTreeMap<(&str, &str), (usize, usize, &VoidRecord)> = BTreeMap::new();
    for void in &loaded.run.voids {
        let agent = void.agent.as_deref().unwrap_or("this machine");
        let entry = voids.entry((agent, void.class.as_str())).or_insert((0, 0, void));
        entry.0 += 1;
        entry.1 += usize::from(loaded.game(&void.game).is_none());
        entry.2 = void;
    }
    html! {
        @if !paused.is_empty() || !voids.is_empty() {
            div.callout role="note" {
                ul.plain {
                    @for (name, reason) in paused { li { b { (cut(name, 60)) " is paused: " } (cut(reason, 300)) } }
                    @for ((agent, class), (count, open, last)) in voids {
                        li {
                            b { (counted(count, "void game")) " by " (cut(agent, 60)) ", " (cut(class, 40)) ": " }
                            (cut(&last.why, 300))
                            span.soft {
                                @if open == 0 { " All were played again." } @else { " To be played again: " (open) "." }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the spend against the caps. `running` is the status of the process that plays the run, if there is one: its
/// totals need no reading of the calls.
fn spend(loaded: &LoadedEval, running: Option<&RunStatus>) -> EvalPageResult<Markup> {
    let (usd, tokens, calls) = match running {
        Some(status) => (status.usd, status.tokens, None),
        None => {
            let spent = loaded.spent()?;
            (spent.usd, spent.usage.input + spent.usage.output, Some(spent.calls))
        }
    };
    let budget = &loaded.run.plan.file.budget;
    let unpriced: Vec<&str> = loaded
        .run
        .plan
        .file
        .models
        .iter()
        .filter(|model| model.usd_per_million.is_none())
        .map(|model| &*model.name)
        .collect();
    Ok(html! {
        dl.details.spend {
            dt { "Cost" }
            dd {
                (dollars(usd))
                @if let Some(cap) = budget.usd { " of " (dollars(cap)) " " (meter(usd, cap, "Cost")) }
                @if !unpriced.is_empty() {
                    span.soft { " without models that have no prices: " (cut(&unpriced.join(", "), 200)) }
                }
            }
            dt { "Tokens" }
            dd {
                (grouped(tokens))
                @if let Some(cap) = budget.tokens { " of " (grouped(cap)) " " (meter(tokens as f64, cap as f64, "Tokens")) }
            }
            @if let Some(calls) = calls { dt { "Calls" } dd { (grouped(calls)) } }
            @if let Some(hours) = budget.wall_hours { dt { "Time cap" } dd { (number_of(hours)) " h" } }
            @if let Some(started) = loaded.run.started.first() { dt { "Started" } dd { (time(*started)) } }
            @if loaded.run.started.len() > 1 { dt { "Continued" } dd { (counted(loaded.run.started.len() - 1, "time")) } }
            dt { "Last change" } dd { (time(loaded.changed)) }
        }
    })
}

fn meter(used: f64, cap: f64, name: &str) -> Markup {
    html! { progress.small-progress max=(cap.max(f64::MIN_POSITIVE)) value=(used.clamp(0.0, cap.max(0.0))) aria-label=(name) {} }
}

/// Renders the matrix of a challenge: the mean utility of each agent with each other agent.
fn matrix(site: &EvalSite, loaded: &LoadedEval, challenge: usize) -> Markup {
    let plan = &loaded.run.plan;
    let agents = 0..plan.agents.len();
    let is_solo = plan.challenges[challenge].seats == 1;
    let name = |agent: usize| cut(&plan.agents[agent].name, 24);
    let entry = |agent: usize, against: usize| {
        let cell = loaded.cell(challenge, agent, against);
        let path = cell_path(site, loaded, (challenge, agent, against));
        html! {
            td.self[agent == against && !is_solo] {
                @if cell.games == 0 { span.soft { "–" } }
                @else {
                    a href=(path) { (cell.mean().map_or_else(|| "–".to_owned(), number_of)) }
                    small.below { (counted(cell.games, "game")) }
                }
            }
        }
    };
    html! {
        div.scroll tabindex="0" {
            table.cross {
                thead { tr {
                    th scope="col" { "Utility of" }
                    @if is_solo { th scope="col" { "alone" } }
                    @else { @for against in agents.clone() { th scope="col" { "with " (name(against)) } } }
                } }
                tbody { @for agent in agents.clone() { tr {
                    th scope="row" { (name(agent)) }
                    @if is_solo { (entry(agent, agent)) }
                    @else { @for against in agents.clone() { (entry(agent, against)) } }
                } } }
            }
        }
        p.small.soft {
            "A cell has the mean utility of the row's agent over the games that count, and the number of finished games."
            @if !is_solo { " On the diagonal, an agent plays against itself." }
        }
    }
}

fn text_table(table: &TextTable) -> Markup {
    let content = html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { @for column in &table.columns { th scope="col" { (shown(column)) } } } }
                tbody { @for row in &table.rows { tr { @for cell in row { td { (cut(cell, 80)) } } } } }
            }
        }
        @if let Some(note) = &table.note { p.small.soft { (shown(note)) } }
    };
    html! {
        @if table.rows.len() < MANY_ROWS { h3 { (shown(&table.title)) } (content) }
        @else {
            details { summary { (shown(&table.title)) " (" (counted(table.rows.len(), "row")) ")" } (content) }
        }
    }
}

fn changes(loaded: &LoadedEval) -> Markup {
    let changes = &loaded.run.changes;
    html! {
        @if !changes.is_empty() {
            section {
                h2 { "Accepted changes" }
                ul { @for change in changes {
                    li {
                        (time(change.time)) " " b { (cut(&change.name, 80)) } ": " code { (cut(&change.before, 12)) } " → "
                        code { (cut(&change.after, 12)) }
                    }
                } }
            }
        }
    }
}
