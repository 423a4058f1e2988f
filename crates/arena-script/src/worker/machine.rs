//! The JavaScript engine. It creates a *world* from a script's compiled modules: an engine instance with its global
//! objects. Each call runs in that world's initial state.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Error, FromJs, Function, Module, Object, Persistent, Runtime, Value};

use arena_model::Seed;

use super::compile::{AllBuiltIn, Bundled, Compiled, Names, PlainBuiltIn, SCRIPT, thrown, traced};
use super::memory::{Image, Memory};
use crate::Limits;
use crate::wire::{Failure, Reply};

/// The start of the answer that `session.js` and `scoring.js` write if the script fails.
const FAILED: &str = "{\"failed\":";

/// The maximum number of rejected promises in the list. One would be enough to report a fault, but scripts await most
/// of them soon after the rejection.
const REJECTED: usize = 100;

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

impl Engine {
    /// Runs a call with its jobs, up to the limit of ticks. Returns the text of the answer.
    fn answer(&self, ctx: &Ctx<'_>, input: &str, most_ticks: u32) -> Result<String, Error> {
        let goes_on = || self.ticks.get() <= most_ticks;
        let settled = |promise| settled::<Option<String>>(ctx, promise, &goes_on);
        // The world's time and randomness must be set before the script's first line, unless the script was evaluated
        // without them.
        self.begin.clone().restore(ctx)?.call::<_, ()>((input,))?;
        let exports = match &self.exports {
            Some(exports) => exports.clone().restore(ctx)?,
            None => evaluate(ctx, &goes_on)?,
        };
        let acted = settled(self.act.clone().restore(ctx)?.call((exports,))?);
        // If the call's promise never settles, the reason may be a rejected promise that it waits for.
        if let Err(Error::WouldBlock) | Ok(None) = acted
            && let Some(text) = self.finish_jobs(ctx, &goes_on)?
        {
            return Ok(text);
        }
        if let Some(text) = acted? {
            return Ok(text);
        }
        let outcome = settled(self.tell.clone().restore(ctx)?.call(())?)?.ok_or(Error::Unknown)?;
        Ok(self.finish_jobs(ctx, &goes_on)?.unwrap_or(outcome))
    }

    /// Runs the call's remaining jobs. Returns a text if a promise failed that the script doesn't await.
    fn finish_jobs(&self, ctx: &Ctx<'_>, goes_on: &dyn Fn() -> bool) -> Result<Option<String>, Error> {
        while goes_on() && ctx.execute_pending_job() {}
        // Borrowed only here: the code below may reject further promises.
        let first = self.rejected.borrow().first();
        let Some(reason) = first else { return Ok(None) };
        let reason = match reason {
            Some(reason) => reason.restore(ctx)?,
            None => {
                let unknown = "(the reason is unknown, because there are too many rejections)";
                rquickjs::String::from_str(ctx.clone(), unknown)?.into_value()
            }
        };
        self.unawaited.clone().restore(ctx)?.call((reason,))
    }
}

impl Machine {
    pub(super) fn new(limits: Limits) -> io::Result<Machine> {
        Ok(Machine { memory: Memory::new(limits.memory_bytes)?, limits, worlds: Vec::new(), ready: None })
    }

    /// Runs one call in the script's world. The call leaves no data for the next one. With several inputs, runs the
    /// calls of a session from its creation in one world and returns the answer to the last.
    pub(super) fn call(&mut self, script: &Compiled, inputs: &[&str]) -> Answer {
        let failed = |(message, stack): (String, String)| {
            Answer::Failed(Failure { message, stack: traced(&stack, &script.files) })
        };
        let number = match script.world.get() {
            Some(number) => number,
            None => match self.make(script) {
                Ok(number) => {
                    script.world.set(Some(number));
                    number
                }
                Err(thrown) => return failed(thrown),
            },
        };
        self.put_back(number);
        self.ready = None;
        let world = &self.worlds[number];
        let Engine { context, ticks, rejected, .. } = &*world.engine;
        let answer = context.with(|ctx| {
            let mut answer = Ok(String::new());
            for input in inputs {
                ticks.set(world.ticks);
                answer = world.engine.answer(&ctx, input, self.limits.ticks);
            }
            let answer = match answer {
                Ok(text) if text.starts_with(FAILED) => match serde_json::from_str(&text) {
                    Ok(Reply::Failed(failure)) => failed((failure.message, failure.stack)),
                    _ => Answer::Written(text),
                },
                Ok(text) => Answer::Written(text),
                Err(Error::WouldBlock) => {
                    failed(("the call awaits a promise that never settles".to_owned(), String::new()))
                }
                Err(error) => failed(thrown(&ctx, error)),
            };
            // The list is cleared last, because reading a thrown value may reject further promises. No engine handle
            // is used after this line.
            drop(rejected.take());
            answer
        });
        assert!(rejected.borrow().is_empty(), "what is put back mustn't be held");
        // A call over a limit fails even if the script caught the error.
        let message = if ticks.get() > self.limits.ticks {
            format!(
                "the script exceeded the limit of {} ticks (a tick is 10,000 function calls or loop iterations)",
                self.limits.ticks
            )
        } else if self.memory.has_refused() {
            self.too_much_memory()
        } else {
            return answer;
        };
        let stack = if let Answer::Failed(failure) = answer { failure.stack } else { String::new() };
        Answer::Failed(Failure { message, stack })
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rquickjs::context::Intrinsic;

    use super::super::compile::{GLOBAL, NOT_PLAIN};
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
