//! A server in the test's process, on a free port, with its data in a temporary folder.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use arena_engine::Environment;
use arena_model::ChallengeType;
use arena_server::{House, Server, Settings};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::client::Client;
use crate::data::data_folder;

/// A running server. Dropping it stops the server gracefully.
pub struct Host {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    folder: TempDir,
}

impl Host {
    /// Starts a server with default settings.
    pub fn start() -> Host {
        Host::start_with(|_| {})
    }

    /// Starts a server with settings that `change` modifies. `change` can't set the address and the data folder.
    pub fn start_with(change: impl FnOnce(&mut Settings)) -> Host {
        Host::launch(change, |settings| async move { Server::start(settings).await.expect("the server starts") })
    }

    /// Starts a server with the test's challenges, clock and randomness.
    pub fn start_in(
        environment: Environment,
        challenges: Vec<Arc<dyn ChallengeType>>,
        change: impl FnOnce(&mut Settings),
    ) -> Host {
        Host::launch(change, |settings| async move {
            Server::start_with(settings, challenges, environment).await.expect("the server starts")
        })
    }

    /// Starts a server with the test's challenges, clock and house bots, whose seats the test receives.
    pub fn start_with_house(environment: Environment, challenges: Vec<Arc<dyn ChallengeType>>, house: House) -> Host {
        Host::launch(
            |_| {},
            |settings| async move {
                let mut server =
                    Server::start_with(settings, challenges, environment).await.expect("the server starts");
                server.offer(house).await.expect("a free port");
                server
            },
        )
    }

    fn launch<F>(change: impl FnOnce(&mut Settings), start: impl FnOnce(Settings) -> F + Send + 'static) -> Host
    where
        F: Future<Output = Server> + Send,
    {
        let folder = data_folder();
        let mut settings = Settings { data: folder.path().to_owned(), ..Settings::default() };
        change(&mut settings);
        settings.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        settings.data = folder.path().to_owned();
        settings.limits.shutdown_ms = 2_000;
        let (stop, stopped) = oneshot::channel();
        let (ready, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let server = start(settings).await;
                ready.send(server.address()).expect("the test waits for the address");
                let shutdown = async {
                    let _ = stopped.await;
                };
                server.run(shutdown).await;
            });
        });
        let address = address.recv().expect("the server started");
        Host { address, stop: Some(stop), thread: Some(thread), folder }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn client(&self) -> Client {
        Client::new(self.address)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        if matches!(ended, Some(Err(_))) && !std::thread::panicking() {
            panic!("the server panicked");
        }
    }
}
