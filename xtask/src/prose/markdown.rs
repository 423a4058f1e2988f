//! Links and headings of Markdown documents. The parser supports the parts of Markdown that this repository's documents
//! use.

/// Returns the targets of all links to files and headings of the repository, with their lines.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (line, content) in lines(text) {
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

/// Returns the lines of a document's text with their numbers, without code, comments and targets of links.
pub fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let shown = lines(text).into_iter().filter(|(_, content)| !content.starts_with("<!--"));
    shown.map(|(line, content)| (line, blank_targets(&without_code(content))))
}

/// Returns the anchors of a document's headings, in GitHub's form, and the anchors of its HTML tags.
pub fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut slugs: Vec<String> = Vec::new();
    for (_, content) in lines(text) {
        for name in ["id=\"", "name=\""] {
            anchors.extend(content.split(name).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
        }
        if content.starts_with('#') {
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

/// Returns the lines of a document with their numbers, without code, block quotes and blank lines.
fn lines(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    // The indentation of the current list item's text.
    let mut indentation = 0;
    let mut after_blank = true;
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim();
        let indented = line.len() - line.trim_start().len();
        let mut is_text = false;
        if let Some(sign) = fence {
            if content.starts_with(sign) {
                fence = None;
            }
        } else if content.starts_with("```") || content.starts_with("~~~") {
            fence = Some(&content[..3]);
        } else if !(content.is_empty() || content.starts_with('>') || after_blank && indented >= indentation + 4) {
            is_text = true;
            if let Some(item) = list_item(content) {
                indentation = indented + (content.len() - item.len());
            } else if indented == 0 && after_blank {
                indentation = 0;
            }
            lines.push((number, content));
        }
        // An indented line after code or a blank line is code.
        after_blank = !is_text;
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
