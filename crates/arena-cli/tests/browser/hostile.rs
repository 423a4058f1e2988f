//! Hostile texts from strangers, which pages must show as plain text.

use arena_testkit::data_folder;
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::world::World;

/// Texts that an unsafe page would run or render as code or markup.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(2)>",
        "</p></li></ol></section></main><h1>Owned</h1>",
        "\"><svg onload=alert(3)>",
        "javascript:alert(4)",
        "{{constructor.constructor('alert(5)')()}}",
        "${alert(6)}",
        "\u{202e}txet sdrawkcab\u{202c} and on",
        "bell\u{7} escape\u{1b}[2J\u{1b}]0;title\u{7} next\u{85}",
        "Z̴̧͎a̶͝l̷g̸o͑",
        "مرحبا (hello) שלום",
        "{\"world_state\": \"no state\", \"asked\": 7}",
        "{\"world_state\": {\"fen\": \"<b>\", \"grid\": 9, \"snakes\": [[]]}, \"asked\": [\"<i>\"], \"deadline\": \"x\"}",
        "{\"result\": null}",
    ]
    .map(str::to_owned)
    .to_vec();
    // The longest allowed message, on one line.
    texts.push("wide ".repeat(200_000));
    texts.push("W".repeat(1_000_000));
    texts
}

#[test]
fn texts_from_strangers_stay_text() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let window = driver.window();
    window.look(1280, false);
    let (session, invites) = world.create("psi", &json!({}));
    let names = ["<img src=x onerror=alert(7)>", "</title><script>alert(8)</script>"];
    for (invite, name) in invites.iter().zip(names) {
        world.client.post("/api/arena/join", &json!({ "invite": invite, "userId": name })).ok();
    }
    let page = world.page(&format!("/sessions/{session}"));
    window.open(&page);
    window.wait("document.getElementById('connection').innerText === 'Live'");
    let shape = "return ['script', 'img', 'h1', 'iframe', 'style', 'link'].map((name) => document.querySelectorAll(name).length)";
    let before = window.run(shape);
    let texts = texts();
    for text in &texts {
        let output = world.client.chat(&session, &invites[0], text);
        assert_eq!(output.status, 200, "{}", output.text());
    }
    let all = format!("document.querySelectorAll('#timeline .bubble').length === {}", texts.len());
    window.wait(&all);
    let said = "return [...document.querySelectorAll('#timeline .bubble .text')].map((text) => text.innerText)";
    let live = window.run(said);
    // After a reload, the server renders the messages. They must look as the script showed them.
    // The last two are so long that a page has no more than eight events.
    for (query, part) in [("", 8..16), ("?until=10", 0..8)] {
        window.open(&format!("{page}{query}"));
        window.wait("document.querySelectorAll('#timeline .bubble').length === 8");
        assert_eq!(window.run(said).as_array().unwrap()[..], live.as_array().unwrap()[part]);
        assert_eq!(window.run(shape), before);
    }
    let shown: Vec<&str> = live.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(shown[0], texts[0]);
    assert_eq!(shown[8], "bell\\u{7} escape\\u{1b}[2J\\u{1b}]0;title\\u{7} next\\u{85}");
    assert!(shown.iter().all(|text| !text.contains('\u{202e}') && text.chars().count() < 1600), "{live}");

    // Long texts don't break the layout, even on narrow screens.
    for invite in &invites {
        world.client.act(&session, invite, "guess", "1").ok();
    }
    window.see("Result");
    let to_user = window.run("return [...document.querySelectorAll('.result .seat a')].map((link) => link.href)");
    let mut pages =
        vec![page, world.page("/"), world.page("/challenges/psi"), world.page(&format!("/play/{}", invites[1]))];
    pages.extend(to_user.as_array().unwrap().iter().map(|link| link.as_str().unwrap().to_owned()));
    assert_eq!(pages.len(), 6);
    for width in [1280, 360] {
        window.look(width, width == 360);
        for page in &pages {
            window.open(page);
            window.wait("document.querySelector('main')");
            let counts = window.run(shape);
            assert_eq!((&counts[1], &counts[2], &counts[3]), (&json!(0), &json!(1), &json!(0)), "{page}");
            let excess =
                window.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert_eq!(excess, json!(0), "{page} at {width}");
        }
    }
}
