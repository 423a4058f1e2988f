//! The stderr log of an agent. A thread reads the pipe, so that the agent never blocks on it. The size of the
//! log is limited.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::body::Log;

/// The number of bytes that the log keeps from the start and from the end of the output.
const KEPT: (usize, usize) = (256 << 10, 64 << 10);

/// The maximum size of the stderr output, in bytes. The reader stops when an agent exceeds it.
const FLOOD: u64 = 64 << 20;

/// The out-of-memory messages of Python, Node.js, C++, Rust, Java, Go and the C library.
const OUT_OF_MEMORY: [&str; 7] = [
    "MemoryError",
    "heap out of memory",
    "bad_alloc",
    "memory allocation of",
    "OutOfMemoryError",
    "out of memory",
    "Cannot allocate memory",
];

/// The number of bytes at the end of the log that are searched for a message of [`OUT_OF_MEMORY`].
const LAST_WORDS: usize = 4 << 10;

/// The maximum length of a line of [`Log::last_lines`], in characters.
const LINE: usize = 300;

/// The interval at which the reader checks for the agent's end. The pipe may stay open after that end,
/// because another process may hold it.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

pub struct Stderr {
    /// The pipe, which the thread closes at its end. An agent that floods then can't write.
    pipe: Weak<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    log: Arc<Mutex<Log>>,
    is_flooding: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

impl Stderr {
    /// Starts a thread that reads from a non-blocking pipe until the pipe is closed.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn read(pipe: OwnedFd) -> io::Result<Stderr> {
        let (is_flooding, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (pipe, log) = (Arc::new(pipe), Arc::new(Mutex::new(Log::default())));
        let own = Arc::downgrade(&pipe);
        let thread = {
            let (log, is_flooding, is_over) = (log.clone(), is_flooding.clone(), is_over.clone());
            thread::Builder::new().name("stderr".to_owned()).spawn(move || read(&pipe, &log, &is_flooding, &is_over))?
        };
        Ok(Stderr { pipe: own, thread: Some(thread), log, is_flooding, is_over })
    }

    /// Returns true if the stderr output has exceeded its limit.
    pub fn is_flooding(&self) -> bool {
        self.is_flooding.load(Ordering::Relaxed)
    }

    /// Waits up to `within` until the whole output of an ended agent has been read.
    pub fn wait(&self, within: Duration) {
        let by = Instant::now() + within;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < by {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns true if the end of the log contains a common runtime's out-of-memory message.
    pub fn reports_out_of_memory(&self) -> bool {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let end = if log.tail.is_empty() { &log.head } else { &log.tail };
        let last = &end[end.len().saturating_sub(LAST_WORDS)..];
        OUT_OF_MEMORY.iter().any(|words| memchr::memmem::find(last, words.as_bytes()).is_some())
    }

    /// Returns the log so far, and begins a new one.
    pub fn take(&self) -> Log {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread may not have read the last output yet.
        if let Some(pipe) = self.pipe.upgrade() {
            let mut chunk = [0; 4 << 10];
            while log.size() <= FLOOD && matches!(log.add_from(&pipe, &mut chunk), Ok(1..)) {}
        }
        std::mem::take(&mut log)
    }

    /// Stops the reader and returns the log. All processes of the agent must have ended.
    pub fn finish(&mut self) -> Log {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the panic has been printed, and the log contains the output before it.
            let _ = thread.join();
        }
        self.take()
    }
}

fn read(pipe: &OwnedFd, log: &Mutex<Log>, is_flooding: &AtomicBool, is_over: &AtomicBool) {
    let mut chunk = [0; 16 << 10];
    loop {
        let (read, size) = {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            (log.add_from(pipe, &mut chunk), log.size())
        };
        if size > FLOOD {
            is_flooding.store(true, Ordering::Relaxed);
            return;
        }
        match read {
            Ok(0) => return,
            Ok(_) => {}
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if is_over.load(Ordering::Relaxed) => return,
            Err(Errno::AGAIN) => {
                // The result is ignored, because the next read distinguishes new output from a timeout.
                let _ = poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&LOOK));
            }
            Err(_) => return,
        }
    }
}

impl Log {
    /// Reads available output of a non-blocking pipe. Returns the number of bytes.
    fn add_from(&mut self, pipe: &OwnedFd, chunk: &mut [u8]) -> Result<usize, Errno> {
        let read = rustix::io::read(pipe, &mut *chunk)?;
        self.add(&chunk[..read]);
        Ok(read)
    }

    /// Returns the number of bytes that were written to the log.
    fn size(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.left_out
    }

    /// Returns at most the last `count` lines, each cut to 300 characters. They may contain control
    /// characters.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let text = match self.left_out {
            0 => [&self.head[..], &self.tail[..]].concat(),
            _ => self.tail.clone(),
        };
        let text = text.trim_ascii_end();
        if text.is_empty() {
            return Vec::new();
        }
        let mut lines: Vec<String> = text.rsplit(|byte| *byte == b'\n').take(count).map(cut).collect();
        lines.reverse();
        lines
    }

    /// Appends output to the head until the head is full, then to the tail. A full tail loses its oldest
    /// bytes.
    fn add(&mut self, bytes: &[u8]) {
        let room = KEPT.0 - self.head.len();
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // The tail is cut only when it exceeds twice its final size, because each cut moves all its bytes.
        if self.tail.len() > 2 * KEPT.1 {
            let cut = self.tail.len() - KEPT.1;
            self.tail.drain(..cut);
            self.left_out += cut as u64;
        }
    }
}

/// Returns a line as text, cut to [`LINE`] characters.
fn cut(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], line.len()),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{OFlags, fcntl_setfl};
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    /// Sends `bytes` through a pipe that stays open. Returns the log, and true if the output exceeded the
    /// limit.
    fn logged(bytes: Vec<u8>) -> (Log, bool) {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        fcntl_setfl(&ours, OFlags::NONBLOCK).unwrap();
        let mut stderr = Stderr::read(ours).unwrap();
        let writer = thread::spawn(move || {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let Ok(written) = rustix::io::write(&theirs, rest) else { break };
                rest = &rest[written..];
            }
            theirs
        });
        let _theirs = writer.join().unwrap();
        let flooding = stderr.is_flooding();
        (stderr.finish(), flooding)
    }

    #[test]
    fn a_short_log_is_kept_whole() {
        let (log, is_flooding) = logged(b"Traceback".to_vec());
        assert_eq!((log.head.as_slice(), log.left_out, log.tail.len(), is_flooding), (&b"Traceback"[..], 0, 0, false));
    }

    #[test]
    fn of_a_long_log_the_beginning_and_the_end_are_kept() {
        let bytes: Vec<u8> = (0..1_000_000).flat_map(|number: u32| number.to_be_bytes()).collect();
        let (log, _) = logged(bytes.clone());
        assert_eq!(log.head, bytes[..KEPT.0]);
        assert!(log.tail.len() >= KEPT.1 && bytes.ends_with(&log.tail));
        assert_eq!(log.head.len() + log.left_out as usize + log.tail.len(), bytes.len());
    }

    #[test]
    fn the_last_lines_are_cut() {
        let log = |head: &[u8], left_out, tail: &[u8]| Log { head: head.to_vec(), left_out, tail: tail.to_vec() };
        assert_eq!(log(b"", 0, b"").last_lines(3), Vec::<String>::new());
        assert_eq!(log(b"\n\n", 0, b"").last_lines(3), Vec::<String>::new());
        assert_eq!(log(b"one\ntwo\r\nthree\n", 0, b"").last_lines(2), ["two", "three"]);
        // The second line begins in the head and ends in the tail.
        assert_eq!(log(b"one\ntw", 0, b"o\n").last_lines(2), ["one", "two"]);
        assert_eq!(log(b"one\ntw", 9, b"o\n").last_lines(2), ["o"]);
        let long = [b"short\n".to_vec(), "ä".repeat(100_000).into_bytes()].concat();
        let expected = format!("{}… (200000 bytes)", "ä".repeat(LINE));
        assert_eq!(log(&long, 0, b"").last_lines(5), ["short", &expected]);
    }

    #[test]
    fn a_flood_is_seen_and_no_longer_read() {
        assert!(logged(vec![b'x'; FLOOD as usize + (1 << 20)]).1);
    }
}
