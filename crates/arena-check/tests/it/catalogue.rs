//! The checks on all built-in challenges.

use arena_check::{CHECKS, Severity};
use serde_json::Map;

use crate::{findings_text, report};

#[test]
fn everything_that_is_built_in_passes_all_checks() {
    for id in arena_games::challenges() {
        let challenge = arena_games::challenge(id, &Map::new()).unwrap().unwrap();
        let findings = report(&challenge);
        let is_fine = findings.iter().all(|finding| finding.severity != Severity::Wrong);
        assert!(is_fine, "{id}\n{}", findings_text(&findings));
        for (check, _) in CHECKS {
            assert!(findings.iter().any(|finding| finding.check == check), "{id} was not checked for {check}");
        }
    }
}

#[test]
fn secrets_of_the_challenges_were_really_compared() {
    for playable in arena_games::CHALLENGES {
        let (id, challenge) = (playable.id, playable.challenge_type(&Map::new()).unwrap());
        let findings = report(&challenge);
        let fine =
            findings.iter().find(|finding| finding.check == "secrecy" && finding.severity == Severity::Fine).unwrap();
        assert!(fine.what.contains("games were played twice"), "{id}: {}", fine.what);
    }
}
