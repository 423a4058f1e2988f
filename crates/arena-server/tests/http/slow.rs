//! Tests that take long. `cargo xtask test slow` runs them.

mod secrecy;
