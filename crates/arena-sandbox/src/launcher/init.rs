//! Process 1 of an agent's namespaces: it builds the file system, gives up its rights, then starts and
//! watches the agent.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::Mode;
use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal, setsid, umask,
};

use super::confine::{self, Scope};
use super::watch::{self, Members};
use super::{LaunchPlan, Setup, UNPRIVILEGED_ID, loopback, map_ids, program, root_fs, take_stdin};
use crate::process::wire::{self, Report};
use crate::process::{ActiveSandbox, StartError};

/// The host name in the agent's namespace.
const HOST_NAME: &str = "arena";

pub(super) fn run() -> Result<(), StartError> {
    let socket = take_stdin()?;
    let Ok(Some((mut plan, mut files))) = wire::receive::<LaunchPlan>(&socket) else {
        return Err(StartError::Vanished);
    };
    let control = files.pop().ok_or(StartError::Vanished)?;
    let result = start(&mut plan, files, &control);
    drop(socket);
    match result {
        Ok(agent) => {
            let in_force = std::mem::take(&mut plan.in_force);
            let members = Members::Namespace;
            let ended = watch::until_the_end(&control, agent, in_force, &plan.limits, members);
            if let Some(ended) = ended {
                let _ = wire::send(&control, &Report::Ended(ended), &[]);
            }
            Ok(())
        }
        Err(error) => {
            let _ = wire::send(&control, &Report::Failed(error.clone()), &[]);
            Err(error)
        }
    }
}

/// Sets up the namespaces and starts the agent in them. Returns its process id there.
fn start(plan: &mut LaunchPlan, pipes: Vec<OwnedFd>, control: &OwnedFd) -> Result<u32, StartError> {
    let Ok([stdin, stdout, stderr]) = <[OwnedFd; 3]>::try_from(pipes) else { return Err(StartError::Vanished) };
    setsid().setup("starting a session")?;
    // The umask of the arena's user could make files of the sandbox unreadable for the agent.
    umask(Mode::from_raw_mode(0o022));
    // This opens the system's `/proc`, because the kernel may refuse to mount a new one. The descriptor stays
    // usable after `/proc` is unmounted.
    let proc_self = File::options()
        .read(true)
        .custom_flags(nix::libc::O_PATH | nix::libc::O_DIRECTORY)
        .open("/proc/self")
        .setup("opening /proc/self")?;
    let mut in_force = std::mem::take(&mut plan.in_force);
    plan.scratch = root_fs::build(plan, &proc_self, &mut in_force)?;
    nix::unistd::sethostname(HOST_NAME).setup("setting the host name")?;
    if let Some(setup) = &plan.setup {
        let listener = loopback::listen(setup.port).setup("listening on the loopback interface")?;
        // The arena alone holds the socket from here on.
        wire::send(control, &Report::Listening, &[listener.as_fd()]).setup("sending the listening socket")?;
    }
    confine::drop_to(plan.drop_to)?;
    leave_user_namespace(plan, &proc_self, &mut in_force)?;
    drop(proc_self);
    // The change of user resets this signal, so it is set afterwards. The launcher waits for this process, so it hasn't
    // exited before this call.
    set_parent_process_death_signal(Some(Signal::KILL)).setup("setting the parent death signal")?;
    program::check_readable(plan)?;
    std::env::set_current_dir(&plan.scratch).setup("entering the scratch folder")?;
    plan.fill_scratch()?;
    confine::limit(&plan.limits, Scope::Namespace, &mut in_force)?;
    confine::by_rules(plan, Scope::Namespace, &mut in_force)?;
    // The agent runs as the same user, and could otherwise read this process's memory and open files.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).setup("protecting memory from other processes")?;
    // The command owns the pipes. It is dropped here, so that only the agent holds them.
    let child = Command::new(&plan.program)
        .args(&plan.args)
        .env_clear()
        .envs([("HOME", plan.scratch.as_path()), ("TMPDIR", plan.scratch.as_path())])
        .envs(plan.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr))
        .spawn()
        .map_err(|error| program::explain(&plan.program, plan.drop_to, &error))?;
    let kinds = ["pid", "mount", "net", "ipc", "uts", "cgroup"];
    in_force.namespaces.extend(kinds.map(str::to_owned));
    plan.in_force = in_force;
    Ok(child.id())
}

/// Enters a user namespace for the agent, in which it has an ordinary user id and no rights over the other
/// namespaces. The kernel counts the processes of each user namespace separately.
fn leave_user_namespace(plan: &LaunchPlan, proc_self: &File, in_force: &mut ActiveSandbox) -> Result<(), StartError> {
    let (user, group) = match plan.drop_to {
        Some(id) => ((id, id), (id, id)),
        // The container's root is mapped to an ordinary id. Programs behave differently as root, and the
        // kernel gives capabilities to programs that root starts.
        None => ((ordinary(plan.user_id), 0), (ordinary(plan.group_id), 0)),
    };
    let left =
        unshare(CloneFlags::CLONE_NEWUSER).map_err(std::io::Error::from).and_then(|()| map_ids(proc_self, user, group));
    match left {
        Ok(()) => in_force.namespaces.push("user".to_owned()),
        // Without a user namespace the agent would run as root of the sandbox.
        Err(error) if plan.mapped_to_root => return Err(error).setup("leaving the user namespace"),
        Err(error) => in_force.missing.push(format!(
            "The system doesn't allow a user namespace for the agent ({error}), so the process limit counts the processes of all agents."
        )),
    }
    Ok(())
}

/// Returns the id, or [`super::UNPRIVILEGED_ID`] if the id is root's.
fn ordinary(id: u32) -> u32 {
    if id == 0 { UNPRIVILEGED_ID } else { id }
}
