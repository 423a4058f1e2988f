//! A tournament as a page: one file, without scripts and without anything from elsewhere, to be published beside the numbers.
//!
//! Names and details come from strangers. They are escaped by the templates, control characters are made visible, and each name keeps its
//! direction of writing to itself; should anything slip through, the page's own policy lets no script run and nothing be loaded.

use arena_model::MatchResult;
use arena_model::SandboxMode;
use arena_tournament::{GameLine, Record, Stop, standings};
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use crate::ending::{trial, verdict};
use crate::games::of_game;
use crate::ratings::Ratings;
use crate::reproduce::{command, seed};
use crate::standings::{cross, fates, grid, incidents, played, reasons, repeated, title};
use crate::svg::{Picture, cross_table_picture, picture_style, progress_picture, ratings_picture};
use arena_model::printable;

const STYLE: &str = include_str!("html.css");

/// What the page may do, as a content security policy: nothing but show what stands in it.
pub const HTML_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The most games that are listed: some megabytes.
const MOST_GAMES: usize = 3_000;

/// The whole report of a tournament, also of one that is being played: standings, pictures, games, agents, how to play it again, and what the
/// numbers mean.
pub fn html(record: &Record) -> String {
    let plan = &record.plan;
    let heading = format!("{}: {} of {} agents", plan.game, plan.format, plan.agents.len());
    let ratings = Ratings::of(record);
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(HTML_POLICY);
                meta name="generator" content="arena";
                title { (heading) }
                style { (PreEscaped(STYLE)) (PreEscaped(picture_style())) }
            }
            body {
                header {
                    h1 { (heading) }
                    p { (shown(&title(record))) }
                    p { span.state { (if record.schedule.is_complete() { "complete" } else { "not complete" }) } " " (played(record)) }
                }
                main {
                    section {
                        h2 { "Standings" }
                        (standings_table(record, ratings.as_ref()))
                        @if let Some(trial) = trial(record) { pre { (trial) } }
                        @if let Some(verdict) = verdict(record) { p { (shown(&verdict)) "." } }
                        @if let Some(lead) = ratings.as_ref().filter(|_| record.schedule.is_complete()).and_then(|ratings| ratings.lead(record)) {
                            p { (shown(&lead)) "." }
                        }
                        @if let Some(apart) = ratings.as_ref().and_then(|ratings| ratings.apart(|agent| record.name(agent))) {
                            p { (shown(&apart)) "." }
                        }
                        @if let Some(repeated) = repeated(record) { p { (shown(&repeated)) "." } }
                        @for incident in incidents(record) { p { (shown(&incident)) "." } }
                    }
                    (pictures(record))
                    (disqualifications(record))
                    (games(record))
                    (agents(record))
                    (reproduce(record))
                    (method(record, ratings.is_some()))
                }
                footer { p { "Made by " code { "arena tournament standings --html" } " from the journal of the tournament alone." } }
            }
        }
    };
    page.into_string() + "\n"
}

/// A text of somebody's, which means nothing but itself.
fn shown(text: &str) -> Markup {
    markup! { bdi { (printable(text)) } }
}

/// A table whose columns from `numbers` on are numbers, and whose rows are named in the column before that.
fn table(header: &[String], rows: &[Vec<String>], numbers: usize) -> Markup {
    let is_number = |column: usize| column >= numbers || column + 1 < numbers;
    markup! {
        div.scroll tabindex="0" { table {
            thead { tr { @for (column, text) in header.iter().enumerate() {
                th.number[is_number(column)] scope="col" { (shown(text)) }
            } } }
            tbody { @for row in rows { tr { @for (column, text) in row.iter().enumerate() {
                @if is_number(column) { td.number { (shown(text)) } } @else { th.name scope="row" { (shown(text)) } }
            } } } }
        } }
    }
}

fn standings_table(record: &Record, ratings: Option<&Ratings>) -> Markup {
    let mut grid = grid(record);
    // On a page there is room for what Elo makes of it beside what points do.
    if let (Some(ratings), Some(after)) = (ratings, grid.header.iter().position(|text| text == "rank may be")) {
        grid.header.insert(after + 1, "Elo place".to_owned());
        for (line, row) in standings(&record.schedule).iter().zip(&mut grid.rows) {
            row.insert(after + 1, if line.games > 0 { ratings.place(line.agent) } else { String::new() });
        }
    }
    markup! {
        (table(&grid.header, &grid.rows, 2))
        @if ratings.is_some() {
            p.soft {
                "± is a 95 % interval and ∞ an end that the games leave open. “Rank may be” has all ranks that the intervals allow: one agent "
                "is above another where its interval lies wholly above the other's. Agents with = share a place, since their intervals "
                "overlap with that of the best of them."
            }
        }
    }
}

fn pictures(record: &Record) -> Markup {
    let ratings = "A dot is the Elo of an agent, its line the 95 % interval. An arrow says that the games set no bound on that side. \
        Lines across part groups in which nobody is certainly weaker than the first.";
    let cross_table = "A row has the points that its agent won against each other agent, as per cent of those it could win there. \
        Columns have the numbers of rows. A dot: they haven't met.";
    let progress = "Wins less losses, halved, in the order of the games. Who wins as often as not stays level.";
    let sections = [
        ("Ratings", ratings_picture(record), ratings),
        ("Cross table", cross_table_picture(record), cross_table),
        ("Points as games were played", progress_picture(record), progress),
    ];
    let numbers = cross(record);
    markup! {
        div.pictures { @for (heading, picture, caption) in sections {
            @if let Some(picture) = picture {
                section {
                    h2 { (heading) }
                    (figure(&picture, caption))
                    @if heading == "Cross table" {
                        details { summary { "Points and games as numbers" } (table(&numbers.header, &numbers.rows, 1)) }
                    }
                }
            }
        } }
    }
}

fn figure(picture: &Picture, caption: &str) -> Markup {
    markup! {
        figure {
            // Below this width it is scrolled rather than made smaller.
            div.scroll style={ "--least:" (picture.least_width()) "px" } { (PreEscaped(picture.to_element())) }
            figcaption { (caption) }
        }
    }
}

fn disqualifications(record: &Record) -> Markup {
    let fates = fates(record);
    let lines: Vec<_> = standings(&record.schedule)
        .into_iter()
        .filter_map(|line| {
            let fate = &fates[line.agent];
            Some((line, &fate.verdicts, fate.first.as_ref()?))
        })
        .collect();
    if lines.is_empty() {
        return markup! {};
    }
    markup! {
        section {
            h2 { "Disqualifications" }
            div.scroll tabindex="0" { table {
                thead { tr { th scope="col" { "name" } th.number scope="col" { "times" } th.number scope="col" { "games" }
                    th scope="col" { "why" } th.number scope="col" { "first game" } th scope="col" { "what happened there" } } }
                tbody { @for (line, verdicts, (game, detail)) in &lines { tr {
                    th.name scope="row" { (shown(record.name(line.agent))) }
                    td.number { (verdicts.values().sum::<u64>()) }
                    td.number { (line.games) }
                    td { (reasons(verdicts)) }
                    td.number { (game) }
                    td.prose { (shown(detail)) }
                } } }
            } }
        }
    }
}

fn games(record: &Record) -> Markup {
    let count = record.games().count();
    if count == 0 {
        return markup! {};
    }
    markup! {
        section {
            h2 { "Games" }
            @if count > MOST_GAMES {
                p { "The first " (MOST_GAMES) " of " (count) " games that were played; the journal has all." }
            }
            details {
                summary { (count.min(MOST_GAMES)) " games, with seeds and reasons" }
                div.scroll tabindex="0" { table {
                    thead { tr { th.number scope="col" { "game" } th.number scope="col" { "round" } th scope="col" { "agents" } th scope="col" { "result" }
                        th scope="col" { "ended by" } th.number scope="col" { "epochs" } th scope="col" { "seed" } } }
                    tbody { @for game in record.games().take(MOST_GAMES) { (one_game(record, game)) } }
                } }
            }
        }
    }
}

fn one_game(record: &Record, game: &GameLine) -> Markup {
    let (names, result) = of_game(record, game);
    let MatchResult { seats, outcome, seed, epochs, .. } = &game.result;
    let verdicts = seats.iter().filter_map(|seat| Some((&seat.agent, seat.verdict?, seat.detail.as_deref())));
    markup! {
        tr {
            td.number { (game.number) }
            td.number { (game.round) }
            td { @for (at, name) in names.iter().enumerate() { @if at > 0 { " – " } (shown(name)) } }
            td { (result) }
            td.prose {
                (outcome.termination)
                @if !record.schedule.counts(game.number) { "; played beyond the decision, doesn't count" }
                @for (name, verdict, detail) in verdicts {
                    "; " (shown(name)) ": " (verdict) @if let Some(detail) = detail { ", " (shown(detail)) }
                }
            }
            td.number { (epochs) }
            td { code { (seed.reveal()) } }
        }
    }
}

fn agents(record: &Record) -> Markup {
    markup! {
        section {
            h2 { "Agents" }
            div.scroll tabindex="0" { table {
                thead { tr { th scope="col" { "name" } th scope="col" { "version" } th scope="col" { "where" } th scope="col" { "SHA-256 of its files" } } }
                tbody { @for agent in &record.plan.agents { tr {
                    th.name scope="row" { (shown(&agent.name)) }
                    td { (agent.version.as_deref().map_or_else(|| markup! { "–" }, shown)) }
                    td.prose { code { (shown(&agent.path)) } }
                    td { @match &agent.sha256 { Some(hash) => code { (hash) }, None => "none, a server of somebody's" } }
                } } }
            } }
        }
    }
}

fn reproduce(record: &Record) -> Markup {
    let plan = &record.plan;
    let limits = &plan.limits;
    let sandbox = match plan.sandbox {
        SandboxMode::On => "on",
        SandboxMode::Required => "on, and required",
        SandboxMode::NoNamespaces => "on, without namespaces",
        SandboxMode::Off => "off",
    };
    let options: Vec<String> = plan.options.iter().map(|(key, value)| format!("{key}={value}")).collect();
    markup! {
        section {
            h2 { "How to play it again" }
            pre tabindex="0" { code { (printable(&command(record))) } }
            p {
                "Where the agents are where they were, this plays the same games: who meets whom, on which seats and with which seeds, all comes "
                "of the seed of the tournament. The same results come of it if the agents do the same when they are told the same, and "
                "keep their time."
            }
            dl {
                dt { "Seed" } dd { code { (seed(plan)) } }
                dt { "Time" } dd { (limits.step_ms) " ms for each step, and " (limits.bank_ms) " ms beyond that for all steps of a game" }
                dt { "Sandbox" } dd { (sandbox) @if let Some(bytes) = plan.sandbox_limits.memory_bytes { ", " (bytes >> 20) " MiB of memory for each agent" } }
                @if !options.is_empty() { dt { "Options" } dd { code { (shown(&options.join(" "))) } } }
            }
        }
    }
}

fn method(record: &Record, is_rated: bool) -> Markup {
    let plan = &record.plan;
    let order = match record.schedule.survived() {
        Some(_) => "the rounds that they survived, and then of their share of the points",
        None => "their share of the points that they could win",
    };
    markup! {
        section {
            h2 { "What the numbers mean" }
            p {
                "A win is one point and a draw half a point"
                @if plan.seats > 2 { "; in a game of " (plan.seats) " it is the share of the others that an agent left behind" }
                ". Agents stand in the order of " (order) ". Who was disqualified comes last in that game."
            }
            @if plan.paired {
                p {
                    "A meeting of agents is " (plan.seats) " games with one seed, with each agent on each seat once, so that neither luck nor a better "
                    "seat decides."
                }
            }
            @if plan.format.info().is_adaptive {
                p {
                    "Who met whom was chosen as the games went, by what a game would tell about the ratings that were least sure. So agents met "
                    "opponents of different strength, and Elo, which allows for that, says more than points do."
                }
            }
            @match plan.stop {
                Some(Stop::Sprt(_)) => p {
                    "The games ended when a sequential probability ratio test was decided, whose error rates hold. Elo and its interval are told "
                    "as if the number of games had been fixed."
                }
                Some(Stop::Margin(_)) => p {
                    "The games ended when all intervals were narrow enough. They are told as if the number of games had been fixed."
                }
                None => {}
            }
            @if is_rated {
                p {
                    "Elo is the strength under which all results together are likeliest, in the model of Bradley and Terry with draws (after "
                    "Davidson), slightly drawn to the middle (Jeffreys' prior). The order of games has no part in it. 0 is the mean. "
                    "Without draws, 100 more than another are a score of 64 % against it, and 400 more one of 91 %."
                }
                p {
                    "The interval is where the true strength lies with 95 % confidence: of a hundred tournaments like this one, about 95 have it "
                    "inside."
                    @if plan.paired { " Games of one meeting share their luck, so they count as one observation." }
                    " Where an agent has lost no point there is no upper bound, whatever its Elo says, and no lower one where it has won none."
                }
                p {
                    "“Rank may be” says what the intervals show: one agent is above another where its interval lies wholly above the other's. Each "
                    "range holds its own agent's rank at least as often as an interval holds the strength; among many agents of exactly equal "
                    "strength some intervals don't overlap by chance."
                }
            }
        }
    }
}
