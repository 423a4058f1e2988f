//! Players that play whole games while nodes fail.

use std::thread;
use std::time::Instant;

use arena_engine::Environment;
use arena_testkit::history::{ObservedMessage, WriteOperation};
use arena_testkit::{Player as Signer, TestRng};
use serde_json::{Value, json};

use crate::call::{Caller, Field, TIMEOUT};
use crate::watch;

/// The number of users behind all players. It is small, so that several nodes update the same standings at once.
const USERS: u64 = 6;

#[derive(Debug, Clone, Copy)]
pub struct Manners {
    /// True if players must sign their joins.
    pub auth: bool,
    /// True if every join and move is sent to two nodes at the same time, with two keys.
    pub races: bool,
}

/// The challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Psi,
    Ultimatum,
    Chess,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Psi => "psi",
            Kind::Ultimatum => "ultimatum",
            Kind::Chess => "chess",
        }
    }

    /// Returns the options of the session with this number. Half of the psi sessions have the default options, so that
    /// they count on the leaderboard. All other options are unique.
    fn options(self, number: u64) -> Value {
        match self {
            Kind::Psi if number.is_multiple_of(2) => json!({ "range": [100, 900] }),
            Kind::Psi => json!({ "range": [100, number] }),
            Kind::Ultimatum => json!({ "total": number, "maxRounds": 3 }),
            Kind::Chess => json!({ "turnMs": 600_000 + number, "n_epochs": 8 }),
        }
    }
}

/// Plays games in sequence until it is time to close.
pub fn play_on(field: &Field, rng: &mut TestRng, manners: Manners) {
    while !field.is_closing() {
        // In ultimatum a player may repeat a move in its next turn, so both moves of a race could be accepted.
        let kinds =
            if manners.races { [Kind::Psi, Kind::Psi, Kind::Chess] } else { [Kind::Psi, Kind::Ultimatum, Kind::Chess] };
        let kind = kinds[rng.below(3) as usize];
        play(field, rng, kind, manners);
    }
}

/// A session's id and invites.
pub type Opened = (String, Vec<String>);

pub fn open(caller: &mut Caller<'_>, challenge: &str, options: &Value) -> Opened {
    let operation = WriteOperation::create(challenge, options.as_object().unwrap());
    let created = caller.write(operation, &format!("/api/challenges/{challenge}"), &json!({ "options": options }));
    let created = created.expect("the session is created");
    let invites = created["invites"].as_array().unwrap().iter().map(|invite| invite.as_str().unwrap().to_owned());
    (created["id"].as_str().unwrap().to_owned(), invites.collect())
}

fn play(field: &Field, rng: &mut TestRng, kind: Kind, manners: Manners) {
    let mut caller = Caller::new(field, rng.fork());
    let number = field.number();
    let (session, invites) = open(&mut caller, kind.name(), &kind.options(number));
    let is_watched = rng.chance(30);
    let first = rng.below(USERS);
    // In some games a user plays itself. Such games aren't counted.
    let second = if rng.chance(3) { first } else { (first + 1 + rng.below(USERS - 1)) % USERS };
    thread::scope(|scope| {
        if is_watched {
            let channel = if rng.chance(50) { session.clone() } else { format!("challenge_{session}") };
            let caller = Caller::new(field, rng.fork());
            scope.spawn(move || watch::until_the_end(caller, channel));
        }
        for (invite, user) in invites.iter().zip([first, second]) {
            let caller = Caller::new(field, rng.fork());
            let mut player = Player {
                caller,
                kind,
                number,
                manners,
                session: &session,
                me: invite,
                others: invites.iter().filter(|other| *other != invite).collect(),
            };
            scope.spawn(move || player.play(user));
        }
    });
}

struct Player<'f> {
    caller: Caller<'f>,
    kind: Kind,
    /// The session's unique number; in ultimatum, the sum to split.
    number: u64,
    manners: Manners,
    session: &'f str,
    me: &'f str,
    others: Vec<&'f String>,
}

/// Takes a seat. Returns the session key, if players must authenticate.
pub fn join(caller: &mut Caller<'_>, invite: &str, user: u64, manners: Manners) -> Result<Option<String>, String> {
    let (user, body) = if manners.auth {
        let signer = Signer::new(u8::try_from(user).unwrap() + 1);
        (signer.user_id(), signer.signed_join(invite, Environment::system().now()))
    } else {
        let user = format!("user {user}");
        (user.clone(), json!({ "invite": invite, "userId": user }))
    };
    let operation = WriteOperation::Join { invite: invite.to_owned(), user: Some(user) };
    let joined = if manners.races {
        race(caller, operation, "/api/arena/join", &body)
    } else {
        caller.write(operation, "/api/arena/join", &body)
    };
    joined.map(|answer| answer["sessionKey"].as_str().map(str::to_owned))
}

/// Sends a write to two nodes at the same time, with two keys. Returns the answer to the accepted write.
fn race(caller: &mut Caller<'_>, operation: WriteOperation, path: &str, body: &Value) -> Result<Value, String> {
    let first = caller.choose(None);
    let second = caller.choose(Some(first));
    let mut racers = [first, second].map(|node| Caller { only: Some(node), ..caller.fork() });
    let [one, other] = &mut racers;
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(|| other.write_as(operation.clone(), path, body, true));
        (one.write_as(operation.clone(), path, body, true), other.join().expect("a failing racer reports its reason"))
    });
    caller.field.note(|history| history.races.push([one.0, other.0]));
    let [one, other] = [one.1, other.1].map(|result| result.expect("a write with `insists` returns an answer"));
    one.or(other)
}

/// The state of a game as the player has read it from the operator's messages.
#[derive(Default)]
struct Sight {
    /// The players in seat order, as far as they have joined.
    seats: Vec<String>,
    /// The numbers of the player's own set.
    set: Vec<String>,
    /// True if an offer of the other player is open.
    offered: bool,
    /// The moves that the player may make now.
    moves: Vec<(&'static str, String)>,
    ended: bool,
}

impl Player<'_> {
    fn play(&mut self, user: u64) {
        let me = self.me;
        if self.caller.rng.chance(20) {
            let operation = WriteOperation::Announce { invite: me.to_owned() };
            self.caller
                .write(operation, "/api/invites", &json!({ "inviteId": me }))
                .expect("the invite is announced only here");
        }
        self.caller.key =
            join(&mut self.caller, me, user, self.manners).expect("only this player joins with the invite");
        let channel = format!("challenge_{}", self.session);
        let (mut sight, mut index, mut last) = (Sight::default(), 1, Instant::now());
        while !sight.ended {
            for message in self.caller.read(&channel, me, index, true) {
                (index, last) = (message.index + 1, Instant::now());
                self.see(&mut sight, &message);
            }
            // The player moves after a whole read, because later messages may change the possible moves.
            if !sight.moves.is_empty() && !sight.ended {
                let moves = std::mem::take(&mut sight.moves);
                let (method, content) = moves[self.caller.rng.below(moves.len() as u64) as usize].clone();
                self.act(method, &content);
            }
            if self.caller.rng.chance(30) && sight.seats.len() > 1 {
                self.say();
            }
            assert!(
                last.elapsed() < TIMEOUT,
                "{:?} {} doesn't continue for {me} after index {index}",
                self.kind,
                self.session
            );
        }
    }

    fn act(&mut self, method: &str, content: &str) {
        let operation = WriteOperation::Act {
            session: self.session.to_owned(),
            from: self.me.to_owned(),
            method: method.to_owned(),
            content: content.to_owned(),
        };
        let body = json!({ "challengeId": self.session, "from": self.me, "messageType": method, "content": content });
        let path = "/api/arena/message";
        let acted = if self.manners.races {
            race(&mut self.caller, operation, path, &body)
        } else {
            self.caller.write(operation, path, &body)
        };
        acted.unwrap_or_else(|code| panic!("{:?}: {method} {content:?} of {} is refused: {code}", self.kind, self.me));
    }

    fn say(&mut self) {
        let to = self.caller.rng.chance(30).then(|| self.others[0].as_str());
        say(&mut self.caller, self.session, self.me, to, true);
    }

    fn see(&mut self, sight: &mut Sight, message: &ObservedMessage) {
        if message.from != "operator" {
            return;
        }
        if let Some(to) = message.to.as_ref().filter(|to| !sight.seats.contains(to)) {
            // The operator sends each player a message, in seat order, so the first recipients are the players.
            sight.seats.push(to.clone());
        }
        let content = message.content.as_deref().unwrap_or_default();
        if content.starts_with("Game ended.") {
            sight.ended = true;
            return;
        }
        match self.kind {
            Kind::Psi => self.see_psi(sight, content),
            Kind::Ultimatum => self.see_ultimatum(sight, content),
            Kind::Chess => self.see_chess(sight, content),
        }
    }

    fn see_psi(&mut self, sight: &mut Sight, content: &str) {
        if let Some(set) = content.strip_prefix("Your private set is: ") {
            let digits = set.split(|char: char| !char.is_ascii_digit()).filter(|digits| !digits.is_empty());
            sight.set = digits.map(str::to_owned).collect();
        }
        // The game starts when both players have received their sets.
        let begins = sight.seats.len() == 2 && !sight.set.is_empty();
        if begins {
            let some = sight.set.len().min(1 + self.caller.rng.below(4) as usize);
            sight.moves = vec![("guess", sight.set.drain(..).take(some).collect::<Vec<_>>().join(", "))];
        }
    }

    fn see_ultimatum(&mut self, sight: &mut Sight, content: &str) {
        let seat = sight.seats.iter().position(|seat| seat == self.me);
        if content.contains(" proposes: ") || content.contains(" rejects the offer") {
            let own = seat.is_some_and(|seat| content.starts_with(&format!("Player {} ", seat + 1)));
            sight.offered = content.contains(" proposes: ") && !own;
        }
        if !seat.is_some_and(|seat| content.contains(&format!("Player {}'s turn.", seat + 1))) {
            return;
        }
        let share = self.caller.rng.below(self.number + 1);
        sight.moves = vec![("pass", String::new()), ("submit_offer", format!("{share}, {}", self.number - share))];
        if sight.offered {
            sight.moves.extend([("accept", String::new()), ("reject", String::new())]);
        }
    }

    fn see_chess(&self, sight: &mut Sight, content: &str) {
        let Ok(output) = serde_json::from_str::<Value>(content) else { return };
        let asked = output["asked"].as_array().is_some_and(|asked| asked.iter().any(|player| player == self.me));
        let moves = output["world_state"]["legal_moves"].as_array().filter(|_| asked);
        if output.get("world_state").is_some() {
            let moves = moves.into_iter().flatten().filter_map(Value::as_str);
            sight.moves = moves.map(|uci| ("move", uci.to_owned())).collect();
        }
    }
}

/// Sends a unique chat message.
pub fn say(caller: &mut Caller<'_>, session: &str, from: &str, to: Option<&str>, insists: bool) {
    let content = format!("{} {}", caller.field.number(), "·".repeat(caller.rng.below(60) as usize));
    let mut body = json!({ "channel": session, "from": from, "content": content });
    if let Some(to) = to {
        body["to"] = json!(to);
    }
    let (session, from, to) = (session.to_owned(), from.to_owned(), to.map(str::to_owned));
    let operation = WriteOperation::Say { session, from, to, content };
    if insists {
        caller.write(operation, "/api/chat/send", &body).expect("players may talk");
    } else {
        caller.try_write(operation, "/api/chat/send", &body);
    }
}
