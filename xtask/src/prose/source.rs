//! Comments, docstrings, help texts and texts of pages in source files. A small scanner finds them. It
//! parses only the comments and strings of each language.

use super::{Kind, Passage};

/// The signs of comments and strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    /// Rust and C.
    Rust,
    /// JavaScript and TypeScript.
    Script,
    Css,
    Python,
    /// TOML, YAML, shell and the like: `#` after a blank begins a comment.
    Hash,
    /// SQL: `--` after a blank begins a comment.
    Sql,
}

/// Names of arguments and methods whose string is a help text.
const HELP: [&str; 8] = ["help", "long_help", "about", "long_about", "after_help", "before_help", "description", "doc"];

/// Returns the passages of a source file, or no passages if the file's language is not supported.
pub fn passages(path: &str, text: &str) -> Vec<Passage> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let language = match name.rsplit('.').next().unwrap_or_default() {
        "rs" | "c" | "h" => Language::Rust,
        "js" | "mjs" | "ts" => Language::Script,
        "css" => Language::Css,
        "py" | "pyi" => Language::Python,
        "toml" | "yaml" | "yml" | "sh" | "Dockerfile" | "Makefile" | "service" | "run" => Language::Hash,
        "sql" => Language::Sql,
        "html" => {
            let lines = (1..).zip(text.lines());
            return lines.map(|(line, text)| Passage { kind: Kind::Remark, line, text: text.to_owned() }).collect();
        }
        _ => return Vec::new(),
    };
    let is_page = match language {
        Language::Script => true,
        Language::Rust => path.split('/').any(|part| part == "src") && name != "tests.rs",
        _ => false,
    };
    let tests = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let mut scanner = Scanner { language, text, at: 0, pages: if is_page { tests } else { 0 }, passages: Vec::new() };
    match language {
        Language::Hash => scanner.lines("#"),
        Language::Sql => scanner.lines("--"),
        _ => scanner.code(None),
    }
    scanner.passages
}

struct Scanner<'a> {
    language: Language,
    text: &'a str,
    /// The position of the next byte.
    at: usize,
    /// Strings before this position are texts of pages.
    pages: usize,
    passages: Vec<Passage>,
}

impl<'a> Scanner<'a> {
    /// Reads comments that start with `sign`. Strings are not parsed.
    fn lines(&mut self, sign: &str) {
        let mut offset = 0;
        for line in self.text.split_inclusive('\n') {
            let found = line.match_indices(sign).find(|(at, _)| *at == 0 || line[..*at].ends_with([' ', '\t']));
            if let Some((at, _)) = found {
                let content = line[at..].trim_end().trim_start_matches(sign);
                self.comment(offset + at, offset + line.trim_end().len(), content, false);
            }
            offset += line.len();
        }
    }

    /// Reads code up to the end of the file, or up to the brace that closes an expression in a template.
    fn code(&mut self, closing: Option<u8>) {
        let mut depth = 0;
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            let rest = &self.text[self.at..];
            let has_lines = matches!(self.language, Language::Rust | Language::Script);
            let start = self.at;
            match byte {
                b'/' if has_lines && rest.starts_with("//") => {
                    let length = rest.find('\n').unwrap_or(rest.len());
                    self.at += length;
                    let line = &rest[..length];
                    let is_doc = line.starts_with("//!") || line.starts_with("///") && !line.starts_with("////");
                    let content = if is_doc { &line[3..] } else { line.trim_start_matches('/') };
                    self.comment(start, self.at, content, is_doc);
                }
                b'/' if self.language != Language::Python && rest.starts_with("/*") => {
                    let length = rest[2..].find("*/").map_or(rest.len(), |length| length + 4);
                    self.at += length;
                    self.block(start, rest[..length].trim_end_matches("*/"));
                }
                b'#' if self.language == Language::Python => {
                    let length = rest.find('\n').unwrap_or(rest.len());
                    self.at += length;
                    let is_doc = rest.starts_with("#:");
                    self.comment(start, self.at, rest[..length].trim_start_matches(['#', ':']), is_doc);
                }
                b'/' if self.language == Language::Script && self.regex_may_begin() => self.regex(),
                b'r' if self.language == Language::Rust && self.raw_string() => {}
                b'\'' if self.language == Language::Rust => self.character(),
                b'"' | b'\'' => self.string(byte),
                b'`' if self.language == Language::Script => self.string(byte),
                b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' => {
                    self.at += 1;
                    if depth == 0 && closing == Some(b'}') {
                        return;
                    }
                    depth -= 1;
                }
                _ => self.at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
    }

    /// Reads a string with escapes: a string on one line, a string between triple quotation marks, or a template.
    fn string(&mut self, quote: u8) {
        let start = self.at;
        let triple = [quote; 3];
        let is_triple = self.language == Language::Python && self.text.as_bytes()[start..].starts_with(&triple);
        self.at += if is_triple { 3 } else { 1 };
        let inner = self.at;
        let mut pieces: Vec<(usize, usize)> = Vec::new();
        let mut piece = inner;
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            let rest = &self.text.as_bytes()[self.at..];
            match byte {
                b'\\' => self.at += 2,
                b'$' if quote == b'`' && rest.starts_with(b"${") => {
                    pieces.push((piece, self.at));
                    self.at += 2;
                    self.code(Some(b'}'));
                    piece = self.at;
                }
                _ if byte == quote && (!is_triple || rest.starts_with(&triple)) => break,
                // The quotation mark doesn't begin a string, for example in a text between tags.
                b'\n' if !is_triple && quote != b'`' && self.language != Language::Rust => break,
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.text.len());
        pieces.push((piece, self.at));
        self.at = (self.at + if is_triple { 3 } else { 1 }).min(self.text.len());
        for (from, to) in pieces {
            self.literal(start, from, to, is_triple);
        }
    }

    /// Reads a raw string, if one begins here.
    fn raw_string(&mut self) -> bool {
        let rest = &self.text[self.at + 1..];
        let signs = rest.len() - rest.trim_start_matches('#').len();
        let is_word = self.text[..self.at].ends_with(|char: char| char.is_alphanumeric() && char != 'b' || char == '_');
        if is_word || !rest[signs..].starts_with('"') {
            self.at += 1;
            return true;
        }
        let inner = self.at + 1 + signs + 1;
        let end = format!("\"{}", "#".repeat(signs));
        let length = self.text[inner..].find(&end).unwrap_or(self.text.len() - inner);
        let start = self.at;
        self.at = (inner + length + end.len()).min(self.text.len());
        self.literal(start, inner, inner + length, false);
        true
    }

    /// Reads a character, or the sign of a lifetime.
    fn character(&mut self) {
        let rest = &self.text[self.at + 1..];
        let mut chars = rest.char_indices();
        self.at += match (chars.next(), chars.next()) {
            (Some((_, '\\')), Some((at, escaped))) => {
                let from = at + escaped.len_utf8();
                1 + rest[from..].find('\'').map_or(from, |length| from + length + 1)
            }
            (Some(_), Some((at, '\''))) => 1 + at + 1,
            _ => 1,
        };
    }

    /// Returns true if a `/` at this position begins a regular expression rather than being a division.
    fn regex_may_begin(&self) -> bool {
        let before = self.text[..self.at].trim_end();
        before.is_empty()
            || before.ends_with(|char: char| "(,=:[!&|?{};+>".contains(char))
            || before.ends_with("return")
    }

    /// Reads a regular expression.
    fn regex(&mut self) {
        self.at += 1;
        let mut in_class = false;
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            match byte {
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                b'\n' => break,
                _ => {}
            }
        }
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    /// Adds a comment of one line, which may continue the comment of the previous line.
    fn comment(&mut self, start: usize, end: usize, content: &str, is_doc: bool) {
        let line = self.line(start);
        let before = self.text[..start].trim_end_matches([' ', '\t']);
        let stands_alone = before.is_empty() || before.ends_with('\n');
        let sign =
            |text: &str| text.trim_start().chars().take_while(|char| "/!#:-".contains(*char)).collect::<String>();
        let same_sign = before
            .trim_end_matches('\n')
            .rsplit('\n')
            .next()
            .is_some_and(|last| sign(last) == sign(&self.text[start..end]) && !before.ends_with("\n\n"));
        match self.passages.last_mut() {
            Some(passage) if stands_alone && same_sign => {
                passage.text.push('\n');
                passage.text += content;
            }
            _ => {
                let kind = if is_doc { Kind::Opening } else { Kind::Remark };
                self.passages.push(Passage { kind, line, text: content.to_owned() });
            }
        }
        self.split_last();
    }

    /// Adds a comment between `/*` and `*/`.
    fn block(&mut self, start: usize, comment: &str) {
        let is_doc = comment.starts_with("/**") || comment.starts_with("/*!");
        let content = comment.trim_start_matches(['/', '*', '!']);
        let lines = content.lines().map(|line| line.trim_start().trim_start_matches('*'));
        self.paragraphs(self.line(start), is_doc, &lines.collect::<Vec<_>>().join("\n"));
    }

    /// Adds a string, if it is a docstring, a help text or a text of a page.
    fn literal(&mut self, start: usize, from: usize, to: usize, is_triple: bool) {
        let before = self.text[..start].trim_end_matches(['r', 'b', 'f', 'R']);
        let own_line = before.trim_end_matches([' ', '\t']);
        let is_docstring = is_triple
            && (own_line.is_empty() || own_line.ends_with('\n'))
            && (self.code_before(own_line).is_empty() || self.code_before(own_line).ends_with(':'));
        let assigned = before.trim_end();
        let name = assigned.strip_suffix(['=', '(']).unwrap_or_default().trim_end();
        let name = name.rsplit(|char: char| !char.is_alphanumeric() && char != '_').next().unwrap_or_default();
        let is_help = HELP.contains(&name);
        if !(is_docstring || is_help || start < self.pages) {
            return;
        }
        // Each escape is replaced by the same number of blanks, so that positions stay valid.
        let text = self.text[from..to].replace("\\\n", " \n").replace("\\n", "  ").replace("\\\"", " \"");
        self.paragraphs(self.line(from), is_docstring || is_help, &text);
    }

    /// Returns the code of Python before a position, without the comments at its end.
    fn code_before<'b>(&self, before: &'b str) -> &'b str {
        let mut code = before.trim_end();
        while let Some((rest, last)) = code.rsplit_once('\n').or(Some(("", code))).filter(|_| !code.is_empty()) {
            if !last.trim_start().starts_with('#') {
                break;
            }
            code = rest.trim_end();
        }
        code
    }

    fn paragraphs(&mut self, line: usize, is_doc: bool, text: &str) {
        let kind = if is_doc { Kind::Opening } else { Kind::Remark };
        self.passages.push(Passage { kind, line, text: text.to_owned() });
        while self.split_last() {}
    }

    /// Splits the last passage into two at its first blank line, if there is text before that line.
    fn split_last(&mut self) -> bool {
        let Some(last) = self.passages.last_mut() else { return false };
        let mut offset = 0;
        let mut found = None;
        for line in last.text.split_inclusive('\n') {
            if line.trim().is_empty() && !last.text[..offset].trim().is_empty() {
                found = Some(offset);
                break;
            }
            offset += line.len();
        }
        let Some(offset) = found else { return false };
        let rest = last.text.split_off(offset);
        let line = last.line + last.text.matches('\n').count();
        self.passages.push(Passage { kind: Kind::Remark, line, text: rest });
        true
    }

    fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }
}
