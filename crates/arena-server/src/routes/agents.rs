//! `/api/agents`: bots that take part in tournaments here. What they are made of is never told.

use axum::extract::State;
use axum::http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::{json as answer, json_with, to_text};
use crate::arena::Arena;
use crate::authority::Authority;
use crate::error::{ApiError, ApiResult};
use crate::fields::{Filled, Said, Terms};
use crate::identity::unauthenticated;
use crate::openapi::{CreationKey, Paging};
use crate::request::{Get, Upload, invalid_json, parse_object};
use crate::tournaments::{AgentFacts, AgentId, Creators, Home, Refusal, Source, Tournaments, Uploaders};

/// A bot.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Agent)]
pub(crate) struct AgentView {
    pub(crate) id: AgentId,
    /// Several may be called the same.
    pub(crate) name: String,
    /// What its manifest says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// Whether it is run here or is somebody's server.
    kind: Kind,
    /// Of what was uploaded, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// Of its files together, unpacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// How many it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<usize>,
    /// In milliseconds since 1970.
    pub(crate) created_at: i64,
}

/// How a bot is reached.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = AgentKind)]
pub(crate) enum Kind {
    /// It is run here.
    Files,
    /// It is somebody's server.
    Url,
}

impl AgentView {
    pub(crate) fn of(facts: &AgentFacts) -> AgentView {
        let (kind, sha256, bytes, files) = match &facts.home {
            // Where it is may be its owner's secret.
            Home::Url(_) => (Kind::Url, None, None, None),
            Home::Files { sha256, bytes, files, .. } => (Kind::Files, Some(sha256), Some(*bytes), Some(*files)),
        };
        AgentView {
            id: facts.id,
            name: facts.name.clone(),
            version: facts.version.clone(),
            kind,
            sha256: sha256.cloned(),
            bytes,
            files,
            created_at: facts.created_at,
        }
    }
}

/// A new bot, and what its owner shows from now on.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewAgent)]
struct Added {
    #[serde(flatten)]
    agent: AgentView,
    /// Told here only: as bearer token it shows who owns the bot.
    owner_key: String,
}

/// A page of bots.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentPage)]
struct AgentPage {
    agents: Vec<AgentView>,
    /// Bots on all pages.
    total: usize,
    /// Most bots on a page.
    #[schema(minimum = 1, maximum = 100)]
    limit: usize,
    /// Bots passed over.
    offset: u64,
}

/// A bot that is somebody's server.
#[derive(Deserialize, ToSchema)]
#[schema(as = AgentByUrl)]
struct ByUrl {
    /// Where messages are posted to.
    #[schema(value_type = String, min_length = 8, max_length = 2000, example = "https://agent.example/play")]
    url: Filled,
    /// What it is called; its host and path, if nothing is said.
    #[schema(required = false, min_length = 1, max_length = 64)]
    name: Option<String>,
}

/// What an uploaded bot is called.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Names {
    /// What the bot is called; as its manifest, folder or file, if nothing is said.
    #[param(min_length = 1, max_length = 64, example = "bot")]
    name: Option<String>,
    /// What a single file is called. Its ending says what runs it.
    #[param(example = "agent.py")]
    filename: Option<String>,
}

/// Keep a bot, for it to take part in tournaments.
///
/// The body is a tar.gz of a folder with a file `agent`, `agent.py` or `agent.js` in it, or a single file that is called
/// `filename`; or, as JSON, where a server is. It is run in a sandbox without network, or not at all.
#[utoipa::path(post, path = "/api/agents", tag = "tournaments", security((), ("administratorToken" = [])),
    params(Names, CreationKey),
    request_body(content((ByUrl = "application/json"), (String = "application/octet-stream"))),
    responses((status = 201, body = Added, description = "The bot, and its owner's key."),
        (status = 400, description = "
            `INVALID_AGENT`: what was sent is no bot, or can't be called so.
            `INVALID_URL`: it isn't an address that is asked here."),
        (status = 401, description = "`AUTHENTICATION_REQUIRED`: what is shown isn't the administrator's token, and only that opens this here."),
        (status = 403, description = "
            `UPLOADS_OFF`: nobody may upload bots here.
            `URLS_OFF`: bots may not be servers here."),
        (status = 409, description = "
            `NO_SANDBOX`: the system can't confine bots.
            `TOO_MANY_AGENTS`: no more can be kept."),
        (status = 503, description = "`UPLOADS_BUSY`: others upload at this moment.")))]
pub(crate) async fn add_agent(State(arena): State<Arena>, request: Upload) -> ApiResult {
    let tournaments = played(&arena)?;
    let settings = tournaments.settings();
    let is_url = request.headers.get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.to_str()
            .is_ok_and(|kind| kind.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case("application/json"))
    });
    let may_anyone = match (is_url, settings.upload) {
        // Whoever may create tournaments may say between whom.
        (true, _) if !settings.urls => return Err(Refusal::UrlsOff.into()),
        (true, _) => settings.create == Creators::Anyone,
        (false, Uploaders::Nobody) => return Err(Refusal::UploadsOff.into()),
        (false, uploaders) => uploaders == Uploaders::Anyone,
    };
    let by = Authority::of(&arena, &request.headers, request.address, |_| false)?;
    if by == Authority::Nobody && !may_anyone {
        return Err(unauthenticated());
    }
    if by == Authority::Nobody {
        request.check_unguessable()?;
    }
    let Names { name, filename: file_name } = request.query()?;
    let limits = &arena.settings.limits;
    let (limit, limited_by) = match is_url {
        true => (limits.body_bytes, "limits.body_bytes"),
        false => (settings.upload_bytes, "tournaments.upload_bytes"),
    };
    let place = tournaments.upload_place()?;
    let scope = by.scope(request.address);
    let (body, once) = request.read(limit, limited_by, limits, &scope).await?;
    let (url, name) = match is_url {
        true => {
            let object = parse_object(&body)?.ok_or_else(invalid_json)?;
            let ByUrl { url: Filled(url), name: named } = Said::Json(&object).read(Terms::of(&arena))?;
            if named.is_some() && name.is_some() {
                return Err(ApiError::bad_request("INVALID_FIELD", "name is said twice: in the query and in the body"));
            }
            (Some(url), named.or(name))
        }
        false => (None, name),
    };
    by.take_down(&arena, "add agent", json!({ "name": name, "bytes": body.len() })).await?;
    let added = tournaments.away(move |tournaments| {
        // Taken until all is done, also if the caller hangs up.
        let _place = place;
        let source = match &url {
            Some(url) => Source::Url(url),
            None => Source::Files { body: &body, file_name: file_name.as_deref() },
        };
        tournaments.add_agent(&source, name.as_deref(), once)
    });
    let facts = added.await?;
    let owner_key = tournaments.key_of_agent(facts.id);
    Ok(json_with(StatusCode::CREATED, to_text(&Added { agent: AgentView::of(&facts), owner_key })))
}

/// Bots, newest first.
#[utoipa::path(get, path = "/api/agents", tag = "tournaments", params(Paging),
    responses((status = 200, body = AgentPage, description = "A page of 50, unless `limit` says otherwise.")))]
pub(crate) async fn list_agents(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(50);
    let (agents, total) = played(&arena)?.list_agents(offset, limit);
    let agents = agents.iter().map(|facts| AgentView::of(facts)).collect();
    Ok(answer(to_text(&AgentPage { agents, total, limit, offset })))
}

/// One bot.
#[utoipa::path(get, path = "/api/agents/{id}", tag = "tournaments",
    params(("id" = String, Path, description = "The bot.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = AgentView, description = "What is told of it."),
        (status = 404, description = "`AGENT_NOT_FOUND`: there is no such bot.")))]
pub(crate) async fn find_agent(State(arena): State<Arena>, request: Get) -> ApiResult {
    let id = id_of(request.param("id"))?;
    let facts = played(&arena)?.find_agent(id).ok_or_else(|| Refusal::NoAgent(id.to_string()))?;
    Ok(answer(to_text(&AgentView::of(&facts))))
}

/// It is gone.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "removed": true }), as = RemovedThing)]
pub(super) struct Removed {
    removed: bool,
}

impl Removed {
    pub(super) const TRUE: Removed = Removed { removed: true };
}

/// Remove a bot with its files.
#[utoipa::path(delete, path = "/api/agents/{id}", tag = "tournaments", security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The bot.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = Removed, description = "It is gone."),
        (status = 404, description = "`AGENT_NOT_FOUND`: there is no such bot."),
        (status = 409, description = "`AGENT_IN_USE`: it takes part in a tournament that isn't over.")))]
pub(crate) async fn remove_agent(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (tournaments, id) = (played(&arena)?, id_of(request.param("id")));
    let owns = |key: &str| id.as_ref().is_ok_and(|id| tournaments.owns_agent(key, *id));
    let by = Authority::of(&arena, &request.headers, request.address, owns)?.is_somebody()?;
    let id = id?;
    by.take_down(&arena, "remove agent", json!({ "agent": id })).await?;
    tournaments.away(move |tournaments| tournaments.remove_agent(id)).await?;
    Ok(answer(to_text(&Removed::TRUE)))
}

/// The agents and tournaments of this server. Their routes are there only if there are some.
pub(super) fn played(arena: &Arena) -> ApiResult<&Tournaments> {
    let none = || ApiError::not_found("NOT_FOUND", "no tournaments are played on this server");
    arena.tournaments.as_ref().ok_or_else(none)
}

pub(crate) fn id_of(text: &str) -> ApiResult<AgentId> {
    text.parse().map_err(|_| Refusal::NoAgent("of this id".to_owned()).into())
}
