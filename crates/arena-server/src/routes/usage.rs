//! `POST /api/arena/usage`: a player's report of its usage and cost. It becomes public, as the player's claim, when the
//! session has ended.

use arena_engine::{EngineError, ReportUsage};
use arena_model::{MOST_MS, MOST_TOKENS, ProfileText, Timestamp, UsageReport, UsageTotal};
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::fields::{Filled, Lenient, Whole};
use crate::openapi::{OnceKey, Sender};
use crate::request::Post;

/// The usage of one step, such as a request to a language model.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Spent {
    /// The session's id.
    #[schema(value_type = String, min_length = 1, example = "018f6b2e-0000-7000-8000-00000000abcd")]
    challenge_id: Filled,
    /// The model's name, without control characters.
    #[schema(value_type = Option<String>, max_length = 200)]
    model: Option<ProfileText>,
    /// Number of input tokens, including cached ones.
    #[schema(value_type = u64, maximum = 1_000_000_000, example = 1200)]
    input_tokens: Tokens,
    /// Number of output tokens.
    #[schema(value_type = u64, maximum = 1_000_000_000, example = 85)]
    output_tokens: Tokens,
    /// Number of input tokens read from a cache.
    #[schema(value_type = Option<u64>, maximum = 1_000_000_000)]
    cached_tokens: Option<Tokens>,
    /// Cost in US dollars.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1_000_000)]
    cost_usd: Lenient<f64>,
    /// Duration in milliseconds.
    #[schema(value_type = Option<u64>, maximum = 86_400_000)]
    ms: Option<Whole<0, MOST_MS>>,
    /// True if the token counts are estimates.
    estimated: Option<bool>,
}

type Tokens = Whole<0, MOST_TOKENS>;

/// Reports the usage and cost of a step.
///
/// A step is, for example, a request to a language model. The sums are private until the session has ended; then
/// `state.reportedUsage` shows them by seat, as the players' claims. Reports don't affect the game.
#[utoipa::path(post, path = "/api/arena/usage", tag = "play", params(Sender, OnceKey), request_body = Spent,
    security(("sessionKey" = [])),
    responses((status = 200, body = UsageTotal, description = "The sum of the player's reports so far."),
        (status = 400, description = "
            `CHALLENGE_NOT_FOUND`: the session doesn't exist.
            `FORBIDDEN_SENDER`: `operator` is not allowed as the sender.
            `PLAYER_NOT_FOUND`: the sender has no seat in the session.
            `SESSION_ENDED`: the session has ended, and reports are closed.")))]
pub(crate) async fn report_usage(State(arena): State<Arena>, request: Post) -> ApiResult {
    let spent: Spent = request.body()?;
    let Filled(session) = &spent.challenge_id;
    let session = session.strip_prefix("challenge_").unwrap_or(session).parse();
    let report = read(spent)?;
    let caller = request.caller(&arena).await?;
    let from = caller.speaker()?;
    arena.admit_writer(request.address, &from)?;
    let session = session.map_err(|_| EngineError::UnknownSession)?;
    let sender = from.clone();
    let respond = arena.charging(request.address, move |written| {
        to_text(written.usage_of(&sender).expect("a sender with reported usage has a seat"))
    });
    let request_of_engine = ReportUsage { session, from, report };
    Ok(json(arena.engine.report_usage(request_of_engine, request.once_by(&caller), respond).await?))
}

/// Builds the report. The engine sets its time later.
fn read(spent: Spent) -> ApiResult<UsageReport> {
    let report = UsageReport {
        at: Timestamp(0),
        model: spent.model.filter(|model| !model.as_str().is_empty()),
        input_tokens: spent.input_tokens.0,
        output_tokens: spent.output_tokens.0,
        cached_tokens: spent.cached_tokens.map_or(0, |Whole(tokens)| tokens),
        cost_usd: match spent.cost_usd {
            Lenient::Missing => None,
            Lenient::Valid(cost) => Some(cost),
            // `report.check` below rejects NaN.
            Lenient::Invalid => Some(f64::NAN),
        },
        ms: spent.ms.map(|Whole(ms)| ms),
        estimated: spent.estimated.unwrap_or(false),
    };
    report.check().map_err(|error| ApiError::bad_request("INVALID_FIELD", error.to_string()))?;
    Ok(report)
}
