//! Players: who sits at a seat, and what plays a session in memory.

pub mod http;
