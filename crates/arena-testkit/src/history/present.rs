//! What an arena shows when all is quiet: sessions, channels, leaderboards, counts; read from the answers of its administrator's and
//! public routes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// All that an arena shows, as far as it is compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Present {
    /// By id.
    pub sessions: BTreeMap<String, Seen>,
    /// Messages by the channel's name on the wire, in the order shown.
    pub channels: BTreeMap<String, Vec<Message>>,
    /// The board `average` of each challenge type, by player.
    pub boards: BTreeMap<String, BTreeMap<String, Standing>>,
    /// Games that count, by challenge type.
    pub games: BTreeMap<String, u64>,
    /// How many sessions a list says there are, by status.
    pub listed: BTreeMap<String, u64>,
    /// How many ended sessions a list says that a player was in, by player.
    pub histories: BTreeMap<String, u64>,
    /// Players for whom counting all games again gave something else.
    pub mended: Vec<String>,
}

/// A session, with all that its administrator may see.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The challenge type.
    pub challenge: String,
    /// Options, each as JSON.
    pub options: BTreeMap<String, String>,
    /// `open`, `active` or `ended`.
    pub status: String,
    /// Whether it ended since nobody went on.
    pub abandoned: bool,
    /// True if it is played with the arena's own options, so that it counts on a board.
    pub rated: bool,
    /// Invites by seat as dealt, taken or not.
    pub invites: Vec<String>,
    /// Invites of those who have joined, by seat.
    pub players: Vec<String>,
    /// Who they are, by invite, as far as they said.
    pub users: BTreeMap<String, String>,
    /// Security and utility by seat.
    pub scores: Vec<[f64; 2]>,
}

/// A message, as far as its reader may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its place in the channel.
    pub index: u64,
    /// Who speaks.
    pub from: String,
    /// Who alone is spoken to.
    pub to: Option<String>,
    /// The text; `None` if it is withheld.
    pub content: Option<String>,
    /// When it was committed, in milliseconds since the epoch.
    pub at_ms: i64,
}

/// A player's line on the board `average`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Standing {
    /// Games that count.
    pub games: u64,
    /// Means of security and utility.
    pub means: [f64; 2],
}

impl Message {
    /// A `ChatMessage` of the wire.
    ///
    /// # Panics
    /// If it isn't one.
    #[track_caller]
    pub fn of(message: &Value) -> Message {
        let withheld = message["redacted"] == true;
        Message {
            index: message["index"].as_u64().unwrap_or_else(|| panic!("no index: {message}")),
            from: text(&message["from"]),
            to: message["to"].as_str().map(str::to_owned),
            content: (!withheld).then(|| text(&message["content"])),
            at_ms: message["timestamp"].as_i64().unwrap_or_else(|| panic!("no timestamp: {message}")),
        }
    }
}

impl Present {
    /// What the administrator's export tells of sessions and their channels.
    ///
    /// A session that ended while it was exported stands in it twice, and the later one counts.
    ///
    /// # Panics
    /// If it isn't an export.
    #[track_caller]
    pub fn of_export(lines: &str) -> Present {
        let mut present = Present::default();
        for line in lines.lines() {
            let record: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            match record["kind"].as_str() {
                Some("session") => {
                    let id = text(&record["id"]);
                    present.channels.insert(id.clone(), Vec::new());
                    present.channels.insert(format!("challenge_{id}"), Vec::new());
                    present.sessions.insert(id, Seen::of(&record));
                }
                Some("message") => {
                    let channel = present.channels.get_mut(&text(&record["channel"]));
                    channel.unwrap_or_else(|| panic!("a message of no session: {line}")).push(Message::of(&record));
                }
                _ => {}
            }
        }
        present
    }

    /// Notes what `GET /api/scoring/{challenge}` tells.
    ///
    /// # Panics
    /// If the answer isn't one of that route.
    #[track_caller]
    pub fn take_boards(&mut self, challenge: &str, boards: &Value) {
        let rows = list(&boards["average"]).iter().map(|row| {
            let mean = |metric: &str| row["metrics"][metric].as_f64().unwrap_or_else(|| panic!("no {metric}: {row}"));
            let games = row["gamesPlayed"].as_u64().unwrap_or_else(|| panic!("no gamesPlayed: {row}"));
            (text(&row["playerId"]), Standing { games, means: [mean("average:security"), mean("average:utility")] })
        });
        self.boards.insert(challenge.to_owned(), rows.collect());
    }

    /// Notes what `GET /api/stats` tells.
    ///
    /// # Panics
    /// If the answer isn't one of that route.
    #[track_caller]
    pub fn take_stats(&mut self, stats: &Value) {
        let challenges = stats["challenges"].as_object().unwrap_or_else(|| panic!("no challenges: {stats}"));
        let played = challenges.iter().map(|(name, played)| {
            (name.clone(), played["gamesPlayed"].as_u64().unwrap_or_else(|| panic!("no gamesPlayed: {stats}")))
        });
        self.games = played.filter(|(_, games)| *games > 0).collect();
    }

    /// How many sessions there are, by status.
    pub fn right_lists(&self) -> BTreeMap<String, u64> {
        let mut listed = BTreeMap::from(["open", "active", "ended"].map(|status| (status.to_owned(), 0)));
        for session in self.sessions.values() {
            *listed.entry(session.status.clone()).or_default() += 1;
        }
        listed
    }

    /// How many ended sessions each player was in.
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

    /// What the games give for `challenge`: who has played how many that count, and the means of what they scored.
    pub fn right_board(&self, challenge: &str) -> BTreeMap<String, Standing> {
        let mut sums: BTreeMap<String, Standing> = BTreeMap::new();
        for session in self.counted(challenge).filter(|session| session.rated) {
            let users: Vec<&String> = session.players.iter().filter_map(|player| session.users.get(player)).collect();
            if users.iter().enumerate().any(|(nth, user)| users[..nth].contains(user)) {
                // Who plays against itself plays for nobody.
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

    /// Games of each challenge type that came to their end.
    pub fn right_games(&self) -> BTreeMap<String, u64> {
        let mut games = BTreeMap::new();
        for session in self.sessions.values().filter(|session| session.counts()) {
            *games.entry(session.challenge.clone()).or_default() += 1;
        }
        games
    }

    fn counted<'p>(&'p self, challenge: &'p str) -> impl Iterator<Item = &'p Seen> {
        self.sessions.values().filter(move |session| session.challenge == challenge && session.counts())
    }
}

impl Seen {
    /// A session of an export.
    #[track_caller]
    fn of(record: &Value) -> Seen {
        let state = &record["state"];
        let score = |score: &Value| {
            ["security", "utility"].map(|name| score[name].as_f64().unwrap_or_else(|| panic!("no {name}: {record}")))
        };
        let identities = state["playerIdentities"].as_object().into_iter().flatten();
        let options = record["options"].as_object().into_iter().flatten();
        Seen {
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

    /// Whether it came to its end by its rules.
    fn counts(&self) -> bool {
        self.status == "ended" && !self.abandoned
    }
}

#[track_caller]
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

#[track_caller]
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}
