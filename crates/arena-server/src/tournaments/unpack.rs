//! Unpacking of uploads. An upload is a single file, or an archive, which `arena-match` unpacks.

use std::io::Write;
use std::path::{Path, PathBuf};

use arena_match::archive::{self, MAX_NAME, UnpackError, UnpackedArchive, create};

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The first bytes of other archives, with their names.
const OTHER_ARCHIVES: [(&[u8], &str); 8] = [
    (b"PK\x03\x04", "a zip"),
    (b"PK\x05\x06", "a zip"),
    (b"PK\x07\x08", "a zip"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"BZh", "a bzip2 file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
];

/// The bytes of a tar archive at the offset 257.
const TAR: &[u8] = b"ustar";

/// The error for a single file without a name.
const UNNAMED: &str =
    "a single file needs a name: ?filename=agent.py (a remote agent needs Content-Type: application/json)";

/// Unpacks `body` into the folder `into`: a tar.gz of a folder, or a single file with the name `file_name`.
pub(super) fn unpack(
    body: &[u8],
    file_name: Option<&str>,
    into: &Path,
    max_bytes: u64,
) -> Result<UnpackedArchive, UnpackError> {
    if body.starts_with(&GZIP) {
        return archive::unpack(body, into, max_bytes);
    }
    let is_tar = body.get(257..).is_some_and(|rest| rest.starts_with(TAR));
    let other = OTHER_ARCHIVES.iter().find(|(start, _)| body.starts_with(start)).map(|(_, name)| *name);
    match other.or(is_tar.then_some("a tar without gzip")) {
        Some(name) => {
            let text =
                format!("{name} cannot be uploaded; make a tar.gz, for example with `tar czf bot.tar.gz FOLDER`");
            Err(UnpackError::Refused(text))
        }
        None => put_file(body, file_name, into),
    }
}

fn put_file(body: &[u8], file_name: Option<&str>, into: &Path) -> Result<UnpackedArchive, UnpackError> {
    let name = file_name.ok_or_else(|| UnpackError::Refused(UNNAMED.to_owned()))?;
    let is_plain = !name.starts_with('.') && name.len() <= MAX_NAME && !name.contains(['/', '\\']);
    if name.is_empty() || !is_plain || name.chars().any(char::is_control) {
        let text = format!("filename must be 1 to {MAX_NAME} bytes without slashes, and must not begin with a dot");
        return Err(UnpackError::Refused(text));
    }
    if body.is_empty() {
        return Err(UnpackError::Refused("the file is empty".to_owned()));
    }
    // An uploaded file has no mode, so scripts with `#!` and binaries are made executable.
    let is_program = body.starts_with(b"#!") || body.starts_with(b"\x7fELF");
    let mut file = create(&into.join(name), is_program).map_err(UnpackError::Write)?;
    file.write_all(body).map_err(UnpackError::Write)?;
    Ok(UnpackedArchive { agent: PathBuf::from(name), files: 1, bytes: body.len() as u64 })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use expect_test::{Expect, expect};

    use super::*;

    /// Unpacks an upload and compares the unpacked files and their modes with `expected`.
    #[track_caller]
    fn check(body: &[u8], file_name: Option<&str>, expected: Expect) {
        let into = tempfile::tempdir().unwrap();
        let outcome = match unpack(body, file_name, into.path(), 100_000) {
            Ok(UnpackedArchive { agent, files, bytes }) => {
                let mode = fs::metadata(into.path().join(&agent)).unwrap().permissions().mode() & 0o777;
                format!("{}: {files} files, {bytes} bytes, {mode:o}", agent.display())
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&outcome);
    }

    #[test]
    fn other_archives_are_refused_by_name() {
        for name in [None, Some("bot.zip"), Some("agent.py")] {
            let expected =
                expect!["a zip cannot be uploaded; make a tar.gz, for example with `tar czf bot.tar.gz FOLDER`"];
            check(b"PK\x03\x04\x14\0", name, expected);
        }
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(TAR);
        let expected = expect![
            "a tar without gzip cannot be uploaded; make a tar.gz, for example with `tar czf bot.tar.gz FOLDER`"
        ];
        check(&tar, Some("bot.tar"), expected);
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
                "a single file needs a name: ?filename=agent.py (a remote agent needs Content-Type: application/json)"
            ],
        );
        for name in ["", "..", "a/b", ".hidden", "a\nb"] {
            let expected = expect!["filename must be 1 to 128 bytes without slashes, and must not begin with a dot"];
            check(b"x", Some(name), expected);
        }
    }
}
