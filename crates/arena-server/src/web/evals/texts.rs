//! Texts and small parts of the pages of evaluations.

use arena_eval::{CallRecord, GameRecord};
use arena_llm::{Finish, Reply, ToolCall, Turn};
use arena_report::{number_of, printable};
use maud::{Markup, html};

use super::super::components::seat_mark;
use super::super::layout::{cut, shown};
use super::super::with_query;
use crate::request::Query;

/// The number of characters around a hit of a search.
const AROUND: usize = 90;

/// Renders a text of several lines, cut after `most` characters.
pub(super) fn prose(text: &str, most: usize) -> Markup {
    let text = printable(text);
    let (visible, rest) = match text.char_indices().nth(most) {
        None => (&*text, 0),
        Some((at, _)) => (&text[..at], text[at..].chars().count()),
    };
    html! {
        p.said { bdi { (visible) } @if rest > 0 { span.soft { " … " (grouped(rest as u64)) " more characters" } } }
    }
}

pub(super) fn answer(reply: &Reply, most: usize) -> Markup {
    html! {
        @if !reply.text.is_empty() { (prose(&reply.text, most)) }
        @for call in &reply.calls { (tool_call(call, most)) }
        @if reply.text.is_empty() && reply.calls.is_empty() { p.soft { "An empty answer." } }
        @match reply.finish {
            Finish::Done => {}
            Finish::Length => p.flag { "Cut off at the limit of output tokens" },
            Finish::Refused => p.flag { "Refused" },
        }
    }
}

fn tool_call(call: &ToolCall, most: usize) -> Markup {
    html! {
        div.tool {
            code { (cut(&call.name, 60)) }
            @match &call.arguments {
                Err(reason) => p.flag { "Invalid arguments: " (cut(reason, 300)) },
                Ok(arguments) => {
                    dl {
                        @for (name, value) in arguments {
                            dt { (cut(name, 60)) }
                            dd { (prose(&value.as_str().map_or_else(|| value.to_string(), str::to_owned), most)) }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the turns that a model was sent. Its own answers are those of its earlier calls.
pub(super) fn told(turns: &[Turn], most: usize) -> Markup {
    html! {
        @for turn in turns {
            @match turn {
                Turn::Told(text) => div.told { (prose(text, most)) },
                Turn::Answered(_) => {}
                Turn::Results(results) => {
                    @for result in results {
                        div.told.error-result[result.is_error] {
                            small { @if result.is_error { "Error of a tool call" } @else { "Result of a tool call" } }
                            (prose(&result.text, most))
                        }
                    }
                }
            }
        }
    }
}

/// Renders the scores, one row for each seat.
pub(super) fn score_table(record: &GameRecord, names: &[String]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "Seat" } th.number scope="col" { "Utility" } th.number scope="col" { "Security" }
                    th scope="col" { "End" } th.number scope="col" { "Calls" } th.number scope="col" { "Tokens" }
                    th.number scope="col" { "Cost" } th.number scope="col" { "Seconds" }
                } }
                tbody { @for (seat, result) in record.seats.iter().enumerate() { tr {
                    td { (seat_mark(seat)) " " (cut(names.get(seat).map_or("", String::as_str), 40)) }
                    td.number { (number_of(result.utility)) }
                    td.number { (number_of(result.security)) }
                    td.cause { (result.cause.name()) @if let Some(detail) = &result.detail { span.below { (cut(detail, 200)) } } }
                    td.number { (result.measured.calls) }
                    td.number { (grouped(result.measured.usage.input + result.measured.usage.output)) }
                    td.number { (maybe_dollars(result.measured.usd)) }
                    td.number { (number_of(result.measured.ms as f64 / 1000.0)) }
                } } }
            }
        }
    }
}

/// Returns the agents' names by seat. Copies of an agent have the number of their seat after the name.
pub(super) fn seat_names(record: &GameRecord) -> Vec<String> {
    let name = |(seat, agent): (usize, &String)| {
        let is_single = record.seats.iter().filter(|other| other.agent == *agent).count() == 1;
        if is_single { agent.clone() } else { format!("{agent} (player {})", seat + 1) }
    };
    record.seats.iter().map(|seat| &seat.agent).enumerate().map(name).collect()
}

/// Returns the id of a call in paths: the seat and the number, both from 1, or the key of the call of a judge of an earlier program.
pub(super) fn call_id(call: &CallRecord) -> String {
    match call.seat {
        Some(seat) => seat_call_id(seat, call.number),
        None => call.key.clone(),
    }
}

/// Returns the id of the call of a seat, from 0, in paths.
pub(super) fn seat_call_id(seat: usize, number: u32) -> String {
    format!("{}-{number}", seat + 1)
}

/// Returns a number with its noun, such as `1 game` and `1,200 games`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

/// Formats a number with commas between its groups of three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats an amount in US dollars. Small amounts have more decimals.
pub(super) fn dollars(usd: f64) -> String {
    if usd != 0.0 && usd.abs() < 0.1 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

pub(super) fn maybe_dollars(usd: Option<f64>) -> String {
    usd.map_or_else(|| "–".to_owned(), dollars)
}

/// The text before, the first occurrence of `wanted`, and the text after. `None` if it doesn't occur.
pub(super) fn excerpt<'t>(text: &'t str, wanted: &str) -> Option<(&'t str, &'t str, &'t str)> {
    let at = text.find(wanted)?;
    let (before, rest) = text.split_at(at);
    let (found, after) = rest.split_at(wanted.len());
    let begin = before.char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let end = after.char_indices().nth(AROUND).map_or(after.len(), |(at, _)| at);
    Some((&before[begin..], found, &after[..end]))
}

/// A part of a list: the items before it, its highest number of items, and the items of the list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListPart {
    pub(super) offset: usize,
    pub(super) most: usize,
    pub(super) total: usize,
}

/// Renders the links to the parts of a list before and after this one.
pub(super) fn part_links(path: &str, query: &Query, part: ListPart, noun: &str) -> Markup {
    let ListPart { offset, most, total } = part;
    let to = |offset: usize| {
        let text = if offset == 0 { String::new() } else { offset.to_string() };
        with_query(path, query, "offset", &text)
    };
    let end = offset.saturating_add(most).min(total);
    html! {
        @if total > most || offset > 0 {
            nav.pager aria-label="Parts of the list" {
                @if offset > 0 { a rel="prev" href=(to(offset.saturating_sub(most))) { "← earlier" } }
                span { (noun) " " (offset.min(total) + usize::from(offset < total)) "–" (end) " of " (total) }
                @if end < total { a rel="next" href=(to(end)) { "later →" } }
            }
        }
    }
}

/// Renders an excerpt with its occurrence marked.
pub(super) fn marked((before, found, after): (&str, &str, &str)) -> Markup {
    html! { "…" (shown(before)) mark { (shown(found)) } (shown(after)) "…" }
}
