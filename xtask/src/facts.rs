//! `cargo xtask facts`: prints the sizes of the source tree and the program, for comparison before and after a change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::cargo::{metadata, say, target_folder};
use crate::{budget, duplicates, rules, symbols, times};

/// The number of crates whose size in the program is printed.
const LARGEST: usize = 25;

/// Prints the lines of code of each package, the sizes that have a budget, type names of several crates, duplicates,
/// the files per guide, the durations of the last checks and tests, and the size of the program. Writes the duration of
/// the checks and the size of the program into the budget's file.
///
/// # Errors
/// If a source file can't be read, or a program with symbols exists and `nm` can't read it.
pub fn print(root: &Path) -> anyhow::Result<()> {
    let files = rules::files(root)?;
    print_lines(root, &files)?;
    print_types(&files);
    print_duplicates(&files);
    print_guides(root)?;
    let target = target_folder(&metadata(root)?)?;
    let times = times::read(&target);
    for (name, seconds) in &times {
        say(&format!("{:>7.1}  s  {name}, last run", seconds.as_f64().unwrap_or_default()));
    }
    if let Some(seconds) = times.get(times::CI).and_then(Value::as_f64) {
        budget::record(root, "ci_seconds", &format!("{seconds:.0}"))?;
    }
    print_sizes(root, &target)
}

/// Prints the lines of code of each package, and the sizes that have a budget.
fn print_lines(root: &Path, files: &[(String, String)]) -> anyhow::Result<()> {
    let (code, _) = budget::lines(files);
    let mut packages: Vec<(usize, &str)> = code.into_iter().map(|(package, lines)| (lines, package)).collect();
    packages.sort_by(|a, b| b.cmp(a));
    for (lines, package) in packages {
        say(&format!("{lines:>7}  {package}"));
    }
    for size in budget::sizes(root, files)? {
        say(&format!("{:>7}  {}, budget {}", size.now, size.unit, size.budget));
    }
    Ok(())
}

/// Prints the number of type names that several files of a crate define, and the names that several crates define.
fn print_types(files: &[(String, String)]) {
    let (mut crates, mut places) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for rules::TypeDefinition { package, name, path, .. } in rules::types(files) {
        crates.entry(name).or_default().insert(package);
        places.entry((package, name)).or_default().insert(path);
    }
    let within = places.values().filter(|paths| paths.len() > 1).count();
    say(&format!("{within:>7}  type names with two definitions in one crate"));
    crates.retain(|_, crates| crates.len() > 1);
    say(&format!("{:>7}  type names with definitions in several crates", crates.len()));
    for (name, crates) in crates {
        let crates: Vec<&str> = crates.iter().map(|path| path.rsplit('/').next().unwrap_or_default()).collect();
        say(&format!("         {name}: {}", crates.join(", ")));
    }
}

fn print_duplicates(files: &[(String, String)]) {
    let found = duplicates::find(files);
    let lines: usize = found.iter().map(|duplicate| duplicate.lines).sum();
    let least = duplicates::MIN_LINES;
    say(&format!("{lines:>7}  lines in {} runs of {least} or more equal lines of two files", found.len()));
    for duplicates::Duplicate { lines, places } in found {
        say(&format!("{lines:>16}  {}", places.join(" = ")));
    }
}

/// Prints the number of files that each guide of docs/extending.md states.
fn print_guides(root: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(root.join("docs/extending.md")).context("cannot read docs/extending.md")?;
    for (guide, needs) in guides(&text) {
        say(&format!("         how to add {guide}: {}", needs.unwrap_or_else(|| "no number".to_owned())));
    }
    Ok(())
}

/// Returns the guides with their statement about files: the first text between `**` that contains `file` or `folder`.
fn guides(text: &str) -> Vec<(&str, Option<String>)> {
    let sections = text.split("\n## How to add ").skip(1);
    let guide = |section: &str| {
        let needs = section.split("**").skip(1).step_by(2).find(|bold| {
            let bold = bold.to_lowercase();
            bold.contains("file") || bold.contains("folder")
        });
        needs.map(|needs| needs.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase())
    };
    sections.map(|section| (section.lines().next().unwrap_or_default(), guide(section))).collect()
}

/// Prints the size of the release program, and the size of the largest crates in a program with symbols.
fn print_sizes(root: &Path, target: &Path) -> anyhow::Result<()> {
    if let Ok(program) = fs::metadata(target.join("release/arena")) {
        let size = budget::megabytes(program.len());
        say(&format!("{size:>7}  MB in target/release/arena"));
        budget::record(root, "install_megabytes", &size)?;
    }
    let program = target.join("profiling/arena");
    if !program.exists() {
        say("         for the size of each crate: cargo build --profile profiling -p arena-cli");
        return Ok(());
    }
    let sizes = symbols::sizes(&program)?;
    let total: u64 = sizes.iter().map(|(_, size)| size).sum();
    say(&format!("{:>7}  KiB of symbols in target/profiling/arena, of which", total >> 10));
    for (name, size) in sizes.iter().take(LARGEST) {
        say(&format!("{:>16}  {name}", size >> 10));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guides_state_their_files() {
        let text = "# A\n\n## How to add a route\n\nA **new**: it takes **one\nfile and two lines**.\n\n\
                    ## How to add a field\n\nNo.\n";
        let expected = [("a route", Some("one file and two lines".to_owned())), ("a field", None)];
        assert_eq!(guides(text), expected);
    }
}
