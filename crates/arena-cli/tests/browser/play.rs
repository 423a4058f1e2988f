//! Sessions in the browser: people take seats, play by forms, keys and clicks, and watch.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::data_folder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::driver::{Driver, Window};
use crate::program::file;
use crate::world::{Bot, World, example, set_in};

/// Keys without a character, by their code points in the WebDriver standard.
const UP: char = '\u{e013}';
const LEFT: char = '\u{e012}';
const RIGHT: char = '\u{e014}';
const DOWN: char = '\u{e015}';
const ENTER: char = '\u{e007}';

#[track_caller]
pub fn take_seat(window: &Window<'_>, url: &str, user: &str) {
    window.open(url);
    window.fill("#user", user);
    window.click("form[data-do=join] button");
    window.wait(IS_SEATED);
    show_all(window);
}

/// True on the page of a taken seat.
pub const IS_SEATED: &str =
    "document.getElementById('seat')?.dataset.seated === 'true' && document.querySelector('.transcript .check')";

/// Shows all messages of a seat, not only chat and news.
#[track_caller]
pub fn show_all(window: &Window<'_>) {
    window.wait(IS_SEATED);
    window.run("const all = document.querySelector('.transcript .check input'); if (!all.checked) all.click();");
}

/// Sends a chat message to all players or to one.
#[track_caller]
fn say(window: &Window<'_>, text: &str, is_private: bool) {
    if is_private {
        window.run("const to = document.getElementById('chat-to'); to.selectedIndex = 1;");
    }
    window.fill("#chat-content", text);
    window.click("form[data-do=chat] button");
    window.wait("document.getElementById('chat-content').value === ''");
}

#[test]
fn strangers_meet_in_a_session_and_play_it_to_its_end_while_a_third_watches() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let (ada, ben, watcher) = (driver.window(), driver.window(), driver.window());

    ada.open(&world.page("/challenges/psi"));
    ada.click("#new form button");
    ada.see("A new game of Private Set Intersection");
    let links = ada.run("return [...document.querySelectorAll('.card a')].map((link) => link.href)");
    let links: Vec<&str> = links.as_array().unwrap().iter().filter_map(|link| link.as_str()).collect();
    let [first, second] = links[..] else { panic!("{links:?}") };
    let session = ada.run("return document.querySelector('.intro a').href");
    watcher.open(session.as_str().unwrap());
    watcher.see("0 of 2 seats taken");
    // Pages update by events, without a reload. Only taking a seat loads the page again.
    let stays = |window: &Window<'_>| window.run("window.isSame = true");
    stays(&watcher);
    take_seat(&ada, first, "ada");
    stays(&ada);
    ada.fill("#chat-content", "Is anybody there?");
    watcher.see("1 of 2 seats taken");
    take_seat(&ben, second, "ben <b>");
    watcher.see("2 of 2 seats taken");
    ada.see("Player 2");
    stays(&ben);
    assert_eq!(ada.run("return document.getElementById('chat-content').value"), json!("Is anybody there?"));
    ada.run("document.getElementById('chat-content').value = ''");

    let set_of = |window: &Window<'_>| {
        window.see("Your private set is");
        set_in(&window.text("#timeline")).unwrap().into_iter().collect::<BTreeSet<u64>>()
    };
    let (adas, bens) = (set_of(&ada), set_of(&ben));
    assert!(ada.sees("Private message"), "a message to Ben is redacted");
    watcher.wait("document.querySelectorAll('.withheld').length === 2");
    let seen = watcher.text("#timeline");
    assert!(adas.union(&bens).all(|number| !seen.contains(&number.to_string())), "{seen}");

    for window in [&ada, &ben, &watcher] {
        window.wait("document.getElementById('connection').innerText === 'Live'");
    }
    say(&ada, "Shall we be honest?", false);
    say(&ada, "The first of mine is a secret.", true);
    for (window, can_read) in [(&ada, true), (&ben, true), (&watcher, false)] {
        window.see("Shall we be honest?");
        window.wait("document.querySelectorAll('#timeline .bubble').length === 2");
        assert_eq!(window.sees("The first of mine is a secret."), can_read);
    }

    let common: Vec<String> = adas.intersection(&bens).map(u64::to_string).collect();
    assert_eq!(common.len(), 3);
    let guess = |window: &Window<'_>| {
        for number in &common {
            window.click(&format!("[data-number='{number}']"));
        }
        let text = format!("Guess {}", common.join(", "));
        window.wait(&format!("document.getElementById('send-guess').innerText === '{text}'"));
        window.click("#send-guess");
    };
    guess(&ada);
    guess(&ben);
    for (window, names) in [(&ada, ["You", "ben <b>"]), (&ben, ["ada", "You"]), (&watcher, ["ada", "ben <b>"])] {
        window.see("Result");
        let rows = window.run(
            "return [...document.querySelectorAll('.result .seat')].map((row) => ['b', 'span'].map((tag) => row.querySelector(tag).innerText))",
        );
        assert_eq!(rows, json!(names.map(|name| [name, "utility 1 · security 1"])));
        assert_eq!(window.run("return window.isSame"), json!(true));
        window.click(".deal summary");
        let output = window
            .run("return [...document.querySelectorAll('.deal dd code')].slice(0, 2).map((code) => code.innerText)");
        let (commitment, seed) = (output[0].as_str().unwrap(), output[1].as_str().unwrap());
        let seed: Vec<u8> =
            (0..seed.len() / 2).map(|at| u8::from_str_radix(&seed[2 * at..2 * at + 2], 16).unwrap()).collect();
        let hash: String = Sha256::digest(&seed).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((seed.len(), hash.as_str()), (32, commitment));
    }
}

/// The width and height of the snakes' board.
const SIDE: i64 = 12;

/// Returns the key of a step that the first seat's snake survives, and the text for the next position of its head.
fn safe_step(world: &World, session: &str, player: &str) -> (char, String) {
    let state = world.state(session);
    let snakes = state["snakes"].as_object().unwrap();
    let taken: Vec<&Value> = snakes.values().flat_map(|snake| snake["positions"].as_array().unwrap()).collect();
    let head = |id: &str| [0, 1].map(|axis| snakes[id]["head_position"][axis].as_i64().unwrap());
    let [x, y] = head(player);
    let other = head(snakes.keys().find(|id| *id != player).unwrap());
    let steps = [(UP, 0, -1), (RIGHT, 1, 0), (DOWN, 0, 1), (LEFT, -1, 0)].map(|(key, dx, dy)| (key, x + dx, y + dy));
    let within = |low: i64, high: i64, x: i64, y: i64| (low..=high).contains(&x) && (low..=high).contains(&y);
    let free = steps.into_iter().filter(|&(_, x, y)| within(0, SIDE - 1, x, y) && !taken.contains(&&json!([x, y])));
    // The step should lead out of the other snake's reach, and away from walls.
    let room = |&(_, x, y): &(char, i64, i64)| {
        let distance = (x - other[0]).abs() + (y - other[1]).abs();
        (distance > 1, within(1, SIDE - 2, x, y), distance)
    };
    let (key, x, y) = free.max_by_key(room).unwrap();
    (key, format!("Player 1 head at {x}, {y},"))
}

#[test]
fn a_person_steers_a_snake_against_a_bot_by_the_arrow_keys() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let (session, invites) = world.create("snake", &json!({ "n_epochs": 6, "grid_width": SIDE, "grid_height": SIDE }));
    let driver = Driver::start();
    let person = driver.window();
    take_seat(&person, &world.page(&format!("/play/{}", invites[0])), "ada");
    let _bot = Bot::play(&world.server.url, &invites[1], &example("snake"));
    // The possible actions appear when all seats are taken.
    person.wait("document.querySelector('.steps') && document.querySelector('#board canvas')");
    for epoch in 1..=6 {
        let (key, label) = safe_step(&world, &session, &invites[0]);
        match (epoch, key) {
            // The first step is made by a button, as on a device without a keyboard.
            (1, UP) => person.click(".steps [value=UP]"),
            (1, RIGHT) => person.click(".steps [value=RIGHT]"),
            (1, DOWN) => person.click(".steps [value=DOWN]"),
            (1, _) => person.click(".steps [value=LEFT]"),
            _ => person.press(key),
        }
        if epoch < 6 {
            person.wait(&format!("document.querySelector('#board canvas').ariaLabel.includes('{label}')"));
        }
    }
    person.see("Rematch");
    // The last move has arrived, and the board shows the end.
    person.wait("/(You|Player 1|ada) head at/.test(document.querySelector('#board canvas')?.ariaLabel)");
    person.wait("document.querySelector('.slider').innerText.includes('7 of 7')");
}

/// Returns the contents of a player's messages to the operator.
fn sent_by(world: &World, session: &str, invite: &str) -> Vec<String> {
    let log = world.client.get(&format!("/api/chat/sync?channel=challenge_{session}&from={invite}&limit=1000")).ok();
    let sent = log["messages"].as_array().unwrap().iter().filter(|message| message["from"] == json!(invite));
    sent.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn quick_keys_letters_and_swipes_steer_a_snake_and_a_pace_lets_it_go_on() {
    const EDGE: i64 = 64;
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let (session, invites) = world.create("snake", &json!({ "n_epochs": 20, "grid_width": EDGE, "grid_height": EDGE }));
    let driver = Driver::start();
    let person = driver.window();
    for (invite, user) in invites.iter().zip(["ada", "ben"]) {
        world.join(invite, user);
    }
    person.open(&world.page(&format!("/play/{}", invites[0])));
    person.wait("document.querySelector('.steps') && document.querySelector('#board canvas')");
    // Both snakes head to the right. The person's snake turns to a free side, the other one goes away from it.
    let state = world.state(&session);
    let [[_, y], [other_x, other_y]] = [0, 1]
        .map(|seat: usize| [0, 1].map(|axis| state["snakes"][&invites[seat]]["head_position"][axis].as_i64().unwrap()));
    let away = match (other_y >= y, other_y) {
        (true, 0..59) => "DOWN",
        (false, 5..) => "UP",
        _ if other_x < 58 => "RIGHT",
        (is_below, _) => {
            if is_below {
                "UP"
            } else {
                "DOWN"
            }
        }
    };
    let (key, side, swipe) = if y > 8 && y <= other_y || y > EDGE - 9 { (UP, "UP", -60) } else { (DOWN, "DOWN", 60) };
    let steps = |expected: &[&str]| {
        let expected: Vec<String> = expected.iter().map(|step| format!("(move) {step}")).collect();
        let until = Instant::now() + Duration::from_secs(20);
        while sent_by(&world, &session, &invites[0]) != expected {
            assert!(Instant::now() < until, "{:?}", sent_by(&world, &session, &invites[0]));
            thread::sleep(Duration::from_millis(25));
        }
    };
    let other_steps = || {
        world.client.act(&session, &invites[1], "move", away).ok();
    };
    // Of four quick keys the first one is sent, and the last one waits for the next state.
    for pressed in [key, 'd', key, 'd'] {
        person.press(pressed);
    }
    steps(&[side]);
    person.wait("document.querySelector('.steps [aria-pressed=true]')?.value === 'RIGHT'");
    other_steps();
    steps(&[side, "RIGHT"]);
    other_steps();
    person.wait("document.title.startsWith('● Your move') && !document.querySelector('.steps [aria-pressed=true]')");
    person.swipe("#board canvas", [5, swipe]);
    steps(&[side, "RIGHT", side]);
    // At a pace, the snake goes straight on by itself.
    person
        .run("const pace = document.getElementById('pace'); pace.value = 400; pace.dispatchEvent(new Event('change'))");
    for count in 4..7 {
        other_steps();
        steps(&[&[side, "RIGHT"][..], &vec![side; count - 2]].concat());
    }
    // The board and the buttons fit on the screens of laptops and phones.
    for size in [[1366, 620], [390, 844]] {
        person.look_at(size, false);
        person.shows("#board canvas");
        person.shows(".steps");
        assert_eq!(person.misfits(), Vec::<String>::new());
    }
}

/// Drags the piece on a square with the mouse, by a number of squares to the right and down.
#[track_caller]
fn drag(window: &Window<'_>, from: &str, [right, down]: [i64; 2]) {
    window.hold(&format!("[data-square={from}]"));
    let size = window.run("return document.querySelector('#board svg').getBoundingClientRect().width / 8");
    let pixels = |squares: i64| (squares as f64 * size.as_f64().unwrap()) as i64;
    window.move_by(pixels(right) / 2, pixels(down) / 2);
    window.move_by(pixels(right) - pixels(right) / 2, pixels(down) - pixels(down) / 2);
    window.let_go();
}

#[test]
fn chess_is_played_by_clicking_and_dragging() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let (session, invites) = world.create("chess", &json!({}));
    let driver = Driver::start();
    let windows = [driver.window(), driver.window()];
    for (window, (invite, user)) in windows.iter().zip(invites.iter().zip(["ada", "ben"])) {
        take_seat(window, &world.page(&format!("/play/{invite}")), user);
    }
    // The server draws the colors. The player to move has squares to select.
    for window in &windows {
        window.wait("document.querySelector('#board svg')");
    }
    windows[0].see("White");
    let is_white = windows[0].wait("/You: (White|Black)/.exec(document.querySelector('.standing').innerText)?.[1]")
        == json!("White");
    let [white, black] = if is_white { [&windows[0], &windows[1]] } else { [&windows[1], &windows[0]] };

    let click = |window: &Window<'_>, from: &str, to: &str| {
        window.click(&format!("[data-square={from}]"));
        window.click(&format!("[data-square={to}]"));
    };
    let last_is = |window: &Window<'_>, text: &str| {
        window.wait(&format!(
            "document.querySelector('#board svg')?.getAttribute('aria-label')?.includes('last move {text}')"
        ));
    };
    // A second click on a selected piece cancels the selection.
    white.click("[data-square=e2]");
    white.wait("document.querySelectorAll('.square circle').length === 2");
    white.click("[data-square=e2]");
    white.wait("document.querySelectorAll('.square circle').length === 0");
    white.run(
        "window.tones = 0; const make = AudioContext.prototype.createOscillator;
         AudioContext.prototype.createOscillator = function () { window.tones += 1; return make.call(this); };",
    );
    click(white, "f2", "f3");
    last_is(black, "f2f3");
    white.wait("window.tones === 1");
    // Black sees the board from the other side.
    assert_eq!(black.run("return document.querySelector('[data-square=e7] rect').getAttribute('y')"), json!("6"));
    white.wait("document.querySelectorAll('.square').length === 0");
    // A piece returns from a square where it can't go, and from outside of the board.
    let place = "document.querySelector('[data-at=e7]').getAttribute('transform')";
    let home = black.run(&format!("return {place}"));
    for far in [[0, -4], [-4, 0]] {
        drag(black, "e7", far);
        black.wait(&format!("{place} === {home} && !document.querySelector('.square circle')"));
    }
    // A drag of a few pixels is a click.
    black.hold("[data-square=e7]");
    black.move_by(3, 3);
    black.let_go();
    black.wait("document.querySelectorAll('.square circle').length === 2");
    drag(black, "e7", [0, -2]);
    last_is(white, "e7e5");
    white.wait("window.tones === 2");
    white.click("#controls .check input");
    // A move is also possible with the keyboard.
    white.run("document.querySelector('[data-square=g2]').focus()");
    white.press(ENTER);
    white.run("document.querySelector('[data-square=g4]').focus()");
    white.press(ENTER);
    last_is(black, "g2g4");
    click(black, "d8", "h4");
    for window in &windows {
        window.see("Rematch");
        assert_eq!(window.text("#board .moves"), "f3 e5\ng4 Qh4#");
        assert_eq!(
            window.run("return document.querySelector('#board .check').getAttribute('class')"),
            json!("dark check")
        );
    }
    assert_eq!(white.run("return window.tones"), json!(2));
    // The end in the second person.
    assert_eq!([white.text("#result h2"), black.text("#result h2")], ["You lost", "You won"]);
    // A later visitor sees the end, and can step back.
    let late = driver.window();
    late.open(&world.page(&format!("/sessions/{session}")));
    last_is(&late, "d8h4");
    late.run("const slider = document.querySelector('.slider input'); slider.value = 1; slider.dispatchEvent(new Event('input'))");
    last_is(&late, "f2f3");
}

/// Moves of all kinds in the notation of PGN: en passant, castling to both sides, pieces that another piece could replace,
/// a promotion, and a mate.
#[test]
fn the_moves_beside_a_board_are_those_of_its_pgn() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let fen = "r3k2r/1P2pppp/2n5/1Q1pP3/8/1Q1Q4/5PPP/R3K2R w KQkq d6 0 20";
    let (session, invites) = world.create("chess", &json!({ "fen": fen }));
    for (invite, user) in invites.iter().zip(["ada", "ben"]) {
        world.join(invite, user);
    }
    for step in "e5d6 e8g8 b3d5 e7d6 b7a8n f8a8 e1c1 a8b8 h1e1 b8b5 e1e8".split(' ') {
        // The move out of turn is refused.
        let is_played = invites.iter().any(|invite| world.client.act(&session, invite, "move", step).status == 200);
        assert!(is_played, "{step}");
    }
    let pgn = world.client.get(&format!("/sessions/{session}/game.pgn")).text().replace('\n', " ");
    let (_, moves) = pgn.split_once("  ").unwrap();
    let moves: Vec<&str> = moves.split([' ', '.']).filter(|word| word.starts_with(char::is_alphabetic)).collect();
    assert_eq!(moves.join(" "), "exd6 O-O Qb3d5 exd6 bxa8=N Rxa8 O-O-O Rb8 Rhe1 Rxb5 Re8#");
    let driver = Driver::start();
    let window = driver.window();
    for page in ["", "/replay#event=99"] {
        window.open(&world.page(&format!("/sessions/{session}{page}")));
        window.wait("document.querySelectorAll('.moves span').length === 11");
        let shown = window.run("return [...document.querySelectorAll('.moves span')].map((move) => move.innerText)");
        assert_eq!(shown, json!(moves));
        assert_eq!(window.run("return document.querySelector('.moves li').value"), json!(20));
        let taken = window.run("return [...document.querySelectorAll('.taken')].map((row) => row.ariaLabel)");
        assert_eq!(taken, json!(["Black has taken queen, pawn, pawn", "White has taken rook, pawn, and leads by 19"]));
    }
}

/// Compares the picture around the choices of a seat's controls before and after one of them is chosen. The choice
/// `other` cancels it.
#[track_caller]
fn changes_little(window: &Window<'_>, around: &str, [choice, other]: [&str; 2], chosen: &str, most: f64) {
    window.wait(&format!("document.querySelector({})", json!(choice)));
    let choose = |by: &str, choice: &str| match by {
        "click" => window.click(choice),
        "tap" => window.tap(choice),
        _ => window.enter(choice),
    };
    for by in ["click", "tap", "key"] {
        window.run("document.activeElement.blur()");
        let before = window.picture_of(around);
        choose(by, choice);
        window.wait(chosen);
        let changed = window.difference(&before, &window.picture_of(around));
        assert!((0.001..most).contains(&changed), "{by} on {choice}: {changed} of the picture has changed");
        choose(by, other);
        window.wait(&format!("!({chosen})"));
    }
}

#[test]
fn a_chosen_piece_is_marked_and_does_not_cover_the_board() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let (_, invites) = world.create("chess", &json!({}));
    let driver = Driver::start();
    let windows = [driver.window(), driver.window()];
    for (window, (invite, user)) in windows.iter().zip(invites.iter().zip(["ada", "ben"])) {
        take_seat(window, &world.page(&format!("/play/{invite}")), user);
    }
    let is_white = windows[0].wait("/You: (White|Black)/.exec(document.querySelector('.standing')?.innerText)?.[1]");
    let white = &windows[usize::from(is_white != json!("White"))];
    // The piece's square and the marks of its two moves.
    let pawn = "[data-square=e2]";
    changes_little(white, "#board svg", [pawn, pawn], "document.querySelector('.square circle')", 0.04);
}

#[test]
fn a_chosen_diner_is_marked_and_does_not_cover_the_ring() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let (_, invites) = world.create("dining-cryptographers", &json!({}));
    let driver = Driver::start();
    let person = driver.window();
    take_seat(&person, &world.page(&format!("/play/{}", invites[0])), "ada");
    for (invite, user) in invites.iter().skip(1).zip(["ben", "eve"]) {
        world.join(invite, user);
    }
    let diner = "[data-diner='1']";
    let is_chosen = format!("document.querySelector({}).getAttribute('aria-pressed') === 'true'", json!(diner));
    // The diner's circle, which Chromium highlights during a tap, is 7 % of the picture.
    changes_little(&person, ".ring", [diner, "[data-answer=unknown]"], &is_chosen, 0.15);
}

#[test]
fn a_click_counts_despite_a_concurrent_update_of_the_page() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let (session, invites) = world.create("chess", &json!({}));
    let driver = Driver::start();
    let person = driver.window();
    person.look(1280, false);
    take_seat(&person, &world.page(&format!("/play/{}", invites[0])), "ada");
    world.join(&invites[1], "ben");
    // If the other player is White, it makes the first move.
    let is_white = world.client.act(&session, &invites[1], "move", "e2e4").status != 200;
    let pawn = if is_white { "[data-square=e2]" } else { "[data-square=e7]" };
    // The mouse button is pressed as soon as the board exists, and released after several updates of the page.
    person.hold(pawn);
    person.see("Player 2");
    world.client.chat(&session, &invites[1], "Take your time.").ok();
    person.see("Take your time.");
    // A change of colors redraws all boards.
    person.look(1280, true);
    person.let_go();
    person.wait("document.querySelectorAll('.square circle').length === 2");
}

#[test]
fn keys_are_made_and_kept_in_the_browser() {
    let data = data_folder();
    let world = World::start(data.path(), &["--auth"]);
    let (_, invites) = world.create("psi", &json!({}));
    let driver = Driver::start();
    let windows = [driver.window(), driver.window()];
    for (window, invite) in windows.iter().zip(&invites) {
        window.open(&world.page(&format!("/play/{invite}")));
        window.click("form[data-do=join] button");
        show_all(window);
    }
    let [ada, ben] = &windows;
    ada.see("Your private set is");
    // A reload and a later visit show everything again.
    ada.reload();
    show_all(ada);
    ada.see("Your private set is");
    say(ada, "It's me.", false);
    ben.see("It's me.");
    // A page that shows an earlier state has the player's messages as well.
    ada.open(&world.page(&format!("/play/{}?until=2", invites[0])));
    show_all(ada);
    ada.see("Your private set is");
    // A script can't read the signing key.
    let kept = "const [done] = arguments; const opening = indexedDB.open('arena', 1); \
        opening.onsuccess = () => { const asking = opening.result.transaction('keys').objectStore('keys').get('player'); \
        asking.onsuccess = () => crypto.subtle.exportKey('pkcs8', asking.result.privateKey).then(() => done('told'), (error) => done(error.name)); };";
    assert_eq!(ada.run_slowly(kept, &[]), json!("InvalidAccessError"));
    // A visitor without the seat's key sees the public view.
    ben.open(&world.page(&format!("/play/{}", invites[0])));
    ben.see("This browser has no key to this seat");
    assert!(ben.sees("It's me.") && !ben.sees("Your private set is"), "{}", ben.text("body"));
    assert!(
        ben.run("return [...document.querySelectorAll('form[data-do]')].every((form) => form.hidden)") == json!(true)
    );
    // Two games in one browser belong to the same user.
    let (_, again) = world.create("psi", &json!({}));
    ada.open(&world.page(&format!("/play/{}", again[0])));
    ada.click("form[data-do=join] button");
    ada.see("You");
    ada.wait(IS_SEATED);
}

#[test]
fn a_page_continues_after_a_reload_and_after_a_restart_of_the_server() {
    let data = data_folder();
    let mut world = World::start(data.path(), &[]);
    let (session, invites) = world.create("psi", &json!({}));
    let driver = Driver::start();
    let ada = driver.window();
    take_seat(&ada, &world.page(&format!("/play/{}", invites[0])), "ada");
    // An update of the page keeps unsent text and the focus.
    ada.fill("#chat-content", "o");
    world.join(&invites[1], "ben");
    ada.see("Player 2");
    ada.wait("document.activeElement.id === 'chat-content'");
    say(&ada, "ne", false);
    ada.see("one");
    ada.reload();
    ada.see("one");
    ada.wait(IS_SEATED);
    ada.wait("document.getElementById('connection').innerText === 'Live'");
    ada.run("window.isSame = true");

    // The server is killed, and starts again at the same address.
    let address = world.server.url.strip_prefix("http://").unwrap().to_owned();
    ada.excuse("net::ERR_");
    drop(world);
    ada.see("The connection is lost. This page reconnects by itself.");
    world = World::start(data.path(), &["--listen", &address]);
    world.client.chat(&session, &invites[1], "two").ok();
    ada.see("two");
    ada.see("Live");
    let said =
        ada.run("return [...document.querySelectorAll('#timeline .bubble .text')].map((text) => text.innerText)");
    assert_eq!((said, ada.run("return window.isSame")), (json!(["one", "two"]), json!(true)));
}

/// A flag that is set when the value is dropped, also after a failure.
struct Raised<'f>(&'f AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_page_loses_nothing_while_the_server_refuses_it() {
    let data = data_folder();
    let limits = "[limits]\nlimit_loopback = true\nrequests_per_second = 2\nrequests_burst = 60\n";
    let config = file(data.path(), "arena.toml", limits);
    let world = World::start(&data.path().join("store"), &["--config", &config]);
    let (session, invites) = world.create("psi", &json!({}));
    for (invite, user) in invites.iter().zip(["ada", "ben"]) {
        world.join(invite, user);
    }
    world.client.chat(&session, &invites[0], "Hello?").ok();
    let driver = Driver::start();
    let watcher = driver.window();
    watcher.open(&world.page(&format!("/sessions/{session}")));
    watcher.wait("document.getElementById('connection').innerText === 'Live'");
    while world.client.get("/api/metadata").status != 429 {}
    for invite in &invites {
        let is_taken = || world.client.act(&session, invite, "guess", "1").status == 200;
        let is_taken_at_last = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(100));
            is_taken()
        });
        assert!(is_taken_at_last);
    }
    // The page now needs three connections, which the limit doesn't allow. Other requests fill the limit until a
    // request of the page is refused.
    let is_over = AtomicBool::new(false);
    let mut complaints = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = world.client.try_request("GET", "/api/metadata", &[], b"");
            }
        });
        let _over = Raised(&is_over);
        let (mut complaints, until) = (Vec::new(), Instant::now() + Duration::from_secs(60));
        while complaints.is_empty() && Instant::now() < until {
            complaints = watcher.complaints();
        }
        complaints
    });
    assert!(!complaints.is_empty(), "no request was refused");
    watcher.see("Result");
    watcher.see("This session has ended");
    watcher.see("Hello?");
    let items = watcher.run("return [...document.querySelectorAll('ol.messages li')].map((item) => item.id).sort()");
    let mut all = vec!["chat-1".to_owned()];
    all.extend((1..=9).map(|index| format!("operator-{index}")));
    assert_eq!(items, json!(all));
    complaints.extend(watcher.complaints());
    assert!(complaints.iter().all(|line| line.contains("429")), "{complaints:?}");
}

/// A rematch is offered to the opponent, and both get the seats that they had.
#[test]
fn a_rematch_begins_when_the_opponent_accepts() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let windows = [driver.window(), driver.window()];
    let (session, invites) = world.create("millionaire", &json!({}));
    for (window, (invite, user)) in windows.iter().zip(invites.iter().zip(["ada", "ben"])) {
        take_seat(window, &world.page(&format!("/play/{invite}")), user);
    }
    for invite in &invites {
        world.client.act(&session, invite, "guess", "1").ok();
    }
    let [ada, ben] = &windows;
    for window in &windows {
        window.see("Rematch");
    }
    ada.click("[data-rematch] button");
    ada.see("Waiting for Player 2 to join");
    // The opponent's page offers it without a reload.
    ben.see("Accept the rematch");
    ben.click("#result form button");
    for window in &windows {
        window.see("Your move");
        window.wait(&format!(
            "!location.pathname.endsWith('{}') && !location.pathname.endsWith('{}')",
            invites[0], invites[1]
        ));
    }
    // Enter sends, and a new line needs Shift.
    ada.fill("#chat-content", "Again?");
    ada.press(ENTER);
    ben.see("Again?");
    ada.wait("document.getElementById('chat-content').value === ''");
}

/// Board, controls and turn of all challenges fit on a laptop's and a phone's screen.
#[test]
fn a_seat_needs_no_scrolling() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let window = driver.window();
    for (width, height) in [(1366, 768), (390, 844)] {
        window.look_at([width, height], false);
        for challenge in arena_games::all().map(|playable| playable.id) {
            window.open(&world.page(&format!("/challenges/{challenge}")));
            window.click("form:has([name=against]) button");
            window.wait("document.querySelector('#controls:not([hidden])')?.innerText.trim()");
            window.wait("document.getElementById('turn-title').innerText === 'Your move'");
            let bottom = window.run(
                "return Math.max(...['board', 'controls'].map((id) => document.getElementById(id).getBoundingClientRect().bottom)) + scrollY",
            );
            let bottom = bottom.as_f64().unwrap();
            assert!(bottom <= f64::from(height), "{challenge} at {width} x {height}: {bottom}");
        }
    }
}

/// The messages of a challenge without controls contain the player's secrets, so the seat shows them at once.
#[test]
fn a_seat_without_controls_shows_its_private_messages() {
    let data = data_folder();
    let world =
        World::start(data.path(), &["--challenges", concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/challenges")]);
    let driver = Driver::start();
    let window = driver.window();
    let (_, invites) = world.create("sealed-bid-auction", &json!({}));
    world.join(&invites[1], "ben");
    window.open(&world.page(&format!("/play/{}", invites[0])));
    window.click("form[data-do=join] button");
    window.see("The lot is worth");
    window.see("Place the bid");
}
