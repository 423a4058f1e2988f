//! Kinds of memory that could escape the memory limit.

use std::fs;
use std::thread;
use std::time::Duration;

use arena_match::process::{ExitCause, KillReason, Limits, SandboxMode};

use crate::agent::{Agent, CONFINED, MODES, Run, read_line};

/// Runs the agent with 100 MiB of memory until it has ended.
#[track_caller]
fn run_in_100_mib(agent: Agent) -> Run {
    agent.limits(Limits { memory_bytes: Some(100 << 20), ..Limits::default() }).run("")
}

#[test]
fn what_belongs_to_no_process_cannot_be_had() {
    let text = r#"
import ctypes, fcntl, mmap
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, action):
    try: print(name, action())
    except OSError as error: print(name, "refused")
def call(result):
    if result < 0: raise OSError()
attempt("shared", lambda: mmap.mmap(-1, 1 << 20))
attempt("shared and validated", lambda: mmap.mmap(-1, 1 << 20, mmap.MAP_ANONYMOUS | 3))
attempt("zero", lambda: mmap.mmap(os.open("/dev/zero", os.O_RDWR), 1 << 20))
attempt("memfd", lambda: os.memfd_create("x"))
reader, writer = os.pipe()
attempt("pipe", lambda: fcntl.fcntl(writer, 1031, 1 << 20))
vector = (ctypes.c_void_p * 2)(ctypes.addressof(ctypes.create_string_buffer(1)), 1)
attempt("pages in a pipe", lambda: call(libc.vmsplice(writer, vector, 1, 0)))
one, other = socket.socketpair()
attempt("sent", lambda: one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20))
attempt("received", lambda: one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20))
attempt("rules", lambda: call(libc.syscall(444, (ctypes.c_uint64 * 2)(1, 0), 8, 0)))
"#;
    for mode in CONFINED {
        let run = Agent::python(mode, text).run("");
        assert_eq!(run.ended.cause, ExitCause::Exited(0), "{mode:?}: {run:?}");
        assert_eq!(run.stdout.lines().count(), 9, "{mode:?}: {run:?}");
        for line in run.stdout.lines() {
            assert!(line.ends_with(" refused"), "{mode:?}: {line}");
        }
    }
}

#[test]
fn memory_is_shared_by_files_and_zeros_can_be_read() {
    let text = r#"
import mmap, multiprocessing
from multiprocessing import shared_memory
count = multiprocessing.Value("i", 0)
def work():
    with count.get_lock(): count.value += 1
workers = [multiprocessing.get_context("fork").Process(target=work) for _ in range(3)]
for worker in workers: worker.start()
for worker in workers: worker.join()
print(count.value, len(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)))
zero = os.open("/dev/zero", os.O_RDONLY)
print(os.read(zero, 2), mmap.mmap(zero, 4096, prot=mmap.PROT_READ)[:1])
"#;
    for mode in CONFINED {
        let run = Agent::python(mode, text).run("");
        // Named semaphores are in `/dev/shm`, which only an agent's own file system has.
        let is_alone = run.in_force.namespaces.iter().any(|kind| kind == "mount");
        let expected = "3 4096\nb'\\x00\\x00' b'\\x00'\n";
        assert!(run.stdout == expected || !is_alone, "{mode:?}: {run:?}");
    }
}

#[test]
fn an_agent_that_sleeps_near_its_limit_is_looked_at_rarely() {
    for mode in MODES {
        let text = "held = b'x' * (70 << 20)\nprint('ready', flush=True)\ntime.sleep(600)\n";
        let limits = Limits { memory_bytes: Some(100 << 20), ..Limits::default() };
        let agent = Agent::python(mode, text).limits(limits);
        let process = agent.start();
        assert_eq!(read_line(&process.stdout), "ready", "{mode:?}");
        let number = |pid: u32, name: &str| -> u32 {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap().trim().parse().unwrap()
        };
        let watcher = number(process.agent_pid().unwrap(), "PPid");
        let wakes = || number(watcher, "voluntary_ctxt_switches");
        // The looks become rare while the agent sleeps: at last, there are 5 in a second.
        thread::sleep(Duration::from_secs(2));
        let before = wakes();
        thread::sleep(Duration::from_secs(2));
        let seen = wakes() - before;
        assert!((1..=20).contains(&seen), "{mode:?}: the watching process has run {seen} times in 2 s");
    }
}

#[test]
fn tables_of_pages_count() {
    let text = r#"
import mmap
NORESERVE = 0x4000
view = mmap.mmap(-1, 128 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE, mmap.PROT_READ)
for place in range(0, len(view), 2 << 20): view[place]
time.sleep(20)
"#;
    for mode in MODES {
        let run = run_in_100_mib(Agent::python(mode, text));
        assert_eq!(run.ended.cause, ExitCause::Killed(KillReason::Memory), "{mode:?}: {run:?}");
    }
}

#[test]
fn what_waits_in_sockets_counts() {
    let connections = r#"
listener = socket.socket(socket.AF_UNIX); listener.bind("here"); listener.listen(4096)
for _ in range(800):
    s = socket.socket(socket.AF_UNIX); s.connect("here"); s.setblocking(False)
    try: s.send(bytes(150 << 10))
    except BlockingIOError: pass
    s.close()
time.sleep(20)
"#;
    let datagrams = r#"
held = []
for i in range(80):
    reader = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); reader.bind(f"at {i}"); held.append(reader)
    for _ in range(11):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.setblocking(False)
            s.sendto(bytes(150 << 10), f"at {i}")
time.sleep(20)
"#;
    for text in [connections, datagrams] {
        let agent = Agent::python(SandboxMode::On, text);
        if agent.start().in_force().unwrap().namespaces.is_empty() {
            println!("not checked: without namespaces agents have no such sockets");
            return;
        }
        let run = run_in_100_mib(agent);
        assert_eq!(run.ended.cause, ExitCause::Killed(KillReason::Memory), "{run:?}");
    }
    let few = "held = [socket.socketpair() for _ in range(32)]; time.sleep(1); print('still here')";
    let run = run_in_100_mib(Agent::python(SandboxMode::On, few));
    assert_eq!(run.stdout, "still here\n");
    assert!(run.ended.max_rss_bytes < 50 << 20, "{run:?}");
}
