//! The limits of an agent: files, network, processes and memory.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use arena_match::process::{ExitCause, KillReason, Limits, SandboxMode};

use crate::agent::{Agent, CONFINED, Listeners, MODES, PATIENCE, read_line, read_to_end};

/// Tries the attempts, one per argument, and prints for each whether it succeeded.
const ATTEMPTS: &str = r#"
def attempt(name, action):
    try:
        print(name, "came through:", action())
    except BaseException as error:
        print(name, "refused")
"#;

/// Runs attempts that must all fail in both kinds of sandbox.
#[track_caller]
fn all_refused(attempts: &str, args: impl Fn(&Agent) -> Vec<String>) {
    for mode in CONFINED {
        let mut agent = Agent::python(mode, &format!("{ATTEMPTS}\n{attempts}"));
        agent.spec.args = args(&agent).into_iter().map(Into::into).collect();
        let run = agent.run("");
        assert_eq!(run.ended.cause, ExitCause::Exited(0), "{mode:?}: {run:?}");
        assert!(!run.stdout.is_empty() && run.stderr.is_empty(), "{mode:?}: {run:?}");
        for line in run.stdout.lines() {
            assert!(line.ends_with(" refused"), "{mode:?}: {line}");
        }
    }
}

#[test]
fn files_of_others_cannot_be_read() {
    let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(elsewhere.path(), fs::Permissions::from_mode(0o755)).unwrap();
    all_refused(
        r#"
for path in sys.argv[1:]:
    attempt(path, lambda: os.listdir(path) if path.endswith("/") else open(path).read())
    attempt(path, lambda: os.chmod(path, 0o777))
    attempt(path, lambda: os.utime(path))
    attempt(path, lambda: os.truncate(path, 0))
    attempt(path, lambda: os.rename(path, path + "-moved"))
"#,
        |agent| {
            let around = agent.around.path();
            let others = around.join("other");
            fs::create_dir_all(&others).unwrap();
            let mut files = vec![others.join("agent.py"), around.join("beside.txt"), elsewhere.path().join("secret")];
            for file in &files {
                fs::write(file, "secret").unwrap();
                fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
            }
            files.extend(["/etc/shadow", "/etc/ssh/sshd_config", "/etc/machine-id", "/proc/version"].map(Into::into));
            let home = std::env::home_dir().unwrap();
            files.push(home.join(".profile"));
            let folders = ["root", "home", "var", "run", "mnt", "sys", "boot"];
            files.extend(folders.map(|name| format!("/{name}/").into()));
            files.push(home.join(""));
            files.into_iter().map(|file| file.display().to_string()).collect()
        },
    );
}

#[test]
fn the_own_folder_can_be_read_but_not_written_and_the_scratch_folder_can() {
    for mode in CONFINED {
        let text = r#"
print(open(os.path.join(os.path.dirname(__file__), "agent")).readline().strip())
open("here", "w").write("1"); open(os.path.join(os.environ["TMPDIR"], "there"), "w").write("2")
os.makedirs(os.path.expanduser("~/a/b"))
print(sorted(os.listdir(".")), os.getcwd() == os.environ["HOME"])
for path in [__file__, os.path.dirname(__file__) + "/new", "/usr/new", "/new", "/etc/new", "/dev/new"]:
    try:
        open(path, "a").write("x"); print("written:", path)
    except OSError: pass
try:
    os.remove(__file__); print("removed")
except OSError: pass
try:
    os.chmod(__file__, 0o777); print("chmod")
except OSError: pass
"#;
        let agent = Agent::python(mode, text);
        // File permissions must not be the reason that a write fails.
        fs::set_permissions(&agent.spec.folder, fs::Permissions::from_mode(0o777)).unwrap();
        fs::set_permissions(&agent.spec.program, fs::Permissions::from_mode(0o777)).unwrap();
        let run = agent.run("");
        assert_eq!(run.stdout, "#!/usr/bin/python3\n['a', 'here', 'there'] True\n", "{mode:?}: {run:?}");
    }
}

#[test]
fn what_is_hidden_in_the_own_folder_cannot_be_read_and_all_else_can() {
    for mode in CONFINED {
        let text = r#"
import helper
sys.path.append(os.path.join(os.path.dirname(__file__), "parts"))
import part
def reads(name):
    path = os.path.join(os.path.dirname(__file__), name)
    try: return (os.listdir if os.path.isdir(path) else open)(path) is not None
    except OSError: return False
for name in sys.argv[1:]: print(name, reads(name))
"#;
        let names = ["agent", "data", "other.py", "sub", "sub/agent.py", "sub/deep/x", "parts/hidden.py", "by-link"];
        let mut agent = Agent::python(mode, text).args(&names);
        let folder = agent.spec.folder.clone();
        for name in ["helper.py", "data", "other.py", "sub/agent.py", "sub/deep/x", "parts/hidden.py", "parts/part.py"]
        {
            fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            fs::write(folder.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("other.py", folder.join("by-link")).unwrap();
        // The files that an agent is started from can't be hidden, and missing paths are ignored.
        let hidden = ["other.py", "sub", "sub/agent.py", "parts/hidden.py", "agent", "", "gone"];
        agent.spec.hidden = hidden.iter().map(|name| folder.join(name)).collect();
        let run = agent.run("");
        let expected = "agent True\ndata True\nother.py False\nsub False\nsub/agent.py False\nsub/deep/x False\n\
                        parts/hidden.py False\nby-link False\n";
        // Without namespaces the names of hidden files can be listed.
        let actual = if mode == CONFINED[1] { run.stdout.replace("sub True", "sub False") } else { run.stdout.clone() };
        assert_eq!(actual, expected, "{mode:?}: {run:?}");
    }
}

#[test]
fn what_appears_in_the_own_folder_later_cannot_be_read() {
    for mode in CONFINED {
        let text = r#"
folder = os.path.dirname(__file__)
print("ready", flush=True)
sys.stdin.readline()
for name in ["there", "later", "by-link"]:
    try: print(name, open(os.path.join(folder, name)).read())
    except OSError: print(name, "refused")
"#;
        let agent = Agent::python(mode, text);
        let folder = agent.spec.folder.clone();
        fs::write(folder.join("there"), "was there").unwrap();
        // Many data files, such as weights and tables.
        (0..1000).for_each(|number| fs::write(folder.join(format!("part{number}")), "").unwrap());
        std::os::unix::fs::symlink("later", folder.join("by-link")).unwrap();
        let mut process = agent.start();
        assert_eq!(read_line(&process.stdout), "ready", "{mode:?}");
        fs::write(folder.join("later"), "too late").unwrap();
        fs::File::from(process.stdin.take().unwrap()).write_all(b"go\n").unwrap();
        let actual = read_to_end(&process.stdout);
        assert_eq!(actual, "there was there\nlater refused\nby-link refused\n", "{mode:?}");
    }
}

#[test]
fn a_folder_with_too_many_entries_is_shown_whole_and_that_is_told() {
    for mode in CONFINED {
        let agent = Agent::python(mode, "print('there')");
        (0..8200).for_each(|number| fs::write(agent.spec.folder.join(format!("part{number}")), "").unwrap());
        let mut process = agent.start();
        let missing = &process.in_force().unwrap().missing;
        let is_told = |note: &String| {
            note.ends_with(" has more than 8192 entries, so files that appear in it during the match can be read.")
        };
        assert_eq!(missing.iter().filter(|note| is_told(note)).count(), 1, "{mode:?}: {missing:?}");
        assert_eq!(read_line(&process.stdout), "there", "{mode:?}");
    }
}

#[test]
fn no_listener_outside_can_be_reached() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let listeners = Listeners::open(folder.path());
    let attempts = r#"
tcp, udp, path, name = sys.argv[1:]
def to(family, kind, address):
    s = socket.socket(family, kind); s.settimeout(2); s.connect(address); s.send(b"x"); return "sent"
attempt("tcp", lambda: to(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(tcp))))
attempt("udp", lambda: to(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(udp))))
attempt("tcp6", lambda: to(socket.AF_INET6, socket.SOCK_STREAM, ("::1", int(tcp))))
attempt("path", lambda: to(socket.AF_UNIX, socket.SOCK_STREAM, path))
attempt("abstract", lambda: to(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
"#;
    all_refused(attempts, |_| listeners.args.clone());
    // The attempts are valid: without a sandbox they succeed.
    let mut agent = Agent::python(SandboxMode::Off, &format!("{ATTEMPTS}\n{attempts}"));
    agent.spec.args = listeners.args.iter().map(Into::into).collect();
    let run = agent.run("");
    for kind in ["tcp", "udp", "path", "abstract"] {
        assert!(run.stdout.contains(&format!("{kind} came through")), "{run:?}");
    }
}

#[test]
fn the_runner_cannot_be_seen_signaled_or_traced() {
    all_refused(
        r#"
import ctypes, resource
libc = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result < 0: raise OSError()
    return result
for pid in map(int, sys.argv[1:] + [os.getppid()]):
    if pid == 0: pid = 1
    if pid != os.getppid():
        attempt("see", lambda: open(f"/proc/{pid}/cmdline").read())
        attempt("signal", lambda: os.kill(pid, 0))
    attempt("environ", lambda: open(f"/proc/{pid}/environ").read())
    for fd in range(16):
        attempt(f"fd {fd}", lambda: os.readlink(f"/proc/{pid}/fd/{fd}"))
    attempt("memory", lambda: open(f"/proc/{pid}/mem", "rb"))
    attempt("trace", lambda: call(libc.ptrace(16, pid, 0, 0)))
    attempt("pidfd", lambda: call(libc.syscall(438, call(libc.syscall(434, pid, 0)), 0, 0)))
    attempt("limit", lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1000, 1000)))
    attempt("affinity", lambda: os.sched_setaffinity(pid, {0}))
    attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
attempt("namespace", lambda: call(libc.unshare(0x10000000)))
attempt("mount", lambda: call(libc.mount(b"x", b"/tmp", b"tmpfs", 0, None)))
attempt("memfd", lambda: os.memfd_create("x"))
"#,
        |_| vec![std::process::id().to_string(), std::os::unix::process::parent_id().to_string()],
    );
}

#[test]
fn no_agent_gets_a_second_share_of_the_processor() {
    // The kernel shares CPU time between sessions, and within a session between processes.
    all_refused(
        r#"
import ctypes
X86 = os.uname().machine == "x86_64"
SCHED_SETATTR, IOPRIO_SET = (314, 251) if X86 else (274, 30)
def begin():
    if os.fork() == 0:
        try: os.setsid()
        except PermissionError: os._exit(1)
        os._exit(0)
    if os.wait()[1]: raise OSError()
attempt("session", begin)
attempt("group", lambda: open("/proc/self/autogroup", "w").write("-20"))
attempt("up", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))
attempt("down", lambda: os.nice(1))
attempt("core", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
attempt("batch", lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)))
attempt("parameters", lambda: os.sched_setparam(0, os.sched_param(0)))
def call(number, *args):
    if ctypes.CDLL(None).syscall(number, *args) < 0: raise OSError()
attributes = (ctypes.c_uint32 * 12)(48, 3)
attempt("attributes", lambda: call(SCHED_SETATTR, 0, attributes, 0))
attempt("disk", lambda: call(IOPRIO_SET, 1, 0, 3 << 13))
attempt("real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
"#,
        |_| Vec::new(),
    );
}

#[test]
fn the_runners_environment_and_open_files_stay_with_it() {
    for mode in MODES {
        let mut agent = Agent::python(
            mode,
            r#"
print(sorted(os.environ)); print(os.environ["GIVEN"])
print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1])
print(open("/proc/self/status").read().split("SigBlk:")[1].split()[0], open("/proc/self/status").read().split("CapEff:")[1].split()[0])
"#,
        );
        agent.spec.env.push(("GIVEN".into(), "here".into()));
        let run = agent.run("");
        let mut lines = run.stdout.lines();
        assert_eq!(lines.next(), Some("['GIVEN', 'HOME', 'LANG', 'PATH', 'TMPDIR']"), "{mode:?}: {run:?}");
        assert_eq!(lines.next(), Some("here"), "{mode:?}");
        assert_eq!(lines.next(), Some("[0, 1, 2]"), "{mode:?}");
        let (blocked, rights) = lines.next().unwrap().split_once(' ').unwrap();
        assert_eq!(blocked, "0000000000000000", "{mode:?}");
        assert!(mode == SandboxMode::Off || rights == "0000000000000000", "{mode:?}: {rights}");
    }
}

#[test]
fn who_takes_too_much_memory_gets_none_or_is_ended_for_it() {
    let limits = Limits { memory_bytes: Some(100 << 20), ..Limits::default() };
    for mode in MODES {
        let alone = Agent::python(mode, "x = bytearray(300 << 20); print('had it')").limits(limits);
        let run = alone.run("");
        assert!(run.stdout.is_empty() && run.stderr.contains("MemoryError"), "{mode:?}: {run:?}");
        let together = r#"
for _ in range(6):
    if os.fork() == 0:
        x = bytearray(os.urandom(1 << 20)) * 60
        time.sleep(60)
time.sleep(60)
"#;
        let agent = Agent::python(mode, together).limits(limits);
        let mut process = agent.start();
        let began = Instant::now();
        while process.is_running() {
            assert!(began.elapsed() < PATIENCE, "{mode:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        let ended = process.wait(Duration::ZERO);
        assert_eq!(ended.cause, ExitCause::Killed(KillReason::Memory), "{mode:?}");
        assert!(ended.max_rss_bytes > 100 << 20, "{mode:?}: {ended:?}");
    }
}

#[test]
fn a_file_beyond_the_limit_is_refused_and_in_a_namespace_many_files_too() {
    let limits = Limits { file_size_bytes: Some(1 << 20), ..Limits::default() };
    for mode in MODES {
        let text = r#"
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    open("big", "wb").write(b"x" * (2 << 20)); print("written")
except OSError: print("refused")
os.remove("big")
try:
    for i in range(4): open(str(i), "wb").write(b"x" * (900 << 10))
    print("written")
except OSError: print("refused")
"#;
        let run = Agent::python(mode, text).limits(limits).run("");
        // If the system refuses namespaces, `On` has none either.
        let expected = if run.in_force.namespaces.iter().any(|kind| kind == "mount") {
            "refused\nrefused\n"
        } else {
            "refused\nwritten\n"
        };
        assert_eq!(run.stdout, expected, "{mode:?}: {run:?}");
    }
}

#[test]
fn open_files_are_limited() {
    for mode in MODES {
        let text = "
held = []
try:
    while True: held.append(open('/dev/null'))
except OSError: print(len(held) < 256)
";
        assert_eq!(Agent::python(mode, text).run("").stdout, "True\n", "{mode:?}");
    }
}

#[test]
fn a_fork_bomb_is_contained_and_gone_at_the_end() {
    for mode in CONFINED {
        let marker = format!("arena-bomb-{}-{mode:?}", std::process::id());
        let text = r#"
while True:
    try:
        os.fork()
    except OSError: pass
"#;
        let agent = Agent::python(mode, text).args(&[&marker]);
        let process = agent.start();
        std::thread::sleep(Duration::from_millis(700));
        let most = crate::agent::processes_with(&marker).len();
        assert!(most < 64 * 6, "{mode:?}: {most} processes");
        let began = Instant::now();
        let stdout = process.stdout.try_clone().unwrap();
        let ended = process.wait(Duration::ZERO);
        assert!(matches!(ended.cause, ExitCause::Killed(_)), "{mode:?}: {ended:?}");
        assert_eq!(crate::agent::processes_with(&marker), [0_u32; 0], "{mode:?}");
        assert_eq!(read_to_end(&stdout), "", "{mode:?}");
        println!("{mode:?}: {most} processes, gone after {:?}", began.elapsed());
    }
}
