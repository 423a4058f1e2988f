//! A report as a folder of pages: the first page, the costs, the lists of games, and a page for each game.
//!
//! The pages are made one by one, so that a run with thousands of games needs little memory. Links are relative, and
//! the pages have no scripts, so that the folder also works from a disk or an archive.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use arena_report::{html_page, html_style, number_of, shown, utc};
use arena_web::SEATS_STYLE;
use maud::{Markup, html};

use super::game_page::{GameView, counted, faults};
use super::html::{Links, about, heading, main, section};
use super::{Report, breaches, tables};
use crate::Measured;
use crate::record::{GameRecord, VoidRecord};
use crate::{EvalRun, FolderError};

/// The number of games on a page of a list.
const GAMES: usize = 200;

/// The maximum number of leaks on the first page.
const LEAKS: usize = 6;

/// The maximum number of void games on the page of costs.
const VOIDS: usize = 500;

/// The path and the text of a page.
type ReportFile = (String, String);

/// The pages of a run's report.
#[derive(Debug)]
pub struct ReportSite<'r> {
    run: &'r EvalRun,
    report: Report,
    lists: Vec<GameList>,
}

/// The finished games of a challenge. Games with equal seats are together.
#[derive(Debug)]
struct GameList {
    /// The indexes of the games in the run.
    games: Vec<usize>,
}

impl GameList {
    fn pages(&self) -> usize {
        self.games.len().div_ceil(GAMES).max(1)
    }
}

fn list_path(challenge: usize, page: usize) -> String {
    format!("challenge-{}-{}.html", challenge + 1, page + 1)
}

fn game_path(record: &GameRecord) -> String {
    format!("games/{}.html", record.game)
}

fn agents(record: &GameRecord) -> Vec<&str> {
    record.seats.iter().map(|seat| seat.agent.as_str()).collect()
}

impl<'r> ReportSite<'r> {
    /// Computes the report of a run, finished or in progress.
    pub fn of(run: &'r EvalRun) -> ReportSite<'r> {
        let places: BTreeMap<&str, (usize, &[usize])> =
            run.plan.games.iter().map(|game| (game.id.as_str(), (game.challenge, &*game.seats))).collect();
        let mut lists: Vec<Vec<(&[usize], usize)>> = vec![Vec::new(); run.plan.challenges.len()];
        for (at, record) in run.games.iter().enumerate() {
            if let Some((challenge, seats)) = places.get(record.game.as_str()) {
                lists[*challenge].push((seats, at));
            }
        }
        let list = |mut games: Vec<(&[usize], usize)>| {
            games.sort();
            GameList { games: games.into_iter().map(|(_, at)| at).collect() }
        };
        ReportSite { run, report: super::report(run), lists: lists.into_iter().map(list).collect() }
    }

    /// Returns the files of the report, each with its path in the folder. The games come last.
    ///
    /// # Errors
    /// An item is an error if the run's transcripts or calls can't be read.
    pub fn files(&self) -> impl Iterator<Item = Result<ReportFile, FolderError>> + '_ {
        let style = || html_style() + SEATS_STYLE + include_str!("pages.css");
        let first = [
            self.index().map(|page| ("index.html".to_owned(), page)),
            Ok(("costs.html".to_owned(), self.costs())),
            Ok(("style.css".to_owned(), style())),
        ];
        let lists = self.lists.iter().enumerate();
        let lists = lists.flat_map(|(at, list)| (0..list.pages()).map(move |page| (at, page)));
        let lists = lists.map(|(at, page)| Ok((list_path(at, page), self.list(at, page))));
        let games = self.lists.iter().enumerate();
        let games = games.flat_map(|(at, list)| (0..list.games.len()).map(move |place| (at, place)));
        let games = games
            .map(|(at, place)| Ok((game_path(&self.run.games[self.lists[at].games[place]]), self.game(at, place)?)));
        first.into_iter().chain(lists).chain(games)
    }

    fn label(&self, challenge: usize) -> &str {
        &self.run.plan.challenges[challenge].label
    }

    fn games(&self, challenge: usize) -> impl Iterator<Item = &'r GameRecord> {
        self.lists[challenge].games.iter().map(|at| &self.run.games[*at])
    }

    fn counts(&self, record: &GameRecord) -> bool {
        record.seats.iter().all(|seat| self.run.plan.file.counts.counts(seat.cause))
    }

    fn index(&self) -> Result<String, FolderError> {
        let links = Links {
            leaks: self.leaks()?,
            games: (0..self.lists.len()).map(|challenge| self.lineups(challenge)).collect(),
            costs: html! { p { a href="costs.html" { "Costs by challenge, faults and void games" } } },
        };
        let heading = heading(&self.report);
        let header = html! { h1 { (shown(&heading)) } (about(&self.report)) };
        Ok(html_page(&heading, "style.css", &header, &main(&self.report, &links), &source()))
    }

    /// Renders the first leak of each pair of agents.
    fn leaks(&self) -> Result<Markup, FolderError> {
        let mut seen = Vec::new();
        let mut found = Vec::new();
        let mut count = 0;
        for (at, challenge) in self.run.plan.challenges.iter().enumerate() {
            for record in self.games(at) {
                let Some((from, to)) = breaches::breaches(record).first().copied() else { continue };
                count += 1;
                let pair = (at, agents(record).get(from).copied(), agents(record).get(to).copied());
                if found.len() < LEAKS && !seen.contains(&pair) {
                    seen.push(pair);
                    found.push((record, challenge, GameView::read(self.run, challenge, record)?));
                }
            }
        }
        Ok(html! { @if !found.is_empty() {
            section {
                h2 { "Leaks" }
                p { (counted(count, "game")) " had a breach. The first one of each pair of agents:" }
                div.leaks { @for (record, challenge, view) in &found {
                    article {
                        h3 { a href=(game_path(record)) { (shown(&record.told)) } }
                        p.soft { (shown(&challenge.label)) ", seed " (record.seed + 1) }
                        (view.leak(&game_path(record)))
                    }
                } }
            }
        } })
    }

    /// Renders the links to the games of each lineup of a challenge.
    fn lineups(&self, challenge: usize) -> Markup {
        let mut lineups: Vec<(Vec<&str>, usize, usize)> = Vec::new();
        for (place, record) in self.games(challenge).enumerate() {
            let agents = agents(record);
            match lineups.last_mut() {
                Some((last, _, count)) if *last == agents => *count += 1,
                _ => lineups.push((agents, place, 1)),
            }
        }
        html! { @if !lineups.is_empty() {
            h3 { "Games" }
            ul.lineups { @for (agents, place, count) in lineups {
                li { a href={ (list_path(challenge, place / GAMES)) "#g" (place + 1) } { (shown(&agents.join(" – "))) } " " span.soft { (count) } }
            } }
        } }
    }

    fn trail(&self, base: &str, above: &[(String, &str)]) -> Markup {
        html! {
            nav.trail aria-label="Pages above" {
                a href={ (base) "index.html" } { (shown(&heading(&self.report))) }
                @for (path, name) in above { " / " a href=(path) { (shown(name)) } }
            }
        }
    }

    fn list(&self, challenge: usize, page: usize) -> String {
        let title = format!("Games of {}", self.label(challenge));
        let list = &self.lists[challenge];
        let header = html! {
            (self.trail("", &[]))
            h1 { (shown(&title)) }
            p { (counted(list.games.len() as u64, "finished game")) ", by seats and seed." }
        };
        let games: Vec<(usize, &GameRecord)> =
            self.games(challenge).enumerate().skip(page * GAMES).take(GAMES).collect();
        let pages = html! { @if list.pages() > 1 {
            nav.pager aria-label="Parts of the list" { @for other in 0..list.pages() {
                a href=(list_path(challenge, other)) aria-current=[(other == page).then_some("page")] { (other + 1) }
            } }
        } };
        let main = html! {
            (pages)
            @for lineup in games.chunk_by(|one, two| agents(one.1) == agents(two.1)) {
                section {
                    h2 id={ "g" (lineup[0].0 + 1) } { (shown(&agents(lineup[0].1).join(" – "))) }
                    (self.rows(lineup))
                }
            }
            (pages)
        };
        html_page(&title, "style.css", &header, &main, &source())
    }

    fn rows(&self, games: &[(usize, &GameRecord)]) -> Markup {
        let by_seat =
            |values: &mut dyn Iterator<Item = f64>| values.map(number_of).collect::<Vec<String>>().join(" : ");
        html! {
            div.scroll tabindex="0" { table {
                thead { tr {
                    th.number scope="col" { "seed" } th scope="col" { "result" } th scope="col" { "breach" }
                    th.number scope="col" { "utility" } th.number scope="col" { "security" } th scope="col" { "end" }
                    th.number scope="col" { "rounds" } th.number scope="col" { "US dollars" } th scope="col" { "faults" }
                } }
                tbody { @for (_, record) in games { @let total = total(record); tr {
                    td.number { (record.seed + 1) }
                    th.told scope="row" { a href=(game_path(record)) { (shown(&record.told)) } }
                    td { @if breaches::breaches(record).is_empty() { "–" } @else { span.flag { "breach" } } }
                    td.number { (by_seat(&mut record.seats.iter().map(|seat| seat.utility))) }
                    td.number { (by_seat(&mut record.seats.iter().map(|seat| seat.security))) }
                    td.prose { (ends(record)) @if !self.counts(record) { " (doesn't count)" } }
                    td.number { (record.rounds) }
                    td.number { (tables::or_dash(total.usd, tables::dollars)) }
                    td { (faults(&total)) }
                } } }
            } }
        }
    }

    fn game(&self, challenge: usize, place: usize) -> Result<String, FolderError> {
        let record = &self.run.games[self.lists[challenge].games[place]];
        let view = GameView::read(self.run, &self.run.plan.challenges[challenge], record)?;
        let label = self.label(challenge);
        let list = format!("../{}#g{}", list_path(challenge, place / GAMES), place + 1);
        let other = |place: usize| self.lists[challenge].games.get(place).map(|at| &self.run.games[*at].game);
        let header = html! {
            (self.trail("../", &[(list, &format!("Games of {label}"))]))
            h1 { (shown(&record.told)) }
            (view.facts(label, self.counts(record)))
        };
        let main = html! {
            (view.page(self.run.calls(&record.game)?))
            nav.pager aria-label="Games" {
                @if let Some(game) = place.checked_sub(1).and_then(other) { a rel="prev" href={ (game) ".html" } { "← previous game" } }
                @if let Some(game) = other(place + 1) { a rel="next" href={ (game) ".html" } { "next game →" } }
            }
        };
        Ok(html_page(&record.told, "../style.css", &header, &main, &source()))
    }

    fn costs(&self) -> String {
        let Some(measurements) = &self.report.measurements else { return String::new() };
        let by_challenge = tables::costs("Costs by challenge", &measurements.cells.iter().collect::<Vec<_>>());
        let main = html! {
            (section("", Vec::new(), tables::measurements(measurements)))
            (section("", Vec::new(), vec![by_challenge, tables::faults(measurements)]))
            (self.voids())
        };
        let title = format!("Costs of {}", self.report.name);
        let header = html! { (self.trail("", &[])) h1 { (shown(&title)) } };
        html_page(&title, "style.css", &header, &main, &source())
    }

    /// Renders the games that were given up, with the reasons.
    fn voids(&self) -> Markup {
        let voids: &[VoidRecord] = &self.run.voids;
        html! { @if !voids.is_empty() {
            section {
                h2 { "Reasons of void games" }
                @if voids.len() > VOIDS { p { "The last " (VOIDS) " of " (voids.len()) ":" } }
                div.scroll tabindex="0" { table {
                    thead { tr { th scope="col" { "time" } th scope="col" { "agent" } th scope="col" { "fault" } th scope="col" { "reason" } th scope="col" { "game" } } }
                    tbody { @for void in &voids[voids.len().saturating_sub(VOIDS)..] { tr {
                        td { (utc(void.time)) }
                        td { (shown(void.agent.as_deref().unwrap_or("this machine"))) }
                        td { (shown(&void.class)) } td.prose { (shown(&void.why)) } td { code { (shown(&void.game)) } }
                    } } }
                } }
            }
        } }
    }
}

fn source() -> Markup {
    html! { "Generated by " code { "arena eval report" } " from the run's journal." }
}

/// Returns the causes of the ends of a game's seats, without repetitions.
fn ends(record: &GameRecord) -> String {
    let mut causes: Vec<&str> = record.seats.iter().map(|seat| seat.cause.name()).collect();
    causes.dedup();
    causes.join(", ")
}

/// Returns the numbers of all seats of a game together.
fn total(record: &GameRecord) -> Measured {
    let mut total = Measured::default();
    for Measured { retries, invalid, refusals, truncated, usd, .. } in record.seats.iter().map(|seat| seat.measured) {
        total.retries += retries;
        total.invalid += invalid;
        total.refusals += refusals;
        total.truncated += truncated;
        if let Some(usd) = usd {
            *total.usd.get_or_insert(0.0) += usd;
        }
    }
    total
}
