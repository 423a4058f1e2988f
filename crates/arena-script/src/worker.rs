//! The worker: the process in which scripts are loaded and run. It can only compute and answer: the kernel refuses it
//! files, sockets, new processes and access to other processes, also where it has no namespaces of its own. If a script breaks its worker, the arena ends the
//! worker and starts another.

mod blank;
mod compile;
mod machine;
mod memory;
mod strip;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, stdin, stdout};
use std::process::ExitCode;

use nix::libc;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use rustix::time::{ClockId, clock_gettime};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};
use serde_json::json;

use crate::wire::{Loaded, Request, read_frame, write_frame, write_text};
use crate::{Limits, Problem, ScriptKind};

pub(crate) use compile::importable;
use compile::{Compiled, compile};
use machine::{Answer, Machine};

/// The memory of a worker beyond a script's limit, in bytes: for the engine, compiled scripts and the type stripper.
/// It includes 1 GiB that the allocator of `arena` reserves without using it.
const OWN_BYTES: u64 = 2 << 30;

/// The system calls that a process needs to use its memory and its two pipes.
const ALLOWED: [libc::c_long; 26] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_prlimit64,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_restart_syscall,
    libc::SYS_fstat,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Runs the worker until its input ends.
pub(crate) fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The error can't be reported, because the pipe to the arena failed.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    let (from, to) = (stdin().lock(), stdout().lock());
    let (mut from, mut to) = (from, to);
    let Some(Request::Limits(limits)) = next(&mut from)? else { return Ok(()) };
    confine(&limits)?;
    let mut machine = Machine::new(limits)?;
    let mut scripts: HashMap<String, Compiled> = HashMap::new();
    while let Some(request) = next(&mut from)? {
        limit_time(&limits)?;
        match request {
            Request::Limits(_) => return Err(io::Error::other("the limits are set once")),
            Request::Load { name, kind, files } => write_frame(&mut to, &load(&mut scripts, name, kind, &files))?,
            Request::Call { name, inputs } => {
                let Some(script) = scripts.get(&name) else {
                    return Err(io::Error::other("a script is loaded before it is called"));
                };
                let inputs: Vec<&str> = inputs.iter().map(|input| input.get()).collect();
                match machine.call(script, &inputs) {
                    Answer::Written(text) => write_text(&mut to, &text)?,
                    Answer::Failed(failure) => write_frame(&mut to, &json!({ "failed": failure }))?,
                }
                machine.tidy(script);
            }
        }
    }
    Ok(())
}

fn load(
    scripts: &mut HashMap<String, Compiled>,
    name: Option<String>,
    kind: ScriptKind,
    files: &BTreeMap<String, String>,
) -> Loaded {
    match compile(files, kind, name.is_none()) {
        Ok(script) => {
            let used = script.files.iter().cloned().collect();
            if let Some(name) = name {
                scripts.insert(name, script);
            }
            Loaded::Fine(used)
        }
        Err(problems) => Loaded::Faulty(problems.into_iter().take(Problem::MOST).collect()),
    }
}

fn next(from: &mut impl io::Read) -> io::Result<Option<Request>> {
    Ok(match read_frame(from)? {
        Some(frame) => Some(serde_json::from_slice(&frame)?),
        None => None,
    })
}

/// Limits this process's rights to computing and answering.
fn confine(limits: &Limits) -> io::Result<()> {
    let bytes = OWN_BYTES + limits.memory_bytes as u64;
    setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    let none = CapabilitySet::empty();
    // A container may refuse this call. The filter of system calls holds without it.
    let _ = set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none });
    refuse_calls()
}

/// Makes the kernel refuse all system calls of this thread except [`ALLOWED`], and restricts two of these to the
/// process itself.
fn refuse_calls() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let filter = || -> Result<BpfProgram, seccompiler::BackendError> {
        let to = |process: u64| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
            let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, process)?;
            Ok(vec![SeccompRule::new(vec![condition])?])
        };
        let mut rules: BTreeMap<_, _> = ALLOWED.iter().map(|&call| (call, Vec::new())).collect();
        rules.insert(libc::SYS_tgkill, to(std::process::id().into())?);
        // The process id 0 is the calling process.
        rules.insert(libc::SYS_prlimit64, to(0)?);
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)?.try_into()
    };
    apply_filter(&filter().map_err(io::Error::other)?).map_err(io::Error::other)
}

/// Sets a CPU time limit in the kernel. It ends a slow worker if the arena has died and can't do so.
fn limit_time(limits: &Limits) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs();
    let maximum = getrlimit(Resource::Cpu).maximum;
    setrlimit(Resource::Cpu, Rlimit { current: Some(used + limits.wall_ms.div_ceil(1000) + 2), maximum })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::io::Errno;
    use rustix::process::{Pid, prlimit};

    use super::*;

    #[test]
    fn a_worker_can_change_its_own_limits_only() {
        let mut other = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_child(&other);
        // The filter belongs to the thread and ends with it.
        let tried = std::thread::spawn(move || {
            let limit = getrlimit(Resource::Core);
            let change = |process: Option<Pid>| prlimit(process, Resource::Core, limit).map(|_| ());
            let before = change(Some(pid));
            refuse_calls().unwrap();
            (before, change(Some(pid)), change(None))
        });
        let tried = tried.join().unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(tried, (Ok(()), Err(Errno::PERM), Ok(())));
    }
}
