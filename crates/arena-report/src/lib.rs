//! What a tournament came to, in every form in which it is told: standings and cross tables as texts, JSON, CSV, Markdown and PGN.
//!
//! Everything here is pure: equal plans and results give equal bytes. Files are read, tables drawn on terminals and answers sent by
//! those who ask.

mod ending;
mod export;
mod games;
mod pgn;
mod ratings;
mod standings;
mod text;

pub use ending::trial;
pub use export::{csv, json, markdown, plain};
pub use games::{line, named};
pub use pgn::{PgnError, pgn};
pub use ratings::{Rating, Ratings};
pub use standings::{Fate, Grid, WIDEST_CROSS_TABLE, cross, fates, grid, played, remarks, title};
pub use text::{number_of, printable};

#[cfg(test)]
mod tests;
