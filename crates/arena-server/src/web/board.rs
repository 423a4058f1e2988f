//! A leaderboard: as a picture of what it measures twice, and as a table that can be sorted.

use arena_model::{Board, Metric, MetricKind, Order, ScoringEntry, UserProfile};
use arena_report::{Axes, Estimate, Interval, Point, number_of, scatter};
use maud::{Markup, PreEscaped, html};

use super::layout::cut;
use super::{PageResult, Query, seen, with_query};
use crate::arena::Arena;
use crate::routes::orders;

/// Players in a picture; with more of them nobody can be told from the others.
const DOTS: usize = 30;

/// The top of a leaderboard.
pub(super) struct Leaderboard {
    metrics: &'static [Metric],
    order: Order,
    players: Vec<(UserProfile, ScoringEntry)>,
    total: u64,
}

impl Leaderboard {
    /// The board in the order that `sort` says, or else in its own.
    ///
    /// # Errors
    /// If there is no such order, or the store can't be read.
    pub(super) async fn read(
        arena: &Arena,
        board: Board,
        sort: Option<&str>,
        limit: usize,
    ) -> PageResult<Option<Self>> {
        let metrics = arena.engine.scoring().metrics(&board);
        let Some((board, order)) = orders(arena, vec![board], sort)?.pop() else { return Ok(None) };
        let page = arena.engine.list_board(&board, order, 0, limit).await?;
        Ok(Some(Leaderboard { metrics, order, players: page.items, total: page.total }))
    }

    /// Whether anybody is on it.
    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The picture, where there can be one, and the table.
    pub(super) fn both(&self, title: &str, path: &str, query: &Query) -> Markup {
        html! {
            div.beside {
                @if let Some(picture) = self.picture(title) { (picture) }
                div { (self.table(path, query)) }
            }
        }
    }

    /// Security and utility against each other, where the board measures both.
    fn picture(&self, title: &str) -> Option<Markup> {
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
        let picture = scatter(&points, &Axes { title, x: "security →", y: "utility ↑" })?;
        Some(html! {
            figure {
                div.scroll tabindex="0" { (PreEscaped(picture.to_element())) }
                figcaption { "Each dot is a player, the lines are 95 % intervals. Nobody beats those on the orange steps in both." }
            }
        })
    }

    /// The table, with links at `path` that sort it.
    fn table(&self, path: &str, query: &Query) -> Markup {
        html! {
            div.scroll tabindex="0" { table {
                thead { tr {
                    th.number scope="col" { "#" }
                    th scope="col" { "Player" }
                    th.number scope="col" { "Games" }
                    @for metric in self.metrics { (self.heading(metric, path, query)) }
                } }
                tbody {
                    @for (place, (profile, entry)) in (1_usize..).zip(&self.players) {
                        tr {
                            td.number { (place) }
                            td { (player(profile)) }
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
            @if self.total > self.players.len() as u64 { p.more { "The first " (self.players.len()) " of " (self.total) " players." } }
        }
    }

    /// The head of a column: sorts by it, and by the lower end of its interval where there is one.
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

fn interval(entry: &ScoringEntry, key: &str) -> Markup {
    html! {
        @if let Some([low, high]) = entry.intervals.get(key) {
            small.interval title="95 % interval" { " " (number_of(*low)) " … " (number_of(*high)) }
        }
    }
}

/// Somebody's name, and what they say of themselves.
pub(super) fn player(profile: &UserProfile) -> Markup {
    html! {
        a href=(user_path(profile.user_id.as_str())) { (cut(seen::name_of(&profile.user_id, Some(profile)), 28)) }
        @if let Some(model) = &profile.model { " " small { (cut(model.as_str(), 28)) } }
        @if profile.is_benchmark { " " span.badge { "house" } }
    }
}

/// Where a user's page is.
pub(super) fn user_path(user: &str) -> String {
    format!("/users/{}", percent_encoding::utf8_percent_encode(user, percent_encoding::NON_ALPHANUMERIC))
}
