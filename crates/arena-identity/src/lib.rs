//! Who somebody is: Ed25519 keys, what they sign, and the session keys that a server gives out for it.
//!
//! Everything here is pure: bytes in, verdicts out. Randomness and the time are arguments. Where keys are kept is the
//! command line's, which session a key is for the server's, and what a player may do the rules' (`arena-model`).

mod key;
mod proof;
mod session_key;
mod statement;

pub use key::{KeyError, KeyPair, PublicKey};
pub use proof::{Proof, ProofError, WINDOW_MS};
pub use session_key::{SecretError, ServerSecret, SessionKey, SessionKeyError};
pub use statement::ProfileUpdate;
