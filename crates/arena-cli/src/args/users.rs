//! Arguments of `arena identity` and `arena users`.

use std::path::PathBuf;

use clap::Subcommand;

/// Subcommands of `arena identity`.
#[derive(Debug, Subcommand)]
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

/// Subcommands of `arena users`.
#[derive(Debug, Subcommand)]
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
