//! The table `careers`: histories and standings of users.

use arena_model::PlayerStandings;

use super::text::to_json;
use crate::sql::{Columns, table};

/// A user's career, stored as row 0 of `careers`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Career {
    /// The number of ended sessions in the user's history.
    pub(crate) played: i64,
    pub(crate) standings: PlayerStandings,
}

pub(crate) enum CareerRow<'r> {
    /// The position of an ended session in the user's history.
    Played { user: i64, n: i64, session: i64 },
    /// Row 0: the number of ended sessions, and the standings.
    Career(i64, &'r Career),
}

table! {
    Careers "careers", row: CareerRow<'r>, 'r {
        User "user_no" Integer Once => match row { CareerRow::Played { user, .. } | CareerRow::Career(user, _) => *user };
        N "n" Integer Once => match row { CareerRow::Played { n, .. } => *n, CareerRow::Career(..) => 0 };
        Session "session" Integer Updated => match row {
            CareerRow::Played { session, .. } => *session,
            CareerRow::Career(_, career) => career.played,
        };
        Standings "standings" Text Updated => match row {
            CareerRow::Played { .. } => None,
            CareerRow::Career(_, career) => Some(to_json(&career.standings)),
        };
    }
}

impl Careers {
    /// The conflict clause with which an insertion replaces the stored row 0.
    pub(crate) const REPLACE: &str =
        "ON CONFLICT (user_no, n) DO UPDATE SET session = excluded.session, standings = excluded.standings";
}

/// Reads a user's career from the columns `session` and `standings` of row 0; without a row, the career is blank.
/// Invalid standings are read as empty, and a recount repairs them.
pub(crate) fn read_career(user: i64, row: &dyn Columns, first: usize) -> Career {
    let played = match row.integer_or_null(first) {
        Ok(None) => return Career::default(),
        Ok(Some(played)) => played,
        Err(_) => -1,
    };
    Career { played, standings: read_standings(user, row.text_or_null(first + 1).ok().flatten().unwrap_or_default()) }
}

/// Parses the standings of a user. Invalid standings are read as empty.
fn read_standings(user: i64, text: &str) -> PlayerStandings {
    serde_json::from_str(text).unwrap_or_else(|error| {
        tracing::error!(user, %error, "the standings of user {user} cannot be read: {error}; run `arena admin api POST /admin/recompute`");
        PlayerStandings::new()
    })
}
