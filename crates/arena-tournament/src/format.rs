//! The formats of tournaments. A format is a file in `schedule/`, and a line in the list below: its name in files and arguments, its
//! help, its size and its scheduler all come from there.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::schedule::{Scheduler, adaptive, fixed, knockout, swiss};
use crate::shape::{Shape, ShapeError};

/// The properties of a format.
pub struct FormatInfo {
    /// Its name in files and arguments.
    pub name: &'static str,
    /// Its pairings, in a sentence.
    pub help: &'static str,
    /// The word for several rounds in a title.
    pub rounds: &'static str,
    /// True if pairings are chosen by ratings, so that a tournament has a number of games rather than of rounds, and may end by them.
    pub is_adaptive: bool,
    /// True if all its games are of two agents.
    pub(crate) is_of_pairs: bool,
    /// The usual number of rounds among so many agents.
    pub(crate) usual_rounds: fn(usize) -> usize,
    /// The number of meetings in a round, or `None` beyond all numbers.
    pub(crate) meetings: fn(&Shape) -> Option<u64>,
    /// Refuses shapes that other formats may have.
    pub(crate) check: fn(&Shape) -> Result<(), ShapeError>,
    /// The scheduler before the first pairing, for agents in this order, which was drawn.
    pub(crate) start: fn(&Shape, Vec<usize>) -> Box<dyn Scheduler>,
}

macro_rules! formats {
    ($($(#[doc = $doc:literal])* $format:ident = $info:path,)*) => {
        /// A format of tournaments: the rule for pairings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Format {
            $($(#[doc = $doc])* $format,)*
        }

        impl Format {
            /// All of them.
            pub const ALL: &[Format] = &[$(Format::$format),*];

            /// Its properties.
            pub fn info(self) -> &'static FormatInfo {
                match self {
                    $(Format::$format => &$info,)*
                }
            }
        }
    };
}

formats! {
    /// Everybody meets everybody; in games of more than two seats, all sets of so many agents meet.
    RoundRobin = fixed::ROUND_ROBIN,
    /// The first agent meets all others, who don't meet without it.
    Gauntlet = fixed::GAUNTLET,
    /// Agents of about equal points meet, nobody twice if that can be helped.
    Swiss = swiss::SWISS,
    /// The loser is out.
    Knockout = knockout::KNOCKOUT,
    /// Pairings are those whose games tell most about the ratings that are least sure.
    Adaptive = adaptive::ADAPTIVE,
}

impl Format {
    /// Its name in files and arguments.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The format of this name.
    pub fn find(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// The usual number of rounds among so many agents.
    pub fn usual_rounds(self, agents: usize) -> usize {
        (self.info().usual_rounds)(agents)
    }

    /// The usual number where something else is to end it: more than are played as a rule.
    pub fn many_rounds(self, agents: usize) -> usize {
        if self.info().is_adaptive { 1_000 * agents } else { 10_000 }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_called_the_same_everywhere() {
        for &format in Format::ALL {
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
            assert_eq!(Format::find(format.name()), Some(format));
        }
    }
}
