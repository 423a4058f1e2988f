//! Clients in TypeScript and Python that other tools generate from `/openapi.json`. The tools must give no warning. The
//! clients are type-checked, and play a game against the binary. Requires `cargo xtask setup python node`.

use std::borrow::BorrowMut;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arena_testkit::{node_packages, python};
use serde_json::{Value, json};

use crate::program::{Running, folder};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated")
}

/// Runs a program and returns its output. Fails if the program fails.
#[track_caller]
fn succeed(mut command: impl BorrowMut<Command>) -> String {
    let command = command.borrow_mut();
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let outcome = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{outcome}");
    outcome
}

/// Starts a server, and writes its interface description to a file in `place`.
fn describe(place: &Path) -> (Running, PathBuf) {
    let data = place.join("data");
    let server =
        Running::start(&["serve", "--listen", "127.0.0.1:0", "--tournaments", "--data", data.to_str().unwrap()]);
    let file = place.join("openapi.json");
    fs::write(&file, server.client().get("/openapi.json").body).unwrap();
    (server, file)
}

/// Checks the printed result: both players have full scores, and the users are listed in the order in which they
/// joined.
#[track_caller]
fn played_well(outcome: &str, users: [&str; 2]) {
    let line = outcome.lines().rfind(|line| line.starts_with('{')).unwrap_or_else(|| panic!("nothing told: {outcome}"));
    let outcome: Value = serde_json::from_str(line).unwrap();
    let best = json!({ "security": 1, "utility": 1 });
    let number = |value: &Value| value.as_f64();
    assert_eq!(outcome["status"], "ended");
    assert_eq!(outcome["identities"], json!(users));
    assert_eq!(outcome["users"], json!(users));
    for score in outcome["scores"].as_array().unwrap() {
        assert_eq!(["security", "utility"].map(|name| number(&score[name])), [Some(1.0); 2], "{score} isn't {best}");
    }
    let board: Vec<(&str, Option<f64>)> =
        outcome["board"].as_array().unwrap().iter().map(|row| (row[0].as_str().unwrap(), number(&row[2]))).collect();
    assert_eq!(board, users.map(|user| (user, Some(1.0))));
}

#[test]
fn a_typescript_client_is_generated_checked_and_plays() {
    let place = folder();
    let packages = node_packages(env!("CARGO_TARGET_TMPDIR"));
    for name in ["play.ts", "tsconfig.json"] {
        fs::copy(sources().join(name), place.path().join(name)).unwrap();
    }
    fs::write(place.path().join("package.json"), r#"{"type":"module"}"#).unwrap();
    std::os::unix::fs::symlink(&packages, place.path().join("node_modules")).unwrap();
    let tool = |name: &str| {
        let mut command = Command::new("node");
        command.arg(packages.join(name)).current_dir(place.path()).env("NO_COLOR", "1");
        command
    };
    let (server, description) = describe(place.path());
    let outcome = succeed(tool("openapi-typescript/bin/cli.js").arg(&description).args(["--output", "schema.d.ts"]));
    assert!(!outcome.to_lowercase().contains("warn") && !outcome.contains('⚠'), "{outcome}");
    succeed(tool("typescript/bin/tsc").args(["--project", "tsconfig.json"]));
    let outcome = succeed(Command::new("node").arg(place.path().join("built/play.js")).arg(&server.url));
    played_well(&outcome, ["ts-0", "ts-1"]);
}

#[test]
fn a_python_client_is_generated_checked_and_plays() {
    let place = folder();
    let interpreter = python(env!("CARGO_TARGET_TMPDIR"));
    // The generator formats its output with programs in its folder, which must therefore be on the path.
    let beside = interpreter.parent().unwrap().to_str().unwrap().to_owned();
    let paths = format!("{beside}:{}", std::env::var("PATH").unwrap());
    let run = |args: &[&str]| {
        let mut command = Command::new(&interpreter);
        command.arg("-B").args(args).current_dir(place.path()).env("PATH", &paths).env("COLUMNS", "120");
        command
    };
    let (server, description) = describe(place.path());
    let generate =
        ["-m", "openapi_python_client", "generate", "--meta", "none", "--output-path", "generated", "--overwrite"];
    let outcome = succeed(run(&generate).arg("--path").arg(&description).arg("--fail-on-warning"));
    let told = outcome.to_lowercase();
    assert!(!["warning", "error", "unable", "skipping"].iter().any(|word| told.contains(word)), "{outcome}");
    fs::copy(sources().join("play.py"), place.path().join("play.py")).unwrap();
    // The generated code isn't strictly typed everywhere. The code that uses it must be.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy-generated");
    let strict =
        ["-m", "mypy", "--cache-dir", cache.to_str().unwrap(), "--strict", "--follow-imports=silent", "play.py"];
    succeed(run(&strict));
    played_well(&succeed(run(&["play.py"]).arg(&server.url)), ["py-0", "py-1"]);
}
