//! A bot that speaks the Colosseum protocol, on a seat of a session. [`ProgramTalk`] is the conversation with it. The
//! rules for faults are those of a match: a disqualified bot loses the seat, and the program reports the reason to the
//! user.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_match::{Agent, Confinement, OutputFile, OutputPath, OwnerLog, Solo};
use arena_model::{AgentId, SeenMessage, TimeLimits};
use arena_players::http::{HttpSeat, Inbox, InboxMessage};
use arena_players::{GameMessage, ProgramState, ProgramTalk};

use super::PlayEnd;
use super::args::BotArgs;
use crate::exit::{Exit, Failure};
use crate::files::cannot_write;
use crate::matches::{explain, settings};

/// The default time limit of an answer, in milliseconds.
const STEP_MS: u64 = 60_000;

/// The time reserved for sending an answer to the server.
const SEND_MARGIN: Duration = Duration::from_millis(100);

/// The maximum number of consecutive states that contain refused actions but no new messages.
const MAX_REFUSAL_STATES: u32 = 10;

/// The number of log lines shown for a failed bot.
const LOG_LINES: usize = 10;

/// A bot that hasn't started yet.
pub struct BotPlayer {
    agent: Agent,
    confinement: Confinement,
    limits: TimeLimits,
    log: Option<(PathBuf, OutputFile)>,
}

impl BotPlayer {
    /// Creates the bot that the command line specifies.
    ///
    /// # Errors
    /// If the agent isn't found, or its log can't be written.
    pub fn of(args: &BotArgs) -> Result<BotPlayer, Failure> {
        let mut agent = match &args.agent {
            Some(path) => settings::find_agent(path)?,
            None => settings::find_command(&args.command)?,
        };
        agent.dialect = args.dialect.unwrap_or(agent.dialect);
        settings::print_notes(std::slice::from_ref(&agent));
        let limits = TimeLimits { step_ms: args.step_ms.unwrap_or(STEP_MS), bank_ms: args.bank_ms.unwrap_or(0) };
        let log: Vec<OutputPath<'_>> = args.log.iter().map(|path| OutputPath::File(path)).collect();
        let confinement = settings::confine(&args.sandbox(), std::slice::from_ref(&agent), &log)?;
        let create = |path: &PathBuf| match OutputFile::create(path) {
            Ok(file) => Ok((path.clone(), file)),
            Err(error) => Err(cannot_write(path, &error)),
        };
        Ok(BotPlayer { agent, confinement, limits, log: args.log.as_ref().map(create).transpose()? })
    }

    /// Lets the bot play.
    ///
    /// # Errors
    /// If the bot fails (the message contains the end of the bot's log), or the server fails.
    pub(super) fn play(
        &mut self,
        seat: &mut HttpSeat,
        inbox: &mut Inbox,
        called_off: &AtomicBool,
    ) -> Result<PlayEnd, Failure> {
        let id: AgentId = seat.you.parse().map_err(|error| {
            Failure::new(
                Exit::Internal,
                format_args!("the player id {} cannot be sent to an agent: it isn't {error}", seat.you),
            )
        })?;
        // Engines play only games that they know.
        let game = arena_games::game(&seat.challenge);
        let mut solo =
            Solo::start(&self.agent, game, id, &self.confinement, self.limits, called_off).map_err(explain)?;
        let lost = self.follow(&mut solo, seat, inbox);
        let name = solo.name().to_owned();
        let log = solo.finish();
        self.keep(&log)?;
        let why = match (&log.verdict, lost?) {
            (Some((verdict, detail)), _) => format!("{verdict}: {detail}"),
            (None, Some(why)) => why,
            (None, None) => return Ok(PlayEnd::ToTheEnd),
        };
        // A failed bot resigns, so that the other players needn't wait for it. The resignation doesn't quote the bot's
        // log, which is for its owner only.
        let reason = log.verdict.as_ref().map_or("the arena refused its actions", |(verdict, _)| verdict.name());
        let resigned = match seat.resign(reason)? {
            true => ", and resigned",
            false => "",
        };
        let last = log.stderr.last_lines(LOG_LINES).join("\n");
        let last = if last.is_empty() { String::new() } else { format!("; its log ends:\n{last}") };
        Err(Failure::new(Exit::FaultyAgent, format_args!("the agent {name} is out{resigned}: {why}{last}")))
    }

    /// Plays until the session is over or the bot is out. Returns the reason if the server refused an answer or
    /// disqualified the bot.
    fn follow(&self, solo: &mut Solo<'_>, seat: &mut HttpSeat, inbox: &mut Inbox) -> Result<Option<String>, Failure> {
        let mut talk = ProgramTalk::new(&seat.challenge, seat.metadata.clone(), self.limits);
        let mut messages: Vec<InboxMessage> = Vec::new();
        while solo.out().is_none() {
            let (came, sent) = (Instant::now(), messages.iter().map(|message| message.timestamp).max());
            seat.look_for_others()?;
            let news = messages.into_iter().map(SeenMessage::from).collect();
            let next = talk.hear(&seat.you, seat.players(), news, false, MAX_REFUSAL_STATES);
            if let Some(config) = talk.take_config() {
                solo.introduce(&config).map_err(explain)?;
            }
            if let Some(ProgramState { state, deadline }) = next.filter(|_| solo.out().is_none()) {
                // The deadline and the times of messages are by the server's clock.
                let left_ms =
                    deadline.zip(sent).map(|(deadline, sent)| deadline.saturating_sub(sent).max(0).unsigned_abs());
                let by = left_ms.and_then(|ms| (came + Duration::from_millis(ms)).checked_sub(SEND_MARGIN));
                let actions = solo.show(&state, by).map_err(explain)?;
                if solo.out().is_some() {
                    break;
                }
                // An invalid answer counts as an answer without actions.
                let steps = talk.take(actions.as_deref().unwrap_or("[]"));
                let perform = |step| Ok(seat.perform(step)?.map_or(Ok(()), |refusal| Err(refusal.to_string())));
                let results = steps.iter().map(perform).collect::<Result<Vec<_>, Failure>>()?;
                if let Some(refusal) = talk.learn(&results) {
                    return Ok(Some(format!("the arena refused its actions: {refusal}")));
                }
            }
            // The next state reports refused actions at once, together with the messages that have arrived.
            let (new, goes_on) = inbox.gather(talk.is_teaching(MAX_REFUSAL_STATES).then(Instant::now))?;
            let lost = new.iter().find_map(|message| disqualification(message, &seat.you));
            if lost.is_some() || !goes_on {
                return Ok(lost);
            }
            messages = new;
        }
        Ok(None)
    }

    /// Writes the log file, if the user requested one.
    fn keep(&mut self, log: &OwnerLog) -> Result<(), Failure> {
        let Some((path, mut file)) = self.log.take() else { return Ok(()) };
        let mut text = Vec::new();
        arena_match::logs::write_log(log, &mut text)
            .and_then(|()| file.write_all(&text))
            .and_then(|()| file.keep().map(|_| ()))
            .map_err(|error| cannot_write(&path, &error))
    }
}

/// Returns the reason if the server disqualifies the player `you` with this message.
fn disqualification(message: &InboxMessage, you: &str) -> Option<String> {
    match message.game_message()? {
        GameMessage::Disqualified { disqualified, reason, detail } if disqualified == you => {
            Some(format!("the server disqualified it, {reason}: {detail}"))
        }
        _ => None,
    }
}
