//! The forms of a seat's page: joining, acting and chatting.

use arena_model::{ChallengeMetadata, FieldValues, FormField, InviteCode, Method, MethodForm, Status};
use maud::{Markup, html};

use crate::answer::to_text;
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::web::form::Form;
use crate::web::layout::explained;
use crate::web::session::has_drawn_board;
use crate::web::session::redacted::RedactedSession;

pub(super) fn join(path: &str, keys: bool) -> Markup {
    html! {
        form.card.pad method="post" action=(path) data-do="join" {
            input type="hidden" name="do" value="join";
            h2 { "Join the game" }
            @if keys {
                p { "This server authenticates players. Your browser creates a signing key and keeps it." }
                noscript { p.error { "Signing needs JavaScript." } }
            } @else {
                label for="user" { "Your name on the leaderboard (optional)" }
                input id="user" name="user" maxlength="255" autocomplete="nickname";
            }
            button.btn.primary { "Take the seat" }
        }
    }
}

/// The own seat, the number of players, and the declared forms, for the forms of a seat.
pub(super) struct SeatForms<'f> {
    pub(super) own: Option<usize>,
    pub(super) players: usize,
    pub(super) forms: &'f [MethodForm],
}

/// Renders a form for each method. The forms are folded if the challenge has controls. The form for resignation is
/// always folded, so that a player doesn't resign by accident.
pub(super) fn acts(path: &str, metadata: &ChallengeMetadata, declared: &SeatForms<'_>, has_controls: bool) -> Markup {
    let is_final = |method: &&Method| method.name == "resign";
    let forms =
        |methods: Vec<&Method>| html! { div.cards { @for method in methods { (act_form(path, method, declared)) } } };
    let usual = forms(metadata.methods.iter().filter(|method| !is_final(method)).collect());
    let last: Vec<&Method> = metadata.methods.iter().filter(is_final).collect();
    html! {
        @if has_controls {
            details id="as-text" { summary { "Enter a move as text" } (usual) }
        } @else {
            (usual)
        }
        @if !last.is_empty() {
            details { summary { "Resign" } (forms(last)) }
        }
    }
}

/// Renders the form of a method: its declared fields, or a text box.
fn act_form(path: &str, method: &Method, declared: &SeatForms<'_>) -> Markup {
    let id = format!("act-{}", method.name);
    let form = declared.forms.iter().find(|form| form.method == method.name);
    let title = sentence_case(&method.name);
    let button = form.and_then(|form| form.label.as_deref()).unwrap_or(&title);
    html! {
        form.card.pad method="post" action=(path) data-do="act" data-method=(method.name) data-parts=[form.map(|form| to_text(&form.content))] {
            input type="hidden" name="do" value="act";
            input type="hidden" name="method" value=(method.name);
            @if let Some(form) = form {
                p { b { (title) } }
                p.soft.small { (explained(&method.description)) }
                @for field in &form.fields { (form_field(&format!("{id}-{}", field.name), field, form, declared)) }
            } @else {
                label for=(id) { b { (title) } }
                p.soft.small { (explained(&method.description)) }
                textarea id=(id) name="content" rows="1" {}
            }
            button.btn { (button) }
        }
    }
}

/// The prefix of the names of declared fields in a submitted form.
const FIELD_PREFIX: &str = "field-";

/// The number of characters up to which a text field has one line.
const ONE_LINE: i64 = 200;

/// Renders a declared field. `id` is its id on the page.
fn form_field(id: &str, field: &FormField, form: &MethodForm, declared: &SeatForms<'_>) -> Markup {
    let is_needed = form.content.needs(&field.name);
    let name = format!("{FIELD_PREFIX}{}", field.name);
    let choose = if is_needed { "Choose" } else { "None" };
    html! {
        label for=(id) { (field.label) @if !is_needed { " (optional)" } }
        @match &field.values {
            FieldValues::Number { min, max } => {
                input id=(id) name=(name) type="number" step="1" min=[*min] max=[*max] required[is_needed] autocomplete="off";
            }
            FieldValues::Text { max } => {
                @if max.is_some_and(|max| max <= ONE_LINE) {
                    input id=(id) name=(name) type="text" maxlength=[*max] required[is_needed] autocomplete="off";
                } @else {
                    textarea id=(id) name=(name) rows="4" maxlength=[*max] required[is_needed] {}
                }
            }
            FieldValues::Choice(choices) => {
                select id=(id) name=(name) required[is_needed] {
                    option value="" { (choose) }
                    @for choice in choices { option { (choice) } }
                }
            }
            FieldValues::Seat => {
                select id=(id) name=(name) required[is_needed] {
                    option value="" { (choose) }
                    @for seat in (0..declared.players).filter(|seat| declared.own != Some(*seat)) {
                        option value=(seat + 1) { "Player " (seat + 1) }
                    }
                }
            }
        }
    }
}

/// Makes a method call's content from the fields of a declared form. Without such a form, the content is missing.
pub(super) fn declared_content(arena: &Arena, challenge: &str, method: &str, form: &Form) -> ApiResult<String> {
    let challenges = arena.engine.challenges();
    let forms = challenges.get(challenge).map(|challenge| challenge.forms()).unwrap_or_default();
    let declared = forms.iter().find(|declared| declared.method == method);
    let declared = declared.ok_or_else(|| ApiError::missing("content"))?;
    let value = |name: &str| {
        let value = form.fields.get(&format!("{FIELD_PREFIX}{name}"))?.trim();
        (!value.is_empty()).then_some(value)
    };
    let content = declared.content.fill(&value).map_err(|name| {
        let field = declared.fields.iter().find(|field| field.name == name);
        ApiError::missing(field.map_or(name, |field| &field.label))
    })?;
    let most = form.field_settings.content_bytes;
    if content.len() > most {
        let text = format!("the move is longer than {most} bytes (limits.message_bytes)");
        return Err(ApiError::too_large("MESSAGE_TOO_LARGE", text));
    }
    Ok(content)
}

/// Returns a method's name in words: `submit_offer` becomes `Submit offer`.
fn sentence_case(name: &str) -> String {
    let words = name.replace(['_', '-'], " ");
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

pub(super) fn talk(path: &str, session: &RedactedSession, own: InviteCode, reveal_chat: bool) -> Markup {
    let own = own.to_string();
    let notice = match (session.status(), reveal_chat) {
        (Status::Ended, true) => "The game has ended: everything you write is public.",
        (Status::Ended, false) => "Spectators can read what you write to everyone.",
        (_, true) => "Everything you write becomes public when the game ends.",
        (_, false) if has_drawn_board(session) => "Spectators can watch the game, and read what you write to everyone.",
        (_, false) => "Spectators can read what you write to everyone. Your moves become public when the game ends.",
    };
    html! {
        form.talk method="post" action=(path) data-do="chat" {
            input type="hidden" name="do" value="chat";
            div.row {
                textarea id="chat-content" name="content" rows="1" required aria-label="Message" placeholder="Message" {}
                button.btn { "Send" }
            }
            div.row.small {
                label for="chat-to" { "To" }
                select id="chat-to" name="to" {
                    option value="" { "everyone" }
                    @for (seat, player) in session.state.players.iter().enumerate().filter(|(_, player)| **player != own) {
                        option value=(player) { "Player " (seat + 1) " only" }
                    }
                }
                span.soft id="chat-notice" { (notice) }
            }
        }
    }
}
