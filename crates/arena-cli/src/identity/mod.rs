//! `arena identity …`: creates and lists signing keys. The files are in `keys`.

mod keys;

use std::path::PathBuf;

use arena_identity::KeyPair;
use arena_players::http::random_bytes;
use clap::Subcommand;
use serde_json::Value;

use crate::exit::Failure;
use crate::output::{Style, print_json};

pub use keys::Keys;

/// Subcommands of `arena identity`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena identity new                create a key pair in ~/.arena/keys
  arena identity list
  arena challenges join inv_… --sign")]
pub enum IdentityVerb {
    /// Create a key pair. The user id is the hash of the public key.
    #[command(after_help = "\
Examples:
  arena identity new                ~/.arena/keys/USER_ID.pub and USER_ID.key
  arena identity new --out keys     in another folder")]
    New {
        /// Folder for the two files [default: ~/.arena/keys]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// List the keys in ~/.arena/keys.
    #[command(after_help = "\
Examples:
  arena identity list")]
    List,
}

pub fn run(verb: IdentityVerb, style: Style) -> Result<(), Failure> {
    let answer = match verb {
        IdentityVerb::New { out } => {
            let keys = match out {
                Some(folder) => Keys::at(folder),
                None => Keys::at_home()?,
            };
            keys.store(&KeyPair::from_random(random_bytes()?))?.to_json()
        }
        IdentityVerb::List => Value::Array(Keys::at_home()?.list()?.iter().map(|key| key.to_json()).collect()),
    };
    print_json(&answer.to_string(), style)
}
