//! Two players compared on a leaderboard: their scores side by side, and their games against each other.

use arena_engine::EngineError;
use arena_model::{Board, GameResult, Metric, ScoringEntry, Session, UserId, UserProfile};
use arena_report::{listed, printable};
use arena_store::Page as Listed;
use maud::{Markup, html};

use super::board::{Leaderboard, counted, ends, estimate, outcomes, player};
use super::measures::Measures;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::request::Query;
use crate::web::PageResult;
use crate::web::layout::cut;
use crate::web::session::SessionTable;
use crate::web::session::redacted::name_of;

/// Number of latest games of the first player among which games against the second are searched.
const SEARCHED: usize = 200;

/// Maximum number of listed games between two players.
const GAMES: usize = 10;

/// Maximum length of a name in a list of choices and in a sentence.
const NAME: usize = 28;

/// Parses the players of the parameter `compare`: two parameters, or two ids with a comma. One player is the first of
/// a choice that isn't made yet.
///
/// # Errors
/// If an id is invalid, or there are more than two.
pub(crate) fn wanted(query: &Query) -> PageResult<Vec<UserId>> {
    let mut values: Vec<&str> = query.all("compare").filter(|value| !value.is_empty()).collect();
    if values.len() == 1 {
        values = values[0].split(',').collect();
    }
    let invalid = || ApiError::bad_request("INVALID_FIELD", "compare must be two user ids, such as ada,bob");
    if values.len() > 2 {
        return Err(invalid().into());
    }
    values.into_iter().map(|id| id.parse().map_err(|_| invalid().into())).collect()
}

pub(crate) struct Comparison {
    profiles: [UserProfile; 2],
    entries: [Option<ScoringEntry>; 2],
    measures: Measures,
    /// The latest rated games between the two.
    games: SessionTable,
    /// Numbers of rated games in which the first player had more, equal and less utility.
    results: [u32; 3],
    /// True if all games of the first player were searched.
    is_whole: bool,
}

impl Comparison {
    /// Reads two players' entries on a board and their common games.
    ///
    /// # Errors
    /// If a player is unknown, both are the same, or the store can't be read.
    pub(crate) async fn read(arena: &Arena, board: &Board, ids: [&UserId; 2]) -> PageResult<Comparison> {
        let [one, other] = ids;
        if one == other {
            return Err(ApiError::bad_request("INVALID_FIELD", "compare must be two different players").into());
        }
        let scoring = arena.engine.scoring();
        let mut profiles = arena.engine.find_profiles(&[one.clone(), other.clone()]).await?;
        let profiles = [
            profiles.remove(one).ok_or(EngineError::UnknownUser)?,
            profiles.remove(other).ok_or(EngineError::UnknownUser)?,
        ];
        let first = arena.engine.find_standings(one).await?.unwrap_or_default();
        let second = arena.engine.find_standings(other).await?.unwrap_or_default();
        let measures = Measures::of(arena, board);
        let entries = [first, second].map(|standings| Some(measures.scaled(scoring.entry(board, &standings)?)));
        let played = arena.engine.list_played(one, 0, SEARCHED).await?;
        let played = played.unwrap_or(Listed { items: Vec::new(), total: 0 });
        let is_whole = played.total <= SEARCHED as u64;
        let is_of_board = |session: &Session| match board {
            Board::Of { challenge, .. } => session.facts.challenge == *challenge,
            Board::Global(_) => true,
        };
        let mut results = [0; 3];
        let mut common = Vec::new();
        for session in played.items.into_iter().filter(is_of_board) {
            // The result is `None` while the game is played, so running games stay anonymous.
            let Some(result) = GameResult::of(&session) else { continue };
            let seat = |id: &UserId| result.users.iter().position(|user| *user == Some(id));
            let (Some(own), Some(theirs)) = (seat(one), seat(other)) else { continue };
            let (Some(own), Some(theirs)) = (result.scores.get(own), result.scores.get(theirs)) else { continue };
            let order = own.utility.total_cmp(&theirs.utility);
            let place = match order {
                std::cmp::Ordering::Greater => 0,
                std::cmp::Ordering::Equal => 1,
                std::cmp::Ordering::Less => 2,
            };
            results[place] += 1;
            common.push(session);
        }
        let total = common.len() as u64;
        common.truncate(GAMES);
        let games = SessionTable::of(arena, Listed { items: common, total }).await?;
        Ok(Comparison { profiles, entries, measures, games, results, is_whole })
    }

    /// Returns a sentence on the metrics in which one player is ahead for certain.
    fn sentence(&self) -> String {
        let [one, other] = self.profiles.each_ref().map(name);
        let [Some(first), Some(second)] = &self.entries else {
            let missing: Vec<String> = [one, other]
                .into_iter()
                .zip(&self.entries)
                .filter(|(_, entry)| entry.is_none())
                .map(|(name, _)| name)
                .collect();
            let verb = if missing.len() == 1 { "has" } else { "have" };
            return format!("{} {verb} no finished game on this leaderboard yet.", listed(&missing));
        };
        let ahead = |a: &ScoringEntry, b: &ScoringEntry| -> Vec<String> {
            let is_ahead = |metric: &&Metric| match (ends(a, metric.key), ends(b, metric.key)) {
                (Some([low, _]), Some([_, high])) => low > high,
                _ => false,
            };
            self.measures.metrics.iter().filter(is_ahead).map(|metric| metric.label.to_lowercase()).collect()
        };
        match (ahead(first, second), ahead(second, first)) {
            (none, nothing) if none.is_empty() && nothing.is_empty() => {
                "Neither is clearly ahead: the 95 % intervals overlap, or the scores are equal.".to_owned()
            }
            (here, there) if there.is_empty() => format!("{one} is ahead in {}.", listed(&here)),
            (here, there) if here.is_empty() => format!("{other} is ahead in {}.", listed(&there)),
            (here, there) => format!("{one} is ahead in {}, {other} in {}.", listed(&here), listed(&there)),
        }
    }

    fn shown(&self) -> Markup {
        let [ahead, level, behind] = self.results;
        let [one, other] = self.profiles.each_ref().map(name);
        html! {
            p { b { (self.sentence()) } }
            div.scroll tabindex="0" { table.ranks {
                thead { tr {
                    th scope="col" { "Measure" }
                    @for profile in &self.profiles { th.number scope="col" { (player(profile)) } }
                } }
                tbody {
                    @if self.measures.has_outcomes() { tr {
                        td { "Won, drawn, lost" }
                        @for entry in &self.entries { td.number { (entry.as_ref().map_or_else(|| "–".to_owned(), outcomes)) } }
                    } }
                    @for metric in &self.measures.metrics { tr {
                        td { (metric.label) }
                        @for entry in &self.entries {
                            td.number { @match entry { Some(entry) => (estimate(metric, entry)), None => "–" } }
                        }
                    } }
                    tr {
                        td { "Games" }
                        @for entry in &self.entries { td.number { (entry.as_ref().map_or(0, |entry| entry.games_played)) } }
                    }
                }
            } }
            h3 { "Games against each other" }
            @if ahead + level + behind == 0 {
                p.soft { "None yet." }
            } @else {
                p {
                    (counted(u64::from(ahead + level + behind))) ": " (cut(&one, NAME)) " was ahead in " (ahead) ", "
                    (cut(&other, NAME)) " in " (behind) "; " (level) " ended level."
                    @if !self.is_whole { " Searched among the latest " (SEARCHED) " games of " (cut(&one, NAME)) "." }
                }
                (self.games.table())
            }
        }
    }
}

fn name(profile: &UserProfile) -> String {
    printable(name_of(&profile.user_id, Some(profile))).chars().take(NAME).collect()
}

/// Renders the form that selects two of a board's players, and their comparison.
pub(crate) fn section(
    board: &Leaderboard,
    path: &str,
    query: &Query,
    wanted: &[UserId],
    comparison: Option<&Comparison>,
) -> Markup {
    let kept = ["strategy", "players", "sort"].into_iter().filter_map(|name| Some((name, query.get(name)?)));
    // A player that isn't in the table, such as one from a link of another page, is a choice, too.
    let mut choices: Vec<(&str, String)> =
        board.players().map(|(id, name)| (id, printable(name).chars().take(NAME).collect())).collect();
    for id in wanted {
        if choices.iter().all(|(known, _)| *known != id.as_str()) {
            choices.push((id.as_str(), printable(id.as_str()).chars().take(NAME).collect()));
        }
    }
    let first = wanted.first().map_or_else(|| choices.first().map_or("", |(id, _)| *id), UserId::as_str);
    let second = || choices.iter().map(|(id, _)| *id).find(|id| *id != first).unwrap_or("");
    let second = wanted.get(1).map_or_else(second, UserId::as_str);
    html! {
        @if choices.len() > 1 {
            section id="compare" {
                h2 { "Compare two players" }
                form.pick method="get" action={ (path) "#compare" } {
                    @for (name, value) in kept { input type="hidden" name=(name) value=(value); }
                    @for (label, field, chosen) in [("First player", "compare-first", first), ("Second player", "compare-second", second)] {
                        div {
                            label for=(field) { (label) }
                            select id=(field) name="compare" {
                                @for (id, name) in &choices { option value=(id) selected[*id == chosen] { (name) } }
                            }
                        }
                    }
                    button { "Compare" }
                }
                @if let Some(comparison) = comparison { (comparison.shown()) }
            }
        }
    }
}
