//! What a tournament or the season of a league came to, in every form in which it is told: standings and cross tables as texts, JSON, CSV,
//! Markdown and PGN; pictures as SVG; and all of it as a page in HTML.
//!
//! Everything here is pure: equal plans and results give equal bytes. Files are read, tables drawn on terminals and answers sent by
//! those who ask.

mod ending;
mod export;
mod games;
mod html;
mod pgn;
mod ratings;
mod reproduce;
mod scores;
pub mod season;
mod standings;
mod svg;
mod text;

pub use arena_model::{printable, steers};
pub use arena_ratings::bradley_terry::Interval;
pub use ending::{trial, versus};
pub use export::{csv, json, markdown, plain};
pub use games::{VOID, finished, line, named};
pub use html::{HTML_POLICY, html};
pub use pgn::{MovesMissing, PgnError, PgnGame, pgn};
pub use ratings::{Rating, Ratings, apart, listed};
pub use reproduce::command;
pub use standings::{Fate, Grid, WIDEST_CROSS_TABLE, cross, fates, grid, played, remarks, title, title_without_seed};
pub use svg::{
    Axes, Course, Curve, Estimate, Picture, Point, Theme, cross_table_picture, over_time, pareto_front, picture_style,
    progress_picture, ratings_picture, scatter,
};
pub use text::{number_of, shell_word, utc};

#[cfg(test)]
mod tests;
