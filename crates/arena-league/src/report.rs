//! A season in the words of `arena-report`, which makes tables of it.

use arena_match::agent_ids;
use arena_model::{Seat, Setup};
use arena_report::season::{Season as Told, SeasonAgent, labels};
use arena_report::{Fate, printable, result};
use arena_store::{LeagueAgent, LeagueGame};

use crate::play::check_rules;
use crate::season::Season;

/// What there is to tell of a season.
pub fn report(season: &Season) -> Told {
    let league = season.league();
    let mut agents: Vec<SeasonAgent> = season.agents().iter().map(told).collect();
    for game in season.games() {
        for seat in &game.seats {
            let (Some(verdict), Some(place)) = (seat.verdict, season.place(seat.agent)) else { continue };
            let fate = &mut agents[place].fate;
            *fate.verdicts.entry(verdict).or_default() += 1;
            let number = usize::try_from(game.number).unwrap_or(usize::MAX);
            fate.first.get_or_insert_with(|| (number, seat.detail.clone().unwrap_or_default()));
        }
    }
    Told {
        league: league.name.clone(),
        game: league.rules.game.clone(),
        options: league.rules.options.clone(),
        seats: league.rules.seats,
        paired: league.rules.paired,
        number: season.number(),
        is_closed: season.number() != league.season,
        agents,
        results: season.results().clone(),
    }
}

fn told(agent: &LeagueAgent) -> SeasonAgent {
    SeasonAgent {
        name: agent.facts.name.clone(),
        generation: agent.generation,
        version: agent.facts.version.clone(),
        path: agent.facts.path.clone(),
        is_present: agent.removed_at.is_none(),
        fate: Fate::default(),
    }
}

/// A game in a line, as chess runners write it: `Finished game 3 (a vs b): 1-0 {CHECKMATE}`. White is named first where there is one.
pub fn line(season: &Season, game: &LeagueGame) -> String {
    let agents: Vec<SeasonAgent> = season.agents().iter().map(told).collect();
    let labels = labels(&agents);
    let places = game.seats.iter().filter_map(|seat| season.place(seat.agent));
    let names: Vec<&str> = places.map(|place| labels[place].as_str()).collect();
    let ranks: Vec<usize> = game.seats.iter().map(|seat| seat.rank).collect();
    let scores: Vec<f64> = game.seats.iter().map(|seat| seat.score).collect();
    let (names, result) = match game.winner == arena_match::VOID {
        true => (names, arena_report::VOID.to_owned()),
        false => result(&names, &ranks, &scores, || first_seat(season, game)),
    };
    let why = match game.seats.iter().find_map(|seat| seat.verdict) {
        Some(verdict) => format!("{}, {verdict}", game.termination),
        None => game.termination.clone(),
    };
    printable(&format!("Finished game {} ({}): {result} {{{why}}}", game.number, names.join(" vs "))).into_owned()
}

/// The seat that is named first: that of White, or else the first.
fn first_seat(season: &Season, game: &LeagueGame) -> usize {
    let rules = &season.league().rules;
    let sides = || {
        let setup = Setup { agents: agent_ids(&game.seed, game.seats.len()), seed: game.seed.clone() };
        let started = check_rules(rules).ok()?.start(&rules.options, setup).ok()?;
        (0..game.seats.len()).find(|seat| started.side(Seat(*seat)) == Some("WHITE"))
    };
    sides().unwrap_or(0)
}
