//! Faulty and hostile scripts: each call ends with a message for the author, and changes nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use arena_script::Limits;
use expect_test::{Expect, expect, expect_file};

use crate::table::{Game, METADATA, load, load_into, sandbox, script};

/// Low limits, for tests that reach them.
const LIMITS: Limits = Limits {
    ticks: 100,
    memory_bytes: 16 << 20,
    stack_bytes: 256 << 10,
    wall_ms: 60_000,
    messages: 100,
    output_bytes: 64 << 10,
};

/// The reason for an action that reaches the limit of ticks.
const TICKS: &str = "the script exceeded the limit of 100 ticks (a tick is 10,000 function calls or loop iterations)";

/// Checks a game in which a player calls `act` with this code. The remaining calls show that the game goes on.
#[track_caller]
fn check(act: &str, expected: Expect) {
    expected.assert_eq(&played(LIMITS, &acting(act)));
}

/// Checks that this code in `act` refuses the action with a reason for the author, and changes nothing.
#[track_caller]
fn fails(act: &str, reason: &str) {
    fails_within(LIMITS, act, reason);
}

/// Checks like [`fails`], where the reason ends with the stack of `act`.
#[track_caller]
fn fails_in_act(act: &str, reason: &str) {
    fails(act, &format!("{reason}\n    at act (index.js:7)\n    at <anonymous> (index.js:4)\n    at call (native)"));
}

#[track_caller]
fn fails_within(limits: Limits, act: &str, reason: &str) {
    let expected = format!(
        "1 is refused: CHALLENGE_FAILED The challenge failed, and nothing has changed. The arena's owner gets the reason.\n\
         ! challenge failed on message act: {reason}\n2 → operator: (act) after\n{{\"done\":[0,1]}}\n"
    );
    assert_eq!(played(limits, &acting(act)), expected, "{act}");
}

/// Returns a script with this code in `act`.
fn acting(act: &str) -> String {
    format!(
        "async act(message, index) {{\nthis.gameState.done.push(index);\nif (message.content === \"now\") {{ {act} }}\n}}"
    )
}

/// Plays a game of a script with these lines and limits. Returns what the players get from the second action on, and the
/// state.
fn played(limits: Limits, lines: &str) -> String {
    let text = script(lines);
    let challenge = load(&BTreeMap::from([("challenge.json", METADATA), ("index.js", &text)]), limits).unwrap();
    let game = Game::new(challenge, 1).start().act(1, "act", "before");
    let start = Instant::now();
    let game = game.act(1, "act", "now");
    assert!(start.elapsed() < Duration::from_secs(20), "it took {:?}", start.elapsed());
    let game = game.act(2, "act", "after");
    let told = game.told.split_once("(act) before\n").expect("the game began").1;
    format!("{told}{}\n", game.state())
}

#[test]
fn loops_that_never_end() {
    fails("for (;;) {}", TICKS);
    fails("const f = async () => { for (;;) await null; }; await f();", TICKS);
    // A stopped call can't go on by catching the error.
    fails("for (;;) { try { for (;;) {} } catch {} }", TICKS);
    fails("/(a+)+$/.test(\"a\".repeat(40) + \"b\");", TICKS);
}

#[test]
fn texts_that_are_cut_in_the_midst_of_a_character() {
    check(
        "this.broadcast(\"abcd\\u{1F600}\".slice(0, 5)); this.gameState.half = \"\\u{1F600}\"[1];",
        expect![[r#"
        1 → operator: (act) now
        operator → all: abcd�
        2 → operator: (act) after
        {"done":[0,0,1],"half":"�"}
    "#]],
    );
}

#[test]
fn what_the_engine_itself_does_not_stop() {
    fails_within(
        Limits { wall_ms: 2000, ..LIMITS },
        "const a = []; a.length = 4294967295; a.reverse();",
        "the script exceeded the limit of 2000 ms and was stopped",
    );
    fails_in_act(
        "let n = 3n; for (let i = 0; i < 22; i++) n *= n; for (;;) n % 7n;",
        "RangeError: BigInt is too large to allocate",
    );
}

#[test]
fn calls_in_calls() {
    fails(
        "const f = () => f() + 1; f();",
        &format!("RangeError: Maximum call stack size exceeded{}", "\n    at f (index.js:7)".repeat(10)),
    );
    fails_in_act(
        "JSON.parse(\"[\".repeat(1e6));",
        "RangeError: Maximum call stack size exceeded\n    at parse (native)",
    );
}

#[test]
fn memory() {
    fails_in_act(
        "const a = []; for (;;) a.push(new Array(1000).fill(1));",
        "the script exceeded the limit of 16 MiB of memory",
    );
    fails_in_act("let s = \"x\"; for (;;) s += s;", "InternalError: string too long");
    fails_in_act("new Uint8Array(1e9);", "the script exceeded the limit of 16 MiB of memory");
}

#[test]
fn promises_that_never_settle() {
    fails("await new Promise(() => {});", "the call awaits a promise that never settles");
}

#[test]
fn promises_that_nobody_awaits() {
    // Promises complete before the call ends.
    check(
        "(async () => { await null; await null; this.gameState.done.push(\"later\"); })();",
        expect![[r#"
            1 → operator: (act) now
            2 → operator: (act) after
            {"done":[0,0,"later",1]}
        "#]],
    );
    // A rejection that the script doesn't await fails the call.
    fails_in_act(
        "this.send(42, message.from);",
        "unhandled promise rejection: TypeError: a message must be a string, not number",
    );
    fails(
        "(async () => { await null; console.log(\"so far\"); undefined.x; })();",
        "unhandled promise rejection: TypeError: cannot read property 'x' of undefined\n    at <anonymous> (index.js:7)\n\n    console: so far",
    );
    fails("Promise.reject();", "unhandled promise rejection: undefined");
    fails("for (let i = 0; i < 10000; i++) Promise.reject(i);", "unhandled promise rejection: 0");
    // A rejection may be caught late.
    check(
        "const late = Promise.reject(new Error(\"x\")); await null; late.catch(() => {});",
        expect![[r#"
        1 → operator: (act) now
        2 → operator: (act) after
        {"done":[0,0,1]}
    "#]],
    );
    fails(
        // The limit is reached outside of the function.
        "const again = () => Promise.resolve().then(again); again();",
        "the script exceeded the limit of 16 MiB of memory",
    );
    fails("Promise.reject({ get stack() { for (;;) {} } });", &format!("{TICKS}\n    at get stack (index.js:7)"));
    fails("Promise.reject({ get stack() { throw new Error(\"no\"); } });", "Error: no\n    at get stack (index.js:7)");
    // Reading a thrown value may reject further promises, which must not outlive the call.
    let evil = "const evil = { get name() { for (let i = 0; i < 50; i++) Promise.reject(new Error(\"x\")); return \"Evil\"; }, message: \"m\" };\
                throw { get name() { throw evil; } };";
    fails(evil, "Evil: m");
    // Some rejected promises are caught late, and one is never caught.
    fails(
        "const late = []; for (let i = 0; i < 100; i++) late.push(Promise.reject(i)); Promise.reject(\"the last\");\
         await null; for (const each of late) each.catch(() => {});",
        "unhandled promise rejection: (the reason is unknown, because there are too many rejections)",
    );
    fails_in_act(
        "const gone = Promise.reject(new Error(\"why\")); await new Promise((resolve) => gone.then(resolve));",
        "unhandled promise rejection: Error: why",
    );
    check(
        "const refuse = async () => { throw new ChallengeOperatorError(\"NOT_NOW\", \"Not now.\"); }; refuse();",
        expect![[r#"
            1 is refused: NOT_NOW Not now.
            2 → operator: (act) after
            {"done":[0,1]}
        "#]],
    );
    let loops = "for (let i = 0; i < 4; i++) { const loop = () => { let n = 0; while (n < 3000) n++; Promise.resolve(i).then(loop); }; loop(); }\
                 await new Promise(() => {});";
    fails(loops, TICKS);
    let problem = |text: &str| {
        let problems = load(&BTreeMap::from([("challenge.json", METADATA), ("index.js", text)]), LIMITS).err().unwrap();
        problems[0].to_string()
    };
    let serialize = script("act() {}\nserialize() { this.send(42); return super.serialize(); }");
    expect![[r#"
        index.js: the test call of create fails: unhandled promise rejection: TypeError: a message must be a string, not number
            at serialize (index.js:6)"#]].assert_eq(&problem(&serialize));
    expect!["index.js: the test call of create fails: an object without a message was thrown"]
        .assert_eq(&problem(&format!("{{ {evil} }}\n{}", script("act() {}"))));
    expect!["index.js: the test call of create fails: the script exceeded the limit of 100 ticks (a tick is 10,000 function calls or loop iterations)"].assert_eq(&problem(&format!("{loops}\n{}", script("act() {}"))));
    expect![[r#"
        index.js: the test call of create fails: unhandled promise rejection: Error: at once
            at <anonymous> (index.js:1)"#]]
    .assert_eq(&problem(&format!("Promise.reject(new Error(\"at once\"));\n{}", script("act() {}"))));
}

#[test]
fn states_that_cannot_be_kept() {
    fails(
        "this.gameState.self = this.gameState;",
        "TypeError: gameState.self.self.self.self.self.self.self.self.self.self.self.self…self.self.self.done is nested too deeply, or contains itself",
    );
    fails(
        "this.gameState.set = [{ in: new Set([1]) }];",
        "TypeError: gameState.set[0].in is a Set, which JSON cannot represent; override serialize() and restore(), or use an array or object",
    );
    fails(
        "this.gameState.much = \"x\".repeat(100000);",
        "gameState has grown to 100024 bytes; at most 65536 are allowed",
    );
    fails("this.gameState.n = 10n;", "TypeError: gameState.n is a bigint, which JSON cannot represent");
    fails("this.gameState = [1];", "TypeError: gameState must be an object, not an array");
    fails("this.state.round = 2;", "TypeError: state.round isn't stored between calls; put it into gameState");
    fails(
        "this.state.scores[0].utility = NaN;",
        "TypeError: state.scores[0] must have two numbers, security and utility\n    at forEach (native)",
    );
    fails(
        "this.state.scores.pop();",
        "state.scores must have one entry per seat, but its length is 1, and there are 2 seats",
    );
    fails("this.state.status = \"paused\";", "state.status must be \"open\", \"active\" or \"ended\", not \"paused\"");
}

#[test]
fn what_is_said() {
    fails(
        "for (let i = 0; i < 101; i++) await this.broadcast(\"x\");",
        "the script sent 101 messages in one call; at most 100 are allowed",
    );
    fails(
        "await this.broadcast(\"x\".repeat(100000));",
        "the script sent 100000 bytes in one call; at most 65536 are allowed",
    );
    fails_in_act("await this.broadcast({ text: 1 });", "TypeError: a message must be a string, not object");
    fails("await this.send(\"x\", \"inv_somebody\");", "\"inv_somebody\" isn't a player who has joined");
    fails_in_act(
        "await this.messaging.sendChallengeMessage(this.challengeId, message.from, \"I said so\");",
        "TypeError: a challenge can send as \"operator\" only, not as \"inv_00000000-0000-7000-8000-000000000001\"",
    );
}

#[test]
fn errors_are_told_with_the_lines_of_the_author() {
    fails_in_act("null.x;", "TypeError: cannot read property 'x' of null");
    check(
        "throw new ChallengeOperatorError(\"NO\", \"Not now.\");",
        expect![[r#"
        1 is refused: NO Not now.
        2 → operator: (act) after
        {"done":[0,1]}
    "#]],
    );
    fails("throw \"text\";", "text");
    fails_in_act("eval(\"1\");", "TypeError: eval is not supported");
    fails_in_act("new Function(\"return 1\")();", "TypeError: eval is not supported\n    at Function (native)");
    fails_in_act("require(\"fs\");", "ReferenceError: require is not defined");
    fails_in_act("await fetch(\"http://127.0.0.1\");", "ReferenceError: fetch is not defined");
}

#[test]
fn one_call_leaves_nothing_to_another() {
    let lines = "async act(message, index) {\nthis.gameState.done.push([Object.prototype.seen, globalThis.seen, [].map.seen, Test.seen, Symbol.for(\"s\").seen].join());\n\
         Object.prototype.seen = globalThis.seen = Array.prototype.map.seen = Test.seen = message.content;\n\
         Object.defineProperty(Object.prototype, \"seen\", { enumerable: false });\nJSON.parse = () => ({});\n}";
    expect![[r#"
        1 → operator: (act) now
        2 → operator: (act) after
        {"done":[",,,,",",,,,",",,,,"]}
    "#]]
    .assert_eq(&played(LIMITS, lines));
}

#[test]
fn scripts_that_take_turns_in_one_worker_find_nothing_of_each_other_nor_of_themselves() {
    // Everything in which a module can keep data: variables, objects, collections, its own functions, built-in objects,
    // regular expressions.
    let text = |declared: &str, name: &str| {
        let lines = "act(message) {\nconst seen = [calls++, kept.size, Object.prototype.seen, globalThis.seen, pattern.lastIndex];\n\
                     kept.set(message.content, Array.from({ length: 100000 }, () => [NAME]));\n\
                     Object.prototype.seen = globalThis.seen = NAME;\npattern.exec(\"aaa\");\n\
                     Map.prototype.set = Math.random = () => NAME;\nthis.broadcast(`${NAME} ${seen} ${early}`);\n}";
        let declared = format!(
            "let calls = 0;\nconst kept = new Map();\nconst pattern = /a/g;\nconst NAME = \"{name}\";\n{declared}\n"
        );
        declared + &script(lines)
    };
    let sandbox = sandbox(Limits { memory_bytes: 32 << 20, ..LIMITS });
    // The last world can't be created before a call, because it uses values that differ in each call.
    let declared = ["const early = 1;", "const early = 2;", "const early = typeof Math.random();"];
    let mut games: Vec<Game> = declared
        .iter()
        .zip(["ada", "ben", "cyd"])
        .map(|(declared, name)| {
            let text = text(declared, name);
            let files = BTreeMap::from([("challenge.json", METADATA), ("index.js", text.as_str())]);
            Game::new(load_into(&sandbox, &files).unwrap(), 1).start()
        })
        .collect();
    for number in [0, 1, 0, 0, 2, 1, 2, 2, 0] {
        let game = games.remove(number).act(1, "act", "now");
        games.insert(number, game);
    }
    let told: Vec<String> = games.iter().map(|game| game.told.clone()).collect();
    expect_file!["hostile/scripts_that_take_turns_in_one_worker_find_nothing_of_each_other_nor_of_themselves.txt"]
        .assert_eq(&told.join("\n"));
}

#[test]
fn hooks_that_throw_refuse_the_seat_and_the_deadline() {
    let lines = "async onPlayerJoin(id, index) { if (index === 1 && Date.now() < 1700000003000) throw new Error(\"not yet\"); }\n\
                 onGameStart() { this.setDeadline(5000); }\nact() {}\nonDeadline() { throw new Error(\"too late\"); }";
    // The test calls run at time 0, when all may join.
    let text = script(&lines.replace("Date.now() <", "Date.now() > 0 && Date.now() <"));
    let challenge = load(&BTreeMap::from([("challenge.json", METADATA), ("index.js", &text)]), LIMITS).unwrap();
    let game = Game::new(challenge, 1).join(1).join(2).join(2).wait().act(1, "act", "");
    assert_eq!(game.session.deadline, None);
    expect![[r#"
        2 is refused: CHALLENGE_FAILED The challenge failed, and nothing has changed. The arena's owner gets the reason.
        ! challenge failed on join: Error: not yet
            at onPlayerJoin (index.js:5)
        ! challenge failed on deadline: Error: too late
            at onDeadline (index.js:8)
        1 → operator: (act) 
    "#]]
    .assert_eq(&game.told);
}
