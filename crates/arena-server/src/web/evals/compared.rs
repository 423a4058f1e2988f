//! The page with two games on one seed side by side, with their first difference.

use std::collections::BTreeSet;

use arena_eval::TranscriptMessage;
use maud::{Markup, html};

use super::super::layout::shown;
use super::game::{EvalGameView, trail};
use super::loaded::LoadedEval;
use super::texts::{ListPart, part_links, score_table};
use super::{EvalPageError, EvalPageResult, EvalSite, EvalVisit};

/// The number of rounds on a page.
const ROUNDS: usize = 40;

/// `GET /runs/{run}/games/{game}/diff`, with the other game's id as `with` in the query.
pub(super) fn show(site: &EvalSite, visit: &EvalVisit) -> EvalPageResult {
    let loaded = site.run(visit)?;
    let game = visit.param("game");
    let first = EvalGameView::read(&loaded, game)?;
    let second = EvalGameView::read(&loaded, visit.query.get("with").unwrap_or_default())?;
    let deal = |view: &EvalGameView<'_>| (view.planned.challenge, view.planned.seed_number);
    if deal(&first) != deal(&second) {
        return Err(EvalPageError::absent("a pair of games with the same challenge and seed"));
    }
    let both = [&first, &second];
    let rounds = both.iter().flat_map(|view| &view.messages).map(|message| message.round);
    let rounds: Vec<u32> = rounds.collect::<BTreeSet<u32>>().into_iter().collect();
    let part = ListPart { offset: visit.offset(), most: ROUNDS, total: rounds.len() };
    let visible: Vec<u32> = rounds.into_iter().skip(part.offset).take(part.most).collect();
    let different = first_difference(&first.messages, &second.messages);
    let path = site.game_path(&loaded.name, game, "/diff");
    let label = &loaded.run.plan.challenges[first.planned.challenge].label;
    let title = format!("Two games of {label} on seed {}", first.record.seed + 1);
    let body = html! {
        h1 { (shown(&title)) }
        div.columns {
            @for view in both {
                div.column {
                    h2 { a href=(site.game_path(&loaded.name, &view.record.game, "")) { (shown(&view.record.told)) } }
                    (score_table(view.record, &view.names))
                }
            }
        }
        @match different {
            None => p.callout { "The transcripts are equal." },
            Some(round) => {
                p.callout {
                    "The games differ from round " (round) " on."
                    @if visible.contains(&round) { " " a href={ "#round-" (round) } { "Jump to it" } }
                }
            }
        }
        (part_links(&path, &visit.query, part, "Rounds"))
        @for round in &visible {
            section.round id={ "round-" (round) } {
                h2 { "Round " (round) @if different == Some(*round) { " " span.badge { "first difference" } } }
                div.columns { @for view in both { div.column { (messages(site, &loaded, view, *round)) } } }
            }
        }
        (part_links(&path, &visit.query, part, "Rounds"))
    };
    Ok(site.answer(&title, &trail(site, &loaded, &first), &body))
}

fn messages(site: &EvalSite, loaded: &LoadedEval, view: &EvalGameView<'_>, round: u32) -> Markup {
    let here: Vec<usize> = (0..view.messages.len()).filter(|at| view.messages[*at].round == round).collect();
    html! {
        @if here.is_empty() { p.soft { "–" } }
        ol.timeline.eval-timeline { @for at in here { (view.item(site, loaded, at)) } }
    }
}

/// Returns the round of the first message that differs; `None` if all are equal.
fn first_difference(first: &[TranscriptMessage], second: &[TranscriptMessage]) -> Option<u32> {
    let said = |message: &TranscriptMessage| {
        let TranscriptMessage { round, chat, from, to, content, method, call: _ } = message.clone();
        (round, chat, from, to, content, method)
    };
    let length = first.len().max(second.len());
    let at = (0..length).find(|at| first.get(*at).map(said) != second.get(*at).map(said))?;
    [first.get(at), second.get(at)].into_iter().flatten().map(|message| message.round).min()
}
