//! Publishing over NATS: durable jobs, results and objects, which the server acknowledges, and messages without
//! acknowledgment.

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::object_store::{ObjectMetadata, ObjectStore};
use serde::Serialize;

use crate::executor::causes;
use crate::nats::connect::Nats;
use crate::nats::names;
use crate::nats::wire::{JobEnd, JobReport};

/// The number of bytes of a message's maximum size that are reserved for headers and subject.
const HEADROOM: usize = 4096;

/// The largest chunk of an object that one message carries, in bytes.
const CHUNK: usize = 128 << 10;

/// Publishes a message to a stream. The server drops further messages with the same `id` within two minutes.
///
/// # Errors
/// The reason in one sentence, if the server doesn't acknowledge the message.
pub async fn publish(nats: &Nats, subject: String, id: &str, payload: Vec<u8>) -> Result<(), String> {
    let mut headers = HeaderMap::new();
    headers.insert(NATS_MESSAGE_ID, id);
    let sent = nats.js.publish_with_headers(subject, headers, payload.into()).await;
    let acknowledged = sent.map_err(|error| causes(&error))?.await;
    acknowledged.map(|_| ()).map_err(|error| causes(&error))
}

/// Publishes the report of a job, followed by the compressed replay `recorded`. If both don't fit into one message,
/// stores the replay as an object.
///
/// # Errors
/// As [`publish`].
pub async fn publish_outcome(nats: &Nats, outcome: &JobReport, recorded: &[u8]) -> Result<(), String> {
    let id = format!("{}-{}", outcome.job, outcome.worker.id);
    let subject = names::results_of(&outcome.tournament);
    let message = encode(outcome, recorded);
    // The server's size limit may change with a reconnection, so it is read each time.
    if message.len() + HEADROOM <= nats.client.max_payload() {
        return publish(nats, subject, &id, message).await;
    }
    let mut outcome = outcome.clone();
    if let JobEnd::Played(played) = &mut outcome.ended {
        let bucket =
            nats.js.get_object_store(names::bucket(&outcome.tournament)).await.map_err(|error| causes(&error))?;
        put(nats, &bucket, &format!("replay-{id}"), recorded).await?;
        played.object = Some(format!("replay-{id}"));
    }
    publish(nats, subject, &id, encode(&outcome, &[])).await
}

/// Stores an object in a bucket.
///
/// # Errors
/// As [`publish`].
pub async fn put(nats: &Nats, bucket: &ObjectStore, name: &str, mut bytes: &[u8]) -> Result<(), String> {
    let chunk = nats.client.max_payload().saturating_sub(HEADROOM).clamp(1024, CHUNK);
    let object = ObjectMetadata { name: name.to_owned(), chunk_size: Some(chunk), ..ObjectMetadata::default() };
    bucket.put(object, &mut bytes).await.map(|_| ()).map_err(|error| causes(&error))
}

/// Sends a message without acknowledgment to all current subscribers.
pub async fn notify(nats: &Nats, subject: String, what: &impl Serialize) {
    // Senders repeat such messages, so the loss of one does no harm. For messages that must arrive, use `publish`.
    let _ = nats.client.publish(subject, to_json(what).into()).await;
}

pub fn to_json(what: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(what).expect("messages are plain data with string keys")
}

fn encode(outcome: &JobReport, recorded: &[u8]) -> Vec<u8> {
    let mut message = to_json(outcome);
    message.push(b'\n');
    message.extend_from_slice(recorded);
    message
}

/// Splits a message into the report of a job and the bytes after it. `None` if the message is invalid.
pub fn decode(message: &[u8]) -> Option<(JobReport, &[u8])> {
    let end = message.iter().position(|byte| *byte == b'\n')?;
    Some((serde_json::from_slice(&message[..end]).ok()?, &message[end + 1..]))
}
