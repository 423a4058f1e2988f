//! The repository's rules that neither the compiler nor clippy checks. Each rule is a function from the contents of
//! the repository to complaints. A complaint names the file and line, the fault and the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::budget;
use crate::cargo::{graph, metadata, say};

/// The files that the repository must contain.
const NEEDED: [&str; 10] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "deny.toml",
    "clippy.toml",
    ".ci/run",
    "bench/README.md",
];

/// The crates by layer, the lowest layer first. A crate depends on crates of earlier rows only.
const LAYERS: [&[&str]; 8] = [
    &["arena-model", "arena-nats"],
    &[
        "arena-check",
        "arena-games",
        "arena-identity",
        "arena-llm",
        "arena-ratings",
        "arena-sandbox",
        "arena-store",
        "arena-wire",
    ],
    &["arena-engine", "arena-house", "arena-record", "arena-script", "arena-tournament", "arena-web"],
    &["arena-match", "arena-python", "arena-report"],
    &["arena-players"],
    &["arena-eval", "arena-runner"],
    &["arena-server"],
    &["arena-cli"],
];

/// The pure crates: the same input gives the same bytes everywhere.
pub const PURE: [&str; 11] = [
    "arena-check",
    "arena-house",
    "arena-model",
    "arena-games",
    "arena-identity",
    "arena-ratings",
    "arena-record",
    "arena-report",
    "arena-tournament",
    "arena-web",
    "arena-wire",
];

/// Words that must not occur in pure code, with reasons.
const IMPURE: [(&str, &str); 15] = [
    ("SystemTime", "reads the clock"),
    ("Instant", "reads the clock"),
    ("std::env", "reads the environment"),
    ("std::fs", "does I/O"),
    ("std::io", "does I/O"),
    ("std::net", "does I/O"),
    ("std::process", "does I/O"),
    ("std::thread", "starts threads"),
    ("tokio", "does I/O"),
    ("async fn", "needs a runtime"),
    ("getrandom", "is ambient randomness"),
    ("now_v7", "reads the clock and is ambient randomness"),
    ("new_v4", "is ambient randomness"),
    ("HashMap", "has a random order; use BTreeMap"),
    ("HashSet", "has a random order; use BTreeSet"),
];

/// Crates that do I/O. No pure crate depends on one, directly or indirectly.
const IO: [&str; 14] = [
    "async-nats",
    "axum",
    "hyper",
    "mio",
    "nix",
    "rquickjs",
    "rusqlite",
    "rustix",
    "rustls",
    "socket2",
    "tempfile",
    "tokio",
    "tokio-postgres",
    "ureq",
];

/// Functions that return secrets, and the only file outside of `arena-model` that may call them.
const REVEALING: [&str; 2] = ["reveal_session", "reveal_message"];
const REVEALED_IN: &str = "crates/arena-server/src/routes/admin/export.rs";

/// The lint against unsafe code, in two parts so that this file doesn't contain it, and the only files that may allow
/// unsafe code. These files provide memory to a C library.
const UNGUARDED: (&str, &str) = ("unsafe_", "code");
const UNGUARDED_IN: [&str; 2] =
    ["crates/arena-script/src/worker/machine.rs", "crates/arena-script/src/worker/memory.rs"];

/// Signs of unfinished work, in two parts, so that this file doesn't contain them.
const UNFINISHED: [(&str, &str); 5] =
    [("todo", "!("), ("unimplemented", "!("), ("#[ign", "ore"), ("FIX", "ME"), ("XX", "X")];

/// Folders of personal files, in two parts, so that this file doesn't contain them.
const MACHINE_FOLDERS: [(&str, &str); 5] =
    [("/ro", "ot/"), ("/ho", "me/"), ("/Us", "ers/"), ("/wo", "rk/"), ("/mn", "t/")];

/// Checks all rules and fails with all complaints.
pub fn check(root: &Path) -> anyhow::Result<()> {
    let mut complaints: Vec<String> =
        NEEDED.iter().filter(|name| !root.join(name).is_file()).map(|name| format!("{name}: is missing")).collect();
    let files = files(root)?;
    complaints.extend(crate::prose::complaints(root, &files));
    complaints.extend(crate::quotes::complaints(&files));
    for (path, text) in &files {
        complaints.extend(about_file(path, text));
    }
    complaints.extend(about_types(&files));
    complaints.extend(crate::circles::complaints(&files));
    complaints.extend(budget::sizes(root, &files)?.iter().filter_map(budget::complaint));
    complaints.extend(about_packages(&packages(root)?));
    complaints.extend(about_purity(&dependencies(root)?));
    if complaints.is_empty() {
        say(&format!("{} files comply with the house rules", files.len()));
        return Ok(());
    }
    bail!("the house rules are violated:\n  {}", complaints.join("\n  "))
}

/// Returns the complaints about one text file. `path` is relative to the workspace, with `/` as the separator.
fn about_file(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let is_rust = path.ends_with(".rs");
    if is_rust && !text.starts_with("//!") {
        complaints.push(format!("{path}: begins without `//!`; describe the contents of the file"));
    }
    let in_pure = PURE.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
    let mut in_tests = path.ends_with("/tests.rs") || path.contains("/tests/");
    for (number, line) in (1..).zip(text.lines()) {
        in_tests |= line.starts_with("#[cfg(test)]");
        let is_comment = line.trim_start().starts_with("//");
        let mut complain = |what: String| complaints.push(format!("{path}:{number}: {what}"));
        for (mark, rest) in UNFINISHED.iter().filter(|_| is_rust) {
            if line.contains(&format!("{mark}{rest}")) {
                complain(format!("`{mark}{rest}` marks unfinished work; finish it"));
            }
        }
        for (folder, rest) in MACHINE_FOLDERS {
            if names_folder(line, &format!("{folder}{rest}")) {
                complain(format!(
                    "`{folder}{rest}` is a path on one machine; take it as an argument or from the system"
                ));
            }
        }
        let reveals = path.starts_with("crates/") && !path.starts_with("crates/arena-model/") && path != REVEALED_IN;
        for word in REVEALING.iter().filter(|word| reveals && has_word(line, word)) {
            complain(format!(
                "`{word}` reveals secrets; only {REVEALED_IN}, which needs the administrator's token, may call it"
            ));
        }
        let unguarded = format!("{}{}", UNGUARDED.0, UNGUARDED.1);
        if is_rust && !UNGUARDED_IN.contains(&path) && has_word(line, &unguarded) {
            complain(format!("`{unguarded}` is allowed in {} only", UNGUARDED_IN.join(" and ")));
        }
        for (word, why) in IMPURE.iter().filter(|_| in_pure && !in_tests && !is_comment) {
            if has_word(line, word) {
                complain(format!("pure crates must not contain `{word}`, which {why}"));
            }
        }
    }
    complaints
}

/// Returns true if `folder` is the start of an absolute path in the line, rather than a part of a longer path or
/// address.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|char| char.is_alphanumeric() || matches!(char, '.' | '-' | '_' | '/' | '~' | '}'))
    })
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Returns the complaints about type names that a crate defines in more than one file. A reader of one file can't tell
/// two types of the same name apart. Tests may repeat a name, and one file may define a type once for each platform.
fn about_types(files: &[(String, String)]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut first_files = BTreeMap::new();
    for TypeDefinition { package, name, path, line } in types(files) {
        let first = *first_files.entry((package, name)).or_insert(path);
        if first != path {
            complaints.push(format!(
                "{path}:{line}: `{name}` is also a type in {first}; a crate defines each type name once, so add \
                 the noun that distinguishes this type"
            ));
        }
    }
    complaints
}

/// The definition of a struct, enum or trait outside of tests.
pub struct TypeDefinition<'f> {
    /// The folder of the package, such as `crates/arena-model`.
    pub package: &'f str,
    pub name: &'f str,
    pub path: &'f str,
    /// The number of the line, from 1.
    pub line: usize,
}

/// Returns the definitions of types in the workspace's packages. `files` are paths and texts.
pub fn types(files: &[(String, String)]) -> Vec<TypeDefinition<'_>> {
    let mut types = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        let is_of_tests = path.contains("/tests/") || path.ends_with("/tests.rs");
        let is_of_workspace = ["crates/", "bench/", "xtask/"].iter().any(|folder| path.starts_with(folder));
        let Some((package, _)) = path.split_once("/src/").filter(|_| is_of_workspace && !is_of_tests) else { continue };
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in (1..).zip(code.lines()) {
            types.extend(defined_type(line).map(|name| TypeDefinition { package, name, path, line: number }));
        }
    }
    types
}

/// Returns the name of the struct, enum or trait that the line defines at its start.
fn defined_type(line: &str) -> Option<&str> {
    // The visibility may consist of two words: `pub(in path)`.
    let mut words = line.split(' ').skip_while(|word| word.starts_with("pub") || word.ends_with(')'));
    let keyword = words.next()?;
    let name = words.next()?.split(|char: char| !char.is_alphanumeric() && char != '_').next()?;
    ["struct", "enum", "trait"].contains(&keyword).then_some(name)
}

/// The data of a workspace package that the rules use.
#[derive(Debug, Clone, Default)]
struct Package {
    name: String,
    /// The workspace's crates on which the package depends, without those that only its tests use.
    needs: Vec<String>,
    /// The content of the package's `Cargo.toml`.
    manifest: String,
}

/// Returns the complaints about the manifests and the dependencies between the crates.
fn about_packages(packages: &[Package]) -> Vec<String> {
    let layer = |name: &str| LAYERS.iter().position(|names| names.contains(&name));
    let mut complaints = Vec::new();
    for Package { name, needs, manifest } in packages {
        for line in ["[lints]\nworkspace = true", "license.workspace = true", "publish.workspace = true"] {
            if !manifest.contains(line) {
                complaints.push(format!("{name}: its Cargo.toml lacks `{}`", line.replace('\n', " ")));
            }
        }
        let Some(own) = layer(name) else {
            // The development tools (test kit, bench, xtask) may depend on all crates.
            if name.starts_with("arena-") && !["arena-testkit", "arena-bench"].contains(&name.as_str()) {
                complaints.push(format!("{name}: is not in LAYERS; add it in xtask/src/rules.rs and ARCHITECTURE.md"));
            }
            continue;
        };
        for need in needs {
            match layer(need) {
                Some(layer) if layer < own => {}
                _ => complaints
                    .push(format!("{name}: depends on {need}, which is not in a lower layer; see ARCHITECTURE.md")),
            }
        }
    }
    complaints
}

/// Returns the complaints about pure crates that depend on a crate that does I/O. Each complaint has the chain of
/// dependencies. `dependencies` maps each package to its direct dependencies.
fn about_purity(dependencies: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut complaints = Vec::new();
    for name in PURE {
        let mut paths = vec![vec![name.to_owned()]];
        let mut seen = BTreeSet::new();
        while let Some(path) = paths.pop() {
            let last = path.last().map(String::as_str).unwrap_or_default();
            if IO.contains(&last) {
                complaints.push(format!("{name}: is pure, but depends on {last}: {}", path.join(" -> ")));
                break;
            }
            for next in dependencies.get(last).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    paths.push([path.clone(), vec![next.clone()]].concat());
                }
            }
        }
    }
    complaints
}

/// Returns the direct dependencies of each package by name, resolved for this machine, without those of tests and build
/// scripts.
fn dependencies(root: &Path) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let metadata = graph(root)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = list(&metadata["packages"]);
    let names: BTreeMap<String, String> =
        packages.iter().map(|package| (text(&package["id"]), text(&package["name"]))).collect();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let normal = list(&node["deps"])
            .into_iter()
            .filter(|dependency| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()));
        let needs = normal.filter_map(|dependency| names.get(&text(&dependency["pkg"])).cloned());
        let name = names.get(&text(&node["id"])).cloned().unwrap_or_default();
        all.entry(name).or_default().extend(needs);
    }
    Ok(all)
}

fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let metadata = metadata(root)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let manifest = text(&package["manifest_path"]);
            Ok(Package {
                name: text(&package["name"]),
                needs: list(&package["dependencies"])
                    .iter()
                    .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
                    .map(|dependency| text(&dependency["name"]))
                    .filter(|name| name.starts_with("arena-"))
                    .collect(),
                manifest: fs::read_to_string(&manifest).with_context(|| format!("cannot read {manifest}"))?,
            })
        })
        .collect()
}

/// Returns the text files of the workspace with their relative paths. Build products, generated files and hidden
/// files are left out, except for the hidden folders of cargo and of the CI.
pub fn files(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let hidden = name.starts_with('.') && ![".cargo", ".ci"].contains(&name.as_str());
                if !hidden && !["target", "node_modules", "__pycache__", "arena-data"].contains(&name.as_str()) {
                    folders.push(path);
                }
            // In a git worktree, `.git` is a file instead of a folder.
            } else if kind.is_file() && !["Cargo.lock", ".git"].contains(&name.as_str()) {
                // Binary files have no lines to check.
                if let Ok(text) = fs::read_to_string(entry.path()) {
                    files.push((path.to_string_lossy().replace('\\', "/"), text));
                }
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, complaints: &[&str]) {
        let heard = about_file(path, text);
        assert_eq!(heard.len(), complaints.len(), "{heard:#?}");
        for (heard, part) in heard.iter().zip(complaints) {
            assert!(heard.contains(part), "{heard:?} lacks {part:?}");
        }
    }

    #[test]
    fn rust_files_begin_with_a_doc_comment() {
        check("crates/a/src/b.rs", "//! The letter b.\n", &[]);
        check("crates/a/src/b.rs", "mod c;\n", &["begins without"]);
        check("README.md", "# A", &[]);
    }

    #[test]
    fn unfinished_work_is_found() {
        let line = |(mark, rest): &(&str, &str)| format!("//! A file.\n{mark}{rest})\n");
        for mark in &UNFINISHED {
            check("crates/a/src/b.rs", &line(mark), &[":2: "]);
        }
    }

    #[test]
    fn machine_paths_differ_from_addresses() {
        let [(folder, rest), ..] = MACHINE_FOLDERS;
        check("notes.md", &format!("see {folder}{rest}x"), &["path on one machine"]);
        check("notes.md", &format!("see https://example.org{folder}{rest}x and data{folder}{rest}"), &[]);
    }

    #[test]
    fn pure_crates_read_no_clock() {
        let text = "//! A rule.\nuse std::time::SystemTime;\n/// No SystemTime here.\n#[cfg(test)]\nuse std::fs;\n";
        check(
            "crates/arena-model/src/rule.rs",
            text,
            &[":2: pure crates must not contain `SystemTime`, which reads the clock"],
        );
        check("crates/arena-engine/src/clock.rs", text, &[]);
        check("crates/arena-model/src/rule.rs", "//! A rule.\nstruct HashMapless;\n", &[]);
    }

    #[test]
    fn only_the_administrators_export_may_reveal_secrets() {
        let text = "//! A route.\nuse arena_model::reveal_session;\n";
        check("crates/arena-server/src/routes/list.rs", text, &[":2: `reveal_session` reveals secrets"]);
        check(REVEALED_IN, text, &[]);
        check("crates/arena-model/src/view.rs", text, &[]);
    }

    #[test]
    fn only_two_files_may_allow_unsafe_code() {
        let text = format!("//! A list.\n#![allow({}{})]\n", UNGUARDED.0, UNGUARDED.1);
        check("crates/arena-engine/src/list.rs", &text, &[":2: `"]);
        check(UNGUARDED_IN[0], &text, &[]);
    }

    #[test]
    fn a_crate_defines_each_type_name_once() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let fine = [
            file("bench/src/kind.rs", "pub struct Kind;\n"),
            file("crates/a/src/kind.rs", "#[cfg(unix)]\nenum Kind {\n}\n#[cfg(not(unix))]\nenum Kind {\n}\n"),
            file("crates/a/src/kind/tests.rs", "struct Kind;\n"),
            file("crates/a/src/line.rs", "// enum Kind {\n    enum Kind {\n#[cfg(test)]\nmod tests {\nenum Kind {\n"),
            file("crates/a/src/tests/line.rs", "struct Kind;\n"),
            file("crates/a/tests/it/kind.rs", "struct Kind;\n"),
            file("crates/b/src/kind.rs", "pub(crate) trait Kind {\n"),
            file("crates/b/src/notes.md", "struct Kind;\n"),
        ];
        assert_eq!(about_types(&fine), [""; 0]);
        for again in
            ["struct Kind;", "pub struct Kind<'k> {", "pub(crate) enum Kind {", "pub(in crate::a) trait Kind: A {"]
        {
            let wrong = [&fine[..], &[file("crates/a/src/page.rs", &format!("//! A page.\n{again}\n"))]].concat();
            let complaints = about_types(&wrong);
            let [complaint] = &complaints[..] else { panic!("{complaints:#?}") };
            assert!(
                complaint.starts_with("crates/a/src/page.rs:2: `Kind` is also a type in crates/a/src/kind.rs;"),
                "{complaint}"
            );
        }
    }

    #[test]
    fn pure_crates_reach_no_io() {
        let one = |name: &str, needs: &[&str]| (name.to_owned(), needs.iter().map(|need| (*need).to_owned()).collect());
        let mut all = BTreeMap::from([one("arena-web", &["maud", "itoa"]), one("arena-store", &["rusqlite"])]);
        assert_eq!(about_purity(&all), [""; 0]);
        all.extend([one("maud", &["http"]), one("http", &["maud", "tokio"])]);
        assert_eq!(
            about_purity(&all),
            ["arena-web: is pure, but depends on tokio: arena-web -> maud -> http -> tokio"]
        );
    }

    #[test]
    fn crates_depend_on_lower_layers_only() {
        let package = |name: &str, needs: &[&str]| Package {
            name: name.to_owned(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            manifest: "license.workspace = true\npublish.workspace = true\n[lints]\nworkspace = true".to_owned(),
        };
        let fine = [
            package("arena-cli", &["arena-server", "arena-model"]),
            package("arena-games", &["arena-model"]),
            package("arena-testkit", &["arena-cli"]),
        ];
        assert_eq!(about_packages(&fine), Vec::<String>::new());
        let wrong =
            [package("arena-model", &["arena-store"]), package("arena-games", &["arena-check"]), Package::default()];
        assert_eq!(about_packages(&wrong).len(), 2 + 3);
    }
}
