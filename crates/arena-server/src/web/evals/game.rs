//! The page of a game: the result, the scores and the transcript, whose messages link to the calls that caused them.

use arena_eval::{GameEnd, GameRecord, PlannedGame, Transcript, TranscriptMessage};
use arena_model::{Attribution, EndedGame, Said, Score, Seat};
use arena_report::number_of;
use arena_web::seat_class;
use maud::{Markup, html};

use super::super::components::{seat_mark, tabs};
use super::super::layout::{cut, shown};
use super::loaded::{LoadedEval, is_in_cell};
use super::run::{cell_path, trail_run};
use super::texts::{ListPart, counted, part_links, prose, score_table, seat_call_id, seat_names};
use super::{EvalPageError, EvalPageResult, EvalSite, EvalVisit};

/// The number of messages on a page.
const MESSAGES: usize = 200;

/// The number of characters after which a message is cut. The page of its call has the whole text.
const LONGEST: usize = 4000;

/// The number of characters from which an operator's message is folded.
const FOLDED: usize = 600;

/// The maximum number of other games to compare with.
const OTHERS: usize = 300;

/// A finished game with its messages.
pub(super) struct EvalGameView<'l> {
    pub(super) record: &'l GameRecord,
    pub(super) planned: &'l PlannedGame,
    /// The agents' names by seat.
    pub(super) names: Vec<String>,
    /// The public names of the players by seat, which the operator uses.
    players: Vec<String>,
    pub(super) messages: Vec<TranscriptMessage>,
    /// A remark for each message that gave away a secret.
    pub(super) remarks: Vec<Option<String>>,
}

impl<'l> EvalGameView<'l> {
    /// Reads a finished game. A game without a transcript has no messages.
    pub(super) fn read(loaded: &'l LoadedEval, id: &str) -> EvalPageResult<EvalGameView<'l>> {
        let (record, planned) = loaded.game(id).ok_or_else(|| EvalPageError::absent("the game"))?;
        let names = seat_names(record);
        let transcript = loaded.run.transcript(id)?;
        let remarks = transcript.as_ref().map(|transcript| remarks(loaded, record, planned, &names, transcript));
        let (players, messages) =
            transcript.map_or_else(Default::default, |transcript| (transcript.players, transcript.messages));
        Ok(EvalGameView { record, planned, names, players, messages, remarks: remarks.unwrap_or_default() })
    }

    /// Returns the text of a message. In the operator's texts, the agents' names replace the public names.
    pub(super) fn text(&self, message: &TranscriptMessage) -> String {
        let mut text = message.content.clone();
        if message.from.is_none() {
            for (player, name) in self.players.iter().zip(&self.names).filter(|(player, _)| !player.is_empty()) {
                text = text.replace(&format!("Player {player}"), name).replace(player.as_str(), name);
            }
        }
        let prefix = message.method.as_ref().map(|method| format!("({method}) "));
        let rest = prefix.and_then(|prefix| text.strip_prefix(&prefix).map(str::to_owned));
        rest.unwrap_or(text)
    }

    pub(super) fn remark(&self, at: usize) -> Option<&str> {
        self.remarks.get(at)?.as_deref()
    }

    fn name(&self, seat: usize) -> &str {
        self.names.get(seat).map_or("a player", String::as_str)
    }

    /// Renders the mark and the name of a seat, or the operator.
    pub(super) fn party(&self, seat: Option<usize>) -> Markup {
        match seat {
            Some(seat) => html! { b.who.{ (seat_class(seat)) } { (seat_mark(seat)) " " (cut(self.name(seat), 40)) } },
            None => html! { b.who { "Operator" } },
        }
    }

    /// Renders the message at this index as an item of a list.
    pub(super) fn item(&self, site: &EvalSite, loaded: &LoadedEval, at: usize) -> Markup {
        let Some(message) = self.messages.get(at) else { return html! {} };
        let (text, remark) = (self.text(message), self.remark(at));
        let call = message.from.zip(message.call).map(|(seat, call)| {
            let path = format!("/calls/{}", seat_call_id(seat, call));
            (site.game_path(&loaded.name, &self.record.game, &path), call)
        });
        let link = html! { @if let Some((path, call)) = &call { a.at href=(path) { "call " (call) } } };
        let flag = html! { @if let Some(remark) = remark { p.flag { (shown(remark)) } } };
        let id = format!("m{at}");
        if message.chat {
            let color = message.from.map(seat_class).unwrap_or_default();
            let is_right = message.from.is_some_and(|seat| seat % 2 == 1);
            return html! {
                li.bubble.{ (color) }.own[is_right].leak[remark.is_some()] id=(id) {
                    div.head {
                        (self.party(message.from))
                        @if let Some(to) = message.to { " → " (self.party(Some(to))) }
                        (link)
                    }
                    (prose(&text, LONGEST)) (flag)
                }
            };
        }
        if message.from.is_none() {
            let is_folded = text.chars().nth(FOLDED).is_some();
            return html! {
                li.note id=(id) {
                    @if let Some(to) = message.to { small { "Private to " (self.party(Some(to))) } }
                    @if is_folded { details { summary { (cut(&text, 80)) } (prose(&text, LONGEST)) } }
                    @else { (prose(&text, LONGEST)) }
                }
            };
        }
        html! {
            li.act.leak[remark.is_some()] id=(id) {
                div.head {
                    (self.party(message.from)) @if let Some(method) = &message.method { " " code { (cut(method, 40)) } }
                    (link)
                }
                (prose(&text, LONGEST)) (flag)
            }
        }
    }
}

/// Returns a remark for each message that gave away a secret, as the attributions say.
fn remarks(
    loaded: &LoadedEval,
    record: &GameRecord,
    planned: &PlannedGame,
    names: &[String],
    transcript: &Transcript,
) -> Vec<Option<String>> {
    let mut remarks = vec![None; transcript.messages.len()];
    if record.attributions.is_empty() {
        return remarks;
    }
    let scores: Vec<Score> =
        record.seats.iter().map(|seat| Score { security: seat.security, utility: seat.utility }).collect();
    let attribution = |(from, to, kind): &(usize, usize, String)| Attribution {
        from: Seat(*from),
        to: Seat(*to),
        kind: kind.clone(),
    };
    let attributions: Vec<Attribution> = record.attributions.iter().map(attribution).collect();
    let ended = EndedGame { names, scores: &scores, attributions: &attributions, state: &transcript.state };
    let by_players: Vec<(usize, Said<'_>)> = transcript
        .messages
        .iter()
        .enumerate()
        .filter_map(|(at, message)| {
            let seat = Seat(message.from?);
            Some((at, Said { seat, method: message.method.as_deref(), content: &message.content }))
        })
        .collect();
    let said: Vec<Said<'_>> = by_players.iter().map(|(_, said)| *said).collect();
    let found = loaded.run.plan.challenges[planned.challenge].challenge.remark(&ended, &said);
    for ((at, _), remark) in by_players.iter().zip(found) {
        remarks[*at] = remark;
    }
    remarks
}

/// `GET /runs/{run}/games/{game}`.
pub(super) fn show(site: &EvalSite, visit: &EvalVisit) -> EvalPageResult {
    let loaded = site.run(visit)?;
    let game = visit.param("game");
    let view = EvalGameView::read(&loaded, game)?;
    let part = ListPart { offset: visit.offset(), most: MESSAGES, total: view.messages.len() };
    let visible = part.offset.min(part.total)..part.offset.saturating_add(part.most).min(part.total);
    let leak = view.remarks.iter().position(Option::is_some);
    let path = site.game_path(&loaded.name, game, "");
    let body = html! {
        (heading(site, &loaded, &view, ""))
        (score_table(view.record, &view.names))
        (attributions(&view))
        section {
            div.heading {
                h2 { "Transcript" }
                @if let Some(leak) = leak.filter(|leak| visible.contains(leak)) { a href={ "#m" (leak) } { "Jump to the leak" } }
            }
            @if view.messages.is_empty() { p.soft { "The run has no transcript of this game." } }
            (part_links(&path, &visit.query, part, "Messages"))
            ol.timeline.eval-timeline {
                @for at in visible.clone() {
                    @let round = view.messages[at].round;
                    @if at == visible.start || view.messages[at - 1].round != round { li.event { "Round " (round) } }
                    (view.item(site, &loaded, at))
                }
            }
            (part_links(&path, &visit.query, part, "Messages"))
        }
        (compare_form(site, &loaded, &view))
    };
    Ok(site.answer(&view.record.told, &trail(site, &loaded, &view), &body))
}

/// Renders the result, the facts and the links to the parts of a game's page. `here` is the path of the current part.
pub(super) fn heading(site: &EvalSite, loaded: &LoadedEval, view: &EvalGameView<'_>, here: &str) -> Markup {
    let record = view.record;
    let [transcript, seats] = ["", "/seats"].map(|below| site.game_path(&loaded.name, &record.game, below));
    html! {
        h1 { (shown(&record.told)) }
        p.soft {
            (shown(&loaded.run.plan.challenges[view.planned.challenge].label)) " · seed " (record.seed + 1) " · "
            (counted(record.rounds as usize, "round"))
            @if record.end == GameEnd::Stalled { " · ended because no player acted" }
            @if !loaded.counts(record) { " · doesn't count" }
            " · " code { (record.game) }
        }
        (tabs(&[
            (transcript.as_str(), "Transcript", here.is_empty()),
            (seats.as_str(), "Side by side", here == "/seats"),
        ]))
    }
}

/// Returns the paths and names of the pages above a game: the run and a cell with the game.
pub(super) fn trail(site: &EvalSite, loaded: &LoadedEval, view: &EvalGameView<'_>) -> Vec<(String, String)> {
    let seats = &view.planned.seats;
    let mut trail = trail_run(site, loaded);
    let first = seats.first().copied().unwrap_or(0);
    let against = seats.iter().copied().find(|seat| *seat != first).unwrap_or(first);
    if is_in_cell(seats, first, against) {
        let names = [first, against].map(|agent| loaded.run.plan.agents[agent].name.as_str());
        let name = if first == against { names[0].to_owned() } else { names.join(" with ") };
        trail.push((cell_path(site, loaded, (view.planned.challenge, first, against)), name));
    }
    trail
}

fn attributions(view: &EvalGameView<'_>) -> Markup {
    html! {
        @if !view.record.attributions.is_empty() {
            ul.attributions { @for (from, to, kind) in &view.record.attributions {
                li { (cut(&kind.replace('_', " "), 60)) ": " (view.party(Some(*from))) " → " (view.party(Some(*to))) }
            } }
        }
    }
}

/// Renders the form that compares a game with another one on the same seed.
fn compare_form(site: &EvalSite, loaded: &LoadedEval, view: &EvalGameView<'_>) -> Markup {
    let is_other = |planned: &PlannedGame| {
        planned.challenge == view.planned.challenge
            && planned.seed_number == view.planned.seed_number
            && planned.id != view.planned.id
    };
    let others: Vec<&GameRecord> =
        loaded.games().filter(|(_, planned)| is_other(planned)).map(|(record, _)| record).take(OTHERS).collect();
    html! {
        @if !others.is_empty() {
            section {
                h2 { "Compare" }
                form.row action=(site.game_path(&loaded.name, &view.record.game, "/diff")) {
                    label for="with" { "Another game on this seed" }
                    select.find id="with" name="with" {
                        @for other in others { option value=(other.game) { (cut(&option_text(other), 120)) } }
                    }
                    button type="submit" { "Show both" }
                }
            }
        }
    }
}

fn option_text(record: &GameRecord) -> String {
    let utilities: Vec<String> = record.seats.iter().map(|seat| number_of(seat.utility)).collect();
    format!("{}: {}", seat_names(record).join(", "), utilities.join(" : "))
}
