//! A user's latest games: scores over time and head-to-head results. The number of games is bounded, to limit the cost
//! of the page.

use std::collections::BTreeMap;

use arena_games::ScoreKind;
use arena_model::{GameResult, PlayerStandings, Score, Seat, Session, UserId, UserProfile};
use arena_report::{Curve, Estimate, Interval, Picture, TimeAxis, over_time};
use maud::{Markup, html};

use crate::arena::Arena;
use crate::web::PageResult;
use crate::web::boards::board::{decimal, ends, player};
use crate::web::boards::measures::{Measures, kind_of};
use crate::web::components::empty;
use crate::web::layout::cut;

/// Number of latest games that a user's page covers.
const GAMES: usize = 200;

/// Maximum number of listed opponents.
const OPPONENTS: usize = 20;

pub(crate) struct History {
    /// The user's latest sessions, newest first.
    sessions: Vec<Session>,
    /// Number of all games of the user.
    total: u64,
}

#[derive(Default)]
struct Against {
    games: u32,
    /// Number of games in which the user had more utility than the opponent.
    ahead: u32,
    level: u32,
    behind: u32,
    own: Score,
    theirs: Score,
}

impl History {
    /// Reads a user's latest games; `None` if the user is unknown.
    pub(crate) async fn read(arena: &Arena, user: &UserId) -> PageResult<Option<History>> {
        let played = arena.engine.list_played(user, 0, GAMES).await?;
        Ok(played.map(|page| History { sessions: page.items, total: page.total }))
    }

    /// Returns the rated results, oldest first, each with the user's seat.
    fn results<'h>(&'h self, user: &'h UserId) -> impl Iterator<Item = (GameResult<'h>, usize)> {
        self.sessions.iter().rev().filter_map(move |session| {
            let result = GameResult::of(session)?;
            let seat = result.users.iter().position(|other| *other == Some(user))?;
            Some((result, seat))
        })
    }

    /// True if the user had secrets in one of these games.
    fn has_secrets(&self, user: &UserId) -> bool {
        self.results(user).any(|(result, _)| kind_of(result.challenge) == ScoreKind::Secrets)
    }

    /// Plots the user's scores after each of these games, computed from these games only. The security is left out if
    /// the user had no secrets.
    pub(crate) fn picture(&self, arena: &Arena, user: &UserId) -> Option<Picture> {
        let scoring = arena.engine.scoring();
        let board = match scoring.has_global() {
            true => arena.engine.global_board(),
            false => arena.engine.main_boards(self.results(user).last()?.0.challenge).into_iter().next()?,
        };
        let measures = Measures::of(arena, &board);
        let measures = if self.has_secrets(user) { measures } else { measures.without_secrets() };
        let mut curves: Vec<(&str, Curve)> = [":security", ":utility"]
            .iter()
            .filter_map(|end| measures.metrics.iter().find(|metric| metric.key.ends_with(end)))
            .map(|metric| (metric.key, Curve { name: metric.label.to_owned(), values: Vec::new() }))
            .collect();
        let mut standings = PlayerStandings::new();
        for (result, seat) in self.results(user) {
            scoring.count(&result, Seat(seat), standings.entry(result.board.to_string()).or_default());
            let Some(entry) = scoring.entry(&board, &standings) else { continue };
            let entry = measures.scaled(entry);
            for (key, curve) in &mut curves {
                let Some(value) = entry.metrics.get(key).copied().filter(|value| value.is_finite()) else { continue };
                let [low, high] = ends(&entry, key).unwrap_or([value, value]);
                curve.values.push(Estimate { value, interval: Interval { low, high } });
            }
        }
        let curves: Vec<Curve> = curves.into_iter().map(|(_, curve)| curve).collect();
        let title = match self.is_whole() {
            true => "Scores after each game, with 95 % intervals".to_owned(),
            false => format!("Scores over the latest {GAMES} games, with 95 % intervals"),
        };
        over_time(&TimeAxis { title: &title, x: "games" }, &curves)
    }

    /// True if the history covers all games of the user.
    pub(crate) fn is_whole(&self) -> bool {
        self.total <= self.sessions.len() as u64
    }

    /// Renders the table of results against each opponent, most frequent opponents first.
    pub(crate) async fn head_to_head(&self, arena: &Arena, user: &UserId) -> PageResult<Markup> {
        let mut against: BTreeMap<&UserId, Against> = BTreeMap::new();
        for (result, seat) in self.results(user) {
            for (other, opponent) in result.users.iter().enumerate().filter(|(other, _)| *other != seat) {
                let (Some(opponent), Some(own), Some(theirs)) =
                    (opponent, result.scores.get(seat), result.scores.get(other))
                else {
                    continue;
                };
                let met = against.entry(opponent).or_default();
                met.games += 1;
                *match own.utility.total_cmp(&theirs.utility) {
                    std::cmp::Ordering::Greater => &mut met.ahead,
                    std::cmp::Ordering::Equal => &mut met.level,
                    std::cmp::Ordering::Less => &mut met.behind,
                } += 1;
                for (sum, score) in [(&mut met.own, own), (&mut met.theirs, theirs)] {
                    sum.security += score.security;
                    sum.utility += score.utility;
                }
            }
        }
        let mut met: Vec<(&UserId, Against)> = against.into_iter().collect();
        met.sort_by(|(one, a), (other, b)| b.games.cmp(&a.games).then_with(|| one.cmp(other)));
        let others = met.len().saturating_sub(OPPONENTS);
        met.truncate(OPPONENTS);
        let ids: Vec<UserId> = met.iter().map(|(id, _)| (*id).clone()).collect();
        let profiles = arena.engine.find_profiles(&ids).await?;
        Ok(table(&met, &profiles, (others, self.is_whole(), self.has_secrets(user))))
    }
}

fn table(
    met: &[(&UserId, Against)],
    profiles: &BTreeMap<UserId, UserProfile>,
    (others, is_whole, has_secrets): (usize, bool, bool),
) -> Markup {
    let mean = |sum: f64, met: &Against| decimal(sum / f64::from(met.games));
    html! {
        @if met.is_empty() {
            (empty("No rated games against named players yet.", Some(("/challenges", "Play a game"))))
        } @else {
            div.scroll tabindex="0" { table.stacked.met {
                thead { tr {
                    th scope="col" { "Opponent" } th.number scope="col" { "Games" } th scope="col" { "Ahead, level, behind" }
                    th.number scope="col" { "Utility" } @if has_secrets { th.number scope="col" { "Security" } }
                } }
                tbody { @for (id, met) in met { tr {
                    td { @match profiles.get(*id) { Some(profile) => (player(profile)), None => (cut(id.as_str(), 28)) } }
                    td.number data-label="Games" { (met.games) }
                    td data-label="Ahead, level, behind" { (bar(met)) " " (met.ahead) ", " (met.level) ", " (met.behind) }
                    td.number data-label="Utility" { (mean(met.own.utility, met)) " : " (mean(met.theirs.utility, met)) }
                    @if has_secrets { td.number data-label="Security" { (mean(met.own.security, met)) " : " (mean(met.theirs.security, met)) } }
                } } }
            } }
            p.more {
                "Ahead means more utility than the opponent, and level the same utility. Scores are means, the player's own "
                "first. "
                @if others > 0 { (others) " less frequent opponents are not listed. " }
                @if !is_whole { "Only the latest " (GAMES) " games are counted." }
            }
        }
    }
}

/// Draws the shares of games in which the player was ahead, level and behind. The text beside it has the numbers, so
/// screen readers skip the picture.
fn bar(met: &Against) -> Markup {
    let width = |games: u32| 90.0 * f64::from(games) / f64::from(met.games.max(1));
    let (ahead, level) = (width(met.ahead), width(met.level));
    let parts = [
        (0.0, ahead, "var(--seat-0)"),
        (ahead, level, "var(--line)"),
        (ahead + level, width(met.behind), "var(--seat-1)"),
    ];
    html! {
        svg.shares viewBox="0 0 90 10" width="90" height="10" aria-hidden="true" {
            @for (x, width, fill) in parts {
                rect x=(format!("{x:.1}")) y="0" width=(format!("{width:.1}")) height="10" fill=(fill) {}
            }
        }
    }
}
