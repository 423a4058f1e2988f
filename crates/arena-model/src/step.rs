//! A player's step in a session.

/// A step of a player, which the rules or the chat may refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A chat message.
    Say {
        content: String,
        /// The public name of the recipient; all players if `None`.
        to: Option<String>,
    },
    /// A call of a method of the rules.
    Act { method: String, content: String },
}
