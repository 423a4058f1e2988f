//! `cargo xtask dist`: builds a release in `dist`. The release is an archive with the program, its man pages, licenses,
//! documents and bill of materials, and two Python wheels: one with the program, and the package `clients/python` with
//! the rules.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::budget;
use crate::cargo::{cargo, metadata, run, say};
use crate::sbom::sbom;

/// The folder of the release, in the workspace.
const FOLDER: &str = "dist";

/// The platform in the names of wheels.
const PLATFORM: &str = "linux_x86_64";

/// The name of the bill of materials in the archive.
const BILL: &str = "sbom.cdx.json";

/// The workspace's files and folders that the archive contains.
const DOCUMENTS: [&str; 5] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "docs"];

/// Builds the program and the extension module, and writes the archive and the wheels.
///
/// # Errors
/// If there are no releases for this platform, or a step fails.
pub fn dist(root: &Path) -> anyhow::Result<()> {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    if (system, machine) != ("linux", "x86_64") {
        bail!("releases are built on Linux for x86-64 only; this is {system} on {machine}");
    }
    run(cargo(root, &["build", "--profile", "dist", "--locked", "-p", "arena-cli", "-p", "arena-python"]))?;
    let metadata = metadata(root)?;
    let target =
        metadata["target_directory"].as_str().context("the output of `cargo metadata` has no target_directory")?;
    let program = Path::new(target).join("dist/arena");
    let bytes = fs::metadata(&program).with_context(|| format!("cannot read {}", program.display()))?.len();
    budget::record(root, "dist_megabytes", &budget::megabytes(bytes))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let version =
        packages.filter(|package| package["name"] == "arena-cli").find_map(|package| package["version"].as_str());
    let version = version.context("the output of `cargo metadata` has no version of arena-cli")?;
    let folder = root.join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    write_archive(root, &folder, &program, &format!("arena-{version}-linux-x86_64"))?;
    let wheel = |kind: &str| {
        let mut wheel = Command::new("python3");
        wheel.current_dir(root).args(["xtask/wheel.py", kind]);
        wheel
    };
    let mut of_program = wheel("program");
    of_program.arg(&program).args(["arena_server", version, PLATFORM, FOLDER]);
    run(of_program)?;
    let mut of_package = wheel("package");
    of_package
        .arg("clients/python")
        .arg(program.with_file_name("libarena_python.so"))
        .args(["_rules", PLATFORM, FOLDER]);
    run(of_package)?;
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        say(&format!(
            "{FOLDER}/{}: {:.1} MiB",
            entry.file_name().display(),
            entry.metadata()?.len() as f64 / f64::from(1 << 20)
        ));
    }
    Ok(())
}

/// Writes the archive with the program, its man pages, the bill of materials and the documents.
fn write_archive(root: &Path, folder: &Path, program: &Path, name: &str) -> anyhow::Result<()> {
    let packed = folder.join(name);
    fs::create_dir_all(&packed).with_context(|| format!("cannot create {}", packed.display()))?;
    fs::copy(program, packed.join("arena")).with_context(|| format!("cannot copy {}", program.display()))?;
    let bill = serde_json::to_string_pretty(&sbom(root)?)?;
    fs::write(packed.join(BILL), bill).with_context(|| format!("cannot write {BILL}"))?;
    let mut man = Command::new(program);
    man.arg("man").arg(packed.join("man/man1"));
    run(man)?;
    let mut copy = Command::new("cp");
    copy.current_dir(root).arg("-r").args(DOCUMENTS).arg(&packed);
    run(copy)?;
    let mut pack = Command::new("tar");
    pack.current_dir(folder).args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=2020-01-01",
        "-czf",
    ]);
    pack.arg(format!("{name}.tar.gz")).arg(name);
    run(pack)?;
    fs::remove_dir_all(&packed).with_context(|| format!("cannot remove {}", packed.display()))
}
