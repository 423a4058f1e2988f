//! The house rules of prose: doc comments begin with a noun or a verb, and links in documents lead to files and headings
//! that exist. A thing has one name in documents and in the help of commands.

mod markdown;

use std::path::Path;

/// Words that turn a label into a question. A doc comment doesn't open with one of them.
const QUESTION_WORDS: [&str; 8] = ["What", "Who", "Whose", "Whether", "How", "Which", "Where", "Why"];

/// Words for what has another name: the word, the phrases in which it is right, and the name. The list of words in
/// `docs/README.md` has the meanings.
const OTHER_NAMES: [(&str, &[&str], &str); 3] =
    [("bot", &["house bot", "called a bot"], "agent"), ("referee", &[], "operator"), ("lobby", &[], "queue")];

/// Returns the complaints about `files`, which have paths relative to `root`.
pub fn complaints(root: &Path, files: &[(String, String)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in files {
        if path.ends_with(".rs") {
            complaints.extend(about_openings(path, text));
        }
        if path.ends_with(".md") {
            let anchors = |target: &str| {
                let file = files.iter().find(|(path, _)| path == target);
                file.map(|(_, text)| markdown::anchors(text))
            };
            complaints.extend(about_links(path, text, |target| root.join(target).exists(), anchors));
            complaints.extend(about_names(path, text));
        }
    }
    complaints
}

/// Returns the complaints about the first lines of doc comments, which are also the help texts of commands.
fn about_openings(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut before = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let content = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        let word = content.and_then(|content| content.split([' ', ',']).next()).filter(|_| !before);
        if let Some(word) = word.filter(|word| QUESTION_WORDS.contains(word)) {
            complaints.push(format!("{path}:{number}: opens with `{word}`; say the noun or the verb: {line}"));
        }
        before = line.starts_with("///") || line.starts_with("//!");
    }
    complaints
}

/// Returns the complaints about words for what has another name. Decisions and the changelog keep the words of their
/// time.
fn about_names(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if path.starts_with("docs/decisions/") || path == "CHANGELOG.md" {
        return complaints;
    }
    for (line, content) in markdown::prose(text) {
        for (word, phrases, name) in OTHER_NAMES {
            let rest = phrases.iter().fold(content.to_lowercase(), |rest, phrase| rest.replace(phrase, ""));
            let mut words = rest.split(|char: char| !char.is_alphanumeric());
            if words.any(|other| other.strip_suffix('s').unwrap_or(other) == word) {
                complaints.push(format!("{path}:{line}: `{word}`; docs/README.md calls it `{name}`"));
            }
        }
    }
    complaints
}

/// Returns the complaints about a document's links to files and headings of the repository. `anchors` returns the
/// headings of a text file, or `None` if there is no such file.
fn about_links(
    path: &str,
    text: &str,
    exists: impl Fn(&str) -> bool,
    anchors: impl Fn(&str) -> Option<Vec<String>>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    for (line, link) in markdown::links(text) {
        let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(file, anchor)| (file, Some(anchor)));
        let target = if file.is_empty() { Some(path.to_owned()) } else { resolve(path, file) };
        let fault = match target {
            Some(target) if exists(&target) => match (anchor, anchors(&target)) {
                (Some(anchor), Some(headings))
                    if target.ends_with(".md") && !headings.iter().any(|it| it == anchor) =>
                {
                    "the link's heading does not exist"
                }
                _ => continue,
            },
            _ => "the link's file does not exist",
        };
        complaints.push(format!("{path}:{line}: {fault}: ({link})"));
    }
    complaints
}

/// Returns the target of `link` in the file at `path`, as a path relative to the root, or `None` if the target is
/// above the root. As on GitHub, a link that starts with `/` is relative to the root.
fn resolve(path: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = if link.starts_with('/') { Vec::new() } else { path.split('/').collect() };
    parts.pop();
    for part in link.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doc_comments_open_with_a_noun_or_a_verb() {
        let text = "//! A file.\n\n/// What it is.\nstruct A {\n    /// A name.\n    ///\n    /// Why it is there.\n    a: u8,\n}\n// How.\n";
        let expected = "a.rs:3: opens with `What`; say the noun or the verb: /// What it is.";
        assert_eq!(about_openings("a.rs", text), [expected]);
    }

    #[test]
    fn a_thing_has_one_name() {
        let text = "A bot, a house bot, `a bot` and [agents](bots.md).\n\n    bots\n\nHouse bots.\nBots!\n";
        let complaint = |line| format!("a.md:{line}: `bot`; docs/README.md calls it `agent`");
        assert_eq!(about_names("a.md", text), [complaint(1), complaint(6)]);
        assert_eq!(about_names("docs/decisions/a.md", text), [""; 0]);
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let exists = |path: &str| ["", "docs/a.md", "b.md", "c.png"].contains(&path);
        let anchors =
            |path: &str| path.ends_with(".md").then(|| markdown::anchors("# The `a` of b\n## Twice\n## Twice\n"));
        let check = |text: &str, expected: &[&str]| {
            let found = about_links("docs/a.md", text, exists, anchors);
            assert_eq!(found, expected);
        };
        check(
            "[a](../b.md) ![b](../c.png) [c](https://example.org/d) [d](#the-a-of-b) [e](../b.md#twice-1) [f](..) [g](/b.md)\n",
            &[],
        );
        check("Text\n[a](b.md)\n", &["docs/a.md:2: the link's file does not exist: (b.md)"]);
        check("[a](../../b.md)\n", &["docs/a.md:1: the link's file does not exist: (../../b.md)"]);
        check("[a](#three)\n", &["docs/a.md:1: the link's heading does not exist: (#three)"]);
        check("[a]\n\n[a]: ../b.md#three\n", &["docs/a.md:3: the link's heading does not exist: (../b.md#three)"]);
        check(
            "<a href=\"none\">a</a> | [a](none \"title\")\n",
            &[
                "docs/a.md:1: the link's file does not exist: (none)",
                "docs/a.md:1: the link's file does not exist: (none)",
            ],
        );
        check("`[a](none)`\n\n```\n[a](none)\n```\n", &[]);
    }
}
