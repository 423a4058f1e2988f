//! `arena identity …`: creates and lists signing keys. The files are in `keys`.

use arena_identity::KeyPair;
use arena_players::http::random_bytes;
use serde_json::Value;

use crate::args::IdentityVerb;
use crate::exit::Failure;
use crate::keys::Keys;
use crate::output::{Style, print_json};

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
