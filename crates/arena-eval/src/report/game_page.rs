//! The page of a game: the breach, the scores, all messages, and the calls.

use std::collections::BTreeMap;

use arena_llm::Finish;
use arena_report::{number_of, printable, shown};
use arena_web::{seat_class, seat_mark};
use maud::{Markup, html};

use super::breaches::{Leak, breaches, leaks};
use super::html::thousands;
use super::tables::{dollars, or_dash};
use crate::game::distinct_names;
use crate::record::{CallLine, CallRecord, GameRecord, TranscriptMessage};
use crate::{EvalRun, FolderError, PlannedChallenge};
use crate::{GameEnd, Measured};

/// The number of characters after which a text is cut.
const LONGEST: usize = 20_000;

/// The number of characters from which an operator's message is folded.
const FOLDED: usize = 600;

/// A finished game with its messages.
pub(super) struct GameView<'r> {
    pub(super) record: &'r GameRecord,
    /// The agents' names by seat.
    pub(super) names: Vec<String>,
    /// The public names of the players by seat, which the operator uses.
    players: Vec<String>,
    messages: Vec<TranscriptMessage>,
    leaks: BTreeMap<usize, Leak>,
}

impl<'r> GameView<'r> {
    /// Reads a finished game. A game without a transcript has no messages.
    pub(super) fn read(
        run: &EvalRun,
        challenge: &PlannedChallenge,
        record: &'r GameRecord,
    ) -> Result<GameView<'r>, FolderError> {
        let agents: Vec<String> = record.seats.iter().map(|seat| seat.agent.clone()).collect();
        let names = distinct_names(&agents);
        let Some(transcript) = run.transcript(&record.game)? else {
            return Ok(GameView { record, names, players: Vec::new(), messages: Vec::new(), leaks: BTreeMap::new() });
        };
        let leaks = leaks(challenge, record, &names, &transcript);
        Ok(GameView { record, names, players: transcript.players, messages: transcript.messages, leaks })
    }

    /// Returns the text of a message. In the operator's texts, the agents' names replace the public names.
    fn text(&self, message: &TranscriptMessage) -> String {
        let mut text = message.content.clone();
        if message.from.is_none() {
            for (player, name) in self.players.iter().zip(&self.names).filter(|(player, _)| !player.is_empty()) {
                text = text.replace(&format!("Player {player}"), name).replace(player.as_str(), name);
            }
        }
        let prefix = message.method.as_ref().map(|method| format!("({method}) "));
        let rest = prefix.and_then(|prefix| text.strip_prefix(&prefix).map(str::to_owned));
        rest.unwrap_or(text)
    }

    fn party(&self, seat: usize) -> Markup {
        let name = self.names.get(seat).map_or("a player", String::as_str);
        html! { b.who.{ (seat_class(seat)) } { (seat_mark(seat)) "\u{a0}" (shown(name)) } }
    }

    /// Renders the first message of each owner with a secret that others learned, and the message before it. In games
    /// without such a message, renders the messages that used the secret. `page` is the path of the game's page, empty
    /// on this page.
    pub(super) fn leak(&self, page: &str) -> Markup {
        let mut owners = Vec::new();
        let mut is_first = |at: &usize| {
            let owner = self.messages[*at].from;
            !owners.contains(&owner) && {
                owners.push(owner);
                true
            }
        };
        let is_given = self.leaks.values().any(|leak| leak.is_given);
        let found = self.leaks.iter().filter(|(_, leak)| leak.is_given == is_given);
        let found: Vec<(&usize, &Leak)> = found.filter(|(at, _)| is_first(at)).collect();
        html! {
            @for (at, leak) in found {
                @if let Some(before) = leak.before {
                    p.soft { "The last message from another player before it:" }
                    (self.quote(before, page, None))
                } @else if leak.is_given {
                    p.soft { "No other player had written to " (shown(&self.names[self.messages[*at].from.unwrap_or(0)])) " before it." }
                }
                (self.quote(*at, page, Some(leak)))
            }
        }
    }

    fn quote(&self, at: usize, page: &str, leak: Option<&Leak>) -> Markup {
        html! {
            blockquote.bubble.{ (self.messages[at].from.map(seat_class).unwrap_or_default()) }.leak[leak.is_some()] {
                (self.head(at, &html! { a.at href={ (page) "#m" (at + 1) } { "message " (at + 1) } }))
                (prose(&self.text(&self.messages[at]), FOLDED))
                @if let Some(leak) = leak { p.flag { (shown(&leak.remark)) } }
            }
        }
    }

    /// Renders the sender, the readers and the channel of a message.
    fn head(&self, at: usize, link: &Markup) -> Markup {
        let message = &self.messages[at];
        let channel = match (message.chat, &message.method) {
            (true, _) => html! { span.channel { "chat" } },
            (false, Some(method)) => html! { code { (shown(method)) } },
            (false, None) => html! { span.channel { "operator channel" } },
        };
        html! {
            p.head {
                @match message.from { Some(seat) => (self.party(seat)), None => b { "Operator" } }
                " → "
                @match (message.to, message.chat || message.from.is_none()) {
                    (Some(to), _) => { (self.party(to)) " only" }
                    (None, true) => "everyone",
                    (None, false) => "operator",
                }
                " " (channel) " " (link)
            }
        }
    }

    fn item(&self, at: usize) -> Markup {
        let message = &self.messages[at];
        let leak = self.leaks.get(&at);
        let is_before = self.leaks.values().any(|leak| leak.before == Some(at));
        let link = html! {
            @if let Some((seat, call)) = message.from.zip(message.call) {
                a.at href={ "#" (call_id(seat, call)) } { "call " (call) }
            }
        };
        let text = self.text(message);
        let (class, is_folded) = match message.from {
            Some(seat) => (format!("bubble {}", seat_class(seat)), false),
            None => ("note".to_owned(), text.chars().nth(FOLDED).is_some()),
        };
        html! {
            li.{ (class) }.own[message.from.is_some_and(|seat| seat % 2 == 1)].leak[leak.is_some()] id={ "m" (at + 1) } {
                (self.head(at, &link))
                @if is_folded { details { summary { (shown(&text.chars().take(80).collect::<String>())) " …" } (prose(&text, LONGEST)) } }
                @else { (prose(&text, LONGEST)) }
                @if let Some(leak) = leak { p.flag { (shown(&leak.remark)) } }
                @if is_before { p.before { "The last message before the leak" } }
            }
        }
    }

    fn transcript(&self) -> Markup {
        html! {
            section {
                h2 { "Messages" }
                @if self.messages.is_empty() { p.soft { "The run has no transcript of this game." } }
                ol.timeline {
                    @for at in 0..self.messages.len() {
                        @let round = self.messages[at].round;
                        @if at == 0 || self.messages[at - 1].round != round {
                            li.round { @if round == 0 { "Before the first answer" } @else { "Round " (round) } }
                        }
                        (self.item(at))
                    }
                }
            }
        }
    }

    /// Renders the game's page below its header.
    pub(super) fn page(&self, calls: Vec<CallLine>) -> Markup {
        let breaches = breaches(self.record);
        html! {
            @if !breaches.is_empty() {
                section.breach {
                    h2 { "The breach" }
                    @for (from, to) in &breaches { p { (self.party(*from)) " learned the secret of " (self.party(*to)) "." } }
                    @if self.leaks.is_empty() { p.soft { "The challenge doesn't say in which message the secret left." } }
                    (self.leak(""))
                }
            }
            section { h2 { "Scores" } (self.scores()) }
            (self.transcript())
            (self.calls(calls))
        }
    }

    /// Renders what is known about the game, besides its result. `label` is the challenge's label.
    pub(super) fn facts(&self, label: &str, counts: bool) -> Markup {
        let record = self.record;
        html! {
            p {
                (shown(label)) ", seed " (record.seed + 1) ", " (counted(u64::from(record.rounds), "round"))
                @if record.end == GameEnd::Stalled { ", ended because no player acted" }
                @if !counts { ", doesn't count" }
                ". Game " code { (record.game) } "."
            }
        }
    }

    fn scores(&self) -> Markup {
        html! {
            div.scroll tabindex="0" { table {
                thead { tr {
                    th scope="col" { "seat" } th.number scope="col" { "utility" } th.number scope="col" { "security" }
                    th scope="col" { "end" } th.number scope="col" { "calls" } th.number scope="col" { "input tokens" }
                    th.number scope="col" { "output tokens" } th.number scope="col" { "US dollars" }
                    th.number scope="col" { "seconds" } th scope="col" { "faults" }
                } }
                tbody { @for (seat, result) in self.record.seats.iter().enumerate() { @let measured = &result.measured; tr {
                    th.name scope="row" { (self.party(seat)) }
                    td.number { (number_of(result.utility)) } td.number { (number_of(result.security)) }
                    td.prose { (result.cause.name()) @if let Some(detail) = &result.detail { ": " (shown(detail)) } }
                    td.number { (measured.calls) }
                    td.number { (thousands(measured.usage.input)) } td.number { (thousands(measured.usage.output)) }
                    td.number { (or_dash(measured.usd, dollars)) }
                    td.number { (number_of(measured.ms as f64 / 1000.0)) }
                    td { (faults(measured)) }
                } } }
            } }
        }
    }

    fn calls(&self, lines: Vec<CallLine>) -> Markup {
        // A repeated number replaces the earlier call: its game was interrupted and played again.
        let mut calls: BTreeMap<(usize, u32), CallRecord> = BTreeMap::new();
        for line in lines {
            if let CallLine::Call(call) = line
                && let Some(seat) = call.seat.filter(|seat| *seat < self.record.seats.len())
            {
                calls.insert((seat, call.number), *call);
            }
        }
        html! {
            @if !calls.is_empty() { section {
                h2 { "Calls" }
                div.scroll tabindex="0" { table {
                    thead { tr {
                        th scope="col" { "call" } th.number scope="col" { "input tokens" } th.number scope="col" { "cached" }
                        th.number scope="col" { "output tokens" } th.number scope="col" { "US dollars" }
                        th.number scope="col" { "seconds" } th scope="col" { "faults" } th scope="col" { "private text" }
                    } }
                    tbody { @for ((seat, number), call) in &calls { @let usage = &call.reply.usage; tr id=(call_id(*seat, *number)) {
                        th.name scope="row" { (self.party(*seat)) " " (number) }
                        td.number { (thousands(usage.input)) } td.number { (thousands(usage.cached)) }
                        td.number { (thousands(usage.output)) @if usage.is_estimated { " (estimated)" } }
                        td.number { (or_dash(call.usd, dollars)) }
                        td.number { (number_of(call.ms as f64 / 1000.0)) }
                        td.prose { (call_faults(call)) }
                        td.prose {
                            @if call.reply.text.is_empty() { "–" }
                            @else if call.reply.text.chars().nth(100).is_none() { (prose(&call.reply.text, LONGEST)) }
                            @else { details { summary { "Show" } (prose(&call.reply.text, LONGEST)) } }
                        }
                    } } }
                } }
                p.soft { "Only the model saw its private text. " code { "arena eval calls DIR --game " (self.record.game) } " lists the calls; with " code { "--call KEY" } " it prints the prompt and the whole answer." }
            } }
        }
    }
}

fn call_id(seat: usize, number: u32) -> String {
    format!("c{}-{number}", seat + 1)
}

/// Returns the faults of a call: failed attempts by class, and unusable answers.
fn call_faults(call: &CallRecord) -> String {
    let retries = call.retries.iter().map(|retry| retry.class.name().to_owned());
    let finish = match call.reply.finish {
        Finish::Done => None,
        Finish::Length => Some("cut off".to_owned()),
        Finish::Refused => Some("refused".to_owned()),
    };
    let invalid = call
        .reply
        .calls
        .iter()
        .filter_map(|tool| tool.arguments.as_ref().err().map(|_| "invalid arguments".to_owned()));
    let faults: Vec<String> = retries.chain(finish).chain(invalid).collect();
    if faults.is_empty() { "–".to_owned() } else { faults.join(", ") }
}

/// Returns the faults of a seat, or a dash.
pub(super) fn faults(measured: &Measured) -> String {
    let counts = [
        (measured.retries, "failed attempt"),
        (measured.invalid, "invalid answer"),
        (measured.refusals, "refusal"),
        (measured.truncated, "truncated answer"),
    ];
    let faults: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| counted(u64::from(count), noun))
        .collect();
    if faults.is_empty() { "–".to_owned() } else { faults.join(", ") }
}

/// Returns a number with its noun, such as `1 game` and `1,200 games`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// Renders a text of several lines, cut after `most` characters.
fn prose(text: &str, most: usize) -> Markup {
    let text = printable(text);
    let (visible, rest) = match text.char_indices().nth(most) {
        None => (&*text, 0),
        Some((at, _)) => (&text[..at], text[at..].chars().count()),
    };
    html! { p.said { bdi { (visible) } @if rest > 0 { span.soft { " … " (thousands(rest as u64)) " more characters" } } } }
}
