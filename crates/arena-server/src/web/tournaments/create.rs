//! `POST /tournaments`: the form of a new tournament.

use arena_tournament::Format;
use axum::extract::State;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::LISTED;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::routes::{create_for_visitor, tournaments_of};
use crate::tournaments::{Creators, Tournaments};
use crate::web::challenges::copyable;
use crate::web::components::primary;
use crate::web::form::Form;
use crate::web::layout::{NavEntry, Page, player_name};
use crate::web::{PageResult, unrendered};

/// Renders the form, or the reason why there is none.
pub(super) fn form(tournaments: &Tournaments) -> Markup {
    let (agents, total) = tournaments.list_agents(0, LISTED);
    let formats = Format::ALL.iter().filter(|format| !format.is_open_ended());
    html! {
        @if tournaments.settings().create == Creators::Admin {
            p.soft { "New tournaments need the administrator's token here." }
        } @else if total < 2 {
            p.soft { "A tournament needs two agents. " a href="/agents" { "Upload" } " them first." }
        } @else {
            details {
                summary { "New tournament" }
                form.card.pad method="post" action="/tournaments" {
                    label for="game" { "Game" }
                    select id="game" name="game" { @for game in arena_games::games() { option { (game.name) } } }
                    fieldset {
                        legend { "Agents" }
                        @for agent in &agents {
                            label.check {
                                input type="checkbox" name="agent" value=(agent.id);
                                span { (player_name(&agent.name, 40)) }
                            }
                        }
                        @if total > agents.len() { p.small.soft { "These are the newest; programs can name all." } }
                    }
                    label for="format" { "Format" }
                    select id="format" name="format" { @for format in formats { option { (format.name()) } } }
                    label for="rounds" { "Rounds (optional)" }
                    input id="rounds" name="rounds" type="number" min="1" max="1000";
                    label for="name" { "Name (optional)" }
                    input id="name" name="name" maxlength="200";
                    p { button.btn.primary { "Start" } }
                }
            }
        }
    }
}

/// `POST /tournaments`.
pub(crate) async fn create(State(arena): State<Arena>, form: Form) -> PageResult {
    let field = |name: &str| form.fields.get(name).map(str::trim).filter(|text| !text.is_empty());
    let rounds = field("rounds").map(|text| {
        text.parse::<u64>().map_err(|_| ApiError::bad_request("INVALID_FIELD", "rounds must be a whole number"))
    });
    let mut wanted = json!({
        "game": field("game"), "format": field("format"), "name": field("name"), "rounds": rounds.transpose()?,
        "agents": form.fields.all("agent").collect::<Vec<_>>(),
    });
    if let Value::Object(fields) = &mut wanted {
        fields.retain(|_, value| !value.is_null());
    }
    let id = create_for_visitor(&arena, form.address, wanted).await?;
    let key = tournaments_of(&arena)?.key_of_tournament(id);
    let body = html! {
        h1 { "The tournament is in the queue" }
        p.lead { "Its games begin when those before it have ended." }
        p { "Keep this key. It is shown only now, and with it you stop or remove the tournament:" }
        (copyable(&key))
        p { (primary(&format!("/tournaments/{id}"), "To the tournament")) }
    };
    Ok(unrendered(Page::new("New tournament", NavEntry::Tournaments, body).with_secrets()))
}
