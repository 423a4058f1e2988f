//! Tests that need a program besides Rust.

mod nodes;
