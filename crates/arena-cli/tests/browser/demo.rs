//! The demo, as somebody sees it who has never heard of it: within a minute they watch a game, read what its scores mean, and play one.

use serde_json::json;

use crate::driver::{Driver, Window};
use crate::program::Running;

const LEFT: char = '\u{e012}';
const RIGHT: char = '\u{e014}';

/// From the front page to a seat against a bot of the house.
#[track_caller]
fn play_against_the_house(window: &Window<'_>, page: &str, challenge: &str) {
    window.open(page);
    window.click(&format!("form[action='/challenges/{challenge}'] button"));
    window.see("A seat is waiting for you");
    // A name isn't needed.
    window.click("form[data-do=join] button");
    window.see("What you can do");
}

/// How many states of the game the page has been told.
#[track_caller]
fn states(window: &Window<'_>) -> u64 {
    let told = window.wait("/of (\\d+)$/.exec(document.querySelector('.slider span')?.textContent)?.[1]");
    told.as_str().unwrap().parse().unwrap()
}

#[test]
fn a_stranger_watches_a_game_reads_what_its_scores_mean_and_plays_one() {
    let demo = Running::start_saying("The page: ", &["demo", "--listen", "127.0.0.1:0"], &[]);
    let driver = Driver::start();
    let window = driver.window();
    window.open(&demo.url);

    // Both games move, without the page being loaded again.
    window.run("window.isSame = true");
    for challenge in ["chess", "snake"] {
        let board = format!("document.querySelector('#now [data-challenge={challenge}] [role=img]')?.ariaLabel");
        let seen = window.wait(&board);
        window.wait(&format!("({board} ?? {seen}) !== {seen}"));
    }
    assert_eq!(window.run("return window.isSame"), json!(true));
    // The scores, and in words what they are.
    window.wait("document.querySelectorAll('#leaders tbody tr').length > 1");
    assert!(window.sees("Security says whether it was done cleanly"), "{}", window.text("#leaders"));

    play_against_the_house(&window, &demo.url, "chess");
    for _ in 0..3 {
        window.click(".square");
        let before = states(&window);
        window.click(".square:has(circle)");
        // The move, and the answer to it.
        window.wait(&format!("document.querySelector('.slider span').textContent.endsWith(' of {}')", before + 2));
    }

    play_against_the_house(&window, &demo.url, "snake");
    let seat = window.wait("/You are (Player \\d)/.exec(document.body.innerText)?.[1]");
    // To where there is more room, and never back. Twice: nobody can die sooner.
    let column = format!(
        "new RegExp({seat} + ' head at (\\\\d+)').exec(document.querySelector('#board canvas')?.ariaLabel)?.[1]"
    );
    let column: u64 = window.wait(&column).as_str().unwrap().parse().unwrap();
    for _ in 0..2 {
        let before = states(&window);
        window.press(if column < 5 { RIGHT } else { LEFT });
        window.wait(&format!("document.querySelector('.slider span').textContent.endsWith(' of {}')", before + 1));
    }
}
