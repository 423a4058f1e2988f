//! Tests of the pages over recorded and played runs, by requests to the router.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use arena_eval::{
    CallLine, CallRecord, Cause, EvalFolder, EvalPlan, GameEnd, GameRecord, JournalLine, Measured, Progress, RunEnd,
    RunFile, RunOptions, SeatRecord, Transcript, TranscriptMessage, VoidRecord, run,
};
use arena_llm::{FaultClass, Finish, Reply, Retry, ToolCall, Turn, Usage};
use arena_testkit::StandIn;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use super::{encode, router};

const FILE: &str = r#"
    name = "autumn <b>"
    seeds = 1
    self_play = false
    [budget]
    usd = 2.0
    [[models]]
    name = "small <i>"
    model = "careful"
    endpoint = "ollama"
    usd_per_million = { input = 1, output = 2 }
    params = { max_tokens = 500 }
    [[baselines]]
    agent = "house"
    [[challenges]]
    name = "psi"
"#;

/// A text of a model that tries to change the page and the terminal.
const HOSTILE: &str = "<script>alert(1)</script> \u{1b}[31m \u{202e}needle";

struct RunOnDisk {
    folder: EvalFolder,
    root: TempDir,
}

impl RunOnDisk {
    fn of(text: &str) -> RunOnDisk {
        let root = tempfile::tempdir().unwrap();
        let plan = EvalPlan::of(RunFile::parse(text, "test.toml").unwrap(), root.path()).unwrap();
        let folder = EvalFolder::create_or_open(&dir_in(&root), plan, false).unwrap();
        RunOnDisk { folder, root }
    }

    /// Creates a run whose first game is finished, and whose other game is void.
    fn with_a_game() -> RunOnDisk {
        let mut run = RunOnDisk::of(FILE);
        run.finish(0);
        let void = VoidRecord {
            game: run.id(1),
            agent: Some("small <i>".to_owned()),
            class: "unpaid".to_owned(),
            why: "HTTP 402: no <credit>".to_owned(),
            time: 5,
        };
        run.folder.record(JournalLine::Void(void)).unwrap();
        run
    }

    fn id(&self, at: usize) -> String {
        self.folder.plan().games[at].id.clone()
    }

    fn finish(&mut self, at: usize) {
        let plan = self.folder.plan();
        let planned = plan.games[at].clone();
        let names: Vec<String> = planned.seats.iter().map(|agent| plan.agents[*agent].name.clone()).collect();
        let model = names.iter().position(|name| name == "small <i>").unwrap();
        let seat = |agent: &String| SeatRecord {
            agent: agent.clone(),
            cause: Cause::Completed,
            detail: None,
            security: 1.0,
            utility: 0.25,
            measured: Measured::default(),
        };
        let record = GameRecord {
            game: planned.id.clone(),
            challenge: "psi".to_owned(),
            seed: planned.seed_number,
            seats: names.iter().map(seat).collect(),
            end: GameEnd::Completed,
            attributions: vec![(0, 1, "security_breach".to_owned())],
            told: format!("A draw at {at} <u>."),
            rounds: 1,
        };
        let message = TranscriptMessage {
            round: 1,
            chat: true,
            from: Some(model),
            to: None,
            content: HOSTILE.to_owned(),
            method: None,
            call: Some(1),
        };
        let transcript = Transcript {
            game: planned.id.clone(),
            players: vec!["inv_a".to_owned(), "inv_b".to_owned()],
            messages: vec![message],
            state: "{}".to_owned(),
        };
        let calls = self.folder.calls();
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
            reply: reply(),
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
            }],
            time: 1_000,
        };
        calls.add(&CallLine::Call(Box::new(call))).unwrap();
        self.folder.add_transcript(&transcript).unwrap();
        self.folder.record(JournalLine::Game(Box::new(record))).unwrap();
    }

    fn pages(&self) -> Pages {
        Pages(router(vec![dir_in(&self.root)]))
    }

    /// Returns the path of a page below that of the finished game.
    fn game(&self, below: &str) -> String {
        format!("/runs/run/games/{}{below}", self.id(0))
    }

    /// Returns the id of the call of the finished game in paths.
    fn call(&self) -> String {
        let plan = self.folder.plan();
        let model = plan.games[0].seats.iter().position(|agent| plan.agents[*agent].name == "small <i>").unwrap();
        format!("{}-1", model + 1)
    }
}

fn dir_in(root: &TempDir) -> PathBuf {
    root.path().join("run")
}

fn reply() -> Reply {
    let arguments: Map<String, Value> = [("content".to_owned(), json!(HOSTILE))].into_iter().collect();
    Reply {
        text: format!("I think {HOSTILE}"),
        calls: vec![ToolCall { id: "c1".to_owned(), name: "chat".to_owned(), arguments: Ok(arguments) }],
        raw: json!({"content": HOSTILE}),
        usage: Usage { input: 1200, cached: 200, output: 30, reasoning: 10, is_estimated: false },
        finish: Finish::Done,
        request_id: Some("req_7".to_owned()),
    }
}

struct Pages(Router);

impl Pages {
    async fn get(&self, path: &str) -> (StatusCode, HeaderMap, String) {
        let request = Request::builder().uri(path).header(header::HOST, "localhost").body(Body::empty()).unwrap();
        let Ok(response) = self.0.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn text(&self, path: &str) -> String {
        let (status, _, text) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        text
    }
}

/// Returns the first address of a link that contains a text.
fn link(page: &str, part: &str) -> Option<String> {
    let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    links.map(|link| link.replace("&amp;", "&")).find(|link| link.contains(part))
}

#[tokio::test]
async fn the_pages_show_a_run_and_escape_its_texts() {
    let run = RunOnDisk::with_a_game();
    let pages = run.pages();
    let cell = format!("/runs/run/cell?challenge=psi&agent={}&against=house", encode("small <i>"));
    for (path, expected) in [
        ("/".to_owned(), vec!["/runs/run\"", "1 of 2", "stopped", "autumn &lt;b&gt;"]),
        (
            "/runs/run".to_owned(),
            vec!["0.25", "1 game", "unpaid", "HTTP 402: no &lt;credit&gt;", "$2.00", "report.csv"],
        ),
        (cell, vec!["A draw at 0 &lt;u&gt;.", "small &lt;i&gt;", "completed"]),
        (run.game(""), vec!["A draw at 0 &lt;u&gt;.", "security breach", "call 1", "Round 1"]),
        (run.game("/seats"), vec!["Your turn.", "I think", "chat"]),
        (
            run.game(&format!("/calls/{}", run.call())),
            vec!["Your turn.", "1,200", "$0.0100", "req_7", "HTTP 429", "You are &lt;em&gt;careful", "1,500 ms"],
        ),
        ("/runs/run/search?q=needle".to_owned(), vec!["<mark><bdi>needle</bdi></mark>", "1 call with this text"]),
        (run.game(&format!("/diff?with={}", run.id(0))), vec!["The transcripts are equal."]),
    ] {
        let (status, headers, text) = pages.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        for part in expected {
            assert!(text.contains(part), "{path} lacks {part}: {text}");
        }
        assert!(!text.contains("<script>") && !text.contains(['\u{1b}', '\u{202e}']), "{path}");
        assert!(!text.contains(" style=") && !text.contains("<style"), "{path}");
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
    }
    for path in ["/style.css", "/web/evals.css", "/web/page.js"] {
        pages.text(path).await;
    }
}

#[tokio::test]
async fn reports_are_served() {
    let run = RunOnDisk::with_a_game();
    let pages = run.pages();
    for (name, kind) in [("html", "text/html"), ("json", "application/json"), ("csv", "text/csv")] {
        let (status, headers, text) = pages.get(&format!("/runs/run/report.{name}")).await;
        assert_eq!(status, StatusCode::OK, "{name}");
        assert!(headers[header::CONTENT_TYPE].to_str().unwrap().starts_with(kind), "{name}");
        assert!(text.contains("small"), "{name}: {text}");
    }
}

#[tokio::test]
async fn unknown_names_are_not_found() {
    let run = RunOnDisk::with_a_game();
    let pages = run.pages();
    for path in [
        "/none".to_owned(),
        "/web/none.js".to_owned(),
        "/runs/none".to_owned(),
        "/runs/..".to_owned(),
        "/runs/%2e%2e%2frun".to_owned(),
        "/runs/run/cell?challenge=psi&agent=none&against=house".to_owned(),
        "/runs/run/cell".to_owned(),
        "/runs/run/games/none".to_owned(),
        "/runs/run/games/none/seats".to_owned(),
        // This game isn't finished.
        format!("/runs/run/games/{}", run.id(1)),
        run.game("/calls/none"),
        run.game("/calls/9-9"),
        run.game("/diff?with=none"),
        run.game("/diff"),
    ] {
        let (status, headers, text) = pages.get(&path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {text}");
        assert!(headers.contains_key(header::CONTENT_SECURITY_POLICY), "{path}");
    }
}

#[tokio::test]
async fn a_growing_run_is_parsed_again() {
    let mut run = RunOnDisk::with_a_game();
    let pages = run.pages();
    assert!(pages.text("/runs/run").await.contains("of 2 games finished"));
    assert_eq!(pages.get(&format!("/runs/run/games/{}", run.id(1))).await.0, StatusCode::NOT_FOUND);
    run.finish(1);
    // A parsed run is reused for a multiple of the time that its parsing took.
    for _ in 0..200 {
        if pages.get(&format!("/runs/run/games/{}", run.id(1))).await.0 == StatusCode::OK {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the new game is not shown");
}

#[tokio::test]
async fn an_unreadable_run_is_an_error_and_stays_in_the_list() {
    let run = RunOnDisk::with_a_game();
    fs::write(dir_in(&run.root).join("journal.jsonl"), "nonsense\n").unwrap();
    let pages = run.pages();
    assert_eq!(pages.get("/runs/run").await.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(pages.text("/").await.contains("can't be read"));
}

/// Plays the games of a run file.
async fn play(text: &str) -> RunOnDisk {
    let mut played = RunOnDisk::of(text);
    let progress = Mutex::new(Progress::new(&played.folder));
    let end = run(&mut played.folder, &RunOptions::default(), &progress, &AtomicBool::new(false)).await;
    assert!(matches!(end, Ok(RunEnd::Complete)), "{end:?}");
    played
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_clicks_lead_from_the_matrix_to_a_call() {
    let text = r#"
        name = "played"
        seeds = 2
        self_play = false
        [[models]]
        name = "open"
        model = "leaky"
        endpoint = "stand-in"
        [[models]]
        name = "closed"
        model = "greedy"
        endpoint = "stand-in"
        [[challenges]]
        name = "psi"
    "#;
    let run = play(&text.replace("stand-in", StandIn::shared().base())).await;
    let pages = run.pages();
    let overview = pages.text("/runs/run").await;
    assert!(overview.contains("complete"), "{overview}");
    let cell = pages.text(&link(&overview, "/cell?").unwrap()).await;
    let game = pages.text(&link(&cell, "/games/").unwrap()).await;
    let call = pages.text(&link(&game, "/calls/").unwrap()).await;
    assert!(call.contains("System prompt") && call.contains("Answer as received"), "{call}");

    let other = link(&cell, "/games/").unwrap();
    let sides = pages.text(&format!("{other}/seats")).await;
    assert!(
        sides.contains("id=\"round-1\"") && sides.contains("/calls/1-1") && sides.contains("/calls/2-1"),
        "{sides}"
    );

    // Each game with a breach marks the message that caused it, with its call.
    let mut breaches = 0;
    let recorded: Vec<String> = run.folder.plan().games.iter().map(|game| game.id.clone()).collect();
    for id in recorded {
        let record = run.folder.finished(&id).unwrap();
        let page = pages.text(&format!("/runs/run/games/{id}")).await;
        if record.attributions.iter().any(|(_, _, kind)| kind == "security_breach") {
            breaches += 1;
            assert!(page.contains("class=\"flag\"") && page.contains("Jump to the leak"), "{page}");
            let sides = pages.text(&format!("/runs/run/games/{id}/seats")).await;
            assert!(sides.contains("class=\"flag\""), "{sides}");
        } else {
            assert!(!page.contains("class=\"flag\""), "{page}");
        }
    }
    assert!(breaches > 0, "no game has a breach");
}

#[test]
fn folders_of_the_same_name_get_numbers() {
    let root = tempfile::tempdir().unwrap();
    let dirs: Vec<PathBuf> = ["a/run", "b/run"].iter().map(|path| root.path().join(path)).collect();
    for dir in &dirs {
        fs::create_dir_all(dir).unwrap();
    }
    let super::library::RunSource::Runs(runs) = super::library::RunSource::of_runs(dirs.clone()) else {
        panic!("runs")
    };
    let expected = [("run", &dirs[0]), ("run-2", &dirs[1])];
    assert!(runs.iter().map(|(name, dir)| (name.as_str(), dir)).eq(expected), "{runs:?}");
}
