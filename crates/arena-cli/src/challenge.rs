//! `arena author`: tools for authors of challenges and strategies. The checks of challenges are in `arena-check`.

mod check;
mod fairness;
mod find;
mod new;
mod play;
mod strategy;
mod types;

use crate::args::ChallengeVerb;
use crate::exit::Failure;
use crate::output::Style;

pub fn run(verb: ChallengeVerb, style: Style) -> Result<(), Failure> {
    match verb {
        ChallengeVerb::New(args) if args.scoring => strategy::create(&args.folder, style),
        ChallengeVerb::New(args) => new::run(&args, style),
        ChallengeVerb::Check(args) if strategy::is_folder(&args.challenge) => strategy::check(&args, style),
        ChallengeVerb::Check(args) => check::run(&args, style),
        ChallengeVerb::Play(args) => play::run(&args, style),
        ChallengeVerb::Fairness(args) => fairness::run(&args, style),
        ChallengeVerb::Types { out } => types::run(&out, style),
    }
}
