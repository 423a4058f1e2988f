//! The layout of all pages: head, navigation, footer and shared elements.

use arena_model::Status;
use arena_report::{printable, utc};
use maud::{DOCTYPE, Markup, html};

use super::assets::address_of;
use super::site::SiteSettings;
use crate::request::names::find_look_alike;

/// The parts of a page, before rendering.
pub(super) struct Page {
    title: String,
    nav_entry: NavEntry,
    scripts: Vec<&'static str>,
    styles: Vec<&'static str>,
    /// Interval at which browsers without JavaScript reload the page, in seconds.
    reload_s: Option<u32>,
    description: Option<String>,
    card: Option<Card>,
    /// True if the page contains something that only its reader may know, such as an invite.
    pub(super) has_secrets: bool,
    body: Markup,
}

/// The absolute addresses of a page and of its picture, for the previews of links.
pub(super) struct Card {
    pub(super) url: String,
    /// A picture of 1200 × 630 pixels.
    pub(super) image: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NavEntry {
    Home,
    Challenges,
    Leaderboards,
    Tournaments,
    Docs,
    Elsewhere,
}

impl NavEntry {
    fn path(self) -> &'static str {
        match self {
            NavEntry::Home => "/",
            NavEntry::Challenges => "/challenges",
            NavEntry::Leaderboards => "/leaderboards",
            NavEntry::Tournaments => "/tournaments",
            NavEntry::Docs => "/docs",
            NavEntry::Elsewhere => "",
        }
    }
}

impl Page {
    /// Creates a page with the common script only.
    pub(super) fn new(title: &str, nav_entry: NavEntry, body: Markup) -> Page {
        let title = printable(title).into_owned();
        Page {
            title,
            nav_entry,
            scripts: vec!["page.js"],
            styles: Vec::new(),
            reload_s: None,
            description: None,
            card: None,
            has_secrets: false,
            body,
        }
    }

    pub(super) fn with_script(mut self, script: &'static str) -> Page {
        self.scripts.push(script);
        self
    }

    /// Adds a style sheet, after the common one.
    pub(super) fn with_style(mut self, style: &'static str) -> Page {
        self.styles.push(style);
        self
    }

    /// Makes browsers without JavaScript reload the page at this interval, in seconds.
    pub(super) fn with_reload(mut self, reload_s: u32) -> Page {
        self.reload_s = Some(reload_s);
        self
    }

    /// Sets the description in search results and previews of links.
    pub(super) fn with_description(mut self, description: &str) -> Page {
        self.description = Some(printable(description).replace('\n', " "));
        self
    }

    /// Marks a page with something that only its reader may know. It isn't compressed, because the size of a compressed
    /// page reveals parts of it to those who can place texts on it.
    pub(super) fn with_secrets(mut self) -> Page {
        self.has_secrets = true;
        self
    }

    pub(super) fn with_card(mut self, card: Option<Card>) -> Page {
        self.card = card;
        self
    }

    fn head(&self, title: &str) -> Markup {
        let description = self.description.as_deref().unwrap_or(DESCRIPTION);
        let rest = html! {
            @if let Some(reload_s) = self.reload_s { noscript { meta http-equiv="refresh" content=(reload_s); } }
            @if let Some(Card { url, image }) = &self.card {
                meta property="og:site_name" content="Arena";
                meta property="og:type" content="article";
                meta property="og:title" content=(self.title);
                meta property="og:description" content=(description);
                meta property="og:url" content=(url);
                meta property="og:image" content=(image);
                meta property="og:image:type" content="image/png";
                meta property="og:image:width" content="1200";
                meta property="og:image:height" content="630";
                meta property="og:image:alt" content=(self.title);
                meta name="twitter:card" content="summary_large_image";
            }
            @for style in &self.styles { link rel="stylesheet" href=(address_of(style)); }
            @for script in &self.scripts { script type="module" src=(address_of(script)) {} }
        };
        head_with(title, description, &rest)
    }

    /// Renders the page. `has_administration` is true if the reader can reach the routes of administrators.
    pub(super) fn render(&self, site: &SiteSettings, has_administration: bool) -> Markup {
        let title =
            if self.nav_entry == NavEntry::Home { self.title.clone() } else { format!("{} · Arena", self.title) };
        html! {
            (DOCTYPE)
            html lang="en" {
                (self.head(&title))
                body {
                    a.skip href="#content" { "Skip to content" }
                    (top(self.nav_entry.path()))
                    main id="content" tabindex="-1" { (self.body) }
                    footer {
                        a href="/skill.md" { "Agent guide" }
                        a href="/docs" { "Docs" }
                        a href="/docs/api" { "HTTP API" }
                        a href="/openapi.json" { "OpenAPI" }
                        a href="/agents" { "Agents" }
                        a href="/log" { "Log" }
                        @if has_administration { a href="/metrics" { "Metrics" } a href="/admin" { "Administration" } }
                        @if let Some(terms) = &site.terms { a href=(terms.target()) { "Terms" } }
                        @if let Some(contact) = &site.contact { a href=(contact.target()) { "Contact" } }
                    }
                }
            }
        }
    }
}

/// Renders the navigation at the top of a page. `here` is the path of the link to mark as current.
pub(crate) fn top(here: &str) -> Markup {
    let link =
        |path: &str, name: &str| html! { a href=(path) aria-current=[(path == here).then_some("page")] { (name) } };
    html! {
        header.top {
            nav aria-label="Site" {
                a.home href="/" aria-current=[(here == "/").then_some("page")] { (logo()) "Arena" }
                (link("/challenges", "Play")) (link("/#now", "Watch")) (link("/leaderboards", "Leaderboards"))
                (link("/tournaments", "Tournaments"))
                span.stretch {}
                (link("/docs", "Docs")) (link("/skill.md", "For agents"))
            }
        }
    }
}

/// Renders the logo: two sets that overlap, as in `icon.svg`.
fn logo() -> Markup {
    html! {
        svg.logo viewBox="0 0 28 28" width="28" height="28" aria-hidden="true" {
            circle.left cx="10.5" cy="14" r="9.5" {}
            circle.right cx="17.5" cy="14" r="9.5" {}
            path.lens d="M14 5.168A9.5 9.5 0 0 1 14 22.832A9.5 9.5 0 0 1 14 5.168Z" {}
        }
    }
}

/// Renders the `head` of a page without scripts.
pub(crate) fn head(title: &str) -> Markup {
    head_with(title, DESCRIPTION, &html! {})
}

/// The description of pages without one of their own.
const DESCRIPTION: &str =
    "People and agents play games with secrets, chess and more. Anyone can play, watch, and check the results.";

/// Renders a page's `head`, which ends with `rest`.
fn head_with(title: &str, description: &str, rest: &Markup) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) }
            meta name="description" content=(description);
            link rel="icon" href=(address_of("icon.svg")) type="image/svg+xml";
            link rel="stylesheet" href=(address_of("style.css"));
            (rest)
        }
    }
}

/// Renders a user's text, with control characters escaped and its writing direction isolated.
pub(super) fn shown(text: &str) -> Markup {
    html! { bdi { (printable(text)) } }
}

/// Renders a text of the program or of a challenge. Parts in backticks become code.
pub(crate) fn explained(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Renders a user's text on one line, cut after `most` characters. The tooltip has the full text, if that has at most
/// 1000 bytes.
pub(super) fn cut(text: &str, most: usize) -> Markup {
    let text = printable(text).replace('\n', "\\n");
    match text.char_indices().nth(most) {
        None => html! { bdi { (text) } },
        Some((at, _)) => html! { bdi title=[(text.len() <= 1000).then_some(&text)] { (text[..at]) "…" } },
    }
}

/// Renders the name of a user or agent like [`cut`]. A name of letters that look like ASCII letters is marked.
pub(super) fn player_name(name: &str, most: usize) -> Markup {
    html! {
        (cut(name, most))
        @if let Some(plain) = find_look_alike(name) { " " small.soft { "(looks like " (cut(&plain, most)) ")" } }
    }
}

/// Renders a time, given in milliseconds since 1970. A script converts it to the viewer's time zone.
pub(super) fn time(ms: i64) -> Markup {
    let text = utc(ms);
    html! { time datetime=(text) { (text.trim_end_matches('Z')) " UTC" } }
}

/// Renders a time of day, to the second.
pub(super) fn moment(ms: i64) -> Markup {
    let text = utc(ms);
    html! { time.moment datetime=(text) { (text[11..].trim_end_matches('Z')) " UTC" } }
}

pub(super) fn badge(status: Status) -> Markup {
    let text = match status {
        Status::Open => "waiting for players",
        Status::Active => "live",
        Status::Ended => "ended",
    };
    html! { span.badge.{ "is-" (status.as_str()) } { (text) } }
}
