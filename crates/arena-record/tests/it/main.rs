//! Tests that need another program: the reference values of the log, computed in Python.

mod services {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Returns the interpreter that `cargo xtask python` installs.
    fn interpreter() -> PathBuf {
        let executable = std::env::current_exe().expect("a program");
        let target = executable.ancestors().find(|folder| folder.join("tools/python/bin/python").exists());
        target.expect("no Python environment: run `cargo xtask python`").join("tools/python/bin/python")
    }

    #[test]
    fn python_computes_the_values_of_the_file() {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/log.py");
        let output = Command::new(interpreter()).arg(program).arg("--check").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
