//! Sessions: one run of an agent in a check, from its start to its end.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_model::Dialect;
use arena_model::{AgentId, TimeLimits};
use serde_json::{Map, Value};

use super::finding::{Finding, Findings};
use crate::agent::{Agent, Channel};
use crate::body::{Body, End, GRACE, Log};
use crate::conversation::{CONSENT, END, STARTUP, only_empty};
use crate::link::{Answer, Link, RELIEF, Request, ask_fairly};
use crate::match_plan::{Confinement, start_one};
use crate::message;
use crate::play::MatchError;
use crate::reply::{Claim, MAX_LABEL, Reply};
use crate::seat::{Seat, quote};

/// The time to wait for further lines after an answer.
const SECOND_LINE: Duration = Duration::from_millis(5);

/// The number of bytes per step on stderr above which the agent gets a note.
const CHATTER: u64 = 8 << 10;

/// The number of lines shown from the end of stderr.
const LOG_LINES: usize = 4;

/// A run of an agent.
pub struct Session<'a> {
    /// The seat, as in a match.
    pub seat: Seat,
    pub findings: Findings,
    agent: &'a Agent,
    link: Link,
    body: Box<dyn Body>,
    started: Instant,
    called_off: &'a AtomicBool,
    /// The agent's stderr, after its end.
    log: Option<Log>,
    /// The agent's last answer.
    line: Vec<u8>,
    /// True if a finding ended the session; the log may explain it.
    is_broken: bool,
}

#[derive(Clone, Copy)]
pub struct Start<'a> {
    pub agent: &'a Agent,
    pub confinement: &'a Confinement,
    /// True once the check is canceled.
    pub called_off: &'a AtomicBool,
}

pub enum NotStarted {
    Agent(Box<Finding>),
    System(MatchError),
}

impl<'a> Session<'a> {
    pub fn start(
        start: Start<'a>,
        id: AgentId,
        dialect: Dialect,
        limits: TimeLimits,
    ) -> Result<Session<'a>, NotStarted> {
        let Start { agent, confinement, called_off } = start;
        let started = Instant::now();
        let (link, body) =
            start_one(agent, None, confinement, limits).map_err(|error| match error.is_agents_fault() {
                true => NotStarted::Agent(Box::new(Finding::wrong(
                    format!("doesn't start: {error}"),
                    "start it in a terminal as the arena does, in an empty folder, and fix the errors it reports",
                ))),
                false => NotStarted::System(MatchError::Start(error)),
            })?;
        let seat = Seat::new(0, id, agent.name.clone(), agent.version.clone(), dialect, limits);
        Ok(Session {
            seat,
            findings: Findings::default(),
            agent,
            link,
            body,
            started,
            called_off,
            log: None,
            line: Vec::new(),
            is_broken: false,
        })
    }

    /// Returns true if the agent is a child process, and false for an HTTP server.
    pub fn is_process(&self) -> bool {
        matches!(self.agent.channel, Channel::Stdio(_))
    }

    /// Sends a request to the agent, and keeps the line of its answer, without its end.
    pub fn ask(
        &mut self,
        message: &[u8],
        patience: Duration,
        mut is_answer: impl FnMut(&mut Seat, &[u8]) -> bool,
    ) -> Result<(Answer, Duration), MatchError> {
        let (seat, body) = (&mut self.seat, &self.body);
        let mut requests = [Request::new(&mut self.link, 0, message, patience, Instant::now())];
        ask_fairly(&mut requests, self.called_off, |_, line| is_answer(seat, line), |_| body.cpu_times())?;
        let [request] = requests;
        let (answer, used) = (request.answer.unwrap_or(Answer::Interrupted), request.used);
        self.line.clear();
        match answer {
            Answer::Interrupted => return Err(MatchError::CalledOff),
            Answer::Line | Answer::SetAside => self.line.extend_from_slice(self.link.line()),
            _ => {}
        }
        Ok((answer, used))
    }

    /// Returns the last answer.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// Adds a finding that the agent's stderr may explain.
    pub fn break_off(&mut self, finding: Finding) {
        let log = self.log.get_or_insert_with(|| self.body.finish(Duration::ZERO));
        self.findings.add(Finding { log: tail(log), ..finding });
        self.is_broken = true;
    }

    /// Describes a request without an answer. For a closed output, describes the end of the process.
    pub fn describe(&mut self, answer: Answer, patience: Duration) -> String {
        match answer {
            Answer::Line | Answer::Interrupted => String::new(),
            Answer::SetAside => "no other answer".to_owned(),
            Answer::Late => format!("no answer within {} ms{}", patience.as_millis(), only_empty(&self.link)),
            Answer::Flood => "it wrote an endless line or too much unrequested output".to_owned(),
            Answer::Closed => self
                .body
                .ended(END)
                .map_or_else(|| "it closed its output".to_owned(), |end| format!("it {}", end.sentence)),
        }
    }

    /// Sends the ping, the id and the config, as in a match. Returns the time until the pong, or `None` if
    /// the session can't continue.
    pub fn shake_hands(&mut self, config: &Map<String, Value>) -> Result<Option<Duration>, MatchError> {
        let Some(took) = self.ping()? else { return Ok(None) };
        let message = message::set_agent_id(&self.seat.id, config);
        let (answer, _) = self.ask(&message, CONSENT, |_, _| true)?;
        match answer {
            Answer::Line => {
                self.judge_consent(&message);
                self.note_second_lines();
            }
            Answer::Late => {
                self.seat.note_silence();
                let what = format!(
                    "doesn't answer `set_agent_id` within {} ms, which each match waits for",
                    CONSENT.as_millis()
                );
                let advice =
                    "answer it with {\"agent_id\": the id, \"agent_name\": …, \"agent_version\": …}, and flush";
                self.findings.add(Finding::advice(what, advice).with_message(&message));
            }
            _ => {
                let how = self.describe(answer, CONSENT);
                let advice = "store the id, and accept any keys in `config`";
                self.break_off(
                    Finding::wrong(format!("fails at `set_agent_id`: {how}"), advice).with_message(&message),
                );
                return Ok(None);
            }
        }
        Ok(self.seat.is_in().then_some(took))
    }

    fn ping(&mut self) -> Result<Option<Duration>, MatchError> {
        let message = message::ping();
        // In a match, output before the ping may be discarded or taken for the answer to it.
        let early = if self.link.has_output(Duration::ZERO) { self.link.unrequested() } else { &[] };
        let mut strays: Vec<Vec<u8>> = lines(early).take(3).map(<[u8]>::to_owned).collect();
        let (answer, _) = self.ask(&message, STARTUP, |_, line| {
            let is_pong = Reply::read(line).is_ok_and(|reply| reply.has_pong());
            if !is_pong && strays.len() < 3 {
                strays.push(line.to_owned());
            }
            is_pong
        })?;
        let took = self.started.elapsed();
        for stray in &strays {
            let finding = match Reply::read(stray) {
                Ok(_) => Finding::wrong(
                    "answers the ping without the key `pong`",
                    "answer {\"ping\": …} with {\"pong\": \"pong\"}",
                ),
                Err(error) if !self.is_process() => Finding::wrong(
                    format!("answers the ping, but {error}"),
                    "answer with status 200 and a JSON object: {\"pong\": \"pong\"}",
                ),
                Err(_) => Finding::wrong(
                    "writes something else to stdout before it answers the ping",
                    "stdout is for the protocol alone; print banners and logs to stderr",
                ),
            };
            self.findings.add(finding.with_line(quote(stray)).with_message(&message));
        }
        match answer {
            Answer::Line => {
                self.note_line_end();
                self.note_second_lines();
                Ok(Some(took))
            }
            _ => {
                if matches!(answer, Answer::Late | Answer::SetAside)
                    && strays.iter().any(|stray| Reply::read(stray).is_ok())
                {
                    // The agent did answer; the finding has been added.
                    return Ok(None);
                }
                let how = self.describe(answer, STARTUP);
                let advice = match answer {
                    Answer::Late | Answer::SetAside => {
                        "answer {\"pong\": \"pong\"}, and flush stdout after each line: buffered output doesn't reach the arena. Read \
                         stdin line by line, not to its end. If it starts slowly, matches wait longer with --startup-ms"
                    }
                    Answer::Flood => "answer each message with one line, and write no other output",
                    _ if !self.is_process() => {
                        "start the server, and check that it answers a POST of {\"ping\": \"ping\"}"
                    }
                    _ => "start it in a terminal and send it {\"ping\": \"ping\"}",
                };
                self.break_off(
                    Finding::wrong(format!("doesn't answer the ping: {how}"), advice).with_message(&message),
                );
                Ok(None)
            }
        }
    }

    fn judge_consent(&mut self, message: &[u8]) {
        let line = std::mem::take(&mut self.line);
        let reply = Reply::read(&line);
        self.seat.validate_consent(&line);
        let sent = quote(&line);
        let faults: Vec<_> = self.seat.take_faults().collect();
        for fault in faults {
            let finding = Finding::wrong(
                format!("answers `set_agent_id` with an invalid line: {}", fault.what),
                mend(&fault.what),
            );
            self.findings.add(finding.with_line(&sent).with_message(message));
        }
        if self.seat.out.is_some() {
            let finding = Finding::wrong(
                "answers `set_agent_id` with another player's id, and is disqualified",
                "`agent_id` is the value of `set_agent_id`, unchanged",
            );
            self.findings.add(finding.with_line(sent).with_message(message));
        } else if let Ok(reply) = reply {
            if reply.claim(&self.seat.id_json) == Claim::Missing {
                let advice = "put the agent's id under `agent_id` here too, as in all later answers";
                self.findings.add(
                    Finding::advice("answers `set_agent_id` without `agent_id`", advice)
                        .with_line(&sent)
                        .with_message(message),
                );
            }
            let missing = match (reply.agent_name(), reply.agent_version()) {
                (None, None) => Some("its name and version"),
                (None, Some(_)) => Some("its name"),
                (Some(_), None) => Some("its version"),
                (Some(_), Some(_)) => None,
            };
            if let Some(missing) = missing {
                let advice = "tables and replays show `agent_name` and `agent_version` of this answer";
                self.findings.add(Finding::advice(format!("doesn't send {missing}"), advice).with_line(&sent));
            }
            if let Some(key) = reply.cut_label() {
                let what = format!("sends an `{key}` of more than {MAX_LABEL} characters, which is cut");
                self.findings.add(Finding::advice(what, "shorten it").with_line(sent));
            }
        }
        self.line = line;
    }

    /// Adds a finding if the answer has a byte order mark or a Windows line end.
    fn note_line_end(&mut self) {
        if self.line.starts_with("\u{feff}".as_bytes()) {
            let advice = "nothing needs to be done; the protocol has no such mark";
            self.findings.add(Finding::advice("begins with a byte order mark, which is harmless here", advice));
        }
        if self.line.ends_with(b"\r") {
            let advice = "nothing needs to be done; the protocol says LF alone";
            self.findings.add(Finding::advice("ends its lines with CR LF, which is harmless here", advice));
        }
    }

    /// Adds a finding about output after the answer, which the next request discards.
    pub fn note_second_lines(&mut self) {
        if !self.link.has_output(SECOND_LINE) {
            return;
        }
        let second = self.link.unrequested();
        if let Some(line) = lines(second).next() {
            let finding = Finding::wrong(
                "writes more than one line for one message; all but the first are discarded",
                "answer each message with one line, and print nothing else to stdout",
            );
            let finding = finding.with_line(quote(line));
            self.findings.add(finding);
        }
    }

    /// Sends `stop`, as in a match, or closes the input. Returns a description of a correct end.
    pub fn end(&mut self, sends_stop: bool, steps: u64) -> Option<String> {
        let (message, event) = match sends_stop {
            true => (message::stop(false), "`stop`"),
            false => (Vec::new(), "the end of its input"),
        };
        self.link.close(&message);
        if self.is_broken {
            return None;
        }
        if !self.is_process() {
            // An HTTP server receives `stop` but needn't end.
            self.log = Some(self.body.finish(GRACE));
            return None;
        }
        let (asked_at, before) = (Instant::now(), self.body.cpu_times());
        let mut end = self.body.ended(GRACE);
        if end.is_none() {
            // As with answers, the agent gets back the time for which it waited for a core.
            end = self.body.ended((self.body.cpu_times() - before).waiting.min(GRACE * RELIEF));
        }
        let took = asked_at.elapsed().as_millis();
        let log = self.log.get_or_insert_with(|| self.body.finish(Duration::ZERO));
        let (length, log) = (log.head.len() as u64 + log.left_out + log.tail.len() as u64, tail(log));
        if sends_stop && length > CHATTER * steps.max(1) {
            let what = format!("wrote {length} bytes to stderr in {steps} steps");
            self.findings.add(Finding::advice(
                what,
                "of a long log, only the start and the end are kept; output beyond 64 MiB disqualifies the agent",
            ));
        }
        match end {
            Some(End { code: Some(0), left_behind: 0, .. }) => {
                Some(format!("exits by itself after {event} ({took} ms)"))
            }
            Some(End { code: Some(0), left_behind, .. }) => {
                let processes = if left_behind == 1 { "process" } else { "processes" };
                let what = format!("leaves {left_behind} {processes} behind when it exits");
                self.findings
                    .add(Finding::advice(what, "end all child processes before the exit; the arena kills the rest"));
                None
            }
            Some(End { sentence, .. }) => {
                let finding = Finding::advice(format!("{sentence} after {event}"), "exit with code 0 and stop reading");
                self.findings.add(Finding { log, ..finding });
                None
            }
            None => {
                let what = format!("doesn't exit within {} ms after {event}, and is killed", GRACE.as_millis());
                self.findings.add(Finding::advice(what, "leave the loop at `stop` and at the end of the input"));
                None
            }
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if self.log.is_none() {
            self.body.kill();
            self.body.finish(Duration::ZERO);
        }
    }
}

/// Returns the nonblank lines.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty())
}

/// Returns the advice to the agent's author for a fault.
pub fn mend(what: &str) -> &'static str {
    match what {
        _ if what.contains("lacks `agent_id`") => "put the id from `set_agent_id` under `agent_id` into each answer",
        _ if what.starts_with("`agent_id` is") => "`agent_id` is the text from `set_agent_id`, unchanged",
        _ if what.contains(" raised ") || what.contains(" returned ") => {
            "the function's traceback is in its log; docs/python-functions.md in the repository describes the results that a function may return"
        }
        _ if what.contains("isn't JSON") => {
            "answer with one JSON object on one line, and print everything else to stderr"
        }
        _ if what.contains("UTF-8") => "write UTF-8, whatever the system's locale",
        _ => "answer with an object: {\"agent_id\": …, \"actions\": […]}",
    }
}

fn tail(log: &Log) -> Option<String> {
    let end = if log.tail.is_empty() { &log.head } else { &log.tail };
    let text = String::from_utf8_lossy(&end[end.len().saturating_sub(2000)..]).into_owned();
    let lines: Vec<String> =
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| quote(line.as_bytes())).collect();
    let shown = &lines[lines.len().saturating_sub(LOG_LINES)..];
    (!shown.is_empty()).then(|| shown.join("\n"))
}
