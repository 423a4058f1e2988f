//! Pairing formats of tournaments. Each format has a file in `schedule/` and a line in the table below. Its
//! [`FormatInfo`] contains the name, the help text, the number of meetings and the constructor of the scheduler. A
//! *meeting* is the games of one set of agents with one seed; see [`Shape`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::schedule::{Scheduler, adaptive, fixed, knockout, league, swiss};
use crate::shape::{Shape, ShapeError};

pub struct FormatInfo {
    /// The name in files and arguments.
    pub name: &'static str,
    /// The help text: the pairings in one line.
    pub help: &'static str,
    /// The plural word for this format's rounds in report titles.
    pub rounds: &'static str,
    /// True if ratings decide the pairings. Such a tournament has a total number of meetings instead of rounds, and can
    /// stop when every rating interval is narrow enough.
    pub is_adaptive: bool,
    /// True if the format supports only games of two agents.
    pub(crate) is_of_pairs: bool,
    /// The default number of rounds for a number of agents.
    pub(crate) usual_rounds: fn(usize) -> usize,
    /// The number of meetings in a round; `None` if the number overflows.
    pub(crate) meetings: fn(&Shape) -> Option<u64>,
    /// The checks of the shape that apply to this format only.
    pub(crate) check: fn(&Shape) -> Result<(), ShapeError>,
    /// The constructor of the scheduler. Its second argument is the agents in the random order of the draw. `None` for
    /// an open-ended format, which has a [`crate::League`] instead of a schedule.
    pub(crate) start: Option<Start>,
}

type Start = fn(&Shape, Vec<usize>) -> Box<dyn Scheduler>;

macro_rules! formats {
    ($($(#[doc = $doc:literal])* $format:ident = $info:path,)*) => {
        /// A pairing format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Format {
            $($(#[doc = $doc])* $format,)*
        }

        impl Format {
            /// All formats.
            pub const ALL: &[Format] = &[$(Format::$format),*];

            /// Returns the format's properties.
            pub fn info(self) -> &'static FormatInfo {
                match self {
                    $(Format::$format => &$info,)*
                }
            }
        }
    };
}

formats! {
    /// Every agent plays every other agent; in games of more than two seats, every set of agents plays.
    RoundRobin = fixed::ROUND_ROBIN,
    /// The first agent plays every other agent; every game includes the first agent.
    Gauntlet = fixed::GAUNTLET,
    /// Agents with similar points play each other, without rematches if possible.
    Swiss = swiss::SWISS,
    /// Single elimination.
    Knockout = knockout::KNOCKOUT,
    /// Each pairing is the one that is expected to narrow the widest rating interval most.
    Adaptive = adaptive::ADAPTIVE,
    /// Open-ended: agents join and leave, and the agent with the most uncertain rating plays next.
    League = league::LEAGUE,
}

impl Format {
    /// Returns the name in files and arguments.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    pub fn find(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Returns true if the format has no last game, and agents may join and leave.
    pub fn is_open_ended(self) -> bool {
        self.info().start.is_none()
    }

    pub fn usual_rounds(self, agents: usize) -> usize {
        (self.info().usual_rounds)(agents)
    }

    /// Returns the default limit of rounds for tournaments with a stop condition, which usually end earlier.
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
    fn formats_have_the_same_name_in_files_and_arguments() {
        for &format in Format::ALL {
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
            assert_eq!(Format::find(format.name()), Some(format));
        }
    }
}
