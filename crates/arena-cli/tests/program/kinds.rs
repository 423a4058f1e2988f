//! Agents of all kinds in one tournament: chess, and the challenges for those that can talk.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{fs, thread};

use arena_testkit::{ModelAnswer, ModelConversation, ModelEndpoint};
use serde_json::{Value, json};

use crate::matches::MatchFixture;
use crate::program::run_with;

/// The program that plays behind most interfaces.
const PLAYER: &str = include_str!("../kinds/player.py");

const KEY: &str = "sk-test-kinds";

/// A server process, which is killed on drop.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(script: &str, interface: &str) -> Server {
        let mut child = Command::new("python3").args([script, interface]).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut port = String::new();
        output.read_line(&mut port).unwrap();
        // The pipe stays open, so that the server can write.
        thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Server { child, url: format!("http://127.0.0.1:{}/", port.trim()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A language model that plays the first legal move of the newest state, or guesses once.
fn think(seen: &ModelConversation) -> ModelAnswer {
    let newest = seen.user_texts.last().map(String::as_str).unwrap_or_default();
    if let Some((_, moves)) = newest.rsplit_once("\"legal_moves\":[\"") {
        let first = moves.split('"').next().unwrap_or_default();
        return ModelAnswer::Calls(vec![("act_move", json!({"content": first}).to_string())]);
    }
    let guess = if seen.system.contains("cryptographers") { "unknown" } else { "1" };
    match seen.answers {
        0 => ModelAnswer::Calls(vec![("act_guess", json!({"content": guess}).to_string())]),
        _ => ModelAnswer::Calls(vec![("wait", "{}".to_owned())]),
    }
}

/// The template of a command-line agent.
fn template(tool: &str) -> String {
    format!(
        "command = ['{tool}', 'cli', '{{prompt}}']\n[files]\n'mcp.json' = '{{\"mcpServers\": {{\"arena\": {{\"url\": \
         \"{{mcp_url}}\", \"headers\": {{\"authorization\": \"Bearer {{token}}\"}}}}}}}}'\n"
    )
}

/// Plays a tournament in which each agent meets two others, and checks that each game was played by the rules. More
/// opponents would add nothing, because no agent knows the interface behind the other seat.
#[track_caller]
fn play_two_rounds(fixture: &MatchFixture, game: &[&str], agents: &[(&str, String)]) {
    let out = fixture.file(game[0]);
    let named: Vec<String> = agents.iter().map(|(name, agent)| format!("--agent={name}={agent}")).collect();
    let args = ["tournament", "run"].iter().chain(game).copied();
    let format = ["--format", "swiss", "--rounds", "2", "--concurrency", "1"];
    let options = ["--step-ms", "20000", "--seed", "3", "--out", &out];
    let args: Vec<&str> = args.chain(format).chain(options).chain(named.iter().map(String::as_str)).collect();
    let played = run_with(&args, &[("OPENAI_API_KEY", KEY)]);
    assert_eq!(played.code, 0, "{played:#?}");
    let journal = fs::read_to_string(Path::new(&out).join("tournament.jsonl")).unwrap();
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let games: Vec<Value> = lines.filter(|line| line["type"] == "game").collect();
    // Each pairing is two games, with swapped seats.
    assert_eq!(games.len(), agents.len() * 2);
    for (name, _) in agents {
        let seats = games.iter().flat_map(|game| game["agents"].as_array().unwrap());
        assert_eq!(seats.filter(|agent| *agent == name).count(), 4, "{name}");
    }
    for game in &games {
        assert_eq!(game["verdicts"], json!([null, null]), "{game}");
        // The players' actions were accepted: each game has ended by the rules.
        assert_eq!(game["faults"], json!([0, 0]), "{game}");
    }
}

#[test]
fn agents_of_all_kinds_play_each_other() {
    let fixture = MatchFixture::new();
    let endpoint = ModelEndpoint::listen(KEY, think);
    let script = fixture.script("player", "player.py", PLAYER);
    let http = Server::start(&script, "http");
    let tool = fixture.file("tool.toml");
    fs::write(&tool, template(&script)).unwrap();
    let talkers = [
        ("house", "house".to_owned()),
        ("easy", "house:easy".to_owned()),
        ("random", "random".to_owned()),
        ("model", format!("model:m-1@{}", endpoint.base())),
        ("function", format!("py:{script}:agent")),
        ("file", script.clone()),
        ("server", http.url.clone()),
        ("tool", format!("cli:{tool}")),
    ];
    play_two_rounds(&fixture, &["psi"], &talkers);
    // Eight diners at one table.
    let named: Vec<String> = talkers.iter().map(|(_, agent)| format!("--agent={agent}")).collect();
    let args = ["match", "run", "dining-cryptographers", "--json", "--step-ms", "20000", "--seed", "3"];
    let args: Vec<&str> = args.into_iter().chain(named.iter().map(String::as_str)).collect();
    let result = run_with(&args, &[("OPENAI_API_KEY", KEY)]).json();
    let seats = result["scores"].as_array().unwrap();
    assert!(seats.len() == 8 && seats.iter().all(|seat| seat["tainted"] == false), "{result}");

    let compiled = fixture.file("compiled");
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agents/c");
    let files = ["chess.c", "colosseum.c", "json.c"].map(|name| format!("{sources}/{name}"));
    let built = Command::new("cc").args(["-O1", "-o", &compiled]).args(files).arg("-lm").status().unwrap();
    assert!(built.success());
    let mut players = talkers.to_vec();
    players.extend([("compiled", compiled), ("engine", "uci:stockfish?depth=1".to_owned())]);
    play_two_rounds(&fixture, &["chess", "--set", "n_epochs=6"], &players);
    endpoint.is_content();
}

#[test]
fn a_script_in_a_wide_folder_can_be_read() {
    let script = tempfile::Builder::new().suffix(".py").tempfile_in("/tmp").unwrap();
    fs::write(script.path(), PLAYER).unwrap();
    fs::set_permissions(script.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let path = script.path().to_str().unwrap();
    for agent in [path.to_owned(), format!("py:{path}:agent")] {
        let args = ["match", "run", "chess", "--json", "--set", "n_epochs=4", "--agent", &agent, "--agent", "house"];
        let result = run_with(&args, &[]).json();
        let seats = result["scores"].as_array().unwrap();
        assert!(seats.iter().all(|seat| seat["tainted"] == false), "{agent}: {result}");
    }
}
