//! Single changed bytes in records of all challenges. Each change is found on its line, or on the line that has the
//! hash of the changed line.
//!
//! Four environment variables lengthen the tests: `ARENA_RECORD_COUNT` is the number of records of up to 20 kB,
//! `ARENA_RECORD_STRIDE` the distance between two changed bytes in them, `ARENA_RECORD_VALUES` the number of other
//! values of each byte (3, or all 255), and `ARENA_RECORD_CHANGES` the number of random changes in one longer record of
//! each challenge. From 1000 changes on, these are records of full games.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::read::FirstLines;

/// The maximum length of a short record, in bytes.
const SHORT_BYTES: usize = 20_000;

/// The number of changes from which a long record is that of a full game.
const FULL_GAME: usize = 1000;

/// Reads a number from the environment.
pub(super) fn number(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// The options of a challenge with this number of epochs, for games that end by it.
pub(super) fn epochs(id: &str, epochs: u64) -> Value {
    let mut options = short(id);
    if options.get("n_epochs").is_some() {
        options["n_epochs"] = json!(epochs);
    }
    options
}

/// Returns the record of a game of up to eight epochs: the longest of up to 20 kB, or the shortest one.
fn short_record(id: &str, seed: u64) -> String {
    let mut record = String::new();
    for count in [8, 4, 2, 1] {
        record = Played::whole(id, &epochs(id, count), seed).record_for(RecordViewer::Everything);
        if record.len() <= SHORT_BYTES {
            break;
        }
    }
    record
}

struct RecordLines {
    /// The position of each line's first byte.
    starts: Vec<usize>,
    /// For each line, the number of the line that shows a change of it, from 1: for lines of the chain the next line
    /// with a hash, and the same line otherwise.
    witnesses: Vec<usize>,
}

impl RecordLines {
    fn of(record: &str) -> RecordLines {
        let lines: Vec<&str> = record.split_inclusive('\n').collect();
        let is_one = |line: &str, starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
        let (mut starts, mut witnesses, mut start) = (Vec::new(), Vec::new(), 0);
        for (at, line) in lines.iter().enumerate() {
            starts.push(start);
            start += line.len();
            let has_hash = |line: &&str| is_one(line, &["{\"event\":", "{\"end\":", "{\"seal\":"]);
            let is_chained = is_one(line, &["{\"arenaRecord\":", "{\"event\":", "{\"end\":"]);
            let next = lines[at + 1..].iter().position(has_hash).filter(|_| is_chained);
            witnesses.push(next.map_or(at + 1, |next| at + 2 + next));
        }
        RecordLines { starts, witnesses }
    }

    /// Returns the number of the line with this byte, from 1.
    fn line_of(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte)
    }
}

/// Changes a byte, checks that the change is found in its place, and restores the byte.
#[track_caller]
fn check(id: &str, lines: &RecordLines, record: &mut [u8], at: usize, other: u8) {
    let original = std::mem::replace(&mut record[at], other);
    assert_ne!(original, other, "{id}: byte {at} is not changed");
    let line = lines.line_of(at);
    let witness = lines.witnesses[line - 1];
    match read(record, ReadLimits::default()) {
        Ok(_) => panic!("{id}: byte {at} on line {line} is {other:#04x} instead of {original:#04x}, and is not found"),
        Err(ReadError::Lie(lie)) => {
            assert!(lie.line == line || lie.line == witness, "{id}: byte {at} on line {line} is changed: {lie}");
        }
        // A changed header can be that of another format.
        Err(error) => assert_eq!(line, 1, "{id}: byte {at} is changed: {error}"),
    }
    record[at] = original;
}

/// Returns three other bytes: one that differs in one bit, a similar letter or digit, which leaves most lines
/// well-formed, and one that no ASCII text contains.
fn others(byte: u8) -> [u8; 3] {
    let similar = match byte {
        b'0'..=b'8' | b'a'..=b'e' | b'g'..=b'y' => byte + 1,
        b'f' => b'a',
        b'z' => b'b',
        _ => b'0',
    };
    [byte ^ 1, similar, byte ^ 0x80]
}

/// Returns `count` other values of a byte: three chosen ones, or all 255.
fn values(byte: u8, count: usize) -> Vec<u8> {
    match count {
        0..255 => others(byte).to_vec(),
        _ => (0..=u8::MAX).filter(|other| *other != byte).collect(),
    }
}

/// Changes bytes of a record, from `first` on in steps of `stride`, to `count` other values each. Checks that each
/// change is found in its place, and returns the number of changes.
///
/// The lines before a changed one are read once. A changed line and the next one with a hash then suffice, since
/// [`read`] reads lines in order and stops at the first contradiction. Changes of the header and of line breaks are
/// checked with the whole record.
fn check_bytes(id: &str, record: &mut [u8], first: usize, stride: usize, count: usize) -> usize {
    let mut changes = 0;
    let original = record.to_vec();
    let texts: Vec<&[u8]> = original.split(|byte| *byte == b'\n').collect();
    let lines = RecordLines::of(std::str::from_utf8(&original).expect("UTF-8 text"));
    let mut before = FirstLines::begin(texts[0]).expect("a header");
    let mut read_lines = 1;
    for at in (first..original.len()).step_by(stride) {
        let line = lines.line_of(at);
        while read_lines + 1 < line {
            before.take(texts[read_lines]).unwrap_or_else(|lie| panic!("{id}: {lie}"));
            read_lines += 1;
        }
        for other in values(original[at], count) {
            changes += 1;
            if line == 1 || original[at] == b'\n' || other == b'\n' {
                check(id, &lines, record, at, other);
                continue;
            }
            let mut text = texts[line - 1].to_vec();
            text[at - lines.starts[line - 1]] = other;
            let (mut changed, witness) = (before.clone(), lines.witnesses[line - 1]);
            let mut found = changed.take(&text);
            if found.is_ok() && witness > line {
                // The line that has the hash of the changed one.
                found = changed.take(texts[witness - 1]);
            }
            assert!(found.is_err(), "{id}: byte {at} on line {line} is {other:#04x}, and is not found");
        }
    }
    changes
}

#[test]
fn a_changed_byte_of_a_short_record_is_found_in_its_place() {
    let (count, stride) = (number("ARENA_RECORD_COUNT", 8), number("ARENA_RECORD_STRIDE", 101));
    let values = number("ARENA_RECORD_VALUES", 3);
    let challenges: Vec<&str> = arena_games::challenges().collect();
    let [next, bytes, changes] = [(); 3].map(|()| AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        return;
                    }
                    let id = challenges[seed % challenges.len()];
                    let mut record = short_record(id, seed as u64).into_bytes();
                    read(&record, ReadLimits::default()).unwrap_or_else(|error| panic!("{id}: {error}"));
                    let changed = check_bytes(id, &mut record, seed % stride, stride, values);
                    changes.fetch_add(changed, Ordering::Relaxed);
                    bytes.fetch_add(record.len(), Ordering::Relaxed);
                }
            });
        }
    });
    let [bytes, changes] = [bytes, changes].map(AtomicUsize::into_inner);
    assert!(changes >= bytes / stride, "{changes} changes of {bytes} bytes");
    assert!(stride > 1 || changes == values * bytes, "{changes} changes of {bytes} bytes");
    println!("{count} records, {bytes} bytes, {changes} changes");
}

/// The short way of [`check_bytes`] finds the same changes as a whole reading.
#[test]
fn the_lines_before_a_change_are_read_as_in_a_whole_record() {
    let mut record = short_record("ultimatum", 2).into_bytes();
    let lines = RecordLines::of(std::str::from_utf8(&record).expect("UTF-8 text"));
    for at in (0..record.len()).step_by(7) {
        for other in others(record[at]) {
            check("ultimatum", &lines, &mut record, at, other);
        }
    }
    let changes = check_bytes("ultimatum", &mut record, 0, 7, 3);
    assert_eq!(changes, 3 * record.len().div_ceil(7));
}

#[test]
fn a_changed_byte_of_a_long_record_is_found_in_its_place() {
    let changes = number("ARENA_RECORD_CHANGES", 20);
    for id in arena_games::challenges() {
        let options = match id {
            _ if changes < FULL_GAME => short(id),
            // A game of the usual length has a record of more than 100 MB.
            "food-catcher" | "cherry-picker" => json!({ "n_epochs": 1000 }),
            _ => json!({}),
        };
        let mut record = Played::whole(id, &options, 21).record_for(RecordViewer::Everything).into_bytes();
        let lines = RecordLines::of(std::str::from_utf8(&record).expect("UTF-8 text"));
        let mut random = Seed::from_number(23).rng(id);
        for _ in 0..changes {
            let at = random.below(record.len() as u64) as usize;
            let other = record[at].wrapping_add(1 + random.below(255) as u8);
            check(id, &lines, &mut record, at, other);
        }
        println!("{id}: {changes} changes of {} bytes", record.len());
    }
}

#[test]
fn changes_are_placed_by_lines() {
    let record = "{\"arenaRecord\":1}\n{\"event\":1}\n{\"end\":1}\n{\"open\":1}\n{\"seal\":1}\n";
    let lines = RecordLines::of(record);
    assert_eq!(lines.witnesses, [2, 3, 5, 4, 5]);
    let line_ends: Vec<usize> = record.match_indices('\n').map(|(at, _)| lines.line_of(at)).collect();
    assert_eq!(line_ends, [1, 2, 3, 4, 5]);
    assert_eq!((lines.line_of(0), lines.line_of(18)), (1, 2));
}
