//! What a batch of transitions writes, decided before anything is written: a plain function of the transitions and of what the
//! database holds of what they touch.
//!
//! So a batch costs two round trips, however many wait in it: one that reads and locks, one that writes everything, each table
//! in one statement.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use arena_model::{BoardId, Channel, ChatMessage, Ending, GameResult, Phase, Session, Status, UserId};

use super::connection::Numbers;
use super::journal::News;
use super::text::encode;
use crate::audit::AuditNo;
use crate::boards::{self, BoardRow};
use crate::import::{ImportedSession, Taken};
use crate::job::Effects;
use crate::rows::channel_number;
use crate::standings::{Career, Counting, PARTICIPANTS, games_of, players};
use crate::{Change, Commit, CommitError, NewAnswer, SessionNo, StoreError, StoredAnswer};

/// What a batch is made of.
pub(crate) enum Transition<'b> {
    Commit(&'b Commit),
    Import(&'b ImportedSession),
}

/// What came of one transition of a batch.
#[derive(Debug)]
pub(crate) enum Done {
    Committed(SessionNo),
    Imported(Taken),
}

/// What has to be known of the database before a batch can be decided.
#[derive(Default)]
pub(crate) struct Wanted<'b> {
    /// Keys of answers.
    pub(crate) answers: Vec<&'b [u8]>,
    /// Numbers of sessions that are changed.
    pub(crate) sessions: Vec<i64>,
    /// Ids of users who play in sessions that end, as the database takes them.
    pub(crate) users: Vec<String>,
    /// Ids of sessions that are imported.
    pub(crate) ids: Vec<String>,
    /// Invites of sessions that are imported.
    pub(crate) codes: Vec<String>,
    /// Channels that grow, by session and number.
    pub(crate) channels: BTreeSet<(i64, i16)>,
    /// How many sessions are new.
    pub(crate) new_sessions: i64,
}

/// A channel of a session as the database knows it.
fn channel_of(no: i64, channel: Channel) -> (i64, i16) {
    let session = if channel == Channel::Invites { 0 } else { no };
    // Three channels fit.
    (session, channel_number(channel) as i16)
}

impl<'b> Wanted<'b> {
    /// What these want to know; `shared` says whether others may write too.
    pub(crate) fn of(batch: &[Transition<'b>], shared: bool) -> Wanted<'b> {
        let mut wanted = Wanted::default();
        let mut users: BTreeSet<&UserId> = BTreeSet::new();
        for transition in batch {
            match transition {
                Transition::Commit(commit) => {
                    wanted.answers.extend(commit.answer.iter().map(|answer| &answer.key[..]));
                    if shared && let Change::Update(no, _) | Change::Stays(no) | Change::Remove(no, _) = &commit.change
                    {
                        let grown = commit.messages.iter().map(|message| channel_of(no.0, message.channel));
                        wanted.channels.extend(grown);
                    }
                    match &commit.change {
                        Change::Create(_) => wanted.new_sessions += 1,
                        Change::Update(no, session) => {
                            wanted.sessions.push(no.0);
                            if session.status() == Status::Ended {
                                users.extend(players(session).into_iter().map(|(_, user)| user));
                            }
                        }
                        Change::Stays(no) | Change::Remove(no, _) => wanted.sessions.push(no.0),
                    }
                }
                Transition::Import(ImportedSession { session, .. }) => {
                    wanted.new_sessions += 1;
                    wanted.ids.push(session.facts.id.to_string());
                    wanted.codes.extend(session.facts.invites.iter().map(ToString::to_string));
                    users.extend(players(session).into_iter().map(|(_, user)| user));
                }
            }
        }
        wanted.users = users.into_iter().map(|user| encode(user.as_str()).into_owned()).collect();
        wanted
    }

    /// Whether nothing has to be known by who has the database alone: numbers and lengths of channels it knows.
    pub(crate) fn is_empty(&self) -> bool {
        let Wanted { answers, sessions, users, ids, codes, channels: _, new_sessions: _ } = self;
        answers.is_empty() && sessions.is_empty() && users.is_empty() && ids.is_empty() && codes.is_empty()
    }
}

/// What is known of the database, and what the batch so far makes of it.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) answers: HashMap<[u8; 32], StoredAnswer>,
    /// Version and status of sessions by their numbers.
    pub(crate) sessions: HashMap<i64, (i64, Status)>,
    /// Users by their ids.
    pub(crate) users: HashMap<String, KnownUser>,
    pub(crate) ids: BTreeSet<String>,
    pub(crate) codes: BTreeSet<String>,
    /// What others may have changed, where there are others.
    pub(crate) shared: Option<KnownOfOthers>,
}

/// What only the database knows where others write as well.
#[derive(Default)]
pub(crate) struct KnownOfOthers {
    /// How long the channels are that grow.
    pub(crate) lens: HashMap<(i64, i16), u64>,
    /// Numbers for the sessions that are new.
    pub(crate) numbers: VecDeque<i64>,
}

/// A user and what it has done.
pub(crate) struct KnownUser {
    pub(crate) no: i64,
    pub(crate) career: Career,
    /// The greatest place in its history.
    pub(crate) last: i64,
    /// Whether the batch changes it.
    pub(crate) changed: bool,
}

/// What a batch writes.
pub(crate) struct Plan<'b> {
    known: Known,
    counting: &'b Counting<'b>,
    pub(crate) numbers: Numbers,
    pub(crate) effects: Effects,
    pub(crate) answers: Vec<&'b NewAnswer>,
    /// New sessions, and the imports that brought those that were imported.
    pub(crate) created: Vec<(i64, &'b Session, Option<AuditNo>)>,
    /// Sessions that change: the version that is stored, and what they become.
    pub(crate) updated: BTreeMap<i64, (i64, &'b Session)>,
    pub(crate) removed: Vec<(i64, &'b Session)>,
    pub(crate) messages: Vec<(i64, &'b ChatMessage)>,
    pub(crate) users: Vec<(i64, &'b UserId)>,
    /// User, place in its history, session.
    pub(crate) played: Vec<(i64, i64, i64)>,
    /// Place, session.
    pub(crate) endings: Vec<(i64, i64)>,
    /// Boards on which games have counted.
    pub(crate) boards: BTreeMap<BoardId, BoardRow>,
    /// What others are told of it, where there are any.
    pub(crate) news: News,
}

impl<'b> Plan<'b> {
    pub(crate) fn new(known: Known, numbers: Numbers, counting: &'b Counting<'b>) -> Plan<'b> {
        Plan {
            known,
            counting,
            numbers,
            effects: Effects::default(),
            answers: Vec::new(),
            created: Vec::new(),
            updated: BTreeMap::new(),
            removed: Vec::new(),
            messages: Vec::new(),
            users: Vec::new(),
            played: Vec::new(),
            endings: Vec::new(),
            boards: BTreeMap::new(),
            news: News::default(),
        }
    }

    /// Takes a transition in, or refuses it; a refused one writes nothing.
    pub(crate) fn add(&mut self, transition: &Transition<'b>) -> Result<Done, CommitError> {
        match transition {
            Transition::Commit(commit) => self.add_commit(commit).map(Done::Committed),
            Transition::Import(imported) => self.add_import(imported).map(Done::Imported),
        }
    }

    fn add_commit(&mut self, commit: &'b Commit) -> Result<SessionNo, CommitError> {
        if let Some(stored) = commit.answer.as_ref().and_then(|answer| self.known.answers.get(&answer.key)) {
            return Err(CommitError::Answered(stored.clone()));
        }
        self.check_places(commit)?;
        let no = match &commit.change {
            Change::Create(session) => self.create(session, None)?,
            Change::Update(no, session) => {
                let version = session.version.cast_signed();
                let Some(stored) = self.known.sessions.get_mut(&no.0).filter(|(stored, _)| *stored == version - 1)
                else {
                    return Err(CommitError::Conflict);
                };
                let before = stored.1;
                *stored = (version, session.status());
                self.updated.entry(no.0).or_insert((version - 1, session)).1 = session;
                if before != session.status() {
                    self.effects.delta.add(no.0, &session.facts.challenge, before, -1);
                    self.effects.delta.add(no.0, &session.facts.challenge, session.status(), 1);
                    if session.status() == Status::Ended {
                        self.end(*no, session);
                    }
                }
                *no
            }
            Change::Stays(no) => {
                if !self.known.sessions.contains_key(&no.0) {
                    return Err(CommitError::Conflict);
                }
                *no
            }
            Change::Remove(no, session) => {
                let stored = self.known.sessions.get(&no.0);
                if stored.is_none_or(|(version, _)| *version != session.version.cast_signed()) {
                    return Err(CommitError::Conflict);
                }
                self.known.sessions.remove(&no.0);
                self.removed.push((no.0, session));
                self.effects.delta.add(no.0, &session.facts.challenge, session.status(), -1);
                *no
            }
        };
        self.messages.extend(commit.messages.iter().map(|message| (no.0, message)));
        if let Some(shared) = &mut self.known.shared {
            match &commit.change {
                Change::Update(_, session) | Change::Remove(_, session) => self.news.add_session(session.facts.id),
                Change::Create(_) | Change::Stays(_) => {}
            }
            for message in &commit.messages {
                self.news.add_channel(message.channel);
                shared.lens.insert(channel_of(no.0, message.channel), message.index);
            }
        }
        if let Some(answer) = &commit.answer {
            let NewAnswer { key, request, body, .. } = answer;
            self.known.answers.insert(*key, StoredAnswer { request: *request, body: body.clone() });
            self.answers.push(answer);
        }
        Ok(no)
    }

    /// Refuses a commit whose messages aren't the next in their channels, if others may have said something. Who has the database
    /// alone knows, and a unique index holds the line.
    fn check_places(&self, commit: &Commit) -> Result<(), CommitError> {
        let Some(shared) = &self.known.shared else { return Ok(()) };
        let (Change::Update(no, _) | Change::Stays(no) | Change::Remove(no, _)) = &commit.change else { return Ok(()) };
        let mut grown: HashMap<(i64, i16), u64> = HashMap::new();
        for message in &commit.messages {
            let channel = channel_of(no.0, message.channel);
            let len = grown.entry(channel).or_insert_with(|| shared.lens.get(&channel).copied().unwrap_or(0));
            *len += 1;
            if message.index != *len {
                return Err(CommitError::Conflict);
            }
        }
        Ok(())
    }

    fn add_import(&mut self, imported: &'b ImportedSession) -> Result<Taken, CommitError> {
        let ImportedSession { session, messages, import } = imported;
        let id = session.facts.id;
        if self.known.ids.contains(&id.to_string()) {
            return Ok(Taken::Known);
        }
        let codes: Vec<String> = session.facts.invites.iter().map(ToString::to_string).collect();
        if codes.iter().any(|code| self.known.codes.contains(code)) {
            return Ok(Taken::ForeignInvite);
        }
        if session.status() != Status::Ended {
            return Err(StoreError::damaged(id, "it hasn't ended").into());
        }
        self.known.ids.insert(id.to_string());
        self.known.codes.extend(codes);
        let no = self.create(session, Some(*import))?;
        self.messages.extend(messages.iter().map(|message| (no.0, message)));
        self.end(no, session);
        Ok(Taken::New)
    }

    fn create(&mut self, session: &'b Session, import: Option<AuditNo>) -> Result<SessionNo, StoreError> {
        let no = match &mut self.known.shared {
            // As many are drawn as there are new sessions.
            Some(shared) => {
                let missing = || StoreError::Database("there is no number for a new session".to_owned());
                shared.numbers.pop_front().ok_or_else(missing)?
            }
            None => {
                self.numbers.session += 1;
                self.numbers.session
            }
        };
        self.created.push((no, session, import));
        self.effects.delta.add(no, &session.facts.challenge, session.status(), 1);
        Ok(SessionNo(no))
    }

    /// Counts a session that has ended.
    fn end(&mut self, no: SessionNo, session: &'b Session) {
        // Among others, numbers are given when it is this transaction's turn, and users had theirs before it began.
        self.numbers.ending += 1;
        self.endings.push((self.numbers.ending, no.0));
        if let Phase::Ended { ending: Ending::Completed, .. } = session.phase {
            self.effects.delta.add_total(&games_of(&session.facts.challenge), 1);
        }
        let result = GameResult::of(session);
        self.boards.extend(result.as_ref().and_then(|_| boards::row_of(session)));
        for (seat, user) in players(session) {
            let known = self.known.users.entry(user.as_str().to_owned()).or_insert_with(|| {
                self.numbers.user += 1;
                self.users.push((self.numbers.user, user));
                KnownUser { no: self.numbers.user, career: Career::default(), last: 0, changed: true }
            });
            known.changed = true;
            self.news.users.insert(known.no);
            // The history says how long it is, so that the next place is free whatever row 0 states.
            if known.career.played != known.last {
                self.effects.suspect = Some("a history");
            }
            known.last += 1;
            known.career.played = known.last;
            if known.career.played == 1 {
                self.effects.delta.add_total(PARTICIPANTS, 1);
            }
            self.played.push((known.no, known.career.played, no.0));
            if let Some(result) = &result {
                let moves = self.counting.count(known.no, &mut known.career.standings, result, seat);
                self.effects.moves.extend(moves);
            }
        }
    }

    /// The careers that the batch changes, with their users' numbers.
    pub(crate) fn careers(&self) -> impl Iterator<Item = (i64, &Career)> {
        self.known.users.values().filter(|user| user.changed).map(|user| (user.no, &user.career))
    }
}
