//! The policy file of `arena board rebuild`: the sections of an arena's settings that determine leaderboards, and
//! excluded games.

use std::fmt::Display;

use arena_model::{BoardId, BoardTerms, ChallengeType, Scoring, SessionId, UserId};
use arena_record::boards::LeaderboardPolicy;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyFile {
    scoring: PolicyScoring,
    challenges: Vec<PolicyChallenge>,
    exclude: Vec<PolicyExclusion>,
}

/// The section `[scoring]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyScoring {
    #[serde(default)]
    default: Vec<String>,
    #[serde(default)]
    global: Option<String>,
    #[serde(default, alias = "globalSource")]
    global_source: Option<String>,
}

/// A section `[[challenges]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyChallenge {
    name: String,
    #[serde(default)]
    options: Map<String, Value>,
    #[serde(default)]
    scoring: Vec<String>,
}

/// A section `[[exclude]]`: a session or a user that doesn't count.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyExclusion {
    session: Option<String>,
    user: Option<String>,
    reason: String,
}

impl Default for PolicyScoring {
    fn default() -> PolicyScoring {
        PolicyScoring {
            default: vec!["average".to_owned()],
            global: Some("global-average".to_owned()),
            global_source: None,
        }
    }
}

impl Default for PolicyFile {
    fn default() -> PolicyFile {
        let hosted = arena_games::all().map(|playable| PolicyChallenge {
            name: playable.id.to_owned(),
            options: Map::new(),
            scoring: playable.kit.scoring.iter().map(|name| (*name).to_owned()).collect(),
        });
        PolicyFile { scoring: PolicyScoring::default(), challenges: hosted.collect(), exclude: Vec::new() }
    }
}

impl PolicyFile {
    /// Parses a policy. A policy without challenges has all built-in ones.
    pub fn read(text: &str) -> Result<PolicyFile, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns the settings of all leaderboards, for these challenges and `scripts`.
    pub fn resolve(&self, scripts: &[&dyn ChallengeType]) -> Result<LeaderboardPolicy, String> {
        let PolicyScoring { default, global, global_source } = &self.scoring;
        // In the settings of a server, an empty name means no global leaderboard.
        let global = global.as_deref().filter(|name| !name.is_empty());
        let own = self.challenges.iter().map(|challenge| (challenge.name.as_str(), challenge.scoring.as_slice()));
        let scoring =
            Scoring::new(default, own, global, global_source.as_deref()).map_err(|error| error.to_string())?;
        let mut policy = LeaderboardPolicy { scoring, ..LeaderboardPolicy::default() };
        for PolicyChallenge { name, options, .. } in &self.challenges {
            // A section may also give a script its strategies; its rules are in its folder.
            let Some(found) = arena_games::challenge(name, options) else { continue };
            let challenge = found.map_err(|error| format!("challenge {name}: {error}"))?;
            policy.main.insert(name.clone(), main_board(&*challenge)?);
        }
        for script in scripts {
            policy.main.insert(script.id().to_owned(), main_board(*script)?);
        }
        for PolicyExclusion { session, user, reason } in &self.exclude {
            let invalid = |text: &str, error: &dyn Display| format!("[[exclude]]: {text:?} is {error}");
            match (session, user) {
                (Some(text), None) => {
                    let session = text.parse::<SessionId>().map_err(|error| invalid(text, &error))?;
                    policy.excluded_sessions.insert(session, reason.clone());
                }
                (None, Some(text)) => {
                    let user = text.parse::<UserId>().map_err(|error| invalid(text, &error))?;
                    policy.excluded_users.insert(user, reason.clone());
                }
                _ => return Err("[[exclude]] needs either a session or a user".to_owned()),
            }
        }
        Ok(policy)
    }
}

/// Returns the board of games with a challenge's own options.
fn main_board(challenge: &dyn ChallengeType) -> Result<BoardId, String> {
    let options = challenge.resolve(&Map::new()).map_err(|error| format!("challenge {}: {error}", challenge.id()))?;
    Ok(BoardId::of(challenge.id(), &options, &BoardTerms::of(challenge)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Result<LeaderboardPolicy, String> {
        PolicyFile::read(text)?.resolve(&[])
    }

    #[test]
    fn an_empty_policy_is_that_of_a_new_server() {
        let policy = resolved("").unwrap();
        let settings = arena_server::Settings::default();
        let own = settings.challenges.iter().map(|challenge| (challenge.name.as_str(), challenge.scoring.as_slice()));
        let scoring = &settings.scoring;
        let expected =
            Scoring::new(&scoring.default, own, scoring.global.as_deref(), scoring.global_source.as_deref()).unwrap();
        assert_eq!(policy.scoring, expected);
        let names: Vec<&String> = policy.main.keys().collect();
        assert_eq!(names.len(), arena_games::challenges().count());
    }

    #[test]
    fn options_choose_the_main_board() {
        let section = |size: u32| format!("[[challenges]]\nname = \"psi\"\noptions = {{ setSize = {size} }}");
        let (usual, other) = (resolved(&section(10)).unwrap(), resolved(&section(7)).unwrap());
        assert_ne!(usual.main["psi"], other.main["psi"]);
        assert_eq!(other.main.len(), 1);
    }

    #[test]
    fn exclusions_name_one_session_or_user() {
        let id = "018f6b2e-0000-7000-8000-00000000abcd";
        let text =
            format!("[[exclude]]\nsession = \"{id}\"\nreason = \"a\"\n[[exclude]]\nuser = \"eve\"\nreason = \"b\"");
        let policy = resolved(&text).unwrap();
        assert_eq!(policy.excluded_sessions[&id.parse::<SessionId>().unwrap()], "a");
        assert_eq!(policy.excluded_users[&"eve".parse::<UserId>().unwrap()], "b");
        for (text, part) in [
            ("[[exclude]]\nreason = \"a\"", "either a session or a user"),
            ("[[exclude]]\nuser = \"a\"", "reason"),
            ("[[exclude]]\nsession = \"x\"\nreason = \"a\"", "a session id"),
            ("[scoring]\ndefault = [\"best\"]", "unknown strategy"),
            ("[[challenges]]\nname = \"psi\"\noptions = { setSize = \"x\" }", "setSize"),
            ("[other]", "other"),
        ] {
            let error = resolved(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
