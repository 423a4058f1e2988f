//! Engines that stay alive between matches, since many start slower than they play a game.
//!
//! A thread that plays matches one by one keeps the engines of its last matches. An engine is used again only by an
//! agent with the same text and the same sandbox. A disqualified engine has been killed, so its agent gets a new one.

use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{BuiltIn, Program, uci};
use crate::agent::Agent;
use crate::body::{Body, GRACE, Log};
use crate::process::Spec;

/// The maximum number of engines that wait for their next match. It bounds the memory of a round robin.
const MAX_KEPT: usize = 4;

/// The engines that wait for their next match. Clones share them. The last clone ends the engines.
#[derive(Clone)]
pub struct KeptEngines {
    waiting: Arc<Mutex<WaitingEngines>>,
    /// The files and folders of all agents, which are hidden from engines of other agents.
    files: Arc<[PathBuf]>,
}

#[derive(Default)]
struct WaitingEngines(Vec<KeptEngine>);

/// An engine between two matches.
pub(crate) struct KeptEngine {
    key: EngineKey,
    pub(crate) sandbox: Value,
    pub(crate) body: Box<dyn Body>,
    pub(crate) program: Program,
}

/// The properties of a running engine. An engine with other options or another sandbox can't replace it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineKey {
    pub(crate) agent: BuiltIn,
    pub(crate) spec: Spec,
}

/// The return of an engine to the waiting ones, after its match.
pub(crate) struct EngineReturn {
    pub(crate) engines: KeptEngines,
    pub(crate) key: EngineKey,
    pub(crate) sandbox: Value,
    /// The pipes, which the driver returns at the end of the match.
    pub(crate) program: Receiver<Program>,
}

impl KeptEngines {
    /// Keeps engines among these agents.
    pub fn new(agents: &[Agent]) -> KeptEngines {
        let commands = agents.iter().filter_map(|agent| agent.channel.command());
        let files = commands.flat_map(|command| command.own.iter().cloned()).collect();
        KeptEngines { waiting: Arc::default(), files }
    }

    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Removes and returns a waiting engine that still runs.
    pub(crate) fn take(&self, key: &EngineKey) -> Option<KeptEngine> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waiting.0.iter().position(|engine| engine.key == *key)?;
        let mut engine = waiting.0.remove(at);
        engine.body.ended(Duration::ZERO).is_none().then_some(engine)
    }

    fn put(&self, engine: KeptEngine) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.0.push(engine);
        let surplus = waiting.0.len().saturating_sub(MAX_KEPT);
        end(waiting.0.drain(..surplus).collect());
    }
}

impl EngineReturn {
    /// Keeps the engine of `body` if its driver returns the pipes within `grace`. Returns the log of the match, and
    /// replaces `body`.
    pub(crate) fn keep(self, body: &mut Box<dyn Body>, gone: Box<dyn Body>, grace: Duration) -> Option<Log> {
        let program = self.program.recv_timeout(grace).ok()?;
        if body.is_flooding() || body.ended(Duration::ZERO).is_some() {
            return None;
        }
        let log = body.take_log();
        let body = std::mem::replace(body, gone);
        self.engines.put(KeptEngine { key: self.key, sandbox: self.sandbox, body, program });
        Some(log)
    }
}

impl Drop for WaitingEngines {
    fn drop(&mut self) {
        end(std::mem::take(&mut self.0));
    }
}

/// Asks engines to end, and kills those that stay.
fn end(mut engines: Vec<KeptEngine>) {
    for engine in &mut engines {
        uci::quit(&mut engine.program);
    }
    let by = Instant::now() + GRACE;
    for engine in &mut engines {
        engine.body.finish(by.saturating_duration_since(Instant::now()));
    }
}
