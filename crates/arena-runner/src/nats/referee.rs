//! Comparison of several workers' results of one match. This module is pure: it doesn't communicate.
//!
//! All replays here have passed the audit, but they may differ. Agents needn't be deterministic. Therefore a worker is
//! blamed only if it deviates twice from two other workers that agree in all four of their plays (docs/decisions/0053).

use std::collections::BTreeSet;

use arena_model::Seed;

use crate::nats::wire::WorkerIdentity;

/// The number of times that each worker plays a disputed match.
const TIMES: usize = 2;

/// One play of a match by a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Play {
    /// The worker.
    pub worker: WorkerIdentity,
    /// The hash of the replay without times; see [`arena_match::VerifiedResult::played`].
    pub played: String,
    /// True if the play has a disqualification that the worker's machine may have caused.
    pub is_by_machine: bool,
}

/// The conclusion from the plays of a match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// More plays are needed for a conclusion.
    Open {
        /// The ids of the workers that must play the match again.
        again: Vec<String>,
        /// The number of other workers needed.
        others: usize,
    },
    /// All plays agree. Contains the identity of a confirming worker.
    Agreed(WorkerIdentity),
    /// This worker deviates, but its machine may have caused the difference.
    Machine(WorkerIdentity),
    /// This worker deviates from all others, which agree.
    Deviates(WorkerIdentity),
    /// The agents aren't deterministic.
    NotReproducible,
}

/// Returns true if two workers play this match for comparison. `share` is the share of such matches, 0 to 1. Workers
/// can't predict the choice, since they don't receive the tournament's seed.
pub fn is_checked(seed: &Seed, fixture: usize, share: f64) -> bool {
    seed.derive("cross-check").rng(&format!("game {fixture}")).unit() < share
}

/// Draws a conclusion from the plays of a match, in the order in which they arrived.
pub fn judge(plays: &[Play]) -> Finding {
    let mut workers: Vec<&WorkerIdentity> = Vec::new();
    for play in plays {
        // Workers with the same name count as one, since they may be the same program.
        if !workers.iter().any(|known| is_same(known, &play.worker)) {
            workers.push(&play.worker);
        }
    }
    let of =
        |worker: &WorkerIdentity| -> Vec<&Play> { plays.iter().filter(|play| is_same(&play.worker, worker)).collect() };
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

/// Returns true if two identities have the same id or the same name.
pub fn is_same(a: &WorkerIdentity, b: &WorkerIdentity) -> bool {
    a.id == b.id || a.name == b.name
}

fn missing<'p>(workers: &[&WorkerIdentity], of: impl Fn(&WorkerIdentity) -> Vec<&'p Play>) -> Vec<String> {
    workers.iter().filter(|worker| of(worker).len() < TIMES).map(|worker| worker.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the conclusion from plays such as `a1 b1 c2`: each is a worker and its result, with `!` if the machine
    /// may have caused the result.
    #[track_caller]
    fn check(plays: &str, expected: &str) {
        let play = |text: &str| Play {
            worker: WorkerIdentity { id: text[..1].to_owned(), name: format!("worker {}", &text[..1]) },
            played: text[1..2].to_owned(),
            is_by_machine: text.ends_with('!'),
        };
        let plays: Vec<Play> = plays.split_whitespace().map(play).collect();
        let finding = match judge(&plays) {
            Finding::Open { again, others } => format!("again {}, others {others}", again.join("")),
            Finding::Agreed(worker) => format!("agreed {}", worker.id),
            Finding::Machine(worker) => format!("machine {}", worker.id),
            Finding::Deviates(worker) => format!("deviates {}", worker.id),
            Finding::NotReproducible => "not reproducible".to_owned(),
        };
        assert_eq!(finding, expected, "{plays:?}");
    }

    #[test]
    fn two_agreeing_workers_are_enough() {
        check("", "again , others 2");
        check("a1", "again , others 1");
        check("a1 a1", "again , others 1");
        check("a1 b1", "agreed b");
    }

    #[test]
    fn a_worker_that_differs_from_two_consistent_ones_is_to_blame() {
        check("a1 b2", "again ab, others 1");
        check("a1 b2 c1", "again abc, others 0");
        check("a1 b2 c1 a1 c1", "again b, others 0");
        check("a1 b2 c1 a1 c1 b2", "deviates b");
        check("a1 b2 c2 a1 c2 b2", "deviates a");
        check("a1 b2 c1 a1 c1 b3", "deviates b");
    }

    #[test]
    fn nondeterministic_agents_blame_no_worker() {
        check("a1 b2 c3 a4 b5 c6", "not reproducible");
        check("a1 b2 c1 a1 c1 b1", "not reproducible");
        check("a1 b2 c1 a2 c1 b2", "not reproducible");
        check("a1 b2 c3 a1 b2 c3", "not reproducible");
    }

    #[test]
    fn disqualifications_by_the_clock_blame_no_worker() {
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
