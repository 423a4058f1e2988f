//! Tests that need external programs.

mod nodes;
