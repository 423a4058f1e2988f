//! One game of PSI, played from both seats over HTTP. A game is eleven requests, and each answer is checked. For the
//! ceiling, the same requests are sent without checks.
//!
//! `player_pool` and the scenarios determine the players and the number of games.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use arena_identity::KeyPair;
use arena_model::Timestamp;
use memchr::memmem;
use serde::Deserialize;
use serde_json::json;

use crate::client_pool;
use crate::connection::Connection;
use crate::latency::Latencies;

pub const REQUESTS_PER_GAME: u64 = 11;

/// The chat message of each player before its guess.
const SMALL_TALK: &str = "I hold 13 numbers between 100 and 900. Shall we compare notes, one by one?";

pub const SCRIPT: &str = "scripted-psi";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    /// An arena; answers are read and checked.
    Arena,
    /// An arena with the script [`SCRIPT`] as the challenge.
    Script,
    /// The ceiling. Ids and sets are made up with the lengths of real ones, so that the requests have the same size.
    Ceiling,
}

/// The steps of a game. The first step happens once; each other step happens once per player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// POST the session.
    Create,
    /// POST a join.
    Join,
    /// GET the operator's channel, for the private set.
    Sync,
    /// POST a chat message.
    Chat,
    /// POST the guess.
    Guess,
    /// GET the operator's channel, for the end of the game.
    End,
}

impl Step {
    pub const ALL: [Step; 6] = [Step::Create, Step::Join, Step::Sync, Step::Chat, Step::Guess, Step::End];

    pub fn name(self) -> &'static str {
        match self {
            Step::Create => "create",
            Step::Join => "join",
            Step::Sync => "sync",
            Step::Chat => "chat",
            Step::Guess => "guess",
            Step::End => "sync at the end",
        }
    }
}

/// Latencies per step, indexed as [`Step::ALL`].
#[derive(Debug, Clone, Default)]
pub struct StepLatencies([Latencies; 6]);

impl StepLatencies {
    fn record(&mut self, step: Step, since: Instant) {
        self.0[step as usize].record(since.elapsed());
    }

    pub fn of(&self, step: Step) -> &Latencies {
        &self.0[step as usize]
    }

    pub fn all(&self) -> Latencies {
        let mut all = Latencies::default();
        for latencies in &self.0 {
            all.merge(latencies);
        }
        all
    }

    pub fn merge(&mut self, other: &StepLatencies) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.merge(theirs);
        }
    }
}

/// A session from its creator's view.
#[derive(Debug, Clone)]
pub struct Invited {
    pub id: String,
    pub invites: Vec<String>,
}

/// Creates a session of PSI.
///
/// # Errors
/// If the server doesn't answer with a session and two invites.
pub async fn create(connection: &mut Connection, server_kind: ServerKind) -> anyhow::Result<Invited> {
    create_of(if server_kind == ServerKind::Script { SCRIPT } else { "psi" }, connection, server_kind).await
}

/// Creates a session of PSI and joins on both seats, which starts the game.
///
/// # Errors
/// If the server refuses.
pub async fn begin(connection: &mut Connection, server_kind: ServerKind) -> anyhow::Result<Invited> {
    let invited = create(connection, server_kind).await?;
    for invite in &invited.invites {
        join(connection, invite).await?;
    }
    Ok(invited)
}

/// Calls [`begin`] with a connection of its own.
///
/// # Errors
/// If there is no server, or it refuses.
pub fn begin_alone(address: SocketAddr, server_kind: ServerKind) -> anyhow::Result<Invited> {
    client_pool::alone(async { begin(&mut Connection::open(address).await?, server_kind).await })
}

/// Creates a session of any challenge with two seats.
///
/// # Errors
/// If the server doesn't answer with a session and two invites.
pub async fn create_of(
    challenge: &str,
    connection: &mut Connection,
    server_kind: ServerKind,
) -> anyhow::Result<Invited> {
    #[derive(Deserialize)]
    struct Challenge {
        id: String,
        invites: Vec<String>,
    }
    let body = connection.post(&format!("/api/v1/challenges/{challenge}"), "{}").await?.ok("create")?;
    if server_kind == ServerKind::Ceiling {
        let id = "01234567-89ab-7cde-8f01-23456789abcd".to_owned();
        return Ok(Invited { invites: vec![format!("inv_{id}"); 2], id });
    }
    let Challenge { id, invites } = serde_json::from_slice(&body).context("the created session has no invites")?;
    ensure!(invites.len() == 2, "a session of {challenge} came with {} invites instead of 2", invites.len());
    Ok(Invited { id, invites })
}

/// Joins anonymously.
///
/// # Errors
/// If the server refuses.
pub async fn join(connection: &mut Connection, invite: &str) -> anyhow::Result<()> {
    connection.post("/api/v1/arena/join", format!(r#"{{"invite":"{invite}"}}"#)).await?.ok("join").map(drop)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Players {
    Unknown,
    /// This number of users, with ids of 64 hexadecimal digits. Successive games have different users.
    Known(u64),
    /// The holders of [`KEYS`], on an arena with authentication.
    Signed,
}

/// The keys of the players who sign their joins.
static KEYS: LazyLock<Vec<KeyPair>> =
    LazyLock::new(|| (0..SIGNERS).map(|seed| KeyPair::from_random([seed; 32])).collect());

/// The number of different players who sign their joins.
pub const SIGNERS: u8 = 64;

impl Players {
    /// Returns the bodies of the two joins.
    fn joins(self, invites: &[String]) -> anyhow::Result<Vec<String>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = match self {
            Players::Unknown => 0,
            Players::Known(_) | Players::Signed => NEXT.fetch_add(invites.len() as u64, Ordering::Relaxed),
        };
        let join = |(seat, invite): (u64, &String)| match self {
            Players::Signed => signed_join(&KEYS[((number + seat) % u64::from(SIGNERS)) as usize], invite),
            Players::Unknown => Ok(format!(r#"{{"invite":"{invite}"}}"#)),
            Players::Known(users) => {
                // Odd factors spread the ids like hashes, and each user keeps its id.
                let user = ((number + seat) % users).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                Ok(format!(r#"{{"invite":"{invite}","userId":"{user:016x}{user:048x}"}}"#))
            }
        };
        (0..).zip(invites).map(join).collect()
    }
}

/// Returns the body of a join with a signature.
fn signed_join(pair: &KeyPair, invite: &str) -> anyhow::Result<String> {
    let at = now()?;
    let signature = pair.sign_join(invite.parse()?, at);
    let key = pair.public_key();
    Ok(json!({ "invite": invite, "publicKey": key.as_hex(), "signature": signature, "timestamp": at.0 }).to_string())
}

/// Returns the current time, for signatures.
///
/// # Errors
/// If the clock is before 1970.
#[expect(clippy::disallowed_methods, reason = "signatures need the time of the system's clock")]
pub fn now() -> anyhow::Result<Timestamp> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(Timestamp(i64::try_from(since.as_millis())?))
}

/// The credential with which a player at a seat sends its requests.
enum Credential {
    Invite(String),
    /// The key of the session, on an arena with authentication.
    Key(String),
}

impl Credential {
    /// Returns the credential of a player after its join.
    fn of(players: Players, invite: &str, joined: &[u8]) -> anyhow::Result<Credential> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Joined {
            session_key: String,
        }
        if players != Players::Signed {
            return Ok(Credential::Invite(invite.to_owned()));
        }
        let Joined { session_key } =
            serde_json::from_slice(joined).context("the answer to a join has no sessionKey")?;
        Ok(Credential::Key(session_key))
    }

    fn sync_target(&self, session: &str) -> String {
        match self {
            Credential::Invite(from) => format!("/api/v1/arena/sync?channel={session}&from={from}"),
            Credential::Key(key) => format!("/api/v1/arena/sync?channel={session}&key={key}"),
        }
    }

    /// Returns the path of a POST, and the body, to which the invite is added if it is the credential.
    fn post(&self, path: &str, body: &str) -> (String, String) {
        match self {
            Credential::Invite(from) => (path.to_owned(), format!(r#"{{{body},"from":"{from}"}}"#)),
            Credential::Key(key) => (format!("{path}?key={key}"), format!("{{{body}}}")),
        }
    }
}

/// Returns the body of a chat message; `content` must need no escaping.
pub fn chat_body(session: &str, content: &str, from: &str) -> String {
    format!(r#"{{"channel":"{session}","content":"{content}","from":"{from}"}}"#)
}

/// Plays one whole game from both seats: creates a session, joins, reads, chats, guesses correctly, and checks that
/// both scores are full. With two connections, each player has its own. With more, requests take the connections in
/// turn, as behind a load balancer.
///
/// Records the latency of each step. The first latency counts from `intended`, the intended start of the game. Each
/// later latency counts from the preceding answer.
///
/// # Errors
/// If a request fails or an answer is wrong. The connections may be unusable afterwards.
pub async fn play(
    connections: &mut [Connection],
    server_kind: ServerKind,
    players: Players,
    intended: Instant,
    latencies: &mut StepLatencies,
) -> anyhow::Result<()> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let (count, mut turn) = (connections.len(), TURN.fetch_add(1, Ordering::Relaxed));
    let mut place_of = |seat: usize| {
        turn += 1;
        if count > 2 { turn % count } else { seat % count }
    };
    let Invited { id, invites } = create(&mut connections[place_of(0)], server_kind).await?;
    latencies.record(Step::Create, intended);

    let mut credentials = Vec::with_capacity(2);
    for (seat, body) in players.joins(&invites)?.into_iter().enumerate() {
        let sent = Instant::now();
        let joined = connections[place_of(seat)].post("/api/v1/arena/join", body).await?.ok("join")?;
        latencies.record(Step::Join, sent);
        credentials.push(Credential::of(players, &invites[seat], &joined)?);
    }

    let mut sets = Vec::with_capacity(2);
    for (seat, credential) in credentials.iter().enumerate() {
        let sent = Instant::now();
        let messages = connections[place_of(seat)].get(&credential.sync_target(&id)).await?.ok("sync")?;
        latencies.record(Step::Sync, sent);
        sets.push(match server_kind {
            ServerKind::Arena | ServerKind::Script => private_set(&messages)?,
            ServerKind::Ceiling => vec![123, 456, 789],
        });
    }

    for (seat, credential) in credentials.iter().enumerate() {
        let sent = Instant::now();
        let body = format!(r#""channel":"{id}","content":"{SMALL_TALK}""#);
        let (target, body) = credential.post("/api/v1/chat/send", &body);
        connections[place_of(seat)].post(&target, body).await?.ok("chat")?;
        latencies.record(Step::Chat, sent);
    }

    let guess = listed(&intersection(&sets[0], &sets[1]));
    for (seat, credential) in credentials.iter().enumerate() {
        let sent = Instant::now();
        let body = format!(r#""challengeId":"{id}","messageType":"guess","content":"{guess}""#);
        let (target, body) = credential.post("/api/v1/arena/message", &body);
        connections[place_of(seat)].post(&target, body).await?.ok("guess")?;
        latencies.record(Step::Guess, sent);
    }

    for (seat, credential) in credentials.iter().enumerate() {
        let sent = Instant::now();
        let messages = connections[place_of(seat)].get(&credential.sync_target(&id)).await?.ok("sync")?;
        latencies.record(Step::End, sent);
        if server_kind != ServerKind::Ceiling {
            check_end(&messages)?;
        }
    }
    Ok(())
}

/// Reads the operator's channel as the player `from`.
///
/// # Errors
/// If the server refuses.
pub async fn sync(connection: &mut Connection, session: &str, from: &str) -> anyhow::Result<bytes::Bytes> {
    connection.get(&format!("/api/v1/arena/sync?channel={session}&from={from}")).await?.ok("sync")
}

/// Returns the numbers of the message `Your private set is: {…}.` that a player sees. A second such message is an
/// error, because it would reveal the other player's set.
fn private_set(messages: &[u8]) -> anyhow::Result<Vec<u32>> {
    const BEGIN: &[u8] = b"Your private set is: {";
    let mut found = memmem::find_iter(messages, BEGIN);
    let Some(at) = found.next() else { bail!("a player did not receive its private set") };
    ensure!(found.next().is_none(), "a player sees more than one private set");
    let numbers = &messages[at + BEGIN.len()..];
    let end = memchr::memchr(b'}', numbers).context("a private set is incomplete")?;
    let numbers = str::from_utf8(&numbers[..end]).context("a private set isn't text")?;
    let numbers: Result<Vec<u32>, _> = numbers.split(',').map(|number| number.trim().parse()).collect();
    numbers.context("a private set contains a value that isn't a number")
}

fn intersection(one: &[u32], other: &[u32]) -> Vec<u32> {
    one.iter().copied().filter(|number| other.contains(number)).collect()
}

fn listed(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    numbers.join(", ")
}

/// Checks that the game has ended with two full scores.
fn check_end(messages: &[u8]) -> anyhow::Result<()> {
    let Some(at) = memmem::find(messages, b"Game ended.") else { bail!("the end of a game is missing") };
    // In JSON the quotes of the message are escaped.
    let full = memmem::find_iter(&messages[at..], br#"{\"security\":1,\"utility\":1}"#).count();
    ensure!(full == 2, "two correct guesses earned {full} full scores instead of 2");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_private_set_is_read_from_the_operators_message() {
        let messages =
            br#"{"messages":[{"content":"","redacted":true},{"content":"Your private set is: {101, 205, 900}."}]}"#;
        assert_eq!(private_set(messages).unwrap(), [101, 205, 900]);
    }

    #[test]
    fn a_second_private_set_is_an_error() {
        let messages = b"Your private set is: {1}. Your private set is: {2}.";
        assert_eq!(private_set(messages).unwrap_err().to_string(), "a player sees more than one private set");
    }

    #[test]
    fn a_guess_contains_the_numbers_of_both_sets() {
        assert_eq!(listed(&intersection(&[101, 205, 333], &[205, 333, 400])), "205, 333");
    }

    #[test]
    fn the_end_of_a_game_needs_two_full_scores() {
        let ended = |second: &str| {
            let first = r#"{\"security\":1,\"utility\":1}"#;
            format!(r#""content":"Game ended.\n\nScores are:\n- Player 1: {first}\n- Player 2: {second}""#)
        };
        assert!(check_end(ended(r#"{\"security\":1,\"utility\":1}"#).as_bytes()).is_ok());
        assert!(check_end(ended(r#"{\"security\":1,\"utility\":-1}"#).as_bytes()).is_err());
        assert!(check_end(b"Player inv_1 sent a guess").is_err());
    }
}
