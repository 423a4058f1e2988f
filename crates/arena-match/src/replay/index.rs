//! The index of a replay: the offset of each line, so that any line can be read without those before it, and
//! a summary for navigation. Both are much smaller than the replay and are made in one pass.
//!
//! A *frame* is a line after the header: an epoch, or the result. Frames are counted from 0. The index is a
//! file with an entry of [`ENTRY`] bytes for each frame and one more for the end: six bytes of offset
//! (little-endian), a zero, and a byte of [`marks`](Summary::marks). A frame's entry and the next one bound
//! its line, so a reader needs sixteen bytes of the index and one line of the replay for any frame.

use std::io::{BufRead, Write};

use arena_games::ReadScores;
use arena_model::Disqualified;
use serde::Serialize;
use serde_json::value::RawValue;

use super::read::{EpochLine, Replay, ReplayError, ReplayLine, ResultPart};

/// The version of index and summary, stored in the summary.
const VERSION: u32 = 1;

/// The size of a frame's entry, in bytes.
pub const ENTRY: usize = 8;

/// A stretch is a range of frames. Viewers need no more stretches, because a screen has fewer columns.
const MAX_STRETCHES: usize = 2048;

/// The mark of a fault in the protocol.
const FAULT: u8 = 1;
const REJECTION: u8 = 2;
const DISQUALIFICATION: u8 = 4;

/// The summary of a replay. A viewer loads it before any frame.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Version of the format of index and summary.
    pub arena_replay_index: u32,
    /// The length of the replay in bytes. An incomplete last line doesn't count.
    pub bytes: u64,
    pub frames: u64,
    /// The epoch of the first frame: 1, or 0 if the handshake had faults or disqualifications. Later epochs
    /// follow without a gap.
    pub first_epoch: u64,
    /// The result, or `None` if the replay is incomplete.
    pub result: Option<ResultPart>,
    /// The side of each seat, if the game names its sides.
    pub sides: Vec<Option<String>>,
    /// The number of faults, by seat.
    pub faults: Vec<u64>,
    /// The number of recorded rejections, by seat.
    pub rejections: Vec<u64>,
    pub disqualified: Vec<DisqualifiedIn>,
    /// The number of frames in a stretch, a power of two. The last stretch may be shorter.
    pub stretch: u64,
    /// The marks of each stretch: 1 for a fault, plus 2 for a rejection, plus 4 for a disqualification.
    pub marks: Vec<u8>,
    /// The scores at the beginning of each stretch, a list for each seat. Empty if the game has no scores
    /// before its end.
    pub scores: Vec<Vec<Option<f64>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DisqualifiedIn {
    /// The frame, from 0.
    pub frame: u64,
    #[serde(flatten)]
    pub disqualified: Disqualified,
}

/// Reads a replay, writes its index to `entries`, and returns the summary. For an incomplete replay, the
/// index contains the complete lines.
///
/// # Errors
/// If the replay can't be read or parsed, epochs are missing or there are none, or the index can't be
/// written.
pub fn index(from: impl BufRead, entries: &mut dyn Write) -> Result<Summary, ReplayError> {
    let mut replay = Replay::open(from)?;
    let ids: Vec<String> = replay.header.agents.iter().map(|agent| agent.agent_id.clone()).collect();
    let read_scores = arena_games::find(&replay.header.game).and_then(|playable| playable.kit.scores);
    let sides = replay.header.sides().into_iter().map(|side| side.map(str::to_owned)).collect();
    let mut stretches = Stretches { each: 1, frames: 0, list: Vec::new() };
    let mut summary = Summary {
        arena_replay_index: VERSION,
        bytes: replay.end(),
        frames: 0,
        first_epoch: 1,
        result: None,
        sides,
        faults: vec![0; ids.len()],
        rejections: vec![0; ids.len()],
        disqualified: Vec::new(),
        stretch: 1,
        marks: Vec::new(),
        scores: Vec::new(),
    };
    loop {
        let line = match replay.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            // An incomplete replay without frames is an error.
            Err(ReplayError::CutOff { .. }) if summary.frames > 0 => break,
            Err(error) => return Err(error),
        };
        let (one, each, marks) = match &line {
            ReplayLine::Epoch(epoch) => {
                let marks = summary.add(epoch).map_err(|what| ReplayError::Line { line: replay.line(), what })?;
                (&epoch.world_state, &epoch.worlds, marks)
            }
            ReplayLine::Result(result) => {
                summary.result = Some(result.result.clone());
                (&result.world_state, &result.worlds, 0)
            }
        };
        write_entry(entries, summary.bytes, marks)?;
        let scores = || read_scores.map_or_else(Vec::new, |read| scores(read, &ids, one.as_deref(), each.as_deref()));
        stretches.add(marks, scores);
        summary.frames += 1;
        summary.bytes = replay.end();
    }
    write_entry(entries, summary.bytes, 0)?;
    entries.flush().map_err(ReplayError::Write)?;
    summary.stretch = stretches.each;
    summary.marks = stretches.list.iter().map(|stretch| stretch.marks).collect();
    if read_scores.is_some() {
        let of_seat = |seat: usize| stretches.list.iter().map(|stretch| stretch.scores[seat]).collect();
        summary.scores = (0..ids.len()).map(of_seat).collect();
    }
    Ok(summary)
}

impl Summary {
    /// Counts the faults, rejections and disqualifications of an epoch, and returns its marks. It is an error if the
    /// epoch doesn't follow the last one.
    fn add(&mut self, epoch: &EpochLine) -> Result<u8, String> {
        let expected = match self.frames {
            0 if epoch.epoch == 0 => 0,
            frames => self.first_epoch + frames,
        };
        if epoch.epoch != expected {
            return Err(format!("found epoch {} instead of epoch {expected}", epoch.epoch));
        }
        if self.frames == 0 {
            self.first_epoch = epoch.epoch;
        }
        let count = |counts: &mut Vec<u64>, seat: usize| {
            if let Some(count) = counts.get_mut(seat) {
                *count += 1;
            }
        };
        for fault in &epoch.faults {
            count(&mut self.faults, fault.seat);
        }
        for rejected in &epoch.rejected {
            count(&mut self.rejections, rejected.seat);
        }
        let frame = self.frames;
        let out = epoch.disqualified.iter().cloned();
        self.disqualified.extend(out.map(|disqualified| DisqualifiedIn { frame, disqualified }));
        let mark = |is_empty: bool, mark: u8| if is_empty { 0 } else { mark };
        Ok(mark(epoch.faults.is_empty(), FAULT)
            | mark(epoch.rejected.is_empty(), REJECTION)
            | mark(epoch.disqualified.is_empty(), DISQUALIFICATION))
    }
}

fn write_entry(entries: &mut dyn Write, offset: u64, marks: u8) -> Result<(), ReplayError> {
    let mut entry = offset.to_le_bytes();
    entry[ENTRY - 1] = marks;
    entries.write_all(&entry).map_err(ReplayError::Write)
}

/// The frames, grouped in stretches of equal length. If there are too many stretches, their length is
/// doubled.
struct Stretches {
    each: u64,
    frames: u64,
    list: Vec<Stretch>,
}

struct Stretch {
    marks: u8,
    scores: Vec<Option<f64>>,
}

impl Stretches {
    /// Adds a frame. Calls `scores` only at the beginning of a stretch, because parsing a state takes long.
    fn add(&mut self, marks: u8, scores: impl Fn() -> Vec<Option<f64>>) {
        if self.frames == self.each * MAX_STRETCHES as u64 {
            self.each *= 2;
            let pairs = std::mem::take(&mut self.list);
            let mut pairs = pairs.into_iter();
            while let Some(mut stretch) = pairs.next() {
                stretch.marks |= pairs.next().map_or(0, |second| second.marks);
                self.list.push(stretch);
            }
        }
        if self.frames.is_multiple_of(self.each) {
            self.list.push(Stretch { marks, scores: scores() });
        } else if let Some(last) = self.list.last_mut() {
            last.marks |= marks;
        }
        self.frames += 1;
    }
}

/// Returns the scores in a frame's states, by seat. `read` parses one common state, or the world of each
/// seat.
fn scores(read: ReadScores, ids: &[String], one: Option<&RawValue>, each: Option<&RawValue>) -> Vec<Option<f64>> {
    if let Some(scores) = one.and_then(|state| read(state.get(), ids)) {
        return scores;
    }
    let worlds = each.and_then(|worlds| serde_json::from_str::<Vec<&RawValue>>(worlds.get()).ok()).unwrap_or_default();
    let score = |(seat, id): (usize, &String)| read(worlds.get(seat)?.get(), std::slice::from_ref(id))?.pop()?;
    ids.iter().enumerate().map(score).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const RESULT: &str = r#"{"result":{"outcome":{"termination":"GAME_ENDED","winner":"DRAW"},"epochs":1,"scores":[1,2],"ranks":[2,1]}}"#;

    fn header(name: &str) -> String {
        let agents = ["a", "b"].map(|id| json!({"agent_id": id, "name": name, "version": null}));
        let header = json!({
            "arena_replay": 1, "game": "snake", "update_mode": "SIMULTANEOUS", "seed": "0".repeat(64),
            "options": {}, "config": {}, "agents": agents,
        });
        format!("{header}\n")
    }

    /// The first agent's score is the epoch's number.
    fn epoch(epoch: u64, marks: u8, text: &str) -> String {
        let mut line = json!({
            "epoch": epoch, "remaining_overage_ms": [1, 1], "actions": [[{"action": text}], null],
            "world_state": {"score": {"a": epoch, "b": 0}},
        });
        if marks & FAULT > 0 {
            line["faults"] = json!([{"seat": 1, "what": text}]);
        }
        if marks & REJECTION > 0 {
            line["rejected"] =
                json!([{"seat": 0, "index": null, "reason": text}, {"seat": 9, "index": 1, "reason": ""}]);
        }
        if marks & DISQUALIFICATION > 0 {
            line["disqualified"] = json!([{"seat": 0, "verdict": "TIMEOUT", "detail": text}]);
        }
        format!("{line}\n")
    }

    /// Returns the entries of an index: offset and marks.
    fn entries(index: &[u8]) -> Vec<(usize, u8)> {
        let (entries, rest) = index.as_chunks::<ENTRY>();
        assert_eq!(rest, b"");
        let offset = |entry: [u8; ENTRY]| usize::try_from(u64::from_le_bytes(entry) & 0xffff_ffff_ffff).unwrap();
        entries.iter().map(|entry| (offset(*entry), entry[ENTRY - 1])).collect()
    }

    fn indexed(replay: &str) -> (Summary, Vec<(usize, u8)>) {
        let mut bytes = Vec::new();
        let summary = index(replay.as_bytes(), &mut bytes).unwrap();
        (summary, entries(&bytes))
    }

    #[track_caller]
    fn check(replay: &str, expected: Expect) {
        let actual = match index(replay.as_bytes(), &mut Vec::new()) {
            Ok(summary) => serde_json::to_string(&summary).unwrap(),
            Err(error) => format!("error: {error}"),
        };
        expected.assert_eq(&actual);
    }

    proptest! {
        /// Checks the index for random lines, with a result, without one, or with half a line at the end.
        #[test]
        fn each_entry_leads_to_its_line(
            name in any::<String>(),
            first in 0_u64..2,
            lines in proptest::collection::vec((0_u8..8, any::<String>()), 1..60),
            ending in proptest::option::of(Just(RESULT)),
            half in any::<bool>(),
        ) {
            let mut replay = header(&name);
            for (number, (marks, text)) in (first..).zip(&lines) {
                replay += &epoch(number, *marks, text);
            }
            match ending {
                Some(result) => replay += &format!("{result}\n"),
                None if half => replay += "{\"epoch\":",
                None => {}
            }
            let (summary, entries) = indexed(&replay);
            let frames = lines.len() + usize::from(ending.is_some());
            prop_assert_eq!((summary.frames, entries.len()), (frames as u64, frames + 1));
            prop_assert_eq!((summary.first_epoch, summary.result.is_some()), (first, ending.is_some()));
            prop_assert_eq!(summary.bytes, entries[frames].0 as u64);
            for (frame, pair) in entries.windows(2).enumerate() {
                let line: Value = serde_json::from_str(&replay[pair[0].0..pair[1].0]).unwrap();
                match lines.get(frame) {
                    Some((marks, _)) => {
                        prop_assert_eq!(&line["epoch"], &json!(first + frame as u64));
                        prop_assert_eq!(pair[0].1, *marks);
                    }
                    None => prop_assert!(line["result"].is_object()),
                }
            }
            let marks: Vec<u8> = entries[..frames].iter().map(|entry| entry.1).collect();
            prop_assert_eq!((summary.stretch, &summary.marks), (1, &marks));
        }
    }

    #[test]
    fn stretches_hold_what_is_in_their_frames_however_many_there_are() {
        for frames in [MAX_STRETCHES as u64, MAX_STRETCHES as u64 + 1, 3 * MAX_STRETCHES as u64 + 7, 20_000] {
            let marks = |epoch: u64| if epoch.is_multiple_of(97) { (epoch % 8) as u8 } else { 0 };
            let mut replay = header("ada");
            replay.extend((1..=frames).map(|number| epoch(number, marks(number), "")));
            let (summary, _) = indexed(&replay);
            let stretch = summary.stretch;
            assert!(stretch.is_power_of_two() && summary.marks.len() <= MAX_STRETCHES, "{frames}: {stretch}");
            assert_eq!(summary.marks.len() as u64, frames.div_ceil(stretch));
            for (at, found) in summary.marks.iter().enumerate() {
                let begin = at as u64 * stretch + 1;
                let expected = (begin..(begin + stretch).min(frames + 1)).map(marks).fold(0, |all, marks| all | marks);
                assert_eq!(*found, expected, "{frames}: stretch {at}");
                // The score of an epoch is its number.
                assert_eq!(summary.scores[0][at], Some(begin as f64));
            }
        }
    }

    #[test]
    fn a_summary_tells_what_went_wrong_and_how_it_ended() {
        check(
            &format!("{}{}{}{RESULT}\n", header("ada"), epoch(1, 3, "<b>"), epoch(2, 4, "late")),
            expect![[
                r#"{"arena_replay_index":1,"bytes":786,"frames":3,"first_epoch":1,"result":{"outcome":{"termination":"GAME_ENDED","winner":"DRAW"},"epochs":1,"scores":[1.0,2.0],"ranks":[2,1]},"sides":[null,null],"faults":[0,1],"rejections":[1,0],"disqualified":[{"frame":1,"seat":0,"verdict":"TIMEOUT","detail":"late"}],"stretch":1,"marks":[3,4,0],"scores":[[1.0,2.0,null],[0.0,0.0,null]]}"#
            ]],
        );
    }

    #[test]
    fn what_is_no_replay_is_told() {
        check("", expect!["error: not an arena replay: the file is empty"]);
        check("{}\n", expect!["error: not an arena replay: its first line lacks `arena_replay`"]);
        check(&header("ada"), expect!["error: the replay breaks off after epoch 0, without a result"]);
        check(
            &format!("{}{}{}", header("ada"), epoch(1, 0, ""), epoch(3, 0, "")),
            expect!["error: line 3: found epoch 3 instead of epoch 2"],
        );
        check(
            &format!("{}{{\"epoch\":-1}}\n", header("ada")),
            expect!["error: line 2: invalid value: integer `-1`, expected u64, at column 11"],
        );
        check(
            &format!("{}{}\n", header("ada"), RESULT.replace("1,2", "1,")),
            expect!["error: line 2: trailing comma, at column 90"],
        );
    }
}
