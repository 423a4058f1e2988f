//! Storage of leagues with their agents, seasons and games. The runner, not the store, decides pairings and ratings.

use std::path::Path;

use arena_model::{MatchOutcome, MatchResult, SeatResult, Seed, TimeLimits, Timestamp, Verdict};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::job::WriteError;
use crate::sqlite::SqliteReaders;
use crate::tables::to_json;
use crate::{CommitError, SqliteStore, StoreError};

/// The internal number of a league.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeagueNo(pub i64);

/// The internal number of one version of an agent. Later versions have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeagueAgentNo(pub i64);

/// The data of a new league.
#[derive(Debug, Clone, PartialEq)]
pub struct NewLeague {
    /// The name, which is unique.
    pub name: String,
    /// The rules.
    pub rules: LeagueRules,
    /// The version of the game's rules in the first season.
    pub rules_version: u32,
    /// The seed of the league. The seeds of all pairings are derived from it.
    pub seed: Seed,
    /// The time of the league's creation.
    pub at: Timestamp,
}

/// The game of a league and its conditions. They never change, so that results stay comparable.
#[derive(Debug, Clone, PartialEq)]
pub struct LeagueRules {
    /// The name of the game.
    pub game: String,
    /// Options of the game that differ from the defaults.
    pub options: Map<String, Value>,
    /// The number of agents in a game.
    pub seats: usize,
    /// True if a pairing has one game for each seat, all with the same seed, in which the agents rotate through the
    /// seats. If false, a pairing is one game.
    pub paired: bool,
    /// The time limits of agents.
    pub limits: TimeLimits,
    /// The sandbox of agents, as a JSON object that the runner defines.
    pub sandbox: Value,
}

/// A league.
#[derive(Debug, Clone, PartialEq)]
pub struct League {
    /// The league's internal number.
    pub no: LeagueNo,
    /// The name.
    pub name: String,
    /// The rules.
    pub rules: LeagueRules,
    /// The seed of the league. The seeds of all pairings are derived from it.
    pub seed: Seed,
    /// The time of the league's creation.
    pub created_at: Timestamp,
    /// The number of the league's current season, from 1.
    pub season: u32,
    /// The version of the game's rules in the current season.
    pub rules_version: u32,
}

/// A season.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeagueSeason {
    /// The season's number, from 1.
    pub number: u32,
    /// The time of the season's beginning.
    pub began_at: Timestamp,
    /// The time of the season's end; `None` for the current season.
    pub ended_at: Option<Timestamp>,
    /// The version of the game's rules for the season's games.
    pub rules_version: u32,
    /// The number of games in the season.
    pub games: u64,
}

/// The facts that identify a version of an agent. Agents that differ in any of these facts are different versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewLeagueAgent {
    /// The name in the league.
    pub name: String,
    /// The version as declared by its owner or manifest.
    pub version: Option<String>,
    /// The path as given by the user.
    pub path: String,
    /// The name of the wire dialect in which the agent receives the state.
    pub dialect: String,
    /// The command or address of the agent, as a JSON object that the runner defines.
    pub reach: Value,
    /// The agent's files and folders.
    pub files: Vec<String>,
    /// The SHA-256 of the files, in hex. `None` for an agent on a server.
    pub sha256: Option<String>,
}

/// A version of an agent of a league.
#[derive(Debug, Clone, PartialEq)]
pub struct LeagueAgent {
    /// The version's internal number.
    pub no: LeagueAgentNo,
    /// The number of the version among those with the same name, from 1 in the order of entry.
    pub generation: u32,
    /// The facts that identify the version.
    pub facts: NewLeagueAgent,
    /// The time at which the version entered the league.
    pub added_at: Timestamp,
    /// The time at which the version left the league; `None` while the version is a member.
    pub removed_at: Option<Timestamp>,
}

/// A game that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct LeagueGame {
    /// The game's number, from 1 in the order in which the league's games ended. The store assigns it.
    pub number: u64,
    /// The number of the game's season, from 1.
    pub season: u32,
    /// The number of the game's pairing (`meeting`), from 1 in the league. The games of a pairing share one seed.
    pub meeting: u64,
    /// The number of the game in its pairing, from 1.
    pub leg: usize,
    /// The time of the game's end.
    pub ended_at: Timestamp,
    /// The result. The store keeps neither the moves nor the scores of challenges.
    pub result: MatchResult<LeagueAgentNo>,
}

impl SqliteStore {
    /// Returns a reader of the store's leagues.
    pub fn leagues(&self) -> Leagues {
        Leagues(self.readers.clone())
    }

    /// Creates a league and its first season. Returns `None` if the name is taken.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn create_league(&self, new: NewLeague) -> Result<Option<LeagueNo>, CommitError> {
        self.writer
            .write_directly(move |connection| {
                let NewLeague { name, rules, rules_version, seed, at } = &new;
                let inserted = connection.execute(
                    "INSERT INTO leagues (name, game, options, seats, paired, step_ms, bank_ms, sandbox, seed, created_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
                    params![
                        name,
                        rules.game,
                        to_json(&rules.options),
                        number(rules.seats as u64),
                        rules.paired,
                        number(rules.limits.step_ms),
                        number(rules.limits.bank_ms),
                        to_json(&rules.sandbox),
                        seed.0,
                        at.0
                    ],
                )?;
                if inserted == 0 {
                    return Ok(None);
                }
                let no = connection.last_insert_rowid();
                begin_season(connection, no, 1, *rules_version, *at)?;
                Ok(Some(LeagueNo(no)))
            })
            .await
    }

    /// Ends the current season of a league and begins the next one with this version of the game's rules. Returns the
    /// number of the new season.
    ///
    /// # Errors
    /// If there is no such league, or the store can't write.
    pub async fn close_league_season(
        &self,
        league: LeagueNo,
        rules_version: u32,
        at: Timestamp,
    ) -> Result<u32, CommitError> {
        self.writer
            .write_directly(move |connection| {
                let number = present_season(connection, league)?;
                connection.execute(
                    "UPDATE league_seasons SET ended_at = ?2 WHERE league = ?1 AND ended_at IS NULL",
                    [league.0, at.0],
                )?;
                begin_season(connection, league.0, number + 1, rules_version, at)?;
                Ok(number + 1)
            })
            .await
    }

    /// Adds an agent to a league and returns it. If another version with the same name is a member, it leaves in the
    /// same commit. A version that was in the league before with identical facts keeps its results; any other version
    /// starts without results.
    ///
    /// # Errors
    /// If the store can't be read or can't write.
    pub async fn enter_league_agent(
        &self,
        league: LeagueNo,
        facts: NewLeagueAgent,
        at: Timestamp,
    ) -> Result<LeagueAgent, CommitError> {
        self.writer
            .write_directly(move |connection| {
                let versions: Vec<LeagueAgent> = read_agents(connection, league)?
                    .into_iter()
                    .filter(|agent| agent.facts.name == facts.name)
                    .collect();
                let known = versions.iter().find(|agent| agent.facts == facts);
                if let Some(known) = known.filter(|known| known.removed_at.is_none()) {
                    return Ok(known.clone());
                }
                remove_agent(connection, league, &facts.name, at)?;
                if let Some(known) = known {
                    connection.execute("UPDATE league_agents SET removed_at = NULL WHERE no = ?1", [known.no.0])?;
                    return Ok(LeagueAgent { removed_at: None, ..known.clone() });
                }
                let generation = versions.last().map_or(1, |last| last.generation + 1);
                connection.execute(
                    "INSERT INTO league_agents (league, name, generation, version, path, dialect, reach, files, sha256, added_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                    params![
                        league.0,
                        facts.name,
                        generation,
                        facts.version,
                        facts.path,
                        facts.dialect,
                        to_json(&facts.reach),
                        to_json(&facts.files),
                        facts.sha256,
                        at.0
                    ],
                )?;
                let no = LeagueAgentNo(connection.last_insert_rowid());
                Ok(LeagueAgent { no, generation, facts: facts.clone(), added_at: at, removed_at: None })
            })
            .await
    }

    /// Removes the agent with this name from a league and keeps its results. Returns true if the agent was a member.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn remove_league_agent(
        &self,
        league: LeagueNo,
        name: String,
        at: Timestamp,
    ) -> Result<bool, CommitError> {
        self.writer.write_directly(move |connection| Ok(remove_agent(connection, league, &name, at)?)).await
    }

    /// Stores a game that has ended; on return it is durable. The store assigns the game's number and ignores the
    /// given one.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the store already has this game of this pairing. Also if the store can't write.
    pub async fn add_league_game(&self, league: LeagueNo, game: LeagueGame) -> Result<LeagueGame, CommitError> {
        self.writer
            .write_directly(move |connection| {
                let last: i64 = connection
                    .prepare_cached("SELECT coalesce(max(number), 0) FROM league_games WHERE league = ?1")?
                    .query_row([league.0], |row| row.get(0))?;
                connection
                    .prepare_cached(
                        "INSERT INTO league_games
                         (league, number, season, meeting, leg, seed, epochs, termination, winner, ended_at, took_ms)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                    )?
                    .execute(params![
                        league.0,
                        last + 1,
                        game.season,
                        number(game.meeting),
                        number(game.leg as u64),
                        game.result.seed.0,
                        number(game.result.epochs),
                        game.result.outcome.termination,
                        game.result.outcome.winner,
                        game.ended_at.0,
                        game.result.took_ms
                    ])?;
                let no = connection.last_insert_rowid();
                let mut insert = connection.prepare_cached(
                    "INSERT INTO league_seats
                     (game, seat, agent, rank, score, verdict, detail, faults, waited_ms, longest_step_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                )?;
                for (at, seat) in (0_i64..).zip(&game.result.seats) {
                    insert.execute(params![
                        no,
                        at,
                        seat.agent.0,
                        number(seat.rank as u64),
                        seat.score,
                        seat.verdict.map(Verdict::name),
                        seat.detail,
                        seat.faults,
                        seat.waited_ms,
                        seat.longest_step_ms
                    ])?;
                }
                Ok(LeagueGame { number: last.unsigned_abs() + 1, ..game.clone() })
            })
            .await
    }
}

/// A reader of a store's leagues. Each call reads their latest state.
#[derive(Clone)]
pub struct Leagues(SqliteReaders);

impl Leagues {
    /// Opens the store in a folder for reading its leagues, even while another process has the store open. Returns
    /// `None` if there is no store, or if an older program without leagues created it.
    ///
    /// # Errors
    /// If the store can't be read, or a newer program created it.
    pub fn beside_others(folder: &Path) -> Result<Option<Leagues>, StoreError> {
        Ok(SqliteReaders::beside_others(folder)?.map(Leagues))
    }

    /// Returns all leagues, ordered by name.
    ///
    /// # Errors
    /// If the store can't be read, or a league is damaged.
    pub async fn list(&self) -> Result<Vec<League>, StoreError> {
        self.0.read(|connection| {
            let mut statement = connection.prepare_cached(&format!("{SELECT_LEAGUE} ORDER BY name"))?;
            let mut rows = statement.query([])?;
            let mut leagues = Vec::new();
            while let Some(row) = rows.next()? {
                leagues.push(read_league(row)?);
            }
            Ok(leagues)
        })
    }

    /// Returns the league with this name.
    ///
    /// # Errors
    /// If the store can't be read, or the league is damaged.
    pub async fn find(&self, name: &str) -> Result<Option<League>, StoreError> {
        self.0.read(|connection| {
            let mut statement = connection.prepare_cached(&format!("{SELECT_LEAGUE} WHERE name = ?1"))?;
            let mut rows = statement.query([name])?;
            rows.next()?.map(read_league).transpose()
        })
    }

    /// Returns the seasons of a league, in order.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_seasons(&self, league: LeagueNo) -> Result<Vec<LeagueSeason>, StoreError> {
        self.0.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT number, began_at, ended_at, rules_version,
                        (SELECT count(*) FROM league_games g WHERE g.league = s.league AND g.season = s.number)
                 FROM league_seasons s WHERE league = ?1 ORDER BY number",
            )?;
            let seasons = statement.query_map([league.0], |row| {
                Ok(LeagueSeason {
                    number: row.get(0)?,
                    began_at: Timestamp(row.get(1)?),
                    ended_at: row.get::<_, Option<i64>>(2)?.map(Timestamp),
                    rules_version: row.get(3)?,
                    games: row.get::<_, i64>(4)?.unsigned_abs(),
                })
            })?;
            Ok(seasons.collect::<Result<_, _>>()?)
        })
    }

    /// Returns every version of every agent that a league has ever had, in the order of entry.
    ///
    /// # Errors
    /// If the store can't be read, or an agent is damaged.
    pub async fn list_agents(&self, league: LeagueNo) -> Result<Vec<LeagueAgent>, StoreError> {
        self.0.read(|connection| read_agents(connection, league))
    }

    /// Returns the number of agents that are in a league.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn count_present(&self, league: LeagueNo) -> Result<u64, StoreError> {
        self.0.read(|connection| {
            let count: i64 = connection
                .prepare_cached("SELECT count(*) FROM league_agents WHERE league = ?1 AND removed_at IS NULL")?
                .query_row([league.0], |row| row.get(0))?;
            Ok(count.unsigned_abs())
        })
    }

    /// Returns the games of a season, in the order in which they ended.
    ///
    /// # Errors
    /// If the store can't be read, or a game is damaged.
    pub async fn list_games(&self, league: LeagueNo, season: u32) -> Result<Vec<LeagueGame>, StoreError> {
        self.0.read(|connection| read_games(connection, league, season))
    }

    /// Returns the number of the last pairing with a stored game, in any season. Returns 0 if no game is stored.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_last_meeting(&self, league: LeagueNo) -> Result<u64, StoreError> {
        self.0.read(|connection| {
            let last: i64 = connection
                .prepare_cached("SELECT coalesce(max(meeting), 0) FROM league_games WHERE league = ?1")?
                .query_row([league.0], |row| row.get(0))?;
            Ok(last.unsigned_abs())
        })
    }
}

const SELECT_LEAGUE: &str =
    "SELECT no, name, game, options, seats, paired, step_ms, bank_ms, sandbox, seed, created_at,
    (SELECT number FROM league_seasons WHERE league = no AND ended_at IS NULL),
    (SELECT rules_version FROM league_seasons WHERE league = no AND ended_at IS NULL) FROM leagues";

fn read_league(row: &Row<'_>) -> Result<League, StoreError> {
    let name: String = row.get(1)?;
    let json = |column: usize| read_json(row, column, &format!("league {name}"));
    let Value::Object(options) = json(3)? else {
        return Err(StoreError::damaged(format!("league {name}"), "its options aren't a JSON object"));
    };
    let count = |column: usize| -> Result<u64, rusqlite::Error> { Ok(row.get::<_, i64>(column)?.unsigned_abs()) };
    Ok(League {
        no: LeagueNo(row.get(0)?),
        rules: LeagueRules {
            game: row.get(2)?,
            options,
            seats: count(4)? as usize,
            paired: row.get(5)?,
            limits: TimeLimits { step_ms: count(6)?, bank_ms: count(7)? },
            sandbox: json(8)?,
        },
        seed: Seed(row.get(9)?),
        created_at: Timestamp(row.get(10)?),
        season: row.get(11)?,
        rules_version: row.get(12)?,
        name,
    })
}

fn read_agents(connection: &Connection, league: LeagueNo) -> Result<Vec<LeagueAgent>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT no, name, generation, version, path, dialect, reach, files, sha256, added_at, removed_at
         FROM league_agents WHERE league = ?1 ORDER BY no",
    )?;
    let mut rows = statement.query([league.0])?;
    let mut agents = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        let what = format!("agent {name} of a league");
        agents.push(LeagueAgent {
            no: LeagueAgentNo(row.get(0)?),
            generation: row.get(2)?,
            facts: NewLeagueAgent {
                version: row.get(3)?,
                path: row.get(4)?,
                dialect: row.get(5)?,
                reach: read_json(row, 6, &what)?,
                files: serde_json::from_value(read_json(row, 7, &what)?)
                    .map_err(|error| StoreError::damaged(what, error))?,
                sha256: row.get(8)?,
                name,
            },
            added_at: Timestamp(row.get(9)?),
            removed_at: row.get::<_, Option<i64>>(10)?.map(Timestamp),
        });
    }
    Ok(agents)
}

fn read_games(connection: &Connection, league: LeagueNo, season: u32) -> Result<Vec<LeagueGame>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT g.number, g.meeting, g.leg, g.seed, g.epochs, g.termination, g.winner, g.ended_at, g.took_ms,
                s.agent, s.rank, s.score, s.verdict, s.detail, s.faults, s.waited_ms, s.longest_step_ms
         FROM league_games g JOIN league_seats s ON s.game = g.no
         WHERE g.league = ?1 AND g.season = ?2 ORDER BY g.no, s.seat",
    )?;
    let mut rows = statement.query(params![league.0, season])?;
    let mut games: Vec<LeagueGame> = Vec::new();
    while let Some(row) = rows.next()? {
        let count = |column: usize| -> Result<u64, rusqlite::Error> { Ok(row.get::<_, i64>(column)?.unsigned_abs()) };
        let number = count(0)?;
        if games.last().is_none_or(|last| last.number != number) {
            games.push(LeagueGame {
                number,
                season,
                meeting: count(1)?,
                leg: count(2)? as usize,
                ended_at: Timestamp(row.get(7)?),
                result: MatchResult {
                    seats: Vec::new(),
                    outcome: MatchOutcome {
                        termination: row.get::<_, String>(5)?.into(),
                        winner: row.get(6)?,
                        result: None,
                        tainted_reason: None,
                    },
                    seed: Seed(row.get(3)?),
                    epochs: count(4)?,
                    moves: None,
                    took_ms: row.get(8)?,
                },
            });
        }
        let verdict: Option<String> = row.get(12)?;
        let verdict = verdict.map(|name| {
            let known = Verdict::ALL.into_iter().find(|verdict| verdict.name() == name);
            known.ok_or_else(|| {
                StoreError::damaged(format!("game {number} of a league"), format_args!("unknown verdict {name}"))
            })
        });
        let seat = SeatResult {
            agent: LeagueAgentNo(row.get(9)?),
            rank: count(10)? as usize,
            score: row.get(11)?,
            challenge_score: None,
            verdict: verdict.transpose()?,
            detail: row.get(13)?,
            faults: row.get(14)?,
            waited_ms: row.get(15)?,
            longest_step_ms: row.get(16)?,
        };
        if let Some(game) = games.last_mut() {
            let outcome = &mut game.result.outcome;
            outcome.tainted_reason = outcome.tainted_reason.or(seat.verdict);
            game.result.seats.push(seat);
        }
    }
    Ok(games)
}

fn present_season(connection: &Connection, league: LeagueNo) -> Result<u32, WriteError> {
    let number: Option<u32> = connection
        .query_row("SELECT number FROM league_seasons WHERE league = ?1 AND ended_at IS NULL", [league.0], |row| {
            row.get(0)
        })
        .optional()?;
    number.ok_or_else(|| StoreError::damaged(format!("league {}", league.0), "it has no current season").into())
}

fn begin_season(
    connection: &Connection,
    league: i64,
    number: u32,
    rules_version: u32,
    at: Timestamp,
) -> Result<(), rusqlite::Error> {
    connection.execute(
        "INSERT INTO league_seasons (league, number, began_at, rules_version) VALUES (?1, ?2, ?3, ?4)",
        params![league, number, at.0, rules_version],
    )?;
    Ok(())
}

fn remove_agent(connection: &Connection, league: LeagueNo, name: &str, at: Timestamp) -> Result<bool, rusqlite::Error> {
    let sql = "UPDATE league_agents SET removed_at = ?3 WHERE league = ?1 AND name = ?2 AND removed_at IS NULL";
    Ok(connection.execute(sql, params![league.0, name, at.0])? > 0)
}

fn read_json(row: &Row<'_>, column: usize, what: &str) -> Result<Value, StoreError> {
    let text = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    serde_json::from_str(text).map_err(|error| StoreError::damaged(what, error))
}

/// Converts a count to SQLite's type of integers.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
