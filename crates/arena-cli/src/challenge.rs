//! `arena challenge`: for those who write challenges. What is found wrong is found by `arena-check`; here it is looked for, and told.

mod check;
mod fairness;
mod find;
mod new;
mod play;
mod types;

use crate::args::ChallengeVerb;
use crate::exit::Failure;
use crate::output::Style;

/// Does what `arena challenge` was asked for.
pub fn run(verb: ChallengeVerb, style: Style) -> Result<(), Failure> {
    match verb {
        ChallengeVerb::New(args) => new::run(&args, style),
        ChallengeVerb::Check(args) => check::run(&args, style),
        ChallengeVerb::Play(args) => play::run(&args, style),
        ChallengeVerb::Fairness(args) => fairness::run(&args, style),
        ChallengeVerb::Types { out } => types::run(&out, style),
    }
}
