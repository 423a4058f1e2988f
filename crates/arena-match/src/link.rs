//! Links: the two pipes to an agent, with non-blocking reads and writes, and the wait for the answers of all
//! agents of a match.
//!
//! Memory is bounded for any output of an agent: a line by [`MAX_LINE`], unrequested output by
//! [`MAX_UNREQUESTED`]. The conversation, not the link, validates the answers.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::cpu_times::CpuTimes;

/// The maximum length of a line from an agent, in bytes, without the line end.
pub const MAX_LINE: usize = 1 << 20;

/// The maximum size of unrequested output, in bytes: for one request, and in the whole match.
const MAX_UNREQUESTED: (usize, usize) = (1 << 20, 64 << 20);

/// The size of a read, in bytes.
const CHUNK: usize = 64 << 10;

/// The delay of the first CPU measurement of an agent that hasn't answered. Measuring earlier would cost time
/// with quick agents.
const EARLY: Duration = Duration::from_millis(10);

/// The maximum time given back to an agent that was kept from running, as a multiple of its deadline.
pub(crate) const RELIEF: u32 = 3;

/// The time to wait for another line after a line that may be the answer to an earlier message.
const AFTERTHOUGHT: Duration = Duration::from_millis(500);

/// The interval at which a long wait checks for the end of the match.
const LOOK: Duration = Duration::from_millis(100);

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A line, which [`Link::line`] returns until the next request.
    Line,
    /// A line that `is_answer` rejected, and no accepted line before the deadline. The rejected line counts as the
    /// answer.
    SetAside,
    /// No answer before the deadline.
    Late,
    /// The agent closed its output or ended.
    Closed,
    /// A line longer than [`MAX_LINE`], or too much unrequested output.
    Flood,
    /// The match was canceled.
    Interrupted,
}

#[derive(Debug)]
pub struct Link {
    input: Option<OwnedFd>,
    output: OwnedFd,
    /// The buffered input. The bytes in `buffer[start..end]` haven't been consumed yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset in `buffer` up to which the search has found no line end.
    searched: usize,
    line: (usize, usize),
    /// True after the first request.
    is_asked: bool,
    /// True if the rest of a line that began before the request is to be discarded.
    is_skipping: bool,
    dropped: usize,
    /// The number of empty lines since the request.
    empty_lines: usize,
    has_ended: bool,
    is_closed: bool,
}

#[derive(Debug)]
pub struct Request<'a> {
    pub link: &'a mut Link,
    /// The seat, for the caller only.
    pub seat: usize,
    /// The message: one or several lines.
    pub message: &'a [u8],
    /// The time limit for the answer, from the write of the message.
    pub patience: Duration,
    pub answer: Option<Answer>,
    /// The time from the write of the message to the answer, less the time for which the agent waited for a
    /// core.
    pub used: Duration,
    written: usize,
    asked: Instant,
    is_ready: bool,
    /// The agent's CPU accounting at its first measurement, and the time of that measurement.
    cpu_times_before: Option<(Instant, CpuTimes)>,
    /// The delay of the first CPU measurement, if the runner was late. The agent gets this time back, because
    /// its CPU time before the measurement is unknown.
    late: Duration,
    /// The time given back to the agent because it was kept from running; at most [`RELIEF`] times
    /// `patience`.
    kept: Duration,
    /// The time used until a line arrived that may be the answer to an earlier message.
    set_aside: Option<Duration>,
}

impl<'a> Request<'a> {
    /// Creates a request that hasn't been sent yet.
    pub fn new(link: &'a mut Link, seat: usize, message: &'a [u8], patience: Duration, now: Instant) -> Request<'a> {
        Request {
            link,
            seat,
            message,
            patience,
            answer: None,
            used: Duration::ZERO,
            written: 0,
            asked: now,
            is_ready: false,
            cpu_times_before: None,
            late: Duration::ZERO,
            kept: Duration::ZERO,
            set_aside: None,
        }
    }

    fn is_open(&self) -> bool {
        self.answer.is_none()
    }

    /// Returns the time at which the request must be checked next, unless an answer arrives before.
    fn next_look(&self) -> Instant {
        match self.cpu_times_before {
            None => self.asked + self.patience.min(EARLY),
            Some(_) => self.deadline(),
        }
    }

    fn deadline(&self) -> Instant {
        self.asked + self.patience + self.kept
    }

    /// Updates the time given back, after a CPU measurement. The agent gets back the time for which its processes
    /// waited for a core, at most the time for which none of its processes ran.
    fn note_cpu_times(&mut self, now: Instant, cpu_times: CpuTimes) {
        if self.cpu_times_before.is_none() {
            // Timers usually fire a little late.
            let late = now.saturating_duration_since(self.next_look());
            self.late = if late > EARLY { late } else { Duration::ZERO };
        }
        let (at, before) = *self.cpu_times_before.get_or_insert((now, cpu_times));
        let cpu_times = cpu_times - before;
        let left_to_others = now.saturating_duration_since(at).saturating_sub(cpu_times.running);
        self.kept = (self.late + cpu_times.waiting.min(left_to_others)).min(self.patience * RELIEF);
    }

    fn used(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.asked).saturating_sub(self.kept).min(self.patience)
    }

    fn settle(&mut self, answer: Answer, now: Instant) {
        self.used = self.used(now);
        self.answer = Some(answer);
    }

    /// Records the arrival of a line that counts as the answer unless a better line follows within [`AFTERTHOUGHT`].
    fn set_aside(&mut self, now: Instant) {
        if self.set_aside.is_none() {
            let used = self.used(now);
            self.set_aside = Some(used);
            self.patience = self.patience.min(used + AFTERTHOUGHT);
        }
    }

    /// Writes as much as the pipe accepts. If the agent has closed its input, nothing more is written, and
    /// only its output determines the answer.
    fn write(&mut self) {
        while self.written < self.message.len() {
            let Some(input) = &self.link.input else { return };
            match rustix::io::write(input, &self.message[self.written..]) {
                Ok(written) => self.written += written,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.link.input = None,
            }
        }
    }

    /// Reads the available output. Settles the request if it contains the answer or the time is over.
    fn scan(&mut self, now: Instant, is_over: bool, is_answer: &mut impl FnMut(usize, &[u8]) -> bool) {
        let mut passed_over = 0;
        while let Some(answer) = self.link.read() {
            if answer != Answer::Line || is_answer(self.seat, self.link.line()) {
                return self.settle(answer, now);
            }
            self.set_aside(now);
            // An agent could write lines as fast as they are read. The bound ensures that the loop returns to the other
            // agents and the deadline.
            passed_over += self.link.line().len() + 1;
            if passed_over > MAX_UNREQUESTED.0 || !self.link.discard_line() {
                return self.settle(Answer::Flood, now);
            }
        }
        match self.set_aside.filter(|_| is_over) {
            Some(used) => (self.answer, self.used) = (Some(Answer::SetAside), used),
            None if is_over => self.settle(Answer::Late, now),
            None => {}
        }
    }

    fn wants_to_write(&self) -> bool {
        self.written < self.message.len() && self.link.input.is_some()
    }
}

impl Link {
    /// Creates a link over the agent's stdin and stdout. Both must be non-blocking on this side.
    pub fn new(input: OwnedFd, output: OwnedFd) -> Link {
        Link {
            input: Some(input),
            output,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            searched: 0,
            line: (0, 0),
            is_asked: false,
            is_skipping: false,
            dropped: 0,
            empty_lines: 0,
            has_ended: false,
            is_closed: false,
        }
    }

    /// Returns the line of the last answer, without its line end.
    pub fn line(&self) -> &[u8] {
        &self.buffer[self.line.0..self.line.1]
    }

    /// Returns the number of empty lines since the last request. Empty lines answer nothing.
    pub fn empty_lines(&self) -> usize {
        self.empty_lines
    }

    /// Writes as much of a last message as the pipe accepts, and closes the agent's input.
    pub fn close(&mut self, message: &[u8]) {
        self.is_closed = true;
        if let Some(input) = self.input.take() {
            // An agent may ignore the last message.
            let _ = rustix::io::write(&input, message);
        }
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Reads the agent's output since its last answer. The next request discards it.
    pub fn unrequested(&mut self) -> &[u8] {
        loop {
            if self.end == self.buffer.len() {
                if self.buffer.len() > MAX_LINE {
                    break;
                }
                self.buffer.resize((self.buffer.len() * 2).min(MAX_LINE + 1), 0);
            }
            match rustix::io::read(&self.output, &mut self.buffer[self.end..]) {
                Ok(0) => self.has_ended = true,
                Ok(read) => {
                    self.end += read;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(_) => {}
            }
            break;
        }
        &self.buffer[self.start..self.end]
    }

    /// Waits up to `within` for output of the agent. Returns true if output is available or the output is
    /// closed.
    pub fn has_output(&self, within: Duration) -> bool {
        self.end > self.start || crate::process::wait_readable(&self.output, within)
    }

    /// Counts the current line as unrequested output. Returns false if the total exceeds the limit.
    fn discard_line(&mut self) -> bool {
        self.dropped += self.line.1 + 1 - self.line.0;
        self.dropped <= MAX_UNREQUESTED.1
    }

    /// Discards output that the agent wrote before the request. Returns false if it exceeds a limit.
    ///
    /// Output before the first request is kept. Agents start at the same time, so a greeting could arrive
    /// before or after the request; the first line answers it in both cases.
    fn discard_unrequested(&mut self) -> bool {
        self.empty_lines = 0;
        if !std::mem::replace(&mut self.is_asked, true) {
            return true;
        }
        let mut dropped = self.end - self.start;
        let mut is_skipping = breaks_off(self.is_skipping, &self.buffer[self.start..self.end]);
        loop {
            match rustix::io::read(&self.output, &mut self.buffer[..]) {
                Ok(0) => {
                    self.has_ended = true;
                    break;
                }
                Ok(read) => {
                    dropped += read;
                    is_skipping = breaks_off(is_skipping, &self.buffer[..read]);
                    if dropped > MAX_UNREQUESTED.0 {
                        return false;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.has_ended = true;
                    break;
                }
            }
        }
        self.is_skipping = is_skipping;
        (self.start, self.end, self.searched) = (0, 0, 0);
        self.dropped += dropped;
        self.dropped <= MAX_UNREQUESTED.1
    }

    /// Reads the available output. Returns `None` without a complete line.
    fn read(&mut self) -> Option<Answer> {
        if self.searched < self.end
            && let Some(answer) = self.take_line()
        {
            return Some(answer);
        }
        loop {
            if self.end == self.buffer.len() {
                if self.start > 0 {
                    self.buffer.copy_within(self.start..self.end, 0);
                    (self.searched, self.end, self.start) = (self.searched - self.start, self.end - self.start, 0);
                } else if self.buffer.len() > MAX_LINE {
                    return Some(Answer::Flood);
                } else {
                    let longer = (self.buffer.len() * 2).min(MAX_LINE + 1);
                    self.buffer.resize(longer, 0);
                }
            }
            match rustix::io::read(&self.output, &mut self.buffer[self.end..]) {
                Ok(0) => self.has_ended = true,
                Ok(read) => self.end += read,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return None,
                Err(_) => self.has_ended = true,
            }
            if let Some(answer) = self.take_line() {
                return Some(answer);
            }
            // A read that doesn't fill the buffer has emptied the pipe, so another call would be wasted.
            if self.end < self.buffer.len() {
                return None;
            }
        }
    }

    /// Takes the next nonblank line from the buffer.
    fn take_line(&mut self) -> Option<Answer> {
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..self.end]) {
            let line = (self.start, self.searched + at);
            (self.start, self.searched) = (line.1 + 1, line.1 + 1);
            let is_rest = std::mem::replace(&mut self.is_skipping, false);
            if is_rest || self.buffer[line.0..line.1].trim_ascii().is_empty() {
                self.dropped += line.1 + 1 - line.0;
                self.empty_lines += usize::from(!is_rest);
                if self.dropped > MAX_UNREQUESTED.1 {
                    return Some(Answer::Flood);
                }
                continue;
            }
            self.line = line;
            return Some(Answer::Line);
        }
        self.searched = self.end;
        if self.is_skipping {
            self.dropped += self.end - self.start;
            (self.start, self.end, self.searched) = (0, 0, 0);
            if self.dropped > MAX_UNREQUESTED.1 {
                return Some(Answer::Flood);
            }
        }
        self.has_ended.then_some(Answer::Closed)
    }
}

/// Returns true if these bytes end within a line. `was` is the result for the bytes before them. Blanks don't begin a
/// line, because some agents write them after the line end.
fn breaks_off(was: bool, bytes: &[u8]) -> bool {
    match memchr::memrchr(b'\n', bytes) {
        Some(at) => !bytes[at + 1..].trim_ascii().is_empty(),
        None => was || !bytes.trim_ascii().is_empty(),
    }
}

/// Sends all requests and waits until each request is answered or its deadline has passed. The agents' clocks
/// run in parallel. Each clock starts when the message has been written, as far as the pipe accepts it.
///
/// Output since the previous answer is discarded, and so is a line for which `is_answer`, given the seat,
/// returns false. An answer that has arrived before the deadline's check counts, because a late check is the
/// runner's fault.
///
/// # Errors
/// If the system can't wait for the pipes.
#[cfg(test)]
pub fn ask(
    requests: &mut [Request<'_>],
    called_off: &AtomicBool,
    is_answer: impl FnMut(usize, &[u8]) -> bool,
) -> Result<(), Errno> {
    ask_fairly(requests, called_off, is_answer, |_| CpuTimes::default())
}

/// Sends requests like `ask`, and gives agents back the time for which other processes kept them from running.
/// `cpu_times` returns the CPU accounting of a seat's agent since its start.
///
/// # Errors
/// If the system can't wait for the pipes.
pub fn ask_fairly(
    requests: &mut [Request<'_>],
    called_off: &AtomicBool,
    mut is_answer: impl FnMut(usize, &[u8]) -> bool,
    cpu_times: impl Fn(usize) -> CpuTimes,
) -> Result<(), Errno> {
    for request in &mut *requests {
        if !request.link.discard_unrequested() {
            request.settle(Answer::Flood, request.asked);
        } else if request.link.has_ended {
            request.settle(Answer::Closed, request.asked);
        }
    }
    for request in requests.iter_mut().filter(|request| request.is_open()) {
        request.write();
    }
    let mut now = Instant::now();
    for request in requests.iter_mut().filter(|request| request.is_open()) {
        request.asked = now;
    }
    loop {
        let Some(next) = requests.iter().filter(|request| request.is_open()).map(Request::next_look).min() else {
            return Ok(());
        };
        if called_off.load(Ordering::Relaxed) {
            for request in requests.iter_mut().filter(|request| request.is_open()) {
                request.settle(Answer::Interrupted, now);
            }
            return Ok(());
        }
        poll_open(requests, next.saturating_duration_since(now).min(LOOK))?;
        now = Instant::now();
        for request in requests.iter_mut().filter(|request| request.is_open()) {
            request.write();
            let (is_due, is_known) = (now >= request.next_look(), request.cpu_times_before.is_some());
            if is_due || (request.is_ready && is_known) {
                request.note_cpu_times(now, cpu_times(request.seat));
            }
            // The first measurement may be late; only the second one shows the time to give back.
            let is_over = is_known && now >= request.deadline();
            if request.is_ready || is_over {
                request.scan(now, is_over, &mut is_answer);
            }
        }
    }
}

/// Waits until an unanswered request can proceed, and records the agents with output.
fn poll_open(requests: &mut [Request<'_>], patience: Duration) -> Result<(), Errno> {
    let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(requests.len() * 2);
    for request in requests.iter().filter(|request| request.is_open()) {
        fds.push(PollFd::new(&request.link.output, PollFlags::IN));
        if let Some(input) = request.link.input.as_ref().filter(|_| request.wants_to_write()) {
            fds.push(PollFd::new(input, PollFlags::OUT));
        }
    }
    let patience = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
    match poll(&mut fds, Some(&patience)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error),
    }
    let noted: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
    let mut noted = noted.into_iter();
    for request in requests.iter_mut().filter(|request| request.is_open()) {
        request.is_ready = noted.next().is_some_and(|events| !events.is_empty());
        if request.wants_to_write() {
            noted.next();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::thread;

    use rustix::fs::{OFlags, fcntl_setfl};
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    /// Returns a link and the agent's ends of its pipes, for input and output.
    fn link() -> (Link, OwnedFd, OwnedFd) {
        let (their_input, input) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (output, their_output) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        for fd in [input.as_fd(), output.as_fd()] {
            fcntl_setfl(fd, OFlags::NONBLOCK).unwrap();
        }
        (Link::new(input, output), their_input, their_output)
    }

    /// Sends one request with `patience_ms`. Returns the answer and its line.
    fn once(link: &mut Link, patience_ms: u64, is_answer: impl FnMut(usize, &[u8]) -> bool) -> (Answer, String) {
        let patience = Duration::from_millis(patience_ms);
        let mut requests = [Request::new(link, 0, b"?\n", patience, Instant::now())];
        ask(&mut requests, &AtomicBool::new(false), is_answer).unwrap();
        let answer = requests[0].answer.unwrap();
        let line =
            if answer == Answer::Line { String::from_utf8_lossy(link.line()).into_owned() } else { String::new() };
        (answer, line)
    }

    /// Answers the next request with these pieces, one per write. Returns the pipe ends, which keeps them
    /// open.
    fn answering(input: OwnedFd, output: OwnedFd, pieces: Vec<Vec<u8>>) -> thread::JoinHandle<(OwnedFd, OwnedFd)> {
        thread::spawn(move || {
            rustix::io::read(&input, &mut [0; 8][..]).unwrap();
            for piece in pieces {
                // The link may already be closed.
                let _ = rustix::io::write(&output, &piece);
                thread::yield_now();
            }
            (input, output)
        })
    }

    #[test]
    fn an_answer_may_come_in_pieces_and_after_empty_lines() {
        let (mut link, input, output) = link();
        let agent = answering(input, output, vec![b"\r\n".to_vec(), b"ab".to_vec(), b"c\r\nlater\n".to_vec()]);
        assert_eq!(once(&mut link, 5000, |_, _| true), (Answer::Line, "abc\r".to_owned()));
        agent.join().unwrap();
    }

    /// Returns a link whose agent has answered a first request.
    fn asked_link() -> (Link, OwnedFd, OwnedFd) {
        let (mut link, input, output) = link();
        let agent = answering(input, output, vec![b"first\n".to_vec()]);
        assert_eq!(once(&mut link, 5000, |_, _| true), (Answer::Line, "first".to_owned()));
        let (input, output) = agent.join().unwrap();
        (link, input, output)
    }

    #[test]
    fn the_first_line_of_all_answers_the_first_question_whichever_is_earlier() {
        let (mut link, _input, output) = link();
        rustix::io::write(&output, b"\r\nhello\nhere I am\n").unwrap();
        assert_eq!(once(&mut link, 5000, |_, _| true), (Answer::Line, "hello".to_owned()));
        assert_eq!(link.empty_lines(), 1);
        assert_eq!(once(&mut link, 20, |_, _| true).0, Answer::Late);
        assert_eq!(link.empty_lines(), 0);
    }

    #[test]
    fn what_stood_there_before_the_question_answers_nothing() {
        let (mut link, input, output) = asked_link();
        rustix::io::write(&output, b"old\nolder\nunfini").unwrap();
        let agent = answering(input, output, vec![b"shed\nnew\nnewer\n".to_vec()]);
        assert_eq!(once(&mut link, 5000, |_, _| true), (Answer::Line, "new".to_owned()));
        let (input, output) = agent.join().unwrap();
        let agent = answering(input, output, vec![b"newest\n".to_vec()]);
        assert_eq!(once(&mut link, 5000, |_, _| true), (Answer::Line, "newest".to_owned()));
        agent.join().unwrap();
    }

    #[test]
    fn lines_that_answer_something_else_are_passed_over() {
        let (mut link, input, output) = link();
        let agent = answering(input, output, vec![b"not this\nnor this\nthis\n".to_vec()]);
        let actual = once(&mut link, 5000, |_, line| line == b"this");
        assert_eq!(actual, (Answer::Line, "this".to_owned()));
        agent.join().unwrap();
    }

    #[test]
    fn silence_is_late_and_an_end_is_seen_at_once() {
        let (mut link, input, output) = link();
        assert_eq!(once(&mut link, 20, |_, _| true).0, Answer::Late);
        drop(output);
        assert_eq!(once(&mut link, 60_000, |_, _| true).0, Answer::Closed);
        drop(input);
        assert_eq!(once(&mut link, 60_000, |_, _| true).0, Answer::Closed);
    }

    #[test]
    fn an_agent_that_never_reads_is_late_and_blocks_nobody() {
        let (mut link, _input, _output) = link();
        let message = vec![b' '; 1 << 20];
        let mut requests = [Request::new(&mut link, 0, &message, Duration::from_millis(20), Instant::now())];
        ask(&mut requests, &AtomicBool::new(false), |_, _| true).unwrap();
        assert_eq!(requests[0].answer, Some(Answer::Late));
    }

    #[test]
    fn a_line_without_end_is_a_flood_and_memory_stays_bounded() {
        let (mut link, input, output) = link();
        let agent = answering(input, output, vec![vec![b'x'; 4 << 20]]);
        assert_eq!(once(&mut link, 60_000, |_, _| true).0, Answer::Flood);
        assert_eq!(link.buffer.len(), MAX_LINE + 1);
        drop(link);
        agent.join().unwrap();
    }

    #[test]
    fn the_longest_line_is_read() {
        let (mut link, input, output) = link();
        let mut line = vec![b'x'; MAX_LINE];
        line.push(b'\n');
        let agent = answering(input, output, vec![line]);
        assert_eq!(once(&mut link, 60_000, |_, _| true).0, Answer::Line);
        assert_eq!(link.line().len(), MAX_LINE);
        agent.join().unwrap();
    }

    #[test]
    fn a_flood_of_lines_between_questions_is_seen() {
        let (mut link, input, output) = link();
        let is_flooding = std::sync::Arc::new(AtomicBool::new(true));
        let flood = thread::spawn({
            let is_flooding = is_flooding.clone();
            move || {
                let lines = b"{}\n".repeat(20_000);
                while is_flooding.load(Ordering::Relaxed) && rustix::io::write(&output, &lines).is_ok() {}
            }
        });
        let flooded = (0..10_000).any(|_| once(&mut link, 1000, |_, _| true).0 == Answer::Flood);
        assert!(flooded);
        is_flooding.store(false, Ordering::Relaxed);
        drop((link, input));
        flood.join().unwrap();
    }

    #[test]
    fn a_flood_of_lines_that_answer_nothing_is_seen() {
        let (mut link, input, output) = link();
        let line = [&[b'x'; 8 << 10][..], b"\n"].concat();
        let other_end = output.try_clone().unwrap();
        let agent = answering(input, output, vec![line.clone()]);
        // The next line is there as soon as one is set aside, however busy the machine is.
        let answers_nothing = |_: usize, _: &[u8]| {
            rustix::io::write(&other_end, &line).unwrap();
            false
        };
        assert_eq!(once(&mut link, 3_600_000, answers_nothing).0, Answer::Flood);
        agent.join().unwrap();
    }

    #[test]
    fn who_is_kept_from_running_is_given_the_time_back_within_bounds() {
        let (mut link, _input, _output) = link();
        let patience = Duration::from_millis(40);
        let mut wait = |cpu_times: &dyn Fn(Duration) -> CpuTimes| {
            let begun = Instant::now();
            let mut requests = [Request::new(&mut link, 0, b"?\n", patience, begun)];
            ask_fairly(&mut requests, &AtomicBool::new(false), |_, _| true, |_| cpu_times(begun.elapsed())).unwrap();
            assert_eq!((requests[0].answer, requests[0].used), (Some(Answer::Late), patience));
            begun.elapsed().as_millis()
        };
        assert!(wait(&|_| CpuTimes::default()) >= 40);
        assert!(wait(&|time| CpuTimes { running: Duration::ZERO, waiting: time * 100 }) >= 160);
        // An agent that waits for a core used by its own processes isn't kept from running.
        let begun = Instant::now();
        let waited = wait(&|time| CpuTimes { running: time, waiting: time * 100 });
        assert!(waited < 160 || begun.elapsed() > patience * 3, "{waited}");
    }

    #[test]
    fn blanks_after_a_line_end_begin_no_line() {
        let (mut link, input, output) = link();
        let agent = answering(input, output, vec![b"one\n \r".to_vec()]);
        assert_eq!(once(&mut link, 5000, |_, _| true), (Answer::Line, "one".to_owned()));
        let (input, output) = agent.join().unwrap();
        let agent = answering(input, output, vec![b"two\n\t".to_vec()]);
        assert_eq!(once(&mut link, 5000, |_, _| true).0, Answer::Line);
        assert_eq!(link.line().trim_ascii(), b"two");
        agent.join().unwrap();
        for (was, bytes, expected) in [
            (false, &b""[..], false),
            (true, b"", true),
            (true, b" \n", false),
            (true, b"rest\n begun", true),
            (false, b"\n \t", false),
            (true, b" ", true),
        ] {
            assert_eq!(breaks_off(was, bytes), expected, "{was} {bytes:?}");
        }
    }

    #[test]
    fn a_line_that_may_be_the_answer_is_it_if_none_follows_and_costs_no_more_than_until_it_came() {
        let (mut link, input, output) = link();
        let agent = answering(input, output, vec![b"perhaps\n".to_vec()]);
        let begun = Instant::now();
        let mut requests = [Request::new(&mut link, 0, b"?\n", Duration::from_secs(3600), begun)];
        ask(&mut requests, &AtomicBool::new(false), |_, line| line != b"perhaps").unwrap();
        assert_eq!(requests[0].answer, Some(Answer::SetAside));
        assert!(requests[0].used + AFTERTHOUGHT <= begun.elapsed(), "{:?}", requests[0].used);
        agent.join().unwrap();
    }

    #[test]
    fn a_match_that_is_called_off_waits_no_longer() {
        let (mut link, _input, _output) = link();
        let mut requests = [Request::new(&mut link, 0, b"?\n", Duration::from_secs(3600), Instant::now())];
        ask(&mut requests, &AtomicBool::new(true), |_, _| true).unwrap();
        assert_eq!(requests[0].answer, Some(Answer::Interrupted));
    }
}
