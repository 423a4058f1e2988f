//! Tournaments of the same agents, on this machine and with workers, and a comparison of their results.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::{NatsServer, python_bot, until};
use serde_json::Value;

use crate::program::{Run, Running, arena, finished, run};

/// The time limit for any step.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A folder with agents and tournaments.
pub struct FleetFixture(tempfile::TempDir);

impl FleetFixture {
    pub fn new() -> FleetFixture {
        FleetFixture(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a deterministic agent into its own folder. The agent takes `pause` seconds for a step.
    pub fn bot(&self, name: &str, salt: u32, pause: f64) -> String {
        let turn = "TURN = lambda epoch, salt: ['UP', 'RIGHT', 'DOWN', 'LEFT'][(epoch // salt + salt) % 4]\n";
        self.write_bot(name, turn, salt, pause)
    }

    /// Writes an agent that plays random moves.
    pub fn random_bot(&self, name: &str) -> String {
        let turn = "import random\nTURN = lambda epoch, salt: random.choice(['UP', 'RIGHT', 'DOWN', 'LEFT'])\n";
        self.write_bot(name, turn, 1, 0.0)
    }

    fn write_bot(&self, name: &str, turn: &str, salt: u32, pause: f64) -> String {
        let folder = self.path(&format!("bots-{name}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("turns.py"), turn).unwrap();
        let before = format!("import turns\nprint(\"salt\", {salt}, file=sys.stderr)");
        let turn = format!(r#"turns.TURN(state["epoch"], {salt})"#);
        let text = python_bot(&before, &format!(r#"[time.sleep({pause}), {{"action": "move", "move": {turn}}}][1:]"#));
        let path = folder.join(format!("{name}.py"));
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn begin(&self, out: &str, agents: &[String], more: &[&str]) -> Vec<String> {
        let args = ["tournament", "run", "snake", "--seed", "3", "--set", "n_epochs=12"];
        let mut args = args.map(str::to_owned).to_vec();
        args.extend(agents.iter().flat_map(|agent| ["--agent".to_owned(), agent.clone()]));
        args.extend(["--out".to_owned(), self.text(out)]);
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        args
    }

    /// Plays the tournament on this machine, in the folder `here`.
    #[track_caller]
    pub fn play_here(&self, agents: &[String], more: &[&str]) {
        let args = self.begin("here", agents, more);
        let args: Vec<&str> = args.iter().map(String::as_str).chain(["--concurrency", "2"]).collect();
        let output = run(&args);
        assert_eq!(output.code, 0, "{output:#?}");
    }

    /// Starts the same tournament with workers, in the folder `far`.
    pub fn start_far(&self, nats: &NatsServer, agents: &[String], more: &[&str]) -> Child {
        let url = nats.url();
        let args = self.begin("far", agents, more);
        let args: Vec<&str> = args.iter().map(String::as_str).chain(["--nats-url", &url]).collect();
        arena(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Plays the tournament with workers to its end.
    pub fn play_far(&self, nats: &NatsServer, agents: &[String], more: &[&str]) -> Run {
        finish(self.start_far(nats, agents, more))
    }

    /// Resumes the tournament with workers.
    pub fn resume_far(&self, nats: &NatsServer, more: &[&str]) -> Run {
        let (url, folder) = (nats.url(), self.text("far"));
        run(&[&["tournament", "resume", &folder, "--nats-url", &url], more].concat())
    }

    pub fn journal(&self, out: &str) -> String {
        fs::read_to_string(self.path(out).join("tournament.jsonl")).unwrap_or_default()
    }

    pub fn file(&self, out: &str, name: &str) -> String {
        fs::read_to_string(self.path(out).join(name)).unwrap()
    }

    /// Starts a worker, and waits until it accepts games.
    pub fn worker(&self, nats: &NatsServer, args: &[&str]) -> Running {
        self.worker_with(nats, args, &[])
    }

    pub fn worker_with(&self, nats: &NatsServer, args: &[&str], environment: &[(&str, &str)]) -> Running {
        // Workers use the fixture's folder for temporary files, so that the remains of killed workers are removed with it.
        let (url, folder) = (nats.url(), self.text(""));
        let environment = [environment, &[("TMPDIR", &*folder)]].concat();
        Running::start_saying(
            "worker ",
            &[&["worker", "--allow-root", "--nats-url", &url], args].concat(),
            &environment,
        )
    }

    pub fn workers(&self, nats: &NatsServer, names: &[&str]) -> Vec<Running> {
        names.iter().map(|name| self.worker(nats, &["--name", name])).collect()
    }

    /// Returns the number of games in the journal.
    pub fn games(&self, out: &str) -> usize {
        self.journal(out).lines().filter(|line| line.starts_with(r#"{"type":"game""#)).count()
    }

    #[track_caller]
    pub fn wait_for_games(&self, out: &str, games: usize) {
        until(&format!("{games} games are played"), || self.games(out) >= games);
    }

    /// Returns the games, in order of their numbers, without times and names of workers.
    fn results(&self, out: &str) -> Vec<String> {
        let mut results = std::collections::BTreeMap::new();
        for line in self.journal(out).lines().skip(1) {
            let mut line: Value = serde_json::from_str(line).unwrap();
            match line["type"].as_str().unwrap() {
                "game" => {
                    let fields = line.as_object_mut().unwrap();
                    fields.remove("time").unwrap();
                    fields.remove("worker");
                    let number = line["fixture"].as_u64().unwrap();
                    assert!(results.insert(number, line.to_string()).is_none(), "game {number} counts twice");
                }
                "spread" | "checked" => {}
                other => panic!("unexpected line {other}"),
            }
        }
        results.into_values().collect()
    }

    pub fn standings(&self, out: &str, form: &[&str]) -> String {
        let output = run(&[&["tournament", "standings", &self.text(out)], form].concat());
        assert_eq!(output.code, 0, "{output:#?}");
        output.stdout
    }

    /// Compares the results of both tournaments game by game, and the standings.
    #[track_caller]
    pub fn assert_same(&self) {
        assert_eq!(self.results("far"), self.results("here"));
        assert_eq!(self.standings("far", &["--csv"]), self.standings("here", &["--csv"]));
        assert_eq!(self.standings("far", &["--markdown"]), self.standings("here", &["--markdown"]));
    }
}

#[track_caller]
pub fn finish(mut child: Child) -> Run {
    let until = Instant::now() + TIMEOUT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("the program doesn't end: {:#?}", finished(child.wait_with_output().unwrap()));
        }
        thread::sleep(Duration::from_millis(5));
    }
    finished(child.wait_with_output().unwrap())
}

/// Returns the runtime for NATS clients in the tests.
pub fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}
