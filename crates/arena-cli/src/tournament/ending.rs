//! The length of a tournament: its rounds, games and stopping rule.

use arena_ratings::{EloModel, Sprt};
use arena_tournament::Stop;

use super::args::{ResumeArgs, SprtPart, TournamentArgs};
use crate::exit::Failure;
use crate::output;

const ONLY_LEAGUE: &str = "--for, and limits of a resumed run, are for leagues (--format league)";

pub fn stop(args: &TournamentArgs) -> Result<Option<Stop>, Failure> {
    if args.format.is_open_ended() {
        return match (args.rounds, &args.sprt[..]) {
            (None, []) => Ok(None),
            _ => Err(Failure::usage(
                "a league has neither --rounds nor --sprt; limit a run with --games, --for or --until-margin",
            )),
        };
    }
    if args.time.is_some() {
        return Err(Failure::usage(ONLY_LEAGUE));
    }
    match (&args.sprt[..], args.until_margin) {
        ([], None) => Ok(None),
        ([], Some(margin)) => Ok(Some(Stop::Margin(margin))),
        (parts, None) => sprt(parts).map(|sprt| Some(Stop::Sprt(sprt))),
        (_, Some(_)) => Err(Failure::usage(
            "--sprt and --until-margin exclude each other: --sprt needs two agents, --until-margin needs --format adaptive",
        )),
    }
}

/// Refuses the limits of a league's run for another tournament.
pub fn check_resume(args: &ResumeArgs) -> Result<(), Failure> {
    match (args.games, args.time, args.until_margin) {
        (None, None, None) => Ok(()),
        _ => Err(Failure::usage(ONLY_LEAGUE)),
    }
}

/// Returns the number of rounds, in the format's unit, where a pairing has `games_of_pairing` games.
pub fn rounds(
    args: &TournamentArgs,
    agents: usize,
    games_of_pairing: usize,
    stop: Option<Stop>,
) -> Result<usize, Failure> {
    let format = args.format;
    if format.is_open_ended() {
        return Ok(0);
    }
    let rounds = match (format.info().is_adaptive, args.rounds, args.games) {
        (true, Some(_), _) => {
            return Err(Failure::usage("an adaptive tournament has no rounds; use --games N"));
        }
        (true, None, Some(games)) if (games as usize) < games_of_pairing => {
            return Err(Failure::usage(format_args!(
                "a pairing is {games_of_pairing} games, but --games is {games}; use --no-pairs for single games"
            )));
        }
        (true, None, games) => games.map(|games| games as usize / games_of_pairing),
        (false, _, Some(_)) => {
            return Err(Failure::usage(format_args!("--games needs --format adaptive; for {format} use --rounds")));
        }
        (false, rounds, None) => rounds.map(|rounds| rounds as usize),
    };
    let usual = || if stop.is_some() { format.many_rounds(agents) } else { format.usual_rounds(agents) };
    Ok(rounds.unwrap_or_else(usual))
}

/// Prints a note if the number of games isn't a whole number of pairings.
pub fn note_rounded(args: &TournamentArgs, games_of_pairing: usize) {
    let Some(asked) = args.games.map(|games| games as usize).filter(|_| !args.format.is_open_ended()) else { return };
    let games = asked - asked % games_of_pairing;
    if games < asked {
        output::note(&format!(
            "a pairing is {games_of_pairing} games, so at most {games} of {asked} games are played; use --no-pairs for single games"
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
            return Err(Failure::usage("--sprt accepts each of elo0, elo1, alpha, beta and model once"));
        }
    }
    let (Some(elo0), Some(elo1)) = (elo0, elo1) else {
        return Err(Failure::usage("--sprt needs both hypotheses, as in elo0=0 elo1=5"));
    };
    let rate = |rate: Option<f64>| rate.unwrap_or(0.05);
    Sprt::new(elo0, elo1, rate(alpha), rate(beta), model.unwrap_or(EloModel::default())).map_err(Failure::usage)
}
