//! SIGKILL under load, repeatedly on one data folder. After each kill, every acknowledged write must exist exactly
//! once, and every session can continue.
//!
//! Many clients play over HTTP and record their requests and answers. The server is killed at a random moment and
//! started again. Then the test compares the server's state with the history. The test uses only the API, because the
//! layout of the store may change.
//!
//! `ARENA_CRASH_ROUNDS` is the number of kills under load (default 5). `ARENA_CRASH_SEED` repeats a run as far as the
//! machine's timing allows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::history::{
    Attempt, Delivery, FaultKind, FinalSession, FinalState, History, ObservedMessage, RequestOutcome, Subscription,
    Write, WriteOperation, check,
};
use arena_testkit::{Client, TestRng, known_admin_token};
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, arena, folder};

/// The number of concurrent sessions, with two players each.
const TABLES: usize = 10;

/// The number of clients that chat in the same session.
const CHATTERS: usize = 4;

/// The number of users behind all players.
const USERS: u64 = 6;

const KILLS_PER_FOLDER: usize = 10;

/// The longest time under load before a kill.
const LOAD: Duration = Duration::from_millis(800);

/// The largest number of acknowledged writes before a kill. It is slightly more than [`LOAD`] allows.
const WRITES: u64 = 2_000;

/// The longest time that a player waits for the other player, and a count for its update.
const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn acknowledged_writes_survive_kill_nine_and_happen_once() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let rounds = number("ARENA_CRASH_ROUNDS").unwrap_or(5) as usize;
    let seed = number("ARENA_CRASH_SEED").unwrap_or_else(|| getrandom::u64().expect("the system has randomness"));
    // The line is shown if the test fails.
    println!("ARENA_CRASH_SEED={seed} ARENA_CRASH_ROUNDS={rounds}");
    let mut rng = TestRng(seed);
    let mut left = rounds;
    while left > 0 {
        let kills = left.min(KILLS_PER_FOLDER);
        life_of_a_folder(kills, &mut rng);
        left -= kills;
    }
}

/// Runs a folder from its first start, through `kills` kills under load, to a graceful stop.
fn life_of_a_folder(kills: usize, rng: &mut TestRng) {
    let folder = folder();
    let folder = folder.path();
    // The server is killed with an empty folder, and perhaps during the creation of the tables.
    kill_while_starting(folder, rng);
    let mut server = serve(folder);
    let (mut book, mut stored) = (Book::open(&server.client(), rng), FinalState::default());
    for kill in 1..=kills {
        load_until_killed(&mut server, &book, &stored, rng);
        for _ in 0..[0, 0, 1, 2][rng.below(4) as usize] {
            kill_while_starting(folder, rng);
        }
        server = serve(folder);
        let client = server.client();
        book.compare(&client);
        book.repeat(&client, rng);
        stored = book.compare(&client);
        // Some sessions are played to their end without a crash; at last all of them.
        let is_last = kill == kills;
        let mut games = book.unfinished(&stored);
        games.retain(|_| is_last || rng.chance(50));
        games.extend(is_last.then(|| book.hall.clone()));
        let mut caller = book.caller(client, rng.fork());
        for game in games {
            caller.play(&game, &stored).expect("the server is there");
        }
        stored = book.compare(&client);
    }
    assert_eq!(stored.listed["active"], 0);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0), "{}", server.said());
    book.compare(&serve(folder).client());
}

fn serve(folder: &Path) -> Running {
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", folder.to_str().expect("a UTF-8 path")];
    Running::start_with(&args, &[("ADMIN_TOKEN", known_admin_token().reveal())])
}

/// Starts a server and kills it before, or shortly after, it is ready.
fn kill_while_starting(folder: &Path, rng: &mut TestRng) {
    let mut command = arena(&["serve", "--listen", "127.0.0.1:0", "--data", folder.to_str().expect("a UTF-8 path")]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    // The kill may be at any moment of the start.
    thread::sleep(Duration::from_micros(rng.below(60_000)));
    child.kill().expect("a child can be killed");
    child.wait().expect("a child that was killed ends");
}

/// Runs clients until the server is killed.
fn load_until_killed(server: &mut Running, book: &Book, stored: &FinalState, rng: &mut TestRng) {
    let client = server.client();
    let (acknowledged, heard) = mpsc::channel();
    let (writes, pause) = (rng.below(WRITES) + 1, Duration::from_micros(rng.below(3_000)));
    let unfinished = Mutex::new(book.unfinished(stored));
    let unfinished = &unfinished;
    thread::scope(|scope| {
        let mut caller = || Caller { acknowledged: Some(acknowledged.clone()), ..book.caller(client, rng.fork()) };
        for _ in 0..TABLES {
            let mut caller = caller();
            scope.spawn(move || {
                loop {
                    let unfinished = unfinished.lock().pop();
                    let Some(game) = unfinished.or_else(|| caller.create()) else { return };
                    if caller.play(&game, stored).is_none() {
                        return;
                    }
                }
            });
        }
        for chatter in 0..CHATTERS {
            let mut caller = caller();
            scope.spawn(move || while caller.say(&book.hall, chatter % 2, None).is_some() {});
        }
        let until = Instant::now() + LOAD;
        let mut heard_of = 0;
        while heard_of < writes && heard.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {
            heard_of += 1;
        }
        // The kill may be at any moment between two commits, so the thread waits for less time than a sleep would take.
        let moment = Instant::now() + pause;
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        if rng.chance(25) {
            // The kill may be at any moment of a graceful stop, perhaps during the checkpoint of the database's log.
            server.signal(Signal::TERM);
            thread::sleep(Duration::from_micros(rng.below(30_000)));
        }
        server.signal(Signal::KILL);
    });
    server.ended();
    let said = server.said();
    assert!(!said.contains("panicked") && !said.contains("ERROR"), "{said}");
}

/// A session of PSI. Its number decides what the players do.
#[derive(Debug, Clone)]
struct Game {
    number: u64,
    id: String,
    invites: [String; 2],
}

impl Game {
    fn of(number: u64, created: &Value) -> Game {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Game { number, id: text(&created["id"]), invites: [0, 1].map(|seat| text(&created["invites"][seat])) }
    }
}

/// A write, and what is needed to repeat it.
struct Sent {
    write: Write,
    path: &'static str,
    body: Value,
    /// True if the requests have the write's key. The others can't be repeated.
    is_keyed: bool,
}

impl Sent {
    /// Sends the write and records the outcome. Returns the acknowledgment.
    fn send(&mut self, client: &Client, began: Instant) -> Option<Value> {
        let key = [("Idempotency-Key", self.write.key.as_str())];
        let headers = if self.is_keyed { &key[..] } else { &[] };
        let sent = began.elapsed();
        let answer = client.try_request("POST", self.path, headers, self.body.to_string().as_bytes());
        let acknowledgment = answer.as_ref().ok().and_then(|answer| serde_json::from_slice(&answer.body).ok());
        let outcome = match (answer, &acknowledgment) {
            (Ok(answer), Some(_)) => {
                assert_eq!(answer.status, 200, "{}: {:?}", answer.text(), self.write);
                RequestOutcome::Accepted(answer.text().to_owned())
            }
            (Err(error), _) if error.kind() == ErrorKind::ConnectionRefused => RequestOutcome::Unsent,
            // No answer, or one that was cut short.
            _ => RequestOutcome::Unknown,
        };
        self.write.attempts.push(Attempt { node: 0, sent, done: began.elapsed(), outcome });
        acknowledgment
    }
}

/// The history of one data folder.
struct Book {
    began: Instant,
    numbers: AtomicU64,
    sent: Mutex<Vec<Sent>>,
    /// The number of writes in `sent` whose outcome was determined after a kill.
    settled: usize,
    games: Mutex<Vec<Game>>,
    /// The session in which the chatters talk.
    hall: Game,
    /// The messages that were there after earlier kills, by channel.
    observed: BTreeMap<String, Vec<Delivery>>,
}

impl Book {
    /// Returns a book with the chat session, in which both players have joined.
    fn open(client: &Client, rng: &mut TestRng) -> Book {
        let mut book = Book {
            began: Instant::now(),
            // Numbers are the largest numbers that may be dealt.
            numbers: AtomicU64::new(1_001),
            sent: Mutex::default(),
            settled: 0,
            games: Mutex::default(),
            hall: Game { number: 0, id: String::new(), invites: Default::default() },
            observed: BTreeMap::new(),
        };
        let mut caller = book.caller(*client, rng.fork());
        let hall = caller.create().expect("the server is there");
        for seat in 0..2 {
            caller.join(&hall, seat).expect("the server is there");
        }
        book.hall = hall;
        book
    }

    fn caller(&self, client: Client, rng: TestRng) -> Caller<'_> {
        Caller { book: self, client, rng, acknowledged: None }
    }

    /// Returns the games that haven't ended, without the chat session.
    fn unfinished(&self, stored: &FinalState) -> Vec<Game> {
        let goes_on = |game: &&Game| {
            let session = stored.sessions.get(&game.id);
            game.id != self.hall.id && session.is_some_and(|session| session.status != "ended")
        };
        self.games.lock().iter().filter(goes_on).cloned().collect()
    }

    /// Repeats the lost writes with a key, and some of the acknowledged ones.
    fn repeat(&mut self, client: &Client, rng: &mut TestRng) {
        let sent = self.sent.get_mut();
        for sent in sent[self.settled..].iter_mut().filter(|sent| sent.is_keyed) {
            let is_known = sent.write.attempts.iter().any(|attempt| attempt.outcome != RequestOutcome::Unknown);
            if is_known && !rng.chance(10) {
                continue;
            }
            let answer = sent.send(client, self.began).expect("the server is there");
            if !is_known && let WriteOperation::Create { .. } = sent.write.operation {
                self.games.get_mut().push(Game::of(sent.body["options"]["range"][1].as_u64().unwrap(), &answer));
            }
        }
        self.settled = sent.len();
    }

    /// Compares the server's state with the history, and returns it.
    fn compare(&mut self, client: &Client) -> FinalState {
        let of_channel = |(channel, deliveries): (&String, &Vec<Delivery>)| Subscription {
            channel: channel.clone(),
            deliveries: deliveries.clone(),
            ends: 0,
            whole: false,
        };
        let history = History {
            writes: self.sent.get_mut().iter().map(|sent| sent.write.clone()).collect(),
            subscriptions: self.observed.iter().map(of_channel).collect(),
            ..History::default()
        };
        let until = Instant::now() + TIMEOUT;
        let state = loop {
            let state = FinalState::read(client, &["psi"]);
            let faults = check(&history, &state);
            if faults.is_empty() {
                break state;
            }
            // Counts follow the games after a moment.
            let is_late = faults.iter().all(|fault| fault.kind == FaultKind::Miscounted) && Instant::now() < until;
            assert!(is_late, "{} faults: {:#?}", faults.len(), &faults[..faults.len().min(20)]);
        };
        for (id, session) in &state.sessions {
            check_transitions(id, session, &state.channels[&format!("challenge_{id}")]);
        }
        let at = self.began.elapsed();
        let deliver = |message: &ObservedMessage| Delivery { node: 0, at, message: message.clone() };
        let channels = state.channels.iter();
        self.observed =
            channels.map(|(channel, messages)| (channel.clone(), messages.iter().map(deliver).collect())).collect();
        state
    }
}

/// Checks that the operator's channel of a game contains all messages of each transition, and that the session's
/// status and scores match them.
fn check_transitions(id: &str, session: &FinalSession, log: &[ObservedMessage]) {
    let mut lines = log.iter().map(|message| {
        let content = message.content.as_deref().expect("an administrator can read it");
        (message.from.as_str(), message.to.as_deref(), content)
    });
    let (mut sets, mut guesses, mut ended) = (0, 0, None);
    while let Some((from, to, content)) = lines.next() {
        assert_eq!(ended, None, "{id}: a message after the end: {content}");
        if content.starts_with("Your private set is: ") {
            assert_eq!((from, to), ("operator", session.players.get(sets).map(String::as_str)), "{id}: {content}");
            sets += 1;
            continue;
        }
        assert!(content.starts_with("(guess) ") && to == Some("operator") && sets == 2, "{id}: {content}");
        guesses += 1;
        let broadcast = format!("Player {from} sent a guess");
        assert_eq!(lines.next(), Some(("operator", None, broadcast.as_str())), "{id}: an incomplete guess");
        let outcome = lines.next();
        let is_whole = outcome.is_some_and(|(_, to, content)| to == Some(from) && content.contains(" outcome:\n"));
        assert!(is_whole, "{id}: {outcome:?}");
        if guesses == 2 {
            ended = lines.next().map(|(_, _, content)| content);
            assert!(ended.is_some_and(|end| end.starts_with("Game ended.")), "{id}: {ended:?}");
        }
    }
    let status = match (session.players.len(), sets, guesses) {
        (0 | 1, 0, 0) => "open",
        (2, 2, 0 | 1) => "active",
        (2, 2, 2) => "ended",
        others => panic!("{id}: players, sets and guesses: {others:?}"),
    };
    assert_eq!(session.status, status, "{id}");
    let Some(end) = ended else { return };
    let announced = end.lines().filter_map(|line| line.strip_prefix("- Player "));
    let announced = announced.map(|line| serde_json::from_str(&line[3..]).expect("scores are JSON"));
    let scores: Vec<[f64; 2]> = announced
        .map(|score: Value| ["security", "utility"].map(|name| score[name].as_f64().expect("a number")))
        .collect();
    assert_eq!(session.scores, scores, "{id}");
}

/// A client of the server until the server is killed. Its methods return `None` if the server is gone.
struct Caller<'b> {
    book: &'b Book,
    client: Client,
    rng: TestRng,
    /// The channel that receives a message for every acknowledged write.
    acknowledged: Option<mpsc::Sender<()>>,
}

impl Caller<'_> {
    fn write(&mut self, operation: WriteOperation, path: &'static str, body: Value) -> Option<Value> {
        let key = format!("key of the write {}", self.book.numbers.fetch_add(1, Ordering::Relaxed));
        let write = Write { key, operation, attempts: Vec::new() };
        let mut sent = Sent { write, path, body, is_keyed: self.rng.chance(50) };
        let answer = sent.send(&self.client, self.book.began);
        self.book.sent.lock().push(sent);
        if answer.is_some() {
            // The receiver is gone if no kill is planned.
            let _ = self.acknowledged.as_ref().map(|acknowledged| acknowledged.send(()));
        }
        answer
    }

    /// Creates a session. Half of the sessions have the default options, so that they count on the leaderboard. The
    /// others have unique options.
    fn create(&mut self) -> Option<Game> {
        let number = self.book.numbers.fetch_add(1, Ordering::Relaxed);
        let options = json!({ "range": [100, if number.is_multiple_of(2) { 900 } else { number }] });
        let operation = WriteOperation::create("psi", options.as_object().unwrap());
        let created = self.write(operation, "/api/challenges/psi", json!({ "options": options }))?;
        let game = Game::of(number, &created);
        self.book.games.lock().push(game.clone());
        Some(game)
    }

    fn join(&mut self, game: &Game, seat: usize) -> Option<Value> {
        let invite = &game.invites[seat];
        let user = Some(format!("user {}", (game.number + seat as u64) % USERS)).filter(|_| game.number % 4 < 3);
        let mut body = json!({ "invite": invite });
        if let Some(user) = &user {
            body["userId"] = json!(user);
        }
        self.write(WriteOperation::Join { invite: invite.clone(), user }, "/api/arena/join", body)
    }

    fn say(&mut self, game: &Game, seat: usize, to: Option<&String>) -> Option<Value> {
        // Most messages are short; some take several pages of the store.
        let padding = if self.rng.chance(4) { self.rng.below(10_000) } else { self.rng.below(80) } as usize;
        let number = self.book.numbers.fetch_add(1, Ordering::Relaxed);
        let content = format!("message {number} {}", "·".repeat(padding));
        let from = game.invites[seat].clone();
        let mut body = json!({ "channel": game.id, "from": from, "content": content });
        if let Some(to) = to {
            body["to"] = json!(to);
        }
        let operation = WriteOperation::Say { session: game.id.clone(), from, to: to.cloned(), content };
        self.write(operation, "/api/chat/send", body)
    }

    /// Plays a game from its stored state to the end, with both players at the same time.
    fn play(&mut self, game: &Game, stored: &FinalState) -> Option<()> {
        let Caller { book, client, .. } = *self;
        let mut other = Caller { book, client, rng: self.rng.fork(), acknowledged: self.acknowledged.clone() };
        thread::scope(|scope| {
            let other = scope.spawn(move || other.play_seat(game, 1, stored));
            let one = self.play_seat(game, 0, stored);
            one.and(other.join().expect("a player fails with a reason of its own"))
        })
    }

    /// Sends all writes of a player that aren't in the stored state.
    fn play_seat(&mut self, game: &Game, seat: usize, stored: &FinalState) -> Option<()> {
        let [me, other] = [&game.invites[seat], &game.invites[1 - seat]];
        let count = |channel: &str, is_own: &dyn Fn(&ObservedMessage) -> bool| {
            stored.channels.get(channel).into_iter().flatten().filter(|message| is_own(message)).count() as u64
        };
        let has_joined = stored.sessions.get(&game.id).is_some_and(|session| session.players.contains(me));
        if !has_joined {
            let is_offered = count("invites", &|message| message.content.as_ref() == Some(me)) > 0;
            if game.number.is_multiple_of(7) && !is_offered {
                let operation = WriteOperation::Announce { invite: me.clone() };
                self.write(operation, "/api/invites", json!({ "inviteId": me }))?;
            }
            self.join(game, seat)?;
        }
        // The player sends its first message before the other player may have joined.
        let mut said = count(&game.id, &|message| message.from == *me);
        if said == 0 && !game.number.is_multiple_of(5) {
            self.say(game, seat, None)?;
            said += 1;
        }
        let (own, theirs) = (self.set_of(game, seat)?, self.set_of(game, 1 - seat)?);
        for _ in said..game.number % 5 {
            let to = Some(other).filter(|_| self.rng.chance(30));
            self.say(game, seat, to)?;
        }
        if count(&format!("challenge_{}", game.id), &|message| message.from == *me) == 0 {
            let common = &own & &theirs;
            // Too few numbers, some wrong ones, or the other player's set, which costs that player its security.
            let guess = match (game.number + seat as u64) % 4 {
                0 => common,
                1 => common.into_iter().take(1).collect(),
                2 => own,
                _ => theirs,
            };
            let content = guess.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            let (session, from, method) = (game.id.clone(), me.clone(), "guess".to_owned());
            let body = json!({ "challengeId": session, "from": from, "messageType": method, "content": content });
            self.write(WriteOperation::Act { session, from, method, content }, "/api/arena/message", body)?;
        }
        Some(())
    }

    /// Returns a player's set, once both players have joined.
    fn set_of(&self, game: &Game, seat: usize) -> Option<BTreeSet<u64>> {
        let until = Instant::now() + TIMEOUT;
        loop {
            let invite = &game.invites[seat];
            let path = format!("/api/arena/sync?channel={}&from={invite}&wait=1", game.id);
            let answer = self.client.try_request("GET", &path, &[], b"").ok()?;
            let log: Value = serde_json::from_slice(&answer.body).ok()?;
            let mut texts = log["messages"].as_array()?.iter().filter_map(|message| message["content"].as_str());
            if let Some(set) = texts.find_map(|text| text.strip_prefix("Your private set is: ")) {
                let digits = set.split(|char: char| !char.is_ascii_digit());
                return Some(digits.filter_map(|digits| digits.parse().ok()).collect());
            }
            // The answer may lack the set, if a player has not yet joined or the server is stopping.
            assert!(Instant::now() < until, "the players of {} have not joined", game.id);
        }
    }
}
