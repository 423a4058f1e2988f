//! Subscribers. After a stream ends, breaks or falls silent, a subscriber reconnects to another node and continues
//! after the last received message.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::history::{Delivery, ObservedMessage, Subscription};

use crate::call::{Caller, TIMEOUT};

/// The duration of silence after which a subscriber reconnects.
const SILENCE: Duration = Duration::from_secs(2);

/// The pause before another attempt.
const PAUSE: Duration = Duration::from_millis(20);

/// Watches a channel of a session until the session's end event.
pub fn until_the_end(caller: Caller<'_>, channel: String) {
    watch(caller, channel, |subscription| subscription.ends > 0, false);
}

/// Watches a channel until it has received `length` messages. `length` is `u64::MAX` until the number is known.
pub fn until_long(caller: Caller<'_>, channel: String, length: &AtomicU64) {
    watch(caller, channel, |subscription| subscription.deliveries.len() as u64 >= length.load(Ordering::SeqCst), true);
}

fn watch(mut caller: Caller<'_>, channel: String, is_over: impl Fn(&Subscription) -> bool, whole: bool) {
    let mut subscription = Subscription { channel, deliveries: Vec::new(), ends: 0, whole };
    let mut last_id: Option<String> = None;
    let mut node = None;
    let mut progress = Instant::now();
    while !is_over(&subscription) {
        let at = caller.choose(node);
        node = Some(at);
        let seen = subscription.deliveries.len();
        connect(&mut caller, at, &mut subscription, &mut last_id, &is_over);
        if subscription.deliveries.len() > seen {
            progress = Instant::now();
        }
        // The time limit only prevents an endless wait. The checker reports missing messages.
        if progress.elapsed() > TIMEOUT {
            break;
        }
        thread::sleep(PAUSE);
    }
    caller.field.note(|history| history.subscriptions.push(subscription));
}

/// Reads one connection until it ends.
fn connect(
    caller: &mut Caller<'_>,
    node: usize,
    subscription: &mut Subscription,
    last_id: &mut Option<String>,
    is_over: &impl Fn(&Subscription) -> bool,
) {
    let client = caller.client(node).patient_for(SILENCE);
    let header = last_id.as_deref().map(|id| ("Last-Event-ID", id));
    let Ok(mut stream) = client.try_stream(&format!("/api/chat/ws/{}", subscription.channel), header) else { return };
    match stream.status {
        200 => {}
        // 502 and 504 are a balancer's.
        502..=504 => return,
        status => {
            return caller.field.complain(format!("node {node}: a stream of {} is {status}", subscription.channel));
        }
    }
    while let Some((id, event)) = stream.next_event() {
        let messages = match event["type"].as_str() {
            Some("initial") => event["messages"].as_array().expect("a list").clone(),
            Some("new_message") => vec![event["message"].clone()],
            Some("game_ended") => {
                subscription.ends += 1;
                Vec::new()
            }
            _ => panic!("unknown event: {event}"),
        };
        let at = caller.field.now();
        let messages = messages.iter().map(|message| Delivery { node, at, message: ObservedMessage::of(message) });
        subscription.deliveries.extend(messages);
        *last_id = Some(id);
        // Sometimes a subscriber disconnects at a random moment.
        if is_over(subscription) || caller.rng.chance(1) {
            return;
        }
    }
}
