//! `greedy` asks for the secrets of others, uses all that they tell, and wants most of a split.

use std::collections::BTreeSet;

use super::{Character, NEUTRAL, Shares};

pub const BOT: Character = Character {
    name: "greedy",
    motto: "asks for the secrets of others, uses them, and wants most of a split",
    words: |talk| Some(talk.question.to_owned()),
    numbers: |own, claims| {
        let all: BTreeSet<u64> = claims.iter().flatten().copied().collect();
        all.into_iter().take(own.len()).collect()
    },
    shares: |bargain| {
        let large = bargain.even + bargain.even / 2;
        // Others accept an offer that gives each one more than it needs.
        let rest = bargain.claims.as_ref().map(|claims| {
            let needed: u64 = claims.iter().map(|claim| claim.saturating_add(1)).fold(0, u64::saturating_add);
            bargain.total.saturating_sub(needed)
        });
        Shares { least: large, wanted: rest.unwrap_or(large) }
    },
    ..NEUTRAL
};
