//! `POST /api/arena/join`: a player takes a seat.

use arena_engine::{EngineError, Join, Once};
use arena_identity::SessionKey;
use arena_model::{ChallengeInfo, InviteCode, UserId};
use arena_wire::Joined;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::auth::{Auth, parse_proof};
use crate::error::ApiResult;
use crate::openapi::{OnceKey, Sender};
use crate::request::names::check_visible;
use crate::request::{ByKey, ByName, Filled, Is, Post};

/// A join with an invite.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JoinRequest {
    /// The seat's invite code.
    #[schema(value_type = String, min_length = 1, example = "inv_018f6b2e-0000-7000-8000-00000000abcd")]
    invite: Filled,
    /// Without `--auth`: the player's lasting user id, under which scores are kept. Hidden until the session ends.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, example = "ada")]
    user_id: ByName<Is<UserId>>,
    /// With `--auth`: the player's Ed25519 public key as SPKI in DER (44 bytes), in hexadecimal digits. Its SHA-256 is the user id.
    #[schema(value_type = Option<String>, example = "302a300506032b6570032100…")]
    public_key: ByKey<String>,
    /// With `--auth`: the signature over `arena:v1:join:{invite}:{timestamp}`, in hexadecimal digits.
    #[schema(value_type = Option<String>, example = "5f0a…")]
    signature: ByKey<String>,
    /// With `--auth`: the time of signing, at most five minutes from the server's clock.
    #[schema(value_type = Option<i64>, example = 1_700_000_000_000_i64)]
    timestamp: ByKey<i64>,
}

/// Takes a seat with an invite.
///
/// The game starts when the last seat is taken. The operator's private messages are on the operator channel.
#[utoipa::path(post, path = "/api/arena/join", tag = "play", params(Sender, OnceKey), request_body = JoinRequest,
    responses((status = 200, body = Joined, description = "The session and its rules."),
        (status = 400, description = "
            `INVITE_NOT_FOUND`: the invite doesn't exist.
            `INVITE_ALREADY_USED`: a player has joined with the invite.
            `SELF_PLAY`: this user has a seat in the session already, and the server allows only one.
            `CHALLENGE_FAILED`: the challenge's script failed. The seat stays free."),
        (status = 409, description = "`SCRIPT_MISSING`: the session uses a version of a script that this server doesn't have."),
        (status = 401, description = "
            `INVALID_SIGNATURE`: the signature doesn't match the key and the text.
            `TIMESTAMP_EXPIRED`: the timestamp is too far from the server's clock."),
        (status = 503, description = "`SIGNATURES_BUSY`: the queue for signature checks is full.")))]
pub(crate) async fn join_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let wanted: JoinRequest = request.body()?;
    match &arena.auth {
        None => join_by_name(&arena, &request, wanted).await,
        Some(auth) => join_by_proof(&arena, auth, &request, wanted).await,
    }
}

/// Joins in standalone mode, as the user that the optional `userId` names.
async fn join_by_name(arena: &Arena, request: &Post, wanted: JoinRequest) -> ApiResult {
    let invite = parse(&wanted.invite.0)?;
    let once = request.once_about(&invite.to_string());
    let user = wanted.user_id.0.map(|Is(user)| user);
    user.iter().try_for_each(|user| check_visible("userId", user.as_str()))?;
    Ok(json(take_seat(arena, request, Join { invite, user }, once).await?))
}

/// Joins in authentication mode, as the user of the signing key.
async fn join_by_proof(arena: &Arena, auth: &Auth, request: &Post, wanted: JoinRequest) -> ApiResult {
    let JoinRequest { invite: Filled(invite), public_key, signature, timestamp, .. } = wanted;
    let proof = parse_proof(&public_key, &signature, &timestamp, arena.engine.now())?;
    let invite = parse(&invite)?;
    let user = proof.public_key().user_id();
    let once = request.once(proof.public_key().as_hex());
    auth.verifier.run(move || proof.verify_join(invite)).await??;
    let answer = take_seat(arena, request, Join { invite, user: Some(user) }, once).await?;
    Ok(json(with_key(answer, &session_key(arena, auth, invite).await?)))
}

fn parse(invite: &str) -> ApiResult<InviteCode> {
    invite.parse().map_err(|_| EngineError::UnknownInvite(invite.to_owned()).into())
}

async fn take_seat(arena: &Arena, request: &Post, join: Join, once: Option<Once>) -> ApiResult<String> {
    arena.admit_play(request.address)?;
    let respond = arena.ledger.charging(request.address, |written| {
        let facts = &written.session.facts;
        let info = ChallengeInfo::of_session(written.challenge, &facts.options);
        // The stored response has no key; `with_key` adds the key before the response is sent.
        to_text(&Joined { session: facts.id.to_string(), info, key: None })
    });
    Ok(arena.engine.join(join, once, respond).await?)
}

/// Computed from the server's secret and never stored, so a copy of the store contains none.
async fn session_key(arena: &Arena, auth: &Auth, invite: InviteCode) -> ApiResult<SessionKey> {
    let session = arena.engine.find_invited(invite).await?;
    let seated = session.and_then(|session| Some((session.facts.id, session.seat_of(invite)?)));
    // An error means that the session was removed in the meantime.
    let (id, seat) = seated.ok_or_else(|| EngineError::UnknownInvite(invite.to_string()))?;
    Ok(auth.secret.session_key(id, seat))
}

/// Adds the session key to the response of a join. Keys are ASCII without quotes, so no escaping is needed.
fn with_key(mut answer: String, key: &SessionKey) -> String {
    let brace = answer.pop();
    debug_assert_eq!(brace, Some('}'), "an answer to a join is an object with fields");
    answer.push_str(&format!(r#","sessionKey":"{}"}}"#, key.reveal()));
    answer
}
