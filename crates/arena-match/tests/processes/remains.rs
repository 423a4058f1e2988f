//! Tests that no process, open file or folder of an agent remains after the agent or the runner has ended.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use arena_match::process::{ExitCause, KillReason, SandboxMode};

use crate::agent::{Agent, MODES, PATIENCE, eventually, processes_with, read_line, read_to_end};

/// Starts descendants of all kinds that are hard to end. All of them hold the pipes.
const FAMILY: &str = r#"
def descend(prepare):
    if os.fork() == 0:
        prepare(); time.sleep(600); os._exit(0)
def leave():
    # A sandbox allows no session of one's own.
    try: os.setsid()
    except PermissionError: os.setpgid(0, 0)
def twice():
    leave()
    if os.fork(): os._exit(0)
def deaf():
    for number in range(1, 32):
        try: signal.signal(number, signal.SIG_IGN)
        except OSError: pass
descend(lambda: None); descend(leave); descend(twice); descend(deaf)
descend(lambda: (twice(), deaf()))
descend(lambda: os.kill(os.getpid(), signal.SIGSTOP))
time.sleep(0.2)
print("ready", flush=True)
"#;

/// Returns a text that no other process has in its command line.
fn marker(what: &str, mode: SandboxMode) -> String {
    format!("arena-{what}-{}-{mode:?}", std::process::id())
}

fn scratch_folders(within: &Path) -> usize {
    let entries = fs::read_dir(within).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("arena-agent-")).count()
}

#[test]
fn descendants_of_all_kinds_are_gone_when_the_agent_is_ended() {
    for mode in MODES {
        let marker = marker("family", mode);
        let agent = Agent::python(mode, &format!("{FAMILY}time.sleep(600)")).args(&[&marker]);
        let mut process = agent.start();
        assert_eq!(read_line(&process.stdout), "ready", "{mode:?}");
        assert!(process.is_running() && processes_with(&marker).len() >= 7, "{mode:?}");
        let (stdout, stderr) = (process.stdout.try_clone().unwrap(), process.stderr.try_clone().unwrap());
        process.kill();
        assert_eq!(process.wait(PATIENCE).cause, ExitCause::Killed(KillReason::Requested), "{mode:?}");
        assert_eq!(processes_with(&marker), [0_u32; 0], "{mode:?}");
        assert_eq!((read_to_end(&stdout), read_to_end(&stderr)), (String::new(), String::new()), "{mode:?}");
    }
}

#[test]
fn descendants_do_not_outlive_an_agent_that_exits() {
    for mode in MODES {
        let marker = marker("orphans", mode);
        let agent = Agent::python(mode, &format!("{FAMILY}sys.exit(7)")).args(&[&marker]);
        let run = agent.run("");
        assert_eq!(run.ended.cause, ExitCause::Exited(7), "{mode:?}: {run:?}");
        assert_eq!(processes_with(&marker), [0_u32; 0], "{mode:?}");
    }
}

#[test]
fn an_agent_that_stops_itself_or_is_ended_by_a_signal_is_told_as_such() {
    for mode in MODES {
        let agent = Agent::python(mode, "os.kill(os.getpid(), signal.SIGSTOP)");
        let stopped = agent.start();
        let began = Instant::now();
        assert_eq!(
            stopped.wait(Duration::from_millis(100)).cause,
            ExitCause::Killed(KillReason::Requested),
            "{mode:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(30), "{mode:?}");
        let aborted = Agent::python(mode, "os.abort()").run("");
        assert_eq!(aborted.ended.cause, ExitCause::Signaled(6), "{mode:?}");
    }
}

#[test]
fn the_outer_process_id_is_the_agents() {
    for mode in MODES {
        let marker = marker("pid", mode);
        let agent = Agent::python(mode, "sys.stdin.read()").args(&[&marker]);
        let process = agent.start();
        let pid = process.agent_pid().unwrap();
        // A new process gets its command line a moment after its start.
        eventually("the process shows the agent's arguments", || processes_with(&marker).contains(&pid));
        assert!(fs::exists(format!("/proc/{pid}/schedstat")).unwrap(), "{mode:?}");
    }
}

#[test]
fn an_agent_goes_with_a_launcher_that_is_killed() {
    let parent = |pid: u32| -> u32 {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
    };
    for mode in MODES {
        let marker = marker("launcher", mode);
        let agent = Agent::python(mode, "time.sleep(600)").args(&[&marker]);
        let mut process = agent.start();
        let mut launcher = parent(process.agent_pid().unwrap());
        while parent(launcher) != std::process::id() {
            launcher = parent(launcher);
        }
        let pid = rustix::process::Pid::from_raw(launcher.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        eventually("the agent is gone", || processes_with(&marker).is_empty());
        let until = Instant::now() + PATIENCE;
        while process.is_running() {
            assert!(Instant::now() < until, "{mode:?}: the runner still takes it for running");
        }
        process.wait(PATIENCE);
        let left = format!("arena-agent-{launcher}-0");
        assert!(!std::env::temp_dir().join(left).exists(), "{mode:?}");
    }
}

/// Acts as the runner for the next test, which starts this test in a process with the variable set.
#[test]
fn as_a_runner_that_is_killed() {
    let Some(marker) = std::env::var_os("ARENA_TEST_RUNNER").and_then(|marker| marker.into_string().ok()) else {
        return;
    };
    let processes: Vec<_> = MODES
        .into_iter()
        .map(|mode| {
            let agent = Agent::python(mode, &format!("{FAMILY}time.sleep(600)")).args(&[&marker]);
            let process = agent.start();
            assert_eq!(read_line(&process.stdout), "ready");
            (agent, process)
        })
        .collect();
    println!("\nall ready");
    std::thread::sleep(PATIENCE);
    drop(processes);
}

#[test]
fn a_runner_that_is_killed_leaves_no_process_and_no_scratch_folder() {
    let marker = marker("runner", SandboxMode::On);
    let temporary = tempfile::tempdir().unwrap();
    fs::set_permissions(temporary.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let mut runner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "remains::as_a_runner_that_is_killed", "--nocapture"])
        .env("ARENA_TEST_RUNNER", &marker)
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(runner.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "all ready"));
    assert!(processes_with(&marker).len() >= 3 * 7 && scratch_folders(temporary.path()) >= 2);
    runner.kill().unwrap();
    runner.wait().unwrap();
    eventually("all processes are gone", || processes_with(&marker).is_empty());
    eventually("the scratch folders are gone", || scratch_folders(temporary.path()) == 0);
}

/// Checks that this process keeps no open files and children of agents. The next test runs it in a process of its own,
/// where other tests can't affect the counts.
#[test]
fn as_a_runner_of_many_agents() {
    if std::env::var_os("ARENA_TEST_MANY").is_none() {
        return;
    }
    let files = || fs::read_dir("/proc/self/fd").unwrap().count();
    let children = || {
        let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
        threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap()).collect::<String>()
    };
    for mode in MODES {
        // An agent that removes its own access to its folder, and leaves files of all kinds.
        let text = "#!/bin/sh\nmkdir -p a/b && : > a/b/c && chmod 0 a/b a\nread line\n";
        let agent = Agent::with_text(mode, text);
        drop(agent.start());
        let (before, began) = (files(), Instant::now());
        for cycle in 0..200 {
            let process = agent.start();
            if cycle % 2 == 0 {
                process.wait(Duration::ZERO);
            }
        }
        assert_eq!((files(), children()), (before, String::new()), "{mode:?}");
        println!("{mode:?}: {:?} for each start and end", began.elapsed() / 200);
    }
}

#[test]
fn many_agents_leave_no_file_process_or_folder() {
    let temporary = tempfile::tempdir().unwrap();
    fs::set_permissions(temporary.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "remains::as_a_runner_of_many_agents", "--nocapture"])
        .env("ARENA_TEST_MANY", "1")
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn what_is_left_behind_is_counted() {
    for mode in MODES {
        let left = |text: &str| Agent::python(mode, text).run("").ended.left_behind;
        assert_eq!(left("pass"), 0, "{mode:?}");
        assert_eq!(
            left("for _ in '12':\n    if not os.fork():\n        time.sleep(60)\n        os._exit(0)\n"),
            2,
            "{mode:?}"
        );
        assert_eq!(
            left("if not os.fork():\n    os._exit(0)\nos.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)\n"),
            0,
            "{mode:?}"
        );
    }
}
