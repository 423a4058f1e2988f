//! The check `messages`: the rules don't fail on invalid messages of players, at several points of a game.

use std::collections::{BTreeMap, BTreeSet};

use arena_model::Seat;

use crate::play::{Action, ActionResult, Subject, TestSession};
use crate::words::Words;
use crate::{CheckPlan, Fault, Finding};

const CHECK: &str = "messages";

/// The number of games in which the check sends junk: texts that have made other programs fail.
const GAMES: u32 = 4;

/// The number of random actions between two points at which junk is sent.
const PAUSE: u32 = 3;

/// The number of random actions after accepted junk, because a damaged state may make only later actions fail.
const AFTER: u32 = 4;

/// The maximum number of failures in the report.
const MAX_REPORTED: usize = 4;

/// Returns texts that have made programs fail.
fn junk() -> Vec<String> {
    let plain = [
        "",
        " ",
        "\n",
        "0",
        "-1",
        "-0",
        "1.5",
        "1e309",
        "-1e309",
        "NaN",
        "Infinity",
        "0x10",
        "1_000",
        "½",
        "٣",
        "９９",
        "99999999999999999999999999",
        "null",
        "true",
        "undefined",
        "[]",
        "{}",
        "[[]]",
        "[null]",
        "{\"a\":",
        "\"",
        "\\",
        "'; --",
        "__proto__",
        "constructor",
        "{\"__proto__\":{\"x\":1}}",
        "{\"toString\":1}",
        "{\"length\":-1}",
        "[1,2,\"three\",null,{}]",
        "-60, 160",
        "1;2;3",
        "%s%n",
        "\u{0}",
        "\u{feff}1",
        "\u{202e}001",
        "e\u{301}",
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
        "<script>alert(1)</script>",
        "operator",
        "inv_00000000-0000-7000-8000-000000000099",
    ];
    let mut junk: Vec<String> = plain.map(str::to_owned).to_vec();
    junk.push("9".repeat(400));
    junk.push("1,".repeat(2_000));
    junk.push("a".repeat(10_000));
    junk.push(format!("{}{}", "[".repeat(200), "]".repeat(200)));
    junk.push("(".repeat(2_000));
    junk.push(format!("{}!", "a ".repeat(2_000)));
    junk
}

/// Sends junk to every method and each method's examples to other methods, and checks the results.
pub fn check(subject: Subject<'_>, plan: &CheckPlan) -> Vec<Finding> {
    let words = Words::of(subject.challenge.metadata());
    let mut seen = Seen::default();
    let junk = junk();
    for game in 0..GAMES {
        let seed = plan.seed.derive(&format!("hostile/{game}"));
        let mut rng = seed.rng("actions");
        let Ok(mut table) = TestSession::seated(subject, &seed) else { continue };
        for load in 0..4 {
            if table.has_ended() {
                break;
            }
            let seat = Seat(rng.below(table.seats() as u64) as usize);
            for method in &subject.challenge.metadata().methods {
                let (mut refused, mut states) = (0, BTreeSet::new());
                for content in &junk {
                    let action = Action { seat, method: method.name.clone(), content: content.clone() };
                    let mut tried = table.clone();
                    let taken = seen.note(&action, tried.act(&action));
                    refused += usize::from(!taken);
                    states.insert(tried.state().to_owned());
                    for _ in 0..if taken && load == 0 { AFTER } else { 0 } {
                        if tried.has_ended() {
                            break;
                        }
                        let seat = Seat(rng.below(tried.seats() as u64) as usize);
                        let next = words.draw(&tried, seat, &mut rng);
                        let outcome = tried.act(&next);
                        if let ActionResult::Failed(fault) = outcome {
                            seen.note_fault(fault, vec![action.describe(), next.describe()]);
                        }
                    }
                }
                // If the rules refuse no junk and different texts give different states, every text may be valid.
                if refused == 0 && states.len() > 1 {
                    seen.careless.insert(method.name.clone());
                }
            }
            for _ in 0..PAUSE {
                if !table.has_ended() {
                    let seat = Seat(rng.below(table.seats() as u64) as usize);
                    let action = words.draw(&table, seat, &mut rng);
                    let outcome = table.act(&action);
                    seen.note(&action, outcome);
                }
            }
        }
    }
    seen.findings(subject)
}

/// The observed results of the actions.
#[derive(Default)]
struct Seen {
    tried: u64,
    taken: u64,
    /// Failures without duplicates, by position in the source and error message, with the preceding actions.
    failures: BTreeMap<(Option<String>, String), (Fault, Vec<String>)>,
    /// Methods that the rules know: accepted at least once, or refused for a reason other than an unknown method.
    understood: Vec<String>,
    /// Methods that accepted all junk at one point of a game.
    careless: BTreeSet<String>,
    /// Refusals without a usable error code, with the actions that led to them.
    nameless: BTreeMap<String, String>,
}

impl Seen {
    /// Records the outcome of an action. Returns true if it was accepted.
    fn note(&mut self, action: &Action, outcome: ActionResult) -> bool {
        self.tried += 1;
        let is_known = !matches!(&outcome, ActionResult::Refused { code, .. } if code == "UNKNOWN_METHOD");
        if is_known && !self.understood.contains(&action.method) {
            self.understood.push(action.method.clone());
        }
        match outcome {
            ActionResult::Taken => {
                self.taken += 1;
                return true;
            }
            ActionResult::Failed(fault) => self.note_fault(fault, vec![action.describe()]),
            ActionResult::Refused { code, message } => {
                let is_name = |char: char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_';
                if code.is_empty() || !code.chars().all(is_name) || message.trim().is_empty() {
                    self.nameless.entry(format!("{code:?}: {message:?}")).or_insert_with(|| action.describe());
                }
            }
        }
        false
    }

    fn note_fault(&mut self, fault: Fault, led: Vec<String>) {
        self.failures.entry((fault.place.clone(), fault.what.clone())).or_insert((fault, led));
    }

    fn findings(self, subject: Subject<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        let reported = self.failures.len().min(MAX_REPORTED);
        for (fault, led) in self.failures.values().take(reported) {
            findings.push(Finding::of_fault(CHECK, "the rules fail at a player's message", fault, led));
        }
        if self.failures.len() > reported {
            findings.push(Finding::wrong(CHECK, format!("and {} more failures", self.failures.len() - reported)));
        }
        for method in &subject.challenge.metadata().methods {
            if !self.understood.contains(&method.name) {
                let what = format!("the metadata has the method `{}`, but the rules don't handle it", method.name);
                findings.push(Finding::wrong(CHECK, what));
            }
        }
        for (refusal, action) in &self.nameless {
            let what = "a refusal needs a code in capitals, such as INVALID_BID, and a sentence";
            findings.push(Finding::advice(CHECK, what).shown_by([action.clone(), refusal.clone()]));
        }
        let careless = self.careless.iter().map(|method| {
            let what = format!(
                "`{method}` accepts and stores any text, even hundreds of brackets; if the method expects a format, refuse other texts"
            );
            Finding::advice(CHECK, what)
        });
        let careless: Vec<Finding> = careless.collect();
        if findings.is_empty() {
            let Seen { tried, taken, .. } = self;
            let what =
                format!("{tried} messages, most of them junk: {taken} accepted, the others refused with a reason");
            findings.push(Finding::fine(CHECK, what));
        }
        findings.extend(careless);
        findings
    }
}
