//! The page with the seats of a game side by side: for each round, the messages that each seat received, and its
//! private answer.

use std::collections::{BTreeMap, BTreeSet};

use arena_eval::{CallLine, CallRecord};
use arena_web::seat_class;
use maud::{Markup, html};

use super::super::layout::{cut, shown};
use super::game::{EvalGameView, heading, trail};
use super::loaded::LoadedEval;
use super::texts::{ListPart, answer, call_id, part_links, prose, told};
use super::{EvalPageResult, EvalSite, EvalVisit};

/// The number of rounds on a page.
const ROUNDS: usize = 40;

/// The number of characters after which a text is cut. The page of its call has the whole text.
const LONGEST: usize = 2000;

struct PlacedCall {
    round: u32,
    call: CallRecord,
}

/// `GET /runs/{run}/games/{game}/seats`.
pub(super) fn show(site: &EvalSite, visit: &EvalVisit) -> EvalPageResult {
    let loaded = site.run(visit)?;
    let game = visit.param("game");
    let view = EvalGameView::read(&loaded, game)?;
    let seats = placed_calls(&loaded, &view)?;
    let of_calls = seats.iter().flatten().map(|placed| placed.round);
    let of_players = view.messages.iter().filter(|message| message.from.is_some()).map(|message| message.round);
    let rounds: Vec<u32> = of_calls.chain(of_players).collect::<BTreeSet<u32>>().into_iter().collect();
    let part = ListPart { offset: visit.offset(), most: ROUNDS, total: rounds.len() };
    let path = site.game_path(&loaded.name, game, "/seats");
    let body = html! {
        (heading(site, &loaded, &view, "/seats"))
        p.soft { "For each round: the messages to each player, and its private answer with tool calls." }
        (part_links(&path, &visit.query, part, "Rounds"))
        @for round in rounds.iter().skip(part.offset).take(part.most) {
            section.round id={ "round-" (round) } {
                h2 { "Round " (round) }
                div.columns {
                    @for (seat, calls) in seats.iter().enumerate() {
                        div.column.{ (seat_class(seat)) } {
                            h3 { (view.party(Some(seat))) }
                            (column(site, &loaded, &view, (seat, *round), calls))
                        }
                    }
                }
            }
        }
        (part_links(&path, &visit.query, part, "Rounds"))
    };
    Ok(site.answer(&format!("Side by side: {}", view.record.told), &trail(site, &loaded, &view), &body))
}

/// Renders the part of a seat in a round.
fn column(
    site: &EvalSite,
    loaded: &LoadedEval,
    view: &EvalGameView<'_>,
    (seat, round): (usize, u32),
    calls: &[PlacedCall],
) -> Markup {
    let here: Vec<&CallRecord> =
        calls.iter().filter(|placed| placed.round == round).map(|placed| &placed.call).collect();
    let own: Vec<usize> = (0..view.messages.len())
        .filter(|at| view.messages[*at].from == Some(seat) && view.messages[*at].round == round)
        .collect();
    // Bots and resignations at the end of a seat have no call.
    let uncalled = own.iter().filter(|at| view.messages[**at].call.is_none());
    html! {
        @for call in &here {
            @let leaks = own.iter().filter(|at| view.messages[**at].call == Some(call.number));
            @let leaks: Vec<&str> = leaks.filter_map(|at| view.remark(*at)).collect();
            (told(&call.new, LONGEST))
            div.answer.leak[!leaks.is_empty()] {
                a.at href=(site.game_path(&loaded.name, &view.record.game, &format!("/calls/{}", call_id(call)))) {
                    "call " (call.number)
                }
                (answer(&call.reply, LONGEST))
                @for remark in leaks { p.flag { (shown(remark)) } }
            }
        }
        @for at in uncalled {
            @let message = &view.messages[*at];
            div.answer.leak[view.remark(*at).is_some()] {
                @if let Some(method) = &message.method { code { (cut(method, 40)) } }
                (prose(&view.text(message), LONGEST))
                @if let Some(remark) = view.remark(*at) { p.flag { (shown(remark)) } }
            }
        }
        @if here.is_empty() && own.is_empty() { p.soft { "–" } }
    }
}

fn placed_calls(loaded: &LoadedEval, view: &EvalGameView<'_>) -> EvalPageResult<Vec<Vec<PlacedCall>>> {
    // A repeated number replaces the earlier call: its game was interrupted and played again.
    let mut seats: Vec<BTreeMap<u32, CallRecord>> = vec![BTreeMap::new(); view.record.seats.len()];
    for line in loaded.run.calls(&view.record.game)? {
        if let CallLine::Call(call) = line
            && let Some(calls) = call.seat.and_then(|seat| seats.get_mut(seat))
        {
            calls.insert(call.number, *call);
        }
    }
    let place = |(seat, calls): (usize, BTreeMap<u32, CallRecord>)| {
        let of_seat = view.messages.iter().filter(|message| message.from == Some(seat));
        let mut known = BTreeMap::new();
        for (call, round) in of_seat.filter_map(|message| Some((message.call?, message.round))) {
            known.entry(call).or_insert(round);
        }
        let numbers: Vec<u32> = calls.keys().copied().collect();
        let rounds = rounds_of_calls(&numbers, &known);
        rounds
            .into_iter()
            .zip(calls.into_values())
            .map(|(round, call)| PlacedCall { round, call })
            .collect::<Vec<PlacedCall>>()
    };
    Ok(seats.into_iter().enumerate().map(place).collect())
}

/// Returns the rounds of a seat's calls. `known` has the rounds of calls that caused messages. Another call was invalid
/// and repeated in the round of the next call, or waited for other players in a round of its own.
fn rounds_of_calls(numbers: &[u32], known: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut rounds = Vec::with_capacity(numbers.len());
    let mut last = 0_u32;
    for number in numbers {
        let next = known.range(*number..).next();
        let round = match next {
            Some((found, round)) if found == number => *round,
            Some((_, round)) => last.saturating_add(1).min(*round),
            None => last.saturating_add(1),
        };
        last = round.max(last);
        rounds.push(last);
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_messages_have_rounds_between_those_of_others() {
        for (numbers, known, expected) in [
            (vec![1, 2, 3], vec![(1, 1), (2, 2), (3, 4)], vec![1, 2, 4]),
            // The second call was invalid.
            (vec![1, 2, 3], vec![(1, 1), (3, 2)], vec![1, 2, 2]),
            // The second call waited.
            (vec![1, 2, 3], vec![(1, 1), (3, 3)], vec![1, 2, 3]),
            (vec![1, 2], vec![], vec![1, 2]),
            (vec![1, 2, 3], vec![(2, 5)], vec![1, 5, 6]),
            (vec![], vec![], vec![]),
        ] {
            let by_number: BTreeMap<u32, u32> = known.iter().copied().collect();
            assert_eq!(rounds_of_calls(&numbers, &by_number), expected, "{numbers:?} {known:?}");
        }
    }
}
