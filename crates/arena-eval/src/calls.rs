//! The calls of a run: an index in memory, and the answers in a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_llm::{Bound, Spent, Usage};
use arena_match::line_file::{LineFile, SyncPolicy, scan, to_line};
use arena_model::hex;
use parking_lot::Mutex;
use serde::Deserialize;

use crate::folder::{FolderError, cannot_read, cannot_write};
use crate::hash::sha256;
use crate::record::CallLine;
use crate::requests::{REQUESTS, RequestLine, Requests};

pub(crate) const CALLS: &str = "calls.jsonl";

/// A SHA-256 as bytes, which need half the memory of digits.
type Hash = [u8; 32];

/// The place of a line: the offset and the length without the line break, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    offset: u64,
    length: u32,
}

/// The places of all calls and texts in a file.
#[derive(Debug, Default)]
pub(crate) struct CallIndex {
    calls: BTreeMap<Hash, Place>,
    texts: BTreeMap<Hash, Place>,
    /// The calls of each game in the order of the file, without repeated keys.
    games: BTreeMap<String, Vec<Place>>,
    agents: BTreeMap<String, Spent>,
    total: Spent,
    /// The costs of attempts without a stored answer, by key.
    paid: BTreeMap<String, Spent>,
    /// The seconds since 1970 with an answer to a player.
    seconds: BTreeSet<i64>,
}

/// The part of a line that the index needs. The parser skips the rest.
#[derive(Deserialize)]
struct Brief<'l> {
    #[serde(rename = "type")]
    kind: &'l str,
    #[serde(default, borrow)]
    sha256: Option<&'l str>,
    #[serde(default, borrow)]
    key: Option<&'l str>,
    #[serde(default, borrow)]
    game: Option<&'l str>,
    #[serde(default)]
    seat: Option<usize>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    reply: Option<BriefReply>,
    #[serde(default)]
    usd: Option<f64>,
    #[serde(default)]
    time: i64,
}

#[derive(Deserialize)]
struct BriefReply {
    usage: Usage,
}

/// The values of a call that the index needs, besides its key and cost.
#[derive(Clone, Copy)]
struct CallKey<'c> {
    game: &'c str,
    agent: &'c str,
    seat: Option<usize>,
    time: i64,
}

impl CallIndex {
    /// Reads the index of a folder's calls, with the costs of its requests.
    pub(crate) fn read(dir: &Path) -> Result<CallIndex, FolderError> {
        let (mut index, _) = CallIndex::read_calls(dir)?;
        for (key, agent, spent) in Requests::read(dir)?.paid {
            index.pay(&key, &agent, &spent);
        }
        Ok(index)
    }

    /// Reads the index of a folder's calls, and returns it with the total length of the complete lines.
    fn read_calls(dir: &Path) -> Result<(CallIndex, u64), FolderError> {
        let mut index = CallIndex::default();
        let length = scan(&dir.join(CALLS), |offset, line| index.add_line(offset, line))?;
        Ok((index, length))
    }

    fn add_line(&mut self, offset: u64, line: &[u8]) -> Result<(), String> {
        let brief: Brief<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let place = place_of(offset, line.len())?;
        match brief {
            Brief { kind: "text", sha256: Some(sha256), .. } => {
                self.texts.entry(parse_hash(sha256)?).or_insert(place);
            }
            Brief {
                kind: "call", key: Some(key), game: Some(game), agent: Some(agent), reply: Some(reply), ..
            } => {
                let spent = Spent { calls: 1, usage: reply.usage, usd: brief.usd.unwrap_or_default() };
                let call = CallKey { game, agent: &agent, seat: brief.seat, time: brief.time };
                self.add_call(parse_hash(key)?, place, &call, &spent);
            }
            Brief { kind, .. } => return Err(format!("a line of type {kind} is incomplete or unknown")),
        }
        Ok(())
    }

    fn add_call(&mut self, key: Hash, place: Place, call: &CallKey<'_>, spent: &Spent) {
        let CallKey { game, agent, seat, time } = *call;
        // The first answer to a repeated key is the one that was used. Both were paid.
        let before = self.calls.len();
        self.calls.entry(key).or_insert(place);
        if self.calls.len() > before {
            match self.games.get_mut(game) {
                Some(places) => places.push(place),
                None => {
                    self.games.insert(game.to_owned(), vec![place]);
                }
            }
        }
        self.add_spent(agent, spent);
        // The judges of earlier programs worked after the run.
        if seat.is_some() {
            self.seconds.insert(time.div_euclid(1000));
        }
    }

    fn pay(&mut self, key: &str, agent: &str, spent: &Spent) {
        add_spent(self.paid.entry(key.to_owned()).or_default(), spent);
        self.add_spent(agent, spent);
    }

    fn add_spent(&mut self, agent: &str, spent: &Spent) {
        add_spent(&mut self.total, spent);
        match self.agents.get_mut(agent) {
            Some(total) => add_spent(total, spent),
            None => {
                self.agents.insert(agent.to_owned(), *spent);
            }
        }
    }

    /// Returns the totals of all calls and of requests without a stored answer.
    pub(crate) fn total(&self) -> Spent {
        self.total
    }

    /// Reads the calls of a game, in the order of the file.
    pub(crate) fn calls_of(&self, game: &str, file: &File, path: &Path) -> Result<Vec<CallLine>, FolderError> {
        let places = self.games.get(game).map_or(&[][..], Vec::as_slice);
        places.iter().map(|place| read_at(file, path, *place)).collect()
    }

    /// Reads the answered call with this key.
    pub(crate) fn find(&self, key: &str, file: &File, path: &Path) -> Result<Option<CallLine>, FolderError> {
        let place = parse_hash(key).ok().and_then(|hash| self.calls.get(&hash));
        place.map(|place| read_at(file, path, *place)).transpose()
    }

    /// Returns the costs of a request's attempts without an answer.
    pub(crate) fn paid(&self, key: &str) -> Spent {
        self.paid.get(key).copied().unwrap_or_default()
    }

    pub(crate) fn text(&self, sha256: &str, file: &File, path: &Path) -> Result<Option<String>, FolderError> {
        let place = parse_hash(sha256).ok().and_then(|hash| self.texts.get(&hash));
        let Some(place) = place else { return Ok(None) };
        match read_at(file, path, *place)? {
            CallLine::Text { text, .. } => Ok(Some(text)),
            CallLine::Call(_) => Ok(None),
        }
    }
}

fn add_spent(total: &mut Spent, more: &Spent) {
    total.calls += more.calls;
    total.usage += more.usage;
    total.usd += more.usd;
}

fn place_of(offset: u64, length: usize) -> Result<Place, String> {
    let length = u32::try_from(length).map_err(|_| "the line is longer than 4 GiB".to_owned())?;
    Ok(Place { offset, length })
}

fn parse_hash(text: &str) -> Result<Hash, String> {
    hex::decode(text).ok_or_else(|| format!("{text:?} isn't a SHA-256"))
}

fn read_at(file: &File, path: &Path, place: Place) -> Result<CallLine, FolderError> {
    let mut line = vec![0; place.length as usize];
    let read = file.read_exact_at(&mut line, place.offset);
    let line = read.and_then(|()| serde_json::from_slice(&line).map_err(std::io::Error::from));
    line.map_err(|source| cannot_read(path, source))
}

/// The calls of a run, for the players of all games at the same time.
#[derive(Debug)]
pub struct CallStore {
    path: PathBuf,
    /// A handle for reading, which doesn't wait for writers.
    reader: File,
    writer: Mutex<Writer>,
    requests: Mutex<LineFile>,
    /// A handle for waiting until requests are on the disk, without a lock.
    requests_disk: Arc<File>,
    /// The reasons of requests that would fail again, by key.
    refused: Mutex<BTreeMap<String, String>>,
}

#[derive(Debug)]
struct Writer {
    file: LineFile,
    index: CallIndex,
}

impl CallStore {
    /// Opens the calls of a run, and removes an incomplete last line. Requests that an earlier process had sent without
    /// storing an answer count at their highest price from now on.
    pub(crate) fn open(dir: &Path) -> Result<CallStore, FolderError> {
        let path = dir.join(CALLS);
        let (mut index, length) = CallIndex::read_calls(dir)?;
        let file = LineFile::open(&path, length, SyncPolicy::EachSecond)?;
        let Requests { open, refused, paid, length } = Requests::read(dir)?;
        let mut requests = LineFile::open(&dir.join(REQUESTS), length, SyncPolicy::EachSecond)?;
        let mut lines = Vec::new();
        for (key, agent, spent) in paid {
            index.pay(&key, &agent, &spent);
        }
        for (key, open) in open {
            let is_answered = parse_hash(&key).is_ok_and(|hash| index.calls.contains_key(&hash));
            for (agent, spent) in open.into_iter().skip(usize::from(is_answered)) {
                index.pay(&key, &agent, &spent);
                lines.extend(to_line(&RequestLine::paid(&key, &agent, spent.usage, spent.usd), &path)?);
                lines.extend(to_line(&RequestLine::ended(&key, None), &path)?);
            }
        }
        requests.append(&lines)?;
        Ok(CallStore {
            reader: file.reader()?,
            path,
            writer: Mutex::new(Writer { file, index }),
            requests_disk: Arc::new(requests.reader()?),
            requests: Mutex::new(requests),
            refused: Mutex::new(refused),
        })
    }

    /// Records a request before it is sent. A killed process keeps the line, and so does a power cut if `is_capped`: the
    /// cap then holds.
    pub(crate) async fn begin(
        &self,
        key: &str,
        agent: &str,
        bound: &Bound,
        is_capped: bool,
    ) -> Result<(), FolderError> {
        self.requests.lock().append_value(&RequestLine::sent(key, agent, bound))?;
        if is_capped {
            let disk = Arc::clone(&self.requests_disk);
            let synced = tokio::task::spawn_blocking(move || disk.sync_data()).await;
            let synced = synced.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            synced.map_err(|source| cannot_write(&self.path.with_file_name(REQUESTS), source))?;
        }
        Ok(())
    }

    /// Records tokens of a request that are paid without a stored answer.
    pub(crate) fn pay(&self, key: &str, agent: &str, spent: &Spent) -> Result<(), FolderError> {
        self.requests.lock().append_value(&RequestLine::paid(key, agent, spent.usage, spent.usd))?;
        self.writer.lock().index.pay(key, agent, spent);
        Ok(())
    }

    /// Returns the costs of a request's attempts without an answer.
    pub(crate) fn paid(&self, key: &str) -> Spent {
        self.writer.lock().index.paid(key)
    }

    /// Records the end of a request without an answer. `why` is the reason if the request would fail again.
    pub(crate) fn end(&self, key: &str, why: Option<&str>) -> Result<(), FolderError> {
        if let Some(why) = why {
            self.refused.lock().insert(key.to_owned(), why.to_owned());
        }
        let line = RequestLine::ended(key, why.map(str::to_owned));
        self.requests.lock().append_value(&line)?;
        Ok(())
    }

    /// Returns the reason if the request with this key would fail again.
    pub(crate) fn refused(&self, key: &str) -> Option<String> {
        self.refused.lock().get(key).cloned()
    }

    /// Forgets the requests that would fail again. The user has changed the endpoint.
    pub(crate) fn forget_refused(&self) {
        self.refused.lock().clear();
    }

    /// Finds the answered call with this key.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn find(&self, key: &str) -> Result<Option<CallLine>, FolderError> {
        let Ok(key) = parse_hash(key) else { return Ok(None) };
        let place = self.writer.lock().index.calls.get(&key).copied();
        place.map(|place| read_at(&self.reader, &self.path, place)).transpose()
    }

    /// Appends a line. A killed process keeps the line; a power cut may lose the last second.
    ///
    /// # Errors
    /// If the line has an invalid hash or can't be written. The file is then unchanged.
    pub fn add(&self, line: &CallLine) -> Result<(), FolderError> {
        let bytes = to_line(line, &self.path)?;
        let invalid = |what| FolderError::Record { path: self.path.clone(), what };
        let length = bytes.len() - 1;
        match line {
            CallLine::Text { sha256, .. } => {
                let hash = parse_hash(sha256).map_err(invalid)?;
                let mut writer = self.writer.lock();
                let place = place_of(writer.file.append(&bytes)?, length).map_err(invalid)?;
                writer.index.texts.entry(hash).or_insert(place);
            }
            CallLine::Call(call) => {
                let key = parse_hash(&call.key).map_err(invalid)?;
                let spent = Spent { calls: 1, usage: call.reply.usage, usd: call.usd.unwrap_or_default() };
                let mut writer = self.writer.lock();
                let place = place_of(writer.file.append(&bytes)?, length).map_err(invalid)?;
                let call = CallKey { game: &call.game, agent: &call.agent, seat: call.seat, time: call.time };
                writer.index.add_call(key, place, &call, &spent);
            }
        }
        Ok(())
    }

    /// Waits until all calls so far are on the disk. Other games may add calls meanwhile.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync(&self) -> Result<(), FolderError> {
        // A sync through any handle covers all lines of the file.
        self.reader.sync_data().map_err(|source| cannot_write(&self.path, source))
    }

    /// Stores a text once, and returns its SHA-256 in hexadecimal.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn add_text(&self, text: &str) -> Result<String, FolderError> {
        let sha256 = sha256(text);
        let is_known = parse_hash(&sha256).is_ok_and(|hash| self.writer.lock().index.texts.contains_key(&hash));
        if !is_known {
            self.add(&CallLine::Text { sha256: sha256.clone(), text: text.to_owned() })?;
        }
        Ok(sha256)
    }

    /// Returns the totals of all calls, including those of void games and earlier plans.
    pub fn totals(&self) -> Spent {
        self.writer.lock().index.total
    }

    /// Returns the totals by the name of the agent.
    pub fn totals_by_agent(&self) -> BTreeMap<String, Spent> {
        self.writer.lock().index.agents.clone()
    }

    /// Returns the time that earlier invocations took, in milliseconds: for each, the time from its start to the last
    /// answer to a player. `started` has the starts in order, in milliseconds since 1970.
    pub(crate) fn elapsed_ms(&self, started: &[i64]) -> i64 {
        elapsed_ms(&self.writer.lock().index.seconds, started)
    }
}

fn elapsed_ms(seconds: &BTreeSet<i64>, started: &[i64]) -> i64 {
    let spans = started.iter().enumerate().map(|(at, start)| {
        let begin = start.div_euclid(1000);
        let end = started.get(at + 1).map_or(i64::MAX, |next| next.div_euclid(1000).max(begin));
        seconds.range(begin..end).next_back().map_or(0, |last| (last + 1 - begin) * 1000)
    });
    spans.sum()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use arena_llm::{Finish, Reply};
    use serde_json::json;

    use super::*;
    use crate::record::CallRecord;

    fn call(number: u32, text: &str) -> CallLine {
        CallLine::Call(Box::new(CallRecord {
            key: sha256(&number.to_string()),
            game: format!("{:012x}", number % 100),
            seat: Some(0),
            number,
            agent: if number.is_multiple_of(2) { "even" } else { "odd \"one\"" }.to_owned(),
            model: "model".to_owned(),
            harness: sha256("harness"),
            system: sha256("system"),
            tools: sha256("tools"),
            new: Vec::new(),
            reply: Reply {
                text: text.to_owned(),
                calls: Vec::new(),
                raw: json!({"content": text}),
                usage: Usage { input: 100, cached: 10, output: 5, reasoning: 1, is_estimated: false },
                finish: Finish::Done,
                request_id: None,
            },
            reported: None,
            usd: (number.is_multiple_of(2)).then_some(0.5),
            first_byte_ms: 1,
            ms: 2,
            request_bytes: 400,
            retries: Vec::new(),
            time: i64::from(number) * 1000,
        }))
    }

    #[test]
    fn calls_are_found_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let store = CallStore::open(folder.path()).unwrap();
        let system = store.add_text("The rules.\n\"quoted\"").unwrap();
        assert_eq!(store.add_text("The rules.\n\"quoted\"").unwrap(), system);
        for number in 1..=3 {
            store.add(&call(number, "ä\n")).unwrap();
        }
        // The first answer to a key counts, and both are paid.
        store.add(&call(2, "again")).unwrap();
        let totals = store.totals();
        drop(store);
        let path = folder.path().join(CALLS);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 5, "a text is stored once");
        let mut torn = fs::read(&path).unwrap();
        torn.extend_from_slice(b"{\"type\":\"call\",\"key\":\"ab");
        fs::write(&path, torn).unwrap();

        let store = CallStore::open(folder.path()).unwrap();
        for number in 1..=3 {
            assert_eq!(store.find(&sha256(&number.to_string())).unwrap(), Some(call(number, "ä\n")), "{number}");
        }
        assert_eq!(store.find(&sha256("4")).unwrap(), None);
        assert_eq!(store.find("no hash").unwrap(), None);
        assert_eq!(store.totals(), totals);
        assert_eq!((totals.calls, totals.usage.input, totals.usd), (4, 400, 1.0));
        let by_agent: Vec<(String, u64)> =
            store.totals_by_agent().into_iter().map(|(agent, spent)| (agent, spent.calls)).collect();
        assert_eq!(by_agent, [("even".to_owned(), 2), ("odd \"one\"".to_owned(), 2)]);
        store.add(&call(4, "after the torn line")).unwrap();
        let index = CallIndex::read(folder.path()).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(index.calls_of("000000000004", &file, &path).unwrap(), [call(4, "after the torn line")]);
        assert!(index.calls_of("000000000005", &file, &path).unwrap().is_empty());
        assert_eq!(index.text(&system, &file, &path).unwrap().as_deref(), Some("The rules.\n\"quoted\""));
        assert_eq!(index.text(&sha256("other"), &file, &path).unwrap(), None);
    }

    #[tokio::test]
    async fn requests_without_an_answer_count_after_a_kill() {
        let folder = tempfile::tempdir().unwrap();
        let key = |number: u32| sha256(&number.to_string());
        let bound = Bound { input: 1000, output: 50, usd: 0.25 };
        let store = CallStore::open(folder.path()).unwrap();
        for number in 1..=4 {
            store.begin(&key(number), "small", &bound, number == 1).await.unwrap();
        }
        // The first is answered, the second fails, the third is paid without content, the fourth is too long.
        store.add(&call(1, "")).unwrap();
        store.end(&key(2), None).unwrap();
        let usage = Usage { input: 90, output: 5, ..Usage::default() };
        store.pay(&key(3), "small", &Spent { calls: 0, usage, usd: 0.125 }).unwrap();
        store.end(&key(3), None).unwrap();
        store.end(&key(4), Some("too long")).unwrap();
        let totals = store.totals();
        assert_eq!((totals.calls, totals.usage.input, totals.usd), (1, 190, 0.125));
        drop(store);
        let again = CallStore::open(folder.path()).unwrap();
        assert_eq!(again.totals(), totals, "all requests have an end");
        assert_eq!((again.refused(&key(4)).as_deref(), again.refused(&key(3))), (Some("too long"), None));
        // A request that is sent when the process is killed counts once, at its highest price.
        again.begin(&key(5), "small", &bound, false).await.unwrap();
        assert_eq!(CallIndex::read(folder.path()).unwrap().total(), totals, "it may still be answered");
        drop(again);
        for _ in 0..2 {
            let after = CallStore::open(folder.path()).unwrap();
            assert_eq!(after.totals().usd, 0.375);
            assert_eq!(after.totals_by_agent()["small"].usage.tokens(), 95 + 1050);
            assert_eq!(CallIndex::read(folder.path()).unwrap().total(), after.totals());
        }
        // It is sent again, and answered.
        let last = CallStore::open(folder.path()).unwrap();
        last.begin(&key(5), "small", &bound, false).await.unwrap();
        last.add(&call(5, "")).unwrap();
        drop(last);
        assert_eq!(CallStore::open(folder.path()).unwrap().totals().usd, 0.375);
    }

    #[test]
    fn an_invalid_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CALLS);
        for line in ["{}", "{\"type\":\"call\"}", "nonsense", "{\"type\":\"text\",\"sha256\":\"ab\",\"text\":\"\"}"] {
            let text = format!("{}\n{line}\n", serde_json::to_string(&call(1, "")).unwrap());
            fs::write(&path, text).unwrap();
            let error = CallStore::open(folder.path()).unwrap_err().to_string();
            assert!(error.contains("calls.jsonl, line 2: "), "{error}");
        }
    }

    #[test]
    fn many_calls_are_indexed_fast() {
        let folder = tempfile::tempdir().unwrap();
        let text = "word \"quoted\" ".repeat(100);
        let mut bytes = Vec::new();
        for number in 0..10_000 {
            bytes.extend(to_line(&call(number, &text), Path::new("calls")).unwrap());
        }
        fs::write(folder.path().join(CALLS), &bytes).unwrap();
        assert!(bytes.len() > 30_000_000, "{}", bytes.len());
        let began = Instant::now();
        let store = CallStore::open(folder.path()).unwrap();
        let ms = began.elapsed().as_millis();
        assert_eq!(store.totals().calls, 10_000);
        // A release build needs a tenth of this. The bound is for busy machines and test builds.
        assert!(ms < 5000, "{ms} ms");
    }

    #[test]
    fn earlier_time_counts_until_the_last_answer() {
        let seconds: BTreeSet<i64> = [10, 12, 100, 109].into();
        for (started, ms) in [
            (vec![], 0),
            (vec![10_000], 100_000),
            (vec![10_000, 100_000], 3000 + 10_000),
            (vec![10_500, 50_000, 100_000, 200_000], 3000 + 10_000),
            (vec![500_000], 0),
        ] {
            assert_eq!(elapsed_ms(&seconds, &started), ms, "{started:?}");
        }
    }
}
