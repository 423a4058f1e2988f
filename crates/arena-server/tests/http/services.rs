//! Tests that need Python.

mod bucket;
mod deal;
mod fuzz;
mod mcp;
