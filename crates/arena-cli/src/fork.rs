//! `arena session fork` of files: other continuations of recorded games, offline.

mod players;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_model::{
    ChallengeType, ChatMessage, Ending, GameCategory, MemorySession, Phase, Seat, Seed, Session, SessionFacts,
    SessionId, hex,
};
use arena_players::http::random_bytes;
use arena_record::forks::{first_withheld, past_messages, reseed};
use arena_record::{
    ForkOf, Parsed, RecordInput, RecordViewer, RecordedRules, SaltSecret, has_rules, reexecute, reexecute_to,
    unplayable, write_record,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::args::ForkSessionArgs;
use crate::exit::{Exit, Failure};
use crate::matches::cannot_write;
use crate::output::{Style, print, print_for_reader};
use crate::record;
use crate::scripts;
use players::{ForkAgent, play_on};

struct SessionForks<'f> {
    args: &'f ForkSessionArgs,
    parsed: Parsed,
    challenge: Arc<dyn ChallengeType>,
    /// The original session after the last common event.
    past: Session,
    seed: Seed,
    /// The agents by seat; `None` if all players repeat their recorded actions.
    agents: Option<Vec<ForkAgent>>,
    names: Vec<String>,
    salts: SaltSecret,
}

struct PlayedFork {
    session: Session,
    messages: Vec<ChatMessage>,
}

/// Forks a record in a file.
///
/// # Errors
/// If the record can't be read or continued, or an agent or the output fails.
pub fn fork_session(args: &ForkSessionArgs, style: Style) -> Result<(), Failure> {
    let forks = SessionForks::of(args)?;
    let folder = args.out.as_ref().filter(|_| args.count > 1);
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    }
    let mut totals = vec![[0.0; 2]; forks.past.facts.invites.len()];
    for number in 1..=args.count {
        let fork = forks.play(number)?;
        let path = match folder {
            Some(folder) => Some(folder.join(format!("{number}.jsonl"))),
            None => args.out.clone(),
        };
        if let Some(path) = &path {
            let record = forks.write(&fork)?;
            fs::write(path, record).map_err(|error| cannot_write(path, &error))?;
        }
        for (total, score) in totals.iter_mut().zip(&fork.session.scores) {
            total[0] += score.security;
            total[1] += score.utility;
        }
        if !print_for_reader(&forks.describe(number, &fork, path.as_deref(), style)?)? {
            return Ok(());
        }
    }
    if args.count > 1 && style != Style::Json {
        let mean = |sum: f64| sum / f64::from(args.count);
        let seats: Vec<String> = totals
            .iter()
            .enumerate()
            .map(|(seat, total)| {
                format!("Player {}: security {:.3}, utility {:.3}", seat + 1, mean(total[0]), mean(total[1]))
            })
            .collect();
        print(&format!("mean of {} forks: {}", args.count, seats.join("; ")))?;
    }
    Ok(())
}

impl<'f> SessionForks<'f> {
    fn of(args: &'f ForkSessionArgs) -> Result<SessionForks<'f>, Failure> {
        let id = args.file.to_str().and_then(|text| text.parse::<SessionId>().ok());
        if let Some(id) = id.filter(|_| !args.file.exists()) {
            let advice = format!("a fork is of a file; save the record with `arena record get {id} --out FILE`");
            return Err(Failure::new(Exit::Usage, advice));
        }
        let parsed = read_record(&args.file)?;
        let about = |failure: Failure| failure.about(&args.file.display());
        let usage = |why: String| about(Failure::new(Exit::Usage, why));
        let seed = parsed.end.as_ref().and_then(|end| end.seed.as_ref()).map(|seed| Seed(seed.0)).ok_or_else(|| {
            usage(
                "the record has no seed, so it cannot be continued; only records of ended sessions have one".to_owned(),
            )
        })?;
        let last = parsed.events.last().map_or(0, |event| event.event);
        if args.at > last {
            return Err(usage(format!("--at {}: the record has {last} events", args.at)));
        }
        let challenge = find_challenge(&parsed, &args.challenges).map_err(about)?;
        if let Some(reason) = unplayable(&parsed.header, &*challenge) {
            return Err(about(Failure::new(Exit::OtherRules, reason)));
        }
        let is_reseeded = parsed.header.fork.as_ref().is_some_and(|fork| fork.reseeded);
        if is_reseeded {
            return Err(usage("the record is a fork with other random numbers; fork the original instead".to_owned()));
        }
        let repeats = args.swaps.is_empty() && args.others.is_none() && !args.reseed;
        if let Some((event, name)) = first_withheld(&parsed, if repeats { last } else { args.at }) {
            let why =
                format!("event {event}: the record withholds {name}, and a fork needs all contents up to its event");
            return Err(usage(why));
        }
        let past =
            reexecute_to(&parsed, &*challenge, args.at).map_err(|lie| about(Failure::new(Exit::BadReplay, lie)))?;
        let seats = past.facts.invites.len();
        match past.phase {
            Phase::Active => {}
            Phase::Open => {
                return Err(usage(format!("--at {}: the players haven't all joined at this event", args.at)));
            }
            Phase::Ended { .. } => return Err(usage(format!("--at {}: the game is over at this event", args.at))),
        }
        let (mut agents, mut names) = (None, vec!["recorded".to_owned(); seats]);
        if !repeats {
            names.fill(args.others.clone().unwrap_or_else(|| "house".to_owned()));
            for swap in &args.swaps {
                let name = names.get_mut(swap.seat).ok_or_else(|| {
                    usage(format!("--swap {}={}: the session has {seats} seats", swap.seat + 1, swap.agent))
                })?;
                name.clone_from(&swap.agent);
            }
            agents =
                Some(names.iter().map(|name| ForkAgent::parse(name)).collect::<Result<Vec<ForkAgent>, Failure>>()?);
        }
        Ok(SessionForks {
            args,
            parsed,
            challenge,
            past,
            seed,
            agents,
            names,
            salts: SaltSecret::from_random(random_bytes()?),
        })
    }

    /// Plays one fork, numbered from 1. Equal arguments and equal answers of models give equal games.
    fn play(&self, number: u32) -> Result<PlayedFork, Failure> {
        let args = self.args;
        let about = |failure: Failure| failure.about(&args.file.display());
        let label = format!("fork/{}/{}/{number}/{}", args.at, args.reseed, self.names.join(","));
        let id = SessionId(self.seed.derive_uuid(&label));
        let until = if self.agents.is_some() { args.at } else { u64::MAX };
        let played = match &self.agents {
            Some(_) => self.past.clone(),
            None => {
                let played = reexecute(&self.parsed, &*self.challenge)
                    .map_err(|lie| about(Failure::new(Exit::BadReplay, lie)))?;
                if let Some(reason) = played.unchecked {
                    return Err(about(Failure::new(Exit::FaultyChallenge, reason)));
                }
                played.session
            }
        };
        let mut session = continued(played, id);
        let messages =
            past_messages(&self.parsed, &session, until).map_err(|why| about(Failure::new(Exit::Usage, why)))?;
        let Some(agents) = &self.agents else { return Ok(PlayedFork { session, messages }) };
        if args.reseed {
            reseed(&mut session);
        }
        let session = MemorySession::resume(Arc::clone(&self.challenge), session, messages);
        let own = self.seed.derive(&format!("fork/{number}"));
        let players = agents
            .iter()
            .enumerate()
            .map(|(seat, agent)| agent.seat(&session, Seat(seat), &own))
            .collect::<Result<Vec<_>, Failure>>()?;
        let (mut session, messages) = play_on(session, players)?.into_parts();
        // The record has the original seed, from which the new one follows.
        let facts = SessionFacts { seed: Some(self.seed.clone()), ..(*session.facts).clone() };
        session.facts = Arc::new(facts);
        Ok(PlayedFork { session, messages })
    }

    fn write(&self, fork: &PlayedFork) -> Result<String, Failure> {
        let metadata = self.challenge.metadata();
        let input = RecordInput {
            session: &fork.session,
            messages: &fork.messages,
            commitments: &BTreeMap::new(),
            prompt_sha256: hex::encode(&Sha256::digest(&metadata.prompt)),
            rules_version: self.challenge.rules_version(),
            release: env!("CARGO_PKG_VERSION"),
            record_key: None,
            fork: Some(ForkOf { of: self.parsed.header.session, at: self.args.at, reseeded: self.args.reseed }),
        };
        let salts = self.salts.of_session(fork.session.facts.id);
        write_record(&input, &salts, RecordViewer::Everything, None)
            .map_err(|error| Failure::caused(Exit::Internal, &error))
    }

    fn describe(&self, number: u32, fork: &PlayedFork, path: Option<&Path>, style: Style) -> Result<String, Failure> {
        let session = &fork.session;
        let ending = match session.phase {
            Phase::Ended { ending: Ending::Completed, .. } => "completed",
            Phase::Ended { ending: Ending::Abandoned, .. } => "abandoned",
            Phase::Open | Phase::Active => "unfinished",
        };
        if style == Style::Json {
            let line = json!({
                "fork": number,
                "of": self.parsed.header.session.to_string(),
                "at": self.args.at,
                "reseeded": self.args.reseed,
                "session": session.facts.id.to_string(),
                "agents": self.names,
                "end": ending,
                "scores": serde_json::to_value(&session.scores).unwrap_or(Value::Null),
                "messages": fork.messages.len(),
                "record": path,
            });
            return Ok(line.to_string());
        }
        let seats: Vec<String> = session
            .scores
            .iter()
            .zip(&self.names)
            .enumerate()
            .map(|(seat, (score, name))| {
                format!("Player {} ({name}): security {}, utility {}", seat + 1, score.security, score.utility)
            })
            .collect();
        let to = path.map(|path| format!("; record: {}", path.display())).unwrap_or_default();
        let id = session.facts.id;
        Ok(format!("fork {number}, session {id}, {ending}: {}{to}", seats.join("; ")))
    }
}

/// Returns the session of a fork: with its own id, without users and boards, since other agents play on.
fn continued(mut session: Session, id: SessionId) -> Session {
    session.facts = Arc::new(SessionFacts { id, rated: None, ..(*session.facts).clone() });
    for occupant in &mut session.seats {
        occupant.user = None;
    }
    if let Phase::Ended { category, .. } = &mut session.phase {
        *category = GameCategory::Train;
    }
    session
}

/// Reads a record from a file, and checks all that needs no rules.
///
/// # Errors
/// If the file can't be read, or is false or foreign.
pub fn read_record(path: &Path) -> Result<Parsed, Failure> {
    record::open(path)
}

/// Finds the challenge of a record: built in, or a script in one of these folders.
///
/// # Errors
/// If there is no such challenge, or it has another version.
pub fn find_challenge(parsed: &Parsed, folders: &[PathBuf]) -> Result<Arc<dyn ChallengeType>, Failure> {
    let header = &parsed.header;
    let usage = |why: String| Failure::new(Exit::Usage, why);
    match &header.rules {
        RecordedRules::Builtin { version, .. } => {
            let options = header.options.as_object().cloned().unwrap_or_default();
            let found = arena_games::challenge(&header.challenge, &options)
                .ok_or_else(|| usage(format!("there is no built-in challenge `{}`", header.challenge)))?;
            let challenge = found.map_err(|error| usage(error.to_string()))?;
            let known = challenge.rules_version();
            challenge.with_rules(*version).ok_or_else(|| {
                Failure::new(
                    Exit::OtherRules,
                    format_args!(
                        "the game was played by version {version} of the rules of {}, but this program has version \
                         {known}; release {} has the other one",
                        header.challenge, header.release
                    ),
                )
            })
        }
        RecordedRules::Script { script } => {
            let wanted = script.to_string();
            for folder in folders {
                let challenge = scripts::read(folder)?;
                if has_rules(header, &challenge) {
                    return Ok(Arc::new(challenge));
                }
            }
            let name = &header.challenge;
            Err(usage(format!(
                "the game was played by version {wanted} of the script {name}; give its folder with --challenge DIR"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use arena_house::{Step, Strength};
    use arena_model::{InviteCode, Timestamp};
    use arena_players::{Answer, Answering, BotKind, Heard, Player, SeatEnd, StepResult};
    use arena_record::EndKind;
    use serde_json::Map;

    use super::*;

    /// Opens a session with all players.
    fn seated(challenge: &str) -> MemorySession {
        let challenge = arena_games::challenge(challenge, &Map::new()).unwrap().unwrap();
        let options = challenge.resolve(&Map::new()).unwrap();
        let code = |number: usize| format!("00000000-0000-7000-8000-{number:012}");
        let invite = |number| format!("inv_{}", code(number)).parse::<InviteCode>().unwrap();
        let facts = SessionFacts {
            id: code(0).parse().unwrap(),
            challenge: challenge.id().to_owned(),
            script: None,
            created_at: Timestamp(0),
            seed: Some(Seed::from_number(7)),
            invites: (1..=challenge.seats(&options)).map(invite).collect(),
            options,
            rated: None,
            is_unlisted: false,
        };
        MemorySession::seated(challenge, facts).unwrap()
    }

    /// Plays a session between copies of an agent.
    fn played(challenge: &str, agent: &ForkAgent) -> MemorySession {
        let session = seated(challenge);
        let seats = 0..session.names().len();
        let players = seats.map(|seat| agent.seat(&session, Seat(seat), &Seed::from_number(1)).unwrap()).collect();
        play_on(session, players).unwrap()
    }

    #[test]
    fn bots_play_all_built_in_challenges_on() {
        for challenge in arena_games::challenges() {
            for agent in [BotKind::House(Strength::Easy.into()), BotKind::Random].map(ForkAgent::Bot) {
                let [one, again] = [(); 2].map(|()| played(challenge, &agent));
                assert!(one.is_over(), "{challenge} {agent:?}");
                let (session, messages) = one.into_parts();
                assert_eq!(
                    (&session, &messages),
                    (again.session(), &again.messages().to_vec()),
                    "{challenge} {agent:?}"
                );
                let mut indexes: BTreeMap<arena_model::Channel, u64> = BTreeMap::new();
                for message in
                    messages.iter().filter(|message| !matches!(message.channel, arena_model::Channel::Inputs(_)))
                {
                    let last = indexes.entry(message.channel).or_default();
                    *last += 1;
                    assert_eq!(message.index, *last, "{challenge} {agent:?}");
                }
            }
        }
    }

    /// Plays a session between house bots, and writes its record to a file.
    fn write_original(challenge: &str, path: &Path) -> Session {
        let played = played(challenge, &ForkAgent::Bot(BotKind::House(Strength::Easy.into())));
        let rules_version = played.challenge().rules_version();
        let prompt_sha256 = hex::encode(&Sha256::digest(&played.challenge().metadata().prompt));
        let (session, messages) = played.into_parts();
        let input = RecordInput {
            session: &session,
            messages: &messages,
            commitments: &BTreeMap::new(),
            prompt_sha256,
            rules_version,
            release: "0.1.0",
            record_key: None,
            fork: None,
        };
        let salts = SaltSecret::from_random([1; 32]).of_session(session.facts.id);
        fs::write(path, write_record(&input, &salts, RecordViewer::Everything, None).unwrap()).unwrap();
        session
    }

    fn fork_args(file: &Path, at: u64, others: Option<&str>, reseed: bool) -> ForkSessionArgs {
        let (swaps, others, challenges) = (Vec::new(), others.map(str::to_owned), Vec::new());
        ForkSessionArgs { file: file.to_owned(), at, swaps, others, reseed, count: 1, out: None, challenges }
    }

    #[test]
    fn records_of_forks_can_be_played_again() {
        let folder = tempfile::tempdir().unwrap();
        for (number, challenge) in arena_games::challenges().enumerate() {
            let file = folder.path().join(format!("{challenge}.jsonl"));
            let original = write_original(challenge, &file);
            let at = original.seats.len() as u64;
            // Other players, or another seed as well, for every other challenge.
            let other = if number % 2 == 0 { (Some("house:easy"), false) } else { (Some("random"), true) };
            for (others, reseeded) in [(None, false), other] {
                let args = fork_args(&file, at, others, reseeded);
                let forks = SessionForks::of(&args).unwrap_or_else(|failure| panic!("{}", failure.sentence()));
                let fork = forks.play(1).unwrap();
                let copy = folder.path().join("fork.jsonl");
                fs::write(&copy, forks.write(&fork).unwrap()).unwrap();
                let parsed = read_record(&copy).unwrap();
                let fork_of = ForkOf { of: original.facts.id, at, reseeded };
                assert_eq!(parsed.header.fork, Some(fork_of), "{challenge}");
                if others != Some("random") {
                    assert_eq!(parsed.end.as_ref().unwrap().end, EndKind::Completed, "{challenge} {others:?}");
                }
                assert_ne!(parsed.header.session, original.facts.id, "{challenge}");
                let rules = find_challenge(&parsed, &[]).unwrap();
                let played = reexecute(&parsed, &*rules).unwrap_or_else(|lie| panic!("{challenge} {others:?}: {lie}"));
                assert_eq!((played.unchecked, &played.session.scores), (None, &fork.session.scores), "{challenge}");
                if others.is_none() {
                    assert_eq!((&fork.session.scores, &fork.session.state), (&original.scores, &original.state));
                }
            }
        }
    }

    #[test]
    fn impossible_forks_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("psi.jsonl");
        write_original("psi", &file);
        let last = read_record(&file).unwrap().events.len() as u64;
        let error = |args: ForkSessionArgs| {
            let failure = SessionForks::of(&args).err().unwrap();
            assert_eq!(failure.exit, Exit::Usage);
            failure.sentence().to_owned()
        };
        assert!(error(fork_args(&file, last + 1, None, false)).contains(&format!("the record has {last} events")));
        assert!(error(fork_args(&file, last, None, false)).contains("the game is over"));
        assert!(error(fork_args(&file, 1, None, false)).contains("haven't all joined"));
        assert!(error(fork_args(&file, 2, Some("./bot"), false)).contains("cannot play in a fork"));
        let swaps = vec!["9=house".parse().unwrap()];
        assert!(error(ForkSessionArgs { swaps, ..fork_args(&file, 2, None, false) }).contains("2 seats"));
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, arena_record::strip(&text, &|name| name != "operator/1")).unwrap();
        assert!(error(fork_args(&file, 2, None, false)).contains("withholds operator/1"));
    }

    /// A player that only waits.
    struct Silent;

    impl Player for Silent {
        fn answer<'a>(&'a mut self, _heard: Heard<'a>) -> Answering<'a> {
            Box::pin(async { Ok(Answer::Steps { steps: Vec::new(), waits: true, call: None }) })
        }

        fn learn(&mut self, _steps: &[Step], _results: &[StepResult]) -> Option<SeatEnd> {
            None
        }
    }

    #[test]
    fn a_fork_without_actions_ends_as_abandoned() {
        let silent = || Box::new(Silent) as Box<dyn Player>;
        let (session, messages) = play_on(seated("psi"), vec![silent(), silent()]).unwrap().into_parts();
        assert!(matches!(session.phase, Phase::Ended { ending: Ending::Abandoned, .. }));
        assert!(messages.last().unwrap().content.contains("nothing happened for 30 minutes"));
        let input = &messages[messages.len() - 2];
        assert_eq!((input.method.as_deref(), input.index), (Some("abandon"), session.version));
    }
}
