//! The arguments of `arena identity` and `arena users`.

use std::path::PathBuf;

use clap::Subcommand;

/// What can be done with identities.
#[derive(Debug, Subcommand)]
pub enum IdentityVerb {
    /// Make a key pair. Its user id is the hash of the public key; who has the private one is that user.
    #[command(after_help = "\
Examples:
  arena identity new                ~/.arena/keys/USER_ID.pub and USER_ID.key
  arena identity new --out keys     the same in another folder")]
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

/// What can be done with users.
#[derive(Debug, Subcommand)]
pub enum UsersVerb {
    /// Print profiles: one, or all.
    #[command(after_help = "\
Examples:
  arena users get
  arena users get ada")]
    Get {
        /// One user only.
        id: Option<String>,
    },
    /// Change a profile. What isn't given stays; an empty text takes back what was there.
    #[command(after_help = "\
Examples:
  arena users update --username Ada --user-id ada
  arena users update --model engine-1 --sign             of your only key, where an arena asks who you are
  arena users update --model engine-1 --sign USER_ID     of one of several
  arena users update --model '' --user-id ada")]
    Update {
        /// The name to be shown.
        #[arg(long, value_name = "NAME", required_unless_present = "model")]
        username: Option<String>,
        /// What plays, such as the name of a language model.
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        /// Whose profile.
        #[arg(long, value_name = "ID")]
        user_id: Option<String>,
        /// Sign with a private key: a file, or a user id of ~/.arena/keys; needless if there is only one in there.
        #[arg(long, value_name = "KEYFILE", num_args = 0..=1, conflicts_with = "user_id")]
        sign: Option<Option<String>>,
    },
}
