//! `/api/users…`: users, their profiles, games and scores.

use std::collections::BTreeMap;

use arena_engine::{ChangeProfile, EngineError};
use arena_identity::{ProfileUpdate, Proof};
use arena_model::{Board, ProfileChange, ProfileText, ScoringEntry, UserId, UserProfile};
use arena_store::Page;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::list::{SessionPage, page_of};
use super::rows;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::auth::{Auth, parse_proof};
use crate::error::{ApiError, ApiResult};
use crate::openapi::{OnceKey, Paging, Part, Sender};
use crate::request::names::check_visible;
use crate::request::{ByKey, ByName, Get, Is, Post};

/// Maximum number of users per request.
const MOST_IDS: usize = 1000;

/// Lists all users, oldest first.
#[utoipa::path(get, path = "/api/users", tag = "users", params(Part),
    responses((status = 200, body = [UserProfile], description = "Users; all without `limit`.",
        headers(("x-total-count" = u64, description = "Number of users on all pages."),
            ("link" = Option<String>, description = "With `limit`: links to the next, previous, first and last page (RFC 8288).")))))]
pub(crate) async fn list_users(State(arena): State<Arena>, request: Get) -> ApiResult {
    rows::list(arena, &request, Some(rows::RowSource::Users)).await
}

/// Selection of users.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Named {
    /// User ids separated by commas, at most 1000.
    #[param(value_type = String, example = "ada,bob", min_length = 1)]
    ids: Option<String>,
}

/// Returns the profiles of several users.
#[utoipa::path(get, path = "/api/users/batch", tag = "users", params(Named),
    responses((status = 200, body = BTreeMap<String, UserProfile>, description = "The known users, by id."),
        (status = 400, description = "
            `MISSING_FIELD`: `ids` is missing.
            `TOO_MANY_IDS`: `ids` has more than 1000 ids.")))]
pub(crate) async fn find_users(State(arena): State<Arena>, request: Get) -> ApiResult {
    let ids = request.query::<Named>()?.ids.filter(|ids| !ids.is_empty());
    let ids = ids.ok_or_else(|| ApiError::bad_request("MISSING_FIELD", "ids query parameter is required"))?;
    // Invalid ids are skipped like ids of unknown users.
    let ids: Vec<UserId> = ids.split(',').filter_map(|id| id.trim().parse().ok()).collect();
    if ids.len() > MOST_IDS {
        return Err(ApiError::bad_request("TOO_MANY_IDS", format!("ids may name at most {MOST_IDS} users")));
    }
    Ok(json(to_text(&arena.engine.find_profiles(&ids).await?)))
}

/// Returns the profile of one user.
#[utoipa::path(get, path = "/api/users/{userId}", tag = "users",
    params(("userId" = String, Path, description = "The user's id.", example = "ada")),
    responses((status = 200, body = UserProfile, description = "The profile."),
        (status = 404, description = "`USER_NOT_FOUND`: the user is unknown.")))]
pub(crate) async fn find_user(State(arena): State<Arena>, request: Get) -> ApiResult {
    let id: UserId = request.param("userId").parse().map_err(|_| EngineError::UnknownUser)?;
    let profiles = arena.engine.find_profiles(std::slice::from_ref(&id)).await?;
    Ok(json(to_text(profiles.get(&id).ok_or(EngineError::UnknownUser)?)))
}

/// Lists a user's ended sessions, newest first.
#[utoipa::path(get, path = "/api/users/{userId}/challenges", tag = "users",
    params(("userId" = String, Path, description = "The user's id. For an unknown id the page is empty.", example = "ada"), Paging),
    responses((status = 200, body = SessionPage, description = "A page, of 50 by default.")))]
pub(crate) async fn list_played(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(50);
    let page = match request.param("userId").parse() {
        Ok(id) => arena.engine.list_played(&id, offset, limit).await?,
        Err(_) => None,
    };
    page_of(&arena, page.unwrap_or(Page { items: Vec::new(), total: 0 }), limit, offset).await
}

/// A user's scores.
#[derive(Serialize, Default, ToSchema)]
struct Scores {
    /// The entry on the global board; null if there is none.
    #[schema(required = true)]
    global: Option<Standing>,
    /// Entries by challenge type and strategy.
    #[schema(value_type = BTreeMap<String, BTreeMap<String, Standing>>)]
    challenges: BTreeMap<String, BTreeMap<&'static str, Standing>>,
}

/// A user's entry on one board.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Standing {
    player_id: UserId,
    #[serde(flatten)]
    entry: ScoringEntry,
}

/// Returns a user's entries on the main boards, which count games with this arena's current options, rules and prompts.
#[utoipa::path(get, path = "/api/users/{userId}/scores", tag = "users",
    params(("userId" = String, Path, description = "The user's id. For an unknown id the scores are empty.", example = "ada")),
    responses((status = 200, body = Scores, description = "The user's scores.")))]
pub(crate) async fn find_scores(State(arena): State<Arena>, request: Get) -> ApiResult {
    // An invalid id gets the response of an unknown user.
    let Ok(id) = request.param("userId").parse::<UserId>() else { return Ok(json(to_text(&Scores::default()))) };
    let standings = arena.engine.find_standings(&id).await?.unwrap_or_default();
    let scoring = arena.engine.scoring();
    let standing =
        |board: &Board| scoring.entry(board, &standings).map(|entry| Standing { player_id: id.clone(), entry });
    let of_type = |challenge: &String| -> BTreeMap<&'static str, Standing> {
        let boards = arena.engine.main_boards(challenge).into_iter();
        let by_strategy = boards.filter_map(|board| match &board {
            Board::Of { strategy, .. } => Some((*strategy, standing(&board)?)),
            Board::Global(_) => None,
        });
        by_strategy.collect()
    };
    let hosted = arena.engine.challenges();
    let challenges = hosted.keys().map(|challenge| (challenge.clone(), of_type(challenge)));
    Ok(json(to_text(&Scores {
        global: standing(&arena.engine.global_board()),
        challenges: challenges.filter(|(_, boards)| !boards.is_empty()).collect(),
    })))
}

/// A change of a user's profile. A missing field leaves the value unchanged; an empty string removes it.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ProfileUpdate)]
struct ProfileUpdateRequest {
    /// The display name.
    #[schema(value_type = String, required = false, max_length = 200, example = "Ada")]
    username: Option<ProfileText>,
    /// The player's model, such as the name of a language model.
    #[schema(value_type = String, required = false, max_length = 200)]
    model: Option<ProfileText>,
    /// Without `--auth`: the user's id. Default: `from`.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, example = "ada")]
    user_id: ByName<Is<UserId>>,
    /// With `--auth`: the user's Ed25519 public key as SPKI in DER (44 bytes), in hexadecimal digits. Its SHA-256 is the user id.
    #[schema(value_type = Option<String>, example = "302a300506032b6570032100…")]
    public_key: ByKey<String>,
    /// With `--auth`: the signature over `arena:v1:user-update:{timestamp}:{hash}`, in hexadecimal digits; `hash` is the SHA-256 of
    /// the canonical JSON of `username` and `model`, in hexadecimal digits. The text without `:{hash}` is accepted too.
    #[schema(value_type = Option<String>, example = "5f0a…")]
    signature: ByKey<String>,
    /// With `--auth`: the time of signing, at most five minutes from the server's clock.
    #[schema(value_type = Option<i64>, example = 1_700_000_000_000_i64)]
    timestamp: ByKey<i64>,
}

/// Changes a user's profile.
#[utoipa::path(post, path = "/api/users", tag = "users", params(Sender, OnceKey), request_body = ProfileUpdateRequest,
    responses((status = 200, body = UserProfile, description = "The changed profile."),
        (status = 401, description = "
            `INVALID_SIGNATURE`: the signature doesn't match the key and the text.
            `TIMESTAMP_EXPIRED`: the timestamp is too far from the server's clock.
            `SIGNATURE_USED`: the signature has changed the profile before."),
        (status = 503, description = "`SIGNATURES_BUSY`: the queue for signature checks is full.")))]
pub(crate) async fn change_profile(State(arena): State<Arena>, request: Post) -> ApiResult {
    let ProfileUpdateRequest { username, model, user_id, public_key, signature, timestamp } = request.body()?;
    for (field, text) in [("username", &username), ("model", &model)] {
        text.iter().try_for_each(|text| check_visible(field, text.as_str()))?;
    }
    let change = ProfileChange { username, model };
    let (change, once) = match &arena.auth {
        None => {
            let user = match user_id.0 {
                Some(Is(user)) => user,
                None => {
                    let user = request.claimed().ok_or_else(|| ApiError::missing("userId"))?;
                    let invalid = |error| ApiError::bad_request("INVALID_FIELD", format!("userId is {error}"));
                    user.parse().map_err(invalid)?
                }
            };
            check_visible("userId", user.as_str())?;
            let once = request.once_about(&user.to_string());
            (ChangeProfile { user, change, signature: None }, once)
        }
        Some(auth) => {
            let proof = parse_proof(&public_key, &signature, &timestamp, arena.engine.now())?;
            check_signature(auth, &proof, &change).await?;
            let user = proof.public_key().user_id();
            let signature = Some(proof.fingerprint());
            (ChangeProfile { user, change, signature }, request.once(proof.public_key().as_hex()))
        }
    };
    let respond = Box::new(|profile: &UserProfile| to_text(profile));
    Ok(json(arena.engine.change_profile(change, once, respond).await?))
}

async fn check_signature(auth: &Auth, proof: &Proof, change: &ProfileChange) -> ApiResult<()> {
    let (checked, change) = (proof.clone(), change.clone());
    auth.verifier
        .run(move || {
            let username = change.username.as_ref().map(ProfileText::as_str);
            let model = change.model.as_ref().map(ProfileText::as_str);
            checked.verify_profile_update(&ProfileUpdate { username, model })
        })
        .await??;
    Ok(())
}
