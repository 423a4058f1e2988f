//! The termination causes of a match's seats, in the words of records.

use arena_model::{MatchResult, Verdict};
use arena_record::Cause;

pub(super) fn causes<A>(result: &MatchResult<A>) -> Vec<Cause> {
    let is_void = result.outcome.is_void();
    let cause = |verdict: Option<Verdict>| match verdict {
        Some(verdict) => cause_of(verdict),
        None if is_void => Cause::Abandoned,
        None => Cause::Normal,
    };
    result.seats.iter().map(|seat| cause(seat.verdict)).collect()
}

/// Returns the cause for a disqualified agent. [`Cause::Invalid`] includes failures of its program: a verdict can't show
/// that the machine caused them. A provider's fault ends a match without a result, so it has no verdict.
fn cause_of(verdict: Verdict) -> Cause {
    match verdict {
        Verdict::Timeout => Cause::Forfeited,
        Verdict::StartupFail
        | Verdict::PingFail
        | Verdict::SetAgentIdFail
        | Verdict::MissingAgentId
        | Verdict::AgentIdSpoofing
        | Verdict::TooManyErrors
        | Verdict::Crashed
        | Verdict::OutputLimit
        | Verdict::MemoryLimit
        | Verdict::IllegalMove
        | Verdict::NoAction => Cause::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_has_a_cause() {
        let of = |cause: Cause| Verdict::ALL.into_iter().filter(move |verdict| cause_of(*verdict) == cause).count();
        assert_eq!([Cause::Forfeited, Cause::Invalid].map(of), [1, 11]);
    }
}
