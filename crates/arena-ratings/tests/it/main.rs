//! Ratings as a whole: against numbers of other programs, and what holds for any results.

mod properties;
mod reference;
