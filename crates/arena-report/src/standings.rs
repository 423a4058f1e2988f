//! Standings as texts: who stands where, who did how against whom, and who was disqualified.

use std::collections::BTreeMap;

use arena_model::Verdict;
use arena_tournament::{Record, Standing, Stop, Versus, cross_table, standings};

use crate::ending::verdict;
use crate::ratings::{Rating, Ratings};
use crate::reproduce::seed;
use crate::scores::{PARTS, means};
use crate::text::number_of;

/// With more agents than this, a cross table is too wide for people.
pub const WIDEST_CROSS_TABLE: usize = 16;

/// A table as texts, for whatever form it takes.
pub struct Grid {
    /// The columns.
    pub header: Vec<String>,
    /// Their texts, row by row.
    pub rows: Vec<Vec<String>>,
}

/// How often an agent was disqualified, and why.
#[derive(Debug, Default)]
pub struct Fate {
    /// For each reason, how often.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// The first of those games, and what happened in it.
    pub first: Option<(usize, String)>,
}

impl Fate {
    /// Counts a disqualification in the game of this number.
    pub fn add(&mut self, verdict: Verdict, number: usize, detail: Option<&str>) {
        *self.verdicts.entry(verdict).or_default() += 1;
        self.first.get_or_insert_with(|| (number, detail.unwrap_or_default().to_owned()));
    }

    /// A sentence on the disqualifications of the agent `name` in `games` games; `None` if there are none.
    pub(crate) fn describe(&self, name: &str, games: u64) -> Option<String> {
        let (game, detail) = self.first.as_ref()?;
        let (times, reasons) = (self.verdicts.values().sum::<u64>(), reasons(&self.verdicts));
        Some(format!(
            "{name} was disqualified in {times} of {games} games ({reasons}); the first was game {game}: {detail}"
        ))
    }
}

/// A line with the tournament's game, format, size and seed.
pub fn title(record: &Record) -> String {
    format!("{}, seed {}", title_without_seed(record), seed(&record.plan))
}

/// The same without the seed, which no agent may know while games are left.
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
        Some(Stop::Margin(margin)) => format!("until ratings are sure to ±{margin} Elo, at most {rounds}"),
        None => rounds,
    };
    let seats = if seats == 2 { String::new() } else { format!(" of {seats} seats") };
    let meeting = if plan.paired { "paired games" } else { "single games" };
    format!("{}: {} of {agents} agents, {rounds}, {meeting}{seats}", plan.game, plan.format)
}

/// How far it is, in a few words.
pub fn played(record: &Record) -> String {
    let (played, all) = (record.schedule.games_played(), record.schedule.games());
    format!("{played} of {all} games played")
}

/// The standings.
pub fn grid(record: &Record) -> Grid {
    table(record, false)
}

/// The standings for spreadsheets: either end of an interval of utilities and securities has a column of its own.
pub(crate) fn numbers(record: &Record) -> Grid {
    table(record, true)
}

fn table(record: &Record, has_ends: bool) -> Grid {
    let lines = standings(&record.schedule);
    let has_byes = lines.iter().any(|line| line.byes > 0);
    let is_knockout = record.schedule.survived().is_some();
    let fates = fates(record);
    let ratings = Ratings::of(record);
    let has_fates = fates.iter().any(|fate| !fate.verdicts.is_empty());
    let means = means(record);
    let scored = |line: Option<&Standing>| -> Vec<String> {
        let Some(means) = &means else { return Vec::new() };
        let columns = PARTS.iter().enumerate().flat_map(|(at, part)| {
            let Some(line) = line else {
                return match has_ends {
                    true => vec![(*part).to_owned(), format!("{part} low"), format!("{part} high")],
                    false => vec![(*part).to_owned(), format!("{part} 95 %")],
                };
            };
            match (means[line.agent].map(|means| means[at]), has_ends) {
                (Some(mean), true) => vec![number_of(mean.mean), number_of(mean.low), number_of(mean.high)],
                (Some(mean), false) => vec![mean.text(), mean.interval()],
                (None, true) => vec![String::new(); 3],
                (None, false) => vec![String::new(); 2],
            }
        });
        columns.collect()
    };
    let texts = |line: Option<&Standing>| -> Vec<String> {
        let cell = |is_there: bool, header: &str, text: &dyn Fn(&Standing) -> String| {
            is_there.then(|| line.map_or_else(|| header.to_owned(), text))
        };
        let rated = |header: &str, text: &dyn Fn(&Rating) -> String| {
            let ratings = ratings.as_ref()?;
            // Nothing is known of whoever hasn't played.
            let rating =
                |line: &Standing| if line.games > 0 { text(&ratings.rating(line.agent)) } else { String::new() };
            Some(line.map_or_else(|| header.to_owned(), rating))
        };
        let cells = [
            cell(true, "rank", &|line| line.rank.to_string()),
            cell(true, "name", &|line| record.name(line.agent).to_owned()),
            rated("Elo", &|rating| format!("{:.0}", rating.elo.round() + 0.0)),
            rated("±", &Rating::margin),
            rated("rank may be", &Rating::range),
            cell(is_knockout, "rounds survived", &|line| line.survived.unwrap_or(0).to_string()),
            cell(true, "games", &|line| line.games.to_string()),
            cell(true, "wins", &|line| line.wins.to_string()),
            cell(true, "losses", &|line| line.losses.to_string()),
            cell(true, "draws", &|line| line.draws.to_string()),
            cell(has_byes, "byes", &|line| line.byes.to_string()),
            cell(true, "points", &|line| number_of(line.points)),
            cell(true, "score %", &|line| format!("{:.1}", line.share * 100.0)),
            cell(has_fates, "disqualified", &|line| fates[line.agent].verdicts.values().sum::<u64>().to_string()),
        ];
        cells.into_iter().flatten().chain(scored(line)).collect()
    };
    Grid { header: texts(None), rows: lines.iter().map(|line| texts(Some(line))).collect() }
}

/// Who did how against whom: points of games, in the order of the standings.
pub fn cross(record: &Record) -> Grid {
    let lines = standings(&record.schedule);
    let table = cross_table(&record.schedule);
    let cell = |versus: Versus| match versus.games {
        0 => "·".to_owned(),
        games => format!("{}/{games}", number_of(versus.half_points as f64 / 2.0)),
    };
    let header = ["".to_owned()].into_iter().chain(lines.iter().map(|line| record.name(line.agent).to_owned()));
    let rows = lines.iter().map(|line| {
        let name = record.name(line.agent).to_owned();
        [name].into_iter().chain(lines.iter().map(|other| cell(table[line.agent][other.agent]))).collect()
    });
    Grid { header: header.collect(), rows: rows.collect() }
}

/// What a table can't say, a sentence each.
pub fn remarks(record: &Record) -> Vec<String> {
    let ratings = Ratings::of(record);
    let lead = ratings.as_ref().filter(|_| record.schedule.is_complete()).and_then(|ratings| ratings.lead(record));
    let apart = ratings.and_then(|ratings| ratings.apart(|agent| record.name(agent)));
    let told = verdict(record).into_iter().chain(lead).chain(apart).chain(repeated(record));
    let told = told.chain(rules(record)).chain(void(record));
    told.chain(disqualifications(record)).chain(incidents(record)).collect()
}

/// That it was played by other rules than this program's.
fn rules(record: &Record) -> Option<String> {
    let plan = &record.plan;
    let found = plan.game().ok()?.rules_version;
    (found != plan.rules_version).then(|| {
        format!(
            "its games were played by version {} of the rules of {}, and this program plays by version {found}",
            plan.rules_version, plan.game
        )
    })
}

/// The number of games that count for no agent.
fn void(record: &Record) -> Option<String> {
    match record.schedule.void() {
        0 => None,
        1 => Some("1 game was void and counts for no agent".to_owned()),
        void => Some(format!("{void} games were void and count for no agent")),
    }
}

/// A sentence on games that repeat earlier ones, if there are any.
pub(crate) fn repeated(record: &Record) -> Option<String> {
    let numbered = (1..).zip(record.schedule.repeats());
    let repeats: Vec<(usize, usize)> = numbered.filter_map(|(number, first)| Some((number, first?))).collect();
    let (number, first) = repeats.first()?;
    let (games, all) = (repeats.len(), record.schedule.games_played());
    let are = if games == 1 { "game repeats" } else { "games repeat" };
    Some(format!(
        "{games} of {all} {are} an earlier one move by move (game {number} repeats game {first}); a repeated game counts in points, and once as evidence for ratings and intervals"
    ))
}

/// Who was disqualified how often and why, in the order of the standings.
fn disqualifications(record: &Record) -> Vec<String> {
    let fates = fates(record);
    let told = |line: Standing| fates[line.agent].describe(record.name(line.agent), line.games);
    standings(&record.schedule).into_iter().filter_map(told).collect()
}

/// How often for what: `2 × CRASHED, 1 × TIMEOUT`.
pub(crate) fn reasons(verdicts: &BTreeMap<Verdict, u64>) -> String {
    verdicts.iter().map(|(verdict, count)| format!("{count} × {verdict}")).collect::<Vec<_>>().join(", ")
}

/// Decisions by lot, agents that were changed on the way, and workers that weren't believed any more.
pub(crate) fn incidents(record: &Record) -> Vec<String> {
    let lots = record.schedule.by_lot().iter().map(|(winner, loser, round)| {
        let (winner, loser) = (record.name(*winner), record.name(*loser));
        format!(
            "round {round}: {winner} and {loser} drew all tie-breaks too; {winner} went on, since it was drawn first at the start"
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
        format!("the worker {} was quarantined: {}; {games}", line.worker, line.why)
    });
    lots.chain(changes).chain(quarantined).collect()
}

/// What became of each agent, by number.
pub fn fates(record: &Record) -> Vec<Fate> {
    let mut fates: Vec<Fate> = record.plan.agents.iter().map(|_| Fate::default()).collect();
    for game in record.games() {
        let Some(fixture) = record.schedule.pairing(game.number) else { continue };
        for (seat, agent) in game.result.seats.iter().zip(&fixture.agents) {
            if let Some(verdict) = seat.verdict {
                fates[*agent].add(verdict, game.number, seat.detail.as_deref());
            }
        }
    }
    fates
}
