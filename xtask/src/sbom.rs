//! The software bill of materials of a release, in CycloneDX's JSON format, version 1.5. It lists the crates in the
//! program: no tools of the build, no macros, no dependencies of tests, and no parts of Rust's standard library.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::cargo::{cargo, graph};

/// Returns the bill of materials of `arena`.
///
/// # Errors
/// If cargo fails, or its outputs contradict each other.
pub fn sbom(root: &Path) -> anyhow::Result<Value> {
    // The output of `cargo metadata` has more crates: the features of packages that the program doesn't use are on.
    let args = ["tree", "--locked", "--package", "arena-cli", "--edges", "normal,no-proc-macro", "--prefix", "none"];
    let output = cargo(root, &args).args(["--format", "{p}"]).output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    }
    let tree = String::from_utf8(output.stdout)?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let (checksums, graph) = (checksums(&lock), graph(root)?);
    let packages = graph["packages"].as_array().context("the output of `cargo metadata` has no packages")?;
    let (mut program, mut libraries) = (Value::Null, Vec::new());
    for (name, version) in tree.lines().filter_map(named).collect::<BTreeSet<_>>() {
        let package = packages.iter().find(|package| package["name"] == name && package["version"] == version);
        let package = package.with_context(|| format!("`cargo metadata` doesn't know {name} {version}"))?;
        let mut component =
            json!({ "type": "library", "bom-ref": format!("{name}@{version}"), "name": name, "version": version });
        // Old packages separate the licenses of a choice by a slash.
        let license = package["license"].as_str().with_context(|| format!("{name} {version} has no license"))?;
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
        // The crates of this workspace aren't in a registry.
        if !package["source"].is_null() {
            let checksum = checksums.get(&(name, version));
            let checksum = checksum.with_context(|| format!("Cargo.lock has no checksum of {name} {version}"))?;
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
            component["purl"] = format!("pkg:cargo/{name}@{version}").into();
        }
        if name == "arena-cli" {
            component["type"] = "application".into();
            program = component;
        } else {
            libraries.push(component);
        }
    }
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": program },
        "components": libraries,
    }))
}

/// Returns the name and the version in a line of `cargo tree`, such as `serde v1.0.229 (*)`.
fn named(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(" v")?;
    Some((name, rest.split(' ').next()?))
}

/// Returns the checksum of each package in the text of a `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    lock.split("[[package]]")
        .filter_map(|package| {
            Some(((field(package, "name")?, field(package, "version")?), field(package, "checksum")?))
        })
        .collect()
}

/// Returns a field of a package in `Cargo.lock`.
fn field<'l>(package: &'l str, name: &str) -> Option<&'l str> {
    package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_lists_the_crates_in_the_program_and_no_others() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let bill = sbom(root).expect("a bill of materials");
        assert_eq!(bill["metadata"]["component"]["name"], "arena-cli");
        let all = bill["components"].as_array().expect("a list");
        let find = |name: &str| all.iter().find(|component| component["name"] == name);
        // Macros, tools of the build, crates of tests, and a crate that only a feature of another package needs.
        for other in ["serde_derive", "syn", "cc", "arena-testkit", "expect-test", "xtask", "cookie_store"] {
            assert_eq!(find(other), None);
        }
        let own = find("arena-store").expect("a crate of the workspace");
        assert_eq!((&own["licenses"], own.get("purl")), (&json!([{ "expression": "MIT OR Apache-2.0" }]), None));
        for foreign in ["serde", "libsqlite3-sys", "tokio-postgres", "fallible-iterator"] {
            let component = find(foreign).expect("a crate in the program");
            let version = component["version"].as_str().expect("a version");
            assert_eq!(component["purl"], format!("pkg:cargo/{foreign}@{version}"));
            assert_eq!(component["hashes"][0]["content"].as_str().map(str::len), Some(64));
            assert!(!component["licenses"][0]["expression"].as_str().expect("a license").contains('/'));
        }
    }
}
