//! Settings: one struct per section, resolved once, passed on from there. Unknown keys and bad values are errors.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_engine::{NatsUrl, NatsUrlError};
use arena_identity::ServerSecret;
use arena_model::{ChallengeType, Patience, Scoring, ScoringError};
use arena_script::find_folders;
use arena_store::{DatabaseUrl, DatabaseUrlError};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::admin_token::AdminToken;
use crate::origin::AllowedOrigin;
use crate::tournaments::TournamentSettings;

/// Everything that can be set about a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Address and port to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Folder of the embedded store, of secrets that are made once, and of tournaments; made if it doesn't exist.
    pub data: PathBuf,
    /// The Postgres database that holds the store; unset means that the data folder does.
    pub database: Option<DatabaseUrl>,
    /// Whether other arenas use the same database, and how they hear of each other.
    pub nodes: NodeSettings,
    /// Whether others than this machine may be listened to although anybody can claim to be anybody.
    pub trust_network: bool,
    /// Origins and hosts that may write.
    pub network: NetworkSettings,
    /// Whether and how players prove who they are.
    pub auth: AuthSettings,
    /// What the administrator shows. Unset means the token that is kept in the data folder, made at the first start. Not in
    /// the file: settings are shown around, secrets aren't.
    pub admin_token: Option<AdminToken>,
    /// Limits on requests.
    pub limits: LimitSettings,
    /// How sessions live and end.
    pub sessions: SessionSettings,
    /// What is hosted, of what is built in; and what is to be said of scripts.
    pub challenges: Vec<ChallengeSettings>,
    /// Challenges that are folders.
    pub scripts: ScriptSettings,
    /// What ended games count for, whatever their challenge.
    pub scoring: ScoringSettings,
    /// Tournaments between bots that are played here.
    pub tournaments: TournamentSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 3001)),
            data: PathBuf::from("arena-data"),
            database: None,
            nodes: NodeSettings::default(),
            trust_network: false,
            network: NetworkSettings::default(),
            auth: AuthSettings::default(),
            admin_token: None,
            limits: LimitSettings::default(),
            sessions: SessionSettings::default(),
            challenges: default_challenges(),
            scripts: ScriptSettings::default(),
            scoring: ScoringSettings::default(),
            tournaments: TournamentSettings::default(),
        }
    }
}

/// All that is built in, each with the strategies that tell something about it.
fn default_challenges() -> Vec<ChallengeSettings> {
    let hosted = arena_games::all().map(|playable| ChallengeSettings {
        name: playable.id.to_owned(),
        options: Map::new(),
        scoring: playable.kit.scoring.iter().map(|name| (*name).to_owned()).collect(),
    });
    hosted.collect()
}

/// Several arenas on one database: `shared` and `nats_url` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeSettings {
    /// Whether the database is shared with other arenas that are started so; without it, an arena has it for itself.
    pub shared: bool,
    /// The NATS server over which they tell each other that there is something new; it makes the database a shared one. Without it they
    /// look four times a second.
    pub nats: Option<NatsUrl>,
}

/// Origins and hosts that may write: `[network]` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSettings {
    /// Origins of web pages that may write, besides the arena's own pages: `https://page.example`, or `*` for all. Without
    /// authentication others may only read.
    pub allowed_origins: Vec<AllowedOrigin>,
}

/// Whether and how players prove who they are: `[auth]` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthSettings {
    /// Whether joins have to be signed and everything after needs a session key; else everybody is who `from` says.
    pub enabled: bool,
    /// What session keys are made with. Unset means the one that is kept in the data folder, made when it is first needed.
    /// Not in the file: settings are shown around, secrets aren't.
    #[serde(skip)]
    pub secret: Option<ServerSecret>,
}

/// Limits on requests: `[limits]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Largest request body, in bytes.
    pub body_bytes: usize,
    /// Largest content of a message, in bytes.
    pub message_bytes: usize,
    /// Largest session that can be imported, with its messages, in bytes of the import. What is imported besides doesn't
    /// matter, since no more than a few sessions are in memory at a time.
    pub import_bytes: usize,
    /// Most messages in one channel.
    pub channel_messages: u64,
    /// Requests per second that one address may make in the long run, each full 16 KiB of a body counting as one more; 0 is no
    /// limit.
    pub requests_per_second: u32,
    /// Requests that one address may make at once before the limit above holds.
    pub requests_burst: u32,
    /// Actions and chat messages per second that one player may send in the long run; 0 is no limit.
    pub writes_per_second: u32,
    /// Actions and chat messages that one player may send at once before the limit above holds.
    pub writes_burst: u32,
    /// True if callers on this machine are limited too. If not, they have no share of connections and memory either, only the totals.
    pub limit_loopback: bool,
    /// Most connections at a time.
    pub connections: usize,
    /// Most connections of one address, and never more than a quarter of all; 0 is no limit.
    pub connections_per_address: usize,
    /// Connections of all that are kept for players and administrators, and never more than a quarter. Others are given one answer there.
    pub connections_reserved: usize,
    /// Most bytes of large answers and requests that wait in memory, for clients that don't read or send slowly. What a connection may
    /// always have (32 KiB) doesn't count.
    pub waiting_bytes: usize,
    /// Most of these bytes for one address; 0 is no limit.
    pub waiting_bytes_per_address: usize,
    /// Time for which a client may read nothing of an answer before its connection ends, in milliseconds.
    pub stalled_ms: u64,
    /// Most signatures that wait to be checked, in authentication mode. They take about 0.1 ms each.
    pub signature_queue: NonZeroU16,
    /// How long a request may take to arrive, in milliseconds; an import, each piece of it.
    pub request_ms: u64,
    /// How long the server goes on serving after it was told to stop, while `/ready` says that it will, in milliseconds: time for
    /// whoever hands requests to it to see that and hand them to another one.
    pub drain_ms: u64,
    /// How long requests under way may take when the server stops, in milliseconds.
    pub shutdown_ms: u64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        LimitSettings {
            body_bytes: 1024 * 1024,
            message_bytes: 1024 * 1024,
            import_bytes: 64 * 1024 * 1024,
            channel_messages: 1_000_000,
            requests_per_second: 100,
            requests_burst: 400,
            writes_per_second: 20,
            writes_burst: 100,
            limit_loopback: false,
            connections: 50_000,
            connections_per_address: 1_000,
            connections_reserved: 500,
            waiting_bytes: 256 * 1024 * 1024,
            waiting_bytes_per_address: 32 * 1024 * 1024,
            stalled_ms: 30_000,
            signature_queue: const { NonZeroU16::new(256).expect("not 0") },
            request_ms: 30_000,
            drain_ms: 0,
            shutdown_ms: 10_000,
        }
    }
}

/// How sessions live and end: `[sessions]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// Age at which a session is removed that its players didn't join, in seconds; 0 is never.
    pub stale_open_s: u64,
    /// How long an active session may be idle before it ends as abandoned, in seconds; 0 is never.
    pub stale_active_s: u64,
    /// How much the rules of a session may write by themselves since a player last acted, in bytes; then it ends as abandoned.
    /// Chat is no action. 0 is without bound.
    pub unattended_bytes: u64,
    /// Whether people without a seat may chat in sessions.
    pub spectators_chat: bool,
    /// Whether one user may hold two seats of a session; the game counts for nobody then.
    pub self_play: bool,
    /// Whether all is told of what players said to each other in private, once the session has ended.
    pub reveal_chat: bool,
}

impl Default for SessionSettings {
    fn default() -> Self {
        SessionSettings {
            stale_open_s: 600,
            stale_active_s: 1800,
            unattended_bytes: 64 * 1024 * 1024,
            spectators_chat: false,
            self_play: true,
            reveal_chat: false,
        }
    }
}

impl SessionSettings {
    pub(crate) fn patience(&self) -> Patience {
        let ms = |s: u64| (s > 0).then(|| i64::try_from(s).unwrap_or(i64::MAX).saturating_mul(1000));
        let unattended_bytes = Some(self.unattended_bytes).filter(|bytes| *bytes > 0);
        Patience { open_ms: ms(self.stale_open_s), active_ms: ms(self.stale_active_s), unattended_bytes }
    }
}

/// A challenge that is hosted: `[[challenges]]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChallengeSettings {
    /// Which, such as `psi`.
    pub name: String,
    /// Options that differ from its defaults.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Strategies that count its games, besides those of [`ScoringSettings::default`].
    #[serde(default)]
    pub scoring: Vec<String>,
}

/// Challenges that are folders with a script: `[scripts]` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptSettings {
    /// The folders, or folders of such folders. They are watched, and loaded again when they change.
    pub folders: Vec<PathBuf>,
    /// What one call of a script may take: `[scripts.limits]`.
    pub limits: arena_script::Limits,
    /// The program that runs scripts, and its arguments. Not in the file: it is the arena itself.
    #[serde(skip)]
    pub worker: Option<(PathBuf, Vec<OsString>)>,
}

/// What ended games count for: `[scoring]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoringSettings {
    /// Strategies that count games of every challenge.
    #[serde(default)]
    pub default: Vec<String>,
    /// The strategy over all challenges, if there is to be one.
    #[serde(default, deserialize_with = "one_or_none")]
    pub global: Option<String>,
    /// The strategy whose metrics it looks at; the first of `default` if unset.
    #[serde(default, alias = "globalSource")]
    pub global_source: Option<String>,
}

impl Default for ScoringSettings {
    fn default() -> Self {
        ScoringSettings {
            default: vec!["average".to_owned()],
            global: Some("global-average".to_owned()),
            global_source: None,
        }
    }
}

/// A text, or a list of one text.
fn one_or_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    match Option::<OneOrMany>::deserialize(deserializer)? {
        None => Ok(None),
        Some(OneOrMany::One(name)) => Ok(Some(name)),
        Some(OneOrMany::Many(names)) if names.len() <= 1 => Ok(names.into_iter().next()),
        Some(OneOrMany::Many(_)) => Err(serde::de::Error::custom("global: there can be one global strategy only")),
    }
}

/// Why settings are no good.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file can't be read.
    #[error("the settings file {file} can't be read")]
    Read {
        /// Which file.
        file: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The file doesn't say what settings can be.
    #[error("the settings file {file} is no good: {reason}")]
    Parse {
        /// Which file.
        file: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// The database can't be found so.
    #[error("database_url: {0}")]
    Database(#[from] DatabaseUrlError),
    /// Events can't be exchanged so.
    #[error("nats_url: {0}")]
    Nats(#[from] NatsUrlError),
    /// Games can't be counted so.
    #[error("scoring: {0}")]
    Scoring(#[from] ScoringError),
    /// Where names are just claimed, a refusal would tell who claims one which name an opponent goes by.
    #[error("sessions: self_play = false needs authentication, or else joins could find out who the others are")]
    SelfPlayUnknowable,
    /// There is nothing to share.
    #[error("nodes share a database: --shared and --nats-url need --database-url")]
    NothingToShare,
    /// What is kept in one node's data folder isn't there at the others.
    #[error(
        "tournaments and uploaded agents are kept in the data folder of one arena, so nodes that share a database don't have any: start \
         them at an arena of its own"
    )]
    TournamentsOfNodes,
    /// Nothing could be started.
    #[error("tournaments: there is no program to start agents with")]
    NoLauncher,
    /// There are no challenges where they should be. Folders that vanish later are reported in the log, and looked for again.
    #[error("the challenges in {} can't be read: {source}", folder.display())]
    Folder {
        /// Where.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Nothing could run scripts.
    #[error("scripts: there is no program to run them with")]
    NoWorker,
    /// A challenge can't be hosted so.
    #[error("challenges: {name}: {reason}")]
    Challenge {
        /// Which challenge.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// The file as written. The reference's JSON has the same shape.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    listen: Option<SocketAddr>,
    data: Option<PathBuf>,
    database_url: Option<String>,
    shared: Option<bool>,
    nats_url: Option<String>,
    trust_network: Option<bool>,
    network: Option<NetworkSettings>,
    auth: Option<AuthSettings>,
    limits: Option<LimitSettings>,
    sessions: Option<SessionSettings>,
    challenges: Option<Vec<ChallengeSettings>>,
    scripts: Option<ScriptSettings>,
    scoring: Option<ScoringSettings>,
    tournaments: Option<TournamentSettings>,
}

impl Settings {
    /// The defaults, with what a file sets: JSON if its name ends in `.json`, TOML otherwise.
    ///
    /// # Errors
    /// If the file can't be read, isn't of its format, or has a key that doesn't exist.
    pub fn from_file(path: &Path) -> Result<Settings, SettingsError> {
        let file = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|source| SettingsError::Read { file: file.clone(), source })?;
        let parsed: Result<SettingsFile, String> = if path.extension().is_some_and(|extension| extension == "json") {
            serde_json::from_str(&text).map_err(|error| error.to_string())
        } else {
            toml::from_str(&text).map_err(|error| error.to_string())
        };
        let parsed = parsed.map_err(|reason| SettingsError::Parse { file, reason: reason.trim_end().to_owned() })?;
        let defaults = Settings::default();
        let challenges = parsed.challenges.unwrap_or_default();
        Ok(Settings {
            listen: parsed.listen.unwrap_or(defaults.listen),
            data: parsed.data.unwrap_or(defaults.data),
            database: parsed.database_url.map(|url| url.parse()).transpose()?,
            nodes: NodeSettings {
                shared: parsed.shared.unwrap_or_default(),
                nats: parsed.nats_url.map(|url| url.parse()).transpose()?,
            },
            trust_network: parsed.trust_network.unwrap_or(defaults.trust_network),
            network: parsed.network.unwrap_or_default(),
            auth: parsed.auth.unwrap_or_default(),
            admin_token: None,
            limits: parsed.limits.unwrap_or_default(),
            sessions: parsed.sessions.unwrap_or_default(),
            challenges: if challenges.is_empty() { defaults.challenges } else { challenges },
            scripts: parsed.scripts.unwrap_or_default(),
            scoring: parsed.scoring.unwrap_or_default(),
            tournaments: parsed.tournaments.unwrap_or_default(),
        })
    }

    /// Whether the store is shared with other nodes.
    ///
    /// # Errors
    /// If it can't be.
    pub(crate) fn is_shared(&self) -> Result<bool, SettingsError> {
        match self.nodes.shared || self.nodes.nats.is_some() {
            true if self.database.is_none() => Err(SettingsError::NothingToShare),
            true if self.tournaments.enabled => Err(SettingsError::TournamentsOfNodes),
            shared => Ok(shared),
        }
    }

    /// The scoring that these settings ask for.
    ///
    /// # Errors
    /// If a strategy doesn't exist.
    pub(crate) fn scoring(&self) -> Result<Scoring, SettingsError> {
        let ScoringSettings { default, global, global_source } = &self.scoring;
        let challenges = self.challenges.iter().map(|challenge| (challenge.name.as_str(), &*challenge.scoring));
        Ok(Scoring::new(default, challenges, global.as_deref(), global_source.as_deref())?)
    }

    /// The names of the folders that are there now.
    fn folder_names(&self) -> BTreeSet<String> {
        let found = self.scripts.folders.iter().filter_map(|folder| find_folders(folder).ok()).flatten();
        // As `Folder::read` has it: of a link, the name of what it leads to.
        let whole = found.filter_map(|folder| folder.canonicalize().ok());
        whole.filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned())).collect()
    }

    /// The built-in challenge types that these settings ask for. A folder of the same name takes the place of one.
    ///
    /// # Errors
    /// If one doesn't exist, comes twice, or can't be played with its options.
    pub(crate) fn challenge_types(&self) -> Result<Vec<Arc<dyn ChallengeType>>, SettingsError> {
        let folders = self.folder_names();
        let mut names = BTreeSet::new();
        let mut types: Vec<Arc<dyn ChallengeType>> = Vec::new();
        for ChallengeSettings { name, options, .. } in &self.challenges {
            let refuse = |reason: String| SettingsError::Challenge { name: name.clone(), reason };
            if !names.insert(name) {
                return Err(refuse("is there twice".to_owned()));
            }
            if folders.contains(name) {
                continue;
            }
            let known = arena_games::challenges().collect::<Vec<_>>().join(", ");
            let builtin = arena_games::challenge(name, options);
            // It may be a folder's; those come and go.
            if builtin.is_none() && !self.scripts.folders.is_empty() {
                continue;
            }
            let challenge = builtin
                .ok_or_else(|| refuse(format!("no such challenge; there are: {known}")))?
                .map_err(|error| refuse(format!("options: {error}")))?;
            types.push(challenge);
        }
        Ok(types)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// The settings of a file, or what is wrong with it.
    fn read(name: &str, text: &str) -> Result<Settings, String> {
        let folder = tempfile::tempdir().expect("a temp folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        let settings = Settings::from_file(&path).and_then(|settings| settings.challenge_types().map(|_| settings));
        let all: Vec<&str> = arena_games::challenges().collect();
        let plain = |error: SettingsError| error.to_string().replace(&folder.path().display().to_string(), "DIR");
        settings.map_err(|error| plain(error).replace(&all.join(", "), "ALL"))
    }

    fn check(name: &str, text: &str, expected: Expect) {
        let told =
            read(name, text).map(|settings| format!("{:?} {:?}", settings.limits.body_bytes, settings.challenges));
        expected.assert_eq(&told.unwrap_or_else(|error| error));
    }

    #[test]
    fn everything_built_in_is_hosted_with_the_strategies_that_it_asks_for() {
        let hosted = default_challenges();
        assert!(hosted.iter().map(|challenge| &*challenge.name).eq(arena_games::challenges()));
        let scoring = |name: &str| &hosted.iter().find(|challenge| challenge.name == name).expect("hosted").scoring;
        assert_eq!(*scoring("psi"), ["win-rate", "red-team", "consecutive"]);
        assert_eq!(*scoring("chess"), ["win-rate", "consecutive"]);
    }

    #[test]
    fn a_file_sets_what_it_names() {
        let settings = read("arena.toml", "[limits]\nbody_bytes = 7\n").expect("it is good");
        assert_eq!((settings.limits.body_bytes, settings.challenges), (7, default_challenges()));
        check(
            "config.json",
            r#"{"challenges":[{"name":"psi","options":{"setSize":4},"scoring":["win-rate"]}],"scoring":{"default":["average"]}}"#,
            expect![[
                r#"1048576 [ChallengeSettings { name: "psi", options: {"setSize": Number(4)}, scoring: ["win-rate"] }]"#
            ]],
        );
    }

    #[test]
    fn a_mistake_is_named() {
        check(
            "arena.toml",
            "[limits]\nbody_byte = 7\n",
            expect![[r#"
                the settings file DIR/arena.toml is no good: TOML parse error at line 2, column 1
                  |
                2 | body_byte = 7
                  | ^^^^^^^^^
                unknown field `body_byte`, expected one of `body_bytes`, `message_bytes`, `import_bytes`, `channel_messages`, `requests_per_second`, `requests_burst`, `writes_per_second`, `writes_burst`, `limit_loopback`, `connections`, `connections_per_address`, `connections_reserved`, `waiting_bytes`, `waiting_bytes_per_address`, `stalled_ms`, `signature_queue`, `request_ms`, `drain_ms`, `shutdown_ms`"#]],
        );
        check(
            "config.json",
            r#"{"challenges":[{"name":"checkers"}]}"#,
            expect!["challenges: checkers: no such challenge; there are: ALL"],
        );
        check(
            "config.json",
            r#"{"challenges":[{"name":"psi","options":{"setsize":4}}]}"#,
            expect![
                "challenges: psi: options: unknown field `setsize`, expected one of `players`, `range`, `intersectionSize`, `setSize`"
            ],
        );
        check(
            "config.json",
            r#"{"challenges":[{"name":"psi","options":{"range":[1,5]}}]}"#,
            expect![
                "challenges: psi: options: range has 5 numbers, but intersectionSize + players × setSize needs 23 different ones"
            ],
        );
    }
}
