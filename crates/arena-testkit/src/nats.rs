//! A NATS server for tests, with JetStream, on a free port. Its store is in a temporary folder. The server ends with
//! the test process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::port::free_port;
use crate::watcher::{Watcher, system_program};

/// The time limit for starting the server. It is much longer than usually needed, because build machines may be slow
/// and busy.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running NATS server, which is stopped on drop.
pub struct NatsServer {
    folder: PathBuf,
    port: u16,
    login: String,
    jetstream: bool,
    /// Additional lines of the server's configuration.
    settings: String,
    watcher: Option<Watcher>,
}

impl NatsServer {
    /// Starts a server with JetStream, with its store on disk.
    ///
    /// # Panics
    /// If NATS isn't installed, or doesn't start.
    pub fn start() -> NatsServer {
        NatsServer::begin(true, "")
    }

    /// Starts a server that requires this token from its clients.
    pub fn start_guarded(token: &str) -> NatsServer {
        let mut server = NatsServer::start_with(&format!("authorization {{ token: \"{token}\" }}"));
        server.login = format!("{token}@");
        server
    }

    /// Starts a server with additional lines of configuration, in the syntax of its configuration file.
    pub fn start_with(settings: &str) -> NatsServer {
        NatsServer::begin(true, settings)
    }

    /// Starts a server without JetStream.
    pub fn start_plain() -> NatsServer {
        NatsServer::begin(false, "")
    }

    fn begin(jetstream: bool, settings: &str) -> NatsServer {
        crate::tier::need_service("NATS");
        let folder = tempfile::Builder::new().prefix("arena-nats-").tempdir().expect("a temp folder").keep();
        let port = free_port();
        let mut server =
            NatsServer { folder, port, login: String::new(), jetstream, settings: settings.to_owned(), watcher: None };
        server.start_again();
        server
    }

    /// Returns the URL of the server, with its token.
    pub fn url(&self) -> String {
        format!("nats://{}127.0.0.1:{}", self.login, self.port)
    }

    pub fn pid(&self) -> u32 {
        let file = fs::read_to_string(self.folder.join("pid")).expect("a running server");
        file.trim().parse().expect("a process id")
    }

    /// Kills the server, with all connections open. JetStream's store stays until the server is started again or
    /// dropped.
    pub fn stop(&mut self) {
        self.end(true);
    }

    /// Starts the server on the same port and store after it was stopped, and waits until it answers.
    pub fn start_again(&mut self) {
        let store = self.folder.join("store");
        let jetstream = match self.jetstream {
            true => format!("jetstream {{ store_dir: {:?} }}\n", store.display().to_string()),
            false => String::new(),
        };
        let config = self.folder.join("nats.conf");
        let pid = format!("pid_file: {:?}\n", self.folder.join("pid").display().to_string());
        let text = format!("listen: \"127.0.0.1:{}\"\n{jetstream}{pid}{}\n", self.port, self.settings);
        fs::write(&config, text).expect("a file");
        let log = self.folder.join("log");
        let mut server = Command::new(system_program("nats-server"));
        server.arg("-c").arg(&config);
        let log_file = fs::File::create(&log).expect("a file");
        self.watcher = Some(Watcher::start(&server, "-KILL", &self.folder, log_file));
        let until = Instant::now() + TIMEOUT;
        while !self.is_ready(&log) {
            let log = || fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < until, "nats-server doesn't answer: {}", log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server and starts it again with the same store.
    pub fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// Returns true if the server accepts connections, and its log says that it is ready. The log is needed because
    /// the server accepts connections before JetStream is ready.
    fn is_ready(&self, log: &Path) -> bool {
        let greets = TcpStream::connect(("127.0.0.1", self.port)).is_ok_and(|stream| {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("INFO ")
        });
        greets && fs::read_to_string(log).is_ok_and(|log| log.contains("Server is ready"))
    }

    fn end(&mut self, keep: bool) {
        if let Some(watcher) = self.watcher.take() {
            watcher.end(keep);
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.end(false);
        // If the server was stopped, no watching process remains that removes the folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod services {
    use super::*;

    #[test]
    fn dropping_a_server_removes_its_store() {
        let mut server = NatsServer::start();
        let (folder, port, url) = (server.folder.clone(), server.port, server.url());
        server.stop();
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err() && folder.join("store").exists());
        server.start_again();
        assert_eq!(server.url(), url);
        drop(server);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err() && !folder.exists());
        drop(NatsServer::start_plain());
    }
}
