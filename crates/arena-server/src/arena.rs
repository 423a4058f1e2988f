//! What every handler is given.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arena_engine::Engine;
use tokio::sync::watch;

use crate::auth::Auth;
use crate::connections::Connections;
use crate::house::House;
use crate::metrics::Metrics;
use crate::openapi::{Description, Mode};
use crate::rates::Rates;
use crate::settings::Settings;
use crate::supervision::Fallen;
use crate::tournaments::Tournaments;

/// The arena as handlers see it. Clones are handles to the same one.
#[derive(Clone)]
pub(crate) struct Arena(Arc<Shared>);

/// What [`Arena`] shares.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) settings: Settings,
    /// Nothing in standalone mode.
    pub(crate) auth: Option<Auth>,
    /// Nothing where none are played.
    pub(crate) tournaments: Option<Tournaments>,
    /// Set where there are opponents for whoever asks.
    pub(crate) house: OnceLock<House>,
    pub(crate) rates: Rates,
    pub(crate) connections: Arc<Connections>,
    pub(crate) metrics: Metrics,
    /// Made when it is first asked for.
    pub(crate) description: OnceLock<Description>,
    /// Whether the server will stop soon: it serves, but shall be given nothing new.
    pub(crate) draining: AtomicBool,
    /// Tasks that have failed and are about to begin again.
    pub(crate) fallen: Fallen,
    /// Becomes true when the server stops: whoever waits for news answers then.
    pub(crate) stopping: watch::Sender<bool>,
}

impl std::ops::Deref for Arena {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Arena {
    pub(crate) fn new(
        engine: Engine,
        settings: Settings,
        auth: Option<Auth>,
        tournaments: Option<Tournaments>,
    ) -> Arena {
        let rates = Rates::new(&settings.limits);
        let connections = Arc::new(Connections::new(&settings.limits, settings.limits.connections));
        let metrics = Metrics::new(engine.clone(), Arc::clone(&connections));
        Arena(Arc::new(Shared {
            engine,
            settings,
            auth,
            tournaments,
            house: OnceLock::new(),
            rates,
            connections,
            metrics,
            description: OnceLock::new(),
            draining: AtomicBool::new(false),
            fallen: Fallen::default(),
            stopping: watch::Sender::new(false),
        }))
    }

    /// Whether callers prove who they are with session keys, rather than just say so.
    pub(crate) fn asks_for_keys(&self) -> bool {
        self.auth.is_some()
    }

    /// How its callers say who they are.
    pub(crate) fn mode(&self) -> Mode {
        if self.asks_for_keys() { Mode::Authentication } else { Mode::Standalone }
    }

    /// Waits until the server stops.
    pub(crate) async fn stopping(&self) {
        // An error would mean that the sender is gone, and with it the server.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
        // The connection has been told before, but may be in the middle of this very poll: let it look again first, so that
        // it says of the answer that follows that it is its last.
        tokio::task::yield_now().await;
    }
}
