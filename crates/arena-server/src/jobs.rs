//! The tasks of a server beside its connections: deadlines, housekeeping, the log, scripts, and the work of nodes.

mod retention;
pub(crate) mod scripts;
pub(crate) mod strategies;
pub(crate) mod supervision;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::arena::Arena;
use crate::connection::tls::Certificates;
use scripts::Scripts;
use strategies::Strategies;
use supervision::keep_running;

/// The pause between two searches for addresses that the limits can forget.
const FORGET_EVERY: Duration = Duration::from_secs(60);

struct Jobs<'a> {
    arena: &'a Arena,
    tasks: JoinSet<()>,
}

/// Starts the tasks. They are aborted when the set is dropped.
pub(crate) fn start(
    arena: &Arena,
    scripts: Option<Scripts>,
    strategies: Option<Arc<Strategies>>,
    certificates: Option<Arc<Certificates>>,
) -> JoinSet<()> {
    let mut jobs = Jobs { arena, tasks: JoinSet::new() };
    if let Some(scripts) = scripts {
        jobs.tasks.spawn(scripts.watch(arena.engine.clone()));
    }
    jobs.keep("watches the clock", |arena| async move { arena.engine.run_deadlines().await });
    jobs.keep("runs housekeeping", |arena| async move { arena.engine.run_eviction().await });
    jobs.keep("forgets addresses", forget_addresses);
    jobs.keep("archives sessions and removes tournaments", |arena| async move { arena.keep_retention().await });
    jobs.keep("checks derived tables", |arena| async move { arena.engine.keep_derived().await });
    jobs.keep("follows other nodes", |arena| async move {
        arena.engine.follow_others(arena.settings.nodes.nats.as_ref()).await;
    });
    if arena.settings.records.log {
        arena.engine.keep_ended();
        jobs.keep("keeps the log", |arena| async move { arena.records.keep_log(&arena).await });
    }
    if let Some(strategies) = strategies {
        jobs.keep("counts games by scripted strategies", move |arena| {
            let strategies = Arc::clone(&strategies);
            async move { strategies.keep_counting(&arena).await }
        });
    }
    if let Some(certificates) = certificates {
        jobs.keep("reads the certificate", move |_| {
            let certificates = Arc::clone(&certificates);
            async move { certificates.keep_current().await }
        });
    }
    jobs.tasks
}

impl Jobs<'_> {
    /// Starts a task that is restarted when it ends. `what` completes the phrase "the task that …".
    fn keep<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        what: &'static str,
        job: impl Fn(Arena) -> F + Send + Sync + 'static,
    ) {
        let arena = self.arena.clone();
        self.tasks.spawn(async move { keep_running(&arena.restarting, what, || job(arena.clone())).await });
    }
}

async fn forget_addresses(arena: Arena) {
    loop {
        tokio::time::sleep(FORGET_EVERY).await;
        arena.rates.forget_idle();
        if let Err(error) = arena.forget_ended_sessions().await {
            tracing::warn!("cannot look for ended sessions: {}", error.message());
        }
        arena.ledger.forget_idle();
        arena.connections.memory().forget_idle();
    }
}
