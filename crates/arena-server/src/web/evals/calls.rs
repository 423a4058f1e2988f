//! The page of a call: the request, the answer, tokens, price, times and retries; and the search over calls.

use std::time::Duration;

use arena_eval::{CallLine, CallRecord};
use arena_llm::{Finish, Turn};
use arena_web::seat_class;
use maud::{Markup, html};
use serde_json::Value;

use super::super::components::{empty, seat_mark};
use super::super::layout::{cut, shown, time};
use super::loaded::LoadedEval;
use super::run::trail_run;
use super::texts::{answer, call_id, counted, excerpt, grouped, marked, maybe_dollars, prose, told};
use super::{EvalPageError, EvalPageResult, EvalSite, EvalVisit, encode};

/// The number of characters after which a text is cut.
const LONGEST: usize = 100_000;

/// The maximum number of found calls.
const FOUND: usize = 100;

/// The time that a search waits for other searches.
const PATIENCE: Duration = Duration::from_secs(5);

/// `GET /runs/{run}/games/{game}/calls/{call}`.
pub(super) fn show(site: &EvalSite, visit: &EvalVisit) -> EvalPageResult {
    let loaded = site.run(visit)?;
    let (game, id) = (visit.param("game"), visit.param("call"));
    let calls: Vec<CallRecord> = loaded.run.calls(game)?.into_iter().filter_map(call_of).collect();
    let found = calls.iter().rev().find(|call| call_id(call) == id || call.key == id);
    let call = found.ok_or_else(|| EvalPageError::absent("the call"))?;
    let of_seat = |number: Option<u32>| {
        let number = number.filter(|_| call.seat.is_some())?;
        calls.iter().rev().find(|other| other.seat == call.seat && other.number == number)
    };
    let path = |call: &CallRecord| site.game_path(&loaded.name, game, &format!("/calls/{}", encode(&call_id(call))));
    let title = format!("Call {} of {}", call.number, call.agent);
    let (system, tools) = (loaded.run.texts(&call.system)?, loaded.run.texts(&call.tools)?);
    let body = html! {
        h1 { @if let Some(seat) = call.seat { (seat_mark(seat)) " " } (shown(&title)) }
        nav.pager aria-label="Calls of the seat" {
            @if let Some(before) = of_seat(call.number.checked_sub(1)) { a rel="prev" href=(path(before)) { "← previous call" } }
            @if let Some(after) = of_seat(call.number.checked_add(1)) { a rel="next" href=(path(after)) { "next call →" } }
        }
        div.columns {
            section.column {
                h2 { "Request" }
                @if call.number > 1 && call.seat.is_some() { (earlier(&calls, call, &path)) }
                (told(&call.new, LONGEST))
                (folded("System prompt", system.as_deref()))
                (folded("Tools", tools.as_deref().map(pretty).as_deref()))
            }
            section.column.{ (call.seat.map(seat_class).unwrap_or_default()) } {
                h2 { "Answer" }
                div.answer { (answer(&call.reply, LONGEST)) }
                (facts(call))
                (retries(call))
                details { summary { "Answer as received" } pre { code { (shown(&pretty_value(&call.reply.raw))) } } }
            }
        }
    };
    let mut trail = trail_run(site, &loaded);
    if let Some((record, _)) = loaded.game(game) {
        trail.push((site.game_path(&loaded.name, game, ""), record.told.clone()));
    }
    Ok(site.answer(&title, &trail, &body))
}

/// `GET /runs/{run}/search`, with the text as `q` in the query.
pub(super) fn search(site: &EvalSite, visit: &EvalVisit) -> EvalPageResult {
    let loaded = site.run(visit)?;
    let text = visit.query.get("q").unwrap_or_default();
    let found: Vec<CallRecord> = match text.is_empty() {
        true => Vec::new(),
        false => {
            let _searching = site.searching.try_lock_for(PATIENCE).ok_or_else(EvalPageError::busy)?;
            loaded.run.search_calls(text, FOUND)?.into_iter().filter_map(call_of).collect()
        }
    };
    let body = html! {
        h1 { "Search calls" }
        form.row role="search" action=(site.path(&loaded.name, "/search")) {
            label.hidden for="q" { "Text in calls" }
            input.find id="q" name="q" type="search" required value=(arena_report::printable(text));
            button type="submit" { "Search calls" }
        }
        @if !text.is_empty() {
            p {
                @if found.len() == FOUND { "The first " (FOUND) " calls with this text." }
                @else { (counted(found.len(), "call")) " with this text. Upper and lower case differ." }
            }
        }
        @if found.is_empty() && !text.is_empty() { (empty("No call has this text.", None)) }
        ul.found { @for call in &found { li { (hit(site, &loaded, call, text)) } } }
    };
    Ok(site.answer("Search calls", &trail_run(site, &loaded), &body))
}

fn call_of(line: CallLine) -> Option<CallRecord> {
    match line {
        CallLine::Call(call) => Some(*call),
        CallLine::Text { .. } => None,
    }
}

/// Renders a found call with the text around its first occurrence.
fn hit(site: &EvalSite, loaded: &LoadedEval, call: &CallRecord, wanted: &str) -> Markup {
    let path = site.game_path(&loaded.name, &call.game, &format!("/calls/{}", encode(&call_id(call))));
    let texts = texts_of(call);
    let around = texts.iter().find_map(|text| excerpt(text, wanted));
    html! {
        a href=(path) { (cut(&call.agent, 40)) ", call " (call.number) }
        " " span.soft {
            @if let Some((record, _)) = loaded.game(&call.game) { (cut(&record.challenge, 40)) ", seed " (record.seed + 1) }
            @else { "game " code { (cut(&call.game, 12)) } }
        }
        @if let Some(around) = around { p.small { (marked(around)) } }
    }
}

/// Returns all texts of a call: the answer, its tool calls, and the new turns.
fn texts_of(call: &CallRecord) -> Vec<String> {
    let mut texts = vec![call.reply.text.clone()];
    for tool in &call.reply.calls {
        texts.push(tool.name.clone());
        match &tool.arguments {
            Ok(arguments) => {
                texts.extend(
                    arguments.values().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
                );
            }
            Err(reason) => texts.push(reason.clone()),
        }
    }
    for turn in &call.new {
        match turn {
            Turn::Told(text) => texts.push(text.clone()),
            Turn::Answered(reply) => texts.push(reply.text.clone()),
            Turn::Results(results) => texts.extend(results.iter().map(|result| result.text.clone())),
        }
    }
    texts
}

fn earlier(calls: &[CallRecord], call: &CallRecord, path: &dyn Fn(&CallRecord) -> String) -> Markup {
    let before: Vec<&CallRecord> =
        calls.iter().filter(|other| other.seat == call.seat && other.number < call.number).collect();
    html! {
        details {
            summary { "Earlier turns: " (counted(before.len(), "call")) }
            ol.plain { @for other in before {
                li { a href=(path(other)) { "call " (other.number) } " " span.soft { (cut(&opening(other), 80)) } }
            } }
        }
    }
}

/// Returns the beginning of an answer: its text, or the names of its tool calls.
fn opening(call: &CallRecord) -> String {
    match call.reply.text.is_empty() {
        false => call.reply.text.clone(),
        true => call.reply.calls.iter().map(|tool| tool.name.clone()).collect::<Vec<String>>().join(", "),
    }
}

fn facts(call: &CallRecord) -> Markup {
    let usage = &call.reply.usage;
    let finish = match call.reply.finish {
        Finish::Done => "done",
        Finish::Length => "limit of output tokens",
        Finish::Refused => "refused",
    };
    html! {
        dl.details {
            dt { "Model" } dd { (cut(&call.model, 100)) }
            dt { "Input" }
            dd { (grouped(usage.input)) " tokens" @if usage.cached > 0 { ", " (grouped(usage.cached)) " of them cached" } }
            dt { "Output" }
            dd {
                (grouped(usage.output)) " tokens"
                @if usage.reasoning > 0 { ", " (grouped(usage.reasoning)) " of them for reasoning" }
                @if let Some(reported) = call.reported {
                    " (estimated: the endpoint's " (grouped(reported.tokens())) " can't be true)"
                } @else if usage.is_estimated { " (estimated)" }
            }
            dt { "Cost" } dd { (maybe_dollars(call.usd)) }
            dt { "First byte" } dd { (grouped(call.first_byte_ms)) " ms" }
            dt { "Whole answer" } dd { (grouped(call.ms)) " ms" }
            dt { "Request" } dd { (grouped(call.request_bytes as u64)) " bytes" }
            dt { "Finish" } dd { (finish) }
            @if let Some(id) = &call.reply.request_id { dt { "Request id" } dd { code { (cut(id, 120)) } } }
            dt { "Answered" } dd { (time(call.time)) }
            dt { "Harness" } dd { code { (cut(&call.harness, 12)) } }
            dt { "Key" } dd { code { (cut(&call.key, 16)) } }
        }
    }
}

fn retries(call: &CallRecord) -> Markup {
    html! {
        @if !call.retries.is_empty() {
            h3 { (counted(call.retries.len(), "failed attempt")) }
            ul { @for retry in &call.retries {
                li { b { (retry.class.name()) } ": " (cut(&retry.sentence, 300)) ", then " (grouped(retry.pause_ms)) " ms of pause" }
            } }
        }
    }
}

fn folded(name: &str, text: Option<&str>) -> Markup {
    html! {
        details {
            summary { (name) }
            @match text { Some(text) => (prose(text, LONGEST)), None => p.soft { "The run has no such text." } }
        }
    }
}

/// Returns a JSON text with indentation; other texts unchanged.
fn pretty(text: &str) -> String {
    serde_json::from_str(text).map_or_else(|_| text.to_owned(), |value: Value| pretty_value(&value))
}

fn pretty_value(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
