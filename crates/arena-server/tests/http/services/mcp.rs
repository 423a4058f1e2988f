//! MCP with the official Python client. The scripts are in `tests/mcp`; they need the packages that `cargo xtask setup
//! python` installs.

use std::path::Path;
use std::process::Command;

use arena_testkit::{Host, python};
use serde_json::{Value, json};

/// Runs a script against a server. Returns its output.
#[track_caller]
fn run(script: &str, host: &Host, arguments: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp").join(script);
    // -B prevents a cache folder in the source tree.
    let mut command = Command::new(python(env!("CARGO_TARGET_TMPDIR")));
    command.arg("-B").arg(script).arg(format!("http://{}", host.address())).args(arguments);
    let output = command.output().expect("the interpreter starts");
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {printed}\n{said}", output.status);
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}\n{said}"))
}

#[test]
fn agents_with_the_official_client_play_a_game_in_few_calls() {
    let outcome = run("play_psi.py", &Host::start(), &[]);
    assert_eq!(outcome["scores"], json!([{ "security": 1, "utility": 1 }, { "security": 1, "utility": 1 }]));
}

#[test]
fn they_do_so_with_keys_as_well() {
    let host = Host::start_with(|settings| settings.auth.enabled = true);
    let outcome = run("play_psi.py", &host, &["--keys"]);
    assert_eq!(outcome["scores"], json!([{ "security": 1, "utility": 1 }, { "security": 1, "utility": 1 }]));
}

#[test]
fn the_official_client_gets_errors_for_invalid_calls() {
    let checked = run("refusals.py", &Host::start(), &[]);
    assert!(checked.as_u64() > Some(50), "{checked}");
}
