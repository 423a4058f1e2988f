//! The subscription to the results of a tournament.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::TICK;
use crate::nats::connect::Nats;
use crate::nats::names;

/// The time until the server delivers an unacknowledged result again.
const ACK_WAIT: Duration = Duration::from_secs(60);

/// Forwards the results of a tournament until the receiver is dropped.
pub(super) async fn read_results(nats: Nats, tournament: String, results: mpsc::Sender<Message>) {
    let config = pull::Config {
        durable_name: Some(names::result_consumer(&tournament)),
        filter_subject: names::results_of(&tournament),
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        inactive_threshold: names::KEPT,
        ..pull::Config::default()
    };
    loop {
        let made: Result<PullConsumer, _> = nats.js.create_consumer_on_stream(config.clone(), names::RESULTS).await;
        // Most errors mean that the server is unreachable, so the loop retries.
        if let Ok(consumer) = made {
            loop {
                let Ok(mut batch) = consumer.batch().max_messages(16).expires(Duration::from_secs(5)).messages().await
                else {
                    break;
                };
                let mut is_broken = false;
                while let Ok(Some(message)) = timeout(Duration::from_secs(10), batch.next()).await {
                    match message {
                        Ok(message) => {
                            if results.send(message).await.is_err() {
                                return;
                            }
                        }
                        Err(_) => is_broken = true,
                    }
                }
                if is_broken {
                    break;
                }
            }
        }
        sleep(TICK).await;
    }
}
