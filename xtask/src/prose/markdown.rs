//! Paragraphs, links and headings of Markdown documents. The parser supports the parts of Markdown that this
//! repository's documents use.

use super::{Kind, Passage};

/// The part of a document to which a line belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// A line that continues the paragraph of the previous line.
    Text,
    /// The first line of a paragraph, heading or list item.
    Start,
    Row,
    /// Code, block quotes, HTML comments of one line, and blank lines.
    Other,
}

/// Returns the paragraphs, headings, list items and table rows of a document. Blanks replace link targets, tags and
/// HTML comments.
pub fn passages(text: &str) -> Vec<Passage> {
    let text = blank_tags(text);
    let mut passages: Vec<Passage> = Vec::new();
    let mut goes_on = false;
    for (line, part, content) in lines(&text) {
        match (part, passages.last_mut()) {
            (LineKind::Other, _) => {}
            (LineKind::Text, Some(passage)) if goes_on => {
                passage.text.push('\n');
                passage.text += content;
            }
            _ => {
                let kind = if part == LineKind::Row { Kind::Row } else { Kind::Paragraph };
                passages.push(Passage { kind, line, text: content.to_owned() });
            }
        }
        // A heading ends with its line.
        goes_on = matches!(part, LineKind::Text | LineKind::Start) && !content.starts_with('#');
    }
    for passage in &mut passages {
        passage.text = blank_targets(&passage.text);
    }
    passages
}

/// Returns the targets of all links to files and headings of the repository, with their lines.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (line, part, content) in lines(text) {
        if part == LineKind::Other {
            continue;
        }
        let content = without_code(content);
        let inline = content.split("](").skip(1).map(|rest| rest.split([')', ' ']).next().unwrap_or_default());
        let tags = ["href=\"", "src=\""].into_iter().flat_map(|name| content.split(name).skip(1));
        let tags = tags.map(|rest| rest.split('"').next().unwrap_or_default());
        let definition = content.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        let definition = definition.map(|(_, target)| target.split_whitespace().next().unwrap_or_default());
        let targets = inline.chain(tags).chain(definition);
        let is_internal =
            |target: &&str| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:");
        links.extend(targets.filter(is_internal).map(|target| (line, target.to_owned())));
    }
    links
}

/// Returns the anchors of a document's headings, in GitHub's form, and the anchors of its HTML tags.
pub fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut slugs: Vec<String> = Vec::new();
    for (_, part, content) in lines(text) {
        for name in ["id=\"", "name=\""].into_iter().filter(|_| part != LineKind::Other) {
            anchors.extend(content.split(name).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
        }
        if part == LineKind::Start && content.starts_with('#') {
            let heading = blank_targets(content.trim_start_matches('#').trim());
            let kept = heading.trim().chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
            let slug = kept.collect::<String>().to_lowercase().replace(' ', "-");
            let before = slugs.iter().filter(|other| **other == slug).count();
            anchors.push(if before == 0 { slug.clone() } else { format!("{slug}-{before}") });
            slugs.push(slug);
        }
    }
    anchors
}

/// Returns the lines of a document with their numbers and parts, without the signs of list items.
fn lines(text: &str) -> Vec<(usize, LineKind, &str)> {
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    // The indentation of the current list item's text.
    let mut indentation = 0;
    let mut before = LineKind::Other;
    let mut after_blank = true;
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim();
        let indented = line.len() - line.trim_start().len();
        let (part, content) = if let Some(sign) = fence {
            if content.starts_with(sign) {
                fence = None;
            }
            (LineKind::Other, "")
        } else if content.starts_with("```") || content.starts_with("~~~") {
            fence = Some(&content[..3]);
            (LineKind::Other, "")
        } else if content.is_empty() || content.starts_with('>') || after_blank && indented >= indentation + 4 {
            (LineKind::Other, "")
        } else if content.starts_with('|') {
            (LineKind::Row, content)
        } else if let Some(item) = list_item(content) {
            indentation = indented + (content.len() - item.len());
            (LineKind::Start, item)
        } else {
            if indented == 0 && after_blank {
                indentation = 0;
            }
            let goes_on = matches!(before, LineKind::Text | LineKind::Start) && !content.starts_with('#');
            (if goes_on { LineKind::Text } else { LineKind::Start }, content)
        };
        // An indented line after code or a blank line is code.
        after_blank = part == LineKind::Other;
        before = part;
        lines.push((number, part, content));
    }
    lines
}

/// Returns the text of a list item, or `None` for other lines.
fn list_item(content: &str) -> Option<&str> {
    let item = content.strip_prefix(['-', '*', '+']).or_else(|| {
        let rest = content.trim_start_matches(|char: char| char.is_ascii_digit());
        (rest.len() < content.len()).then(|| rest.strip_prefix('.')).flatten()
    })?;
    item.starts_with(' ').then(|| item.trim_start())
}

/// Replaces HTML comments and tags by blanks, except for line breaks.
fn blank_tags(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        plain += &rest[..at];
        rest = &rest[at..];
        let is_tag = rest[1..].starts_with(|char: char| char.is_ascii_alphabetic() || char == '/');
        let length = if rest.starts_with("<!--") {
            rest.find("-->").map(|end| end + 3)
        } else {
            rest.find('>').map(|end| end + 1).filter(|end| is_tag && !rest[..*end].contains(['\n', '`']))
        };
        let length = length.unwrap_or(1);
        if length == 1 {
            plain.push('<');
        } else {
            plain.extend(rest[..length].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        }
        rest = &rest[length..];
    }
    plain + rest
}

/// Removes the targets of inline links: `[text](target)` becomes `[text]`.
fn blank_targets(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let Some(length) = rest[at..].find(')') else { break };
        plain += &rest[..=at];
        plain.extend(rest[at..at + length].matches('\n'));
        rest = &rest[at + length + 1..];
    }
    plain + rest
}

/// Returns a line without its code in backticks.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    // An opening backtick without a closing one doesn't begin code.
    if parts.len().is_multiple_of(2) {
        return line.to_owned();
    }
    parts.into_iter().step_by(2).collect()
}
