//! SIGKILL under load, repeatedly on one data folder. After each kill, every acknowledged write must exist exactly
//! once, and every session can continue.
//!
//! Many clients play over HTTP and record their requests and answers. The server is killed at a random moment and
//! started again. Then the test compares the server's answers with the records. The test uses only the API, because the
//! layout of the store may change.
//!
//! `ARENA_CRASH_ROUNDS` is the number of kills under load (default 5). `ARENA_CRASH_SEED` repeats a run as far as the
//! machine's timing allows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::{Client, TestRng};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, arena, folder};

/// The number of concurrent sessions, with two players each.
const TABLES: usize = 10;

/// The number of clients that chat in the same session.
const CHATTERS: usize = 4;

const KILLS_PER_FOLDER: usize = 10;

/// The longest time under load before a kill.
const LOAD: Duration = Duration::from_millis(800);

/// The largest number of acknowledged writes before a kill. It is slightly more than [`LOAD`] allows.
const WRITES: u64 = 2_000;

/// The number of messages in one read.
const PAGE: usize = 500;

/// The longest time that a player waits for the other player.
const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn acknowledged_writes_survive_kill_nine_and_happen_once() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let rounds = number("ARENA_CRASH_ROUNDS").unwrap_or(5) as usize;
    let seed = number("ARENA_CRASH_SEED").unwrap_or_else(|| getrandom::u64().expect("the system has randomness"));
    // The line is shown if the test fails.
    println!("ARENA_CRASH_SEED={seed} ARENA_CRASH_ROUNDS={rounds}");
    let mut rng = TestRng(seed);
    let mut tally = Tally::default();
    let started = Instant::now();
    let mut left = rounds;
    while left > 0 {
        let kills = left.min(KILLS_PER_FOLDER);
        life_of_a_folder(kills, &mut rng, &mut tally);
        left -= kills;
    }
    println!("{tally:#?}\n{:.1} s", started.elapsed().as_secs_f64());
}

/// Runs a folder from its first start, through `kills` kills under load, to a graceful stop.
fn life_of_a_folder(kills: usize, rng: &mut TestRng, tally: &mut Tally) {
    let folder = folder();
    let folder = folder.path();
    // The server is killed with an empty folder, and perhaps during the creation of the tables.
    kill_while_starting(folder, rng, tally);
    let mut server = Running::serve(folder);
    let mut book = Book::open(&server, rng);
    for kill in 1..=kills {
        match rng.below(4) {
            0 => load_until(&mut server, &mut book, rng, tally, Death::WhileStopping),
            _ => load_until(&mut server, &mut book, rng, tally, Death::AtOnce),
        }
        for _ in 0..[0, 0, 1, 2][rng.below(4) as usize] {
            kill_while_starting(folder, rng, tally);
        }
        server = Running::serve(folder);
        book.audit(&server, rng, tally, if kill == kills { CheckShare::ALL } else { CheckShare::SOME });
    }
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0), "{}", server.said());
    let server = Running::serve(folder);
    book.compare(&server, CheckShare::ALL, rng);
    tally.settle(&book);
}

/// The share of sessions in optional checks.
struct CheckShare {
    /// The percentage of settled sessions that are compared again.
    compared: u64,
    /// The percentage of unfinished sessions that are played to their end without a crash.
    finished: u64,
}

impl CheckShare {
    const ALL: CheckShare = CheckShare { compared: 100, finished: 100 };
    const SOME: CheckShare = CheckShare { compared: 5, finished: 50 };
}

/// Counts of all operations, for the output.
#[derive(Debug, Default)]
struct Tally {
    kills_under_load: usize,
    kills_while_stopping: usize,
    kills_while_starting: usize,
    acknowledged: usize,
    lost_and_found: usize,
    lost_and_gone: usize,
    lost_and_repeated: usize,
    repeated_although_acknowledged: usize,
    sessions: usize,
    ended_sessions: usize,
}

impl Tally {
    fn settle(&mut self, book: &Book) {
        let acknowledged = |write: &&Write| matches!(write.outcome, WriteState::Acknowledged(_));
        self.acknowledged += book.games.iter().flat_map(Game::writes).filter(acknowledged).count();
        self.sessions += book.games.iter().filter(|game| game.session.is_some()).count();
        self.ended_sessions += book.games.iter().filter(|game| game.settled).count();
    }
}

// ---- the clients' requests and records ----

#[derive(Debug, Clone, PartialEq)]
enum WriteKind {
    Create,
    Announce,
    Join,
    Say { content: String, to: Option<String> },
    Guess(BTreeSet<u64>),
}

#[derive(Debug, Clone, PartialEq)]
enum WriteState {
    /// Acknowledged, with this body.
    Acknowledged(String),
    /// The server was killed before it answered.
    Lost,
    /// Lost, but found after the restart. The write must stay.
    Found,
    /// Lost, and not found after the restart. The write must never appear.
    Gone,
}

/// A request and its outcome.
#[derive(Debug)]
struct Write {
    operation: WriteKind,
    /// The sender's invite, if there is one.
    from: String,
    path: &'static str,
    body: Value,
    /// The `Idempotency-Key`.
    key: Option<String>,
    outcome: WriteState,
}

impl Write {
    fn is_done(&self) -> bool {
        matches!(self.outcome, WriteState::Acknowledged(_) | WriteState::Found)
    }

    /// Returns the acknowledgment as JSON.
    fn answer(&self) -> Option<Value> {
        match &self.outcome {
            WriteState::Acknowledged(answer) => Some(serde_json::from_str(answer).expect("answers are JSON")),
            _ => None,
        }
    }
}

/// Checks how often a write happened: once if an attempt was acknowledged, at most once if an attempt was lost, and
/// otherwise never.
#[track_caller]
fn happened<'w>(attempts: impl IntoIterator<Item = &'w Write>, times: usize) {
    let attempts: Vec<&Write> = attempts.into_iter().collect();
    let done = attempts.iter().filter(|write| write.is_done()).count();
    let lost = attempts.iter().filter(|write| write.outcome == WriteState::Lost).count();
    assert!(times <= 1 && done <= times && times <= done + lost, "it happened {times} times: {attempts:#?}");
}

/// The error of a request to a server that was killed.
#[derive(Debug)]
struct ServerGone;

enum Failed {
    /// No connection: nothing was sent.
    Unsent,
    /// Sent, but without a complete answer.
    Lost,
}

/// A client's connections to the server.
struct Wire {
    client: Client,
    /// True if the client sends many requests on one connection.
    keeps: bool,
    kept: Option<BufReader<TcpStream>>,
    /// The channel that receives a message for every acknowledged write.
    acknowledged: Option<mpsc::Sender<()>>,
}

impl Wire {
    fn new(client: Client, keeps: bool) -> Wire {
        Wire { client, keeps, kept: None, acknowledged: None }
    }

    fn get(&mut self, path: &str) -> Result<Value, ServerGone> {
        match self.exchange(&format!("GET {path} HTTP/1.1\r\nHost: arena\r\n"), "") {
            Ok((200, body)) => Ok(serde_json::from_str(&body).expect("answers are JSON")),
            Ok((status, body)) => panic!("GET {path}: {status} {body}"),
            Err(_) => Err(ServerGone),
        }
    }

    /// Sends a write and records it in `notes` with its outcome.
    fn write(&mut self, notes: &mut Vec<Write>, mut write: Write) -> Result<(), ServerGone> {
        match self.post(&write) {
            Ok((200, body)) => {
                write.outcome = WriteState::Acknowledged(body);
                notes.push(write);
                // The receiver is gone if no kill is planned.
                let _ = self.acknowledged.as_ref().map(|acknowledged| acknowledged.send(()));
                Ok(())
            }
            Ok((status, body)) => panic!("{status} {body}: {write:?}"),
            Err(Failed::Unsent) => Err(ServerGone),
            Err(Failed::Lost) => {
                notes.push(write);
                Err(ServerGone)
            }
        }
    }

    fn post(&mut self, write: &Write) -> Result<(u16, String), Failed> {
        let body = write.body.to_string();
        let key = write.key.as_ref().map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
        let Write { path, .. } = write;
        self.exchange(&format!("POST {path} HTTP/1.1\r\nHost: arena\r\nContent-Length: {}\r\n{key}", body.len()), &body)
    }

    fn exchange(&mut self, head: &str, body: &str) -> Result<(u16, String), Failed> {
        let mut stream = match self.kept.take() {
            Some(stream) => stream,
            None => BufReader::new(self.client.connect().map_err(|_| Failed::Unsent)?),
        };
        let last = if self.keeps { "" } else { "Connection: close\r\n" };
        let mut talk = || -> io::Result<(u16, bool, String)> {
            stream.get_mut().write_all(format!("{head}{last}\r\n{body}").as_bytes())?;
            read_answer(&mut stream)
        };
        let (status, closes, body) = talk().map_err(|_| Failed::Lost)?;
        if self.keeps && !closes {
            self.kept = Some(stream);
        }
        Ok((status, body))
    }
}

/// Reads a complete answer. Returns its status, true if the server closes the connection after it, and the body.
pub fn read_answer(stream: &mut impl BufRead) -> io::Result<(u16, bool, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let head = head.to_ascii_lowercase();
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let mut body = Vec::new();
    match field("content-length:") {
        Some(length) => {
            body.resize(length.parse().expect("a length"), 0);
            stream.read_exact(&mut body)?;
        }
        None => while read_chunk(stream, &mut body)? {},
    }
    Ok((status, field("connection:") == Some("close"), String::from_utf8(body).expect("JSON is UTF-8")))
}

/// Appends the next chunk of a chunked body. Returns false after the last chunk.
fn read_chunk(stream: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<bool> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let length = usize::from_str_radix(line.trim_end(), 16).expect("the length of a chunk");
    let from = body.len();
    body.resize(from + length + 2, 0);
    stream.read_exact(&mut body[from..])?;
    body.truncate(from + length);
    Ok(length > 0)
}

struct Plan {
    announces: bool,
    user: Option<String>,
    says: usize,
    guess: Aim,
}

/// The numbers that a player guesses.
#[derive(Debug, Clone, Copy)]
enum Aim {
    Common,
    /// One common number, which is too few.
    One,
    /// The player's own set, in which some numbers are wrong.
    Own,
    /// The other player's set, which costs that player its security.
    Theirs,
}

/// A session that the server acknowledged.
#[derive(Debug, Clone)]
struct Opened {
    id: String,
    invites: [String; 2],
    commitment: String,
}

impl Opened {
    fn of(answer: &Value) -> Opened {
        let invite = |seat: usize| text(&answer["invites"][seat]).to_owned();
        let (id, commitment) = (text(&answer["id"]).to_owned(), text(&answer["seedCommitment"]).to_owned());
        Opened { id, invites: [invite(0), invite(1)], commitment }
    }

    /// Returns a player's set, once both players have joined.
    fn set_of(&self, seat: usize, wire: &mut Wire) -> Result<BTreeSet<u64>, ServerGone> {
        let Opened { id, invites, .. } = self;
        let started = Instant::now();
        let mut index = 1;
        loop {
            let path = format!("/api/arena/sync?channel={id}&from={}&index={index}&wait=10", invites[seat]);
            let answer = wire.get(&path)?;
            for message in list(&answer["messages"]) {
                if message["to"] == invites[seat].as_str()
                    && let Some(set) = text(&message["content"]).strip_prefix("Your private set is: ")
                {
                    return Ok(numbers(set));
                }
                index += 1;
            }
            // The answer may lack the set, if a player has not yet joined or the server is stopping.
            assert!(started.elapsed() < TIMEOUT, "the players of {id} have not joined");
        }
    }
}

/// A session with all writes to it, by sender, and their outcomes.
struct Game {
    /// An option that identifies the session in lists: the largest number that may be dealt.
    mark: u64,
    plans: [Plan; 2],
    creation: Vec<Write>,
    session: Option<Opened>,
    seats: [Vec<Write>; 2],
    /// Writes that other clients sent in the name of the session's players.
    chorus: Vec<Write>,
    /// True if the session has ended and was compared afterwards.
    settled: bool,
}

impl Game {
    fn plan(mark: u64, rng: &mut TestRng) -> Game {
        let mut plan = |seat: usize| Plan {
            announces: rng.chance(15),
            user: rng.chance(50).then(|| format!("user {mark}.{seat}")),
            says: rng.below(5) as usize,
            guess: [Aim::Common, Aim::One, Aim::Own, Aim::Theirs][rng.below(4) as usize],
        };
        let plans = [plan(0), plan(1)];
        Game {
            mark,
            plans,
            creation: Vec::new(),
            session: None,
            seats: Default::default(),
            chorus: Vec::new(),
            settled: false,
        }
    }

    fn writes(&self) -> impl Iterator<Item = &Write> {
        let players = self.seats.iter().flatten();
        self.creation.iter().chain(players).chain(&self.chorus)
    }

    /// Returns true if the session exists and isn't settled.
    fn goes_on(&self) -> bool {
        self.session.is_some() && !self.settled
    }

    fn create(&mut self, wire: &mut Wire, rng: &mut TestRng) -> Result<(), ServerGone> {
        let write = Write {
            operation: WriteKind::Create,
            from: String::new(),
            path: "/api/challenges/psi",
            body: json!({ "options": { "range": [100, self.mark] } }),
            key: rng.chance(50).then(|| format!("creation-number-{}", self.mark)),
            outcome: WriteState::Lost,
        };
        wire.write(&mut self.creation, write)?;
        self.session = self.creation.last().and_then(Write::answer).map(|answer| Opened::of(&answer));
        Ok(())
    }

    /// Plays from the current state to the end, with both players at the same time.
    fn play(&mut self, wires: &mut [Wire; 2], rng: &mut TestRng) -> Result<(), ServerGone> {
        if self.session.is_none() {
            self.create(&mut wires[0], rng)?;
        }
        let session = self.session.as_ref().expect("the creation was acknowledged");
        let [first, second] = &mut self.seats;
        let [first_wire, second_wire] = wires;
        let sit = |seat: usize, notes: &mut Vec<Write>, wire: &mut Wire, rng: TestRng| {
            let scope = format!("{}.{seat}", self.mark);
            Player { session, seat, plan: &self.plans[seat], scope, notes, wire, rng }.play()
        };
        let (first_dice, second_dice) = (rng.fork(), rng.fork());
        thread::scope(|scope| {
            let other = scope.spawn(|| sit(1, second, second_wire, second_dice));
            let one = sit(0, first, first_wire, first_dice);
            one.and(other.join().expect("a player fails with a reason of its own"))
        })
    }
}

struct Player<'g> {
    session: &'g Opened,
    seat: usize,
    plan: &'g Plan,
    /// A prefix that makes the player's texts and keys unique.
    scope: String,
    notes: &'g mut Vec<Write>,
    wire: &'g mut Wire,
    rng: TestRng,
}

impl Player<'_> {
    fn done(&self, operation: fn(&WriteKind) -> bool) -> usize {
        self.notes.iter().filter(|write| write.is_done() && operation(&write.operation)).count()
    }

    fn write(&mut self, operation: WriteKind, path: &'static str, body: Value) -> Result<(), ServerGone> {
        let key = self.rng.chance(50).then(|| format!("{}.{}", self.scope, self.notes.len()));
        let from = self.session.invites[self.seat].clone();
        self.wire.write(self.notes, Write { operation, from, path, body, key, outcome: WriteState::Lost })
    }

    /// Sends all writes of the plan that were not sent before.
    fn play(&mut self) -> Result<(), ServerGone> {
        let (session, plan) = (self.session, self.plan);
        let me = &session.invites[self.seat];
        if plan.announces && self.done(|operation| *operation == WriteKind::Announce) == 0 {
            self.write(WriteKind::Announce, "/api/invites", json!({ "inviteId": me }))?;
        }
        if self.done(|operation| *operation == WriteKind::Join) == 0 {
            self.join()?;
        }
        // The player sends its first message before the other player may have joined.
        if plan.says > 0 && self.said() == 0 {
            self.say(None)?;
        }
        let own = session.set_of(self.seat, self.wire)?;
        let other = 1 - self.seat;
        let theirs = session.set_of(other, self.wire)?;
        while self.said() < plan.says {
            let to = self.rng.chance(30).then(|| session.invites[other].clone());
            self.say(to)?;
        }
        if self.done(|operation| matches!(operation, WriteKind::Guess(_))) == 0 {
            let common = &own & &theirs;
            let guess = match plan.guess {
                Aim::Common => common,
                Aim::One => common.into_iter().take(1).collect(),
                Aim::Own => own,
                Aim::Theirs => theirs,
            };
            let content = guess.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            let body = json!({ "challengeId": session.id, "from": me, "messageType": "guess", "content": content });
            self.write(WriteKind::Guess(guess), "/api/arena/message", body)?;
        }
        Ok(())
    }

    fn join(&mut self) -> Result<(), ServerGone> {
        let mut body = json!({ "invite": self.session.invites[self.seat] });
        if let Some(user) = &self.plan.user {
            body["userId"] = json!(user);
        }
        self.write(WriteKind::Join, "/api/arena/join", body)
    }

    fn said(&self) -> usize {
        self.done(|operation| matches!(operation, WriteKind::Say { .. }))
    }

    fn say(&mut self, to: Option<String>) -> Result<(), ServerGone> {
        // Most messages are short; some take several pages of the store.
        let padding = if self.rng.chance(4) { self.rng.below(10_000) } else { self.rng.below(80) } as usize;
        let content = format!("{}.{} {}", self.scope, self.notes.len(), "·".repeat(padding));
        let from = &self.session.invites[self.seat];
        let mut body = json!({ "channel": self.session.id, "from": from, "content": content });
        if let Some(to) = &to {
            body["to"] = json!(to);
        }
        self.write(WriteKind::Say { content, to }, "/api/chat/send", body)
    }
}

// ---- load and kill ----

/// The moment of a kill under load.
#[derive(Debug, Clone, Copy)]
enum Death {
    AtOnce,
    /// Shortly after a request to stop, perhaps during the checkpoint of the database's log.
    WhileStopping,
}

/// Runs clients until the server is killed, and adds their records to `book`.
fn load_until(server: &mut Running, book: &mut Book, rng: &mut TestRng, tally: &mut Tally, death: Death) {
    let client = server.client();
    let (acknowledged, heard) = mpsc::channel();
    let wire = |keeps: bool| {
        let acknowledged = Some(acknowledged.clone());
        Wire { acknowledged, ..Wire::new(client, keeps) }
    };
    let (unfinished, others): (Vec<Game>, _) = book.games.drain(..).partition(|game| game.goes_on() && !game.is_hall());
    book.games = others;
    let mut tables: Vec<Vec<Game>> = (0..TABLES).map(|_| Vec::new()).collect();
    for (i, game) in unfinished.into_iter().enumerate() {
        tables[i % TABLES].push(game);
    }
    let hall = book.hall().session.clone().expect("the hall was opened");
    let marks = &book.marks;
    let writes = rng.below(WRITES) + 1;
    let pause = Duration::from_micros(rng.below(3_000));

    let (games, chorus) = thread::scope(|scope| {
        let mut players = Vec::new();
        for games in tables {
            let (mut wires, mut rng) = ([wire(rng.chance(60)), wire(rng.chance(60))], rng.fork());
            players.push(scope.spawn(move || play_until_death(games, marks, &mut wires, &mut rng)));
        }
        let mut chatters = Vec::new();
        for chatter in 0..CHATTERS {
            let (mut wire, rng, hall) = (wire(chatter % 2 == 0), rng.fork(), &hall);
            let scope_of_texts = format!("hall.{}.{chatter}", marks.fetch_add(1, Ordering::Relaxed));
            chatters.push(scope.spawn(move || chat_until_death(hall, chatter % 2, scope_of_texts, &mut wire, rng)));
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
        if matches!(death, Death::WhileStopping) {
            server.signal(Signal::TERM);
            // The kill may be at any moment of the shutdown.
            thread::sleep(Duration::from_micros(rng.below(30_000)));
        }
        server.signal(Signal::KILL);

        let games: Vec<Game> = players.into_iter().flat_map(|table| table.join().expect("a table plays")).collect();
        let chorus: Vec<Write> = chatters
            .into_iter()
            .flat_map(|chatter| chatter.join().expect("a chatter fails with a reason of its own"))
            .collect();
        (games, chorus)
    });
    // Sessions are removed if their creation was never sent.
    book.games.extend(games.into_iter().filter(|game| !game.creation.is_empty()));
    book.hall_mut().chorus.extend(chorus);

    server.ended();
    let said = server.said();
    assert!(!said.contains("panicked") && !said.contains("ERROR"), "{said}");
    match death {
        Death::AtOnce => tally.kills_under_load += 1,
        Death::WhileStopping => tally.kills_while_stopping += 1,
    }
}

fn play_until_death(mut games: Vec<Game>, marks: &AtomicU64, wires: &mut [Wire; 2], rng: &mut TestRng) -> Vec<Game> {
    if games.iter_mut().any(|game| game.play(wires, rng).is_err()) {
        return games;
    }
    loop {
        let mut game = Game::plan(marks.fetch_add(1, Ordering::Relaxed), rng);
        let played = game.play(wires, rng);
        games.push(game);
        if played.is_err() {
            return games;
        }
    }
}

fn chat_until_death(session: &Opened, seat: usize, scope: String, wire: &mut Wire, rng: TestRng) -> Vec<Write> {
    let plan = Plan { announces: false, user: None, says: 0, guess: Aim::Common };
    let mut notes = Vec::new();
    let mut player = Player { session, seat, plan: &plan, scope, notes: &mut notes, wire, rng };
    while player.say(None).is_ok() {}
    notes
}

/// Starts a server and kills it before, or shortly after, it is ready.
fn kill_while_starting(folder: &Path, rng: &mut TestRng, tally: &mut Tally) {
    let mut command = arena(&["serve", "--listen", "127.0.0.1:0", "--data", folder.to_str().expect("a UTF-8 path")]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    // The kill may be at any moment of the start.
    thread::sleep(Duration::from_micros(rng.below(60_000)));
    child.kill().expect("a child can be killed");
    child.wait().expect("a child that was killed ends");
    tally.kills_while_starting += 1;
}

// ---- the comparison ----

/// The records for one data folder.
struct Book {
    /// All games; the first one is the session in which the chatters talk.
    games: Vec<Game>,
    marks: AtomicU64,
}

impl Game {
    fn is_hall(&self) -> bool {
        self.mark == Book::FIRST_MARK
    }
}

impl Book {
    const FIRST_MARK: u64 = 1_000;

    /// Returns a book with the chat session, in which both players have joined.
    fn open(server: &Running, rng: &mut TestRng) -> Book {
        let client = server.client();
        let seen = ServerLists::read(&client);
        assert_eq!((seen.sessions.len(), seen.offers.len()), (0, 0), "the folder isn't new");
        let mut hall = Game::plan(Book::FIRST_MARK, rng);
        hall.plans = [0, 1].map(|_| Plan { announces: false, user: None, says: 0, guess: Aim::Common });
        let mut wire = Wire::new(client, false);
        hall.create(&mut wire, rng).expect("the server is there");
        let session = hall.session.as_ref().expect("the creation was acknowledged");
        for (seat, notes) in hall.seats.iter_mut().enumerate() {
            let (plan, scope) = (&hall.plans[seat], format!("hall.{seat}"));
            let mut player = Player { session, seat, plan, scope, notes, wire: &mut wire, rng: rng.fork() };
            player.join().expect("the server is there");
        }
        Book { games: vec![hall], marks: AtomicU64::new(Book::FIRST_MARK + 1) }
    }

    fn hall(&self) -> &Game {
        self.games.iter().find(|game| game.is_hall()).expect("the hall is in the book")
    }

    fn hall_mut(&mut self) -> &mut Game {
        self.games.iter_mut().find(|game| game.is_hall()).expect("the hall is in the book")
    }

    /// Checks a restarted server. The method compares the sessions with the records, determines the outcomes of lost
    /// writes, repeats writes with a key, plays some sessions to their end, and compares again.
    fn audit(&mut self, server: &Running, rng: &mut TestRng, tally: &mut Tally, share: CheckShare) {
        let client = server.client();
        let played: BTreeSet<u64> = self.games.iter().filter(|game| !game.settled).map(|game| game.mark).collect();
        let seen = self.compare(server, CheckShare { compared: 0, ..share }, rng);
        let mut wire = Wire::new(client, true);
        for game in self.games.iter_mut().filter(|game| played.contains(&game.mark)) {
            game.resolve(&seen, &mut wire, tally);
            game.repeat_some(&mut wire, rng, tally);
        }
        let mut wires = [Wire::new(client, true), Wire::new(client, false)];
        for game in self.games.iter_mut().filter(|game| game.goes_on()) {
            if rng.chance(share.finished) && (!game.is_hall() || share.finished == 100) {
                game.play(&mut wires, rng).expect("the server is there");
            }
        }
        self.compare(server, share, rng);
    }

    /// Compares the server's answers about all unsettled sessions, and about a share of the settled sessions, with the
    /// records.
    fn compare(&mut self, server: &Running, share: CheckShare, rng: &mut TestRng) -> ServerLists {
        let client = server.client();
        let (seen, mut wire) = (ServerLists::read(&client), Wire::new(client, true));
        let marks: BTreeSet<u64> = self.games.iter().map(|game| game.mark).collect();
        for (mark, ids) in &seen.marks {
            assert!(marks.contains(mark), "no client created {ids:?}");
        }
        let mut offered = 0;
        for game in &mut self.games {
            offered += game.compare_lists(&seen);
            if !game.settled || rng.chance(share.compared) {
                game.compare_channels(&seen, &mut wire);
            }
        }
        assert_eq!(offered, seen.offers.len(), "the public channel has other announcements");
        seen
    }
}

struct ServerLists {
    /// Sessions by id, in the public view.
    sessions: BTreeMap<String, Value>,
    /// The ids of the sessions with a mark.
    marks: BTreeMap<u64, Vec<String>>,
    /// The announced invites, in order.
    offers: Vec<String>,
}

impl ServerLists {
    /// Reads all lists, and checks that they agree with each other.
    fn read(client: &Client) -> ServerLists {
        let mut sessions = BTreeMap::new();
        let mut total = u64::MAX;
        while (sessions.len() as u64) < total {
            let page = client.get(&format!("/api/challenges?limit=100&offset={}", sessions.len())).ok();
            total = page["total"].as_u64().expect("total is a number");
            let page = list(&page["challenges"]);
            assert!(sessions.len() as u64 == total || !page.is_empty(), "{} of {total} sessions", sessions.len());
            for session in page {
                let id = text(&session["id"]).to_owned();
                assert_eq!(sessions.insert(id, session.clone()), None, "{session} is on two pages");
            }
        }
        let total_of = |path: &str| client.get(path).ok()["total"].as_u64().expect("total is a number");
        assert_eq!(total_of("/api/challenges/psi?limit=1"), total);
        for status in ["open", "active", "ended"] {
            let found = sessions.values().filter(|session| session["state"]["status"] == status).count();
            assert_eq!(total_of(&format!("/api/challenges?status={status}&limit=1")), found as u64, "{status}");
        }
        let mut marks: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (id, session) in &sessions {
            let mark = session["options"]["range"][1].as_u64().expect("the range is part of the options");
            marks.entry(mark).or_default().push(id.clone());
        }
        let offers = read_channel(&mut Wire::new(*client, true), "/api/chat/sync?channel=invites", &["viewer"]);
        let offers = offers.into_iter().map(|line| line.content.expect("the public channel is public")).collect();
        ServerLists { sessions, marks, offers }
    }
}

/// A message, combined from the views of several readers.
#[derive(Debug)]
struct CombinedMessage {
    from: String,
    to: Option<String>,
    /// The text, unless it is redacted for every reader.
    content: Option<String>,
}

/// Reads all messages of a channel as every one of `readers`, and combines them. Each reader must see the indexes 1, 2,
/// 3 …
fn read_channel(wire: &mut Wire, path: &str, readers: &[&str]) -> Vec<CombinedMessage> {
    let mut lines: Vec<CombinedMessage> = Vec::new();
    for (nth, reader) in readers.iter().enumerate() {
        let mut messages = Vec::new();
        while messages.len() % PAGE == 0 {
            let page = format!("{path}&from={reader}&index={}&limit={PAGE}", messages.len() + 1);
            let page = wire.get(&page).expect("the server is there");
            assert_eq!(page["count"], list(&page["messages"]).len(), "{path}");
            if page["count"] == 0 {
                break;
            }
            messages.extend_from_slice(list(&page["messages"]));
        }
        assert!(nth == 0 || lines.len() == messages.len(), "{path}: {readers:?} see different numbers of messages");
        for (place, message) in messages.iter().enumerate() {
            assert_eq!(message["index"], place + 1, "{path}: indexes have a gap or repeat");
            let content = (message["redacted"] != true).then(|| text(&message["content"]).to_owned());
            let (from, to) = (text(&message["from"]).to_owned(), message["to"].as_str().map(str::to_owned));
            match lines.get_mut(place) {
                None => lines.push(CombinedMessage { from, to, content }),
                Some(line) => {
                    assert_eq!((&line.from, &line.to), (&from, &to), "{path}: {readers:?} see different messages");
                    line.content = line.content.take().or(content);
                }
            }
        }
    }
    lines
}

impl Opened {
    /// Reads the chat and the operator channel of the session as both players.
    fn read(&self, wire: &mut Wire) -> [Vec<CombinedMessage>; 2] {
        ["/api/chat/sync", "/api/arena/sync"].map(|route| {
            let readers = self.invites.each_ref().map(String::as_str);
            read_channel(wire, &format!("{route}?channel={}", self.id), &readers)
        })
    }
}

impl Game {
    /// Compares the session and its announced invites with the lists; returns the number of announcements.
    fn compare_lists(&self, seen: &ServerLists) -> usize {
        let ids = seen.marks.get(&self.mark).map_or(&[][..], Vec::as_slice);
        happened(&self.creation, ids.len());
        let Some(session) = &self.session else {
            // The client never received the invites, so no player can have joined.
            assert!(ids.iter().all(|id| seen.sessions[id]["state"]["status"] == "open"), "{ids:?}");
            return 0;
        };
        assert_eq!(ids, std::slice::from_ref(&session.id));
        assert_eq!(seen.sessions[&session.id]["seedCommitment"], session.commitment.as_str());
        let times = |invite: &String| seen.offers.iter().filter(|offer| *offer == invite).count();
        for (invite, writes) in session.invites.iter().zip(&self.seats) {
            happened(writes.iter().filter(|write| write.operation == WriteKind::Announce), times(invite));
        }
        session.invites.iter().map(times).sum()
    }

    /// Compares every message of the session, and the resulting state.
    fn compare_channels(&mut self, seen: &ServerLists, wire: &mut Wire) {
        let Some(session) = &self.session else { return };
        let Opened { id, invites, .. } = session;
        let shown = &seen.sessions[id];
        let [chat, log] = session.read(wire);
        let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, line) in chat.iter().enumerate() {
            let content = line.content.as_deref().expect("the sender can read its own message");
            places.entry(content).or_default().push(place);
        }
        for write in self.writes() {
            let WriteKind::Say { content, to } = &write.operation else { continue };
            let places = places.remove(content.as_str()).unwrap_or_default();
            happened([write], places.len());
            for place in places {
                assert_eq!((&chat[place].from, &chat[place].to), (&write.from, to), "{write:?}");
                if let Some(answer) = write.answer() {
                    let output = json!({ "index": place + 1, "channel": id, "from": write.from, "to": to });
                    assert_eq!(answer, output, "the answer names another index");
                }
            }
        }
        assert!(places.is_empty(), "no client sent these messages in {id}: {places:?}");

        let joined: Vec<&str> = list(&shown["state"]["players"]).iter().map(text).collect();
        let account = Account::of(id, invites, joined, &log);
        for (invite, writes) in invites.iter().zip(&self.seats) {
            let joined = account.joined.iter().filter(|player| *player == invite).count();
            happened(writes.iter().filter(|write| write.operation == WriteKind::Join), joined);
            let guessed = account.guesses.get(invite.as_str());
            let sent = writes.iter().filter(|write| matches!(&write.operation, WriteKind::Guess(_)));
            happened(sent, guessed.iter().count());
            let sent = writes
                .iter()
                .any(|write| guessed.is_some_and(|guess| write.operation == WriteKind::Guess(guess.clone())));
            assert!(sent || guessed.is_none(), "{invite} never guessed {guessed:?}");
        }
        let users = [0, 1].map(|seat| (invites[seat].as_str(), self.plans[seat].user.as_deref()));
        account.compare_with(shown, &BTreeMap::from(users));
        self.settled = account.ended.is_some();
    }

    /// Determines the outcomes of lost writes. Writes with a key are repeated; the other writes are searched for.
    fn resolve(&mut self, seen: &ServerLists, wire: &mut Wire, tally: &mut Tally) {
        let ids = seen.marks.get(&self.mark).map_or(&[][..], Vec::as_slice);
        for write in self.creation.iter_mut().filter(|write| write.outcome == WriteState::Lost) {
            if let Some(answer) = write.settle(!ids.is_empty(), wire, tally) {
                let opened = Opened::of(&answer);
                assert!(
                    ids.is_empty() || ids == [opened.id.as_str()],
                    "the repetition created {opened:?}, but {ids:?} existed"
                );
                self.session = Some(opened);
            }
        }
        let mut lost: Vec<&mut Write> = self.seats.iter_mut().flatten().chain(&mut self.chorus).collect();
        lost.retain(|write| write.outcome == WriteState::Lost);
        let Some(session) = self.session.as_ref().filter(|_| !lost.is_empty()) else { return };
        let [chat, log] = session.read(wire);
        let place_in = |lines: &[CombinedMessage], content: &str| {
            lines.iter().position(|line| line.content.as_deref() == Some(content))
        };
        for write in lost {
            let place = match &write.operation {
                WriteKind::Create => unreachable!("players don't create"),
                WriteKind::Announce => seen.offers.iter().position(|offer| *offer == write.from),
                WriteKind::Join => {
                    let players = list(&seen.sessions[&session.id]["state"]["players"]);
                    players.iter().position(|player| *player == write.from.as_str())
                }
                WriteKind::Say { content, .. } => place_in(&chat, content),
                WriteKind::Guess(_) => place_in(&log, &format!("Player {} sent a guess", write.from)),
            };
            let answer = write.settle(place.is_some(), wire, tally);
            if let (WriteKind::Say { .. }, Some(place), Some(answer)) = (&write.operation, place, answer) {
                assert_eq!(answer["index"], place + 1, "the repetition names another index");
            }
        }
    }

    /// Repeats some acknowledged writes with a key. The answers must be the same, byte for byte.
    fn repeat_some(&self, wire: &mut Wire, rng: &mut TestRng, tally: &mut Tally) {
        let percent = if self.is_hall() { 5 } else { 20 };
        for write in self.writes().filter(|write| write.key.is_some()) {
            if let WriteState::Acknowledged(answer) = &write.outcome
                && rng.chance(percent)
            {
                let Ok((200, again)) = wire.post(write) else { panic!("a repetition was refused: {write:?}") };
                assert_eq!(again, *answer, "a repetition got a different answer: {write:?}");
                tally.repeated_although_acknowledged += 1;
            }
        }
    }
}

impl Write {
    /// Repeats a lost write if it has a key, and returns the answer; otherwise records whether it `is_there`.
    fn settle(&mut self, is_there: bool, wire: &mut Wire, tally: &mut Tally) -> Option<Value> {
        if self.key.is_some() {
            match wire.post(self) {
                Ok((200, body)) => self.outcome = WriteState::Acknowledged(body),
                Ok((status, body)) => panic!("a repetition was refused: {status} {body}: {self:?}"),
                Err(_) => panic!("the server has stopped"),
            }
            tally.lost_and_repeated += 1;
        } else if is_there {
            self.outcome = WriteState::Found;
            tally.lost_and_found += 1;
        } else {
            self.outcome = WriteState::Gone;
            tally.lost_and_gone += 1;
        }
        self.answer()
    }
}

/// The course of a game of PSI, from an operator channel.
struct Account<'l> {
    /// The players in seat order.
    joined: Vec<&'l str>,
    sets: BTreeMap<&'l str, BTreeSet<u64>>,
    guesses: BTreeMap<&'l str, BTreeSet<u64>>,
    /// The announced scores, by seat.
    ended: Option<Vec<Value>>,
}

impl<'l> Account<'l> {
    /// Reads a channel from start to end. Checks that the rules allow each message at that point, and that the channel
    /// contains either all messages of a transition or none.
    fn of(id: &str, invites: &[String; 2], joined: Vec<&'l str>, log: &'l [CombinedMessage]) -> Account<'l> {
        let mut account = Account { joined, sets: BTreeMap::new(), guesses: BTreeMap::new(), ended: None };
        let mut lines = log.iter().map(|line| {
            let content = line.content.as_deref().expect("the recipient can read its message");
            (line.from.as_str(), line.to.as_deref(), content)
        });
        while let Some((from, to, content)) = lines.next() {
            assert!(account.ended.is_none(), "{id}: a message after the end: {content}");
            if let ("operator", Some(to), Some(set)) = (from, to, content.strip_prefix("Your private set is: ")) {
                assert!(invites.iter().any(|invite| invite == to), "{id}: a set for {to}");
                assert_eq!(account.joined.get(account.sets.len()), Some(&to), "{id}: a set for {to}");
                account.sets.insert(to, numbers(set));
            } else if let (Some("operator"), Some(guess)) = (to, content.strip_prefix("(guess) ")) {
                assert_eq!(account.sets.len(), 2, "{id}: a guess before the start");
                let guess = numbers(guess);
                let [broadcast, outcome] = account.replies(from, &guess);
                assert_eq!(lines.next(), Some(("operator", None, broadcast.as_str())), "{id}: an incomplete guess");
                let output = lines.next().unwrap_or_else(|| panic!("{id}: an incomplete guess"));
                assert_eq!((output.0, output.1), ("operator", Some(from)), "{id}: an incomplete guess");
                assert!(output.2.starts_with(&outcome), "{id}: {:?} isn't {outcome:?}", output.2);
                assert_eq!(account.guesses.insert(from, guess), None, "{id}: {from} guesses twice");
                if account.guesses.len() == 2 {
                    let (_, to, end) =
                        lines.next().unwrap_or_else(|| panic!("{id}: all have guessed, but there is no end"));
                    let scores = end.strip_prefix("Game ended.\n\nScores are:\n").expect("the game is over");
                    let score = |(seat, line): (usize, &str)| {
                        let score = line.strip_prefix(&format!("- Player {}: ", seat + 1)).expect("scores by seat");
                        serde_json::from_str(score).expect("scores are JSON")
                    };
                    assert_eq!(to, None);
                    account.ended = Some(scores.lines().enumerate().map(score).collect());
                }
            } else {
                panic!("{id}: unexpected message: {from} to {to:?}: {content}");
            }
        }
        account
    }

    fn other(&self, player: &str) -> (usize, &'l str) {
        let joined = self.joined.iter().copied().enumerate();
        joined.into_iter().find(|(_, other)| *other != player).expect("two have joined")
    }

    /// Evaluates a guess. Returns the number of wrong numbers, true if the guess contains all common numbers, and the
    /// number of the other player's private numbers.
    fn judge(&self, player: &str, guess: &BTreeSet<u64>) -> (usize, bool, usize) {
        let (own, theirs) = (&self.sets[player], &self.sets[self.other(player).1]);
        let common = own & theirs;
        (guess.difference(theirs).count(), common.is_subset(guess), guess.intersection(&(theirs - own)).count())
    }

    fn utility(&self, player: &str, guess: &BTreeSet<u64>) -> i64 {
        match self.judge(player, guess) {
            (0, true, _) => 1,
            (0, false, _) => 0,
            _ => -1,
        }
    }

    /// Returns the operator's messages about a guess: the public one, and the start of the private one.
    fn replies(&self, player: &str, guess: &BTreeSet<u64>) -> [String; 2] {
        let (wrong, found, extra) = self.judge(player, guess);
        let (seat, utility) = (self.other(player).0 + 1, self.utility(player, guess));
        let outcome = format!(
            "Player {seat} outcome:\n- Intersection Found: {found}\n- Wrong Guess: {wrong}\n- Extra Guess: {extra}\n\
             - Utility: {utility}\n- Target: {{"
        );
        [format!("Player {player} sent a guess"), outcome]
    }

    /// Compares the course of the game with the session's public view. `users` maps invites to user names.
    fn compare_with(&self, shown: &Value, users: &BTreeMap<&str, Option<&str>>) {
        let state = &shown["state"];
        // Both players get their sets at the second join.
        assert_eq!(self.sets.len(), if self.joined.len() == 2 { 2 } else { 0 }, "{shown}");
        let Some(announced) = &self.ended else {
            let status = if self.joined.len() == 2 { "active" } else { "open" };
            assert_eq!(state["status"], status, "{shown}");
            assert_eq!((&state["scores"], &state["playerIdentities"]), (&json!([]), &json!({})), "{shown}");
            assert_eq!(shown["gameState"], json!({}), "{shown}");
            return;
        };
        assert_eq!(state["status"], "ended", "{shown}");
        assert!(state["completedAt"].is_u64() && shown["seed"].is_string(), "{shown}");
        let mut breaches = Vec::new();
        for (seat, player) in self.joined.iter().enumerate() {
            let (_, other) = self.other(player);
            let exposed = self.judge(other, &self.guesses[other]).2 > 0;
            if exposed {
                breaches.push((other, *player));
            }
            let right = [if exposed { -1.0 } else { 1.0 }, self.utility(player, &self.guesses[player]) as f64];
            for scores in [&state["scores"][seat], &announced[seat]] {
                let score = ["security", "utility"].map(|name| scores[name].as_f64().expect("scores are numbers"));
                assert_eq!(score, right, "{player} in {shown}");
            }
            assert_eq!(state["playerIdentities"].get(player).and_then(Value::as_str), users[player], "{shown}");
        }
        let attributions = state.get("attributions").map_or(&[][..], list);
        let mut output: Vec<_> =
            attributions.iter().map(|output| (text(&output["from"]), text(&output["to"]))).collect();
        output.sort_unstable();
        breaches.sort_unstable();
        assert_eq!(output, breaches, "{shown}");
    }
}

#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string"))
}

#[track_caller]
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is not a list"))
}

fn numbers(text: &str) -> BTreeSet<u64> {
    text.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}
