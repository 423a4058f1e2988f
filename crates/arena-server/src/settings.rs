//! The settings, with one struct per section of `arena.toml`. The server reads them once, at the start. Unknown keys
//! and invalid values are errors.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_engine::{Limits, NatsUrl, NatsUrlError};
use arena_identity::ServerSecret;
use arena_model::{ChallengeType, InactivityLimits, Scoring, ScoringError, ScriptedStrategy};
use arena_script::{ScriptKind, WorkerProgram, find_folders_of};
use arena_store::{DatabaseUrl, DatabaseUrlError};
use arena_wire::removed;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::auth::AdminToken;
use crate::connection::tls::TlsFiles;
use crate::limits::{ClientHeader, LimitSettings, TrustedProxies};
use crate::request::AllowedOrigin;
use crate::tournaments::TournamentSettings;
use crate::web::SiteSettings;

/// The settings of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Address and port to listen on. Port 0 means any free port.
    pub listen: SocketAddr,
    /// Folder of the embedded store, generated secrets and tournaments. The server creates it if it doesn't exist.
    pub data: PathBuf,
    /// The Postgres database of the store. Default: a store in the data folder.
    pub database: Option<DatabaseUrl>,
    /// Settings of nodes that share a database.
    pub nodes: NodeSettings,
    /// True if the server may listen on addresses other than loopback without authentication.
    pub trust_network: bool,
    /// Other origins, proxies in front of the server, and a private address.
    pub network: NetworkSettings,
    /// Links in the footer of all pages.
    pub site: SiteSettings,
    /// Authentication of players.
    pub auth: AuthSettings,
    /// The administrator's token. Default: the token in the data folder, generated at the first start. The settings
    /// file has no such key, since it must not contain secrets.
    pub admin_token: Option<AdminToken>,
    /// Limits on requests, connections and memory.
    pub limits: LimitSettings,
    /// Time limits and rules of sessions.
    pub sessions: SessionSettings,
    /// Hosted built-in challenges, and settings of scripted ones.
    pub challenges: Vec<ChallengeSettings>,
    /// Settings of scripted challenges.
    pub scripts: ScriptSettings,
    /// Scoring of ended games.
    pub scoring: ScoringSettings,
    /// Tournaments between agents.
    pub tournaments: TournamentSettings,
    /// Pages of evaluations.
    pub evals: EvalSettings,
    /// House bots.
    pub house: HouseSettings,
    /// Records of sessions, and the public log.
    pub records: RecordSettings,
    /// Archival of ended sessions.
    pub retention: RetentionSettings,
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
            site: SiteSettings::default(),
            auth: AuthSettings::default(),
            admin_token: None,
            limits: LimitSettings::default(),
            sessions: SessionSettings::default(),
            challenges: default_challenges(),
            scripts: ScriptSettings::default(),
            scoring: ScoringSettings::default(),
            tournaments: TournamentSettings::default(),
            evals: EvalSettings::default(),
            house: HouseSettings::default(),
            records: RecordSettings::default(),
            retention: RetentionSettings::default(),
        }
    }
}

/// Returns all built-in challenges, each with its suitable scoring strategies.
fn default_challenges() -> Vec<ChallengeSettings> {
    let hosted = arena_games::all().map(|playable| ChallengeSettings {
        name: playable.id.to_owned(),
        options: Map::new(),
        scoring: playable.kit.scoring.iter().map(|name| (*name).to_owned()).collect(),
    });
    hosted.collect()
}

/// Nodes on a shared database: `shared` and `nats_url` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeSettings {
    /// True if several nodes share the database; each node must set this key. If false, the server locks the database.
    pub shared: bool,
    /// The NATS server over which nodes announce changes; implies `shared`. Without a NATS server, nodes poll the
    /// database four times per second.
    pub nats: Option<NatsUrl>,
}

/// Other origins, proxies in front of the server, and a private address: `[network]` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSettings {
    /// Origins of web pages that may write, in addition to the arena's own: `https://page.example`, or `*` for all.
    /// Without authentication, pages of other origins may only read.
    pub allowed_origins: Vec<AllowedOrigin>,
    /// Addresses and ranges of the proxies that name their clients in `client_header`. The limits and bans of addresses
    /// then apply to these clients, and the proxies' own connections are not limited.
    pub trusted_proxies: TrustedProxies,
    /// The way in which the proxies name their clients.
    pub client_header: ClientHeader,
    /// A second address to listen on. Administration and metrics are then at this address only.
    pub private_listen: Option<SocketAddr>,
    /// The certificate of the public address. Without it, the address has no TLS.
    pub tls: Option<TlsFiles>,
}

/// Authentication of players: `[auth]` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthSettings {
    /// True for authentication mode: joins are signed, and later requests need a session key. False for standalone
    /// mode, in which `from` identifies the caller.
    pub enabled: bool,
    /// The secret from which session keys are computed. Default: the secret in the data folder, generated on first use.
    /// The settings file has no such key, since it must not contain secrets.
    #[serde(skip)]
    pub secret: Option<ServerSecret>,
}

/// Archival of ended sessions and removal of ended tournaments: `[retention]` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionSettings {
    /// Age in days at which the messages of an ended session move to the archive. 0 means never.
    pub archive_after_days: u32,
    /// Age in days at which an ended tournament is removed with its replays. 0 means never.
    pub remove_tournaments_after_days: u32,
    /// The folder of the archive. Default: `archive` in the data folder. Nodes that share a database need one folder
    /// that all of them can reach.
    pub folder: Option<PathBuf>,
}

/// Time limits and rules of sessions: `[sessions]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// Age in seconds at which an open session is removed. 0 means never.
    pub stale_open_s: u64,
    /// Idle time in seconds after which an active session ends as abandoned. 0 means never.
    pub stale_active_s: u64,
    /// Maximum bytes that a session's operator may write without a player's action; then the session ends as abandoned.
    /// Chat doesn't count as an action. 0 means no limit.
    pub unattended_bytes: u64,
    /// True if spectators may chat in sessions.
    pub spectators_chat: bool,
    /// True if a user may take two seats of a session. Such games are unrated.
    pub self_play: bool,
    /// True if private chat messages become public when a session has ended.
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
    fn inactivity(&self) -> InactivityLimits {
        let ms = |s: u64| (s > 0).then(|| i64::try_from(s).unwrap_or(i64::MAX).saturating_mul(1000));
        let unattended_bytes = Some(self.unattended_bytes).filter(|bytes| *bytes > 0);
        InactivityLimits { open_ms: ms(self.stale_open_s), active_ms: ms(self.stale_active_s), unattended_bytes }
    }
}

/// A hosted challenge: `[[challenges]]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChallengeSettings {
    /// The challenge type's id, such as `psi`.
    pub name: String,
    /// Overrides of the challenge type's default options.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Scoring strategies of the challenge's games, in addition to those of [`ScoringSettings::default`].
    #[serde(default)]
    pub scoring: Vec<String>,
}

/// Scripted challenges: `[scripts]` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptSettings {
    /// Folders of challenges, or folders that contain such folders. The server watches and reloads them.
    pub folders: Vec<PathBuf>,
    /// Limits of a script call: `[scripts.limits]`.
    pub limits: arena_script::Limits,
    /// The program that runs scripts, with its arguments. The settings file has no such key, since the program is the
    /// arena's own binary.
    #[serde(skip)]
    pub worker: Option<WorkerProgram>,
}

/// Scoring of ended games: `[scoring]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoringSettings {
    /// Folders of scripted strategies, or folders that contain such folders. The server watches and reloads them.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
    /// Strategies for all challenges.
    #[serde(default)]
    pub default: Vec<String>,
    /// The global strategy, if any.
    #[serde(default, deserialize_with = "one_or_none")]
    pub global: Option<String>,
    /// The strategy that the global strategy averages. Default: the first built-in strategy of `default`.
    #[serde(default, alias = "globalSource")]
    pub global_source: Option<String>,
}

impl Default for ScoringSettings {
    fn default() -> Self {
        ScoringSettings {
            folders: Vec::new(),
            default: vec!["average".to_owned()],
            global: Some("global-average".to_owned()),
            global_source: None,
        }
    }
}

/// Reports of evaluations: `[evals]` in `arena.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvalSettings {
    /// The folder with the folders of runs. All visitors may read the reports that `arena eval report` wrote into them.
    /// Without a folder, the server has no such pages.
    pub folder: Option<PathBuf>,
}

/// House bots, which play with visitors: `[house]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HouseSettings {
    /// True if the server has house bots. Default: true if it listens on loopback.
    pub enabled: Option<bool>,
    /// Maximum number of seats that house bots play at the same time, each on its own thread.
    pub seats: usize,
    /// Maximum number of these seats per address. A single game may have more, up to half of all seats. 0 means no limit.
    pub seats_per_address: usize,
    /// A language model that visitors can play against, as `NAME@URL` with the endpoint's URL.
    pub model: Option<String>,
    /// The maximum cost of the model's games since the start of the server, in US dollars. A game may cost a tenth of
    /// it.
    pub model_cost: Option<f64>,
    /// The price of a million input tokens, in US dollars.
    pub model_price_in: Option<f64>,
    /// The price of a million output tokens, in US dollars.
    pub model_price_out: Option<f64>,
}

impl Default for HouseSettings {
    fn default() -> Self {
        HouseSettings {
            enabled: None,
            seats: 16,
            seats_per_address: 4,
            model: None,
            model_cost: None,
            model_price_in: None,
            model_price_out: None,
        }
    }
}

/// Records of sessions, and the public log of all sessions: `[records]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordSettings {
    /// True if the server keeps the log and serves it below `/log`.
    pub log: bool,
    /// The log's name in its checkpoints, such as `arena.example/log`. Default: a name made from the log key.
    pub origin: Option<String>,
    /// The secret from which the record key, the log key and the salts of records are computed. Default: the keys and
    /// salts in the data folder. The settings file has no such key, since it must not contain secrets.
    #[serde(skip)]
    pub secret: Option<ServerSecret>,
}

impl Default for RecordSettings {
    fn default() -> Self {
        RecordSettings { log: true, origin: None, secret: None }
    }
}

/// Deserializes a string, or a list of at most one string.
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
        Some(OneOrMany::Many(_)) => {
            Err(serde::de::Error::custom("global must be a single strategy, not a list of several"))
        }
    }
}

/// An error in the settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("cannot read the settings file {file}")]
    Read {
        file: String,
        #[source]
        source: std::io::Error,
    },
    #[error("invalid settings file {file}: {reason}")]
    Parse { file: String, reason: String },
    #[error("database_url: {0}")]
    Database(#[from] DatabaseUrlError),
    #[error("nats_url: {0}")]
    Nats(#[from] NatsUrlError),
    #[error("scoring: {0}")]
    Scoring(#[from] ScoringError),
    /// `self_play = false` without authentication: a refused join would reveal an opponent's user id.
    #[error(
        "sessions: self_play = false requires authentication; otherwise joins could reveal the other players' user ids"
    )]
    SelfPlayUnknowable,
    #[error("--shared and --nats-url require --database-url")]
    NothingToShare,
    /// Tournaments in a folder that the other nodes couldn't read.
    #[error(
        "tournaments.folder is missing: nodes that share a database need one folder for tournaments, which all of them can reach"
    )]
    TournamentsOfNodes,
    /// An archive that the other nodes couldn't read.
    #[error(
        "retention.folder is missing: nodes that share a database need one folder for the archive, which all of them can reach"
    )]
    ArchiveOfNodes,
    #[error("tournaments: no launcher program is configured")]
    NoLauncher,
    /// A folder of scripts can't be read at the start. Later errors of this kind are only logged.
    #[error("cannot read the {} in {}: {source}", kind.plural(), folder.display())]
    Folder { kind: ScriptKind, folder: PathBuf, source: std::io::Error },
    #[error("scripts: no worker program is configured")]
    NoWorker,
    #[error("challenges: {name}: {reason}")]
    Challenge { name: String, reason: String },
}

/// The format of the settings file. The JSON settings of the reference server, SpecArena, have the same format.
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
    site: Option<SiteSettings>,
    auth: Option<AuthSettings>,
    limits: Option<LimitSettings>,
    sessions: Option<SessionSettings>,
    challenges: Option<Vec<ChallengeSettings>>,
    scripts: Option<ScriptSettings>,
    scoring: Option<ScoringSettings>,
    tournaments: Option<TournamentSettings>,
    evals: Option<EvalSettings>,
    house: Option<HouseSettings>,
    records: Option<RecordSettings>,
    retention: Option<RetentionSettings>,
}

/// Returns what to use instead of the first removed key in these settings.
fn removed_key(text: &str) -> Option<String> {
    fn find(settings: &Value, parent: &str) -> Option<String> {
        settings.as_object()?.iter().find_map(|(key, value)| {
            let key = if parent.is_empty() { key.clone() } else { format!("{parent}.{key}") };
            removed::sentence(removed::Kind::Setting, &key).or_else(|| find(value, &key))
        })
    }
    let settings = serde_json::from_str(text).ok().or_else(|| toml::from_str(text).ok())?;
    find(&settings, "")
}

impl Settings {
    /// True if the server has house bots.
    pub fn has_house(&self) -> bool {
        self.house.enabled.unwrap_or(self.listen.ip().is_loopback())
    }

    /// Reads settings from a file; missing keys have their defaults. The file is JSON if its name ends in `.json`,
    /// otherwise TOML.
    ///
    /// # Errors
    /// If the file can't be read, is malformed, or has an unknown key.
    pub fn from_file(path: &Path) -> Result<Settings, SettingsError> {
        let file = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|source| SettingsError::Read { file: file.clone(), source })?;
        let parsed: Result<SettingsFile, String> = if path.extension().is_some_and(|extension| extension == "json") {
            serde_json::from_str(&text).map_err(|error| error.to_string())
        } else {
            toml::from_str(&text).map_err(|error| error.to_string())
        };
        let parsed = parsed.map_err(|reason| {
            let reason = removed_key(&text).unwrap_or_else(|| reason.trim_end().to_owned());
            SettingsError::Parse { file, reason }
        })?;
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
            site: parsed.site.unwrap_or_default(),
            auth: parsed.auth.unwrap_or_default(),
            admin_token: None,
            limits: parsed.limits.unwrap_or_default(),
            sessions: parsed.sessions.unwrap_or_default(),
            challenges: if challenges.is_empty() { defaults.challenges } else { challenges },
            scripts: parsed.scripts.unwrap_or_default(),
            scoring: parsed.scoring.unwrap_or_default(),
            tournaments: parsed.tournaments.unwrap_or_default(),
            evals: parsed.evals.unwrap_or_default(),
            house: parsed.house.unwrap_or_default(),
            records: parsed.records.unwrap_or_default(),
            retention: parsed.retention.unwrap_or_default(),
        })
    }

    /// True if the store is shared with other nodes.
    ///
    /// # Errors
    /// If there is no database to share, or no folder for tournaments.
    pub(crate) fn is_shared(&self) -> Result<bool, SettingsError> {
        match self.nodes.shared || self.nodes.nats.is_some() {
            true if self.database.is_none() => Err(SettingsError::NothingToShare),
            true if self.tournaments.enabled && self.tournaments.folder.is_none() => {
                Err(SettingsError::TournamentsOfNodes)
            }
            shared => Ok(shared),
        }
    }

    pub(crate) fn engine_limits(&self) -> Limits {
        Limits {
            channel_messages: self.limits.channel_messages,
            chat_bytes: self.limits.chat_bytes,
            spectators_chat: self.sessions.spectators_chat,
            self_play: self.sessions.self_play,
            proven_players: self.auth.enabled,
            inactivity: self.sessions.inactivity(),
        }
    }

    /// Returns the folder of the archive. Nodes that share a database have none without a setting.
    ///
    /// # Errors
    /// If these nodes need it.
    pub(crate) fn archive(&self) -> Result<Option<PathBuf>, SettingsError> {
        match &self.retention.folder {
            Some(folder) => Ok(Some(folder.clone())),
            None if !self.is_shared()? => Ok(Some(self.data.join("archive"))),
            None if self.retention.archive_after_days > 0 => Err(SettingsError::ArchiveOfNodes),
            None => Ok(None),
        }
    }

    /// Builds the scoring from the settings, without scripted strategies.
    ///
    /// # Errors
    /// If a strategy is neither built in nor the name of a folder.
    pub(crate) fn scoring(&self) -> Result<Scoring, SettingsError> {
        let ScoringSettings { folders, default, global, global_source } = &self.scoring;
        let scripted = folder_names(ScriptKind::Strategy, folders);
        let built_in = |names: &[String]| -> Vec<String> {
            names.iter().filter(|name| !scripted.contains(*name)).cloned().collect()
        };
        let own: Vec<(&str, Vec<String>)> =
            self.challenges.iter().map(|challenge| (challenge.name.as_str(), built_in(&challenge.scoring))).collect();
        let challenges = own.iter().map(|(name, scoring)| (*name, scoring.as_slice()));
        Ok(Scoring::new(&built_in(default), challenges, global.as_deref(), global_source.as_deref())?)
    }

    /// Adds the challenge types for which the settings name a scripted strategy.
    pub(crate) fn add_challenges(&self, scripted: &mut ScriptedStrategy) {
        let is_named = |names: &[String]| names.iter().any(|name| name == scripted.strategy.name);
        if is_named(&self.scoring.default) {
            scripted.challenges = None;
        }
        let named = self.challenges.iter().filter(|challenge| is_named(&challenge.scoring));
        let named: Vec<String> = named.map(|challenge| challenge.name.clone()).collect();
        if let Some(challenges) = &mut scripted.challenges {
            challenges.extend(named);
        }
    }

    /// Builds the built-in challenge types. A challenge folder replaces the built-in type of the same name.
    ///
    /// # Errors
    /// If a challenge type is unknown, listed twice, or has invalid options.
    pub(crate) fn challenge_types(&self) -> Result<Vec<Arc<dyn ChallengeType>>, SettingsError> {
        let folders = folder_names(ScriptKind::Challenge, &self.scripts.folders);
        let mut names = BTreeSet::new();
        let mut types: Vec<Arc<dyn ChallengeType>> = Vec::new();
        for ChallengeSettings { name, options, .. } in &self.challenges {
            let refuse = |reason: String| SettingsError::Challenge { name: name.clone(), reason };
            if !names.insert(name) {
                return Err(refuse("the challenge is listed twice".to_owned()));
            }
            if folders.contains(name) {
                continue;
            }
            let known = arena_games::challenges().collect::<Vec<_>>().join(", ");
            let builtin = arena_games::challenge(name, options);
            // The name may belong to a folder that doesn't exist yet.
            if builtin.is_none() && !self.scripts.folders.is_empty() {
                continue;
            }
            let challenge = builtin
                .ok_or_else(|| refuse(format!("unknown challenge; available: {known}")))?
                .map_err(|error| refuse(error.to_string()))?;
            types.push(challenge);
        }
        Ok(types)
    }
}

/// Returns the names of the existing folders of scripts.
fn folder_names(kind: ScriptKind, folders: &[PathBuf]) -> BTreeSet<String> {
    let found = folders.iter().filter_map(|folder| find_folders_of(kind, folder).ok()).flatten();
    // As in `Folder::read_of`, a symbolic link counts under the name of its target.
    let whole = found.filter_map(|folder| folder.canonicalize().ok());
    whole.filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// Writes a settings file and reads it. Returns the settings, or the text of the error.
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
        let outcome =
            read(name, text).map(|settings| format!("{:?} {:?}", settings.limits.body_bytes, settings.challenges));
        expected.assert_eq(&outcome.unwrap_or_else(|error| error));
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
    fn nodes_share_the_folder_of_the_archive() {
        let archive = |text: &str| {
            let settings = read("arena.toml", text).expect("it is good");
            match settings.archive() {
                Ok(Some(folder)) => folder.display().to_string(),
                Ok(None) => "none".to_owned(),
                Err(error) => error.to_string(),
            }
        };
        let shared = "shared = true\ndatabase_url = 'postgres://arena@db/arena'\n";
        for (text, expected) in [
            ("", "arena-data/archive"),
            ("data = 'd'\n[retention]\narchive_after_days = 3", "d/archive"),
            ("[retention]\nfolder = 'f'", "f"),
            (shared, "none"),
            (&format!("{shared}[retention]\nfolder = 'f'\narchive_after_days = 3"), "f"),
            (
                &format!("{shared}[retention]\narchive_after_days = 3"),
                "retention.folder is missing: nodes that share a database need one folder for the archive, which all of them can reach",
            ),
        ] {
            assert_eq!(archive(text), expected, "{text}");
        }
    }

    #[test]
    fn a_file_overrides_its_keys_only() {
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
                invalid settings file DIR/arena.toml: TOML parse error at line 2, column 1
                  |
                2 | body_byte = 7
                  | ^^^^^^^^^
                unknown field `body_byte`, expected one of `body_bytes`, `message_bytes`, `import_bytes`, `channel_messages`, `chat_bytes`, `requests_per_second`, `requests_burst`, `writes_per_second`, `writes_burst`, `limit_loopback`, `disk_reserve_bytes`, `stored_bytes_per_address`, `computing_ms_per_second`, `computing_burst_ms`, `running_sessions_per_address`, `tickets_per_address`, `streams_per_address`, `connections`, `connections_per_address`, `connections_reserved`, `waiting_bytes`, `waiting_bytes_per_address`, `stalled_ms`, `signature_queue`, `request_ms`, `drain_ms`, `shutdown_ms`"#]],
        );
        check(
            "arena.toml",
            "[retention]\nbucket = 's3://arena'\n",
            expect![
                "invalid settings file DIR/arena.toml: the setting retention.bucket was removed: The archive is a folder. Copy the objects of the bucket to a folder, with their names, or restore all games with the version before (`arena admin restore --all`); then set retention.folder."
            ],
        );
        check(
            "config.json",
            r#"{"challenges":[{"name":"checkers"}]}"#,
            expect!["challenges: checkers: unknown challenge; available: ALL"],
        );
        check(
            "config.json",
            r#"{"challenges":[{"name":"psi","options":{"setsize":4}}]}"#,
            expect![
                "challenges: psi: option `setsize`: unknown field `setsize`, expected one of `players`, `range`, `intersectionSize`, `setSize`"
            ],
        );
        check(
            "config.json",
            r#"{"challenges":[{"name":"psi","options":{"range":[1,5]}}]}"#,
            expect![
                "challenges: psi: range has 5 numbers, but intersectionSize + players × setSize needs 23 different ones"
            ],
        );
    }
}
