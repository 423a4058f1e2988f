//! The task that appends to the log: creations, ends and removals of sessions become leaves, at most a second later, or
//! two seconds with several nodes.
//!
//! The store is the queue: the cursor of the log is stored with its leaves, so a restart loses and repeats nothing.
//! One of several nodes appends, the others publish its leaves. Another one takes over when its connection to the database
//! ends. If two nodes append at the same time, the store refuses one of them, which then reads the leaves of the other.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arena_engine::{Engine, EngineError, RecordSource};
use arena_model::{BoardTerms, Ending, GameResult, Phase, Session, SessionFacts, SessionId};
use arena_record::log::{Checkpoint, Leaf, SessionOutcome, leaf_hash};
use arena_record::{EndKind, Hash};
use arena_store::{Ban, BanSubject, CommitError, CreatedSession, EndedSession, LogCursor, NewLeaf, StoreError};
use bytes::Bytes;

use super::deals::{LoggedDeal, missing_leaves};
use super::{GrowingLog, PublishedLog, Records, find_source};
use crate::arena::Arena;
use crate::blocking::blocking;

/// The pause between two reads of the store.
const PERIOD: Duration = Duration::from_millis(500);

/// The time for which a request for the log waits until the log is read.
const OPEN_WITHIN: Duration = Duration::from_secs(1);

/// The maximum number of sessions of each kind in one append, so that an old store is logged in short transactions.
const BATCH: usize = 200;

/// The size of messages whose records are hashed in one task, in bytes, so that few sessions are in memory at once.
const HASHED_AT_ONCE: usize = 1 << 20;

/// The number of leaves in one read.
const PAGE: usize = 1000;

#[derive(Debug, thiserror::Error)]
enum SequenceError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Append(#[from] CommitError),
}

/// The hash of a session's record, with the session, or the reason why there is no record.
type Hashed = Result<(Hash, Arc<Session>), String>;

struct NewEvents {
    /// The leaves, with their lines and the hashes of these.
    leaves: Vec<(Leaf, String, Hash)>,
    cursor: LogCursor,
    /// True if a list of events was full.
    may_have_more: bool,
}

impl Records {
    /// Publishes the log of an earlier start, and the leaves that other nodes have appended. A client may have the
    /// newest checkpoint from another node, and would take an older one for a log that went back. A long log takes
    /// longer than this function waits; [`Records::keep_log`] then publishes it. After a failure, the older log stays
    /// published. Does nothing if the server keeps no log.
    pub(crate) async fn follow_log(self: &Arc<Records>, arena: &Arena) {
        let published = self.published();
        let is_read = !published.checkpoint.is_empty();
        if !self.keeps_log || (is_read && arena.engine.node_metrics().is_none()) {
            return;
        }
        if !is_read || arena.engine.log_size().await.is_ok_and(|size| size > published.size()) {
            // `keep_log` reports failures.
            let _ = tokio::time::timeout(OPEN_WITHIN, self.publish(arena)).await;
        }
    }

    /// Keeps the log. Never returns.
    pub(crate) async fn keep_log(self: &Arc<Records>, arena: &Arena) {
        loop {
            let may_have_more = match self.advance(arena).await {
                Ok(may_have_more) => {
                    if self.is_stuck.swap(false, Ordering::Relaxed) {
                        tracing::info!("the log is written again");
                    }
                    may_have_more
                }
                Err(error) => {
                    if !self.is_stuck.swap(true, Ordering::Relaxed) {
                        tracing::error!(%error, "cannot write the log: {error}");
                    }
                    false
                }
            };
            match may_have_more {
                true => tokio::task::yield_now().await,
                false => tokio::time::sleep(PERIOD).await,
            }
        }
    }

    /// Appends the leaves of new events and publishes the log. Returns true if there may be more events.
    async fn advance(self: &Arc<Records>, arena: &Arena) -> Result<bool, SequenceError> {
        self.publish(arena).await?;
        let log = self.published();
        let engine = &arena.engine;
        if !engine.leads() {
            return Ok(false);
        }
        let cursor = engine.log_cursor().await?;
        let NewEvents { leaves, cursor: next, may_have_more } = self.collect(arena, &log, cursor).await?;
        if leaves.is_empty() && next == cursor {
            return Ok(false);
        }
        let stored = |(leaf, line, hash): (Leaf, String, Hash)| {
            let new = (leaf.session(), leaf.kind().to_owned(), line, hash.0);
            ((leaf, hash), new)
        };
        let (leaves, stored): (Vec<_>, Vec<NewLeaf>) = leaves.into_iter().map(stored).unzip();
        match engine.append_leaves(log.size(), stored, next).await {
            Ok(()) => {
                self.publish_appended(arena, log.size(), &leaves).await?;
                Ok(may_have_more)
            }
            // Another node appended first. The next turn reads its leaves.
            Err(CommitError::Conflict) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the leaves after the published ones and signs a checkpoint of all, if there are any.
    async fn publish(self: &Arc<Records>, arena: &Arena) -> Result<(), SequenceError> {
        let mut growing = self.growing.lock().await;
        loop {
            let leaves = arena.engine.list_leaves(growing.index.size(), PAGE).await?;
            let is_last = leaves.len() < PAGE;
            for leaf in leaves {
                growing.add(&arena.engine, leaf.data.parse().ok().as_ref(), Hash(leaf.hash)).await?;
            }
            if is_last {
                break;
            }
        }
        self.sign(arena, &growing);
        Ok(())
    }

    /// Publishes leaves that this node has appended to a log with `size` leaves.
    async fn publish_appended(
        self: &Arc<Records>,
        arena: &Arena,
        size: u64,
        leaves: &[(Leaf, Hash)],
    ) -> Result<(), SequenceError> {
        {
            let mut growing = self.growing.lock().await;
            // A request for the log may have read the leaves from the store meanwhile.
            if growing.index.size() == size {
                for (leaf, hash) in leaves {
                    growing.add(&arena.engine, Some(leaf), *hash).await?;
                }
                self.sign(arena, &growing);
                return Ok(());
            }
        }
        self.publish(arena).await
    }

    /// Signs a checkpoint of all leaves that were read, if there isn't one.
    fn sign(&self, arena: &Arena, growing: &GrowingLog) {
        let GrowingLog { index, keys, deals, outcomes } = growing;
        let published = self.published();
        if index.size() == published.size() && !published.checkpoint.is_empty() {
            return;
        }
        let size = index.size();
        let checkpoint = Checkpoint { origin: self.origin.clone(), size, root: index.root() };
        let checkpoint = checkpoint.sign(&self.keys.log).expect("the origin was checked at the start");
        let checkpoint = Bytes::from(checkpoint.to_string());
        arena.metrics.log_leaves.set(i64::try_from(size).unwrap_or(i64::MAX));
        let (index, keys, counts) = (index.clone(), keys.clone(), outcomes.counts().clone());
        let deals = Arc::clone(deals);
        *self.log.write() = Arc::new(PublishedLog { index, keys, deals, checkpoint, counts });
    }

    /// Reads the events after the cursor, and makes their leaves.
    async fn collect(
        self: &Arc<Records>,
        arena: &Arena,
        log: &PublishedLog,
        cursor: LogCursor,
    ) -> Result<NewEvents, SequenceError> {
        let engine = &arena.engine;
        let mut new = NewEvents { leaves: Vec::new(), cursor, may_have_more: false };
        let key = self.record_key();
        if log.keys.last().is_none_or(|(_, last)| *last != key) {
            new.push(Leaf::Key { record_key: key, handover: None, at: engine.now() });
        }
        missing_leaves(arena, log).into_iter().for_each(|leaf| new.push(leaf));
        // A session is created before it ends or is removed. So removals and ends are read first: the creations of most
        // of them are then on the page of creations, or in the log.
        let removed = engine.list_removed(cursor.removed, BATCH).await?;
        // Leaves of removals come first, because a removed session may have been imported again since.
        for removal in &removed {
            new.cursor.removed = removal.n;
            // An unlisted session isn't in the log, and its removal must not name it.
            if matches!(new.last_kind(engine, removal.id).await?, Some("created" | "ended")) {
                new.push(Leaf::Removed { session: removal.id, reason: removal.reason.clone(), at: removal.at });
            }
        }
        let ended = engine.list_endings(cursor.ended, BATCH).await?;
        let created = engine.list_created(cursor.created, BATCH).await?;
        new.may_have_more = [removed.len(), ended.len(), created.len()].contains(&BATCH);
        new.add_created(engine, created).await?;
        self.add_ended(engine, ended, &mut new).await?;
        Ok(new)
    }

    /// Adds the leaves of ended sessions whose creations are in the log or among the new leaves.
    async fn add_ended(
        self: &Arc<Records>,
        engine: &Engine,
        ended: Vec<EndedSession>,
        new: &mut NewEvents,
    ) -> Result<(), SequenceError> {
        let last_created = new.cursor.created;
        let listed = ended.iter().filter(|session| session.no <= last_created && !session.is_unlisted);
        let mut records = self.hash_all(engine, listed).await?;
        let mut bans: Option<Vec<Ban>> = None;
        for EndedSession { n, no, id, at, ending, is_unlisted, is_imported, .. } in ended {
            // The creation comes with a later page.
            if no > last_created {
                break;
            }
            new.cursor.ended = n;
            // The log has no open session with this id, or this end already.
            if (is_unlisted || is_imported) && new.last_kind(engine, id).await? != Some("created") {
                continue;
            }
            let excluded = |reason: &str| Leaf::Excluded { session: id, reason: reason.to_owned(), at };
            if is_unlisted {
                // A session that was unlisted after its creation is in the log, so its end must be there too.
                new.push(excluded("unlisted"));
                continue;
            }
            // The session may have been removed meanwhile.
            let Some(record) = records.remove(&id) else { continue };
            let (record, session) = match record {
                Ok(record) => record,
                Err(error) => {
                    tracing::error!(%error, session = %id, "cannot log the end of a session: {error}");
                    new.push(excluded("no record"));
                    continue;
                }
            };
            let kind = match ending {
                Ending::Completed => EndKind::Completed,
                Ending::Abandoned => EndKind::Abandoned,
            };
            new.push(Leaf::Ended { session: id, ending: kind, record, at });
            // Bans matter for abandoned games only, and few games are abandoned.
            if ending == Ending::Abandoned && session.facts.rated.is_some() && bans.is_none() {
                bans = Some(engine.list_bans().await?);
            }
            if let Some(reason) = exclusion(&session, bans.as_deref().unwrap_or_default()) {
                new.push(excluded(reason));
            }
        }
        Ok(())
    }

    /// Returns the hashes of the records of ended sessions, with the sessions, without those of removed sessions. If a
    /// session is damaged, its error is the reason in words, so that one damaged session doesn't stop the log.
    async fn hash_all(
        self: &Arc<Records>,
        engine: &Engine,
        sessions: impl Iterator<Item = &EndedSession>,
    ) -> Result<BTreeMap<SessionId, Hashed>, EngineError> {
        let mut hashes = BTreeMap::new();
        let (mut sources, mut bytes) = (Vec::new(), 0);
        for ended in sessions {
            let id = ended.id;
            let found = match engine.take_ended(ended) {
                Some(source) => Ok(Some(source)),
                None => find_source(engine, id, |_| Ok::<_, EngineError>(())).await,
            };
            match found {
                Ok(Some(source)) => {
                    bytes += source.messages.iter().map(|message| message.content.len()).sum::<usize>();
                    sources.push(source);
                }
                Ok(None) => {
                    if engine.find_session(id).await?.is_some() {
                        hashes.insert(id, Err("messages are missing".to_owned()));
                    }
                }
                Err(error) if is_damage(&error) => {
                    hashes.insert(id, Err(error.to_string()));
                }
                Err(error) => return Err(error),
            }
            if bytes >= HASHED_AT_ONCE {
                hashes.extend(self.hash_sources(std::mem::take(&mut sources)).await);
                bytes = 0;
            }
        }
        hashes.extend(self.hash_sources(sources).await);
        Ok(hashes)
    }

    async fn hash_sources(
        self: &Arc<Records>,
        sources: Vec<RecordSource>,
    ) -> impl Iterator<Item = (SessionId, Hashed)> + use<> {
        let records = Arc::clone(self);
        let hash_each = move || {
            let key = records.record_key();
            let hash = |source: RecordSource| {
                // A fault in the record of one session must not stop the log.
                let hashed = match catch_unwind(AssertUnwindSafe(|| records.hash(&source, &key))) {
                    Ok(Ok(hash)) => Ok((hash, source.session.clone())),
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(_) => Err("its record cannot be written".to_owned()),
                };
                (source.session.facts.id, hashed)
            };
            sources.into_iter().map(hash).collect::<Vec<_>>()
        };
        blocking(hash_each).await.into_iter()
    }
}

impl GrowingLog {
    /// Adds the next leaf: the hash, and the leaf itself if this release can read it.
    async fn add(&mut self, engine: &Engine, leaf: Option<&Leaf>, hash: Hash) -> Result<(), EngineError> {
        if let Some(leaf) = leaf {
            let earlier = match self.outcomes.needs_earlier(leaf) {
                Some(session) => engine.list_leaves_of(session, self.index.size()).await?,
                None => Vec::new(),
            };
            let earlier: Vec<Leaf> = earlier.iter().filter_map(|leaf| leaf.data.parse().ok()).collect();
            if let Leaf::Key { record_key, .. } = leaf {
                self.keys.push((self.index.size(), *record_key));
            }
            if let Leaf::Deal { day, challenge, seed_commitment, at } = leaf {
                let (leaf, challenge) = (self.index.size(), challenge.clone());
                let deal = LoggedDeal { leaf, challenge, commitment: *seed_commitment, at: *at };
                Arc::make_mut(&mut self.deals).entry(day.clone()).or_insert(deal);
            }
            self.outcomes.add(leaf, &earlier);
        }
        self.index.push(hash);
        Ok(())
    }
}

impl NewEvents {
    fn push(&mut self, leaf: Leaf) {
        let line = leaf.to_string();
        let hash = leaf_hash(line.as_bytes());
        self.leaves.push((leaf, line, hash));
    }

    /// Adds the leaves of created sessions.
    async fn add_created(&mut self, engine: &Engine, created: Vec<CreatedSession>) -> Result<(), SequenceError> {
        for CreatedSession { no, id, challenge, seed, at, is_rated, is_unlisted, is_imported } in created {
            // Only an imported session can be in the log before, under the same id.
            if is_imported && matches!(self.last_kind(engine, id).await?, Some("created" | "ended")) {
                // The session was removed and imported since the removals were read. The next turn reads its removal.
                if !engine.list_removed(self.cursor.removed, 1).await?.is_empty() {
                    break;
                }
                self.cursor.created = no;
                continue;
            }
            self.cursor.created = no;
            // The log would list unlisted sessions. They count nowhere, so nothing is dropped unseen.
            if !is_unlisted {
                let seed_commitment = seed.map(|seed| Hash::of(&seed.0));
                self.push(Leaf::Created { session: id, challenge, seed_commitment, rated: is_rated, at });
            }
        }
        Ok(())
    }

    /// Returns the kind of the last leaf about a session that isn't an exclusion. The new leaves follow those of the log.
    async fn last_kind(&self, engine: &Engine, id: SessionId) -> Result<Option<&'static str>, EngineError> {
        const KINDS: [&str; 3] = ["created", "ended", "removed"];
        let known = |leaf: &Leaf| KINDS.into_iter().find(|known| *known == leaf.kind());
        let own = self.leaves.iter().rev().filter(|(leaf, ..)| leaf.session() == Some(id));
        let new = own.map(|(leaf, ..)| leaf).find_map(known);
        if new.is_some() {
            return Ok(new);
        }
        let mut last: Option<(u64, &'static str)> = None;
        for kind in KINDS {
            last = last.max(engine.find_leaf(id, kind).await?.map(|n| (n, kind)));
        }
        Ok(last.map(|(_, kind)| kind))
    }
}

/// Returns true if the error stays for this session, unlike an outage of the store.
fn is_damage(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Damaged(_)
            | EngineError::RecordTooLong { .. }
            | EngineError::Unavailable(StoreError::Damaged { .. })
    )
}

/// The reason for the exclusion of a session that counts on a board which its record can't name.
const UNKNOWN_TERMS: &str = "unknown version of the rules or instructions";

/// Returns the reason why the result of a rated session doesn't count, if the leaves of the session's creation and end
/// don't show it. The reason stays in the log if the ban is lifted later, because the game stays abandoned.
fn exclusion(session: &Session, bans: &[Ban]) -> Option<&'static str> {
    let Phase::Ended { at, ending, .. } = session.phase else { return None };
    session.facts.rated.as_ref()?;
    if ending == Ending::Abandoned {
        let is_seated = |ban: &Ban| match &ban.subject {
            BanSubject::User(user) => session.seats.iter().any(|occupant| occupant.user.as_ref() == Some(user)),
            BanSubject::Addresses(_) => false,
        };
        return bans.iter().any(|ban| ban.at <= at && is_seated(ban)).then_some(SessionOutcome::BAN);
    }
    if GameResult::of(session).is_none() {
        return Some(SessionOutcome::SELF_PLAY);
    }
    (!names_board(&session.facts)).then_some(UNKNOWN_TERMS)
}

/// Returns true if the record of a session names the board on which the session counts, if it counts on one. Sessions
/// from before boards, and imported ones, may have no hash of a prompt or no number of a rules version.
fn names_board(facts: &SessionFacts) -> bool {
    facts.rated.as_ref().is_none_or(|BoardTerms { rules, prompt }| {
        let is_version = match facts.script {
            Some(script) => script.to_string() == *rules,
            None => rules.parse::<u32>().is_ok_and(|version| version.to_string() == *rules),
        };
        is_version && prompt.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arena_model::{GameCategory, Occupant, Timestamp};

    fn facts() -> SessionFacts {
        SessionFacts::bare("018f6b2e-0000-7000-8000-00000000abcd".parse().expect("an id"), "psi", Timestamp(1))
    }

    #[test]
    fn each_rated_game_that_counts_nowhere_has_a_reason() {
        let terms = |prompt: Option<&str>| BoardTerms { rules: "2".to_owned(), prompt: prompt.map(str::to_owned) };
        let prompt = "a".repeat(64);
        let (known, unknown) = (terms(Some(&prompt)), terms(None));
        let ban = |subject: BanSubject, at: i64| Ban { subject, reason: "noise".to_owned(), at: Timestamp(at) };
        let user = |name: &str| BanSubject::User(name.parse().expect("a user id"));
        let addresses = || BanSubject::Addresses("192.0.2.0/24".parse().expect("a range"));
        let (completed, abandoned) = (Ending::Completed, Ending::Abandoned);
        // The terms, the ending, the users, the bans, and the reason. The game ends at 100.
        let cases = [
            (Some(&known), completed, ["ada", "bob"], vec![], None),
            (Some(&known), completed, ["ada", "bob"], vec![ban(user("ada"), 50)], None),
            (Some(&known), completed, ["ada", "ada"], vec![], Some("self-play")),
            (Some(&known), completed, ["", ""], vec![], None),
            (Some(&unknown), completed, ["ada", "ada"], vec![], Some("self-play")),
            (Some(&unknown), completed, ["ada", "bob"], vec![], Some(UNKNOWN_TERMS)),
            (None, completed, ["ada", "ada"], vec![], None),
            (Some(&known), abandoned, ["ada", "bob"], vec![], None),
            (Some(&known), abandoned, ["ada", "bob"], vec![ban(user("eve"), 50), ban(addresses(), 50)], None),
            (Some(&known), abandoned, ["ada", "bob"], vec![ban(user("eve"), 50), ban(user("bob"), 100)], Some("ban")),
            (Some(&known), abandoned, ["ada", "bob"], vec![ban(user("bob"), 101)], None),
            (Some(&known), abandoned, ["ada", "ada"], vec![], None),
            (None, abandoned, ["ada", "bob"], vec![ban(user("bob"), 50)], None),
        ];
        for (rated, ending, users, bans, expected) in cases {
            let occupant = |(seat, user): (usize, &&str)| Occupant {
                invite: format!("inv_018f6b2e-0000-7000-8000-00000000000{seat}").parse().expect("an invite"),
                user: (!user.is_empty()).then(|| user.parse().expect("a user id")),
                deleted: None,
            };
            let session = Session {
                version: 5,
                phase: Phase::Ended { at: Timestamp(100), ending, category: GameCategory::Train },
                seats: users.iter().enumerate().map(occupant).collect(),
                ..Session::blank(SessionFacts { rated: rated.cloned(), ..facts() }, "{}".to_owned())
            };
            assert_eq!(exclusion(&session, &bans), expected, "{rated:?} {ending:?} {users:?} {bans:?}");
        }
    }

    #[test]
    fn records_name_the_boards_of_sessions_with_known_rules_and_instructions() {
        let facts = facts();
        let (prompt, script) = ("a".repeat(64), "b".repeat(64));
        let cases = [
            (None, None, true),
            (None, Some(("2", Some(&prompt))), true),
            (None, Some(("2", None)), false),
            (None, Some(("02", Some(&prompt))), false),
            (None, Some((script.as_str(), Some(&prompt))), false),
            (Some(&script), Some((script.as_str(), Some(&prompt))), true),
            (Some(&script), Some(("2", Some(&prompt))), false),
        ];
        for (script, rated, expected) in cases {
            let terms = |(rules, prompt): (&str, Option<&String>)| BoardTerms {
                rules: rules.to_owned(),
                prompt: prompt.cloned(),
            };
            let script = script.map(|script| script.parse().expect("a version"));
            let facts = SessionFacts { script, rated: rated.map(terms), ..facts.clone() };
            assert_eq!(names_board(&facts), expected, "{facts:?}");
        }
    }
}
