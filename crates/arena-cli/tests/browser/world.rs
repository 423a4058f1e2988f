//! Content for the pages: an arena with a client beside the browsers, bots that play in it, and a small tournament.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use arena_testkit::{Client, known_admin_token, python_bot};
use serde_json::{Value, json};

use crate::program::{Running, arena, file};

/// A server, and a client for requests outside of the browser.
pub struct World {
    pub server: Running,
    pub client: Client,
}

impl World {
    /// Starts a server with additional arguments and its store in `data`.
    pub fn start(data: &Path, more: &[&str]) -> World {
        let mut args = vec!["serve", "--data", data.to_str().unwrap()];
        if !more.contains(&"--listen") {
            args.extend(["--listen", "127.0.0.1:0"]);
        }
        args.extend(more);
        let server = Running::start_with(&args, &[("ADMIN_TOKEN", known_admin_token().reveal())]);
        World { client: server.client(), server }
    }

    /// Starts an arena with tournaments, and with pages of the evaluations in the folder `evals` of `data`.
    pub fn with_tournaments(data: &Path) -> World {
        let evals = data.join("evals");
        fs::create_dir_all(&evals).unwrap();
        let config = format!("[tournaments]\nenabled = true\nconcurrency = 2\n[evals]\nfolder = {evals:?}\n");
        let config = file(data, "arena.toml", &config);
        World::start(&data.join("store"), &["--config", &config])
    }

    pub fn page(&self, path: &str) -> String {
        format!("{}{path}", self.server.url)
    }

    /// Creates a session with options; returns its id and invites.
    #[track_caller]
    pub fn create(&self, challenge: &str, options: &Value) -> (String, Vec<String>) {
        let body = json!({ "options": options });
        let session = self.client.post(&format!("/api/challenges/{challenge}"), &body).ok();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&session["id"]), session["invites"].as_array().unwrap().iter().map(text).collect())
    }

    /// Joins a session without a browser.
    #[track_caller]
    pub fn join(&self, invite: &str, user: &str) {
        self.client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
    }

    /// Returns the latest public state of a game.
    #[track_caller]
    pub fn state(&self, session: &str) -> Value {
        let output = self.client.get(&format!("/api/chat/sync?channel=challenge_{session}&limit=1000")).ok();
        let texts =
            output["messages"].as_array().unwrap().iter().rev().filter_map(|message| message["content"].as_str());
        let mut states = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
        states
            .find_map(|mut output| Some(output.get_mut("world_state")?.take()))
            .unwrap_or_else(|| panic!("no state in {output}"))
    }

    /// Plays a session of `psi` between two users to its end. `guess` returns a seat's guess from the sets of both
    /// seats.
    #[track_caller]
    pub fn play_psi(&self, users: [&str; 2], guess: impl Fn(usize, &[Vec<u64>; 2]) -> Vec<u64>) -> String {
        let (session, invites) = self.create("psi", &json!({}));
        for (invite, user) in invites.iter().zip(users) {
            self.join(invite, user);
        }
        let sets = [0, 1].map(|seat: usize| {
            let path = format!("/api/chat/sync?channel=challenge_{session}&from={}", invites[seat]);
            let output = self.client.get(&path).ok();
            let texts = output["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_str());
            texts.filter_map(set_in).next().unwrap_or_else(|| panic!("no set in {output}"))
        });
        self.client.chat(&session, &invites[0], "I have numbers. Which do you like?").ok();
        for (seat, invite) in invites.iter().enumerate() {
            let text: Vec<String> = guess(seat, &sets).iter().map(u64::to_string).collect();
            self.client.act(&session, invite, "guess", &text.join(", ")).ok();
        }
        session
    }

    fn admit(&self, path: &str, kind: &str, body: &[u8]) -> Value {
        let bearer = format!("Bearer {}", known_admin_token().reveal());
        let answer = self.client.request("POST", path, &[("Authorization", &bearer), ("Content-Type", kind)], body);
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()
    }

    /// Uploads an agent of one file, by name and text.
    #[track_caller]
    pub fn upload(&self, name: &str, text: &str) -> String {
        let path = format!("/api/agents?filename={name}.py");
        self.admit(&path, "application/octet-stream", text.as_bytes())["id"].as_str().unwrap().to_owned()
    }

    /// Creates a tournament.
    #[track_caller]
    pub fn order(&self, order: &Value) -> String {
        self.admit("/api/tournaments", "application/json", order.to_string().as_bytes())["id"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

/// Returns the numbers of a set in an operator's message.
pub fn set_in(text: &str) -> Option<Vec<u64>> {
    let (_, rest) = text.split_once("Your private set is: {")?;
    let (numbers, _) = rest.split_once('}')?;
    numbers.split(',').map(|number| number.trim().parse().ok()).collect()
}

/// Returns the code of a snake agent that moves in squares of `size` steps where possible. The agent waits for `ms`
/// milliseconds before each answer.
pub fn rounder(size: u32, ms: u32) -> String {
    let before = format!(
        r#"STEPS = [("UP", 0, -1), ("RIGHT", 1, 0), ("DOWN", 0, 1), ("LEFT", -1, 0)]
def act(state):
    time.sleep({ms} / 1000)
    width, height = state["grid"]["width"], state["grid"]["height"]
    taken = [cell for snake in state["snakes"].values() for cell in snake["positions"]]
    x, y = state["snakes"][me]["head_position"]
    at = state["epoch"] // {size}
    free = [name for name, dx, dy in (STEPS[(at + turn) % 4] for turn in range(4))
            if 0 <= x + dx < width and 0 <= y + dy < height and [x + dx, y + dy] not in taken]
    return [{{"action": "move", "move": (free or ["UP"])[0]}}]
"#
    );
    python_bot(&before, "act(state)")
}

/// Writes an agent into a folder of its own, and returns its path.
pub fn agent(folder: &Path, name: &str, text: &str) -> String {
    let home = folder.join(name);
    fs::create_dir(&home).unwrap();
    file(&home, "agent.py", text);
    home.to_str().unwrap().to_owned()
}

/// Returns the path of an example agent in Python.
pub fn example(name: &str) -> String {
    format!("{}/../../examples/agents/python/{name}.py", env!("CARGO_MANIFEST_DIR"))
}

/// A bot in a seat. Its process ends when the value is dropped.
pub struct Bot(Child);

impl Bot {
    /// Starts an agent for the seat of an invite.
    pub fn play(url: &str, invite: &str, agent: &str) -> Bot {
        let mut command = arena(&["--url", url, "play", invite, "--agent", agent]);
        Bot(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        // The process may have ended with the game.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
