//! `/admin`: status and moderation for the administrator. The page itself holds no data: a script reads `/ready`,
//! `/metrics` and `/api/admin`, and acts through `/api/admin`, with the administrator's token in a header of each
//! request. The token is typed into a form and kept in the tab's session storage. Unlike a cookie, the token can't be
//! used by other sites. All access is through `/api/admin`.

use axum::extract::State;
use maud::{Markup, html};

use super::layout::{NavEntry, Page};
use super::{PageResult, Visit, unrendered};
use crate::arena::Arena;
use crate::auth::AdminToken;

pub(super) async fn show(State(_): State<Arena>, _visit: Visit) -> PageResult {
    let body = html! {
        h1 { "Administration" }
        p.lead { "The status, the moderation and the traffic of this server." }
        noscript { p.error { "This page needs JavaScript. " code { "arena admin" } " does the same from the command line." } }
        (sign_in())
        p.error id="refusal" role="alert" hidden {}
        div id="inside" hidden {
            section.well id="well" aria-labelledby="well-title" {
                h2 id="well-title" role="status" { "Checking the server" }
                ul id="needs" {}
                dl.numbers id="state" {}
                p.soft id="updated" {}
            }
            p id="done" role="status" {}
            section aria-labelledby="live-title" {
                h2 id="live-title" { "Games being played" }
                p.soft { "To hide a message, open its game in this tab. Every message then has a button." }
                div.scroll tabindex="0" id="sessions" {}
            }
            section aria-labelledby="bans-title" {
                h2 id="bans-title" { "Bans" }
                div.scroll tabindex="0" id="bans" {}
            }
            section aria-labelledby="acts-title" {
                h2 id="acts-title" { "Actions" }
                div.cards { (acts()) }
            }
            div.two {
                section aria-labelledby="budgets-title" {
                    h2 id="budgets-title" { "Budgets" }
                    div.scroll tabindex="0" id="budgets" {}
                }
                section aria-labelledby="addresses-title" {
                    h2 id="addresses-title" { "Addresses that use most" }
                    div.scroll tabindex="0" id="addresses" {}
                }
            }
            section aria-labelledby="audit-title" {
                h2 id="audit-title" { "Audit log" }
                div.scroll tabindex="0" id="audit" {}
            }
            div.two {
                section aria-labelledby="requests-title" {
                    h2 id="requests-title" { "Requests" }
                    div.scroll tabindex="0" id="requests" {}
                }
                section aria-labelledby="limits-title" {
                    h2 id="limits-title" { "Requests rejected by limits" }
                    div.scroll tabindex="0" id="limits" {}
                }
            }
            p { button.btn type="button" id="leave" { "Sign out" } }
        }
    };
    Ok(unrendered(
        Page::new("Administration", NavEntry::Elsewhere, body).with_style("tables.css").with_script("admin.js"),
    ))
}

/// The form for the token.
fn sign_in() -> Markup {
    html! {
        section.card id="door" hidden {
            h2 { "Administrator token" }
            form id="token-form" {
                label for="token" { "Token, kept until this tab is closed" }
                input id="token" type="password" autocomplete="off" required minlength=(AdminToken::MIN_CHARS) spellcheck="false";
                button { "Sign in" }
            }
            p.soft {
                "The token is the value that the variable " code { "ADMIN_TOKEN" } " had when the server started. Without that variable, the server generates a token at its first start, prints it, and stores it as "
                code { (AdminToken::FILE) } " in its data folder."
            }
        }
    }
}

/// One form per action. The script sends it to `/api/admin`, after a confirmation if the action can't be undone.
fn acts() -> Markup {
    let field = |id: &str, name: &str, text: &str| {
        html! { label for=(id) { (text) } input id=(id) name=(name) required; }
    };
    html! {
        form.card data-do="hide" data-sure="This deletes the text permanently. Hide the message?" {
            h3 { "Hide a message" }
            (field("hide-channel", "channel", "Channel: the session id (chat), or challenge_ and the session id (operator)"))
            label for="hide-index" { "Message index" } input id="hide-index" name="index" type="number" min="1" required;
            button.btn.danger { "Hide" }
        }
        form.card data-do="remove" data-sure="This deletes the session and its scores permanently. Remove the session?" {
            h3 { "Remove a session" }
            (field("remove-id", "id", "Session id"))
            button.btn.danger { "Remove" }
        }
        form.card data-do="ban" {
            h3 { "Ban a user" }
            label for="ban-what" { "Ban by" }
            select id="ban-what" name="what" { option value="userId" { "user id" } option value="address" { "address or range" } option value="publicKey" { "public key" } }
            (field("ban-who", "who", "User id, address or key"))
            (field("ban-reason", "reason", "Reason (shown to the user)"))
            button { "Ban" }
        }
        form.card data-do="benchmark" {
            h3 { "Benchmark models" }
            (field("benchmark-user", "user", "User id"))
            label for="benchmark-is" { "Type" }
            select id="benchmark-is" name="is" { option value="true" { "benchmark model" } option value="false" { "not a benchmark model" } }
            button { "Save" }
        }
        form.card data-do="recompute" {
            h3 { "Recompute scores" }
            p { "Counts all games again and corrects entries that differ." }
            button { "Recompute" }
        }
    }
}
