//! Leaderboards on a narrow screen, and moderation beside the message.

use arena_testkit::{data_folder, known_admin_token};
use serde_json::json;

use crate::driver::Driver;
use crate::world::World;

#[test]
fn a_leaderboard_shows_its_scores_on_a_narrow_screen_and_compares_two_players() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    for users in [["ada", "grace"], ["grace", "alan"], ["a-player-with-a-very-long-name-indeed", "ada"]] {
        world.play_psi(users, |_, sets| sets[0].iter().filter(|n| sets[1].contains(n)).copied().collect());
    }
    let driver = Driver::start();
    let window = driver.window();
    window.look(360, false);
    window.open(&world.page("/leaderboards"));
    window.click("a[href='/leaderboards/psi']");
    window.see("Rank");
    // Rank, name and both scores of every player are on the screen, without scrolling.
    let hidden = "return [...document.querySelectorAll('#board .ranks td')] \
        .filter((cell) => cell.getClientRects().length && cell.getBoundingClientRect().right > innerWidth).length";
    assert_eq!(window.run(hidden), json!(0));
    let shown = "return [...document.querySelector('#board .ranks tbody tr').cells] \
        .filter((cell) => cell.getClientRects().length).length";
    assert_eq!(window.run(shown), json!(4));
    assert!(window.sees("1–4") && window.sees("All of the latest 3 ended games count."), "{}", window.text("main"));

    // Pictures of intervals need room.
    let intervals = "return [...document.querySelectorAll('#board svg.interval')] \
        .filter((picture) => picture.getClientRects().length).length";
    assert_eq!(window.run(intervals), json!(0));
    window.look(1280, false);
    assert_eq!(window.run(intervals), json!(8));

    window.run("document.getElementById('compare-first').value = 'ada'");
    window.run("document.getElementById('compare-second').value = 'grace'");
    window.click("#compare button");
    window.wait("location.search.includes('compare=ada') && location.search.includes('compare=grace')");
    window.see("Games against each other");
    assert!(window.sees("1 game: ada was ahead in"), "{}", window.text("#compare"));
}

#[test]
fn a_message_is_hidden_beside_the_message() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let (session, invites) = world.create("psi", &json!({}));
    for (invite, user) in invites.iter().zip(["ada", "grace"]) {
        world.join(invite, user);
    }
    world.client.chat(&session, &invites[0], "an insult").ok();
    let driver = Driver::start();
    let window = driver.window();
    let page = world.page(&format!("/sessions/{session}"));
    window.open(&page);
    window.see("an insult");
    assert_eq!(window.run("return document.querySelectorAll('.moderate').length"), json!(0), "visitors can't moderate");

    window.open(&world.page("/admin"));
    window.fill("#token", known_admin_token().reveal());
    window.click("#token-form button");
    window.see("All is well");
    window.click(&format!("#sessions a[href='/sessions/{session}']"));
    window.wait("document.querySelector('#chat-1 .moderate')");
    window.run("window.confirm = () => true");
    window.click("#chat-1 .moderate");
    window.wait("document.querySelector('#chat-1 .moderate')?.textContent !== 'Hide'");
    let chat = world.client.get(&format!("/api/chat/sync?channel={session}"));
    assert!(!chat.text().contains("an insult"), "{}", chat.text());
}
