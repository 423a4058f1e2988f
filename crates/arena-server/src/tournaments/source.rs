//! Uploaded and remote agents: their creation from a request, and their entry in a tournament.

use std::path::{Path, PathBuf};

use arena_match::archive::{UnpackError, UnpackedArchive};
use arena_match::{Agent, Channel, is_public};
use arena_model::{Timestamp, hex};
use arena_tournament::Entrant;
use axum::http::Uri;
use sha2::{Digest, Sha256};

use super::facts::{AgentFacts, Home, LadderEntry, OnceFacts};
use super::folder::{Draft, write_facts};
use super::id::AgentId;
use super::refusal::TournamentRefusal;
use super::unpack::unpack;
use crate::request::names::{find_invisible, is_ignorable};

/// Maximum length of a name or version, in characters, so that it fits into tables.
const LONGEST_NAME: usize = 64;

/// Maximum length of a URL, in bytes.
const LONGEST_URL: usize = 2_000;

/// Name of the subfolder of an agent's folder that holds the uploaded files.
const FILES: &str = "files";

pub(crate) enum AgentSource<'r> {
    /// The body of an upload: a tar.gz of a folder, or a single file with the name `file_name`.
    Files { body: &'r [u8], file_name: Option<&'r str> },
    /// The URL of a remote agent.
    Url(&'r str),
}

/// A new agent from a request.
pub(crate) struct NewAgent<'r> {
    pub(crate) source: AgentSource<'r>,
    /// The name; that of the source without it.
    pub(crate) name: Option<&'r str>,
    /// The ladder that the agent joins, if any.
    pub(crate) ladder: Option<LadderEntry>,
}

/// True for control characters and invisible ones, including those that change the direction of text. Such a character
/// in a name could change the order in which the name and the text after it are displayed.
pub(crate) fn is_text_control(char: char) -> bool {
    char.is_control() || is_ignorable(char)
}

/// Validates the name of an agent.
///
/// # Errors
/// If the name is invalid.
pub(crate) fn check_name(name: &str) -> Result<(), TournamentRefusal> {
    if let Some(fault) = find_invisible(name) {
        return Err(TournamentRefusal::Agent(format!("name {fault}")));
    }
    let length = name.chars().count();
    if name.trim() != name || !(1..=LONGEST_NAME).contains(&length) || name.contains(char::is_control) {
        let text = format!(
            "name must be 1 to {LONGEST_NAME} characters without control characters and without spaces at its ends"
        );
        return Err(TournamentRefusal::Agent(text));
    }
    Ok(())
}

/// Validates the URL of a remote agent. The runner checks the address again at each connection, since a host name may
/// resolve to any address.
///
/// # Errors
/// If the URL is malformed or not allowed.
pub(super) fn check_url(url: &str, may_be_private: bool) -> Result<(), TournamentRefusal> {
    let wrong =
        TournamentRefusal::Url("url must be http:// or https:// with a host and without user info, at most 2000 bytes");
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
        return Err(TournamentRefusal::Url(
            "private addresses are not allowed on this server (tournaments.private_urls)",
        ));
    }
    Ok(())
}

/// Creates the unfinished folder of a new agent, with its files. Returns the folder and the agent's facts.
///
/// # Errors
/// If the source isn't a valid agent, or the files can't be written.
pub(super) fn draft(
    folder: &Path,
    id: AgentId,
    NewAgent { source, name, ladder }: NewAgent<'_>,
    (Timestamp(created_at), once): (Timestamp, Option<OnceFacts>),
    max_bytes: u64,
) -> Result<(Draft, AgentFacts), TournamentRefusal> {
    let draft = Draft::begin(folder, &id.to_string())?;
    let (name, version, home) = match source {
        AgentSource::Url(url) => {
            let agent = Agent::find(url, "").map_err(|error| TournamentRefusal::Agent(error.to_string()))?;
            (name.unwrap_or(&agent.name).to_owned(), None, Home::Url(url.to_owned()))
        }
        AgentSource::Files { body, file_name } => {
            let files = draft.path().join(FILES);
            std::fs::create_dir(&files)?;
            let UnpackedArchive { agent: path, files: count, bytes } = unpack(body, file_name, &files, max_bytes)
                .map_err(|error| match error {
                    UnpackError::Refused(text) => TournamentRefusal::Agent(text),
                    error @ UnpackError::TooLarge(_) => {
                        TournamentRefusal::Agent(format!("{error} (tournaments.unpacked_bytes)"))
                    }
                    UnpackError::Write(error) => TournamentRefusal::Write(error),
                })?;
            let agent = find(&files, &path)?;
            let sha256 = hex::encode(&Sha256::digest(body));
            // An agent without a name gets the name of its folder. At the root of the archive, that name is `FILES`.
            let own = if path.as_os_str().is_empty() && agent.name == FILES { "agent" } else { &agent.name };
            let home = Home::Files { agent: path, sha256, bytes, files: count };
            (name.unwrap_or(own).to_owned(), agent.version, home)
        }
    };
    check_name(&name)?;
    let is_no_version = |version: &String| version.chars().count() > LONGEST_NAME || version.contains(is_text_control);
    if version.as_ref().is_some_and(is_no_version) {
        let text =
            format!("the version in the manifest must be at most {LONGEST_NAME} characters without control characters");
        return Err(TournamentRefusal::Agent(text));
    }
    let facts = AgentFacts { id, name, version, created_at, home, ladder, once };
    write_facts(draft.path(), &facts)?;
    draft.settle()?;
    Ok((draft, facts))
}

/// The agent must be a program: a manifest with the URL of a server would bypass the check of URLs.
fn find(files: &Path, path: &Path) -> Result<Agent, TournamentRefusal> {
    let search = std::env::var("PATH").unwrap_or_default();
    let place = if path.as_os_str().is_empty() { files.to_owned() } else { files.join(path) };
    let agent = Agent::find(&place.to_string_lossy(), &search).map_err(|error| {
        // The error must not reveal the path on this machine.
        let sentence = error.to_string().replace(&*files.to_string_lossy(), FILES);
        TournamentRefusal::Agent(sentence)
    })?;
    match agent.channel {
        Channel::Stdio(_) => Ok(agent),
        Channel::Http(_) | Channel::BuiltIn(_) => Err(TournamentRefusal::Agent(
            "the manifest names a remote server; add the agent by its URL instead".to_owned(),
        )),
    }
}

fn missing(facts: &AgentFacts) -> TournamentRefusal {
    TournamentRefusal::Agent(format!("the files of agent {} are missing", facts.id))
}

/// Returns the agent with its files in `folder`, the agent's folder.
///
/// # Errors
/// If the agent's files are missing.
pub(super) fn agent_of(facts: &AgentFacts, folder: &Path) -> Result<Agent, TournamentRefusal> {
    match &facts.home {
        Home::Url(url) => Agent::find(url, "").map_err(|error| TournamentRefusal::Agent(error.to_string())),
        // The files were valid at the upload, so an error means that they are missing now.
        Home::Files { agent, .. } => find(&folder.join(FILES), agent).map_err(|_| missing(facts)),
    }
}

/// Builds the tournament entrant of an agent under the name `name`. `folder` is the agent's folder.
///
/// # Errors
/// If the agent's files are missing.
pub(super) fn enter(facts: &AgentFacts, folder: &Path, name: &str) -> Result<Entrant, TournamentRefusal> {
    let gone = || missing(facts);
    let mut agent = agent_of(facts, folder)?;
    name.clone_into(&mut agent.name);
    let mut entrant = arena_runner::enter(&agent, &PathBuf::new()).map_err(|_| gone())?;
    // Results show the id instead of the path.
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
        for name in [
            "",
            " a",
            "a\n",
            "a\u{202e}b",
            "\u{2066}a",
            "a\u{2069}",
            "a\u{200b}",
            "a\u{e0041}",
            "e\u{301}",
            &"x".repeat(65),
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn an_agent_with_missing_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let id: AgentId = "018f6b2e-0000-7000-8000-00000000abcd".parse().unwrap();
        let home = Home::Files { agent: "bot".into(), sha256: String::new(), bytes: 1, files: 1 };
        let facts =
            AgentFacts { id, name: "ada".to_owned(), version: None, created_at: 0, home, ladder: None, once: None };
        let refusal = enter(&facts, folder.path(), "ada").unwrap_err();
        assert_eq!(refusal.to_string(), format!("the files of agent {id} are missing"));
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
