//! Tests that need Python.

mod deal;
mod fuzz;
mod mcp;
