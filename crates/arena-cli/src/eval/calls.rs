//! `arena eval calls`: lists and searches the calls of a run, or shows one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arena_eval::{CallLine, CallRecord, EvalRun};
use arena_llm::{Finish, Reply, Turn};
use clap::Args;
use serde_json::Value;

use super::amounts::{dollars, thousands};
use super::{find_game, load, refused};
use crate::exit::Failure;
use crate::output::{Style, Table, counted, note, print, print_line, printable, utc};

/// Options of `arena eval calls`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena eval calls autumn --game 3f2a                        the calls of a game
  arena eval calls autumn --game 3f2a --seat 1
  arena eval calls autumn --agent small --search 'as an AI'
  arena eval calls autumn --call 90c1d2                      one call: prompt, turns and answer
  arena eval calls autumn --search guess --json

Ids of games and keys of calls may be shortened to their first digits. Seats count from 1.")]
pub struct CallsArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Show this call whole.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["game", "seat", "agent", "search", "limit"])]
    pub call: Option<String>,
    /// List the calls of this game only.
    #[arg(long, value_name = "ID")]
    pub game: Option<String>,
    /// List the calls of this seat only, from 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub seat: Option<u32>,
    /// List the calls of this agent only.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// List the calls that contain this text only.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Maximum number of calls to list.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

/// The number of digits of a key in lists.
const KEY_DIGITS: usize = 12;

/// The largest number of characters of an answer in lists.
const EXCERPT: usize = 60;

/// The number of hits of a search that are read for one listed call, since seat and agent are checked afterwards.
const HITS: usize = 50;

pub fn run(args: &CallsArgs, style: Style) -> Result<(), Failure> {
    let run = load(&args.dir)?;
    if let Some(key) = &args.call {
        return show(&run, key, style);
    }
    let most = args.limit as usize;
    let (mut calls, is_complete) = list(&run, args)?;
    let more = calls.len() > most || !is_complete;
    calls.truncate(most);
    if style == Style::Json {
        for call in &calls {
            print_line(call)?;
        }
    } else {
        print(&table(&calls))?;
    }
    if more {
        note(&format!("only the first {} are listed; --limit N lists more", counted(calls.len(), "call")));
    }
    Ok(())
}

/// Returns the matching calls, at least one more than the limit if there are more. The second value is false if the
/// search ended early.
fn list(run: &EvalRun, args: &CallsArgs) -> Result<(Vec<CallRecord>, bool), Failure> {
    let most = args.limit as usize + 1;
    let matches = |call: &CallRecord| {
        args.seat.is_none_or(|seat| call.seat == Some(seat as usize - 1))
            && args.agent.as_ref().is_none_or(|agent| call.agent == *agent)
    };
    let mut found = Vec::new();
    if let Some(id) = &args.game {
        // A game in progress has calls, too, so an unknown id is an error only without calls.
        let game = match find_game(run, id) {
            Ok(game) => game.game.clone(),
            Err(failure) => {
                let mut open = run.plan.games.iter().filter(|game| game.id.starts_with(id.as_str()));
                match (open.next(), open.next()) {
                    (Some(game), None) => game.id.clone(),
                    _ => return Err(failure),
                }
            }
        };
        let text = args.search.as_deref();
        let calls = records(run.calls(&game).map_err(refused)?);
        found.extend(calls.into_iter().filter(|call| matches(call) && text.is_none_or(|text| contains(call, text))));
        return Ok((found, true));
    }
    let hits = most.saturating_mul(HITS);
    let text = args.search.as_deref().or(args.agent.as_deref()).unwrap_or_default();
    let lines = run.search_calls(text, hits).map_err(refused)?;
    let is_complete = lines.len() < hits;
    let is_hit = |call: &CallRecord| args.search.as_deref().is_none_or(|text| contains(call, text));
    found.extend(records(lines).into_iter().filter(|call| matches(call) && is_hit(call)));
    Ok((found, is_complete))
}

fn records(lines: Vec<CallLine>) -> Vec<CallRecord> {
    let record = |line| match line {
        CallLine::Call(call) => Some(*call),
        CallLine::Text { .. } => None,
    };
    lines.into_iter().filter_map(record).collect()
}

/// Returns true if a turn or the answer of a call contains a text.
fn contains(call: &CallRecord, text: &str) -> bool {
    answer(&call.reply).contains(text) || call.new.iter().any(|turn| turn_text(turn).contains(text))
}

fn table(calls: &[CallRecord]) -> String {
    let mut table = Table::new(&["call", "game", "seat", "number", "agent", "input", "output", "ms", "answer"]);
    for call in calls {
        let usage = &call.reply.usage;
        table.row([
            call.key.chars().take(KEY_DIGITS).collect(),
            call.game.clone(),
            call.seat.map_or_else(|| "judge".to_owned(), |seat| (seat + 1).to_string()),
            call.number.to_string(),
            call.agent.clone(),
            thousands(usage.input),
            thousands(usage.output),
            thousands(call.ms),
            excerpt(&answer(&call.reply)),
        ]);
    }
    table.right([2, 3, 5, 6, 7]).to_string()
}

/// Returns the beginning of a text in one line.
fn excerpt(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Prints a call with its prompt, all turns of the seat up to it, and the answer.
fn show(run: &EvalRun, key: &str, style: Style) -> Result<(), Failure> {
    let found: Vec<CallRecord> = records(run.search_calls(key, HITS).map_err(refused)?);
    let mut found = found.into_iter().filter(|call| call.key.starts_with(key));
    let call = match (found.next(), found.next()) {
        (Some(call), None) => call,
        (Some(_), Some(_)) => {
            return Err(Failure::usage(format_args!("several calls begin with {key}; give more digits")));
        }
        (None, _) => return Err(Failure::usage(format_args!("the run has no call {key}"))),
    };
    if style == Style::Json {
        return print_line(&call);
    }
    let earlier = records(run.calls(&call.game).map_err(refused)?);
    let mut earlier: Vec<CallRecord> = earlier
        .into_iter()
        .filter(|other| other.seat == call.seat && other.agent == call.agent && other.number < call.number)
        .collect();
    earlier.sort_by_key(|call| call.number);
    let mut texts = BTreeMap::new();
    for hash in [&call.system, &call.tools] {
        if let Some(text) = run.texts(hash).map_err(refused)? {
            texts.insert(hash.clone(), text);
        }
    }
    let text = |hash: &str| texts.get(hash).map_or("(not stored)", String::as_str);
    print(&printable(&describe(&call, &earlier, text(&call.system), text(&call.tools))))
}

fn describe(call: &CallRecord, earlier: &[CallRecord], system: &str, tools: &str) -> String {
    let usage = &call.reply.usage;
    let seat = call.seat.map_or_else(|| "judge".to_owned(), |seat| format!("seat {}", seat + 1));
    let usd = call.usd.map(|usd| format!(", {} USD", dollars(usd))).unwrap_or_default();
    let estimated = match call.reported {
        Some(reported) => format!(", estimated, since the endpoint's {} cannot be true", thousands(reported.tokens())),
        None if usage.is_estimated => ", estimated".to_owned(),
        None => String::new(),
    };
    let mut text = format!(
        "call {}\ngame {}, {seat}, call {}: {} ({})\n{}, {} ms ({} ms to the first byte), {} bytes sent\n",
        call.key,
        call.game,
        call.number,
        call.agent,
        call.model,
        utc(call.time),
        thousands(call.ms),
        thousands(call.first_byte_ms),
        thousands(call.request_bytes as u64)
    );
    text += &format!(
        "{} input tokens ({} cached), {} output tokens ({} reasoning){estimated}{usd}\n",
        thousands(usage.input),
        thousands(usage.cached),
        thousands(usage.output),
        thousands(usage.reasoning)
    );
    if let Some(id) = &call.reply.request_id {
        text += &format!("request {id}\n");
    }
    for retry in &call.retries {
        text += &format!("failed attempt: {}: {}; waited {} ms\n", retry.class.name(), retry.sentence, retry.pause_ms);
    }
    text += &section("system prompt", system);
    text += &section("tools", &tool_names(tools));
    for call in earlier.iter().chain([call]) {
        for turn in call.new.iter().filter(|turn| !matches!(turn, Turn::Answered(_))) {
            text += &section(turn_title(turn), &turn_text(turn));
        }
        let end = match call.reply.finish {
            Finish::Done => "",
            Finish::Length => " (cut off at the limit of tokens)",
            Finish::Refused => " (refused)",
        };
        text += &section(&format!("answer {}{end}", call.number), &answer(&call.reply));
    }
    text.truncate(text.trim_end().len());
    text
}

fn section(title: &str, text: &str) -> String {
    format!("\n── {title} ──\n{}\n", text.trim_end())
}

/// Returns the names and descriptions of stored tools; other JSON as it is.
fn tool_names(tools: &str) -> String {
    let Ok(Value::Array(list)) = serde_json::from_str(tools) else { return tools.to_owned() };
    let line = |tool: &Value| {
        // Some APIs put the tool into a field of its own.
        let tool = tool.get("function").unwrap_or(tool);
        let name = tool.get("name").and_then(Value::as_str).unwrap_or("?");
        let description = tool.get("description").and_then(Value::as_str).unwrap_or_default();
        format!("{name}: {description}")
    };
    list.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn turn_title(turn: &Turn) -> &'static str {
    match turn {
        Turn::Told(_) => "told",
        Turn::Answered(_) => "answer",
        Turn::Results(_) => "results of tools",
    }
}

fn turn_text(turn: &Turn) -> String {
    match turn {
        Turn::Told(text) => text.clone(),
        Turn::Answered(reply) => answer(reply),
        Turn::Results(results) => {
            let line = |result: &arena_llm::CallResult| {
                if result.is_error { format!("error: {}", result.text) } else { result.text.clone() }
            };
            results.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Returns the text of an answer, with its calls of tools as `NAME {ARGUMENTS}`.
fn answer(reply: &Reply) -> String {
    let mut lines = Vec::new();
    if !reply.text.is_empty() {
        lines.push(reply.text.clone());
    }
    lines.extend(reply.calls.iter().map(|call| {
        let arguments = match &call.arguments {
            Ok(arguments) => serde_json::to_string(arguments).unwrap_or_default(),
            Err(text) => format!("(invalid arguments) {text}"),
        };
        format!("→ {} {arguments}", call.name)
    }));
    if lines.is_empty() { "(empty)".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use arena_llm::{CallResult, FaultClass, Retry, ToolCall, Usage};
    use clap::Parser;
    use expect_test::expect_file;
    use serde_json::json;

    use super::*;
    use crate::command_line::Cli;

    fn call(number: u32, new: Vec<Turn>, text: &str, finish: Finish) -> CallRecord {
        let guess = json!({"content": "142, 377"});
        let calls = vec![ToolCall {
            id: "1".to_owned(),
            name: "guess".to_owned(),
            arguments: Ok(guess.as_object().cloned().unwrap()),
        }];
        let usage = Usage { input: 1500, cached: 1000, output: 20, reasoning: 5, is_estimated: false };
        let reply = Reply {
            text: text.to_owned(),
            calls,
            raw: Value::Null,
            usage,
            finish,
            request_id: Some("req_1".to_owned()),
        };
        CallRecord {
            key: "90c1d2e3f4a5b6c7".to_owned(),
            game: "3f2a00000001".to_owned(),
            seat: Some(1),
            number,
            agent: "small".to_owned(),
            model: "provider/small-1".to_owned(),
            harness: String::new(),
            system: String::new(),
            tools: String::new(),
            new,
            reply,
            usd: Some(0.0012),
            reported: None,
            first_byte_ms: 300,
            ms: 1250,
            request_bytes: 4096,
            retries: vec![Retry {
                class: FaultClass::Busy,
                sentence: "HTTP 429".to_owned(),
                pause_ms: 2000,
                usage: None,
                may_be_paid: false,
            }],
            time: 0,
        }
    }

    #[test]
    fn a_call_is_shown_with_the_turns_before_it() {
        let first = call(1, vec![Turn::Told("The game begins.".to_owned())], "Hm.", Finish::Done);
        let results = vec![CallResult { id: "1".to_owned(), text: "guess needs numbers".to_owned(), is_error: true }];
        // The answer of the call before is in its own line.
        let new = vec![Turn::Answered(first.reply.clone()), Turn::Results(results), Turn::Told("News.".to_owned())];
        let second = call(2, new, "", Finish::Length);
        let tools = r#"[{"name": "guess", "description": "Guesses the numbers.", "parameters": {}}]"#;
        expect_file!["calls/a_call_is_shown_with_the_turns_before_it.txt"].assert_eq(&describe(
            &second,
            &[first],
            "You play.",
            tools,
        ));
    }

    #[test]
    fn a_search_covers_turns_and_answers() {
        let call = call(1, vec![Turn::Told("The GAME begins.".to_owned())], "As an AI, I refuse.", Finish::Refused);
        for (text, found) in [
            ("The GAME", true),
            ("as an ai", false),
            ("As an AI", true),
            ("guess", true),
            ("142", true),
            ("143", false),
        ] {
            assert_eq!(contains(&call, text), found, "{text}");
        }
    }

    #[test]
    fn answers_in_lists_are_short() {
        assert_eq!(excerpt("a\n  b"), "a b");
        assert_eq!(excerpt(&"é".repeat(EXCERPT + 1)), format!("{}…", "é".repeat(EXCERPT)));
        assert_eq!(excerpt(&"é".repeat(EXCERPT)), "é".repeat(EXCERPT));
    }

    #[test]
    fn a_call_is_shown_without_filters() {
        let kind = |args: &str| {
            let parsed = Cli::try_parse_from(["arena", "eval", "calls"].into_iter().chain(args.split(' ')));
            parsed.map(|_| ()).map_err(|error| error.kind().to_string())
        };
        assert_eq!(kind("autumn --call 90c1"), Ok(()));
        assert_eq!(kind("autumn --game 3f2a --seat 1 --agent small --search yes --limit 3"), Ok(()));
        assert!(kind("autumn --call 90c1 --game 3f2a").is_err());
        assert!(kind("autumn --seat 0").is_err());
    }
}
