//! The house rules of prose: doc comments begin with a noun or a verb, a few unclear phrases are absent, sentences in
//! documents are short, and links in documents lead to files and headings that exist. Quoted text is exempt: text in
//! backticks, in quotation marks or in block quotes.

mod markdown;
mod source;

use std::path::Path;

/// Words that turn a label into a question. A doc comment or help text doesn't open with one of them.
const QUESTION_WORDS: [&str; 8] = ["what", "who", "whose", "whether", "how", "which", "where", "why"];

/// Phrases without a clear subject. Each is split into two parts, so that this file doesn't contain the phrase.
const UNCLEAR: [(&str, &str); 5] =
    [("who", "ever"), ("who", "m"), ("so ", "many"), ("comes ", "of"), ("as it ", "may be")];

/// The longest sentence of a document, in words.
const LONGEST: usize = 35;

/// Abbreviations whose last period doesn't end a sentence.
const ABBREVIATIONS: [&str; 4] = ["e.g.", "i.e.", "cf.", "vs."];

/// The kind of a passage, by its position in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The first paragraph of a doc comment or docstring, or a help text.
    Opening,
    /// Any other comment, or a text of a page.
    Remark,
    /// A paragraph, heading or list item of a document.
    Paragraph,
    /// A row of a table in a document.
    Row,
}

/// A paragraph of prose.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Passage {
    kind: Kind,
    /// The number of the first line, from 1.
    line: usize,
    /// The text without comment signs. The text has the line breaks of the file.
    text: String,
}

/// The beginning of a comment above a text that is quoted from another source. The rules don't apply to that text.
const QUOTED: &str = "// Quoted from ";

/// Returns the complaints about `files`, which have paths relative to `root`.
pub fn complaints(root: &Path, files: &[(String, String)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in files {
        complaints.extend(about_file(path, text));
        if path.ends_with(".md") {
            let anchors = |target: &str| {
                let file = files.iter().find(|(path, _)| path == target);
                file.map(|(_, text)| markdown::anchors(text))
            };
            complaints.extend(about_links(path, text, |target| root.join(target).exists(), anchors));
        }
    }
    complaints
}

/// Returns the complaints about openings, phrases and long sentences in one file.
fn about_file(path: &str, text: &str) -> Vec<String> {
    let passages = if path.ends_with(".md") { markdown::passages(text) } else { source::passages(path, text) };
    let mut complaints = Vec::new();
    let file: Vec<&str> = text.lines().collect();
    for Passage { kind, line, text } in passages {
        let before = line.checked_sub(2).and_then(|before| file.get(before));
        if before.is_some_and(|before| before.trim_start().starts_with(QUOTED)) {
            continue;
        }
        let plain = without_placeholders(&without_quotes(&text));
        let sentences = sentences(&plain);
        let mut complain = |at: usize, fault: &str| {
            let at = text.len() - text[at..].trim_start().len();
            let line = line + text[..at].matches('\n').count();
            let (start, end) = *sentences.iter().find(|(_, end)| at < *end).unwrap_or(&(0, text.len()));
            let sentence = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
            complaints.push(format!("{path}:{line}: {fault}: {sentence}"));
        };
        let words = words(&plain);
        if kind == Kind::Opening
            && let Some((at, word)) = words.first()
            && QUESTION_WORDS.contains(&word.as_str())
            && !plain[..*at].contains('#')
        {
            complain(*at, &format!("opens with `{word}`; say the noun or the verb"));
        }
        for (first, rest) in UNCLEAR {
            let phrase = format!("{first}{rest}");
            for at in find_phrase(&plain, &words, &phrase) {
                complain(at, &format!("`{phrase}` is unclear; say the noun"));
            }
        }
        for (start, end) in sentences.iter().filter(|_| kind == Kind::Paragraph) {
            let count = count_words(&plain[*start..*end]);
            if count > LONGEST {
                complain(*start, &format!("{count} words in a sentence, more than {LONGEST}; split it"));
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

/// Returns the text with each quotation replaced by the same number of bytes `#`, without spaces. A quotation's last
/// sign remains if it ends a sentence.
fn without_quotes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = rest.len() - rest.trim_start_matches('`').len();
        let (open, close) = match first {
            '`' => (&rest[..run], &rest[..run]),
            '"' => ("\"", "\""),
            '“' => ("“", "”"),
            _ => ("", ""),
        };
        let length = rest[open.len()..].find(close).filter(|_| !open.is_empty());
        let Some(length) = length.map(|inner| open.len() + inner + close.len()) else {
            let length = if open.is_empty() { first.len_utf8() } else { open.len() };
            plain += &rest[..length];
            rest = &rest[length..];
            continue;
        };
        let ends_sentence = rest[..length - close.len()].ends_with(['.', '!', '?']);
        let kept = if ends_sentence { 1 } else { 0 };
        plain += &"#".repeat(length - close.len() - kept);
        plain += &rest[length - close.len() - kept..length - close.len()];
        plain += &"#".repeat(close.len());
        rest = &rest[length..];
    }
    plain
}

/// Replaces the name of each placeholder, such as `{name}`, by the same number of digits, because the names are code.
fn without_placeholders(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let name = &rest[at + 1..];
        let length =
            name.len() - name.trim_start_matches(|char: char| char.is_ascii_alphanumeric() || char == '_').len();
        plain += &rest[..=at];
        plain += &if name[length..].starts_with(['}', ':']) { "0".repeat(length) } else { name[..length].to_owned() };
        rest = &name[length..];
    }
    plain + rest
}

/// Returns the bounds of each sentence of a paragraph. A sentence ends with a period or similar sign that is followed
/// by a space and by no lower-case letter.
fn sentences(plain: &str) -> Vec<(usize, usize)> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in plain.match_indices(['.', '!', '?']) {
        let rest = plain[at + 1..].trim_start_matches([')', ']', '"', '\'', '*', '_', '#', '”']);
        let end = plain.len() - rest.len();
        let last_word = plain[start..=at].split_whitespace().next_back().unwrap_or_default();
        let is_abbreviation = ABBREVIATIONS.contains(&last_word.trim_start_matches('('));
        let next = rest.trim_start().chars().next();
        if end > start
            && rest.starts_with(char::is_whitespace)
            && !is_abbreviation
            && !next.is_some_and(char::is_lowercase)
        {
            sentences.push((start, end));
            start = end;
        }
    }
    if !plain[start..].trim().is_empty() {
        sentences.push((start, plain.len()));
    }
    sentences
}

/// Returns the words of a text, in lower case, with their positions.
fn words(plain: &str) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (at, char) in plain.char_indices() {
        let is_part = char.is_alphanumeric() || char == '_';
        if is_part && !inside {
            words.push((at, String::new()));
        }
        if let Some((_, word)) = words.last_mut().filter(|_| is_part) {
            word.extend(char.to_lowercase());
        }
        inside = is_part;
    }
    words
}

/// Returns the positions of a phrase. A line break may separate its words.
fn find_phrase(plain: &str, words: &[(usize, String)], phrase: &str) -> Vec<usize> {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    let windows = words.windows(phrase.len());
    let found = windows.filter(|window| {
        let same = window.iter().zip(&phrase).all(|((_, word), wanted)| word == wanted);
        let mut pairs = window.windows(2);
        same && pairs.all(|pair| plain[pair[0].0 + pair[0].1.len()..pair[1].0].trim().is_empty())
    });
    found.map(|window| window[0].0).collect()
}

/// Returns the number of words, where a quotation counts as one word.
fn count_words(plain: &str) -> usize {
    plain.split_whitespace().filter(|word| word.contains(|char: char| char.is_alphanumeric() || char == '#')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = about_file(path, text);
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, part) in found.iter().zip(expected) {
            assert!(found.contains(part), "{found:?} lacks {part:?}");
        }
    }

    /// Returns `text` with `@0`, `@1` and so on replaced by the unclear phrases.
    fn with_phrases(text: &str) -> String {
        let numbered = UNCLEAR.iter().enumerate();
        numbered.fold(text.to_owned(), |text, (number, (a, b))| text.replace(&format!("@{number}"), &format!("{a}{b}")))
    }

    #[test]
    fn doc_comments_open_with_a_noun_or_a_verb() {
        check(
            "a.rs",
            "/// What it is.\nstruct A;\n",
            &["a.rs:1: opens with `what`; say the noun or the verb: What it is."],
        );
        check("a.rs", "//! Whose it is.\n", &[":1: "]);
        check("a.rs", "struct A {\n    /// A name.\n    ///\n    /// Why it is there.\n    a: u8,\n}\n", &[]);
        check("a.rs", "/// Whatever.\n// How it works.\nlet a = \"/// What it is\";\n", &[]);
        check("a.rs", "/// `which` finds a program.\nfn a() {}\n", &[]);
        check("a.js", "/** Where it is. */\n", &[":1: "]);
    }

    #[test]
    fn help_texts_open_with_a_noun_or_a_verb() {
        check("a.rs", "#[arg(\n    help = \"Who may join\",\n)]\n", &[":2: opens with `who`"]);
        check("a.rs", "command.about(\"How it works\");\n", &[":1: opens with `how`"]);
        check("a.py", "parser.add_argument('-n', help='which games')\n", &[":1: opens with `which`"]);
        check("a.rs", "say(\"What now?\");\n", &[]);
    }

    #[test]
    fn docstrings_open_with_a_noun_or_a_verb() {
        check("a.py", "\"\"\"Whether it is.\"\"\"\n", &[":1: "]);
        check("a.py", "def a():\n    r\"\"\"\n    Why not.\n    \"\"\"\n", &[":3: opens with `why`"]);
        check("a.py", "class A:\n    #: What it is.\n    a: int\n", &[":2: "]);
        check("a.py", "a = \"\"\"What it is.\"\"\"\n# What it is.\n", &[]);
    }

    #[test]
    fn unclear_phrases_are_found_in_all_kinds_of_files() {
        for number in 0..UNCLEAR.len() {
            let text = with_phrases(&format!("One of @{number}."));
            check("a.md", &format!("A text.\n{text}\n"), &[":2: "]);
            check("a.rs", &format!("// {text}\n"), &[&format!("is unclear; say the noun: {text}")]);
            check("src/a.rs", &format!("p {{ \"{text}\" }}\n"), &[":1: "]);
            check("a.css", &format!("/* {text} */\n"), &[":1: "]);
            check("a.html", &format!("<p>{text}</p>\n"), &[":1: "]);
            check("a.toml", &format!("a = 1 # {text}\n"), &[":1: "]);
            check("a.py", &format!("a = 1  # {text}\n"), &[":1: "]);
            check("a.js", &format!("at(`${{a}} ${{b(\"}}\")}} {text}`)\n"), &[":1: "]);
        }
    }

    #[test]
    fn unclear_phrases_are_found_across_lines() {
        check("a.rs", "//! There are so\n//! many of them.\n", &[":1: "]);
        check("src/a.rs", "a(\"there are so \\\n   many of them\")\n", &[":1: "]);
        check("a.md", "There are so. Many of them.\n", &[]);
    }

    #[test]
    fn quotations_are_exempt() {
        check("a.md", &with_phrases("The word `@0`, the word \"@1\" and the words “@2”.\n\n> As @4.\n"), &[]);
        check("a.md", &with_phrases("```\nfor @0\n```\n"), &[]);
        check("a.rs", &with_phrases("// The words \"by\n// @1\".\n"), &[]);
    }

    #[test]
    fn placeholders_are_code() {
        check("src/a.rs", &with_phrases("a(\"by {@1}\")\n"), &[]);
        check("src/a.rs", &with_phrases("a(\"by {a} {@1} {@0:?}, { @0 }\")\n"), &[":1: "]);
    }

    #[test]
    fn strings_in_tests_are_not_checked() {
        let text = with_phrases("//! A.\n#[cfg(test)]\nmod tests {\n    // To @1.\n    a(\"to @1\");\n}\n");
        check("src/a.rs", &text, &[":4: "]);
        check("tests/a.rs", &with_phrases("a(\"to @1\");\n"), &[]);
    }

    #[test]
    fn sentences_of_documents_are_short() {
        let long = format!("Word{} end.", " word".repeat(LONGEST - 1));
        let short = format!("Word{} end.", " word".repeat(LONGEST - 2));
        check(
            "a.md",
            &format!("# A\n\nFine. {long} Fine.\n"),
            &["a.md:3: 36 words in a sentence, more than 35; split it: Word word"],
        );
        check("a.md", &format!("{short} {short}\n\n- {short}\n- {short}\n"), &[]);
        check("a.md", &format!("```\n{long}\n```\n\n    {long}\n\n| {long} |\n|---|\n\n> {long}\n"), &[]);
        check("a.md", &format!("1. {short}\n   {long}\n"), &[":2: "]);
        check("a.md", &format!("Say \"{long}\" aloud.\n"), &[]);
        check("a.rs", &format!("/// {long}\n"), &[]);
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
