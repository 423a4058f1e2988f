//! `POST /api/arena/join`: take a seat.

use arena_engine::{EngineError, Join, Once, Written};
use arena_identity::SessionKey;
use arena_model::{ChallengeInfo, InviteCode, SessionId, UserId};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::auth::{Auth, parse_proof};
use crate::error::ApiResult;
use crate::fields::{ByKey, ByName, Filled, Is};
use crate::openapi::{OnceKey, Sender};
use crate::request::Post;

/// Who takes which seat.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JoinRequest {
    /// The code of the seat.
    #[schema(value_type = String, min_length = 1, example = "inv_018f6b2e-0000-7000-8000-00000000abcd")]
    invite: Filled,
    /// Who the player is beyond this game; shown after its end. Scores are kept under it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, example = "ada", extensions(("x-mode" = json!("standalone"))))]
    user_id: ByName<Is<UserId>>,
    /// Ed25519, as SPKI in DER (44 bytes), in hexadecimal digits. Its SHA-256 is the player's user id.
    #[schema(value_type = String, example = "302a300506032b6570032100…", extensions(("x-mode" = json!("authentication"))))]
    public_key: ByKey<String>,
    /// Over `arena:v1:join:{invite}:{timestamp}`, in hexadecimal digits.
    #[schema(value_type = String, example = "5f0a…", extensions(("x-mode" = json!("authentication"))))]
    signature: ByKey<String>,
    /// When it was signed: at most five minutes ago.
    #[schema(value_type = i64, example = 1_700_000_000_000_i64, extensions(("x-mode" = json!("authentication"))))]
    timestamp: ByKey<i64>,
}

/// The seat is taken.
#[derive(Serialize, ToSchema)]
struct Joined<'j> {
    #[serde(rename = "ChallengeID")]
    id: SessionId,
    #[serde(rename = "ChallengeInfo")]
    #[schema(value_type = ChallengeInfo)]
    info: ChallengeInfo<'j>,
    /// The key to the seat: says from now on whose requests they are. Never here, since what is here is stored: [`with_key`]
    /// writes it.
    #[serde(rename = "sessionKey", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = true, pattern = "^s_[0-9]+\\.[0-9a-f]{64}$", extensions(("x-mode" = json!("authentication"))))]
    key: Option<&'j str>,
}

/// Take a seat.
///
/// When the last seat is taken, the game begins. What the operator has to say in private is on its channel.
#[utoipa::path(post, path = "/api/arena/join", tag = "play", params(Sender, OnceKey), request_body = JoinRequest,
    responses((status = 200, body = Joined, description = "The session, and its rules."),
        (status = 400, description = "
            `INVITE_NOT_FOUND`: there is no such invite.
            `INVITE_ALREADY_USED`: somebody has joined with it.
            `SELF_PLAY`: this user has a seat there already, and the server doesn't allow two.
            `CHALLENGE_FAILED`: the challenge is a script, and the script failed. The seat is free still."),
        (status = 409, description = "`SCRIPT_MISSING`: it is played by a version of a script that this server doesn't have."),
        (status = 401, description = "
            `INVALID_SIGNATURE`: it isn't one of this key over this text.
            `TIMESTAMP_EXPIRED`: it was signed too long ago, or will be."),
        (status = 503, description = "`SIGNATURES_BUSY`: too many signatures wait to be checked.")))]
pub(crate) async fn join_session(State(arena): State<Arena>, request: Post) -> ApiResult {
    let wanted: JoinRequest = request.body()?;
    match &arena.auth {
        None => join_by_name(&arena, &request, wanted).await,
        Some(auth) => join_by_proof(&arena, auth, &request, wanted).await,
    }
}

/// Standalone mode: the player is who `userId` says, if it says anything.
async fn join_by_name(arena: &Arena, request: &Post, wanted: JoinRequest) -> ApiResult {
    let invite = parse(&wanted.invite.0)?;
    let once = request.once_about(&invite.to_string());
    let user = wanted.user_id.0.map(|Is(user)| user);
    Ok(json(take_seat(arena, Join { invite, user }, once).await?))
}

/// Authentication mode: the player is who holds the key that signed.
async fn join_by_proof(arena: &Arena, auth: &Auth, request: &Post, wanted: JoinRequest) -> ApiResult {
    let JoinRequest { invite: Filled(invite), public_key, signature, timestamp, .. } = wanted;
    let proof = parse_proof(&public_key, &signature, &timestamp, arena.engine.now())?;
    let invite = parse(&invite)?;
    let user = proof.public_key().user_id();
    let once = request.once(proof.public_key().as_hex());
    auth.verifier.run(move || proof.verify_join(invite)).await??;
    let answer = take_seat(arena, Join { invite, user: Some(user) }, once).await?;
    Ok(json(with_key(answer, &session_key(arena, auth, invite).await?)))
}

fn parse(invite: &str) -> ApiResult<InviteCode> {
    invite.parse().map_err(|_| EngineError::UnknownInvite(invite.to_owned()).into())
}

async fn take_seat(arena: &Arena, join: Join, once: Option<Once>) -> ApiResult<String> {
    let respond = Box::new(|written: &Written<'_>| {
        let facts = &written.session.facts;
        let info = ChallengeInfo::of_session(written.challenge, &facts.options);
        to_text(&Joined { id: facts.id, info, key: None })
    });
    Ok(arena.engine.join(join, once, respond).await?)
}

/// The key to the seat that was taken with `invite`. It follows from the secret, so it is made whenever it has to be told
/// and never stored: whoever reads the store some day finds no keys there.
async fn session_key(arena: &Arena, auth: &Auth, invite: InviteCode) -> ApiResult<SessionKey> {
    let session = arena.engine.find_invited(invite).await?;
    let seated = session.and_then(|session| Some((session.facts.id, session.seat_of(invite)?)));
    // The session has been removed in between, and its invites with it.
    let (id, seat) = seated.ok_or_else(|| EngineError::UnknownInvite(invite.to_string()))?;
    Ok(auth.secret.session_key(id, seat))
}

/// The answer to a join with one field more. Keys are plain ASCII without quotes, so nothing needs escaping.
fn with_key(mut answer: String, key: &SessionKey) -> String {
    let brace = answer.pop();
    debug_assert_eq!(brace, Some('}'), "an answer to a join is an object with fields");
    answer.push_str(&format!(r#","sessionKey":"{}"}}"#, key.reveal()));
    answer
}
