//! What may be done with tournaments: `[tournaments]` in `arena.toml`.

use std::num::NonZeroU16;

use arena_match::Launcher;
use serde::Deserialize;

/// Tournaments between bots that this server plays: `[tournaments]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TournamentSettings {
    /// Whether there are any.
    pub enabled: bool,
    /// Who may create one.
    pub create: Creators,
    /// Who may upload agents, to be run here.
    pub upload: Uploaders,
    /// Whether agents may be servers, named by their addresses. Who may create tournaments may name them.
    pub urls: bool,
    /// Whether such servers may be at addresses of this machine and of private networks.
    pub private_urls: bool,
    /// Most agents of a tournament.
    pub max_agents: usize,
    /// Most games of a tournament, without tie-breaks.
    pub max_games: u64,
    /// Longest time that a tournament may be played in one go, in seconds. Who takes longer has failed.
    pub max_seconds: u64,
    /// Most tournaments that wait or are played.
    pub max_tournaments: usize,
    /// Most tournaments that are kept, those included. Then old ones have to be removed before others are created.
    pub tournaments: usize,
    /// Matches that are played beside each other on this server.
    pub concurrency: NonZeroU16,
    /// Largest agent that can be uploaded, in bytes as it is sent.
    pub upload_bytes: usize,
    /// Largest agent as it is unpacked, in bytes.
    pub unpacked_bytes: u64,
    /// Most agents that are kept.
    pub agents: usize,
    /// Whether replays are kept, and what agents wrote to stderr.
    pub keep_replays: bool,
    /// Largest replay that is kept, in bytes.
    pub replay_bytes: u64,
    /// The program that starts agents. Not in the file: it is the one that reads the file.
    #[serde(skip)]
    pub launcher: Option<Launcher>,
}

/// Who may create tournaments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Creators {
    /// Whoever shows the administrator's token.
    Admin,
    /// Everybody who reaches the server.
    Anyone,
}

/// Who may upload agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Uploaders {
    /// No one: agents are servers.
    Nobody,
    /// Whoever shows the administrator's token.
    Admin,
    /// Everybody who reaches the server.
    Anyone,
}

impl Default for TournamentSettings {
    fn default() -> Self {
        TournamentSettings {
            enabled: false,
            create: Creators::Admin,
            upload: Uploaders::Admin,
            urls: false,
            private_urls: false,
            max_agents: 32,
            max_games: 2_000,
            max_seconds: 24 * 60 * 60,
            max_tournaments: 20,
            tournaments: 1_000,
            concurrency: const { NonZeroU16::new(1).expect("not 0") },
            upload_bytes: 8 * 1024 * 1024,
            unpacked_bytes: 32 * 1024 * 1024,
            agents: 200,
            keep_replays: true,
            replay_bytes: 64 * 1024 * 1024,
            launcher: None,
        }
    }
}
