//! The JavaScript engine: compiles the modules of a script once, makes a world of them, and runs each call in that world as it was then.

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
use crate::{Limits, Problem};

/// What a call's world has beside the core of the language. Not `Eval`: no text becomes code while a script runs. Not `WeakRef`, which
/// shows when memory is tidied up, and no `Performance`, which reads a clock.
type AllBuiltIn = (RegExpCompiler, RegExp, Json, Proxy, MapSet, TypedArrays, Promise, Date);

/// The same without what few scripts name, and what is a third of the cost of a world.
type PlainBuiltIn = (RegExpCompiler, RegExp, Json, Proxy, MapSet, Promise);

/// What a script has to name to find out in which of the two it is. There is no other way: modules are strict, so nothing but
/// `globalThis` hands out the global object, and nothing else that is built in makes dates or typed arrays.
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

/// The name of the global object.
const GLOBAL: &str = "globalThis";

/// Our modules: names under which they are imported, and texts.
const OURS: [(&str, &str); 5] = [
    (SESSION, include_str!("../../assets/session.js")),
    ("@specarena/engine/types", include_str!("../../assets/types.js")),
    ("@specarena/engine/utils", include_str!("../../assets/utils.js")),
    ("@specarena/engine/challenge-design/BaseChallenge", include_str!("../../assets/base-challenge.js")),
    ("prando", include_str!("../../assets/prando.js")),
];

/// The module that is called.
const SESSION: &str = "arena:session";

/// By this name the script itself is imported.
const SCRIPT: &str = "arena:script";

/// How `session.js` begins the answer of a script that failed.
const FAILED: &str = "{\"failed\":";

/// What begins so is between our modules.
const PRIVATE: &str = "arena:";

/// The modules that scripts may import beside their own.
pub(crate) fn importable() -> impl Iterator<Item = &'static str> {
    OURS.iter().map(|(name, _)| *name).filter(|name| !name.starts_with(PRIVATE))
}

/// How many promises that were rejected are remembered at a time: one is enough for a fault, but most are awaited a moment later.
const REJECTED: usize = 100;

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
    /// Whether it names nothing of [`NOT_PLAIN`].
    is_plain: bool,
    /// Its world's number in the [`Machine`], once it has been called.
    world: Cell<Option<usize>>,
}

impl Compiled {
    /// The files that it is made of.
    pub(super) fn files(&self) -> impl Iterator<Item = &String> {
        self.lines.keys()
    }
}

/// Compiles a script. `files` are those of its folder, by their paths in it; only what is imported is looked at. `is_whole`: they are all of
/// the folder, so what nothing uses has to be among them too; of a script that is kept it isn't.
pub(super) fn compile(files: &BTreeMap<String, String>, is_whole: bool) -> Result<Compiled, Vec<Problem>> {
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
    let mut is_plain = true;
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
        // An unused import isn't loaded, but has to exist: the author expects it.
        for (name, line) in stripped.unused.into_iter().filter(|_| is_whole) {
            let is_there = importable().any(|ours| ours == name) || find_declared(&file, &name, files);
            if let (false, Err(message)) = (is_there, find(&file, &name, files)) {
                problems.push(Problem::at(&file, line, message));
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
        Ok(Compiled {
            bytecodes: Box::leak(bytecodes.into_boxed_slice()),
            resolved,
            lines,
            entry,
            is_plain,
            world: Cell::new(None),
        })
    } else {
        Err(problems)
    }
}

/// True if `file` means a declaration of types (`.d.ts`) by `name`, which nothing is loaded of.
fn find_declared(file: &str, name: &str, files: &BTreeMap<String, String>) -> bool {
    let stem = [".d.ts", ".ts", ".js"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    find(file, &format!("{stem}.d.ts"), files).is_ok()
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
        // A call begins with imports that come from nowhere.
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
    let context = Context::custom::<(AllBuiltIn, Eval)>(&runtime).map_err(told)?;
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
    // Asking may throw something else, which nobody wants to know.
    let text = |name: &str| {
        object.get::<_, String>(name).unwrap_or_else(|_| {
            ctx.catch();
            String::new()
        })
    };
    let (name, message, stack) = (text("name"), text("message"), text("stack"));
    let told = match (name.is_empty(), message.is_empty()) {
        (true, true) => "an object without a message was thrown".to_owned(),
        (true, false) => message,
        (false, _) => format!("{name}: {message}"),
    };
    (told, stack)
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

/// What comes of a call.
pub(super) enum Answer {
    /// The text of a [`Reply`], as `session.js` has written it. Nobody has looked at it: a script can make anything of it.
    Written(String),
    /// The script failed.
    Failed(Failure),
}

/// Where calls are run: the memory in which all worlds are, one at a time, each at the same addresses.
pub(super) struct Machine {
    memory: Memory,
    limits: Limits,
    worlds: Vec<World>,
    /// Which of the worlds the memory holds, untouched by any call.
    ready: Option<usize>,
}

/// A script's world as each of its calls finds it.
///
/// What is held of the engine here points into the memory, and is only right while that is as in the image, or as a call has left it.
/// So nothing of it is ever dropped: there is no telling what the memory holds by then, and the process ends soon after.
struct World {
    engine: ManuallyDrop<Engine>,
    image: Image,
    /// Ticks that it took to get there. They are the call's, as if it had begun without a world.
    ticks: u32,
}

struct Engine {
    context: Context,
    begin: Persistent<Function<'static>>,
    act: Persistent<Function<'static>>,
    tell: Persistent<Function<'static>>,
    unawaited: Persistent<Function<'static>>,
    /// The script's `createChallenge`; absent if the script is evaluated by each call anew.
    create: Option<Persistent<Value<'static>>>,
    /// How much of its limit a call has taken.
    ticks: Rc<Cell<u32>>,
    /// Empty between calls.
    rejected: Rc<RefCell<Rejected>>,
}

/// Promises that were rejected and that nobody has awaited so far, and why.
#[derive(Default)]
struct Rejected {
    kept: Vec<(Persistent<Value<'static>>, Persistent<Value<'static>>)>,
    /// How many there are besides.
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

    /// Why the first of them was rejected, if there is one and that is known.
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

    /// Runs one call in the script's world: nothing of it is left for the next one, nor of what was before. More inputs than one are the
    /// calls of a game from its creation, which share the world; the answer is that to the last.
    pub(super) fn call(&mut self, script: &Compiled, inputs: &[&str]) -> Answer {
        let failed =
            |message: String, stack: String| Answer::Failed(Failure { message, stack: traced(&stack, &script.lines) });
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
        let Engine { context, begin, act, tell, unawaited, create, ticks, rejected } = &*world.engine;
        let answer = context.with(|ctx| {
            let goes_on = || ticks.get() <= self.limits.ticks;
            let settled = |promise| settled::<Option<String>>(&ctx, promise, &goes_on);
            // What the call has begun comes to its end; a text if something has failed of which nobody knows.
            let left = || -> Result<Option<String>, Error> {
                while goes_on() && ctx.execute_pending_job() {}
                // Borrowed no longer than this: what is asked below may reject promises too.
                let first = rejected.borrow().first();
                let Some(reason) = first else { return Ok(None) };
                let reason = match reason {
                    Some(reason) => reason.restore(&ctx)?,
                    None => rquickjs::String::from_str(ctx.clone(), "one of more than are remembered")?.into_value(),
                };
                unawaited.clone().restore(&ctx)?.call((reason,))
            };
            let answered = |input: &str| -> Result<String, Error> {
                ticks.set(world.ticks);
                // The world's time and randomness have to be there before the script's first line, unless that has not asked for them.
                begin.clone().restore(&ctx)?.call::<_, ()>((input,))?;
                let create = match create {
                    Some(create) => create.clone().restore(&ctx)?,
                    None => evaluate(&ctx, &goes_on)?,
                };
                let acted = settled(act.clone().restore(&ctx)?.call((create,))?);
                // What never settles may wait for what was rejected.
                if let Err(Error::WouldBlock) | Ok(None) = acted
                    && let Some(text) = left()?
                {
                    return Ok(text);
                }
                if let Some(text) = acted? {
                    return Ok(text);
                }
                let told = settled(tell.clone().restore(&ctx)?.call(())?)?.ok_or(Error::Unknown)?;
                Ok(left()?.unwrap_or(told))
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
                    failed("a promise never settles: nothing will ever answer it".to_owned(), String::new())
                }
                Err(error) => {
                    let (message, stack) = thrown(&ctx, error);
                    failed(message, stack)
                }
            };
            // Last of all, since asking what was thrown may reject promises too. Nothing of the engine is held from here on.
            drop(rejected.take());
            answer
        });
        assert!(rejected.borrow().is_empty(), "what is put back mustn't be held");
        // Caught or not: what comes of a call that was stopped isn't the script's doing alone.
        if ticks.get() > self.limits.ticks {
            let message = format!(
                "took more than its {} ticks of computing (a tick is 10,000 calls and rounds of loops)",
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
        format!("took more than its {} MiB of memory", self.limits.memory_bytes >> 20)
    }

    /// Puts the world of the last call back, so that the next call needn't wait for it.
    pub(super) fn tidy(&mut self, script: &Compiled) {
        if let Some(number) = script.world.get() {
            self.put_back(number);
        }
    }

    fn put_back(&mut self, number: usize) {
        if self.ready == Some(number) {
            return;
        }
        #[expect(unsafe_code, reason = "only here it is known who holds what")]
        // SAFETY: between calls nothing is held of the engine but what was when the image was taken.
        unsafe {
            self.memory.put_back(&self.worlds[number].image);
        }
        self.ready = Some(number);
    }

    /// Makes a script's world.
    fn make(&mut self, script: &Compiled) -> Result<usize, (String, String)> {
        self.ready = None;
        // A script that asks for a call's time or chance while it is evaluated, or fails, does so in each call.
        let engine = match self.start(script, true) {
            Ok(engine) => engine,
            Err(_) => self.start(script, false)?,
        };
        let world = World { ticks: engine.ticks.get(), image: self.memory.image(), engine: ManuallyDrop::new(engine) };
        self.worlds.push(world);
        Ok(self.worlds.len() - 1)
    }

    /// Starts an engine in a clean memory. `ahead`: with the script's modules evaluated, which have to come to the same in each call.
    fn start(&mut self, script: &Compiled, ahead: bool) -> Result<Engine, (String, String)> {
        #[expect(unsafe_code, reason = "only here it is known who holds what")]
        // SAFETY: what is held of other engines isn't touched before their images are put back; one that failed to start is gone.
        unsafe {
            self.memory.wipe();
        }
        let (limits, ticks, rejected) = (self.limits, Rc::new(Cell::new(0)), Rc::<RefCell<Rejected>>::default());
        let (counted, noted) = (Rc::clone(&ticks), Rc::clone(&rejected));
        let world = || -> Result<Context, Error> {
            let runtime = Runtime::new_with_alloc(self.memory.lend())?;
            runtime.set_max_stack_size(limits.stack_bytes);
            // Tidying up early costs more than the memory that most calls take.
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
        let context = world().map_err(|error| (format!("the engine can't be started: {error}"), String::new()))?;
        let functions = context.with(|ctx| {
            let functions = || -> Result<_, Error> {
                let session: Object<'_> = Module::import(&ctx, SESSION)?.finish()?;
                session.get::<_, Function<'_>>("equip")?.call::<_, ()>((Function::new(ctx.clone(), derive)?,))?;
                let goes_on = || ticks.get() <= limits.ticks;
                let create = if ahead { Some(Persistent::save(&ctx, evaluate(&ctx, &goes_on)?)) } else { None };
                let is_asked = session.get::<_, Function<'_>>("isAsked")?.call::<_, bool>(())?;
                if is_asked || !goes_on() || !rejected.borrow().is_empty() {
                    return Err(Error::WouldBlock);
                }
                let named = |name: &str| -> Result<_, Error> {
                    Ok(Persistent::save(&ctx, session.get::<_, Function<'_>>(name)?))
                };
                Ok(([named("begin")?, named("act")?, named("tell")?, named("unawaited")?], create))
            };
            let functions = functions().map_err(|error| thrown(&ctx, error));
            // As after a call: last of all.
            drop(rejected.take());
            functions
        });
        let functions = functions.map_err(|(message, stack)| match self.memory.has_refused() {
            true => (self.too_much_memory(), stack),
            false => (message, stack),
        });
        let ([begin, act, tell, unawaited], create) = functions?;
        Ok(Engine { context, begin, act, tell, unawaited, create, ticks, rejected })
    }
}

/// The seed for one purpose of a session whose scripts' secret is `secret`. It captures nothing, so nothing of it lies outside of the engine's
/// memory.
fn derive(secret: String, context: String) -> Option<String> {
    Some(Seed::from_revealed(&secret)?.derive(&format!("arena:v1:rng:{context}")).reveal())
}

/// Evaluates the script's modules, for its `createChallenge`.
fn evaluate<'js>(ctx: &Ctx<'js>, goes_on: &dyn Fn() -> bool) -> Result<Value<'js>, Error> {
    settled::<Object<'js>>(ctx, Module::import(ctx, SCRIPT)?, goes_on)?.get("createChallenge")
}

/// What becomes of a promise, for as long as the call goes on: `finish` would let jobs run beyond all limits.
fn settled<'js, T: FromJs<'js>>(
    ctx: &Ctx<'js>,
    promise: rquickjs::Promise<'js>,
    goes_on: &dyn Fn() -> bool,
) -> Result<T, Error> {
    while promise.state() == PromiseState::Pending && goes_on() && ctx.execute_pending_job() {}
    promise.result().unwrap_or(Err(Error::WouldBlock))
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

#[cfg(test)]
mod tests {
    use rquickjs::context::Intrinsic;

    use super::*;

    #[test]
    fn a_plain_world_lacks_nothing_but_what_makes_a_script_not_plain() {
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
