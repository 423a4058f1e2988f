//! Comparison of stored totals, standings and other derived tables with the games.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use arena_model::UserId;

use super::audit::record;
use crate::derived::standings::{find_career, recount, write_career};
use crate::derived::totals::{TOTALS, missing_totals, read_total};
use crate::plan::PARTICIPANTS;
use crate::tables::STANDINGS;
use crate::{AuditEntry, CommitError, Store, StoreError, derived};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// The number of completed games by challenge type.
    pub games: BTreeMap<String, u64>,
    /// The number of users with a game.
    pub participants: u64,
}

impl Totals {
    /// Creates the totals from the stored rows, by name.
    pub(crate) fn of(mut games: BTreeMap<String, i64>) -> Totals {
        // An invalid total is shown as 0 until its repair.
        let count = |n: i64| n.max(0).unsigned_abs();
        let participants = count(games.remove(PARTICIPANTS).unwrap_or(0));
        let of_type = |(name, n): (String, i64)| Some((name.strip_prefix("games:")?.to_owned(), count(n)));
        Totals { games: games.into_iter().filter_map(of_type).collect(), participants }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recount {
    pub users: u64,
    /// The number of counted games. A game counts once for each of its users.
    pub games: u64,
    /// Users whose stored standings differed from their games.
    pub wrong: Vec<UserId>,
}

impl Store {
    /// Returns the numbers of games and participants.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read_totals(&self) -> Result<Totals, StoreError> {
        let totals = self.list(TOTALS, &[], |row| Ok(read_total(row))).await?;
        Ok(Totals::of(totals.into_iter().collect()))
    }

    /// Recounts all games of all users and compares the result with the stored standings. If they differ, the result
    /// replaces the stored standings of the user, and `audit` creates an audit entry for this user. Games continue
    /// during the recount.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn recount(&self, audit: impl Fn(&UserId) -> AuditEntry) -> Result<Recount, CommitError> {
        let mut all = Recount::default();
        match self.recount_into(&mut all, audit).await {
            Ok(()) => Ok(all),
            // Some standings have been stored already, so the error must not claim that nothing has changed.
            Err(error) if !all.wrong.is_empty() => {
                tracing::error!(%error, "the recount stopped after {} users: {error}", all.users);
                Err(StoreError::Unsure.into())
            }
            Err(error) => Err(error),
        }
    }

    async fn recount_into(&self, all: &mut Recount, audit: impl Fn(&UserId) -> AuditEntry) -> Result<(), CommitError> {
        for user in 1..=self.last_user().await? {
            let (games, id, same) = self.compare(user).await?;
            all.users += 1;
            all.games += games;
            if !same {
                self.mend_standings(user, Some(audit(&id))).await?;
                all.wrong.push(id);
            }
        }
        self.mend_totals().await
    }

    /// Counts a user's games. Returns their number, the user's id, and true if the stored career is correct.
    async fn compare(&self, user: i64) -> Result<(u64, UserId, bool), StoreError> {
        // Games and career must come from the same snapshot.
        let compared = self.aside(self.scoring(), move |scoring, db| {
            Box::pin(async move {
                let counted = recount(db, scoring, user).await?;
                let same = find_career(db, user).await? == counted;
                let sql = "SELECT id FROM users WHERE no = $1";
                let id = db.find(sql, &[user.into()], |row| Ok(row.prose(0)?.into_owned())).await?.unwrap_or_default();
                let what = format!("user {id}");
                let id: UserId = id.parse().map_err(|error: arena_model::IdError| StoreError::damaged(what, error))?;
                Ok((counted.played.unsigned_abs(), id, same))
            })
        });
        compared.await
    }

    /// Games and totals are read in one snapshot, so the difference is correct even if games end before the write.
    async fn mend_totals(&self) -> Result<(), CommitError> {
        let missing = self.aside((), |(), db| Box::pin(missing_totals(db))).await?;
        if missing.is_empty() {
            return Ok(());
        }
        tracing::warn!("totals disagreed with the games and were corrected by {missing:?}");
        self.write(missing, |missing, writing| {
            missing.iter().for_each(|(name, n)| writing.effects.delta.add_total(name, *n));
            Box::pin(async { Ok(()) })
        })
        .await
    }

    /// Recounts a user's games and stores the career.
    async fn mend_standings(&self, user: i64, audit: Option<AuditEntry>) -> Result<(), CommitError> {
        self.write(audit, move |audit, writing| {
            Box::pin(async move {
                let sql = "SELECT id FROM users WHERE no = $1";
                let id = writing.db.find(sql, &[user.into()], |row| Ok(row.prose(0)?.into_owned())).await?;
                writing.lock_users(id.as_deref()).await?;
                let career = recount(&mut writing.db, &writing.scoring, user).await?;
                write_career(&mut writing.db, user, &career).await?;
                writing.effects.recounted = true;
                writing.changed.insert(STANDINGS);
                match audit {
                    Some(audit) => record(writing, audit).await.map(drop),
                    None => Ok(()),
                }
            })
        })
        .await
    }

    /// Compares all derived tables (counts, totals, endings, histories, standings) with the sessions. Repairs and logs
    /// the tables that differ. Games continue during the comparison, but wait for a repair, which reads all sessions in
    /// one transaction.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn check_derived(&self) -> Result<(), CommitError> {
        if self.aside((), |(), db| Box::pin(derived::are_wrong(db))).await? {
            self.write((), |(), writing| {
                writing.effects.mend = true;
                Box::pin(async { Ok(()) })
            })
            .await?;
        }
        for user in 1..=self.last_user().await? {
            let begun = Instant::now();
            let (_, id, same) = self.compare(user).await?;
            if !same {
                self.mend_standings(user, None).await?;
                tracing::warn!(user = %id, "the standings of user {id} disagreed with the user's games and were recomputed");
            }
            pause_after(begun).await;
        }
        Ok(())
    }

    /// Waits until the writer finds a wrong value in a derived table. The caller should then call
    /// [`Store::check_derived`].
    pub async fn suspected(&self) {
        self.mirror().suspicion.wait().await;
    }
}

/// Sleeps for the duration of the work since `begun`. This limits a background comparison to half of a CPU core.
async fn pause_after(begun: Instant) {
    tokio::time::sleep(begun.elapsed().min(Duration::from_secs(1))).await;
}
