//! Read-only pages: replays in the viewer, and tournaments in progress.

use std::path::Path;

use serde_json::{Value, json};

use crate::driver::{Driver, Window};
use crate::program::{Running, folder, run};
use crate::world::{World, agent, rounder};

const SPACE: char = ' ';
const HOME: char = '\u{e011}';
const END: char = '\u{e010}';
const RIGHT: char = '\u{e014}';
const LEFT: char = '\u{e012}';

/// Records a replay of two snakes that circle, one of which sends invalid actions in epoch 12. Returns its path.
fn record(folder: &Path) -> String {
    let nonsense = rounder(3, 0).replace(
        "    print(json",
        "    if message.get(\"world_state\", {}).get(\"epoch\") == 12:\n        print(\"nonsense\", flush=True)\n        continue\n    print(json",
    );
    let (good, bad) = (agent(folder, "good", &rounder(3, 0)), agent(folder, "bad", &nonsense));
    let replay = folder.join("game.jsonl").to_str().unwrap().to_owned();
    let options = ["--set", "n_epochs=40", "--set", "grid_width=14", "--set", "grid_height=14"];
    let mut args = vec!["match", "run", "snake", "--seed", "7", "--step-ms", "20000", "--replay", &replay];
    args.extend(["--agent", &good, "--agent", &bad]);
    args.extend(options);
    let run = run(&args);
    assert_eq!(run.code, 0, "{run:#?}");
    replay
}

/// Waits until the viewer's position starts with this text.
#[track_caller]
fn shows(window: &Window<'_>, place: &str) {
    window.wait(&format!("document.querySelector('.place')?.innerText.startsWith('{place}')"));
}

#[test]
fn a_replay_is_played_stepped_through_and_searched_for_problems() {
    let folder = folder();
    let replay = record(folder.path());
    let viewer = Running::start_saying("replays are at ", &["replay", "serve", &replay], &[]);
    let driver = Driver::start();
    let window = driver.window();
    window.open(&viewer.url);
    shows(&window, "Epoch 1 of ");
    let label = || window.run("return document.querySelector('canvas').getAttribute('aria-label')");
    let first = label();
    // The controls stand directly below the board, and both fit on a laptop's screen with the current actions.
    window.look_at([1366, 620], false);
    for part in ["canvas", ".controls", ".happened li"] {
        window.shows(part);
    }
    window.wait("document.querySelector('.controls').getBoundingClientRect().top - document.querySelector('canvas').getBoundingClientRect().bottom < 24");
    window.click("button[aria-label^=Forward]");
    shows(&window, "Epoch 2 of ");
    assert_ne!(label(), first);
    window.press(RIGHT);
    shows(&window, "Epoch 3 of ");
    window.click("button[aria-label^=Back]");
    shows(&window, "Epoch 2 of ");

    // The space key plays and pauses.
    let at_speed = |speed: &str| {
        window.run(&format!(
            "const speed = document.querySelector('.choices select'); speed.value = '{speed}'; speed.dispatchEvent(new Event('change'))"
        ))
    };
    at_speed("0.25");
    window.click("button[aria-label^=Play]");
    window.wait("/Epoch ([5-9]|\\d\\d) /.test(document.querySelector('.place').innerText)");
    window.click("button[aria-label^=Pause]");
    window.wait("document.querySelector(\"button[aria-label^='Play']\")");
    window.press(HOME);
    shows(&window, "Epoch 1 of ");
    window.click("button[aria-label^='Next problem']");
    shows(&window, "Epoch 12 of ");
    window.see("Problems");
    window.wait("location.hash === '#epoch=12'");

    // The reader goes to an epoch by a click on the slider, and by number.
    window.click("input[type=range]");
    window.wait("/Epoch (1[89]|2[0-3]) /.test(document.querySelector('.place').innerText)");
    window.run("const goal = document.querySelector('input[type=number]'); goal.value = 30; goal.dispatchEvent(new Event('change'))");
    shows(&window, "Epoch 30 of ");
    window.run("document.activeElement.blur()");
    window.press(END);
    shows(&window, "End, after ");
    // At the end, playing starts from the beginning.
    at_speed("0.25");
    window.press(SPACE);
    window.wait("/Epoch [1-9] /.test(document.querySelector('.place').innerText)");
    window.press(SPACE);

    // The address contains the chosen view, so another visitor of the address sees the same view.
    window.run("const view = document.querySelectorAll('.choices select')[1]; view.value = 1; view.dispatchEvent(new Event('change'))");
    window.wait("location.hash.endsWith('&seat=1')");
    let address = window.run("return location.href");
    let other = driver.window();
    other.open(address.as_str().unwrap());
    let place = window.text(".place");
    shows(&other, &place);
    other.wait("document.querySelector('.seats .chosen')");
}

#[test]
fn a_replay_of_a_challenge_shows_what_is_said_and_guessed_as_a_picture() {
    let folder = folder();
    let driver = Driver::start();
    let window = driver.window();
    for (challenge, before, after) in [
        ("psi", "has said 0 of 10 secret numbers", "has said 10 of 10 secret numbers"),
        ("ultimatum", "No offer yet", "Agreed: "),
        ("millionaire", "M; ", "guessed as $"),
    ] {
        let replay = folder.path().join(format!("{challenge}.jsonl")).to_str().unwrap().to_owned();
        let plan = format!("match run {challenge} --seed 11 --agent house --agent house:easy --replay");
        let recorded = run(&plan.split(' ').chain([replay.as_str()]).collect::<Vec<_>>());
        assert_eq!(recorded.code, 0, "{recorded:#?}");
        let viewer = Running::start_saying("replays are at ", &["replay", "serve", &replay], &[]);
        window.open(&viewer.url);
        window.wait("document.querySelector('.facts')?.innerText.includes('seed')");
        let has = |text: &str| format!("document.querySelector('svg.picture')?.ariaLabel.includes('{text}')");
        window.wait(&has(before));
        window.press(END);
        window.wait(&has(after));
        assert_eq!(window.misfits(), Vec::<String>::new());
    }
}

#[test]
fn a_replay_of_a_session_begins_with_a_board_and_is_stepped_through_by_position() {
    let data = folder();
    let world = World::start(data.path(), &[]);
    let (session, invites) = world.create("snake", &json!({ "n_epochs": 3, "grid_width": 20, "grid_height": 20 }));
    for (invite, user) in invites.iter().zip(["ada", "ben"]) {
        world.join(invite, user);
    }
    for epoch in 0..3 {
        // A snake may have left the grid, which ends the game.
        for invite in &invites {
            world.client.act(&session, invite, "move", ["UP", "LEFT", "DOWN"][epoch]);
        }
    }
    let driver = Driver::start();
    let window = driver.window();
    window.open(&world.page(&format!("/sessions/{session}/replay")));
    let label = || window.wait("document.querySelector('.stage canvas')?.ariaLabel");
    let first = label();
    window.press(RIGHT);
    window.wait(&format!("document.querySelector('.stage canvas').ariaLabel !== {first}"));
    window.press(LEFT);
    window.wait(&format!("document.querySelector('.stage canvas').ariaLabel === {first}"));

    let psi = world.play_psi(["ada", "mallory"], |_, [set, _]| set.clone());
    window.open(&world.page(&format!("/sessions/{psi}/replay")));
    window.wait("document.querySelector('.stage svg.picture')?.ariaLabel.includes('3 common numbers')");
    window.press(END);
    window.wait("document.querySelector('.stage svg.picture').textContent.includes('guess: ')");
    assert_eq!(window.misfits(), Vec::<String>::new());
}

#[test]
fn the_page_of_a_tournament_updates_while_it_is_played() {
    let data = folder();
    let world = World::with_tournaments(data.path());
    let agents =
        [("turner", 3), ("looper", 4), ("circler", 5)].map(|(name, size)| world.upload(name, &rounder(size, 10)));
    let driver = Driver::start();
    let window = driver.window();
    window.open(&world.page("/tournaments"));
    window.see("No tournaments yet");
    let order = json!({ "game": "snake", "agents": agents, "seed": 3, "rounds": 2, "options": { "n_epochs": 30 }, "name": "Cup <of> snakes" });
    let id = world.order(&order);
    window.reload();
    window.click(&format!("a[href='/tournaments/{id}']"));
    window.wait(&format!("location.pathname === '/tournaments/{id}'"));
    window.see("Cup <of> snakes");
    window.run("window.isSame = true");
    window.see("complete");
    let columns =
        "return [...document.querySelectorAll('table')].map((table) => [...table.querySelectorAll('tbody tr')].length)";
    // Standings, head-to-head results, and games.
    assert_eq!(window.run(columns), json!([3, 3, 12]));
    assert_eq!(window.run("return window.isSame"), json!(true), "the page was reloaded");
    for name in ["turner", "looper", "circler"] {
        assert!(window.sees(name), "{name}");
    }
    let pictures = window.run("return [...document.querySelectorAll('figure h3')].map((title) => title.innerText)");
    assert!(pictures.as_array().is_some_and(|titles| !titles.is_empty()), "{pictures}");
    window.open(&world.page("/agents"));
    window.see("turner");
    assert_ne!(window.run("return document.querySelectorAll('tbody tr').length"), Value::from(0));
}
