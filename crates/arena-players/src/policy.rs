//! The limits of a game in memory.

/// The order of the players' answers, and the limits that end a game without progress. No clock runs meanwhile, so all
/// limits are counts. An accepted action resets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayPolicy {
    /// True if all players of a round answer on the same state; false if each sees the steps of those before it.
    pub is_at_once: bool,
    /// The number of consecutive rounds without an action after which no more chat is awaited.
    pub idle_rounds: u32,
    /// The number of consecutive reminders without an action after which a game has stalled.
    pub reminders: u32,
    /// The number of consecutive deadlines without an action after which a game has stalled.
    pub deadlines: u32,
    /// The number of consecutive refusals after which a bot or program gets no more attempts without news.
    pub refusals: u32,
}

impl PlayPolicy {
    /// The policy of evaluations: the speed of a player is no advantage.
    pub const AT_ONCE: PlayPolicy = PlayPolicy {
        is_at_once: true,
        // 20 messages of each of two players that answer each other. Each further round is paid for, with the whole
        // conversation before it, and players that repeat themselves would chat until the limit of their answers.
        idle_rounds: 40,
        // A player may answer a reminder with another chat message.
        reminders: 3,
        // A deadline without answers costs nothing, but rules may set one after the other forever.
        deadlines: 1000,
        // A bot that draws actions at random may need several attempts for an accepted one.
        refusals: 20,
    };

    /// The policy of forks: messages have the order that a server would give them.
    pub const IN_TURN: PlayPolicy = PlayPolicy { is_at_once: false, ..PlayPolicy::AT_ONCE };
}
