//! `arena identity …`: creates and lists signing keys. The files are in `keys`.

use arena_identity::KeyPair;
use serde_json::Value;

use crate::args::IdentityVerb;
use crate::exit::{Exit, Failure};
use crate::keys::Keys;
use crate::output::{Style, print_json};

pub fn run(verb: IdentityVerb, style: Style) -> Result<(), Failure> {
    let answer = match verb {
        IdentityVerb::New { out } => {
            let keys = match out {
                Some(folder) => Keys::at(folder),
                None => Keys::at_home()?,
            };
            keys.store(&new_pair()?)?.to_json()
        }
        IdentityVerb::List => Value::Array(Keys::at_home()?.list()?.iter().map(|key| key.to_json()).collect()),
    };
    print_json(&answer.to_string(), style)
}

fn new_pair() -> Result<KeyPair, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::new(Exit::Internal, format_args!("cannot get random bytes for a key from the system: {error}"))
    })?;
    Ok(KeyPair::from_random(bytes))
}
