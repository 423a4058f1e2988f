//! Command-line agents in matches: a stand-in for such a tool, and a stand-in for its model that counts its tokens.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{fs, thread};

use arena_match::{Agent, Confinement, MatchError, MatchPlan, PlayedMatch, SandboxMode, play_match};
use arena_model::{Seed, TimeLimits};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::agent::{PYTHON, eventually, launcher, processes_with};

/// The model's own counts.
#[derive(Default)]
struct Model {
    calls: AtomicU64,
    input: AtomicU64,
    output: AtomicU64,
}

impl Model {
    /// Starts the model's endpoint. Returns its base URL.
    fn start() -> (Arc<Model>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let model = Arc::new(Model::default());
        let served = Arc::clone(&model);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let model = Arc::clone(&served);
                thread::spawn(move || while model.answer(&stream).is_some() {});
            }
        });
        (model, url)
    }

    fn answer(&self, stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).ok().filter(|read| *read > 0)? > 2 {
            if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = number.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: Value = serde_json::from_slice(&body).ok()?;
        assert_eq!(body["model"], "small");
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let (input, output) = (1000 + number, 7 + number % 10);
        self.input.fetch_add(input, Ordering::Relaxed);
        self.output.fetch_add(output, Ordering::Relaxed);
        let (kind, text) = match body["stream"] == true {
            true => {
                let begun =
                    json!({"type": "message_start", "message": {"usage": {"input_tokens": input, "output_tokens": 1}}});
                let done = json!({"type": "message_delta", "usage": {"output_tokens": output}});
                ("text/event-stream", format!("data: {begun}\n\ndata: {done}\n\n"))
            }
            false => {
                let usage = json!({"input_tokens": input, "output_tokens": output});
                ("application/json", json!({"content": [{"type": "text", "text": "hm"}], "usage": usage}).to_string())
            }
        };
        let mut stream = stream;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", text.len());
        stream.write_all((head + &text).as_bytes()).ok()
    }
}

struct Templates {
    folder: TempDir,
    url: String,
}

impl Templates {
    fn new(url: &str) -> Templates {
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/processes/cli_agent.py");
        let program = folder.path().join("tool");
        fs::write(&program, format!("#!{PYTHON}\n{}", fs::read_to_string(script).unwrap())).unwrap();
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Templates { folder, url: url.to_owned() }
    }

    fn agent(&self, way: &str, limits: &str) -> Agent {
        let (folder, url) = (self.folder.path().display(), &self.url);
        let template = format!(
            "command = ['{folder}/tool', '{way}', '{{prompt}}']\n\
             gateway = 'anthropic'\n\
             model = 'small@{url}'\n\
             limits = {{{limits}}}\n\
             prices = {{input = 1, output = 10}}\n\
             [env]\n\
             MODEL_URL = '{{base_url}}'\n\
             MODEL_TOKEN = '{{token}}'\n\
             PROVIDER = '{url}'\n\
             [files]\n\
             'mcp.json' = '{{\"mcpServers\": {{\"arena\": {{\"url\": \"{{mcp_url}}\", \"headers\": {{\"authorization\": \
             \"Bearer {{token}}\"}}}}}}}}'\n"
        );
        let path = self.folder.path().join(format!("{way}.toml"));
        fs::write(&path, template).unwrap();
        Agent::find(&format!("cli:{}", path.display()), "").unwrap()
    }
}

fn play(game: &str, mode: SandboxMode, agents: &[&Agent], step_ms: u64, replay: Option<&mut Vec<u8>>) -> PlayedMatch {
    try_play(game, mode, agents, step_ms, replay).unwrap()
}

fn try_play(
    game: &str,
    mode: SandboxMode,
    agents: &[&Agent],
    step_ms: u64,
    replay: Option<&mut Vec<u8>>,
) -> Result<PlayedMatch, MatchError> {
    let confinement = Confinement::new(launcher(), mode);
    let plan = MatchPlan {
        game: arena_games::game(game).unwrap(),
        options: &Map::new(),
        seed: Seed::from_number(1),
        limits: TimeLimits { step_ms, bank_ms: 0 },
        agents: agents.to_vec(),
        confinement: &confinement,
        adjudication: None,
    };
    let replay = replay.map(|out| out as &mut (dyn Write + Send));
    play_match(&plan, replay, None, &AtomicBool::new(false))
}

fn verdict(played: &PlayedMatch, seat: usize) -> String {
    let seat = &played.result.seats[seat];
    format!(
        "{}: {}",
        seat.verdict.map(|verdict| verdict.to_string()).unwrap_or_default(),
        seat.detail.as_deref().unwrap_or_default()
    )
}

const STEP_MS: u64 = 60_000;

#[test]
fn agents_play_and_their_tokens_are_those_of_the_model() {
    for (game, mode) in [("psi", SandboxMode::On), ("psi", SandboxMode::Off), ("chess", SandboxMode::On)] {
        let (model, url) = Model::start();
        let templates = Templates::new(&url);
        let (one, two) = (templates.agent("play", "usd = 5"), templates.agent("play", "usd = 5"));
        let mut replay = Vec::new();
        let played = play(game, mode, &[&one, &two], STEP_MS, Some(&mut replay));
        let seats = &played.result.seats;
        assert!(seats.iter().all(|seat| seat.verdict.is_none()), "{game}: {:?}", played.logs);
        if game == "psi" {
            assert_eq!(seats[0].challenge_score.unwrap().utility, -1.0, "its whole set is a bad guess");
        } else {
            assert_eq!(played.result.outcome.winner, "DRAW");
        }
        let usage: Vec<Value> = played.logs.iter().map(|log| log.metered.clone().unwrap()).collect();
        let sum = |key: &str| usage.iter().map(|usage| usage[key].as_u64().unwrap()).sum::<u64>();
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let counted = [sum("calls"), sum("inputTokens"), sum("outputTokens")];
        assert_eq!(counted, [count(&model.calls), count(&model.input), count(&model.output)], "{game}");
        assert!(counted[0] >= 4 && usage[0]["costUsd"].as_f64().unwrap() > 0.001, "{usage:?}");
        let replay = String::from_utf8(replay).unwrap();
        assert!(replay.contains(r#""metered":{"#), "the replay has the measurements");
    }
}

#[test]
fn agents_that_end_hang_or_spend_too_much_are_named() {
    let (model, url) = Model::start();
    let templates = Templates::new(&url);
    let good = templates.agent("play", "");
    let lose = |way: &str, limits: &str, step_ms: u64| {
        let bad = templates.agent(way, limits);
        verdict(&play("psi", SandboxMode::On, &[&bad, &good], step_ms, None), 0)
    };
    let ended = lose("exit", "", STEP_MS);
    assert!(ended.starts_with("CRASHED: exited with code 3"), "{ended}");
    let daemon = lose("daemon", "", STEP_MS);
    assert!(daemon.starts_with("CRASHED: exited with code 0"), "{daemon}");
    eventually("the daemon has ended", || processes_with("cli-agent-daemon").is_empty());
    let silent = lose("ignore", "", 3000);
    assert!(silent.starts_with("TIMEOUT: no answer within 3000 ms"), "{silent}");
    let slow = lose("ignore", "seconds = 1", STEP_MS);
    assert!(slow.starts_with("CRASHED: reached its limit of 1 seconds"), "{slow}");
    let before = model.calls.load(Ordering::Relaxed);
    let spent = lose("spend", "usd = 0.01", STEP_MS);
    assert!(spent.starts_with("CRASHED: ended after its budget was spent"), "{spent}");
    assert!(spent.contains("402 billing_error"), "{spent}");
    let calls = model.calls.load(Ordering::Relaxed) - before;
    assert!((2..=20).contains(&calls), "{calls}");
}

#[test]
fn an_agent_sees_only_its_own_seat() {
    let (_, url) = Model::start();
    let templates = Templates::new(&url);
    let (spy, good) = (templates.agent("spy", ""), templates.agent("play", ""));
    let played = play("psi", SandboxMode::On, &[&spy, &good], STEP_MS, None);
    assert!(played.result.seats.iter().all(|seat| seat.verdict.is_none()), "{}", verdict(&played, 0));
}

#[test]
fn a_failing_model_is_no_fault_of_the_agent() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let templates = Templates::new(&format!("http://{closed}"));
    let (one, two) = (templates.agent("play", ""), templates.agent("play", ""));
    let error = try_play("psi", SandboxMode::On, &[&one, &two], STEP_MS, None).unwrap_err().to_string();
    assert!(error.contains("the model of cli:") && error.contains("cannot be connected"), "{error}");
}
