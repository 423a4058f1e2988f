//! A leaderboard: as a picture of what it measures twice, and as a table that can be sorted.

use arena_model::{Board, Metric, MetricKind, Order, ScoringEntry, UserProfile};
use arena_report::{Axes, Estimate, Interval, Picture, Point, number_of, scatter};
use maud::{Markup, PreEscaped, html};

use super::layout::cut;
use super::{PageResult, Query, seen, with_query};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::routes::orders;

/// Players in a picture; with more of them nobody can be told from the others.
const DOTS: usize = 30;

/// Places of a board that are looked through for players of one kind.
const LOOKED_THROUGH: usize = 1000;

/// Whose places on a board are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// Everybody's.
    All,
    /// Of those who name no model, and aren't benchmark models.
    Humans,
    /// Of those whom the administrator calls so.
    Benchmarks,
}

impl Who {
    pub(super) const ALL: [Who; 3] = [Who::All, Who::Humans, Who::Benchmarks];

    /// What a query says.
    ///
    /// # Errors
    /// If there are no such players.
    pub(super) fn of(query: &Query) -> PageResult<Who> {
        let wanted = query.get("players").unwrap_or("");
        let found = Who::ALL.into_iter().find(|who| who.name() == wanted);
        let unknown = || ApiError::bad_request("INVALID_FIELD", "players must be one of: humans, benchmark");
        Ok(found.ok_or_else(unknown)?)
    }

    /// In a query; nothing for everybody.
    pub(super) fn name(self) -> &'static str {
        match self {
            Who::All => "",
            Who::Humans => "humans",
            Who::Benchmarks => "benchmark",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Who::All => "All players",
            Who::Humans => "Humans",
            Who::Benchmarks => "Benchmark models",
        }
    }

    fn counts(self, profile: &UserProfile) -> bool {
        match self {
            Who::All => true,
            Who::Humans => !profile.is_benchmark && profile.model.is_none(),
            Who::Benchmarks => profile.is_benchmark,
        }
    }
}

/// The top of a leaderboard.
pub(super) struct Leaderboard {
    metrics: &'static [Metric],
    order: Order,
    players: Vec<(UserProfile, ScoringEntry)>,
    total: u64,
    who: Who,
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
        (who, limit): (Who, usize),
    ) -> PageResult<Option<Self>> {
        let metrics = arena.engine.scoring().metrics(&board);
        let Some((board, order)) = orders(arena, vec![board], sort)?.pop() else { return Ok(None) };
        let step = if who == Who::All { limit } else { 100 };
        let (mut players, mut looked, mut total) = (Vec::new(), 0, 0);
        while players.len() < limit && looked < LOOKED_THROUGH {
            let page = arena.engine.list_board(&board, order, looked as u64, step).await?;
            (looked, total) = (looked + page.items.len(), page.total);
            let is_last = page.items.len() < step || who == Who::All;
            players.extend(page.items.into_iter().filter(|(profile, _)| who.counts(profile)));
            if is_last {
                break;
            }
        }
        players.truncate(limit);
        Ok(Some(Leaderboard { metrics, order, players, total, who }))
    }

    /// Whether anybody is on it.
    pub(super) fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// The picture, where there can be one, and the table.
    pub(super) fn both(&self, title: &str, path: &str, query: &Query) -> Markup {
        html! {
            div.beside {
                @if let Some(picture) = self.picture(title) {
                    figure {
                        div.scroll tabindex="0" { (PreEscaped(picture.to_element())) }
                        figcaption { "Each dot is a player, the lines are 95 % intervals. Nobody beats those on the orange steps in both." }
                    }
                }
                div { (self.table(path, query)) }
            }
        }
    }

    /// Security and utility against each other, where the board measures both.
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

    /// The table, with links at `path` that sort it.
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
            @if self.has_ties() { p.more { "Players with = share a rank: the intervals of what the board is sorted by don't separate them from the first of them." } }
            @if self.who != Who::All { p.more { "Looked for among the first " (LOOKED_THROUGH) " of " (self.total) " players, by place on the board of all." } }
            @if self.who == Who::All && self.total > self.players.len() as u64 { p.more { "The first " (self.players.len()) " of " (self.total) " players." } }
        }
    }

    /// The interval of the metric that the board is sorted by; a streak is known exactly.
    fn sorted_by(&self, entry: &ScoringEntry) -> Option<[f64; 2]> {
        let value = entry.metrics.get(self.order.metric)?;
        Some(entry.intervals.get(self.order.metric).copied().unwrap_or([*value, *value]))
    }

    /// The best rank that intervals allow the player at a place, from 1: one more than there are players whose intervals lie wholly
    /// above. These are before it on the board, whichever end of the interval that is sorted by.
    fn best_rank(&self, place: usize) -> usize {
        let own = self.players.get(place - 1).and_then(|(_, entry)| self.sorted_by(entry));
        let Some([_, high]) = own else { return place };
        let above =
            |(_, entry): &&(UserProfile, ScoringEntry)| self.sorted_by(entry).is_some_and(|[low, _]| low > high);
        1 + self.players[..place - 1].iter().filter(above).count()
    }

    /// The rank of the player at a place, from 1, marked where others share it.
    fn rank(&self, place: usize) -> String {
        let rank = self.best_rank(place);
        let others = (1..=self.players.len()).filter(|other| *other != place);
        let is_shared = others.map(|other| self.best_rank(other)).any(|other| other == rank);
        format!("{rank}{}", if is_shared { "=" } else { "" })
    }

    fn has_ties(&self) -> bool {
        (1..=self.players.len()).any(|place| self.rank(place).ends_with('='))
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
        @if let Some(model) = &profile.model { small.below { (cut(model.as_str(), 28)) } }
        @if profile.is_benchmark { " " span.badge { "house" } }
    }
}

/// Where a user's page is.
pub(super) fn user_path(user: &str) -> String {
    format!("/users/{}", percent_encoding::utf8_percent_encode(user, percent_encoding::NON_ALPHANUMERIC))
}
