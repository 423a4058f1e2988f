//! Equal runs of code lines in different files, for `cargo xtask facts`. Blank lines, comments, imports and lines of
//! punctuation don't count. White space at the ends of a line is ignored.

use std::collections::BTreeMap;

/// The least number of lines of a run.
pub const MIN_LINES: usize = 8;

/// A run of equal lines in two files.
#[derive(Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The number of lines of code.
    pub lines: usize,
    /// The two places, as `path:first-last`.
    pub places: [String; 2],
}

/// A file's code.
struct Source<'f> {
    path: &'f str,
    /// The lines of code with their numbers, from 1.
    lines: Vec<(usize, &'f str)>,
}

/// Returns the runs of at least [`MIN_LINES`] equal lines in the code of the workspace outside of tests, the longest
/// first. `files` are paths and texts.
pub fn find(files: &[(String, String)]) -> Vec<Duplicate> {
    let sources: Vec<Source<'_>> = files.iter().filter(|(path, _)| is_code(path)).map(source).collect();
    let mut windows: BTreeMap<Vec<&str>, Vec<(&Source<'_>, usize)>> = BTreeMap::new();
    for source in &sources {
        for (at, window) in source.lines.windows(MIN_LINES).enumerate() {
            windows.entry(window.iter().map(|(_, line)| *line).collect()).or_default().push((source, at));
        }
    }
    let mut found = Vec::new();
    for places in windows.values() {
        for (number, first) in places.iter().enumerate() {
            let others = places[number + 1..].iter().filter(|second| second.0.path != first.0.path);
            found.extend(others.filter_map(|second| run(*first, *second)));
        }
    }
    found.sort_by(|a, b| b.lines.cmp(&a.lines).then_with(|| a.places.cmp(&b.places)));
    found
}

/// Returns true for code of the programs, outside of tests.
fn is_code(path: &str) -> bool {
    let is_of_workspace = ["crates/", "bench/", "xtask/"].iter().any(|folder| path.starts_with(folder));
    let is_of_tests = path.contains("/tests/") || path.ends_with("/tests.rs");
    is_of_workspace && !is_of_tests && [".rs", ".js", ".css"].iter().any(|ending| path.ends_with(ending))
}

fn source((path, text): &(String, String)) -> Source<'_> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let counts = |line: &str| {
        let is_passed_over = ["//", "/*", "use ", "pub use ", "import "].iter().any(|start| line.starts_with(start));
        !is_passed_over && line.contains(char::is_alphanumeric)
    };
    let lines = (1..).zip(code.lines().map(str::trim)).filter(|(_, line)| counts(line)).collect();
    Source { path, lines }
}

/// Returns the run that starts at these two places, or `None` if an earlier line belongs to it.
fn run((a, a_start): (&Source<'_>, usize), (b, b_start): (&Source<'_>, usize)) -> Option<Duplicate> {
    let line_before = |source: &Source<'_>, start: usize| start.checked_sub(1).map(|at| source.lines[at].1.to_owned());
    let before = line_before(a, a_start);
    if before.is_some() && before == line_before(b, b_start) {
        return None;
    }
    let pairs = a.lines[a_start..].iter().zip(&b.lines[b_start..]);
    let lines = pairs.take_while(|((_, a), (_, b))| a == b).count();
    let place = |source: &Source<'_>, start: usize| {
        let (first, last) = (source.lines[start].0, source.lines[start + lines - 1].0);
        format!("{}:{first}-{last}", source.path)
    };
    Some(Duplicate { lines, places: [place(a, a_start), place(b, b_start)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: &[&str]) -> (String, String) {
        (path.to_owned(), lines.join("\n"))
    }

    #[test]
    fn the_longest_run_of_two_files_is_found_once() {
        let same = ["a();", "b();", "c();", "d();", "", "// e", "f();", "  g();", "}", "h();", "i();", "j();"];
        let other: Vec<&str> = ["x();"].into_iter().chain(same).chain(["y();"]).collect();
        let files = [
            file("crates/a/src/one.rs", &same),
            file("crates/b/src/two.rs", &other),
            file("crates/b/src/tests.rs", &same),
            file("docs/two.rs", &same),
        ];
        let places = ["crates/a/src/one.rs:1-12", "crates/b/src/two.rs:2-13"].map(str::to_owned);
        assert_eq!(find(&files), [Duplicate { lines: 9, places }]);
        let short = [file("crates/a/src/one.rs", &same[..8]), file("crates/b/src/two.rs", &other)];
        assert!(find(&short).is_empty());
    }
}
