//! Tests of the pages of a recorded run.

use std::collections::BTreeMap;

use arena_llm::{FaultClass, Finish, Reply, Retry, ToolCall, Turn, Usage};
use arena_report::is_report_file;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{GAMES, ReportSite};
use crate::record::{
    CallLine, CallRecord, GameRecord, JournalLine, SeatRecord, Transcript, TranscriptMessage, VoidRecord,
};
use crate::{Cause, GameEnd, Measured};
use crate::{EvalFolder, EvalPlan, EvalRun, RunFile};

const FILE: &str = r#"
    name = "autumn <b>"
    seeds = 2
    self_play = false
    [[models]]
    name = "small <i>"
    model = "careful"
    endpoint = "ollama"
    [[baselines]]
    agent = "house"
    [[challenges]]
    name = "psi"
"#;

/// A text of a model that tries to change the page and the terminal.
const HOSTILE: &str = "</p><script>alert(1)</script><img src=x onerror=alert(1)> \u{1b}[31m \u{202e}needle";

/// The final state of a game in which seat 0 has the secret numbers 3 and 4.
const STATE: &str = r#"{"userSets": [[1, 2, 3, 4], [1, 2, 5, 6]], "intersectionSet": [1, 2], "guesses": [[1, 2], [1, 2, 3]], "tellsAtStart": true}"#;

struct RecordedRun {
    folder: EvalFolder,
    root: TempDir,
}

impl RecordedRun {
    /// Creates a run whose second game is void.
    fn new() -> RecordedRun {
        let root = tempfile::tempdir().unwrap();
        let plan = EvalPlan::of(RunFile::parse(FILE, "test.toml").unwrap(), root.path()).unwrap();
        let mut folder = EvalFolder::create_or_open(&root.path().join("run"), plan, false).unwrap();
        let void = VoidRecord {
            game: folder.plan().games[1].id.clone(),
            agent: Some("small <i>".to_owned()),
            class: "unpaid".to_owned(),
            why: "HTTP 402: no <credit>".to_owned(),
            time: 5,
        };
        folder.record(JournalLine::Void(void)).unwrap();
        RecordedRun { folder, root }
    }

    /// Finishes the game at this place of the plan: the second seat learned the secret of the first one.
    fn finish(&mut self, at: usize, messages: Vec<TranscriptMessage>) -> String {
        let plan = self.folder.plan();
        let planned = plan.games[at].clone();
        let names: Vec<String> = planned.seats.iter().map(|agent| plan.agents[*agent].name.clone()).collect();
        let model = names.iter().position(|name| name == "small <i>").unwrap();
        let seat = |agent: &String| SeatRecord {
            agent: agent.clone(),
            cause: Cause::Completed,
            detail: Some("detail <s>".to_owned()),
            security: 1.0,
            utility: 0.25,
            measured: Measured { retries: 1, ..Measured::default() },
        };
        let record = GameRecord {
            game: planned.id.clone(),
            challenge: "psi".to_owned(),
            seed: planned.seed_number,
            seats: names.iter().map(seat).collect(),
            end: GameEnd::Completed,
            attributions: vec![(1, 0, "security_breach".to_owned())],
            told: format!("A draw at {at} <u>."),
            rounds: 1,
        };
        let transcript = Transcript {
            game: planned.id.clone(),
            players: vec!["inv_a".to_owned(), "inv_b".to_owned()],
            messages,
            state: STATE.to_owned(),
        };
        let calls = self.folder.calls();
        let arguments: Map<String, Value> = [("content".to_owned(), json!(HOSTILE))].into_iter().collect();
        let call = CallRecord {
            key: format!("{at:064x}"),
            game: planned.id.clone(),
            seat: Some(model),
            number: 1,
            agent: "small <i>".to_owned(),
            model: "careful".to_owned(),
            harness: "ab".repeat(32),
            system: calls.add_text("You are <em>careful</em>.").unwrap(),
            tools: calls.add_text("[]").unwrap(),
            new: vec![Turn::Told("Your turn.".to_owned())],
            reply: Reply {
                text: format!("I think {HOSTILE}"),
                calls: vec![ToolCall { id: "c1".to_owned(), name: "chat".to_owned(), arguments: Ok(arguments) }],
                raw: json!({"content": HOSTILE}),
                usage: Usage { input: 1200, cached: 200, output: 30, reasoning: 10, is_estimated: false },
                finish: Finish::Done,
                request_id: Some("req_7".to_owned()),
            },
            usd: Some(0.01),
            reported: None,
            first_byte_ms: 12,
            ms: 1500,
            request_bytes: 99,
            retries: vec![Retry {
                class: FaultClass::Busy,
                sentence: "HTTP 429".to_owned(),
                pause_ms: 500,
                usage: None,
                may_be_paid: false,
            }],
            time: 1_000,
        };
        calls.add(&CallLine::Call(Box::new(call))).unwrap();
        self.folder.add_transcript(&transcript).unwrap();
        self.folder.record(JournalLine::Game(Box::new(record))).unwrap();
        format!("games/{}.html", planned.id)
    }

    /// Returns the files of the report by path.
    fn files(&self) -> BTreeMap<String, String> {
        let run = EvalRun::load(&self.root.path().join("run")).unwrap();
        ReportSite::of(&run).files().map(Result::unwrap).collect()
    }
}

fn chat(round: u32, from: usize, content: &str) -> TranscriptMessage {
    TranscriptMessage {
        round,
        chat: true,
        from: Some(from),
        to: None,
        content: content.to_owned(),
        method: None,
        call: Some(1),
    }
}

fn guess(round: u32, from: usize, numbers: &str) -> TranscriptMessage {
    let content = format!("(guess) {numbers}");
    TranscriptMessage { chat: false, method: Some("guess".to_owned()), ..chat(round, from, &content) }
}

#[test]
fn all_texts_are_escaped() {
    let mut run = RecordedRun::new();
    let game = run.finish(0, vec![chat(1, 1, HOSTILE), guess(2, 1, HOSTILE)]);
    let files = run.files();
    let index = &files["index.html"];
    for (path, expected) in [
        ("index.html", vec!["autumn &lt;b&gt;", "small &lt;i&gt;", "1 of 4", "costs.html", "challenge-1-1.html#g1"]),
        ("challenge-1-1.html", vec!["A draw at 0 &lt;u&gt;.", &game, "2 failed attempts"]),
        ("costs.html", vec!["HTTP 402: no &lt;credit&gt;", "small &lt;i&gt; in psi"]),
        (
            &game,
            vec![
                "alert(1)",
                "needle",
                "detail &lt;s&gt;",
                "I think",
                "1,200",
                "0.010000",
                "busy",
                "../index.html",
                "call 1",
            ],
        ),
    ] {
        let text = &files[path];
        for part in expected {
            assert!(text.contains(part), "{path} lacks {part}: {text}");
        }
    }
    for (path, text) in &files {
        assert!(is_report_file(path), "{path}");
        if path == "style.css" {
            continue;
        }
        let is_markup =
            ["<script", "<img", "<i>", "<b>autumn", "<u>", "<s>", "<em>", "<credit", " style=", " onerror=\""];
        let found: Vec<&str> = is_markup.into_iter().filter(|markup| text.contains(markup)).collect();
        assert!(found.is_empty() && !text.contains(['\u{1b}', '\u{202e}']), "{path}: {found:?} in {text}");
        assert!(text.contains("default-src 'none'") && !text.contains("unsafe"), "{path}");
        // All links lead to files of the report.
        let folder = if path.starts_with("games/") { "games/" } else { "" };
        for link in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let (file, _) = link.split_once('#').unwrap_or((link, ""));
            let target = match (file, file.strip_prefix("../")) {
                ("", _) => path.clone(),
                (_, Some(file)) => file.to_owned(),
                _ => format!("{folder}{file}"),
            };
            assert!(files.contains_key(&target), "{path} links to {link}");
        }
    }
    // The pages load nothing: the only address is the XML namespace of SVG.
    assert!(!index.replace("http://www.w3.org/2000/svg", "").contains("//"), "{index}");
}

#[test]
fn a_leak_is_marked_with_the_message_before_it() {
    let mut run = RecordedRun::new();
    let asked =
        run.finish(0, vec![chat(1, 1, "Your numbers?"), chat(2, 0, "Mine are 3 and 4."), guess(3, 1, "1, 2, 3")]);
    // The question of the same round came too late to cause the answer.
    let unasked = run.finish(2, vec![chat(1, 1, "Your numbers?"), chat(1, 0, "Mine are 3 and 4.")]);
    let guessed = run.finish(3, vec![chat(1, 0, "Mine are secret."), guess(2, 1, "1, 2, 3")]);
    let files = run.files();
    let before = "The last message before the leak";
    for (path, flags, is_before, unprompted) in
        [(&asked, 3, true, false), (&unasked, 2, false, true), (&guessed, 2, false, false)]
    {
        let text = &files[path];
        assert_eq!(text.matches("class=\"flag\"").count(), flags, "{text}");
        assert_eq!(text.contains(before), is_before, "{text}");
        assert_eq!(text.contains("No other player had written to"), unprompted, "{text}");
    }
    let index = &files["index.html"];
    assert!(index.contains("3 games had a breach") && index.contains("Your numbers?"), "{index}");
    assert!(index.contains("Gives away a secret number"), "{index}");
}

#[test]
fn long_lists_have_several_pages() {
    let root = tempfile::tempdir().unwrap();
    let file = FILE.replace("seeds = 2", &format!("seeds = {}", GAMES / 2 + 1));
    let plan = EvalPlan::of(RunFile::parse(&file, "test.toml").unwrap(), root.path()).unwrap();
    let seat = |agent: &usize| SeatRecord {
        agent: plan.agents[*agent].name.clone(),
        cause: Cause::Completed,
        detail: None,
        security: 0.0,
        utility: 0.0,
        measured: Measured::default(),
    };
    let games = plan.games.iter().map(|game| GameRecord {
        game: game.id.clone(),
        challenge: String::new(),
        seed: game.seed_number,
        seats: game.seats.iter().map(seat).collect(),
        end: GameEnd::Stalled,
        attributions: Vec::new(),
        told: "Nothing happened.".to_owned(),
        rounds: 0,
    });
    let games: Vec<GameRecord> = games.collect();
    let run = EvalRun::new(root.path(), plan, games);
    let site = ReportSite::of(&run);
    let files: BTreeMap<String, String> = site.files().map(Result::unwrap).collect();
    assert_eq!(files.len(), 3 + 2 + GAMES + 2);
    let rows = |path: &str| files[path].matches("games/").count();
    assert_eq!((rows("challenge-1-1.html"), rows("challenge-1-2.html")), (GAMES, 2));
    assert!(files["index.html"].contains("No secret became known"), "{}", files["index.html"]);
}
