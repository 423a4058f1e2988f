//! Clients as users of other arenas with this protocol have them. They run unchanged against the binary.

use std::path::Path;
use std::process::Command;

use arena_testkit::data_folder;
use serde_json::{Value, json};

use crate::program::Running;

#[test]
fn a_page_that_reads_by_position_lists_everything_and_shortens_ids_is_correct() {
    let data = data_folder();
    let server = Running::serve(data.path());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand_ins/page.mjs");
    let output = Command::new("node").arg(page).arg(&server.url).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "ids": 20,
        "invites": 40,
        "listed": 20,
        "wrongInList": [],
        "wrongInEvents": [],
        "events": ["game_ended", "initial", "new_message"],
        "begins": true,
        "users": 352,
        "board": 40,
        "boards": { "average": 40, "win-rate": 40, "red-team": 40, "consecutive": 40 },
        "first": "average",
    });
    assert_eq!(outcome, expected);
}
