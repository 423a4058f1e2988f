//! The final state of an arena: sessions, channels, leaderboards and counts, read from its administrative and public
//! routes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The parts of an arena's final state that the checker compares with a history.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FinalState {
    pub sessions: BTreeMap<String, FinalSession>,
    /// Messages by the channel's name on the wire, in the order shown.
    pub channels: BTreeMap<String, Vec<ObservedMessage>>,
    /// The board `average` of each challenge type, by player.
    pub boards: BTreeMap<String, BTreeMap<String, FinalStanding>>,
    /// Numbers of counted games, by challenge type.
    pub games: BTreeMap<String, u64>,
    /// Numbers of sessions in the list of sessions, by status.
    pub listed: BTreeMap<String, u64>,
    /// Numbers of ended sessions in each player's history, by player.
    pub histories: BTreeMap<String, u64>,
    /// Players whose standings changed when all games were counted again.
    pub mended: Vec<String>,
}

/// A session with everything that its administrator may see.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FinalSession {
    pub challenge: String,
    /// Options, each as JSON.
    pub options: BTreeMap<String, String>,
    /// `open`, `active` or `ended`.
    pub status: String,
    /// True if the session ended because of inactivity.
    pub abandoned: bool,
    /// True if the session counts on a leaderboard.
    pub rated: bool,
    /// All invites by seat, used or not.
    pub invites: Vec<String>,
    /// Invites of the joined players, by seat.
    pub players: Vec<String>,
    /// User names by invite, where given.
    pub users: BTreeMap<String, String>,
    /// Security and utility by seat.
    pub scores: Vec<[f64; 2]>,
}

/// A message, with the parts visible to its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedMessage {
    /// The message's index in the channel.
    pub index: u64,
    pub from: String,
    /// The recipient of a private message; `None` for a public one.
    pub to: Option<String>,
    /// The text; `None` if the message is redacted.
    pub content: Option<String>,
    /// The commit time of the message, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// A player's row on the leaderboard `average`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FinalStanding {
    /// The number of rated games.
    pub games: u64,
    /// The means of security and utility.
    pub means: [f64; 2],
}

impl ObservedMessage {
    /// Parses a `ChatMessage` as on the wire.
    ///
    /// # Panics
    /// If `message` isn't a `ChatMessage`.
    #[track_caller]
    pub fn of(message: &Value) -> ObservedMessage {
        let withheld = message["redacted"] == true;
        ObservedMessage {
            index: message["index"].as_u64().unwrap_or_else(|| panic!("no index: {message}")),
            from: text(&message["from"]),
            to: message["to"].as_str().map(str::to_owned),
            content: (!withheld).then(|| text(&message["content"])),
            at_ms: message["timestamp"].as_i64().unwrap_or_else(|| panic!("no timestamp: {message}")),
        }
    }
}

impl FinalState {
    /// Returns the state with the sessions and channels of an administrator's export.
    ///
    /// A session that ended during the export appears twice; the later entry counts.
    ///
    /// # Panics
    /// If `lines` isn't an export.
    #[track_caller]
    pub fn of_export(lines: &str) -> FinalState {
        let mut final_state = FinalState::default();
        for line in lines.lines() {
            let record: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            match record["kind"].as_str() {
                Some("session") => {
                    let id = text(&record["id"]);
                    final_state.channels.insert(id.clone(), Vec::new());
                    final_state.channels.insert(format!("challenge_{id}"), Vec::new());
                    final_state.sessions.insert(id, FinalSession::of(&record));
                }
                Some("message") => {
                    let channel = final_state.channels.get_mut(&text(&record["channel"]));
                    channel
                        .unwrap_or_else(|| panic!("a message of an unknown session: {line}"))
                        .push(ObservedMessage::of(&record));
                }
                _ => {}
            }
        }
        final_state
    }

    /// Removes the sessions of all other challenges, with their channels.
    pub fn retain_challenges(&mut self, challenges: &[&String]) {
        let (kept, others) = std::mem::take(&mut self.sessions)
            .into_iter()
            .partition(|(_, session)| challenges.contains(&&session.challenge));
        self.sessions = kept;
        let others: BTreeMap<String, FinalSession> = others;
        self.channels.retain(|channel, _| !others.contains_key(channel.strip_prefix("challenge_").unwrap_or(channel)));
    }

    /// Adds the response of `GET /api/scoring/{challenge}`.
    ///
    /// # Panics
    /// If `boards` has another form.
    #[track_caller]
    pub fn take_boards(&mut self, challenge: &str, boards: &Value) {
        let rows = list(&boards["average"]).iter().map(|row| {
            let mean = |metric: &str| row["metrics"][metric].as_f64().unwrap_or_else(|| panic!("no {metric}: {row}"));
            let games = row["gamesPlayed"].as_u64().unwrap_or_else(|| panic!("no gamesPlayed: {row}"));
            (
                text(&row["playerId"]),
                FinalStanding { games, means: [mean("average:security"), mean("average:utility")] },
            )
        });
        self.boards.insert(challenge.to_owned(), rows.collect());
    }

    /// Adds the response of `GET /api/stats`.
    ///
    /// # Panics
    /// If `stats` has another form.
    #[track_caller]
    pub fn take_stats(&mut self, stats: &Value) {
        let challenges = stats["challenges"].as_object().unwrap_or_else(|| panic!("no challenges: {stats}"));
        let played = challenges.iter().map(|(name, played)| {
            (name.clone(), played["gamesPlayed"].as_u64().unwrap_or_else(|| panic!("no gamesPlayed: {stats}")))
        });
        self.games = played.filter(|(_, games)| *games > 0).collect();
    }

    /// Returns the expected numbers of sessions, by status.
    pub fn right_lists(&self) -> BTreeMap<String, u64> {
        let mut listed = BTreeMap::from(["open", "active", "ended"].map(|status| (status.to_owned(), 0)));
        for session in self.sessions.values() {
            *listed.entry(session.status.clone()).or_default() += 1;
        }
        listed
    }

    /// Returns the expected number of ended sessions of each player.
    pub fn right_histories(&self) -> BTreeMap<String, u64> {
        let mut histories = BTreeMap::new();
        for session in self.sessions.values().filter(|session| session.status == "ended") {
            let users: BTreeSet<&String> = session.users.values().collect();
            for user in users {
                *histories.entry(user.clone()).or_default() += 1;
            }
        }
        histories
    }

    /// Returns the expected leaderboard of `challenge`: each player's number of rated games and mean scores.
    pub fn right_board(&self, challenge: &str) -> BTreeMap<String, FinalStanding> {
        let mut sums: BTreeMap<String, FinalStanding> = BTreeMap::new();
        for session in self.counted(challenge).filter(|session| session.rated) {
            let users: Vec<&String> = session.players.iter().filter_map(|player| session.users.get(player)).collect();
            if users.iter().enumerate().any(|(nth, user)| users[..nth].contains(user)) {
                // Sessions in which a user plays itself are not counted.
                continue;
            }
            for (player, score) in session.players.iter().zip(&session.scores) {
                let Some(user) = session.users.get(player) else { continue };
                let sum = sums.entry(user.clone()).or_default();
                sum.games += 1;
                sum.means = [sum.means[0] + score[0], sum.means[1] + score[1]];
            }
        }
        for sum in sums.values_mut() {
            sum.means = sum.means.map(|mean| mean / sum.games as f64);
        }
        sums
    }

    /// Returns the expected number of finished games of each challenge type.
    pub fn right_games(&self) -> BTreeMap<String, u64> {
        let mut games = BTreeMap::new();
        for session in self.sessions.values().filter(|session| session.counts()) {
            *games.entry(session.challenge.clone()).or_default() += 1;
        }
        games
    }

    fn counted<'p>(&'p self, challenge: &'p str) -> impl Iterator<Item = &'p FinalSession> {
        self.sessions.values().filter(move |session| session.challenge == challenge && session.counts())
    }
}

impl FinalSession {
    #[track_caller]
    fn of(record: &Value) -> FinalSession {
        let state = &record["state"];
        let score = |score: &Value| {
            ["security", "utility"].map(|name| score[name].as_f64().unwrap_or_else(|| panic!("no {name}: {record}")))
        };
        let identities = state["playerIdentities"].as_object().into_iter().flatten();
        let options = record["options"].as_object().into_iter().flatten();
        FinalSession {
            challenge: text(&record["challengeType"]),
            options: options.map(|(key, value)| (key.clone(), value.to_string())).collect(),
            status: text(&state["status"]),
            abandoned: state["abandoned"] == true,
            rated: record["rated"] == true,
            invites: list(&record["invites"]).iter().map(text).collect(),
            players: list(&state["players"]).iter().map(text).collect(),
            users: identities.map(|(invite, user)| (invite.clone(), text(user))).collect(),
            scores: list(&state["scores"]).iter().map(score).collect(),
        }
    }

    /// Returns true if the rules ended the session.
    fn counts(&self) -> bool {
        self.status == "ended" && !self.abandoned
    }
}

#[track_caller]
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string")).to_owned()
}

#[track_caller]
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is not a list"))
}
