//! Types of TypeScript, which are blanked: files in `tests/types` with everything that can be, and refused syntax. The
//! first line of a file has the expected value of its export `result`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use arena_script::Limits;
use expect_test::{Expect, expect};

use crate::table::{METADATA, load, script};

/// A file that the other ones import.
const PART: &str = "part.ts";

pub fn corpus() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/types");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())).collect()
}

#[track_caller]
pub fn check_result(name: &str, text: &str, part: (&str, &str), expected: &str) {
    let index = format!("import {{ result }} from \"./{name}\";\nthrow new Error(JSON.stringify(result));\n");
    let files = BTreeMap::from([("challenge.json", METADATA), ("index.js", &index), (name, text), part]);
    let problems = load(&files, Limits::default()).err().unwrap();
    let told = problems[0].to_string();
    let found = told.split_once("test call of create fails: Error: ").map_or(&*told, |(_, rest)| rest);
    assert_eq!(found.lines().next(), Some(expected), "{name}: {told}");
}

pub fn expected(corpus: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    let files = corpus.iter().filter(|(name, _)| *name != PART);
    files.map(|(name, text)| (&**name, text.lines().next().unwrap().strip_prefix("// Expected: ").unwrap())).collect()
}

#[test]
fn everything_that_can_be_blanked_runs_in_the_engine() {
    let corpus = corpus();
    for (name, expected) in expected(&corpus) {
        check_result(name, &corpus[name], (PART, &corpus[PART]), expected);
    }
}

#[test]
fn errors_have_the_lines_of_the_file() {
    let text = format!(
        "type A = {{\n  a: number;\n}};\nconst f = (x: A):\n  number => {{\n  throw new Error(\"no\");\n}};\n{}",
        script("act() {}").replace("class Test", "f({ a: 1 });\nclass Test")
    );
    let files = BTreeMap::from([("challenge.json", METADATA), ("index.ts", &*text)]);
    let problems = load(&files, Limits::default()).err().unwrap();
    expect![[r#"
        index.ts: the test call of create fails: Error: no
            at f (index.ts:6)
            at <anonymous> (index.ts:10)"#]]
    .assert_eq(&problems[0].to_string());
}

#[test]
fn syntax_that_is_more_than_types_is_refused() {
    let check = |line: &str, expected: Expect| {
        let text = format!("\n{line}\n{}", script("act() {}"));
        let files = BTreeMap::from([("challenge.json", METADATA), ("index.ts", &*text)]);
        let problems = load(&files, Limits::default()).err().unwrap();
        expected.assert_eq(&problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    };
    check(
        "export enum Suit { Hearts, Spades }",
        expect!["index.ts:2: `enum` isn't supported; write `const Suit = { … } as const` instead"],
    );
    check(
        "const enum Suit { Hearts }",
        expect!["index.ts:2: `enum` isn't supported; write `const Suit = { … } as const` instead"],
    );
    check(
        "namespace A { export const b = 1; }",
        expect!["index.ts:2: a namespace with values isn't supported; write a file of its own, or an object, instead"],
    );
    check(
        "module A.B { export const b = 1; }",
        expect!["index.ts:2: a namespace with values isn't supported; write a file of its own, or an object, instead"],
    );
    check(
        "import a = Math.max; a(1);",
        expect!["index.ts:2: `import … = …` isn't supported; write `import … from …` or `const … = …` instead"],
    );
    check(
        "@sealed class A {}",
        expect!["index.ts:2: decorators aren't supported; call the function where its result is needed instead"],
    );
    check(
        "class A { accessor a: number = 1; @logged b() {} }",
        expect![[r#"
            index.ts:2: `accessor` isn't supported; write a getter and a setter instead
            index.ts:2: decorators aren't supported; call the function where its result is needed instead"#]],
    );
    // Without the type, this would be `a + (b * 2)`.
    check(
        "const a = 1, b = 2, c = a + b as number * 2;",
        expect![
            "index.ts:2: Expected a semicolon or an implicit semicolon after a statement, but found none (Try inserting a semicolon here)"
        ],
    );
    check(
        "class A extends Map { constructor(private a: number) { if (a) super(); else super(); } }",
        expect![
            "index.ts:2: a constructor with parameters that are fields must call super(…) in a statement of its own; write `this.name = name` after the call instead"
        ],
    );
}

#[test]
fn export_equals_is_refused() {
    let files = BTreeMap::from([("challenge.json", METADATA), ("index.ts", "const a = 1;\nexport = a;\n")]);
    let problems = load(&files, Limits::default()).err().unwrap();
    expect!["index.ts:2: `export = …` isn't supported; write `export default …` instead"]
        .assert_eq(&problems[0].to_string());
}
