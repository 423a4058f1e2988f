//! Verdicts: why an agent was disqualified, one for each cause.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why an agent was disqualified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// Its process didn't start, or ended before it was asked anything.
    StartupFail,
    /// It didn't answer a `ping` with a `pong`.
    PingFail,
    /// It answered `set_agent_id` with another id. Older results have it; such an answer is a fault now.
    SetAgentIdFail,
    /// It kept leaving `agent_id` out of its replies.
    MissingAgentId,
    /// It used the id of another player of the match.
    AgentIdSpoofing,
    /// It kept sending what isn't a reply: not JSON, not an object, not UTF-8, or for an id that no player has.
    TooManyErrors,
    /// It used up its time.
    Timeout,
    /// Its process ended, or closed its output, during the match.
    Crashed,
    /// It wrote a line, or logs, beyond all bounds.
    OutputLimit,
    /// It took more memory than it may.
    MemoryLimit,
    /// It made a move that the rules forbid.
    IllegalMove,
    /// The game waited for it and it did nothing.
    NoAction,
}

impl Verdict {
    /// All of them.
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

    /// Its name on the wire: `TIMEOUT`.
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

    /// Whether it is the game's rules that speak, rather than the protocol's.
    pub fn is_of_the_game(self) -> bool {
        matches!(self, Verdict::IllegalMove | Verdict::NoAction)
    }

    /// Whether it is cheating rather than a failure: the `stop` message says so.
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
