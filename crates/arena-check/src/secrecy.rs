//! Whether anybody learns what another player alone was told: pairs of games that differ in one player's secret and are played alike.
//!
//! Such twins are found in two ways. Two deals are taken, and what the one remembers for a seat is put in the place of what the other
//! does; where that changes what the player there is told in private, it is a secret. Or so many deals are made that two
//! are the same to everybody but one player. Then both are played by the same actions, and whatever the others are shown is compared.
//!
//! Before that, many deals are compared: secrets that are the same for all seats, or never change, are none.
//!
//! What an action tells of a secret may be what the challenge is about, as the outcome of a guess is; that is advice. What is told
//! before anybody has acted isn't, nor what a refusal tells: it costs nothing, so it can be asked again and again.

use std::collections::BTreeMap;

use arena_model::Seat;
use serde_json::Value;

use crate::play::{Outcome, Said, Subject, Table};
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

/// How much of what is the same is shown before the place where two texts differ, in characters.
const CONTEXT: usize = 80;

/// Number of repeated deals of a seat from which another seat's deals are taken to follow from them.
const AGAIN: usize = 24;

/// First id number of a session with other ids.
const OTHER_IDS: usize = 1_000_000;

/// Two games that look the same to all but one player.
struct Twins<'c> {
    tables: [Table<'c>; 2],
    /// The player who was told something else.
    seat: Seat,
}

/// Looks for twins and plays them.
pub fn check(subject: Subject<'_>, plan: &Plan) -> Vec<Finding> {
    let mut found = Found::default();
    alike(subject, plan, &mut found);
    let mut twins = spliced(subject, plan, &mut found);
    if twins.is_empty() && !found.tells_early {
        twins = dealt(subject, plan);
    }
    for (number, pair) in twins.iter().enumerate() {
        for game in 0..GAMES {
            compare(subject, pair, plan, &format!("secrecy/{number}/{game}"), &mut found);
        }
    }
    found.findings(twins.len(), tells_in_private(subject, plan))
}

/// What was found, each thing once.
#[derive(Default)]
struct Found {
    wrong: BTreeMap<String, Vec<String>>,
    advice: BTreeMap<String, Vec<String>>,
    games: u32,
    /// Somebody is told another's secret before anybody has acted, so there is no need to look on.
    tells_early: bool,
}

impl Found {
    /// What is kept for one player, and told to others rather than to it, may be meant for them; or sent to the wrong ones.
    fn note_told(&mut self, seated: &Table<'_>, twin: &Table<'_>, seat: Seat, path: &str) {
        let Some((listener, shown)) = first_heard(seated, twin, seat, 0) else { return };
        let all = private(seated, listener) == private(twin, listener);
        let whom = if all { "all are".to_owned() } else { format!("player {} is", listener.number()) };
        let what = format!(
            "before anybody has acted, {whom} told what is kept for player {} (`{path}`), who isn't told in private; that is fine \
             unless it is a secret",
            seat.number()
        );
        self.advice.entry(what).or_insert(shown);
    }

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

/// Compares what is dealt to the seats in many deals.
fn alike(subject: Subject<'_>, plan: &Plan, found: &mut Found) {
    let deals: Vec<Table<'_>> =
        (0..plan.deals).filter_map(|deal| Table::seated(subject, &seed(plan, deal)).ok()).collect();
    let Some(first) = deals.first() else { return };
    let seats: Vec<Seat> = (0..first.seats()).map(Seat).collect();
    let dealt: Vec<Vec<Vec<String>>> = seats.iter().map(|seat| secrets(&deals, *seat)).collect();
    let varies = |seat: Seat| dealt[seat.0].iter().any(|secret| *secret != dealt[seat.0][0]);
    let secretive: Vec<Seat> = seats.iter().copied().filter(|seat| varies(*seat)).collect();
    let told =
        |table: &Table<'_>, seat: Seat| private(table, seat).iter().map(|said| said.describe()).collect::<Vec<_>>();
    if secretive.is_empty() {
        let Ok(elsewhere) = Table::opened_at(subject, &seed(plan, 0), OTHER_IDS).and_then(Table::filled) else {
            return;
        };
        let nameless = |table: &Table<'_>, seat: Seat| -> Vec<String> {
            let facts = &table.session.facts;
            let ids: Vec<String> =
                facts.invites.iter().map(ToString::to_string).chain([facts.id.to_string()]).collect();
            told(table, seat)
                .into_iter()
                .map(|line| ids.iter().fold(line, |line, id| line.replace(id.as_str(), "ID")))
                .collect()
        };
        if let Some(seat) = seats.iter().find(|seat| nameless(first, **seat) != nameless(&elsewhere, **seat)) {
            let what = format!(
                "what player {} is told in private is the same whatever the session's seed is, and another in a session with another id \
                 or time: a player who knows these can compute it; deal it from `derivePrivateSeed`",
                seat.number()
            );
            found.wrong.insert(what, [told(first, *seat), told(&elsewhere, *seat)].concat());
            return;
        }
        if seats.iter().any(|seat| !private(first, *seat).is_empty()) {
            let what = format!(
                "what players are told in private is the same in each of {} deals; if it is meant to be secret, deal it from the \
                 session's seed",
                deals.len()
            );
            found.advice.insert(what, seats.iter().flat_map(|seat| told(first, *seat)).collect());
        }
        return;
    }
    for (number, a) in secretive.iter().enumerate() {
        for b in &secretive[number + 1..] {
            let names = format!("players {} and {}", a.number(), b.number());
            let shown = || deals.iter().take(2).flat_map(|table| [told(table, *a), told(table, *b)].concat());
            if dealt[a.0] == dealt[b.0] {
                // Some of many may share a secret that others don't know; if all do, it is none.
                let what = format!("{names} are dealt the same secret in each of {} deals", deals.len());
                let all_alike = secretive.iter().all(|seat| dealt[seat.0] == dealt[a.0]);
                match all_alike && secretive.len() == seats.len() {
                    true => found.wrong.insert(
                        format!("{what}: derive each player's from a context of its own, such as `derivePrivateSeed(`${{id}}:${{index}}`)`"),
                        shown().collect(),
                    ),
                    false => found.advice.insert(format!("{what}; that is fine if they are meant to share it"), shown().collect()),
                };
            } else if follows(&dealt[a.0], &dealt[b.0]) || follows(&dealt[b.0], &dealt[a.0]) {
                let what = format!(
                    "of what {names} are dealt, the one follows from the other in each of {} deals; that is fine for parts that they \
                     play, and wrong for secrets",
                    deals.len()
                );
                found.advice.insert(what, shown().collect());
            }
        }
    }
}

/// Words that a seat is told in private in each deal, without those that all deals begin and end with.
fn secrets(deals: &[Table<'_>], seat: Seat) -> Vec<Vec<String>> {
    let words = |table: &Table<'_>| -> Vec<String> {
        let said = private(table, seat).into_iter().map(|said| said.content.as_str()).collect::<Vec<_>>().join(" ");
        let plain = |char: char| char.is_alphanumeric() || char == '-';
        said.split(|char| !plain(char)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let mut dealt: Vec<Vec<String>> = deals.iter().map(words).collect();
    while let Some(word) = dealt[0].first().cloned()
        && dealt.iter().all(|words| words.first() == Some(&word))
    {
        dealt.iter_mut().for_each(|words| drop(words.remove(0)));
    }
    while let Some(word) = dealt[0].last().cloned()
        && dealt.iter().all(|words| words.last() == Some(&word))
    {
        dealt.iter_mut().for_each(|words| drop(words.pop()));
    }
    dealt
}

/// True if the second of two seats is always dealt the same again when the first one is, often enough to mean something.
fn follows(known: &[Vec<String>], secret: &[Vec<String>]) -> bool {
    let mut seen = BTreeMap::new();
    let mut again = 0;
    for (known, secret) in known.iter().zip(secret) {
        match seen.insert(known, secret) {
            Some(before) if before != secret => return false,
            Some(_) => again += 1,
            None => {}
        }
    }
    // Of secrets of which nearly all are alike, that says nothing.
    again >= AGAIN && seen.len() > 1
}

/// Whether players are told in private what differs from deal to deal.
fn tells_in_private(subject: Subject<'_>, plan: &Plan) -> bool {
    let deals = (0..SPLICES).filter_map(|deal| Table::seated(subject, &seed(plan, deal)).ok());
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
fn spliced<'c>(subject: Subject<'c>, plan: &Plan, found: &mut Found) -> Vec<Twins<'c>> {
    let opened = |deal| Table::opened(subject, &seed(plan, deal)).ok();
    let (Some(base), Ok(seated)) = (opened(0), Table::seated(subject, &seed(plan, 0))) else { return Vec::new() };
    let mut twins = Vec::new();
    for deal in 1..SPLICES {
        let Some(other) = opened(deal) else { continue };
        for (seat, path) in places(&base, &other) {
            let Some(twin) = splice(&base, &other, &path).and_then(|twin| twin.filled().ok()) else { continue };
            if private(&twin, seat) == private(&seated, seat) {
                found.note_told(&seated, &twin, seat, &path);
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
                    found.tells_early = true;
                }
            }
        }
        if !twins.is_empty() || found.tells_early {
            continue;
        }
        let Ok(other) = Table::seated(subject, &seed(plan, deal)) else { continue };
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
    base.subject.challenge.restore(&base.session.facts, &text).ok()?;
    let mut twin = base.clone();
    twin.session.state = text;
    Some(twin)
}

/// Twins among many deals: the same to all but one player.
fn dealt<'c>(subject: Subject<'c>, plan: &Plan) -> Vec<Twins<'c>> {
    let mut first: BTreeMap<(Seat, String), Table<'c>> = BTreeMap::new();
    let mut twins: Vec<Twins<'c>> = Vec::new();
    for deal in 0..plan.deals {
        let Ok(table) = Table::seated(subject, &seed(plan, deal)) else { continue };
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
            let [once, twin] = apart(&line(&once), &line(&twin));
            return Some((listener, vec![format!("in one game: {once}"), format!("in its twin: {twin}")]));
        }
    }
    None
}

/// Two texts in a line each, begun shortly before the place where they differ.
fn apart(a: &str, b: &str) -> [String; 2] {
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let skipped = if same > CONTEXT { same - CONTEXT / 2 } else { 0 };
    [a, b].map(|text| {
        let rest: String = text.chars().skip(skipped).collect();
        if skipped > 0 { format!("… {rest}") } else { rest }
    })
}

/// Plays twins by the same actions, until something differs.
fn compare(subject: Subject<'_>, twins: &Twins<'_>, plan: &Plan, purpose: &str, found: &mut Found) {
    let words = Words::of(subject.challenge.metadata());
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
                let shown = vec![action.describe(), format!("in one game: {once:?}"), format!("in its twin: {twin:?}")];
                found.wrong.entry(what).or_insert(shown);
                return;
            }
            _ => return,
        }
    }
}
