//! Tests that need Node.js with packages.

use std::path::Path;
use std::process::Command;

use crate::types::{check_result, corpus, expected};

/// Prints the JavaScript that esbuild makes of a file.
const ESBUILD: &str = r#"
    const { transformSync } = require("esbuild");
    const text = require("fs").readFileSync(process.argv[1], "utf8");
    const tsconfigRaw = { compilerOptions: { useDefineForClassFields: false } };
    process.stdout.write(transformSync(text, { loader: "ts", format: "esm", target: "esnext", tsconfigRaw }).code);
"#;

#[test]
fn blanked_files_behave_as_those_of_esbuild() {
    let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools").join("node/node_modules");
    assert!(packages.join("esbuild").is_dir(), "this test needs Node.js packages; run `cargo xtask setup node`");
    let corpus = corpus();
    let build = |name: &str| {
        let mut node = Command::new("node");
        node.args(["-e", ESBUILD, "--"]).arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/types").join(name));
        let output = node.env("NODE_PATH", &packages).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let part = build("part.ts");
    for (name, expected) in expected(&corpus) {
        check_result(&name.replace(".ts", ".js"), &build(name), ("part.js", &part), expected);
    }
}
