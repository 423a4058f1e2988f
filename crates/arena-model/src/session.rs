//! Sessions and their transitions: open → active → ended.
//!
//! A transition is a plain function from the session as it was to the session as it will be and the messages that this
//! causes. Loading, indexing, committing and publishing are the engine's; nothing here has happened until it committed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use utoipa::ToSchema;

use crate::operator::Post;
use crate::{
    Attribution, BoardTerms, ChallengeType, Channel, Draft, GameCategory, InviteCode, Operator, Party, Rejection,
    RestoreError, Score, ScriptVersion, Seat, SeatUsage, Seed, SessionId, Table, Timestamp, UsageReport, UserId,
};

/// What never changes about a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionFacts {
    /// Its id, the `challengeId` of the wire.
    pub id: SessionId,
    /// Its challenge type.
    pub challenge: String,
    /// Which version of the challenge's script it is played by, if that is one: the one that was there when it was created.
    pub script: Option<ScriptVersion>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Where its randomness comes from. Secret until the end. Sessions that were imported after their end may have none:
    /// not every arena keeps seeds.
    pub seed: Option<Seed>,
    /// The options that it is played with.
    pub options: Value,
    /// The terms on which it counts; none if it counts on no board, since its options aren't the arena's own.
    pub rated: Option<BoardTerms>,
    /// One code per seat. Secret until their players have joined.
    pub invites: Vec<InviteCode>,
}

impl SessionFacts {
    /// The seed of a session that is played here.
    ///
    /// # Panics
    /// If there is none: only a session that was imported after its end may lack it, and nothing is dealt in such a one.
    pub fn dealt_from(&self) -> &Seed {
        self.seed.as_ref().expect(SEEDED)
    }
}

/// A player at a seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupant {
    /// The code that the player joined with: its name for the others.
    pub invite: InviteCode,
    /// Who it is. Secret until the end.
    pub user: Option<UserId>,
}

/// How a session came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By its rules.
    Completed,
    /// Nobody did anything for too long, or acted while the rules wrote too much. Doesn't count.
    Abandoned,
}

/// Where a session is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for players.
    Open,
    /// All seats are taken, the game is on.
    Active,
    /// Over.
    Ended {
        /// When.
        at: Timestamp,
        /// How.
        ending: Ending,
        /// What the game is good for.
        category: GameCategory,
    },
}

/// A [`Phase`] without its data: the `status` of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum Status {
    /// Waiting for players.
    Open,
    /// All seats are taken, the game is on.
    Active,
    /// Over.
    Ended,
}

impl Status {
    /// All of them, in the order of a session's life.
    pub const ALL: [Status; 3] = [Status::Open, Status::Active, Status::Ended];

    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Active => "active",
            Status::Ended => "ended",
        }
    }

    /// Reads the word of the wire.
    pub fn from_wire(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// One instance of a challenge type, as stored. It can't be serialised; [`crate::view`] makes what a viewer may see.
///
/// ```compile_fail
/// fn leaves_the_process<T: serde::Serialize>() {}
/// leaves_the_process::<arena_model::Session>();
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// What never changes.
    pub facts: Arc<SessionFacts>,
    /// Counts the transitions that changed the session; a commit names the version that it was decided on.
    pub version: u64,
    /// Where it is in its life.
    pub phase: Phase,
    /// Who has joined, in seat order.
    pub seats: Vec<Occupant>,
    /// Invites that were offered on the public channel and so can't be looked up or offered again.
    pub announced: Vec<InviteCode>,
    /// A score per seat, taken or not.
    pub scores: Vec<Score>,
    /// What players did to each other.
    pub attributions: Vec<Attribution>,
    /// What players say that their play has cost, by seat, as far as anybody has said so. Secret until the end.
    pub usage: Arc<Vec<SeatUsage>>,
    /// How much its rules have written since a player last acted, in bytes: see [`Patience::unattended_bytes`].
    pub unattended: u64,
    /// When the operator wants to be woken.
    pub deadline: Option<Timestamp>,
    /// When somebody has to look at the session although nobody calls: never later than it is due (see [`wake`]).
    pub wake_at: Option<Timestamp>,
    /// What the operator remembers, as JSON. Secret until the end.
    pub state: String,
}

impl Session {
    /// The phase as the wire names it.
    pub fn status(&self) -> Status {
        match self.phase {
            Phase::Open => Status::Open,
            Phase::Active => Status::Active,
            Phase::Ended { .. } => Status::Ended,
        }
    }

    /// The seat of the player with this public name.
    pub fn seat_of(&self, player: InviteCode) -> Option<Seat> {
        self.seats.iter().position(|occupant| occupant.invite == player).map(Seat)
    }
}

/// How long sessions are kept when nobody does anything; `None` is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// An open session is removed at this age, in milliseconds.
    pub open_ms: Option<i64>,
    /// An active session without activity for this long ends as abandoned, in milliseconds.
    pub active_ms: Option<i64>,
    /// So does one whose rules have written more than this by themselves since a player last acted: what they say, and
    /// [`DEADLINE_BYTES`] for each deadline. Chat is no action. Rules may be anybody's, and some never come to an end.
    pub unattended_bytes: Option<u64>,
}

impl Patience {
    /// For games outside of an arena: whoever plays them sees to it that they end.
    pub const ENDLESS: Patience = Patience { open_ms: None, active_ms: None, unattended_bytes: None };
}

/// What the arena in which a session is played has to say about it.
#[derive(Debug, Clone, Copy)]
pub struct House<'h> {
    /// How long sessions are kept when nothing happens.
    pub patience: Patience,
    /// Whether one user may hold two seats of a session. The game then counts for nobody.
    pub self_play: bool,
    /// The users that are benchmark models.
    pub benchmarks: &'h BTreeSet<UserId>,
}

impl House<'static> {
    /// Where everything is allowed and nothing ends unasked: for games outside of an arena.
    pub const UNBOUNDED: House<'static> =
        House { patience: Patience::ENDLESS, self_play: true, benchmarks: &BTreeSet::new() };
}

/// What a deadline counts for although nothing is said, in bytes.
pub const DEADLINE_BYTES: u64 = 1024;

/// What one join, message or deadline makes of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The session afterwards.
    pub after: After,
    /// What is said, in order.
    pub drafts: Vec<Draft>,
}

/// A session after a transition.
#[derive(Debug, Clone, PartialEq)]
pub enum After {
    /// As it was.
    Stays,
    /// Changed, with its next version.
    Becomes(Box<Session>),
    /// Gone, as if it had never been.
    Removed,
}

/// Why a player can't take a seat.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The code isn't one of the session's.
    #[error("the invite isn't one of this session")]
    NotInvited,
    /// Somebody has joined with it.
    #[error("This invite has already been used.")]
    AlreadyUsed,
    /// The user has a seat, and this arena lets nobody have two.
    #[error("This user has already joined, and nobody may hold two seats of a session here.")]
    SelfPlay,
    /// The rules failed.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The stored state can't be read.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

/// Why an action isn't taken.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The sender has no seat.
    #[error("Player not found.")]
    NotAPlayer,
    /// The rules refuse it.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The stored state can't be read.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

/// Why something isn't said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChatError {
    /// The sender has no seat.
    #[error("only players of the session may chat here")]
    NotAPlayer,
    /// The recipient has no seat.
    #[error("to must be a player of the session")]
    UnknownRecipient,
}

/// Why a session that isn't over has a seed.
const SEEDED: &str = "only a session that was imported after its end may lack a seed";

/// Why a report of what a player's play has cost isn't taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UsageRefusal {
    /// The sender has no seat.
    #[error("Player not found.")]
    NotAPlayer,
    /// The session is over, and what is told of it stays as it is.
    #[error("the session has ended; what it has cost is reported before")]
    Ended,
}

/// A new session: seats empty, cards dealt.
///
/// # Errors
/// A [`Rejection`] if the rules fail.
pub fn open(facts: SessionFacts, challenge: &dyn ChallengeType, patience: Patience) -> Result<Session, Rejection> {
    let state = challenge.create(&facts)?.serialize();
    let size = facts.invites.len();
    Ok(Session {
        version: 1,
        phase: Phase::Open,
        seats: Vec::with_capacity(size),
        announced: Vec::new(),
        scores: vec![Score::default(); size],
        attributions: Vec::new(),
        usage: Arc::default(),
        unattended: 0,
        deadline: None,
        wake_at: patience.open_ms.map(|ms| facts.created_at.plus_ms(ms)),
        state,
        facts: Arc::new(facts),
    })
}

/// A player takes the next seat. When it was the last one, the game starts.
///
/// # Errors
/// [`JoinError`] if the invite is foreign or used, or the rules fail; the session is then as it was.
pub fn join(
    session: &Session,
    challenge: &dyn ChallengeType,
    house: &House<'_>,
    invite: InviteCode,
    user: Option<UserId>,
    now: Timestamp,
) -> Result<Transition, JoinError> {
    if session.seat_of(invite).is_some() {
        return Err(JoinError::AlreadyUsed);
    }
    if !session.facts.invites.contains(&invite) || session.phase != Phase::Open {
        return Err(JoinError::NotInvited);
    }
    let seated = |user: &UserId| session.seats.iter().any(|occupant| occupant.user.as_ref() == Some(user));
    if !house.self_play && user.as_ref().is_some_and(seated) {
        return Err(JoinError::SelfPlay);
    }
    let mut after = session.clone();
    let seat = Seat(after.seats.len());
    after.seats.push(Occupant { invite, user });
    let full = after.seats.len() == after.facts.invites.len();
    if full {
        after.phase = Phase::Active;
    }
    let operator = challenge.restore(&session.facts, &session.state)?;
    let transition = play(after, operator, house, now, Vec::new(), |operator, table| {
        operator.join(table, seat)?;
        if full { operator.start(table) } else { Ok(()) }
    })?;
    Ok(transition)
}

/// A player acts. In a session that isn't running the player is told so, privately, and that is all that happens.
///
/// # Errors
/// [`ActError`] if the sender has no seat or the rules refuse the action; the session is then as it was.
pub fn act(
    session: &Session,
    challenge: &dyn ChallengeType,
    house: &House<'_>,
    from: InviteCode,
    method: Option<&str>,
    content: &str,
    now: Timestamp,
) -> Result<Transition, ActError> {
    let seat = session.seat_of(from).ok_or(ActError::NotAPlayer)?;
    let channel = Channel::Operator(session.facts.id);
    if session.phase != Phase::Active {
        let draft = Draft {
            channel,
            from: Party::Operator,
            to: Some(Party::Player(from)),
            content: "ERR_GAME_NOT_RUNNING: Game not running.".to_owned(),
            method: None,
        };
        return Ok(Transition { after: After::Stays, drafts: vec![draft] });
    }
    let known = |name: &&str| challenge.metadata().methods.iter().any(|method| method.name == *name);
    let method = method.filter(known).ok_or_else(|| Rejection::unknown_method(method.unwrap_or("none")))?;
    let action = Draft {
        channel,
        from: Party::Player(from),
        to: Some(Party::Operator),
        content: format!("({method}) {content}"),
        method: Some(method.to_owned()),
    };
    let operator = challenge.restore(&session.facts, &session.state)?;
    let attended = Session { unattended: 0, ..session.clone() };
    let transition = play(attended, operator, house, now, vec![action], |operator, table| {
        operator.message(table, seat, method, content)
    })?;
    Ok(transition)
}

/// Somebody says something to the other players. `spectators` lets people without a seat speak.
///
/// # Errors
/// [`ChatError`] if the sender or the recipient has no seat.
pub fn chat(
    session: &Session,
    spectators: bool,
    from: Party,
    to: Option<Party>,
    content: &str,
) -> Result<Transition, ChatError> {
    let seated = |party: &Party| matches!(party, Party::Player(invite) if session.seat_of(*invite).is_some());
    // An invite that nobody has joined with names no one, and the operator has a channel of its own.
    let may_speak = seated(&from) || (spectators && matches!(from, Party::Other(_)));
    if !may_speak {
        return Err(ChatError::NotAPlayer);
    }
    if to.as_ref().is_some_and(|to| !seated(to)) {
        return Err(ChatError::UnknownRecipient);
    }
    let channel = Channel::Chat(session.facts.id);
    let draft = Draft { channel, from, to, content: content.to_owned(), method: None };
    Ok(Transition { after: After::Stays, drafts: vec![draft] })
}

/// A player says what its play has cost. Nobody else learns of it before the end, and no deadline moves.
///
/// # Errors
/// [`UsageRefusal`] if the sender has no seat, or the session has ended.
pub fn report_usage(session: &Session, from: InviteCode, report: UsageReport) -> Result<Transition, UsageRefusal> {
    let Seat(seat) = session.seat_of(from).ok_or(UsageRefusal::NotAPlayer)?;
    if session.status() == Status::Ended {
        return Err(UsageRefusal::Ended);
    }
    let mut after = session.clone();
    after.version += 1;
    let usage = Arc::make_mut(&mut after.usage);
    if usage.len() <= seat {
        usage.resize_with(seat + 1, SeatUsage::default);
    }
    usage[seat].add(report);
    Ok(Transition { after: After::Becomes(Box::new(after)), drafts: Vec::new() })
}

/// Offers an invite on the public channel, so that somebody may take it.
///
/// # Errors
/// [`JoinError`] if it is foreign, taken, or offered already.
pub fn announce(session: &Session, invite: InviteCode) -> Result<Transition, JoinError> {
    if !session.facts.invites.contains(&invite) {
        return Err(JoinError::NotInvited);
    }
    // Of a session that has ended, no seat is to be had any more, taken or not.
    if session.phase != Phase::Open || session.seat_of(invite).is_some() || session.announced.contains(&invite) {
        return Err(JoinError::AlreadyUsed);
    }
    let mut after = session.clone();
    after.version += 1;
    after.announced.push(invite);
    let draft =
        Draft { channel: Channel::Invites, from: Party::Operator, to: None, content: invite.to_string(), method: None };
    Ok(Transition { after: After::Becomes(Box::new(after)), drafts: vec![draft] })
}

/// Looks at a session whose `wake_at` has come: a deadline passes, or it has been left alone for too long, or there is
/// only a later time to look to be noted. `last_activity` is when something was last said in it.
///
/// # Errors
/// If the stored state can't be read.
pub fn wake(
    session: &Session,
    challenge: &dyn ChallengeType,
    house: &House<'_>,
    last_activity: Timestamp,
    now: Timestamp,
) -> Result<Transition, RestoreError> {
    let patience = house.patience;
    let quietly = |after| Transition { after, drafts: Vec::new() };
    let look_again = |wake_at| {
        let after = Session { version: session.version + 1, wake_at, ..session.clone() };
        quietly(After::Becomes(Box::new(after)))
    };
    match session.phase {
        Phase::Ended { .. } => return Ok(quietly(After::Stays)),
        Phase::Open => {
            let due = patience.open_ms.map(|ms| session.facts.created_at.plus_ms(ms));
            let gone = due.is_some_and(|due| due <= now);
            return Ok(if gone { quietly(After::Removed) } else { look_again(due) });
        }
        Phase::Active => {}
    }
    if session.deadline.is_some_and(|deadline| deadline <= now) {
        let operator = challenge.restore(&session.facts, &session.state)?;
        let mut before = session.clone();
        before.deadline = None;
        // Rules that fail can't be asked again and again. From now on the session is one that nobody has set a deadline in.
        let forgotten = Session { version: before.version + 1, ..before.clone() };
        let transition = play(before, operator, house, now, Vec::new(), |operator, table| operator.deadline(table));
        return Ok(match transition {
            Ok(transition) => bound(transition, house, now),
            Err(_) => {
                let wake_at = patience.active_ms.map(|ms| now.plus_ms(ms));
                quietly(After::Becomes(Box::new(Session { wake_at, ..forgotten })))
            }
        });
    }
    // Rules that have set a deadline see to it themselves that the session doesn't stay for ever.
    let patience_ms = patience.active_ms.filter(|_| session.deadline.is_none());
    let idle = patience_ms.map(|ms| last_activity.plus_ms(ms));
    if let (Some(due), Some(ms)) = (idle, patience_ms)
        && due <= now
    {
        let mut after = Session { version: session.version + 1, ..session.clone() };
        let minutes = ms as f64 / 60_000.0;
        let draft = abandon(&mut after, house, now, &format!("nothing happened for {minutes} minutes"));
        return Ok(Transition { after: After::Becomes(Box::new(after)), drafts: vec![draft] });
    }
    Ok(look_again(session.deadline.or(idle)))
}

/// Counts what a deadline has made the rules write, and ends a game in which that is all that happens.
fn bound(mut transition: Transition, house: &House<'_>, now: Timestamp) -> Transition {
    let said: usize = transition.drafts.iter().map(|draft| draft.content.len()).sum();
    if let After::Becomes(session) = &mut transition.after
        && session.phase == Phase::Active
    {
        session.unattended = session.unattended.saturating_add(DEADLINE_BYTES + said as u64);
        if let Some(most) = house.patience.unattended_bytes.filter(|most| session.unattended > *most) {
            let why = format!("nobody acted while the rules wrote more than {most} bytes");
            transition.drafts.push(abandon(session, house, now, &why));
        }
    }
    transition
}

/// Ends a game that counts for nobody. The message that says why.
fn abandon(session: &mut Session, house: &House<'_>, now: Timestamp, why: &str) -> Draft {
    session.scores.fill(Score::default());
    session.attributions.clear();
    finish(session, Ending::Abandoned, house, now);
    let content = format!("Game ended.\n\nAbandoned: {why}. The game doesn't count.");
    Draft { channel: Channel::Operator(session.facts.id), from: Party::Operator, to: None, content, method: None }
}

/// Lets the operator decide at a table, and takes from the table what it left there. `drafts` come first.
fn play(
    mut session: Session,
    mut operator: Box<dyn Operator>,
    house: &House<'_>,
    now: Timestamp,
    mut drafts: Vec<Draft>,
    decide: impl FnOnce(&mut dyn Operator, &mut Table<'_>) -> Result<(), Rejection>,
) -> Result<Transition, Rejection> {
    let facts = Arc::clone(&session.facts);
    let players: Vec<InviteCode> = session.seats.iter().map(|occupant| occupant.invite).collect();
    let scores = std::mem::take(&mut session.scores);
    let attributions = std::mem::take(&mut session.attributions);
    let mut table =
        Table::new(facts.dealt_from(), &players, now, session.version, scores, attributions, session.deadline);
    decide(operator.as_mut(), &mut table)?;

    let Table { scores, attributions, deadline, outbox, ended, .. } = table;
    let post = |channel, to: Option<Seat>, content| {
        let to = to.map(|seat| Party::Player(players[seat.0]));
        Draft { channel, from: Party::Operator, to, content, method: None }
    };
    drafts.extend(outbox.into_iter().map(|Post { is_chat, to, content }| {
        let channel = if is_chat { Channel::Chat(facts.id) } else { Channel::Operator(facts.id) };
        post(channel, to, content)
    }));
    session.version += 1;
    session.scores = scores;
    session.attributions = attributions;
    session.deadline = deadline;
    session.state = operator.serialize();
    if ended {
        drafts.push(post(Channel::Operator(facts.id), None, final_scores(&session.scores)));
        finish(&mut session, Ending::Completed, house, now);
    } else if session.phase == Phase::Active {
        // A time that is still to come and not too late stays: looking early costs one read, moving it an index write.
        let due = session.deadline.or(house.patience.active_ms.map(|ms| now.plus_ms(ms)));
        let keep = session.wake_at.is_some_and(|at| at > now && due.is_some_and(|due| at <= due));
        if !keep {
            session.wake_at = due;
        }
    }
    Ok(Transition { after: After::Becomes(Box::new(session)), drafts })
}

fn finish(session: &mut Session, ending: Ending, house: &House<'_>, now: Timestamp) {
    let identified = session.seats.iter().filter(|occupant| occupant.user.is_some()).count();
    let is_benchmark = |occupant: &Occupant| occupant.user.as_ref().is_some_and(|user| house.benchmarks.contains(user));
    let others = session.seats.iter().filter(|occupant| !is_benchmark(occupant)).count();
    let category = GameCategory::of(identified, others);
    session.phase = Phase::Ended { at: now, ending, category };
    session.deadline = None;
    session.wake_at = None;
}

fn final_scores(scores: &[Score]) -> String {
    let lines: Vec<String> = scores
        .iter()
        .enumerate()
        .map(|(seat, score)| {
            let score = serde_json::to_string(score).expect("two numbers are JSON");
            format!("- Player {}: {score}", Seat(seat).number())
        })
        .collect();
    format!("Game ended.\n\nScores are:\n{}", lines.join("\n"))
}
