//! TLS of the public address. The certificate and its key are read again when their files change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_cert::der::Decode as _;

use super::socket::last_response;

/// The pause between two reads of the files.
const READ_EVERY: Duration = Duration::from_secs(5);

/// The time after which the log reports a read that doesn't return.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// The maximum number of encrypted bytes that a connection keeps until the client reads them.
const UNSENT_BYTES: usize = 16 * 1024;

/// The first byte of a connection with TLS: a record of a handshake.
const HANDSHAKE: u8 = 0x16;

/// The files of the certificate: `tls` in the section `[network]` of `arena.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The server's certificate, followed by those of intermediate authorities (PEM).
    pub certificate: PathBuf,
    /// The private key of the certificate (PEM).
    pub key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {0} (network.tls)")]
    Read(PathBuf, #[source] io::Error),
    #[error("{path} contains no {what} in PEM form (network.tls)")]
    Pem { path: PathBuf, what: &'static str },
    /// The certificate and the key don't belong together, or their kind is unknown.
    #[error("cannot use the certificate with its key (network.tls)")]
    Unusable(#[source] rustls::Error),
}

/// The certificate in use, and the acceptor of connections.
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    certificates: Arc<Certificates>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// If the certificate or the key can't be used.
    pub(crate) fn start(files: TlsFiles) -> Result<Tls, TlsError> {
        let provider = Arc::new(default_provider());
        let content = FileContent::read(&files)?;
        let (key, expires) = content.certified_key(&files, &provider)?;
        let certificates = Arc::new(Certificates {
            files,
            provider: Arc::clone(&provider),
            key: RwLock::new(Arc::new(key)),
            expires: AtomicU64::new(expires),
            last_read: RwLock::new(content),
        });
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?;
        let mut config = config.with_no_client_auth().with_cert_resolver(Arc::clone(&certificates) as _);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), certificates })
    }

    /// Returns the certificate, for a task that reads it again.
    pub(crate) fn certificates(&self) -> Arc<Certificates> {
        Arc::clone(&self.certificates)
    }

    /// Completes the handshake of a new connection. A request without TLS gets a response that explains the refusal.
    ///
    /// # Errors
    /// If the handshake fails or the client uses no TLS.
    pub(crate) async fn accept(&self, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE {
            // If a part of the request stays unread, the system may discard the response.
            let _ = stream.read(&mut [0; 8192]).await?;
            let body = r#"{"error":"this server expects HTTPS: use https:// in the URL","code":"TLS_REQUIRED"}"#;
            let _ = stream.try_write(last_response("400 Bad Request", "", body).as_bytes());
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the client uses no TLS"));
        }
        let mut stream = self.acceptor.accept(stream).await?;
        // These bytes aren't part of the memory budget.
        stream.get_mut().1.set_buffer_limit(Some(UNSENT_BYTES));
        Ok(stream)
    }
}

/// The certificate that new connections get.
pub(crate) struct Certificates {
    files: TlsFiles,
    provider: Arc<CryptoProvider>,
    key: RwLock<Arc<CertifiedKey>>,
    /// The end of the certificate's validity, in seconds of Unix time.
    expires: AtomicU64,
    /// The content of the files that was read last, usable or not.
    last_read: RwLock<FileContent>,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").field("files", &self.files).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.key.read()))
    }
}

impl Certificates {
    /// Returns the end of the certificate's validity, in seconds of Unix time.
    pub(crate) fn expires(&self) -> u64 {
        self.expires.load(Ordering::Relaxed)
    }

    /// Reads the files every few seconds. The old certificate stays until the files contain a new one with its key.
    pub(crate) async fn keep_current(self: &Arc<Self>) {
        loop {
            tokio::time::sleep(READ_EVERY).await;
            let (read, is_read) = oneshot::channel();
            let certificates = Arc::clone(self);
            // A read from a file system that hangs may never return. The runtime would wait for a thread of its own.
            let refresh = move || {
                certificates.refresh();
                // An error means that the server stops.
                let _ = read.send(());
            };
            match thread::Builder::new().name("certificate".to_owned()).spawn(refresh) {
                Ok(_) => {
                    let mut is_read = pin!(is_read);
                    if timeout(HANGS_AFTER, &mut is_read).await.is_err() {
                        let file = self.files.certificate.display();
                        tracing::warn!(
                            "the certificate {file} or its key cannot be read: the file system doesn't answer"
                        );
                        // An error means that the thread has panicked.
                        drop(is_read.await);
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot start a thread that reads the certificate: {error}"),
            }
        }
    }

    fn refresh(&self) {
        // While a program replaces the files, one may be missing.
        let Ok(content) = FileContent::read(&self.files) else { return };
        if content == *self.last_read.read() {
            return;
        }
        match content.certified_key(&self.files, &self.provider) {
            Ok((key, expires)) => {
                *self.key.write() = Arc::new(key);
                self.expires.store(expires, Ordering::Relaxed);
                tracing::info!(
                    expires,
                    "new connections get the new certificate in {}",
                    self.files.certificate.display()
                );
            }
            Err(error) => {
                let source = std::error::Error::source(&error).map_or_else(String::new, |source| format!(": {source}"));
                tracing::warn!("the old certificate stays in use: {error}{source}");
            }
        }
        *self.last_read.write() = content;
    }
}

#[derive(PartialEq, Eq)]
struct FileContent {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl FileContent {
    fn read(files: &TlsFiles) -> Result<FileContent, TlsError> {
        let read = |path: &Path| fs::read(path).map_err(|error| TlsError::Read(path.to_owned(), error));
        Ok(FileContent { certificate: read(&files.certificate)?, key: read(&files.key)? })
    }

    /// Returns the certificate with its key, and the end of its validity in seconds of Unix time.
    fn certified_key(&self, files: &TlsFiles, provider: &CryptoProvider) -> Result<(CertifiedKey, u64), TlsError> {
        let missing = |path: &Path, what| TlsError::Pem { path: path.to_owned(), what };
        let chain =
            CertificateDer::pem_slice_iter(&self.certificate).collect::<Result<Vec<_>, _>>().unwrap_or_default();
        let first = chain.first().ok_or_else(|| missing(&files.certificate, "certificate"))?;
        let parsed = x509_cert::Certificate::from_der(first)
            .map_err(|_| TlsError::Unusable(rustls::CertificateError::BadEncoding.into()))?;
        let expires = parsed.tbs_certificate.validity.not_after.to_unix_duration().as_secs();
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| missing(&files.key, "private key"))?;
        let key = CertifiedKey::from_der(chain, key, provider).map_err(TlsError::Unusable)?;
        Ok((key, expires))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::AtomicUsize;

    use tracing::span;

    use super::*;

    /// Counts the warnings of a thread.
    struct WarningCounter(Arc<AtomicUsize>);

    impl tracing::Subscriber for WarningCounter {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() == tracing::Level::WARN
        }

        fn event(&self, _: &tracing::Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_cannot_be_read_now_stops_nothing_else_and_is_reported_once() {
        let warnings = Arc::new(AtomicUsize::new(0));
        let _guard = tracing::subscriber::set_default(WarningCounter(Arc::clone(&warnings)));
        let folder = tempfile::tempdir().expect("a folder");
        let pems = Path::new(env!("CARGO_MANIFEST_DIR")).join("../arena-cli/tests/tls");
        let certificate = folder.path().join("server.pem");
        fs::copy(pems.join("server.pem"), &certificate).expect("a copy");
        let files = TlsFiles { certificate: certificate.clone(), key: pems.join("server.key") };
        let tls = Tls::start(files).expect("a certificate");
        let before = Arc::clone(&tls.certificates.key.read());
        // The read of a pipe that no program writes to doesn't return, as on a file system that hangs.
        fs::remove_file(&certificate).expect("it exists");
        assert!(Command::new("mkfifo").arg(&certificate).status().expect("mkfifo runs").success());
        let certificates = tls.certificates();
        let keeping = tokio::spawn(async move { certificates.keep_current().await });
        tokio::time::sleep(READ_EVERY).await;
        assert_eq!(warnings.load(Ordering::Relaxed), 0);
        tokio::time::sleep(HANGS_AFTER * 30).await;
        assert!(!keeping.is_finished() && Arc::ptr_eq(&before, &tls.certificates.key.read()));
        assert_eq!(warnings.load(Ordering::Relaxed), 1);
        keeping.abort();
    }
}
