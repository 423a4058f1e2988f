//! `/api/agents`: agents for tournaments on this server. No response contains their files or URLs.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::{json as answer, json_with, to_text};
use crate::arena::Arena;
use crate::auth::{Authority, unauthenticated};
use crate::error::{ApiError, ApiResult};
use crate::openapi::{CreationKey, Paging};
use crate::request::{Filled, Get, Input, Upload, field_settings, invalid_json, is_json, parse_object};
use crate::tournaments::{
    AgentFacts, AgentId, AgentSource, Creators, Home, LadderEntry, NewAgent, TournamentRefusal, TournamentSettings,
    Tournaments, Uploaders, find_game,
};

/// An agent for tournaments.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Agent)]
pub(crate) struct AgentView {
    pub(crate) id: AgentId,
    /// The agent's name; not unique.
    pub(crate) name: String,
    /// The version in the agent's manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The way in which the server reaches the agent.
    kind: AgentKind,
    /// SHA-256 of the upload, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// Total size of the agent's unpacked files, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Number of the agent's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<usize>,
    /// The game on whose ladder the agent plays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "snake")]
    pub(crate) ladder: Option<String>,
    /// Time of creation, in milliseconds since 1970.
    pub(crate) created_at: i64,
}

/// The way in which the server reaches an agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AgentKind {
    /// Uploaded files, run on this server.
    Files,
    /// A remote server.
    Url,
}

impl AgentView {
    pub(crate) fn of(facts: &AgentFacts) -> AgentView {
        let (kind, sha256, bytes, files) = match &facts.home {
            // The owner may keep the URL secret.
            Home::Url(_) => (AgentKind::Url, None, None, None),
            Home::Files { sha256, bytes, files, .. } => (AgentKind::Files, Some(sha256), Some(*bytes), Some(*files)),
        };
        AgentView {
            id: facts.id,
            name: facts.name.clone(),
            version: facts.version.clone(),
            kind,
            sha256: sha256.cloned(),
            bytes,
            files,
            ladder: facts.ladder.as_ref().map(|entry| entry.game.clone()),
            created_at: facts.created_at,
        }
    }
}

/// A new agent with its owner's key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewAgent)]
struct Added {
    #[serde(flatten)]
    agent: AgentView,
    /// The owner's key, which authorizes the owner as a bearer token. Only this response contains it.
    owner_key: String,
}

/// A page of agents.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentPage)]
struct AgentPage {
    agents: Vec<AgentView>,
    /// Number of agents on all pages.
    total: usize,
    /// Maximum number of agents per page.
    #[schema(minimum = 1, maximum = 100)]
    limit: usize,
    /// Number of agents skipped.
    offset: u64,
}

/// An agent on a remote server.
#[derive(Deserialize, ToSchema)]
#[schema(as = AgentByUrl)]
struct ByUrl {
    /// The URL to which the arena posts messages.
    #[schema(value_type = String, min_length = 8, max_length = 2000, example = "https://agent.example/play")]
    url: Filled,
    /// The agent's name. Default: host and path of the URL.
    #[schema(required = false, min_length = 1, max_length = 64)]
    name: Option<String>,
}

/// Names for an uploaded agent.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Names {
    /// The agent's name. Default: the name in the agent's manifest, or of its folder or file.
    #[param(min_length = 1, max_length = 64, example = "bot")]
    name: Option<String>,
    /// The name of a single uploaded file. The extension selects the interpreter.
    #[param(example = "agent.py")]
    filename: Option<String>,
    /// The game whose ladder the agent joins. The agent is checked first; the answer may take some seconds.
    #[param(example = "snake")]
    game: Option<String>,
    /// The id of an agent on a ladder, of which this agent is the next version, with the same name. Needs the owner's key
    /// of that agent.
    #[param(value_type = Option<String>)]
    replaces: Option<String>,
}

impl Names {
    /// Finds the agent that `replaces` names.
    fn replaced(&self, tournaments: &Tournaments) -> ApiResult<Option<Arc<AgentFacts>>> {
        let Some(text) = &self.replaces else { return Ok(None) };
        let unknown = || ApiError::bad_request("AGENT_NOT_FOUND", format!("replaces: agent {text} not found"));
        let id = text.parse().map_err(|_| unknown())?;
        tournaments.find_agent(id).map(Some).ok_or_else(unknown)
    }

    /// Returns the ladder that the agent joins, if any. `replaced` is the agent that it replaces.
    fn ladder(&self, replaced: Option<&AgentFacts>) -> ApiResult<Option<LadderEntry>> {
        let game = self.game.as_deref().map(|name| find_game(name).map(|game| game.name.to_owned())).transpose()?;
        let Some(replaced) = replaced else { return Ok(game.map(|game| LadderEntry { game, replaces: None })) };
        match (&replaced.ladder, game) {
            (Some(entry), game) if game.as_ref().is_none_or(|game| *game == entry.game) => {
                Ok(Some(LadderEntry { game: entry.game.clone(), replaces: Some(replaced.id) }))
            }
            (Some(entry), _) => Err(ApiError::bad_request(
                "INVALID_FIELD",
                format!("replaces names an agent on the ladder of {}; leave game out", entry.game),
            )),
            (None, _) => Err(ApiError::bad_request(
                "INVALID_FIELD",
                format!("replaces: the agent {} is on no ladder; give game instead", replaced.name),
            )),
        }
    }
}

/// Adds an agent for tournaments.
///
/// The body is a tar.gz of a folder with a file `agent`, `agent.py` or `agent.js`, or a single file with the name
/// `filename`, or JSON with the URL of a remote agent. Uploaded agents run only in a sandbox without network.
///
/// With `game`, the agent joins the ladder of the game, after a check that it plays. It stays until it is removed.
#[utoipa::path(post, path = "/api/agents", tag = "tournaments", security((), ("administratorToken" = []), ("ownerKey" = [])),
    params(Names, CreationKey),
    request_body(content((ByUrl = "application/json"), (String = "application/octet-stream"))),
    responses((status = 201, body = Added, description = "The agent with its owner's key."),
        (status = 400, description = "
            `INVALID_AGENT`: the upload is not an agent, doesn't play the game of the ladder, or the name is invalid.
            `AGENT_NOT_FOUND`: the agent to replace doesn't exist.
            `UNKNOWN_GAME`: the game doesn't exist.
            `INVALID_URL`: the URL is invalid or not allowed on this server."),
        (status = 401, description = "`AUTHENTICATION_REQUIRED`: this server requires the administrator's token here."),
        (status = 403, description = "
            `LADDERS_OFF`: ladders are disabled on this server.
            `UPLOADS_OFF`: uploads are disabled on this server.
            `URLS_OFF`: remote agents are disabled on this server."),
        (status = 409, description = "
            `NO_SANDBOX`: the system can't sandbox agents.
            `TOO_MANY_AGENTS`: the server's limit of agents is reached."),
        (status = 429, description = "`TOO_MANY_OWN_AGENTS`: too many agents of this address are stored."),
        (status = 503, description = "`UPLOADS_BUSY`: too many other uploads are in progress."),
        (status = 507, description = "`DISK_ALMOST_FULL`: the server's disk is almost full; games that have begun go on.")))]
pub(crate) async fn add_agent(State(arena): State<Arena>, request: Upload) -> ApiResult {
    let tournaments = tournaments_of(&arena)?;
    let settings = tournaments.settings();
    let is_url = is_json(&request.headers);
    let may_anyone = may_anyone_add(settings, is_url)?;
    let names = request.query::<Names>()?;
    let replaced = names.replaced(tournaments)?;
    let owns = |key: &str| replaced.as_ref().is_some_and(|facts| tournaments.owns_agent(key, facts.id));
    let by = Authority::of(&arena, &request.headers, request.address, owns)?;
    // An owner may upload the next version on every server that has uploads.
    if by == Authority::Anonymous && (!may_anyone || replaced.is_some()) {
        return Err(unauthenticated());
    }
    let is_administrator = matches!(by, Authority::Administrator(_));
    if !is_administrator {
        request.check_unguessable()?;
    }
    let ladder = names.ladder(replaced.as_deref())?;
    if ladder.is_some() && !tournaments.has_ladders() {
        return Err(TournamentRefusal::LaddersOff.into());
    }
    arena.admit_new(request.address, None).await?;
    let Names { name, filename: file_name, .. } = names;
    let limits = &arena.settings.limits;
    let (limit, limited_by) = match is_url {
        true => (limits.body_bytes, "limits.body_bytes"),
        false => (settings.upload_bytes, "tournaments.upload_bytes"),
    };
    let place = tournaments.upload_place()?;
    let address = request.address;
    let maker = arena.ledger.limited(address).filter(|_| !is_administrator);
    // The keys of owners are those of their addresses, since an agent's next version gets another key.
    let scope = if is_administrator { by } else { Authority::Anonymous }.scope(address);
    let (body, once) = request.read(limit, limited_by, limits, &scope).await?;
    if is_url {
        arena.rates.admit_body(address, body.len())?;
    }
    arena.ledger.charge(address, body.len() as u64);
    let (url, name) = if is_url { read_by_url(&arena, &body, name)? } else { (None, name) };
    let name = replaced.as_ref().map(|facts| facts.name.clone()).or(name);
    by.record_audit(&arena, "add agent", json!({ "name": name, "bytes": body.len() })).await?;
    let added = tournaments.run_blocking(move |tournaments| {
        // The permit is held until the work is done, even if the caller disconnects.
        let _place = place;
        let source = match &url {
            Some(url) => AgentSource::Url(url),
            None => AgentSource::Files { body: &body, file_name: file_name.as_deref() },
        };
        tournaments.add_agent(NewAgent { source, name: name.as_deref(), ladder }, once, maker)
    });
    let facts = added.await?;
    let owner_key = tournaments.key_of_agent(facts.id);
    Ok(json_with(StatusCode::CREATED, to_text(&Added { agent: AgentView::of(&facts), owner_key })))
}

/// Returns true if callers without credentials may add an agent. `is_url` is true for a remote agent.
///
/// # Errors
/// If the server accepts no such agents.
fn may_anyone_add(settings: &TournamentSettings, is_url: bool) -> Result<bool, TournamentRefusal> {
    match (is_url, settings.upload) {
        // Callers who may create tournaments may also add remote agents.
        (true, _) if !settings.urls => Err(TournamentRefusal::UrlsOff),
        (true, _) => Ok(settings.create == Creators::Anyone),
        (false, Uploaders::Nobody) => Err(TournamentRefusal::UploadsOff),
        (false, uploaders) => Ok(uploaders == Uploaders::Anyone),
    }
}

/// Parses the body of a remote agent. Returns its URL, and its name from the body or the query.
fn read_by_url(arena: &Arena, body: &[u8], name: Option<String>) -> ApiResult<(Option<String>, Option<String>)> {
    let object = parse_object(body)?.ok_or_else(invalid_json)?;
    let ByUrl { url: Filled(url), name: named } = Input::Json(&object).read(field_settings(arena))?;
    if named.is_some() && name.is_some() {
        let text = "name is given twice, in the query and in the body; give it once";
        return Err(ApiError::bad_request("INVALID_FIELD", text));
    }
    Ok((Some(url), named.or(name)))
}

/// Lists agents, newest first.
#[utoipa::path(get, path = "/api/agents", tag = "tournaments", params(Paging),
    responses((status = 200, body = AgentPage, description = "A page, of 50 by default.")))]
pub(crate) async fn list_agents(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(50);
    let (agents, total) = tournaments_of(&arena)?.list_agents(offset, limit);
    let agents = agents.iter().map(|facts| AgentView::of(facts)).collect();
    Ok(answer(to_text(&AgentPage { agents, total, limit, offset })))
}

/// Returns one agent.
#[utoipa::path(get, path = "/api/agents/{id}", tag = "tournaments",
    params(("id" = String, Path, description = "The agent's id.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = AgentView, description = "The agent's public data."),
        (status = 404, description = "`AGENT_NOT_FOUND`: the agent doesn't exist.")))]
pub(crate) async fn find_agent(State(arena): State<Arena>, request: Get) -> ApiResult {
    let id = id_of(request.param("id"))?;
    let facts = tournaments_of(&arena)?.find_agent(id).ok_or_else(|| TournamentRefusal::NoAgent(id.to_string()))?;
    Ok(answer(to_text(&AgentView::of(&facts))))
}

/// The result of a removal.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "removed": true }), as = RemovedThing)]
pub(super) struct Removal {
    removed: bool,
}

impl Removal {
    pub(super) const TRUE: Removal = Removal { removed: true };
}

/// Removes an agent with its files. It leaves its ladder.
#[utoipa::path(delete, path = "/api/agents/{id}", tag = "tournaments", security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The agent's id.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = Removal, description = "The agent was removed."),
        (status = 404, description = "`AGENT_NOT_FOUND`: the agent doesn't exist."),
        (status = 409, description = "`AGENT_IN_USE`: the agent plays in an unfinished tournament.")))]
pub(crate) async fn remove_agent(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (tournaments, id) = (tournaments_of(&arena)?, id_of(request.param("id")));
    let owns = |key: &str| id.as_ref().is_ok_and(|id| tournaments.owns_agent(key, *id));
    let by = Authority::of(&arena, &request.headers, request.address, owns)?.require_credentials()?;
    let id = id?;
    by.record_audit(&arena, "remove agent", json!({ "agent": id })).await?;
    tournaments.run_blocking(move |tournaments| tournaments.remove_agent(id)).await?;
    Ok(answer(to_text(&Removal::TRUE)))
}

/// Returns the state of agents and tournaments.
///
/// # Errors
/// 404 if tournaments are disabled. The routes don't exist then either.
pub(crate) fn tournaments_of(arena: &Arena) -> ApiResult<&Tournaments> {
    let none = || ApiError::not_found("NOT_FOUND", "tournaments are disabled on this server");
    arena.tournaments.as_ref().ok_or_else(none)
}

pub(crate) fn id_of(text: &str) -> ApiResult<AgentId> {
    text.parse().map_err(|_| TournamentRefusal::NoAgent(text.to_owned()).into())
}
