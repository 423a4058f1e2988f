//! The pipes to a program that a kind of agent drives, as lines of text.
//!
//! Reads and writes wait without a limit of their own: the match kills the program at its deadline, which ends them.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::PlayerError;

/// The maximum output of a program for one answer, in bytes.
pub(super) const MAX_OUTPUT: usize = 16 << 20;

/// The maximum length of a line, in bytes.
const MAX_LINE: usize = 1 << 20;

/// The size of a read, in bytes.
const CHUNK: usize = 64 << 10;

/// The maximum number of reads in [`ProgramOutput::drain`].
const CHUNKS: usize = 64;

/// The pipes to a running program.
#[derive(Debug)]
pub(crate) struct Program {
    input: OwnedFd,
    output: OwnedFd,
    /// The buffered output. The bytes in `buffer[start..end]` haven't been consumed yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset in `buffer` up to which the search has found no line end.
    searched: usize,
    /// The number of bytes read since the last [`Program::discard`].
    read: usize,
    /// The program's name from its first handshake, after which it needs no other.
    pub(super) name: Option<String>,
}

impl Program {
    /// Creates the pipes from the program's stdin and stdout. Both must be non-blocking on this side.
    pub(crate) fn new(input: OwnedFd, output: OwnedFd) -> Program {
        Program { input, output, buffer: vec![0; CHUNK], start: 0, end: 0, searched: 0, read: 0, name: None }
    }

    pub(super) fn without_input(self) -> ProgramOutput {
        ProgramOutput(self.output)
    }

    /// Writes a text of whole lines. Waits while the pipe is full.
    ///
    /// # Errors
    /// If the program has closed its input.
    pub(super) fn send(&mut self, lines: &str) -> Result<(), PlayerError> {
        let mut rest = lines.as_bytes();
        while !rest.is_empty() {
            match rustix::io::write(&self.input, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(&self.input, PollFlags::OUT, None)?,
                Err(_) => return Err(PlayerError::ProgramEnded),
            }
        }
        Ok(())
    }

    /// Discards the output that the program has written without a request.
    ///
    /// # Errors
    /// If the program has closed its output, or wrote too much.
    pub(super) fn discard(&mut self) -> Result<(), PlayerError> {
        self.read = 0;
        loop {
            (self.start, self.end, self.searched) = (0, 0, 0);
            if !self.fill()? {
                return Ok(());
            }
        }
    }

    /// Waits for the next line and returns it without its line end and surrounding blanks. Returns `None` at the time
    /// `until`. Bytes that aren't UTF-8 are replaced.
    ///
    /// # Errors
    /// If the program has closed its output, or wrote too much.
    pub(super) fn receive(&mut self, until: Option<Instant>) -> Result<Option<String>, PlayerError> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..self.end]) {
                let line = &self.buffer[self.start..self.searched + at];
                let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
                self.start = self.searched + at + 1;
                self.searched = self.start;
                return Ok(Some(text));
            }
            self.searched = self.end;
            if self.fill()? {
                continue;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            wait(&self.output, PollFlags::IN, left)?;
        }
    }

    /// Reads available output. Returns false if there is none.
    fn fill(&mut self) -> Result<bool, PlayerError> {
        if self.end == self.buffer.len() {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.searched, self.end, self.start) = (self.searched - self.start, self.end - self.start, 0);
            } else {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        loop {
            match rustix::io::read(&self.output, &mut self.buffer[self.end..]) {
                Ok(0) => return Err(PlayerError::ProgramEnded),
                Ok(read) => {
                    self.end += read;
                    self.read += read;
                    let is_flood = self.read > MAX_OUTPUT || self.end - self.start > MAX_LINE + CHUNK;
                    return if is_flood { Err(PlayerError::Flood) } else { Ok(true) };
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(_) => return Err(PlayerError::ProgramEnded),
            }
        }
    }
}

/// The output of a program that gets no input.
#[derive(Debug)]
pub(super) struct ProgramOutput(OwnedFd);

impl ProgramOutput {
    /// Passes the available output to `take`.
    ///
    /// # Errors
    /// If the program has closed its output.
    pub(super) fn drain(&self, mut take: impl FnMut(&[u8])) -> Result<(), PlayerError> {
        let mut chunk = vec![0; CHUNK];
        // A program that writes without a pause must not keep the driver from its other work.
        for _ in 0..CHUNKS {
            match rustix::io::read(&self.0, &mut chunk[..]) {
                Ok(0) => return Err(PlayerError::ProgramEnded),
                Ok(read) => take(&chunk[..read]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(_) => return Err(PlayerError::ProgramEnded),
            }
        }
        Ok(())
    }
}

/// Waits until the pipe is ready, or for the time `left`.
fn wait(fd: &OwnedFd, flags: PollFlags, left: Option<Duration>) -> Result<(), PlayerError> {
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut [PollFd::new(fd, flags)], left.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(PlayerError::Other(format!("can't be reached: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::thread;

    use rustix::fs::{OFlags, fcntl_setfl};
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    fn pipes() -> (Program, OwnedFd, OwnedFd) {
        let (their_input, input) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (output, their_output) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        for fd in [input.as_fd(), output.as_fd()] {
            fcntl_setfl(fd, OFlags::NONBLOCK).unwrap();
        }
        (Program::new(input, output), their_input, their_output)
    }

    #[test]
    fn lines_come_whole_and_only_after_the_request() {
        let (mut program, input, output) = pipes();
        rustix::io::write(&output, b"hello\nhalf").unwrap();
        program.discard().unwrap();
        program.send("go\n").unwrap();
        let mut asked = [0; 8];
        assert_eq!(rustix::io::read(&input, &mut asked[..]).unwrap(), 3);
        rustix::io::write(&output, b"\tinfo \xff\r\nbest").unwrap();
        assert_eq!(program.receive(None).unwrap().unwrap(), "info \u{fffd}");
        assert_eq!(program.receive(Some(Instant::now())).unwrap(), None);
        rustix::io::write(&output, b"move e2e4\n").unwrap();
        assert_eq!(program.receive(None).unwrap().unwrap(), "bestmove e2e4");
        drop(output);
        assert_eq!(program.receive(None), Err(PlayerError::ProgramEnded));
        drop(input);
        assert_eq!(program.send("quit\n"), Err(PlayerError::ProgramEnded));
    }

    #[test]
    fn output_is_bounded_in_lines_and_without_them() {
        for piece in ["info string x\n".repeat(4000), "x".repeat(60_000)] {
            let (mut program, _input, output) = pipes();
            let writer = thread::spawn(move || while rustix::io::write(&output, piece.as_bytes()).is_ok() {});
            let mut received = 0;
            let error = loop {
                match program.receive(None) {
                    Ok(line) => received += line.unwrap().len(),
                    Err(error) => break error,
                }
            };
            assert_eq!(error, PlayerError::Flood);
            assert!(received <= MAX_OUTPUT && program.buffer.len() <= 4 * MAX_LINE, "{received}");
            drop(program);
            writer.join().unwrap();
        }
    }
}
