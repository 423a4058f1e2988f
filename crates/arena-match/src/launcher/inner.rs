//! The stage that becomes an agent without namespaces: it confines itself, then runs the agent's program in its place.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal, setsid};
use rustix::stdio::dup2_stdin;

use super::confine::{self, Scope};
use super::{Plan, Setup, program, take_pipes, take_stdin};
use crate::process::StartError;
use crate::process::wire::{self, Report};

pub(super) fn run() -> Result<(), StartError> {
    let socket = take_stdin()?;
    let Ok(Some((plan, pipes))) = wire::receive::<Plan>(&socket) else { return Err(StartError::Vanished) };
    // Returns only if it failed.
    let Err(error) = become_the_agent(plan, &pipes, &socket);
    let _ = wire::send(&socket, &Report::Failed(error.clone()), &[]);
    Err(error)
}

fn become_the_agent(
    plan: Plan,
    pipes: &[std::os::fd::OwnedFd],
    socket: &std::os::fd::OwnedFd,
) -> Result<std::convert::Infallible, StartError> {
    // A session of its own, without the terminal of whoever runs the arena.
    setsid().setup("beginning a session")?;
    confine::drop_to(plan.drop_to)?;
    // After the change of user, which resets it.
    set_parent_process_death_signal(Some(Signal::KILL)).setup("asking for the death signal")?;
    program::check_readable(&plan)?;
    std::env::set_current_dir(&plan.scratch).setup("entering the scratch folder")?;
    let mut in_force = plan.in_force.clone();
    confine::limit(&plan.limits, Scope::User, &mut in_force)?;
    if plan.confined {
        confine::by_rules(&plan, Scope::User, &mut in_force)?;
    }
    take_pipes(pipes)?;
    wire::send(socket, &Report::Started(in_force), &[]).setup("telling what is in force")?;
    let error = Command::new(&plan.program)
        .args(&plan.args)
        .env_clear()
        .envs([("HOME", &plan.scratch), ("TMPDIR", &plan.scratch)])
        .envs(plan.env.iter().map(|(name, value)| (name, value)))
        .exec();
    // Nothing of ours may keep the pipes open a moment longer than needed.
    if let Ok(null) = std::fs::File::open("/dev/null") {
        let _ = dup2_stdin(&null);
    }
    Err(program::explain(&plan.program, plan.drop_to, &error))
}
