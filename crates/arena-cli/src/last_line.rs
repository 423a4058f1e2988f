//! Reads the last line of a file of JSON lines without the lines before it. Replays are long, and their result is in
//! the last line.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// The number of bytes to read first from the end of the file; most last lines are shorter.
const FIRST: u64 = 64 << 10;

/// Reads the last line of a file backward from the end. Returns the line without its line end.
pub fn last_line(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut size = FIRST.min(length);
    loop {
        file.seek(SeekFrom::Start(length - size))?;
        let mut end = Vec::new();
        file.by_ref().take(size).read_to_end(&mut end)?;
        let whole = end.trim_ascii_end().len();
        let begin = end[..whole].iter().rposition(|byte| *byte == b'\n');
        if begin.is_some() || size == length {
            end.truncate(whole);
            return Ok(end.split_off(begin.map_or(0, |at| at + 1)));
        }
        size = (size * 4).min(length);
    }
}
