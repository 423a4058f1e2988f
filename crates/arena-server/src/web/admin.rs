//! `/admin`: what whoever runs the server wants to see and do. The page itself holds nothing: a script reads what is shown from `/health`,
//! `/ready`, `/metrics` and `/api/admin`, and does what is done through `/api/admin`, with the administrator's token in the header of each
//! request. The token is typed into a form, and kept in the browser for as long as the tab is open. So there is no cookie that another page
//! could make use of, and no way to administer that isn't behind the one door of `/api/admin`.

use axum::extract::State;
use maud::{Markup, html};

use super::layout::{Page, Place};
use super::{PageResult, Visit, answer};
use crate::admin_token::AdminToken;
use crate::arena::Arena;

/// `GET /admin`.
pub(super) async fn show(State(_): State<Arena>, _visit: Visit) -> PageResult {
    let body = html! {
        h1 { "Administration" }
        p.lead { "For whoever runs this server: how it does, who uses it, and what to do about it." }
        noscript { p.error { "This page takes JavaScript. " code { "arena admin" } " does the same without a browser." } }
        section.card id="door" hidden {
            h2 { "The administrator's token" }
            form id="token-form" {
                label for="token" { "The token opens this page for as long as the tab is open." }
                input id="token" type="password" autocomplete="off" required minlength=(AdminToken::MIN_CHARS) spellcheck="false";
                button { "Open" }
            }
            p.soft {
                "It is what " code { "ADMIN_TOKEN" } " was when the server started; without that, what the server told at its first start and keeps as "
                code { (AdminToken::FILE) } " in its data folder."
            }
        }
        p.error id="refusal" role="alert" hidden {}
        div id="inside" hidden {
            p { button type="button" id="leave" { "Forget the token" } }
            section aria-labelledby="state-title" {
                h2 id="state-title" { "How it does" }
                dl.numbers id="state" {}
                p.soft role="status" id="told" {}
            }
            div.beside {
                section aria-labelledby="requests-title" {
                    h2 id="requests-title" { "Requests" }
                    div.scroll tabindex="0" id="requests" {}
                }
                section aria-labelledby="limits-title" {
                    h2 id="limits-title" { "Limits that were hit" }
                    div.scroll tabindex="0" id="limits" {}
                }
            }
            section aria-labelledby="live-title" {
                h2 id="live-title" { "Sessions that are being played" }
                div.scroll tabindex="0" id="sessions" {}
            }
            section aria-labelledby="acts-title" {
                h2 id="acts-title" { "Moderation" }
                div.cards { (acts()) }
                p id="done" role="status" {}
            }
            section aria-labelledby="bans-title" {
                h2 id="bans-title" { "Bans" }
                div.scroll tabindex="0" id="bans" {}
            }
            section aria-labelledby="audit-title" {
                h2 id="audit-title" { "What administrators did" }
                div.scroll tabindex="0" id="audit" {}
            }
        }
    };
    Ok(answer(&Page::new("Administration", Place::Elsewhere, body).with_script("admin.js")))
}

/// A form for each thing that can be done. The script sends them to `/api/admin`; those that can't be undone ask first.
fn acts() -> Markup {
    let field = |id: &str, name: &str, text: &str| {
        html! { label for=(id) { (text) } input id=(id) name=(name) required; }
    };
    html! {
        form.card data-do="hide" data-sure="The text is gone for good. Hide it?" {
            h3 { "Hide a message" }
            (field("hide-channel", "channel", "Channel, as the session's id, or challenge_ and the id for the operator's"))
            label for="hide-index" { "Its number" } input id="hide-index" name="index" type="number" min="1" required;
            button { "Hide" }
        }
        form.card data-do="remove" data-sure="The session is gone for good, with all that it counted for. Remove it?" {
            h3 { "Remove a session" }
            (field("remove-id", "id", "Its id"))
            button { "Remove" }
        }
        form.card data-do="ban" {
            h3 { "Ban somebody" }
            label for="ban-what" { "Whom" }
            select id="ban-what" name="what" { option value="userId" { "a user" } option value="address" { "an address, or a range" } option value="publicKey" { "a public key" } }
            (field("ban-who", "who", "Id, address or key"))
            (field("ban-reason", "reason", "Reason, which is told to them"))
            button { "Ban" }
        }
        form.card data-do="benchmark" {
            h3 { "Benchmark models" }
            (field("benchmark-user", "user", "User"))
            label for="benchmark-is" { "is" }
            select id="benchmark-is" name="is" { option value="true" { "a benchmark model" } option value="false" { "no benchmark model" } }
            button { "Say so" }
        }
        form.card data-do="recompute" {
            h3 { "Count again" }
            p { "All games are counted anew, and what differs is mended." }
            button { "Count" }
        }
    }
}
