//! `cargo xtask facts`: prints the size of the source tree, for comparison before and after a change.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::cargo::{metadata, say};

/// Prints the lines of code of each crate, the number of locked dependencies, and the size of the release binary if
/// there is one.
///
/// # Errors
/// If a source file can't be read.
pub fn print(root: &Path) -> anyhow::Result<()> {
    let metadata = metadata(root)?;
    let (mut total, mut crates) = (0, Vec::new());
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = Path::new(
            package["manifest_path"]
                .as_str()
                .context("a package in the output of `cargo metadata` has no manifest_path")?,
        );
        let lines = lines_below(&manifest.with_file_name("src"))?;
        crates.push((lines, package["name"].as_str().unwrap_or_default()));
        total += lines;
    }
    crates.sort_by(|a, b| b.cmp(a));
    for (lines, name) in &crates {
        say(&format!("{lines:>7}  {name}"));
    }
    say(&format!("{total:>7}  lines of code in {} crates, without blank lines, comments and tests", crates.len()));
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    say(&format!("{:>7}  packages in Cargo.lock", lock.matches("[[package]]").count()));
    let target =
        metadata["target_directory"].as_str().context("the output of `cargo metadata` has no target_directory")?;
    if let Ok(binary) = fs::metadata(Path::new(target).join("release/arena")) {
        say(&format!("{:>7.1}  MiB in target/release/arena", binary.len() as f64 / f64::from(1 << 20)));
    }
    Ok(())
}

/// Counts the lines of code in all source files below a folder.
fn lines_below(folder: &Path) -> anyhow::Result<usize> {
    let mut lines = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type()?.is_dir() {
            lines += if name == "tests" { 0 } else { lines_below(&path)? };
        } else if name != "tests.rs" && path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            lines += lines_of(&source);
        }
    }
    Ok(lines)
}

/// Counts the lines that are neither blank nor comments. The count stops at the tests at the end of the file.
fn lines_of(source: &str) -> usize {
    let code = source.split_once("#[cfg(test)]\nmod tests {").map_or(source, |(code, _)| code);
    let lines = code.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}
