//! `/docs` and `/docs/{*name}`: the guides of the folder `docs`, embedded in the program. The description of the HTTP API
//! is at `/docs/api`.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::components::tabs;
use super::layout::{NavEntry, Page};
use super::{PageResult, Visit, unrendered};
use crate::arena::Arena;
use crate::error::ApiError;

/// The Markdown files by their names without `.md`.
macro_rules! guides {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../../docs/", $name, ".md")))),*]
    };
}

const GUIDES: &[(&str, &str)] = guides! {
    "README" "administration" "agents" "archive" "authentication" "challenge-reference" "chess" "cluster" "coming-from"
    "command-line-agents" "environments" "evaluations" "extending" "faq" "first-win" "games/cherry_picker" "games/chess"
    "games/food_catcher" "games/snake" "hosting" "ladders" "limits" "models" "network" "nodes" "one-arena" "play"
    "postgres" "python-functions" "record-format" "records" "reference/command-line" "reference/error-codes"
    "reference/exit-codes" "reference/metrics" "replays" "run-file" "sandbox" "scores" "scoring-strategies"
    "server-tournaments" "settings" "statistics" "testing" "tournaments" "troubleshooting" "verifying" "workers"
    "writing-challenges"
};

/// The guide with the list of all others.
const INDEX: &str = "README";

/// `GET /docs`: the list of guides.
pub(super) async fn list(State(_arena): State<Arena>, _visit: Visit) -> PageResult {
    render(INDEX)
}

/// `GET /docs/{*name}`.
pub(super) async fn show(State(_arena): State<Arena>, visit: Visit) -> PageResult {
    render(visit.param("name"))
}

/// Renders the links to the parts of the documentation. `here` is the path of the page.
pub(crate) fn guide_tabs(here: &str) -> Markup {
    let parts = [("/docs", "All guides"), ("/docs/api", "HTTP API"), ("/skill.md", "For agents")];
    tabs(&parts.map(|(path, name)| (path, name, path == here)))
}

fn render(name: &str) -> PageResult<Response> {
    let found = GUIDES.iter().find(|(guide, _)| *guide == name);
    let (_, text) = found.ok_or_else(|| ApiError::not_found("NOT_FOUND", "there is no such guide"))?;
    let (title, guide) = read(name, text);
    let body = html! {
        (guide_tabs(if name == INDEX { "/docs" } else { "" }))
        div.guide { (guide) }
    };
    Ok(unrendered(Page::new(&title, NavEntry::Docs, body)))
}

/// Converts a guide into HTML, and returns it after its title. Links to other places than guides become texts, and so do
/// pictures. Comments are dropped.
fn read(name: &str, text: &str) -> (String, Markup) {
    let mut events: Vec<Event<'_>> = Vec::new();
    let mut title = String::new();
    // For each open link, true if it is shown.
    let mut links = Vec::new();
    let mut heading: Option<(usize, HeadingLevel, String)> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => {}
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {}
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let address = resolve(name, &dest_url);
                links.push(address.is_some());
                if let Some(address) = address {
                    events.push(Event::Start(Tag::Link { link_type, dest_url: address.into(), title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                if links.pop() == Some(true) {
                    events.push(Event::End(TagEnd::Link));
                }
            }
            Event::Start(Tag::Heading { level, .. }) => heading = Some((events.len(), level, String::new())),
            Event::End(TagEnd::Heading(level)) => {
                let Some((at, level, words)) = heading.take().filter(|(_, begun, _)| *begun == level) else { continue };
                if title.is_empty() {
                    title.clone_from(&words);
                }
                let id = Some(CowStr::from(fragment_of(&words)));
                let start = Tag::Heading { level, id, classes: Vec::new(), attrs: Vec::new() };
                events.insert(at, Event::Start(start));
                events.push(Event::End(TagEnd::Heading(level)));
            }
            event => {
                if let (Event::Text(part) | Event::Code(part), Some((.., words))) = (&event, &mut heading) {
                    words.push_str(part);
                }
                events.push(event);
            }
        }
    }
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events.into_iter());
    // What is wider than the page scrolls, also by the keyboard.
    let html = html.replace("<pre>", "<pre tabindex=\"0\">");
    let html =
        html.replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>").replace("</table>", "</table></div>");
    (title, PreEscaped(html))
}

/// Returns the address of a link in a guide; `None` for all that isn't a guide.
fn resolve(from: &str, link: &str) -> Option<String> {
    if link.starts_with('#') {
        return Some(link.to_owned());
    }
    let (file, fragment) = link.split_once('#').map_or((link, ""), |(file, fragment)| (file, fragment));
    let mut folders: Vec<&str> = from.split('/').collect();
    folders.pop();
    for part in file.split('/') {
        match part {
            ".." => drop(folders.pop()?),
            part => folders.push(part),
        }
    }
    let path = folders.join("/");
    let (name, _) = GUIDES.iter().find(|(guide, _)| path.strip_suffix(".md") == Some(*guide))?;
    let address = if *name == INDEX { "/docs".to_owned() } else { format!("/docs/{name}") };
    Some(if fragment.is_empty() { address } else { format!("{address}#{fragment}") })
}

/// Returns the fragment of a heading, as in links between the Markdown files: lower case, with hyphens for spaces, and
/// without punctuation.
fn fragment_of(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn all_files_of_the_documentation_but_decisions_are_guides() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut names = BTreeSet::new();
        for folder in ["", "games/", "reference/"] {
            for entry in std::fs::read_dir(docs.join(folder)).expect("a folder") {
                let file = entry.expect("an entry").file_name().into_string().expect("a name");
                names.extend(file.strip_suffix(".md").map(|name| format!("{folder}{name}")));
            }
        }
        assert_eq!(GUIDES.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>(), names);
    }

    #[test]
    fn links_lead_to_guides_and_their_headings() {
        for (link, expected) in [
            ("agents.md", Some("/docs/agents")),
            ("agents.md#the-wire", Some("/docs/agents#the-wire")),
            ("games/snake.md", Some("/docs/games/snake")),
            ("README.md", Some("/docs")),
            ("#here", Some("#here")),
            ("https://mutants.rs", None),
            ("../bench/RESULTS.md", None),
            ("decisions/README.md", None),
            ("verify-deal.py", None),
        ] {
            assert_eq!(resolve("play", link).as_deref(), expected, "{link}");
        }
        assert_eq!(resolve("games/snake", "../agents.md").as_deref(), Some("/docs/agents"));
        for (name, text) in GUIDES {
            let (title, page) = read(name, text);
            assert!(!title.is_empty() && !page.0.contains("<!--"), "{name}");
            for link in page.0.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default()) {
                let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
                let target = match path {
                    "" => name,
                    "/docs" => INDEX,
                    path => path.strip_prefix("/docs/").unwrap_or_default(),
                };
                let Some((_, text)) = GUIDES.iter().find(|(guide, _)| *guide == target) else { continue };
                let id = format!("id=\"{fragment}\"");
                assert!(fragment.is_empty() || read(target, text).1.0.contains(&id), "{name}: {link}");
            }
        }
    }

    #[test]
    fn a_guide_becomes_a_page() {
        let text = "# A `first` win, so\n\n<!-- ci: run -->\n\nRead [this](play.md), [that](../x.rs).\n\n![Alt](a.webp)\n\n| a |\n|---|\n| b |\n";
        let (title, page) = read("first-win", text);
        assert_eq!(title, "A first win, so");
        let expected = "<h1 id=\"a-first-win-so\">A <code>first</code> win, so</h1>\n<p>Read <a href=\"/docs/play\">this</a>, that.</p>\n<p>Alt</p>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>a</th></tr></thead><tbody>\n<tr><td>b</td></tr>\n</tbody></table></div>\n";
        assert_eq!(page.0, expected);
    }
}
