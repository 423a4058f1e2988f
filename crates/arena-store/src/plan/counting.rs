//! The effects of an ended game on standings and totals.

use arena_model::{GameResult, PlayerStandings, Scoring, Seat, Session, UserId};

use crate::mirror::{Move, Ranked};

/// The scoring for ended games, and the rankings whose moves must be recorded.
pub(crate) struct Counting<'c> {
    pub(crate) scoring: &'c Scoring,
    pub(crate) ranked: &'c [Ranked],
}

impl Counting<'_> {
    pub(crate) fn count(
        &self,
        user: i64,
        standings: &mut PlayerStandings,
        result: &GameResult<'_>,
        seat: Seat,
    ) -> Vec<(Ranked, Move)> {
        let keys = |standings: &PlayerStandings| -> Vec<Option<f64>> {
            self.ranked.iter().map(|ranked| ranked.key(self.scoring, standings)).collect()
        };
        let before = keys(standings);
        self.scoring.count(result, seat, standings.entry(result.board.to_string()).or_default());
        let after = keys(standings);
        let moved = self.ranked.iter().zip(before.into_iter().zip(after)).filter(|(_, (from, to))| from != to);
        moved.map(|(ranked, (from, to))| (ranked.clone(), Move { user, from, to })).collect()
    }
}

/// Returns the players of a session that are known users. A player with two seats is listed once, with the first seat,
/// because it has played only one session. The list is empty for an unlisted session, which is in no history.
pub(crate) fn players(session: &Session) -> Vec<(Seat, &UserId)> {
    let mut players: Vec<(Seat, &UserId)> = Vec::new();
    if session.facts.is_unlisted {
        return players;
    }
    for (seat, occupant) in session.seats.iter().enumerate() {
        if let Some(user) = &occupant.user
            && players.iter().all(|(_, other)| *other != user)
        {
            players.push((Seat(seat), user));
        }
    }
    players
}

/// The name of the total that counts users with a game.
pub(crate) const PARTICIPANTS: &str = "participants";

/// Returns the name of the total that counts the games of a challenge type.
pub(crate) fn games_of(challenge: &str) -> String {
    format!("games:{challenge}")
}
