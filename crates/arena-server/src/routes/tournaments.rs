//! `/api/tournaments`: what bots play against each other here, and what came of it.

pub(crate) mod matches;

use arena_model::{Seed, TimeLimits};
use arena_runner::read_pgn;
use arena_tournament::{Format, GameLine, Record};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::agents::{Removed, played};
use super::games::LimitsView;
use crate::answer::{json as answer, json_with, to_text, with_kind};
use crate::arena::Arena;
use crate::authority::Authority;
use crate::error::{ApiError, ApiResult};
use crate::fields::{Filled, Lenient, Whole};
use crate::identity::unauthenticated;
use crate::openapi::{CreationKey, Paging};
use crate::request::{Get, Post};
use crate::tournaments::{AgentId, Creators, Ending, Look, Order, Refusal, TournamentId, Tournaments, steers};

/// The longest name of a tournament, in characters.
const LONGEST_NAME: usize = 200;

/// Longest time limit, in milliseconds.
const MAX_MS: u64 = 60 * 60 * 1000;

/// More agents or rounds than any settings allow, so that nothing is made of them before the settings are looked at.
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
    /// Why it couldn't go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[schema(example = "snake")]
    pub(crate) game: String,
    /// Those that differ from the usual.
    #[schema(value_type = Object)]
    options: Map<String, Value>,
    limits: LimitsView,
    #[schema(value_type = String, example = "round-robin")]
    pub(crate) format: Format,
    pub(crate) rounds: usize,
    /// Of a game.
    seats: usize,
    /// Whether agents meet in games with one seed on all seats.
    paired: bool,
    pub(crate) agents: Vec<EnteredView>,
    /// SHA-256 of the 32 bytes of `seed` and the 32 of `seedNonce` behind them, in hexadecimal digits.
    seed_commitment: String,
    /// What all that is random came of, in hexadecimal digits; once the tournament is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<String>,
    /// Drawn for the commitment alone, in hexadecimal digits; once the tournament is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed_nonce: Option<String>,
    pub(crate) games_played: usize,
    /// In all; tie-breaks of a knockout come on top.
    pub(crate) games: usize,
    /// While it is played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) games_per_minute: Option<f64>,
    /// While it is played, at this rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<f64>,
    /// In milliseconds since 1970.
    pub(crate) created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<i64>,
}

/// A bot in a tournament.
#[derive(Serialize, ToSchema)]
#[schema(as = EnteredAgent)]
pub(crate) struct EnteredView {
    pub(crate) id: AgentId,
    /// What it is called there; nobody else is.
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// How a tournament stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = TournamentState)]
pub(crate) enum Stage {
    /// It waits for those before it.
    Queued,
    /// It is being played.
    Running,
    /// All games were played.
    Complete,
    /// It was stopped, for good.
    Stopped,
    /// It couldn't go on.
    Failed,
}

impl Stage {
    /// The word for it on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Queued => "queued",
            Stage::Running => "running",
            Stage::Complete => "complete",
            Stage::Stopped => "stopped",
            Stage::Failed => "failed",
        }
    }

    fn of(look: &Look) -> Stage {
        match look.entry.facts.ended.as_ref().map(|ended| &ended.how) {
            Some(Ending::Complete) => Stage::Complete,
            Some(Ending::Stopped) => Stage::Stopped,
            Some(Ending::Failed(_)) => Stage::Failed,
            None if look.is_running => Stage::Running,
            None => Stage::Queued,
        }
    }
}

impl TournamentView {
    /// Whether nothing more will be played.
    pub(crate) fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }

    pub(crate) fn of(look: &Look) -> TournamentView {
        let facts = &look.entry.facts;
        let (games_played, games) = (look.entry.games_played, look.entry.games);
        let (seed, seed_nonce) = facts.revealed_seed().unzip();
        let tenths = |number: f64| (number * 10.0).round() / 10.0;
        TournamentView {
            id: facts.id,
            name: facts.name.clone(),
            state: Stage::of(look),
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
            games_per_minute: look.rate.map(|rate| tenths(rate * 60.0)),
            seconds_left: look.rate.map(|rate| tenths(games.saturating_sub(games_played) as f64 / rate)),
            created_at: facts.created_at,
            ended_at: facts.ended.as_ref().map(|ended| ended.at),
        }
    }
}

/// A new tournament, and what its owner shows from now on.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewTournament)]
struct Created {
    #[serde(flatten)]
    tournament: TournamentView,
    /// Told here only: as bearer token it shows who owns the tournament.
    owner_key: String,
}

/// A page of tournaments.
#[derive(Serialize, ToSchema)]
#[schema(as = TournamentPage)]
struct Page {
    tournaments: Vec<TournamentView>,
    /// Tournaments on all pages.
    total: usize,
    /// Most tournaments on a page.
    #[schema(minimum = 1, maximum = 100)]
    limit: usize,
    /// Tournaments passed over.
    offset: u64,
}

/// What shall be played between whom. What is left out is as usual for the game and the format.
#[derive(Deserialize, ToSchema)]
#[schema(as = TournamentRequest, example = json!({ "game": "snake", "agents": ["018f6b2e-0000-7000-8000-00000000abcd", "018f6b2e-0000-7000-8000-00000000abce"] }))]
struct TournamentRequest {
    #[schema(value_type = String)]
    game: Filled,
    #[schema(required = false, min_length = 1, max_length = 200)]
    name: Option<String>,
    /// The ids of bots, all different. In a gauntlet the first meets all others.
    agents: Vec<String>,
    #[schema(required = false, value_type = String, example = "swiss")]
    format: Option<Format>,
    /// Options that differ from those of the game.
    #[schema(required = false, value_type = Object)]
    options: Option<Map<String, Value>>,
    #[schema(required = false)]
    limits: Option<LimitsRequest>,
    /// How often each set of bots meets; of a Swiss, the rounds.
    #[schema(required = false, value_type = u64, minimum = 1, maximum = 100_000)]
    rounds: Option<Count>,
    /// Of a game.
    #[schema(required = false, value_type = u64, minimum = 1, maximum = 100_000)]
    seats: Option<Count>,
    /// Whether bots meet in games with one seed on all seats: true, if nothing is said.
    #[schema(required = false)]
    paired: Option<bool>,
    /// A number, or 64 hexadecimal digits. Drawn, if nothing is said. One that can be guessed can be tried against what is told of
    /// matches while the tournament is played.
    #[schema(required = false, value_type = u64)]
    seed: Option<Value>,
}

type Count = Whole<1, { MANY as u64 }>;

/// How long agents may take, in milliseconds.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TimeLimitsRequest)]
struct LimitsRequest {
    /// For each step.
    #[schema(required = false, value_type = u64, minimum = 1, maximum = 3_600_000)]
    step_ms: Option<Whole<1, MAX_MS>>,
    /// Beyond that, for the whole match.
    #[schema(required = false, value_type = u64, minimum = 0, maximum = 3_600_000)]
    bank_ms: Option<Whole<0, MAX_MS>>,
}

/// Have bots play a tournament.
///
/// It waits until those before it have been played. Its seed is secret until it is over, since bots that are servers could look.
#[utoipa::path(post, path = "/api/tournaments", tag = "tournaments", security((), ("administratorToken" = [])), params(CreationKey),
    request_body = TournamentRequest,
    responses((status = 201, body = Created, description = "The tournament, and its owner's key."),
        (status = 400, description = "
            `UNKNOWN_GAME`: it isn't played here.
            `AGENT_NOT_FOUND`: there is no such bot.
            `INVALID_AGENT`: the files of a bot are gone.
            `INVALID_TOURNAMENT`: it can't be played so, or isn't here."),
        (status = 401, description = "`AUTHENTICATION_REQUIRED`: what is shown isn't the administrator's token, and only that opens this here."),
        (status = 409, description = "
            `NO_SANDBOX`: the system can't confine bots.
            `TOO_MANY_TOURNAMENTS`: no more can be kept."),
        (status = 503, description = "`QUEUE_FULL`: too many wait.")))]
pub(crate) async fn create_tournament(State(arena): State<Arena>, request: Post) -> ApiResult {
    let tournaments = played(&arena)?;
    let by = Authority::of(&arena, &request.headers, request.address, |_| false)?;
    if by == Authority::Nobody && tournaments.settings().create == Creators::Admin {
        return Err(unauthenticated());
    }
    let order = read_order(request.body()?)?;
    if by == Authority::Nobody {
        request.check_unguessable()?;
    }
    let once = request.once(&by.scope(request.address));
    by.take_down(&arena, "create tournament", json!({ "game": order.game.name, "agents": order.agents })).await?;
    let created = tournaments.away(move |tournaments| tournaments.create(order, once)).await;
    let id = created.map_err(|refusal| match refusal {
        // What the body names is looked for there, not here.
        Refusal::NoAgent(_) => ApiError::bad_request("AGENT_NOT_FOUND", refusal.to_string()),
        refusal => refusal.into(),
    })?;
    let look = tournaments.find(id).ok_or_else(|| Refusal::NoTournament(id.to_string()))?;
    let created = Created { tournament: TournamentView::of(&look), owner_key: tournaments.key_of_tournament(id) };
    Ok(json_with(StatusCode::CREATED, to_text(&created)))
}

/// What somebody wants to be played.
fn read_order(wanted: TournamentRequest) -> ApiResult<Order> {
    let TournamentRequest { game: Filled(game), name, agents: named, format, options, limits, .. } = wanted;
    let game = arena_games::game(&game).ok_or(Refusal::NoGame(game))?;
    let fits = |name: &String| (1..=LONGEST_NAME).contains(&name.chars().count()) && !name.contains(steers);
    if !name.as_ref().is_none_or(fits) {
        let text = format!("name must be 1 to {LONGEST_NAME} characters, none of which steers others");
        return Err(ApiError::bad_request("INVALID_FIELD", text));
    }
    let mut agents: Vec<AgentId> = Vec::new();
    for text in named.iter().take(MANY) {
        let unknown = || ApiError::bad_request("AGENT_NOT_FOUND", "there is no agent of such an id");
        let id = text.parse().map_err(|_| unknown())?;
        if agents.contains(&id) {
            return Err(Refusal::Plan(format!("agent {id} is named twice")).into());
        }
        agents.push(id);
    }
    let LimitsRequest { step_ms, bank_ms } = limits.unwrap_or_default();
    Ok(Order {
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
    seed.ok_or_else(|| ApiError::bad_request("INVALID_FIELD", "seed must be a whole number, or 64 hexadecimal digits"))
}

/// Which tournaments are asked for.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Standing {
    /// Those that stand so; any other word is all.
    #[param(value_type = Option<Stage>)]
    state: Lenient<Stage>,
}

/// Tournaments, newest first.
#[utoipa::path(get, path = "/api/tournaments", tag = "tournaments", params(Standing, Paging),
    responses((status = 200, body = Page, description = "A page of 50, unless `limit` says otherwise.")))]
pub(crate) async fn list_tournaments(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (offset, limit) = request.query::<Paging>()?.page(50);
    let state = request.query::<Standing>()?.state.known();
    let counts = |look: &Look| state.is_none_or(|state| Stage::of(look) == state);
    let (looks, total) = played(&arena)?.list(offset, limit, counts);
    let tournaments = looks.iter().map(TournamentView::of).collect();
    Ok(answer(to_text(&Page { tournaments, total, limit, offset })))
}

/// One tournament.
#[utoipa::path(get, path = "/api/tournaments/{id}", tag = "tournaments",
    params(("id" = String, Path, description = "The tournament.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = TournamentView, description = "What is played, and how far it is."),
        (status = 404, description = "`TOURNAMENT_NOT_FOUND`: there is no such tournament.")))]
pub(crate) async fn find_tournament(State(arena): State<Arena>, request: Get) -> ApiResult {
    let id = id_of(request.param("id"))?;
    tell(played(&arena)?, id)
}

fn tell(tournaments: &Tournaments, id: TournamentId) -> ApiResult {
    let look = tournaments.find(id).ok_or_else(|| Refusal::NoTournament(id.to_string()))?;
    Ok(answer(to_text(&TournamentView::of(&look))))
}

/// Stop a tournament, for good.
///
/// Matches under way are lost; what has been played counts. One that is over stays as it is.
#[utoipa::path(post, path = "/api/tournaments/{id}/stop", tag = "tournaments", security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The tournament.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    request_body(content = Option<Object>, description = "Not looked at."),
    responses((status = 200, body = TournamentView, description = "How it ended."),
        (status = 404, description = "`TOURNAMENT_NOT_FOUND`: there is no such tournament.")))]
pub(crate) async fn stop_tournament(State(arena): State<Arena>, request: Post) -> ApiResult {
    let (tournaments, id) = (played(&arena)?, id_of(request.param("id")));
    let owns = |key: &str| id.as_ref().is_ok_and(|id| tournaments.owns_tournament(key, *id));
    let by = Authority::of(&arena, &request.headers, request.address, owns)?.is_somebody()?;
    let id = id?;
    by.take_down(&arena, "stop tournament", json!({ "tournament": id })).await?;
    tournaments.away(move |tournaments| tournaments.stop(id)).await?;
    tell(tournaments, id)
}

/// Stop a tournament, and remove all that was kept of it.
#[utoipa::path(delete, path = "/api/tournaments/{id}", tag = "tournaments", security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The tournament.", example = "018f6b2e-0000-7000-8000-00000000abcd")),
    responses((status = 200, body = Removed, description = "It is gone."),
        (status = 404, description = "`TOURNAMENT_NOT_FOUND`: there is no such tournament."),
        (status = 409, description = "`TOURNAMENT_RUNNING`: a match of it takes long to stop.")))]
pub(crate) async fn remove_tournament(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (tournaments, id) = (played(&arena)?, id_of(request.param("id")));
    let owns = |key: &str| id.as_ref().is_ok_and(|id| tournaments.owns_tournament(key, *id));
    let by = Authority::of(&arena, &request.headers, request.address, owns)?.is_somebody()?;
    let id = id?;
    by.take_down(&arena, "remove tournament", json!({ "tournament": id })).await?;
    tournaments.away(move |tournaments| tournaments.remove(id)).await?;
    Ok(answer(to_text(&Removed::TRUE)))
}

/// How standings are asked for.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Written {
    /// JSON, if nothing is said.
    #[param(inline, example = "csv")]
    format: Option<Form>,
}

/// The standings of a tournament, as far as it has been played.
///
/// As JSON: the plan, a line for each bot, who did how against whom, and remarks. As PGN, Markdown and HTML once it is over, since
/// they tell seeds.
#[utoipa::path(get, path = "/api/tournaments/{id}/standings", tag = "tournaments",
    params(("id" = String, Path, description = "The tournament.", example = "018f6b2e-0000-7000-8000-00000000abcd"),
        Written),
    responses((status = 200, description = "The standings.", content(
            (Value = "application/json"), (String = "text/csv"), (String = "text/markdown"), (String = "text/html"), (String = "application/vnd.chess-pgn"))),
        (status = 400, description = "
            `INVALID_FIELD`: there is no such format.
            `INVALID_TOURNAMENT`: PGN is for games of two."),
        (status = 404, description = "`TOURNAMENT_NOT_FOUND`: there is no such tournament."),
        (status = 409, description = "`TOURNAMENT_NOT_OVER`: in this format it is told later."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: what is kept of it can't be read.")))]
pub(crate) async fn show_standings(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (tournaments, id) = (played(&arena)?, id_of(request.param("id"))?);
    let form = request.query::<Written>()?.format.unwrap_or(Form::Json);
    let text = tournaments.read(move |tournaments| {
        let (look, record) = tournaments.record(id)?;
        let text = form.write(tournaments, &look, &record)?;
        Ok::<_, Refusal>(tournaments.redacted(&text).into_owned())
    });
    let mut response = with_kind(form.content_type(), text.await?);
    if matches!(form, Form::Html) {
        let policy = HeaderValue::from_static(arena_report::HTML_POLICY);
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// How standings are written.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Form {
    Json,
    Csv,
    Markdown,
    Html,
    Pgn,
}

impl Form {
    fn content_type(self) -> &'static str {
        match self {
            Form::Json => "application/json",
            Form::Csv => "text/csv; charset=utf-8",
            Form::Markdown => "text/markdown; charset=utf-8",
            Form::Html => "text/html; charset=utf-8",
            Form::Pgn => "application/vnd.chess-pgn",
        }
    }

    fn write(self, tournaments: &Tournaments, look: &Look, record: &Record) -> Result<String, Refusal> {
        let facts = &look.entry.facts;
        let is_over = facts.ended.is_some();
        match self {
            Form::Json => {
                let mut told = arena_report::json(record);
                if let Some(told) = told.as_object_mut() {
                    told.remove("seed");
                    told.insert("seed_commitment".to_owned(), facts.seed_commitment().into());
                    if let Some((seed, nonce)) = facts.revealed_seed() {
                        told.insert("seed".to_owned(), seed.into());
                        told.insert("seed_nonce".to_owned(), nonce.into());
                    }
                }
                Ok(told.to_string())
            }
            Form::Csv => Ok(arena_report::csv(record)),
            Form::Markdown | Form::Html | Form::Pgn if !is_over => Err(Refusal::NotOver),
            Form::Markdown => Ok(arena_report::markdown(record)),
            Form::Html => Ok(arena_report::html(record)),
            Form::Pgn => {
                let replay = |game: &GameLine| read_pgn(&tournaments.replay_path(facts.id, game.number));
                let games = arena_report::pgn(record, replay).map_err(|error| Refusal::Plan(error.to_string()))?;
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
    text.parse().map_err(|_| Refusal::NoTournament("of this id".to_owned()).into())
}
