//! A season in the words of `arena-report`, which makes tables of it.

use arena_report::season::{Season as Told, SeasonAgent, labels};
use arena_report::{Fate, finished, named};
use arena_store::{LeagueAgent, LeagueGame};

use crate::league::play::check_rules;
use crate::league::season::Season;

/// What there is to tell of a season.
pub fn report(season: &Season) -> Told {
    let league = season.league();
    let mut agents: Vec<SeasonAgent> = season.agents().iter().map(told).collect();
    for game in season.games() {
        for seat in &game.result.seats {
            let (Some(verdict), Some(place)) = (seat.verdict, season.place(seat.agent)) else { continue };
            let number = usize::try_from(game.number).unwrap_or(usize::MAX);
            agents[place].fate.add(verdict, number, seat.detail.as_deref());
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
    let places = game.result.seats.iter().filter_map(|seat| season.place(seat.agent));
    let names: Vec<&str> = places.map(|place| labels[place].as_str()).collect();
    let (names, result) = named(names, &game.result, || first_seat(season, game));
    finished(game.number, &names, &result, &game.result.outcome)
}

/// The seat that is named first: that of White, or else the first.
fn first_seat(season: &Season, game: &LeagueGame) -> usize {
    let rules = &season.league().rules;
    check_rules(rules).map_or(0, |played| played.first_seat(&rules.options, &game.result.seed, rules.seats))
}
