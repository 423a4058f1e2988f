//! The compilation of scripts: their modules are found by their imports, stripped of types and made to bytecode once.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use rquickjs::context::intrinsic::{Date, Eval, Json, MapSet, Promise, Proxy, RegExp, RegExpCompiler, TypedArrays};
use rquickjs::loader::{ImportAttributes, Loader, Resolver, bundle::Bundle};
use rquickjs::{Context, Ctx, Error, Module, Runtime, WriteOptions};

use super::strip::strip;
use crate::{Problem, ScriptKind};

/// The built-in objects of a call's world, beside the core of the language. `Eval` is missing, so a script can't turn
/// text into code. `WeakRef` is missing because it reveals garbage collection, and `Performance` because it reads a
/// clock.
pub(super) type AllBuiltIn = (RegExpCompiler, RegExp, Json, Proxy, MapSet, TypedArrays, Promise, Date);

/// The built-in objects of a plain world. It lacks `TypedArrays` and `Date`, which few scripts use and which take a
/// third of the time to create a world.
pub(super) type PlainBuiltIn = (RegExpCompiler, RegExp, Json, Proxy, MapSet, Promise);

/// The names by which a script can detect that it runs in a plain world. A script that uses none of them gets a plain
/// world. Modules are strict, so only `globalThis` gives access to the global object, and no other built-in object
/// creates dates or typed arrays.
pub(super) const NOT_PLAIN: [&str; 18] = [
    "ArrayBuffer",
    "Atomics",
    "BigInt64Array",
    "BigUint64Array",
    "DataView",
    "Date",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "SharedArrayBuffer",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    GLOBAL,
];

pub(super) const GLOBAL: &str = "globalThis";

/// The modules that this crate provides to scripts: import names and texts.
const OURS: [(&str, &str); 6] = [
    (SESSION, include_str!("../../assets/session.js")),
    (SCORING, include_str!("../../assets/scoring.js")),
    ("@specarena/engine/types", include_str!("../../assets/types.js")),
    ("@specarena/engine/utils", include_str!("../../assets/utils.js")),
    ("@specarena/engine/challenge-design/BaseChallenge", include_str!("../../assets/base-challenge.js")),
    ("prando", include_str!("../../assets/prando.js")),
];

/// The import name of `session.js`, which runs the calls of challenges.
const SESSION: &str = "arena:session";

/// The import name of `scoring.js`, which runs the calls of strategies.
const SCORING: &str = "arena:scoring";

/// The import name of the script itself.
pub(super) const SCRIPT: &str = "arena:script";

/// The prefix of import names that scripts can't use.
const PRIVATE: &str = "arena:";

/// Returns the modules that scripts may import beside their own.
pub(crate) fn importable() -> impl Iterator<Item = &'static str> {
    OURS.iter().map(|(name, _)| *name).filter(|name| !name.starts_with(PRIVATE))
}

/// Compiled modules, by name. They live as long as the process, because the safe bindings require this. A worker
/// compiles each version of a script only once, so it leaks little memory.
type Bytecodes = &'static [(&'static str, &'static [u8])];

/// A script that is ready to run.
pub(super) struct Compiled {
    pub(super) bytecodes: Bytecodes,
    /// The file of each import, by importing file and import name.
    pub(super) resolved: Rc<BTreeMap<(String, String), String>>,
    /// The imported files, the entry among them.
    pub(super) files: BTreeSet<String>,
    /// The file that exports `createChallenge`, or the strategy.
    pub(super) entry: String,
    /// The import name of the module that runs the calls.
    pub(super) session: &'static str,
    /// True if the script uses no name in [`NOT_PLAIN`], so that it runs in a plain world.
    pub(super) is_plain: bool,
    /// The number of the script's world in the [`Machine`]; `None` before the first call.
    pub(super) world: Cell<Option<usize>>,
}

/// Compiles a script. `files` are the files of its folder by path; only imported ones are compiled. `is_whole` is true
/// if `files` are all files of the folder. Then unused imports must exist too. A stored script has only the files that
/// it uses.
pub(super) fn compile(
    files: &BTreeMap<String, String>,
    kind: ScriptKind,
    is_whole: bool,
) -> Result<Compiled, Vec<Problem>> {
    let entries: Vec<&str> = ["index.ts", "index.js"].into_iter().filter(|name| files.contains_key(*name)).collect();
    let entry = match entries[..] {
        [entry] => entry.to_owned(),
        [] => return Err(vec![Problem::of("index.ts", "is missing; the script is index.ts or index.js")]),
        _ => return Err(vec![Problem::of("index.js", "exists beside index.ts; keep only one of them")]),
    };
    let Modules { codes, resolved, is_plain } = modules(files, &entry, is_whole)?;
    let (resolved, files, codes) = (Rc::new(resolved), codes.keys().cloned().collect(), Rc::new(codes));
    let (mut bytecodes, mut problems): (Vec<(&'static str, &'static [u8])>, _) = (Vec::new(), Vec::new());
    let ours = OURS.iter().map(|(name, text)| (*name, *text));
    let theirs = codes.iter().map(|(name, code)| (name.as_str(), code.as_str()));
    for (name, code) in ours.chain(theirs) {
        match bytecode(name, code, &entry, &resolved, &codes) {
            Ok(bytes) => {
                bytecodes.push((Box::leak(name.to_owned().into_boxed_str()), Box::leak(bytes.into_boxed_slice())))
            }
            Err(message) => problems.push(Problem::of(name, traced(&message, &files))),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Compiled {
        bytecodes: Box::leak(bytecodes.into_boxed_slice()),
        resolved,
        files,
        entry,
        session: match kind {
            ScriptKind::Challenge => SESSION,
            ScriptKind::Strategy => SCORING,
        },
        is_plain,
        world: Cell::new(None),
    })
}

/// The modules of a script before they are compiled.
struct Modules {
    /// The code of each imported file, without types.
    codes: BTreeMap<String, String>,
    /// As in [`Compiled`].
    resolved: BTreeMap<(String, String), String>,
    is_plain: bool,
}

/// Finds the entry's imports in all files that it imports, and removes the types.
fn modules(files: &BTreeMap<String, String>, entry: &str, is_whole: bool) -> Result<Modules, Vec<Problem>> {
    let mut modules = Modules { codes: BTreeMap::new(), resolved: BTreeMap::new(), is_plain: true };
    let (mut problems, mut seen) = (Vec::new(), BTreeSet::from([entry.to_owned()]));
    let mut open = VecDeque::from([entry.to_owned()]);
    while let Some(file) = open.pop_front() {
        let text = &files[&file];
        if file.ends_with(".json") {
            match serde_json::from_str::<serde_json::Value>(text) {
                Ok(value) => {
                    let literal = serde_json::Value::String(value.to_string());
                    modules.codes.insert(file, format!("export default JSON.parse({literal});"));
                }
                Err(error) => problems.push(Problem::at(&file, error.line() as u32, format!("isn't JSON: {error}"))),
            }
            continue;
        }
        let stripped = match strip(&file, text) {
            Ok(stripped) => stripped,
            Err(found) => {
                problems.extend(found);
                continue;
            }
        };
        modules.is_plain &= NOT_PLAIN.iter().all(|name| !stripped.globals.contains(*name));
        for (name, line) in stripped.imports.into_iter().filter(|(name, _)| importable().all(|ours| ours != name)) {
            match find(&file, &name, files) {
                Ok(found) => {
                    if seen.insert(found.clone()) {
                        open.push_back(found.clone());
                    }
                    modules.resolved.insert((file.clone(), name), found);
                }
                Err(message) => problems.push(Problem::at(&file, line, message)),
            }
        }
        // The file of an unused import must exist, although it isn't loaded, because the author expects it.
        for (name, line) in stripped.unused.into_iter().filter(|_| is_whole) {
            let is_there = importable().any(|ours| ours == name) || find_declared(&file, &name, files);
            if let (false, Err(message)) = (is_there, find(&file, &name, files)) {
                problems.push(Problem::at(&file, line, message));
            }
        }
        modules.codes.insert(file, stripped.code);
    }
    if problems.is_empty() { Ok(modules) } else { Err(problems) }
}

/// Returns true if the import `name` in `file` is a type declaration (`.d.ts`), which isn't loaded.
fn find_declared(file: &str, name: &str, files: &BTreeMap<String, String>) -> bool {
    let stem = [".d.ts", ".ts", ".js"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    find(file, &format!("{stem}.d.ts"), files).is_ok()
}

/// Returns the file of the import `name` in `file`.
fn find(file: &str, name: &str, files: &BTreeMap<String, String>) -> Result<String, String> {
    if !name.starts_with("./") && !name.starts_with("../") {
        let known = importable().collect::<Vec<_>>().join(", ");
        return Err(format!("`{name}` cannot be imported; available: {known}, and the folder's files as `./name.ts`"));
    }
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.pop().is_none() => return Err(format!("`{name}` is outside of the challenge's folder")),
            ".." => {}
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    // As in TypeScript: `./words.js` means `./words.ts` if that exists, and the extension may be omitted.
    let stem = path.strip_suffix(".js").unwrap_or(&path);
    let candidates = [path.clone(), format!("{stem}.ts"), format!("{path}.js"), format!("{path}/index.ts")];
    let is_module = |path: &&String| [".ts", ".js", ".json"].iter().any(|ending| path.ends_with(ending));
    let found = candidates.iter().filter(is_module).find(|path| files.contains_key(*path));
    found.cloned().ok_or_else(|| {
        format!("`{name}` doesn't exist: {path} isn't a .ts, .js or .json file of the challenge's folder (links aren't followed)")
    })
}

/// Resolves modules by the importing file.
pub(super) struct Names {
    pub(super) entry: String,
    pub(super) resolved: Rc<BTreeMap<(String, String), String>>,
}

impl Resolver for Names {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String, Error> {
        // The first imports of a call have no importing file.
        let from_ours = base.is_empty() || OURS.iter().any(|(ours, _)| *ours == base);
        if from_ours && name == SCRIPT {
            return Ok(self.entry.clone());
        }
        let known = OURS.iter().any(|(ours, _)| *ours == name) && (from_ours || !name.starts_with(PRIVATE));
        if known {
            return Ok(name.to_owned());
        }
        let key = (base.to_owned(), name.to_owned());
        self.resolved.get(&key).cloned().ok_or_else(|| Error::new_resolving(base, name))
    }
}

/// Loads modules as text for compilation.
struct Texts(Rc<BTreeMap<String, String>>);

impl Loader for Texts {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js>, Error> {
        let ours = OURS.iter().find(|(ours, _)| *ours == name).map(|(_, text)| *text);
        let text = ours.or_else(|| self.0.get(name).map(String::as_str)).ok_or_else(|| Error::new_loading(name))?;
        Module::declare(ctx.clone(), name, text)
    }
}

fn bytecode(
    name: &str,
    code: &str,
    entry: &str,
    resolved: &Rc<BTreeMap<(String, String), String>>,
    codes: &Rc<BTreeMap<String, String>>,
) -> Result<Vec<u8>, String> {
    let to_text = |error: Error| error.to_string();
    let runtime = Runtime::new().map_err(to_text)?;
    let names = Names { entry: entry.to_owned(), resolved: Rc::clone(resolved) };
    runtime.set_loader(names, Texts(Rc::clone(codes)));
    let context = Context::custom::<(AllBuiltIn, Eval)>(&runtime).map_err(to_text)?;
    context.with(|ctx| {
        let module = Module::declare(ctx.clone(), name, code);
        let written = module.and_then(|module| module.write(WriteOptions { strip_source: true, ..Default::default() }));
        written.map_err(|error| thrown(&ctx, error).0)
    })
}

/// Returns the message and the stack of an error.
pub(super) fn thrown(ctx: &Ctx<'_>, error: Error) -> (String, String) {
    if !matches!(error, Error::Exception) {
        return (error.to_string(), String::new());
    }
    let value = ctx.catch();
    let Some(object) = value.as_object() else {
        return (
            value.get::<String>().unwrap_or_else(|_| format!("a {} was thrown", value.type_name())),
            String::new(),
        );
    };
    // Reading a property may throw another value, which is ignored.
    let text = |name: &str| {
        object.get::<_, String>(name).unwrap_or_else(|_| {
            ctx.catch();
            String::new()
        })
    };
    let (name, message, stack) = (text("name"), text("message"), text("stack"));
    let summary = match (name.is_empty(), message.is_empty()) {
        (true, true) => "an object without a message was thrown".to_owned(),
        (true, false) => message,
        (false, _) => format!("{name}: {message}"),
    };
    (summary, stack)
}

/// Removes our own modules from a trace, and the columns: `index.ts:7:3` becomes `index.ts:7`.
pub(super) fn traced(text: &str, files: &BTreeSet<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if line.contains("arena:") || OURS.iter().any(|(name, _)| line.contains(&format!("({name}:"))) {
            continue;
        }
        let column = files.iter().find_map(|file| {
            let start = line.find(&format!("({file}:"))? + file.len() + 2;
            let end = start + line[start..].find(')')?;
            Some((start + line[start..end].find(':')?, end))
        });
        match column {
            Some((start, end)) => out.push_str(&format!("{}{}", &line[..start], &line[end..])),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// Loads compiled modules.
pub(super) struct Bundled(pub(super) Bytecodes);

impl Loader for Bundled {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js>, Error> {
        Bundle(self.0).load(ctx, name, attributes)
    }
}
