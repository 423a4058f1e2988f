//! Events between nodes over NATS. After a commit, a node sends an event, and the other nodes read for their subscribers
//! at once instead of at the next poll. An event is only a hint, which may be lost or forged. Events are therefore plain
//! NATS messages without storage (docs/decisions/0027).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arena_nats::NatsUrl;
use arena_store::Nodes;
use async_nats::connection::State;
use async_nats::{Client, Event};
use futures_util::StreamExt;
use tokio::sync::Notify;

/// The pause between attempts to reach the server.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// The interval between pings. After two unanswered pings, the client treats the connection as lost.
const PING: Duration = Duration::from_secs(5);

/// The time limit of the first connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Events {
    /// True if this node exchanges events.
    wanted: AtomicBool,
    connected: AtomicBool,
    sent: AtomicU64,
    received: AtomicU64,
    pub(crate) came: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventCounts {
    pub connected: bool,
    pub sent: u64,
    pub received: u64,
}

impl Events {
    pub(crate) fn are_flowing(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// Returns the counts, or `None` if no events are exchanged.
    pub(crate) fn counts(&self) -> Option<EventCounts> {
        self.wanted.load(Ordering::Relaxed).then(|| EventCounts {
            connected: self.are_flowing(),
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
        })
    }

    /// Runs until the returned future is dropped. Retries while the server is unreachable.
    pub(crate) async fn exchange(&self, url: &NatsUrl, nodes: &Nodes) {
        self.wanted.store(true, Ordering::Relaxed);
        let mut is_logged = false;
        loop {
            match connect(url, nodes).await {
                Ok(client) => {
                    is_logged = false;
                    tracing::info!("exchanging events with other nodes over NATS at {url}");
                    self.run(&client, nodes).await;
                    tracing::warn!("the connection to NATS at {url} is closed");
                }
                Err(reason) if !is_logged => {
                    is_logged = true;
                    tracing::warn!(reason, "cannot use NATS at {url}, so nodes only poll the database: {reason}");
                }
                Err(_) => {}
            }
            self.connected.store(false, Ordering::Relaxed);
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
    }

    /// Sends and receives events until the subscription ends. The client reconnects by itself.
    async fn run(&self, client: &Client, nodes: &Nodes) {
        let subject = subject(nodes);
        let mut committed = nodes.committed();
        let Ok(mut incoming) = client.subscribe(subject.clone()).await else { return };
        let mut ping = tokio::time::interval(PING);
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
                    // A late event is useless, so a disconnected node drops its events.
                    if client.connection_state() == State::Connected {
                        self.sent.fetch_add(1, Ordering::Relaxed);
                        // A failure to send drops the event.
                        let _ = client.publish(subject.clone(), nodes.node().to_owned().into()).await;
                    }
                }
                _ = ping.tick() => {}
            }
        }
    }
}

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
                Event::Connected => tracing::info!("connected to NATS"),
                Event::Disconnected => {
                    tracing::warn!("NATS is unreachable: nodes poll the database until NATS is reachable again")
                }
                // These events include each failed attempt to reconnect.
                Event::Draining | Event::Closed | Event::ClientError(_) => tracing::debug!("NATS: {event}"),
                event => tracing::warn!("NATS event: {event}"),
            }
        });
    options.connect(url.servers()).await.map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        format!("{}{}", error.kind(), source.unwrap_or_default())
    })
}
