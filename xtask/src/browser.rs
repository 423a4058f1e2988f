//! The browser for tests of the pages is Chromium from the system's packages. This module downloads the script axe, which
//! finds accessibility problems, and takes pictures of the pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::cargo::{cargo, run, say};
use crate::{python, setup};

/// The Python package that contains axe's script. No other file of the package is used. The package is pinned by its
/// hash, because the tests run the script.
const AXE: &str =
    "axe-playwright-python==0.1.8 --hash=sha256:fdd263c998388f1a8e67cad02677e612d946248bd44d163be5e8650ea31f95f8\n";

/// The folder of the pictures in the README.
const SCREENS: &str = "docs/screens";

/// Downloads axe's script, unless it is there. Tests find it at `tools/axe/axe.min.js` in the target folder.
///
/// # Errors
/// If it is missing and can't be downloaded.
pub fn prepare(root: &Path) -> anyhow::Result<()> {
    let home = python::tools(root)?.join("axe");
    let (script, stamp) = (home.join("axe.min.js"), home.join("requirements.txt"));
    if script.is_file() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == AXE) {
        return Ok(());
    }
    python::prepare(root)?;
    if home.exists() {
        fs::remove_dir_all(&home).with_context(|| format!("cannot remove {}", home.display()))?;
    }
    fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    let wanted = home.join("wanted.txt");
    fs::write(&wanted, AXE).with_context(|| format!("cannot write {}", wanted.display()))?;
    let unpacked = home.join("package");
    let mut install = Command::new(python::interpreter(root)?);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]);
    install.args(python::IMPATIENT).arg("--target").arg(&unpacked).arg("--requirement").arg(&wanted);
    run(install)?;
    let from: PathBuf = unpacked.join("axe_playwright_python").join("axe.min.js");
    fs::rename(&from, &script).with_context(|| format!("cannot move {} out of the package", from.display()))?;
    // This file is written last, so that an interrupted installation is repeated.
    fs::rename(&wanted, &stamp).with_context(|| format!("cannot write {}", stamp.display()))
}

/// The pages with pictures in [`SCREENS`].
const PICTURED: [&str; 7] = ["home", "challenge", "session", "snake", "chess", "tournament", "replay"];

/// The limit of the pictures' total size, in bytes. Every clone of the repository contains the pictures.
const MOST_BYTES: u64 = 1_500_000;

/// Takes the pictures in `docs/screens` again, by running the test that visits all pages. The test writes pictures of
/// all pages to `screens` in the target folder, and this function copies those of [`PICTURED`].
///
/// # Errors
/// If the test of the pages fails, a picture is missing, or the pictures are larger than [`MOST_BYTES`].
pub fn screenshots(root: &Path) -> anyhow::Result<()> {
    setup::setup(root, &["browser"])?;
    let all = python::tools(root)?.with_file_name("screens");
    fs::create_dir_all(&all).with_context(|| format!("cannot create {}", all.display()))?;
    let mut test =
        cargo(root, &["test", "--locked", "-p", "arena-cli", "--test", "browser", "pages::", "--", "--nocapture"]);
    test.env("ARENA_SCREENSHOTS", &all);
    run(test)?;
    let chosen = root.join(SCREENS);
    fs::create_dir_all(&chosen).with_context(|| format!("cannot create {}", chosen.display()))?;
    let mut bytes = 0;
    for page in PICTURED {
        for look in ["1280-light", "1280-dark", "360-light", "360-dark"] {
            let name = format!("{page}-{look}.webp");
            bytes += fs::copy(all.join(&name), chosen.join(&name)).with_context(|| format!("cannot copy {name}"))?;
        }
    }
    if bytes > MOST_BYTES {
        bail!("the pictures in {SCREENS} have {bytes} bytes, more than the limit of {MOST_BYTES}; reduce PICTURED");
    }
    say(&format!("the pictures in {SCREENS} have {bytes} bytes; check the pictures before you commit them"));
    Ok(())
}
