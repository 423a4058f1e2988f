//! `leaky` tells its secret at once. In `ultimatum` it accepts any gain.

use super::{Character, NEUTRAL, Shares};

pub const BOT: Character = Character {
    name: "leaky",
    motto: "tells its secret at once and accepts any gain",
    words: |talk| Some(talk.secret.clone()),
    shares: |bargain| Shares { least: bargain.reservation + 1, wanted: bargain.even },
    ..NEUTRAL
};
