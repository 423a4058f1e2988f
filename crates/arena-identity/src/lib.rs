//! Identity: Ed25519 keys, signed statements, and the session keys that a server issues.
//!
//! This crate is pure: randomness and time are arguments. The command line stores keys, the server matches session
//! keys to sessions, and the rules (`arena-model`) decide about actions.

mod key;
mod key_file;
mod proof;
mod session_key;
mod statement;

pub use key::{KeyError, KeyPair, PublicKey};
pub use key_file::KeyFileError;
pub use proof::{Proof, ProofError, WINDOW_MS};
pub use session_key::{SecretError, ServerSecret, SessionKey, SessionKeyError};
pub use statement::ProfileUpdate;
