//! All tests of `cargo xtask ci`: one build, which also checks the lints, and test binaries that run beside each other.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::cargo::{cargo, run, say};

/// Binaries whose tests mostly wait for processes, with the number of tests at once. Each row runs beside the others,
/// its binaries one after the other. With more tests at once, the processors are no busier, and tests with time limits
/// fail. All other binaries form one more row, with as many tests at once as cores.
const ROWS: [&[(&str, usize)]; 2] = [&[("program", 2)], &[("cluster", 1), ("browser", 1), ("fleet", 2)]];

#[derive(Debug, PartialEq)]
struct TestBinary {
    /// The crate and the target, such as `arena-cli program`.
    title: String,
    target: String,
    program: PathBuf,
    /// The crate's folder, in which cargo runs its tests.
    folder: PathBuf,
}

/// Builds all tests. Clippy's compiler builds the workspace's crates, so a lint is an error of this build.
///
/// # Errors
/// If a crate doesn't compile or has a warning.
pub fn build(root: &Path) -> anyhow::Result<()> {
    run(linted_test(root, &["--workspace", "--no-run"])?)
}

/// Runs all tests that [`build`] has built. Prints the result of each binary, and all output of a binary that fails.
///
/// # Errors
/// If a test fails.
pub fn run_all(root: &Path) -> anyhow::Result<()> {
    let args = ["--workspace", "--no-run", "--quiet", "--message-format", "json"];
    let messages = linted_test(root, &args)?.output().context("cannot run cargo")?;
    let mut others = binaries(&String::from_utf8_lossy(&messages.stdout));
    let mut rows = Vec::new();
    for row in ROWS {
        let mut commands = Vec::new();
        for (name, threads) in row {
            let place = others.iter().position(|binary| binary.target == *name);
            let binary = others.remove(place.with_context(|| format!("there is no test binary {name}"))?);
            let mut command = binary.command();
            command.arg(format!("--test-threads={threads}"));
            commands.push((binary.title, command));
        }
        rows.push(commands);
    }
    let examples = ("examples in comments".to_owned(), linted_test(root, &["--workspace", "--doc"])?);
    rows.push(others.into_iter().map(|binary| (binary.title.clone(), binary.command())).chain([examples]).collect());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for row in rows {
            let failed = &failed;
            scope.spawn(move || {
                for (title, mut command) in row {
                    let started = Instant::now();
                    let ended = command.stdin(Stdio::null()).output();
                    // Held while printing, so that the lines of two binaries aren't mixed.
                    let mut failed = failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    say(&format!("-- {title}: {:.0} s", started.elapsed().as_secs_f64()));
                    if !print(ended) {
                        failed.push(title);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !failed.is_empty() {
        bail!("tests failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Prints the results of a binary, or all of its output if it failed. Returns true if it passed.
fn print(ended: std::io::Result<Output>) -> bool {
    let output = match ended {
        Ok(output) => output,
        Err(error) => {
            say(&format!("cannot run it: {error}"));
            return false;
        }
    };
    let passed = output.status.success();
    for stream in [output.stdout, output.stderr] {
        let text = String::from_utf8_lossy(&stream);
        text.lines().filter(|line| !passed || line.starts_with("test result: ")).for_each(say);
    }
    passed
}

/// Returns the command `cargo test` with these arguments, in which clippy's compiler builds the workspace's crates and
/// warnings are errors.
fn linted_test(root: &Path, args: &[&str]) -> anyhow::Result<Command> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().context("cannot run rustc")?;
    let driver = Path::new(String::from_utf8_lossy(&sysroot.stdout).trim()).join("bin/clippy-driver");
    let mut command = cargo(root, &["test", "--locked"]);
    // The variables that `cargo clippy` sets for `cargo check`. Its arguments are separated by this word.
    command.args(args).env("RUSTC_WORKSPACE_WRAPPER", driver).env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__");
    // Data for a second build would cost time, and save none on a build machine.
    command.env("CARGO_INCREMENTAL", "0");
    Ok(command)
}

/// Returns the test binaries that cargo names in its messages, a JSON object in each line.
fn binaries(messages: &str) -> Vec<TestBinary> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| TestBinary::read(&message)).collect()
}

impl TestBinary {
    /// Returns the test binary of a message of cargo, or `None` if it is about something else.
    fn read(message: &Value) -> Option<TestBinary> {
        let program = PathBuf::from(message["executable"].as_str()?);
        if message["profile"]["test"] != true {
            return None;
        }
        let target = message["target"]["name"].as_str()?.to_owned();
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let package = folder.file_name()?.to_string_lossy().into_owned();
        Some(TestBinary { title: format!("{package} {target}"), target, program, folder })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // As cargo does. Tests that compare files find them by this variable.
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_among_the_messages() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{"name":"it"},"profile":{"test":true},"executable":"/w/target/it-1"}
{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{"name":"a"},"profile":{"test":false},"executable":"/w/target/a"}
{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{"name":"a"},"profile":{"test":true},"executable":null}
{"reason":"build-finished","success":true}
not JSON"#;
        let expected = TestBinary {
            title: "a it".to_owned(),
            target: "it".to_owned(),
            program: "/w/target/it-1".into(),
            folder: "/w/crates/a".into(),
        };
        assert_eq!(binaries(messages), [expected]);
    }
}
