//! The launcher: the processes that stand between a match and an agent.
//!
//! With namespaces there are two of them. The launcher leaves the runner's namespaces, starts the init and waits. The
//! init is process 1 of the agent's world: it builds the file system, gives up every right, starts the agent, watches
//! it, and when it exits, the kernel ends all that is left in that world. Without namespaces the launcher watches the
//! agent itself, as the process to which orphans fall; a second stage confines itself and becomes the agent.
//!
//! In both cases the socket to the runner decides over life and death: when the runner closes it or is killed, the
//! agent and all its processes are ended. The agent never holds that socket.

mod confine;
mod descendants;
mod exposure;
mod init;
mod inner;
mod program;
mod root_fs;
pub(crate) mod scratch;
mod watch;

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stdin};
use serde::{Deserialize, Serialize};

use crate::process::wire::{self, Order, Report};
use crate::process::{InForce, LAUNCHER_ENV, Limits, SandboxMode, StartError};
use exposure::Exposure;
pub(crate) use exposure::{View, is_system, is_wide};
use watch::Members;

/// User and group as whom agents run when the arena runs as root: `nobody`, who owns no files.
const UNPRIVILEGED_ID: u32 = 65534;

/// The stage that is process 1 of a world of its own.
const INIT: &str = "init";

/// The stage that becomes the agent where there are no namespaces.
const INNER: &str = "inner";

/// What the launcher decided, for the stage that carries it out. The agent's pipes go with it.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    folder: PathBuf,
    exposures: Vec<Exposure>,
    /// Places in the exposures at which the agent finds nothing.
    hidden: Vec<PathBuf>,
    limits: Limits,
    confined: bool,
    scratch: PathBuf,
    /// The user and group to become, if we are root.
    drop_to: Option<u32>,
    /// Whether the stage is in a user namespace in which our own user is root.
    mapped_to_root: bool,
    user_id: u32,
    group_id: u32,
    /// What is known to be in force so far.
    in_force: InForce,
}

/// Runs a stage of the launcher; `args` are those after the ones that a [`crate::process::Launcher`] has.
///
/// The caller must not have started threads or opened files, and its own arguments must end with `args`: the later
/// stages are started with the same leading ones.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<_> = args.into_iter().collect();
    close_stray_files();
    // A thread that holds signals back hands that down as well, even to the agent.
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
    let stage = args.first().and_then(|stage| stage.to_str()).unwrap_or("");
    // The name that lists of processes show; the program was found by a link whose name says nothing.
    let _ = rustix::thread::set_name(if stage == INIT { c"arena-init" } else { c"arena-launch" });
    let done = match stage {
        "" => launch(),
        INIT => init::run(),
        INNER => inner::run(),
        _ => Err(StartError::Vanished),
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Closes all that is open beyond stdin, stdout and stderr: what whoever started the runner forgot to keep from its
/// children must not reach an agent.
fn close_stray_files() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open {
        if fd > 2 {
            // The one that belonged to the listing is closed already, which is the only possible error.
            let _ = nix::unistd::close(fd);
        }
    }
}

/// The first stage: decides, leaves the namespaces, starts the second and stays until all is over.
fn launch() -> Result<(), StartError> {
    let control = take_stdin()?;
    let Ok(Some((order, pipes))) = wire::receive::<Order>(&control) else { return Err(StartError::Vanished) };
    match prepare(&order) {
        Ok(plan) => carry_out(&order, plan, pipes, control),
        Err(error) => Err(fail(&control, error)),
    }
}

/// Tells the runner why the agent doesn't start.
fn fail(control: impl AsFd, error: StartError) -> StartError {
    // A runner that is gone needs no report.
    let _ = wire::send(control, &Report::Failed(error.clone()), &[]);
    error
}

/// Moves the socket out of stdin's place, which becomes empty.
fn take_stdin() -> Result<OwnedFd, StartError> {
    let socket = stdin().try_clone_to_owned().setup("taking over the socket")?;
    let null = File::open("/dev/null").setup("opening /dev/null")?;
    dup2_stdin(&null).setup("replacing stdin")?;
    Ok(socket)
}

fn prepare(order: &Order) -> Result<Plan, StartError> {
    let found = program::find(&order.program, &order.search_path)?;
    let confined = order.sandbox != SandboxMode::Off;
    let mut in_force = InForce { limits: order.limits, user_id: geteuid().as_raw(), ..InForce::default() };
    let (mut exposures, mut hidden) = (Vec::new(), Vec::new());
    let mut search_path = order.search_path.clone();
    if confined {
        let places = exposure::Places { home: order.home.clone(), search_path: &order.search_path };
        let mut chosen = exposure::choose(&found, order, &places)?;
        in_force.missing.append(&mut chosen.notes);
        (exposures, hidden) = (chosen.exposures, chosen.hidden);
        search_path = exposure::visible_path(&order.search_path, &exposures);
    }
    let mut env = vec![(OsString::from("PATH"), search_path), ("LANG".into(), "C.UTF-8".into())];
    env.extend(order.env.iter().cloned());
    let drop_to = (confined && can_become(UNPRIVILEGED_ID)).then_some(UNPRIVILEGED_ID);
    if let Some(id) = drop_to {
        in_force.user_id = id;
    }
    Ok(Plan {
        program: found,
        args: order.args.clone(),
        env,
        folder: order.folder.clone(),
        exposures,
        hidden,
        limits: order.limits,
        confined,
        scratch: PathBuf::new(),
        drop_to,
        mapped_to_root: false,
        user_id: geteuid().as_raw(),
        group_id: getegid().as_raw(),
        in_force,
    })
}

/// Whether we can become another user. Root of a container may be the only user in it, and is none outside then.
fn can_become(id: u32) -> bool {
    let holds = |line: &str| {
        let mut numbers = line.split_ascii_whitespace().map(|word| word.parse::<u64>().unwrap_or(0));
        let (first, _, count) = (numbers.next().unwrap_or(0), numbers.next(), numbers.next().unwrap_or(0));
        (first..first.saturating_add(count)).contains(&u64::from(id))
    };
    let mapped = |table: &str| fs::read_to_string(table).is_ok_and(|table| table.lines().any(holds));
    geteuid().is_root() && mapped("/proc/self/uid_map") && mapped("/proc/self/gid_map")
}

fn carry_out(order: &Order, mut plan: Plan, pipes: Vec<OwnedFd>, control: OwnedFd) -> Result<(), StartError> {
    if matches!(order.sandbox, SandboxMode::On | SandboxMode::Required) {
        match leave_namespaces(plan.drop_to.is_some()) {
            Ok(()) => {
                plan.mapped_to_root = plan.drop_to.is_none();
                return with_namespaces(&plan, pipes, control);
            }
            Err(reason) if order.sandbox == SandboxMode::Required => {
                let lacks = format!("it allows agents no namespaces of their own ({reason})");
                return Err(fail(&control, StartError::NoSandbox { lacks }));
            }
            Err(reason) => plan.in_force.missing.push(format!(
                "The system allows no namespaces of their own to agents ({reason}), so they share its processes, \
                 network interfaces and file system, and are kept from them by rules."
            )),
        }
    }
    if plan.confined {
        plan.in_force.missing.push(
            "Without namespaces the scratch folder has no limit of its own size, and whether a file of a known name \
             exists can be found out."
                .to_owned(),
        );
    }
    without_namespaces(order, plan, pipes, &control).map_err(|error| fail(&control, error))
}

/// Leaves all namespaces that make a world of its own. In them we are root, over nothing but what they hold.
fn leave_namespaces(is_root: bool) -> Result<(), String> {
    let all = CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if is_root {
        // Root needs no user namespace to set up the rest, and the agent gets one later. Without one, folders of
        // root's that are closed to others can still be shown to an agent.
        return unshare(all).map_err(|error| error.desc().to_lowercase());
    }
    // Some systems let anybody make a user namespace, but without the rights in it that are its point.
    let restricted = fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    if restricted.is_ok_and(|value| value.trim() == "1") {
        return Err("kernel.apparmor_restrict_unprivileged_userns is set".to_owned());
    }
    let (uid, gid) = (geteuid(), getegid());
    // By itself at first: if it turns out to be without rights, nothing else is changed yet.
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| format!("user namespaces: {}", error.desc().to_lowercase()))?;
    let proc_self = File::open("/proc/self").map_err(|error| error.to_string())?;
    map_ids(&proc_self, (0, uid.as_raw()), (0, gid.as_raw())).map_err(|error| format!("user mapping: {error}"))?;
    unshare(all).map_err(|error| error.desc().to_lowercase())
}

/// Maps one user and one group, inner to outer, into the user namespace this process just made.
/// `proc_self` is this process's folder in a `/proc`.
fn map_ids(proc_self: impl AsFd, user: (u32, u32), group: (u32, u32)) -> io::Result<()> {
    let write = |name: &str, text: String| -> io::Result<()> {
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
        let file = rustix::fs::openat(&proc_self, name, flags, rustix::fs::Mode::empty())?;
        rustix::io::write(&file, text.as_bytes())?;
        Ok(())
    };
    // Whoever could drop groups could get at files that are closed to a group, so the kernel wants this first.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{} {} 1", user.0, user.1))?;
    write("gid_map", format!("{} {} 1", group.0, group.1))
}

/// Starts another stage of this program, and tells it the plan. The files go with it.
fn start_stage(stage: &str, plan: &Plan, files: &[OwnedFd]) -> Result<(Child, OwnedFd), StartError> {
    let own: Vec<_> = env::args_os().skip(1).collect();
    let (ours, theirs) = wire::pair().setup("making a socket")?;
    let fds: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    wire::send(&ours, plan, &fds).setup("telling the plan")?;
    // By this path it is the same program even if its file has been replaced. Lists of processes show the usual name.
    let mut command = Command::new("/proc/self/exe");
    command.args(own);
    if let Some(name) = env::args_os().next() {
        command.arg0(name);
    }
    let child = command
        .arg(stage)
        .env_clear()
        .envs(LAUNCHER_ENV)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .setup("starting the next stage of the launcher")?;
    Ok((child, ours))
}

/// Hands everything to the init. It speaks to the runner itself from here on.
fn with_namespaces(plan: &Plan, mut files: Vec<OwnedFd>, control: OwnedFd) -> Result<(), StartError> {
    files.push(control);
    let started = start_stage(INIT, plan, &files);
    let (mut init, socket) = match started {
        Ok(started) => started,
        Err(error) => return Err(files.last().map_or(error.clone(), |control| fail(control, error))),
    };
    // Our copies must not keep the pipes and the socket to the runner open when the init is gone.
    drop(files);
    // The kernel lets go of a process 1 only when the last of its world is gone.
    let _ = init.wait();
    drop(socket);
    Ok(())
}

/// Starts the agent through a stage that confines itself, and watches its descendants.
fn without_namespaces(order: &Order, mut plan: Plan, files: Vec<OwnedFd>, control: &OwnedFd) -> Result<(), StartError> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).setup("becoming the reaper of orphans")?;
    let scratch = scratch::Scratch::make_in(&order.scratch_in, plan.drop_to).setup("making the scratch folder")?;
    plan.scratch = scratch.path().to_owned();
    let (mut child, socket) = start_stage(INNER, &plan, &files)?;
    drop(files);
    let mut in_force = plan.in_force;
    // It tells what it put in force, and then its end of the socket closes as the agent's program takes over.
    loop {
        match wire::receive::<Report>(&socket) {
            Ok(Some((Report::Started(told), _))) => in_force = told,
            Ok(Some((Report::Failed(error), _))) => {
                let _ = child.wait();
                return Err(error);
            }
            Ok(Some((Report::Ended(_), _))) => {}
            Ok(None) => break,
            Err(_) => return Err(StartError::Vanished),
        }
    }
    drop(socket);
    let members = Members::Descendants;
    let report = watch::until_the_end(control, child.id(), in_force, &plan.limits, members);
    drop(scratch);
    if let Some(ended) = report {
        let _ = wire::send(control, &Report::Ended(ended), &[]);
    }
    Ok(())
}

/// Puts the places of stdin, stdout and stderr in the hands of these pipes.
fn take_pipes(pipes: &[OwnedFd]) -> Result<(), StartError> {
    let [stdin, stdout, stderr] = pipes else { return Err(StartError::Vanished) };
    dup2_stdin(stdin).and_then(|()| dup2_stdout(stdout)).and_then(|()| dup2_stderr(stderr)).setup("taking the pipes")
}

/// Names the step at which the set-up failed.
trait Setup<T> {
    fn setup(self, step: &str) -> Result<T, StartError>;
}

impl<T, E: Into<io::Error>> Setup<T> for Result<T, E> {
    fn setup(self, step: &str) -> Result<T, StartError> {
        self.map_err(|error| StartError::Setup { step: step.to_owned(), reason: error.into().to_string() })
    }
}
