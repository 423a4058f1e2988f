//! Uploads: what somebody sent becomes files in a folder of its own, or a sentence that says why it doesn't. Archives are `arena-match`'s.

use std::io::Write;
use std::path::{Path, PathBuf};

use arena_match::archive::{self, MAX_NAME, UnpackError, Unpacked, create};

/// The first bytes of what gzip has packed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What is told of a file without a name.
const UNNAMED: &str = "a single file needs a name: ?filename=agent.py (and an address comes as JSON, with Content-Type: application/json)";

/// Unpacks `body` into the folder `into`: a tar.gz of a folder, or a single file that is called `file_name`.
pub(super) fn unpack(
    body: &[u8],
    file_name: Option<&str>,
    into: &Path,
    max_bytes: u64,
) -> Result<Unpacked, UnpackError> {
    if body.starts_with(&GZIP) { archive::unpack(body, into, max_bytes) } else { put_file(body, file_name, into) }
}

fn put_file(body: &[u8], file_name: Option<&str>, into: &Path) -> Result<Unpacked, UnpackError> {
    let name = file_name.ok_or_else(|| UnpackError::Refused(UNNAMED.to_owned()))?;
    let is_plain = !name.starts_with('.') && name.len() <= MAX_NAME && !name.contains(['/', '\\']);
    if name.is_empty() || !is_plain || name.chars().any(char::is_control) {
        let text = format!("filename is 1 to {MAX_NAME} bytes without slashes, and doesn't begin with a point");
        return Err(UnpackError::Refused(text));
    }
    if body.is_empty() {
        return Err(UnpackError::Refused("the file is empty".to_owned()));
    }
    // Whoever sends a file alone can't say whether it is a program. Scripts and binaries do so themselves.
    let is_program = body.starts_with(b"#!") || body.starts_with(b"\x7fELF");
    let mut file = create(&into.join(name), is_program).map_err(UnpackError::Write)?;
    file.write_all(body).map_err(UnpackError::Write)?;
    Ok(Unpacked { agent: PathBuf::from(name), files: 1, bytes: body.len() as u64 })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use expect_test::{Expect, expect};

    use super::*;

    /// What becomes of an upload, and whether it can be run.
    #[track_caller]
    fn check(body: &[u8], file_name: Option<&str>, expected: Expect) {
        let into = tempfile::tempdir().unwrap();
        let told = match unpack(body, file_name, into.path(), 100_000) {
            Ok(Unpacked { agent, files, bytes }) => {
                let mode = fs::metadata(into.path().join(&agent)).unwrap().permissions().mode() & 0o777;
                format!("{}: {files} files, {bytes} bytes, {mode:o}", agent.display())
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn a_file_alone_is_put_under_its_name() {
        check(b"print()", Some("bot.py"), expect!["bot.py: 1 files, 7 bytes, 644"]);
        check(b"#!/bin/sh\n", Some("agent"), expect!["agent: 1 files, 10 bytes, 755"]);
        check(b"", Some("agent"), expect!["the file is empty"]);
        check(
            b"x",
            None,
            expect![
                "a single file needs a name: ?filename=agent.py (and an address comes as JSON, with Content-Type: application/json)"
            ],
        );
        for name in ["", "..", "a/b", ".hidden", "a\nb"] {
            let expected = expect!["filename is 1 to 128 bytes without slashes, and doesn't begin with a point"];
            check(b"x", Some(name), expected);
        }
    }
}
