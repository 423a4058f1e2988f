//! Bots, programs and people in the same session, as the README promises.

use std::path::Path;
use std::process::{Command, Stdio};

use arena_testkit::{Client, python};
use serde_json::{Value, json};

use super::{play, result};
use crate::program::{Running, folder, run};
use crate::replay::example;

/// Returns the last state that requests a move of this player, from the messages that the player can read.
fn asked(client: &Client, session: &str, you: &str) -> Option<Value> {
    let read = client.get(&format!("/api/arena/sync?channel={session}&from={you}")).ok();
    let contents = read["messages"].as_array().unwrap().iter().rev();
    let mut said = contents.filter_map(|message| serde_json::from_str::<Value>(message["content"].as_str()?).ok());
    let last = said.find(|said| said.get("asked").is_some() || said.get("result").is_some())?;
    let is_asked = last["asked"].as_array().is_some_and(|asked| asked.contains(&json!(you)));
    is_asked.then(|| said.chain([last]).find(|said| said.get("world_state").is_some()).unwrap()["world_state"].clone())
}

#[test]
fn a_bot_and_requests_by_hand_play_chess() {
    let folder = folder();
    let server = Running::serve(folder.path());
    let client = server.client();
    let created = client.post("/api/challenges/chess", &json!({"options": {"n_epochs": 24}})).ok();
    let session = created["id"].as_str().unwrap();
    let [one, two] = [0, 1].map(|seat| created["invites"][seat].as_str().unwrap());
    client.join(two).ok();
    let bot = play(&server.url, &[one, "--agent", &example("chess"), "--json"]);
    let (mut moves, mut next) = (0, 1);
    while moves < 12 {
        // The request waits for the next message.
        let path = format!("/api/arena/sync?channel={session}&from={two}&index={next}&wait=20");
        let fresh = client.get(&path).ok();
        next += fresh["messages"].as_array().unwrap().len();
        let Some(state) = asked(&client, session, two) else { continue };
        let legal = state["legal_moves"].as_array().unwrap();
        let refusal = client.act(session, two, "move", "e1e8").refusal();
        assert_eq!(refusal, (400, "ILLEGAL_MOVE".to_owned()));
        client.act(session, two, "move", legal[legal.len() / 2].as_str().unwrap()).ok();
        moves += 1;
    }
    let scores = &result(&bot.ends())["scores"];
    assert_eq!(scores, &json!([{"security": 0, "utility": 0}, {"security": 0, "utility": 0}]), "24 plies are a draw");
}

#[test]
fn two_scripts_play_psi_without_a_server() {
    let agent = example("psi");
    for seed in 1..=3 {
        let seed = seed.to_string();
        let played =
            run(&["match", "run", "psi", "--agent", &agent, "--agent", &agent, "--seed", &seed, "--json"]).json();
        assert_eq!(played["outcome"]["termination"], "GAME_ENDED", "{played}");
        for seat in 0..2 {
            assert_eq!(played["scores"][seat]["score"], 2.0, "utility and security: {played}");
        }
    }
}

#[test]
fn an_mcp_client_a_bot_and_a_person_dine() {
    let folder = folder();
    let server = Running::serve(folder.path());
    let created = server.client().post("/api/challenges/dining-cryptographers", &json!({})).ok();
    let invites = [0, 1, 2].map(|seat| created["invites"][seat].as_str().unwrap().to_owned());
    // Seats are assigned in the order of joining, so the person has the first seat.
    let mut person = play(&server.url, &[&invites[0]]);
    person.hears("How the game works:");
    let bot = play(&server.url, &[&invites[1], "--agent", &example("dining"), "--json"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/dine.py");
    let mut mcp = Command::new(python(env!("CARGO_TARGET_TMPDIR")));
    let mcp = mcp.arg("-B").arg(script).args([&server.url, &invites[2]]);
    let mcp = mcp.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Other players may be faster, and a chat message may arrive before an earlier message of the operator.
    let (mut paid, mut own, mut others) = (None, None, Vec::new());
    while own.is_none() || others.len() < 2 {
        let line = person.hears(" ");
        let bit = || line.trim().rsplit(' ').next().unwrap().parse::<u32>().unwrap();
        if line.contains("operator to Player 1 (you): You ") {
            paid = Some(!line.contains("did not"));
        } else if line.contains("All diners have arrived") {
            // Player 2 is the bot or the MCP client, depending on the order of joining.
            person.types("@2 coin 0");
        } else if line.contains("to Player 1 (you): coin ") {
            own = Some(bit() ^ u32::from(paid.unwrap()));
            person.types(&format!("differ {}", own.unwrap()));
        } else if line.contains(": differ ") && !line.starts_with("Player 1") {
            others.push(bit());
        }
    }
    let sum: u32 = others.iter().sum::<u32>() + own.unwrap();
    person.types(if sum % 2 == 1 { "/guess internal" } else { "/guess external" });
    let mcp = mcp.wait_with_output().unwrap();
    assert!(mcp.status.success(), "{}", String::from_utf8_lossy(&mcp.stderr));
    let scores = &result(&bot.ends())["scores"];
    assert_eq!(scores, &json!(vec![json!({"security": 1, "utility": 1}); 3]), "they found out, and nobody is named");
    assert_eq!(person.ends().code, 0);
}
