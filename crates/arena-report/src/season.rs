//! Reports of a league's season. Agents play different opponents, so the standings order them by rating rather than by
//! points.

use arena_ratings::{AgentIndex, PairOutcome, Results, Tally, tallies};
use arena_tournament::{GameLine, League, LeagueAgent, Membership};
use serde_json::{Map, Value, json};

use crate::export::plain;
use crate::games::{finished, named};
use crate::ratings::{Rating, Ratings};
use crate::standings::{Disqualifications, Grid, RANK_RANGE, cross_grid};
use crate::text::number_of;

#[derive(Debug)]
pub struct Season {
    pub game: String,
    /// The game's options that differ from the defaults.
    pub options: Map<String, Value>,
    pub seats: usize,
    /// True if each pairing plays one game for each rotation of the seats, all with one seed.
    pub paired: bool,
    /// The season's number, from 1.
    pub number: usize,
    pub is_closed: bool,
    /// The agents; each version of an agent has its own entry.
    pub agents: Vec<SeasonAgent>,
    /// The results. Agents are numbered by their index in `agents`.
    pub results: Results,
}

#[derive(Debug)]
pub struct SeasonAgent {
    /// The agent's name, which all its versions share.
    pub name: String,
    /// The version's number, from 1.
    pub generation: u32,
    /// The version's name, from its owner or its manifest.
    pub version: Option<String>,
    /// The path or URL, as the user typed it.
    pub path: String,
    pub membership: Membership,
    pub disqualifications: Disqualifications,
}

impl Season {
    /// Returns the season of a league. Leaves out agents that have left without a game.
    pub fn of(league: &League) -> Season {
        let all = league.season().results();
        let games = tallies(all);
        let shown: Vec<AgentIndex> = (0..all.agents())
            .filter(|agent| games[*agent].games > 0 || league.member(*agent).membership != Membership::Gone)
            .map(AgentIndex)
            .collect();
        let mut agents: Vec<SeasonAgent> = shown.iter().map(|agent| agent_of(league.member(agent.0))).collect();
        for game in league.games() {
            for (seat, generation) in game.result.seats.iter().zip(&game.generations) {
                let Some(verdict) = seat.verdict else { continue };
                let is_seated = |agent: &&mut SeasonAgent| agent.name == seat.agent && agent.generation == *generation;
                if let Some(agent) = agents.iter_mut().find(is_seated) {
                    agent.disqualifications.add(verdict, game.number, seat.detail.as_deref());
                }
            }
        }
        let plan = &league.plan;
        Season {
            game: plan.game.clone(),
            options: plan.options.clone(),
            seats: plan.seats,
            paired: plan.paired,
            number: league.season().number(),
            is_closed: league.is_closed,
            agents,
            results: all.among(&shown),
        }
    }
}

fn agent_of(agent: &LeagueAgent) -> SeasonAgent {
    SeasonAgent {
        name: agent.entrant.name.clone(),
        generation: agent.generation,
        version: agent.entrant.version.clone(),
        path: agent.entrant.path.clone(),
        membership: agent.membership.clone(),
        disqualifications: Disqualifications::default(),
    }
}

/// Formats a game as one line, in the style of chess runners: `Finished game 3 (a vs b): 1-0 {CHECKMATE}`. In a game with
/// White, the line names White first.
pub fn line(league: &League, game: &GameLine) -> String {
    let agents: Vec<SeasonAgent> = league.members().map(agent_of).collect();
    let labels = labels(&agents);
    let seats = game.result.names().into_iter().zip(&game.generations);
    let at = |(name, generation): (&str, &u32)| {
        agents.iter().position(|agent| agent.name == name && agent.generation == *generation)
    };
    let names: Vec<&str> = seats.filter_map(at).map(|agent| labels[agent].as_str()).collect();
    let plan = &league.plan;
    let first = || plan.game().map_or(0, |played| played.first_seat(&plan.options, &game.result.seed, plan.seats));
    let (names, result) = named(names, &game.result, first);
    finished(game.number, &names, &result, &game.result.outcome)
}

struct SeasonStandings<'s> {
    season: &'s Season,
    /// A unique label for each entry: the agent's name, with the version if several entries have this name.
    labels: Vec<String>,
    tallies: Vec<Tally>,
    ratings: Option<Ratings>,
    /// The agents with games, in ascending order of index. Only these agents have ratings.
    rated: Vec<usize>,
    /// The agents in descending order of rating, and last the agents without games.
    order: Vec<usize>,
}

impl<'s> SeasonStandings<'s> {
    fn of(season: &'s Season) -> SeasonStandings<'s> {
        let tallies = tallies(&season.results);
        let (rated, waiting): (Vec<usize>, Vec<usize>) =
            (0..season.agents.len()).partition(|agent| tallies[*agent].games > 0);
        let ratings = rate(&season.results, &rated);
        let mut order: Vec<usize> = match &ratings {
            Some(ratings) => ratings.order().into_iter().map(|place| rated[place]).collect(),
            None => rated.clone(),
        };
        order.extend(waiting);
        SeasonStandings { season, labels: labels(&season.agents), tallies, ratings, rated, order }
    }

    fn rating(&self, agent: usize) -> Option<Rating> {
        let place = self.rated.binary_search(&agent).ok()?;
        self.ratings.as_ref().map(|ratings| ratings.rating(place))
    }

    /// Returns an agent's rank by Elo, and true if other agents share the rank.
    fn rank(&self, agent: usize) -> Option<(usize, bool)> {
        let place = self.rated.binary_search(&agent).ok()?;
        let ratings = self.ratings.as_ref()?;
        Some((ratings.rating(place).ranks.place, ratings.place(place).ends_with('=')))
    }

    /// The group's number, from 0. Games link all agents of a group, directly or through a chain of agents.
    fn group(&self, agent: usize) -> Option<usize> {
        let place = self.rated.binary_search(&agent).ok()?;
        self.ratings.as_ref().map(|ratings| ratings.group(place))
    }

    fn share(&self, agent: usize) -> f64 {
        let Tally { games, points, .. } = self.tallies[agent];
        if games == 0 { 0.0 } else { points / games as f64 }
    }

    /// Returns, for each agent against each other agent, the number of games and the agent's points.
    fn versus(&self) -> Vec<Vec<(u64, f64)>> {
        let mut table = vec![vec![(0, 0.0); self.season.agents.len()]; self.season.agents.len()];
        for game in self.season.results.games() {
            for (one, two, outcome) in game.comparisons() {
                for (one, two, outcome) in [(one.0, two.0, outcome), (two.0, one.0, PairOutcome::reversed(outcome))] {
                    table[one][two].0 += 1;
                    table[one][two].1 += outcome.points();
                }
            }
        }
        table
    }
}

/// Rates the agents with games. An agent without games would get a rating that no result supports.
fn rate(results: &Results, rated: &[usize]) -> Option<Ratings> {
    let rated: Vec<AgentIndex> = rated.iter().map(|agent| AgentIndex(*agent)).collect();
    Ratings::of_results(&results.among(&rated))
}

/// Returns a unique label for each agent: its name, with the version if several agents have the name.
fn labels(agents: &[SeasonAgent]) -> Vec<String> {
    let label = |one: &SeasonAgent| match agents.iter().filter(|other| other.name == one.name).count() {
        1 => one.name.clone(),
        _ => format!("{} {}", one.name, version(agents, one)),
    };
    agents.iter().map(label).collect()
}

/// Returns a unique label for a version of an agent: the version's name, with the version's number if another version
/// has the same name; or the number alone.
fn version(agents: &[SeasonAgent], one: &SeasonAgent) -> String {
    let same = agents.iter().filter(|other| other.name == one.name && other.version == one.version).count();
    match &one.version {
        Some(version) if same == 1 => version.clone(),
        Some(version) => format!("{version} #{}", one.generation),
        None => format!("#{}", one.generation),
    }
}

/// Returns one line with the game and the season.
pub fn title(season: &Season) -> String {
    let seats = if season.seats == 2 { String::new() } else { format!(" of {} seats", season.seats) };
    let pairs = if season.paired { "paired games" } else { "single games" };
    format!("{}: league, {pairs}{seats}, season {}", season.game, season.number)
}

/// Returns the progress: `8 games played, season open`.
pub fn played(season: &Season) -> String {
    let games = season.results.len();
    let games = if games == 1 { "1 game".to_owned() } else { format!("{games} games") };
    let state = if season.is_closed { "season closed" } else { "season open" };
    format!("{games} played, {state}")
}

pub fn grid(season: &Season) -> Grid {
    let standings = SeasonStandings::of(season);
    let has_versions = season.agents.iter().any(|agent| agent.version.is_some() || agent.generation > 1);
    let has_disqualifications = season.agents.iter().any(|agent| !agent.disqualifications.verdicts.is_empty());
    let has_states = season.agents.iter().any(|agent| agent.membership != Membership::Present);
    let texts = |agent: Option<usize>| -> Vec<String> {
        let cell = |is_there: bool, header: &str, text: &dyn Fn(usize) -> String| {
            is_there.then(|| agent.map_or_else(|| header.to_owned(), text))
        };
        // An agent without games has no rating.
        let rated = |header: &str, text: &dyn Fn(&Rating) -> String| {
            cell(standings.ratings.is_some(), header, &|agent| {
                standings.rating(agent).map(|rating| text(&rating)).unwrap_or_default()
            })
        };
        let tally = |header: &str, text: &dyn Fn(&Tally) -> String| {
            cell(true, header, &|agent| text(&standings.tallies[agent]))
        };
        let rank = |agent: usize| match standings.rank(agent) {
            Some((place, true)) => format!("{place}="),
            Some((place, false)) => place.to_string(),
            None => String::new(),
        };
        let cells = [
            cell(true, "rank", &rank),
            cell(true, "name", &|agent| season.agents[agent].name.clone()),
            cell(has_versions, "version", &|agent| version(&season.agents, &season.agents[agent])),
            rated("Elo", &|rating| format!("{:.0}", rating.elo.round() + 0.0)),
            rated("±", &Rating::margin),
            rated(RANK_RANGE, &Rating::range),
            tally("games", &|tally| tally.games.to_string()),
            tally("wins", &|tally| tally.wins.to_string()),
            tally("losses", &|tally| tally.losses.to_string()),
            tally("draws", &|tally| tally.draws.to_string()),
            tally("points", &|tally| number_of(tally.points)),
            cell(true, "score %", &|agent| format!("{:.1}", standings.share(agent) * 100.0)),
            cell(has_disqualifications, "disqualified", &|agent| {
                season.agents[agent].disqualifications.count().to_string()
            }),
            cell(has_states, "state", &|agent| {
                let state = match season.agents[agent].membership {
                    Membership::Present => "",
                    Membership::Suspended(_) => "suspended",
                    Membership::Gone => "gone",
                };
                state.to_owned()
            }),
        ];
        cells.into_iter().flatten().collect()
    };
    Grid { header: texts(None), rows: standings.order.iter().map(|agent| texts(Some(*agent))).collect() }
}

/// Returns the cross table: each agent's points and games against each other agent, in the order of the standings.
pub fn cross(season: &Season) -> Grid {
    let standings = SeasonStandings::of(season);
    let (versus, order) = (standings.versus(), &standings.order);
    let labels: Vec<&str> = order.iter().map(|agent| standings.labels[*agent].as_str()).collect();
    cross_grid(&labels, |row, column| versus[order[row]][order[column]])
}

pub fn remarks(season: &Season) -> Vec<String> {
    remarks_of(&SeasonStandings::of(season))
}

fn remarks_of(standings: &SeasonStandings<'_>) -> Vec<String> {
    let label = |place: usize| standings.labels[standings.rated[place]].as_str();
    let ratings = standings.ratings.as_ref();
    let lead = ratings.and_then(|ratings| ratings.lead_among(label));
    let apart = ratings.and_then(|ratings| ratings.apart(label));
    let describe = |agent: &usize| {
        let disqualifications = &standings.season.agents[*agent].disqualifications;
        disqualifications.describe(&standings.labels[*agent], standings.tallies[*agent].games)
    };
    lead.into_iter().chain(apart).chain(standings.order.iter().filter_map(describe)).collect()
}

pub fn json(season: &Season) -> Value {
    let standings = SeasonStandings::of(season);
    let line = |&agent: &usize| {
        let (one, tally) = (&season.agents[agent], &standings.tallies[agent]);
        let mut row = json!({
            "rank": standings.rank(agent).map(|(place, _)| place),
            "name": one.name,
            "version": one.version,
            "generation": one.generation,
            "label": standings.labels[agent],
            "agent_path": one.path,
            "present": one.membership != Membership::Gone,
            "games": tally.games,
            "wins": tally.wins,
            "losses": tally.losses,
            "draws": tally.draws,
            "points": tally.points,
            "share": standings.share(agent),
            "disqualified": one.disqualifications.by_name(),
        });
        if let Membership::Suspended(reason) = &one.membership {
            row["suspended"] = reason.as_str().into();
        }
        if let (Some(rating), Some(group)) = (standings.rating(agent), standings.group(agent)) {
            rating.add_to(&mut row, group);
        }
        row
    };
    let versus = standings.versus();
    let mut pairs = Vec::new();
    for (one, row) in versus.iter().enumerate() {
        for (two, (games, points)) in row.iter().enumerate().filter(|(_, (games, _))| *games > 0) {
            let (label, against) = (&standings.labels[one], &standings.labels[two]);
            pairs.push(json!({"label": label, "against": against, "games": games, "points": points}));
        }
    }
    json!({
        "format": "league",
        "game": season.game,
        "options": season.options,
        "seats": season.seats,
        "paired": season.paired,
        "season": season.number,
        "closed": season.is_closed,
        "games_played": season.results.len(),
        "standings": standings.order.iter().map(line).collect::<Vec<_>>(),
        "cross_table": pairs,
        "remarks": remarks_of(&standings),
    })
}

/// Returns the standings as comma-separated values. Source: RFC 4180.
pub fn csv(season: &Season) -> String {
    grid(season).csv()
}

pub fn markdown(season: &Season) -> String {
    let remarks: String = remarks(season).iter().map(|remark| format!("- {}\n", plain(remark))).collect();
    let (grid, cross) = (grid(season), cross(season));
    let numbers = numbers_from(&grid);
    format!(
        "{}\n\n{}.\n\n{}\n{}\n{remarks}",
        plain(&title(season)),
        played(season),
        grid.markdown(numbers),
        cross.markdown(1)
    )
}

/// Returns the index of the first column of numbers in the standings: the column after the name and the version.
pub fn numbers_from(grid: &Grid) -> usize {
    let is_text = |header: &String| ["name", "version"].contains(&header.as_str());
    grid.header.iter().rposition(is_text).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests;
