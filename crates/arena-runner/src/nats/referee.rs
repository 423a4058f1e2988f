//! What it shows when several workers have played one match: rules alone, nothing is sent here.
//!
//! All replays here keep the rules and yet differ. A worker is to blame only if it differs twice from two others that have played
//! alike all four times, since agents needn't be deterministic (docs/decisions/0053).

use std::collections::BTreeSet;

use arena_model::Seed;

use crate::nats::wire::Identity;

/// How often each worker plays a match about which two differ.
const TIMES: usize = 2;

/// A match as one worker has played it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Play {
    /// Who.
    pub worker: Identity,
    /// What came of it: see [`arena_match::Account::played`].
    pub played: String,
    /// Whether an agent was disqualified for what may be the machine's fault.
    pub is_by_machine: bool,
}

/// What the plays of a match show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// These have to play it once more, and so many others once at least.
    Open {
        /// The ids of those who shall play it again.
        again: Vec<String>,
        /// How many others.
        others: usize,
    },
    /// All have played alike: this one and others.
    Agreed(Identity),
    /// This one's machine made a difference, as far as can be told.
    Machine(Identity),
    /// This one plays something else than all others.
    Deviates(Identity),
    /// The agents don't always play alike.
    NotReproducible,
}

/// Whether a match is to be played by two workers, of which `share`, from 0 to 1, are. Nobody who doesn't know the tournament's seed can
/// tell which.
pub fn is_checked(seed: &Seed, fixture: usize, share: f64) -> bool {
    seed.derive("cross-check").rng(&format!("game {fixture}")).unit() < share
}

/// Judges a match by its plays, in the order in which they came.
pub fn judge(plays: &[Play]) -> Finding {
    let mut workers: Vec<&Identity> = Vec::new();
    for play in plays {
        // Two of the same name are one: they may well be the same program.
        if !workers.iter().any(|known| is_same(known, &play.worker)) {
            workers.push(&play.worker);
        }
    }
    let of = |worker: &Identity| -> Vec<&Play> { plays.iter().filter(|play| is_same(&play.worker, worker)).collect() };
    let [first, second, rest @ ..] = &workers[..] else {
        return Finding::Open { again: Vec::new(), others: 2 - workers.len() };
    };
    let results: BTreeSet<&str> = plays.iter().map(|play| play.played.as_str()).collect();
    if results.len() == 1 {
        return Finding::Agreed((*second).clone());
    }
    if let Some(play) = plays.iter().find(|play| play.is_by_machine) {
        return Finding::Machine(play.worker.clone());
    }
    let Some(third) = rest.first() else {
        return Finding::Open { again: missing(&[first, second], of), others: 1 };
    };
    let three = [*first, *second, *third];
    let again = missing(&three.each_ref().map(|worker| &**worker), of);
    if !again.is_empty() {
        return Finding::Open { again, others: 0 };
    }
    for suspect in three {
        let others: BTreeSet<&str> = (three.iter().filter(|worker| !is_same(worker, suspect)))
            .flat_map(|worker| of(worker))
            .map(|play| play.played.as_str())
            .collect();
        let differs = of(suspect).iter().all(|play| !others.contains(play.played.as_str()));
        if others.len() == 1 && differs {
            return Finding::Deviates(suspect.clone());
        }
    }
    Finding::NotReproducible
}

/// Whether two are the same worker, or can't be told apart.
pub fn is_same(a: &Identity, b: &Identity) -> bool {
    a.id == b.id || a.name == b.name
}

fn missing<'p>(workers: &[&Identity], of: impl Fn(&Identity) -> Vec<&'p Play>) -> Vec<String> {
    workers.iter().filter(|worker| of(worker).len() < TIMES).map(|worker| worker.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays as in `a1 b1 c2`: the worker, and what came of it; `!` behind it if a machine may be to blame.
    #[track_caller]
    fn check(plays: &str, expected: &str) {
        let play = |text: &str| Play {
            worker: Identity { id: text[..1].to_owned(), name: format!("worker {}", &text[..1]) },
            played: text[1..2].to_owned(),
            is_by_machine: text.ends_with('!'),
        };
        let plays: Vec<Play> = plays.split_whitespace().map(play).collect();
        let told = match judge(&plays) {
            Finding::Open { again, others } => format!("again {}, others {others}", again.join("")),
            Finding::Agreed(worker) => format!("agreed {}", worker.id),
            Finding::Machine(worker) => format!("machine {}", worker.id),
            Finding::Deviates(worker) => format!("deviates {}", worker.id),
            Finding::NotReproducible => "not reproducible".to_owned(),
        };
        assert_eq!(told, expected, "{plays:?}");
    }

    #[test]
    fn two_who_agree_are_enough() {
        check("", "again , others 2");
        check("a1", "again , others 1");
        check("a1 a1", "again , others 1");
        check("a1 b1", "agreed b");
    }

    #[test]
    fn who_differs_from_two_who_are_sure_is_to_blame() {
        check("a1 b2", "again ab, others 1");
        check("a1 b2 c1", "again abc, others 0");
        check("a1 b2 c1 a1 c1", "again b, others 0");
        check("a1 b2 c1 a1 c1 b2", "deviates b");
        check("a1 b2 c2 a1 c2 b2", "deviates a");
        check("a1 b2 c1 a1 c1 b3", "deviates b");
    }

    #[test]
    fn agents_that_do_not_always_play_alike_are_nobodys_fault() {
        check("a1 b2 c3 a4 b5 c6", "not reproducible");
        check("a1 b2 c1 a1 c1 b1", "not reproducible");
        check("a1 b2 c1 a2 c1 b2", "not reproducible");
        check("a1 b2 c3 a1 b2 c3", "not reproducible");
    }

    #[test]
    fn the_clock_is_no_witness() {
        check("a1! b2", "machine a");
        check("a1 b2!", "machine b");
        check("a1! b1!", "agreed b");
    }

    #[test]
    fn a_share_of_all_matches_is_checked() {
        let seed = Seed::from_number(1);
        let count = |share: f64| (1..=1000).filter(|fixture| is_checked(&seed, *fixture, share)).count();
        assert_eq!((count(0.0), count(1.0)), (0, 1000));
        assert!((150..250).contains(&count(0.2)), "{}", count(0.2));
    }
}
