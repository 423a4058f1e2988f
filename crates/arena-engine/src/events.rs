//! Events between nodes, over NATS: after a commit the other nodes look at the journal at once instead of at the next poll. An event
//! is a hint that may be lost or forged, so it is a plain message that no server stores (docs/decisions/0027).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arena_nats::NatsUrl;
use arena_store::Nodes;
use async_nats::connection::State;
use async_nats::{Client, Event};
use futures_util::StreamExt;
use tokio::sync::Notify;

/// How often a server that isn't there is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How often the server is asked for a sign of life. After two that didn't come the connection counts as lost.
const PING: Duration = Duration::from_secs(5);

/// How long the server has to answer at the beginning.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

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
    let options = url
        .options()
        .name(format!("arena {}", nodes.node()))
        .no_echo()
        .ping_interval(PING)
        .connection_timeout(CONNECT_WITHIN)
        .event_callback(|event| async move {
            match event {
                Event::Connected => tracing::info!("NATS is there"),
                Event::Disconnected => {
                    tracing::warn!("NATS is out of reach: nodes look after each other until it is back")
                }
                // Among them each attempt that fails while it is out of reach.
                Event::Draining | Event::Closed | Event::ClientError(_) => tracing::debug!("NATS: {event}"),
                event => tracing::warn!("NATS says: {event}"),
            }
        });
    options.connect(url.servers()).await.map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        format!("{}{}", error.kind(), source.unwrap_or_default())
    })
}
