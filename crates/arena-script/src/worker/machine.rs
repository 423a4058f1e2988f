//! The JavaScript engine. It compiles a script's modules once and creates a *world* from them: an engine instance with
//! its global objects. Each call runs in that world's initial state.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use rquickjs::context::intrinsic::{Date, Eval, Json, MapSet, Promise, Proxy, RegExp, RegExpCompiler, TypedArrays};
use rquickjs::loader::{ImportAttributes, Loader, Resolver, bundle::Bundle};
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Error, FromJs, Function, Module, Object, Persistent, Runtime, Value, WriteOptions};

use arena_model::Seed;

use super::memory::{Image, Memory};
use super::strip::strip;
use crate::wire::{Failure, Reply};
use crate::{Limits, Problem, ScriptKind};

/// The built-in objects of a call's world, beside the core of the language. `Eval` is missing, so a script can't turn
/// text into code. `WeakRef` is missing because it reveals garbage collection, and `Performance` because it reads a
/// clock.
type AllBuiltIn = (RegExpCompiler, RegExp, Json, Proxy, MapSet, TypedArrays, Promise, Date);

/// The built-in objects of a plain world. It lacks `TypedArrays` and `Date`, which few scripts use and which take a
/// third of the time to create a world.
type PlainBuiltIn = (RegExpCompiler, RegExp, Json, Proxy, MapSet, Promise);

/// The names by which a script can detect that it runs in a plain world. A script that uses none of them gets a plain
/// world. Modules are strict, so only `globalThis` gives access to the global object, and no other built-in object
/// creates dates or typed arrays.
const NOT_PLAIN: [&str; 18] = [
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

const GLOBAL: &str = "globalThis";

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
const SCRIPT: &str = "arena:script";

/// The start of the answer that `session.js` and `scoring.js` write if the script fails.
const FAILED: &str = "{\"failed\":";

/// The prefix of import names that scripts can't use.
const PRIVATE: &str = "arena:";

/// Returns the modules that scripts may import beside their own.
pub(crate) fn importable() -> impl Iterator<Item = &'static str> {
    OURS.iter().map(|(name, _)| *name).filter(|name| !name.starts_with(PRIVATE))
}

/// The maximum number of rejected promises in the list. One would be enough to report a fault, but scripts await most
/// of them soon after the rejection.
const REJECTED: usize = 100;

/// Compiled modules, by name. They live as long as the process, because the safe bindings require this. A worker
/// compiles each version of a script only once, so it leaks little memory.
type Bytecodes = &'static [(&'static str, &'static [u8])];

/// A script that is ready to run.
pub(super) struct Compiled {
    bytecodes: Bytecodes,
    /// The file of each import, by importing file and import name.
    resolved: Rc<BTreeMap<(String, String), String>>,
    /// The imported files, the entry among them.
    files: BTreeSet<String>,
    /// The file that exports `createChallenge`, or the strategy.
    entry: String,
    /// The import name of the module that runs the calls.
    session: &'static str,
    /// True if the script uses no name in [`NOT_PLAIN`], so that it runs in a plain world.
    is_plain: bool,
    /// The number of the script's world in the [`Machine`]; `None` before the first call.
    world: Cell<Option<usize>>,
}

impl Compiled {
    pub(super) fn files(&self) -> impl Iterator<Item = &String> {
        self.files.iter()
    }
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
        _ => {
            return Err(vec![Problem::of("index.js", "exists beside index.ts; keep only one of them")]);
        }
    };
    let (mut resolved, mut codes) = (BTreeMap::new(), BTreeMap::new());
    let mut is_plain = true;
    let (mut problems, mut seen) = (Vec::new(), BTreeSet::from([entry.clone()]));
    let mut open = VecDeque::from([entry.clone()]);
    while let Some(file) = open.pop_front() {
        let text = &files[&file];
        if file.ends_with(".json") {
            match serde_json::from_str::<serde_json::Value>(text) {
                Ok(value) => {
                    let literal = serde_json::Value::String(value.to_string());
                    codes.insert(file, format!("export default JSON.parse({literal});"));
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
        is_plain &= NOT_PLAIN.iter().all(|name| !stripped.globals.contains(*name));
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
        // The file of an unused import must exist, although it isn't loaded, because the author expects it.
        for (name, line) in stripped.unused.into_iter().filter(|_| is_whole) {
            let is_there = importable().any(|ours| ours == name) || find_declared(&file, &name, files);
            if let (false, Err(message)) = (is_there, find(&file, &name, files)) {
                problems.push(Problem::at(&file, line, message));
            }
        }
        codes.insert(file, stripped.code);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let resolved = Rc::new(resolved);
    let files = codes.keys().cloned().collect();
    let codes = Rc::new(codes);
    let mut bytecodes: Vec<(&'static str, &'static [u8])> = Vec::new();
    let ours = OURS.iter().map(|(name, text)| (*name, *text));
    let theirs = codes.iter().map(|(name, code)| (name.as_str(), code.as_str()));
    for (name, code) in ours.chain(theirs) {
        match bytecode(name, code, &entry, &resolved, &codes) {
            Ok(bytes) => {
                bytecodes.push((Box::leak(name.to_owned().into_boxed_str()), Box::leak(bytes.into_boxed_slice())))
            }
            Err(message) => problems.push(problem_in(name, &message, &files)),
        }
    }
    if problems.is_empty() {
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
    } else {
        Err(problems)
    }
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

/// Returns the problem of a module that doesn't compile.
fn problem_in(name: &str, message: &str, files: &BTreeSet<String>) -> Problem {
    Problem { file: name.to_owned(), line: None, message: traced(message, files) }
}

/// Removes our own modules from a trace, and the columns: `index.ts:7:3` becomes `index.ts:7`.
fn traced(text: &str, files: &BTreeSet<String>) -> String {
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

pub(super) enum Answer {
    /// The text of a [`Reply`] from `session.js` or `scoring.js`. It isn't validated yet: a script can make them return
    /// any text.
    Written(String),
    Failed(Failure),
}

/// The memory of the engine. It contains one world at a time, and all worlds use the same addresses.
pub(super) struct Machine {
    memory: Memory,
    limits: Limits,
    worlds: Vec<World>,
    /// The number of the world that the memory contains in its initial state, if any.
    ready: Option<usize>,
}

/// A script's world in its initial state, in which each call starts.
///
/// The engine's handles point into the memory. The handles are valid only while the memory contains this world.
/// Dropping a handle at another time would corrupt the memory, so handles are never dropped.
struct World {
    engine: ManuallyDrop<Engine>,
    image: Image,
    /// The ticks used to create the world. They count for each call, as if each call had created the world itself.
    ticks: u32,
}

struct Engine {
    context: Context,
    begin: Persistent<Function<'static>>,
    act: Persistent<Function<'static>>,
    tell: Persistent<Function<'static>>,
    unawaited: Persistent<Function<'static>>,
    /// The script's exports; absent if each call evaluates the script again.
    exports: Option<Persistent<Value<'static>>>,
    /// The ticks that a call has used.
    ticks: Rc<Cell<u32>>,
    /// The promises that were rejected in this call. Empty between calls.
    rejected: Rc<RefCell<Rejected>>,
}

/// The rejected promises that the script hasn't awaited yet, with their reasons.
#[derive(Default)]
struct Rejected {
    kept: Vec<(Persistent<Value<'static>>, Persistent<Value<'static>>)>,
    /// The number of rejected promises beyond the list's limit.
    more: usize,
}

impl Rejected {
    fn note(&mut self, promise: Persistent<Value<'static>>, reason: Persistent<Value<'static>>, is_handled: bool) {
        let known = self.kept.iter().position(|(other, _)| *other == promise);
        match (is_handled, known) {
            (true, Some(at)) => drop(self.kept.remove(at)),
            (true, None) => self.more = self.more.saturating_sub(1),
            (false, _) if self.kept.len() < REJECTED => self.kept.push((promise, reason)),
            (false, _) => self.more += 1,
        }
    }

    /// Returns the first rejection; `None` if there is none. The inner value is its reason, or `None` if the list has
    /// no room for it.
    fn first(&self) -> Option<Option<Persistent<Value<'static>>>> {
        match self.kept.first() {
            Some((_, reason)) => Some(Some(reason.clone())),
            None => (self.more > 0).then_some(None),
        }
    }

    fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.more == 0
    }
}

impl Machine {
    pub(super) fn new(limits: Limits) -> io::Result<Machine> {
        Ok(Machine { memory: Memory::new(limits.memory_bytes)?, limits, worlds: Vec::new(), ready: None })
    }

    /// Runs one call in the script's world. The call leaves no data for the next one. With several inputs, runs the
    /// calls of a session from its creation in one world and returns the answer to the last.
    pub(super) fn call(&mut self, script: &Compiled, inputs: &[&str]) -> Answer {
        let failed =
            |message: String, stack: String| Answer::Failed(Failure { message, stack: traced(&stack, &script.files) });
        let number = match script.world.get() {
            Some(number) => number,
            None => match self.make(script) {
                Ok(number) => {
                    script.world.set(Some(number));
                    number
                }
                Err((message, stack)) => return failed(message, stack),
            },
        };
        self.put_back(number);
        self.ready = None;
        let world = &self.worlds[number];
        let Engine { context, begin, act, tell, unawaited, exports, ticks, rejected } = &*world.engine;
        let answer = context.with(|ctx| {
            let goes_on = || ticks.get() <= self.limits.ticks;
            let settled = |promise| settled::<Option<String>>(&ctx, promise, &goes_on);
            // Runs the call's remaining jobs; returns a text if a promise failed that the script doesn't await.
            let left = || -> Result<Option<String>, Error> {
                while goes_on() && ctx.execute_pending_job() {}
                // Borrowed only here: the code below may reject further promises.
                let first = rejected.borrow().first();
                let Some(reason) = first else { return Ok(None) };
                let reason = match reason {
                    Some(reason) => reason.restore(&ctx)?,
                    None => rquickjs::String::from_str(
                        ctx.clone(),
                        "(the reason is unknown, because there are too many rejections)",
                    )?
                    .into_value(),
                };
                unawaited.clone().restore(&ctx)?.call((reason,))
            };
            let answered = |input: &str| -> Result<String, Error> {
                ticks.set(world.ticks);
                // The world's time and randomness must be set before the script's first line, unless the script was
                // evaluated without them.
                begin.clone().restore(&ctx)?.call::<_, ()>((input,))?;
                let exports = match exports {
                    Some(exports) => exports.clone().restore(&ctx)?,
                    None => evaluate(&ctx, &goes_on)?,
                };
                let acted = settled(act.clone().restore(&ctx)?.call((exports,))?);
                // If the call's promise never settles, the reason may be a rejected promise that it waits for.
                if let Err(Error::WouldBlock) | Ok(None) = acted
                    && let Some(text) = left()?
                {
                    return Ok(text);
                }
                if let Some(text) = acted? {
                    return Ok(text);
                }
                let outcome = settled(tell.clone().restore(&ctx)?.call(())?)?.ok_or(Error::Unknown)?;
                Ok(left()?.unwrap_or(outcome))
            };
            let mut answer = Ok(String::new());
            for input in inputs {
                answer = answered(input);
            }
            let answer = match answer {
                Ok(text) if text.starts_with(FAILED) => match serde_json::from_str(&text) {
                    Ok(Reply::Failed(failure)) => failed(failure.message, failure.stack),
                    _ => Answer::Written(text),
                },
                Ok(text) => Answer::Written(text),
                Err(Error::WouldBlock) => {
                    failed("the call awaits a promise that never settles".to_owned(), String::new())
                }
                Err(error) => {
                    let (message, stack) = thrown(&ctx, error);
                    failed(message, stack)
                }
            };
            // The list is cleared last, because reading a thrown value may reject further promises. No engine handle
            // is used after this line.
            drop(rejected.take());
            answer
        });
        assert!(rejected.borrow().is_empty(), "what is put back mustn't be held");
        // A call over the tick limit fails even if the script caught the error.
        if ticks.get() > self.limits.ticks {
            let message = format!(
                "the script exceeded the limit of {} ticks (a tick is 10,000 function calls or loop iterations)",
                self.limits.ticks
            );
            let stack = if let Answer::Failed(failure) = answer { failure.stack } else { String::new() };
            return Answer::Failed(Failure { message, stack });
        }
        if self.memory.has_refused() {
            let stack = if let Answer::Failed(failure) = answer { failure.stack } else { String::new() };
            return Answer::Failed(Failure { message: self.too_much_memory(), stack });
        }
        answer
    }

    fn too_much_memory(&self) -> String {
        format!("the script exceeded the limit of {} MiB of memory", self.limits.memory_bytes >> 20)
    }

    /// Restores the initial state of a script's world in advance, so that the next call needn't wait for it.
    pub(super) fn tidy(&mut self, script: &Compiled) {
        if let Some(number) = script.world.get() {
            self.put_back(number);
        }
    }

    fn put_back(&mut self, number: usize) {
        if self.ready == Some(number) {
            return;
        }
        #[expect(unsafe_code, reason = "only this module knows which handles exist")]
        // SAFETY: between calls, the only engine handles are those that existed when the image was taken.
        unsafe {
            self.memory.put_back(&self.worlds[number].image);
        }
        self.ready = Some(number);
    }

    /// Creates a script's world and returns its number.
    fn make(&mut self, script: &Compiled) -> Result<usize, (String, String)> {
        self.ready = None;
        // A script that uses a call's time or randomness during evaluation, or fails, is evaluated in each call.
        let engine = match self.start(script, true) {
            Ok(engine) => engine,
            Err(_) => self.start(script, false)?,
        };
        let world = World { ticks: engine.ticks.get(), image: self.memory.image(), engine: ManuallyDrop::new(engine) };
        self.worlds.push(world);
        Ok(self.worlds.len() - 1)
    }

    /// Starts an engine in clean memory. If `ahead` is true, also evaluates the script's modules. The evaluation must
    /// then have the same result in each call.
    fn start(&mut self, script: &Compiled, ahead: bool) -> Result<Engine, (String, String)> {
        #[expect(unsafe_code, reason = "only this module knows which handles exist")]
        // SAFETY: handles of other engines aren't used before their images are restored; an engine that failed to start
        // is gone.
        unsafe {
            self.memory.wipe();
        }
        let (limits, ticks, rejected) = (self.limits, Rc::new(Cell::new(0)), Rc::<RefCell<Rejected>>::default());
        let (counted, noted) = (Rc::clone(&ticks), Rc::clone(&rejected));
        let world = || -> Result<Context, Error> {
            let runtime = Runtime::new_with_alloc(self.memory.allocator())?;
            runtime.set_max_stack_size(limits.stack_bytes);
            // Early garbage collection costs more than the memory that most calls need.
            runtime.set_gc_threshold(limits.memory_bytes / 4);
            runtime.set_interrupt_handler(Some(Box::new(move || {
                counted.set(counted.get() + 1);
                counted.get() > limits.ticks
            })));
            runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
                let [promise, reason] = [promise, reason].map(|value| Persistent::save(&ctx, value));
                noted.borrow_mut().note(promise, reason, is_handled);
            })));
            let names = Names { entry: script.entry.clone(), resolved: Rc::clone(&script.resolved) };
            runtime.set_loader(names, Bundled(script.bytecodes));
            let context = match script.is_plain {
                true => Context::custom::<PlainBuiltIn>(&runtime)?,
                false => Context::custom::<AllBuiltIn>(&runtime)?,
            };
            Ok(context)
        };
        let context = world().map_err(|error| (format!("cannot start the engine: {error}"), String::new()))?;
        let functions = context.with(|ctx| {
            let functions = || -> Result<_, Error> {
                let session: Object<'_> = Module::import(&ctx, script.session)?.finish()?;
                session.get::<_, Function<'_>>("equip")?.call::<_, ()>((Function::new(ctx.clone(), derive)?,))?;
                let goes_on = || ticks.get() <= limits.ticks;
                let exports = if ahead { Some(Persistent::save(&ctx, evaluate(&ctx, &goes_on)?)) } else { None };
                let is_asked = session.get::<_, Function<'_>>("isAsked")?.call::<_, bool>(())?;
                if is_asked || !goes_on() || !rejected.borrow().is_empty() {
                    return Err(Error::WouldBlock);
                }
                let named = |name: &str| -> Result<_, Error> {
                    Ok(Persistent::save(&ctx, session.get::<_, Function<'_>>(name)?))
                };
                Ok(([named("begin")?, named("act")?, named("tell")?, named("unawaited")?], exports))
            };
            let functions = functions().map_err(|error| thrown(&ctx, error));
            // The list is cleared last, as after a call.
            drop(rejected.take());
            functions
        });
        let functions = functions.map_err(|(message, stack)| match self.memory.has_refused() {
            true => (self.too_much_memory(), stack),
            false => (message, stack),
        });
        let ([begin, act, tell, unawaited], exports) = functions?;
        Ok(Engine { context, begin, act, tell, unawaited, exports, ticks, rejected })
    }
}

/// Derives the seed for one purpose of a session from the scripts' `secret`. The function captures no variables, so
/// all its data is in the engine's memory.
fn derive(secret: String, context: String) -> Option<String> {
    Some(Seed::from_revealed(&secret)?.derive(&format!("arena:v1:rng:{context}")).reveal())
}

/// Evaluates the script's modules and returns its exports.
fn evaluate<'js>(ctx: &Ctx<'js>, goes_on: &dyn Fn() -> bool) -> Result<Value<'js>, Error> {
    Ok(settled::<Object<'js>>(ctx, Module::import(ctx, SCRIPT)?, goes_on)?.into_value())
}

/// Runs jobs until a promise is settled or the call reaches its limit. rquickjs's `Promise::finish` ignores the
/// limit.
fn settled<'js, T: FromJs<'js>>(
    ctx: &Ctx<'js>,
    promise: rquickjs::Promise<'js>,
    goes_on: &dyn Fn() -> bool,
) -> Result<T, Error> {
    while promise.state() == PromiseState::Pending && goes_on() && ctx.execute_pending_job() {}
    promise.result().unwrap_or(Err(Error::WouldBlock))
}

/// Loads compiled modules.
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

#[cfg(test)]
mod tests {
    use rquickjs::context::Intrinsic;

    use super::*;

    #[test]
    fn a_plain_world_lacks_only_the_names_of_not_plain() {
        let globals = |context: Context| -> BTreeSet<String> {
            context
                .with(|ctx| ctx.globals().own_keys(rquickjs::Filter::new().string()).collect::<Result<_, _>>().unwrap())
        };
        fn world<W: Intrinsic>() -> Context {
            Context::custom::<W>(&Runtime::new().unwrap()).unwrap()
        }
        let (all, plain) = (globals(world::<AllBuiltIn>()), globals(world::<PlainBuiltIn>()));
        let lacking: Vec<&str> = all.difference(&plain).map(String::as_str).collect();
        let known: Vec<&str> = NOT_PLAIN.into_iter().filter(|name| *name != GLOBAL).collect();
        assert_eq!(lacking, known);
    }
}
