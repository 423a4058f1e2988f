//! `/ladders`: the ladders of all games; `/ladders/{game}`: one ladder with its standings and games, and a form that
//! uploads an agent.

use arena_report::season::{cross, remarks};
use arena_report::{Interval, WIDEST_CROSS_TABLE, number_of};
use axum::extract::State;
use maud::{Markup, html};

use super::{cause, elo, figure, none, scale_of, seated, winner};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::routes::{MatchView, game_of_ladder, page_of_ladder};
use crate::tournaments::{
    AgentSource, Ladder, LadderEntry, LadderMatch, LadderRow, NewAgent, TournamentRefusal, Tournaments, Uploaders,
};
use crate::web::challenges::copyable;
use crate::web::form::Form;
use crate::web::layout::{NavEntry, Page, cut, player_name, shown};
use crate::web::{PageResult, Visit, base, components, pager, unrendered, with_query};

/// Number of games per page.
const GAMES: usize = 30;

/// The program in the form of the page.
const BOT: &str = include_str!("../../../../../examples/agents/python/one_file.py");

pub(crate) async fn list(State(arena): State<Arena>, _visit: Visit) -> PageResult {
    let body = match &arena.tournaments {
        None => none(),
        Some(tournaments) => tournaments.read(table).await?,
    };
    let body = html! {
        h1 { "Ladders" }
        p.lead { "Upload an agent, and it plays against the others until its rating is known. There is one ladder for each game." }
        (body)
        p.more { a href="/tournaments" { "Tournaments" } " · " a href="/agents" { "All agents" } }
    };
    Ok(unrendered(Page::new("Ladders", NavEntry::Tournaments, body).with_style("tables.css")))
}

fn table(tournaments: &Tournaments) -> Result<Markup, TournamentRefusal> {
    let mut ladders = Vec::new();
    for game in arena_games::games() {
        ladders.push((game.name, tournaments.ladder(game.name, None)?));
    }
    // Ladders with games come first.
    ladders.sort_by_key(|(_, view)| view.is_none());
    Ok(html! {
        div.scroll tabindex="0" { table.stacked {
            thead { tr { th scope="col" { "Game" } th.number scope="col" { "Agents" } th.number scope="col" { "Games" } th scope="col" { "First" } } }
            tbody { @for (game, view) in &ladders { tr {
                td { a href={ "/ladders/" (game) } { (game) } }
                @match view {
                    Some(view) => {
                        td.number data-label="Agents" { (view.rows.iter().filter(|row| row.state() == "playing").count()) }
                        td.number data-label="Games" { (view.league.games().len()) }
                        td data-label="First" { @match view.rows.first() { Some(row) => (cut(&row.name, 40)), None => "–" } }
                    }
                    None => { td.number data-label="Agents" { "–" } td.number data-label="Games" { "–" } td data-label="First" { "no agents yet" } }
                }
            } } }
        } }
    })
}

/// The data of a ladder's page.
struct Shown {
    view: std::sync::Arc<Ladder>,
    games: Vec<MatchView>,
}

pub(crate) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let game = game_of_ladder(visit.param("game"))?.name;
    let Some(tournaments) = &arena.tournaments else { return Err(TournamentRefusal::NoLadder(game).into()) };
    let offset = visit.query.number("offset").unwrap_or(0);
    let season = visit.query.number("season").and_then(|season| usize::try_from(season).ok());
    let shown = tournaments.read(move |tournaments| {
        let Some(view) = tournaments.ladder(game, season)? else { return Ok(None) };
        let games = page_of_ladder(tournaments, game, &view, "", (offset, GAMES));
        // The picture is slow to draw. The view keeps it.
        view.picture();
        Ok::<_, TournamentRefusal>(Some(Shown { view, games }))
    });
    let shown = shown.await?;
    let view = shown.as_ref().map(|shown| &*shown.view);
    let path = format!("/ladders/{game}");
    let is_current = view.is_none_or(|view| !view.season.is_closed);
    let playing = tournaments.ladder_match(game).filter(|_| is_current);
    let waiting = if is_current { tournaments.waiting_for_ladder(game, view) } else { Vec::new() };
    let total = view.map_or(0, |view| view.league.games().len() as u64);
    let body = html! {
        div id="live" data-going-on=(is_current && view.is_some()) {
            (heading(game, view, playing.as_ref(), &waiting))
            @if let Some(Shown { view, games }) = &shown {
                (standings(tournaments, view))
                (head_to_head(view))
                @if let Some(picture) = view.picture() { section.pictures { (figure(picture)) } }
                @if !games.is_empty() { (game_list(games)) }
                (pager(&path, &visit.query, (offset, GAMES, total)))
                (seasons(&path, &visit, view))
            }
        }
        @if tournaments.has_ladders() { (join_section(tournaments, &base(&arena, &visit.headers), game)) }
        p.more { "Standings as " a href={ "/api" (path) } { "JSON" } " · " a href="/ladders" { "All ladders" } }
    };
    let page = Page::new(&format!("Ladder of {game}"), NavEntry::Tournaments, body);
    Ok(unrendered(page.with_style("tables.css").with_script("tournament.js")))
}

fn heading(game: &str, view: Option<&Ladder>, playing: Option<&LadderMatch>, waiting: &[String]) -> Markup {
    html! {
        div.intro {
            @if let Some(view) = view {
                p.row {
                    span.chip { "Season " (view.season.number) @if view.season.is_closed { ", ended" } }
                    span.soft { (view.league.games().len()) " games" }
                }
            }
            h1 { "Ladder of " (game) }
            @match view {
                None if waiting.is_empty() => (components::empty("No agents yet. Upload the first one below; house bots play against it.", None)),
                _ => p.lead { "The agent with the most uncertain rating plays next." },
            }
            @if let Some(LadderMatch { agents, number, .. }) = playing {
                p { (components::live_dot("Live")) " Game " (number) ": " (seated(agents, None)) }
            }
            @if !waiting.is_empty() {
                p { "Joining after the current game: " @for (at, name) in waiting.iter().enumerate() { @if at > 0 { ", " } (cut(name, 40)) } "." }
            }
        }
    }
}

fn standings(tournaments: &Tournaments, view: &Ladder) -> Markup {
    let rating = |row: &LadderRow| {
        let elo = row.elo?;
        let interval = Interval { low: elo.low.unwrap_or(f64::NEG_INFINITY), high: elo.high.unwrap_or(f64::INFINITY) };
        Some((elo.rating, interval))
    };
    let ratings = view.rows.iter().filter_map(rating);
    let scale = scale_of(ratings.flat_map(|(value, interval)| [value, interval.low, interval.high]));
    let version = |row: &LadderRow| match &row.version {
        Some(version) => format!("#{}, {version}", row.generation),
        None => format!("#{}", row.generation),
    };
    let link = |row: &LadderRow| row.agent().filter(|id| tournaments.find_agent(*id).is_some());
    html! {
        section {
            h2 { "Standings" }
            div.scroll tabindex="0" { table.ranks.standings {
                thead { tr {
                    th.number scope="col" { "Rank" } th scope="col" { "Agent" } th.minor scope="col" { "Version" } th.number scope="col" { "Elo, 95 %" }
                    th.number scope="col" { "Games" } th.number.minor scope="col" { "Score %" } th scope="col" { "State" }
                } }
                tbody { @for row in &view.rows { tr {
                    td.number { @if let Some(ranks) = row.rank_may_be { span.place { (ranks.best) @if ranks.worst != ranks.best { "–" (ranks.worst) } } } @else { "–" } }
                    td.name { @match link(row) { Some(id) => a href={ "/agents/" (id) } { (player_name(&row.name, 60)) }, None => (player_name(&row.name, 60)) } }
                    td.minor { @if row.agent().is_some() { (cut(&version(row), 40)) } @else { "built-in" } }
                    td.number { @match rating(row) { Some((value, interval)) => (elo(value, interval, Some(scale))), None => "–" } }
                    td.number { (row.games) }
                    td.number.minor { @if row.games > 0 { (number_of((row.points / row.games as f64 * 1000.0).round() / 10.0)) } @else { "–" } }
                    td { span.badge { (row.state()) } @if let Some(reason) = &row.suspended { span.reason { (shown(reason)) } } }
                } } }
            } }
            p.more { "Ranks are ranges: agents whose 95 % rating intervals overlap share ranks. Each version of an agent has a rating of its own." }
            @for remark in remarks(&view.season) { p.more { (shown(&tournaments.redaction().redacted(&remark))) @if !remark.ends_with('.') { "." } } }
        }
    }
}

fn head_to_head(view: &Ladder) -> Markup {
    let table = cross(&view.season);
    html! {
        @if (2..=WIDEST_CROSS_TABLE).contains(&table.rows.len()) && !view.league.games().is_empty() {
            section {
                h2 { "Head to head" }
                div.scroll tabindex="0" { table.cross {
                    thead { tr { td {} @for name in &table.header[1..] { th scope="col" { (cut(name, 12)) } } } }
                    tbody { @for (number, row) in table.rows.iter().enumerate() { tr {
                        th scope="row" { (cut(&row[0], 24)) }
                        @for (other, cell) in row[1..].iter().enumerate() { @if other == number { td.self {} } @else { td { (cell) } } }
                    } } }
                } }
                p.more { "Points of the agent of the row, of the number of games against the agent of the column." }
            }
        }
    }
}

fn game_list(games: &[MatchView]) -> Markup {
    html! {
        section id="games" {
            h2 { "Games" }
            div.scroll tabindex="0" { table.stacked {
                thead { tr { th.number scope="col" { "#" } th scope="col" { "Agents" } th scope="col" { "Scores" } th scope="col" { "Result" } th scope="col" { "Replay" } } }
                tbody { @for game in games { tr {
                    td.number data-label="Game" { (game.number) }
                    td { (seated(&game.agents, winner(game))) }
                    td data-label="Scores" { (game.scores.iter().map(|score| number_of(*score)).collect::<Vec<_>>().join(" : ")) }
                    td.cause { (cause(game)) }
                    td { @match &game.replay { Some(path) => a href=(path) { "Watch" }, None => "–" } }
                } } }
            } }
        }
    }
}

/// Renders links to all seasons, if there are several. `view` is the season that the page shows.
fn seasons(path: &str, visit: &Visit, view: &Ladder) -> Markup {
    // A closed season doesn't know its followers, but there is at least one.
    let last = view.season.number + usize::from(view.season.is_closed);
    html! {
        @if last > 1 {
            p.more {
                "Seasons: "
                @for season in 1..=last {
                    @if season > 1 { " · " }
                    @if season == view.season.number { b { (season) } } @else { a href=(with_query(path, &visit.query, "season", &season.to_string())) { (season) } }
                }
                @if view.season.is_closed { " · " a href=(path) { "current" } }
            }
        }
    }
}

fn join_section(tournaments: &Tournaments, base: &str, game: &str) -> Markup {
    let is_open = tournaments.settings().upload == Uploaders::Anyone;
    let token = if is_open { "" } else { "-H \"Authorization: Bearer $ADMIN_TOKEN\" " };
    let curl = format!("curl {token}--data-binary @agent.py \"{base}/api/agents?game={game}&filename=agent.py\"");
    html! {
        section id="join" {
            h2 { "Upload an agent" }
            @if tournaments.settings().upload == Uploaders::Nobody {
                p { "Uploads are disabled on this server." }
            } @else {
                p { "An agent is a file or a folder; " code { (format!("arena agent new {game} bot")) } " creates one. The server checks that it plays, and it joins the ladder." }
                (copyable(&format!("arena --url {base} agent upload ./bot --game {game}")))
                p { "Without the program, for a single file:" }
                (copyable(&curl))
                @if !is_open { p.soft { "Uploads need the administrator's token here." } }
                @else {
                    details {
                        summary { "Paste a single file" }
                        p { "The program below is complete: fill in its function " code { "decide" } ". An agent of several files, as " code { "arena agent new" } " writes it, is uploaded by the command above." }
                        form.card.pad method="post" action={ "/ladders/" (game) } {
                            label for="name" { "Name" } input id="name" name="name" required maxlength="64" {}
                            label for="filename" { "File name" } input id="filename" name="filename" value="agent.py" required maxlength="128" {}
                            label for="source" { "Program" } textarea id="source" name="source" rows="12" required spellcheck="false" { (BOT) }
                            button.btn.primary type="submit" { "Upload" }
                        }
                    }
                }
            }
        }
    }
}

/// `POST /ladders/{game}`: uploads a single file.
pub(crate) async fn join(State(arena): State<Arena>, form: Form) -> PageResult {
    let game = game_of_ladder(form.param("game"))?.name;
    let Some(tournaments) = &arena.tournaments else { return Err(TournamentRefusal::NoLadder(game).into()) };
    if tournaments.settings().upload != Uploaders::Anyone {
        return Err(TournamentRefusal::UploadsOff.into());
    }
    if !tournaments.has_ladders() {
        return Err(TournamentRefusal::LaddersOff.into());
    }
    let field = |name: &str| form.fields.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let source = field("source").ok_or_else(|| ApiError::missing("source"))?;
    let (name, file_name) = (field("name"), field("filename"));
    arena.admit_new(form.address, None).await?;
    let place = tournaments.upload_place()?;
    arena.ledger.charge(form.address, source.len() as u64);
    let maker = arena.ledger.limited(form.address);
    let added = tournaments.run_blocking(move |tournaments| {
        let _place = place;
        // Browsers send lines with CR LF.
        let body = source.replace("\r\n", "\n");
        let source = AgentSource::Files { body: body.as_bytes(), file_name: file_name.as_deref() };
        let ladder = Some(LadderEntry { game: game.to_owned(), replaces: None });
        tournaments.add_agent(NewAgent { source, name: name.as_deref(), ladder }, None, maker)
    });
    let facts = added.await?;
    let body = html! {
        h1 { (cut(&facts.name, 64)) " joins the ladder" }
        p.lead { "It plays its first games soon." }
        p { "Keep this key. It is shown only now, and with it you replace or remove the agent, and read its log:" }
        (copyable(&tournaments.key_of_agent(facts.id)))
        dl.details { dt { "Id" } dd { code { (facts.id) } } }
        p.row { (components::primary(&format!("/ladders/{game}"), "To the ladder")) }
    };
    Ok(unrendered(Page::new("Agent uploaded", NavEntry::Tournaments, body).with_secrets()))
}
