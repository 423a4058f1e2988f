//! The size of each crate's symbols in a program, for `cargo xtask facts`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// The row for symbols without a crate.
const NO_CRATE: &str = "C libraries, assembler and data without a name";

/// Returns the bytes of each crate's symbols in a program, the largest first. A generic function counts for the crate
/// that defines it, not for the crate that uses it.
///
/// # Errors
/// If `nm` of binutils is missing or can't read the program.
pub fn sizes(program: &Path) -> anyhow::Result<Vec<(String, u64)>> {
    let output = Command::new("nm")
        .args(["--size-sort", "--print-size", "--demangle"])
        .arg(program)
        .output()
        .context("cannot run nm; install binutils")?;
    ensure!(output.status.success(), "nm {}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
    Ok(sum(&String::from_utf8_lossy(&output.stdout)))
}

/// Adds the sizes of the symbols of each crate. A line consists of address, size, type and name.
fn sum(lines: &str) -> Vec<(String, u64)> {
    let mut sizes = BTreeMap::<&str, u64>::new();
    for line in lines.lines() {
        let mut words = line.splitn(4, ' ').skip(1);
        let (Some(size), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
        // Zeroed data isn't stored in the file.
        if let (Ok(size), false) = (u64::from_str_radix(size, 16), ["b", "B"].contains(&kind)) {
            *sizes.entry(crate_of(name)).or_default() += size;
        }
    }
    let mut sizes: Vec<(String, u64)> = sizes.into_iter().map(|(name, size)| (name.to_owned(), size)).collect();
    sizes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sizes
}

/// Returns the crate of a demangled symbol: the first name before `::`.
fn crate_of(symbol: &str) -> &str {
    let name = |(end, _): (usize, &str)| {
        let name = symbol[..end].rsplit(|char: char| !char.is_alphanumeric() && char != '_').next()?;
        name.starts_with(|char: char| char.is_ascii_lowercase()).then_some(name)
    };
    symbol.match_indices("::").find_map(name).unwrap_or(NO_CRATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_counts_for_its_first_crate() {
        let lines = "\
0000000000001000 0000000000000010 t core::fmt::write
0000000000001010 0000000000000100 T <axum::Router<S> as core::clone::Clone>::clone
0000000000001110 0000000000000001 r <&T as core::fmt::Debug>::fmt
0000000000001111 0000000000000002 b core::panicking::COUNT
0000000000001200 0000000000000003 t sqlite3_step
";
        let expected = [("axum", 256_u64), ("core", 17), (NO_CRATE, 3)];
        assert_eq!(sum(lines), expected.map(|(name, size)| (name.to_owned(), size)));
    }
}
