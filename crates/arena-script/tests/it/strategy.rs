//! Scoring strategies: faulty and hostile scripts, whose updates fail with a sentence for the author, and the examples.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use arena_model::{Seed, StrategyRows};
use arena_script::{Folder, GameToCount, Limits, Problem, ScriptKind, ScriptStrategy};
use expect_test::{Expect, expect};

use crate::table::sandbox;

const LIMITS: Limits = Limits { ticks: 100, memory_bytes: 16 << 20, wall_ms: 60_000, ..DEFAULT };

const DEFAULT: Limits = Limits {
    ticks: 1000,
    memory_bytes: 16 << 20,
    stack_bytes: 256 << 10,
    wall_ms: 5000,
    messages: 1000,
    output_bytes: 256 << 10,
};

const DESCRIPTION: &str = r#"{"name": "test", "metrics": [{"key": "test:x", "label": "X"}]}"#;

fn load(description: &str, files: &[(&str, &str)]) -> Result<ScriptStrategy, Vec<Problem>> {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("test");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("scoring.json"), description).unwrap();
    for (name, text) in files {
        fs::write(path.join(name), text).unwrap();
    }
    ScriptStrategy::load(&Folder::read_of(ScriptKind::Strategy, &path).unwrap(), &sandbox(LIMITS))
}

fn games(number: u64) -> Vec<GameToCount> {
    (0..number).map(|number| GameToCount::invent(number, "psi", &Seed::from_number(1))).collect()
}

fn counted(strategy: &ScriptStrategy, parts: &[&[GameToCount]]) -> StrategyRows {
    let mut rows = StrategyRows::new();
    for games in parts {
        let batch = strategy.update(&games.iter().collect::<Vec<_>>(), &mut rows);
        assert_eq!((batch.fault, batch.counted), (None, games.len()));
    }
    rows
}

/// Counts three games by a strategy whose update runs this code. Returns the fault of the first game.
fn fault(code: &str) -> String {
    let script = format!(
        "export async function update(result, store) {{\nconst [id] = Object.values(result.playerIdentities);\n{code}\n}}\n"
    );
    let strategy = load(DESCRIPTION, &[("index.js", &script)]).unwrap();
    let mut rows = StrategyRows::new();
    let games = games(3);
    let batch = strategy.update(&games.iter().collect::<Vec<_>>(), &mut rows);
    assert_eq!((batch.counted, rows), (0, StrategyRows::new()), "{code}");
    let fault = batch.fault.expect("the update fails");
    assert!(fault.game.is_some());
    format!("{}: {}", fault.place.unwrap_or_default(), fault.message)
}

#[test]
fn an_update_that_fails_names_file_and_line_and_changes_nothing() {
    let ticks = "the script exceeded the limit of 100 ticks (a tick is 10,000 function calls or loop iterations)";
    let entry = "{ playerId: id, gamesPlayed: 1, metrics: { \"test:x\": 1 } }";
    let cases = [
        ("null.x;", "index.js:3: TypeError: cannot read property 'x' of null"),
        // The engine names the last line before the loop.
        ("while (true) {}", &format!("index.js:2: {ticks}")),
        ("await new Promise(() => {});", ": the call awaits a promise that never settles"),
        (
            "const all = []; while (true) all.push(new Array(1000).fill(1));",
            "index.js:3: the script exceeded the limit of 16 MiB of memory",
        ),
        (
            "store.set({ playerId: id, gamesPlayed: 1, metrics: { \"test:x\": NaN } });",
            "index.js:3: TypeError: the metric test:x must be a finite number, not NaN",
        ),
        (
            "store.set({ playerId: id, gamesPlayed: 1, metrics: {} });",
            "index.js:3: TypeError: the metric test:x must be a finite number, not undefined",
        ),
        (
            "store.set({ playerId: id, gamesPlayed: 1.5, metrics: { \"test:x\": 1 } });",
            "index.js:3: TypeError: gamesPlayed must be a whole number, not 1.5",
        ),
        (
            "store.set({ playerId: id, gamesPlayed: 1, metrics: { \"test:x\": 1, other: 2 } });",
            "index.js:3: TypeError: the metric other isn't in scoring.json",
        ),
        (
            "store.set({ playerId: \"eve\", gamesPlayed: 1, metrics: { \"test:x\": 1 } });",
            "index.js:3: TypeError: \"eve\" isn't the id of a player of this game; use the values of result.playerIdentities",
        ),
        ("store.get(result.players[0]);", "index.js:3: TypeError: \"inv_"),
        ("store.setState(\"x\".repeat(10 << 20));", "index.js:3: the script exceeded the limit of 16 MiB of memory"),
        (
            "store.setState(\"x\".repeat(1 << 20));",
            "index.js:3: RangeError: the strategy's state has grown to 1048578 characters; at most 262144 are allowed",
        ),
        (
            "store.setState(\"x\".repeat(20000), id);",
            "index.js:3: RangeError: a player's state has grown to 20002 characters; at most 16384 are allowed",
        ),
        (
            "store.setState({ a: [1, () => 1] });",
            "index.js:3: TypeError: the state.a[1] is a function, which JSON cannot represent",
        ),
        // Overwritten built-in functions don't help.
        (
            &format!("Set.prototype.has = () => true; store.set({{ ...{entry}, playerId: \"eve\" }});"),
            ": the script changed rows that it may not change",
        ),
        (
            &format!("Number.isFinite = () => true; store.set({{ ...{entry}, metrics: {{ \"test:x\": \"1\" }} }});"),
            ": invalid answer: ",
        ),
        ("setScoreEntry();", "index.js:3: ReferenceError: setScoreEntry is not defined"),
        (
            "store.setScoreEntry(\"psi\", \"test\", { playerId: \"eve\" });",
            "index.js:3: unhandled promise rejection: TypeError: \"eve\" isn't the id of a player of this game; use the values of result.playerIdentities",
        ),
    ];
    let wrong: Vec<String> = (cases.into_iter())
        .map(|(code, expected)| (code, expected, fault(code)))
        .filter(|(_, expected, found)| !found.starts_with(expected))
        .map(|(code, expected, found)| format!("{code}\n  {found}\n  {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn games_before_a_failing_one_count() {
    let script = "export function update(result, store) {\n\
                  const state = store.getState() ?? { games: 0 };\n\
                  if (state.games === 2) throw new Error(\"no third game\");\n\
                  store.setState({ games: state.games + 1 });\n}\n";
    let strategy = load(DESCRIPTION, &[("index.js", script)]).unwrap();
    let (games, mut rows) = (games(5), StrategyRows::new());
    let batch = strategy.update(&games.iter().collect::<Vec<_>>(), &mut rows);
    let fault = batch.fault.expect("the third game fails");
    assert_eq!(
        (batch.counted, fault.place.as_deref(), &*fault.message),
        (2, Some("index.js:3"), "Error: no third game")
    );
    let states: Vec<Option<&str>> = rows.values().map(|row| row.state.as_deref()).collect();
    assert_eq!(states, [Some("{\"games\":2}")]);
}

#[test]
fn folders_that_cannot_be_used_are_refused_with_file_and_line() {
    let told = |description: &str, files: &[(&str, &str)]| -> String {
        let problems = load(description, files).err().expect("it is refused");
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    };
    let works = [("index.js", "export const update = () => {};")];
    let check = |description: &str, expected: Expect| expected.assert_eq(&told(description, &works));
    check(
        "{",
        expect![[r#"
        scoring.json:1: isn't the description of a strategy: EOF while parsing an object at line 1 column 1
    "#]],
    );
    check(
        r#"{"name": "other", "metrics": []}"#,
        expect![[r#"
        scoring.json: name must be the folder's name, "test", not "other"
    "#]],
    );
    check(
        r#"{"name": "test", "metrics": []}"#,
        expect![[r#"
        scoring.json: metrics must be a list of 1 to 20 metrics
    "#]],
    );
    check(
        "{\"name\": \"test\",\n \"metrics\": [{\"key\": \"a\"}]}",
        expect![[r#"
        scoring.json:2: isn't the description of a strategy: missing field `label` at line 2 column 25
    "#]],
    );
    check(
        r#"{"name": "test", "metrics": [{"key": "a:low", "label": "A"}]}"#,
        expect![[r#"
        scoring.json: metrics[0]: "a:low" isn't a key: use 1 to 64 letters, digits, `_`, `-`, `.` and `:`, a letter first, and not `:low` at the end
    "#]],
    );
    check(
        r#"{"name": "test", "metrics": [{"key": "a", "label": "A"}, {"key": "a", "label": "B"}]}"#,
        expect![[r#"
        scoring.json: metrics[1]: the key "a" is there twice
    "#]],
    );
    let scripts = |files: &[(&str, &str)], expected: Expect| expected.assert_eq(&told(DESCRIPTION, files));
    scripts(
        &[],
        expect![[r#"
        index.ts: is missing; the script is index.ts or index.js
    "#]],
    );
    scripts(
        &[("index.ts", "export const x = 1;")],
        expect![[r#"
        index.ts: TypeError: the script exports no function update, and no object with one
    "#]],
    );
    scripts(
        &[(
            "index.ts",
            "export function update(result: {}, store: {}): void {\n  null!.x;\n}\nthrow new Error(\"at loading\");",
        )],
        expect![[r#"
        index.ts: index.ts:4: Error: at loading
    "#]],
    );
}

#[test]
fn an_update_sees_the_documented_fields_and_its_own_data() {
    let script = "import { limit } from \"./limit.ts\";\n\
                  export default {\n\
                  name: \"test\",\n\
                  async update(result: any, store: any): Promise<void> {\n\
                  const seen = store.getState() ?? [];\n\
                  if (seen.length < limit) seen.push([Object.keys(result).sort().join(), Math.random() === Math.random(), new Date().getTime() === result.completedAt]);\n\
                  store.setState(seen);\n\
                  for (const playerId of Object.values(result.playerIdentities)) {\n\
                  const before = await store.getScoreEntry(\"psi\", \"test\", playerId);\n\
                  const { gamesPlayed = 0 } = store.get(playerId) ?? {};\n\
                  if ((before?.gamesPlayed ?? 0) !== gamesPlayed) throw new Error(\"two stores\");\n\
                  store.set({ playerId, gamesPlayed: gamesPlayed + 1, metrics: { \"test:x\": Math.random() } });\n\
                  }\n}\n};\n";
    let strategy = load(DESCRIPTION, &[("index.ts", script), ("limit.ts", "export const limit: number = 1;")]).unwrap();
    let games = games(40);
    let once = counted(&strategy, &[&games]);
    let state = once.iter().find(|((_, player), _)| player.is_empty()).and_then(|(_, row)| row.state.as_deref());
    let fields = "attributions,challengeType,completedAt,createdAt,gameId,playerIdentities,players,scores";
    assert_eq!(state, Some(&*format!("[[\"{fields}\",false,true]]")));
    let singles: Vec<&[GameToCount]> = games.chunks(1).collect();
    assert_eq!(counted(&strategy, &singles), once, "numbers don't depend on the parts in which games are counted");
}

#[test]
fn the_examples_give_the_same_numbers_in_any_parts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scoring");
    let mut on_board = BTreeMap::new();
    for name in ["win-share", "breaches", "elo"] {
        let folder = Folder::read_of(ScriptKind::Strategy, &root.join(name)).unwrap();
        let strategy = ScriptStrategy::load(&folder, &sandbox(Limits::default())).unwrap();
        let games = games(150);
        let once = counted(&strategy, &[&games]);
        assert_eq!(counted(&strategy, &[&games[..70], &games[70..71], &games[71..]]), once, "{name}");
        on_board.insert(name, once.values().filter(|row| row.entry.is_some()).count());
    }
    assert_eq!(on_board, BTreeMap::from([("win-share", 7), ("breaches", 7), ("elo", 7)]));
}
