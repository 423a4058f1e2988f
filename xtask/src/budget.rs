//! The repository's budget in `xtask/budget.toml`: the lines of code and of tests, and the number of packages. The house
//! rules compare the tree with it, upwards and downwards, so that growth and cuts are decisions in a commit.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::cargo::say;

/// The file. It is edited in place, so that its comments stay.
const FILE: &str = "xtask/budget.toml";

/// The permitted size in percent of the budget.
const PERMITTED: std::ops::RangeInclusive<usize> = 95..=102;

/// A size of the tree that has a budget.
pub struct Size {
    /// The name in [`FILE`].
    key: &'static str,
    /// The unit, as people read it.
    pub unit: &'static str,
    pub now: usize,
    pub budget: usize,
}

/// Returns the sizes of the tree and their budgets. `files` are all files of the repository.
///
/// # Errors
/// If a file can't be read, or [`FILE`] lacks a number.
pub fn sizes(root: &Path, files: &[(String, String)]) -> anyhow::Result<[Size; 3]> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let budget = fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let size = |key, unit, now| {
        let number = value(&budget, key).and_then(|number| number.parse().ok());
        let budget = number.with_context(|| format!("{FILE} has no number `{key}`"))?;
        anyhow::Ok(Size { key, unit, now, budget })
    };
    let (code, tests) = lines(files);
    Ok([
        size("code", "lines of code", code.values().sum())?,
        size("tests", "lines of tests in Rust", tests)?,
        size("packages", "packages in Cargo.lock", lock.matches("[[package]]").count())?,
    ])
}

/// Returns a complaint if the size isn't in the permitted range.
pub fn complaint(Size { key, unit, now, budget }: &Size) -> Option<String> {
    let (least, most) = PERMITTED.into_inner();
    let limit = match now * 100 {
        percents if percents > budget * most => format!("more than {most} %"),
        percents if percents < budget * least => format!("less than {least} %"),
        _ => return None,
    };
    Some(format!(
        "{FILE}: the tree has {now} {unit}, {limit} of the budget, `{key} = {budget}`; a change of the budget is a \
         decision with its reason in the commit"
    ))
}

/// Returns the lines of code by package folder, and the lines of all tests. Blank lines and comments don't count.
pub fn lines(files: &[(String, String)]) -> (BTreeMap<&str, usize>, usize) {
    let (mut code, mut tests) = (BTreeMap::new(), 0);
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        let of_source = path.split_once("/src/").filter(|_| !path.contains("/tests/") && !path.ends_with("/tests.rs"));
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let (source, rest) = text.split_at(of_source.map_or(0, |_| end));
        if let Some((package, _)) = of_source {
            *code.entry(package).or_default() += lines_of(source);
        }
        tests += lines_of(rest);
    }
    (code, tests)
}

/// Counts the lines that are neither blank nor comments.
fn lines_of(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Writes a measured number into [`FILE`], unless it is there already.
///
/// # Errors
/// If the file can't be read or written, or has no line for the number.
pub fn record(root: &Path, key: &str, number: &str) -> anyhow::Result<()> {
    let path = root.join(FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {FILE}"))?;
    let old = value(&text, key).with_context(|| format!("{FILE} has no number `{key}`"))?;
    if old != number {
        say(&format!("{FILE}: {key} = {number}, before {old}"));
        let new = text.replace(&format!("\n{key} = {old}\n"), &format!("\n{key} = {number}\n"));
        fs::write(&path, new).with_context(|| format!("cannot write {FILE}"))?;
    }
    Ok(())
}

/// Returns the size of a file in millions of bytes, with one decimal, as it stands in [`FILE`].
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

/// Returns the text after `key = ` in the text of [`FILE`].
fn value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_far_from_the_budget_are_complaints() {
        let cases = [
            (1000, None),
            (1020, None),
            (950, None),
            (1021, Some("the tree has 1021 lines, more than 102 % of the budget, `code = 1000`")),
            (949, Some("the tree has 949 lines, less than 95 % of the budget, `code = 1000`")),
        ];
        for (now, expected) in cases {
            let complaint = complaint(&Size { key: "code", unit: "lines", now, budget: 1000 });
            assert_eq!(complaint.is_some(), expected.is_some(), "{now}");
            let text = complaint.unwrap_or_default();
            assert!(text.contains(expected.unwrap_or_default()), "{text}");
        }
    }

    #[test]
    fn lines_are_code_or_tests() {
        let part = "//! A file.\n\nfn a() {}\n#[cfg(test)]\nmod tests {\n    // No.\n    fn b() {}\n}\n";
        let cases = [
            ("crates/a/src/b.rs", 1, 4),
            ("crates/a/src/b/tests.rs", 0, 5),
            ("crates/a/src/tests/b.rs", 0, 5),
            ("crates/a/tests/it/main.rs", 0, 5),
            ("crates/a/src/b.md", 0, 0),
        ];
        for (path, code, tests) in cases {
            let files = [(path.to_owned(), part.to_owned())];
            let (by_package, of_tests) = lines(&files);
            assert_eq!((by_package.values().sum(), of_tests), (code, tests), "{path}");
        }
    }
}
