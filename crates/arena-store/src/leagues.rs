//! Storage of leagues with their agents, seasons and games. The runner, not the store, decides pairings and ratings.

use std::num::TryFromIntError;

use arena_model::{MatchOutcome, MatchResult, SeatResult, Seed, TimeLimits, Timestamp, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::copy::StorePlace;
use crate::db::{Db, Failure};
use crate::job::WriteError;
use crate::postgres::PostgresReaders;
use crate::sqlite::SqliteReaders;
use crate::tables::{read_bytes, to_json};
use crate::value::{Columns, Value, count};
use crate::{CommitError, Store, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeagueNo(pub i64);

/// The internal number of one version of an agent. Later versions have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeagueAgentNo(pub i64);

#[derive(Debug, Clone, PartialEq)]
pub struct NewLeague {
    /// The name, which is unique.
    pub name: String,
    pub rules: LeagueRules,
    /// The version of the game's rules in the first season.
    pub rules_version: u32,
    /// The seed of the league. The seeds of all pairings are derived from it.
    pub seed: Seed,
    pub at: Timestamp,
}

/// The game of a league and its conditions. They never change, so that results stay comparable.
#[derive(Debug, Clone, PartialEq)]
pub struct LeagueRules {
    pub game: String,
    /// Options of the game that differ from the defaults.
    pub options: Map<String, serde_json::Value>,
    pub seats: usize,
    /// True if a pairing has one game for each seat, all with the same seed, in which the agents rotate through the
    /// seats. If false, a pairing is one game.
    pub paired: bool,
    pub limits: TimeLimits,
    /// The sandbox of agents, as a JSON object that the runner defines.
    pub sandbox: serde_json::Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct League {
    pub no: LeagueNo,
    pub name: String,
    pub rules: LeagueRules,
    pub seed: Seed,
    pub created_at: Timestamp,
    /// The number of the league's current season, from 1.
    pub season: u32,
    /// The version of the game's rules in the current season.
    pub rules_version: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeagueSeason {
    /// The season's number, from 1.
    pub number: u32,
    pub began_at: Timestamp,
    /// The time of the season's end; `None` for the current season.
    pub ended_at: Option<Timestamp>,
    pub rules_version: u32,
    pub games: u64,
}

/// The facts that identify a version of an agent. Agents that differ in any of these facts are different versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewLeagueAgent {
    pub name: String,
    /// The version as declared by its owner or manifest.
    pub version: Option<String>,
    /// The path as given by the user.
    pub path: String,
    /// The name of the wire dialect in which the agent receives the state.
    pub dialect: String,
    /// The command or address of the agent, as a JSON object that the runner defines.
    pub reach: serde_json::Value,
    /// The agent's files and folders.
    pub files: Vec<String>,
    /// The SHA-256 of the files, in hex. `None` for an agent on a server.
    pub sha256: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LeagueAgent {
    pub no: LeagueAgentNo,
    /// The number of the version among those with the same name, from 1 in the order of entry.
    pub generation: u32,
    pub facts: NewLeagueAgent,
    pub added_at: Timestamp,
    /// The time at which the version left the league; `None` while the version is a member.
    pub removed_at: Option<Timestamp>,
}

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
    pub ended_at: Timestamp,
    /// The result. The store keeps neither the moves nor the scores of challenges.
    pub result: MatchResult<LeagueAgentNo>,
}

impl Store {
    pub fn leagues(&self) -> Leagues {
        Leagues(match self {
            Store::Sqlite(store) => Readers::Sqlite(store.readers.clone()),
            Store::Postgres(store) => Readers::Postgres(store.readers.clone()),
        })
    }

    /// Creates a league and its first season. Returns `None` if the name is taken.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn create_league(&self, new: NewLeague) -> Result<Option<LeagueNo>, CommitError> {
        self.write(new, |new, writing| {
            Box::pin(async move {
                let NewLeague { name, rules, rules_version, seed, at } = new;
                let sql = "INSERT INTO leagues
                     (name, game, options, seats, paired, step_ms, bank_ms, sandbox, seed, created_at)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING RETURNING no";
                let values = [
                    Value::prose(&**name),
                    rules.game.as_str().into(),
                    to_json(&rules.options).into(),
                    count(rules.seats as u64).into(),
                    i64::from(rules.paired).into(),
                    count(rules.limits.step_ms).into(),
                    count(rules.limits.bank_ms).into(),
                    to_json(&rules.sandbox).into(),
                    seed.0[..].into(),
                    at.0.into(),
                ];
                let Some(no) = writing.db.find(sql, &values, |row| row.integer(0)).await? else { return Ok(None) };
                begin_season(&mut writing.db, LeagueNo(no), 1, *rules_version, *at).await?;
                Ok(Some(LeagueNo(no)))
            })
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
        self.write((), move |(), writing| {
            Box::pin(async move {
                let sql =
                    "UPDATE league_seasons SET ended_at = $1 WHERE league = $2 AND ended_at IS NULL RETURNING number";
                let ended = writing.db.find(sql, &[at.0.into(), league.0.into()], |row| small(row, 0)).await?;
                let ended = ended
                    .ok_or_else(|| StoreError::damaged(format!("league {}", league.0), "it has no current season"))?;
                begin_season(&mut writing.db, league, ended + 1, rules_version, at).await?;
                Ok(ended + 1)
            })
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
        self.write(facts, move |facts, writing| Box::pin(enter_agent(&mut writing.db, league, facts, at))).await
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
        self.write(name, move |name, writing| {
            Box::pin(async move { Ok(remove_agent(&mut writing.db, league, name, at).await?) })
        })
        .await
    }

    /// Stores a game that has ended; on return it is durable. The store assigns the game's number and ignores the
    /// given one.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the store already has this game of this pairing. Also if the store can't write.
    pub async fn add_league_game(&self, league: LeagueNo, game: LeagueGame) -> Result<LeagueGame, CommitError> {
        self.write(game, move |game, writing| Box::pin(add_game(&mut writing.db, league, game))).await
    }
}

async fn enter_agent(
    db: &mut Db,
    league: LeagueNo,
    facts: &NewLeagueAgent,
    at: Timestamp,
) -> Result<LeagueAgent, WriteError> {
    let mut versions = db.list(SELECT_AGENTS, &[league.0.into()], read_agent).await?;
    versions.retain(|agent| agent.facts.name == facts.name);
    let known = versions.iter().find(|agent| agent.facts == *facts);
    if let Some(known) = known.filter(|known| known.removed_at.is_none()) {
        return Ok(known.clone());
    }
    remove_agent(db, league, &facts.name, at).await?;
    if let Some(known) = known {
        db.execute("UPDATE league_agents SET removed_at = NULL WHERE no = $1", &[known.no.0.into()]).await?;
        return Ok(LeagueAgent { removed_at: None, ..known.clone() });
    }
    let generation = versions.last().map_or(1, |last| last.generation + 1);
    let sql = "INSERT INTO league_agents
         (league, name, generation, version, path, dialect, reach, files, sha256, added_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING no";
    let values = [
        league.0.into(),
        Value::prose(&*facts.name),
        i64::from(generation).into(),
        Value::Prose(facts.version.as_deref().map(Into::into)),
        Value::prose(&*facts.path),
        facts.dialect.as_str().into(),
        to_json(&facts.reach).into(),
        to_json(&facts.files).into(),
        facts.sha256.as_deref().into(),
        at.0.into(),
    ];
    let no = LeagueAgentNo(db.number(sql, &values).await?);
    Ok(LeagueAgent { no, generation, facts: facts.clone(), added_at: at, removed_at: None })
}

async fn add_game(db: &mut Db, league: LeagueNo, game: &LeagueGame) -> Result<LeagueGame, WriteError> {
    let (meeting, leg) = (count(game.meeting), count(game.leg as u64));
    let same = "SELECT count(*) FROM league_games WHERE league = $1 AND meeting = $2 AND leg = $3";
    if db.number(same, &[league.0.into(), meeting.into(), leg.into()]).await? > 0 {
        return Err(CommitError::Conflict.into());
    }
    let last = "SELECT coalesce(max(number), 0) FROM league_games WHERE league = $1";
    let number = db.number(last, &[league.0.into()]).await? + 1;
    let sql = "INSERT INTO league_games
         (league, number, season, meeting, leg, seed, epochs, termination, winner, ended_at, took_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING no";
    let MatchResult { seats, outcome, seed, epochs, took_ms, moves: _ } = &game.result;
    let values = [
        league.0.into(),
        number.into(),
        i64::from(game.season).into(),
        meeting.into(),
        leg.into(),
        seed.0[..].into(),
        count(*epochs).into(),
        (&*outcome.termination).into(),
        Value::prose(&*outcome.winner),
        game.ended_at.0.into(),
        (*took_ms).into(),
    ];
    let no = db.number(sql, &values).await?;
    for (at, seat) in (0_i64..).zip(seats) {
        let sql = "INSERT INTO league_seats
             (game, seat, agent, rank, score, verdict, detail, faults, waited_ms, longest_step_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let values = [
            no.into(),
            at.into(),
            seat.agent.0.into(),
            count(seat.rank as u64).into(),
            seat.score.into(),
            seat.verdict.map(Verdict::name).into(),
            Value::Prose(seat.detail.as_deref().map(Into::into)),
            i64::from(seat.faults).into(),
            seat.waited_ms.into(),
            seat.longest_step_ms.into(),
        ];
        db.execute(sql, &values).await?;
    }
    Ok(LeagueGame { number: number.unsigned_abs(), ..game.clone() })
}

async fn begin_season(
    db: &mut Db,
    league: LeagueNo,
    number: u32,
    rules_version: u32,
    at: Timestamp,
) -> Result<(), Failure> {
    let sql = "INSERT INTO league_seasons (league, number, began_at, rules_version) VALUES ($1, $2, $3, $4)";
    let values = [league.0, number.into(), at.0, rules_version.into()];
    db.execute(sql, &values.map(Value::from)).await.map(drop)
}

async fn remove_agent(db: &mut Db, league: LeagueNo, name: &str, at: Timestamp) -> Result<bool, Failure> {
    let sql = "UPDATE league_agents SET removed_at = $1 WHERE league = $2 AND name = $3 AND removed_at IS NULL";
    Ok(db.execute(sql, &[at.0.into(), league.0.into(), Value::prose(name)]).await? > 0)
}

/// A reader of a store's leagues. Each call reads their latest state.
#[derive(Clone)]
pub struct Leagues(Readers);

#[derive(Clone)]
enum Readers {
    Sqlite(SqliteReaders),
    Postgres(PostgresReaders),
}

impl Leagues {
    /// Opens a store for reading its leagues, even while another process uses the store. Returns `None` if there is no
    /// store, or if an older program created it, whose store a program that writes updates first.
    ///
    /// # Errors
    /// If the store can't be read, or a newer program created it.
    pub async fn beside_others(place: &StorePlace) -> Result<Option<Leagues>, StoreError> {
        let readers = match place {
            StorePlace::Folder(folder) => SqliteReaders::beside_others(folder)?.map(Readers::Sqlite),
            StorePlace::Database(database) => PostgresReaders::beside_others(database).await?.map(Readers::Postgres),
        };
        Ok(readers.map(Leagues))
    }

    async fn list<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        match &self.0 {
            Readers::Sqlite(readers) => readers.list(sql, values, read),
            Readers::Postgres(readers) => readers.list(sql, values, read).await,
        }
    }

    async fn number(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        Ok(self.list(sql, values, |row| number(row, 0)).await?.first().copied().unwrap_or(0))
    }

    /// Returns all leagues, ordered by name.
    ///
    /// # Errors
    /// If the store can't be read, or a league is damaged.
    pub async fn list_leagues(&self) -> Result<Vec<League>, StoreError> {
        let mut leagues = self.list(SELECT_LEAGUE, &[], read_league).await?;
        // Postgres orders texts by its locale.
        leagues.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(leagues)
    }

    /// Returns the league with this name.
    ///
    /// # Errors
    /// If the store can't be read, or the league is damaged.
    pub async fn find(&self, name: &str) -> Result<Option<League>, StoreError> {
        let sql = format!("{SELECT_LEAGUE} WHERE name = $1");
        Ok(self.list(&sql, &[Value::prose(name)], read_league).await?.pop())
    }

    /// Returns the seasons of a league, in order.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_seasons(&self, league: LeagueNo) -> Result<Vec<LeagueSeason>, StoreError> {
        let sql = "SELECT number, began_at, ended_at, rules_version,
                    (SELECT count(*) FROM league_games g WHERE g.league = s.league AND g.season = s.number)
             FROM league_seasons s WHERE league = $1 ORDER BY number";
        let read = |row: &dyn Columns| {
            Ok(LeagueSeason {
                number: small(row, 0)?,
                began_at: Timestamp(row.integer(1)?),
                ended_at: row.integer_or_null(2)?.map(Timestamp),
                rules_version: small(row, 3)?,
                games: number(row, 4)?,
            })
        };
        self.list(sql, &[league.0.into()], read).await
    }

    /// Returns every version of every agent that a league has ever had, in the order of entry.
    ///
    /// # Errors
    /// If the store can't be read, or an agent is damaged.
    pub async fn list_agents(&self, league: LeagueNo) -> Result<Vec<LeagueAgent>, StoreError> {
        self.list(SELECT_AGENTS, &[league.0.into()], read_agent).await
    }

    /// Returns the number of agents that are in a league.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn count_present(&self, league: LeagueNo) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM league_agents WHERE league = $1 AND removed_at IS NULL";
        self.number(sql, &[league.0.into()]).await
    }

    /// Returns the games of a season, in the order in which they ended.
    ///
    /// # Errors
    /// If the store can't be read, or a game is damaged.
    pub async fn list_games(&self, league: LeagueNo, season: u32) -> Result<Vec<LeagueGame>, StoreError> {
        let sql = "SELECT g.number, g.meeting, g.leg, g.seed, g.epochs, g.termination, g.winner, g.ended_at, g.took_ms,
                    s.agent, s.rank, s.score, s.verdict, s.detail, s.faults, s.waited_ms, s.longest_step_ms
             FROM league_games g JOIN league_seats s ON s.game = g.no
             WHERE g.league = $1 AND g.season = $2 ORDER BY g.no, s.seat";
        let mut games: Vec<LeagueGame> = Vec::new();
        let mut read = |row: &dyn Columns| {
            let of = number(row, 0)?;
            if games.last().is_none_or(|last| last.number != of) {
                games.push(read_game(row, season)?);
            }
            let seat = read_seat(row, of)?;
            if let Some(game) = games.last_mut() {
                let outcome = &mut game.result.outcome;
                outcome.tainted_reason = outcome.tainted_reason.or(seat.verdict);
                game.result.seats.push(seat);
            }
            Ok(())
        };
        self.list(sql, &[league.0.into(), i64::from(season).into()], &mut read).await?;
        Ok(games)
    }

    /// Returns the number of the last pairing with a stored game, in any season. Returns 0 if no game is stored.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_last_meeting(&self, league: LeagueNo) -> Result<u64, StoreError> {
        self.number("SELECT coalesce(max(meeting), 0) FROM league_games WHERE league = $1", &[league.0.into()]).await
    }
}

const SELECT_LEAGUE: &str =
    "SELECT no, name, game, options, seats, paired, step_ms, bank_ms, sandbox, seed, created_at,
    (SELECT number FROM league_seasons WHERE league = no AND ended_at IS NULL),
    (SELECT rules_version FROM league_seasons WHERE league = no AND ended_at IS NULL) FROM leagues";

fn read_league(row: &dyn Columns) -> Result<League, StoreError> {
    let name = row.prose(1)?.into_owned();
    let subject = format!("league {name}");
    let serde_json::Value::Object(options) = read_json(row, 3, &subject)? else {
        return Err(StoreError::damaged(subject, "its options aren't a JSON object"));
    };
    Ok(League {
        no: LeagueNo(row.integer(0)?),
        rules: LeagueRules {
            game: row.text(2)?.to_owned(),
            options,
            seats: number(row, 4)? as usize,
            paired: row.integer(5)? != 0,
            limits: TimeLimits { step_ms: number(row, 6)?, bank_ms: number(row, 7)? },
            sandbox: read_json(row, 8, &subject)?,
        },
        seed: Seed(read_bytes(row, 9)?),
        created_at: Timestamp(row.integer(10)?),
        season: small(row, 11)?,
        rules_version: small(row, 12)?,
        name,
    })
}

const SELECT_AGENTS: &str =
    "SELECT no, name, generation, version, path, dialect, reach, files, sha256, added_at, removed_at
     FROM league_agents WHERE league = $1 ORDER BY no";

fn read_agent(row: &dyn Columns) -> Result<LeagueAgent, StoreError> {
    let name = row.prose(1)?.into_owned();
    let subject = format!("agent {name} of a league");
    Ok(LeagueAgent {
        no: LeagueAgentNo(row.integer(0)?),
        generation: small(row, 2)?,
        facts: NewLeagueAgent {
            version: row.prose_or_null(3)?.map(Into::into),
            path: row.prose(4)?.into_owned(),
            dialect: row.text(5)?.to_owned(),
            reach: read_json(row, 6, &subject)?,
            files: serde_json::from_value(read_json(row, 7, &subject)?)
                .map_err(|error| StoreError::damaged(subject, error))?,
            sha256: row.text_or_null(8)?.map(str::to_owned),
            name,
        },
        added_at: Timestamp(row.integer(9)?),
        removed_at: row.integer_or_null(10)?.map(Timestamp),
    })
}

/// Reads a game without its seats.
fn read_game(row: &dyn Columns, season: u32) -> Result<LeagueGame, StoreError> {
    let of = number(row, 0)?;
    Ok(LeagueGame {
        number: of,
        season,
        meeting: number(row, 1)?,
        leg: number(row, 2)? as usize,
        ended_at: Timestamp(row.integer(7)?),
        result: MatchResult {
            seats: Vec::new(),
            outcome: MatchOutcome {
                termination: row.text(5)?.to_owned().into(),
                winner: row.prose(6)?.into_owned(),
                result: None,
                tainted_reason: None,
            },
            seed: Seed(read_bytes(row, 3)?),
            epochs: number(row, 4)?,
            moves: None,
            took_ms: row.real(8)?,
        },
    })
}

fn read_seat(row: &dyn Columns, of: u64) -> Result<SeatResult<LeagueAgentNo>, StoreError> {
    let verdict = row.text_or_null(12)?.map(|name| {
        let known = Verdict::ALL.into_iter().find(|verdict| verdict.name() == name);
        known.ok_or_else(|| StoreError::damaged(game_of(of), format_args!("unknown verdict {name}")))
    });
    Ok(SeatResult {
        agent: LeagueAgentNo(row.integer(9)?),
        rank: number(row, 10)? as usize,
        score: row.real(11)?,
        challenge_score: None,
        verdict: verdict.transpose()?,
        detail: row.prose_or_null(13)?.map(Into::into),
        faults: small(row, 14)?,
        refused: 0,
        waited_ms: row.real(15)?,
        longest_step_ms: row.real(16)?,
    })
}

fn game_of(number: u64) -> String {
    format!("game {number} of a league")
}

fn read_json(row: &dyn Columns, column: usize, subject: &str) -> Result<serde_json::Value, StoreError> {
    serde_json::from_str(row.text(column)?).map_err(|error| StoreError::damaged(subject, error))
}

fn number(row: &dyn Columns, column: usize) -> Result<u64, StoreError> {
    Ok(row.integer(column)?.unsigned_abs())
}

fn small(row: &dyn Columns, column: usize) -> Result<u32, StoreError> {
    let found = row.integer(column)?;
    found.try_into().map_err(|error: TryFromIntError| StoreError::damaged(format!("the number {found}"), error))
}
