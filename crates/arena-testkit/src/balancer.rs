//! Load balancers for tests, with the configurations of `examples/deploy`. A balancer ends with the test process.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::port::free_port;
use crate::watcher::{Watcher, system_program};

/// The time limit for starting a balancer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The addresses of the nodes in `examples/deploy`.
const SAMPLE_NODES: [&str; 3] = ["10.0.0.5:3001", "10.0.0.6:3001", "10.0.0.7:3001"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BalancerKind {
    Nginx,
    Haproxy,
    /// HAProxy that names clients by the PROXY protocol.
    HaproxyWithHeaders,
    Caddy,
}

impl BalancerKind {
    /// Returns the settings of nodes behind the balancer, for `arena.toml`.
    pub fn node_settings(self) -> &'static str {
        match self {
            // Clients of the tests connect to nodes from 127.0.0.1 too, without a header.
            BalancerKind::HaproxyWithHeaders => {
                "[network]\ntrusted_proxies = [\"127.0.0.5\"]\nclient_header = \"PROXY\"\n"
            }
            _ => "[network]\ntrusted_proxies = [\"127.0.0.1\"]\n",
        }
    }

    /// Returns the name of the program, and of its Debian package.
    fn program(self) -> &'static str {
        match self {
            BalancerKind::Nginx => "nginx",
            BalancerKind::Haproxy | BalancerKind::HaproxyWithHeaders => "haproxy",
            BalancerKind::Caddy => "caddy",
        }
    }

    /// Returns the name of the configuration in `examples/deploy`, and its text that sets the address.
    fn sample(self) -> (&'static str, &'static str) {
        match self {
            BalancerKind::Nginx => ("nginx.conf", "listen 80;"),
            BalancerKind::Haproxy | BalancerKind::HaproxyWithHeaders => ("haproxy.cfg", "bind :80\n"),
            BalancerKind::Caddy => ("Caddyfile", ":80 {\n"),
        }
    }

    /// Returns the text that makes the balancer listen on a port of the loopback interface.
    fn listening_on(self, port: u16) -> String {
        match self {
            BalancerKind::Nginx => format!("listen 127.0.0.1:{port};"),
            BalancerKind::Haproxy | BalancerKind::HaproxyWithHeaders => format!("bind 127.0.0.1:{port}\n"),
            BalancerKind::Caddy => format!(":{port} {{\n\tbind 127.0.0.1\n"),
        }
    }

    /// Adds the settings that a test needs, such as folders for temporary files.
    fn with_test_settings(self, sample: &str, folder: &Path) -> String {
        let folder = folder.display();
        match self {
            BalancerKind::Nginx => {
                let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
                let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .map(|what| format!("{what}_temp_path {folder}/{what};"))
                    .join("\n");
                format!(
                    "{user}\ndaemon off;\nworker_processes 2;\npid {folder}/pid;\nerror_log stderr;\n\
                     events {{ worker_connections 4096; }}\n\
                     http {{\naccess_log off;\n{temporary}\n{sample}\n}}\n"
                )
            }
            BalancerKind::Haproxy => sample.to_owned(),
            BalancerKind::HaproxyWithHeaders => sample.replace(
                "default-server check",
                "default-server source 127.0.0.5 send-proxy-v2 check-send-proxy check",
            ),
            BalancerKind::Caddy => format!("{{\n\tadmin off\n}}\n{sample}"),
        }
    }

    fn command(self, config: &Path, folder: &Path) -> Command {
        // Caddy keeps files in the user's home.
        let mut command = Command::new("env");
        command.arg(format!("HOME={}", folder.display())).arg(system_program(self.program()));
        match self {
            BalancerKind::Nginx => command.arg("-p").arg(folder).args(["-e", "stderr", "-c"]).arg(config),
            BalancerKind::Haproxy | BalancerKind::HaproxyWithHeaders => command.args(["-db", "-f"]).arg(config),
            BalancerKind::Caddy => command.args(["run", "--adapter", "caddyfile", "--config"]).arg(config),
        };
        command
    }
}

/// A running load balancer in front of three nodes.
pub struct Balancer {
    folder: PathBuf,
    port: u16,
    watcher: Option<Watcher>,
}

impl Balancer {
    /// Starts a balancer with its configuration from `examples/deploy`, in front of three nodes.
    ///
    /// # Panics
    /// If the program isn't installed or doesn't start, or if the configuration has other addresses than expected.
    pub fn start(kind: BalancerKind, nodes: [SocketAddr; 3]) -> Balancer {
        crate::tier::need_service(kind.program());
        let folder = tempfile::Builder::new().prefix("arena-balancer-").tempdir().expect("a temp folder").keep();
        let port = free_port();
        let (name, address) = kind.sample();
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy").join(name);
        let mut text = fs::read_to_string(sample).expect("a sample configuration");
        let mut replace = |old: &str, new: &str| {
            assert!(text.contains(old), "{name} should have {old:?}");
            text = text.replace(old, new);
        };
        replace(address, &kind.listening_on(port));
        for (old, new) in SAMPLE_NODES.iter().zip(nodes) {
            replace(old, &new.to_string());
        }
        let config = folder.join(name);
        fs::write(&config, kind.with_test_settings(&text, &folder)).expect("a file");
        let log = folder.join("log");
        let log_file = fs::File::create(&log).expect("a file");
        // The shell ignores SIGTERM, and so do the programs that it starts, except nginx. A killed nginx would leave its
        // workers.
        let signal = if kind == BalancerKind::Nginx { "-TERM" } else { "-KILL" };
        let watcher = Watcher::start(&kind.command(&config, &folder), signal, &folder, log_file);
        let balancer = Balancer { folder, port, watcher: Some(watcher) };
        let until = Instant::now() + TIMEOUT;
        while TcpStream::connect(balancer.address()).is_err() {
            let said = fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < until, "{} doesn't answer: {said}", kind.program());
            thread::sleep(Duration::from_millis(20));
        }
        balancer
    }

    /// Returns the address for clients.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            watcher.end(false);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
