//! Circles of imports inside a crate. Files that import each other, directly or through others, can only be read
//! together, so few may. Tests and re-exports don't count, and neither does what a file imports from the files below it:
//! a folder is read from the top.

use std::collections::{BTreeMap, BTreeSet};

/// The greatest number of files in a circle.
const MOST: usize = 4;

/// Tables with a line for each file of a kind. What they import from the files they list doesn't count, since the next
/// file of the kind shall need no more than such a line.
const TABLES: [&str; 1] = ["crates/arena-tournament/src/format.rs"];

/// The path of a module in its crate. The root is empty.
type Module = Vec<String>;

/// Returns a complaint for each circle of more than [`MOST`] files in a crate. A file is its path and its text.
pub fn complaints(files: &[(String, String)]) -> Vec<String> {
    let mut crates = BTreeMap::<&str, BTreeMap<Module, (&str, &str)>>::new();
    for (path, text) in files {
        let Some((name, file)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) else {
            continue;
        };
        let Some(module) = file.strip_suffix(".rs").filter(|file| !file.split('/').any(|part| part == "tests")) else {
            continue;
        };
        let module = module.split('/').filter(|part| !["lib", "main", "mod"].contains(part)).map(str::to_owned);
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let modules = crates.entry(name).or_default();
        // A program beside a library only calls it.
        if file != "main.rs" {
            modules.insert(module.collect(), (path.as_str(), code));
        }
    }
    let complaint = |circle: Vec<&str>| {
        let others = circle[1..].join(", ");
        format!("{}: {} files import each other in a circle (at most {MOST}): {others}", circle[0], circle.len())
    };
    crates.values().flat_map(circles).map(complaint).collect()
}

/// Returns the paths of the files in each circle of more than [`MOST`] files.
fn circles<'f>(modules: &BTreeMap<Module, (&'f str, &str)>) -> Vec<Vec<&'f str>> {
    let imports = |public| {
        let of_module = move |(module, (_, code)): (&Module, &(&str, &str))| (module.clone(), paths(code, public));
        modules.iter().map(of_module).collect::<BTreeMap<_, _>>()
    };
    // The module behind each re-exported name.
    let mut exported = BTreeMap::new();
    for (module, paths) in imports(true) {
        for path in &paths {
            let (path, renamed) =
                path.split_once(" as ").map_or((path.as_str(), None), |(path, name)| (path, Some(name)));
            if let Some((from, Some(name))) = resolve(modules, &module, path).filter(|(from, _)| *from != module) {
                exported.insert((module.clone(), renamed.map_or(name, str::to_owned)), from);
            }
        }
    }
    let mut reached: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
    let privately = imports(false);
    for (module, (path, _)) in modules {
        let targets = privately[module].iter().filter_map(|path| {
            let (mut target, name) = resolve(modules, module, path)?;
            while let Some(behind) = exported.get(&(target.clone(), name.clone()?)) {
                target.clone_from(behind);
            }
            Some(target)
        });
        let is_listed = |target: &Module| TABLES.contains(path) && target.len() > 1;
        reached.insert(module, targets.filter(|target| !target.starts_with(module) && !is_listed(target)).collect());
    }
    // Adds what the imported modules import, until nothing is new.
    let count = |reached: &BTreeMap<&Module, BTreeSet<Module>>| reached.values().map(BTreeSet::len).sum::<usize>();
    let mut before = 0;
    while before < count(&reached) {
        before = count(&reached);
        for module in modules.keys() {
            let more: Vec<Module> = reached[module].iter().flat_map(|target| reached[target].clone()).collect();
            reached.entry(module).or_default().extend(more);
        }
    }
    let circle = |module: &Module| -> Vec<&'f str> {
        let both = |other: &&Module| reached[module].contains(*other) && reached[*other].contains(module);
        modules.keys().filter(both).map(|other| modules[other].0).collect()
    };
    let found: BTreeSet<Vec<&str>> = modules.keys().map(circle).filter(|circle| circle.len() > MOST).collect();
    found.into_iter().collect()
}

/// Returns the module that a path in `module` leads to, and the name in it.
fn resolve(modules: &BTreeMap<Module, (&str, &str)>, module: &Module, path: &str) -> Option<(Module, Option<String>)> {
    let path = path.split(" as ").next().unwrap_or_default();
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut found = match *parts.peek()? {
        "crate" => Module::new(),
        "super" | "self" => module.clone(),
        child => {
            let child = [module.as_slice(), &[child.to_owned()]].concat();
            modules.contains_key(&child).then(|| module.clone())?
        }
    };
    while let Some(word) = parts.next_if(|part| ["crate", "self", "super"].contains(part)) {
        if word == "super" {
            found.pop();
        }
    }
    while let Some(part) = parts.next_if(|part| modules.contains_key(&[&found[..], &[(*part).to_owned()]].concat())) {
        found.push(part.to_owned());
    }
    Some((found, parts.next().map(str::to_owned)))
}

/// Returns the paths in the code of a file: those of `pub use`, or those of `use` and of expressions.
fn paths(code: &str, public: bool) -> Vec<String> {
    let mut paths = Vec::new();
    let mut lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    while let Some(line) = lines.next() {
        let exported =
            ["pub use ", "pub(crate) use ", "pub(super) use "].iter().find_map(|word| line.strip_prefix(word));
        let imported = line.strip_prefix("use ");
        if let Some(tree) = exported.or(imported) {
            let mut tree = tree.to_owned();
            while !tree.contains(';') {
                tree += lines.next().unwrap_or(";");
            }
            if exported.is_some() == public {
                spread("", tree.trim_end_matches(';'), &mut paths);
            }
        } else if !public {
            let is_path = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == ':';
            paths.extend(line.split(|char| !is_path(char)).filter(|path| path.contains("::")).map(str::to_owned));
        }
    }
    paths
}

/// Adds the paths of a tree such as `a::{b, c::{d, e}}`, each after `prefix`.
fn spread(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((before, inside)) = tree.split_once('{') else {
        // The last comma is followed by nothing.
        if !tree.trim().is_empty() {
            paths.push(format!("{prefix}{}", tree.trim()));
        }
        return;
    };
    let (mut depth, mut from) = (0, 0);
    for (at, char) in inside.char_indices() {
        match char {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                spread(&format!("{prefix}{}", before.trim()), &inside[from..at], paths);
                from = at + 1;
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_through_trees_and_re_exports() {
        let file = |name: &str, text: &str| (format!("crates/a/src/{name}.rs"), text.to_owned());
        let files = |last: &str| {
            vec![
                file("lib", "mod one;\npub use one::One;\n"),
                file("one", "use crate::{two::{three::Three, More}, five::Five};\n"),
                file("two", "mod three;\nuse three::Three;\n"),
                file("two/three", "use super::super::four::Four;\n"),
                file("four", "use crate::six::Six as Other;\n"),
                file("six", "fn six() {\n    crate::five::five();\n}\n"),
                file("five", last),
                file("tests", "use crate::one::One;\n"),
            ]
        };
        assert_eq!(complaints(&files("use std::fs;\n#[cfg(test)]\nmod tests {\nuse crate::One;\n")), [""; 0]);
        assert_eq!(
            complaints(&files("use crate::One;\n")),
            ["crates/a/src/five.rs: 5 files import each other in a circle (at most 4): crates/a/src/four.rs, \
              crates/a/src/one.rs, crates/a/src/six.rs, crates/a/src/two/three.rs"]
        );
    }
}
