//! The output of rated results, for people and for programs.

use arena_ratings::bradley_terry::Group;
use arena_ratings::{AgentIndex, Difference, RatingRow, RatingTable, Results, Scores};
use arena_report::{Grid, Rating, apart, lead_width, listed, number_of, versus};
use serde_json::{Value, json};

use super::sources::{Files, Sources, counted_each};
use crate::output::{counted, counted_as};

/// The explanation of the table's columns.
pub const LEGEND: &str = "\
Bradley-Terry rates all games at once, with 95 % intervals; agents of equal rank don't differ significantly. Elo
rates game by game, in the order of the files.";

pub struct Rated {
    pub sources: Sources,
    pub results: Results,
    pub table: RatingTable,
    /// True if the user requested the first seat's advantage.
    pub wants_advantage: bool,
}

impl Rated {
    fn name(&self, agent: AgentIndex) -> &str {
        &self.sources.games.names()[agent.0]
    }

    /// Returns the title: the number of agents, games and files.
    pub fn title(&self) -> String {
        let Files { journals, json_lines, replays, pgn } = self.sources.files;
        let kinds = [
            (journals, "journal", "journals"),
            (json_lines, "file of JSON lines", "files of JSON lines"),
            (replays, "replay", "replays"),
            (pgn, "PGN file", "PGN files"),
        ];
        let (games, kinds) = (counted(self.results.len(), "game"), counted_each(&kinds).join(", "));
        format!("Ratings of {} agents from {games}: {kinds}", self.results.agents())
    }

    pub fn grid(&self) -> Grid {
        // Each group of agents has its own ranks.
        let has_groups = self.table.groups.len() > 1;
        let header = "rank|name|Bradley-Terry|±|rank range (95 %)|points|games|wins|draws|losses|score %|Elo";
        let rows = self.table.rows.iter().map(|row| {
            let rating = Rating { elo: row.rating, interval: row.interval, ranks: row.rank };
            let share = 100.0 * row.tally.points / row.tally.games as f64;
            vec![
                self.rank(row),
                self.name(row.agent).to_owned(),
                whole(row.rating),
                rating.margin(),
                rating.range(),
                number_of(row.tally.points),
                row.tally.games.to_string(),
                row.tally.wins.to_string(),
                row.tally.draws.to_string(),
                row.tally.losses.to_string(),
                format!("{share:.1}"),
                whole(row.elo),
            ]
        });
        let header = header.split('|').map(str::to_owned).collect();
        let mut grid = Grid { header, rows: rows.collect() };
        if has_groups {
            grid.header.push("group".to_owned());
            for (texts, row) in grid.rows.iter_mut().zip(&self.table.rows) {
                texts.push((1 + row.group).to_string());
            }
        }
        grid
    }

    /// Formats the rank, with a mark if several agents share it.
    fn rank(&self, row: &RatingRow) -> String {
        let tie = (row.group, row.rank.tie);
        let is_shared = self.table.rows.iter().filter(|other| (other.group, other.rank.tie) == tie).count() > 1;
        format!("{}{}", row.rank.place, if is_shared { "=" } else { "" })
    }

    /// Returns the table for spreadsheets: one number in each cell, with all significant decimals. The cell of an
    /// infinite interval bound is empty.
    pub fn numbers(&self) -> Grid {
        let header = "rank name rating low high best_rank worst_rank points games wins draws losses share elo group";
        // Rounding errors around 0 become 0 without a sign.
        let rounded = |number: f64| (number * 1e6).round() / 1e6 + 0.0;
        let decimal = |number: f64| if number.is_finite() { rounded(number).to_string() } else { String::new() };
        let rows = self.table.rows.iter().map(|row| {
            vec![
                row.rank.place.to_string(),
                self.name(row.agent).to_owned(),
                decimal(row.rating),
                decimal(row.interval.low),
                decimal(row.interval.high),
                row.rank.best.to_string(),
                row.rank.worst.to_string(),
                decimal(row.tally.points),
                row.tally.games.to_string(),
                row.tally.wins.to_string(),
                row.tally.draws.to_string(),
                row.tally.losses.to_string(),
                decimal(row.tally.points / row.tally.games as f64),
                decimal(row.elo),
                (1 + row.group).to_string(),
            ]
        });
        Grid { header: header.split(' ').map(str::to_owned).collect(), rows: rows.collect() }
    }

    pub fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .table
            .rows
            .iter()
            .map(|row| {
                json!({
                    "rank": row.rank.place,
                    "name": self.name(row.agent),
                    // Ratings and ranks of different groups can't be compared.
                    "group": 1 + row.group,
                    // An infinite interval bound is null.
                    "bradley_terry": {"rating": row.rating, "low": row.interval.low, "high": row.interval.high},
                    "rank_may_be": {"best": row.rank.best, "worst": row.rank.worst},
                    "points": row.tally.points,
                    "games": row.tally.games,
                    "wins": row.tally.wins,
                    "draws": row.tally.draws,
                    "losses": row.tally.losses,
                    "share": row.tally.points / row.tally.games as f64,
                    "elo": row.elo,
                })
            })
            .collect();
        let sources = &self.sources;
        let mut json = json!({
            "agents": self.results.agents(),
            "games": self.results.len(),
            "files": sources.files,
            "standings": rows,
            "groups": self.table.groups.iter().map(|group| self.group_json(group)).collect::<Vec<_>>(),
            "games_to_lose_lead": self.only_group().and_then(|group| group.fit.games_to_lose_lead()),
            "drawn": self.drawn(),
            "disqualified": sources.tainted,
            "games_repeated": self.results.repeats(),
            "left_out": {
                "repeated": sources.games.repeated,
                "other_rules": sources.other_rules,
                "unfinished": sources.unfinished,
                "nameless": sources.nameless,
                "against_itself": sources.games.against_itself,
                "void": sources.games.void,
                "replays_without_result": sources.broken_replays,
                "forks": sources.forks,
            },
            "remarks": self.remarks(),
        });
        if let Some(advantage) = self.only_group().and_then(advantage_json) {
            json["first_seat_advantage"] = advantage;
        }
        if let Some(versus) = self.versus() {
            json["versus"] = versus.json();
        }
        json
    }

    fn group_json(&self, group: &Group) -> Value {
        let mut json = json!({
            "names": group.agents.iter().map(|agent| self.name(*agent)).collect::<Vec<_>>(),
            "games": group.results.len(),
            "games_to_lose_lead": group.fit.games_to_lose_lead(),
        });
        if let Some(advantage) = advantage_json(group) {
            json["first_seat_advantage"] = advantage;
        }
        json
    }

    /// Returns the group of all agents, if there is only one.
    fn only_group(&self) -> Option<&Group> {
        match &self.table.groups[..] {
            [group] => Some(group),
            _ => None,
        }
    }

    /// Returns the match of the two agents, if there are only two.
    pub fn versus(&self) -> Option<Versus<'_>> {
        let [one, two] = self.table.rows[..] else { return None };
        let (one, two) = (one.agent, two.agent);
        let games = Scores::trinomial(&self.results, one, two);
        let Scores::Trinomial(counts) = games else { return None };
        // If some games have no pair, pairs cover only a part of the match.
        let pairs = match Scores::pentanomial(&self.results, one, two) {
            Scores::Pentanomial(pairs) if 2 * pairs.iter().sum::<u64>() == counts.iter().sum::<u64>() => Some(pairs),
            _ => None,
        };
        let difference = pairs.map_or(games, Scores::Pentanomial).difference()?;
        Some(Versus { names: [self.name(one), self.name(two)], counts, pairs, difference })
    }

    /// Returns the number of games in which several agents share the first rank.
    fn drawn(&self) -> usize {
        self.results.games().filter(|game| game.seats.iter().filter(|seat| seat.rank == 1).count() > 1).count()
    }

    /// Returns the remarks below the table, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let names = |group: &Group| group.agents.iter().map(|agent| self.name(*agent)).collect();
        remarks.extend(apart(&self.table.groups.iter().map(names).collect::<Vec<_>>()));
        for group in &self.table.groups {
            remarks.extend(self.lead(group));
            remarks.extend(self.advantage(group));
            remarks.extend(self.outside(group));
        }
        let games = self.results.len();
        let drawn = self.drawn();
        if drawn > 0 {
            remarks.push(format!("{drawn} of {games} games were drawn ({:.1} %)", 100.0 * drawn as f64 / games as f64));
        }
        let again = self.results.repeats() as u64;
        if again > 0 {
            remarks.push(format!(
                "{} an earlier one move by move; a repeated game counts in points and Elo, and once as evidence for Bradley-Terry",
                counted_as(again, "game repeats", "games repeat")
            ));
        }
        remarks.extend(self.sources.remarks());
        remarks
    }

    /// Returns a sentence with the width of the lead in a group: the number of wins in a row of the second agent
    /// against the first that would end the lead. If several agents lead, the sentence lists them.
    fn lead(&self, group: &Group) -> Option<String> {
        let games = group.fit.games_to_lose_lead()?;
        if games == 0 {
            let leaders: Vec<AgentIndex> = group.fit.leaders().iter().map(|place| group.agents[place.0]).collect();
            return Some(format!("no leader: {} share first place", listed(&self.names_of(&leaders))));
        }
        let order = group.fit.order();
        let [first, second, ..] = order[..] else { return None };
        let (first, second) = (self.name(group.agents[first.0]), self.name(group.agents[second.0]));
        Some(lead_width(first, "lead", games, second))
    }

    fn advantage(&self, group: &Group) -> Option<String> {
        if !self.wants_advantage {
            return None;
        }
        let within = match self.only_group() {
            Some(_) => String::new(),
            None => format!("among {}, ", listed(&self.names_of(&group.agents))),
        };
        let Some((elo, interval)) = group.fit.seat_advantage() else {
            return Some(format!("{within}there are no games of two agents, so the first seat's advantage is unknown"));
        };
        Some(format!(
            "{within}the first seat (White in chess) is worth {elo:.0} Elo (95 %: {:.0} to {:.0})",
            interval.low, interval.high
        ))
    }

    fn names_of(&self, agents: &[AgentIndex]) -> Vec<&str> {
        agents.iter().map(|agent| self.name(*agent)).collect()
    }

    /// Returns a sentence that names the agents at an unknown rating distance from the rest of the group.
    fn outside(&self, group: &Group) -> Option<String> {
        let core: Vec<AgentIndex> = group.fit.core().map(|place| group.agents[place.0]).collect();
        let outside: Vec<AgentIndex> = group.agents.iter().copied().filter(|agent| !core.contains(agent)).collect();
        if outside.is_empty() {
            return None;
        }
        Some(format!(
            "the rating distance between {} and the other agents is unknown: one side won all points of their games",
            listed(&self.names_of(&outside)),
        ))
    }
}

/// Returns the first seat's advantage in a group as JSON, if it was estimated.
fn advantage_json(group: &Group) -> Option<Value> {
    let (advantage, interval) = group.fit.seat_advantage()?;
    Some(json!({"elo": advantage, "low": interval.low, "high": interval.high}))
}

/// The results between two agents, from the view of the first one.
pub struct Versus<'a> {
    names: [&'a str; 2],
    /// Losses, draws and wins.
    counts: [u64; 3],
    /// The numbers of game pairs in which the first agent scored 0, 0.5, 1, 1.5 and 2 points; `None` if some games have
    /// no pair.
    pairs: Option<[u64; 5]>,
    difference: Difference,
}

impl Versus<'_> {
    /// Formats the results in lines, in the style of chess match runners.
    pub fn describe(&self) -> String {
        let Versus { names: [one, two], counts, pairs, .. } = self;
        let scores = pairs.map_or(Scores::Trinomial(*counts), Scores::Pentanomial);
        format!("{one} against {two}:\n{}", versus(&scores).unwrap_or_default())
    }

    fn json(&self) -> Value {
        let Versus { names: [one, two], counts: [losses, draws, wins], pairs, difference } = self;
        json!({
            "name": one,
            "against": two,
            "wins": wins,
            "draws": draws,
            "losses": losses,
            "pairs": pairs,
            "difference": difference,
        })
    }
}

/// Formats a rating as an integer; zero has no sign.
fn whole(rating: f64) -> String {
    format!("{:.0}", rating.round() + 0.0)
}
