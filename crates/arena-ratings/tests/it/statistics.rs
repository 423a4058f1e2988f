//! Statistics of scores, compared with those of other programs: `tests/reference/others.py`.

use arena_ratings::{ClusteredMean, PairedDifference, clusters_needed, holm, power, sign_flips};
use serde_json::Value;

fn cases(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../reference/statistics.json")).expect("JSON");
    all[name].as_array().expect("a list").clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn numbered(values: &Value) -> impl Iterator<Item = (u64, f64)> {
    (0..).zip(numbers(values))
}

fn clustered(clusters: &Value) -> ClusteredMean {
    let clusters = (0..).zip(clusters.as_array().expect("a list"));
    let values = clusters.flat_map(|(cluster, values)| numbers(values).into_iter().map(move |value| (cluster, value)));
    ClusteredMean::of(values).expect("values")
}

#[track_caller]
fn near(case: &Value, key: &str, found: f64) {
    let expected = number(&case[key]);
    assert!((found - expected).abs() < 1e-7, "{}: {key} is {found} instead of {expected}", case["name"]);
}

#[test]
fn means_over_clusters() {
    for case in cases("clustered") {
        let mean = clustered(&case["clusters"]);
        near(&case, "mean", mean.mean);
        near(&case, "error", mean.error.unwrap());
        near(&case, "low", mean.interval.unwrap().low);
        near(&case, "high", mean.interval.unwrap().high);
        near(&case, "p_value", mean.p_value().unwrap());
    }
}

#[test]
fn means_of_values_on_a_scale() {
    for case in cases("within") {
        let [low, high] = numbers(&case["range"])[..] else { panic!("{case}") };
        let parts = case["parts"].as_array().unwrap().iter();
        let means: Vec<ClusteredMean> = parts.map(|clusters| clustered(clusters).within(low, high)).collect();
        let interval = ClusteredMean::equal_weights(&means).unwrap().interval.unwrap();
        near(&case, "low", interval.low);
        near(&case, "high", interval.high);
        if let [mean] = means[..] {
            assert_eq!(mean.interval, Some(interval));
        }
    }
}

#[test]
fn paired_differences() {
    for case in cases("paired") {
        let found = PairedDifference::of(numbered(&case["one"]), numbered(&case["two"]), |key| *key).unwrap();
        near(&case, "low", found.mean.interval.unwrap().low);
        near(&case, "high", found.mean.interval.unwrap().high);
        near(&case, "p_value", found.p_value(&mut || 0).unwrap());
        let differences: Vec<f64> =
            numbers(&case["one"]).iter().zip(numbers(&case["two"])).map(|(one, two)| one - two).collect();
        if case["flips"].is_number() {
            near(&case, "flips", sign_flips(&differences, &mut || 0));
        }
    }
}

#[test]
fn differences_of_independent_means() {
    for case in cases("welch") {
        let [one, two] = ["one", "two"].map(|key| ClusteredMean::of(numbered(&case[key])).unwrap());
        let found = one.minus(&two);
        near(&case, "freedom", found.freedom);
        near(&case, "low", found.interval.unwrap().low);
        near(&case, "high", found.interval.unwrap().high);
        near(&case, "p_value", found.p_value().unwrap());
    }
}

#[test]
fn adjusted_p_values() {
    for case in cases("holm") {
        let (found, expected) = (holm(&numbers(&case["p_values"])), numbers(&case["adjusted"]));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-12, "{case}: {found}");
        }
    }
}

#[test]
fn power_and_sample_sizes() {
    for case in cases("power") {
        let found = power(number(&case["effect"]), case["clusters"].as_u64().unwrap());
        let expected = number(&case["power"]);
        assert!((found - expected).abs() < 1e-5, "{case}: {found}");
    }
    for case in cases("clusters_needed") {
        // The standard deviation between clusters is 1.
        let found = clusters_needed(number(&case["effect"]), 0.1, 100);
        assert_eq!(found, case["clusters"].as_u64(), "{case}");
    }
}

mod services {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Returns the interpreter that `cargo xtask python` installs.
    fn interpreter() -> PathBuf {
        let executable = std::env::current_exe().expect("a program");
        let target = executable.ancestors().find(|folder| folder.join("tools/python/bin/python").exists());
        target.expect("no Python environment: run `cargo xtask python`").join("tools/python/bin/python")
    }

    #[test]
    fn other_programs_give_the_numbers_of_the_file() {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/others.py");
        let output = Command::new(interpreter()).arg(program).arg("--check").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
