//! What ends a tournament before all of its games are played: how far that is, and what it came to.

use arena_ratings::{EloModel, Scores, SprtVerdict};
use arena_tournament::{Record, Stop, Trial};
use serde_json::{Value, json};

/// How a sequential test stands, as chess runners write it, in several lines; `None` without a test.
pub fn trial(record: &Record) -> Option<String> {
    let trial = record.schedule.trial()?;
    let told = versus(&trial.scores()).unwrap_or_default();
    let state = trial.state();
    Some(told + &format!("LLR: {:.2} ({:.2}, {:.2}) {}", state.llr, state.lower, state.upper, hypotheses(trial)))
}

/// What a match of two came to, as chess runners write it, in lines; `None` before the first result.
pub fn versus(scores: &Scores) -> Option<String> {
    let difference = scores.difference()?;
    // Nothing is known of it where results don't scatter.
    let normalised = match (difference.normalised, difference.normalised_error) {
        (Some(normalised), Some(error)) => format!(", nElo: {} +/- {}", number(normalised), number(error)),
        _ => String::new(),
    };
    let elo = format!("Elo: {} +/- {}{normalised}\n", number(difference.elo), number(difference.elo_error()));
    let superior = 100.0 * difference.likelihood_of_superiority;
    let counts = match *scores {
        Scores::Pentanomial(counts @ [ll, ld, equal, wd, ww]) => {
            let drawn = 100.0 * equal as f64 / (ll + ld + equal + wd + ww) as f64;
            let pairs = number((wd + ww) as f64 / (ll + ld) as f64);
            format!("LOS: {superior:.2} %, DrawRatio: {drawn:.2} %, PairsRatio: {pairs}\nPtnml(0-2): {counts:?}\n")
        }
        Scores::Trinomial([losses, draws, wins]) => {
            let games = losses + draws + wins;
            let drawn = 100.0 * draws as f64 / games as f64;
            format!(
                "LOS: {superior:.2} %, DrawRatio: {drawn:.2} %\nGames: {games}, Wins: {wins}, Losses: {losses}, Draws: {draws}\n"
            )
        }
    };
    Some(elo + &counts)
}

/// What it came to, in a sentence, if it is there to be told.
pub(crate) fn verdict(record: &Record) -> Option<String> {
    let schedule = &record.schedule;
    if !schedule.is_complete() {
        return None;
    }
    let games = schedule.games_played();
    if let Some(trial) = schedule.trial() {
        let [elo0, elo1] = trial.sprt().hypotheses();
        let (first, second) = (record.name(0), record.name(1));
        let elo = match trial.sprt().model() {
            EloModel::Normalized => "normalised Elo",
            EloModel::Logistic => "Elo",
        };
        let test = hypotheses(trial);
        return Some(match trial.state().verdict {
            SprtVerdict::AcceptH1 => {
                format!(
                    "SPRT {test}: H1 was accepted after {games} games: {first} is more than {elo0} {elo} above {second}"
                )
            }
            SprtVerdict::AcceptH0 => {
                format!(
                    "SPRT {test}: H0 was accepted after {games} games: {first} is less than {elo1} {elo} above {second}"
                )
            }
            SprtVerdict::Continue => {
                format!("SPRT {test}: undecided after {games} games, which is as many as there may be")
            }
        });
    }
    let (Some(Stop::Margin(margin)), Some(unsure)) = (record.plan.stop, schedule.unsure()) else { return None };
    let names: Vec<&str> = unsure.iter().map(|agent| record.name(*agent)).collect();
    let is_all_played = schedule.shape().games() == Some(games as u64);
    Some(match (names.is_empty(), is_all_played) {
        (true, _) => format!("all ratings are sure to ±{margin} Elo after {games} games"),
        (false, true) => format!(
            "after {games} games, which is as many as there may be, these ratings aren't sure to ±{margin} Elo: {}",
            names.join(", ")
        ),
        (false, false) => format!(
            "all ratings are sure to ±{margin} Elo after {games} games, but for those that no result bounds on one side: {}",
            names.join(", ")
        ),
    })
}

/// What ends it, and how far that is, for other programs.
pub(crate) fn json(record: &Record) -> Option<Value> {
    let schedule = &record.schedule;
    let mut told = json!(record.plan.stop?);
    if let Some(trial) = schedule.trial() {
        let test = &mut told["sprt"];
        let (state, scores) = (trial.state(), trial.scores());
        test["llr"] = state.llr.into();
        test["lower"] = state.lower.into();
        test["upper"] = state.upper.into();
        test["verdict"] = json!(state.verdict);
        test["games"] = trial.judged().into();
        test["counts"] = json!(scores);
        test["difference"] = json!(scores.difference());
    }
    if let Some(unsure) = schedule.unsure() {
        told["unsure"] = unsure.iter().map(|agent| record.name(*agent)).collect();
    }
    Some(told)
}

fn hypotheses(trial: &Trial) -> String {
    let [elo0, elo1] = trial.sprt().hypotheses();
    format!("[{elo0:.2}, {elo1:.2}]")
}

/// Two digits behind the point, as chess runners write it; a dash where there is no number.
fn number(value: f64) -> String {
    if value.is_nan() { "-".to_owned() } else { format!("{value:.2}") }
}
