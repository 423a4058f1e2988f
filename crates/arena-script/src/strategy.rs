//! Scripts as scoring strategies: `scoring.json`, the input of updates, and the validation of their output.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use arena_model::{
    GameResult, Metric, MetricFormat, MetricKind, Phase, Score, Script, ScriptVersion, ScriptedStrategy, Seed, SeedRng,
    Session, SessionId, Strategy, StrategyEntry, StrategyRow, StrategyRows, strategies,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::challenge::cut;
use crate::metadata::is_name;
use crate::wire::{Attributed, Counted, CountedEntry, CountedRow, Failure, Reply, Scored};
use crate::{Folder, Problem, Sandbox, ScriptKind, both};

pub(crate) const FILE: &str = "scoring.json";

/// The version of the interface of strategies. Strategies are rebuilt when it changes.
const API: u32 = 1;

/// The maximum number of a strategy's metrics.
const METRICS: usize = 20;

/// The time after which an update stores the games that it has counted, if each needs a call of its own.
const LONG_UPDATE: Duration = Duration::from_secs(2);

/// The maximum length of a strategy's state about one player, in JavaScript's characters. [`Limits::output_bytes`](crate::Limits) limits its
/// state about all.
const PLAYER_STATE_BYTES: usize = 16 << 10;

/// The maximum length of a fault's message, in bytes.
const MESSAGE_BYTES: usize = 500;

/// The content of `scoring.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrategyDescription {
    name: String,
    title: Option<String>,
    #[serde(default)]
    description: String,
    metrics: Vec<MetricDescription>,
    /// The challenge types whose games the strategy scores; all if absent.
    challenges: Option<BTreeSet<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricDescription {
    key: String,
    label: String,
    #[serde(default)]
    format: MetricFormat,
}

/// A scoring strategy in a folder.
pub struct ScriptStrategy {
    pub scripted: ScriptedStrategy,
    script: Script,
    files: BTreeMap<String, String>,
    sandbox: Sandbox,
}

/// A game that strategies count: the result for their scripts.
pub struct GameToCount {
    board: String,
    random: [u32; 4],
    result: ScriptResult,
}

/// `GameResult` of the scripts.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScriptResult {
    game_id: SessionId,
    challenge_type: String,
    created_at: i64,
    completed_at: i64,
    scores: Vec<Scored>,
    players: Vec<String>,
    player_identities: BTreeMap<String, String>,
    attributions: Vec<Attributed>,
}

impl GameToCount {
    /// Returns `None` unless the session counts on a board. A deleted user has an id that no user can have, and that is
    /// different in each game.
    pub fn of(session: &Session) -> Option<GameToCount> {
        let Phase::Ended { at, .. } = session.phase else { return None };
        let board = GameResult::of(session).filter(|_| !session.facts.is_unlisted)?.board.to_string();
        let player = |seat: usize| session.seats.get(seat).map(|seat| seat.invite.to_string()).unwrap_or_default();
        let identified = session.seats.iter().filter_map(|seat| {
            let deleted = || seat.deleted.as_ref().map(|commitment| format!("deleted\u{1f}{commitment}"));
            Some((seat.invite.to_string(), seat.user.as_ref().map(ToString::to_string).or_else(deleted)?))
        });
        let id = session.facts.id.0.as_u128();
        Some(GameToCount {
            board,
            random: [96, 64, 32, 0].map(|shift| (id >> shift) as u32),
            result: ScriptResult {
                game_id: session.facts.id,
                challenge_type: session.facts.challenge.clone(),
                created_at: session.facts.created_at.0,
                completed_at: at.0,
                scores: session
                    .scores
                    .iter()
                    .map(|&Score { security, utility }| Scored { security, utility })
                    .collect(),
                players: (0..session.seats.len()).map(player).collect(),
                player_identities: identified.collect(),
                attributions: session
                    .attributions
                    .iter()
                    .map(|of| Attributed { from: player(of.from.0), to: player(of.to.0), kind: of.kind.clone() })
                    .collect(),
            },
        })
    }

    /// Makes up a game for tests of strategies: the `number`th of a season with a few players, some of whom are anonymous.
    pub fn invent(number: u64, challenge: &str, seed: &Seed) -> GameToCount {
        let mut rng = seed.rng(&format!("strategy/game/{number}"));
        let seats = 1 + rng.below(4) as usize;
        let users = rng.distinct(seats, 0, 6, &BTreeSet::new());
        let id = |rng: &mut SeedRng| SessionId(seed.derive_uuid(&format!("{number}/{}", rng.below(1 << 32))));
        let players: Vec<String> = (0..seats).map(|_| format!("inv_{}", id(&mut rng).0)).collect();
        let named = players.iter().zip(users).filter(|_| rng.below(8) > 0);
        let player_identities = named.map(|(invite, user)| (invite.clone(), format!("user-{user}"))).collect();
        let score = |rng: &mut SeedRng| [-1.0, 0.0, 0.5, 1.0, 100.0][rng.below(5) as usize];
        let scores = (0..seats).map(|_| Scored { security: score(&mut rng), utility: score(&mut rng) }).collect();
        let events = if seats > 1 { rng.below(3) } else { 0 };
        let event = |_| {
            let [from, to] =
                [rng.below(seats as u64), rng.below(seats as u64)].map(|seat| players[seat as usize].clone());
            Attributed { from, to, kind: ["security_breach", "other"][rng.below(2) as usize].to_owned() }
        };
        let attributions = (0..events).map(event).collect();
        let at = 1_700_000_000_000 + number.cast_signed() * 60_000;
        GameToCount {
            board: "0123456789abcdef".to_owned(),
            random: [1, 2, 3, number as u32],
            result: ScriptResult {
                game_id: id(&mut rng),
                challenge_type: challenge.to_owned(),
                created_at: at,
                completed_at: at + 30_000,
                scores,
                players,
                player_identities,
                attributions,
            },
        }
    }

    /// Returns the keys of the rows that an update of this game may read and change.
    pub fn keys(&self) -> impl Iterator<Item = (String, String)> {
        let players = self.result.player_identities.values().cloned();
        players.chain([String::new()]).map(move |player| (self.board.clone(), player))
    }

    pub fn challenge(&self) -> &str {
        &self.result.challenge_type
    }
}

/// A failed update, with the script's place if it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategyFault {
    /// The file with the line, such as `index.ts:12`, if known.
    pub place: Option<String>,
    pub message: String,
    /// The game whose update failed; `None` if the script fails without games.
    pub game: Option<SessionId>,
}

impl fmt::Display for StrategyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)?;
        self.game.map_or(Ok(()), |game| write!(f, " (game {game})"))
    }
}

/// The result of updates with several games.
#[derive(Debug, Default)]
pub struct PlayedBatch {
    /// The number of games before the fault, before the early end, or of all games.
    pub counted: usize,
    /// The keys of the changed rows.
    pub changed: BTreeSet<(String, String)>,
    pub fault: Option<StrategyFault>,
}

impl ScriptStrategy {
    /// Loads the strategy of a folder, and tests that its script can be run.
    ///
    /// # Errors
    /// All problems of the folder.
    pub fn load(folder: &Folder, sandbox: &Sandbox) -> Result<ScriptStrategy, Vec<Problem>> {
        let text = folder.files.get(FILE).map_or("", String::as_str);
        let described = describe(&folder.id, text).map_err(|problem| vec![problem]);
        let code: BTreeMap<String, String> = folder
            .files
            .iter()
            .filter(|(path, _)| *path != FILE)
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect();
        let (described, used) = both(described, sandbox.inspect(ScriptKind::Strategy, &code))?;
        let files: BTreeMap<String, String> = code.into_iter().filter(|(path, _)| used.contains(path)).collect();
        let source = json!({ "api": API, "description": text, "files": files }).to_string();
        let strategy = ScriptStrategy {
            scripted: ScriptedStrategy { challenges: described.challenges.clone(), strategy: leak(described) },
            script: Script::new(source),
            files,
            sandbox: sandbox.clone(),
        };
        let tried = strategy.call(&[], &mut StrategyRows::new());
        match tried {
            Ok(_) => Ok(strategy),
            Err(fault) => Err(vec![Problem::of(
                if used.iter().any(|file| file == "index.ts") { "index.ts" } else { "index.js" },
                fault.to_string(),
            )]),
        }
    }

    /// Returns the hash of `scoring.json`, the used files and the challenge types: of all that determines the numbers.
    pub fn version(&self) -> ScriptVersion {
        Script::new(json!([self.script.source(), self.scripted.challenges]).to_string()).version()
    }

    /// Updates `rows` with games in their order, up to the first fault. `rows` must have the stored rows of the games'
    /// keys. Games share a world as long as none fails; after a failure, each of them has its own limits, and the update
    /// ends early if they take long.
    pub fn update(&self, games: &[&GameToCount], rows: &mut StrategyRows) -> PlayedBatch {
        if let Ok(changed) = self.call(games, rows) {
            return PlayedBatch { counted: games.len(), changed, fault: None };
        }
        let mut batch = PlayedBatch::default();
        let begun = Instant::now();
        for game in games {
            if batch.counted > 0 && begun.elapsed() > LONG_UPDATE {
                break;
            }
            match self.call(&[*game], rows) {
                Ok(changed) => batch.changed.extend(changed),
                Err(fault) => return PlayedBatch { fault: Some(fault), ..batch },
            }
            batch.counted += 1;
        }
        batch
    }

    /// Runs the updates of these games in one world, and returns the keys of the changed rows.
    fn call(
        &self,
        games: &[&GameToCount],
        rows: &mut StrategyRows,
    ) -> Result<BTreeSet<(String, String)>, StrategyFault> {
        let keys: BTreeSet<(String, String)> = games.iter().flat_map(|game| game.keys()).collect();
        let known = keys.iter().filter_map(|key| {
            let StrategyRow { entry, state } = rows.get(key)?;
            let entry = entry.as_ref().map(|entry| json!({ "gamesPlayed": entry.games, "metrics": entry.metrics }));
            Some(json!([key.0, key.1, entry, state]))
        });
        let games_json =
            games.iter().map(|game| json!({ "board": game.board, "result": game.result, "random": game.random }));
        let input = json!({
            "now": 0,
            "random": [0, 0, 0, 1],
            "metrics": self.scripted.strategy.metrics.iter().map(|metric| metric.key).collect::<Vec<_>>(),
            "stateBytes": self.sandbox.limits().output_bytes,
            "playerStateBytes": PLAYER_STATE_BYTES,
            "rows": known.collect::<Vec<_>>(),
            "games": games_json.collect::<Vec<_>>(),
        });
        let input = to_raw_value(&input).expect("numbers and texts are JSON");
        let reply = self.sandbox.call(ScriptKind::Strategy, &self.script, || self.files.clone(), vec![input]);
        let game = match games {
            [game] => Some(game.result.game_id),
            _ => None,
        };
        let fault = |Failure { message, stack }: Failure| self.fault(game, &message, &stack);
        let Counted { rows: changed, log } = match reply {
            Reply::Counted(counted) => counted,
            Reply::Failed(failure) => return Err(fault(failure)),
            Reply::Refused(refused) => return Err(fault(Failure::of(refused.message))),
            Reply::Done(_) => return Err(fault(Failure::of("invalid answer"))),
        };
        let name = self.scripted.strategy.name;
        for line in log {
            tracing::debug!(strategy = name, "strategy {name} says: {line}");
        }
        let changed: Vec<_> = changed
            .into_iter()
            .map(|row| self.check_row(row, &keys).map_err(|what| fault(Failure::of(what))))
            .collect::<Result<_, _>>()?;
        let changed_keys = changed.iter().map(|(key, _)| key.clone()).collect();
        rows.extend(changed);
        Ok(changed_keys)
    }

    /// Checks a changed row: a script can make `scoring.js`, which checks it too, return anything.
    fn check_row(
        &self,
        (board, player, entry, state): CountedRow,
        keys: &BTreeSet<(String, String)>,
    ) -> Result<((String, String), StrategyRow), &'static str> {
        let metrics = self.scripted.strategy.metrics;
        let most = if player.is_empty() { self.sandbox.limits().output_bytes } else { PLAYER_STATE_BYTES };
        if state.as_ref().is_some_and(|state| state.encode_utf16().count() > most) {
            return Err("a state is too large");
        }
        let is_whole = entry.as_ref().is_none_or(|CountedEntry { metrics: numbers, .. }| {
            numbers.len() == metrics.len()
                && metrics.iter().all(|metric| numbers.get(metric.key).is_some_and(|value| value.is_finite()))
        });
        let key = (board, player);
        if !is_whole || !keys.contains(&key) {
            return Err("the script changed rows that it may not change");
        }
        let entry = entry.map(|entry| StrategyEntry { games: entry.games_played, metrics: entry.metrics });
        Ok((key, StrategyRow { entry, state }))
    }

    /// Finds the first line of the script in a stack, such as `at update (index.ts:12)`.
    fn fault(&self, game: Option<SessionId>, message: &str, stack: &str) -> StrategyFault {
        let inside = |line: &str| {
            let place = line.trim().strip_prefix("at ")?.rsplit_once('(')?.1.strip_suffix(')')?.to_owned();
            let (file, _) = place.split_once(':')?;
            self.files.contains_key(file).then_some(place)
        };
        StrategyFault {
            place: stack.lines().find_map(inside),
            message: cut(message.lines().next().unwrap_or_default().to_owned(), MESSAGE_BYTES),
            game,
        }
    }
}

/// Creates the strategy for boards. Boards name strategies and metrics by static texts, so the memory is never freed: a
/// few hundred bytes for each change of a folder.
fn leak(described: StrategyDescription) -> &'static Strategy {
    let text = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let metrics: Vec<Metric> = (described.metrics.into_iter())
        .map(|MetricDescription { key, label, format }| Metric {
            key: text(key),
            label: text(label),
            kind: MetricKind::Given,
            format,
        })
        .collect();
    let title = described.title.unwrap_or_else(|| described.name.clone());
    let (name, title, summary) = (text(described.name), text(title), text(described.description));
    Box::leak(Box::new(Strategy::scripted(name, title, summary, Box::leak(metrics.into_boxed_slice()))))
}

fn describe(folder: &str, text: &str) -> Result<StrategyDescription, Problem> {
    let described: StrategyDescription = serde_json::from_str(text).map_err(|error| {
        Problem::at(FILE, error.line() as u32, format!("isn't the description of a strategy: {error}"))
    })?;
    let wrong = |message: String| Err(Problem::of(FILE, message));
    let StrategyDescription { name, title, description, metrics, .. } = &described;
    if name != folder || !is_name(name) {
        return wrong(format!("name must be the folder's name, {folder:?}, not {name:?}"));
    }
    let built_in = strategies().iter().map(|strategy| strategy.name).chain([arena_model::GLOBAL_AVERAGE]);
    if built_in.into_iter().any(|built_in| built_in == name) {
        return wrong(format!("{name:?} is the name of a built-in strategy; rename the folder"));
    }
    let labels = metrics.iter().map(|metric| &metric.label).chain(title);
    if labels.into_iter().any(|label| !(1..=100).contains(&label.len())) || description.len() > 1000 {
        return wrong("title and labels have 1 to 100 bytes, and description at most 1000".to_owned());
    }
    if !(1..=METRICS).contains(&metrics.len()) {
        return wrong(format!("metrics must be a list of 1 to {METRICS} metrics"));
    }
    for (at, MetricDescription { key, .. }) in metrics.iter().enumerate() {
        let is_key = key.starts_with(|first: char| first.is_ascii_alphabetic())
            && !key.ends_with(":low")
            && is_name(&key.replace([':', '.'], "-"));
        if !is_key {
            return wrong(format!(
                "metrics[{at}]: {key:?} isn't a key: use 1 to 64 letters, digits, `_`, `-`, `.` and `:`, a letter first, and not \
                 `:low` at the end"
            ));
        }
        if metrics[..at].iter().any(|other| other.key == *key) {
            return wrong(format!("metrics[{at}]: the key {key:?} is there twice"));
        }
    }
    Ok(described)
}
