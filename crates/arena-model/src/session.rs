//! Sessions and their transitions: open → active → ended.
//!
//! A transition is a pure function: it takes a session, and returns the session's next version and the messages that
//! the change produces. The engine loads the session, calls the transition, assigns indexes to the messages, commits
//! the result and publishes the messages. A transition takes effect when the engine commits it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::operator::Post;
use crate::{
    Attribution, BoardTerms, ChallengeType, Channel, ContentHash, Draft, GameCategory, InviteCode, Operator,
    OptionsError, Party, Rejection, RestoreError, Score, Script, ScriptVersion, Seat, SeatUsage, Seed, SessionId,
    Table, Timestamp, UsageReport, UserId,
};

/// The facts of a session that never change.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionFacts {
    /// The id: `challengeId` on the wire.
    pub id: SessionId,
    pub challenge: String,
    /// The version of the challenge's script at the session's creation, if it is a script.
    pub script: Option<ScriptVersion>,
    pub created_at: Timestamp,
    /// The source of the session's randomness, secret until the end. Imported sessions may have none, because not every
    /// arena keeps seeds.
    pub seed: Option<Seed>,
    pub options: Value,
    /// The rules version and prompt of the session's board. `None` if the session counts on no board, because its
    /// options aren't the arena's own.
    pub rated: Option<BoardTerms>,
    /// True if no list shows or counts the session. Its players' histories and totals leave it out too.
    pub is_unlisted: bool,
    /// One code per seat, secret until its player has joined.
    pub invites: Vec<InviteCode>,
}

impl SessionFacts {
    /// Returns the facts of an unrated session with the challenge's own options, for checks and tests. The session's id
    /// ends with the number `first`, and the invites end with the numbers after it.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn numbered(challenge: &dyn ChallengeType, seed: Seed, first: usize) -> Result<SessionFacts, OptionsError> {
        let id = |n: usize| format!("00000000-0000-7000-8000-{:012}", first + n);
        let options = challenge.resolve(&Map::new())?;
        let invites = (1..=challenge.seats(&options)).map(|n| format!("inv_{}", id(n)).parse().expect("an invite"));
        Ok(SessionFacts {
            script: challenge.script().map(Script::version),
            seed: Some(seed),
            invites: invites.collect(),
            options,
            ..SessionFacts::bare(id(0).parse().expect("a UUID"), challenge.id(), Timestamp(0))
        })
    }

    /// Returns the facts of an unrated session without seed, options and seats.
    pub fn bare(id: SessionId, challenge: &str, created_at: Timestamp) -> SessionFacts {
        SessionFacts {
            id,
            challenge: challenge.to_owned(),
            script: None,
            created_at,
            seed: None,
            options: Value::Object(Map::new()),
            rated: None,
            is_unlisted: false,
            invites: Vec::new(),
        }
    }

    /// Returns the seed of a session of this arena.
    ///
    /// # Panics
    /// If the session has no seed. Only an imported session may lack a seed. Imported sessions have ended, so their
    /// seeds aren't used.
    pub fn dealt_from(&self) -> &Seed {
        self.seed.as_ref().expect(NO_SEED)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupant {
    /// The invite of the player, which is its public name.
    pub invite: InviteCode,
    /// The user, secret until the end.
    pub user: Option<UserId>,
    /// The commitment to the user's id in the session's record, if the user was deleted after the end.
    pub deleted: Option<ContentHash>,
}

impl Occupant {
    /// Returns true if the player joined with a user id. The user may have been deleted since.
    pub fn is_identified(&self) -> bool {
        self.user.is_some() || self.deleted.is_some()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The rules ended the game.
    Completed,
    /// No player acted for too long, or the rules wrote too much without an action of a player. The game doesn't count.
    Abandoned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for players.
    Open,
    /// All seats are taken and the game runs.
    Active,
    Ended {
        at: Timestamp,
        ending: Ending,
        /// The category of the game, which follows from the players' identities.
        category: GameCategory,
    },
}

/// A [`Phase`] without its data: `status` on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum Status {
    /// Waiting for players.
    Open,
    /// All seats are taken and the game runs.
    Active,
    /// The game is over.
    Ended,
}

impl Status {
    /// All statuses, in the order of a session's life.
    pub const ALL: [Status; 3] = [Status::Open, Status::Active, Status::Ended];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Active => "active",
            Status::Ended => "ended",
        }
    }

    pub fn from_wire(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// One game of a challenge type, as stored. It can't be serialized; [`crate::view`] makes the form that a viewer may
/// see.
///
/// ```compile_fail
/// fn leaves_the_process<T: serde::Serialize>() {}
/// leaves_the_process::<arena_model::Session>();
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    pub facts: Arc<SessionFacts>,
    /// The number of transitions that changed the session. A commit names the version from which it was computed.
    pub version: u64,
    pub phase: Phase,
    /// The players in seat order.
    pub seats: Vec<Occupant>,
    /// The invites that were offered on the public channel. They can't be looked up or offered again.
    pub announced: Vec<InviteCode>,
    /// One score per seat, taken or not.
    pub scores: Vec<Score>,
    pub attributions: Vec<Attribution>,
    /// The costs that players reported, by seat; the list ends at the last seat with a report. Secret until the end.
    pub usage: Arc<Vec<SeatUsage>>,
    /// The bytes that the rules wrote since a player's last action: see [`InactivityLimits::unattended_bytes`].
    pub unattended: u64,
    pub deadline: Option<Timestamp>,
    /// The time of the next call of [`wake`]: at or before the operator's deadline or, without a deadline, the
    /// inactivity limit.
    pub wake_at: Option<Timestamp>,
    /// The operator's state as JSON, secret until the end.
    pub state: String,
}

impl Session {
    /// Returns an open session in which nothing has happened.
    pub fn blank(facts: SessionFacts, state: String) -> Session {
        Session {
            version: 1,
            phase: Phase::Open,
            seats: Vec::new(),
            announced: Vec::new(),
            scores: vec![Score::default(); facts.invites.len()],
            attributions: Vec::new(),
            usage: Arc::default(),
            unattended: 0,
            deadline: None,
            wake_at: None,
            state,
            facts: Arc::new(facts),
        }
    }

    pub fn status(&self) -> Status {
        match self.phase {
            Phase::Open => Status::Open,
            Phase::Active => Status::Active,
            Phase::Ended { .. } => Status::Ended,
        }
    }

    pub fn seat_of(&self, player: InviteCode) -> Option<Seat> {
        self.seats.iter().position(|occupant| occupant.invite == player).map(Seat)
    }
}

/// The time limits of inactive sessions; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InactivityLimits {
    /// The age at which an open session is removed, in milliseconds.
    pub open_ms: Option<i64>,
    /// The inactivity after which an active session ends as abandoned, in milliseconds.
    pub active_ms: Option<i64>,
    /// The number of bytes that the rules may write after a player's last action before the session ends as
    /// abandoned. Messages count with their length, and each deadline counts [`DEADLINE_BYTES`] more. A chat message
    /// isn't an action. The limit ends scripts that would run forever.
    pub unattended_bytes: Option<u64>,
}

impl InactivityLimits {
    /// No limits, for games outside of an arena: their runner ends them.
    pub const ENDLESS: InactivityLimits = InactivityLimits { open_ms: None, active_ms: None, unattended_bytes: None };
}

#[derive(Debug, Clone, Copy)]
pub struct SessionPolicy<'h> {
    pub inactivity: InactivityLimits,
    /// True if one user may hold two seats of a session. The game then counts for no user.
    pub self_play: bool,
    /// The users that are benchmark models.
    pub benchmarks: &'h BTreeSet<UserId>,
}

impl SessionPolicy<'static> {
    /// A policy without restrictions and limits, for games outside of an arena.
    pub const UNBOUNDED: SessionPolicy<'static> =
        SessionPolicy { inactivity: InactivityLimits::ENDLESS, self_play: true, benchmarks: &BTreeSet::new() };
}

/// The number of bytes that each deadline adds to [`Session::unattended`], besides its messages.
pub const DEADLINE_BYTES: u64 = 1024;

/// The result of one join, message or deadline.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    pub after: After,
    /// The messages, in order. The first message of a transition that isn't an action or chat is its input, see
    /// [`Channel::Inputs`].
    pub drafts: Vec<Draft>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum After {
    Unchanged,
    /// Changed, with its next version.
    Changed(Box<Session>),
    /// Removed from the store, with its invites.
    Removed,
}

/// The reason why a player can't join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("the invite doesn't belong to this session")]
    NotInvited,
    #[error("This invite has already been used.")]
    AlreadyUsed,
    #[error("This user has already joined, and this arena doesn't allow two seats of a session for one user.")]
    SelfPlay,
    /// The rules failed.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The sender has no seat.
    #[error("Player not found.")]
    NotAPlayer,
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChatError {
    /// The sender has no seat.
    #[error("only players of the session may chat here")]
    NotAPlayer,
    /// The recipient has no seat.
    #[error("to must be a player of the session")]
    UnknownRecipient,
}

const NO_SEED: &str = "only a session that was imported after its end may lack a seed";

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UsageRefusal {
    /// The sender has no seat.
    #[error("Player not found.")]
    NotAPlayer,
    /// The session has ended, so its published data can't change.
    #[error("the session has ended; usage must be reported before the end")]
    Ended,
}

/// Creates a session: it deals the game and leaves all seats empty.
///
/// # Errors
/// A [`Rejection`] if the rules fail.
pub fn open(
    facts: SessionFacts,
    challenge: &dyn ChallengeType,
    inactivity: InactivityLimits,
) -> Result<Session, Rejection> {
    let state = challenge.create(&facts)?.serialize();
    let wake_at = inactivity.open_ms.map(|ms| facts.created_at.plus_ms(ms));
    Ok(Session { wake_at, ..Session::blank(facts, state) })
}

/// Seats a player on the next seat. The last player's join starts the game.
///
/// # Errors
/// [`JoinError`] if the invite is unknown or used, or the rules fail; the session then stays unchanged.
pub fn join(
    session: &Session,
    challenge: &dyn ChallengeType,
    policy: &SessionPolicy<'_>,
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
    if !policy.self_play && user.as_ref().is_some_and(seated) {
        return Err(JoinError::SelfPlay);
    }
    let mut after = session.clone();
    let seat = Seat(after.seats.len());
    after.seats.push(Occupant { invite, user, deleted: None });
    let full = after.seats.len() == after.facts.invites.len();
    if full {
        after.phase = Phase::Active;
    }
    let operator = challenge.restore(&session.facts, &session.state)?;
    let input = input(session, "join", Party::Player(invite), String::new());
    let transition = play(after, operator, policy, now, vec![input], |operator, table| {
        operator.join(table, seat)?;
        if full { operator.start(table) } else { Ok(()) }
    })?;
    Ok(transition)
}

/// Handles a player's action. If the session isn't active, the only effect is a private message to the player.
///
/// # Errors
/// [`ActError`] if the sender has no seat or the rules refuse the action; the session then stays unchanged.
pub fn act(
    session: &Session,
    challenge: &dyn ChallengeType,
    policy: &SessionPolicy<'_>,
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
        return Ok(Transition { after: After::Unchanged, drafts: vec![draft] });
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
    let transition = play(attended, operator, policy, now, vec![action], |operator, table| {
        operator.message(table, seat, method, content)
    })?;
    Ok(transition)
}

/// Posts a chat message. `spectators` allows senders without a seat.
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
    // A sender is a joined player or a spectator: an unclaimed invite and the operator can't chat.
    let may_speak = seated(&from) || (spectators && matches!(from, Party::Other(_)));
    if !may_speak {
        return Err(ChatError::NotAPlayer);
    }
    if to.as_ref().is_some_and(|to| !seated(to)) {
        return Err(ChatError::UnknownRecipient);
    }
    let channel = Channel::Chat(session.facts.id);
    let draft = Draft { channel, from, to, content: content.to_owned(), method: None };
    Ok(Transition { after: After::Unchanged, drafts: vec![draft] })
}

/// Records a player's usage report, for the re-execution of records of earlier versions. The report stays secret until
/// the session's end, and moves no deadline.
///
/// # Errors
/// [`UsageRefusal`] if the sender has no seat, or the session has ended.
pub fn report_usage(session: &Session, from: InviteCode, report: UsageReport) -> Result<Transition, UsageRefusal> {
    let Seat(seat) = session.seat_of(from).ok_or(UsageRefusal::NotAPlayer)?;
    if session.status() == Status::Ended {
        return Err(UsageRefusal::Ended);
    }
    let content = serde_json::to_string(&report).expect("texts and numbers are JSON");
    let drafts = vec![input(session, "usage", Party::Player(from), content)];
    let mut after = session.clone();
    after.version += 1;
    let usage = Arc::make_mut(&mut after.usage);
    if usage.len() <= seat {
        usage.resize_with(seat + 1, SeatUsage::default);
    }
    usage[seat].add(report);
    Ok(Transition { after: After::Changed(Box::new(after)), drafts })
}

/// Offers an invite on the public channel.
///
/// # Errors
/// [`JoinError`] if the invite is unknown, taken or already offered.
pub fn announce(session: &Session, invite: InviteCode) -> Result<Transition, JoinError> {
    if !session.facts.invites.contains(&invite) {
        return Err(JoinError::NotInvited);
    }
    if session.phase != Phase::Open || session.seat_of(invite).is_some() || session.announced.contains(&invite) {
        return Err(JoinError::AlreadyUsed);
    }
    let mut after = session.clone();
    after.version += 1;
    after.announced.push(invite);
    let draft =
        Draft { channel: Channel::Invites, from: Party::Operator, to: None, content: invite.to_string(), method: None };
    let drafts = vec![input(session, "announce", Party::Player(invite), String::new()), draft];
    Ok(Transition { after: After::Changed(Box::new(after)), drafts })
}

/// Handles a session at its `wake_at`: a deadline passes, the session is abandoned, or a later `wake_at` is set.
/// `last_activity` is the time of its latest message.
///
/// # Errors
/// If the stored state is unreadable.
pub fn wake(
    session: &Session,
    challenge: &dyn ChallengeType,
    policy: &SessionPolicy<'_>,
    last_activity: Timestamp,
    now: Timestamp,
) -> Result<Transition, RestoreError> {
    let inactivity = policy.inactivity;
    let quietly = |after| Transition { after, drafts: Vec::new() };
    let of_time = |kind| vec![input(session, kind, Party::Operator, String::new())];
    let look_again = |wake_at| {
        let after = Session { version: session.version + 1, wake_at, ..session.clone() };
        Transition { after: After::Changed(Box::new(after)), drafts: of_time("wake") }
    };
    match session.phase {
        Phase::Ended { .. } => return Ok(quietly(After::Unchanged)),
        Phase::Open => {
            let due = inactivity.open_ms.map(|ms| session.facts.created_at.plus_ms(ms));
            let gone = due.is_some_and(|due| due <= now);
            return Ok(if gone { quietly(After::Removed) } else { look_again(due) });
        }
        Phase::Active => {}
    }
    if session.deadline.is_some_and(|deadline| deadline <= now) {
        let operator = challenge.restore(&session.facts, &session.state)?;
        let before = Session { deadline: None, ..session.clone() };
        let drafts = of_time("deadline");
        let transition = play(before, operator, policy, now, drafts, |operator, table| operator.deadline(table));
        return Ok(match transition {
            Ok(transition) => bound(transition, policy, now),
            Err(_) => fail_deadline(session, inactivity, now),
        });
    }
    // A session with a deadline isn't abandoned, because its rules can end it.
    let inactivity_ms = inactivity.active_ms.filter(|_| session.deadline.is_none());
    let idle = inactivity_ms.map(|ms| last_activity.plus_ms(ms));
    if let (Some(due), Some(ms)) = (idle, inactivity_ms)
        && due <= now
    {
        let mut after = Session { version: session.version + 1, ..session.clone() };
        let minutes = ms as f64 / 60_000.0;
        let mut drafts = of_time("abandon");
        drafts.push(abandon(&mut after, policy, now, &format!("nothing happened for {minutes} minutes")));
        return Ok(Transition { after: After::Changed(Box::new(after)), drafts });
    }
    Ok(look_again(session.deadline.or(idle)))
}

/// Handles a deadline at which the rules failed: the session continues without a deadline, so that they aren't called
/// again and again. The input has the kind `failed`, because a script may fail on one machine only, and the transition
/// can't be repeated by calling its rules.
pub fn fail_deadline(session: &Session, inactivity: InactivityLimits, now: Timestamp) -> Transition {
    let wake_at = inactivity.active_ms.map(|ms| now.plus_ms(ms));
    let after = Session { version: session.version + 1, deadline: None, wake_at, ..session.clone() };
    let drafts = vec![input(session, "failed", Party::Operator, String::new())];
    Transition { after: After::Changed(Box::new(after)), drafts }
}

/// Adds the output of a deadline to [`Session::unattended`]. Ends the session as abandoned if its rules wrote too much
/// without an action of a player.
fn bound(mut transition: Transition, policy: &SessionPolicy<'_>, now: Timestamp) -> Transition {
    let said: usize = transition.drafts.iter().map(|draft| draft.content.len()).sum();
    if let After::Changed(session) = &mut transition.after
        && session.phase == Phase::Active
    {
        session.unattended = session.unattended.saturating_add(DEADLINE_BYTES + said as u64);
        if let Some(most) = policy.inactivity.unattended_bytes.filter(|most| session.unattended > *most) {
            let why = format!("the rules wrote more than {most} bytes without an action of a player");
            transition.drafts.push(abandon(session, policy, now, &why));
        }
    }
    transition
}

/// Ends a game so that it counts for no user. Returns the message with the reason.
fn abandon(session: &mut Session, policy: &SessionPolicy<'_>, now: Timestamp, why: &str) -> Draft {
    session.scores.fill(Score::default());
    session.attributions.clear();
    finish(session, Ending::Abandoned, policy, now);
    let content = format!("Game ended.\n\nAbandoned: {why}. The game doesn't count.");
    Draft { channel: Channel::Operator(session.facts.id), from: Party::Operator, to: None, content, method: None }
}

/// Returns the message of [`Channel::Inputs`] for a transition that isn't an action or chat.
fn input(session: &Session, kind: &str, from: Party, content: String) -> Draft {
    Draft { channel: Channel::Inputs(session.facts.id), from, to: None, content, method: Some(kind.to_owned()) }
}

/// Calls the operator with a [`Table`], and applies the table's changes to the session. `drafts` precede the
/// operator's messages.
fn play(
    mut session: Session,
    mut operator: Box<dyn Operator>,
    policy: &SessionPolicy<'_>,
    now: Timestamp,
    mut drafts: Vec<Draft>,
    decide: impl FnOnce(&mut dyn Operator, &mut Table<'_>) -> Result<(), Rejection>,
) -> Result<Transition, Rejection> {
    let facts = Arc::clone(&session.facts);
    let players: Vec<InviteCode> = session.seats.iter().map(|occupant| occupant.invite).collect();
    let scores = std::mem::take(&mut session.scores);
    let attributions = std::mem::take(&mut session.attributions);
    let mut table = Table::new(&session, &players, now, scores, attributions);
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
        finish(&mut session, Ending::Completed, policy, now);
    } else if session.phase == Phase::Active {
        // An earlier `wake_at` in the future stays, because a needless wake-up costs one read, and a new time costs an
        // index write.
        let due = session.deadline.or(policy.inactivity.active_ms.map(|ms| now.plus_ms(ms)));
        let keep = session.wake_at.is_some_and(|at| at > now && due.is_some_and(|due| at <= due));
        if !keep {
            session.wake_at = due;
        }
    }
    Ok(Transition { after: After::Changed(Box::new(session)), drafts })
}

fn finish(session: &mut Session, ending: Ending, policy: &SessionPolicy<'_>, now: Timestamp) {
    let identified = session.seats.iter().filter(|occupant| occupant.is_identified()).count();
    let is_benchmark =
        |occupant: &Occupant| occupant.user.as_ref().is_some_and(|user| policy.benchmarks.contains(user));
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
