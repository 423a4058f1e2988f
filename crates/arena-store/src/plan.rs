//! The code that decides a batch of transitions, for both backends. [`RowsWanted`] lists the rows that the batch needs,
//! [`RowsFound`] contains the rows that the backend found, and [`BatchPlan`] collects the rows to write, the answers
//! and the refusals.
//!
//! A plan depends only on the transitions and the known rows. The backends read and write: SQLite in one transaction,
//! Postgres in two round trips.

mod counting;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use arena_model::{
    BoardId, Channel, ChatMessage, Ending, GameResult, InviteCode, Phase, Session, SessionId, Status, UserId,
};

use self::counting::players;
use crate::mirror::Effects;
use crate::numbers::Numbers;
use crate::tables::{BoardRow, Career, CareerRow, KnownSession, SessionRow, board_row, channel_number};
use crate::{
    AuditNo, Commit, CommitError, ImportOutcome, ImportedSession, NewAnswer, RemovedSession, SessionChange, SessionNo,
    StoreError, StoredAnswer,
};

pub(crate) use self::counting::{Counting, PARTICIPANTS, games_of};

pub(crate) enum BatchItem<'b> {
    Commit(&'b Commit),
    Import(&'b ImportedSession),
    /// A stored session that has ended but isn't counted yet: only in stores of older versions.
    Ended(SessionNo, &'b Session),
}

#[derive(Debug)]
pub(crate) enum Done {
    Committed(SessionNo),
    Imported(ImportOutcome),
}

/// The results of a batch that is written, but may not be durable yet.
pub(crate) struct BatchOutcome {
    pub(crate) done: Vec<Result<Done, CommitError>>,
    pub(crate) numbers: Numbers,
    pub(crate) effects: Effects,
}

/// The key of a channel: the session's number, or 0 for the public channel, and the number of the channel.
pub(crate) type ChannelKey = (i64, i64);

/// The rows that the decisions of a batch need.
#[derive(Default)]
pub(crate) struct RowsWanted<'b> {
    /// Idempotency keys of answers.
    pub(crate) answers: Vec<&'b [u8; 32]>,
    /// Numbers of sessions that change.
    pub(crate) sessions: Vec<i64>,
    /// Numbers of sessions that don't change but must exist. Such a session is missing only if another program writes
    /// to the database, or if the database has lost commits.
    pub(crate) present: Vec<i64>,
    /// Players of sessions that end.
    pub(crate) users: BTreeSet<&'b UserId>,
    /// Ids of imported sessions.
    pub(crate) ids: Vec<SessionId>,
    /// Invites of imported sessions.
    pub(crate) codes: Vec<InviteCode>,
    /// Channels that get new messages.
    pub(crate) channels: BTreeSet<ChannelKey>,
    pub(crate) new_sessions: i64,
}

fn channel_of(no: i64, channel: Channel) -> ChannelKey {
    (if channel == Channel::Invites { 0 } else { no }, channel_number(channel))
}

/// Inputs extend no channel: their indexes are versions of the session, which the commit compares anyway.
fn grown(commit: &Commit) -> impl Iterator<Item = &ChatMessage> {
    commit.messages.iter().filter(|message| !message.channel.is_inputs())
}

impl<'b> RowsWanted<'b> {
    pub(crate) fn of(batch: &[BatchItem<'b>]) -> RowsWanted<'b> {
        let mut wanted = RowsWanted::default();
        for transition in batch {
            match transition {
                BatchItem::Commit(commit) => {
                    wanted.answers.extend(commit.answers.iter().map(|answer| &answer.key));
                    if let Some(no) = commit.change.no() {
                        let grown = grown(commit).map(|message| channel_of(no.0, message.channel));
                        wanted.channels.extend(grown);
                    }
                    match &commit.change {
                        SessionChange::Create(_) => wanted.new_sessions += 1,
                        SessionChange::Update { no, session, .. } => {
                            wanted.sessions.push(no.0);
                            if session.status() == Status::Ended {
                                wanted.users.extend(players(session).into_iter().map(|(_, user)| user));
                            }
                        }
                        SessionChange::Stays(no) => wanted.present.push(no.0),
                        SessionChange::Remove(no, _) => wanted.sessions.push(no.0),
                    }
                }
                BatchItem::Import(ImportedSession { session, .. }) => {
                    wanted.new_sessions += 1;
                    wanted.ids.push(session.facts.id);
                    wanted.codes.extend(&session.facts.invites);
                    wanted.users.extend(players(session).into_iter().map(|(_, user)| user));
                }
                BatchItem::Ended(_, session) => {
                    wanted.users.extend(players(session).into_iter().map(|(_, user)| user));
                }
            }
        }
        wanted
    }

    /// Returns true if the batch needs no rows, in an arena with exclusive use of the database. Such an arena assigns
    /// numbers itself and already has the lengths of channels.
    pub(crate) fn is_empty(&self) -> bool {
        let RowsWanted { answers, sessions, present, users, ids, codes, channels: _, new_sessions: _ } = self;
        answers.is_empty()
            && sessions.is_empty()
            && present.is_empty()
            && users.is_empty()
            && ids.is_empty()
            && codes.is_empty()
    }
}

/// The rows that the backend has found. Each transition of the batch updates them for the next one.
#[derive(Default)]
pub(crate) struct RowsFound {
    pub(crate) answers: HashMap<[u8; 32], StoredAnswer>,
    pub(crate) sessions: HashMap<i64, KnownSession>,
    /// True if the sessions of [`RowsWanted::present`] are known to exist. The backend then hasn't looked them up.
    pub(crate) are_present: bool,
    pub(crate) users: HashMap<String, KnownUser>,
    pub(crate) ids: BTreeSet<SessionId>,
    pub(crate) codes: BTreeSet<InviteCode>,
    /// Data that other nodes may have changed; `None` if the database isn't shared.
    pub(crate) shared: Option<SharedRows>,
}

#[derive(Default)]
pub(crate) struct SharedRows {
    /// Lengths of the channels that get new messages.
    pub(crate) lens: HashMap<ChannelKey, u64>,
    /// Numbers for the new sessions.
    pub(crate) numbers: VecDeque<i64>,
}

pub(crate) struct KnownUser {
    pub(crate) no: i64,
    pub(crate) career: Career,
    /// The greatest position in the user's history.
    pub(crate) last: i64,
    /// True if the batch has changed the career.
    pub(crate) changed: bool,
}

pub(crate) struct Update<'b> {
    /// The version that the store has before the update.
    pub(crate) before: i64,
    /// The wake-up time that the store has before the update.
    pub(crate) wake_at: Option<i64>,
    pub(crate) session: &'b Session,
}

pub(crate) struct BatchPlan<'b> {
    known: RowsFound,
    counting: &'b Counting<'b>,
    numbers: Numbers,
    done: Vec<Result<Done, CommitError>>,
    pub(crate) effects: Effects,
    /// New answers by key. All nodes write them in this order, so that two nodes can't deadlock.
    pub(crate) answers: BTreeMap<[u8; 32], &'b NewAnswer>,
    pub(crate) created: Vec<SessionRow<'b>>,
    pub(crate) updated: BTreeMap<i64, Update<'b>>,
    pub(crate) removed: Vec<(i64, &'b Session)>,
    pub(crate) messages: Vec<(i64, &'b ChatMessage)>,
    pub(crate) users: Vec<(i64, &'b UserId)>,
    pub(crate) played: Vec<CareerRow<'b>>,
    pub(crate) endings: Vec<(i64, i64)>,
    /// Boards on which games have counted.
    pub(crate) boards: BTreeMap<BoardId, BoardRow>,
}

impl<'b> BatchPlan<'b> {
    /// Decides a batch. A refused transition writes nothing.
    pub(crate) fn of(
        batch: &[BatchItem<'b>],
        known: RowsFound,
        numbers: Numbers,
        counting: &'b Counting<'b>,
    ) -> BatchPlan<'b> {
        let mut plan = BatchPlan {
            known,
            counting,
            numbers,
            done: Vec::with_capacity(batch.len()),
            effects: Effects::default(),
            answers: BTreeMap::new(),
            created: Vec::new(),
            updated: BTreeMap::new(),
            removed: Vec::new(),
            messages: Vec::new(),
            users: Vec::new(),
            played: Vec::new(),
            endings: Vec::new(),
            boards: BTreeMap::new(),
        };
        for transition in batch {
            let done = plan.add(transition);
            plan.done.push(done);
        }
        plan
    }

    /// Returns the results of the transitions, once the plan is written.
    pub(crate) fn outcome(self) -> BatchOutcome {
        BatchOutcome { done: self.done, numbers: self.numbers, effects: self.effects }
    }

    /// Adds a transition or refuses it.
    fn add(&mut self, transition: &BatchItem<'b>) -> Result<Done, CommitError> {
        match *transition {
            BatchItem::Commit(commit) => self.add_commit(commit).map(Done::Committed),
            BatchItem::Import(imported) => self.add_import(imported).map(Done::Imported),
            BatchItem::Ended(no, session) => {
                self.end(no, session);
                Ok(Done::Committed(no))
            }
        }
    }

    fn add_commit(&mut self, commit: &'b Commit) -> Result<SessionNo, CommitError> {
        if let Some(stored) = commit.answers.iter().find_map(|answer| self.find_answer(&answer.key)) {
            return Err(CommitError::Answered(stored));
        }
        self.check_indexes(commit)?;
        let no = match &commit.change {
            SessionChange::Create(session) => self.create(session, None)?,
            SessionChange::Update { no, before, session } => {
                let (version, wake_at) = (session.version.cast_signed(), session.wake_at.map(|at| at.0));
                let stored = self.known.sessions.get_mut(&no.0);
                let Some(stored) = stored.filter(|stored| stored.version == before.cast_signed()) else {
                    return Err(CommitError::Conflict);
                };
                let before = *stored;
                *stored = KnownSession { version, status: session.status(), wake_at };
                let update = Update { before: before.version, wake_at: before.wake_at, session };
                self.updated.entry(no.0).or_insert(update).session = session;
                if before.status != session.status() {
                    self.effects.delta.add_session(no.0, &session.facts, before.status, -1);
                    self.effects.delta.add_session(no.0, &session.facts, session.status(), 1);
                    if session.status() == Status::Ended {
                        self.end(*no, session);
                    }
                }
                *no
            }
            SessionChange::Stays(no) => {
                if !self.known.are_present && !self.known.sessions.contains_key(&no.0) {
                    return Err(CommitError::Conflict);
                }
                *no
            }
            SessionChange::Remove(no, session) => {
                let stored = self.known.sessions.get(&no.0);
                if stored.is_none_or(|stored| stored.version != session.version.cast_signed()) {
                    return Err(CommitError::Conflict);
                }
                self.known.sessions.remove(&no.0);
                self.removed.push((no.0, session));
                self.effects.delta.add_session(no.0, &session.facts, session.status(), -1);
                *no
            }
        };
        self.messages.extend(commit.messages.iter().map(|message| (no.0, message)));
        if let Some(shared) = &mut self.known.shared {
            for message in grown(commit) {
                shared.lens.insert(channel_of(no.0, message.channel), message.index);
            }
        }
        self.answers.extend(commit.answers.iter().map(|answer| (answer.key, answer)));
        Ok(no)
    }

    /// Returns the answer under an idempotency key, from an earlier batch or from this one.
    fn find_answer(&self, key: &[u8; 32]) -> Option<StoredAnswer> {
        let given = self
            .answers
            .get(key)
            .map(|NewAnswer { request, body, .. }| StoredAnswer { request: *request, body: body.clone() });
        given.or_else(|| self.known.answers.get(key).cloned())
    }

    /// Refuses a commit if the indexes of its messages aren't the next ones, because another node has added messages to
    /// the channels. An arena with exclusive use of the database needs no check; a unique index detects errors.
    fn check_indexes(&self, commit: &Commit) -> Result<(), CommitError> {
        let Some(shared) = &self.known.shared else { return Ok(()) };
        let Some(no) = commit.change.no() else { return Ok(()) };
        let mut lens: HashMap<ChannelKey, u64> = HashMap::new();
        for message in grown(commit) {
            let channel = channel_of(no.0, message.channel);
            let len = lens.entry(channel).or_insert_with(|| shared.lens.get(&channel).copied().unwrap_or(0));
            *len += 1;
            if message.index != *len {
                return Err(CommitError::Conflict);
            }
        }
        Ok(())
    }

    fn add_import(&mut self, imported: &'b ImportedSession) -> Result<ImportOutcome, CommitError> {
        let ImportedSession { session, messages, import } = imported;
        let id = session.facts.id;
        if self.known.ids.contains(&id) {
            return Ok(ImportOutcome::Known);
        }
        if session.facts.invites.iter().any(|code| self.known.codes.contains(code)) {
            return Ok(ImportOutcome::ForeignInvite);
        }
        if session.status() != Status::Ended {
            return Err(StoreError::damaged(format!("session {id}"), "it hasn't ended").into());
        }
        self.known.ids.insert(id);
        self.known.codes.extend(&session.facts.invites);
        let no = self.create(session, Some(*import))?;
        self.messages.extend(messages.iter().map(|message| (no.0, message)));
        self.end(no, session);
        Ok(ImportOutcome::New)
    }

    fn create(&mut self, session: &'b Session, import: Option<AuditNo>) -> Result<SessionNo, StoreError> {
        let no = match &mut self.known.shared {
            // The database provided a number for each new session.
            Some(shared) => {
                let missing =
                    || StoreError::Database("the database returned too few numbers for new sessions".to_owned());
                shared.numbers.pop_front().ok_or_else(missing)?
            }
            None => {
                self.numbers.session += 1;
                self.numbers.session
            }
        };
        self.created.push(SessionRow { no, session, import });
        self.effects.delta.add_session(no, &session.facts, session.status(), 1);
        Ok(SessionNo(no))
    }

    /// Adds an ended session to its players' careers, the boards and the totals. Unlisted ones count nowhere.
    fn end(&mut self, no: SessionNo, session: &'b Session) {
        // In a shared database, this number is provisional: the database numbers the endings. All players already have
        // numbers.
        self.numbers.ending += 1;
        self.endings.push((self.numbers.ending, no.0));
        if session.facts.is_unlisted {
            return;
        }
        if let Phase::Ended { ending: Ending::Completed, .. } = session.phase {
            self.effects.delta.add_total(&games_of(&session.facts.challenge), 1);
        }
        let result = GameResult::of(session);
        self.boards.extend(result.as_ref().and_then(|_| board_row(session)));
        for (seat, user) in players(session) {
            let known = self.known.users.entry(user.as_str().to_owned()).or_insert_with(|| {
                self.numbers.user += 1;
                self.users.push((self.numbers.user, user));
                KnownUser { no: self.numbers.user, career: Career::default(), last: 0, changed: true }
            });
            known.changed = true;
            // The last position in the history replaces the number in row 0, so that the next position is free even if
            // row 0 is wrong.
            if known.career.played != known.last {
                self.effects.suspect = Some("a history");
            }
            known.last += 1;
            known.career.played = known.last;
            if known.career.played == 1 {
                self.effects.delta.add_total(PARTICIPANTS, 1);
            }
            self.played.push(CareerRow::Played { user: known.no, n: known.career.played, session: no.0 });
            if let Some(result) = &result {
                let moves = self.counting.count(known.no, &mut known.career.standings, result, seat);
                self.effects.moves.extend(moves);
            }
        }
    }

    /// Returns the invites of the new sessions, with the numbers of their sessions.
    pub(crate) fn invites(&self) -> Vec<(i64, InviteCode)> {
        let rows = self.created.iter();
        rows.flat_map(|row| row.session.facts.invites.iter().map(|invite| (row.no, *invite))).collect()
    }

    /// Returns the rows about the removed sessions. A transition removes only sessions whose time limit has passed.
    pub(crate) fn removals(&self) -> Vec<(SessionId, i64, &'static str)> {
        let removal = |(_, session): &(i64, &Session)| {
            let facts = &session.facts;
            (facts.id, session.wake_at.unwrap_or(facts.created_at).0, RemovedSession::EXPIRED)
        };
        self.removed.iter().map(removal).collect()
    }

    pub(crate) fn careers(&self) -> impl Iterator<Item = CareerRow<'_>> {
        self.known.users.values().filter(|user| user.changed).map(|user| CareerRow::Career(user.no, &user.career))
    }
}
