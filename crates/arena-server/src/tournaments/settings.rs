//! Settings of tournaments.

use std::num::NonZeroU16;
use std::path::PathBuf;

use arena_engine::NatsUrl;
use arena_match::Launcher;
use arena_runner::nats::CROSS_CHECK;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Settings of tournaments: `[tournaments]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TournamentSettings {
    /// True if this server plays tournaments.
    pub enabled: bool,
    /// The folder of agents and tournaments. Nodes that share a database need one that all of them reach at the same path.
    /// Default: the data folder.
    pub folder: Option<PathBuf>,
    /// Clients that may create tournaments.
    pub create: Creators,
    /// Clients that may upload agents, which run on this server.
    pub upload: Uploaders,
    /// True if remote agents are allowed. Clients that may create tournaments may also add remote agents.
    pub urls: bool,
    /// True if remote agents may have loopback and private addresses.
    pub private_urls: bool,
    /// Maximum number of agents in a tournament.
    pub max_agents: usize,
    /// Maximum number of games in a tournament, without tie-breaks.
    pub max_games: u64,
    /// Time limit of a tournament, in seconds, after which the tournament fails. A restart of the server restarts the
    /// time.
    pub max_seconds: u64,
    /// Playing time in seconds after which the turn passes to another address whose tournament waits. Running matches end
    /// first; one that takes as long again fails its tournament, but for the administrator's. 0 means no limit.
    pub turn_seconds: u64,
    /// Maximum time per step, in milliseconds, that clients without the administrator's token may ask for. A game's
    /// default is always allowed.
    pub max_step_ms: u64,
    /// Maximum time bank, in milliseconds, likewise.
    pub max_bank_ms: u64,
    /// Maximum number of queued and running tournaments.
    pub max_tournaments: usize,
    /// Maximum number of queued and running tournaments per address, without the administrator's. 0 means no limit.
    pub max_tournaments_per_address: usize,
    /// Maximum number of stored tournaments, including queued ones.
    pub tournaments: usize,
    /// Number of concurrent matches on this server.
    pub concurrency: NonZeroU16,
    /// The share of the time in which a ladder game is being played, from 0 to 1. 0 disables ladders.
    #[serde(deserialize_with = "read_share")]
    pub ladder_share: f64,
    /// The NATS server whose workers play the matches. Default: this server plays them.
    #[serde(deserialize_with = "read_url")]
    pub nats_url: Option<NatsUrl>,
    /// The share of matches that two workers play for comparison, from 0 to 1.
    #[serde(deserialize_with = "read_share")]
    pub cross_check: f64,
    /// Maximum size of an upload, in bytes.
    pub upload_bytes: usize,
    /// Maximum size of an unpacked agent, in bytes.
    pub unpacked_bytes: u64,
    /// Maximum number of stored agents.
    pub agents: usize,
    /// Maximum number of stored agents per address, without the administrator's. 0 means no limit. A restart of the
    /// server restarts the count.
    pub agents_per_address: usize,
    /// True if replays and agents' stderr are kept.
    pub keep_replays: bool,
    /// Maximum size of a kept replay, in bytes.
    pub replay_bytes: u64,
    /// The program that starts agents. The settings file has no such key, since the program is the arena's own binary.
    #[serde(skip)]
    pub launcher: Option<Launcher>,
}

/// Clients that may create tournaments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Creators {
    /// Requests with the administrator's token.
    Admin,
    /// All clients.
    Anyone,
}

/// Clients that may upload agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Uploaders {
    /// Uploads are disabled.
    Nobody,
    /// Requests with the administrator's token.
    Admin,
    /// All clients.
    Anyone,
}

impl Default for TournamentSettings {
    fn default() -> Self {
        TournamentSettings {
            enabled: false,
            folder: None,
            create: Creators::Admin,
            upload: Uploaders::Admin,
            urls: false,
            private_urls: false,
            max_agents: 32,
            max_games: 2_000,
            max_seconds: 24 * 60 * 60,
            turn_seconds: 600,
            max_step_ms: 10_000,
            max_bank_ms: 60_000,
            max_tournaments: 20,
            max_tournaments_per_address: 5,
            tournaments: 1_000,
            concurrency: const { NonZeroU16::new(1).expect("not 0") },
            ladder_share: 0.5,
            nats_url: None,
            cross_check: CROSS_CHECK,
            upload_bytes: 8 * 1024 * 1024,
            unpacked_bytes: 32 * 1024 * 1024,
            agents: 200,
            agents_per_address: 20,
            keep_replays: true,
            replay_bytes: 64 * 1024 * 1024,
            launcher: None,
        }
    }
}

fn read_share<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(from)?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err(D::Error::custom("this setting must be a share from 0 to 1")),
    }
}

/// Reads the URL of a NATS server. An error doesn't contain the URL, which may have a password.
fn read_url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NatsUrl>, D::Error> {
    let text = String::deserialize(from)?;
    let url = text.parse().map_err(|error| D::Error::custom(format_args!("invalid nats_url: {error}")))?;
    Ok(Some(url))
}
