//! `careful` keeps its secret, and spares the secrets of others: it uses them without naming them.

use super::{Character, NEUTRAL, Shares};
use crate::talkers::millionaire::WEALTH;

pub const BOT: Character = Character {
    name: "careful",
    motto: "keeps its secret and spares the secrets of others",
    wealth: |own, claimed| {
        // The nearest guess on the right side that isn't the claimed wealth.
        let side = if claimed > own { own + 1..=*WEALTH.end() } else { *WEALTH.start()..=own.saturating_sub(1) };
        side.into_iter().find(|guess| *guess != claimed && claimed != own).unwrap_or(claimed)
    },
    names_payer: false,
    shares: |bargain| {
        let share = bargain.even.max(bargain.reservation + bargain.total.saturating_sub(bargain.reservation) / 4);
        Shares { least: share, wanted: share }
    },
    ..NEUTRAL
};
