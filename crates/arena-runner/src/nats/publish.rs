//! Publishing what has to arrive: jobs, results and objects, each acknowledged by the server before it counts.

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::object_store::{ObjectMetadata, ObjectStore};
use serde::Serialize;

use crate::executor::causes;
use crate::nats::connect::Nats;
use crate::nats::names;
use crate::nats::wire::{JobEnd, JobReport};

/// What is left of the largest message for its headers and subject, in bytes.
const HEADROOM: usize = 4096;

/// Most bytes of an object in one message.
const CHUNK: usize = 128 << 10;

/// Publishes a message to a stream. The same `id` again within two minutes counts once.
///
/// # Errors
/// When the server doesn't acknowledge it: a sentence.
pub async fn publish(nats: &Nats, subject: String, id: &str, payload: Vec<u8>) -> Result<(), String> {
    let mut headers = HeaderMap::new();
    headers.insert(NATS_MESSAGE_ID, id);
    let sent = nats.js.publish_with_headers(subject, headers, payload.into()).await;
    let acknowledged = sent.map_err(|error| causes(&error))?.await;
    acknowledged.map(|_| ()).map_err(|error| causes(&error))
}

/// Publishes what came of a job, with what was recorded, packed by gzip. What is too large for a message becomes an object.
///
/// # Errors
/// As [`publish`].
pub async fn publish_outcome(nats: &Nats, outcome: &JobReport, recorded: &[u8]) -> Result<(), String> {
    let id = format!("{}-{}", outcome.job, outcome.worker.id);
    let subject = names::results_of(&outcome.tournament);
    let message = encode(outcome, recorded);
    // What the server takes may change while we are disconnected.
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

/// Puts an object into a bucket.
///
/// # Errors
/// As [`publish`].
pub async fn put(nats: &Nats, bucket: &ObjectStore, name: &str, mut bytes: &[u8]) -> Result<(), String> {
    let chunk = nats.client.max_payload().saturating_sub(HEADROOM).clamp(1024, CHUNK);
    let object = ObjectMetadata { name: name.to_owned(), chunk_size: Some(chunk), ..ObjectMetadata::default() };
    bucket.put(object, &mut bytes).await.map(|_| ()).map_err(|error| causes(&error))
}

/// Tells whoever listens.
pub async fn tell(nats: &Nats, subject: String, what: &impl Serialize) {
    // Nobody may listen, and it is told again: what has to arrive is published.
    let _ = nats.client.publish(subject, to_json(what).into()).await;
}

/// As JSON.
pub fn to_json(what: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(what).expect("messages are plain data with texts as keys")
}

fn encode(outcome: &JobReport, recorded: &[u8]) -> Vec<u8> {
    let mut message = to_json(outcome);
    message.push(b'\n');
    message.extend_from_slice(recorded);
    message
}

/// What came of a job, and what was recorded, if that came with it. Nothing if the message is none.
pub fn decode(message: &[u8]) -> Option<(JobReport, &[u8])> {
    let end = message.iter().position(|byte| *byte == b'\n')?;
    Some((serde_json::from_slice(&message[..end]).ok()?, &message[end + 1..]))
}
