//! `arena board rebuild`: leaderboards from records alone, without a server's database.
//!
//! `arena-record` decides which games count and computes the standings. This module reads the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use arena_model::{Board, BoardId, BoardTerms, ChallengeType, Scoring, Script, SessionId, UserId};
use arena_record::boards::{
    LeaderboardPolicy, LeaderboardProfile, LeaderboardRow, LoggedSessions, RebuiltBoards, RecordedGame,
};
use arena_record::{reexecute, unplayable};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::args::{BoardVerb, Global, LogKeyArgs, RebuildArgs};
use crate::exit::{Exit, Failure};
use crate::fork::{find_challenge, read_record};
use crate::log::{LogSource, WholeLog};
use crate::output::{Style, Table, counted, note, print};
use crate::scripts;

pub fn run(verb: BoardVerb, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        BoardVerb::Rebuild(args) => rebuild(&args, global, style),
    }
}

/// The policy file: the sections of an arena's settings that determine leaderboards, and exclusions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PolicyFile {
    scoring: PolicyScoring,
    challenges: Vec<PolicyChallenge>,
    exclude: Vec<PolicyExclusion>,
}

/// The section `[scoring]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyScoring {
    #[serde(default)]
    default: Vec<String>,
    #[serde(default)]
    global: Option<String>,
    #[serde(default, alias = "globalSource")]
    global_source: Option<String>,
}

/// A section `[[challenges]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyChallenge {
    name: String,
    #[serde(default)]
    options: Map<String, Value>,
    #[serde(default)]
    scoring: Vec<String>,
}

/// A section `[[exclude]]`: a session or a user that doesn't count.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyExclusion {
    session: Option<String>,
    user: Option<String>,
    reason: String,
}

impl Default for PolicyScoring {
    fn default() -> PolicyScoring {
        PolicyScoring {
            default: vec!["average".to_owned()],
            global: Some("global-average".to_owned()),
            global_source: None,
        }
    }
}

impl Default for PolicyFile {
    fn default() -> PolicyFile {
        let hosted = arena_games::all().map(|playable| PolicyChallenge {
            name: playable.id.to_owned(),
            options: Map::new(),
            scoring: playable.kit.scoring.iter().map(|name| (*name).to_owned()).collect(),
        });
        PolicyFile { scoring: PolicyScoring::default(), challenges: hosted.collect(), exclude: Vec::new() }
    }
}

impl PolicyFile {
    /// Parses a policy. A policy without challenges has all built-in ones.
    fn read(text: &str) -> Result<PolicyFile, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns the settings of all leaderboards, for these challenges and `scripts`.
    fn resolve(&self, scripts: &[&dyn ChallengeType]) -> Result<LeaderboardPolicy, String> {
        let PolicyScoring { default, global, global_source } = &self.scoring;
        // In the settings of a server, an empty name means no global leaderboard.
        let global = global.as_deref().filter(|name| !name.is_empty());
        let own = self.challenges.iter().map(|challenge| (challenge.name.as_str(), challenge.scoring.as_slice()));
        let scoring =
            Scoring::new(default, own, global, global_source.as_deref()).map_err(|error| error.to_string())?;
        let mut policy = LeaderboardPolicy { scoring, ..LeaderboardPolicy::default() };
        for PolicyChallenge { name, options, .. } in &self.challenges {
            // A section may also give a script its strategies; its rules are in its folder.
            let Some(found) = arena_games::challenge(name, options) else { continue };
            let challenge = found.map_err(|error| format!("challenge {name}: {error}"))?;
            policy.main.insert(name.clone(), main_board(&*challenge)?);
        }
        for script in scripts {
            policy.main.insert(script.id().to_owned(), main_board(*script)?);
        }
        for PolicyExclusion { session, user, reason } in &self.exclude {
            match (session, user) {
                (Some(session), None) => {
                    let session =
                        session.parse::<SessionId>().map_err(|error| format!("[[exclude]]: {session:?} is {error}"))?;
                    policy.excluded_sessions.insert(session, reason.clone());
                }
                (None, Some(user)) => {
                    let user = user.parse::<UserId>().map_err(|error| format!("[[exclude]]: {user:?} is {error}"))?;
                    policy.excluded_users.insert(user, reason.clone());
                }
                _ => return Err("[[exclude]] needs either a session or a user".to_owned()),
            }
        }
        Ok(policy)
    }
}

/// Returns the board of games with a challenge's own options.
fn main_board(challenge: &dyn ChallengeType) -> Result<BoardId, String> {
    let options = challenge.resolve(&Map::new()).map_err(|error| format!("challenge {}: {error}", challenge.id()))?;
    Ok(BoardId::of(challenge.id(), &options, &BoardTerms::of(challenge)))
}

fn rebuild(args: &RebuildArgs, global: &Global, style: Style) -> Result<(), Failure> {
    let scripts = args.challenges.iter().map(|path| scripts::read(path)).collect::<Result<Vec<_>, Failure>>()?;
    let types: Vec<&dyn ChallengeType> = scripts.iter().map(|script| script as &dyn ChallengeType).collect();
    let policy = match &args.policy {
        None => PolicyFile::default(),
        Some(path) => PolicyFile::read(&read_text(path)?).map_err(|why| wrong(path, &why))?,
    };
    let policy = policy.resolve(&types).map_err(|why| match &args.policy {
        Some(path) => wrong(path, &why),
        None => Failure::new(Exit::Usage, why),
    })?;
    let profiles: Vec<LeaderboardProfile> = match &args.users {
        None => Vec::new(),
        Some(path) => serde_json::from_str(&read_text(path)?).map_err(|error| wrong(path, &error.to_string()))?,
    };
    let prompts: BTreeMap<String, String> = types
        .iter()
        .filter_map(|script| {
            let version = script.script().map(Script::version)?;
            Some((version.to_string(), BoardTerms::of(*script).prompt?))
        })
        .collect();
    let log = match &args.log {
        Some(log) => Some(ReadLog::read(log, &args.log_keys, global)?),
        None => None,
    };
    let (mut games, mut unsealed, mut keys) = (Vec::new(), 0, BTreeSet::new());
    for path in find_records(&args.records)? {
        let parsed = read_record(&path)?;
        unsealed += u64::from(log.is_none() && parsed.seal.is_none());
        if let Some(log) = &log {
            let proven = log.whole.check_proof(&parsed);
            let proven = proven.map_err(|lie| Failure::new(Exit::BadReplay, lie).about(&path.display()))?;
            if let Some(reason) = proven {
                note(&format!("{}: {reason}", path.display()));
            }
        }
        keys.extend(parsed.seal.as_ref().map(|seal| seal.key).filter(|_| log.is_none()));
        if args.verify {
            let challenge =
                find_challenge(&parsed, &args.challenges).map_err(|failure| failure.about(&path.display()))?;
            if let Some(reason) = unplayable(&parsed.header, &*challenge) {
                note(&format!("{}: {reason}", path.display()));
            } else {
                let played = reexecute(&parsed, &*challenge);
                let played = played.map_err(|lie| Failure::new(Exit::BadReplay, lie).about(&path.display()))?;
                if let Some(reason) = played.unchecked {
                    note(&format!("{}: {reason}", path.display()));
                }
            }
        }
        let game = RecordedGame::of(&parsed, &prompts);
        games.push(game.map_err(|why| Failure::new(Exit::BadReplay, why).about(&path.display()))?);
    }
    let rebuilt = RebuiltBoards::of(games, &policy, log.as_ref().map(|log| &log.sessions))
        .map_err(|error| Failure::caused(Exit::BadReplay, &error))?;
    if unsealed > 0 {
        let records = counted(unsealed, "record", "records");
        note(&format!("{records} without a signature, not checked against a log; --log names the log"));
    }
    if keys.len() > 1 {
        note(&format!("the records have signatures of {} keys; one arena has several after key changes", keys.len()));
    }
    let unfinished = log.as_ref().map(|log| log.sessions.unfinished());
    let log = log.map(|log| log.checkpoint());
    let boards = AllBoards { unsealed, unfinished, log, ..AllBoards::of(&rebuilt, &policy, &profiles) };
    match style {
        Style::Json | Style::Compact => {
            print(&serde_json::to_string(&boards).map_err(|error| Failure::caused(Exit::Internal, &error))?)
        }
        Style::Pretty => print(&boards.describe()),
    }
}

/// A whole log that was checked.
struct ReadLog {
    whole: WholeLog,
    sessions: LoggedSessions,
}

impl ReadLog {
    /// Reads all leaves of a log, and compares them with its checkpoint.
    fn read(text: &str, keys: &LogKeyArgs, global: &Global) -> Result<ReadLog, Failure> {
        let source = LogSource::find(Some(text), global)?;
        let mut leaves = Vec::new();
        let whole = WholeLog::read_each(&source, keys, |leaf| leaves.push(leaf.to_string()))?;
        whole.head.note_key();
        let sessions = LoggedSessions::read(leaves.iter().map(String::as_str))
            .map_err(|why| Failure::new(Exit::BadReplay, why))?;
        Ok(ReadLog { whole, sessions })
    }

    fn checkpoint(&self) -> CheckpointLine {
        let checkpoint = self.whole.head.checkpoint.unverified();
        CheckpointLine { origin: checkpoint.origin.clone(), size: checkpoint.size, root: checkpoint.root.to_string() }
    }
}

/// The checkpoint of the log with which the leaderboards were computed.
#[derive(Debug, Serialize)]
struct CheckpointLine {
    origin: String,
    size: u64,
    root: String,
}

/// The leaderboards in the form of a server's answers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AllBoards {
    /// The answer of `/api/scoring`.
    global: Vec<LeaderboardRow>,
    /// The answers of `/api/scoring/{name}`, by challenge type.
    challenges: BTreeMap<String, ChallengeBoards>,
    /// The answers of `/api/scoring/{name}?board={id}` for boards that aren't the main board, by challenge type.
    others: BTreeMap<String, BTreeMap<String, ChallengeBoards>>,
    /// The answer of `/api/stats`.
    stats: AllStats,
    /// The number of games that count.
    games: u64,
    /// The records of games that don't count.
    excluded: Vec<ExclusionLine>,
    /// The number of games that don't count, by reason. With a log, its leaderboard pages have the same numbers.
    reasons: BTreeMap<String, u64>,
    /// The number of games that count in part, by reason.
    partial: BTreeMap<String, u64>,
    /// The sessions that the log contains, and that have no record.
    missing: Vec<String>,
    /// The number of seats whose users are withheld.
    withheld: u64,
    /// The number of records without a signature, if no log confirms them.
    unsealed: u64,
    /// The number of rated sessions that have neither ended nor been removed by the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<CheckpointLine>,
}

/// The leaderboards of one board by strategy, in the order of the settings.
#[derive(Debug)]
struct ChallengeBoards(Vec<(&'static str, Vec<LeaderboardRow>)>);

impl Serialize for ChallengeBoards {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(strategy, rows)| (strategy, rows)))
    }
}

#[derive(Debug, Serialize)]
struct AllStats {
    challenges: BTreeMap<String, GamesPlayed>,
    global: GlobalStats,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GamesPlayed {
    games_played: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GlobalStats {
    participants: u64,
    games_played: u64,
}

#[derive(Debug, Serialize)]
struct ExclusionLine {
    session: String,
    reason: String,
}

impl AllBoards {
    fn of(rebuilt: &RebuiltBoards, policy: &LeaderboardPolicy, profiles: &[LeaderboardProfile]) -> AllBoards {
        let rows = |board: &Board| match policy.scoring.order(board, None) {
            Some(order) => rebuilt.rows(&policy.scoring, board, &order, profiles),
            None => Vec::new(),
        };
        let boards_of = |challenge: &str, id: &BoardId| {
            let boards = policy.boards_of(challenge, id);
            let named = boards.iter().filter_map(|board| match board {
                Board::Of { strategy, .. } => Some((*strategy, rows(board))),
                Board::Global(_) => None,
            });
            ChallengeBoards(named.collect())
        };
        let mut others: BTreeMap<String, BTreeMap<String, ChallengeBoards>> = BTreeMap::new();
        for (challenge, boards) in &rebuilt.boards {
            for id in boards.keys().filter(|id| policy.main.get(challenge) != Some(*id)) {
                others.entry(challenge.clone()).or_default().insert(id.to_string(), boards_of(challenge, id));
            }
        }
        let mut played: BTreeMap<String, u64> = policy.main.keys().map(|challenge| (challenge.clone(), 0)).collect();
        played.extend(rebuilt.completed.iter().map(|(challenge, games)| (challenge.clone(), *games)));
        let global = GlobalStats { participants: rebuilt.participants, games_played: played.values().sum() };
        AllBoards {
            global: rows(&policy.global_board()),
            challenges: policy.main.iter().map(|(name, id)| (name.clone(), boards_of(name, id))).collect(),
            others,
            stats: AllStats {
                challenges: played
                    .into_iter()
                    .map(|(name, games_played)| (name, GamesPlayed { games_played }))
                    .collect(),
                global,
            },
            games: rebuilt.counted,
            excluded: rebuilt
                .excluded
                .iter()
                .map(|game| ExclusionLine { session: game.session.to_string(), reason: game.reason.to_string() })
                .collect(),
            missing: rebuilt.missing.iter().map(ToString::to_string).collect(),
            reasons: rebuilt.reasons.clone(),
            partial: rebuilt.partial.iter().map(|(reason, games)| (reason.to_string(), *games)).collect(),
            withheld: rebuilt.withheld,
            unsealed: 0,
            unfinished: None,
            log: None,
        }
    }

    /// Returns the leaderboards as tables, with the number of games and the reasons for exclusions.
    fn describe(&self) -> String {
        let mut parts = Vec::new();
        if !self.global.is_empty() {
            parts.push(format!("all challenges\n{}", table(&self.global)));
        }
        for (challenge, boards) in &self.challenges {
            for (strategy, rows) in boards.0.iter().filter(|(_, rows)| !rows.is_empty()) {
                parts.push(format!("{challenge}, {strategy}\n{}", table(rows)));
            }
        }
        let listed = |reasons: &BTreeMap<String, u64>| {
            reasons.iter().map(|(reason, games)| format!("\n  {reason} ×{games}")).collect::<String>()
        };
        let count: u64 = self.reasons.values().sum();
        let mut end = format!("games: {} counted, {count} excluded{}", self.games, listed(&self.reasons));
        if !self.partial.is_empty() {
            end += &format!("\ngames that count in part:{}", listed(&self.partial));
        }
        if self.withheld > 0 {
            let seats = counted(self.withheld, "seat has", "seats have");
            end += &format!("\n{seats} a withheld user, who is on no leaderboard");
        }
        if !self.missing.is_empty() {
            let games = counted(self.missing.len() as u64, "game", "games");
            end += &format!("\n{games} of the log without a record: {}", self.missing.join(", "));
        }
        if let Some(unfinished) = self.unfinished.filter(|unfinished| *unfinished > 0) {
            let games = counted(unfinished, "game", "games");
            end += &format!("\n{games} of the log without an end: still running, or their ends are missing");
        }
        if let Some(CheckpointLine { origin, size, root }) = &self.log {
            end += &format!("\nlog {origin}, {size} leaves, root {root}");
        }
        parts.push(end);
        parts.join("\n\n")
    }
}

fn table(rows: &[LeaderboardRow]) -> String {
    let mut keys: Vec<&str> = Vec::new();
    for key in rows.iter().flat_map(|row| row.entry().metrics.keys()) {
        if !keys.contains(key) {
            keys.push(key);
        }
    }
    let mut header = vec!["place", "player", "games"];
    // The part of a key before the colon is the leaderboard's name.
    header.extend(keys.iter().map(|key| key.split_once(':').map_or(*key, |(_, metric)| metric)));
    let mut table = Table::new(&header);
    for (place, row) in rows.iter().enumerate() {
        let entry = row.entry();
        let mut cells = vec![(place + 1).to_string(), row.name().to_owned(), entry.games_played.to_string()];
        cells.extend(keys.iter().map(|key| match (entry.metrics.get(key), entry.intervals.get(key)) {
            (Some(value), Some([low, high])) => format!("{value:.2} [{low:.2}, {high:.2}]"),
            (Some(value), None) => value.to_string(),
            (None, _) => String::new(),
        }));
        table.row(cells);
    }
    table.right([0].into_iter().chain(2..header.len())).to_string()
}

/// Returns the records at these paths, in the order of their names. Folders are searched for `.jsonl` files.
fn find_records(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let unreadable = |error: std::io::Error| wrong(path, &error.to_string());
        let mut inner = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (name, is_folder) = (entry.path(), entry.file_type().map_err(unreadable)?.is_dir());
            // Links to folders aren't followed, since they may lead back. A pipe would have no end.
            let is_record = || name.extension().is_some_and(|extension| extension == "jsonl") && name.is_file();
            if is_folder || is_record() {
                inner.push(name);
            }
        }
        inner.sort();
        found.extend(find_records(&inner)?);
    }
    Ok(found)
}

fn read_text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| wrong(path, &error.to_string()))
}

fn wrong(path: &Path, why: &str) -> Failure {
    Failure::new(Exit::Usage, format_args!("{} cannot be read: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Result<LeaderboardPolicy, String> {
        PolicyFile::read(text)?.resolve(&[])
    }

    #[test]
    fn an_empty_policy_is_that_of_a_new_server() {
        let policy = resolved("").unwrap();
        let settings = arena_server::Settings::default();
        let own = settings.challenges.iter().map(|challenge| (challenge.name.as_str(), challenge.scoring.as_slice()));
        let scoring = &settings.scoring;
        let expected =
            Scoring::new(&scoring.default, own, scoring.global.as_deref(), scoring.global_source.as_deref()).unwrap();
        assert_eq!(policy.scoring, expected);
        let names: Vec<&String> = policy.main.keys().collect();
        assert_eq!(names.len(), arena_games::challenges().count());
    }

    #[test]
    fn options_choose_the_main_board() {
        let section = |size: u32| format!("[[challenges]]\nname = \"psi\"\noptions = {{ setSize = {size} }}");
        let (usual, other) = (resolved(&section(10)).unwrap(), resolved(&section(7)).unwrap());
        assert_ne!(usual.main["psi"], other.main["psi"]);
        assert_eq!(other.main.len(), 1);
    }

    #[test]
    fn exclusions_name_one_session_or_user() {
        let id = "018f6b2e-0000-7000-8000-00000000abcd";
        let text =
            format!("[[exclude]]\nsession = \"{id}\"\nreason = \"a\"\n[[exclude]]\nuser = \"eve\"\nreason = \"b\"");
        let policy = resolved(&text).unwrap();
        assert_eq!(policy.excluded_sessions[&id.parse::<SessionId>().unwrap()], "a");
        assert_eq!(policy.excluded_users[&"eve".parse::<UserId>().unwrap()], "b");
        for (text, part) in [
            ("[[exclude]]\nreason = \"a\"", "either a session or a user"),
            ("[[exclude]]\nuser = \"a\"", "reason"),
            ("[[exclude]]\nsession = \"x\"\nreason = \"a\"", "a session id"),
            ("[scoring]\ndefault = [\"best\"]", "unknown strategy"),
            ("[[challenges]]\nname = \"psi\"\noptions = { setSize = \"x\" }", "setSize"),
            ("[other]", "other"),
        ] {
            let error = resolved(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn records_are_found_in_folders_by_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        for name in ["c.jsonl", "b/a.jsonl", "b/notes.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = find_records(&[folder.path().to_owned(), "other".into()]).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("b/loop.jsonl")).unwrap();
        let found_again = find_records(&[folder.path().to_owned(), "other".into()]).unwrap();
        assert_eq!(found_again, found);
        let expected = [folder.path().join("b/a.jsonl"), folder.path().join("c.jsonl"), "other".into()];
        assert_eq!(found, expected);
    }
}
