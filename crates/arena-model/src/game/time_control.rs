//! Time controls: the clocks of board games, in the notation of chess programs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::TimeLimits;

/// The longest time, in milliseconds: a day.
const MAX_MS: u64 = 86_400_000;

/// The time control of an agent, which replaces the time limits of the match for this agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TimeControl {
    /// A clock for several moves.
    Clock {
        /// The time on the clock at the start, in milliseconds.
        base_ms: u64,
        /// The time that is added after each move, in milliseconds.
        increment_ms: u64,
        /// The number of moves after which the base time is added again; 0 for a clock of the whole game.
        moves: u32,
    },
    /// A fixed time for each move, in milliseconds.
    Move(u64),
}

/// The error for a text that isn't a time control, as shown to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected seconds with an increment, such as 10+0.1; moves and seconds, such as 40/60 or 40/60+0.5; inf for no clock; or st=SECONDS for a fixed time per move"
)]
pub struct TimeControlError;

impl TimeControl {
    /// Creates a fixed time for each move. Returns `None` for a time that isn't positive, or longer than a day.
    pub fn of_move(seconds: &str) -> Option<TimeControl> {
        parse_ms(seconds).filter(|ms| *ms > 0).map(TimeControl::Move)
    }

    /// Returns the time limits that an agent has at the start.
    pub fn limits(self) -> TimeLimits {
        match self {
            TimeControl::Clock { base_ms, .. } => TimeLimits { step_ms: 0, bank_ms: base_ms },
            TimeControl::Move(ms) => TimeLimits { step_ms: ms, bank_ms: 0 },
        }
    }

    /// Returns the value of the tag `TimeControl` in PGN.
    pub fn pgn(self) -> String {
        match self {
            TimeControl::Clock { .. } => self.to_string(),
            TimeControl::Move(ms) => format!("1/{}", seconds(ms)),
        }
    }
}

impl FromStr for TimeControl {
    type Err = TimeControlError;

    fn from_str(text: &str) -> Result<TimeControl, TimeControlError> {
        if let Some(seconds) = text.strip_prefix("st=") {
            return TimeControl::of_move(seconds).ok_or(TimeControlError);
        }
        if text == "inf" {
            // A match must end.
            return Ok(TimeControl::Move(MAX_MS));
        }
        let (moves, rest) = match text.split_once('/') {
            Some((moves, rest)) => (moves.parse().map_err(|_| TimeControlError)?, rest),
            None => (0, text),
        };
        let (base, increment) = rest.split_once('+').unwrap_or((rest, "0"));
        let base_ms = match base.split_once(':') {
            None => parse_ms(base),
            Some((minutes, seconds)) => {
                let minutes = minutes.parse::<u64>().ok().and_then(|minutes| minutes.checked_mul(60_000));
                minutes.zip(parse_ms(seconds)).and_then(|(minutes, rest)| minutes.checked_add(rest))
            }
        };
        let base_ms = base_ms.filter(|ms| (1..=MAX_MS).contains(ms)).ok_or(TimeControlError)?;
        let increment_ms = parse_ms(increment).ok_or(TimeControlError)?;
        Ok(TimeControl::Clock { base_ms, increment_ms, moves })
    }
}

/// Parses seconds with up to three decimal places.
fn parse_ms(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if text.is_empty() || text == "." || !is_number(whole) || !is_number(part) || part.len() > 3 {
        return None;
    }
    let seconds = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let ms = format!("{part:0<3}").parse::<u64>().ok()?;
    seconds.checked_mul(1000)?.checked_add(ms).filter(|ms| *ms <= MAX_MS)
}

/// Formats milliseconds as seconds without superfluous digits.
fn seconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl fmt::Display for TimeControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TimeControl::Move(ms) => write!(f, "st={}", seconds(ms)),
            TimeControl::Clock { base_ms, increment_ms, moves } => {
                if moves > 0 {
                    write!(f, "{moves}/")?;
                }
                f.write_str(&seconds(base_ms))?;
                if increment_ms > 0 {
                    write!(f, "+{}", seconds(increment_ms))?;
                }
                Ok(())
            }
        }
    }
}

impl TryFrom<String> for TimeControl {
    type Error = TimeControlError;

    fn try_from(text: String) -> Result<TimeControl, TimeControlError> {
        text.parse()
    }
}

impl From<TimeControl> for String {
    fn from(control: TimeControl) -> String {
        control.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notation_of_chess_programs() {
        for (text, expected) in [
            ("10+0.1", TimeControl::Clock { base_ms: 10_000, increment_ms: 100, moves: 0 }),
            ("40/60", TimeControl::Clock { base_ms: 60_000, increment_ms: 0, moves: 40 }),
            ("40/60+0.5", TimeControl::Clock { base_ms: 60_000, increment_ms: 500, moves: 40 }),
            ("0.5", TimeControl::Clock { base_ms: 500, increment_ms: 0, moves: 0 }),
            ("st=0.25", TimeControl::Move(250)),
            ("st=5", TimeControl::Move(5000)),
        ] {
            assert_eq!(text.parse(), Ok(expected));
            assert_eq!(expected.to_string(), text);
        }
        assert_eq!("1:30+.5".parse(), "90+0.5".parse::<TimeControl>());
        assert_eq!("10+0".parse::<TimeControl>().unwrap().to_string(), "10");
        assert_eq!("st=5".parse::<TimeControl>().unwrap().pgn(), "1/5");
        // No moves before the base time is added again: a clock for the whole game.
        assert_eq!("0/10+0.1".parse(), "10+0.1".parse::<TimeControl>());
        assert_eq!("inf".parse(), Ok(TimeControl::Move(MAX_MS)));
        let invalid = " + 0 -1/10 infinity -1 1e3 10+ 10+-1 x/5 st=0 st= 5/ 1: :5 86401 1.2345 10+0.1+1 \
            99999999999999999999 9999999999999999:1";
        for text in invalid.split(' ') {
            assert_eq!(text.parse::<TimeControl>(), Err(TimeControlError), "{text}");
        }
    }
}
