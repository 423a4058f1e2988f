//! How long a tournament goes on, as the user asked for it.

use arena_ratings::{EloModel, Sprt};
use arena_tournament::{Format, Stop};

use crate::args::{SprtPart, TournamentArgs};
use crate::exit::{Exit, Failure};
use crate::output;

/// What ends it before its last game, if anything does.
pub fn stop(args: &TournamentArgs) -> Result<Option<Stop>, Failure> {
    match (&args.sprt[..], args.until_margin) {
        ([], None) => Ok(None),
        ([], Some(margin)) => Ok(Some(Stop::Margin(margin))),
        (parts, None) => sprt(parts).map(|sprt| Some(Stop::Sprt(sprt))),
        (_, Some(_)) => Err(usage(
            "--sprt is for a round robin of two agents and --until-margin for --format adaptive; give one of them",
        )),
    }
}

/// How many rounds it has, as its shape counts them, where a meeting is so many games.
pub fn rounds(
    args: &TournamentArgs,
    format: Format,
    agents: usize,
    games_a_meeting: usize,
    stop: Option<Stop>,
) -> Result<usize, Failure> {
    let rounds = match (format.info().is_adaptive, args.rounds, args.games) {
        (true, Some(_), _) => {
            return Err(usage("an adaptive tournament has no rounds; --games N says how many games it has"));
        }
        (true, None, Some(games)) if (games as usize) < games_a_meeting => {
            return Err(usage(format_args!(
                "a meeting is {games_a_meeting} games, and --games {games} is less; --no-pairs makes it a single game"
            )));
        }
        (true, None, games) => games.map(|games| games as usize / games_a_meeting),
        (false, _, Some(_)) => {
            return Err(usage(format_args!("--games is for --format adaptive; a {format} has --rounds")));
        }
        (false, rounds, None) => rounds.map(|rounds| rounds as usize),
    };
    let usual = || if stop.is_some() { format.many_rounds(agents) } else { format.usual_rounds(agents) };
    Ok(rounds.unwrap_or_else(usual))
}

/// Says so where less is played than was asked for, as it isn't a whole number of meetings.
pub fn tell_rounded(args: &TournamentArgs, games_a_meeting: usize) {
    let Some(asked) = args.games.map(|games| games as usize) else { return };
    let games = asked - asked % games_a_meeting;
    if games < asked {
        output::note(&format!(
            "a meeting is {games_a_meeting} games, so {games} are played at most, and not {asked}; --no-pairs makes it a single game"
        ));
    }
}

fn sprt(parts: &[SprtPart]) -> Result<Sprt, Failure> {
    let (mut elo0, mut elo1, mut alpha, mut beta, mut model) = (None, None, None, None, None);
    for part in parts {
        let before = match *part {
            SprtPart::Elo0(value) => elo0.replace(value).is_some(),
            SprtPart::Elo1(value) => elo1.replace(value).is_some(),
            SprtPart::Alpha(value) => alpha.replace(value).is_some(),
            SprtPart::Beta(value) => beta.replace(value).is_some(),
            SprtPart::Model(value) => model.replace(value).is_some(),
        };
        if before {
            return Err(usage("--sprt has each of elo0, elo1, alpha, beta and model once"));
        }
    }
    let (Some(elo0), Some(elo1)) = (elo0, elo1) else {
        return Err(usage("--sprt needs both hypotheses, as in elo0=0 elo1=5"));
    };
    let rate = |rate: Option<f64>| rate.unwrap_or(0.05);
    Sprt::new(elo0, elo1, rate(alpha), rate(beta), model.unwrap_or(EloModel::default())).map_err(usage)
}

fn usage(sentence: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, sentence)
}
