//! `arena author fairness`: the seats' fairness, measured by matches in which each deal is played from all seats.

use std::sync::atomic::{AtomicBool, Ordering};

use arena_match::{Agent, Confinement, MatchPlan, SeatedAgent, cores, play_match, spread};
use arena_model::{GameType, MatchResult, Seed};
use arena_ratings::Mean;
use clap::Args;
use serde_json::{Map, Value, json};

use super::find::find;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::options::{SandboxArgs, option, seed};
use crate::matches::{explain, open_files, settings};
use crate::output::{Style, Table, counted_as, note, print, print_line};

/// Options of `arena author fairness`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena author fairness . --agent bots/half.py
  arena author fairness . --agent bots/half.py --agent bots/nosy.py --games 200 --concurrency 2
  arena author fairness . --agent bots/half.py --seed 1 --max-bias 0.05

One agent plays against itself. With several agents, each deal is played once for each rotation of the agents around the seats. \
The result is each seat's gain over the other seats, with its 95 % confidence interval. A seat whose interval excludes 0 is \
better or worse than the others, for these agents. The exit code is 15 if an interval lies entirely beyond --max-bias. A fair \
challenge fails once in 20 runs; --seed makes the result repeatable.")]
pub struct FairnessArgs {
    /// Challenge: a folder, or the name of a built-in one.
    #[arg(value_name = "DIR|NAME")]
    pub challenge: String,
    /// Agent; may be repeated. Fewer agents than seats are repeated in order.
    #[arg(long = "agent", value_name = "PATH", required = true)]
    pub agents: Vec<String>,
    /// Number of deals.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub games: u32,
    /// Number of games in parallel.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// Random seed: an integer, or 64 hexadecimal digits [default: chosen at random and printed]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<Seed>,
    /// Tolerated difference between seats, as a score.
    #[arg(long, value_name = "SCORE", default_value_t = 0.0, value_parser = bias)]
    pub max_bias: f64,
    /// Set a challenge option; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Parses a score of 0 or more.
fn bias(text: &str) -> Result<f64, String> {
    let score: Option<f64> = text.parse().ok().filter(|score: &f64| score.is_finite() && *score >= 0.0);
    score.ok_or_else(|| "expected a score of 0 or more, such as 0.05".to_owned())
}

/// Plays the deals and prints each seat's gain.
pub fn run(args: &FairnessArgs, style: Style) -> Result<(), Failure> {
    let deals = Deals::of(args)?;
    let gains = SeatGains::of(&deals.play(args)?);
    gains.print(&deals, args.max_bias, style)
}

/// The deals of a measurement. Each is played once for each rotation of the agents around the seats.
struct Deals {
    challenge: String,
    game: &'static GameType,
    options: Map<String, Value>,
    seats: usize,
    agents: Vec<Agent>,
    seed: Seed,
    confinement: Confinement,
}

impl Deals {
    fn of(args: &FairnessArgs) -> Result<Deals, Failure> {
        let found = find(&args.challenge, &Map::new())?;
        let game = found.game();
        let options: Map<String, Value> = args.options.iter().cloned().collect();
        let wanted = options.get("players").and_then(Value::as_u64).map(|players| players as usize);
        let seats = wanted.unwrap_or(found.challenge.metadata().players);
        if seats < 2 {
            return Err(Failure::usage("a challenge for one player has no seats to compare"));
        }
        if args.agents.len() > seats {
            let given = args.agents.len();
            let sentence = format!("too many agents: {given} given, but the challenge has {seats} seats");
            return Err(Failure::usage(sentence));
        }
        settings::try_start(game, &options, seats)?;
        let mut agents = settings::find_agents(&args.agents, &[])?;
        settings::print_notes(&agents);
        settings::make_names_unique(&mut agents);
        let seed = settings::seed_or_random(&args.seed)?;
        let confinement = settings::confinement(&args.sandbox)?;
        Ok(Deals { challenge: found.challenge.id().to_owned(), game, options, seats, agents, seed, confinement })
    }

    /// Plays a match, numbered from 0. After as many matches of a deal as there are agents, every agent is back on its
    /// first seat.
    fn play_match(&self, number: usize, called_off: &AtomicBool) -> Result<MatchResult<SeatedAgent>, Failure> {
        let Deals { game, options, agents, confinement, .. } = self;
        let (deal, shift) = (number / agents.len(), number % agents.len());
        let plan = MatchPlan {
            game,
            options,
            seed: self.seed.derive(&format!("deal {deal}")),
            limits: game.limits,
            agents: (0..self.seats).map(|seat| &agents[(seat + shift) % agents.len()]).collect(),
            confinement,
            adjudication: None,
        };
        play_match(&plan, None, None, called_off).map(|played| played.result).map_err(explain)
    }

    /// Plays all matches. Returns the seats' mean scores of each deal that counts.
    fn play(&self, args: &FairnessArgs) -> Result<Vec<Vec<f64>>, Failure> {
        open_files::allow(args.games.min(args.concurrency) as usize, self.seats)?;
        let called_off = interrupt::flag()?;
        let shifts = self.agents.len();
        let play = |number| self.play_match(number, &called_off);
        // A deal is `None` if a match of it doesn't count.
        let mut deals = vec![Some(vec![0.0; self.seats]); args.games as usize];
        let (mut disqualified, mut unended, mut end) = (None, 0, Ok(()));
        spread(deals.len() * shifts, args.concurrency as usize, &cores(), play, |number, result| {
            let deal = &mut deals[number / shifts];
            match result {
                Ok(result) => {
                    if let Some(out) = result.seats.iter().find(|seat| seat.verdict.is_some()) {
                        let detail = out.detail.as_deref().unwrap_or_default();
                        disqualified.get_or_insert_with(|| format!("{} was disqualified: {detail}", out.agent.name));
                        *deal = None;
                    }
                    unended += usize::from(result.outcome.termination != "GAME_ENDED");
                    for (sum, seat) in deal.iter_mut().flatten().zip(&result.seats) {
                        *sum += seat.score / shifts as f64;
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
        let deals: Vec<Vec<f64>> = deals.into_iter().flatten().collect();
        if deals.len() < 2 {
            let why = disqualified.unwrap_or_default();
            let sentence = format!("cannot compare the seats: fewer than two deals count ({why})");
            return Err(Failure::new(Exit::FaultyAgent, sentence));
        }
        if let Some(why) = disqualified {
            note(&format!("deals with a disqualified agent don't count ({why})"));
        }
        if unended > 0 {
            let matches = counted_as(unended, "match", "matches");
            note(&format!("the challenge's rules didn't end {matches}; there every seat scores 0"));
        }
        Ok(deals)
    }
}

/// The seats' scores, and their gains over the other seats.
struct SeatGains {
    deals: usize,
    scores: Vec<Mean>,
    gains: Vec<Mean>,
}

impl SeatGains {
    /// Computes the means of at least two deals. The intervals of the gains hold for all comparisons together.
    fn of(deals: &[Vec<f64>]) -> SeatGains {
        let seats = deals[0].len();
        // One comparison for two seats, otherwise one for each seat.
        let comparisons = if seats == 2 { 1 } else { seats };
        let mean_of = |value: &dyn Fn(&[f64]) -> f64, comparisons| {
            let values: Vec<f64> = deals.iter().map(|deal| value(deal)).collect();
            Mean::of(&values, comparisons).expect("at least two deals count")
        };
        let gain = |deal: &[f64], seat: usize| {
            let others = deal.iter().sum::<f64>() - deal[seat];
            deal[seat] - others / (deal.len() - 1) as f64
        };
        SeatGains {
            deals: deals.len(),
            scores: (0..seats).map(|seat| mean_of(&|deal| deal[seat], 1)).collect(),
            gains: (0..seats).map(|seat| mean_of(&|deal| gain(deal, seat), comparisons)).collect(),
        }
    }

    /// Returns the seats whose gain or loss is significantly beyond `bias`.
    fn beyond(&self, bias: f64) -> Vec<usize> {
        (0..self.gains.len()).filter(|seat| self.gains[*seat].low > bias || self.gains[*seat].high < -bias).collect()
    }

    /// Prints each seat's score and gain. Fails if a gain is significantly beyond `max_bias`.
    fn print(&self, deals: &Deals, max_bias: f64, style: Style) -> Result<(), Failure> {
        let (name, seed) = (&deals.challenge, deals.seed.reveal());
        let biased: Vec<String> = self.beyond(max_bias).iter().map(|seat| (seat + 1).to_string()).collect();
        if style == Style::Json {
            let seat = |seat: usize| json!({"seat": seat + 1, "score": self.scores[seat], "gain": self.gains[seat]});
            let seats: Vec<Value> = (0..self.gains.len()).map(seat).collect();
            print_line(&json!({
                "challenge": name, "deals": self.deals, "max_bias": max_bias, "is_fair": biased.is_empty(),
                "seats": seats, "seed": seed,
            }))?;
        } else {
            print(&format!("{}\n{name}: {}\nseed: {seed}", self.table(), self.summary()))?;
        }
        if biased.is_empty() {
            return Ok(());
        }
        let sentence = format!("the seats of {name} aren't equally good: player {}", biased.join(", player "));
        Err(Failure::new(Exit::FaultyChallenge, sentence))
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["", "mean score", "gain over others", "95 % interval"]);
        for (seat, (score, Mean { mean, low, high })) in self.scores.iter().zip(&self.gains).enumerate() {
            table.row([
                format!("Player {}", seat + 1),
                format!("{:.3}", score.mean),
                format!("{mean:+.3}"),
                format!("{low:+.3} to {high:+.3}"),
            ]);
        }
        table.right(1..=3)
    }

    fn summary(&self) -> String {
        let count = self.deals;
        let player = |seat: &usize| format!("player {} ({:+.3})", seat + 1, self.gains[*seat].mean);
        match &self.beyond(0.0)[..] {
            [] => {
                let widest = self.gains.iter().map(|gain| gain.high - gain.mean).fold(0.0, f64::max);
                format!("no seat is significantly better in {count} deals; the smallest detectable gain is {widest:.3}")
            }
            seats => {
                let players: Vec<String> = seats.iter().map(player).collect();
                format!("for these agents the seats aren't equally good ({count} deals): {}", players.join(", "))
            }
        }
    }
}
