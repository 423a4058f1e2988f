//! The way to a NATS server, and what can be wrong with it in a sentence each.

use std::time::Duration;

use arena_nats::NatsUrl;
use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, ConnectErrorKind, Event};
use tokio::sync::mpsc;

use crate::executor::causes;
use crate::nats::names;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A NATS server can't be used. A sentence about it.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// Nothing answers, or not as a NATS server.
    #[error("no NATS server answers at {url}: {what}")]
    Unreachable {
        /// Without credentials.
        url: String,
        /// Why.
        what: String,
    },
    /// It doesn't let us in.
    #[error("the NATS server at {url} lets nobody in with these credentials")]
    Refused {
        /// Without credentials.
        url: String,
    },
    /// It has no streams.
    #[error(
        "the NATS server at {url} has JetStream off: start it as `nats-server -js`, or turn JetStream on in its configuration"
    )]
    NoJetStream {
        /// Without credentials.
        url: String,
    },
    /// It won't do what was asked of it.
    #[error("the NATS server at {url} can't be used: {what}")]
    Failed {
        /// Without credentials.
        url: String,
        /// What it said.
        what: String,
    },
}

/// A server that we are connected to; connections that break come back by themselves.
#[derive(Debug, Clone)]
pub struct Nats {
    /// For what isn't kept.
    pub client: Client,
    /// For what is.
    pub js: Context,
    /// Its address, without credentials.
    pub url: String,
}

/// Connects, and sees to it that the streams are there. `lost` is told when the connection breaks (`true`) and when it is back.
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
            // Nobody listens any more when the program ends.
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
    /// What went wrong, as an error about this server.
    pub fn failed(&self, error: &dyn std::error::Error) -> NatsError {
        NatsError::Failed { url: self.url.clone(), what: causes(error) }
    }

    /// Makes the streams, unless they are there.
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
