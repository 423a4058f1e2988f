//! Troubles of players and spectators: two tabs of a seat, no network, a slow server, opponents that are gone, removed
//! games, and invites of finished games. In each of them the page states the trouble and the next step.

use arena_testkit::data_folder;
use rustix::process::Signal;
use serde_json::json;

use crate::driver::{Driver, Window};
use crate::play::{IS_SEATED, take_seat};
use crate::program::file;
use crate::world::World;

/// Waits until the banner of a seat has this text.
#[track_caller]
fn is_titled(window: &Window<'_>, text: &str) {
    window.wait(&format!("document.getElementById('turn').innerText.includes({})", json!(text)));
}

/// Waits until the line about the connection has this beginning.
#[track_caller]
fn is_connected(window: &Window<'_>, text: &str) {
    window.wait(&format!("document.getElementById('connection').innerText.startsWith({})", json!(text)));
}

/// Starts a game of `psi` and opens the page of its first seat. Returns the session and its invites.
#[track_caller]
fn sit_down(world: &World, window: &Window<'_>) -> (String, Vec<String>) {
    let (session, invites) = world.create("psi", &json!({}));
    world.join(&invites[0], "ada");
    world.join(&invites[1], "ben");
    window.open(&world.page(&format!("/play/{}", invites[0])));
    is_connected(window, "Live");
    is_titled(window, "Your move");
    (session, invites)
}

#[test]
fn two_tabs_of_a_seat_show_the_same_turn() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let (_, invites) = world.create("psi", &json!({}));
    let driver = Driver::start();
    let (tab, other) = (driver.window(), driver.window());
    let page = world.page(&format!("/play/{}", invites[0]));
    other.open(&page);
    other.see("Join the game");
    take_seat(&tab, &page, "ada");
    // The seat is taken in the other tab, too.
    other.wait(IS_SEATED);
    world.join(&invites[1], "ben");
    for window in [&tab, &other] {
        is_titled(window, "Your move");
        window.wait("document.querySelector('[data-number]')");
    }
    tab.click("[data-number]");
    tab.click("#send-guess");
    for window in [&tab, &other] {
        is_titled(window, "Waiting for Player 2");
        window.see("It is final.");
    }
}

#[test]
fn a_page_without_a_network_says_so_and_continues_with_it() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let ada = driver.window();
    let (session, invites) = sit_down(&world, &ada);
    ada.excuse("net::ERR_");
    ada.run("window.isSame = true");
    ada.set_offline(true);
    is_connected(&ada, "The connection is lost. This page reconnects by itself.");
    world.client.chat(&session, &invites[1], "Are you there?").ok();
    ada.set_offline(false);
    ada.see("Are you there?");
    is_connected(&ada, "Live");
    assert_eq!(ada.run("return window.isSame"), json!(true));
}

#[test]
fn a_slow_answer_is_announced_and_the_move_arrives() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let ada = driver.window();
    sit_down(&world, &ada);
    ada.wait("document.querySelector('[data-number]')");
    ada.click("[data-number]");
    world.server.signal(Signal::STOP);
    ada.click("#send-guess");
    is_connected(&ada, "The server hasn't answered yet.");
    world.server.signal(Signal::CONT);
    is_titled(&ada, "Waiting for Player 2");
    is_connected(&ada, "Live");
}

#[test]
fn a_page_says_that_an_opponent_is_gone_or_the_game_is_removed() {
    let data = data_folder();
    let config = file(data.path(), "arena.toml", "[sessions]\nstale_open_s = 20\nstale_active_s = 5\n");
    let world = World::start(&data.path().join("store"), &["--config", &config]);
    let driver = Driver::start();
    let (waiting, left) = (driver.window(), driver.window());
    let (_, free) = world.create("psi", &json!({}));
    world.join(&free[0], "ada");
    waiting.open(&world.page(&format!("/play/{}", free[0])));
    is_titled(&waiting, "Waiting for Player 2 to join");
    let (_, invites) = world.create("psi", &json!({}));
    for (invite, user) in invites.iter().zip(["ada", "ben"]) {
        world.join(invite, user);
    }
    left.open(&world.page(&format!("/play/{}", invites[0])));
    left.see("The game ended because nobody moved for too long.");
    left.see("Rematch");
    waiting.excuse("status of 404");
    waiting.excuse("MIME type");
    is_connected(&waiting, "This game no longer exists");
    waiting.wait("document.getElementById('turn').hidden");
    waiting.reload();
    waiting.see("Ask for a new invite, or start a game of your own.");
    waiting.click("a[href='/challenges']");
    waiting.see("Choose a game");
}

#[test]
fn the_invite_of_a_finished_game_leads_to_the_result() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let ada = driver.window();
    let (session, invites) = sit_down(&world, &ada);
    for invite in &invites {
        world.client.act(&session, invite, "guess", "1").ok();
    }
    ada.see("Rematch");
    ada.reload();
    ada.see("Result");
    ada.see("Watch the replay");
    is_connected(&ada, "This session has ended");
    let forms =
        "return document.querySelectorAll('form[data-do=join], form[data-do=act], #controls:not([hidden])').length";
    assert_eq!(ada.run(forms), json!(0));
    // A step back and forward leads to the same state.
    ada.click("#result a[href^='/sessions/']");
    ada.wait("location.pathname.startsWith('/sessions/')");
    ada.run("history.back()");
    ada.wait("location.pathname.startsWith('/play/')");
    ada.see("Rematch");
}
