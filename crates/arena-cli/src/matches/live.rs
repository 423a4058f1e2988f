//! The live view of a match on a terminal.
//!
//! The match stores a copy of its state, and a separate thread draws this copy at most about 20 times a second. So a
//! slow terminal doesn't delay a fast match, and the displayed clocks advance while an agent thinks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arena_games::board::row::{Ink, Row};
use arena_games::board::{Stage, TerminalSize};
use arena_match::{Disqualified, MatchSnapshot, Seat, Watch};
use serde_json::Value;

use crate::output::counted;
use crate::terminal::frame::{AgentEntry, frame};
use crate::terminal::{self, Screen};

/// The minimum time between two frames.
const REST: Duration = Duration::from_millis(50);

/// The minimum waiting time that the view displays.
const MIN_SHOWN_WAIT: Duration = Duration::from_millis(300);

/// Shows a match while it is played.
pub struct Live {
    shared: Arc<Shared>,
    called_off: Arc<AtomicBool>,
    pace: Duration,
    painter: Option<JoinHandle<()>>,
}

/// State shared by the match and the drawing thread.
struct Shared {
    latest: Mutex<Latest>,
    /// Notified at the end of the match.
    done: Condvar,
}

/// The state to draw.
#[derive(Default)]
struct Latest {
    epoch: u64,
    /// The states by seat: each is the text of a JSON object without its braces, as in a snapshot.
    states: Vec<Vec<u8>>,
    agents: Vec<ShownAgent>,
    /// The time of the pending request to the agents; `None` if no answer is pending.
    asked: Option<Instant>,
    is_new: bool,
    is_done: bool,
}

/// The displayed state of an agent's seat.
#[derive(Default)]
struct ShownAgent {
    name: String,
    bank_ms: u64,
    used: Duration,
    faults: u32,
    out: Option<Disqualified>,
}

impl Live {
    /// Creates the view of a match. `pace` is the minimum time for which each epoch is shown.
    pub fn new(stage: Stage, pace: Duration, called_off: Arc<AtomicBool>) -> Live {
        let shared = Arc::new(Shared { latest: Mutex::default(), done: Condvar::new() });
        let painter = {
            let (shared, called_off) = (shared.clone(), called_off.clone());
            // If no thread can be started, the match is played without a view.
            thread::Builder::new().name("view".to_owned()).spawn(move || paint(&stage, &shared, &called_off)).ok()
        };
        Live { shared, called_off, pace, painter }
    }

    fn note(&self, snapshot: MatchSnapshot<'_>, is_over: bool) {
        let mut latest = self.shared.lock();
        latest.epoch = snapshot.epoch;
        latest.states.resize_with(snapshot.states.len(), Vec::new);
        for (kept, state) in latest.states.iter_mut().zip(snapshot.states) {
            kept.clone_from(state);
        }
        latest.agents.resize_with(snapshot.seats.len(), ShownAgent::default);
        for (agent, seat) in latest.agents.iter_mut().zip(snapshot.seats) {
            agent.note(seat);
        }
        latest.asked = (!is_over).then(|| Instant::now() + self.pace);
        latest.is_new = true;
    }
}

impl Watch for Live {
    fn on_epoch(&mut self, snapshot: MatchSnapshot<'_>) {
        self.note(snapshot, false);
        let until = Instant::now() + self.pace;
        while !self.called_off.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // The wait consists of short sleeps, so that an interruption ends it early.
            thread::sleep(left.min(REST));
        }
    }

    fn on_end(&mut self, snapshot: MatchSnapshot<'_>) {
        self.note(snapshot, true);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.lock().is_done = true;
        self.shared.done.notify_one();
        if let Some(painter) = self.painter.take() {
            // A panic of the view doesn't affect the match.
            let _ = painter.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Latest> {
        // A panic of the other thread poisons the lock, but the view needs no consistent state.
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShownAgent {
    fn note(&mut self, seat: &Seat) {
        self.name.clone_from(&seat.name);
        (self.bank_ms, self.used, self.faults) = (seat.bank_ms(), seat.used, seat.faults);
        if self.out != seat.out {
            self.out.clone_from(&seat.out);
        }
    }

    fn entry(&self) -> AgentEntry {
        let mut details = format!("used {}, bank {}", time(self.used), time(Duration::from_millis(self.bank_ms)));
        if self.faults > 0 {
            details += &format!(", {}", counted(self.faults, "fault"));
        }
        let verdict = self.out.as_ref().map(|out| format!("{}: {}", out.verdict, out.detail));
        AgentEntry { name: self.name.clone(), details, verdict }
    }
}

/// Draws frames until the match ends. An interruption ends drawing, since other output to the terminal follows.
fn paint(stage: &Stage, shared: &Shared, called_off: &AtomicBool) {
    let mut screen = Screen::new();
    let mut latest = shared.lock();
    loop {
        let is_slow = latest.asked.is_some_and(|asked| asked.elapsed() >= MIN_SHOWN_WAIT);
        if (latest.is_new || is_slow) && !called_off.load(Ordering::Relaxed) {
            latest.is_new = false;
            let is_done = latest.is_done;
            let scene = Scene::of(&latest);
            drop(latest);
            if screen.draw(&scene.rows(stage, terminal::size())).is_err() || is_done {
                return;
            }
            latest = shared.lock();
        }
        if latest.is_done && !latest.is_new {
            return;
        }
        if !latest.is_done {
            latest = match shared.done.wait_timeout_while(latest, REST, |latest| !latest.is_done) {
                Ok((latest, _)) => latest,
                Err(_) => return,
            };
        }
        if called_off.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// The content of one frame.
struct Scene {
    epoch: u64,
    states: Vec<Value>,
    entries: Vec<AgentEntry>,
    waited: Option<Duration>,
}

impl Scene {
    fn of(latest: &Latest) -> Scene {
        // The text is empty for an agent that isn't to move, and for an agent whose state equals that of an earlier
        // seat.
        let parse =
            |members: &Vec<u8>| serde_json::from_slice(&[b"{", &members[..], b"}"].concat()).unwrap_or_default();
        Scene {
            epoch: latest.epoch,
            states: latest.states.iter().map(parse).collect(),
            entries: latest.agents.iter().map(ShownAgent::entry).collect(),
            waited: latest.asked.map(|asked| asked.elapsed()).filter(|waited| *waited >= MIN_SHOWN_WAIT),
        }
    }

    fn rows(&self, stage: &Stage, size: TerminalSize) -> Vec<Row> {
        let mut title = Row::default();
        title.text(Ink::Strong, &stage.game).text(Ink::Plain, &format!(", epoch {}", self.epoch));
        if let Some(waited) = self.waited {
            title.text(Ink::Faint, &format!(", waiting for {:.1} s", waited.as_secs_f64()));
        }
        frame(stage, title, &self.states, &self.entries, size)
    }
}

/// Formats a duration in milliseconds, or in seconds with one decimal.
fn time(time: Duration) -> String {
    match time.as_millis() {
        ms if ms < 1000 => format!("{ms} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
