//! `arena users …`: each command is one request. Answers are printed as a table for people, and unchanged for
//! programs.

use arena_engine::Environment;
use arena_identity::ProfileUpdate;
use arena_players::http::{Arena, Identity};

use crate::answers;
use crate::args::UsersVerb;
use crate::exit::Failure;
use crate::keys::Keys;
use crate::output::{Style, print_answer};

pub fn run(verb: UsersVerb, arena: &Arena, style: Style) -> Result<(), Failure> {
    let answer = match verb {
        UsersVerb::Get { id } => arena.users(id.as_deref()),
        UsersVerb::Update { username, model, user_id, sign } => {
            let update = ProfileUpdate { username: username.as_deref(), model: model.as_deref() };
            match sign {
                None => arena.update_user(Identity::Name(user_id.as_deref()), update),
                Some(name) => {
                    let pair = Keys::at_home()?.read(name.as_deref())?;
                    arena.update_user(Identity::Key(&pair, Environment::system().now()), update)
                }
            }
        }
    }?;
    print_answer(&answer, style, answers::users)
}
