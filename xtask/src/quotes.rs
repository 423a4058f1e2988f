//! Numbers that documents quote: bench/RESULTS.md has a table of facts, and each quotation has a mark behind it,
//! `<!-- fact: NAME -->`, by which it is compared with the table.

use std::collections::BTreeMap;

const SOURCE: &str = "bench/RESULTS.md";
const HEADING: &str = "| fact | value |";
const MARK: &str = "<!-- fact: ";

/// Returns the complaints about quotations that differ from the table, marks without a fact, and facts that no document
/// quotes. `files` are paths and texts.
pub fn complaints(files: &[(String, String)]) -> Vec<String> {
    let source = files.iter().find(|(path, _)| path == SOURCE).map_or("", |(_, text)| text);
    let facts = facts(source);
    let mut unused: Vec<&str> = facts.keys().copied().collect();
    let mut complaints = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (at, _) in text.match_indices(MARK) {
            let name = text[at + MARK.len()..].split(" -->").next().unwrap_or_default();
            let line = 1 + text[..at].matches('\n').count();
            unused.retain(|unused| *unused != name);
            match facts.get(name) {
                None => complaints.push(format!("{path}:{line}: {SOURCE} has no fact `{name}`")),
                Some(value) if !ends_with(&text[..at], value) => complaints
                    .push(format!("{path}:{line}: `{name}` is {value} in {SOURCE}; quote it in front of the mark")),
                Some(_) => {}
            }
        }
    }
    complaints.extend(unused.iter().map(|name| format!("{SOURCE}: no document quotes the fact `{name}`; remove it")));
    complaints
}

/// Returns true if `text` ends with the whole `value`, also with a line break in it, and not with a longer number.
fn ends_with(text: &str, value: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().rev().take(value.split(' ').count()).collect();
    let tail = words.into_iter().rev().collect::<Vec<_>>().join(" ");
    let is_number = |char: char| char.is_alphanumeric() || matches!(char, '.' | ',');
    tail.strip_suffix(value).is_some_and(|before| !before.ends_with(is_number))
}

/// Returns the rows of the table of facts: values by name.
fn facts(text: &str) -> BTreeMap<&str, &str> {
    let rows = text.lines().skip_while(|line| *line != HEADING).skip(2).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.trim_matches('|').split_once('|'))
        .map(|(name, value)| (name.trim().trim_matches('`'), value.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_have_the_values_of_the_table() {
        let table = "| fact | value |\n|---|---|\n| `idle` | 47 MiB |\n| `games` | 2,233 |\n\n| other | 1 |\n";
        let said = |document: &str| {
            let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
            complaints(&[file(SOURCE, table), file("docs/a.md", document)])
        };
        let right = "It takes 47\nMiB<!-- fact: idle -->, and plays 2,233<!-- fact: games --> games.";
        assert_eq!(said(right), [""; 0]);
        assert_eq!(
            said(
                "It takes 30 MiB<!-- fact: idle -->, or 147 MiB<!-- fact: idle -->.\n2,233<!-- fact: games --> and 5<!-- fact: x -->"
            ),
            [
                "docs/a.md:1: `idle` is 47 MiB in bench/RESULTS.md; quote it in front of the mark",
                "docs/a.md:1: `idle` is 47 MiB in bench/RESULTS.md; quote it in front of the mark",
                "docs/a.md:2: bench/RESULTS.md has no fact `x`",
            ]
        );
        assert_eq!(
            said(""),
            ["games", "idle"]
                .map(|name| { format!("bench/RESULTS.md: no document quotes the fact `{name}`; remove it") })
        );
    }
}
