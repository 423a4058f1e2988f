//! `arena users …`: each command is one request. Answers are printed as a table for people, and unchanged for
//! programs.

use arena_engine::Environment;
use arena_identity::ProfileUpdate;
use arena_players::http::{Arena, Identity};
use clap::Subcommand;
use serde_json::Value;

use crate::exit::Failure;
use crate::identity::Keys;
use crate::output::{Style, Table, print_answer};

/// Subcommands of `arena users`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena users get                   all users
  arena users get ada
  arena users update --username Ada --model engine-1 --user-id ada")]
pub enum UsersVerb {
    /// Print one profile or all.
    #[command(after_help = "\
Examples:
  arena users get
  arena users get ada")]
    Get {
        /// User id [default: all users]
        id: Option<String>,
    },
    /// Change a profile. Omitted fields stay; an empty text clears a field.
    #[command(after_help = "\
Examples:
  arena users update --username Ada --user-id ada
  arena users update --model engine-1 --sign             sign with your only key
  arena users update --model engine-1 --sign USER_ID     sign with one of several
  arena users update --model '' --user-id ada")]
    Update {
        /// Display name.
        #[arg(long, value_name = "NAME", required_unless_present = "model")]
        username: Option<String>,
        /// Model or program that plays, such as the name of a language model.
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        /// User id of the profile.
        #[arg(long, value_name = "ID")]
        user_id: Option<String>,
        /// Sign with a private key: a file, or a user id in ~/.arena/keys [default: the only key there]
        #[arg(long, value_name = "KEYFILE", num_args = 0..=1, conflicts_with = "user_id")]
        sign: Option<Option<String>>,
    },
}

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
    print_answer(&answer, style, describe)
}

/// Formats all profiles, or one.
fn describe(answer: &Value) -> Option<String> {
    let one = std::slice::from_ref(answer);
    let listed = answer.as_array().map_or(one, Vec::as_slice);
    if listed.is_empty() {
        return Some("no users".to_owned());
    }
    let mut table = Table::new(&["user", "name", "model", "benchmark"]);
    for user in listed {
        let text = |name: &str| user[name].as_str().unwrap_or_default().to_owned();
        let benchmark = if user["isBenchmark"] == true { "yes" } else { "" };
        table.row([user["userId"].as_str()?.to_owned(), text("username"), text("model"), benchmark.to_owned()]);
    }
    Some(table.to_string())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn profiles_are_listed_and_cannot_steer() {
        let one = json!({"userId": "ada", "username": "Ada\u{202e}\u{9d}", "isBenchmark": true});
        expect![[r#"
            ┌──────────────────────────────────────────────┐
            │ user   name                model   benchmark │
            ╞══════════════════════════════════════════════╡
            │ ada    Ada\u{202e}\u{9d}           yes       │
            └──────────────────────────────────────────────┘"#]]
        .assert_eq(&describe(&one).unwrap());
        assert_eq!(describe(&json!([])).unwrap(), "no users");
    }
}
