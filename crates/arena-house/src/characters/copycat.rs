//! `copycat` repeats the last words of others, and wants the share that the proposer of an offer wants.

use super::{Character, NEUTRAL, Shares};

pub const BOT: Character = Character {
    name: "copycat",
    motto: "repeats the words and the offers of others",
    words: |talk| talk.last.map(str::to_owned),
    shares: |bargain| {
        let theirs = bargain.offer.map(|(proposer, _)| proposer);
        Shares { least: bargain.even, wanted: theirs.unwrap_or(bargain.even) }
    },
    ..NEUTRAL
};
