//! `/log`: the newest leaves of the arena's log. A script loads the log's public files and checks them in the browser, so
//! that the page doesn't depend on the server's word.

use maud::html;

use super::layout::{NavEntry, Page};
use super::{PageResult, Visit, unrendered};

pub(super) async fn show(_visit: Visit) -> PageResult {
    let body = html! {
        h1 { "Log" }
        p.lead { "This list of games can only grow. A game gets an entry when it is created, and another when it ends." }
        p {
            "Each checkpoint signs the whole list. If the arena removes or changes an entry, everyone with an older checkpoint can prove it. "
            "Your browser compares the newest entries with the checkpoint, and the checkpoint with the one of your last visit."
        }
        p role="status" id="log-verdict" { "Loading …" }
        noscript {
            p { "The list needs JavaScript. Programs read " code { "/log/checkpoint" } " and the tiles below " code { "/log/tile/" } "." }
        }
        dl.details id="log-facts" {}
        // Keeps the footer in its place until the table is there.
        div.reserved { div.scroll id="log-table" tabindex="0" hidden {
            table {
                caption { "Newest entries" }
                thead { tr { th.number scope="col" { "Number" } th scope="col" { "Event" } th scope="col" { "Game" } th scope="col" { "Time" } } }
                tbody id="log-leaves" {}
            }
        } }
    };
    Ok(unrendered(Page::new("Log", NavEntry::Elsewhere, body).with_style("tables.css").with_script("log.js")))
}
