//! Tests that need a program besides Rust.

mod deal;
mod fuzz;
mod mcp;
