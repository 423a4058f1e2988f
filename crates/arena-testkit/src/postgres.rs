//! A Postgres cluster for tests, in a temporary folder ([`crate::data_folder`]) and on a free port. The cluster ends with
//! the test process.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::data;
use crate::port::free_port;
use crate::watcher::Watcher;

/// The time limit for starting or stopping the server. It is much longer than usually needed, because build machines
/// may be slow and busy.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The user and password of the tests.
const USER: (&str, &str) = ("arena", "open sesame");

/// A running cluster, which is stopped on drop.
pub struct Postgres {
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
    watcher: Option<Watcher>,
    schemas: AtomicU32,
    /// True if connections can be encrypted.
    has_certificate: bool,
}

impl Postgres {
    /// Returns the cluster that all tests of this process share. The cluster ends with the process.
    pub fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Postgres::start)
    }

    /// Starts a separate cluster, which the test may stop and start.
    ///
    /// # Panics
    /// If Postgres isn't installed, or doesn't start.
    pub fn start() -> Postgres {
        Postgres::start_as(false)
    }

    /// Starts a separate cluster that encrypts connections on request. Its certificate is for the name `localhost`, and
    /// for no IP address.
    ///
    /// # Panics
    /// As [`Postgres::start`], and if `openssl` is missing. Debian's Postgres package depends on `openssl`.
    pub fn start_with_certificate() -> Postgres {
        Postgres::start_as(true)
    }

    fn start_as(has_certificate: bool) -> Postgres {
        crate::tier::need_service("PostgreSQL");
        let (folder, programs) = (new_folder(), programs());
        let (data, password) = (folder.join("data"), folder.join("password"));
        fs::write(&password, USER.1).expect("a file");
        let mut initdb = as_postgres(&programs.join("initdb"));
        initdb.args(["--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        initdb.args(["--username", USER.0]).arg("--pwfile").arg(&password).arg("--pgdata").arg(&data);
        run(&mut initdb);
        if has_certificate {
            let mut openssl = as_postgres(Path::new("openssl"));
            openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
            openssl.args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
            openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
            openssl.arg("-keyout").arg(data.join("server.key")).arg("-out").arg(data.join("server.crt"));
            run(&mut openssl);
            run(Command::new("cp").arg(data.join("server.crt")).arg(folder.join("certificate.pem")));
        }
        let port = free_port();
        let mut postgres =
            Postgres { folder, programs, port, watcher: None, schemas: AtomicU32::new(0), has_certificate };
        postgres.start_again();
        postgres
    }

    /// Starts the server after it was stopped, and waits until it answers.
    pub fn start_again(&mut self) {
        let mut server = as_postgres(&self.programs.join("postgres"));
        server.arg("-D").arg(self.folder.join("data")).arg("-k").arg(&self.folder).args(["-h", "127.0.0.1", "-p"]);
        server.arg(self.port.to_string()).args(["-c", "max_connections=400", "-c", "shared_buffers=32MB"]);
        // The files may be in memory.
        server.args(["-c", "max_wal_size=256MB"]);
        if self.has_certificate {
            server.args(["-c", "ssl=on"]);
        }
        let log = fs::File::create(self.folder.join("log")).expect("a file");
        self.watcher = Some(Watcher::start(&server, "-INT", &self.folder, log));
        let until = Instant::now() + TIMEOUT;
        let mut ready = Command::new(self.programs.join("pg_isready"));
        ready.args(["-q", "-h", "127.0.0.1", "-p"]).arg(self.port.to_string());
        while !ready.status().expect("pg_isready runs").success() {
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "Postgres doesn't answer: {}", log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server immediately, as a crash would. Committed data stays.
    pub fn crash(&mut self) {
        self.signal("-QUIT");
        self.end(true);
    }

    /// Kills the server's main process. Committed data stays.
    pub fn kill(&mut self) {
        self.signal("-KILL");
        self.end(true);
    }

    /// Starts a synchronous standby of the server, by `examples/deploy/standby.sh`. Its schemas are those of the server.
    pub fn start_standby(&self) -> Postgres {
        let folder = new_folder();
        self.run_sample(&["allow"]);
        self.run_sample(&["copy", "127.0.0.1", folder.join("data").to_str().expect("a path in UTF-8")]);
        let schemas = AtomicU32::new(self.schemas.load(Ordering::Relaxed));
        let programs = self.programs.clone();
        let mut standby =
            Postgres { folder, programs, port: free_port(), watcher: None, schemas, has_certificate: false };
        standby.start_again();
        self.run_sample(&["require"]);
        standby
    }

    /// Makes a standby the primary, by `examples/deploy/standby.sh`.
    pub fn promote(&self) {
        self.run_sample(&["promote"]);
    }

    /// Runs the example that operators run, with this server as the one that its programs use.
    fn run_sample(&self, args: &[&str]) {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy/standby.sh");
        let path = format!("{}:{}", self.programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = as_postgres(Path::new("sh"));
        shell.arg("-s").args(args).stdin(fs::File::open(sample).expect("a sample")).env("PATH", path);
        shell.envs([("PGHOST", "127.0.0.1"), ("PGUSER", USER.0), ("PGPASSWORD", USER.1)]);
        run(shell.env("PGPORT", self.port.to_string()).env("STANDBY_PASSWORD", "closed sesame"));
    }

    /// Returns `url`, a URL of this server, with a standby as the second host.
    pub fn with_standby(&self, url: &str, standby: &Postgres) -> String {
        let own = format!("127.0.0.1:{}", self.port);
        url.replace(&own, &format!("{own},127.0.0.1:{}", standby.port))
    }

    /// Copies all stored data, to simulate a backup or a lagging standby. The server must not be running.
    pub fn back_up(&self) {
        assert!(!self.is_started(), "stop the server before copying its files");
        run(Command::new("cp").arg("-a").arg(self.folder.join("data")).arg(self.folder.join("backup")));
    }

    /// Replaces the stored data with the copy. The server must not be running.
    pub fn put_back(&self) {
        assert!(!self.is_started(), "stop the server before replacing its files");
        fs::remove_dir_all(self.folder.join("data")).expect("a folder of this process");
        run(Command::new("mv").arg(self.folder.join("backup")).arg(self.folder.join("data")));
    }

    /// Starts a PgBouncer in front of the server. `mode` is PgBouncer's `pool_mode`.
    ///
    /// # Panics
    /// If PgBouncer isn't installed, or doesn't start.
    pub fn pooler(&self, mode: &str) -> Pooler {
        let folder = tempfile::Builder::new().prefix("arena-pgbouncer-").tempdir().expect("a temp folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a folder of this process");
        let (port, file) = (free_port(), folder.path().join("pgbouncer.ini"));
        let (user, password) = USER;
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user={user} password='{password}'\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\nmax_client_conn = 100\n\
             default_pool_size = 50\n",
            self.port
        );
        fs::write(&file, settings).expect("a file");
        let program =
            ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].map(Path::new).into_iter().find(|path| path.exists());
        let mut pooler = as_postgres(program.unwrap_or(Path::new("pgbouncer")));
        let log = fs::File::create(folder.path().join("log")).expect("a file");
        pooler.arg("-q").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = pooler
            .spawn()
            .expect("tests need PgBouncer: `cargo xtask setup` installs it; by hand it is Debian's package pgbouncer");
        let pooler = Pooler { child, port, folder };
        let until = Instant::now() + TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || fs::read_to_string(pooler.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "PgBouncer doesn't listen: {}", log());
            thread::sleep(Duration::from_millis(20));
        }
        pooler
    }

    /// Returns true if the server was started, and not stopped since.
    pub fn is_started(&self) -> bool {
        self.watcher.is_some()
    }

    pub fn signal(&self, signal: &str) {
        run(Command::new("kill").arg(signal).arg(self.pid().to_string()));
    }

    /// Returns the id of the server's process, the parent of all others.
    pub fn pid(&self) -> u32 {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid")).expect("a running server");
        file.lines().next().and_then(|line| line.parse().ok()).expect("a process id")
    }

    fn end(&mut self, keep: bool) {
        if let Some(watcher) = self.watcher.take() {
            watcher.end(keep);
        }
    }

    /// Creates an empty schema, unique to the caller, and returns its URL.
    pub fn schema(&self) -> String {
        let name = format!("arena_{}", self.schemas.fetch_add(1, Ordering::Relaxed));
        let all = self.url("");
        self.run_sql(&all, &format!("CREATE SCHEMA {name}"));
        self.url(&format!("?options=-csearch_path%3D{name}"))
    }

    pub fn url(&self, parameters: &str) -> String {
        let (user, password) = (USER.0, USER.1.replace(' ', "%20"));
        format!("postgres://{user}:{password}@127.0.0.1:{}/postgres{parameters}", self.port)
    }

    /// Returns `url` with the server's Unix socket in place of its IP address.
    pub fn by_socket(&self, url: &str) -> String {
        let folder = self.folder.to_str().expect("a path in UTF-8").replace('/', "%2F");
        url.replace("@127.0.0.1:", &format!("@{folder}:"))
    }

    /// Returns the path of the server's certificate. The file exists after [`Postgres::start_with_certificate`].
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("certificate.pem")
    }

    /// Returns the server's port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs SQL in `psql`, as a database administrator would. Returns the printed values, one row per line.
    #[track_caller]
    pub fn run_sql(&self, url: &str, sql: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", url]).stdin(Stdio::piped());
        let mut child = psql.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("psql runs");
        child.stdin.take().expect("a pipe").write_all(sql.as_bytes()).expect("psql reads");
        let mut printed = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut printed).expect("text");
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert!(child.wait().expect("the end of psql").success(), "{sql}: {said}");
        printed
    }
}

/// A running PgBouncer, which is stopped on drop.
pub struct Pooler {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Pooler {
    /// Returns `url`, a URL of the server, changed to connect through the pooler.
    pub fn through(&self, postgres: &Postgres, url: &str) -> String {
        url.replace(&format!("127.0.0.1:{}/", postgres.port), &format!("127.0.0.1:{}/", self.port))
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end(false);
        // The folder of a server that was stopped before still exists.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the folder of Postgres's programs. Debian has one folder of server programs for each version.
fn programs() -> PathBuf {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok())
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path);
    let all = versions.into_iter().rev().map(|(_, folder)| folder).chain(in_path);
    let found = all.into_iter().find(|folder| folder.join("initdb").exists());
    found.expect("tests need PostgreSQL: `cargo xtask setup` installs it; by hand it is Debian's package postgresql")
}

/// Creates a folder that Postgres's user owns.
fn new_folder() -> PathBuf {
    let folder = data::named("arena-postgres-").keep();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a folder of this process");
    if is_root() {
        // Postgres refuses to run as root.
        run(Command::new("chown").arg("postgres").arg(&folder));
    }
    folder
}

fn is_root() -> bool {
    let owner = fs::metadata("/proc/self").map(|process| std::os::unix::fs::MetadataExt::uid(&process));
    owner.is_ok_and(|uid| uid == 0)
}

/// Returns a command that runs a program as a user that Postgres accepts.
fn as_postgres(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().expect("an installed program");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
