//! `arena author fairness`: the seats' fairness, measured by matches in which each deal is played from all seats.

use std::sync::atomic::Ordering;

use arena_match::{Agent, MatchPlan, SeatedAgent, cores, play_match, spread};
use arena_model::{MatchResult, Seed};
use arena_ratings::Mean;
use serde_json::{Map, Value, json};

use super::find::find;
use crate::args::FairnessArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::settings::{self, confinement, draw_seed, find_agent};
use crate::matches::{explain, files};
use crate::output::{Style, Table, counted, note, print};

/// The seats' mean scores of one deal; `None` if a match of it doesn't count.
type Deal = Option<Vec<f64>>;

/// Plays the deals and prints each seat's gain.
pub fn run(args: &FairnessArgs, style: Style) -> Result<(), Failure> {
    let found = find(&args.challenge, &Map::new())?;
    let game = found.game();
    let options: Map<String, Value> = args.options.iter().cloned().collect();
    let wanted = options.get("players").and_then(Value::as_u64).map(|players| players as usize);
    let seats = wanted.unwrap_or(found.challenge.metadata().players);
    if seats < 2 {
        return Err(Failure::new(Exit::Usage, "a challenge for one player has no seats to compare"));
    }
    if args.agents.len() > seats {
        let given = args.agents.len();
        return Err(Failure::new(
            Exit::Usage,
            format_args!("too many agents: {given} given, but the challenge has {seats} seats"),
        ));
    }
    settings::try_start(game, &options, seats)?;
    let mut agents: Vec<Agent> = args.agents.iter().map(|agent| find_agent(agent)).collect::<Result<_, _>>()?;
    settings::print_notes(&agents);
    settings::make_names_unique(&mut agents);
    let seed = match &args.seed {
        Some(seed) => seed.clone(),
        None => draw_seed()?,
    };
    let confinement = confinement(&args.sandbox)?;
    files::allow(args.games.min(args.concurrency) as usize, seats)?;
    let called_off = interrupt::flag()?;
    // The number of rotations per deal: after this number, every agent is back on its first seat.
    let shifts = agents.len();
    let play = |number: usize| -> Result<MatchResult<SeatedAgent>, Failure> {
        let (deal, shift) = (number / shifts, number % shifts);
        let plan = MatchPlan {
            game,
            options: &options,
            seed: seed.derive(&format!("deal {deal}")),
            limits: game.limits,
            agents: (0..seats).map(|seat| &agents[(seat + shift) % agents.len()]).collect(),
            confinement: &confinement,
            adjudication: None,
        };
        play_match(&plan, None, None, &called_off).map(|played_match| played_match.result).map_err(explain)
    };
    let mut deals: Vec<Deal> = vec![Some(vec![0.0; seats]); args.games as usize];
    let (mut lost, mut unended, mut end) = (None, 0, Ok(()));
    spread(deals.len() * shifts, args.concurrency as usize, &cores(), play, |number, result| {
        let deal = &mut deals[number / shifts];
        match result {
            Ok(result) => {
                if let Some(out) = result.seats.iter().find(|seat| seat.verdict.is_some()) {
                    lost.get_or_insert_with(|| {
                        format!("{} was disqualified: {}", out.agent.name, out.detail.clone().unwrap_or_default())
                    });
                    *deal = None;
                }
                unended += usize::from(result.outcome.termination != "GAME_ENDED");
                if let Some(sums) = deal {
                    for (sum, seat) in sums.iter_mut().zip(&result.seats) {
                        *sum += seat.score / shifts as f64;
                    }
                }
            }
            Err(failure) if end.is_ok() => {
                called_off.store(true, Ordering::Relaxed);
                end = Err(failure);
            }
            // Later failures are ignored, since they follow from the first one.
            Err(_) => {}
        }
        end.is_ok()
    });
    end?;
    let complete: Vec<Vec<f64>> = deals.into_iter().flatten().collect();
    if complete.len() < 2 {
        let why = lost.unwrap_or_default();
        return Err(Failure::new(
            Exit::FaultyAgent,
            format_args!("cannot compare the seats: fewer than two deals count ({why})"),
        ));
    }
    if let Some(why) = lost {
        note(&format!("deals with a disqualified agent don't count ({why})"));
    }
    if unended > 0 {
        let matches = counted(unended as u64, "match", "matches");
        note(&format!("the challenge's rules didn't end {matches}; there every seat scores 0"));
    }
    print_gains(found.challenge.id(), &complete, seats, args.max_bias, &seed, style)
}

/// Prints each seat's score and gain over the other seats. Fails if a gain is significantly beyond `max_bias`.
fn print_gains(
    name: &str,
    deals: &[Vec<f64>],
    seats: usize,
    max_bias: f64,
    seed: &Seed,
    style: Style,
) -> Result<(), Failure> {
    // The number of comparisons: one for two seats, otherwise one for each seat. The intervals hold for all comparisons
    // together.
    let questions = if seats == 2 { 1 } else { seats };
    let mean_of = |value: &dyn Fn(&[f64]) -> f64, questions| {
        let values: Vec<f64> = deals.iter().map(|deal| value(deal)).collect();
        Mean::of(&values, questions).expect("at least two deals count")
    };
    let gain = |seat: usize| {
        move |deal: &[f64]| {
            let others = deal.iter().sum::<f64>() - deal[seat];
            deal[seat] - others / (deal.len() - 1) as f64
        }
    };
    let scores: Vec<Mean> = (0..seats).map(|seat| mean_of(&|deal| deal[seat], 1)).collect();
    let gains: Vec<Mean> = (0..seats).map(|seat| mean_of(&gain(seat), questions)).collect();
    let beyond = |bias: f64| -> Vec<usize> {
        (0..seats).filter(|seat| gains[*seat].low > bias || gains[*seat].high < -bias).collect()
    };
    let unequal = beyond(0.0);
    let biased: Vec<String> = beyond(max_bias).iter().map(|seat| (seat + 1).to_string()).collect();
    let end = || match biased.is_empty() {
        true => Ok(()),
        false => {
            let sentence = format!("the seats of {name} aren't equally good: player {}", biased.join(", player "));
            Err(Failure::new(Exit::FaultyChallenge, sentence))
        }
    };
    if style == Style::Json {
        let seat = |seat: usize| json!({"seat": seat + 1, "score": scores[seat], "gain": gains[seat]});
        let seats: Vec<Value> = (0..seats).map(seat).collect();
        let report = json!({
            "challenge": name, "deals": deals.len(), "max_bias": max_bias, "is_fair": biased.is_empty(), "seats": seats,
            "seed": seed.reveal(),
        });
        print(&report.to_string())?;
        return end();
    }
    let mut table = Table::new(&["", "mean score", "gain over others", "95 % interval"]);
    for seat in 0..seats {
        let Mean { mean, low, high } = gains[seat];
        table.row([
            format!("Player {}", seat + 1),
            format!("{:.3}", scores[seat].mean),
            format!("{mean:+.3}"),
            format!("{low:+.3} to {high:+.3}"),
        ]);
    }
    let widest = gains.iter().map(|gain| gain.high - gain.mean).fold(0.0, f64::max);
    let count = deals.len();
    let verdict = match &unequal[..] {
        [] => format!("no seat is significantly better in {count} deals; the smallest detectable gain is {widest:.3}"),
        some => {
            let seats: Vec<String> =
                some.iter().map(|seat| format!("{} ({:+.3})", seat + 1, gains[*seat].mean)).collect();
            format!("for these bots the seats aren't equally good ({count} deals): player {}", seats.join(", player "))
        }
    };
    print(&format!("{}\n{name}: {verdict}\nseed: {}", table.right(1..=3), seed.reveal()))?;
    end()
}
