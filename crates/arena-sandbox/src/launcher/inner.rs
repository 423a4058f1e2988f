//! The stage that becomes the agent if there are no namespaces: it sets up the sandbox, then executes the
//! agent's program in its own process.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal, setsid};
use rustix::stdio::dup2_stdin;

use super::confine::{self, Scope};
use super::{LaunchPlan, Setup, program, take_pipes, take_stdin};
use crate::process::StartError;
use crate::process::wire::{self, Report};

pub(super) fn run() -> Result<(), StartError> {
    let socket = take_stdin()?;
    let Ok(Some((plan, pipes))) = wire::receive::<LaunchPlan>(&socket) else { return Err(StartError::Vanished) };
    let Err(error) = become_the_agent(plan, &pipes, &socket);
    let _ = wire::send(&socket, &Report::Failed(error.clone()), &[]);
    Err(error)
}

fn become_the_agent(
    mut plan: LaunchPlan,
    pipes: &[std::os::fd::OwnedFd],
    socket: &std::os::fd::OwnedFd,
) -> Result<std::convert::Infallible, StartError> {
    // A new session has no access to the terminal of the arena's user.
    setsid().setup("starting a session")?;
    confine::drop_to(plan.drop_to)?;
    // The change of user resets this signal, so it is set afterwards.
    set_parent_process_death_signal(Some(Signal::KILL)).setup("setting the parent death signal")?;
    program::check_readable(&plan)?;
    std::env::set_current_dir(&plan.scratch).setup("entering the scratch folder")?;
    plan.fill_scratch()?;
    let mut in_force = plan.in_force.clone();
    confine::limit(&plan.limits, Scope::User, &mut in_force)?;
    if plan.confined {
        confine::by_rules(&plan, Scope::User, &mut in_force)?;
    }
    take_pipes(pipes)?;
    wire::send(socket, &Report::Started(in_force), &[]).setup("reporting the sandbox")?;
    let error = Command::new(&plan.program)
        .args(&plan.args)
        .env_clear()
        .envs([("HOME", &plan.scratch), ("TMPDIR", &plan.scratch)])
        .envs(plan.env.iter().map(|(name, value)| (name, value)))
        .exec();
    // Replacing the descriptor closes this process's copy of the pipe.
    if let Ok(null) = std::fs::File::open("/dev/null") {
        let _ = dup2_stdin(&null);
    }
    Err(program::explain(&plan.program, plan.drop_to, &error))
}
