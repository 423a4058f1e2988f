//! The check of an ended session's record in the browser, and the page of the log.

use arena_testkit::{data_folder, until};

use crate::driver::Driver;
use crate::world::World;

/// A script that changes the first content of each record on its way to the page.
const FORGE: &str = r#"const real = window.fetch;
window.fetch = async (...args) => {
    const text = await (await real(...args)).text();
    return new Response(text.replace('"content":"', '"content":"0'));
};"#;

#[test]
fn a_visitor_checks_an_ended_game_and_finds_a_forged_record() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let session = world.play_psi(["ada", "mallory"], |_, sets| sets[0].clone());
    let driver = Driver::start();
    let window = driver.window();
    window.look(1280, false);
    window.open(&world.page(&format!("/sessions/{session}")));
    window.click("#check summary");
    window.click("#check button");
    window.see("No contradiction found.");
    for text in ["form an unbroken chain of hashes.", "The seed is the one that was fixed before the game."] {
        window.see(text);
    }
    window.see("Checked ✓");
    window.run(FORGE);
    window.click("#check button");
    window.see("The record is false.");
    assert!(!window.sees("No contradiction found."), "{}", window.text("#check"));
    assert!(!window.sees("Checked ✓"), "{}", window.text("#session"));
    // Chromium for Linux has no menu for sharing, and may have no clipboard; then the page goes to the link.
    window.run("navigator.share = (shared) => { document.title = shared.url; return Promise.resolve(); };");
    window.click("[data-share]");
    let shared = window.run("return document.title");
    let shared = shared.as_str().unwrap_or_default();
    assert!(shared.contains(&format!("/sessions/{session}#")), "{shared}");
}

#[test]
fn the_page_of_the_log_compares_the_newest_leaves_with_the_checkpoint() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let session = world.play_psi(["ada", "mallory"], |seat, sets| sets[seat].clone());
    // The page shows the log at its load, and the log gets the end of a session within a second.
    until("the log has the end of the session", || world.client.get(&format!("/log/proof/{session}")).status == 200);
    let driver = Driver::start();
    let window = driver.window();
    window.look(1280, false);
    window.open(&world.page("/log"));
    window.see("The newest leaves agree with the checkpoint.");
    window.see("game created");
    window.see("game ended");
    window.see(&session);
}
