//! Imports of sessions and users from other arenas. A session is imported as a whole and only once. It counts like a
//! session that was played on this arena.

use std::sync::Arc;

use arena_model::UserProfile;

use super::users::{find_user, write_profile};
use crate::tables::ADMINISTRATION;
use crate::{CommitError, ImportOutcome, Store};

impl Store {
    /// Imports a user. An existing profile stays unchanged. Imports happen in the order of the calls, as with
    /// [`Store::import_session`].
    ///
    /// # Errors
    /// If the store can't write.
    pub fn import_user(
        &self,
        profile: Arc<UserProfile>,
    ) -> impl Future<Output = Result<ImportOutcome, CommitError>> + Send + use<> {
        self.write(profile, |profile, writing| {
            Box::pin(async move {
                writing.lock_users([profile.user_id.as_str()]).await?;
                let known = find_user(&mut writing.db, &profile.user_id).await?;
                // A user who has only played games has a blank profile.
                let blank = UserProfile::of(profile.user_id.clone());
                let is_blank = known.as_ref().is_none_or(|(_, known)| *known == blank);
                let same = known.as_ref().is_some_and(|(_, known)| *known == **profile);
                if same || !is_blank {
                    return Ok(ImportOutcome::Known);
                }
                let no = writing.user_no(profile.user_id.as_str()).await?;
                write_profile(&mut writing.db, no, profile).await?;
                let sql = "UPDATE users SET benchmark = $1 WHERE no = $2";
                writing.db.execute(sql, &[i64::from(profile.is_benchmark).into(), no.into()]).await?;
                if profile.is_benchmark {
                    writing.changed.insert(ADMINISTRATION);
                }
                Ok(ImportOutcome::New)
            })
        })
    }
}
