//! Conversion of a season into the input of `arena-report`.

use arena_report::season::{Season as SeasonReport, SeasonAgent, labels};
use arena_report::{Disqualifications, finished, named};
use arena_store::{LeagueAgent, LeagueGame};

use crate::league::play::check_rules;
use crate::league::season::Season;

pub fn report(season: &Season) -> SeasonReport {
    let league = season.league();
    let mut agents: Vec<SeasonAgent> = season.agents().iter().map(agent_report).collect();
    for game in season.games() {
        for seat in &game.result.seats {
            let (Some(verdict), Some(place)) = (seat.verdict, season.index_of(seat.agent)) else { continue };
            let number = usize::try_from(game.number).unwrap_or(usize::MAX);
            agents[place].disqualifications.add(verdict, number, seat.detail.as_deref());
        }
    }
    SeasonReport {
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

fn agent_report(agent: &LeagueAgent) -> SeasonAgent {
    SeasonAgent {
        name: agent.facts.name.clone(),
        generation: agent.generation,
        version: agent.facts.version.clone(),
        path: agent.facts.path.clone(),
        is_present: agent.removed_at.is_none(),
        disqualifications: Disqualifications::default(),
    }
}

/// Formats a game as one line in the style of chess runners: `Finished game 3 (a vs b): 1-0 {CHECKMATE}`. In a game
/// with White, the line names White first.
pub fn line(season: &Season, game: &LeagueGame) -> String {
    let agents: Vec<SeasonAgent> = season.agents().iter().map(agent_report).collect();
    let labels = labels(&agents);
    let places = game.result.seats.iter().filter_map(|seat| season.index_of(seat.agent));
    let names: Vec<&str> = places.map(|place| labels[place].as_str()).collect();
    let (names, result) = named(names, &game.result, || first_seat(season, game));
    finished(game.number, &names, &result, &game.result.outcome)
}

/// Returns the seat that reports name first: White's seat, or the first seat in games without White.
fn first_seat(season: &Season, game: &LeagueGame) -> usize {
    let rules = &season.league().rules;
    check_rules(rules).map_or(0, |played| played.first_seat(&rules.options, &game.result.seed, rules.seats))
}
