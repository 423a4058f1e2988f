//! A session of a scripted challenge as text: the actions, the messages and the end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_model::{
    After, ChallengeType, Draft, InviteCode, JoinError, Party, Phase, Rejection, Seed, Session, SessionFacts,
    SessionPolicy, Timestamp, Transition, act, join, open, wake,
};
use arena_sandbox::process::{LAUNCH, Launcher};
use arena_script::{Fault, Folder, Limits, Problem, Sandbox, ScriptChallenge, WorkerProgram};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Returns the program of the tests' workers, which start with these arguments.
pub fn worker(args: &[&str]) -> WorkerProgram {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_arena-script-worker"));
    let launcher = Launcher { program: program.clone(), args: vec![LAUNCH.into()] };
    WorkerProgram { program, args: args.iter().map(Into::into).collect(), launcher }
}

pub fn sandbox(limits: Limits) -> Sandbox {
    Sandbox::new(worker(&[]), limits)
}

/// Loads the challenge in the folder of this name beside the tests.
pub fn example(name: &str) -> ScriptChallenge {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/challenges").join(name);
    let folder = Folder::read(&path).unwrap();
    ScriptChallenge::load(&folder, &sandbox(Limits::default())).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Creates a folder with the name `challenge` and these files.
pub fn folder(files: &BTreeMap<&str, &str>) -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("challenge");
    for (name, text) in files {
        let file = path.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    (temp, path)
}

/// The description of a challenge for two players with the method `act`.
pub const METADATA: &str = r#"{"name": "Test", "description": "A test.", "players": 2, "prompt": "Act.",
    "methods": [{"name": "act", "description": "Acts."}]}"#;

/// Returns a challenge for two players with these lines in a class that extends `BaseChallenge`; its method `act` calls
/// `act`.
pub fn script(lines: &str) -> String {
    format!(
        "import {{ BaseChallenge }} from \"@specarena/engine/challenge-design/BaseChallenge\";\n\
         import {{ ChallengeOperatorError }} from \"@specarena/engine/types\";\n\
         class Test extends BaseChallenge {{\n\
         constructor(id, context) {{ super(id, 2, {{ done: [] }}, context.messaging); this.handle(\"act\", (m, i) => this.act(m, i)); }}\n\
         {lines}\n\
         }}\n\
         export const createChallenge = (id, options, context) => new Test(id, context);\n"
    )
}

pub fn load(files: &BTreeMap<&str, &str>, limits: Limits) -> Result<ScriptChallenge, Vec<Problem>> {
    load_into(&sandbox(limits), files)
}

/// Loads a challenge of these files into a sandbox with other challenges.
pub fn load_into(sandbox: &Sandbox, files: &BTreeMap<&str, &str>) -> Result<ScriptChallenge, Vec<Problem>> {
    let (_temp, path) = folder(files);
    ScriptChallenge::load(&Folder::read(&path).map_err(|problem| vec![problem])?, sandbox)
}

pub struct Game {
    challenge: Arc<dyn ChallengeType>,
    pub session: Session,
    pub told: String,
    faults: Arc<parking_lot::Mutex<Vec<Fault>>>,
    now: i64,
}

impl Game {
    pub fn new(challenge: ScriptChallenge, seed: u64) -> Game {
        Game::with(challenge, seed, &json!({})).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Creates a session with these options.
    pub fn with(challenge: ScriptChallenge, seed: u64, wishes: &Value) -> Result<Game, Rejection> {
        let faults = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let heard = Arc::clone(&faults);
        let challenge = challenge.with_listener(move |fault| heard.lock().push(fault.clone()));
        let id = |n: usize| format!("00000000-0000-7000-8000-{n:012}");
        let facts = SessionFacts {
            seed: Some(Seed::from_number(seed)),
            options: challenge.resolve(wishes.as_object().unwrap_or(&Map::new())).unwrap(),
            invites: (1..=challenge.metadata().players).map(|n| format!("inv_{}", id(n)).parse().unwrap()).collect(),
            ..SessionFacts::bare(id(0).parse().unwrap(), challenge.id(), Timestamp(0))
        };
        let session = open(facts, &challenge, SessionPolicy::UNBOUNDED.inactivity)?;
        Ok(Game { challenge: Arc::new(challenge), session, told: String::new(), faults, now: 1_700_000_000_000 })
    }

    /// Lets all players join.
    pub fn start(mut self) -> Game {
        for number in 1..=self.session.facts.invites.len() {
            self = self.join(number);
        }
        self
    }

    fn invite(&self, number: usize) -> InviteCode {
        self.session.facts.invites[number - 1]
    }

    pub fn join(self, number: usize) -> Game {
        self.join_as(number, None)
    }

    pub fn join_as(mut self, number: usize, user: Option<&str>) -> Game {
        self.now += 1000;
        let (invite, user) = (self.invite(number), user.map(|user| user.parse().unwrap()));
        match join(&self.session, &*self.challenge, &SessionPolicy::UNBOUNDED, invite, user, Timestamp(self.now)) {
            Ok(transition) => self.take(transition),
            Err(JoinError::Rejected(error)) => self.refused(number, &error.code, &error.message),
            Err(error) => panic!("{error}"),
        }
        self
    }

    pub fn act(mut self, number: usize, method: &str, content: &str) -> Game {
        self.now += 1000;
        let invite = self.invite(number);
        let done = act(
            &self.session,
            &*self.challenge,
            &SessionPolicy::UNBOUNDED,
            invite,
            Some(method),
            content,
            Timestamp(self.now),
        );
        match done {
            Ok(transition) => self.take(transition),
            Err(arena_model::ActError::Rejected(error)) => self.refused(number, &error.code, &error.message),
            Err(error) => panic!("{error}"),
        }
        self
    }

    /// Passes the deadline.
    pub fn wait(mut self) -> Game {
        let now = self.session.deadline.expect("there is a deadline");
        self.now = now.0;
        let woken = wake(&self.session, &*self.challenge, &SessionPolicy::UNBOUNDED, now, now).unwrap();
        self.take(woken);
        self
    }

    fn refused(&mut self, number: usize, code: &str, message: &str) {
        writeln!(self.told, "{number} is refused: {code} {message}").unwrap();
        for fault in self.faults.lock().drain(..) {
            writeln!(self.told, "! {fault}").unwrap();
        }
    }

    fn take(&mut self, transition: Transition) {
        for draft in transition.drafts.iter().filter(|draft| !draft.channel.is_inputs()) {
            let line = self.line(draft);
            self.told.push_str(&line);
        }
        for fault in self.faults.lock().drain(..) {
            writeln!(self.told, "! {fault}").unwrap();
        }
        if let After::Changed(after) = transition.after {
            let restored = self.challenge.restore(&after.facts, &after.state).unwrap();
            assert_eq!(restored.serialize(), after.state);
            self.session = *after;
        }
        if matches!(self.session.phase, Phase::Ended { .. }) {
            for attribution in &self.session.attributions {
                let (from, to) = (attribution.from.number(), attribution.to.number());
                writeln!(self.told, "{from} did {} to {to}", attribution.kind).unwrap();
            }
        }
    }

    fn line(&self, draft: &Draft) -> String {
        let name = |party: &Party| match party {
            Party::Player(invite) => {
                let seat = self.session.facts.invites.iter().position(|other| other == invite).unwrap();
                (seat + 1).to_string()
            }
            other => other.to_string(),
        };
        let to = draft.to.as_ref().map_or("all".to_owned(), name);
        let content = draft.content.replace('\n', "⏎").replace("inv_00000000-0000-7000-8000-00000000000", "inv_");
        format!("{} → {to}: {content}\n", name(&draft.from))
    }

    pub fn state(&self) -> Value {
        serde_json::from_str(&self.session.state).unwrap()
    }
}
