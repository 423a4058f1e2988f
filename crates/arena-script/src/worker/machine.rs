//! The JavaScript engine: compiles the modules of a script once, and runs each call in a world of its own.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use rquickjs::context::intrinsic::{Date, Eval, Json, MapSet, Promise, Proxy, RegExp, RegExpCompiler, TypedArrays};
use rquickjs::loader::{ImportAttributes, Loader, Resolver, bundle::Bundle};
use rquickjs::{Context, Ctx, Error, Function, Module, Object, Runtime, WriteOptions};

use super::strip::strip;
use crate::wire::{Failure, Reply};
use crate::{Limits, Problem};

/// What a call's world has beside the core of the language. Not `Eval`: no text becomes code while a script runs. Not `WeakRef`, which
/// shows when memory is tidied up, and no `Performance`, which reads a clock.
type World = (RegExpCompiler, RegExp, Json, Proxy, MapSet, TypedArrays, Promise, Date);

/// Our modules: names under which they are imported, and texts.
const OURS: [(&str, &str); 6] = [
    ("arena:session", include_str!("../../assets/session.js")),
    ("@specarena/engine/types", include_str!("../../assets/types.js")),
    ("@specarena/engine/utils", include_str!("../../assets/utils.js")),
    ("@specarena/engine/challenge-design/BaseChallenge", include_str!("../../assets/base-challenge.js")),
    ("prando", include_str!("../../assets/prando.js")),
    (HOST, include_str!("../../assets/host.js")),
];

/// The module that is called.
const HOST: &str = "arena:host";

/// By this name `arena:host` imports the script itself.
const SCRIPT: &str = "arena:script";

/// What begins so is between our modules.
const PRIVATE: &str = "arena:";

/// The modules that scripts may import beside their own.
pub(crate) fn importable() -> impl Iterator<Item = &'static str> {
    OURS.iter().map(|(name, _)| *name).filter(|name| !name.starts_with(PRIVATE))
}

/// What is compiled has to live as long as the process, since that is how the bindings take it without trust in the caller. A worker
/// compiles each version of a script once and is ended with it.
type Bytecodes = &'static [(&'static str, &'static [u8])];

/// A script that is ready to run.
pub(super) struct Compiled {
    bytecodes: Bytecodes,
    /// The file of each import of each file.
    resolved: Rc<BTreeMap<(String, String), String>>,
    /// [`Stripped::lines`] of each file.
    lines: BTreeMap<String, Vec<u32>>,
    /// The file that exports `createChallenge`.
    entry: String,
}

impl Compiled {
    /// The files that it is made of.
    pub(super) fn files(&self) -> impl Iterator<Item = &String> {
        self.lines.keys()
    }
}

/// Compiles a script. `files` are those of its folder, by their paths in it; only what is imported is looked at.
pub(super) fn compile(files: &BTreeMap<String, String>) -> Result<Compiled, Vec<Problem>> {
    let entries: Vec<&str> = ["index.ts", "index.js"].into_iter().filter(|name| files.contains_key(*name)).collect();
    let entry = match entries[..] {
        [entry] => entry.to_owned(),
        [] => return Err(vec![Problem::of("index.ts", "is missing: a challenge's script is index.ts or index.js")]),
        _ => {
            return Err(vec![Problem::of(
                "index.js",
                "is there beside index.ts, and only one of them can be the script",
            )]);
        }
    };
    let (mut resolved, mut codes, mut lines) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let (mut problems, mut seen) = (Vec::new(), BTreeSet::from([entry.clone()]));
    let mut open = VecDeque::from([entry.clone()]);
    while let Some(file) = open.pop_front() {
        let text = &files[&file];
        if file.ends_with(".json") {
            match serde_json::from_str::<serde_json::Value>(text) {
                Ok(value) => {
                    let literal = serde_json::Value::String(value.to_string());
                    codes.insert(file.clone(), format!("export default JSON.parse({literal});"));
                    lines.insert(file, Vec::new());
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
        for (name, line) in stripped.imports {
            if importable().any(|ours| ours == name) {
                continue;
            }
            match find(&file, &name, files) {
                Ok(found) => {
                    if seen.insert(found.clone()) {
                        open.push_back(found.clone());
                    }
                    resolved.insert((file.clone(), name), found);
                }
                Err(message) => problems.push(Problem::at(&file, line, message)),
            }
        }
        codes.insert(file.clone(), stripped.code);
        lines.insert(file, stripped.lines);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let resolved = Rc::new(resolved);
    let codes = Rc::new(codes);
    let mut bytecodes: Vec<(&'static str, &'static [u8])> = Vec::new();
    let ours = OURS.iter().map(|(name, text)| (*name, *text));
    let theirs = codes.iter().map(|(name, code)| (name.as_str(), code.as_str()));
    for (name, code) in ours.chain(theirs) {
        match bytecode(name, code, &entry, &resolved, &codes) {
            Ok(bytes) => {
                bytecodes.push((Box::leak(name.to_owned().into_boxed_str()), Box::leak(bytes.into_boxed_slice())))
            }
            Err(message) => problems.push(problem_in(name, &message, &lines)),
        }
    }
    if problems.is_empty() {
        Ok(Compiled { bytecodes: Box::leak(bytecodes.into_boxed_slice()), resolved, lines, entry })
    } else {
        Err(problems)
    }
}

/// The file that `file` means by `name`.
fn find(file: &str, name: &str, files: &BTreeMap<String, String>) -> Result<String, String> {
    if !name.starts_with("./") && !name.starts_with("../") {
        let known = importable().collect::<Vec<_>>().join(", ");
        return Err(format!(
            "`{name}` can't be imported; there are {known}, and the folder's own files by `./name.ts`"
        ));
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
    // As TypeScript has it: `./words.js` means `./words.ts` where there is one, and the ending may be left out.
    let stem = path.strip_suffix(".js").unwrap_or(&path);
    let candidates = [path.clone(), format!("{stem}.ts"), format!("{path}.js"), format!("{path}/index.ts")];
    let is_module = |path: &&String| [".ts", ".js", ".json"].iter().any(|ending| path.ends_with(ending));
    let found = candidates.iter().filter(is_module).find(|path| files.contains_key(*path));
    found.cloned().ok_or_else(|| {
        format!("`{name}` isn't there: {path} is no .ts, .js or .json file of the challenge's folder (links aren't followed)")
    })
}

/// Finds modules by where they are imported.
struct Names {
    entry: String,
    resolved: Rc<BTreeMap<(String, String), String>>,
}

impl Resolver for Names {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String, Error> {
        // A call begins with an import that comes from nowhere.
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

/// Loads modules as text, while they are compiled.
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
    let told = |error: Error| error.to_string();
    let runtime = Runtime::new().map_err(told)?;
    let names = Names { entry: entry.to_owned(), resolved: Rc::clone(resolved) };
    runtime.set_loader(names, Texts(Rc::clone(codes)));
    let context = Context::custom::<(World, Eval)>(&runtime).map_err(told)?;
    context.with(|ctx| {
        let module = Module::declare(ctx.clone(), name, code);
        let written = module.and_then(|module| module.write(WriteOptions { strip_source: true, ..Default::default() }));
        written.map_err(|error| thrown(&ctx, error).0)
    })
}

/// What was thrown: its message, and the stack behind it.
fn thrown(ctx: &Ctx<'_>, error: Error) -> (String, String) {
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
    let text = |name: &str| object.get::<_, String>(name).unwrap_or_default();
    let (name, message, stack) = (text("name"), text("message"), text("stack"));
    (if name.is_empty() { message } else { format!("{name}: {message}") }, stack)
}

/// A fault of a module that showed when it was compiled.
fn problem_in(name: &str, message: &str, lines: &BTreeMap<String, Vec<u32>>) -> Problem {
    Problem { file: name.to_owned(), line: None, message: traced(message, lines) }
}

/// Puts the author's lines in place of those that ran: `index.ts:7:3` becomes `index.ts:12`.
fn traced(text: &str, lines: &BTreeMap<String, Vec<u32>>) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if line.contains("arena:") || OURS.iter().any(|(name, _)| line.contains(&format!("({name}:"))) {
            continue;
        }
        let place = lines.iter().find_map(|(file, lines)| {
            let start = line.find(&format!("({file}:"))? + 1;
            let end = start + line[start..].find(')')?;
            let ran: usize = line[start + file.len() + 1..end].split(':').next()?.parse().ok()?;
            let source = lines.get(ran.checked_sub(1)?).copied().filter(|line| *line > 0);
            Some((start, end, source.map_or_else(|| file.clone(), |line| format!("{file}:{line}"))))
        });
        match place {
            Some((start, end, place)) => out.push_str(&format!("{}{place}{}", &line[..start], &line[end..])),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// Runs one call in a world of its own: nothing of it is left afterwards but the answer.
pub(super) fn call(script: &Compiled, input: &str, limits: &Limits) -> Reply {
    let is_spent = Rc::new(Cell::new(false));
    let (mut ticks, most) = (0, limits.ticks);
    let spent = Rc::clone(&is_spent);
    let world = || -> Result<(Runtime, Context), Error> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(limits.memory_bytes);
        runtime.set_max_stack_size(limits.stack_bytes);
        // Tidying up early costs more than the memory that most calls take.
        runtime.set_gc_threshold(limits.memory_bytes / 4);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            ticks += 1;
            spent.set(ticks > most);
            ticks > most
        })));
        let names = Names { entry: script.entry.clone(), resolved: Rc::clone(&script.resolved) };
        runtime.set_loader(names, Bundled(script.bytecodes));
        let context = Context::custom::<World>(&runtime)?;
        Ok((runtime, context))
    };
    let failed =
        |message: String, stack: String| Reply::Failed(Failure { message, stack: traced(&stack, &script.lines) });
    let (_runtime, context) = match world() {
        Ok(world) => world,
        Err(error) => return failed(format!("the engine can't be started: {error}"), String::new()),
    };
    let reply = context.with(|ctx| {
        let answer = Module::import(&ctx, HOST)
            .and_then(|loaded| loaded.finish::<Object<'_>>())
            .and_then(|host| host.get::<_, Function<'_>>("call"))
            .and_then(|function| function.call::<_, rquickjs::Promise<'_>>((input,)))
            .and_then(|promise| promise.finish::<String>());
        match answer {
            Ok(answer) => match Reply::read(&answer) {
                Ok(reply) => reply,
                Err(error) => failed(format!("the answer isn't one: {error}"), String::new()),
            },
            Err(Error::WouldBlock) => {
                failed("a promise never settles: nothing will ever answer it".to_owned(), String::new())
            }
            Err(error) => {
                let (message, stack) = thrown(&ctx, error);
                failed(message, stack)
            }
        }
    });
    let reply = match reply {
        Reply::Failed(failure) => Reply::Failed(Failure { stack: traced(&failure.stack, &script.lines), ..failure }),
        reply => reply,
    };
    // Caught or not: what comes of a call that was stopped isn't the script's doing alone.
    if is_spent.get() {
        let message =
            format!("took more than its {most} ticks of computing (a tick is 10,000 calls and rounds of loops)");
        let stack = if let Reply::Failed(failure) = reply { failure.stack } else { String::new() };
        return Reply::Failed(Failure { message, stack });
    }
    match reply {
        Reply::Failed(failure) if failure.message.contains("out of memory") => {
            let message = format!("took more than its {} MiB of memory", limits.memory_bytes >> 20);
            Reply::Failed(Failure { message, ..failure })
        }
        reply => reply,
    }
}

/// Loads modules that have been compiled.
struct Bundled(Bytecodes);

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
