//! The coverage of the 95 % intervals of ratings, measured in simulated leagues between agents of known strength.

use arena_model::{Seed, SeedRng};
use arena_ratings::bradley_terry::{FitOptions, fit};
use arena_ratings::{AgentIndex, ELO_PER_LOGIT, Results};
use serde_json::json;

use crate::arguments::Arguments;
use crate::report::{Goal, Report};

const NAME: &str = "matches with coverage";

/// A kind of league, with games between all agents.
struct League {
    what: &'static str,
    agents: usize,
    /// The number of rounds between every two agents; in [`Form::Four`], between every four agents.
    rounds: usize,
    form: Form,
    /// The standard deviation of strengths, in Elo.
    deviation: f64,
    /// ν of Davidson's model. At 0 there are no ties; at 1, a third of the games between equal agents are ties; at 2,
    /// half of these games.
    ties: f64,
    /// The advantage of the first of two seats, in Elo. If the advantage isn't 0, the rating estimates it too.
    advantage: f64,
}

/// The form of a round.
enum Form {
    /// A game of two seats, which swap from round to round.
    Alone,
    /// Two games with swapped seats and one seed. In a share of the pairs, the seed decides both games. If the number
    /// is positive, the same agent is favored in both games; if it is negative, the same seat. The probabilities of
    /// each single game still follow the model.
    Pairs(f64),
    /// A game of four seats with ranks drawn by strength in order (Plackett and Luce). The probabilities for every two
    /// agents follow the model, without ties.
    Four,
}

const PLAIN: League =
    League { what: "", agents: 8, rounds: 10, form: Form::Pairs(0.0), deviation: 150.0, ties: 0.5, advantage: 0.0 };

const LEAGUES: &[League] = &[
    League { what: "2 agents, 10 games", agents: 2, form: Form::Alone, ..PLAIN },
    League { what: "2 agents, 10 pairs", agents: 2, ..PLAIN },
    League { what: "4 agents, 3 pairs", agents: 4, rounds: 3, ..PLAIN },
    League { what: "4 agents, 200 pairs", agents: 4, rounds: 200, ..PLAIN },
    League { what: "6 agents, 6 games, no ties", agents: 6, rounds: 6, form: Form::Alone, ties: 0.0, ..PLAIN },
    League { what: "8 agents, 1 pair", rounds: 1, ..PLAIN },
    League { what: "8 agents, 10 pairs, half ties", ties: 2.0, ..PLAIN },
    League { what: "8 agents, 10 pairs, nearly all ties", ties: 12.0, ..PLAIN },
    League { what: "8 agents, 10 pairs, same winner in half", form: Form::Pairs(0.5), ..PLAIN },
    League { what: "8 agents, 10 pairs, same winner always", form: Form::Pairs(1.0), ..PLAIN },
    League { what: "8 agents, 10 pairs, same seat in half", form: Form::Pairs(-0.5), ..PLAIN },
    League { what: "8 agents, 3 pairs, same winner in half", rounds: 3, form: Form::Pairs(0.5), ..PLAIN },
    League { what: "8 agents, 10 pairs, seat worth 80 Elo", advantage: 80.0, form: Form::Pairs(0.2), ..PLAIN },
    League { what: "8 agents, 10 games, seat worth 80 Elo", advantage: 80.0, form: Form::Alone, ..PLAIN },
    League { what: "8 agents, 5 pairs, strengths far apart", rounds: 5, deviation: 400.0, ..PLAIN },
    League { what: "20 agents, 1 pair", agents: 20, rounds: 1, ..PLAIN },
    League { what: "8 agents, 10 pairs, equally strong", deviation: 0.0, ..PLAIN },
    League { what: "40 agents, 2 pairs, equally strong", agents: 40, rounds: 2, deviation: 0.0, ..PLAIN },
    League { what: "40 agents, 2 pairs", agents: 40, rounds: 2, ..PLAIN },
    League { what: "8 agents, 2 rounds of all fours", rounds: 2, form: Form::Four, ..PLAIN },
];

/// The coverage of one kind of league.
#[derive(Default)]
struct Fared {
    ratings: Share,
    differences: Share,
    unbounded: Share,
    /// The share of rank ranges that contain their agent's true rank.
    each_rank: Share,
    /// The share of leagues in which all rank ranges contain the true ranks.
    ranks: Share,
    /// The share of leagues in which the interval contains the true seat advantage.
    advantages: Share,
    half_width: f64,
}

#[derive(Default)]
struct Share {
    held: u64,
    of: u64,
}

impl Share {
    fn note(&mut self, held: bool) {
        self.held += u64::from(held);
        self.of += 1;
    }

    fn add(&mut self, other: &Share) {
        self.held += other.held;
        self.of += other.of;
    }

    fn percent(&self) -> f64 {
        100.0 * self.held as f64 / self.of.max(1) as f64
    }
}

/// Simulates all leagues.
///
/// # Errors
/// If a league can't be rated.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let seasons = arguments.size(None, 1_000, 100);
    let (mut least, mut most) = (100.0_f64, 0.0_f64);
    let (mut leagues, mut all) = (0, Share::default());
    for league in LEAGUES {
        eprintln!("coverage: {}", league.what);
        let fared = simulate(league, seasons)?;
        leagues += seasons;
        all.add(&fared.ratings);
        let share = fared.ratings.percent();
        (least, most) = (least.min(share), most.max(share));
        let advantage = if fared.advantages.of == 0 {
            String::new()
        } else {
            format!(", of the seat {:.1} %", fared.advantages.percent())
        };
        report.row(NAME, format!("{}: ratings held", league.what), share, "%").goal(Goal::AtLeast(93.0)).note(format!(
            "± {:.0} Elo, {:.1} % open; differences {:.1} %{advantage}; ranks {:.1} %, all of a league {:.1} %",
            fared.half_width / fared.ratings.of as f64,
            fared.unbounded.percent(),
            fared.differences.percent(),
            fared.each_rank.percent(),
            fared.ranks.percent(),
        ));
        let detail = json!({
            "leagues": seasons,
            "ratings": fared.ratings.percent(),
            "differences": fared.differences.percent(),
            "unbounded": fared.unbounded.percent(),
            "each_rank": fared.each_rank.percent(),
            "ranks": fared.ranks.percent(),
        });
        report.detail(NAME, league.what, detail);
    }
    let note = format!("of {} in {leagues} leagues", all.of);
    report.row(NAME, "ratings held, of all", all.percent(), "%").goal(Goal::AtLeast(93.0)).note(note);
    report.row(NAME, "ratings held, least of all leagues", least, "%").goal(Goal::AtLeast(93.0));
    report.row(NAME, "ratings held, most of all leagues", most, "%").goal(Goal::AtMost(97.0));
    Ok(())
}

fn simulate(league: &League, seasons: u64) -> anyhow::Result<Fared> {
    let mut fared = Fared::default();
    for season in 0..seasons {
        let mut rng = Seed::from_number(season).rng(league.what);
        let strengths: Vec<f64> =
            (0..league.agents).map(|_| league.deviation / ELO_PER_LOGIT * normal(&mut rng)).collect();
        let results = draw(league, &strengths, &mut rng);
        let options = FitOptions { seat_advantage: league.advantage != 0.0, ..FitOptions::default() };
        let fit = fit(&results, &options)?;
        let core: Vec<f64> = fit.core().map(|agent| strengths[agent.0]).collect();
        let mean = core.iter().sum::<f64>() / core.len() as f64;
        let ranking = fit.ranking();
        let mut all_ranks = true;
        for (agent, strength) in strengths.iter().enumerate() {
            let interval = fit.interval(AgentIndex(agent));
            fared.ratings.note(interval.holds(ELO_PER_LOGIT * (strength - mean)));
            fared.unbounded.note(!(interval.low.is_finite() && interval.high.is_finite()));
            fared.half_width += 1.96 * fit.error(AgentIndex(agent));
            // For agents of equal strength, each of their ranks is true.
            let best = 1 + strengths.iter().filter(|other| *other > strength).count();
            let worst = strengths.iter().filter(|other| *other >= strength).count();
            let is_held = ranking.ranks[agent].best <= best && worst <= ranking.ranks[agent].worst;
            fared.each_rank.note(is_held);
            all_ranks &= is_held;
            for (other, theirs) in strengths[..agent].iter().enumerate() {
                let interval = fit.difference_interval(AgentIndex(agent), AgentIndex(other));
                fared.differences.note(interval.holds(ELO_PER_LOGIT * (strength - theirs)));
            }
        }
        fared.ranks.note(all_ranks);
        if let Some((_, interval)) = fit.seat_advantage() {
            fared.advantages.note(interval.holds(league.advantage));
        }
    }
    Ok(fared)
}

fn draw(league: &League, strengths: &[f64], rng: &mut SeedRng) -> Results {
    let mut results = Results::new(league.agents);
    let mut push = |seats: &[(usize, u32)], pair| {
        let seats: Vec<_> = seats.iter().map(|&(agent, rank)| (AgentIndex(agent), rank)).collect();
        results.push(&seats, pair).expect("every game is between different agents of the league");
    };
    if matches!(league.form, Form::Four) {
        for _ in 0..league.rounds {
            for table in fours(league.agents) {
                push(&draw_four(table, strengths, rng), None);
            }
        }
        return results;
    }
    let mut number = 0;
    for one in 0..league.agents {
        for two in 0..one {
            for round in 0..league.rounds {
                let first = rng.unit();
                let mut play = |[first, second]: [usize; 2], draw: f64, pair| {
                    let difference = strengths[first] - strengths[second] + league.advantage / ELO_PER_LOGIT;
                    push(&seated([first, second], difference, league.ties, draw), pair);
                };
                match league.form {
                    Form::Pairs(together) => {
                        number += 1;
                        // Low random numbers favor the first seat, which the other agent has in the second game.
                        let second = match rng.unit() < together.abs() {
                            false => rng.unit(),
                            true if together > 0.0 => 1.0 - first,
                            true => first,
                        };
                        play([one, two], first, Some(number));
                        play([two, one], second, Some(number));
                    }
                    _ if round % 2 == 0 => play([one, two], first, None),
                    _ => play([two, one], first, None),
                }
            }
        }
    }
    results
}

/// Draws a game of two by Davidson's model.
fn seated([first, second]: [usize; 2], difference: f64, ties: f64, draw: f64) -> [(usize, u32); 2] {
    let (win, loss) = ((difference / 2.0).exp(), (-difference / 2.0).exp());
    let place = draw * (win + ties + loss);
    if place < win {
        [(first, 1), (second, 2)]
    } else if place < win + ties {
        [(first, 1), (second, 1)]
    } else {
        [(first, 2), (second, 1)]
    }
}

/// Returns every group of four of `agents` agents.
fn fours(agents: usize) -> Vec<[usize; 4]> {
    let mut fours = Vec::new();
    for a in 0..agents {
        for b in 0..a {
            for c in 0..b {
                fours.extend((0..c).map(|d| [a, b, c, d]));
            }
        }
    }
    fours
}

fn draw_four(table: [usize; 4], strengths: &[f64], rng: &mut SeedRng) -> [(usize, u32); 4] {
    let mut seats = table.map(|agent| (agent, 0));
    for rank in 1..=4 {
        let weight = |seat: &(usize, u32)| if seat.1 == 0 { strengths[seat.0].exp() } else { 0.0 };
        let mut place = rng.unit() * seats.iter().map(weight).sum::<f64>();
        let drawn = seats.iter().position(|seat| {
            place -= weight(seat);
            seat.1 == 0 && place < 0.0
        });
        // After rounding errors, the loop may have drawn no seat. The last seat without a rank is used then.
        let drawn = drawn.or_else(|| seats.iter().rposition(|seat| seat.1 == 0)).expect("a seat is left for each rank");
        seats[drawn].1 = rank;
    }
    seats
}

/// Returns a normally distributed number, by the polar method.
fn normal(rng: &mut SeedRng) -> f64 {
    (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
}
