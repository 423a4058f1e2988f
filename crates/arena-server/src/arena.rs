//! The shared state of all handlers.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arena_engine::{Engine, Once};
use arena_model::{Party, SessionId};
use tokio::sync::{Semaphore, watch};

use crate::auth::Auth;
use crate::connection::tls::Certificates;
use crate::error::ApiResult;
use crate::house_bots::House;
use crate::jobs::supervision::RestartingTasks;
use crate::limits::{Connections, Ledger, Rates, Share, check_disk};
use crate::metrics::Metrics;
use crate::openapi::Description;
use crate::pictures::Pictures;
use crate::records::{Records, half_of_processors};
use crate::settings::Settings;
use crate::tournaments::Tournaments;

/// The number of sessions in one query for the ended ones.
const SESSIONS_AT_ONCE: usize = 1000;

/// The state of a running arena. Clones share the state.
#[derive(Clone)]
pub(crate) struct Arena(Arc<ArenaState>);

pub(crate) struct ArenaState {
    pub(crate) engine: Engine,
    pub(crate) settings: Settings,
    /// The state of authentication mode; `None` in standalone mode.
    pub(crate) auth: Option<Auth>,
    /// The agents and tournaments; `None` if tournaments are disabled.
    pub(crate) tournaments: Option<Tournaments>,
    /// The house bots; unset if the server has none.
    pub(crate) house: OnceLock<House>,
    /// The keys of records, and the log.
    pub(crate) records: Arc<Records>,
    /// Pages of transcripts may be long, and are made on the threads of all other pages and most routes.
    pub(crate) transcript_places: Arc<Semaphore>,
    pub(crate) pictures: Pictures,
    pub(crate) rates: Rates,
    pub(crate) connections: Arc<Connections>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) metrics: Metrics,
    /// The OpenAPI description, built on first use.
    pub(crate) description: OnceLock<Description>,
    /// True while the server drains: it still serves, but `/ready` reports that it is stopping.
    pub(crate) draining: AtomicBool,
    /// The number of required tasks that have ended unexpectedly and wait for their restart.
    pub(crate) restarting: RestartingTasks,
    /// Becomes true when the server stops, which ends long polls and streams.
    pub(crate) stopping: watch::Sender<bool>,
}

impl std::ops::Deref for Arena {
    type Target = ArenaState;

    fn deref(&self) -> &ArenaState {
        &self.0
    }
}

impl Arena {
    pub(crate) fn new(
        engine: Engine,
        settings: Settings,
        auth: Option<Auth>,
        tournaments: Option<Tournaments>,
        records: Records,
        certificates: Option<Arc<Certificates>>,
    ) -> Arena {
        let records = Arc::new(records);
        records.keep_commitments(&engine);
        let rates = Rates::new(&settings.limits);
        let new_ledger = || Arc::new(Ledger::new(&settings.limits));
        let ledger = tournaments.as_ref().map_or_else(new_ledger, Tournaments::ledger);
        let connections = Arc::new(Connections::new(
            &settings.limits,
            &settings.network.trusted_proxies,
            settings.limits.connections,
        ));
        let metrics =
            Metrics::new(engine.clone(), Arc::clone(&connections), Arc::clone(&ledger), &settings.data, certificates);
        Arena(Arc::new(ArenaState {
            engine,
            settings,
            auth,
            tournaments,
            house: OnceLock::new(),
            records,
            transcript_places: Arc::new(Semaphore::new(half_of_processors())),
            pictures: Pictures::default(),
            rates,
            connections,
            ledger,
            metrics,
            description: OnceLock::new(),
            draining: AtomicBool::new(false),
            restarting: RestartingTasks::default(),
            stopping: watch::Sender::new(false),
        }))
    }

    pub(crate) fn is_authenticated_mode(&self) -> bool {
        self.auth.is_some()
    }

    pub(crate) async fn stopping(&self) {
        // An error means that the sender was dropped, so the server has stopped.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
        // The server notifies the connection's task before this function returns. That task may be the current one, so
        // it handles the notification only after a yield. Then the response gets `connection: close`.
        tokio::task::yield_now().await;
    }

    /// Checks that an address may begin something new, and that the disk has room for it. A repeated request passes,
    /// because its first answer is stored already.
    ///
    /// # Errors
    /// 429 if the address has used its budgets, 507 if the disk is almost full.
    pub(crate) async fn admit_new(&self, address: Option<IpAddr>, once: Option<Once>) -> ApiResult<()> {
        let admitted = self
            .ledger
            .check(address, Share::New)
            .and_then(|()| check_disk(&self.settings.data, self.settings.limits.disk_reserve_bytes));
        self.unless_repeated(admitted, once).await
    }

    /// Checks that an address may create a session, like [`Arena::admit_new`].
    ///
    /// # Errors
    /// As there, and 429 if too many of its sessions haven't ended.
    pub(crate) async fn admit_session(&self, address: Option<IpAddr>, once: Option<Once>) -> ApiResult<()> {
        self.admit_new(address, once).await?;
        let checked = match self.ledger.sessions_to_look_up(address) {
            Ok(None) => Ok(()),
            Ok(Some(sessions)) => {
                self.look_up(sessions).await?;
                self.ledger.check_sessions(address)
            }
            Err(refusal) => Err(refusal),
        };
        self.unless_repeated(checked, once).await
    }

    /// Replaces a refusal by success if the request is a repetition.
    async fn unless_repeated(&self, admitted: ApiResult<()>, once: Option<Once>) -> ApiResult<()> {
        let Err(refusal) = admitted else { return Ok(()) };
        match self.engine.find_answer(once).await? {
            Some(_) => Ok(()),
            None => Err(refusal),
        }
    }

    async fn look_up(&self, sessions: Vec<(IpAddr, SessionId)>) -> ApiResult<()> {
        for some in sessions.chunks(SESSIONS_AT_ONCE) {
            let ids = some.iter().map(|(_, session)| *session).collect();
            let found = self.engine.find_ended(ids).await?.into_iter().collect();
            self.ledger.forget_sessions(some, &found);
        }
        Ok(())
    }

    /// Forgets all sessions in the ledger that have ended.
    ///
    /// # Errors
    /// If the store can't be read.
    pub(crate) async fn forget_ended_sessions(&self) -> ApiResult<()> {
        self.look_up(self.ledger.sessions()).await
    }

    /// Checks that an address may play on.
    ///
    /// # Errors
    /// 429 if it has used twice its budgets.
    pub(crate) fn admit_play(&self, address: Option<IpAddr>) -> ApiResult<()> {
        self.ledger.check(address, Share::Play)
    }

    /// Counts a write against the limits of its player and its address.
    ///
    /// # Errors
    /// 429 if a limit is exceeded.
    pub(crate) fn admit_writer(&self, address: Option<IpAddr>, writer: &Party) -> ApiResult<()> {
        self.admit_play(address)?;
        self.rates.admit_writer(address, writer)
    }
}

#[cfg(test)]
impl Arena {
    /// Returns an arena without tournaments, for tests without sockets. Its data is in the folder.
    pub(crate) async fn in_tests() -> (Arena, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a temp folder");
        let settings = Settings { data: folder.path().to_owned(), ..Settings::default() };
        let scoring = settings.scoring().expect("the defaults are good");
        let challenges = settings.challenge_types().expect("the defaults are good");
        let store = arena_store::Store::open(folder.path(), scoring).expect("a store");
        let environment = arena_engine::Environment::system();
        let engine = Engine::new(store, challenges, settings.engine_limits(), environment).await.expect("an engine");
        let records = Records::start(&settings.records, folder.path(), None).expect("keys");
        (Arena::new(engine, settings, None, None, records, None), folder)
    }
}
