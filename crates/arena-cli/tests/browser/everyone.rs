//! All built-in challenges against house bots: a person plays each one to its end by keyboard alone, and by touch on a
//! narrow screen. By mouse, a person plays those that no other test plays by mouse. `controls.rs` tests the controls of
//! single challenges in more detail.

use arena_testkit::data_folder;
use serde_json::json;

use crate::driver::{Driver, Window};
use crate::world::World;

/// Keys without a character, by their code points in the WebDriver standard.
const TAB: char = '\u{e004}';
const ENTER: char = '\u{e007}';
const SHIFT: char = '\u{e008}';
const LEFT: char = '\u{e012}';
const RIGHT: char = '\u{e014}';
const DOWN: char = '\u{e015}';
const SPACE: char = ' ';

/// The maximum number of presses of Tab between two controls.
const MOST_TABS: usize = 120;

/// The maximum number of the person's turns in a game.
const MOST_TURNS: u64 = 20;

/// The form on a challenge's page that starts a game against house bots.
const AGAINST_HOUSE: &str = "form:has([name=against])";

/// The next turn can begin between two looks at the page, so the page counts the turns in `window.turns`.
const COUNT_TURNS: &str = "
    const isMine = () => document.title.startsWith('● Your move');
    let before = isMine();
    window.turns = Number(before);
    new MutationObserver(() => {
        const now = isMine();
        if (now && !before) window.turns++;
        before = now;
    }).observe(document.querySelector('title'), { childList: true, characterData: true, subtree: true });";

/// Returns the direction from the focused element to the first element that matches `SELECTOR`: `here`, `back` or
/// `forward`. If the focused element was hidden or removed, its place still counts.
const DIRECTION: &str = "
    const focused = document.activeElement;
    if (focused?.matches(SELECTOR)) return 'here';
    if (focused && focused !== document.body) {
        window.trail = [];
        for (let each = focused; each; each = each.parentElement) window.trail.push(each);
    }
    const from = window.trail?.find((each) => each.isConnected);
    const wanted = document.querySelector(SELECTOR);
    const isBefore = from && wanted && from.compareDocumentPosition(wanted) & Node.DOCUMENT_POSITION_PRECEDING;
    return isBefore ? 'back' : 'forward';";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Device {
    Mouse,
    Keyboard,
    Touch,
}

/// A person at a browser who uses one input device.
struct Person<'d> {
    window: Window<'d>,
    device: Device,
}

struct HouseGame {
    challenge: &'static str,
    /// Options for a short game in JSON, for challenges with long games.
    options: Option<&'static str>,
    /// Makes a move; the second parameter is the number of earlier turns.
    act: fn(&Person<'_>, u64),
}

const GAMES: [HouseGame; 8] = [
    HouseGame { challenge: "psi", options: None, act: guess_a_number },
    HouseGame { challenge: "millionaire", options: None, act: guess_a_wealth },
    HouseGame { challenge: "ultimatum", options: None, act: bargain },
    HouseGame { challenge: "dining-cryptographers", options: None, act: name_a_diner },
    HouseGame { challenge: "chess", options: None, act: move_or_resign },
    HouseGame { challenge: "snake", options: Some(r#"{"n_epochs": 4}"#), act: steer },
    HouseGame { challenge: "food-catcher", options: Some(r#"{"n_epochs": 6}"#), act: gather },
    HouseGame { challenge: "cherry-picker", options: Some(r#"{"n_epochs": 4}"#), act: walk },
];

fn guess_a_number(person: &Person<'_>, _: u64) {
    person.choose("[data-number]");
    person.send("#send-guess");
}

fn guess_a_wealth(person: &Person<'_>, _: u64) {
    person.choose("[data-side]:not([data-side=equal]):not(:disabled)");
    person.slide("#guessed-wealth");
    person.send("#send-guess");
}

fn bargain(person: &Person<'_>, _: u64) {
    if person.is("document.getElementById('accept').checkVisibility()") {
        person.send("#accept");
    } else {
        person.slide(".sliders [type=range]");
        person.send("#send-offer");
    }
}

fn name_a_diner(person: &Person<'_>, _: u64) {
    person.choose("[data-answer=unknown]");
    person.choose("[data-diner='1']");
    person.window.wait("document.querySelectorAll('#controls [aria-pressed=true]').length === 1");
    person.send("#send-guess");
}

fn move_or_resign(person: &Person<'_>, turns: u64) {
    if turns < 2 {
        person.choose(".square");
        person.send(".square:has(circle)");
    } else {
        person.choose("#acts details:has([data-method=resign]) > summary");
        person.send("form[data-method=resign] button");
    }
}

/// Steers to the side with more room, first by a button and then, with a keyboard, by the arrow keys.
fn steer(person: &Person<'_>, turns: u64) {
    // The snake keeps its first direction, since it can't turn back.
    let column = "window.firstColumn ??= new RegExp(`(?:You|${'Player ' + ([...document.querySelectorAll('#session .seat')].findIndex((seat) => seat.innerText.includes('You')) + 1)}) head at (\\\\d+)`)\
        .exec(document.querySelector('#board canvas')?.ariaLabel)?.[1]";
    let column: u64 = person.window.wait(column).as_str().unwrap().parse().unwrap();
    match (person.device, turns, column < 5) {
        (Device::Keyboard, 1.., true) => person.window.press(RIGHT),
        (Device::Keyboard, 1.., false) => person.window.press(LEFT),
        (_, _, true) => person.send(".steps [value=RIGHT]"),
        (_, _, false) => person.send(".steps [value=LEFT]"),
    }
}

/// Sends an actor to gather food. The page sends this turn and the next ones by itself.
fn gather(person: &Person<'_>, turns: u64) {
    if turns == 0 {
        person.choose("#controls .orders button");
        person.send("#gather");
    }
}

/// Sends an actor to a point on the map or, by keyboard, to a target from the list. The page sends no turn by itself.
fn walk(person: &Person<'_>, turns: u64) {
    if turns == 0 {
        person.choose("#auto");
        if person.device == Device::Keyboard {
            person.tab_to("#target");
            person.window.press(DOWN);
            person.choose("#go");
        } else {
            person.choose("#board canvas");
        }
        person.window.wait("document.getElementById('send-orders').innerText === 'Send orders'");
    }
    person.send("#send-orders");
}

impl Person<'_> {
    fn is(&self, condition: &str) -> bool {
        self.window.run(&format!("return {condition}")) == json!(true)
    }

    #[track_caller]
    fn fits(&self) {
        assert_eq!(self.window.misfits(), Vec::<String>::new());
    }

    /// Waits until an element can be used.
    #[track_caller]
    fn find(&self, selector: &str) {
        let found = format!("document.querySelector({})", json!(selector));
        self.window.wait(&format!("{found}?.checkVisibility() && !{found}.matches(':disabled')"));
    }

    /// Moves the keyboard's focus to an element by Tab, or by Shift and Tab if the element precedes the focused one.
    #[track_caller]
    fn tab_to(&self, selector: &str) {
        self.find(selector);
        let direction = DIRECTION.replace("SELECTOR", &json!(selector).to_string());
        for _ in 0..MOST_TABS {
            match self.window.run(&direction).as_str() {
                Some("here") => return,
                Some("back") => self.window.press_with(SHIFT, TAB),
                _ => self.window.press(TAB),
            }
        }
        panic!("Tab doesn't reach {selector}\n{}", self.window.text("body"));
    }

    /// Clicks or taps an element. By keyboard, presses Enter on it, or Space if the element has two states.
    #[track_caller]
    fn choose(&self, selector: &str) {
        self.find(selector);
        match self.device {
            Device::Mouse => self.window.click(selector),
            Device::Touch => self.window.tap(selector),
            Device::Keyboard => {
                self.tab_to(selector);
                let has_states = self.is("document.activeElement.matches('[type=checkbox], [aria-pressed]')");
                self.window.press(if has_states { SPACE } else { ENTER });
            }
        }
    }

    #[track_caller]
    fn slide(&self, selector: &str) {
        if self.device == Device::Keyboard {
            self.tab_to(selector);
            self.window.press(RIGHT);
        } else {
            self.choose(selector);
        }
    }

    /// Checks the layout, and chooses the element that sends a move.
    #[track_caller]
    fn send(&self, selector: &str) {
        self.find(selector);
        self.fits();
        self.choose(selector);
    }

    /// Plays a game from the challenge's page to the result.
    #[track_caller]
    fn play(&self, world: &World, HouseGame { challenge, options, act }: &HouseGame) {
        let window = &self.window;
        window.open(&world.page(&format!("/challenges/{challenge}")));
        if let Some(options) = options {
            let field = json!(format!("{AGAINST_HOUSE} [name=options]"));
            window.run(&format!("document.querySelector({field}).value = {}", json!(options)));
        }
        window.see("Play against a house bot");
        self.choose(&format!("{AGAINST_HOUSE} .primary"));
        window.wait("document.getElementById('seat')?.dataset.seated === 'true'");
        window.run(COUNT_TURNS);

        let mut turns = 0;
        loop {
            let is_ended = "document.getElementById('session').dataset.status === 'ended'";
            let news = window.wait(&format!("{is_ended} ? 'ended' : window.turns > {turns} && window.turns"));
            let Some(now) = news.as_u64() else { break };
            assert!(now <= MOST_TURNS, "{challenge} doesn't end");
            if turns == 0 {
                assert_eq!(window.text("#turn-title"), "Your move", "{challenge}");
            }
            act(self, turns);
            turns = now;
        }
        assert!(turns > 0, "{challenge} ended before the first turn");

        // The result as a sentence.
        window.wait("document.querySelector('#result .verdict h2')?.innerText.trim()");
        window.see("Play again");
        window.wait("document.getElementById('turn').hidden && document.getElementById('controls').hidden");
        assert!(!self.is("document.title.startsWith('●')"), "{challenge}");
        self.fits();
    }
}

/// The challenges that other tests play by mouse: those of `play.rs`, `controls.rs` and `demo.rs`.
const BY_MOUSE_ELSEWHERE: [&str; 5] = ["psi", "millionaire", "chess", "snake", "food-catcher"];

/// Plays these challenges, one after another.
#[track_caller]
fn play_all<'game>(games: impl IntoIterator<Item = &'game HouseGame>, device: Device, width: u32) {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let person = Person { window: driver.window(), device };
    person.window.look(width, false);
    for game in games {
        person.play(&world, game);
    }
}

#[test]
fn every_challenge_is_played() {
    let mut hosted: Vec<&str> = arena_games::challenges().collect();
    let mut played = GAMES.map(|game| game.challenge);
    hosted.sort_unstable();
    played.sort_unstable();
    assert_eq!(hosted, played);
}

#[test]
fn a_person_plays_the_remaining_challenges_by_mouse() {
    let games = GAMES.iter().filter(|game| !BY_MOUSE_ELSEWHERE.contains(&game.challenge));
    play_all(games, Device::Mouse, 1280);
}

#[test]
fn a_person_plays_every_challenge_by_keyboard() {
    play_all(&GAMES, Device::Keyboard, 1280);
}

#[test]
fn a_person_plays_every_challenge_by_touch_on_a_narrow_screen() {
    play_all(&GAMES, Device::Touch, 360);
}
