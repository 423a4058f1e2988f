//! Texts about a tournament's stop condition: a sequential test (SPRT), or a margin for all rating intervals.

use arena_ratings::{EloModel, Scores, SprtVerdict};
use arena_tournament::{Record, SequentialTest, Stop};
use serde_json::{Value, json};

/// Formats the state of a sequential test as lines in the style of chess runners; `None` without a test.
pub fn sequential_test(record: &Record) -> Option<String> {
    let sequential_test = record.schedule.sequential_test()?;
    let difference = versus(&sequential_test.scores()).unwrap_or_default();
    let state = sequential_test.state();
    Some(
        difference
            + &format!(
                "LLR: {:.2} ({:.2}, {:.2}) {}",
                state.llr,
                state.lower,
                state.upper,
                hypotheses(sequential_test)
            ),
    )
}

/// Formats the difference of two agents as lines in the style of chess runners; `None` before the first result.
pub fn versus(scores: &Scores) -> Option<String> {
    let difference = scores.difference()?;
    // Without scatter of the results, the normalized difference is undefined.
    let normalized = match (difference.normalised, difference.normalised_error) {
        (Some(normalized), Some(error)) => format!(", nElo: {} +/- {}", number(normalized), number(error)),
        _ => String::new(),
    };
    let elo = format!("Elo: {} +/- {}{normalized}\n", number(difference.elo), number(difference.elo_error()));
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

/// Returns the outcome of the stop condition in one sentence; `None` while games are left, or without a stop condition.
pub(crate) fn verdict(record: &Record) -> Option<String> {
    let schedule = &record.schedule;
    if !schedule.is_complete() {
        return None;
    }
    let games = schedule.games_played();
    if let Some(sequential_test) = schedule.sequential_test() {
        let [elo0, elo1] = sequential_test.sprt().hypotheses();
        let (first, second) = (record.name(0), record.name(1));
        let elo = match sequential_test.sprt().model() {
            EloModel::Normalized => "normalized Elo",
            EloModel::Logistic => "Elo",
        };
        let test = hypotheses(sequential_test);
        return Some(match sequential_test.state().verdict {
            SprtVerdict::AcceptH1 => {
                format!(
                    "SPRT {test}: H1 accepted after {games} games; {first} is more than {elo0} {elo} stronger than {second}"
                )
            }
            SprtVerdict::AcceptH0 => {
                format!(
                    "SPRT {test}: H0 accepted after {games} games; {first} is less than {elo1} {elo} stronger than {second}"
                )
            }
            SprtVerdict::Continue => {
                format!("SPRT {test}: undecided after {games} games, the maximum")
            }
        });
    }
    let (Some(Stop::Margin(margin)), Some(unsure)) = (record.plan.stop, schedule.unsure()) else { return None };
    let names: Vec<&str> = unsure.iter().map(|agent| record.name(*agent)).collect();
    let is_all_played = schedule.shape().games() == Some(games as u64);
    Some(match (names.is_empty(), is_all_played) {
        (true, _) => format!("every rating's 95 % interval is within ±{margin} Elo after {games} games"),
        (false, true) => format!(
            "after {games} games, the maximum, the 95 % intervals of these ratings are wider than ±{margin} Elo: {}",
            names.join(", ")
        ),
        (false, false) => format!(
            "every rating's 95 % interval is within ±{margin} Elo after {games} games, except those with an open side: {}",
            names.join(", ")
        ),
    })
}

/// Returns the stop condition and its state as JSON.
pub(crate) fn json(record: &Record) -> Option<Value> {
    let schedule = &record.schedule;
    let mut stop = json!(record.plan.stop?);
    if let Some(sequential_test) = schedule.sequential_test() {
        let test = &mut stop["sprt"];
        let (state, scores) = (sequential_test.state(), sequential_test.scores());
        test["llr"] = state.llr.into();
        test["lower"] = state.lower.into();
        test["upper"] = state.upper.into();
        test["verdict"] = json!(state.verdict);
        test["games"] = sequential_test.judged().into();
        test["counts"] = json!(scores);
        test["difference"] = json!(scores.difference());
    }
    if let Some(unsure) = schedule.unsure() {
        stop["unsure"] = unsure.iter().map(|agent| record.name(*agent)).collect();
    }
    Some(stop)
}

fn hypotheses(sequential_test: &SequentialTest) -> String {
    let [elo0, elo1] = sequential_test.sprt().hypotheses();
    format!("[{elo0:.2}, {elo1:.2}]")
}

/// Formats a number with two decimals, as chess runners do; a dash for NaN.
fn number(value: f64) -> String {
    if value.is_nan() { "-".to_owned() } else { format!("{value:.2}") }
}
