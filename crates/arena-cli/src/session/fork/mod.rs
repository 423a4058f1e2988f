//! `arena session fork`: other continuations of recorded games, offline.

mod agents;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use arena_model::{
    ChallengeType, ChatMessage, Ending, GameCategory, MemorySession, Phase, Seat, Seed, Session, SessionFacts,
    SessionId, hex,
};
use arena_players::http::random_bytes;
use arena_record::forks::{first_withheld, past_messages, reseed};
use arena_record::{
    ForkOf, Parsed, RecordInput, RecordViewer, SaltSecret, reexecute, reexecute_to, unplayable, write_record,
};
use clap::Args;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::exit::{Exit, Failure};
use crate::files::cannot_write;
use crate::output::{Style, print, print_for_reader};
use crate::record;

use agents::{ForkAgent, play_on};

/// Options of `arena session fork`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena session fork game.jsonl --at 12                       repeat the rest of the game
  arena session fork game.jsonl --at 12 --swap 1=house --out fork.jsonl
  arena session fork game.jsonl --at 12 --swap 1=model:NAME@ollama --others random
  arena session fork game.jsonl --at 12 --swap 1=house --count 100 --reseed --out forks

The fork has the same past as the original up to the event, and the same randomness after it; --reseed draws other random \
numbers. Time stands still while agents think, and moves on to a deadline when no agent acts. Each fork is a new session \
with a record of its own, which names the original and never counts on a leaderboard.

Agents: house, house:easy, random, or a language model (model:NAME, model:NAME@URL, model:NAME@PRESET). Seats are numbered \
from 1. Without --swap, --others and --reseed, all players repeat their recorded actions.

The record must be of an ended session and open all contents up to the event.")]
pub struct ForkSessionArgs {
    /// Record of an ended session.
    pub file: PathBuf,
    /// Number of the last event that the fork shares with the original.
    #[arg(long, value_name = "EVENT")]
    pub at: u64,
    /// Agent for a seat, counted from 1; may be repeated.
    #[arg(long = "swap", value_name = "SEAT=AGENT")]
    pub swaps: Vec<SeatSwap>,
    /// Agent for all other seats [default: house, if any seat has another agent or with --reseed]
    #[arg(long, value_name = "AGENT")]
    pub others: Option<String>,
    /// Draw other random numbers after the event.
    #[arg(long)]
    pub reseed: bool,
    /// Number of forks.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Output file; with --count, a folder for 1.jsonl, 2.jsonl and so on.
    #[arg(long, value_name = "FILE|DIR")]
    pub out: Option<PathBuf>,
    /// Folder of a scripted challenge, for records of it; may be repeated.
    #[arg(long = "challenge", value_name = "DIR")]
    pub challenges: Vec<PathBuf>,
}

/// An agent for one seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeatSwap {
    /// The seat, from 0.
    pub seat: usize,
    /// The agent.
    pub agent: String,
}

impl FromStr for SeatSwap {
    type Err = String;

    fn from_str(text: &str) -> Result<SeatSwap, String> {
        let (seat, agent) = text.split_once('=').ok_or("expected SEAT=AGENT, such as 2=house")?;
        let seat = seat.parse::<usize>().ok().and_then(|seat| seat.checked_sub(1));
        match seat {
            Some(seat) if !agent.is_empty() => Ok(SeatSwap { seat, agent: agent.to_owned() }),
            Some(_) => Err("expected an agent after the =, such as 2=house".to_owned()),
            None => Err("expected the number of a seat, from 1, such as 2=house".to_owned()),
        }
    }
}

/// Forks a record in a file.
///
/// # Errors
/// If the record can't be read or continued, or an agent or the output fails.
pub fn run(args: &ForkSessionArgs, style: Style) -> Result<(), Failure> {
    let forks = SessionForks::of(args)?;
    let folder = args.out.as_ref().filter(|_| args.count > 1);
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    }
    let mut totals = vec![[0.0; 2]; forks.names.len()];
    for number in 1..=args.count {
        let fork = forks.play(number)?;
        let path = match folder {
            Some(folder) => Some(folder.join(format!("{number}.jsonl"))),
            None => args.out.clone(),
        };
        if let Some(path) = &path {
            fs::write(path, forks.write(&fork)?).map_err(|error| cannot_write(path, &error))?;
        }
        for (total, score) in totals.iter_mut().zip(&fork.session.scores) {
            total[0] += score.security;
            total[1] += score.utility;
        }
        if !print_for_reader(&forks.describe(number, &fork, path.as_deref(), style))? {
            return Ok(());
        }
    }
    if args.count == 1 || style == Style::Json {
        return Ok(());
    }
    let seat = |(number, total): (usize, &[f64; 2])| {
        let [security, utility] = total.map(|sum| sum / f64::from(args.count));
        format!("Player {number}: security {security:.3}, utility {utility:.3}")
    };
    let seats: Vec<String> = (1..).zip(&totals).map(seat).collect();
    print(&format!("mean of {} forks: {}", args.count, seats.join("; ")))
}

/// A record, and the agents that play its forks.
struct SessionForks<'f> {
    args: &'f ForkSessionArgs,
    record: Parsed,
    challenge: Arc<dyn ChallengeType>,
    seed: Seed,
    /// The original session after the last common event.
    past: Session,
    /// The agents by seat; `None` if all players repeat their recorded actions.
    agents: Option<Vec<ForkAgent>>,
    names: Vec<String>,
    salts: SaltSecret,
}

struct PlayedFork {
    session: Session,
    messages: Vec<ChatMessage>,
}

impl<'f> SessionForks<'f> {
    fn of(args: &'f ForkSessionArgs) -> Result<SessionForks<'f>, Failure> {
        let id = args.file.to_str().and_then(|text| text.parse::<SessionId>().ok());
        if let Some(id) = id.filter(|_| !args.file.exists()) {
            let advice = format!("a fork is of a file; save the record with `arena record get {id} --out FILE`");
            return Err(Failure::usage(advice));
        }
        let about = |failure: Failure| failure.about(&args.file.display());
        let record = record::open(&args.file)?;
        let repeats = args.swaps.is_empty() && args.others.is_none() && !args.reseed;
        let (challenge, seed, past) = past_of(&record, args, repeats).map_err(about)?;
        let seats = past.facts.invites.len();
        let (agents, names) = match repeats {
            true => (None, vec!["recorded".to_owned(); seats]),
            false => {
                let names = agent_names(args, seats).map_err(about)?;
                let agents = names.iter().map(|name| ForkAgent::parse(name)).collect::<Result<_, Failure>>()?;
                (Some(agents), names)
            }
        };
        let salts = SaltSecret::from_random(random_bytes()?);
        Ok(SessionForks { args, record, challenge, seed, past, agents, names, salts })
    }

    /// Plays one fork, numbered from 1. Equal arguments and equal answers of models give equal games.
    fn play(&self, number: u32) -> Result<PlayedFork, Failure> {
        let ForkSessionArgs { file, at, reseed, .. } = self.args;
        let label = format!("fork/{at}/{reseed}/{number}/{}", self.names.join(","));
        let id = SessionId(self.seed.derive_uuid(&label));
        let about = |failure: Failure| failure.about(&file.display());
        match &self.agents {
            None => self.repeat(id).map_err(about),
            Some(agents) => {
                let session = continued(self.past.clone(), id);
                let messages = past_messages(&self.record, &session, *at).map_err(|why| about(Failure::usage(why)))?;
                self.play_on(agents, number, PlayedFork { session, messages })
            }
        }
    }

    /// Repeats the original session.
    fn repeat(&self, id: SessionId) -> Result<PlayedFork, Failure> {
        let played = reexecute(&self.record, &*self.challenge).map_err(|lie| Failure::new(Exit::BadReplay, lie))?;
        if let Some(reason) = played.unchecked {
            return Err(Failure::new(Exit::FaultyChallenge, reason));
        }
        let session = continued(played.session, id);
        let messages = past_messages(&self.record, &session, u64::MAX).map_err(Failure::usage)?;
        Ok(PlayedFork { session, messages })
    }

    /// Lets the agents play on after the last common event.
    fn play_on(&self, agents: &[ForkAgent], number: u32, past: PlayedFork) -> Result<PlayedFork, Failure> {
        let PlayedFork { mut session, messages } = past;
        if self.args.reseed {
            reseed(&mut session);
        }
        let session = MemorySession::resume(Arc::clone(&self.challenge), session, messages);
        let seed = self.seed.derive(&format!("fork/{number}"));
        let players = agents.iter().enumerate().map(|(seat, agent)| agent.player(&session, Seat(seat), &seed));
        let players = players.collect::<Result<Vec<_>, Failure>>()?;
        let (mut session, messages) = play_on(session, players)?.into_parts();
        // The record has the original seed, from which the new one follows.
        let facts = SessionFacts { seed: Some(self.seed.clone()), ..(*session.facts).clone() };
        session.facts = Arc::new(facts);
        Ok(PlayedFork { session, messages })
    }

    /// Returns the record of a fork.
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
            fork: Some(ForkOf { of: self.record.header.session, at: self.args.at, reseeded: self.args.reseed }),
        };
        let salts = self.salts.of_session(fork.session.facts.id);
        write_record(&input, &salts, RecordViewer::Everything, None)
            .map_err(|error| Failure::caused(Exit::Internal, &error))
    }

    fn describe(&self, number: u32, fork: &PlayedFork, path: Option<&Path>, style: Style) -> String {
        let Session { facts, phase, scores, .. } = &fork.session;
        let ending = match phase {
            Phase::Ended { ending: Ending::Completed, .. } => "completed",
            Phase::Ended { ending: Ending::Abandoned, .. } => "abandoned",
            Phase::Open | Phase::Active => "unfinished",
        };
        if style == Style::Json {
            let line = json!({
                "fork": number,
                "of": self.record.header.session.to_string(),
                "at": self.args.at,
                "reseeded": self.args.reseed,
                "session": facts.id.to_string(),
                "agents": self.names,
                "end": ending,
                "scores": scores,
                "messages": fork.messages.len(),
                "record": path,
            });
            return line.to_string();
        }
        let seats = (1..).zip(scores.iter().zip(&self.names)).map(|(number, (score, name))| {
            format!("Player {number} ({name}): security {}, utility {}", score.security, score.utility)
        });
        let seats = seats.collect::<Vec<_>>().join("; ");
        let to = path.map(|path| format!("; record: {}", path.display())).unwrap_or_default();
        format!("fork {number}, session {}, {ending}: {seats}{to}", facts.id)
    }
}

/// Returns the rules and the seed of a record, and its session after the last common event.
///
/// # Errors
/// If the record can't be continued there.
fn past_of(
    record: &Parsed,
    args: &ForkSessionArgs,
    repeats: bool,
) -> Result<(Arc<dyn ChallengeType>, Seed, Session), Failure> {
    let at = args.at;
    let Some(seed) = record.end.as_ref().and_then(|end| end.seed.as_ref()) else {
        let why = "the record has no seed, so it cannot be continued; only records of ended sessions have one";
        return Err(Failure::usage(why));
    };
    let last = record.events.last().map_or(0, |event| event.event);
    if at > last {
        return Err(Failure::usage(format_args!("--at {at}: the record has {last} events")));
    }
    let challenge = record::find_rules(record, &args.challenges)?;
    if let Some(reason) = unplayable(&record.header, &*challenge) {
        return Err(Failure::new(Exit::OtherRules, reason));
    }
    if record.header.fork.as_ref().is_some_and(|fork| fork.reseeded) {
        return Err(Failure::usage("the record is a fork with other random numbers; fork the original instead"));
    }
    if let Some((event, name)) = first_withheld(record, if repeats { last } else { at }) {
        let why = format!("event {event}: the record withholds {name}, and a fork needs all contents up to its event");
        return Err(Failure::usage(why));
    }
    let past = reexecute_to(record, &*challenge, at).map_err(|lie| Failure::new(Exit::BadReplay, lie))?;
    match past.phase {
        Phase::Active => Ok((challenge, Seed(seed.0), past)),
        Phase::Open => Err(Failure::usage(format_args!("--at {at}: the players haven't all joined at this event"))),
        Phase::Ended { .. } => Err(Failure::usage(format_args!("--at {at}: the game is over at this event"))),
    }
}

/// Returns the names of the agents by seat.
fn agent_names(args: &ForkSessionArgs, seats: usize) -> Result<Vec<String>, Failure> {
    let mut names = vec![args.others.clone().unwrap_or_else(|| "house".to_owned()); seats];
    for SeatSwap { seat, agent } in &args.swaps {
        let number = seat + 1;
        let missing = || Failure::usage(format_args!("--swap {number}={agent}: the session has {seats} seats"));
        names.get_mut(*seat).ok_or_else(missing)?.clone_from(agent);
    }
    Ok(names)
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
        let players = seats.map(|seat| agent.player(&session, Seat(seat), &Seed::from_number(1)).unwrap()).collect();
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
                let parsed = record::open(&copy).unwrap();
                let fork_of = ForkOf { of: original.facts.id, at, reseeded };
                assert_eq!(parsed.header.fork, Some(fork_of), "{challenge}");
                if others != Some("random") {
                    assert_eq!(parsed.end.as_ref().unwrap().end, EndKind::Completed, "{challenge} {others:?}");
                }
                assert_ne!(parsed.header.session, original.facts.id, "{challenge}");
                let rules = record::find_rules(&parsed, &[]).unwrap();
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
        let last = record::open(&file).unwrap().events.len() as u64;
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

    #[test]
    fn seats_are_counted_from_1() {
        let swap = |seat, agent: &str| Ok(SeatSwap { seat, agent: agent.to_owned() });
        for (text, expected) in [
            ("1=house", swap(0, "house")),
            ("12=model:m@http://a.example/?x=1", swap(11, "model:m@http://a.example/?x=1")),
            ("0=house", Err("expected the number of a seat, from 1, such as 2=house".to_owned())),
            ("x=house", Err("expected the number of a seat, from 1, such as 2=house".to_owned())),
            ("1=", Err("expected an agent after the =, such as 2=house".to_owned())),
            ("house", Err("expected SEAT=AGENT, such as 2=house".to_owned())),
        ] {
            assert_eq!(text.parse::<SeatSwap>(), expected, "{text}");
        }
    }
}
