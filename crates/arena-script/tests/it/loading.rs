//! Folders that are no valid challenges: the messages for their authors.

use std::collections::BTreeMap;

use arena_model::ChallengeType;
use arena_script::{Limits, find_folders};
use expect_test::expect;

use crate::table::{METADATA, folder, load, script};

/// Returns the messages for the author of these files, or `fine`.
fn told(files: &[(&str, &str)]) -> String {
    match load(&files.iter().copied().collect(), Limits { wall_ms: 60_000, ..Limits::default() }) {
        Ok(_) => "fine".to_owned(),
        Err(problems) => problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

#[track_caller]
fn check(files: &[(&str, &str)], expected: &str) {
    assert_eq!(told(files), expected);
}

#[test]
fn files_that_are_missing_or_too_many() {
    let fine = script("act() {}");
    check(&[("index.js", &fine)], "challenge.json: is missing; it must contain the challenge's name and description");
    check(&[("challenge.json", METADATA)], "index.ts: is missing; the script is index.ts or index.js");
    check(
        &[("challenge.json", METADATA), ("index.js", &fine), ("index.ts", &fine)],
        "index.js: exists beside index.ts; keep only one of them",
    );
    check(&[("challenge.json", METADATA), ("index.js", &fine), ("notes.json", "not looked at")], "fine");
}

#[test]
fn imports() {
    let of = |line: &str| format!("{line}\n{}", script("act() {}"));
    let lines = [
        "import fs from \"node:fs\"; fs;",
        "\nimport { x } from \"../outside.ts\"; x;",
        "import { x } from \"./gone\"; x;",
        "import a from \"./a.json\"; a;",
        "import { run } from \"arena:session\"; run;",
        "import { Nothing } from \"@specarena/engine/utils\"; Nothing;",
        "import { unused } from \"./gone.ts\";",
        "await import(\"lodash\");",
        "const x: number = ;",
    ];
    let transcript = lines.map(|line| {
        let files = [("challenge.json", METADATA), ("index.ts", &of(line)), ("a.json", "[1")];
        format!("{line:?} => {}\n", told(&files))
    });
    expect![[r#"
        "import fs from \"node:fs\"; fs;" => index.ts:1: `node:fs` cannot be imported; available: @specarena/engine/types, @specarena/engine/utils, @specarena/engine/challenge-design/BaseChallenge, prando, and the folder's files as `./name.ts`
        "\nimport { x } from \"../outside.ts\"; x;" => index.ts:2: `../outside.ts` is outside of the challenge's folder
        "import { x } from \"./gone\"; x;" => index.ts:1: `./gone` doesn't exist: gone isn't a .ts, .js or .json file of the challenge's folder (links aren't followed)
        "import a from \"./a.json\"; a;" => a.json:1: isn't JSON: EOF while parsing a list at line 1 column 2
        "import { run } from \"arena:session\"; run;" => index.ts:1: `arena:session` cannot be imported; available: @specarena/engine/types, @specarena/engine/utils, @specarena/engine/challenge-design/BaseChallenge, prando, and the folder's files as `./name.ts`
        "import { Nothing } from \"@specarena/engine/utils\"; Nothing;" => index.ts: the test call of create fails: SyntaxError: Could not find export 'Nothing' in module '@specarena/engine/utils'
        "import { unused } from \"./gone.ts\";" => index.ts:1: `./gone.ts` doesn't exist: gone.ts isn't a .ts, .js or .json file of the challenge's folder (links aren't followed)
        "await import(\"lodash\");" => index.ts:1: import() isn't supported: nothing can be loaded while a script runs; write `import … from …`
        "const x: number = ;" => index.ts:1: Unexpected token
    "#]].assert_eq(&transcript.concat());
    // Unused imports, and imports for their side effects, must exist; types needn't.
    let unknown = |line: &str| {
        check(
            &[
                ("challenge.json", METADATA),
                ("index.ts", &of(line)),
                ("types.d.ts", ""),
                ("notes.ts", "export type N = 1;"),
            ],
            "index.ts:1: `lodash` cannot be imported; available: @specarena/engine/types, @specarena/engine/utils, @specarena/engine/challenge-design/BaseChallenge, prando, and the folder's files as `./name.ts`",
        );
    };
    unknown("import lodash from \"lodash\";");
    unknown("import * as lodash from \"lodash\";");
    unknown("import { map, type Dictionary } from \"lodash\";");
    unknown("import \"lodash\";");
    unknown("import {} from \"lodash\";");
    unknown("export * from \"lodash\";");
    unknown("export { map } from \"lodash\";");
    for fine in [
        "import type { Dictionary } from \"lodash\";",
        "import { type Dictionary } from \"lodash\";",
        "import { ChatMessage } from \"@specarena/engine/types\";",
        "import { T } from \"./types\"; const t = (value: T) => value; t;",
        "import { T } from \"./types.js\";",
        "import { N } from \"./notes\"; const t = (value: N) => value; t;",
    ] {
        check(
            &[
                ("challenge.json", METADATA),
                ("index.ts", &of(fine)),
                ("types.d.ts", "not read"),
                ("notes.ts", "export type N = 1;"),
            ],
            "fine",
        );
    }
}

#[test]
fn scripts_that_do_not_do_what_their_metadata_says() {
    let with = |from: &str, to: &str| METADATA.replace(from, to);
    let fine = script("act() {}");
    let cases: [(&str, &str, &str, &str); 7] = [
        ("three players", &with("\"players\": 2", "\"players\": 3"), "index.js", &fine),
        ("another method", &with("\"name\": \"act\"", "\"name\": \"move\""), "index.js", &fine),
        ("a second method", &with("]}", ", {\"name\": \"pass\", \"description\": \"\"}]}"), "index.js", &fine),
        ("another export", METADATA, "index.js", "export const create = 1;"),
        ("an empty operator", METADATA, "index.js", "export const createChallenge = () => ({});"),
        ("an error", METADATA, "index.js", &format!("{fine}\nthrow new Error(\"at once\");")),
        ("an endless loop", METADATA, "index.ts", &format!("for (;;);\n{fine}")),
    ];
    let transcript = cases.map(|(case, metadata, name, script)| {
        format!("{case} => {}\n", told(&[("challenge.json", metadata), (name, script)]))
    });
    expect![[r#"
        three players => index.js: the test call of join for player 3 of the 3 in challenge.json is refused: All seats are taken. (CHALLENGE_FULL)
        another method => index.js: challenge.json has the method `move`, but the script doesn't call handle("move", …)
        a second method => index.js: challenge.json has the method `pass`, but the script doesn't call handle("pass", …)
        another export => index.js: the test call of create fails: TypeError: the script doesn't export a function createChallenge
        an empty operator => index.js: the test call of create fails: TypeError: the result of createChallenge has no function join
        an error => index.js: the test call of create fails: Error: at once
            at <anonymous> (index.js:9)
        an endless loop => index.ts: the test call of create fails: the script exceeded the limit of 1000 ticks (a tick is 10,000 function calls or loop iterations)
    "#]].assert_eq(&transcript.concat());
}

#[test]
fn a_text_that_no_parser_survives_ends_the_worker_only() {
    check(
        &[("challenge.json", METADATA), ("index.js", &"(".repeat(500_000))],
        "index: cannot be read: the worker process ended (signal: 6 (SIGABRT)); the script probably used too much memory or recursed too deeply",
    );
}

#[test]
fn what_is_not_imported_leaves_the_version_as_it_is() {
    let fine = script("act() {}");
    let version = |more: &[(&'static str, &'static str)]| {
        let mut files = BTreeMap::from([("challenge.json", METADATA), ("index.js", fine.as_str())]);
        files.extend(more.iter().copied());
        load(&files, Limits::default()).unwrap().script().unwrap().version()
    };
    assert_eq!(version(&[]), version(&[("other.js", "1"), ("house/bot.json", "{}")]));
    let other = script("act() { return 1; }");
    let files = BTreeMap::from([("challenge.json", METADATA), ("index.js", other.as_str())]);
    assert_ne!(version(&[]), load(&files, Limits::default()).unwrap().script().unwrap().version());
}

#[test]
fn links_and_hidden_files_are_not_read() {
    let fine = format!("import {{ x }} from \"./secret.js\"; x;\n{}", script("act() {}"));
    let (temp, path) = folder(&BTreeMap::from([("challenge.json", METADATA), ("index.js", &fine)]));
    std::fs::write(temp.path().join("outside.js"), "export const x = 1;").unwrap();
    std::os::unix::fs::symlink(temp.path().join("outside.js"), path.join("secret.js")).unwrap();
    let folder = arena_script::Folder::read(&path).unwrap();
    let problems =
        arena_script::ScriptChallenge::load(&folder, &crate::table::sandbox(Limits::default())).err().unwrap();
    expect!["index.js:1: `./secret.js` doesn't exist: secret.js isn't a .ts, .js or .json file of the challenge's folder (links aren't followed)"].assert_eq(&problems[0].to_string());
    assert_eq!(find_folders(temp.path()).unwrap(), std::slice::from_ref(&path));
    assert_eq!(find_folders(&path).unwrap(), [path]);
}
