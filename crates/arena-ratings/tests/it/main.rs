//! Tests of the ratings: reference numbers from other programs, and properties of all results.

mod properties;
mod reference;
mod statistics;
