//! Users, as far as the engine has to do with them: profiles, histories, leaderboards.

use std::collections::BTreeMap;

use arena_model::{
    Board, BoardId, Order, ProfileChange, Scoring, ScoringEntry, Session, Standings, UserId, UserProfile, identities,
};
use arena_store::{BoardFacts, CommitError, Page, ProfileWrite, Totals};

use crate::engine::{Engine, repeat};
use crate::request::{EngineError, Once};

/// A user's wish to change its profile.
pub struct ChangeProfile {
    /// Whose.
    pub user: UserId,
    /// What changes.
    pub change: ProfileChange,
    /// SHA-256 over the signature that asks for it, where one does: it is good for one change.
    pub signature: Option<[u8; 32]>,
}

impl Engine {
    /// What ended games count for.
    pub fn scoring(&self) -> &Scoring {
        self.inner.store.scoring()
    }

    /// The profiles of everybody whose identity is visible in these sessions. A user of whom nothing is known has one too.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn profiles<'s>(
        &self,
        sessions: impl IntoIterator<Item = &'s Session>,
    ) -> Result<BTreeMap<UserId, UserProfile>, EngineError> {
        let users = identities(sessions);
        let mut profiles = self.inner.store.find_profiles(users.iter().copied()).await?;
        for user in users {
            if !profiles.contains_key(user) {
                profiles.insert(user.clone(), UserProfile::of(user.clone()));
            }
        }
        Ok(profiles)
    }

    /// The profiles of those of these users that are known.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_profiles(&self, users: &[UserId]) -> Result<BTreeMap<UserId, UserProfile>, EngineError> {
        Ok(self.inner.store.find_profiles(users).await?)
    }

    /// Users in the order in which they became known.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_users(&self, offset: u64, limit: usize) -> Result<Page<UserProfile>, EngineError> {
        Ok(self.inner.store.list_users(offset, limit).await?)
    }

    /// Changes a profile. The answer is what `respond` makes of it, or what was answered to the same request before.
    ///
    /// # Errors
    /// [`EngineError::SignatureUsed`] if the signature was good for another change; or if the user is banned, or the store
    /// can't write.
    pub async fn change_profile(
        &self,
        request: ChangeProfile,
        once: Option<Once>,
        respond: Box<dyn Fn(&UserProfile) -> String + Send>,
    ) -> Result<String, EngineError> {
        if let Some(answer) = self.inner.answered(once).await? {
            return Ok(answer);
        }
        let ChangeProfile { user, change, signature } = request;
        self.inner.bans.admit_user(&user)?;
        let mut keys: Vec<([u8; 32], [u8; 32])> = once.iter().map(|once| (once.key, once.request)).collect();
        keys.extend(signature.map(|signature| (signature, signature)));
        let write = ProfileWrite { user, change, respond, once: keys, at: self.now() };
        match self.inner.store.change_profile(write).await {
            Ok(body) => Ok(body),
            // Under which of the two keys doesn't show, but only an answer to this very request is one to be repeated.
            Err(CommitError::Answered(answer)) => match signature {
                Some(signature) if answer.request == signature => Err(EngineError::SignatureUsed),
                _ => repeat(answer, once),
            },
            Err(CommitError::Conflict) => Err(EngineError::Contended),
            Err(CommitError::Unavailable(error)) => Err(error.into()),
        }
    }

    /// The ended sessions of a user, newest first; `None` if the user isn't known.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_played(
        &self,
        user: &UserId,
        offset: u64,
        limit: usize,
    ) -> Result<Option<Page<Session>>, EngineError> {
        Ok(self.inner.store.list_played(user, offset, limit).await?)
    }

    /// What scoring remembers of a user; `None` if the user isn't known.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_standings(&self, user: &UserId) -> Result<Option<Standings>, EngineError> {
        Ok(self.inner.store.find_standings(user).await?)
    }

    /// The leaderboards, by strategy, for games of a challenge type that are played as this arena offers them; none if it isn't hosted.
    pub fn main_boards(&self, challenge: &str) -> Vec<Board> {
        self.main_board(challenge).map(|id| self.boards_by_strategy(challenge, &id)).unwrap_or_default()
    }

    /// The board for games of a challenge type that are played as this arena offers them; none if it isn't hosted.
    pub fn main_board(&self, challenge: &str) -> Option<BoardId> {
        self.inner.catalogue.boards().get(challenge).map(|board| board.id.clone())
    }

    /// The leaderboards of a board, by strategy.
    pub fn boards_by_strategy(&self, challenge: &str, id: &BoardId) -> Vec<Board> {
        let board = |strategy| Board::Of { challenge: challenge.to_owned(), id: id.clone(), strategy };
        self.scoring().strategies(challenge).map(|strategy| board(strategy.name)).collect()
    }

    /// The leaderboard over the main boards of all challenge types.
    pub fn global_board(&self) -> Board {
        Board::Global(self.inner.catalogue.boards().values().map(|board| board.id.clone()).collect())
    }

    /// The boards of a challenge type: its main board, and those on which games have counted.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_boards(&self, challenge: &str) -> Result<Vec<BoardFacts>, EngineError> {
        let mut boards = self.inner.store.list_boards(challenge).await?;
        if let Some(main) = self.inner.catalogue.boards().get(challenge)
            && boards.iter().all(|board| board.id != main.id)
        {
            boards.push(main.facts());
        }
        Ok(boards)
    }

    /// A page of a leaderboard, the largest first.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_board(
        &self,
        board: &Board,
        order: Order,
        offset: u64,
        limit: usize,
    ) -> Result<Page<(UserProfile, ScoringEntry)>, EngineError> {
        Ok(self.inner.store.list_board(board, order, offset, limit).await?)
    }

    /// How much has been played.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read_totals(&self) -> Result<Totals, EngineError> {
        Ok(self.inner.store.read_totals().await?)
    }
}

/// Why a write that is no transition failed.
pub(crate) fn unwritten(error: CommitError) -> EngineError {
    match error {
        CommitError::Unavailable(error) => error.into(),
        CommitError::Conflict | CommitError::Answered(_) => EngineError::Contended,
    }
}
