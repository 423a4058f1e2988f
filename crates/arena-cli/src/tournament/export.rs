//! Standings and games for other programs: JSON, CSV, Markdown, PGN. Equal plans and results give equal bytes.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use arena_match::export_pgn;
use arena_match::tournament::{GameLine, Record};
use arena_model::Verdict;
use arena_tournament::{cross_table, standings};
use serde_json::{Value, json};

use super::ratings::{Rating, Ratings};
use super::standings::{Grid, cross, fates, grid, remarks, title};
use super::watch::named;
use crate::exit::{Exit, Failure};
use crate::output::{print, printable};

/// The standings as a JSON object on one line.
pub fn json(record: &Record) -> Result<String, Failure> {
    let (fates, ratings) = (fates(record), Ratings::of(record));
    let lines: Vec<Value> = standings(&record.schedule)
        .into_iter()
        .map(|line| {
            let (agent, fate) = (&record.plan.agents[line.agent], &fates[line.agent]);
            let mut told = json!({
                "rank": line.rank,
                "name": agent.name,
                "version": agent.version,
                "agent_path": agent.path,
                "games": line.games,
                "wins": line.wins,
                "losses": line.losses,
                "draws": line.draws,
                "byes": line.byes,
                "points": line.points,
                "share": line.share,
                "disqualified": fate.verdicts.iter().map(|(verdict, count)| (verdict.name(), *count)).collect::<std::collections::BTreeMap<_, _>>(),
            });
            if let Some(ratings) = ratings.as_ref().filter(|_| line.games > 0) {
                let Rating { elo, interval, ranks } = ratings.rating(line.agent);
                // An end that is open is null.
                told["elo"] = json!({"rating": elo, "low": interval.low, "high": interval.high});
                told["rank_may_be"] = json!({"best": ranks.best, "worst": ranks.worst});
            }
            if let Some(survived) = line.survived {
                told["rounds_survived"] = survived.into();
            }
            told
        })
        .collect();
    let table = cross_table(&record.schedule);
    let mut pairs = Vec::new();
    for (a, row) in table.iter().enumerate() {
        for (b, versus) in row.iter().enumerate().filter(|(_, versus)| versus.games > 0) {
            let points = versus.half_points as f64 / 2.0;
            pairs.push(
                json!({"name": record.name(a), "against": record.name(b), "games": versus.games, "points": points}),
            );
        }
    }
    let plan = &record.plan;
    let told = json!({
        "game": plan.game,
        "options": plan.options,
        "format": plan.format,
        "rounds": plan.rounds,
        "seats": plan.seats,
        "paired": plan.paired,
        "seed": plan.seed,
        "complete": record.schedule.is_complete(),
        "games_played": record.schedule.games_played(),
        "games": record.schedule.least_games(),
        "standings": lines,
        "cross_table": pairs,
        "remarks": remarks(record),
    });
    serde_json::to_string(&told).map_err(|error| Failure::caused(Exit::Internal, &error))
}

/// The standings as comma-separated values. Source: RFC 4180.
pub fn csv(record: &Record) -> String {
    let Grid { header, rows } = grid(record);
    let cell = |text: &String| match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.clone(),
    };
    let line = |cells: &Vec<String>| cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
    [header].iter().chain(&rows).map(line).collect()
}

/// The standings and the cross table in Markdown.
pub fn markdown(record: &Record) -> String {
    let (played, all) = (record.schedule.games_played(), record.schedule.least_games());
    let remarks: String = remarks(record).iter().map(|remark| format!("- {}\n", plain(remark))).collect();
    format!(
        "{}\n\n{played} of {all} games played.\n\n{}\n{}\n{remarks}",
        plain(&title(record)),
        table(&grid(record), 2),
        table(&cross(record), 1)
    )
}

/// A table whose columns from `numbers` on are numbers.
fn table(grid: &Grid, numbers: usize) -> String {
    let row = |cells: &Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| plain(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = |column: usize| if column >= numbers { "--:|" } else { "---|" };
    let rules: String = (0..grid.header.len()).map(rule).collect();
    format!("{}|{rules}\n{}", row(&grid.header), grid.rows.iter().map(row).collect::<String>())
}

/// A text that means nothing to Markdown but itself.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for char in printable(text).replace('\n', " ").chars() {
        if "\\`*_[]<>|#".contains(char) {
            plain.push('\\');
        }
        plain.push(char);
    }
    plain
}

/// Prints all games of two in Portable Game Notation, by number. Games of chess whose replays were kept have moves.
pub fn pgn(record: &Record, replays: &Path) -> Result<(), Failure> {
    if record.plan.seats != 2 {
        let sentence = format!("PGN is for games of two, and these have {} seats", record.plan.seats);
        return Err(Failure::new(Exit::Usage, sentence));
    }
    for game in record.games() {
        let path = replays.join(format!("{}.jsonl", game.fixture));
        let moves = match File::open(&path) {
            Ok(file) if record.plan.game == "chess" => moves(&path, BufReader::new(file))?,
            _ => String::new(),
        };
        print(&one(record, game, &moves))?;
    }
    Ok(())
}

/// What a replay has between its tags and its end: the moves, and how it ended. The tags are the tournament's.
fn moves(path: &Path, replay: BufReader<File>) -> Result<String, Failure> {
    let mut text = Vec::new();
    export_pgn(replay, &mut text).map_err(|error| Failure::caused(Exit::BadReplay, &error).about(&path.display()))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.split_once("\n\n").map(|(_, moves)| moves.trim_end().to_owned()).unwrap_or_default())
}

fn one(record: &Record, game: &GameLine, moves: &str) -> String {
    let (names, result) = named(record, game);
    let termination = match game.outcome.tainted_reason {
        None => "normal",
        Some(Verdict::Timeout) => "time forfeit",
        Some(_) => "rules infraction",
    };
    let number = game.fixture.to_string();
    let round = format!("{}.{number}", game.round);
    let tags = [
        ("Event", format!("{} {}", record.plan.game, record.plan.format)),
        ("Site", "?".to_owned()),
        ("Date", "????.??.??".to_owned()),
        ("Round", round),
        ("White", names[0].to_owned()),
        ("Black", names[1].to_owned()),
        ("Result", result.clone()),
        ("Termination", termination.to_owned()),
        ("Seed", game.seed.clone()),
    ];
    let quoted = |text: &str| printable(text).replace('\n', " ").replace('\\', "\\\\").replace('"', "\\\"");
    let tags: String = tags.iter().map(|(tag, value)| format!("[{tag} \"{}\"]\n", quoted(value))).collect();
    let end = match moves.is_empty() {
        true => format!(
            "{{{}}} {result}",
            game.outcome
                .tainted_reason
                .map_or_else(|| game.outcome.termination.to_string(), |reason| reason.to_string())
        ),
        false => moves.to_owned(),
    };
    format!("{tags}\n{end}\n")
}
