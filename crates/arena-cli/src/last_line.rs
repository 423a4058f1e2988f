//! How a file of JSON lines ends: results stand in the last line of replays, which are long.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// What is read from the end at first; most last lines are shorter.
const FIRST: u64 = 64 << 10;

/// The last line of a file, without its end. The file is read from behind, since replays are long.
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
