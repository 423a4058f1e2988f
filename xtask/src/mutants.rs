//! `cargo xtask mutants`: changes the rules at random places with cargo-mutants, and counts the changes that quick
//! tests notice. A mutant is tried with the tests of its own package first. If they miss it, the tests of the packages
//! that depend on it follow, the cheap ones first, so most mutants need no build of other packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::cargo::{cargo, metadata, run, say, target_folder, tool};
use crate::rules::PURE;
use crate::tiers;

/// The version of cargo-mutants whose options and files this module knows.
const VERSION: &str = "^27";

/// The packages with the rules.
const PACKAGES: [&str; 3] = ["arena-model", "arena-games", "arena-ratings"];

/// The stages: tests of the package itself, of pure packages that depend on it, and of the others.
const STAGES: usize = 3;

/// The environment of builds and tests. Programs without debug information are linked faster.
const VARIABLES: [(&str, &str); 2] = [(tiers::QUICK_ONLY, "1"), ("CARGO_PROFILE_DEV_DEBUG", "0")];

struct Mutant {
    package: String,
    /// The file, the position and the change, as cargo-mutants shows them.
    name: String,
}

/// The numbers of a package's mutants, by result.
#[derive(Default)]
struct Count {
    caught: usize,
    /// Mutants that don't compile.
    unviable: usize,
}

/// Tries a sample of mutants, and prints the share that tests caught. The options are `--sample N` (300) and `--seed N`
/// (1). The missed mutants are in `mutants/missed.txt` in the target folder.
///
/// # Errors
/// If an option is wrong, the tests fail without a mutant, or cargo-mutants can't run.
pub fn mutants(root: &Path, options: &[&str]) -> anyhow::Result<()> {
    let (mut sample, mut seed) = (300, 1);
    for option in options.chunks(2) {
        match *option {
            ["--sample", number] => sample = number.parse().context("--sample needs a number")?,
            ["--seed", number] => seed = number.parse().context("--seed needs a number")?,
            _ => bail!("unknown option {}; the options are --sample N and --seed N", option[0]),
        }
    }
    let lab = Lab::open(root)?;
    let chosen = choose(lab.list()?, sample, seed);
    let mut counts = BTreeMap::<_, Count>::new();
    let mut missed: Vec<&Mutant> = chosen.iter().collect();
    for stage in 0..STAGES {
        let mut still_missed = Vec::new();
        for package in PACKAGES {
            let of_package = missed.iter().copied().filter(|mutant| mutant.package == package).collect();
            let tests = &groups(&lab.needs, package)[stage];
            let count = counts.entry(package).or_default();
            still_missed.extend(lab.try_all(package, tests, of_package, count)?);
        }
        missed = still_missed;
        report(&lab, &counts, &missed, stage, seed)?;
    }
    Ok(())
}

/// Prints the results after a stage, and writes the list of the missed mutants.
fn report(
    lab: &Lab,
    counts: &BTreeMap<&str, Count>,
    missed: &[&Mutant],
    stage: usize,
    seed: u64,
) -> anyhow::Result<()> {
    let list = lab.folder.join("missed.txt");
    let names: Vec<&str> = missed.iter().map(|mutant| mutant.name.as_str()).collect();
    fs::write(&list, names.join("\n") + "\n").with_context(|| format!("cannot write {}", list.display()))?;
    say(&format!("\nAfter stage {} of {STAGES}:", stage + 1));
    for (package, Count { caught, unviable }) in counts {
        let missed = missed.iter().filter(|mutant| mutant.package == *package).count();
        say(&format!("{package}: {caught} caught, {missed} missed, {unviable} don't compile"));
    }
    let caught: usize = counts.values().map(|count| count.caught).sum();
    let tried = caught + missed.len();
    let share = 100.0 * caught as f64 / tried.max(1) as f64;
    say(&format!("{share:.1} % of {tried} mutants caught, seed {seed}; the missed ones are in {}", list.display()));
    Ok(())
}

/// Chooses `count` mutants. The choice depends on the seed, the package and the change, but on no line numbers and
/// files, so most of it stays the same when code moves.
fn choose(mutants: Vec<Mutant>, count: usize, seed: u64) -> Vec<Mutant> {
    let mut equal = BTreeMap::<_, usize>::new();
    let mut keyed = Vec::new();
    for mutant in mutants {
        let change = mutant.name.split_once(": ").map_or(mutant.name.as_str(), |(_, change)| change);
        let number = equal.entry((mutant.package.clone(), change.to_owned())).or_default();
        *number += 1;
        let mut hasher = DefaultHasher::new();
        (seed, &mutant.package, change, *number).hash(&mut hasher);
        keyed.push((hasher.finish(), mutant));
    }
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().take(count).map(|(_, mutant)| mutant).collect()
}

/// Returns the groups of packages whose tests try a mutant of `package`: the package, the pure ones that depend on it,
/// and the others. `needs` has the dependencies of each package in the workspace.
fn groups(needs: &BTreeMap<String, Vec<String>>, package: &str) -> [Vec<String>; STAGES] {
    let mut dependents = vec![package.to_owned()];
    while let Some((next, _)) = needs
        .iter()
        .find(|(name, needs)| !dependents.contains(name) && needs.iter().any(|need| dependents.contains(need)))
    {
        dependents.push(next.clone());
    }
    let (pure, others) = dependents.split_off(1).into_iter().partition(|name| PURE.contains(&name.as_str()));
    [dependents, pure, others]
}

/// A copy of the workspace in which mutants are tried.
struct Lab {
    /// The folder with the copy, its builds and results.
    folder: PathBuf,
    tree: PathBuf,
    root: PathBuf,
    /// The dependencies of each package, with those of tests.
    needs: BTreeMap<String, Vec<String>>,
    /// The packages with a test binary `it`.
    with_it: Vec<String>,
}

impl Lab {
    /// Copies the workspace. The copied files are new, so cargo doesn't use a build of a mutant of an earlier run.
    fn open(root: &Path) -> anyhow::Result<Lab> {
        let metadata = metadata(root)?;
        let folder = target_folder(&metadata)?.join("mutants");
        let (tree, archive) = (folder.join("tree"), folder.join("tree.tar"));
        if tree.exists() {
            fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))?;
        }
        fs::create_dir_all(&tree).with_context(|| format!("cannot create {}", tree.display()))?;
        let mut pack = Command::new("tar");
        pack.args(["--exclude=./target", "--exclude=./.git", "--exclude=./bench/.work", "-cf"]).arg(&archive);
        pack.arg("-C").arg(root).arg(".");
        run(pack)?;
        let mut unpack = Command::new("tar");
        unpack.arg("-xmf").arg(&archive).arg("-C").arg(&tree);
        run(unpack)?;
        fs::remove_file(&archive).with_context(|| format!("cannot remove {}", archive.display()))?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let packages = list(&metadata["packages"]);
        let needs = packages.iter().map(|package| {
            let needs = list(&package["dependencies"]).iter().map(|need| text(&need["name"])).collect();
            (text(&package["name"]), needs)
        });
        let has_it = |package: &&Value| list(&package["targets"]).iter().any(|target| target["name"] == "it");
        let with_it = packages.iter().filter(has_it).map(|package| text(&package["name"])).collect();
        Ok(Lab { needs: needs.collect(), with_it, root: root.to_owned(), folder, tree })
    }

    /// Returns all mutants of [`PACKAGES`].
    fn list(&self) -> anyhow::Result<Vec<Mutant>> {
        let mut list = tool(&self.root, "mutants", VERSION)?;
        list.arg("--dir").arg(&self.tree).args(["--list", "--json"]);
        list.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
        let output = list.output().context("cannot run cargo-mutants")?;
        let all: Vec<Value> = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("cargo mutants --list: {}", String::from_utf8_lossy(&output.stderr)))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(all.iter().map(|mutant| Mutant { package: text(&mutant["package"]), name: text(&mutant["name"]) }).collect())
    }

    /// Tries mutants of `package` with the quick tests of some packages, counts them, and returns the missed ones.
    fn try_all<'m>(
        &self,
        package: &str,
        tests: &[String],
        mutants: Vec<&'m Mutant>,
        count: &mut Count,
    ) -> anyhow::Result<Vec<&'m Mutant>> {
        if mutants.is_empty() || tests.is_empty() {
            return Ok(mutants);
        }
        say(&format!("\n== {} mutants of {package}, tests of {}", mutants.len(), tests.join(", ")));
        let mut targets = vec!["--locked", "--lib", "--bins"];
        if tests.iter().any(|name| self.with_it.contains(name)) {
            targets.extend(["--test", "it"]);
        }
        let seconds = self.check_unchanged(tests, &targets)?;
        let only: Vec<String> = mutants.iter().map(|mutant| format!("^{}$", escape(&mutant.name))).collect();
        // cargo-mutants tries every deletion of a struct's field, whatever `examine_re` is. The list of files leaves out
        // most of them.
        let files: BTreeSet<&str> = mutants.iter().filter_map(|mutant| mutant.name.split(':').next()).collect();
        // JSON's lists of strings are TOML, too.
        let config = format!(
            "examine_globs = {}\nexamine_re = {}\ntest_package = {}\nadditional_cargo_args = {}\nadditional_cargo_test_args = {}\n",
            json!(files),
            json!(only),
            json!(tests),
            json!(targets),
            json!(tiers::quick_filters()),
        );
        let path = self.folder.join("mutants.toml");
        fs::write(&path, config).with_context(|| format!("cannot write {}", path.display()))?;
        let mut tried = tool(&self.root, "mutants", VERSION)?;
        tried.arg("--dir").arg(&self.tree).arg("--output").arg(&self.folder).arg("--config").arg(&path);
        // A mutant may never end; other ones are slower than the unchanged code.
        let timeout = (60.0 + 10.0 * seconds).to_string();
        tried.args(["--in-place", "--baseline=skip", "--package", package, "--timeout", &timeout]);
        let status = self.in_lab(&mut tried).status().context("cannot run cargo-mutants")?;
        // 2 and 3 mean that mutants were missed or never ended.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            bail!("cargo-mutants failed ({status})");
        }
        let path = self.folder.join("mutants.out/outcomes.json");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let results: Value = serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
        let results = results["outcomes"].as_array().context("cargo-mutants wrote no results")?;
        let results: BTreeMap<&str, &str> = results
            .iter()
            .filter_map(|result| Some((result["scenario"]["Mutant"]["name"].as_str()?, result["summary"].as_str()?)))
            .collect();
        let mut missed = Vec::new();
        for mutant in mutants {
            match results.get(mutant.name.as_str()).copied() {
                Some("MissedMutant") => missed.push(mutant),
                Some("Unviable") if tests == [package] => count.unviable += 1,
                // Other packages fail to compile if a constant is wrong.
                Some("CaughtMutant" | "Timeout" | "Unviable") => count.caught += 1,
                other => bail!("cargo-mutants has no result for {}: {other:?}", mutant.name),
            }
        }
        Ok(missed)
    }

    /// Checks that the tests pass without a mutant, and returns their duration in seconds, without that of the build.
    fn check_unchanged(&self, tests: &[String], targets: &[&str]) -> anyhow::Result<f64> {
        let test = |more: &[&str]| {
            let mut test = cargo(&self.tree, &["test", "--quiet"]);
            test.args(tests.iter().flat_map(|name| ["--package", name])).args(targets).args(more);
            self.in_lab(&mut test);
            run(test)
        };
        test(&["--no-run"])?;
        let started = Instant::now();
        test(tiers::quick_filters()).context("the tests fail without a mutant")?;
        Ok(started.elapsed().as_secs_f64())
    }

    fn in_lab<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.envs(VARIABLES).env("CARGO_TARGET_DIR", self.folder.join("build"))
    }
}

/// Returns a regular expression for exactly this text.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for char in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_survives_moves_of_code() {
        let all = |file: &str| -> Vec<Mutant> {
            let name = |number| format!("{file}.rs:{number}:5: replace + with - in f{}", number / 2);
            (0..200).map(|number| Mutant { package: "a".to_owned(), name: name(number) }).collect()
        };
        let chosen = |file, count, seed| -> Vec<String> {
            let change = |mutant: Mutant| mutant.name.split_once(".rs:").expect("a file").1.to_owned();
            choose(all(file), count, seed).into_iter().map(change).collect()
        };
        assert_eq!(chosen("a", 20, 1), chosen("b", 20, 1));
        assert_eq!(chosen("a", 20, 1), chosen("a", 40, 1)[..20]);
        assert_ne!(chosen("a", 20, 1), chosen("a", 20, 2));
        assert_eq!(chosen("a", 300, 1).len(), 200);
    }

    #[test]
    fn the_package_and_its_cheap_dependents_come_first() {
        let needs: [(&str, &[&str]); 5] = [
            ("arena-model", &["serde"]),
            ("arena-games", &["arena-model"]),
            ("arena-engine", &["arena-model"]),
            ("arena-server", &["arena-engine"]),
            ("arena-nats", &[]),
        ];
        let owned = |name: &&str| (*name).to_owned();
        let needs = needs.iter().map(|(name, needs)| (owned(name), needs.iter().map(owned).collect())).collect();
        let cases = [
            ("arena-model", [&["arena-model"][..], &["arena-games"], &["arena-engine", "arena-server"]]),
            ("arena-server", [&["arena-server"], &[], &[]]),
        ];
        for (package, expected) in cases {
            assert_eq!(groups(&needs, package), expected);
        }
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escape("replace a::b -> (u8) with [x]*é"), r"replace a::b \-> \(u8\) with \[x\]\*é");
    }
}
