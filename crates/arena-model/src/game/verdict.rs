//! Verdicts: the causes of disqualifications.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// The agent's process didn't start, or ended before the first request.
    StartupFail,
    /// The agent didn't answer a `ping` with a `pong`.
    PingFail,
    /// The agent answered `set_agent_id` with another id. Only older results have this verdict; such an
    /// answer is a fault now.
    SetAgentIdFail,
    /// Too many replies lacked `agent_id`.
    MissingAgentId,
    AgentIdSpoofing,
    /// Too many lines weren't replies: not UTF-8, not JSON, not an object, or with an id that no player has.
    TooManyErrors,
    Timeout,
    /// The agent's process ended, or closed its output, during the match.
    Crashed,
    /// The agent exceeded the limit of a line, of unrequested output, or of its log.
    OutputLimit,
    MemoryLimit,
    IllegalMove,
    /// The agent did nothing although the game waited for it.
    NoAction,
}

impl Verdict {
    pub const ALL: [Verdict; 12] = [
        Verdict::StartupFail,
        Verdict::PingFail,
        Verdict::SetAgentIdFail,
        Verdict::MissingAgentId,
        Verdict::AgentIdSpoofing,
        Verdict::TooManyErrors,
        Verdict::Timeout,
        Verdict::Crashed,
        Verdict::OutputLimit,
        Verdict::MemoryLimit,
        Verdict::IllegalMove,
        Verdict::NoAction,
    ];

    /// Returns the name on the wire, such as `TIMEOUT`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::StartupFail => "STARTUP_FAIL",
            Verdict::PingFail => "PING_FAIL",
            Verdict::SetAgentIdFail => "SET_AGENT_ID_FAIL",
            Verdict::MissingAgentId => "MISSING_AGENT_ID",
            Verdict::AgentIdSpoofing => "AGENT_ID_SPOOFING",
            Verdict::TooManyErrors => "TOO_MANY_ERRORS",
            Verdict::Timeout => "TIMEOUT",
            Verdict::Crashed => "CRASHED",
            Verdict::OutputLimit => "OUTPUT_LIMIT",
            Verdict::MemoryLimit => "MEMORY_LIMIT",
            Verdict::IllegalMove => "ILLEGAL_MOVE",
            Verdict::NoAction => "NO_ACTION",
        }
    }

    /// Returns the reason as a clause about the agent, such as `it exceeded its time limit`.
    pub fn in_words(self) -> &'static str {
        match self {
            Verdict::StartupFail => "its program didn't start",
            Verdict::PingFail => "it didn't answer the check before the game",
            Verdict::SetAgentIdFail => "it answered with another id",
            Verdict::MissingAgentId => "too many replies lacked its id",
            Verdict::AgentIdSpoofing => "it used another player's id",
            Verdict::TooManyErrors => "too many lines weren't valid replies",
            Verdict::Timeout => "it exceeded its time limit",
            Verdict::Crashed => "its program ended during the game",
            Verdict::OutputLimit => "it wrote more than the output limit",
            Verdict::MemoryLimit => "it exceeded its memory limit",
            Verdict::IllegalMove => "it made a move that the rules forbid",
            Verdict::NoAction => "it didn't move when the game waited for it",
        }
    }

    /// Returns true if the agent broke a rule of the game, and false if it broke a rule of the protocol.
    pub fn is_of_the_game(self) -> bool {
        matches!(self, Verdict::IllegalMove | Verdict::NoAction)
    }

    /// If true, the `stop` message to the agent has the reason `cheating_detected`.
    pub fn is_cheating(self) -> bool {
        self == Verdict::AgentIdSpoofing
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_called_the_same_everywhere() {
        for verdict in Verdict::ALL {
            let json = serde_json::to_string(&verdict).unwrap();
            assert_eq!(json, format!("\"{verdict}\""));
            assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict);
        }
    }
}
