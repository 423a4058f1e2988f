//! The demo in the browser: a visitor watches a game, reads the meaning of the scores, and plays a game.

use arena_testkit::data_folder;
use serde_json::json;

use crate::driver::{Driver, Window};
use crate::program::Running;

const LEFT: char = '\u{e012}';
const RIGHT: char = '\u{e014}';

/// Opens the front page and takes a seat against a house bot.
#[track_caller]
fn play_against_the_house(window: &Window<'_>, page: &str, challenge: &str) {
    window.open(page);
    window.click(&format!("form[action='/challenges/{challenge}'] button"));
    window.wait("document.querySelector('#controls:not([hidden])')");
}

/// Returns the number of game states that the page has received.
#[track_caller]
fn states(window: &Window<'_>) -> u64 {
    let output = window.wait("/of (\\d+)$/.exec(document.querySelector('.slider span')?.textContent)?.[1]");
    output.as_str().unwrap().parse().unwrap()
}

#[test]
fn two_clicks_lead_from_the_front_page_to_a_game_that_ends() {
    let data = data_folder();
    let server = Running::serve(data.path());
    let driver = Driver::start();
    let window = driver.window();
    window.open(&server.url);
    window.click("#actions .primary");
    window.click("form[action='/challenges/millionaire'] button");
    // The house bot takes the other seat.
    window.wait("document.querySelector('[data-side=equal]:not(:disabled)')");
    window.click("[data-side=equal]");
    window.click("#send-guess");
    window.see("Result");
    window.see("Play again");
}

#[test]
fn a_visitor_watches_a_game_reads_the_scores_and_plays_one() {
    let demo = Running::start_saying("The page: ", &["demo", "--listen", "127.0.0.1:0"], &[]);
    let driver = Driver::start();
    let window = driver.window();
    window.open(&demo.url);

    // The game at the top advances without a reload.
    window.run("window.isSame = true");
    let board = "document.querySelector('#featured [data-challenge=chess] [role=img]')?.ariaLabel";
    let seen = window.wait(board);
    window.wait(&format!("({board} ?? {seen}) !== {seen}"));
    assert_eq!(window.run("return window.isSame"), json!(true));
    // The page shows the scores, and their meaning in words.
    window.wait("document.querySelectorAll('#leaders tbody tr').length > 1");
    assert!(window.sees("Security measures whether private data stayed private"), "{}", window.text("#leaders"));

    play_against_the_house(&window, &demo.url, "chess");
    for _ in 0..3 {
        window.click(".square");
        let before = states(&window);
        window.click(".square:has(circle)");
        // Two more states are the player's move and the bot's move.
        window.wait(&format!("document.querySelector('.slider span').textContent.endsWith(' of {}')", before + 2));
    }

    play_against_the_house(&window, &demo.url, "snake");
    let seat = window.wait("'Player ' + ([...document.querySelectorAll('#session .seat')].findIndex((seat) => seat.innerText.includes('You')) + 1)");
    // The snake makes two steps in the direction with more room, so that it can't hit a wall or itself.
    let column = format!(
        "new RegExp('(?:You|' + {seat} + ') head at (\\\\d+)').exec(document.querySelector('#board canvas')?.ariaLabel)?.[1]"
    );
    let column: u64 = window.wait(&column).as_str().unwrap().parse().unwrap();
    for _ in 0..2 {
        let before = states(&window);
        window.press(if column < 5 { RIGHT } else { LEFT });
        window.wait(&format!("document.querySelector('.slider span').textContent.endsWith(' of {}')", before + 1));
    }
}
