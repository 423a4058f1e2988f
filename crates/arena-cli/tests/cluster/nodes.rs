//! The machines of a cluster: nodes as processes, each with a data folder, on one Postgres and one NATS, and faults to
//! inject.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::attacks::write_costly_challenge;
use arena_testkit::{Balancer, BalancerKind, Client, NatsServer, Postgres, known_admin_token};
use parking_lot::{Mutex, MutexGuard, RwLock};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{Running, arena_at, file, folder};
use crate::proxy::Proxy;

/// The database server of all tests. The holder of the lock may crash the server.
static POSTGRES: Mutex<Option<Postgres>> = Mutex::new(None);

/// The address of a node that was never started.
const NOWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1));

const THIS_PROGRAM: &str = env!("CARGO_BIN_EXE_arena");

/// The settings of nodes that are attacked, besides those in `[limits]` of all nodes.
const PUBLIC_HOST: &str = "limit_loopback = true
requests_per_second = 300
requests_burst = 1000
writes_per_second = 100
writes_burst = 1000
connections = 400
connections_per_address = 60
waiting_bytes = 16777216
waiting_bytes_per_address = 4194304
stored_bytes_per_address = 8388608
computing_ms_per_second = 200
computing_burst_ms = 2000
running_sessions_per_address = 50
streams_per_address = 20
stalled_ms = 5000
";

/// The time limit for a node to become ready.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The configuration of an arena.
pub struct Plan {
    pub nodes: usize,
    pub sharing: Sharing,
    pub auth: bool,
    /// True if each node connects to the database through a proxy.
    pub proxied: bool,
    /// True if the database has a synchronous standby, which all nodes know.
    pub standby: bool,
    /// The drain period of a stopping node, in milliseconds.
    pub drain_ms: u64,
    /// The time after which a client without an answer tries another node.
    pub timeout: Duration,
    /// The load balancer between clients and nodes.
    pub balancer: Option<BalancerKind>,
    /// The offset of each node's clock, in seconds. Nodes beyond the list use the system's clock.
    pub clocks_off_s: &'static [i64],
    /// True if each node has the limits of a public host and hosts a costly challenge. `ARENA_PREVIOUS_PROGRAM` may then
    /// name an earlier build of the program, with which the nodes start.
    pub attacked: bool,
}

impl Plan {
    /// One node with exclusive use of the database.
    pub const ALONE: Plan = Plan {
        nodes: 1,
        sharing: Sharing::Exclusive,
        auth: false,
        proxied: false,
        standby: false,
        drain_ms: 0,
        timeout: Duration::from_secs(2),
        balancer: None,
        clocks_off_s: &[],
        attacked: false,
    };
    /// Three nodes that notify each other over NATS.
    pub const THREE: Plan = Plan { nodes: 3, sharing: Sharing::Nats, ..Plan::ALONE };
}

/// The way in which nodes share a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One node only.
    Exclusive,
    /// Nodes poll for changes.
    Polling,
    /// Nodes notify each other over NATS.
    Nats,
}

/// An arena under test. Its processes end when the value is dropped.
pub struct Cluster {
    plan: Plan,
    nodes: Vec<Node>,
    nats: Option<NatsServer>,
    /// The load balancer, with its address for clients.
    balancer: Option<(Balancer, Arc<NodeHandle>)>,
    postgres: MutexGuard<'static, Option<Postgres>>,
    standby: Option<Postgres>,
    url: String,
    folder: TempDir,
    program: PathBuf,
}

/// A node's address, for clients in other threads.
#[derive(Debug)]
pub struct NodeHandle {
    address: RwLock<SocketAddr>,
    /// True if clients send requests to the node.
    pub up: AtomicBool,
}

impl NodeHandle {
    fn new(address: SocketAddr, up: bool) -> Arc<NodeHandle> {
        Arc::new(NodeHandle { address: RwLock::new(address), up: AtomicBool::new(up) })
    }

    pub fn client(&self) -> Client {
        Client::new(*self.address.read())
    }
}

struct Node {
    process: Option<Running>,
    handle: Arc<NodeHandle>,
    proxy: Option<Proxy>,
}

struct Command {
    program: PathBuf,
    args: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Command {
    fn start(&self) -> Running {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let mut command = arena_at(&self.program, &args);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Running::start_command("arena listens on ", command)
    }
}

impl Cluster {
    /// Starts the configured servers and nodes, and waits until each node is ready.
    pub fn start(plan: Plan) -> Cluster {
        let mut postgres = POSTGRES.lock();
        let server = postgres.get_or_insert_with(Postgres::start);
        if !server.is_started() {
            // A previous test has failed while Postgres was stopped.
            server.start_again();
        }
        let (mut url, port) = (server.schema(), server.port());
        let standby = plan.standby.then(|| server.start_standby());
        if let Some(standby) = &standby {
            url = server.with_standby(&url, standby);
        }
        let nats = (plan.sharing == Sharing::Nats).then(NatsServer::start_plain);
        let node = |_| Node {
            process: None,
            handle: NodeHandle::new(NOWHERE, false),
            proxy: plan.proxied.then(|| Proxy::start(port)),
        };
        let nodes = (0..plan.nodes).map(node).collect();
        let previous = std::env::var_os("ARENA_PREVIOUS_PROGRAM").filter(|_| plan.attacked);
        let program = previous.map_or_else(|| PathBuf::from(THIS_PROGRAM), PathBuf::from);
        let balancer = None;
        let mut cluster = Cluster { plan, nodes, nats, balancer, postgres, standby, url, folder: folder(), program };
        write_costly_challenge(&cluster.challenges());
        // All nodes start at once, and one of them creates the tables.
        let commands: Vec<Command> = (0..cluster.len()).map(|node| cluster.command(node)).collect();
        let processes: Vec<Running> = thread::scope(|scope| {
            let starting: Vec<_> = commands.iter().map(|command| scope.spawn(|| command.start())).collect();
            starting.into_iter().map(|process| process.join().expect("a node starts")).collect()
        });
        for (node, process) in processes.into_iter().enumerate() {
            cluster.take(node, process);
        }
        if let Some(kind) = cluster.plan.balancer {
            let addresses: Vec<SocketAddr> = cluster.nodes.iter().map(|node| *node.handle.address.read()).collect();
            let balancer = Balancer::start(kind, addresses.try_into().expect("three nodes"));
            let handle = NodeHandle::new(balancer.address(), true);
            cluster.balancer = Some((balancer, handle));
        }
        cluster
    }

    /// Returns the addresses for clients: the balancer's if there is one, and otherwise those of all nodes.
    pub fn handles(&self) -> Vec<Arc<NodeHandle>> {
        match &self.balancer {
            Some((_, handle)) => vec![Arc::clone(handle)],
            None => self.nodes.iter().map(|node| Arc::clone(&node.handle)).collect(),
        }
    }

    pub fn client(&self, node: usize) -> Client {
        self.nodes[node].handle.client()
    }

    pub fn auth(&self) -> bool {
        self.plan.auth
    }

    /// Returns the time after which a client without an answer tries another node.
    pub fn timeout(&self) -> Duration {
        self.plan.timeout
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Starts a stopped node, and waits until it is ready. Without a balancer, the node has another port.
    pub fn start_node(&mut self, node: usize) {
        // A node whose connection fails during its start ends, as it should.
        if let Some(proxy) = &self.nodes[node].proxy {
            proxy.disturb_nothing();
        }
        let process = self.command(node).start();
        self.take(node, process);
    }

    fn take(&mut self, node: usize, process: Running) {
        let address = process.url.strip_prefix("http://").unwrap().parse().unwrap();
        *self.nodes[node].handle.address.write() = address;
        self.nodes[node].process = Some(process);
        self.until_ready(node);
        self.is_up(node, true);
    }

    fn command(&self, node: usize) -> Command {
        let data = self.folder.path().join(format!("node {node}"));
        // A balancer expects a node at its first address.
        let before = *self.nodes[node].handle.address.read();
        let listen = if self.balancer.is_some() { before } else { SocketAddr::from(([127, 0, 0, 1], 0)) }.to_string();
        let mut args = ["serve", "--listen", &listen, "--log", "info", "--data"].map(str::to_owned).to_vec();
        args.push(data.to_str().unwrap().to_owned());
        let port = self.postgres.as_ref().unwrap().port();
        let port_of = |port: u16| format!(":{port}/");
        let url = match &self.nodes[node].proxy {
            Some(proxy) => self.url.replace(&port_of(port), &port_of(proxy.port)),
            None => self.url.clone(),
        };
        let mut environment = vec![
            ("DATABASE_URL", url),
            ("ADMIN_TOKEN", known_admin_token().reveal().to_owned()),
            ("AUTH_SECRET", "everybody knows this, too".to_owned()),
        ];
        if self.plan.sharing != Sharing::Exclusive {
            args.push("--shared".to_owned());
        }
        environment.extend(self.nats.as_ref().map(|nats| ("NATS_URL", nats.url())));
        if self.plan.auth {
            args.push("--auth".to_owned());
        }
        let mut settings = format!("[limits]\ndrain_ms = {}\n", self.plan.drain_ms);
        if self.plan.attacked {
            settings += if self.program == Path::new(THIS_PROGRAM) { PUBLIC_HOST } else { "" };
            args.extend(["--challenges".to_owned(), self.challenges().to_str().unwrap().to_owned()]);
        }
        settings += self.plan.balancer.map_or("", BalancerKind::node_settings);
        args.extend(["--config".to_owned(), file(self.folder.path(), "arena.toml", &settings)]);
        if let Some(off) = self.plan.clocks_off_s.get(node) {
            self.set_clock(node, *off);
            environment.extend([
                ("LD_PRELOAD", faketime()),
                ("FAKETIME_TIMESTAMP_FILE", self.clock_file(node).to_str().unwrap().to_owned()),
                // The library reads the file with the offset again after this number of seconds.
                ("FAKETIME_CACHE_DURATION", "1".to_owned()),
                // The monotonic clock, which timeouts use, stays correct.
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ]);
        }
        Command { program: self.program.clone(), args, environment }
    }

    fn challenges(&self) -> PathBuf {
        self.folder.path().join("challenges")
    }

    /// Replaces all nodes one after the other by nodes of the program under test.
    pub fn upgrade(&mut self) {
        self.program = PathBuf::from(THIS_PROGRAM);
        for node in 0..self.len() {
            self.stop(node);
            self.start_node(node);
        }
    }

    /// Returns the largest memory that a node has used, in bytes.
    pub fn memory(&self, node: usize) -> u64 {
        self.nodes[node].process.as_ref().unwrap().memory("VmHWM")
    }

    #[track_caller]
    pub fn until_ready(&self, node: usize) {
        let until = Instant::now() + TIMEOUT;
        while !self.is_ready(node) {
            assert!(Instant::now() < until, "node {node} isn't ready");
            // The test polls, because a node doesn't announce that it is ready.
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_ready(&self, node: usize) -> bool {
        let client = self.client(node).patient_for(Duration::from_secs(5));
        client.try_request("GET", "/ready", &[], b"").is_ok_and(|answer| answer.status == 200)
    }

    pub fn kill(&mut self, node: usize) {
        self.signal(node, Signal::KILL);
        self.bury(node);
    }

    /// Sends SIGTERM to a node, and waits until it has ended without an error. Clients use the node until it reports
    /// that it isn't ready.
    pub fn stop(&mut self, node: usize) {
        self.signal(node, Signal::TERM);
        while self.is_ready(node) {
            // Load balancers poll in the same way.
            thread::sleep(Duration::from_millis(50));
        }
        let code = self.bury(node);
        assert_eq!(code, Some(0), "node {node} ended with an error");
    }

    /// Suspends a node with SIGSTOP. Its connections stay open.
    pub fn freeze(&mut self, node: usize) {
        self.signal(node, Signal::STOP);
    }

    /// Resumes a suspended node.
    pub fn thaw(&mut self, node: usize) {
        self.signal(node, Signal::CONT);
        self.is_up(node, true);
    }

    /// Marks a node as up or down for clients.
    pub fn is_up(&self, node: usize, up: bool) {
        self.nodes[node].handle.up.store(up, Ordering::SeqCst);
    }

    fn signal(&self, node: usize, signal: Signal) {
        self.nodes[node].process.as_ref().unwrap().signal(signal);
    }

    fn bury(&mut self, node: usize) -> Option<i32> {
        self.is_up(node, false);
        let mut process = self.nodes[node].process.take().unwrap();
        let code = process.ended().code();
        sane(node, &process.said());
        code
    }

    /// Sets the offset of a node's own clock, in seconds.
    pub fn set_clock(&self, node: usize, off_s: i64) {
        // The file is replaced in one step, because the node may read it at any time.
        let new = self.folder.path().join("clock");
        fs::write(&new, format!("{off_s:+}")).unwrap();
        fs::rename(new, self.clock_file(node)).unwrap();
    }

    fn clock_file(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("clock {node}"))
    }

    pub fn proxy(&self, node: usize) -> &Proxy {
        self.nodes[node].proxy.as_ref().unwrap()
    }

    pub fn postgres(&mut self) -> &mut Postgres {
        self.postgres.as_mut().unwrap()
    }

    /// Kills the primary and promotes its standby, which the cluster then uses as its database server.
    pub fn fail_over(&mut self) {
        self.postgres().kill();
        let standby = self.standby.take().unwrap();
        standby.promote();
        *self.postgres = Some(standby);
    }

    pub fn nats(&mut self) -> &mut NatsServer {
        self.nats.as_mut().unwrap()
    }

    /// Stops all nodes at once; they must end without an error, and their logs must be free of internal errors.
    pub fn end(mut self) {
        let running: Vec<usize> = (0..self.len()).filter(|node| self.nodes[*node].process.is_some()).collect();
        for node in &running {
            self.signal(*node, Signal::TERM);
        }
        for node in running {
            let code = self.bury(node);
            assert_eq!(code, Some(0), "node {node} ended with an error");
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.plan.standby {
            // The next test starts a server that has no standby.
            *self.postgres = None;
        }
    }
}

/// Checks that a node's log contains no internal errors. Faults of other processes must not cause internal errors.
#[track_caller]
fn sane(node: usize, said: &str) {
    let fault =
        |line: &&str| line.contains("panicked") || line.contains("overflow") || line.contains("deadlock detected");
    let faults: Vec<&str> = said.lines().filter(fault).collect();
    assert!(faults.is_empty(), "node {node}: {faults:#?}\n{said}");
}

/// Returns the path of the library that changes the time of a process.
fn faketime() -> String {
    let folders =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64", "/usr/local/lib"];
    let files = folders.map(|folder| Path::new(folder).join("faketime/libfaketime.so.1"));
    let found = files.iter().find(|file| file.exists());
    let found =
        found.expect("tests need libfaketime; run `cargo xtask setup faketime`, or install Debian's package faketime");
    found.to_str().unwrap().to_owned()
}
