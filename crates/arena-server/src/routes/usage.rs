//! `POST /api/arena/usage`: a player says what its play has cost. Shown to all, as its word, when the session has ended.

use arena_engine::{EngineError, ReportUsage, Written};
use arena_model::{MOST_MS, MOST_TOKENS, Timestamp, UsageReport, UsageTotal};
use axum::extract::State;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{OnceKey, Sender};
use crate::request::{Fields, Post};

/// What one step has cost a player, such as a request to a language model.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "read by hand; this is its description")]
struct Spent {
    /// The session.
    #[schema(min_length = 1, example = "018f6b2e-0000-7000-8000-00000000abcd")]
    challenge_id: String,
    /// Tokens of the question, those from a cache included.
    #[schema(maximum = 1_000_000_000, example = 1200)]
    input_tokens: u64,
    /// Tokens of the answer.
    #[schema(maximum = 1_000_000_000, example = 85)]
    output_tokens: u64,
    /// Tokens of the question that came from a cache.
    #[schema(maximum = 1_000_000_000)]
    cached_tokens: Option<u64>,
    /// US dollars.
    #[schema(minimum = 0, maximum = 1_000_000)]
    cost_usd: Option<f64>,
    /// How long it took, in milliseconds.
    #[schema(maximum = 86_400_000)]
    ms: Option<u64>,
    /// Whether the tokens are an estimate.
    estimated: Option<bool>,
    /// The model's name, without control characters.
    #[schema(max_length = 200)]
    model: Option<String>,
    /// The player's invite, unless the query has it.
    #[schema(example = "inv_018f6b2e-0000-7000-8000-00000000abcd", extensions(("x-mode" = json!("standalone"))))]
    from: Option<String>,
}

/// Report what a step of your play has cost.
///
/// Tokens, money and time of a language model, say, with each request to it. Nobody else learns of it before the session has
/// ended; then `state.reportedUsage` tells everybody what each seat has reported, as its player's word. It changes nothing in the game.
#[utoipa::path(post, path = "/api/arena/usage", tag = "play", params(Sender, OnceKey), request_body = Spent,
    security(("sessionKey" = [])),
    responses((status = 200, body = UsageTotal, description = "It was noted; what the player's reports come to so far."),
        (status = 400, description = "
            `CHALLENGE_NOT_FOUND`: there is no such session.
            `FORBIDDEN_SENDER`: nobody speaks for the operator.
            `PLAYER_NOT_FOUND`: the sender has no seat there.
            `SESSION_ENDED`: the session is over, and what is told of it stays as it is.")))]
pub(crate) async fn report_usage(State(arena): State<Arena>, request: Post) -> ApiResult {
    let fields = request.fields()?;
    let session = fields.filled("challengeId")?;
    let report = read(fields)?;
    let caller = request.caller(&arena).await?;
    let from = caller.speaker()?;
    arena.rates.admit_writer(request.address, &from)?;
    let session = session.strip_prefix("challenge_").unwrap_or(session);
    let session = session.parse().map_err(|_| EngineError::UnknownSession)?;
    let sender = from.clone();
    let respond =
        Box::new(move |written: &Written<'_>| to_text(written.usage_of(&sender).expect("who has reported has a seat")));
    let request_of_engine = ReportUsage { session, from, report };
    Ok(json(arena.engine.report_usage(request_of_engine, request.once_by(&caller), respond).await?))
}

/// The report in a body; the engine says when it came.
fn read(fields: &Fields) -> ApiResult<UsageReport> {
    let invalid = |text: String| ApiError::bad_request("INVALID_FIELD", text);
    let tokens = |name: &str| fields.find_number(name, 0..=MOST_TOKENS);
    let needed = |name: &str| tokens(name)?.ok_or_else(|| ApiError::missing(name));
    let model = fields.find_text("model")?.filter(|model| !model.is_empty());
    let model = model.map(str::parse).transpose().map_err(|error| invalid(format!("model must be {error}")))?;
    // What isn't a number is out of bounds.
    let cost_usd = fields.find("costUsd").map(|value| value.as_f64().unwrap_or(f64::NAN));
    let report = UsageReport {
        at: Timestamp(0),
        model,
        input_tokens: needed("inputTokens")?,
        output_tokens: needed("outputTokens")?,
        cached_tokens: tokens("cachedTokens")?.unwrap_or(0),
        cost_usd,
        ms: fields.find_number("ms", 0..=MOST_MS)?,
        estimated: fields.find_boolean("estimated")?.unwrap_or(false),
    };
    report.check().map_err(|error| invalid(error.to_string()))?;
    Ok(report)
}
