//! Workers beside the arena: what the kernel lets their processes do and see.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use arena_sandbox::process::Launcher;
use arena_script::{Limits, Sandbox, WorkerProgram};
use rustix::process::Pid;

use crate::killed::workers;
use crate::table::{Game, METADATA, load_into, script, worker};

/// Plays a move with these workers. Returns the process id of the worker, which is idle.
fn played(program: WorkerProgram, mark: &str) -> (Sandbox, Pid) {
    let sandbox = Sandbox::new(program, Limits::default());
    let text = script("act(message, index) { this.gameState.done.push(index); }");
    let files = BTreeMap::from([("challenge.json", METADATA), ("index.js", text.as_str())]);
    let game = Game::new(load_into(&sandbox, &files).unwrap(), 1).start().act(1, "act", "");
    assert_eq!(game.state().to_string(), r#"{"done":[0]}"#, "{}", game.told);
    let pids = workers(mark);
    assert_eq!(pids.len(), 1, "one call at a time needs one worker");
    (sandbox, pids[0])
}

/// Returns the values of these lines in a process's status.
fn status<const N: usize>(pid: Pid, names: [&str; N]) -> [String; N] {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).unwrap();
    let lines: BTreeMap<&str, &str> = status.lines().filter_map(|line| line.split_once(':')).collect();
    names.map(|name| lines[name].trim().to_owned())
}

const NO_CAPABILITIES: &str = "0000000000000000";

#[test]
fn a_worker_has_no_capabilities_and_its_own_namespaces() {
    let mark = format!("apart-{}", std::process::id());
    let (_sandbox, pid) = played(worker(&[&mark]), &mark);
    let capabilities = status(pid, ["CapPrm", "CapEff", "CapInh", "CapAmb"]);
    assert_eq!(capabilities, [NO_CAPABILITIES; 4]);
    let [user, seccomp, new_rights] = status(pid, ["Uid", "Seccomp", "NoNewPrivs"]);
    assert!(!user.split_ascii_whitespace().any(|id| id == "0"), "{user}");
    assert_eq!((seccomp.as_str(), new_rights.as_str()), ("2", "1"));
    let namespace = |process: &str, kind: &str| fs::read_link(format!("/proc/{process}/ns/{kind}")).unwrap();
    for kind in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
        assert_ne!(namespace(&pid.as_raw_pid().to_string(), kind), namespace("self", kind), "{kind}");
    }
    // It sees neither the files of the arena nor interfaces of the network.
    let root = format!("/proc/{}/root", pid.as_raw_pid());
    assert!(!fs::exists(format!("{root}/var/lib")).unwrap() && !fs::exists(format!("{root}/etc/shadow")).unwrap());
    let interfaces = fs::read_to_string(format!("/proc/{}/net/dev", pid.as_raw_pid())).unwrap();
    let names: Vec<&str> = interfaces.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    assert_eq!(names, ["lo"]);
}

#[test]
fn scripts_run_where_no_sandbox_can_be_made() {
    let mark = format!("bare-{}", std::process::id());
    let launcher = Launcher { program: PathBuf::from("/bin/false"), args: Vec::new() };
    let (_sandbox, pid) = played(WorkerProgram { launcher, ..worker(&[&mark]) }, &mark);
    let [permitted, effective, seccomp] = status(pid, ["CapPrm", "CapEff", "Seccomp"]);
    assert_eq!([permitted, effective], [NO_CAPABILITIES; 2]);
    assert_eq!(seccomp, "2");
}
