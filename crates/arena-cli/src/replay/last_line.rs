//! Reads the result's line of a replay without the lines before it, because replays are long. Only a seal may follow
//! the result.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// The number of bytes to read first from the end of the file; most last lines are shorter.
const FIRST: u64 = 64 << 10;

/// The beginning of a seal.
const SEAL: &[u8] = b"{\"seal\":";

/// Reads the last line of a file that isn't a seal, backward from the end. Returns the line without its line end.
pub fn last_line(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut size = FIRST.min(length);
    loop {
        file.seek(SeekFrom::Start(length - size))?;
        let mut end = Vec::new();
        file.by_ref().take(size).read_to_end(&mut end)?;
        let (mut begin, mut whole) = last_of(&end);
        if begin.is_some_and(|begin| end[begin + 1..whole].starts_with(SEAL)) {
            (begin, whole) = last_of(&end[..begin.unwrap_or(0)]);
        }
        if begin.is_some() || size == length {
            end.truncate(whole);
            return Ok(end.split_off(begin.map_or(0, |at| at + 1)));
        }
        size = (size * 4).min(length);
    }
}

/// Returns the offset of the line break before the last line, and the end of this line without white space.
fn last_of(lines: &[u8]) -> (Option<usize>, usize) {
    let whole = lines.trim_ascii_end().len();
    (lines[..whole].iter().rposition(|byte| *byte == b'\n'), whole)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_last_line_before_a_seal_is_found_in_files_of_any_length() {
        for length in [1, 100, 64 << 10, (64 << 10) - 3, 300_000] {
            let line = "x".repeat(length);
            for (text, expected) in [
                (line.clone(), &*line),
                (format!("{line}\n"), &*line),
                (format!("first\n{line}\n\n"), &*line),
                (format!("first\n{line}\n{{\"seal\":\"1\"}}\n"), &*line),
                (format!("{line}\n{{\"seal\":\"1\"}}\n"), &*line),
                (format!("{line}\nlast"), "last"),
            ] {
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(text.as_bytes()).unwrap();
                assert_eq!(last_line(&mut file).unwrap(), expected.as_bytes(), "{length}");
            }
        }
    }
}
