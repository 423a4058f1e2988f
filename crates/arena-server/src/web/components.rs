//! The components of the pages, and the page `/components` of debug builds, which shows all of them.
//!
//! The classes are in `style.css`. Lengths are drawn with attributes of SVG, since the content security policy forbids
//! inline styles.

use arena_web::{seat_class, seat_mark};
use maud::{Markup, PreEscaped, html};

use super::layout::{NavEntry, Page, shown};
use super::{PageResult, Visit, unrendered};

/// The picture of challenges without one of their own.
const PLAIN: &str = include_str!("picture.svg");

/// Renders a link that looks like a button.
pub(super) fn btn(href: &str, text: &str) -> Markup {
    html! { a.btn href=(href) { (text) } }
}

/// Renders the page's main action. A page has one.
pub(super) fn primary(href: &str, text: &str) -> Markup {
    html! { a.btn.primary href=(href) { (text) } }
}

/// Renders a short value, such as a number of a set.
pub(super) fn chip(text: &str) -> Markup {
    html! { span.chip { (shown(text)) } }
}

/// Renders the mark of live games: a green dot and a text.
pub(super) fn live_dot(text: &str) -> Markup {
    html! { span.live-dot { (text) } }
}

/// Renders an empty state: a sentence and, as `(address, text)`, the next step.
pub(super) fn empty(sentence: &str, action: Option<(&str, &str)>) -> Markup {
    html! {
        div.empty {
            p { (sentence) }
            @if let Some((href, text)) = action { (btn(href, text)) }
        }
    }
}

/// Renders a value with its confidence interval, as fractions of the scale. The table has the numbers as text, so
/// screen readers skip the picture.
pub(super) fn interval(low: f64, mid: f64, high: f64) -> Markup {
    let x = |fraction: f64| {
        let fraction = if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.5 };
        5.0 + 140.0 * fraction
    };
    let (left, right) = (x(low.min(high)), x(high.max(low)));
    html! {
        svg.interval viewBox="0 0 150 18" width="150" height="18" aria-hidden="true" {
            rect.scale x="0" y="8" width="150" height="2" rx="1" {}
            rect.scale x="74.5" y="3" width="1" height="12" {}
            rect.range x=(format!("{left:.1}")) y="5" width=(format!("{:.1}", (right - left).max(1.0))) height="8" rx="4" {}
            circle.mid cx=(format!("{:.1}", x(mid))) cy="9" r="5" {}
        }
    }
}

/// Renders links to the parts of a page, as `(address, name, is_here)`.
pub(super) fn tabs(entries: &[(&str, &str, bool)]) -> Markup {
    html! {
        nav.tabs aria-label="Parts" {
            @for (path, name, is_here) in entries {
                a href=(path) aria-current=[is_here.then_some("page")] { (name) }
            }
        }
    }
}

/// Renders the picture of a challenge type. It is static and decorative.
pub(super) fn picture(challenge: &str) -> Markup {
    let own = arena_games::all().find(|playable| playable.id == challenge).and_then(|playable| playable.kit.picture);
    PreEscaped(own.unwrap_or(PLAIN).to_owned())
}

/// Renders the Markdown that embeds a plot as a link to its page. `path` and `page` are the URL paths of the two.
pub(super) fn embed(base: &str, path: &str, page: &str, what: &str) -> Markup {
    let markdown = format!("[![{what}]({base}{path})]({base}{page})");
    html! {
        details.embed {
            summary { "Embed" }
            p { "Markdown for a README. The colors follow the reader's light or dark mode; " code { "?theme=light" } " or " code { "?theme=dark" } " selects one mode." }
            pre.copy { code { (markdown) } }
            p { a href=(path) { "Image only" } }
        }
    }
}

/// `GET /components`, in debug builds: a list of all components with made-up content.
pub(super) async fn show(_visit: Visit) -> PageResult {
    let types: Vec<&str> = arena_games::challenges().chain(["a-scripted-challenge"]).collect();
    let body = html! {
        h1 { "Components" }
        p.lead { "Everything that pages are made of, with made-up content." }
        section {
            h2 { "Buttons" }
            p.row {
                (primary("#content", "Play now")) (btn("#content", "Watch a live game"))
                button.btn.danger type="button" { "Reject" }
                a.btn.primary.big href="#content" { "A big one" }
            }
        }
        section {
            h2 { "Tabs" }
            (tabs(&[("#content", "Summary", true), ("#content", "Transcript", false), ("#content", "Details", false)]))
        }
        section {
            h2 { "Tiles" }
            div.tiles {
                @for challenge in types {
                    div.card.tile {
                        div.pic { (picture(challenge)) }
                        div.cap { h3 { (challenge) } ul.seats {
                            @for (seat, name, note) in [(0, "Ada", "found all three"), (1, "Mallory", "gave away two")] {
                                li class={ "seat " (seat_class(seat)) } { (seat_mark(seat)) b { (name) } span { (note) } }
                            }
                        } }
                    }
                }
            }
        }
        section {
            h2 { "Seats, chips and states" }
            p.row { @for seat in 0..8 { (seat_mark(seat)) } }
            p { (chip("142")) span.chip.common { "436" } span.chip.leak { "611" } }
            p.row { (live_dot("Live")) span.badge { "ended" } span.badge.is-active { "active" } span.badge.is-open { "open" } }
        }
        section {
            h2 { "Result and turn" }
            div.card.verdict.seat-0 { div { h1 { "Mallory learned Edsger's whole set" } p.soft { "Private set intersection · two minutes ago" } p.row { (primary("#content", "Replay")) } } }
            div.turn { b { "Your move" } span { "Player 2 offers you 39 of 100." } time { "1:42" } }
            div.turn.wait { b { "Waiting for Player 2" } }
        }
        section {
            h2 { "Timeline" }
            ol.timeline {
                li.event { "The game begins." }
                li.bubble.seat-0 { small { b { "Mallory" } time { "18:28" } } p { "I have one number in the 700s. You?" } }
                li.bubble.own.seat-1 { small { b { "Edsger" } time { "18:29" } } p { "205, 436, 486, 611." } p.flag { "Gives away four secret numbers" } }
                li.note { details { summary { "Private note to Mallory" } p { "Your set: 377, 436, 486." } } }
            }
        }
        section {
            h2 { "Interval, callout, empty state" }
            (interval(0.3, 0.45, 0.7))
            p.callout { "Everything you write becomes public when the game ends." }
            (empty("No games yet.", Some(("/challenges", "Start one"))))
        }
        section {
            h2 { "Columns, table, form" }
            div.two {
                div.card.pad {
                    table { thead { tr { th { "Player" } th.number { "Score" } } } tbody { tr { td { "Ada" } td.number { "1.00" } } } }
                }
                form.card.pad { label for="say" { "Message" } textarea id="say" {} button type="button" { "Send" } }
            }
        }
        dl.details { dt { "Server" } dd { code { "debug build" } } }
    };
    Ok(unrendered(Page::new("Components", NavEntry::Elsewhere, body)))
}
