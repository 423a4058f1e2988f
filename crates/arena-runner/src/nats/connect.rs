//! The connection to a NATS server, with its errors.

use std::time::Duration;

use arena_nats::NatsUrl;
use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, ConnectErrorKind, Event};
use tokio::sync::mpsc;

use crate::executor::causes;
use crate::nats::names;

/// The timeout of requests to the NATS server.
const PATIENCE: Duration = Duration::from_secs(5);

/// An error of a NATS server. The text is shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// An unreachable server, or a server that doesn't speak the NATS protocol.
    #[error("no NATS server answers at {url}: {what}")]
    Unreachable {
        /// The server's URL, without credentials.
        url: String,
        what: String,
    },
    #[error("the NATS server at {url} rejects the credentials in the URL")]
    Refused { url: String },
    #[error(
        "the NATS server at {url} has JetStream disabled: start it as `nats-server -js`, or enable JetStream in its configuration"
    )]
    NoJetStream { url: String },
    #[error("the NATS server at {url} cannot be used: {what}")]
    Failed { url: String, what: String },
}

/// A connection to a NATS server. The client reconnects automatically.
#[derive(Debug, Clone)]
pub struct Nats {
    /// The client for messages that aren't stored.
    pub client: Client,
    /// The client for streams and objects.
    pub js: Context,
    /// The server's URL, without credentials.
    pub url: String,
}

/// Connects to a NATS server and creates the streams of jobs and results. `lost` receives `true` when the connection
/// breaks, and `false` when it is established or restored.
///
/// # Errors
/// See [`NatsError`].
pub async fn connect(address: &NatsUrl, name: &str, lost: mpsc::UnboundedSender<bool>) -> Result<Nats, NatsError> {
    let url = address.to_string();
    let options = address
        .options()
        .name(name)
        .connection_timeout(PATIENCE)
        .request_timeout(Some(PATIENCE))
        .reconnect_delay_callback(|attempts| Duration::from_millis(100 * attempts.min(20) as u64))
        .event_callback(move |event| {
            let change = match event {
                Event::Connected => Some(false),
                Event::Disconnected => Some(true),
                _ => None,
            };
            // Sending fails if the receiver was dropped at the end of the program, which does no harm.
            let _ = change.map(|is_lost| lost.send(is_lost));
            std::future::ready(())
        });
    let client = options.connect(address.servers()).await.map_err(|error| {
        let url = url.clone();
        match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => NatsError::Refused { url },
            _ => NatsError::Unreachable { url, what: causes(&error) },
        }
    })?;
    let mut js = jetstream::new(client.clone());
    js.set_timeout(PATIENCE);
    let nats = Nats { client, js, url };
    nats.make_streams().await?;
    Ok(nats)
}

impl Nats {
    pub fn failed(&self, error: &dyn std::error::Error) -> NatsError {
        NatsError::Failed { url: self.url.clone(), what: causes(error) }
    }

    /// Creates the streams of jobs and results, unless they exist.
    pub async fn make_streams(&self) -> Result<(), NatsError> {
        for (name, subjects) in [(names::JOBS, names::JOB_SUBJECTS), (names::RESULTS, names::RESULT_SUBJECTS)] {
            let config = Config {
                name: name.to_owned(),
                subjects: vec![subjects.to_owned()],
                retention: RetentionPolicy::WorkQueue,
                max_age: names::KEPT,
                ..Config::default()
            };
            self.js.get_or_create_stream(config).await.map_err(|error| match error.kind() {
                CreateStreamErrorKind::JetStreamUnavailable => NatsError::NoJetStream { url: self.url.clone() },
                CreateStreamErrorKind::JetStream(ref error) if is_off(error.error_code()) => {
                    NatsError::NoJetStream { url: self.url.clone() }
                }
                _ => self.failed(&error),
            })?;
        }
        Ok(())
    }
}

fn is_off(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT)
}
