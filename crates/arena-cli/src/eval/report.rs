//! `arena eval report`: the results of a run as tables and a folder of pages, or as JSON, CSV or one HTML file.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arena_eval::report::{TextTable, report};
use arena_eval::{EvalRun, ReportSite};
use arena_report::is_report_file;
use clap::Args;

use super::{load, refused};
use crate::exit::{Exit, Failure};
use crate::output::{Style, Table, print, printable};

/// Options of `arena eval report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena eval report autumn                         tables, and pages for browsers in autumn/report
  arena eval report autumn --html autumn.html      one file, with charts
  arena eval report autumn --csv > autumn.csv      one row for each challenge and agent
  arena eval report autumn --json > autumn.json
  arena eval report autumn --json --without-measurements

The pages show standings with intervals, breaches, costs, and each game with its messages and calls. They need no server and no \
scripts: open report/index.html, or send the folder. The other forms write no pages.

Scores have 95 % intervals over seeds. Reliability, tokens, dollars and seconds are in tables of their own. \
--without-measurements leaves out all numbers that depend on the endpoint and the clock, so that two runs with equal answers print \
equal bytes.")]
pub struct ReportEvalArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Write the report as one HTML file with charts [default file: stdout]
    #[arg(long, group = "form", conflicts_with = "json", value_name = "FILE", num_args = 0..=1)]
    pub html: Option<Option<PathBuf>>,
    /// Print a CSV row for each challenge and agent.
    #[arg(long, group = "form", conflicts_with = "json")]
    pub csv: bool,
    /// Leave out all numbers that depend on the endpoint and the clock (with --json only).
    #[arg(long)]
    pub without_measurements: bool,
}

pub fn run(args: &ReportEvalArgs, style: Style) -> Result<(), Failure> {
    if args.without_measurements && style != Style::Json {
        return Err(Failure::usage("--without-measurements needs --json"));
    }
    let run = load(&args.dir)?;
    if let Some(file) = &args.html {
        let html = report(&run).html();
        return match file {
            None => print(html.trim_end()),
            Some(file) => arena_match::write(file, html.as_bytes()).map_err(|error| unwritable(file, &error)),
        };
    }
    if args.csv {
        return print(report(&run).csv().trim_end());
    }
    if style == Style::Json {
        return print(report(&run).json(!args.without_measurements).trim_end());
    }
    print_tables(&run)?;
    let folder = args.dir.join("report");
    write_pages(&run, &folder)?;
    print(&format!("pages: {}", folder.join("index.html").display()))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::CannotWrite, format_args!("cannot write {}: {error}", path.display()))
}

/// Writes the pages of a run again, if an earlier report has written them.
pub fn rewrite_pages(run: &EvalRun) -> Result<(), Failure> {
    let folder = run.dir.join("report");
    if folder.join("index.html").is_file() { write_pages(run, &folder) } else { Ok(()) }
}

/// Writes the pages of a run, and removes those of an earlier report that the run no longer has.
fn write_pages(run: &EvalRun, folder: &Path) -> Result<(), Failure> {
    let games = folder.join("games");
    fs::create_dir_all(&games).map_err(|error| unwritable(&games, &error))?;
    let mut written = BTreeSet::new();
    for file in ReportSite::of(run).files() {
        let (path, text) = file.map_err(refused)?;
        let path = folder.join(path);
        arena_match::write(&path, text.as_bytes()).map_err(|error| unwritable(&path, &error))?;
        written.insert(path);
    }
    for part in [folder, &games] {
        let entries = fs::read_dir(part).map_err(|error| unwritable(part, &error))?;
        let is_old = |path: &&Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            !written.contains(*path) && name.is_some_and(is_report_file)
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if is_old(&path.as_path()) {
                fs::remove_file(&path).map_err(|error| unwritable(&path, &error))?;
            }
        }
    }
    Ok(())
}

pub fn print_tables(run: &EvalRun) -> Result<(), Failure> {
    for table in report(run).tables() {
        print(&draw(&table))?;
    }
    Ok(())
}

/// Draws a table below its title and above its note. Columns of numbers are aligned to the right.
fn draw(table: &TextTable) -> String {
    let header: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let mut drawn = Table::new(&header);
    for row in &table.rows {
        drawn.row(row.iter().cloned());
    }
    let numbers = (0..header.len()).filter(|column| is_number_column(table, *column));
    let note = table.note.as_deref().map(|note| format!("{}\n", printable(note))).unwrap_or_default();
    format!("{}\n{}\n{note}", printable(&table.title), drawn.right(numbers))
}

/// Returns true if each text of a column begins with a digit or a sign, or is empty or a dash.
fn is_number_column(table: &TextTable, column: usize) -> bool {
    let mut texts = table.rows.iter().filter_map(|row| row.get(column));
    let is_number = |text: &String| {
        let rest = text.trim_start_matches(['+', '-', '−', '±', '<', '>', '~', '$']);
        rest.is_empty()
            || matches!(text.as_str(), "–" | "—" | "?")
            || rest.starts_with(|char: char| char.is_ascii_digit())
    };
    !table.rows.is_empty() && texts.all(is_number)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use expect_test::expect;

    use super::*;
    use crate::command_line::{Cli, Verb};
    use crate::eval::EvalVerb;

    #[test]
    fn numbers_are_on_the_right_and_names_on_the_left() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<String>>();
        let table = TextTable {
            title: "psi".to_owned(),
            columns: texts(&["agent", "utility", "cause"]),
            rows: vec![texts(&["small", "0.50 ± 0.10", "completed"]), texts(&["large", "-1", "2 timeouts"])],
            note: Some("20 seeds".to_owned()),
        };
        expect![[r#"
            psi
            ┌──────────────────────────────────┐
            │ agent       utility   cause      │
            ╞══════════════════════════════════╡
            │ small   0.50 ± 0.10   completed  │
            │ large            -1   2 timeouts │
            └──────────────────────────────────┘
            20 seeds
        "#]]
        .assert_eq(&draw(&table));
    }

    #[test]
    fn html_goes_to_a_file_or_to_stdout() {
        let parsed =
            |args: &str| match Cli::try_parse_from(["arena", "eval", "report"].into_iter().chain(args.split(' '))) {
                Ok(Cli { verb: Verb::Eval(EvalVerb::Report(args)), .. }) => {
                    format!("{} {:?} {}", args.dir.display(), args.html, args.csv)
                }
                other => format!("{:?}", other.map_err(|error| error.kind())),
            };
        for (args, expected) in [
            ("autumn", "autumn None false"),
            ("autumn --html", "autumn Some(None) false"),
            ("autumn --html a.html", "autumn Some(Some(\"a.html\")) false"),
            ("autumn --csv", "autumn None true"),
            ("autumn --csv --html", "Err(ArgumentConflict)"),
            ("autumn --csv --json", "Err(ArgumentConflict)"),
        ] {
            assert_eq!(parsed(args), expected, "{args}");
        }
    }
}
