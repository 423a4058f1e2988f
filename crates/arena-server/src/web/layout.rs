//! What all pages have in common: head, navigation, foot, and the pieces that stand on several of them.

use arena_model::Status;
use arena_report::{printable, utc};
use maud::{DOCTYPE, Markup, html};

/// A page before it is written.
pub(super) struct Page {
    title: String,
    place: Place,
    scripts: Vec<&'static str>,
    styles: Vec<&'static str>,
    body: Markup,
}

/// Where in the navigation a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Home,
    Challenges,
    Tournaments,
    Elsewhere,
}

impl Place {
    fn path(self) -> &'static str {
        match self {
            Place::Home => "/",
            Place::Challenges => "/challenges",
            Place::Tournaments => "/tournaments",
            Place::Elsewhere => "",
        }
    }
}

impl Page {
    /// A page that needs no script but the one of all pages.
    pub(super) fn new(title: &str, place: Place, body: Markup) -> Page {
        Page { title: printable(title).into_owned(), place, scripts: vec!["page.js"], styles: Vec::new(), body }
    }

    /// The page with one script more.
    pub(super) fn with_script(mut self, script: &'static str) -> Page {
        self.scripts.push(script);
        self
    }

    /// The page with one style sheet more, behind that of all pages.
    pub(super) fn with_style(mut self, style: &'static str) -> Page {
        self.styles.push(style);
        self
    }

    pub(super) fn render(&self) -> Markup {
        let title = if self.place == Place::Home { self.title.clone() } else { format!("{} · Arena", self.title) };
        html! {
            (DOCTYPE)
            html lang="en" {
                (head_with(&title, &self.scripts, &self.styles))
                body {
                    a.skip href="#content" { "Skip to the content" }
                    (top(self.place.path()))
                    main id="content" tabindex="-1" { (self.body) }
                    footer {
                        p {
                            a href="/skill.md" { "How agents play" } " (" a href="/skill.json" { "as data" } ") · "
                            a href="/docs" { "HTTP interface" } " (" a href="/openapi.json" { "OpenAPI" } ") · "
                            a href="/api/metadata" { "metadata" } " · " a href="/metrics" { "metrics" } " · " a href="/admin" { "administration" }
                        }
                    }
                }
            }
        }
    }
}

/// The links that stand above all pages. `here` is the path of the one that leads to this page.
pub(crate) fn top(here: &str) -> Markup {
    let link =
        |path: &str, name: &str| html! { a href=(path) aria-current=[(path == here).then_some("page")] { (name) } };
    html! {
        header.top {
            nav aria-label="Site" {
                (link("/", "Arena")) (link("/challenges", "Challenges")) (link("/tournaments", "Tournaments"))
                span.stretch {}
                (link("/docs", "HTTP interface")) (link("/skill.md", "For agents"))
            }
        }
    }
}

/// The head of a page without scripts.
pub(crate) fn head(title: &str) -> Markup {
    head_with(title, &[], &[])
}

fn head_with(title: &str, scripts: &[&str], styles: &[&str]) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) }
            link rel="icon" href="/web/icon.svg" type="image/svg+xml";
            link rel="stylesheet" href="/style.css";
            @for style in styles { link rel="stylesheet" href={ "/web/" (style) }; }
            @for script in scripts { script type="module" src={ "/web/" (script) } {} }
        }
    }
}

/// A text of somebody's, which means nothing but itself.
pub(super) fn shown(text: &str) -> Markup {
    html! { bdi { (printable(text)) } }
}

/// A text of this program's, in which code stands between backticks.
pub(crate) fn explained(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A short text of somebody's, as one line of at most `most` characters. The whole is there for those who point at it.
pub(super) fn cut(text: &str, most: usize) -> Markup {
    let text = printable(text).replace('\n', "\\n");
    match text.char_indices().nth(most) {
        None => html! { bdi { (text) } },
        Some((at, _)) => html! { bdi title=[(text.len() <= 1000).then_some(&text)] { (text[..at]) "…" } },
    }
}

/// A moment, in milliseconds since 1970. A script turns it into the viewer's zone.
pub(super) fn time(ms: i64) -> Markup {
    let text = utc(ms);
    html! { time datetime=(text) { (text.trim_end_matches('Z')) " UTC" } }
}

/// A moment of a day that is known, to the second.
pub(super) fn moment(ms: i64) -> Markup {
    let text = utc(ms);
    html! { time.moment datetime=(text) { (text[11..].trim_end_matches('Z')) " UTC" } }
}

/// How a session stands, as a mark.
pub(super) fn badge(status: Status) -> Markup {
    html! { span.badge.{ "is-" (status.as_str()) } { (status.as_str()) } }
}

/// The characters of an id by which people tell it from others: the first eight; of a UUID that begins with a time (version 7,
/// as older arenas made them), the last six.
pub(super) fn short(id: &str) -> String {
    match (id.get(..8), id.get(14..15), id.get(30..)) {
        (_, Some("7"), Some(end)) => format!("…{end}"),
        (Some(begin), ..) => format!("{begin}…"),
        _ => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_shortened_to_what_differs() {
        assert_eq!(short("2f9d0c4e-7a1b-4c3d-9e5f-019123456789"), "2f9d0c4e…");
        assert_eq!(short("018f6b2e-0000-7000-8000-00000000abcd"), "…00abcd");
        assert_eq!(short("psi"), "psi");
    }
}
