//! The launcher: the processes between the runner and an agent.
//!
//! With namespaces there are two processes. The launcher leaves the runner's namespaces, starts the init
//! process and waits. The init process has process id 1 in the agent's namespaces: it builds the file system,
//! gives up its rights, then starts and watches the agent. When it exits, the kernel ends every process left
//! in the namespaces.
//!
//! Without namespaces the launcher adopts orphaned processes and watches the agent itself. A second stage
//! sets up the sandbox and then executes the agent's program in its place.
//!
//! In both cases the process that watches the agent holds a socket to the runner. When the runner closes its
//! end or is killed, the watching process ends the agent and all its processes. The agent never has this
//! socket.

mod confine;
mod descendants;
mod exposure;
mod init;
mod inner;
mod loopback;
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
use crate::process::{ActiveSandbox, FOLDER, LAUNCHER_ENV, Limits, SandboxMode, ScratchSetup, StartError};
use exposure::Exposure;
pub use exposure::{AgentView, is_system, is_wide};
use watch::Members;

/// The user and group id of agents if the arena runs as root. It is that of `nobody`, which owns no files.
const UNPRIVILEGED_ID: u32 = 65534;

/// The stage that runs as process 1 of the agent's namespaces.
const INIT: &str = "init";

/// The stage that becomes the agent if there are no namespaces.
const INNER: &str = "inner";

/// The launcher's decisions for the next stage. The same packet transfers the agent's pipes.
#[derive(Debug, Serialize, Deserialize)]
struct LaunchPlan {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    folder: PathBuf,
    exposures: Vec<Exposure>,
    /// Paths inside the exposures that are hidden from the agent.
    hidden: Vec<PathBuf>,
    limits: Limits,
    confined: bool,
    scratch: PathBuf,
    setup: Option<ScratchSetup>,
    /// The id of the user and group that the agent runs as, if the launcher runs as root.
    drop_to: Option<u32>,
    /// True if the stage is in a user namespace that maps the launcher's user to root.
    mapped_to_root: bool,
    user_id: u32,
    group_id: u32,
    /// The parts of the sandbox in force so far.
    in_force: ActiveSandbox,
}

/// Runs a stage of the launcher. `args` are the arguments after those of [`crate::process::Launcher`].
///
/// The calling program must not have started threads or opened files. `args` must be the last of its
/// arguments, because the launcher repeats the arguments before them when it starts a stage.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<_> = args.into_iter().collect();
    close_stray_files();
    // Child processes, the agent included, inherit a thread's mask of blocked signals.
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
    let stage = args.first().and_then(|stage| stage.to_str()).unwrap_or("");
    // Process lists show this name. Otherwise they would show `exe`, the last part of `/proc/self/exe`.
    let _ = rustix::thread::set_name(if stage == INIT { c"arena-init" } else { c"arena-launch" });
    let done = match stage {
        "" => launch(),
        INIT => init::run(),
        INNER => inner::run(),
        _ => Err(StartError::Vanished),
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Closes every file descriptor above stderr. An agent must not inherit files that the runner's parent left
/// open.
fn close_stray_files() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open {
        if fd > 2 {
            // The only possible error is that of the directory listing's own descriptor, which is closed
            // already.
            let _ = nix::unistd::close(fd);
        }
    }
}

/// Runs the first stage: chooses the sandbox, leaves the runner's namespaces, starts the next stage, and
/// returns after the agent's end.
fn launch() -> Result<(), StartError> {
    let control = take_stdin()?;
    let Ok(Some((order, pipes))) = wire::receive::<Order>(&control) else { return Err(StartError::Vanished) };
    match prepare(&order) {
        Ok(plan) => carry_out(&order, plan, pipes, control),
        Err(error) => Err(fail(&control, error)),
    }
}

/// Reports a failed start to the runner. Returns the same error.
fn fail(control: impl AsFd, error: StartError) -> StartError {
    // The send fails only if the runner is gone.
    let _ = wire::send(control, &Report::Failed(error.clone()), &[]);
    error
}

/// Moves the socket from stdin to another descriptor and replaces stdin with `/dev/null`.
fn take_stdin() -> Result<OwnedFd, StartError> {
    let socket = stdin().try_clone_to_owned().setup("taking over the socket")?;
    let null = File::open("/dev/null").setup("opening /dev/null")?;
    dup2_stdin(&null).setup("replacing stdin")?;
    Ok(socket)
}

fn prepare(order: &Order) -> Result<LaunchPlan, StartError> {
    let found = program::find(&order.program, &order.search_path)?;
    let confined = order.sandbox != SandboxMode::Off;
    let mut in_force = ActiveSandbox { limits: order.limits, user_id: geteuid().as_raw(), ..ActiveSandbox::default() };
    let (mut exposures, mut hidden) = (Vec::new(), Vec::new());
    let mut search_path = order.search_path.clone();
    if confined {
        let context = exposure::SearchContext { home: order.home.clone(), search_path: &order.search_path };
        let mut chosen = exposure::choose(&found, order, &context)?;
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
    Ok(LaunchPlan {
        program: found,
        args: order.args.clone(),
        env,
        folder: order.folder.clone(),
        exposures,
        hidden,
        limits: order.limits,
        confined,
        scratch: PathBuf::new(),
        setup: order.setup.clone(),
        drop_to,
        mapped_to_root: false,
        user_id: geteuid().as_raw(),
        group_id: getegid().as_raw(),
        in_force,
    })
}

/// Returns true if the process can change to this user. In a container, root may be the only mapped user.
fn can_become(id: u32) -> bool {
    let holds = |line: &str| {
        let mut numbers = line.split_ascii_whitespace().map(|word| word.parse::<u64>().unwrap_or(0));
        let (first, _, count) = (numbers.next().unwrap_or(0), numbers.next(), numbers.next().unwrap_or(0));
        (first..first.saturating_add(count)).contains(&u64::from(id))
    };
    let mapped = |table: &str| fs::read_to_string(table).is_ok_and(|table| table.lines().any(holds));
    geteuid().is_root() && mapped("/proc/self/uid_map") && mapped("/proc/self/gid_map")
}

fn carry_out(order: &Order, mut plan: LaunchPlan, pipes: Vec<OwnedFd>, control: OwnedFd) -> Result<(), StartError> {
    if matches!(order.sandbox, SandboxMode::On | SandboxMode::Required) {
        match leave_namespaces(plan.drop_to.is_some()) {
            Ok(()) => {
                plan.mapped_to_root = plan.drop_to.is_none();
                return with_namespaces(&plan, pipes, control);
            }
            Err(reason) if order.sandbox == SandboxMode::Required => {
                let lacks = format!("it doesn't allow namespaces for agents ({reason})");
                return Err(fail(&control, StartError::NoSandbox { lacks }));
            }
            Err(reason) => plan.in_force.missing.push(format!(
                "The system doesn't allow namespaces for agents ({reason}). Agents share its processes, network \
                 interfaces and file system, and only Landlock and seccomp rules restrict their access."
            )),
        }
    }
    if plan.confined && plan.setup.is_some() {
        // Rules can't allow connections to one service of the arena only.
        let lacks = "an agent with services of the arena needs namespaces (or no sandbox)".to_owned();
        return Err(fail(&control, StartError::NoSandbox { lacks }));
    }
    if plan.confined {
        plan.in_force.missing.push(
            "Without namespaces the size of the scratch folder isn't limited, and an agent can find out if a file \
             with a known name exists."
                .to_owned(),
        );
    }
    without_namespaces(order, plan, pipes, &control).map_err(|error| fail(&control, error))
}

/// Moves this process to new namespaces. In them the process is root, with rights over their contents only.
fn leave_namespaces(is_root: bool) -> Result<(), String> {
    let all = CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if is_root {
        // Root needs no user namespace for the setup; the agent gets one later. In a user namespace, the
        // launcher couldn't show an agent those folders that only root may read.
        return unshare(all).map_err(|error| error.desc().to_lowercase());
    }
    // With this setting, AppArmor allows unprivileged user namespaces but withholds their capabilities.
    let restricted = fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    if restricted.is_ok_and(|value| value.trim() == "1") {
        return Err("kernel.apparmor_restrict_unprivileged_userns is set".to_owned());
    }
    let (uid, gid) = (geteuid(), getegid());
    // This is a separate call so that nothing else has changed if the new user namespace has no rights.
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| format!("user namespaces: {}", error.desc().to_lowercase()))?;
    let proc_self = File::open("/proc/self").map_err(|error| error.to_string())?;
    map_ids(&proc_self, (0, uid.as_raw()), (0, gid.as_raw())).map_err(|error| format!("user mapping: {error}"))?;
    unshare(all).map_err(|error| error.desc().to_lowercase())
}

/// Maps one user and one group into the new user namespace of this process. Each pair is the id inside and
/// the id outside. `proc_self` is this process's folder in a `/proc`.
fn map_ids(proc_self: impl AsFd, user: (u32, u32), group: (u32, u32)) -> io::Result<()> {
    let write = |name: &str, text: String| -> io::Result<()> {
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
        let file = rustix::fs::openat(&proc_self, name, flags, rustix::fs::Mode::empty())?;
        rustix::io::write(&file, text.as_bytes())?;
        Ok(())
    };
    // The kernel requires this before `gid_map`: a process that could drop groups could read files that are
    // closed to a group.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{} {} 1", user.0, user.1))?;
    write("gid_map", format!("{} {} 1", group.0, group.1))
}

impl LaunchPlan {
    /// Writes the files of the setup into the scratch folder, and replaces [`FOLDER`] by its path.
    fn fill_scratch(&mut self) -> Result<(), StartError> {
        let Some(setup) = &self.setup else { return Ok(()) };
        let scratch = self.scratch.to_string_lossy().into_owned();
        let filled = |text: &OsString| match text.to_str() {
            Some(text) => text.replace(FOLDER, &scratch).into(),
            None => text.clone(),
        };
        for arg in &mut self.args {
            *arg = filled(arg);
        }
        for (_, value) in &mut self.env {
            *value = filled(value);
        }
        for (path, text) in &setup.files {
            let path = self.scratch.join(path);
            let folder = path.parent().unwrap_or(&self.scratch);
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&path, text.replace(FOLDER, &scratch)))
                .setup(&format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}

/// Starts another stage of this program and sends it the plan and the open files.
fn start_stage(stage: &str, plan: &LaunchPlan, files: &[OwnedFd]) -> Result<(Child, OwnedFd), StartError> {
    let own: Vec<_> = env::args_os().skip(1).collect();
    let (ours, theirs) = wire::pair().setup("making a socket")?;
    let fds: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    wire::send(&ours, plan, &fds).setup("sending the plan")?;
    // This path leads to the running program even if its file has been replaced. `arg0` keeps the program's
    // name in process lists.
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

/// Starts the init process and waits for its end. The init process reports to the runner itself.
fn with_namespaces(plan: &LaunchPlan, mut files: Vec<OwnedFd>, control: OwnedFd) -> Result<(), StartError> {
    files.push(control);
    let started = start_stage(INIT, plan, &files);
    let (mut init, socket) = match started {
        Ok(started) => started,
        Err(error) => return Err(files.last().map_or(error.clone(), |control| fail(control, error))),
    };
    // Copies left in this process would keep the pipes and the runner's socket open after the init process
    // ends.
    drop(files);
    // This also waits for all other processes in the namespace, because the kernel reports the end of process
    // 1 last.
    let _ = init.wait();
    drop(socket);
    Ok(())
}

/// Starts the agent through the inner stage, and watches its descendants.
fn without_namespaces(
    order: &Order,
    mut plan: LaunchPlan,
    files: Vec<OwnedFd>,
    control: &OwnedFd,
) -> Result<(), StartError> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).setup("becoming the subreaper")?;
    let scratch = scratch::Scratch::make_in(&order.scratch_in, plan.drop_to).setup("making the scratch folder")?;
    plan.scratch = scratch.path().to_owned();
    let (mut child, socket) = start_stage(INNER, &plan, &files)?;
    drop(files);
    let mut in_force = plan.in_force;
    // The inner stage reports the sandbox that it set up. Its end of the socket closes when the agent's
    // program starts.
    loop {
        match wire::receive::<Report>(&socket) {
            Ok(Some((Report::Started(reported), _))) => in_force = reported,
            Ok(Some((Report::Failed(error), _))) => {
                let _ = child.wait();
                return Err(error);
            }
            Ok(Some((Report::Ended(_) | Report::Listening, _))) => {}
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

/// Replaces stdin, stdout and stderr with these pipes.
fn take_pipes(pipes: &[OwnedFd]) -> Result<(), StartError> {
    let [stdin, stdout, stderr] = pipes else { return Err(StartError::Vanished) };
    dup2_stdin(stdin).and_then(|()| dup2_stdout(stdout)).and_then(|()| dup2_stderr(stderr)).setup("taking the pipes")
}

/// The conversion of errors into a [`StartError`] that names the failed step of the setup.
trait Setup<T> {
    fn setup(self, step: &str) -> Result<T, StartError>;
}

impl<T, E: Into<io::Error>> Setup<T> for Result<T, E> {
    fn setup(self, step: &str) -> Result<T, StartError> {
        self.map_err(|error| StartError::Setup { step: step.to_owned(), reason: error.into().to_string() })
    }
}
