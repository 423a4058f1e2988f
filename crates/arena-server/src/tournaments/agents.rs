//! Agents that somebody uploaded or named: what is made of a request, and how one is entered in a tournament.

use std::path::{Path, PathBuf};

use arena_match::archive::{UnpackError, Unpacked};
use arena_match::{Agent, Channel, is_public};
use arena_model::{Timestamp, hex};
use arena_tournament::Entrant;
use axum::http::Uri;
use sha2::{Digest, Sha256};

use super::facts::{AgentFacts, Home, OnceFacts};
use super::folder::{Draft, write_facts};
use super::id::AgentId;
use super::refusal::Refusal;
use super::unpack::unpack;

/// The longest name, in characters: it stands in tables.
const LONGEST_NAME: usize = 64;

/// The longest address, in bytes.
const LONGEST_URL: usize = 2_000;

/// The folder of its files in that of an agent.
const FILES: &str = "files";

/// What an agent shall be made of.
pub(crate) enum Source<'r> {
    /// A tar.gz of a folder, or a single file of this name.
    Files { body: &'r [u8], file_name: Option<&'r str> },
    /// Somebody's server.
    Url(&'r str),
}

/// Whether a character does something to those around it: a control character, or one that turns the direction of writing, with
/// which a name would change places with the number behind it.
pub(crate) fn steers(char: char) -> bool {
    char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What an agent can be called.
///
/// # Errors
/// When it can't.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let length = name.chars().count();
    if name.trim() != name || !(1..=LONGEST_NAME).contains(&length) || name.contains(steers) {
        let text =
            format!("a name has 1 to {LONGEST_NAME} characters, none that steers others, and no space around it");
        return Err(Refusal::Agent(text));
    }
    Ok(())
}

/// What may be named as an agent's server. Its address is judged once more whenever it is connected to, since names can lead anywhere.
///
/// # Errors
/// When it isn't an address, or not one that is asked here.
pub(super) fn check_url(url: &str, may_be_private: bool) -> Result<(), Refusal> {
    let wrong = Refusal::Url("url is http:// or https://, a host, and a path, without a user");
    let Ok(parsed) = url.parse::<Uri>() else { return Err(wrong) };
    let is_http = matches!(parsed.scheme_str(), Some("http" | "https"));
    let has_user = parsed.authority().is_some_and(|authority| authority.as_str().contains('@'));
    let Some(host) = parsed.host().filter(|host| !host.is_empty() && is_http && !has_user && url.len() <= LONGEST_URL)
    else {
        return Err(wrong);
    };
    let address = host.trim_matches(['[', ']']).parse().ok();
    let is_near = address.is_some_and(|address| !is_public(address)) || host.eq_ignore_ascii_case("localhost");
    if is_near && !may_be_private {
        return Err(Refusal::Url(
            "servers at addresses that aren't public aren't asked here (tournaments.private_urls)",
        ));
    }
    Ok(())
}

/// Makes the folder of an agent, which isn't in its place yet.
///
/// # Errors
/// When what was sent is no agent, or can't be written.
pub(super) fn draft(
    folder: &Path,
    id: AgentId,
    source: &Source<'_>,
    name: Option<&str>,
    made: (Timestamp, Option<OnceFacts>),
    max_bytes: u64,
) -> Result<(Draft, AgentFacts), Refusal> {
    let draft = Draft::begin(folder, &id.to_string())?;
    let (name, version, home) = match source {
        Source::Url(url) => {
            let agent = Agent::find(url, "").map_err(|error| Refusal::Agent(error.to_string()))?;
            (name.unwrap_or(&agent.name).to_owned(), None, Home::Url((*url).to_owned()))
        }
        Source::Files { body, file_name } => {
            let files = draft.path().join(FILES);
            std::fs::create_dir(&files)?;
            let Unpacked { agent: path, files: count, bytes } =
                unpack(body, *file_name, &files, max_bytes).map_err(|error| match error {
                    UnpackError::Refused(text) => Refusal::Agent(text),
                    error @ UnpackError::TooLarge(_) => Refusal::Agent(format!("{error} (tournaments.unpacked_bytes)")),
                    UnpackError::Write(error) => Refusal::Write(error),
                })?;
            let agent = find(&files, &path)?;
            let sha256 = hex::encode(&Sha256::digest(body));
            // What a folder in the archive was called says more than that of ours.
            let own = if path.as_os_str().is_empty() && agent.name == FILES { "agent" } else { &agent.name };
            let home = Home::Files { agent: path, sha256, bytes, files: count };
            (name.unwrap_or(own).to_owned(), agent.version, home)
        }
    };
    check_name(&name)?;
    let is_no_version = |version: &String| version.chars().count() > LONGEST_NAME || version.contains(steers);
    if version.as_ref().is_some_and(is_no_version) {
        let text =
            format!("the version in its manifest has more than {LONGEST_NAME} characters, or some that steer others");
        return Err(Refusal::Agent(text));
    }
    let (Timestamp(created_at), once) = made;
    let facts = AgentFacts { id, name, version, created_at, home, once };
    write_facts(draft.path(), &facts)?;
    draft.settle()?;
    Ok((draft, facts))
}

/// The agent at `path` in a folder of files. It has to be a program of its own, and not lead to a server that nobody has judged.
fn find(files: &Path, path: &Path) -> Result<Agent, Refusal> {
    let search = std::env::var("PATH").unwrap_or_default();
    let place = if path.as_os_str().is_empty() { files.to_owned() } else { files.join(path) };
    let agent = Agent::find(&place.to_string_lossy(), &search).map_err(|error| {
        // Where it is on this machine is nobody's business.
        let sentence = error.to_string().replace(&*files.to_string_lossy(), FILES);
        Refusal::Agent(sentence)
    })?;
    match agent.channel {
        Channel::Stdio(_) => Ok(agent),
        Channel::Http(_) => Err(Refusal::Agent("its manifest leads to a server; name that by its url".to_owned())),
    }
}

/// An agent as it is entered in a tournament, as `name`. `folder` is its own.
///
/// # Errors
/// When its files are gone.
pub(super) fn enter(facts: &AgentFacts, folder: &Path, name: &str) -> Result<Entrant, Refusal> {
    let gone = || Refusal::Agent(format!("the files of agent {} are gone", facts.id));
    let mut agent = match &facts.home {
        Home::Url(url) => Agent::find(url, "").map_err(|error| Refusal::Agent(error.to_string()))?,
        // They were found when they came; what is wrong with them now is wrong with this machine.
        Home::Files { agent, .. } => find(&folder.join(FILES), agent).map_err(|_| gone())?,
    };
    name.clone_into(&mut agent.name);
    let mut entrant = arena_runner::enter(&agent, &PathBuf::new()).map_err(|_| gone())?;
    // What it is called where results are told.
    entrant.path = facts.id.to_string();
    entrant.version.clone_from(&facts.version);
    Ok(entrant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_where_they_are_written() {
        for name in ["a", "Ада 2.0", "שלום", "🐍"] {
            check_name(name).unwrap();
        }
        for name in ["", " a", "a\n", "a\u{202e}b", "\u{2066}a", "a\u{2069}", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn an_agent_whose_files_are_gone_is_not_entered() {
        let folder = tempfile::tempdir().unwrap();
        let id: AgentId = "018f6b2e-0000-7000-8000-00000000abcd".parse().unwrap();
        let home = Home::Files { agent: "bot".into(), sha256: String::new(), bytes: 1, files: 1 };
        let facts = AgentFacts { id, name: "ada".to_owned(), version: None, created_at: 0, home, once: None };
        let refusal = enter(&facts, folder.path(), "ada").unwrap_err();
        assert_eq!(refusal.to_string(), format!("the files of agent {id} are gone"));
    }

    #[test]
    fn addresses_are_judged_before_they_are_kept() {
        for url in ["http://agent.example/x?y=1", "https://1.1.1.1:8443/", "http://[2606:4700::1111]"] {
            check_url(url, false).unwrap();
        }
        for url in ["http://127.0.0.1:1", "http://[::1]/", "http://LOCALHOST/", "http://169.254.169.254/latest"] {
            assert!(check_url(url, false).unwrap_err().to_string().contains("private_urls"), "{url}");
            check_url(url, true).unwrap();
        }
        for url in
            ["", "/etc/passwd", "file:///etc/passwd", "http://", "http:///x", "http://a@b/", "ftp://a/", "http://a b"]
        {
            assert!(check_url(url, true).unwrap_err().to_string().contains("http:// or https://"), "{url}");
        }
        check_url(&format!("http://a/{}", "x".repeat(2_000)), true).unwrap_err();
    }
}
