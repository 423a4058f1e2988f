//! `/api/users…`: who plays here, what they say of themselves, what they played and how they stand.

use std::collections::BTreeMap;

use arena_engine::ChangeProfile;
use arena_identity::{ProfileUpdate, Proof};
use arena_model::{
    Board, ProfileChange, ProfileText, ScoringEntry, Session, SessionView, UserId, UserProfile, Viewer, view,
};
use arena_store::Page;
use axum::extract::State;
use serde::Serialize;

use crate::answer::{json, to_text, with_total};
use crate::arena::Arena;
use crate::auth::{Auth, parse_proof};
use crate::error::{ApiError, ApiResult};
use crate::request::{Fields, Get, Post};

/// Most users that one request may name.
const MOST_IDS: usize = 100;

pub(crate) async fn list_users(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query.page(100);
    let page = arena.engine.list_users(offset, limit).await?;
    Ok(with_total(json(to_text(&page.items)), page.total))
}

pub(crate) async fn find_users(State(arena): State<Arena>, request: Get) -> ApiResult {
    let ids = request.query.get("ids").filter(|ids| !ids.is_empty());
    let ids = ids.ok_or_else(|| ApiError::bad_request("MISSING_FIELD", "ids query parameter is required"))?;
    // What can't be an id is nobody's.
    let ids: Vec<UserId> = ids.split(',').filter_map(|id| id.trim().parse().ok()).collect();
    if ids.len() > MOST_IDS {
        return Err(ApiError::bad_request("TOO_MANY_IDS", format!("ids may name at most {MOST_IDS} users")));
    }
    Ok(json(to_text(&arena.engine.find_profiles(&ids).await?)))
}

pub(crate) async fn find_user(State(arena): State<Arena>, request: Get) -> ApiResult {
    let unknown = || ApiError::not_found("USER_NOT_FOUND", "User not found");
    let id: UserId = request.param("userId").parse().map_err(|_| unknown())?;
    let profiles = arena.engine.find_profiles(std::slice::from_ref(&id)).await?;
    Ok(json(to_text(profiles.get(&id).ok_or_else(unknown)?)))
}

#[derive(Serialize)]
struct Sessions<'s> {
    challenges: Vec<SessionView<'s>>,
    total: u64,
    limit: usize,
    offset: u64,
    profiles: BTreeMap<UserId, UserProfile>,
}

pub(crate) async fn list_played(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query.page(50);
    let page = match request.param("userId").parse() {
        Ok(id) => arena.engine.list_played(&id, offset, limit).await?,
        Err(_) => None,
    };
    let page: Page<Session> = page.unwrap_or(Page { items: Vec::new(), total: 0 });
    Ok(json(to_text(&Sessions {
        challenges: page.items.iter().map(|session| view(session, Viewer::Nobody)).collect(),
        total: page.total,
        limit,
        offset,
        profiles: arena.engine.profiles(&page.items).await?,
    })))
}

#[derive(Serialize, Default)]
struct Scores {
    global: Option<Standing>,
    challenges: BTreeMap<String, BTreeMap<&'static str, Standing>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    player_id: UserId,
    #[serde(flatten)]
    entry: ScoringEntry,
}

pub(crate) async fn find_scores(State(arena): State<Arena>, request: Get) -> ApiResult {
    // A user that nobody has heard of has no scores.
    let Ok(id) = request.param("userId").parse::<UserId>() else { return Ok(json(to_text(&Scores::default()))) };
    let standings = arena.engine.find_standings(&id).await?.unwrap_or_default();
    let scoring = arena.engine.scoring();
    let standing =
        |board: &Board| scoring.entry(board, &standings).map(|entry| Standing { player_id: id.clone(), entry });
    let of_type = |challenge: &String| -> BTreeMap<&'static str, Standing> {
        let boards = scoring.strategies(challenge).map(|strategy| strategy.name());
        boards
            .filter_map(|strategy| Some((strategy, standing(&Board::Of { challenge: challenge.clone(), strategy })?)))
            .collect()
    };
    let challenges = standings.keys().map(|challenge| (challenge.clone(), of_type(challenge)));
    Ok(json(to_text(&Scores {
        global: standing(&Board::Global),
        challenges: challenges.filter(|(_, boards)| !boards.is_empty()).collect(),
    })))
}

pub(crate) async fn change_profile(State(arena): State<Arena>, request: Post) -> ApiResult {
    let fields = request.fields()?;
    let change = ProfileChange { username: text(fields, "username")?, model: text(fields, "model")? };
    let (change, once) = match &arena.auth {
        None => {
            let user = claimed_user(&request, fields)?;
            (ChangeProfile { user, change, signature: None }, request.once_for_anybody(&arena)?)
        }
        Some(auth) => {
            let proof = signed(&arena, auth, fields, &change).await?;
            let user = proof.public_key().user_id();
            let signature = Some(proof.fingerprint());
            (ChangeProfile { user, change, signature }, request.once(proof.public_key().as_hex()))
        }
    };
    let respond = Box::new(|profile: &UserProfile| to_text(profile));
    Ok(json(arena.engine.change_profile(change, once, respond).await?))
}

/// Standalone mode: the user is who `userId` says, else who `from` says.
fn claimed_user(request: &Post, fields: &Fields) -> ApiResult<UserId> {
    let user = match fields.find_text("userId")? {
        Some(user) => user,
        None => request.claimed()?.ok_or_else(|| ApiError::missing("userId"))?,
    };
    user.parse().map_err(|error| ApiError::bad_request("INVALID_FIELD", format!("userId is {error}")))
}

/// Authentication mode: the user is who holds the key that signed the change.
async fn signed(arena: &Arena, auth: &Auth, fields: &Fields, change: &ProfileChange) -> ApiResult<Proof> {
    let proof = parse_proof(fields, arena.engine.now())?;
    let (checked, change) = (proof.clone(), change.clone());
    auth.verifier
        .run(move || {
            let username = change.username.as_ref().map(ProfileText::as_str);
            let model = change.model.as_ref().map(ProfileText::as_str);
            checked.verify_profile_update(&ProfileUpdate { username, model })
        })
        .await??;
    Ok(proof)
}

fn text(fields: &Fields, name: &str) -> ApiResult<Option<ProfileText>> {
    let parsed = fields.find_text(name)?.map(str::parse).transpose();
    parsed.map_err(|error: arena_model::ProfileTextError| {
        ApiError::bad_request("INVALID_FIELD", format!("{name} must be {error}"))
    })
}
