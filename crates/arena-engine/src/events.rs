//! Events between nodes, over NATS: whoever has committed something says so, and the others look at the journal at once instead of at
//! the next poll.
//!
//! An event says nothing but that there is something to look for, and nothing but the time until a watcher is told depends on it:
//! a lost one costs a poll, a false one a look. So they are plain messages, which nobody stores.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arena_store::Nodes;
use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use futures_util::StreamExt;
use tokio::sync::Notify;

/// How often a server that isn't there is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How often the server is asked for a sign of life. After two that didn't come the connection counts as lost.
const PING: Duration = Duration::from_secs(5);

/// How long the server has to answer at the beginning.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A NATS server, as a URL names it: `nats://host:4222`, or `tls://` where the connection is to be encrypted, and user and password or a
/// token in front of the host; or several of one cluster, with commas. What it shows of itself holds neither password nor token.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsUrl {
    addresses: Vec<ServerAddr>,
    /// What stands alone in front of a host.
    token: Option<String>,
}

/// Why a text is no URL of a NATS server. Says nothing of what is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a URL of a NATS server: {0}")]
pub struct NatsUrlError(&'static str);

impl FromStr for NatsUrl {
    type Err = NatsUrlError;

    fn from_str(text: &str) -> Result<NatsUrl, NatsUrlError> {
        let mut all = NatsUrl { addresses: Vec::new(), token: None };
        for text in text.split(',') {
            if !(text.starts_with("nats://") || text.starts_with("tls://")) {
                return Err(NatsUrlError("it doesn't begin with nats:// or tls://"));
            }
            let malformed = |_| NatsUrlError("it is malformed");
            let mut url = text.parse::<ServerAddr>().map_err(malformed)?.into_inner();
            if url.host_str().is_none_or(str::is_empty) {
                return Err(NatsUrlError("it names no host"));
            }
            if url.password().is_none() && !url.username().is_empty() {
                all.token = Some(url.username().to_owned());
                url.set_username("").map_err(|()| NatsUrlError("it is malformed"))?;
            }
            all.addresses.push(ServerAddr::from_url(url).map_err(malformed)?);
        }
        Ok(all)
    }
}

impl fmt::Display for NatsUrl {
    /// Without password and token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, address) in self.addresses.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", address.host(), address.port())?;
        }
        Ok(())
    }
}

impl fmt::Debug for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NatsUrl({self})")
    }
}

/// What is known of events.
#[derive(Default)]
pub(crate) struct Events {
    /// Whether they are to be exchanged.
    wanted: AtomicBool,
    connected: AtomicBool,
    sent: AtomicU64,
    received: AtomicU64,
    /// Told when one has come.
    pub(crate) came: Notify,
}

/// How events are doing, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventCounts {
    /// Whether there is a connection over which they go.
    pub connected: bool,
    /// Events sent.
    pub sent: u64,
    /// Events that came.
    pub received: u64,
}

impl Events {
    pub(crate) fn are_flowing(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// `None` where none are to be exchanged.
    pub(crate) fn counts(&self) -> Option<EventCounts> {
        self.wanted.load(Ordering::Relaxed).then(|| EventCounts {
            connected: self.are_flowing(),
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
        })
    }

    /// Exchanges events with the other nodes until it is dropped, whether or not the server is there.
    pub(crate) async fn exchange(&self, url: &NatsUrl, nodes: &Nodes) {
        self.wanted.store(true, Ordering::Relaxed);
        let mut told = false;
        loop {
            match connect(url, nodes).await {
                Ok(client) => {
                    told = false;
                    tracing::info!("nodes hear of each other over NATS at {url}");
                    self.run(&client, nodes).await;
                    tracing::warn!("the connection to NATS at {url} has ended");
                }
                Err(reason) if !told => {
                    told = true;
                    tracing::warn!(
                        reason,
                        "NATS at {url} can't be used, so nodes only look after each other: {reason}"
                    );
                }
                Err(_) => {}
            }
            self.connected.store(false, Ordering::Relaxed);
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    /// Sends and takes events until the client gives the connection up. One that is lost it makes anew by itself.
    async fn run(&self, client: &Client, nodes: &Nodes) {
        let subject = subject(nodes);
        let mut committed = nodes.committed();
        let Ok(mut incoming) = client.subscribe(subject.clone()).await else { return };
        let mut look = tokio::time::interval(PING);
        loop {
            self.connected.store(client.connection_state() == State::Connected, Ordering::Relaxed);
            tokio::select! {
                event = incoming.next() => {
                    if event.is_none() {
                        return;
                    }
                    self.received.fetch_add(1, Ordering::Relaxed);
                    self.came.notify_one();
                }
                changed = committed.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    // What can't be sent now isn't worth being sent later.
                    if client.connection_state() == State::Connected {
                        self.sent.fetch_add(1, Ordering::Relaxed);
                        // One that can't be sent is one that is lost.
                        let _ = client.publish(subject.clone(), nodes.node().to_owned().into()).await;
                    }
                }
                _ = look.tick() => {}
            }
        }
    }
}

/// The subject of the nodes of one database.
fn subject(nodes: &Nodes) -> String {
    format!("arena.{}.grew", nodes.arena())
}

async fn connect(url: &NatsUrl, nodes: &Nodes) -> Result<Client, String> {
    let mut options = ConnectOptions::new()
        .name(format!("arena {}", nodes.node()))
        .no_echo()
        .ping_interval(PING)
        .connection_timeout(CONNECT_WITHIN)
        .event_callback(|event| async move {
            match event {
                Event::Connected => tracing::debug!("NATS is there"),
                Event::Disconnected => {
                    tracing::warn!("NATS is out of reach: nodes look after each other until it is back")
                }
                event => tracing::warn!("NATS says: {event}"),
            }
        });
    if let Some(token) = &url.token {
        options = options.token(token.clone());
    }
    options.connect(&url.addresses[..]).await.map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        format!("{}{}", error.kind(), source.unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_shows_neither_password_nor_token() {
        let shown = |text: &str| match text.parse::<NatsUrl>() {
            Ok(url) => format!("{url:?} {}", url.token.as_deref().unwrap_or("-")),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown("nats://127.0.0.1"), "NatsUrl(127.0.0.1:4222) -");
        assert_eq!(shown("tls://ada:secret@nats.example:4333"), "NatsUrl(nats.example:4333) -");
        assert_eq!(shown("nats://secret@nats.example"), "NatsUrl(nats.example:4222) secret");
        assert_eq!(shown("nats://a,tls://secret@b:1"), "NatsUrl(a:4222,b:1) secret");
        assert_eq!(shown("http://ada:secret@x"), "not a URL of a NATS server: it doesn't begin with nats:// or tls://");
        assert_eq!(shown("nats://ada:secret@"), "not a URL of a NATS server: it is malformed");
    }
}
