//! The durations of the last runs of checks and tests, in a file of the target folder. `cargo xtask facts` prints them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value, json};

use crate::cargo::{metadata, target_folder};

/// The file: a JSON object of names and seconds.
const FILE: &str = "ci-times.json";

/// The name of the total duration of the last `cargo xtask ci` that passed.
pub const CI: &str = "ci total";

/// Stores durations in the file. Other durations in it stay.
///
/// # Errors
/// If the file can't be written.
pub fn store(root: &Path, times: &[(String, Duration)]) -> anyhow::Result<()> {
    let folder = target_folder(&metadata(root)?)?;
    let mut all = read(&folder);
    all.extend(times.iter().map(|(name, time)| (name.clone(), json!(time.as_secs_f64()))));
    let path = folder.join(FILE);
    fs::write(&path, Value::Object(all).to_string()).with_context(|| format!("cannot write {}", path.display()))
}

/// Reads the durations, by name. The file may be missing.
pub fn read(target: &Path) -> Map<String, Value> {
    let text = fs::read(target.join(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
