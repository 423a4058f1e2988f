//! Users: profiles, histories and leaderboards.

use std::collections::BTreeMap;
use std::sync::Arc;

use arena_model::{
    Board, BoardId, Order, PlayerStandings, ProfileChange, Scoring, ScoringEntry, Session, UserId, UserProfile,
    identities,
};
use arena_store::{BoardFacts, CommitError, Page, ProfileWrite, Totals};

use crate::engine::{Engine, repeat};
use crate::request::{EngineError, Once};

pub struct ChangeProfile {
    pub user: UserId,
    pub change: ProfileChange,
    /// SHA-256 of the request's signature, if the request is signed. A signature is valid for only one change.
    pub signature: Option<[u8; 32]>,
}

impl Engine {
    pub fn scoring(&self) -> Arc<Scoring> {
        self.inner.store.scoring()
    }

    /// Returns the profiles of all users with a visible identity in these sessions. An unknown user gets an empty
    /// profile.
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

    /// Returns the stored profiles of these users.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_profiles(&self, users: &[UserId]) -> Result<BTreeMap<UserId, UserProfile>, EngineError> {
        Ok(self.inner.store.find_profiles(users).await?)
    }

    /// Returns users in the order in which they became known.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_users(&self, offset: u64, limit: usize) -> Result<Page<UserProfile>, EngineError> {
        Ok(self.inner.store.list_users(offset, limit).await?)
    }

    /// Changes a profile. Returns the answer from `respond`, or the stored answer if the request is a repetition.
    ///
    /// # Errors
    /// [`EngineError::SignatureUsed`] if the signature was used for another change. Also if the user is banned, or the
    /// store can't write.
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
            // The error doesn't show which of the two keys matched. The stored answer is returned only if it belongs to
            // the same request.
            Err(CommitError::Answered(answer)) => match signature {
                Some(signature) if answer.request == signature => Err(EngineError::SignatureUsed),
                _ => repeat(answer, once),
            },
            Err(CommitError::Conflict) => Err(EngineError::Contended),
            Err(CommitError::Unavailable(error)) => Err(error.into()),
        }
    }

    /// Returns the ended sessions of a user, newest first, or `None` if the user is unknown.
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

    /// Returns the standings of a user, or `None` if the user is unknown.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_standings(&self, user: &UserId) -> Result<Option<PlayerStandings>, EngineError> {
        Ok(self.inner.store.find_standings(user).await?)
    }

    /// Returns one leaderboard for each strategy; none if the type has no main board.
    pub fn main_boards(&self, challenge: &str) -> Vec<Board> {
        self.main_board(challenge).map(|id| self.boards_by_strategy(challenge, &id)).unwrap_or_default()
    }

    /// The board counts games with the default options. Returns `None` if the type is unknown or rejects its defaults.
    pub fn main_board(&self, challenge: &str) -> Option<BoardId> {
        self.inner.catalogue.boards().get(challenge).map(|board| board.id.clone())
    }

    /// Returns the leaderboards of a board, one for each strategy.
    pub fn boards_by_strategy(&self, challenge: &str, id: &BoardId) -> Vec<Board> {
        let board = |strategy| Board::Of { challenge: challenge.to_owned(), id: id.clone(), strategy };
        self.scoring().strategies(challenge).map(|strategy| board(strategy.name)).collect()
    }

    /// Returns the leaderboard over the main boards of all challenge types.
    pub fn global_board(&self) -> Board {
        Board::Global(self.inner.catalogue.boards().values().map(|board| board.id.clone()).collect())
    }

    /// Returns the boards of a challenge type: its main board, and those with counted games.
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

    /// Returns a page of a leaderboard, in descending order.
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

    /// Returns the totals of games played.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read_totals(&self) -> Result<Totals, EngineError> {
        Ok(self.inner.store.read_totals().await?)
    }
}
