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

/// A script that changes the log on its way to the page: CHANGE gets the path and the bytes of each of its files.
const FALSE_LOG: &str = r#"return (async () => {
    const script = document.querySelector('script[src*="/record.js"]').src;
    const { rootOf } = await import(script.replace("record.js", "record-check.js"));
    const real = window.real ??= window.fetch;
    const bytesOf = async (answer) => new Uint8Array(await answer.arrayBuffer());
    const hashes = async () => {
        const tile = await bytesOf(await real("/log/tile/0/000.p/SIZE"));
        return Array.from({ length: SIZE }, (_, at) => tile.slice(32 * at, 32 * at + 32));
    };
    window.fetch = async (path, ...args) => {
        const answer = await real(path, ...args);
        if (!String(path).startsWith("/log/") || !answer.ok) return answer;
        const bytes = await bytesOf(answer);
        return new Response(await (CHANGE)(String(path), bytes, new TextDecoder().decode(bytes), hashes, rootOf));
    };
})();"#;

/// Changes of a log of SIZE leaves, the last of which is the end of a game, with the page's verdict.
const FALSE_LOGS: [(&str, &str); 3] = [
    (
        "(path, bytes, text) => path.endsWith('checkpoint') ? text.replace('\\nSIZE\\n', '\\n2\\n') : bytes",
        "The log is false. It went back from SIZE leaves, which the record's proof has, to 2.",
    ),
    (
        "(path, bytes) => {
            // The last digit of the time.
            if (path.includes('entries')) bytes[bytes.length - 2] ^= 1;
            return bytes;
        }",
        "The log is false. It forked: its leaf LEAF is {\"leaf\":\"ended\"",
    ),
    (
        "async (path, bytes, text, hashes, rootOf) => {
            if (path.includes('/0/')) bytes[0] ^= 1;
            if (!path.endsWith('checkpoint')) return bytes;
            const changed = await hashes();
            changed[0][0] ^= 1;
            const root = btoa(String.fromCharCode(...await rootOf(changed)));
            return text.replace(/(\\nSIZE\\n).*/, (_, size) => size + root);
        }",
        "The log is false. It forked: its first SIZE leaves have another root hash than the record's proof.",
    ),
];

#[test]
fn a_visitor_finds_that_the_log_lost_a_game_or_forked() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let session = world.play_psi(["ada", "mallory"], |_, sets| sets[0].clone());
    until("the log has the end of the session", || world.client.get(&format!("/log/proof/{session}")).status == 200);
    let driver = Driver::start();
    let window = driver.window();
    window.look(1280, false);
    window.open(&world.page(&format!("/sessions/{session}")));
    window.click("#check summary");
    window.click("#check button");
    let proof = world.client.get(&format!("/log/proof/{session}")).ok();
    let filled =
        |text: &str| text.replace("SIZE", &proof["size"].to_string()).replace("LEAF", &proof["leaf"].to_string());
    window.see(&filled("The log still begins with the SIZE leaves of that checkpoint."));
    for (change, verdict) in FALSE_LOGS {
        window.run(&filled(&FALSE_LOG.replace("CHANGE", change)));
        window.click("#check button");
        window.see(&filled(verdict));
        assert!(!window.sees("Checked ✓"), "{change}");
    }
}

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
