//! Reports of tournaments and league seasons: standings and cross tables as text, JSON, CSV, Markdown and PGN; pictures
//! as SVG; and one HTML page with all of them.
//!
//! The crate is pure: equal plans and results give equal bytes. Callers read the files, print tables on terminals and
//! serve the reports.

mod ending;
mod export;
mod exporters;
mod games;
mod html;
mod pgn;
mod raster;
mod ratings;
mod reproduce;
mod scores;
pub mod season;
mod standings;
mod svg;
mod text;

pub use arena_model::{printable, steers};
pub use arena_ratings::bradley_terry::Interval;
pub use ending::{sequential_test, versus};
pub use export::{csv, json, markdown, plain};
pub use exporters::{EXPORTERS, Exporter};
pub use games::{VOID, finished, line};
pub use html::{HTML_POLICY, figure, html, html_document, html_page, html_style, is_report_file, shown};
pub use pgn::{MovesMissing, PgnError, PgnGame, pgn};
pub use raster::png;
pub use ratings::{Rating, Ratings, apart, lead_width, listed};
pub use reproduce::command;
pub use standings::{
    Disqualifications, Grid, WIDEST_CROSS_TABLE, cross, disqualifications_by_agent, grid, played, remarks, title,
    title_without_seed,
};
pub use svg::{
    Axes, Curve, DotLink, Estimate, IntervalLabels, IntervalRow, Picture, Point, Rule, Theme, TimeAxis,
    cross_table_picture, intervals_picture, over_time, pareto_front, picture_style, progress_picture, ratings_picture,
    scatter, shares_picture,
};
pub use text::{number_of, shell_word, utc};

#[cfg(test)]
mod tests;
