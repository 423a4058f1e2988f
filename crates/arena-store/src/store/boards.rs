//! Boards with counted games, and their leaderboards.

use std::collections::HashMap;

use arena_model::{Board, BoardId, BoardTerms, Order, PlayerStandings, ScoringEntry, UserProfile};
use serde_json::Value as Json;

use super::users::{PROFILE, read_profile};
use crate::derived::strategies::list_ranked;
use crate::mirror::{Mirror, Ranked, RankingPage};
use crate::sql::{Columns, Dialect, Value};
use crate::tables::{read_career, read_rated};
use crate::{CommitError, Page, Store, StoreError};

/// A board, with the options and terms of the games that count on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardFacts {
    pub id: BoardId,
    pub options: Json,
    pub terms: BoardTerms,
}

/// Reads a board of a challenge type from a row. Returns `None` if a column is invalid.
fn read_board(challenge: &str, row: &dyn Columns) -> Option<BoardFacts> {
    let options: Json = serde_json::from_str(row.text(0).ok()?).ok()?;
    let terms = read_rated(Some(row.text(1).ok()?), None).ok()??;
    Some(BoardFacts { id: BoardId::of(challenge, &options, &terms), options, terms })
}

impl Store {
    /// Returns the boards of a challenge type on which games have counted, in no particular order.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_boards(&self, challenge: &str) -> Result<Vec<BoardFacts>, StoreError> {
        let sql = "SELECT options, rated FROM boards WHERE type = $1";
        let boards = self.list(sql, &[challenge.into()], |row| Ok(read_board(challenge, row))).await?;
        Ok(boards.into_iter().flatten().collect())
    }

    /// Returns a page of a leaderboard, in descending order. The first call for a board reads all of it; the board
    /// then stays in memory, sorted, while it is in use.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_board(
        &self,
        board: &Board,
        order: Order,
        offset: u64,
        limit: usize,
    ) -> Result<Page<(UserProfile, ScoringEntry)>, StoreError> {
        let ranked = Ranked { board: board.clone(), order };
        let RankingPage { users, total } = self.find_page(&ranked, offset, limit).await?;
        if users.is_empty() {
            return Ok(Page { items: Vec::new(), total });
        }
        let sql = format!(
            "SELECT {PROFILE}, u.no, c.session, c.standings FROM users u
             LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.no {}",
            self.dialect().any("$1")
        );
        let numbers = users.iter().map(|user| Value::from(*user)).collect();
        let read = |row: &dyn Columns| {
            let no = row.integer(4)?;
            Ok((no, (read_profile(row)?, read_career(no, row, 5).standings)))
        };
        let found = self.list(&sql, &[Value::List(numbers)], read).await?;
        let mut found: HashMap<i64, (UserProfile, PlayerStandings)> = found.into_iter().collect();
        if ranked.is_scripted() {
            let context = (ranked, self.scoring(), users.clone());
            let scripted = self.aside(context, |(ranked, scoring, users), db| {
                Box::pin(list_ranked(db, ranked, scoring, Some(users.as_slice())))
            });
            let mut scripted = scripted.await?;
            for (user, (_, standings)) in &mut found {
                *standings = scripted.remove(user).unwrap_or_default();
            }
        }
        let scoring = self.scoring();
        let entry = |user: &i64| {
            let (profile, standings) = found.remove(user)?;
            Some((profile, scoring.entry(board, &standings)?))
        };
        Ok(Page { items: users.iter().filter_map(entry).collect(), total })
    }

    /// Returns a page of a board. Readers load boards into memory one at a time, so a second reader waits and then
    /// finds the board that the first reader has loaded.
    async fn find_page(&self, ranked: &Ranked, offset: u64, limit: usize) -> Result<RankingPage, StoreError> {
        let Mirror { rankings, loading, .. } = self.mirror();
        if let Store::Postgres(store) = self {
            store.refresh_rankings().await?;
        }
        if let Some(page) = rankings.page(ranked, offset, limit) {
            return Ok(page);
        }
        let _loading = loading.lock().await;
        // The loop repeats if the board was dropped before its page was read.
        loop {
            match rankings.page(ranked, offset, limit) {
                Some(page) => return Ok(page),
                None => self.load_ranking(ranked).await?,
            }
        }
    }

    async fn load_ranking(&self, ranked: &Ranked) -> Result<(), StoreError> {
        let beginning = self.mirror().rankings.begin(ranked);
        if self.nodes().is_none() {
            // After this empty write, all later commits record their moves, and the read below includes all earlier
            // commits. In a shared store this isn't necessary, because moves come from the endings.
            let passed = self.write((), |(), writing| {
                writing.effects.nothing = true;
                Box::pin(async { Ok(()) })
            });
            passed.await.map_err(|error| match error {
                CommitError::Unavailable(error) => error,
                error => StoreError::Database(error.to_string()),
            })?;
        }
        let context = (ranked.clone(), self.scoring());
        let keys = self.aside(context, |(ranked, scoring), db| {
            Box::pin(async move {
                if ranked.is_scripted() {
                    let all = list_ranked(db, ranked, scoring, None).await?;
                    let key = |(user, standings)| Some((ranked.key(scoring, &standings)?, user));
                    return Ok(all.into_iter().filter_map(key).collect());
                }
                // SQLite looks up row 0 of each user; Postgres has an index of these rows.
                let sql = match db.dialect() {
                    Dialect::Sqlite => {
                        "SELECT c.user_no, c.session, c.standings FROM users u CROSS JOIN careers c
                         WHERE c.user_no = u.no AND c.n = 0"
                    }
                    Dialect::Postgres => "SELECT user_no, session, standings FROM careers WHERE n = 0",
                };
                let mut keys = Vec::new();
                db.each(sql, &[], |row| {
                    let user = row.integer(0)?;
                    keys.extend(ranked.key(scoring, &read_career(user, row, 1).standings).map(|key| (key, user)));
                    Ok(())
                })
                .await?;
                Ok(keys)
            })
        });
        self.mirror().rankings.finish(ranked, beginning, keys.await?);
        Ok(())
    }

    /// Drops leaderboards that haven't been read since the last call.
    pub fn forget_idle_boards(&self) {
        self.mirror().rankings.forget_idle();
    }
}
