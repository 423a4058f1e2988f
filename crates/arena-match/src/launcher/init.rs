//! Process 1 of an agent's world: builds it, gives up all rights over it, starts the agent and watches.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::Mode;
use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal, setsid, umask,
};

use super::confine::{self, Scope};
use super::watch::{self, Members};
use super::{Plan, Setup, UNPRIVILEGED_ID, map_ids, program, root_fs, take_stdin};
use crate::process::wire::{self, Report};
use crate::process::{InForce, StartError};

/// What the agent's machine calls itself.
const HOST_NAME: &str = "arena";

pub(super) fn run() -> Result<(), StartError> {
    let socket = take_stdin()?;
    let Ok(Some((mut plan, mut files))) = wire::receive::<Plan>(&socket) else { return Err(StartError::Vanished) };
    let control = files.pop().ok_or(StartError::Vanished)?;
    let result = start(&mut plan, files);
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

/// Builds the world and starts the agent in it; returns its process id in there.
fn start(plan: &mut Plan, pipes: Vec<OwnedFd>) -> Result<u32, StartError> {
    let Ok([stdin, stdout, stderr]) = <[OwnedFd; 3]>::try_from(pipes) else { return Err(StartError::Vanished) };
    setsid().setup("beginning a session")?;
    // That of whoever runs the arena may close to the agent what is made for it.
    umask(Mode::from_raw_mode(0o022));
    // Of the system's own /proc, because the new one may be refused. It stays usable when that is out of sight.
    let proc_self = File::options()
        .read(true)
        .custom_flags(nix::libc::O_PATH | nix::libc::O_DIRECTORY)
        .open("/proc/self")
        .setup("opening /proc/self")?;
    let mut in_force = std::mem::take(&mut plan.in_force);
    plan.scratch = root_fs::build(plan, &proc_self, &mut in_force)?;
    nix::unistd::sethostname(HOST_NAME).setup("naming the machine")?;
    confine::drop_to(plan.drop_to)?;
    leave_user_namespace(plan, &proc_self, &mut in_force)?;
    drop(proc_self);
    // After the change of user, which resets it. The launcher waits for us, so it can't be gone for another reason.
    set_parent_process_death_signal(Some(Signal::KILL)).setup("asking for the death signal")?;
    program::check_readable(plan)?;
    std::env::set_current_dir(&plan.scratch).setup("entering the scratch folder")?;
    confine::limit(&plan.limits, Scope::Namespace, &mut in_force)?;
    confine::by_rules(plan, Scope::Namespace, &mut in_force)?;
    // The agent is the same user: without this it could look into our memory and our open files.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).setup("closing our memory to others")?;
    // The command owns the pipes and is dropped here, so that the agent alone holds them.
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

/// Enters a user namespace of the agent's own, in which it has its usual id and no rights over the world we built.
/// The kernel counts its processes by themselves there.
fn leave_user_namespace(plan: &Plan, proc_self: &File, in_force: &mut InForce) -> Result<(), StartError> {
    let (user, group) = match plan.drop_to {
        Some(id) => ((id, id), (id, id)),
        // Root of a container is an ordinary user here, and must look like one: programs act by that, and so does the
        // kernel when it gives rights to a new program.
        None => ((ordinary(plan.user_id), 0), (ordinary(plan.group_id), 0)),
    };
    let left =
        unshare(CloneFlags::CLONE_NEWUSER).map_err(std::io::Error::from).and_then(|()| map_ids(proc_self, user, group));
    match left {
        Ok(()) => in_force.namespaces.push("user".to_owned()),
        // For root that would be the end of the sandbox: it would run the agent as its own root.
        Err(error) if plan.mapped_to_root => return Err(error).setup("leaving the user namespace"),
        Err(error) => in_force.missing.push(format!(
            "The system allows agents no user namespace ({error}), so the limit of processes counts those of all agents."
        )),
    }
    Ok(())
}

/// An id that isn't root's.
fn ordinary(id: u32) -> u32 {
    if id == 0 { UNPRIVILEGED_ID } else { id }
}
