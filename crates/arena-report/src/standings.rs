//! Standings, cross table and remarks as text.

use std::collections::BTreeMap;

use arena_model::Verdict;
use arena_tournament::{HeadToHead, Record, Stop, TournamentStanding, cross_table, standings};

use crate::ending::verdict;
use crate::ratings::{Rating, Ratings};
use crate::reproduce::seed;
use crate::scores::{Means, PARTS, means};
use crate::text::number_of;

/// The largest number of agents for which a cross table is shown as text. Wider tables are hard to read.
pub const WIDEST_CROSS_TABLE: usize = 16;

/// The heading of the column with the range of ranks that the rating intervals permit.
pub(crate) const RANK_RANGE: &str = "rank range (95 %)";

/// A table of text cells, for every output format.
pub struct Grid {
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

#[derive(Debug, Default)]
pub struct Disqualifications {
    pub verdicts: BTreeMap<Verdict, u64>,
    /// The first disqualification: the number of its game, and its details.
    pub first: Option<(usize, String)>,
}

impl Disqualifications {
    pub fn count(&self) -> u64 {
        self.verdicts.values().sum()
    }

    /// Returns the counts by the names of the verdicts.
    pub(crate) fn by_name(&self) -> BTreeMap<&'static str, u64> {
        self.verdicts.iter().map(|(verdict, count)| (verdict.name(), *count)).collect()
    }

    /// Counts a disqualification in the game with this number.
    pub fn add(&mut self, verdict: Verdict, number: usize, detail: Option<&str>) {
        *self.verdicts.entry(verdict).or_default() += 1;
        self.first.get_or_insert_with(|| (number, detail.unwrap_or_default().to_owned()));
    }

    /// Describes the disqualifications of the agent `name` in `games` games; `None` if there are none.
    pub(crate) fn describe(&self, name: &str, games: u64) -> Option<String> {
        let (game, detail) = self.first.as_ref()?;
        let (times, reasons) = (self.count(), reasons(&self.verdicts));
        Some(format!(
            "{name} was disqualified in {times} of {games} games ({reasons}); the first was game {game}: {detail}"
        ))
    }
}

/// Returns one line with the tournament's game, format, size and seed.
pub fn title(record: &Record) -> String {
    format!("{}, seed {}", title_without_seed(record), seed(&record.plan))
}

/// Returns [`title`] without the seed, which is secret while games are left.
pub fn title_without_seed(record: &Record) -> String {
    let plan = &record.plan;
    let (agents, seats) = (plan.agents.len(), plan.seats);
    let format = plan.format.info();
    let rounds = match plan.rounds {
        _ if format.is_adaptive => format!("{} games", record.schedule.shape().games().unwrap_or_default()),
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} {}", format.rounds),
    };
    let rounds = match plan.stop {
        Some(Stop::Sprt(sprt)) => format!("SPRT {sprt}, at most {rounds}"),
        Some(Stop::Margin(margin)) => format!("until every 95 % interval is within ±{margin} Elo, at most {rounds}"),
        None => rounds,
    };
    let seats = if seats == 2 { String::new() } else { format!(" of {seats} seats") };
    let pairs = if plan.paired { "paired games" } else { "single games" };
    format!("{}: {} of {agents} agents, {rounds}, {pairs}{seats}", plan.game, plan.format)
}

/// Returns the progress: `3 of 12 games played`.
pub fn played(record: &Record) -> String {
    let (played, all) = (record.schedule.games_played(), record.schedule.games());
    format!("{played} of {all} games played")
}

pub fn grid(record: &Record) -> Grid {
    table(record, false)
}

/// Returns the standings for spreadsheets: each end of an interval of utility or security has its own column.
pub(crate) fn numbers(record: &Record) -> Grid {
    table(record, true)
}

fn table(record: &Record, has_ends: bool) -> Grid {
    let lines = standings(&record.schedule);
    let has_byes = lines.iter().any(|line| line.byes > 0);
    let is_knockout = record.schedule.survived().is_some();
    let disqualifications = disqualifications_by_agent(record);
    let ratings = Ratings::of(record);
    let unusable = unusable_answers(record);
    let has_unusable = unusable.iter().any(|count| *count > 0);
    let has_disqualifications = disqualifications.iter().any(|one| !one.verdicts.is_empty());
    let means = means(record);
    let texts = |line: Option<&TournamentStanding>| -> Vec<String> {
        let cell = |is_there: bool, header: &str, text: &dyn Fn(&TournamentStanding) -> String| {
            is_there.then(|| line.map_or_else(|| header.to_owned(), text))
        };
        let rated = |header: &str, text: &dyn Fn(&Rating) -> String| {
            let ratings = ratings.as_ref()?;
            // An agent without games has no rating.
            let rating = |line: &TournamentStanding| {
                if line.games > 0 { text(&ratings.rating(line.agent)) } else { String::new() }
            };
            Some(line.map_or_else(|| header.to_owned(), rating))
        };
        let cells = [
            cell(true, "rank", &|line| line.rank.to_string()),
            cell(true, "name", &|line| record.name(line.agent).to_owned()),
            rated("Elo", &|rating| format!("{:.0}", rating.elo.round() + 0.0)),
            rated("±", &Rating::margin),
            rated(RANK_RANGE, &Rating::range),
            cell(is_knockout, "rounds survived", &|line| line.survived.unwrap_or(0).to_string()),
            cell(true, "games", &|line| line.games.to_string()),
            cell(true, "wins", &|line| line.wins.to_string()),
            cell(true, "losses", &|line| line.losses.to_string()),
            cell(true, "draws", &|line| line.draws.to_string()),
            cell(has_byes, "byes", &|line| line.byes.to_string()),
            cell(true, "points", &|line| number_of(line.points)),
            cell(true, "score %", &|line| format!("{:.1}", line.share * 100.0)),
            cell(has_disqualifications, "disqualified", &|line| disqualifications[line.agent].count().to_string()),
            cell(has_unusable, "unusable answers", &|line| unusable[line.agent].to_string()),
        ];
        let scores = means.iter().flat_map(|means| score_cells(line.map(|line| means[line.agent]), has_ends));
        cells.into_iter().flatten().chain(scores).collect()
    };
    Grid { header: texts(None), rows: lines.iter().map(|line| texts(Some(line))).collect() }
}

/// Returns the cells with an agent's mean utility and security, or the headings of these cells.
fn score_cells(means: Option<Means>, has_ends: bool) -> Vec<String> {
    let cells = |(at, part): (usize, &&str)| match (means.map(|means| means.map(|means| means[at])), has_ends) {
        (None, true) => vec![(*part).to_owned(), format!("{part} low"), format!("{part} high")],
        (None, false) => vec![(*part).to_owned(), format!("{part} 95 %")],
        (Some(Some(mean)), true) => [mean.mean, mean.low, mean.high].map(number_of).to_vec(),
        (Some(Some(mean)), false) => vec![mean.text(), mean.interval()],
        (Some(None), _) => vec![String::new(); if has_ends { 3 } else { 2 }],
    };
    PARTS.iter().enumerate().flat_map(cells).collect()
}

/// Returns the cross table: each agent's points and games against each other agent, in the order of the standings.
pub fn cross(record: &Record) -> Grid {
    let lines = standings(&record.schedule);
    let table = cross_table(&record.schedule);
    let names: Vec<&str> = lines.iter().map(|line| record.name(line.agent)).collect();
    cross_grid(&names, |row, column| {
        let HeadToHead { games, half_points } = table[lines[row].agent][lines[column].agent];
        (games, half_points as f64 / 2.0)
    })
}

/// Returns the cross table of the agents with these names. `versus` returns the games of two agents, and the points of
/// the first.
pub(crate) fn cross_grid(names: &[&str], versus: impl Fn(usize, usize) -> (u64, f64)) -> Grid {
    let cell = |(games, points): (u64, f64)| match games {
        0 => "·".to_owned(),
        games => format!("{}/{games}", number_of(points)),
    };
    let rows = names.iter().enumerate().map(|(row, name)| {
        let cells = (0..names.len()).map(|column| cell(versus(row, column)));
        [(*name).to_owned()].into_iter().chain(cells).collect()
    });
    Grid {
        header: ["".to_owned()].into_iter().chain(names.iter().map(|name| (*name).to_owned())).collect(),
        rows: rows.collect(),
    }
}

pub fn remarks(record: &Record) -> Vec<String> {
    let ratings = Ratings::of(record);
    let lead = ratings.as_ref().filter(|_| record.schedule.is_complete()).and_then(|ratings| ratings.lead(record));
    let apart = ratings.and_then(|ratings| ratings.apart(|agent| record.name(agent)));
    let sentences = verdict(record).into_iter().chain(lead).chain(apart).chain(repeated(record));
    let sentences = sentences.chain(rules(record)).chain(void(record));
    sentences.chain(disqualification_remarks(record)).chain(incidents(record)).collect()
}

/// Returns a sentence if the version of the rules differs from this program's version.
fn rules(record: &Record) -> Option<String> {
    let plan = &record.plan;
    let found = plan.game().ok()?.rules_version;
    (found != plan.rules_version).then(|| {
        format!(
            "the games were played with version {} of the rules of {}; this program has version {found}",
            plan.rules_version, plan.game
        )
    })
}

/// Returns a sentence on games that count for no agent, if there are any.
fn void(record: &Record) -> Option<String> {
    match record.schedule.void() {
        0 => None,
        1 => Some("1 game was void and counts for no agent".to_owned()),
        void => Some(format!("{void} games were void and count for no agent")),
    }
}

/// Returns a sentence on games that repeat earlier games, if there are any.
pub(crate) fn repeated(record: &Record) -> Option<String> {
    let numbered = (1..).zip(record.schedule.repeats());
    let repeats: Vec<(usize, usize)> = numbered.filter_map(|(number, first)| Some((number, first?))).collect();
    let (number, first) = repeats.first()?;
    let (games, all) = (repeats.len(), record.schedule.games_played());
    let are = if games == 1 { "game repeats" } else { "games repeat" };
    Some(format!(
        "{games} of {all} {are} an earlier one move by move (game {number} repeats game {first}); repeats count for points, but not for ratings and intervals"
    ))
}

/// Returns a sentence for each disqualified agent, in the order of the standings.
fn disqualification_remarks(record: &Record) -> Vec<String> {
    let disqualifications = disqualifications_by_agent(record);
    let describe =
        |line: TournamentStanding| disqualifications[line.agent].describe(record.name(line.agent), line.games);
    standings(&record.schedule).into_iter().filter_map(describe).collect()
}

/// Formats the counts of reasons: `2 × CRASHED, 1 × TIMEOUT`.
pub(crate) fn reasons(verdicts: &BTreeMap<Verdict, u64>) -> String {
    verdicts.iter().map(|(verdict, count)| format!("{count} × {verdict}")).collect::<Vec<_>>().join(", ")
}

/// Returns sentences on decisions by lot, changed agents, and differences between workers. Earlier programs also put
/// workers in quarantine.
pub(crate) fn incidents(record: &Record) -> Vec<String> {
    let lots = record.schedule.by_lot().iter().map(|(winner, loser, round)| {
        let (winner, loser) = (record.name(*winner), record.name(*loser));
        format!(
            "round {round}: {winner} and {loser} also drew every tie-break; {winner} advanced, because the draw at the start placed it first"
        )
    });
    let changes = record
        .changes
        .iter()
        .map(|changed| format!("the files of {} were changed during the tournament", changed.agent));
    let quarantined = record.quarantined.iter().map(|line| {
        let games = match line.void.len() {
            0 => "none of its games counted yet".to_owned(),
            1 => "1 game was played again".to_owned(),
            games => format!("{games} games were played again"),
        };
        format!("worker {} was quarantined: {}; {games}", line.worker, line.why)
    });
    let differing = record.checked.iter().filter(|line| line.differs);
    let differing = differing.map(|line| format!("worker {} played game {} differently", line.worker, line.fixture));
    lots.chain(changes).chain(quarantined).chain(differing).collect()
}

/// Returns the number of each agent's answers that were faults or had refused actions, by agent number.
fn unusable_answers(record: &Record) -> Vec<u64> {
    let mut unusable = vec![0; record.plan.agents.len()];
    for game in record.games() {
        let Some(pairing) = record.schedule.pairing(game.number) else { continue };
        for (seat, agent) in game.result.seats.iter().zip(&pairing.agents) {
            unusable[*agent] += u64::from(seat.faults) + u64::from(seat.refused);
        }
    }
    unusable
}

pub fn disqualifications_by_agent(record: &Record) -> Vec<Disqualifications> {
    let mut disqualifications: Vec<Disqualifications> =
        record.plan.agents.iter().map(|_| Disqualifications::default()).collect();
    for game in record.games() {
        let Some(pairing) = record.schedule.pairing(game.number) else { continue };
        for (seat, agent) in game.result.seats.iter().zip(&pairing.agents) {
            if let Some(verdict) = seat.verdict {
                disqualifications[*agent].add(verdict, game.number, seat.detail.as_deref());
            }
        }
    }
    disqualifications
}
