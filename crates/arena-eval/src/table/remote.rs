//! A session on an arena: the seats act through the HTTP API, and news arrive by polling. The requests block, so they
//! run on tokio's threads for blocking work.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use arena_model::{Attribution, ChallengeType, Channel, ChatMessage, InviteCode, Party, Score, Seat, SessionId};
use arena_wire::{Message, Messages};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use ureq::Agent;

use super::{TableError, TableOutcome};

pub(super) const POLL: Duration = Duration::from_millis(500);

/// The number of polls without a message after which a game counts as quiet: 150 s, more than the usual time for an
/// answer.
pub(super) const QUIET_POLLS: u32 = 300;

/// The number of polls without a message in a game whose rules have no deadlines. All its players are in this process,
/// so nothing else can cause a message.
pub(super) const SETTLING_POLLS: u32 = 4;

/// The time for which an unreachable or busy arena is asked again.
const OUTAGE: Duration = Duration::from_secs(300);

/// The pause before another attempt.
const PAUSE: Duration = Duration::from_secs(1);

/// The maximum time of a request.
const ANSWER: Duration = Duration::from_secs(15);

/// The maximum size of an answer in bytes.
const ANSWER_BYTES: u64 = 1 << 28;

/// The number of sessions on a page of a list, and the maximum number of pages that are searched.
const PAGE: usize = 100;
const PAGES: usize = 20;

/// A client of an arena. Clones share their connections.
#[derive(Clone)]
pub(crate) struct RemoteArena {
    agent: Agent,
    url: String,
}

impl RemoteArena {
    pub(crate) fn at(url: &str) -> RemoteArena {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(ANSWER))
            .user_agent(concat!("arena/", env!("CARGO_PKG_VERSION")))
            .build();
        RemoteArena { agent: config.new_agent(), url: url.trim_end_matches('/').to_owned() }
    }

    async fn get<T: DeserializeOwned>(&self, path: String, key: Option<String>) -> Result<T, TableError> {
        let answer = self.send(path, key, None).await?;
        answer.map_err(TableError)
    }

    /// Sends a request until it is answered. The inner error is the arena's refusal.
    async fn send<T: DeserializeOwned>(
        &self,
        path: String,
        key: Option<String>,
        body: Option<(Value, Option<String>)>,
    ) -> Result<Result<T, String>, TableError> {
        let (agent, url) = (self.agent.clone(), format!("{}{path}", self.url));
        let body = body.map(|(body, once)| (body.to_string(), once));
        let (status, text) =
            tokio::task::spawn_blocking(move || send_until_answered(&agent, &url, key.as_deref(), body.as_ref()))
                .await
                .map_err(|error| TableError(format!("the request to the arena was lost: {error}")))??;
        let failed = |why: String| TableError(format!("the arena at {} {why}", self.url));
        match status {
            200..=299 => match serde_json::from_str(&text) {
                Ok(answer) => Ok(Ok(answer)),
                Err(error) => Err(failed(format!("gave unexpected JSON: {error}"))),
            },
            400..=499 if status != 401 => Ok(Err(Refusal::read(&text))),
            _ => Err(failed(format!("answered with HTTP {status}: {}", Refusal::read(&text)))),
        }
    }
}

/// Sends a request, and repeats it while the arena is unreachable or busy. Returns the status and the body.
fn send_until_answered(
    agent: &Agent,
    url: &str,
    key: Option<&str>,
    body: Option<&(String, Option<String>)>,
) -> Result<(u16, String), TableError> {
    let begun = Instant::now();
    loop {
        let sent = send_once(agent, url, key, body);
        // A creation has no key against repetition, so it isn't sent twice.
        let may_repeat = begun.elapsed() < OUTAGE && body.is_none_or(|(_, once)| once.is_some());
        let is_passing = match &sent {
            Ok((status, _)) => matches!(status, 429 | 502..=504),
            Err(_) => true,
        };
        match sent {
            _ if is_passing && may_repeat => std::thread::sleep(PAUSE),
            Ok(answer) => return Ok(answer),
            Err(error) => return Err(TableError(format!("cannot reach the arena at {url}: {error}"))),
        }
    }
}

fn send_once(
    agent: &Agent,
    url: &str,
    key: Option<&str>,
    body: Option<&(String, Option<String>)>,
) -> Result<(u16, String), ureq::Error> {
    let bearer = key.map(|key| format!("Bearer {key}"));
    let response = match body {
        None => {
            let mut request = agent.get(url);
            if let Some(bearer) = &bearer {
                request = request.header("authorization", bearer);
            }
            request.call()?
        }
        Some((body, once)) => {
            let mut request = agent.post(url).header("content-type", "application/json");
            if let Some(bearer) = &bearer {
                request = request.header("authorization", bearer);
            }
            if let Some(once) = once {
                request = request.header("idempotency-key", once);
            }
            request.send(body.as_str())?
        }
    };
    let status = response.status().as_u16();
    let text = response.into_body().into_with_config().limit(ANSWER_BYTES).read_to_string()?;
    Ok((status, text))
}

/// The arena's error.
#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    code: Option<String>,
}

impl Refusal {
    /// Returns the text of an error for the player.
    fn read(text: &str) -> String {
        match serde_json::from_str(text) {
            Ok(Refusal { error, code: Some(code) }) => format!("{error} ({code})"),
            Ok(Refusal { error, code: None }) => error,
            Err(_) => "no reason given".to_owned(),
        }
    }
}

#[derive(Deserialize)]
struct Created {
    id: String,
    invites: Vec<String>,
}

#[derive(Deserialize)]
struct Joined {
    #[serde(rename = "sessionKey")]
    key: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    challenges: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: String,
    state: ListedState,
    #[serde(default)]
    game_state: Value,
}

#[derive(Deserialize)]
struct ListedState {
    #[serde(default)]
    players: Vec<String>,
    #[serde(default)]
    attributions: Vec<ListedAttribution>,
}

#[derive(Deserialize)]
struct ListedAttribution {
    from: String,
    to: String,
    #[serde(rename = "type")]
    kind: String,
}

/// A session on an arena, with the keys of its players.
pub(super) struct RemoteSession {
    arena: RemoteArena,
    id: SessionId,
    seats: Vec<RemoteSeat>,
    /// The next index of the operator channel and of the chat.
    next: [u64; 2],
    /// The number of writes so far, for the keys against repetition.
    writes: u64,
    /// The scores, from the operator's last message.
    scores: Option<Vec<Score>>,
}

struct RemoteSeat {
    invite: String,
    key: Option<String>,
}

impl RemoteSession {
    /// Creates a session and seats its players. Returns the session and the players' public names by seat.
    pub(super) async fn create(
        arena: RemoteArena,
        challenge: &dyn ChallengeType,
        options: &Value,
        users: &[String],
    ) -> Result<(RemoteSession, Vec<InviteCode>), TableError> {
        let path = format!("/api/v1/challenges/{}", challenge.id());
        let created = arena.send::<Created>(path, None, Some((json!({"options": chosen(challenge, options)}), None)));
        let refused = |why: String| TableError(format!("the arena refused the session: {why}"));
        let Created { id, invites } = created.await?.map_err(refused)?;
        if invites.len() != users.len() {
            return Err(refused(format!("it has {} seats, not {}", invites.len(), users.len())));
        }
        let mut seats = Vec::new();
        let mut players = Vec::new();
        for (invite, user) in invites.into_iter().zip(users) {
            let body = json!({"invite": invite, "from": invite, "userId": user});
            let once = Some(format!("{id}-join-{}", seats.len()));
            let joined = arena.send::<Joined>("/api/v1/arena/join".to_owned(), None, Some((body, once)));
            let Joined { key } = joined.await?.map_err(refused)?;
            players.push(invite.parse::<InviteCode>().map_err(|error| refused(format!("an invite is {error}")))?);
            seats.push(RemoteSeat { invite, key });
        }
        let id: SessionId = id.parse().map_err(|error| refused(format!("its id is {error}")))?;
        Ok((RemoteSession { arena, id, seats, next: [1; 2], writes: 0, scores: None }, players))
    }

    pub(super) fn is_over(&self) -> bool {
        self.scores.is_some()
    }

    /// Performs an action. The inner error is the refusal for the player.
    pub(super) async fn act(
        &mut self,
        seat: usize,
        method: &str,
        content: &str,
    ) -> Result<Result<(), String>, TableError> {
        let body = json!({"challengeId": self.id.to_string(), "messageType": method, "content": content});
        self.write("/api/v1/arena/message", seat, body).await
    }

    /// Sends a chat message. The inner error is the refusal for the player.
    pub(super) async fn say(
        &mut self,
        seat: usize,
        content: &str,
        to: Option<&str>,
    ) -> Result<Result<(), String>, TableError> {
        let mut body = json!({"channel": self.id.to_string(), "content": content});
        if let Some(to) = to {
            body["to"] = json!(to);
        }
        self.write("/api/v1/chat/send", seat, body).await
    }

    async fn write(&mut self, path: &str, seat: usize, mut body: Value) -> Result<Result<(), String>, TableError> {
        let RemoteSeat { invite, key } = &self.seats[seat];
        body["from"] = json!(invite);
        self.writes += 1;
        let once = format!("{}-{}", self.id, self.writes);
        let sent = self.arena.send::<Value>(path.to_owned(), key.clone(), Some((body, Some(once)))).await?;
        Ok(sent.map(|_| ()))
    }

    /// Returns the new messages of both channels, with all texts that a player may read.
    pub(super) async fn pull(&mut self) -> Result<Vec<ChatMessage>, TableError> {
        let mut pulled = Vec::new();
        for (kind, path) in ["/api/v1/arena/sync", "/api/v1/chat/sync"].into_iter().enumerate() {
            // Each player receives the texts of its own private messages only.
            let mut seen: BTreeMap<u64, Message> = BTreeMap::new();
            for RemoteSeat { invite, key } in &self.seats {
                let path = format!("{path}?channel={}&index={}&from={invite}", self.id, self.next[kind]);
                let Messages { messages, .. } = self.arena.get(path, key.clone()).await?;
                for message in messages {
                    if !message.redacted || !seen.contains_key(&message.index) {
                        seen.insert(message.index, message);
                    }
                }
            }
            for (index, message) in seen {
                self.next[kind] = index + 1;
                let is_operator = kind == 0 && message.from == "operator";
                if is_operator && message.to.is_none() && message.content.starts_with("Game ended.") {
                    self.scores = Some(read_scores(&message.content, self.seats.len()));
                }
                pulled.push(self.stored(kind, message));
            }
        }
        Ok(pulled)
    }

    fn stored(&self, kind: usize, message: Message) -> ChatMessage {
        let Message { from, to, content, index, timestamp, method, .. } = message;
        ChatMessage {
            channel: if kind == 0 { Channel::Operator(self.id) } else { Channel::Chat(self.id) },
            index,
            from: Party::from_wire(&from),
            to: to.as_deref().map(Party::from_wire),
            content,
            method,
            at: timestamp,
            hidden: None,
        }
    }

    /// Returns the scores of the operator's last message, and the attributions of the arena's list.
    pub(super) async fn outcome(&mut self, challenge: &str) -> Result<TableOutcome, TableError> {
        let scores = self.scores.clone().unwrap_or_else(|| vec![Score::default(); self.seats.len()]);
        let mut outcome = TableOutcome { scores, attributions: Vec::new(), state: "{}".to_owned() };
        let id = self.id.to_string();
        for page in 0..PAGES {
            let path = format!("/api/v1/challenges/{challenge}?status=ended&limit={PAGE}&offset={}", page * PAGE);
            let Page { challenges } = self.arena.get(path, None).await?;
            let is_last = challenges.len() < PAGE;
            if let Some(Listed { state, game_state, .. }) = challenges.into_iter().find(|listed| listed.id == id) {
                let ListedState { players, attributions } = state;
                let seat = |name: &str| players.iter().position(|player| player == name).map(Seat);
                let attribution = |ListedAttribution { from, to, kind }: ListedAttribution| {
                    Some(Attribution { from: seat(&from)?, to: seat(&to)?, kind })
                };
                outcome.attributions = attributions.into_iter().filter_map(attribution).collect();
                outcome.state = game_state.to_string();
                break;
            }
            if is_last {
                break;
            }
        }
        Ok(outcome)
    }
}

/// Returns the options that a client may choose and that differ from the challenge's defaults.
fn chosen(challenge: &dyn ChallengeType, options: &Value) -> Value {
    let differing = challenge
        .options()
        .iter()
        .filter_map(|option| Some((option.name.to_string(), options.get(&*option.name)?.clone())));
    Value::Object(differing.collect())
}

/// Reads the scores by seat in the operator's last message.
fn read_scores(content: &str, seats: usize) -> Vec<Score> {
    let line = |line: &str| serde_json::from_str(line.strip_prefix("- Player ")?.split_once(": ")?.1).ok();
    let mut scores: Vec<Score> = content.lines().filter_map(line).collect();
    scores.resize_with(seats, Score::default);
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scores_are_those_of_the_last_message() {
        let score = |security, utility| Score { security, utility };
        let text = "Game ended.\n\nScores are:\n- Player 1: {\"security\":1,\"utility\":-1}\n\
                    - Player 2: {\"security\":0,\"utility\":0.5}";
        assert_eq!(read_scores(text, 2), [score(1.0, -1.0), score(0.0, 0.5)]);
        assert_eq!(read_scores("Game ended.\n\nAbandoned: quiet.", 2), [Score::default(); 2]);
    }

    #[test]
    fn a_refusal_has_its_code() {
        for (text, expected) in [
            (r#"{"error": "Not your turn.", "code": "NOT_YOUR_TURN"}"#, "Not your turn. (NOT_YOUR_TURN)"),
            (r#"{"error": "from is required"}"#, "from is required"),
            ("<html>", "no reason given"),
        ] {
            assert_eq!(Refusal::read(text), expected);
        }
    }
}
