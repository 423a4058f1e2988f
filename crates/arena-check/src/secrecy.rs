//! The check `secrecy`: a player doesn't learn another player's secret. The check plays pairs of games (twins) with
//! equal actions. The twins differ only in one player's secret, so the other players must receive equal messages.
//!
//! The check finds twins in two ways. The first way copies one seat's part of the state from one deal into another
//! deal. If this changes the seat's private messages, the copied part is a secret. The second way makes many deals
//! until two of them look the same to all players but one.
//!
//! Before that, the check compares many deals: a value that is equal for all seats, or in all deals, isn't a secret.
//!
//! An accepted action may reveal part of a secret by design, such as the outcome of a guess, so a difference after it
//! is advice. A difference before the first action is an error. A difference in a refusal is also an error, because a
//! refused action costs nothing and can be repeated.

use std::collections::BTreeMap;

use arena_model::Seat;
use serde_json::Value;

use crate::play::{ActionResult, SessionMessage, Subject, TestSession};
use crate::words::{Words, pick};
use crate::{CheckPlan, Finding};

const CHECK: &str = "secrecy";

/// The number of deals among which parts of the state are copied.
const SPLICES: u32 = 8;

/// The maximum number of pairs of twins that are played.
const TWINS: usize = 24;

/// The number of games with each pair of twins.
const GAMES: u32 = 4;

/// The number of actions in each of these games.
const ACTIONS: u32 = 40;

/// The number of equal characters in the evidence before the first difference of two texts.
const CONTEXT: usize = 80;

/// The minimum number of repetitions of one seat's secret. If another seat's secret repeats each time too, it counts
/// as derived from the first.
const MIN_REPETITIONS: usize = 24;

/// The first id of a session whose ids differ from those of the other sessions.
const OTHER_IDS: usize = 1_000_000;

/// Two games that look the same to all players but one.
struct Twins<'c> {
    tables: [TestSession<'c>; 2],
    /// The player whose secret differs between the two games.
    seat: Seat,
}

/// Searches for twins and plays them.
pub fn check(subject: Subject<'_>, plan: &CheckPlan) -> Vec<Finding> {
    let mut found = SecrecyFindings::default();
    check_equal_secrets(subject, plan, &mut found);
    check_users(subject, plan, &mut found);
    let mut twins = spliced(subject, plan, &mut found);
    if twins.is_empty() && !found.leaks_early {
        twins = dealt(subject, plan);
    }
    for (number, pair) in twins.iter().enumerate() {
        for game in 0..GAMES {
            compare(subject, pair, plan, &format!("secrecy/{number}/{game}"), &mut found);
        }
    }
    found.findings(twins.len(), has_private_messages(subject, plan))
}

/// The findings, without duplicates.
#[derive(Default)]
struct SecrecyFindings {
    wrong: BTreeMap<String, Vec<String>>,
    advice: BTreeMap<String, Vec<String>>,
    games: u32,
    /// True if a secret was revealed before the first action. The search for twins then stops.
    leaks_early: bool,
}

impl SecrecyFindings {
    /// Records that another player receives data from the part of the state that belongs to `seat`, although the
    /// player at `seat` doesn't receive it in private. The data may be intended for the other player, or the rules
    /// may send it to the wrong one.
    fn note_leak(&mut self, seated: &TestSession<'_>, twin: &TestSession<'_>, seat: Seat, path: &str) {
        let Some((listener, shown)) = first_heard(seated, twin, seat, 0) else { return };
        let all = private(seated, listener) == private(twin, listener);
        let whom = if all { "all are".to_owned() } else { format!("player {} is", listener.number()) };
        let what = format!(
            "before the first action, {whom} sent data of player {} (`{path}`), who doesn't get it in private; that \
             is fine unless it is a secret",
            seat.number()
        );
        self.advice.entry(what).or_insert(shown);
    }

    fn findings(self, twins: usize, is_secretive: bool) -> Vec<Finding> {
        let wrong = self.wrong.into_iter().map(|(what, shown)| Finding::wrong(CHECK, what).shown_by(shown));
        let advice = self.advice.into_iter().map(|(what, shown)| Finding::advice(CHECK, what).shown_by(shown));
        let mut findings: Vec<Finding> = wrong.chain(advice).collect();
        if findings.iter().any(|finding| finding.severity == crate::Severity::Wrong) {
            return findings;
        }
        if twins > 0 {
            let what = format!(
                "{} games were played twice, with another secret for one player: the others saw no difference before \
                 an action that reveals it by design",
                self.games
            );
            findings.insert(0, Finding::fine(CHECK, what));
        } else if is_secretive {
            let what = "no two deals look the same to all players but one, so secrecy wasn't checked: keep the data \
                        of seats in a list with one entry per seat";
            findings.push(Finding::advice(CHECK, what));
        } else {
            findings.push(Finding::fine(CHECK, "no player gets a private message that depends on the deal"));
        }
        findings
    }
}

/// Lets another user take each seat. The other players must not notice it.
fn check_users(subject: Subject<'_>, plan: &CheckPlan, found: &mut SecrecyFindings) {
    let seated = |stranger| TestSession::opened(subject, &seed(plan, 0))?.filled_with(stranger);
    let Ok(usual) = seated(None) else { return };
    for seat in (0..usual.seats()).map(Seat) {
        let Ok(twin) = seated(Some(seat)) else { continue };
        let Some((listener, shown)) = first_heard(&usual, &twin, seat, 0) else { continue };
        let what = format!(
            "player {} is sent a message that depends on the user id of player {}; players are anonymous until the end",
            listener.number(),
            seat.number()
        );
        found.wrong.entry(what).or_insert(shown);
    }
}

/// Compares the seats' private messages in many deals.
fn check_equal_secrets(subject: Subject<'_>, plan: &CheckPlan, found: &mut SecrecyFindings) {
    let deals: Vec<TestSession<'_>> =
        (0..plan.deals).filter_map(|deal| TestSession::seated(subject, &seed(plan, deal)).ok()).collect();
    let Some(first) = deals.first() else { return };
    let seats: Vec<Seat> = (0..first.seats()).map(Seat).collect();
    let dealt: Vec<Vec<Vec<String>>> = seats.iter().map(|seat| secrets(&deals, *seat)).collect();
    let varies = |seat: Seat| dealt[seat.0].iter().any(|secret| *secret != dealt[seat.0][0]);
    let secretive: Vec<Seat> = seats.iter().copied().filter(|seat| varies(*seat)).collect();
    let evidence_of = |table: &TestSession<'_>, seat: Seat| {
        private(table, seat).iter().map(SessionMessage::describe).collect::<Vec<_>>()
    };
    if secretive.is_empty() {
        let Ok(elsewhere) = TestSession::opened_at(subject, &seed(plan, 0), OTHER_IDS).and_then(TestSession::filled)
        else {
            return;
        };
        let nameless = |table: &TestSession<'_>, seat: Seat| -> Vec<String> {
            let facts = &table.session().facts;
            let ids: Vec<String> =
                facts.invites.iter().map(ToString::to_string).chain([facts.id.to_string()]).collect();
            evidence_of(table, seat)
                .into_iter()
                .map(|line| ids.iter().fold(line, |line, id| line.replace(id.as_str(), "ID")))
                .collect()
        };
        if let Some(seat) = seats.iter().find(|seat| nameless(first, **seat) != nameless(&elsewhere, **seat)) {
            let what = format!(
                "player {}'s private messages don't depend on the session's seed, but on its id or time, from which \
                 other players can compute them; deal them from `derivePrivateSeed`",
                seat.number()
            );
            found.wrong.insert(what, [evidence_of(first, *seat), evidence_of(&elsewhere, *seat)].concat());
            return;
        }
        if seats.iter().any(|seat| !private(first, *seat).is_empty()) {
            let what = format!(
                "the players' private messages are the same in each of {} deals; if they contain secrets, deal them from the \
                 session's seed",
                deals.len()
            );
            found.advice.insert(what, seats.iter().flat_map(|seat| evidence_of(first, *seat)).collect());
        }
        return;
    }
    for (number, a) in secretive.iter().enumerate() {
        for b in &secretive[number + 1..] {
            let names = format!("players {} and {}", a.number(), b.number());
            let shown =
                || deals.iter().take(2).flat_map(|table| [evidence_of(table, *a), evidence_of(table, *b)].concat());
            if dealt[a.0] == dealt[b.0] {
                // Some of the players may share a secret by design, but a value that all players have isn't a secret.
                let what = format!("{names} are dealt the same secret in each of {} deals", deals.len());
                let all_alike = secretive.iter().all(|seat| dealt[seat.0] == dealt[a.0]);
                match all_alike && secretive.len() == seats.len() {
                    true => found.wrong.insert(
                        format!("{what}: derive each player's secret from a separate context, such as `derivePrivateSeed(`${{id}}:${{index}}`)`"),
                        shown().collect(),
                    ),
                    false => found.advice.insert(format!("{what}; that is fine if they are supposed to share it"), shown().collect()),
                };
            } else if follows(&dealt[a.0], &dealt[b.0]) || follows(&dealt[b.0], &dealt[a.0]) {
                let what = format!(
                    "of {names}, one player's deal follows from the other's in each of {} deals; that is fine for \
                     roles, and wrong for secrets",
                    deals.len()
                );
                found.advice.insert(what, shown().collect());
            }
        }
    }
}

/// Returns, for each deal, the words of the private messages to a seat. The words at the beginning and end that are
/// common to all deals are removed.
fn secrets(deals: &[TestSession<'_>], seat: Seat) -> Vec<Vec<String>> {
    let words = |table: &TestSession<'_>| -> Vec<String> {
        let said = private(table, seat).into_iter().map(|said| said.content).collect::<Vec<_>>().join(" ");
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

/// Returns true if equal values of `known` always come with equal values of `secret`, and there are enough
/// repetitions to be significant.
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
    // If `known` has one value only, its repetitions prove nothing.
    again >= MIN_REPETITIONS && seen.len() > 1
}

/// Returns true if players get private messages that differ between deals.
fn has_private_messages(subject: Subject<'_>, plan: &CheckPlan) -> bool {
    let deals: Vec<TestSession<'_>> =
        (0..SPLICES).filter_map(|deal| TestSession::seated(subject, &seed(plan, deal)).ok()).collect();
    let messages: Vec<Vec<SessionMessage<'_>>> =
        deals.iter().map(|table| table.messages().filter(|said| said.to.is_some()).collect()).collect();
    messages.iter().any(|said| *said != messages[0])
}

fn seed(plan: &CheckPlan, deal: u32) -> arena_model::Seed {
    plan.seed.derive(&format!("secrecy/deal/{deal}"))
}

/// Returns the messages that only this player gets.
fn private<'t>(table: &'t TestSession<'_>, seat: Seat) -> Vec<SessionMessage<'t>> {
    table.messages().filter(|said| said.to == Some(seat)).collect()
}

/// Returns twins made by copying one seat's part of the state from one deal into another. The part is copied before
/// the players join, or after they have joined if the secrets are dealt only then.
fn spliced<'c>(subject: Subject<'c>, plan: &CheckPlan, found: &mut SecrecyFindings) -> Vec<Twins<'c>> {
    let opened = |deal| TestSession::opened(subject, &seed(plan, deal)).ok();
    let (Some(base), Ok(seated)) = (opened(0), TestSession::seated(subject, &seed(plan, 0))) else { return Vec::new() };
    let mut twins = Vec::new();
    for deal in 1..SPLICES {
        let Some(other) = opened(deal) else { continue };
        for (seat, path) in places(&base, &other) {
            let Some(twin) = splice(&base, &other, &path).and_then(|twin| twin.filled().ok()) else { continue };
            if private(&twin, seat) == private(&seated, seat) {
                found.note_leak(&seated, &twin, seat, &path);
                continue;
            }
            match first_heard(&seated, &twin, seat, 0) {
                None => twins.push(Twins { tables: [seated.clone(), twin], seat }),
                Some((listener, shown)) => {
                    let what = format!(
                        "before the first action, player {} is sent a secret of player {} (`{path}`)",
                        listener.number(),
                        seat.number()
                    );
                    found.wrong.entry(what).or_insert(shown);
                    found.leaks_early = true;
                }
            }
        }
        if !twins.is_empty() || found.leaks_early {
            continue;
        }
        let Ok(other) = TestSession::seated(subject, &seed(plan, deal)) else { continue };
        for (seat, path) in places(&seated, &other) {
            if private(&seated, seat) != private(&other, seat)
                && let Some(twin) = splice(&seated, &other, &path)
            {
                twins.push(Twins { tables: [seated.clone(), twin], seat });
            }
        }
    }
    // If there are too many twins, keep some of each deal and seat.
    let step = twins.len().div_ceil(TWINS).max(1);
    twins.into_iter().step_by(step).collect()
}

/// Returns the paths in the state that belong to one seat and differ between two deals.
fn places(a: &TestSession<'_>, b: &TestSession<'_>) -> Vec<(Seat, String)> {
    let [a_state, b_state]: [Value; 2] =
        [a, b].map(|table| serde_json::from_str(&table.session().state).unwrap_or_default());
    let invites: Vec<String> = a.session().facts.invites.iter().map(ToString::to_string).collect();
    let mut found = Vec::new();
    compare_values(&a_state, &b_state, String::new(), &invites, &mut found);
    found
}

fn compare_values(a: &Value, b: &Value, path: String, invites: &[String], found: &mut Vec<(Seat, String)>) {
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
                    None => compare_values(value, other, path, invites, found),
                }
            }
        }
        _ => {}
    }
}

/// Returns a copy of `base` in which the state at `path` is that of `other`.
fn splice<'c>(base: &TestSession<'c>, other: &TestSession<'_>, path: &str) -> Option<TestSession<'c>> {
    let mut state: Value = serde_json::from_str(&base.session().state).ok()?;
    let other: Value = serde_json::from_str(&other.session().state).ok()?;
    *state.pointer_mut(path)? = other.pointer(path)?.clone();
    let text = state.to_string();
    base.subject.challenge.restore(&base.session().facts, &text).ok()?;
    Some(base.with_state(text))
}

/// Returns twins found among many deals: pairs of games that look the same to all players but one.
fn dealt<'c>(subject: Subject<'c>, plan: &CheckPlan) -> Vec<Twins<'c>> {
    let mut first: BTreeMap<(Seat, String), TestSession<'c>> = BTreeMap::new();
    let mut twins: Vec<Twins<'c>> = Vec::new();
    for deal in 0..plan.deals {
        let Ok(table) = TestSession::seated(subject, &seed(plan, deal)) else { continue };
        for seat in (0..table.seats()).map(Seat) {
            let others = (0..table.seats()).map(Seat).filter(|other| *other != seat);
            let messages: Vec<String> = others
                .flat_map(|other| table.messages_for(other, 0).map(move |said| format!("{other:?} {said:?}")))
                .collect();
            match first.entry((seat, messages.join("\n"))) {
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

/// Returns the first message since `from` that differs in the twin for a player other than `secret`.
fn first_heard(a: &TestSession<'_>, b: &TestSession<'_>, secret: Seat, from: usize) -> Option<(Seat, Vec<String>)> {
    let listeners = (0..a.seats()).map(Seat).filter(|seat| *seat != secret);
    for listener in listeners {
        let [once, twin]: [Vec<SessionMessage<'_>>; 2] =
            [a, b].map(|table| table.messages_for(listener, from).collect());
        if once != twin {
            let at = once.iter().zip(&twin).position(|(a, b)| a != b).unwrap_or(once.len().min(twin.len()));
            let line = |messages: &[SessionMessage<'_>]| {
                messages.get(at).map_or("no further message".to_owned(), |said| said.describe())
            };
            let [once, twin] = around_difference(&line(&once), &line(&twin));
            return Some((listener, vec![format!("in one game: {once}"), format!("in its twin: {twin}")]));
        }
    }
    None
}

/// Returns excerpts of two texts, one line each, that start shortly before the first difference.
fn around_difference(a: &str, b: &str) -> [String; 2] {
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let skipped = if same > CONTEXT { same - CONTEXT / 2 } else { 0 };
    [a, b].map(|text| {
        let rest: String = text.chars().skip(skipped).collect();
        if skipped > 0 { format!("… {rest}") } else { rest }
    })
}

/// Plays twins with equal actions until a message to another player differs.
fn compare(subject: Subject<'_>, twins: &Twins<'_>, plan: &CheckPlan, purpose: &str, found: &mut SecrecyFindings) {
    let words = Words::of(subject.challenge.metadata());
    let mut rng = plan.seed.derive(purpose).rng("actions");
    let [mut a, mut b] = twins.tables.clone();
    let secret = twins.seat;
    let everybody: Vec<Seat> = (0..a.seats()).map(Seat).collect();
    found.games += 1;
    for _ in 0..ACTIONS {
        let seat = *pick(&everybody, &mut rng).expect("a challenge has seats");
        let action = words.draw(&a, seat, &mut rng);
        let from = [&a, &b].map(TestSession::count);
        let outcomes = [a.act(&action), b.act(&action)];
        // A player may reveal its own secret by its actions.
        let is_own = seat == secret;
        match &outcomes {
            [ActionResult::Taken, ActionResult::Taken] => {
                if a.has_ended() || b.has_ended() {
                    return;
                }
                debug_assert_eq!(from[0], from[1], "twins receive equally many messages before the first difference");
                let Some((listener, shown)) = first_heard(&a, &b, secret, from[0]) else { continue };
                if !is_own {
                    let whom = if listener == seat { "its sender" } else { "other players" };
                    let what = format!(
                        "`{}` reveals part of another player's secret to {whom}; that is fine if it is the purpose \
                         of the action",
                        action.method
                    );
                    found.advice.entry(what).or_insert([vec![action.describe()], shown].concat());
                }
                return;
            }
            [once, twin] if once == twin => {}
            [once, twin]
                if !is_own && ![once, twin].iter().any(|outcome| matches!(outcome, ActionResult::Failed(_))) =>
            {
                let what = format!(
                    "the refusal of `{}` depends on another player's secret: a refusal costs nothing, so the secret \
                     can be found by trying",
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
