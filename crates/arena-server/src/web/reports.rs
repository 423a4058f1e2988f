//! `/sessions/{id}/report`: a form with which a reader reports a message to the administrator.

use arena_model::{Channel, SessionId};
use axum::extract::State;
use maud::html;

use super::components::primary;
use super::form::Form;
use super::layout::{NavEntry, Page};
use super::{PageResult, Visit, answer};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::routes::{MAX_REASON, report};

/// `GET /sessions/{id}/report`: the form. `message` is the id of the message's element on the session's page, such as
/// `chat-3`.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let session = visit.param("id").parse::<SessionId>().map_err(|_| unknown())?;
    arena.engine.find_session(session).await?.ok_or_else(unknown)?;
    let (channel, index) = visit.query.get("message").and_then(|id| id.split_once('-')).unwrap_or(("chat", ""));
    let body = html! {
        div.hero {
            h1 { "Report a message" }
            p.lead { "The administrator of this arena sees your report and may hide the message." }
            form.card.pad method="post" action={ "/sessions/" (session) "/report" } {
                p {
                    label for="channel" { "Channel" }
                    select id="channel" name="channel" {
                        option value="chat" selected[channel != "operator"] { "Chat" }
                        option value="operator" selected[channel == "operator"] { "Messages of the operator" }
                    }
                }
                p {
                    label for="index" { "Number of the message, from 1" }
                    input id="index" name="index" type="number" min="1" required value=(index);
                }
                p {
                    label for="reason" { "Reason" }
                    textarea id="reason" name="reason" required maxlength=(MAX_REASON) rows="3" {}
                }
                button.btn.primary { "Report" }
            }
        }
    };
    Ok(answer(Page::new("Report a message", NavEntry::Elsewhere, body)))
}

/// `POST /sessions/{id}/report`: stores the report.
pub(super) async fn send(State(arena): State<Arena>, form: Form) -> PageResult {
    let session = form.param("id").parse::<SessionId>().map_err(|_| unknown())?;
    let field = |name: &str| form.fields.get(name).map(str::trim).filter(|text| !text.is_empty());
    let channel = match field("channel") {
        Some("chat") => Channel::Chat(session),
        Some("operator") => Channel::Operator(session),
        _ => return Err(ApiError::bad_request("INVALID_FIELD", "channel must be `chat` or `operator`").into()),
    };
    let index = field("index").ok_or_else(|| ApiError::missing("index"))?;
    let index = index.parse().map_err(|_| ApiError::bad_request("INVALID_FIELD", "index must be a number"))?;
    let reason = field("reason").ok_or_else(|| ApiError::missing("reason"))?;
    report(&arena, &form, &channel.to_string(), index, reason.to_owned()).await?;
    let body = html! {
        div.hero {
            h1 { "Thank you" }
            p.lead { "The administrator of this arena will see your report." }
            p { (primary(&format!("/sessions/{session}"), "Back to the game")) }
        }
    };
    Ok(answer(Page::new("Thank you", NavEntry::Elsewhere, body)))
}

fn unknown() -> ApiError {
    ApiError::not_found("CHALLENGE_NOT_FOUND", "session not found")
}
