//! A bot that speaks the Colosseum protocol, on a seat of a session. In a game, the bot receives states as in a match;
//! in other challenges, it receives messages and calls methods. The rules for faults are those of a match: a
//! disqualified bot loses the seat, and the program reports the reason to the user.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_match::{Agent, Confinement, OutputFile, OutputPath, OwnerLog, Solo, private};
use arena_model::{AgentId, ChallengeAction, ChallengeState, MAX_ACTIONS, RefusedAction, SeenMessage, TimeLimits};
use arena_players::http::{ChannelKind, HttpSeat, Inbox, InboxMessage, Refusal};
use serde_json::{Map, Value, json};

use super::PlayEnd;
use super::game::{GameState, Said};
use crate::args::BotArgs;
use crate::exit::{Exit, Failure};
use crate::matches::{cannot_write, explain, settings};

/// The default time limit of an answer, in milliseconds.
const STEP_MS: u64 = 60_000;

/// The time reserved for sending an answer to the server.
const SEND_MARGIN: Duration = Duration::from_millis(100);

/// The maximum number of consecutive states that contain refused actions but no new messages.
const MAX_REFUSAL_STATES: u32 = 10;

/// The error codes of answers that are valid but come too late.
const LATE_CODES: [&str; 3] = ["NOT_YOUR_TURN", "ALREADY_ANSWERED", "OUT_OF_THE_GAME"];

/// The number of log lines shown for a failed bot.
const LOG_LINES: usize = 10;

/// A bot that hasn't started yet.
pub struct BotPlayer {
    agent: Agent,
    confinement: Confinement,
    limits: TimeLimits,
    log: Option<(PathBuf, OutputFile)>,
}

enum Course {
    Over,
    /// The server refused an answer or disqualified the bot.
    Lost(String),
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
        let mut confinement = settings::confinement(&args.sandbox())?;
        let log: Vec<OutputPath<'_>> = args.log.iter().map(|path| OutputPath::File(path)).collect();
        confinement.private = private(std::slice::from_ref(&agent), &confinement.expose, confinement.mode, &log)
            .map_err(|error| Failure::new(Exit::Usage, error))?;
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
        let course = self.follow(&mut solo, seat, inbox);
        let name = solo.name().to_owned();
        let log = solo.finish();
        self.keep(&log)?;
        let why = match (&log.verdict, course?) {
            (Some((verdict, detail)), _) => format!("{verdict}: {detail}"),
            (None, Course::Lost(why)) => why,
            (None, Course::Over) => return Ok(PlayEnd::ToTheEnd),
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

    fn follow(&self, solo: &mut Solo<'_>, seat: &mut HttpSeat, inbox: &mut Inbox) -> Result<Course, Failure> {
        // A challenge with the method `actions` is a game of the Colosseum protocol.
        match seat.has_method("actions") {
            true => follow_game(solo, seat, inbox),
            false => self.follow_challenge(solo, seat, inbox),
        }
    }

    /// Plays a challenge that isn't a game of the protocol: the bot receives all messages.
    fn follow_challenge(&self, solo: &mut Solo<'_>, seat: &mut HttpSeat, inbox: &mut Inbox) -> Result<Course, Failure> {
        let mut config = Map::from_iter([
            ("challenge".to_owned(), json!(seat.challenge)),
            ("players".to_owned(), json!(seat.metadata.players)),
        ]);
        let limits = json!(self.limits);
        config.extend(limits.as_object().cloned().unwrap_or_default());
        solo.introduce(&config).map_err(explain)?;
        let (mut fresh, mut rejected) = (Vec::<SeenMessage>::new(), Vec::<RefusedAction>::new());
        let (mut epoch, mut refusal_states) = (0, 0);
        while solo.out().is_none() {
            // The next state reports refused actions at once, together with the messages that have arrived.
            let teaches = !rejected.is_empty() && refusal_states < MAX_REFUSAL_STATES;
            let (messages, goes_on) = inbox.gather(teaches.then(Instant::now))?;
            // The bot's own messages don't start a request to the bot.
            let is_news = messages.iter().any(|message| message.from != seat.you);
            fresh.extend(messages.into_iter().map(SeenMessage::from));
            if !goes_on {
                return Ok(Course::Over);
            }
            if !is_news && !teaches {
                continue;
            }
            refusal_states = if is_news { 0 } else { refusal_states + 1 };
            epoch += 1;
            seat.look_for_others()?;
            let players = seat.players();
            let ids: Vec<&str> = players.iter().flatten().map(String::as_str).collect();
            let mut members = json!({"epoch": epoch, "agent_ids": ids});
            let state = ChallengeState {
                challenge: seat.challenge.clone(),
                prompt: seat.metadata.prompt.clone(),
                methods: seat.metadata.methods.clone(),
                you: seat.you.clone(),
                messages: std::mem::take(&mut fresh),
                rejected: std::mem::take(&mut rejected),
                players,
            };
            let (Value::Object(mut state), Some(members)) = (json!(state), members.as_object_mut()) else {
                unreachable!("both are objects")
            };
            state.append(members);
            let answer = solo.show(&state, None).map_err(explain)?;
            if let Some(actions) = answer {
                rejected = act(seat, &actions)?;
            }
        }
        Ok(Course::Over)
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

/// Plays a game: the bot receives the same states as in a match.
fn follow_game(solo: &mut Solo<'_>, seat: &mut HttpSeat, inbox: &mut Inbox) -> Result<Course, Failure> {
    let mut answered = 0;
    loop {
        let (messages, goes_on) = inbox.gather(None)?;
        let came = Instant::now();
        // Of several pending states only the last is current.
        let mut last: Option<(GameState, &InboxMessage)> = None;
        for message in &messages {
            match Said::read(message) {
                Some(Said::Start { config, .. }) => solo.introduce(&config).map_err(explain)?,
                Some(Said::State(state)) => last = Some((state, message)),
                // A later public state says that this bot isn't to move any more.
                Some(Said::Public { public_state, asked }) if !asked.contains(&seat.you) => {
                    last = last.filter(|(state, _)| state.world_state.get("epoch") == public_state.get("epoch"));
                }
                // A later action of this seat has answered the state. Another program with the same invite may have
                // sent it.
                None if message.channel == ChannelKind::Operator && message.from == seat.you => last = None,
                Some(Said::Disqualified { disqualified, reason, detail }) if disqualified == seat.you => {
                    return Ok(Course::Lost(format!("the server disqualified it, {reason}: {detail}")));
                }
                _ => {}
            }
        }
        if !goes_on || solo.out().is_some() {
            return Ok(Course::Over);
        }
        let Some((mut state, message)) = last.filter(|(state, _)| state.asks(&seat.you)) else { continue };
        let epoch = state.world_state["epoch"].as_u64().unwrap_or(0);
        // After a return to the seat, the channel begins with past states.
        if epoch <= answered {
            continue;
        }
        answered = epoch;
        let by = state.until(message, came).and_then(|by| by.checked_sub(SEND_MARGIN));
        // `Solo` adds this member from the time bank that it counts itself.
        state.world_state.remove("remaining_overage_ms");
        let actions = match solo.show(&state.world_state, by).map_err(explain)? {
            Some(actions) => actions,
            None if solo.out().is_some() => return Ok(Course::Over),
            // An invalid answer counts as an answer without actions.
            None => "[]".to_owned(),
        };
        match seat.act("actions", &actions)? {
            // The answer was late or repeated: the game continues without it.
            Some(Refusal { code: Some(code), .. }) if LATE_CODES.contains(&code.as_str()) => {}
            Some(refusal) => return Ok(Course::Lost(format!("the arena refused its actions: {refusal}"))),
            None => {}
        }
    }
}

/// Performs a bot's actions in order. Returns those that failed.
fn act(seat: &HttpSeat, actions: &str) -> Result<Vec<RefusedAction>, Failure> {
    let list: Vec<Value> = match serde_json::from_str(actions) {
        Ok(Value::Array(list)) => list,
        Ok(other) => return Ok(vec![invalid(other, "`actions` isn't a list")]),
        // `Solo` accepts only JSON, so the only possible error is a number out of range.
        Err(error) => return Ok(vec![invalid(Value::Null, &error.to_string())]),
    };
    let mut refused = Vec::new();
    for (number, wanted) in list.into_iter().enumerate() {
        if number >= MAX_ACTIONS {
            refused.push(invalid(wanted, &format!("more than {MAX_ACTIONS} actions at once")));
            break;
        }
        let action = match serde_json::from_value::<ChallengeAction>(wanted.clone()) {
            Ok(action) => action,
            Err(error) => {
                refused.push(invalid(wanted, &error.to_string()));
                continue;
            }
        };
        let refusal = match action.action.as_str() {
            "chat" if !seat.has_method("chat") => seat.say(&action.content, action.to.as_deref())?,
            method => seat.act(method, &action.content)?,
        };
        if let Some(Refusal { code, error }) = refusal {
            refused.push(RefusedAction { action, code: code.unwrap_or_else(|| "REFUSED".to_owned()), error });
        }
    }
    Ok(refused)
}

/// Returns the report about an invalid action.
fn invalid(wanted: Value, why: &str) -> RefusedAction {
    let name = wanted["action"].as_str().unwrap_or_default().to_owned();
    let action = ChallengeAction { action: name, content: wanted.to_string(), to: None };
    RefusedAction { action, code: "INVALID_ACTION".to_owned(), error: why.to_owned() }
}
