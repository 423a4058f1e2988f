//! What the season of a league came to. Meetings of a league aren't the same for all, so agents stand in the order of their ratings
//! rather than of their points.

use std::collections::BTreeMap;

use arena_ratings::{AgentIndex, Outcome, Results, Tally, tallies};
use serde_json::{Map, Value, json};

use crate::export::plain;
use crate::ratings::{Rating, Ratings};
use crate::standings::{Fate, Grid};
use crate::text::number_of;

/// A season, to be told of.
#[derive(Debug)]
pub struct Season {
    /// What the league is called.
    pub league: String,
    /// The name of the game.
    pub game: String,
    /// Keys of its config that differ from the usual.
    pub options: Map<String, Value>,
    /// How many agents a game has.
    pub seats: usize,
    /// Whether the games of a meeting are played on all seats with one seed.
    pub paired: bool,
    /// Which season, from 1.
    pub number: u32,
    /// Whether it is over.
    pub is_closed: bool,
    /// Who takes part: every version of an agent for itself.
    pub agents: Vec<SeasonAgent>,
    /// What they have played; agents by their place in the list.
    pub results: Results,
}

/// A version of an agent in a season.
#[derive(Debug)]
pub struct SeasonAgent {
    /// What it is called; other versions are called the same.
    pub name: String,
    /// Which of them it is, from 1.
    pub generation: u32,
    /// What its owner or its manifest calls the version.
    pub version: Option<String>,
    /// As the user named it.
    pub path: String,
    /// Whether it is in the league, rather than gone.
    pub is_present: bool,
    /// How often it was disqualified, and why.
    pub fate: Fate,
}

/// All that is known of the agents, in the order of their standing.
struct Standings<'s> {
    season: &'s Season,
    /// What each is called where nothing else tells versions apart.
    labels: Vec<String>,
    tallies: Vec<Tally>,
    ratings: Option<Ratings>,
    /// The agents that have played, which are those that are rated.
    rated: Vec<usize>,
    /// The highest rating first; those who haven't played come last.
    order: Vec<usize>,
}

impl<'s> Standings<'s> {
    fn of(season: &'s Season) -> Standings<'s> {
        let tallies = tallies(&season.results);
        let (rated, waiting): (Vec<usize>, Vec<usize>) =
            (0..season.agents.len()).partition(|agent| tallies[*agent].games > 0);
        let ratings = rate(&season.results, &rated);
        let mut order: Vec<usize> = match &ratings {
            Some(ratings) => ratings.order().into_iter().map(|place| rated[place]).collect(),
            None => rated.clone(),
        };
        order.extend(waiting);
        Standings { season, labels: labels(&season.agents), tallies, ratings, rated, order }
    }

    fn rating(&self, agent: usize) -> Option<Rating> {
        let place = self.rated.binary_search(&agent).ok()?;
        self.ratings.as_ref().map(|ratings| ratings.rating(place))
    }

    /// The place that an agent shares with those whom the games don't tell apart from it.
    fn rank(&self, agent: usize) -> Option<(usize, bool)> {
        let place = self.rated.binary_search(&agent).ok()?;
        let ratings = self.ratings.as_ref()?;
        Some((ratings.rating(place).ranks.place, ratings.place(place).ends_with('=')))
    }

    /// The group of agents that share games with it, from 0.
    fn group(&self, agent: usize) -> Option<usize> {
        let place = self.rated.binary_search(&agent).ok()?;
        self.ratings.as_ref().map(|ratings| ratings.group(place))
    }

    fn share(&self, agent: usize) -> f64 {
        let Tally { games, points, .. } = self.tallies[agent];
        if games == 0 { 0.0 } else { points / games as f64 }
    }

    /// For each agent what it made of its games against each: how many, and its points.
    fn versus(&self) -> Vec<Vec<(u64, f64)>> {
        let mut table = vec![vec![(0, 0.0); self.season.agents.len()]; self.season.agents.len()];
        for game in self.season.results.games() {
            for (one, two, outcome) in game.comparisons() {
                for (one, two, outcome) in [(one.0, two.0, outcome), (two.0, one.0, Outcome::reversed(outcome))] {
                    table[one][two].0 += 1;
                    table[one][two].1 += outcome.points();
                }
            }
        }
        table
    }
}

/// Ratings of those that have played alone: the others would stand among them as if something were known of them.
fn rate(results: &Results, rated: &[usize]) -> Option<Ratings> {
    let rated: Vec<AgentIndex> = rated.iter().map(|agent| AgentIndex(*agent)).collect();
    Ratings::of_results(&results.among(&rated))
}

/// What each agent is called where nothing else tells versions apart: its name, and which version it is if there are several.
pub fn labels(agents: &[SeasonAgent]) -> Vec<String> {
    let label = |one: &SeasonAgent| match agents.iter().filter(|other| other.name == one.name).count() {
        1 => one.name.clone(),
        _ => format!("{} {}", one.name, version(agents, one)),
    };
    agents.iter().map(label).collect()
}

/// What tells a version from the others of its name: what it is called, if none of them is called the same, or its number.
fn version(agents: &[SeasonAgent], one: &SeasonAgent) -> String {
    let same = agents.iter().filter(|other| other.name == one.name && other.version == one.version).count();
    match &one.version {
        Some(version) if same == 1 => version.clone(),
        Some(version) => format!("{version} #{}", one.generation),
        None => format!("#{}", one.generation),
    }
}

/// What is played, in a line.
pub fn title(season: &Season) -> String {
    let seats = if season.seats == 2 { String::new() } else { format!(" of {} seats", season.seats) };
    let meeting = if season.paired { "paired games" } else { "single games" };
    format!("{}: {}, {meeting}{seats}, season {}", season.league, season.game, season.number)
}

/// How far it is, in a few words.
pub fn played(season: &Season) -> String {
    let games = season.results.len();
    let games = if games == 1 { "1 game".to_owned() } else { format!("{games} games") };
    let state = if season.is_closed { "the season is closed" } else { "the season goes on" };
    format!("{games} played, {state}")
}

/// The standings.
pub fn grid(season: &Season) -> Grid {
    let standings = Standings::of(season);
    let has_versions = season.agents.iter().any(|agent| agent.version.is_some() || agent.generation > 1);
    let has_fates = season.agents.iter().any(|agent| !agent.fate.verdicts.is_empty());
    let has_gone = season.agents.iter().any(|agent| !agent.is_present);
    let texts = |agent: Option<usize>| -> Vec<String> {
        let cell = |is_there: bool, header: &str, text: &dyn Fn(usize) -> String| {
            is_there.then(|| agent.map_or_else(|| header.to_owned(), text))
        };
        // Nothing is known of whoever hasn't played.
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
            rated("rank may be", &Rating::range),
            tally("games", &|tally| tally.games.to_string()),
            tally("wins", &|tally| tally.wins.to_string()),
            tally("losses", &|tally| tally.losses.to_string()),
            tally("draws", &|tally| tally.draws.to_string()),
            tally("points", &|tally| number_of(tally.points)),
            cell(true, "score %", &|agent| format!("{:.1}", standings.share(agent) * 100.0)),
            cell(has_fates, "disqualified", &|agent| {
                season.agents[agent].fate.verdicts.values().sum::<u64>().to_string()
            }),
            cell(has_gone, "gone", &|agent| if season.agents[agent].is_present { "" } else { "gone" }.to_owned()),
        ];
        cells.into_iter().flatten().collect()
    };
    Grid { header: texts(None), rows: standings.order.iter().map(|agent| texts(Some(*agent))).collect() }
}

/// Who did how against whom: points of games, in the order of the standings.
pub fn cross(season: &Season) -> Grid {
    let standings = Standings::of(season);
    let versus = standings.versus();
    let cell = |(games, points): (u64, f64)| match games {
        0 => "·".to_owned(),
        games => format!("{}/{games}", number_of(points)),
    };
    let labels = standings.order.iter().map(|agent| standings.labels[*agent].clone());
    let rows = standings.order.iter().map(|one| {
        let cells = standings.order.iter().map(|two| cell(versus[*one][*two]));
        std::iter::once(standings.labels[*one].clone()).chain(cells).collect()
    });
    Grid { header: std::iter::once(String::new()).chain(labels).collect(), rows: rows.collect() }
}

/// What a table can't say, a sentence each.
pub fn remarks(season: &Season) -> Vec<String> {
    remarks_of(&Standings::of(season))
}

fn remarks_of(standings: &Standings<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let lead = standings
        .ratings
        .as_ref()
        .and_then(|ratings| ratings.lead_among(|place| &standings.labels[standings.rated[place]]));
    remarks.extend(lead);
    let apart = standings.ratings.as_ref();
    remarks.extend(apart.and_then(|ratings| ratings.apart(|place| &standings.labels[standings.rated[place]])));
    let fate = |agent: &usize| {
        let fate = &standings.season.agents[*agent].fate;
        fate.describe(&standings.labels[*agent], standings.tallies[*agent].games)
    };
    remarks.extend(standings.order.iter().filter_map(fate));
    remarks
}

/// The season, its standings, the cross table and the remarks as a JSON object.
pub fn json(season: &Season) -> Value {
    let standings = Standings::of(season);
    let line = |&agent: &usize| {
        let (one, tally) = (&season.agents[agent], &standings.tallies[agent]);
        let disqualified: BTreeMap<_, _> =
            one.fate.verdicts.iter().map(|(verdict, count)| (verdict.name(), *count)).collect();
        let mut told = json!({
            "rank": standings.rank(agent).map(|(place, _)| place),
            "name": one.name,
            "version": one.version,
            "generation": one.generation,
            "label": standings.labels[agent],
            "agent_path": one.path,
            "present": one.is_present,
            "games": tally.games,
            "wins": tally.wins,
            "losses": tally.losses,
            "draws": tally.draws,
            "points": tally.points,
            "share": standings.share(agent),
            "disqualified": disqualified,
        });
        if let Some(Rating { elo, interval, ranks }) = standings.rating(agent) {
            // An end that is open is null.
            told["elo"] = json!({"rating": elo, "low": interval.low, "high": interval.high});
            told["rank_may_be"] = json!({"best": ranks.best, "worst": ranks.worst});
            // Ratings of different groups can't be compared.
            told["group"] = standings.group(agent).map(|group| 1 + group).into();
        }
        told
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
        "league": season.league,
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

/// The standings as comma-separated values. Source: RFC 4180.
pub fn csv(season: &Season) -> String {
    grid(season).csv()
}

/// The standings and the cross table in Markdown.
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

/// The first column of the standings that holds numbers: those behind the name and the version.
pub fn numbers_from(grid: &Grid) -> usize {
    let is_text = |header: &String| ["name", "version"].contains(&header.as_str());
    grid.header.iter().rposition(is_text).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests;
