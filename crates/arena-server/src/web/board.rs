//! Leaderboards: a scatter plot of security and utility, and a sortable table.

use arena_model::{Board, Metric, MetricKind, Order, ScoringEntry, UserProfile};
use arena_report::{Axes, Estimate, Interval, Picture, Point, number_of, scatter};
use maud::{Markup, PreEscaped, html};

use super::layout::cut;
use super::{PageResult, Query, seen, with_query};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::routes::orders;

/// Maximum number of players in a plot. The dots of more players would overlap.
const DOTS: usize = 30;

/// Number of top players among which players of one kind are searched.
const SEARCHED: usize = 1000;

/// Filter of a leaderboard by kind of player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlayerKind {
    All,
    /// Players who name no model and aren't benchmark models.
    Humans,
    /// Players that the administrator has marked as benchmark models.
    Benchmarks,
}

impl PlayerKind {
    pub(super) const ALL: [PlayerKind; 3] = [PlayerKind::All, PlayerKind::Humans, PlayerKind::Benchmarks];

    /// Parses the parameter `players` of a query.
    ///
    /// # Errors
    /// If the value is unknown.
    pub(super) fn of(query: &Query) -> PageResult<PlayerKind> {
        let wanted = query.get("players").unwrap_or("");
        let found = PlayerKind::ALL.into_iter().find(|kind| kind.name() == wanted);
        let unknown = || ApiError::bad_request("INVALID_FIELD", "players must be one of: humans, benchmark");
        Ok(found.ok_or_else(unknown)?)
    }

    /// Returns the parameter's value; empty for all players.
    pub(super) fn name(self) -> &'static str {
        match self {
            PlayerKind::All => "",
            PlayerKind::Humans => "humans",
            PlayerKind::Benchmarks => "benchmark",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            PlayerKind::All => "All players",
            PlayerKind::Humans => "Humans",
            PlayerKind::Benchmarks => "Benchmark models",
        }
    }

    fn counts(self, profile: &UserProfile) -> bool {
        match self {
            PlayerKind::All => true,
            PlayerKind::Humans => !profile.is_benchmark && profile.model.is_none(),
            PlayerKind::Benchmarks => profile.is_benchmark,
        }
    }
}

/// The top rows of a leaderboard.
pub(super) struct Leaderboard {
    metrics: &'static [Metric],
    order: Order,
    players: Vec<(UserProfile, ScoringEntry)>,
    total: u64,
    kind: PlayerKind,
}

impl Leaderboard {
    /// Reads the board, sorted by `sort` or by its default order. `None` if the board has no metrics.
    ///
    /// # Errors
    /// If the order is unknown, or the store can't be read.
    pub(super) async fn read(
        arena: &Arena,
        board: Board,
        sort: Option<&str>,
        (kind, limit): (PlayerKind, usize),
    ) -> PageResult<Option<Self>> {
        let metrics = arena.engine.scoring().metrics(&board);
        let Some((board, order)) = orders(arena, vec![board], sort)?.pop() else { return Ok(None) };
        let step = if kind == PlayerKind::All { limit } else { 100 };
        let (mut players, mut searched, mut total) = (Vec::new(), 0, 0);
        while players.len() < limit && searched < SEARCHED {
            let page = arena.engine.list_board(&board, order, searched as u64, step).await?;
            (searched, total) = (searched + page.items.len(), page.total);
            let is_last = page.items.len() < step || kind == PlayerKind::All;
            players.extend(page.items.into_iter().filter(|(profile, _)| kind.counts(profile)));
            if is_last {
                break;
            }
        }
        players.truncate(limit);
        Ok(Some(Leaderboard { metrics, order, players, total, kind }))
    }

    /// True if the leaderboard has no players.
    pub(super) fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// Renders the table, and the plot if the board measures security and utility.
    pub(super) fn both(&self, title: &str, path: &str, query: &Query) -> Markup {
        html! {
            div.beside {
                @if let Some(picture) = self.picture(title) {
                    figure {
                        div.scroll tabindex="0" { (PreEscaped(picture.to_element())) }
                        figcaption { "Each dot is a player; the lines are 95 % intervals. The upper right is best. No player beats a player on the orange steps in both measures." }
                    }
                }
                div { (self.table(path, query)) }
            }
        }
    }

    /// Plots security against utility. `None` if the board doesn't measure both, or has no players.
    pub(super) fn picture(&self, title: &str) -> Option<Picture> {
        let key = |part: &str| self.metrics.iter().map(|metric| metric.key).find(|key| key.ends_with(part));
        let (x, y) = (key(":security")?, key(":utility")?);
        let measured = |entry: &ScoringEntry, key: &str| {
            let value = *entry.metrics.get(key)?;
            let [low, high] = entry.intervals.get(key).copied().unwrap_or([value, value]);
            value.is_finite().then_some(Estimate { value, interval: Interval { low, high } })
        };
        let points: Vec<Point> = (self.players.iter().take(DOTS))
            .filter_map(|(profile, entry)| {
                let name = seen::name_of(&profile.user_id, Some(profile)).to_owned();
                Some(Point { name, x: measured(entry, x)?, y: measured(entry, y)? })
            })
            .collect();
        scatter(&points, &Axes { title, x: "security →", y: "utility ↑" })
    }

    /// Renders the table of players. The column headings link to `path` with another order.
    fn table(&self, path: &str, query: &Query) -> Markup {
        html! {
            div.scroll tabindex="0" { table.ranks {
                thead { tr {
                    th.number scope="col" { "#" }
                    th scope="col" { "Player" }
                    th.number scope="col" { "Games" }
                    @for metric in self.metrics { (self.heading(metric, path, query)) }
                } }
                tbody {
                    @for (place, (profile, entry)) in (1_usize..).zip(&self.players) {
                        tr {
                            td.number { (self.rank(place)) }
                            td.name { (player(profile)) }
                            td.number { (entry.games_played) }
                            @for metric in self.metrics {
                                td.number {
                                    @match entry.metrics.get(metric.key) {
                                        Some(value) => { (number_of(*value)) (interval(entry, metric.key)) }
                                        None => "–"
                                    }
                                }
                            }
                        }
                    }
                }
            } }
            @if self.has_ties() { p.more { "Players marked = share a rank, since their 95 % intervals in the sorted column overlap." } }
            @if self.kind != PlayerKind::All { p.more { (searched(self.total)) } }
            @if self.kind == PlayerKind::All && self.total > self.players.len() as u64 { p.more { "Top " (self.players.len()) " of " (self.total) " players." } }
        }
    }

    /// Returns an entry's interval of the metric by which the board is sorted. For a metric without intervals, such as
    /// a streak, both ends are the value.
    fn sorted_by(&self, entry: &ScoringEntry) -> Option<[f64; 2]> {
        let value = entry.metrics.get(self.order.metric)?;
        Some(entry.intervals.get(self.order.metric).copied().unwrap_or([*value, *value]))
    }

    /// Returns the best rank that a player can have according to the intervals: 1 + the number of players whose
    /// intervals lie entirely above the player's. `place` is the player's position on the board, from 1. All these
    /// players precede the player, since the board is sorted by the metric or by the lower end of its interval.
    fn best_rank(&self, place: usize) -> usize {
        let own = self.players.get(place - 1).and_then(|(_, entry)| self.sorted_by(entry));
        let Some([_, high]) = own else { return place };
        let above =
            |(_, entry): &&(UserProfile, ScoringEntry)| self.sorted_by(entry).is_some_and(|[low, _]| low > high);
        1 + self.players[..place - 1].iter().filter(above).count()
    }

    /// Returns the rank of the player at the position `place` (from 1), with the suffix `=` if another player has the
    /// same rank.
    fn rank(&self, place: usize) -> String {
        let rank = self.best_rank(place);
        let others = (1..=self.players.len()).filter(|other| *other != place);
        let is_shared = others.map(|other| self.best_rank(other)).any(|other| other == rank);
        format!("{rank}{}", if is_shared { "=" } else { "" })
    }

    fn has_ties(&self) -> bool {
        (1..=self.players.len()).any(|place| self.rank(place).ends_with('='))
    }

    /// Renders a column heading that sorts by the column's metric, or by the lower end of its interval if it has one.
    fn heading(&self, metric: &Metric, path: &str, query: &Query) -> Markup {
        let is_order = self.order.metric == metric.key;
        let has_interval = !matches!(metric.kind, MetricKind::Streak);
        let sort = if has_interval { format!("{}:low", metric.key) } else { metric.key.to_owned() };
        html! {
            th.number scope="col" aria-sort=[is_order.then_some("descending")] {
                a href=(with_query(path, query, "sort", &sort)) { (metric.label) @if is_order { " ↓" } }
            }
        }
    }
}

/// Returns the sentence with the number of players among which players of one kind are searched.
fn searched(total: u64) -> String {
    match total > SEARCHED as u64 {
        true => format!("Searched among the top {SEARCHED} of all {total} players."),
        false => format!("Searched among all {total} players."),
    }
}

fn interval(entry: &ScoringEntry, key: &str) -> Markup {
    html! {
        @if let Some([low, high]) = entry.intervals.get(key) {
            small.interval title="95 % interval" { " " (number_of(*low)) " … " (number_of(*high)) }
        }
    }
}

/// Renders a player's name, with the model and a badge.
pub(super) fn player(profile: &UserProfile) -> Markup {
    html! {
        a href=(user_path(profile.user_id.as_str())) { (cut(seen::name_of(&profile.user_id, Some(profile)), 28)) }
        @if let Some(model) = &profile.model { small.below { (cut(model.as_str(), 28)) } }
        @if profile.is_benchmark { " " span.badge { "benchmark" } }
    }
}

/// Returns the path of a user's page.
pub(super) fn user_path(user: &str) -> String {
    format!("/users/{}", percent_encoding::utf8_percent_encode(user, percent_encoding::NON_ALPHANUMERIC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_leaderboard_is_searched_completely() {
        assert_eq!(searched(12), "Searched among all 12 players.");
        assert_eq!(searched(1000), "Searched among all 1000 players.");
        assert_eq!(searched(1001), "Searched among the top 1000 of all 1001 players.");
    }
}
