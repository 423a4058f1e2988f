//! The connection URL of a database and its servers, with display forms that contain no secrets.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::StoreError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for which sent data may stay unacknowledged until the connection is treated as lost.
const LOST_AFTER: Duration = Duration::from_secs(15);

/// The time between two probes of an idle connection whose server has stopped answering.
const PROBE_AGAIN: Duration = Duration::from_secs(5);

/// Settings that Postgres accepts only in a connection's startup packet (`context` in `pg_settings` is `backend` or
/// `superuser-backend`). Poolers refuse them, because a pooler connects before it has its client's settings.
const START_ONLY: [&str; 6] = [
    "ignore_system_indexes",
    "jit_debugging_support",
    "jit_profiling_support",
    "log_connections",
    "log_disconnections",
    "post_auth_delay",
];

/// The URL of a Postgres database: `postgres://user:password@host:port/database?sslmode=require`.
///
/// Its display form contains no password. It accepts libpq's parameters (`sslmode`, `options`, `connect_timeout` …).
/// `sslrootcert` names a file with the trusted certificates, instead of the usual ones. `sslmode` is `disable` (the
/// default), `require` or `verify-full`. Both `require` and `verify-full` demand a certificate that is trusted and
/// matches the host, because encryption without this check doesn't protect against impostors. Without a password, the
/// variable `PGPASSWORD` has it, as for psql.
///
/// Several hosts, as in `postgres://user@db1,db2:5433/database`, are a primary and its standbys. Only the host that
/// accepts writes is used, as with `target_session_attrs=read-write` (`docs/decisions/0093`).
#[derive(Clone, PartialEq)]
pub struct DatabaseUrl {
    servers: Vec<DatabaseServer>,
}

/// A server of a database, with everything that a connection to it needs.
#[derive(Clone, PartialEq)]
pub(crate) struct DatabaseServer {
    /// The configuration, with one host.
    config: tokio_postgres::Config,
    /// Settings from the parameter `options`, which are applied after connecting.
    settings: Vec<(String, String)>,
    roots: Option<Vec<CertificateDer<'static>>>,
}

impl fmt::Display for DatabaseUrl {
    /// Shows database, hosts and ports, without password or other secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.servers.iter().map(DatabaseServer::host).collect();
        write!(f, "{} at {}", self.servers[0].name(), hosts.join(","))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

impl fmt::Display for DatabaseServer {
    /// Shows database, host and port, without password or other secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name(), self.host())
    }
}

/// The error for a text that isn't a valid database URL. The error quotes no part of the text that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a URL of a Postgres database: {reason}")]
pub struct DatabaseUrlError {
    reason: String,
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(url: &str) -> Result<DatabaseUrl, DatabaseUrlError> {
        DatabaseUrl::read(url, std::env::var("PGPASSWORD").ok())
    }
}

fn refuse(reason: &str) -> DatabaseUrlError {
    DatabaseUrlError { reason: reason.to_owned() }
}

impl DatabaseUrl {
    /// Parses a URL. `password` is for a URL without one.
    fn read(url: &str, password: Option<String>) -> Result<DatabaseUrl, DatabaseUrlError> {
        if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
            return Err(refuse("it doesn't begin with postgres://"));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        if base.matches('@').count() > 1 {
            // Otherwise the part after the first @ would count as the host and be shown in messages.
            return Err(refuse("it has more than one @: write @ in a password as %40, and / as %2F"));
        }
        let bases = split_hosts(base);
        let mut parameters = UrlParameters::read(query)?;
        if bases.len() > 1 {
            parameters.target = TargetSessionAttrs::ReadWrite;
        }
        let server = |base: &String| parameters.server(base, bases.len() > 1, password.as_deref());
        Ok(DatabaseUrl { servers: bases.iter().map(server).collect::<Result<_, _>>()? })
    }

    /// Returns the servers in the order of the URL. There is at least one.
    pub(crate) fn servers(&self) -> &[DatabaseServer] {
        &self.servers
    }
}

/// The parameters of a URL.
struct UrlParameters<'u> {
    mode: SslMode,
    target: TargetSessionAttrs,
    roots: Option<Vec<CertificateDer<'static>>>,
    /// The settings that are applied after connecting.
    settings: Vec<(String, String)>,
    /// The settings of [`START_ONLY`].
    first: Vec<(String, String)>,
    /// The parameters that the driver parses.
    kept: Vec<&'u str>,
}

impl<'u> UrlParameters<'u> {
    fn read(query: &'u str) -> Result<UrlParameters<'u>, DatabaseUrlError> {
        let (mut mode, mut target, mut roots) = (SslMode::Disable, TargetSessionAttrs::Any, None);
        let (mut settings, mut kept) = (Vec::new(), Vec::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", "disable")) => mode = SslMode::Disable,
                Some(("sslmode", "require" | "verify-full")) => mode = SslMode::Require,
                Some(("sslmode", _)) => return Err(refuse("sslmode can be disable, require or verify-full")),
                Some(("target_session_attrs", "read-write")) => target = TargetSessionAttrs::ReadWrite,
                Some(("target_session_attrs", _)) => {
                    return Err(refuse("target_session_attrs can only be read-write, because the arena writes"));
                }
                Some(("channel_binding", "require")) => {
                    return Err(refuse(
                        "channel_binding=require isn't supported: leave it out; sslmode=verify-full checks the server's \
                         certificate, which also protects the password",
                    ));
                }
                Some(("sslrootcert", file)) => roots = Some(read_roots(&percent_decode_str(file).decode_utf8_lossy())?),
                Some(("options", options)) => match read_settings(&percent_decode_str(options).decode_utf8_lossy()) {
                    Some(own) => settings.extend(own),
                    // An option with unknown syntax is passed on to the server, which may understand it.
                    None => kept.push(parameter),
                },
                _ => kept.push(parameter),
            }
        }
        let (first, settings) =
            settings.into_iter().partition(|(name, _): &(String, String)| START_ONLY.contains(&name.as_str()));
        Ok(UrlParameters { mode, target, roots, settings, first, kept })
    }

    /// Returns the server of a URL with one host and without parameters.
    fn server(
        &self,
        base: &str,
        is_one_of_several: bool,
        password: Option<&str>,
    ) -> Result<DatabaseServer, DatabaseUrlError> {
        let url = if self.kept.is_empty() { base.to_owned() } else { format!("{base}?{}", self.kept.join("&")) };
        let mut config: tokio_postgres::Config =
            url.parse().map_err(|error: tokio_postgres::Error| DatabaseUrlError {
                // The error itself only states that the configuration is invalid. Its source has the reason.
                reason: std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string),
            })?;
        if config.get_hosts().is_empty() {
            return Err(refuse("it names no host"));
        }
        if config.get_hosts().len() > 1 || (is_one_of_several && !config.get_hostaddrs().is_empty()) {
            return Err(refuse("write several hosts as postgres://user@db1,db2/arena, without host= and hostaddr="));
        }
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        config.ssl_mode(self.mode).target_session_attrs(self.target);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("arena");
        }
        config.tcp_user_timeout(LOST_AFTER).keepalives_idle(LOST_AFTER).keepalives_interval(PROBE_AGAIN);
        if !self.first.is_empty() {
            let kept = config.get_options().map(str::to_owned);
            let all: Vec<String> = kept.into_iter().chain(self.first.iter().map(write_setting)).collect();
            config.options(all.join(" "));
        }
        Ok(DatabaseServer { config, settings: self.settings.clone(), roots: self.roots.clone() })
    }
}

/// Splits a URL without parameters, such as `postgres://user@db1,db2/arena`, into URLs of one host each.
fn split_hosts(base: &str) -> Vec<String> {
    let scheme = base.find("://").map_or(0, |at| at + 3);
    let (before, rest) = base.split_at(base.find('@').map_or(scheme, |at| at + 1));
    let (hosts, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    hosts.split(',').map(|host| format!("{before}{host}{path}")).collect()
}

/// Parses an `options` parameter: `-c name=value` or `--name=value`, with a backslash before spaces in a value.
/// Returns `None` if it contains anything else.
fn read_settings(options: &str) -> Option<Vec<(String, String)>> {
    let mut words = vec![String::new()];
    let mut chars = options.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => words.last_mut()?.push(chars.next()?),
            char if char.is_ascii_whitespace() => words.push(String::new()),
            char => words.last_mut()?.push(char),
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(setting), _) => setting.to_owned(),
            (None, Some("")) => words.next()?,
            (None, Some(setting)) => setting.to_owned(),
            (None, None) => return None,
        };
        let (name, value) = setting.split_once('=')?;
        // The server also accepts hyphens in names and converts them.
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Some(settings)
}

/// Formats a setting for [`read_settings`].
fn write_setting((name, value): &(String, String)) -> String {
    let mut text = format!("-c {name}=");
    for char in value.chars() {
        if char == '\\' || char.is_ascii_whitespace() {
            text.push('\\');
        }
        text.push(char);
    }
    text
}

fn read_roots(file: &str) -> Result<Vec<CertificateDer<'static>>, DatabaseUrlError> {
    let refuse = |reason: &dyn fmt::Display| DatabaseUrlError { reason: format!("sslrootcert={file}: {reason}") };
    let read = CertificateDer::pem_file_iter(Path::new(file)).map_err(|error| refuse(&error))?;
    let roots: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| refuse(&error))?;
    if roots.is_empty() { Err(refuse(&"the file contains no certificate")) } else { Ok(roots) }
}

impl DatabaseServer {
    /// Returns the host and port, for messages.
    pub(crate) fn host(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) if host.contains(':') => format!("[{host}]"),
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(folder)) => folder.display().to_string(),
            None => "localhost".to_owned(),
        };
        format!("{host}:{}", self.config.get_ports().first().copied().unwrap_or(5432))
    }

    fn name(&self) -> &str {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or("postgres")
    }

    pub(crate) fn config(&self) -> tokio_postgres::Config {
        self.config.clone()
    }

    /// `ours`, overridden by the URL's settings. If a name is repeated, its last value counts.
    pub(crate) fn settings(&self, ours: &[(&str, &str)]) -> Vec<(String, String)> {
        let ours = ours.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut all: Vec<(String, String)> = Vec::new();
        for (name, value) in ours.chain(self.settings.iter().cloned()) {
            all.retain(|(known, _)| *known != name);
            all.push((name, value));
        }
        all
    }

    pub(crate) fn tls(&self) -> Result<Tls, StoreError> {
        let mut roots = RootCertStore::empty();
        match &self.roots {
            Some(certificates) => drop(roots.add_parsable_certificates(certificates.iter().cloned())),
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::Database(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Tls(MakeRustlsConnect::new(config)))
    }
}

/// A TLS connector. Only connections to host names use TLS: a Unix socket has no name that a certificate could match,
/// and needs no encryption.
#[derive(Clone)]
pub(crate) struct Tls(MakeRustlsConnect);

impl<S> MakeTlsConnect<S> for Tls
where
    MakeRustlsConnect: MakeTlsConnect<S>,
{
    type Stream = <MakeRustlsConnect as MakeTlsConnect<S>>::Stream;
    type TlsConnect = <MakeRustlsConnect as MakeTlsConnect<S>>::TlsConnect;
    type Error = <MakeRustlsConnect as MakeTlsConnect<S>>::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, Self::Error> {
        self.0.make_tls_connect(if host.is_empty() { "localhost" } else { host })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(url: &str, expected: Expect) {
        let shown = match url.parse::<DatabaseUrl>() {
            Ok(url) => {
                let config = url.servers[0].config();
                format!("{url} {:?} {:?}", config.get_ssl_mode(), config.get_target_session_attrs())
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn a_url_says_where_a_database_is_and_shows_no_password() {
        check("postgres://ada:secret@db.example.org/arena", expect!["arena at db.example.org:5432 Disable Any"]);
        check(
            "postgresql://ada:secret@[::1]:6000/arena?sslmode=verify-full",
            expect!["arena at [::1]:6000 Require Any"],
        );
        check("postgres://ada@%2Frun%2Fpostgresql/arena", expect!["arena at /run/postgresql:5432 Disable Any"]);
        check(
            "postgres://ada:a,b@db1,db2:5433,[::1]/arena",
            expect!["arena at db1:5432,db2:5433,[::1]:5432 Disable ReadWrite"],
        );
        check(
            "postgres://ada@db1/arena?target_session_attrs=read-write",
            expect!["arena at db1:5432 Disable ReadWrite"],
        );
        check("postgres://ada@localhost", expect!["ada at localhost:5432 Disable Any"]);
    }

    #[test]
    fn a_url_without_a_password_has_that_of_the_environment() {
        let password = |url: &str| {
            let url = DatabaseUrl::read(url, Some("of psql".to_owned())).expect("a URL");
            url.servers.iter().map(|server| server.config.get_password().map(<[u8]>::to_vec)).collect::<Vec<_>>()
        };
        let expected = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(password("postgres://ada@a,b/arena"), [expected("of psql"), expected("of psql")]);
        assert_eq!(password("postgres://ada:own@a/arena"), [expected("own")]);
        assert_eq!(password("postgres://ada@a/arena?password=own"), [expected("own")]);
    }

    #[test]
    fn options_of_a_url_are_settings_where_they_can_be() {
        let check = |options: &str, expected: Option<&[(&str, &str)]>| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            assert_eq!(read_settings(options), expected.map(|all| all.iter().map(owned).collect()), "{options}");
        };
        check("-csearch_path=arena", Some(&[("search_path", "arena")]));
        check(
            "-c a=1  --work-mem=4MB -c b=two\\ words\\\\",
            Some(&[("a", "1"), ("work_mem", "4MB"), ("b", "two words\\")]),
        );
        check("", Some(&[]));
        for other in ["-c", "-c name", "-B 5", "name=1", "trailing\\"] {
            check(other, None);
        }
        let url: DatabaseUrl = "postgres://a/arena?options=-cjit%3Don".parse().expect("a URL");
        let server = &url.servers()[0];
        let set = server.settings(&[("jit", "off"), ("lock_timeout", "1s"), ("lock_timeout", "2s")]);
        assert_eq!(
            set,
            [("lock_timeout", "2s"), ("jit", "on")].map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(server.config().get_options(), None);
    }

    #[test]
    fn a_setting_that_a_connection_only_takes_at_its_start_is_sent_there() {
        let text = "postgres://a/arena?options=-cjit%3Don%20-B%205&options=-cwork_mem%3D4MB%20--post-auth-delay%3D0\
             &options=-cignore_system_indexes%3Da%5C%20b%5C%5C";
        let url: DatabaseUrl = text.parse().expect("a URL");
        let server = &url.servers()[0];
        assert_eq!(
            server.config().get_options(),
            Some(r"-cjit=on -B 5 -c post_auth_delay=0 -c ignore_system_indexes=a\ b\\")
        );
        assert_eq!(server.settings(&[]), [("work_mem".to_owned(), "4MB".to_owned())]);
    }

    #[test]
    fn what_is_no_url_is_refused() {
        check("mysql://localhost/x", expect!["not a URL of a Postgres database: it doesn't begin with postgres://"]);
        check("postgres:///arena", expect!["not a URL of a Postgres database: it names no host"]);
        check("postgres://a,,b/arena", expect!["not a URL of a Postgres database: it names no host"]);
        for url in ["postgres://a/arena?host=b", "postgres://a,b/arena?hostaddr=127.0.0.1"] {
            check(
                url,
                expect![
                    "not a URL of a Postgres database: write several hosts as postgres://user@db1,db2/arena, without host= and hostaddr="
                ],
            );
        }
        check(
            "postgres://a,b/arena?target_session_attrs=any",
            expect![
                "not a URL of a Postgres database: target_session_attrs can only be read-write, because the arena writes"
            ],
        );
        check(
            "postgres://a/arena?sslmode=prefer",
            expect!["not a URL of a Postgres database: sslmode can be disable, require or verify-full"],
        );
        check(
            "postgres://a/arena?sslmode=require&channel_binding=require",
            expect![
                "not a URL of a Postgres database: channel_binding=require isn't supported: leave it out; sslmode=verify-full checks the server's certificate, which also protects the password"
            ],
        );
        check("postgres://a/arena?channel_binding=prefer", expect!["arena at a:5432 Disable Any"]);
        check("postgres://a:port/arena", expect!["not a URL of a Postgres database: invalid value for option `port`"]);
        check(
            "postgres://ada:p@ss/w:rd@db/arena",
            expect![
                "not a URL of a Postgres database: it has more than one @: write @ in a password as %40, and / as %2F"
            ],
        );
        check("postgres://a/arena?color=blue", expect!["not a URL of a Postgres database: unknown option `color`"]);
    }
}
