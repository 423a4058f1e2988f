//! Leaderboards: a scatter plot of utility and security, and a sortable table of the same players. A rank is a range:
//! players whose 95 % intervals overlap can't be ordered, so they share ranks.

use arena_model::{Board, Metric, MetricFormat, MetricKind, Order, ScoringEntry, UserProfile};
use arena_report::{Axes, DotLink, Estimate, Interval, Picture, Point, listed, printable, scatter};
use maud::{Markup, PreEscaped, html};

use super::measures::Measures;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::request::Query;
use crate::routes::orders;
use crate::web::layout::{cut, player_name};
use crate::web::session::redacted::name_of;
use crate::web::{PageResult, components, with_query};

/// Maximum number of players in a plot. The dots of more players would overlap.
pub(crate) const DOTS: usize = 30;

/// Number of top players among which players of one kind are searched.
const SEARCHED: usize = 1000;

/// Maximum number of names in the sentence about the lead.
const LEADERS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlayerKind {
    All,
    /// Players who name no model and aren't benchmark models.
    Humans,
    /// Players who name a model or program, and benchmark models.
    Models,
    /// Players that the administrator has marked as benchmark models.
    Benchmarks,
}

impl PlayerKind {
    pub(crate) const ALL: [PlayerKind; 4] =
        [PlayerKind::All, PlayerKind::Humans, PlayerKind::Models, PlayerKind::Benchmarks];

    /// Parses the parameter `players` of a query.
    ///
    /// # Errors
    /// If the value is unknown.
    pub(crate) fn of(query: &Query) -> PageResult<PlayerKind> {
        let wanted = query.get("players").unwrap_or("");
        let found = PlayerKind::ALL.into_iter().find(|kind| kind.name() == wanted);
        let unknown = || ApiError::bad_request("INVALID_FIELD", "players must be one of: humans, models, benchmark");
        Ok(found.ok_or_else(unknown)?)
    }

    /// Returns the parameter's value; empty for all players.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PlayerKind::All => "",
            PlayerKind::Humans => "humans",
            PlayerKind::Models => "models",
            PlayerKind::Benchmarks => "benchmark",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            PlayerKind::All => "All players",
            PlayerKind::Humans => "People",
            PlayerKind::Models => "Models and programs",
            PlayerKind::Benchmarks => "Benchmark models",
        }
    }

    fn counts(self, profile: &UserProfile) -> bool {
        match self {
            PlayerKind::All => true,
            PlayerKind::Humans => !profile.is_benchmark && profile.model.is_none(),
            PlayerKind::Models => profile.is_benchmark || profile.model.is_some(),
            PlayerKind::Benchmarks => profile.is_benchmark,
        }
    }
}

/// The top rows of a leaderboard.
pub(crate) struct Leaderboard {
    measures: Measures,
    order: Order,
    players: Vec<(UserProfile, ScoringEntry)>,
    total: u64,
    kind: PlayerKind,
}

impl Leaderboard {
    /// Reads the board, sorted by `sort` or by the lower end of its first measure. `None` if the board has no measures.
    ///
    /// # Errors
    /// If the order is unknown, or the store can't be read.
    pub(crate) async fn read(
        arena: &Arena,
        board: Board,
        sort: Option<&str>,
        (kind, limit): (PlayerKind, usize),
    ) -> PageResult<Option<Self>> {
        let measures = Measures::of(arena, &board);
        let Some(first) = measures.metrics.first().map(|metric| format!("{}:low", metric.key)) else { return Ok(None) };
        let sort = sort.filter(|sort| !sort.is_empty()).or(Some(&first));
        let Some((board, order)) = orders(arena, vec![board], sort)?.pop() else { return Ok(None) };
        let step = if kind == PlayerKind::All { limit } else { 100 };
        let (mut players, mut searched, mut total) = (Vec::new(), 0, 0);
        while players.len() < limit && searched < SEARCHED {
            let page = arena.engine.list_board(&board, order, searched as u64, step).await?;
            (searched, total) = (searched + page.items.len(), page.total);
            let is_last = page.items.len() < step || kind == PlayerKind::All;
            let found = page.items.into_iter().filter(|(profile, _)| kind.counts(profile));
            players.extend(found.map(|(profile, entry)| (profile, measures.scaled(entry))));
            if is_last {
                break;
            }
        }
        players.truncate(limit);
        Ok(Some(Leaderboard { measures, order, players, total, kind }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// Renders the table, and the plot if there is one.
    pub(crate) fn both(&self, title: &str, path: &str, query: &Query) -> Markup {
        html! {
            div.beside {
                @if let Some(picture) = self.picture(title) {
                    figure {
                        div.scroll tabindex="0" { (PreEscaped(picture.to_element())) }
                        figcaption { "A dot is a player" @if self.has_intervals() { ", with its 95 % intervals" } ". The upper right is best. No player beats those on the orange steps in both measures." }
                    }
                }
                div { p { (self.lead()) } (self.table(path, query)) }
            }
        }
    }

    /// Plots security against utility, or the first two metrics of a scripted strategy against each other. `None` if the
    /// board has neither, or no players.
    pub(crate) fn picture(&self, title: &str) -> Option<Picture> {
        let find = |part: &str| self.measures.metrics.iter().find(|metric| metric.key.ends_with(part));
        let (x, y, axes) = match (find(":security"), find(":utility"), &self.measures.metrics[..]) {
            (_, _, [x, y, ..]) if x.kind == MetricKind::Given => {
                (x, y, [format!("{} →", x.label), format!("{} ↑", y.label)])
            }
            (Some(x), Some(y), _) => (x, y, ["security →".to_owned(), "utility ↑".to_owned()]),
            _ => return None,
        };
        let range = match x.kind {
            MetricKind::Mean { low, high } => Some((low, high)),
            MetricKind::Streak | MetricKind::Given => None,
        };
        let measured = |entry: &ScoringEntry, key: &str| {
            let (value, [low, high]) = (*entry.metrics.get(key)?, ends(entry, key)?);
            value.is_finite().then_some(Estimate { value, interval: Interval { low, high } })
        };
        let points: Vec<Point> = (self.players.iter().take(DOTS))
            .filter_map(|(profile, entry)| {
                let name = name_of(&profile.user_id, Some(profile)).to_owned();
                let model = profile.model.as_ref().map_or_else(String::new, |model| format!(", {}", model.as_str()));
                let link = DotLink { path: user_path(profile.user_id.as_str()), tooltip: format!("{name}{model}") };
                Some(Point { name, link: Some(link), x: measured(entry, x.key)?, y: measured(entry, y.key)? })
            })
            .collect();
        scatter(&points, &Axes { title, x: &axes[0], y: &axes[1], range })
    }

    /// Returns the players' ids and names, in the order of the table.
    pub(crate) fn players(&self) -> impl Iterator<Item = (&str, &str)> {
        self.players.iter().map(|(profile, _)| (profile.user_id.as_str(), name_of(&profile.user_id, Some(profile))))
    }

    /// Returns a sentence on the lead and its certainty.
    pub(crate) fn lead(&self) -> String {
        let ranks = self.ranks();
        let first: Vec<String> = (ranks.iter().zip(self.players()))
            .filter(|((best, _), _)| *best == 1)
            .map(|(_, (_, name))| printable(name).chars().take(28).collect())
            .collect();
        let measure = self.measures.metrics.iter().find(|metric| metric.key == self.order.metric);
        let measure = measure.map_or_else(String::new, |metric| metric.label.to_lowercase());
        let Some(leader) = first.first() else { return "No players yet.".to_owned() };
        match (first.len(), self.has_intervals()) {
            (1, _) if self.players.len() == 1 => format!("{leader} is the only player so far."),
            (1, true) if self.is_cut() => {
                format!("{leader} leads in {measure}: the 95 % interval lies above those of the next players.")
            }
            (1, true) => format!("{leader} leads in {measure}: the 95 % interval lies above all others."),
            (1, false) => format!("{leader} leads in {measure}."),
            (many, false) if many <= LEADERS => format!("{} share the lead in {measure}.", listed(&first)),
            (many, false) => format!("{many} players share the lead in {measure}."),
            (many, true) if many <= LEADERS => {
                format!("{} may lead in {measure}: their 95 % intervals overlap.", listed(&first))
            }
            (many, true) => {
                format!("No clear leader in {measure} yet: the 95 % intervals of {many} players overlap.")
            }
        }
    }

    /// True if the order's metric has intervals.
    fn has_intervals(&self) -> bool {
        self.players.iter().any(|(_, entry)| entry.intervals.contains_key(self.order.metric))
    }

    /// Renders the table of players. The column headings link to `path` with another order.
    pub(crate) fn table(&self, path: &str, query: &Query) -> Markup {
        let ranks = self.ranks();
        html! {
            div.scroll tabindex="0" { table.ranks {
                thead { tr {
                    th.number scope="col" { "Rank" }
                    th scope="col" { "Player" }
                    @if self.measures.has_outcomes() { th.number scope="col" { abbr title="Games won, drawn and lost" { "W–D–L" } } }
                    @for metric in &self.measures.metrics { (self.heading(metric, path, query)) }
                    th.number.games scope="col" { "Games" }
                } }
                tbody {
                    @for ((best, worst), (profile, entry)) in ranks.iter().zip(&self.players) {
                        tr {
                            td.number { (rank_text(*best, *worst)) }
                            td.name { (player(profile)) small.below.played { (counted(entry.games_played)) } }
                            @if self.measures.has_outcomes() { td.number { (outcomes(entry)) } }
                            @for metric in &self.measures.metrics { td.number { (estimate(metric, entry)) } }
                            td.number.games { (entry.games_played) }
                        }
                    }
                }
            } }
            @if ranks.iter().any(|(best, worst)| best != worst) {
                p.more { "Players share ranks if their 95 % intervals overlap or their scores are equal." @if self.is_cut() { " Ranks compare the players listed here." } }
            }
            @if self.kind != PlayerKind::All { p.more { (searched(self.total)) } }
            @if self.kind == PlayerKind::All && self.is_cut() { p.more { "Top " (self.players.len()) " of " (self.total) " players." } }
        }
    }

    /// True if the board has more players than the table, or may have more of the wanted kind.
    fn is_cut(&self) -> bool {
        self.total > self.players.len() as u64
    }

    /// Returns the ranks that the intervals permit, as the best and the worst rank of each player in the table.
    fn ranks(&self) -> Vec<(usize, usize)> {
        let ends: Vec<Option<[f64; 2]>> =
            self.players.iter().map(|(_, entry)| ends(entry, self.order.metric)).collect();
        ranks_of(&ends)
    }

    /// Renders a column heading that sorts by the column's metric, or by the lower end of its interval if it has one.
    fn heading(&self, metric: &Metric, path: &str, query: &Query) -> Markup {
        let is_order = self.order.metric == metric.key;
        let has_interval = matches!(metric.kind, MetricKind::Mean { .. });
        let sort = if has_interval { format!("{}:low", metric.key) } else { metric.key.to_owned() };
        html! {
            th.number scope="col" aria-sort=[is_order.then_some("descending")] {
                span.estimate[has_interval] {
                    @if let MetricKind::Mean { low, high } = metric.kind { (scale(metric, low, high)) }
                    a href=(with_query(path, query, "sort", &sort)) { (metric.label) @if is_order { " ↓" } }
                }
            }
        }
    }
}

/// Returns a player's interval of a metric. Without one, as for a streak, both ends are the value.
pub(crate) fn ends(entry: &ScoringEntry, key: &str) -> Option<[f64; 2]> {
    let value = *entry.metrics.get(key)?;
    Some(entry.intervals.get(key).copied().unwrap_or([value, value]))
}

/// Returns the best and the worst rank of each of these intervals. An interval ranks below those that lie entirely
/// above it. A missing interval may have any rank.
fn ranks_of(ends: &[Option<[f64; 2]>]) -> Vec<(usize, usize)> {
    let count = |is_counted: &dyn Fn([f64; 2]) -> bool| ends.iter().flatten().filter(|ends| is_counted(**ends)).count();
    ends.iter()
        .map(|own| match own {
            Some([low, high]) => {
                (1 + count(&|[other, _]| other > *high), ends.len() - count(&|[_, other]| other < *low))
            }
            None => (1, ends.len()),
        })
        .collect()
}

/// Formats a range of ranks: `2`, or `1–3`.
pub(crate) fn rank_text(best: usize, worst: usize) -> String {
    if best == worst { best.to_string() } else { format!("{best}–{worst}") }
}

/// Formats a number of games: `1 game`, or `12 games`.
pub(crate) fn counted(games: u64) -> String {
    if games == 1 { "1 game".to_owned() } else { format!("{games} games") }
}

/// Renders the ends and the middle of a column's scale, which all rows share.
fn scale(metric: &Metric, low: f64, high: f64) -> Markup {
    let text = |value: f64| metric_text(metric, value).replace(".00", "");
    html! { span.axis aria-hidden="true" { @for value in [low, f64::midpoint(low, high), high] { span { (text(value)) } } } }
}

/// Formats the numbers of games won, drawn and lost.
pub(crate) fn outcomes(entry: &ScoringEntry) -> String {
    entry.outcomes.map_or_else(|| "–".to_owned(), |[won, drawn, lost]| format!("{won}–{drawn}–{lost}"))
}

/// Renders a metric of a player: the interval as a picture, the value, and the ends of the interval.
pub(crate) fn estimate(metric: &Metric, entry: &ScoringEntry) -> Markup {
    let Some(value) = entry.metrics.get(metric.key).copied() else { return html! { "–" } };
    let text = |value: f64| metric_text(metric, value);
    let Some([low, high]) = entry.intervals.get(metric.key).copied() else { return html! { b { (text(value)) } } };
    html! {
        span.estimate {
            @if let MetricKind::Mean { low: least, high: most } = metric.kind {
                @let at = |value: f64| (value - least) / (most - least);
                (components::interval(at(low), at(value), at(high)))
            }
            span { b { (text(value)) } small.ends title="95 % interval" { (text(low)) " to " (text(high)) } }
        }
    }
}

/// Formats a value of a metric, such as `0.72`, `72 %` or `3`.
pub(crate) fn metric_text(metric: &Metric, value: f64) -> String {
    match metric.format {
        MetricFormat::Percent => format!("{:.0} %", value * 100.0),
        MetricFormat::Number => decimal(value),
        MetricFormat::Count => format!("{value:.0}"),
    }
}

/// Formats a number with two decimals and a minus sign instead of a hyphen.
pub(crate) fn decimal(value: f64) -> String {
    // The sum with 0 has no sign if the rounded number is 0.
    let rounded = (value * 100.0).round() / 100.0 + 0.0;
    format!("{rounded:.2}").replace('-', "−")
}

/// Returns the sentence with the number of players among which players of one kind are searched.
fn searched(total: u64) -> String {
    match total > SEARCHED as u64 {
        true => format!("Searched among the top {SEARCHED} of all {total} players."),
        false => format!("Searched among all {total} players."),
    }
}

/// Renders a player's name, with the model and a badge.
pub(crate) fn player(profile: &UserProfile) -> Markup {
    html! {
        a href=(user_path(profile.user_id.as_str())) { (player_name(name_of(&profile.user_id, Some(profile)), 28)) }
        @if let Some(model) = &profile.model { small.below { (cut(model.as_str(), 28)) } }
        @if profile.is_benchmark { " " span.badge { "benchmark" } }
    }
}

pub(crate) fn user_path(user: &str) -> String {
    format!("/users/{}", encoded(user))
}

pub(crate) fn encoded(user: &str) -> String {
    percent_encoding::utf8_percent_encode(user, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_ranges_that_intervals_permit() {
        let one = |value: f64| Some([value, value]);
        for (ends, ranks) in [
            (vec![], ""),
            (vec![Some([0.8, 1.0]), Some([0.5, 0.7]), Some([0.1, 0.3])], "1 2 3"),
            (vec![Some([0.5, 1.0]), Some([0.4, 0.6]), Some([0.1, 0.3])], "1–2 1–2 3"),
            (vec![Some([0.5, 1.0]), Some([0.2, 0.6]), Some([0.1, 0.3])], "1–2 1–3 2–3"),
            (vec![one(3.0), one(2.0), one(2.0), one(0.0)], "1 2–3 2–3 4"),
            (vec![one(3.0), None], "1–2 1–2"),
        ] {
            let texts: Vec<String> = ranks_of(&ends).into_iter().map(|(best, worst)| rank_text(best, worst)).collect();
            assert_eq!(texts.join(" "), ranks, "{ends:?}");
        }
    }

    #[test]
    fn numbers_have_two_decimals_and_a_minus_sign() {
        assert_eq!([1.0, 0.333, -0.5, -0.001].map(decimal), ["1.00", "0.33", "−0.50", "0.00"]);
    }

    #[test]
    fn a_short_leaderboard_is_searched_completely() {
        assert_eq!(searched(12), "Searched among all 12 players.");
        assert_eq!(searched(1000), "Searched among all 1000 players.");
        assert_eq!(searched(1001), "Searched among the top 1000 of all 1001 players.");
    }
}
