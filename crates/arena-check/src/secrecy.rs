//! Whether anybody learns what another player alone was told: pairs of games that differ in one player's secret and are played alike.
//!
//! Such twins are found in two ways. Two deals are taken, and what the one remembers for a seat is put in the place of what the other
//! does; where that changes what the player there is told in private, it is a secret. Or so many deals are made that two
//! are the same to everybody but one player. Then both are played by the same actions, and whatever the others are shown is compared.
//!
//! What an action tells of a secret may be what the challenge is about, as the outcome of a guess is; that is advice. What is told
//! before anybody has acted isn't, nor what a refusal tells: it costs nothing, so it can be asked again and again.

use std::collections::BTreeMap;

use arena_model::{ChallengeType, Seat};
use serde_json::Value;

use crate::play::{Outcome, Said, Table};
use crate::words::{Words, pick};
use crate::{Finding, Plan};

const CHECK: &str = "secrecy";

/// Deals whose parts are put into another.
const SPLICES: u32 = 8;

/// Twins that are played, at most.
const TWINS: usize = 24;

/// Games that are played with each pair of twins.
const GAMES: u32 = 4;

/// Actions in each of these.
const ACTIONS: u32 = 40;

/// Two games that look the same to all but one player.
struct Twins<'c> {
    tables: [Table<'c>; 2],
    /// The player who was told something else.
    seat: Seat,
}

/// Looks for twins and plays them.
pub fn check(challenge: &dyn ChallengeType, plan: &Plan) -> Vec<Finding> {
    let mut found = Found::default();
    let mut twins = spliced(challenge, plan, &mut found);
    if twins.is_empty() && found.wrong.is_empty() {
        twins = dealt(challenge, plan);
    }
    for (number, pair) in twins.iter().enumerate() {
        for game in 0..GAMES {
            compare(challenge, pair, plan, &format!("secrecy/{number}/{game}"), &mut found);
        }
    }
    found.findings(twins.len(), tells_in_private(challenge, plan))
}

/// What was found, each thing once.
#[derive(Default)]
struct Found {
    wrong: BTreeMap<String, Vec<String>>,
    advice: BTreeMap<String, Vec<String>>,
    games: u32,
}

impl Found {
    fn findings(self, twins: usize, is_secretive: bool) -> Vec<Finding> {
        let wrong = self.wrong.into_iter().map(|(what, shown)| Finding::wrong(CHECK, what).shown_by(shown));
        let advice = self.advice.into_iter().map(|(what, shown)| Finding::advice(CHECK, what).shown_by(shown));
        let mut findings: Vec<Finding> = wrong.chain(advice).collect();
        if findings.iter().any(|finding| finding.verdict == crate::Verdict::Wrong) {
            return findings;
        }
        if twins > 0 {
            let what = format!(
                "{} games were played twice, with another secret for one player: the others couldn't tell which before an \
                 action that is about it",
                self.games
            );
            findings.insert(0, Finding::fine(CHECK, what));
        } else if is_secretive {
            let what = "no two deals were found that are the same to all but one player, so it couldn't be tried whether secrets \
                        are kept: keep what is a seat's in a list with a place for each seat";
            findings.push(Finding::advice(CHECK, what));
        } else {
            findings.push(Finding::fine(CHECK, "nobody is told anything in private that another deal would change"));
        }
        findings
    }
}

/// Whether players are told in private what differs from deal to deal.
fn tells_in_private(challenge: &dyn ChallengeType, plan: &Plan) -> bool {
    let deals = (0..SPLICES).filter_map(|deal| Table::seated(challenge, &seed(plan, deal)).ok());
    let told: Vec<Vec<Said>> =
        deals.map(|table| table.said.into_iter().filter(|said| said.to.is_some()).collect()).collect();
    told.iter().any(|said| *said != told[0])
}

fn seed(plan: &Plan, deal: u32) -> arena_model::Seed {
    plan.seed.derive(&format!("secrecy/deal/{deal}"))
}

/// What a player hears, and nobody else.
fn private<'t>(table: &'t Table<'_>, seat: Seat) -> Vec<&'t Said> {
    table.said.iter().filter(|said| said.to == Some(seat)).collect()
}

/// Twins that are made by putting what one deal remembers for a seat into another deal: before anybody has joined, or, where it is dealt
/// later, after it.
fn spliced<'c>(challenge: &'c dyn ChallengeType, plan: &Plan, found: &mut Found) -> Vec<Twins<'c>> {
    let opened = |deal| Table::opened(challenge, &seed(plan, deal)).ok();
    let (Some(base), Ok(seated)) = (opened(0), Table::seated(challenge, &seed(plan, 0))) else { return Vec::new() };
    let mut twins = Vec::new();
    for deal in 1..SPLICES {
        let Some(other) = opened(deal) else { continue };
        for (seat, path) in places(&base, &other) {
            let Some(twin) = splice(&base, &other, &path).and_then(|twin| twin.filled().ok()) else { continue };
            if private(&twin, seat) == private(&seated, seat) {
                continue;
            }
            match first_heard(&seated, &twin, seat, 0) {
                None => twins.push(Twins { tables: [seated.clone(), twin], seat }),
                Some((listener, shown)) => {
                    let what = format!(
                        "before anybody has acted, player {} is told what only player {} should know (`{path}`)",
                        listener.number(),
                        seat.number()
                    );
                    found.wrong.entry(what).or_insert(shown);
                }
            }
        }
        if !twins.is_empty() || !found.wrong.is_empty() {
            continue;
        }
        let Ok(other) = Table::seated(challenge, &seed(plan, deal)) else { continue };
        for (seat, path) in places(&seated, &other) {
            if private(&seated, seat) != private(&other, seat)
                && let Some(twin) = splice(&seated, &other, &path)
            {
                twins.push(Twins { tables: [seated.clone(), twin], seat });
            }
        }
    }
    // Of many, some of each deal and seat.
    let step = twins.len().div_ceil(TWINS).max(1);
    twins.into_iter().step_by(step).collect()
}

/// The places in what is remembered that belong to one seat and differ between two deals.
fn places(a: &Table<'_>, b: &Table<'_>) -> Vec<(Seat, String)> {
    let [a_state, b_state]: [Value; 2] =
        [a, b].map(|table| serde_json::from_str(&table.session.state).unwrap_or_default());
    let invites: Vec<String> = a.session.facts.invites.iter().map(ToString::to_string).collect();
    let mut found = Vec::new();
    look(&a_state, &b_state, String::new(), &invites, &mut found);
    found
}

fn look(a: &Value, b: &Value, path: String, invites: &[String], found: &mut Vec<(Seat, String)>) {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) if a.len() == invites.len() && b.len() == a.len() => {
            let differing = (0..a.len()).filter(|seat| a[*seat] != b[*seat]);
            found.extend(differing.map(|seat| (Seat(seat), format!("{path}/{seat}"))));
        }
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let Some(other) = b.get(key).filter(|other| *other != value) else { continue };
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                let seat = invites.iter().position(|invite| invite == key);
                let seat = seat.or_else(|| key.parse().ok().filter(|seat| a.len() == invites.len() && *seat < a.len()));
                match seat {
                    Some(seat) => found.push((Seat(seat), path)),
                    None => look(value, other, path, invites, found),
                }
            }
        }
        _ => {}
    }
}

/// A game with what another remembers at a place.
fn splice<'c>(base: &Table<'c>, other: &Table<'_>, path: &str) -> Option<Table<'c>> {
    let mut state: Value = serde_json::from_str(&base.session.state).ok()?;
    let other: Value = serde_json::from_str(&other.session.state).ok()?;
    *state.pointer_mut(path)? = other.pointer(path)?.clone();
    let text = state.to_string();
    base.challenge.restore(&base.session.facts, &text).ok()?;
    let mut twin = base.clone();
    twin.session.state = text;
    Some(twin)
}

/// Twins among many deals: the same to all but one player.
fn dealt<'c>(challenge: &'c dyn ChallengeType, plan: &Plan) -> Vec<Twins<'c>> {
    let mut first: BTreeMap<(Seat, String), Table<'c>> = BTreeMap::new();
    let mut twins: Vec<Twins<'c>> = Vec::new();
    for deal in 0..plan.deals {
        let Ok(table) = Table::seated(challenge, &seed(plan, deal)) else { continue };
        for seat in (0..table.seats()).map(Seat) {
            let others = (0..table.seats()).map(Seat).filter(|other| *other != seat);
            let heard: Vec<String> =
                others.flat_map(|other| table.heard(other, 0).map(move |said| format!("{other:?} {said:?}"))).collect();
            match first.entry((seat, heard.join("\n"))) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(table.clone());
                }
                std::collections::btree_map::Entry::Occupied(entry) => {
                    let before = entry.get();
                    let count = twins.iter().filter(|twins| twins.seat == seat).count();
                    if private(before, seat) != private(&table, seat) && count < TWINS / table.seats() {
                        twins.push(Twins { tables: [before.clone(), table.clone()], seat });
                    }
                }
            }
        }
    }
    twins
}

/// The first thing since `from` that anybody but `secret` is told otherwise in the twin.
fn first_heard(a: &Table<'_>, b: &Table<'_>, secret: Seat, from: usize) -> Option<(Seat, Vec<String>)> {
    let listeners = (0..a.seats()).map(Seat).filter(|seat| *seat != secret);
    for listener in listeners {
        let [once, twin]: [Vec<&Said>; 2] = [a, b].map(|table| table.heard(listener, from).collect());
        if once != twin {
            let at = once.iter().zip(&twin).position(|(a, b)| a != b).unwrap_or(once.len().min(twin.len()));
            let line = |heard: &[&Said]| heard.get(at).map_or("nothing more".to_owned(), |said| said.describe());
            return Some((
                listener,
                vec![format!("in one game:   {}", line(&once)), format!("in its twin: {}", line(&twin))],
            ));
        }
    }
    None
}

/// Plays twins by the same actions, until something differs.
fn compare(challenge: &dyn ChallengeType, twins: &Twins<'_>, plan: &Plan, purpose: &str, found: &mut Found) {
    let words = Words::of(challenge.metadata());
    let mut rng = plan.seed.derive(purpose).rng("actions");
    let [mut a, mut b] = twins.tables.clone();
    let secret = twins.seat;
    let everybody: Vec<Seat> = (0..a.seats()).map(Seat).collect();
    found.games += 1;
    for _ in 0..ACTIONS {
        let seat = *pick(&everybody, &mut rng).expect("a challenge has seats");
        let action = words.draw(&a, seat, &mut rng);
        let from = [&a, &b].map(|table| table.said.len());
        let outcomes = [a.act(&action), b.act(&action)];
        // A player's own actions may give away what it likes.
        let is_own = seat == secret;
        match &outcomes {
            [Outcome::Taken, Outcome::Taken] => {
                if a.has_ended() || b.has_ended() {
                    return;
                }
                debug_assert_eq!(from[0], from[1], "twins have heard as much until something differs");
                let Some((listener, shown)) = first_heard(&a, &b, secret, from[0]) else { continue };
                if !is_own {
                    let whom = if listener == seat { "whoever sends it" } else { "other players" };
                    let what = format!(
                        "`{}` tells {whom} something of what another player alone was told; that is fine if it is what the \
                         action is for",
                        action.method
                    );
                    found.advice.entry(what).or_insert([vec![action.describe()], shown].concat());
                }
                return;
            }
            [once, twin] if once == twin => {}
            [once, twin] if !is_own && ![once, twin].iter().any(|outcome| matches!(outcome, Outcome::Failed(_))) => {
                let what = format!(
                    "whether `{}` is refused, or how, depends on what another player alone was told: a refusal costs nothing, so \
                     the secret can be found by trying",
                    action.method
                );
                let shown =
                    vec![action.describe(), format!("in one game:   {once:?}"), format!("in its twin: {twin:?}")];
                found.wrong.entry(what).or_insert(shown);
                return;
            }
            _ => return,
        }
    }
}
