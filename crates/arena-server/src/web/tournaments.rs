//! `/tournaments`: the list of tournaments; `/tournaments/{id}`: one tournament with its schedule, standings and
//! matches.

pub(super) mod agents;
pub(super) mod create;
pub(super) mod ladders;
pub(super) mod replays;

use std::collections::BTreeMap;

use arena_model::Verdict;
use arena_report::{
    EXPORTERS, Interval, Picture, Ratings, WIDEST_CROSS_TABLE, cross, grid, listed, number_of, printable,
    progress_picture, ratings_picture, remarks,
};
use arena_tournament::{GameLine, Record, standings};
use axum::extract::State;
use maud::{Markup, PreEscaped, html};

use super::components::embed;
use super::layout::{NavEntry, Page, cut, player_name, shown, time};
use super::{PageResult, Visit, base, components, pager, unrendered};
use crate::arena::Arena;
use crate::routes::{MatchView, Stage, TournamentView, id_of_tournament};
use crate::tournaments::{AgentId, TournamentRefusal, Tournaments};

/// Number of tournaments or agents per page.
pub(super) const LISTED: usize = 30;

/// Number of matches per page.
const MATCHES: usize = 50;

/// Maximum number of upcoming games on a page.
const TO_COME: usize = 12;
/// Maximum number of rounds on a page.
const ROUNDS: usize = 40;

/// Renders the notice that tournaments are disabled on this server.
pub(super) fn none() -> Markup {
    html! {
        div.empty { p { "Tournaments are disabled on this server. To enable them, start it with " code { "arena serve --tournaments" } "." } }
    }
}

pub(super) async fn list(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let offset = visit.query.number("offset").unwrap_or(0);
    let body = html! {
        h1 { "Tournaments" }
        p.lead { "Scheduled games between uploaded agents. Each tournament has standings, and a replay of every game." }
        @match &arena.tournaments {
            None => (none()),
            Some(tournaments) => {
                @let (looks, total) = tournaments.list(offset, LISTED, |_| true);
                @if looks.is_empty() {
                    div.empty { p { "No tournaments yet. Create one from this server's agents below, or by a program with " code { "POST /api/tournaments" } " (see the " a href="/docs/api#tournaments" { "API reference" } ")." } }
                } @else {
                    div.scroll tabindex="0" { table.stacked {
                        thead { tr { th scope="col" { "Tournament" } th scope="col" { "Game" } th scope="col" { "State" } th.number scope="col" { "Agents" } th scope="col" { "Games played" } th scope="col" { "Created" } } }
                        tbody { @for view in looks.iter().map(TournamentView::of) { tr {
                            td { a href={ "/tournaments/" (view.id) } { (title(&view)) } }
                            td { (view.game) " " small { (view.format.name()) } } td { (state(&view)) }
                            td.number data-label="Agents" { (view.agents.len()) }
                            td data-label="Games" { (view.games_played) " of " (view.games) }
                            td data-label="Created" { (time(view.created_at)) }
                        } } }
                    } }
                }
                (pager("/tournaments", &visit.query, (offset, LISTED, total as u64)))
                (create::form(tournaments))
                p.more { a href="/agents" { "All agents" } " · " a href="/ladders" { "Ladders" } }
            }
        }
    };
    Ok(unrendered(Page::new("Tournaments", NavEntry::Tournaments, body).with_style("tables.css")))
}

pub(super) fn title(view: &TournamentView) -> Markup {
    html! { @match &view.name { Some(name) => (cut(name, 60)), None => { (view.game) ", " (view.agents.len()) " agents" } } }
}

pub(super) fn state(view: &TournamentView) -> Markup {
    html! { span.badge.{ "is-" (view.state.name()) } { (view.state.name()) } }
}

pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let id = id_of_tournament(visit.param("id"))?;
    let Some(tournaments) = &arena.tournaments else {
        return Err(TournamentRefusal::NoTournament(id.to_string()).into());
    };
    let offset = visit.query.number("offset").unwrap_or(0);
    let query = visit.query.clone();
    let base = base(&arena, &visit.headers);
    let shown = tournaments.read(move |tournaments| {
        let (snapshot, record) = tournaments.record(id)?;
        let view = TournamentView::of(&snapshot);
        let passed = usize::try_from(offset).unwrap_or(usize::MAX);
        let pair = query.get("pair").and_then(|text| parse_pair(text, record.plan.agents.len()));
        let is_listed = |game: &&GameLine| pair.is_none_or(|pair| is_between(&record, game, pair));
        let games = record.games().filter(is_listed).skip(passed).take(MATCHES);
        let matches: Vec<MatchView> = games.map(|game| MatchView::of(tournaments, snapshot.is_over(), game)).collect();
        let path = format!("/tournaments/{id}");
        let is_going_on = !view.is_over();
        let total = record.games().filter(is_listed).count() as u64;
        let pictures = [ratings_picture(&record), progress_picture(&record)];
        let body = html! {
            div id="live" data-going-on=(is_going_on) {
                (heading(&view, &record))
                (standing(&record, |name| kept_agent(tournaments, &view, name)))
                (cross_table(&record))
                @if is_going_on { (schedule(&record)) }
                @if !matches.is_empty() { (list_matches(&view, &matches, pair.map(|pair| pair.map(|agent| record.name(agent))), &path)) }
                (pager(&path, &query, (offset, MATCHES, total)))
                @if pictures.iter().any(Option::is_some) {
                    section.pictures { @for picture in pictures.iter().flatten() { (figure(picture)) } }
                    (embed(&base, &format!("{path}/standings.svg"), &path, "Ratings"))
                }
                (details(&view))
            }
        };
        let body = tournaments.redaction().redacted(&body.into_string()).into_owned();
        let name = view.name.clone().unwrap_or_else(|| format!("{}, {} agents", view.game, view.agents.len()));
        Ok::<_, TournamentRefusal>(
            Page::new(&name, NavEntry::Tournaments, PreEscaped(body)).with_style("tables.css").with_script("tournament.js"),
        )
    });
    Ok(unrendered(shown.await?))
}

/// Renders the title, a sentence on the lead or the next step, and the progress.
fn heading(view: &TournamentView, record: &Record) -> Markup {
    html! {
        div.intro {
            p.row { (state(view)) span.soft { (view.game) ", " (view.agents.len()) " agents" } }
            h1 { (title(view)) }
            @match view.state {
                Stage::Queued => { p.lead { "Waits for earlier tournaments to end." } }
                _ => { p.lead { (lead(record)) } }
            }
            @if let Some(reason) = &view.reason { p.error { "The tournament failed: " (shown(reason)) } }
            @if !view.is_over() {
                p.progress-line {
                    progress max=(view.games) value=(view.games_played) aria-label="Games played" {}
                    span.counts {
                        (view.games_played) " of " (view.games) " games"
                        @if let Some(rate) = view.games_per_minute { ", " (number_of(rate)) " per minute" }
                        @if let Some(left) = view.seconds_left { ", " (duration(left)) " left" }
                    }
                }
            }
        }
    }
}

/// Formats an estimated duration in seconds.
fn duration(seconds: f64) -> String {
    match seconds {
        few if few < 90.0 => format!("about {} s", few.ceil()),
        some if some < 5400.0 => format!("about {} min", (some / 60.0).ceil()),
        many => format!("about {} h", (many / 3600.0).ceil()),
    }
}

/// Returns a sentence on the leaders by points, and one on the certainty of the lead.
fn lead(record: &Record) -> String {
    let lines = standings(&record.schedule);
    let played = lines.iter().any(|line| line.games > 0);
    let first: Vec<String> = lines.iter().filter(|line| line.rank == 1).map(|line| name(record, line.agent)).collect();
    let (Some(line), true) = (lines.first(), played) else { return "No games played yet.".to_owned() };
    let points = number_of(line.points);
    let is_over = record.schedule.is_complete();
    let leaders = match (first.len(), is_over) {
        (1, true) => format!("{} won with {points} points.", first[0]),
        (1, false) => format!("{} leads with {points} points.", first[0]),
        (_, true) => format!("{} share first place with {points} points.", listed(&first)),
        (_, false) => format!("{} share the lead with {points} points.", listed(&first)),
    };
    let Some(ratings) = Ratings::of(record) else { return leaders };
    let top: Vec<usize> =
        (0..record.plan.agents.len()).filter(|agent| ratings.rating(*agent).ranks.best == 1).collect();
    match top[..] {
        [one] => format!("{leaders} The 95 % interval of {}'s rating lies above all others.", name(record, one)),
        _ => format!(
            "{leaders} It isn't certain who is strongest: the 95 % rating intervals of {} agents overlap.",
            top.len()
        ),
    }
}

fn name(record: &Record, agent: usize) -> String {
    printable(record.name(agent)).chars().take(40).collect()
}

/// Returns the id of the tournament's agent with this name, if this server still has the agent.
fn kept_agent(tournaments: &Tournaments, view: &TournamentView, name: &str) -> Option<AgentId> {
    let agent = view.agents.iter().find(|agent| agent.name == name)?;
    tournaments.find_agent(agent.id).map(|agent| agent.id)
}

/// Renders the rounds' progress, and the upcoming games without their seeds, which are secret until the end.
fn schedule(record: &Record) -> Markup {
    let mut rounds: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for fixture in record.schedule.pairings() {
        let (played, all) = rounds.entry(fixture.round).or_default();
        *all += 1;
        *played += usize::from(record.game(fixture.number).is_some());
    }
    // The list starts three rounds before the first unfinished one.
    let first = rounds.iter().find(|(_, (played, all))| played < all).map_or(1, |(round, _)| round.saturating_sub(3));
    let shown: Vec<_> = rounds.range(first..).take(ROUNDS).collect();
    let next: Vec<_> = record.schedule.pending().take(TO_COME).collect();
    html! {
        @if !next.is_empty() {
            section {
                h2 { "Current and upcoming games" }
                div.beside {
                    div.scroll tabindex="0" { table {
                        thead { tr { th.number scope="col" { "#" } th.number scope="col" { "Round" } th scope="col" { "Agents" } } }
                        tbody { @for fixture in &next { tr {
                            td.number { (fixture.number) } td.number { (fixture.round) }
                            td { @for (seat, agent) in fixture.agents.iter().enumerate() { @if seat > 0 { " : " } (cut(record.name(*agent), 24)) } }
                        } } }
                    } }
                    div.scroll tabindex="0" { table {
                        thead { tr { th.number scope="col" { "Round" } th scope="col" { "Progress" } th.number scope="col" { "Games" } } }
                        tbody { @for (round, (played, all)) in &shown { tr {
                            td.number { (round) }
                            td { progress max=(all) value=(played) aria-label={ "Round " (round) } {} }
                            td.number { (played) " of " (all) }
                        } } }
                    } }
                }
            }
        }
    }
}

/// Renders the standings as a table, with intervals drawn on one scale.
fn standing(record: &Record, agent: impl Fn(&str) -> Option<AgentId>) -> Markup {
    let table = grid(record);
    let ratings = Ratings::of(record);
    let scale = ratings.as_ref().map(|ratings| scale(ratings, record.plan.agents.len()));
    let lines = standings(&record.schedule);
    // The interval's picture and its ends replace the column of margins, and the range of ranks replaces the rank.
    let columns: Vec<usize> = (0..table.header.len())
        .filter(|at| table.header[*at] != "±" && !(ratings.is_some() && table.header[*at].starts_with("rank range")))
        .collect();
    html! {
        section {
            h2 { "Standings" }
            div.scroll tabindex="0" { table.ranks.standings {
                thead { tr { @for at in &columns {
                    th.number[*at != 1].minor[is_minor(&table.header[*at])] scope="col" { (label(&table.header[*at])) }
                } } }
                tbody { @for (row, line) in table.rows.iter().zip(&lines) { tr { @for at in &columns {
                    @let cell = &row[*at];
                    td.number[*at != 1].name[*at == 1].minor[is_minor(&table.header[*at])] {
                        @match (table.header[*at].as_str(), &ratings) {
                            ("name", _) => { @match agent(cell) { Some(agent) => a href={ "/agents/" (agent) } { (player_name(cell, 60)) }, None => (player_name(cell, 60)) } }
                            ("rank", Some(ratings)) if line.games > 0 => span.place { (ratings.rating(line.agent).range().replace('-', "–")) },
                            ("Elo", Some(ratings)) if line.games > 0 => (elo(ratings.rating(line.agent).elo, ratings.rating(line.agent).interval, scale)),
                            _ => (cut(cell, 60))
                        }
                    }
                } } } }
            } }
            @if ratings.is_some() { p.more { "Ranks are ranges: agents whose 95 % rating intervals overlap share ranks. The mean Elo is 0." } }
            @for remark in remarks(record) { p.more { (shown(&remark)) @if !remark.ends_with('.') { "." } } }
        }
    }
}

/// Renders a rating with its interval, drawn on a scale.
pub(super) fn elo(value: f64, interval: Interval, scale: Option<[f64; 2]>) -> Markup {
    let [least, most] = scale.unwrap_or([value, value]);
    // An end without bound is drawn to the end of the scale.
    let at = |value: f64| if most > least { (value.clamp(least, most) - least) / (most - least) } else { 0.5 };
    let text = |value: f64| if value.is_finite() { number_of(value.round() + 0.0) } else { "?".to_owned() };
    html! {
        (components::interval(at(interval.low), at(value), at(interval.high)))
        b { (text(value)) }
        small.ends title="95 % interval" { (text(interval.low)) " to " (text(interval.high)) }
    }
}

/// Returns the least and the greatest of all ratings and bounded ends of their intervals.
fn scale(ratings: &Ratings, agents: usize) -> [f64; 2] {
    let all = (0..agents).map(|agent| ratings.rating(agent));
    scale_of(all.flat_map(|rating| [rating.elo, rating.interval.low, rating.interval.high]))
}

/// Returns the least and the greatest of the finite values.
pub(super) fn scale_of(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let finite = values.filter(|value| value.is_finite());
    finite.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], value| [least.min(value), most.max(value)])
}

/// Returns a column's heading for people.
fn label(header: &str) -> String {
    match header {
        "rank" => "Rank".to_owned(),
        "name" => "Agent".to_owned(),
        "Elo" => "Elo, 95 %".to_owned(),
        "score %" => "Score %".to_owned(),
        other => {
            let mut letters = other.chars();
            letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        }
    }
}

/// True if a column may be hidden on narrow screens.
fn is_minor(header: &str) -> bool {
    matches!(header, "wins" | "losses" | "draws" | "byes" | "score %" | "games") || header.ends_with("95 %")
}

/// Renders the results of each agent against each other. A cell links to the games of its two agents.
fn cross_table(record: &Record) -> Markup {
    let lines = standings(&record.schedule);
    let table = cross(record);
    let is_shown = (3..=WIDEST_CROSS_TABLE).contains(&lines.len()) && lines.iter().any(|line| line.games > 0);
    html! {
        @if is_shown {
            section {
                h2 { "Head to head" }
                div.scroll tabindex="0" { table.cross {
                    thead { tr { td {} @for name in &table.header[1..] { th scope="col" { (cut(name, 12)) } } } }
                    tbody { @for (row, line) in table.rows.iter().zip(&lines) { tr {
                        th scope="row" { (cut(&row[0], 24)) }
                        @for (cell, other) in row[1..].iter().zip(&lines) {
                            @if line.agent == other.agent { td.self {} }
                            @else if cell == "·" { td { "·" } }
                            @else { td { a href={ "?pair=" (line.agent) "-" (other.agent) "#games" } { (cell) } } }
                        }
                    } } }
                } }
                p.more { "Points of the agent of the row, of the number of games against the agent of the column." }
            }
        }
    }
}

/// Parses the numbers of two agents, such as `0-2`.
fn parse_pair(text: &str, agents: usize) -> Option<[usize; 2]> {
    let (one, other) = text.split_once('-')?;
    let pair = [one.parse().ok()?, other.parse().ok()?];
    pair.iter().all(|agent| *agent < agents).then_some(pair)
}

/// True if both agents played in the game.
fn is_between(record: &Record, game: &GameLine, pair: [usize; 2]) -> bool {
    let pairing = record.schedule.pairing(game.number);
    pairing.is_some_and(|pairing| pair.iter().all(|agent| pairing.agents.contains(agent)))
}

pub(super) fn figure(picture: &Picture) -> Markup {
    html! { figure { h3 { (picture.title) } div.scroll tabindex="0" { (PreEscaped(picture.to_element())) } } }
}

/// Renders played games, newest last. `pair` has the names of two agents if only their games are listed.
fn list_matches(view: &TournamentView, matches: &[MatchView], pair: Option<[&str; 2]>, path: &str) -> Markup {
    html! {
        section id="games" {
            h2 { "Games" @if let Some([one, other]) = pair { " of " (cut(one, 24)) " and " (cut(other, 24)) } }
            @if pair.is_some() { p { a href={ (path) "#games" } { "All games" } } }
            div.scroll tabindex="0" { table.stacked {
                thead { tr { th.number scope="col" { "#" } th.number scope="col" { "Round" } th scope="col" { "Agents" } th scope="col" { "Scores" } th scope="col" { "Result" } th.number scope="col" { "Epochs" } th scope="col" { "Replay" } } }
                tbody { @for game in matches { tr {
                    td.number data-label="Game" { (game.number) } td.number data-label="Round" { (game.round) }
                    td { (seated(&game.agents, winner(game))) }
                    td data-label="Scores" { (game.scores.iter().map(|score| number_of(*score)).collect::<Vec<_>>().join(" : ")) }
                    td.cause { (cause(game)) }
                    td.number data-label="Epochs" { (game.epochs) }
                    td { @if view.is_over() { a href={ "/tournaments/" (view.id) "/matches/" (game.number) "/replay" } { "Watch" } } @else { span.soft { "after the end" } } }
                } } }
            } }
        }
    }
}

/// Renders the agents' names by seat.
fn seated(agents: &[String], winner: Option<usize>) -> Markup {
    html! {
        @for (seat, agent) in agents.iter().enumerate() {
            @if seat > 0 { " : " }
            @if winner == Some(seat) { b { (cut(agent, 24)) } } @else { (cut(agent, 24)) }
        }
    }
}

/// Returns the seat of the winner: the only agent on the first rank.
pub(super) fn winner(game: &MatchView) -> Option<usize> {
    let mut first = (0..game.ranks.len()).filter(|seat| game.ranks[*seat] == 1 && !game.is_void);
    first.next().filter(|_| first.next().is_none())
}

/// Renders a match's winner or draw, with its termination cause and disqualifications.
pub(super) fn cause(game: &MatchView) -> Markup {
    let out = || game.verdicts.iter().enumerate().filter_map(|(seat, verdict)| Some((seat, (*verdict)?)));
    html! {
        @match winner(game) {
            _ if game.is_void => "void, counts for no agent",
            Some(seat) => { (cut(&game.agents[seat], 24)) " won" },
            None => "drawn",
        }
        // `TAINTED` means that a disqualification ended the match. The list below has the disqualifications.
        @if game.termination != "TAINTED" { ", " (in_words(&game.termination)) }
        @for (seat, verdict) in out() {
            span.reason {
                (cut(&game.agents[seat], 24)) " was disqualified: " span title=(verdict) { (in_words_of(verdict)) }
                @if let Some(Some(detail)) = game.details.get(seat) { small { (cut(detail, 120)) } }
            }
        }
    }
}

/// Returns the reason of a disqualification in words, by its name on the wire.
fn in_words_of(verdict: &str) -> &str {
    Verdict::ALL.iter().find(|known| known.name() == verdict).map_or(verdict, |known| known.in_words())
}

/// Returns a termination cause in lower case.
fn in_words(termination: &str) -> String {
    match termination {
        "GAME_ENDED" => "played to the end".to_owned(),
        other => other.to_lowercase().replace('_', " "),
    }
}

/// Renders the settings, and links to the standings in other formats.
fn details(view: &TournamentView) -> Markup {
    let path = format!("/api/tournaments/{}", view.id);
    html! {
        p.more {
            "Standings as " a href={ (path) "/standings" } { "JSON" }
            @for exporter in EXPORTERS.iter().filter(|exporter| view.is_over() || !exporter.has_seed) {
                " · " a href={ (path) "/standings?format=" (exporter.name) } { (exporter.label) }
            }
        }
        details {
            summary { "Details" }
            dl.details {
                dt { "Format" } dd { (view.format.name()) }
                dt { "Rounds" } dd { (view.rounds) }
                dt { "Created" } dd { (time(view.created_at)) }
                @if let Some(at) = view.ended_at { dt { "Ended" } dd { (time(at)) } }
                dt { "Id" } dd { code { (view.id) } }
                dt { "Settings" } dd { a href=(path) { "JSON" } }
            }
        }
    }
}
