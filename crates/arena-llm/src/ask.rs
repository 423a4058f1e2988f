//! A request with retries, and a model at its endpoint.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::{Client, Endpoint, Fault, FaultClass, Pacer, Params, Received, SeatModel, Usage, request_bytes};

/// The first and the longest pause between two attempts. Each pause is twice as long as the one before. An endpoint may
/// request longer pauses.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// A failed attempt that is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    pub class: FaultClass,
    pub sentence: String,
    /// The pause before the next attempt in milliseconds.
    pub pause_ms: u64,
    /// The tokens that the endpoint counted for the failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// True if the failed attempt may be paid, although the endpoint counted no tokens.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_paid: bool,
}

/// Sends a request's body until the endpoint answers. After a passing fault it pauses and retries; the pauses grow, or
/// are as long as the endpoint requests. Failed attempts and pauses together last at most for the time `patience`;
/// waiting for the pacer doesn't count. `on_retry` receives each failed attempt that is retried, and
/// returns true if another attempt may be sent.
///
/// # Errors
/// If the fault is lasting, the patience is over, or `on_retry` returns false: the last fault. Its cost is the one
/// that `on_retry` hasn't received.
pub async fn ask(
    client: &Client,
    endpoint: &Endpoint,
    pacer: &Arc<Pacer>,
    body: &[u8],
    patience: Duration,
    on_retry: &mut (dyn FnMut(&Retry) -> bool + Send),
) -> Result<Received, Fault> {
    let mut usual = PAUSES.0;
    let mut left = patience;
    loop {
        // Other requests may have learned of a pause that is too long.
        let permit = pacer.permit_within(left).await.map_err(with_request)?;
        let begun = Instant::now();
        let fault = match client.send(endpoint, body).await {
            Ok(received) => {
                permit.succeed();
                return Ok(received);
            }
            Err(fault) => fault,
        };
        permit.fail(&fault);
        if fault.class.is_lasting() {
            return Err(fault);
        }
        left = left.saturating_sub(begun.elapsed());
        // The pause has a minimum, since some endpoints always request a pause of 0.
        let pause = fault.retry_after.map_or(usual, |pause| pause.max(usual / 10));
        if pause >= left {
            return Err(with_request(fault));
        }
        left -= pause;
        usual = (usual * 2).min(PAUSES.1);
        let pause_ms = pause.as_millis() as u64;
        let Fault { class, ref sentence, usage, may_be_paid, .. } = fault;
        if !on_retry(&Retry { class, sentence: sentence.clone(), pause_ms, usage, may_be_paid }) {
            return Err(Fault { usage: None, may_be_paid: false, ..fault });
        }
        sleep(pause).await;
    }
}

/// Adds the requested pause to a fault's sentence.
fn with_request(mut fault: Fault) -> Fault {
    if let Some(pause) = fault.retry_after.filter(|pause| !pause.is_zero()) {
        fault.sentence += &format!("; it requests a pause of {} s", pause.as_secs_f64().ceil());
    }
    fault
}

/// A model at its endpoint, for one seat.
#[derive(Debug)]
pub struct ModelEndpoint {
    /// The model's name at the endpoint.
    pub model: String,
    pub endpoint: Endpoint,
    pub params: Params,
    client: Client,
    pacer: Arc<Pacer>,
}

impl ModelEndpoint {
    pub fn new(model: String, endpoint: Endpoint, params: Params) -> ModelEndpoint {
        ModelEndpoint { model, endpoint, params, client: Client::new(), pacer: Pacer::new(1) }
    }

    /// Requests the next answer of a seat, as [`ask`]. [`SeatModel::take`] reads it.
    ///
    /// # Errors
    /// As [`ask`].
    pub async fn ask(
        &self,
        seat: &mut SeatModel,
        patience: Duration,
        on_retry: &mut (dyn FnMut(&Retry) -> bool + Send),
    ) -> Result<Received, Fault> {
        seat.prepare();
        let ModelEndpoint { model, endpoint, params, client, pacer } = self;
        let body = request_bytes(endpoint.api(), endpoint.tool_use(), &seat.question(model, params));
        ask(client, endpoint, pacer, &body, patience, on_retry).await
    }
}
