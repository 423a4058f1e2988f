//! `/api/tournaments`: tournaments of agents and their standings.

pub(crate) mod matches;

use std::collections::BTreeMap;
use std::net::IpAddr;

use arena_engine::Once;
use arena_model::{Seed, TimeLimits};
use arena_report::{EXPORTERS, Exporter};
use arena_runner::read_pgn;
use arena_tournament::{Format, GameLine, Record};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use utoipa::openapi::{ContentBuilder, ObjectBuilder, RefOr, Response, ResponseBuilder, Schema, Type};
use utoipa::{IntoResponses, ToSchema};

use super::agents::{Removal, tournaments_of};
use super::games::LimitsView;
use crate::answer::{json as answer, json_with, to_text, with_kind};
use crate::arena::Arena;
use crate::auth::{Authority, unauthenticated};
use crate::error::{ApiError, ApiResult};
use crate::openapi::{CreationKey, Paging};
use crate::request::{Filled, Get, Lenient, Post, Whole};
use crate::tournaments::{
    AgentId, Creators, Ending, MatchSource, NewTournament, TournamentId, TournamentRefusal, TournamentSettings,
    TournamentSnapshot, Tournaments, is_text_control,
};

/// Maximum length of a tournament's name, in characters.
const LONGEST_NAME: usize = 200;

/// Maximum time limit, in milliseconds.
const MAX_MS: u64 = 60 * 60 * 1000;

/// Maximum numbers of agents, seats and rounds in a request. They prevent large allocations before the limits of the
/// settings are checked.
const MANY: usize = 100_000;

/// A tournament.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Tournament)]
pub(crate) struct TournamentView {
    pub(crate) id: TournamentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) state: Stage,
    /// The reason for the failure; present if the state is `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[schema(example = "snake")]
    pub(crate) game: String,
    /// Options that differ from the defaults.
    #[schema(value_type = Object)]
    options: Map<String, Value>,
    limits: LimitsView,
    #[schema(value_type = String, example = "round-robin")]
    pub(crate) format: Format,
    pub(crate) rounds: usize,
    /// Number of seats in a game.
    seats: usize,
    /// True if each set of agents plays one game per seat rotation, all with the same seed.
    paired: bool,
    pub(crate) agents: Vec<EnteredView>,
    /// SHA-256 of the 32 bytes of `seed` followed by the 32 bytes of `seedNonce`, in hexadecimal digits.
    seed_commitment: String,
    /// The random seed, in hexadecimal digits; present once the tournament is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<String>,
    /// The nonce of the commitment, in hexadecimal digits; present once the tournament is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed_nonce: Option<String>,
    pub(crate) games_played: usize,
    /// Number of planned games, without tie-breaks of a knockout.
    pub(crate) games: usize,
    /// Number of games per minute since the start or resumption; present while the tournament is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) games_per_minute: Option<f64>,
    /// Estimated time left at this rate, in seconds; present while the tournament is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds_left: Option<f64>,
    /// Time of creation, in milliseconds since 1970.
    pub(crate) created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<i64>,
}

/// An agent in a tournament.
#[derive(Serialize, ToSchema)]
#[schema(as = EnteredAgent)]
pub(crate) struct EnteredView {
    pub(crate) id: AgentId,
    /// The agent's unique name in the tournament.
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// A tournament's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = TournamentState)]
pub(crate) enum Stage {
    /// The tournament waits for its turn.
    Queued,
    /// The tournament is being played.
    Running,
    /// All games are played.
    Complete,
    /// The tournament was stopped permanently.
    Stopped,
    /// An error ended the tournament.
    Failed,
}

impl Stage {
    /// Returns the state's name on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Queued => "queued",
            Stage::Running => "running",
            Stage::Complete => "complete",
            Stage::Stopped => "stopped",
            Stage::Failed => "failed",
        }
    }

    fn of(snapshot: &TournamentSnapshot) -> Stage {
        match snapshot.entry.facts.ended.as_ref().map(|ended| &ended.how) {
            Some(Ending::Complete) => Stage::Complete,
            Some(Ending::Stopped) => Stage::Stopped,
            Some(Ending::Failed(_)) => Stage::Failed,
            None if snapshot.is_running => Stage::Running,
            None => Stage::Queued,
        }
    }
}

impl TournamentView {
    /// True if no more games will be played.
    pub(crate) fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }

    pub(crate) fn of(snapshot: &TournamentSnapshot) -> TournamentView {
        let facts = &snapshot.entry.facts;
        let (games_played, games) = (snapshot.entry.games_played, snapshot.entry.games);
        let (seed, seed_nonce) = facts.revealed_seed().unzip();
        let tenths = |number: f64| (number * 10.0).round() / 10.0;
        TournamentView {
            id: facts.id,
            name: facts.name.clone(),
            state: Stage::of(snapshot),
            reason: facts.ended.as_ref().and_then(|ended| match &ended.how {
                Ending::Failed(reason) => Some(reason.clone()),
                Ending::Complete | Ending::Stopped => None,
            }),
            game: facts.game.clone(),
            options: facts.options.clone(),
            limits: facts.limits.into(),
            format: facts.format,
            rounds: facts.rounds,
            seats: facts.seats,
            paired: facts.paired,
            agents: (facts.agents.iter())
                .map(|agent| EnteredView { id: agent.id, name: agent.name.clone(), version: agent.version.clone() })
                .collect(),
            seed_commitment: facts.seed_commitment(),
            seed: seed.map(str::to_owned),
            seed_nonce: seed_nonce.map(str::to_owned),
            games_played,
            games,
            games_per_minute: snapshot.rate.map(|rate| tenths(rate * 60.0)),
            seconds_left: snapshot.rate.map(|rate| tenths(games.saturating_sub(games_played) as f64 / rate)),
            created_at: facts.created_at,
            ended_at: facts.ended.as_ref().map(|ended| ended.at),
        }
    }
}

/// A new tournament with its owner's key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewTournament)]
struct Created {
    #[serde(flatten)]
    tournament: TournamentView,
    /// The owner's key, which authorizes the owner as a bearer token. Only this response contains it.
    owner_key: String,
}

/// A page of tournaments.
#[derive(Serialize, ToSchema)]
struct TournamentPage {
    tournaments: Vec<TournamentView>,
    /// Number of tournaments on all pages.
    total: usize,
    /// Maximum number of tournaments per page.
    #[schema(minimum = 1, maximum = 100)]
    limit: usize,
    /// Number of tournaments skipped.
    offset: u64,
}

/// Settings of a new tournament. The defaults of missing fields depend on the game and the format.
#[derive(Deserialize, ToSchema)]
#[schema(as = TournamentRequest, example = json!({ "game": "snake", "agents": ["018f6b2e-0000-7000-8000-00000000abcd", "018f6b2e-0000-7000-8000-00000000abce"] }))]
struct TournamentRequest {
    #[schema(value_type = String)]
    game: Filled,
    #[schema(required = false, min_length = 1, max_length = 200)]
    name: Option<String>,
    /// Ids of the agents, all different. In a gauntlet the first one plays all others.
    agents: Vec<String>,
    #[schema(required = false, value_type = String, example = "swiss")]
    format: Option<Format>,
    /// Overrides of the game's options.
    #[schema(required = false, value_type = Object)]
    options: Option<Map<String, Value>>,
    #[schema(required = false)]
    limits: Option<LimitsRequest>,
    /// Number of pairings of each set of agents; in a Swiss tournament, the number of rounds.
    #[schema(required = false, value_type = u64, minimum = 1, maximum = 100_000)]
    rounds: Option<Count>,
    /// Number of seats in a game.
    #[schema(required = false, value_type = u64, minimum = 1, maximum = 100_000)]
    seats: Option<Count>,
    /// True if each set of agents plays one game per seat rotation, all with the same seed. Default: true.
    #[schema(required = false)]
    paired: Option<bool>,
    /// The random seed: an integer, or 64 hexadecimal digits. Default: random. Don't use a seed that is easy to guess:
    /// agents could confirm the guess by the matches published during the tournament.
    #[schema(required = false, value_type = u64)]
    seed: Option<Value>,
}

type Count = Whole<1, { MANY as u64 }>;

/// Time limits of agents, in milliseconds.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TimeLimitsRequest)]
struct LimitsRequest {
    /// Time per step.
    #[schema(required = false, value_type = u64, minimum = 1, maximum = 3_600_000)]
    step_ms: Option<Whole<1, MAX_MS>>,
    /// Time bank for the whole match, used when a step takes longer than the time per step.
    #[schema(required = false, value_type = u64, minimum = 0, maximum = 3_600_000)]
    bank_ms: Option<Whole<0, MAX_MS>>,
}

/// Creates a tournament.
///
/// The addresses that create tournaments have turns, and those of one address start in order. The seed is secret until the end. Otherwise remote agents could read
/// it.
#[utoipa::path(post, path = "/api/tournaments", tag = "tournaments", security((), ("administratorToken" = [])), params(CreationKey),
    request_body = TournamentRequest,
    responses((status = 201, body = Created, description = "The tournament with its owner's key."),
        (status = 400, description = "
            `UNKNOWN_GAME`: the game doesn't exist.
            `AGENT_NOT_FOUND`: an agent doesn't exist.
            `INVALID_AGENT`: the files of an agent are missing.
            `INVALID_TOURNAMENT`: the settings are invalid or exceed this server's limits."),
        (status = 401, description = "`AUTHENTICATION_REQUIRED`: this server requires the administrator's token here."),
        (status = 409, description = "
            `NO_SANDBOX`: the system can't sandbox agents.
            `TOO_MANY_TOURNAMENTS`: the server's limit of tournaments is reached."),
        (status = 429, description = "`TOO_MANY_OWN_TOURNAMENTS`: too many tournaments of this address haven't ended."),
        (status = 503, description = "`QUEUE_FULL`: too many tournaments are queued."),
        (status = 507, description = "`DISK_ALMOST_FULL`: the server's disk is almost full; games that have begun go on.")))]
pub(crate) async fn create_tournament(State(arena): State<Arena>, request: Post) -> ApiResult {
    let tournaments = tournaments_of(&arena)?;
    let by = Authority::of(&arena, &request.headers, request.address, |_| false)?;
    if by == Authority::Anonymous && tournaments.settings().create == Creators::Admin {
        return Err(unauthenticated());
    }
    let new_tournament = read_new_tournament(request.body()?)?;
    if by == Authority::Anonymous {
        check_limits(&new_tournament, tournaments.settings())?;
        request.check_unguessable()?;
    }
    arena.admit_new(request.address, None).await?;
    let once = request.once(&by.scope(request.address));
    let maker = arena.ledger.limited(request.address).filter(|_| by == Authority::Anonymous);
    by.record_audit(
        &arena,
        "create tournament",
        json!({ "game": new_tournament.game.name, "agents": new_tournament.agents }),
    )
    .await?;
    let id = create(tournaments, new_tournament, once, maker).await?;
    let tournament = TournamentView::of(&tournaments.find(id)?);
    let created = Created { tournament, owner_key: tournaments.key_of_tournament(id) };
    Ok(json_with(StatusCode::CREATED, to_text(&created)))
}

async fn create(
    tournaments: &Tournaments,
    new_tournament: NewTournament,
    once: Option<Once>,
    maker: Option<IpAddr>,
) -> ApiResult<TournamentId> {
    let created = tournaments.run_blocking(move |tournaments| tournaments.create(new_tournament, once, maker)).await;
    created.map_err(|refusal| match refusal {
        // An unknown agent in the body is a bad request. A 404 would mean that the route's resource is missing.
        TournamentRefusal::NoAgent(_) => ApiError::bad_request("AGENT_NOT_FOUND", refusal.to_string()),
        refusal => refusal.into(),
    })
}

/// Creates a tournament for a visitor of the pages. `wanted` has the fields of the body of [`create_tournament`].
///
/// # Errors
/// As there.
pub(crate) async fn create_for_visitor(
    arena: &Arena,
    address: Option<IpAddr>,
    wanted: Value,
) -> ApiResult<TournamentId> {
    let tournaments = tournaments_of(arena)?;
    if tournaments.settings().create == Creators::Admin {
        return Err(unauthenticated());
    }
    let wanted = serde_json::from_value(wanted);
    let wanted = wanted.map_err(|error| ApiError::bad_request("INVALID_FIELD", error.to_string()))?;
    let new_tournament = read_new_tournament(wanted)?;
    check_limits(&new_tournament, tournaments.settings())?;
    arena.admit_new(address, None).await?;
    create(tournaments, new_tournament, None, arena.ledger.limited(address)).await
}

/// Checks the time limits of a tournament that isn't the administrator's.
fn check_limits(wanted: &NewTournament, settings: &TournamentSettings) -> ApiResult<()> {
    let TimeLimits { step_ms, bank_ms } = wanted.game.limits;
    let limits = [
        ("stepMs", wanted.limits.step_ms, settings.max_step_ms.max(step_ms), "max_step_ms"),
        ("bankMs", wanted.limits.bank_ms, settings.max_bank_ms.max(bank_ms), "max_bank_ms"),
    ];
    match limits.into_iter().find(|(_, ms, most, _)| ms > most) {
        None => Ok(()),
        Some((field, ms, most, setting)) => {
            let text = format!("limits.{field} may be at most {most} here (tournaments.{setting}), not {ms}");
            Err(TournamentRefusal::Plan(text).into())
        }
    }
}

fn read_new_tournament(wanted: TournamentRequest) -> ApiResult<NewTournament> {
    let TournamentRequest { game: Filled(game), name, agents: named, format, options, limits, .. } = wanted;
    let game = arena_games::game(&game).ok_or(TournamentRefusal::NoGame(game))?;
    let fits = |name: &String| (1..=LONGEST_NAME).contains(&name.chars().count()) && !name.contains(is_text_control);
    if !name.as_ref().is_none_or(fits) {
        let text = format!("name must be 1 to {LONGEST_NAME} characters without control characters");
        return Err(ApiError::bad_request("INVALID_FIELD", text));
    }
    let mut agents: Vec<AgentId> = Vec::new();
    for text in named.iter().take(MANY) {
        let unknown = || ApiError::bad_request("AGENT_NOT_FOUND", "agent not found: invalid id");
        let id = text.parse().map_err(|_| unknown())?;
        if agents.contains(&id) {
            return Err(TournamentRefusal::Plan(format!("agent {id} is listed twice")).into());
        }
        agents.push(id);
    }
    let LimitsRequest { step_ms, bank_ms } = limits.unwrap_or_default();
    Ok(NewTournament {
        name,
        game,
        options: options.unwrap_or_default(),
        limits: TimeLimits {
            step_ms: step_ms.map_or(game.limits.step_ms, |Whole(ms)| ms),
            bank_ms: bank_ms.map_or(game.limits.bank_ms, |Whole(ms)| ms),
        },
        agents,
        format: format.unwrap_or(Format::RoundRobin),
        rounds: wanted.rounds.map(|Whole(rounds)| rounds as usize),
        seats: wanted.seats.map(|Whole(seats)| seats as usize),
        paired: wanted.paired.unwrap_or(true),
        seed: wanted.seed.as_ref().map(read_seed).transpose()?,
    })
}

fn read_seed(value: &Value) -> ApiResult<Seed> {
    let seed = match value {
        Value::String(text) => Seed::from_revealed(text),
        value => value.as_u64().map(Seed::from_number),
    };
    seed.ok_or_else(|| ApiError::bad_request("INVALID_FIELD", "seed must be a whole number or 64 hexadecimal digits"))
}

/// The filter of a list of tournaments.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct StateFilter {
    /// Filter by state; an unknown value selects all.
    #[param(value_type = Option<Stage>)]
    state: Lenient<Stage>,
}

/// Lists tournaments, newest first.
#[utoipa::path(get, path = "/api/tournaments", tag = "tournaments", params(StateFilter, Paging),
    responses((status = 200, body = TournamentPage, description = "A page, of 50 by default.")))]
pub(crate) async fn list_tournaments(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(50);
    let state = request.query::<StateFilter>()?.state.known();
    let counts = |snapshot: &TournamentSnapshot| state.is_none_or(|state| Stage::of(snapshot) == state);
    let (snapshots, total) = tournaments_of(&arena)?.list(offset, limit, counts);
    let tournaments = snapshots.iter().map(TournamentView::of).collect();
    Ok(answer(to_text(&TournamentPage { tournaments, total, limit, offset })))
}

/// Returns one tournament.
#[utoipa::path(get, path = "/api/tournaments/{id}", tag = "tournaments",
    params(("id" = String, Path, description = "The tournament's id.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = TournamentView, description = "The tournament with its progress."),
        (status = 404, description = "`TOURNAMENT_NOT_FOUND`: the tournament doesn't exist.")))]
pub(crate) async fn find_tournament(State(arena): State<Arena>, request: Get) -> ApiResult {
    let id = id_of(request.param("id"))?;
    tournament_response(tournaments_of(&arena)?, id)
}

fn tournament_response(tournaments: &Tournaments, id: TournamentId) -> ApiResult {
    Ok(answer(to_text(&TournamentView::of(&tournaments.find(id)?))))
}

/// Stops a tournament permanently.
///
/// Matches in progress are discarded; finished matches count. A tournament that is over doesn't change.
#[utoipa::path(post, path = "/api/tournaments/{id}/stop", tag = "tournaments", security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The tournament's id.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    request_body(content = Option<Object>, description = "Ignored."),
    responses((status = 200, body = TournamentView, description = "The stopped tournament."),
        (status = 404, description = "`TOURNAMENT_NOT_FOUND`: the tournament doesn't exist.")))]
pub(crate) async fn stop_tournament(State(arena): State<Arena>, request: Post) -> ApiResult {
    let (tournaments, id) = (tournaments_of(&arena)?, id_of(request.param("id")));
    let owns = |key: &str| id.as_ref().is_ok_and(|id| tournaments.owns_tournament(key, *id));
    let by = Authority::of(&arena, &request.headers, request.address, owns)?.require_credentials()?;
    let id = id?;
    by.record_audit(&arena, "stop tournament", json!({ "tournament": id })).await?;
    tournaments.run_blocking(move |tournaments| tournaments.stop(id)).await?;
    tournament_response(tournaments, id)
}

/// Stops a tournament and deletes its data.
#[utoipa::path(delete, path = "/api/tournaments/{id}", tag = "tournaments", security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The tournament's id.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = Removal, description = "The tournament was removed."),
        (status = 404, description = "`TOURNAMENT_NOT_FOUND`: the tournament doesn't exist."),
        (status = 409, description = "`TOURNAMENT_RUNNING`: a match has not stopped yet; try again.")))]
pub(crate) async fn remove_tournament(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (tournaments, id) = (tournaments_of(&arena)?, id_of(request.param("id")));
    let owns = |key: &str| id.as_ref().is_ok_and(|id| tournaments.owns_tournament(key, *id));
    let by = Authority::of(&arena, &request.headers, request.address, owns)?.require_credentials()?;
    let id = id?;
    by.record_audit(&arena, "remove tournament", json!({ "tournament": id })).await?;
    tournaments.run_blocking(move |tournaments| tournaments.remove(id)).await?;
    Ok(answer(to_text(&Removal::TRUE)))
}

/// Format of the standings.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Written {
    /// The format. Default: JSON.
    #[param(inline, example = "csv")]
    format: Option<StandingsFormat>,
}

/// Returns the current standings of a tournament.
///
/// JSON contains the plan, an entry per agent, head-to-head results, and remarks. PGN, Markdown and HTML contain seeds,
/// so they are available once the tournament is over.
#[utoipa::path(get, path = "/api/tournaments/{id}/standings", tag = "tournaments",
    params(("id" = String, Path, description = "The tournament's id.", example = "018f6b2e-0000-7000-8000-00000000abcd"),
        Written),
    responses(Standings,
        (status = 400, description = "
            `INVALID_FIELD`: the format is unknown.
            `INVALID_TOURNAMENT`: PGN needs games of two agents."),
        (status = 404, description = "`TOURNAMENT_NOT_FOUND`: the tournament doesn't exist."),
        (status = 409, description = "`TOURNAMENT_NOT_OVER`: the format is available once the tournament is over."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the tournament's data can't be read.")))]
pub(crate) async fn show_standings(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (tournaments, id) = (tournaments_of(&arena)?, id_of(request.param("id"))?);
    let form = request.query::<Written>()?.format.unwrap_or(StandingsFormat::Json);
    let text = tournaments.read(move |tournaments| {
        let (snapshot, record) = tournaments.record(id)?;
        let text = form.write(tournaments, &snapshot, &record)?;
        Ok::<_, TournamentRefusal>(tournaments.redaction().redacted(&text).into_owned())
    });
    let mut response = with_kind(form.content_type(), text.await?);
    if let StandingsFormat::Export(Exporter { policy: Some(policy), .. }) = form {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    }
    Ok(response)
}

/// A format of standings: JSON, PGN, or an entry of [`EXPORTERS`].
#[derive(Debug, Clone, Copy)]
enum StandingsFormat {
    Json,
    Export(&'static Exporter),
    Pgn,
}

impl<'de> Deserialize<'de> for StandingsFormat {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<StandingsFormat, D::Error> {
        let name = String::deserialize(field)?;
        StandingsFormat::all().find(|form| form.name() == name).ok_or_else(|| {
            let names: Vec<&str> = StandingsFormat::all().map(StandingsFormat::name).collect();
            D::Error::custom(format_args!("one of {}", names.join(", ")))
        })
    }
}

impl utoipa::PartialSchema for StandingsFormat {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(StandingsFormat::all().map(StandingsFormat::name)))
            .into()
    }
}

impl ToSchema for StandingsFormat {}

/// The OpenAPI description of the response with standings.
struct Standings;

impl IntoResponses for Standings {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let response =
            StandingsFormat::all().fold(ResponseBuilder::new().description("The standings."), |response, form| {
                let kind = form.content_type().split(';').next().unwrap_or_default();
                let schema = if matches!(form, StandingsFormat::Json) {
                    <Value as utoipa::PartialSchema>::schema()
                } else {
                    <String as utoipa::PartialSchema>::schema()
                };
                response.content(kind, ContentBuilder::new().schema(Some(schema)).build())
            });
        [("200".to_owned(), response.build().into())].into()
    }
}

impl StandingsFormat {
    fn all() -> impl Iterator<Item = StandingsFormat> {
        [StandingsFormat::Json]
            .into_iter()
            .chain(EXPORTERS.iter().map(StandingsFormat::Export))
            .chain([StandingsFormat::Pgn])
    }

    fn name(self) -> &'static str {
        match self {
            StandingsFormat::Json => "json",
            StandingsFormat::Export(exporter) => exporter.name,
            StandingsFormat::Pgn => "pgn",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            StandingsFormat::Json => "application/json",
            StandingsFormat::Export(exporter) => exporter.content_type,
            StandingsFormat::Pgn => "application/vnd.chess-pgn",
        }
    }

    fn write(
        self,
        tournaments: &Tournaments,
        snapshot: &TournamentSnapshot,
        record: &Record,
    ) -> Result<String, TournamentRefusal> {
        let facts = &snapshot.entry.facts;
        let is_over = facts.ended.is_some();
        match self {
            StandingsFormat::Json => {
                let mut report = arena_report::json(record);
                if let Some(report) = report.as_object_mut() {
                    report.remove("seed");
                    report.insert("seed_commitment".to_owned(), facts.seed_commitment().into());
                    if let Some((seed, nonce)) = facts.revealed_seed() {
                        report.insert("seed".to_owned(), seed.into());
                        report.insert("seed_nonce".to_owned(), nonce.into());
                    }
                }
                Ok(report.to_string())
            }
            StandingsFormat::Pgn | StandingsFormat::Export(Exporter { has_seed: true, .. }) if !is_over => {
                Err(TournamentRefusal::NotOver)
            }
            StandingsFormat::Export(exporter) => Ok((exporter.write)(record)),
            StandingsFormat::Pgn => {
                let replay = |game: &GameLine| {
                    read_pgn(&tournaments.replay_path(MatchSource::Tournament(facts.id), game.number))
                };
                let games =
                    arena_report::pgn(record, replay).map_err(|error| TournamentRefusal::Plan(error.to_string()))?;
                let texts = games.map(|game| {
                    if let Some(missing) = game.missing {
                        tracing::warn!("tournament {}: {missing}", facts.id);
                    }
                    game.text
                });
                Ok(texts.collect())
            }
        }
    }
}

pub(crate) fn id_of(text: &str) -> ApiResult<TournamentId> {
    text.parse().map_err(|_| TournamentRefusal::NoTournament(text.to_owned()).into())
}
