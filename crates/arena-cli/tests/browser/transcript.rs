//! The transcript of a session: one timeline that grows live, is searched, and flags the leak at the end.

use arena_testkit::data_folder;
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::world::World;

/// The ids of the timeline's items.
const ITEMS: &str = "return [...document.querySelectorAll('#timeline > li:not([hidden])')].map((item) => item.id)";

#[test]
fn chat_moves_and_notes_are_one_timeline_which_flags_the_leak() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let (session, invites) = world.create("millionaire", &json!({}));
    let driver = Driver::start();
    let watcher = driver.window();
    watcher.look(1280, false);
    watcher.open(&world.page(&format!("/sessions/{session}")));
    watcher.wait("document.getElementById('connection').innerText === 'Waiting for players'");
    for (invite, user) in invites.iter().zip(["mallory", "edsger"]) {
        world.join(invite, user);
    }
    watcher.see("2 of 2 seats taken");
    watcher.wait("document.getElementById('connection').innerText === 'Live'");
    let path = format!("/api/arena/sync?channel=challenge_{session}&from={}", invites[1]);
    let seen = world.client.get(&path).text().to_owned();
    let wealth: String =
        seen.split("Your wealth is $").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    world.client.chat(&session, &invites[0], "How rich are you?").ok();
    world.client.chat(&session, &invites[1], &format!("I have {wealth} million.")).ok();
    watcher.wait("document.querySelectorAll('#timeline .bubble').length === 2");
    world.client.act(&session, &invites[0], "guess", &wealth).ok();
    watcher.wait("document.getElementById('operator-4')");
    // The notes to the players are withheld, and the moves are after the chat.
    assert_eq!(
        watcher.run(ITEMS),
        json!(["operator-1", "operator-2", "chat-1", "chat-2", "operator-3", "operator-4", "operator-5"])
    );
    assert!(!watcher.sees("Your wealth is"));
    watcher.run("window.isSame = true");
    world.client.act(&session, &invites[1], "guess", "1").ok();
    watcher.see("Jump to the leak");
    assert_eq!(watcher.run("return window.isSame"), json!(true), "the page wasn't loaded again");
    watcher.see("Your wealth is");
    watcher.see("Contains the sender's exact wealth");
    assert!(watcher.text("h1").contains("guessed edsger's exact wealth"), "{}", watcher.text("h1"));
    watcher.click("#transcript-title + a");
    watcher.wait("location.hash === '#chat-2'");

    // The search hides other events, also after the transcript was replaced at the end.
    watcher.fill(".tools input", "RICH ARE");
    watcher.see("1 found");
    assert_eq!(watcher.run(ITEMS), json!(["chat-1"]));

    // A link leads to the message on any page, and its target is large enough for a finger.
    watcher.open(&world.page(&format!("/sessions/{session}?until=1#chat-2")));
    watcher.wait("location.search.includes('at=chat-2') && document.getElementById('chat-2')");
    let sizes = "return [...document.querySelectorAll('#timeline .at')].map((link) => Math.min(link.offsetWidth, link.offsetHeight))";
    let sizes = watcher.run(sizes);
    assert!(sizes.as_array().unwrap().iter().filter_map(Value::as_f64).all(|size| size >= 24.0), "{sizes}");
}
