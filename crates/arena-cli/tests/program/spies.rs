//! Spies: agents that read every accessible file while the arena writes beside them. They must find neither the seed of
//! their game nor the opponent's actions.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Run, arena, arena_at, finished};

const SPY: &str = include_str!("../hostile/spy.py");
const SHELL_SPY: &str = include_str!("../hostile/spy.sh");

/// The path of the arena, which may be below a folder that only the user of the tests can enter.
const PROGRAM: &str = env!("CARGO_BIN_EXE_arena");

/// Texts that are only in replays, in journals and in the logs of spies.
const MARKS: [&str; 3] = ["arena_replay", "arena_tournament", "whispered by a spy"];

/// The id of an unprivileged user. If the tests run as root, they also run the arena as this user.
const ORDINARY: u32 = 12345;

/// Returns the users that run the arena in the tests. `None` is the user that runs the tests.
fn users() -> Vec<Option<u32>> {
    if geteuid().is_root() { vec![None, Some(ORDINARY)] } else { vec![None] }
}

/// Returns users with a sandbox mode each. Root without namespaces could read most; other users need them. The test of
/// replays has all combinations.
fn pairs() -> Vec<(Option<u32>, &'static str)> {
    if geteuid().is_root() {
        vec![(None, "no-namespaces"), (Some(ORDINARY), "on")]
    } else {
        MODES.map(|mode| (None, mode)).to_vec()
    }
}

/// A folder with two spies, which is also the arena's working directory.
struct SpyFixture {
    folder: TempDir,
    user: Option<u32>,
}

impl SpyFixture {
    /// Creates spies that also search for these texts.
    fn new(user: Option<u32>, needles: &[String]) -> SpyFixture {
        let fixture = SpyFixture { folder: tempfile::tempdir().unwrap(), user };
        let needles: Vec<String> = MARKS.iter().map(|mark| (*mark).to_owned()).chain(needles.to_vec()).collect();
        let backwards: String = needles.iter().map(|needle| needle.chars().rev().collect::<String>() + "\n").collect();
        for (name, text) in [("spy.py", SPY), ("other.py", SPY), ("spy.sh", SHELL_SPY), ("needles.txt", &backwards)] {
            fs::write(fixture.path(name), text).unwrap();
            fs::set_permissions(fixture.path(name), Permissions::from_mode(0o755)).unwrap();
        }
        fs::set_permissions(fixture.folder.path(), Permissions::from_mode(0o755)).unwrap();
        fixture.give(fixture.folder.path());
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Changes the owner of a file to the user.
    fn give(&self, path: &Path) {
        chown(path, self.user, self.user).unwrap();
    }

    /// Runs the arena as the user, in the folder.
    fn run(&self, args: &[&str]) -> Run {
        self.run_program(Path::new(PROGRAM), args)
    }

    /// Runs another file of the arena, as [`SpyFixture::run`].
    fn run_program(&self, program: &Path, args: &[&str]) -> Run {
        let plain = arena_at(program, args);
        let mut command = match self.user {
            None => plain,
            Some(id) => {
                let mut command = Command::new("setpriv");
                command.args([format!("--reuid={id}"), format!("--regid={id}"), "--clear-groups".to_owned()]);
                command.arg(plain.get_program()).args(plain.get_args()).env("HOME", "/");
                for (name, value) in plain.get_envs() {
                    match value {
                        Some(value) => command.env(name, value),
                        None => command.env_remove(name),
                    };
                }
                command
            }
        };
        finished(command.current_dir(self.folder.path()).output().unwrap())
    }
}

/// A short game with long time limits.
const GAME: [&str; 7] = ["food_catcher", "--set", "n_epochs=4", "--step-ms", "60000", "--seed", "77"];

fn seeds_of(run: &Run) -> Vec<String> {
    let results = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    results.map(|result| result["seed"].as_str().unwrap().to_owned()).collect()
}

/// Returns an agent that plays as a spy does, but doesn't search.
fn quiet() -> String {
    SPY.replace("def look():", "def look():\n    return\n\n\ndef dive():").replace(".start()", "")
}

/// Returns the seeds of this number of games, from a run with other agents.
fn seeds(games: &str) -> Vec<String> {
    let lab = tempfile::tempdir().unwrap();
    let quiet = quiet();
    for name in ["a.py", "b.py"] {
        fs::write(lab.path().join(name), &quiet).unwrap();
        fs::write(lab.path().join("needles.txt"), "").unwrap();
    }
    let agents = ["a.py", "b.py"].map(|name| lab.path().join(name).display().to_string());
    let args = ["match", "run", "--json", "--games", games, "--agent", &agents[0], "--agent", &agents[1]];
    let run = finished(arena(&[&args[..], &GAME].concat()).output().unwrap());
    assert_eq!(run.code, 0, "{run:#?}");
    seeds_of(&run)
}

/// Checks that all games were played, and that no spy found anything.
#[track_caller]
fn nothing_was_found(case: &str, run: &Run, games: usize) {
    assert_eq!(run.code, 0, "{case}: {run:#?}");
    let results: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), games, "{case}: {run:#?}");
    for result in results {
        assert_eq!(result["has_tainted_agent"], false, "{case}: {result:#}");
    }
}

const MODES: [&str; 2] = ["on", "no-namespaces"];

#[test]
fn spies_learn_nothing_from_replays_beside_them() {
    let one = seeds("1");
    let several = seeds("3");
    assert_eq!(several[0], several[1]);
    assert_ne!(several[0], several[2]);
    let needles = [one, several].concat();
    for user in users() {
        for mode in MODES {
            let case = format!("{mode} as {user:?}");
            let fixture = SpyFixture::new(user, &needles);
            let play = |second: &str, more: &[&str]| {
                let args = ["match", "run", "--json", "--sandbox", mode, "--agent", "spy.py", "--agent", second];
                fixture.run(&[&args[..], &GAME, more].concat())
            };
            // The spies of a later game could find the replay and logs of an earlier game, which has the same seed.
            for name in ["game.jsonl", "game.jsonl", "again.jsonl"] {
                nothing_was_found(&format!("{case}, {name}"), &play("other.py", &["--replay", name]), 1);
                let log = fs::read_to_string(fixture.path(&name.replace(".jsonl", ".seat0.log"))).unwrap();
                assert_eq!(log, "whispered by a spy\n", "{case}");
            }
            let outcome = play("spy.sh", &["--replay", "games", "--games", "3"]);
            nothing_was_found(&format!("{case}, pairs"), &outcome, 3);
            assert!((1..=3).all(|number| fixture.path(&format!("games/{number}.jsonl")).is_file()), "{case}");
        }
    }
}

#[test]
fn spies_learn_nothing_from_tournaments_and_leagues_beside_them() {
    // The only game of a tournament has the same seed as a match.
    let needles = seeds("1");
    for (user, mode) in pairs() {
        let case = format!("{mode} as {user:?}");
        let fixture = SpyFixture::new(user, &needles);
        let agents = ["--agent", "spy.py", "--agent", "other.py", "--sandbox", mode];
        for out in ["cup", "deep/cup"] {
            let args = ["tournament", "run", "--json", "--rounds", "1", "--replays", "--out", out];
            let run = fixture.run(&[&args[..], &agents, &GAME].concat());
            assert_eq!(run.code, 0, "{case}: {run:#?}");
            let journal = fs::read_to_string(fixture.path(out).join("tournament.jsonl")).unwrap();
            assert!(journal.contains(&needles[0]) && journal.lines().count() == 3, "{case}: {journal}");
            assert!(!journal.contains("CRASHED"), "{case}: {journal}");
        }
        let args = ["tournament", "run", "--json", "--format", "league", "--games", "2", "--out", "ladder"];
        let run = fixture.run(&[&args[..], &agents, &GAME].concat());
        assert_eq!(run.code, 0, "{case}: {run:#?}");
        let outcome = run.stdout;
        assert!(outcome.contains("\"termination\"") && !outcome.contains("CRASHED"), "{case}: {outcome}");
    }
}

/// Without a sandbox nothing can be hidden, so the spies find the texts, and the arena doesn't write a journal beside
/// them.
#[test]
fn without_a_sandbox_spies_find_what_is_beside_them_and_a_journal_there_is_refused() {
    let needles = seeds("1");
    let fixture = SpyFixture::new(None, &needles);
    // These spies don't search the parent folders, which contain all files of the machine.
    let near = SPY.replace("starts = [\"/\", FOLDER, os.getcwd(), os.path.dirname(FOLDER), \"/tmp\", \"/var/tmp\", os.environ.get(\"HOME\", \"/\")]", "starts = [FOLDER]")
        .replace("[\"self\"] + processes", "[\"self\"]");
    assert_ne!(near, SPY);
    for name in ["spy.py", "other.py"] {
        fs::write(fixture.path(name), &near).unwrap();
    }
    let agents = ["--agent", "spy.py", "--agent", "other.py", "--sandbox", "off"];
    let play = || fixture.run(&[&["match", "run", "--json", "--replay", "game.jsonl"], &agents[..], &GAME].concat());
    // The first spies find nothing, because a replay gets its name after the agents have ended.
    nothing_was_found("off", &play(), 1);
    let second: Value = serde_json::from_str(&play().stdout).unwrap();
    assert_eq!(second["has_tainted_agent"], true, "{second:#}");
    for (args, path) in [
        (&["tournament", "run", "--rounds", "1", "--out", "cup"][..], "cup"),
        (&["match", "run", "--games", "2", "--replay", "games"], "games"),
    ] {
        let run = fixture.run(&[args, &agents, &GAME].concat());
        let outcome = format!(
            "error: {path} is in the folder of the agent spy, which can read this path without a sandbox; choose an output path outside of that folder\n"
        );
        assert_eq!((run.code, run.stderr), (2, outcome));
        assert!(!fixture.path("cup").exists());
    }
}

#[test]
fn an_interpreter_in_the_tournaments_folder_is_refused_and_one_elsewhere_reveals_nothing() {
    let needles = seeds("1");
    for (user, mode) in pairs() {
        let fixture = SpyFixture::new(user, &needles);
        for folder in ["cup", "beside"] {
            let bin = fixture.path(folder).join("venv/bin");
            fs::create_dir_all(&bin).unwrap();
            std::os::unix::fs::symlink("/usr/bin/python3", bin.join("python")).unwrap();
        }
        for folder in ["cup", "beside"] {
            fs::set_permissions(fixture.path(folder), Permissions::from_mode(0o755)).unwrap();
            fixture.give(&fixture.path(folder));
        }
        let play = |interpreter: &str| {
            let args = ["tournament", "run", "--json", "--rounds", "1", "--out", "cup", "--sandbox", mode];
            let agents = ["--", interpreter, "spy.py", "--", interpreter, "other.py"];
            fixture.run(&[&args[..], &GAME, &agents].concat())
        };
        let run = play("cup/venv/bin/python");
        let says = "cup cannot be hidden from the agent spy, which needs ";
        assert!(run.code == 2 && run.stderr.contains(says), "{mode} as {user:?}: {run:#?}");
        assert!(!fixture.path("cup/tournament.jsonl").exists());
        let run = play("beside/venv/bin/python");
        assert_eq!(run.code, 0, "{mode} as {user:?}: {run:#?}");
        let journal = fs::read_to_string(fixture.path("cup/tournament.jsonl")).unwrap();
        assert!(journal.lines().count() == 3 && !journal.contains("CRASHED"), "{mode} as {user:?}: {journal}");
    }
}

/// The arena and the tests may be installed below a home folder that other users can't enter.
#[test]
fn the_arena_starts_agents_from_a_folder_that_its_user_cannot_enter() {
    if !geteuid().is_root() {
        println!("not checked: another user's program, because the tests don't run as root");
        return;
    }
    // A link is possible there, because the folder and the program are on the same file system.
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o700)).unwrap();
    let program = home.path().join("arena");
    fs::hard_link(PROGRAM, &program).unwrap();
    for mode in MODES {
        let fixture = SpyFixture::new(Some(ORDINARY), &[]);
        for name in ["spy.py", "other.py"] {
            fs::write(fixture.path(name), quiet()).unwrap();
        }
        let args = ["match", "run", "--json", "--sandbox", mode, "--agent", "spy.py", "--agent", "other.py"];
        nothing_was_found(mode, &fixture.run_program(&program, &[&args[..], &GAME].concat()), 1);
    }
}
