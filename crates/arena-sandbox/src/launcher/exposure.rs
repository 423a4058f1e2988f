//! The parts of the file system that an agent sees besides the system's programs: its folder, its
//! interpreter, and the paths that the user exposes. All of them are read-only.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::program::{Head, find, look_up};
use crate::process::wire::Order;
use crate::process::{Spec, StartError, order};

/// System folders that every agent sees. Top-level folders named `lib*` are added to them.
const SYSTEM: [&str; 3] = ["/usr", "/bin", "/sbin"];

/// Folders that hold data of many users and programs. If an agent needs a file in such a folder, the sandbox
/// doesn't show it the whole folder.
const WIDE: [&str; 20] = [
    "/", "/boot", "/dev", "/etc", "/gnu", "/home", "/media", "/mnt", "/nix", "/opt", "/proc", "/root", "/run", "/srv",
    "/sys", "/tmp", "/usr", "/var", "/var/lib", "/var/tmp",
];

/// Package stores. An agent that needs one of their packages sees the whole store, because packages depend on
/// each other. By design, stores hold no secrets.
const STORES: [&str; 2] = ["/nix/store", "/gnu/store"];

/// Maximum number of links and interpreters to follow.
const MAX_STEPS: usize = 40;

/// A file or folder that the agent can see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exposure {
    /// The path at which the agent sees the file or folder.
    pub at: PathBuf,
    /// The path in the system, with all links resolved.
    pub source: PathBuf,
    /// True for the agent's own folder, which is shown entry by entry; see [`entries`].
    pub is_own: bool,
}

/// The user's home folder, and the `PATH` in which interpreters are found.
pub(super) struct SearchContext<'a> {
    pub home: Option<PathBuf>,
    pub search_path: &'a OsStr,
}

/// The paths that an agent can see, the hidden paths among them, and notes on restrictions.
#[derive(Debug, Default)]
pub(super) struct ExposurePlan {
    pub exposures: Vec<Exposure>,
    /// Paths inside of `exposures` that are hidden from the agent.
    pub hidden: Vec<PathBuf>,
    pub notes: Vec<String>,
    /// The files that start the agent.
    needed: Vec<PathBuf>,
}

/// Chooses the files and folders that an agent sees.
pub(super) fn choose(program: &Path, order: &Order, context: &SearchContext<'_>) -> Result<ExposurePlan, StartError> {
    let mut chosen = ExposurePlan::default();
    let spec = |reason: String| StartError::Spec { reason };
    for path in &order.expose {
        if is_ours(path) {
            return Err(spec(format!("{} cannot be exposed, because every agent has its own", path.display())));
        }
        if !chosen.add(path) {
            return Err(spec(format!("{} cannot be exposed, because it doesn't exist", path.display())));
        }
    }
    if !order.folder.is_dir() {
        return Err(spec(format!("{} is not a folder", order.folder.display())));
    }
    if is_wide(&order.folder, context.home.as_deref()) || is_wide(&canonical(&order.folder), context.home.as_deref()) {
        chosen.notes.push(format!(
            "The agent's folder {} is a system or home folder, so the agent sees only its program in it.",
            order.folder.display()
        ));
        // An interpreter isn't in the folder, but the script in its arguments is.
        let args = order.args.iter().map(Path::new).filter(|path| path.is_file());
        for file in args.chain([program]).filter(|file| file.starts_with(&order.folder)) {
            chosen.add(file);
        }
    } else {
        chosen.add(&order.folder);
    }
    let mut steps = 0;
    chosen.follow(program, order, context, &mut steps);
    let own = canonical(&order.folder);
    for exposure in &mut chosen.exposures {
        // A folder that the user exposes is shown whole, not entry by entry.
        exposure.is_own = exposure.source == own && !order.expose.iter().any(|path| canonical(path) == own);
    }
    if chosen.exposures.iter().any(|exposure| exposure.is_own) && entries(&own).is_none() {
        chosen.notes.push(format!(
            "The agent's folder {} has more than {MAX_ENTRIES} entries, so files that appear in it during the match can be read.",
            order.folder.display()
        ));
    }
    chosen.exposures.sort_by_key(|exposure| exposure.at.as_os_str().len());
    chosen.exposures.dedup();
    chosen.hide(order);
    Ok(chosen)
}

/// The files that an agent will see, determined before its start.
#[derive(Debug)]
pub struct AgentView {
    /// Files and folders that can't be hidden, because they start the agent or the user exposes them.
    needed: Vec<PathBuf>,
    /// Files and folders that the agent can see.
    shown: Vec<PathBuf>,
}

impl AgentView {
    /// Returns the view of an agent with this specification, or `None` if it can't be started.
    pub fn of(spec: &Spec) -> Option<AgentView> {
        let order = &order(spec).ok()?;
        let program = find(&order.program, &order.search_path).ok()?;
        let context = SearchContext { home: order.home.clone(), search_path: &order.search_path };
        let chosen = choose(&program, order, &context).ok()?;
        let shown = chosen.exposures.iter().map(|exposure| exposure.source.clone()).collect();
        // An interpreter is often a link, which is lost if the link's own folder is hidden.
        let links = chosen.needed.iter().filter_map(|path| Some(canonical(path.parent()?).join(path.file_name()?)));
        Some(AgentView { needed: links.chain(chosen.needed(order)).collect(), shown })
    }

    /// Returns the files and folders in `folder` that the agent needs, if the agent can see `folder`. If there are any,
    /// `folder` can't be hidden.
    pub fn needed_in(&self, folder: &Path) -> impl Iterator<Item = &PathBuf> {
        let is_shown = self.shown.iter().any(|shown| folder.starts_with(shown));
        self.needed.iter().filter(move |needed| is_shown && needed.starts_with(folder))
    }
}

/// Returns a `PATH` with only those folders of `search_path` that the agent can see.
pub(super) fn visible_path(search_path: &OsStr, exposures: &[Exposure]) -> OsString {
    let is_visible =
        |folder: &PathBuf| is_system(folder) || exposures.iter().any(|exposure| folder.starts_with(&exposure.at));
    let folders = std::env::split_paths(search_path).filter(is_visible);
    // Folders split from a `PATH` can always be joined again.
    std::env::join_paths(folders).unwrap_or_default()
}

impl ExposurePlan {
    /// Adds a file or folder under its own path and its resolved path, because interpreters locate their
    /// files by the resolved one. Returns false if it doesn't exist.
    fn add(&mut self, path: &Path) -> bool {
        let Ok(source) = fs::canonicalize(path) else { return false };
        for at in [path.to_owned(), source.clone()] {
            if !is_system(&at) {
                self.exposures.push(Exposure { at, source: source.clone(), is_own: false });
            }
        }
        true
    }

    /// Adds the files that a program needs: each link on the path to it, and its interpreter, recursively.
    fn follow(&mut self, program: &Path, order: &Order, context: &SearchContext<'_>, steps: &mut usize) {
        let mut file = program.to_owned();
        while *steps < MAX_STEPS {
            *steps += 1;
            self.needed.push(file.clone());
            self.add_prefix(&file, order, context);
            let Ok(target) = fs::read_link(&file) else { break };
            let folder = file.parent().map(canonical).unwrap_or_default();
            let target = folder.join(target);
            // The parent is resolved, but a link at the end of the path is kept and followed as the next
            // step.
            file = match (target.parent(), target.file_name()) {
                (Some(parent), Some(name)) => canonical(parent).join(name),
                _ => break,
            };
        }
        if let Ok(Head::Script(line)) = Head::of(program) {
            if *steps >= MAX_STEPS {
                return;
            }
            let by_env = line.by_env.and_then(|name| {
                if Path::new(&name).is_absolute() { Some(name.into()) } else { look_up(&name, context.search_path) }
            });
            self.follow(&line.interpreter, order, context, steps);
            if let Some(path) = by_env {
                self.follow(&path, order, context, steps);
            }
        }
    }

    /// Finds all paths at which the agent would see the files to hide. Files that start the agent or that the
    /// user exposes stay visible.
    fn hide(&mut self, order: &Order) {
        let needed = self.needed(order);
        for path in order.hidden.iter().map(|path| canonical(path)) {
            if is_system(&path) || needed.iter().any(|needed| needed.starts_with(&path)) {
                continue;
            }
            let around = self.exposures.iter().filter_map(|exposure| {
                let below = path.strip_prefix(&exposure.source).ok()?;
                Some(exposure.at.components().chain(below.components()).collect::<PathBuf>())
            });
            self.hidden.extend(around);
        }
        self.hidden.sort();
        self.hidden.dedup();
    }

    /// Returns the resolved paths of the files that start the agent and of those that the user exposes.
    fn needed(&self, order: &Order) -> Vec<PathBuf> {
        let args = order.args.iter().map(PathBuf::from).filter(|path| path.is_absolute());
        let named = order.expose.iter().chain([&order.folder]).cloned();
        self.needed.iter().cloned().chain(args).chain(named).map(|path| canonical(&path)).collect()
    }

    /// Exposes the installation of a program: the parent of its `bin` or `shims` folder, or else the
    /// program's folder.
    fn add_prefix(&mut self, file: &Path, order: &Order, context: &SearchContext<'_>) {
        let home = context.home.as_deref();
        let Some(folder) = file.parent() else { return };
        if is_system(&canonical(folder)) && is_system(folder) || folder.starts_with(&order.folder) {
            return;
        }
        if let Some(store) = STORES.iter().find(|store| folder.starts_with(store)) {
            self.add(Path::new(store));
            return;
        }
        let is_bin = matches!(folder.file_name().and_then(OsStr::to_str), Some("bin" | "shims"));
        let prefix = folder.parent().filter(|_| is_bin);
        match prefix {
            // `~/.local` also has `share` and `state`, which hold data and keys of the user's programs.
            Some(prefix) if home.is_some_and(|home| prefix == home.join(".local")) => {
                self.add(folder);
                self.add(&prefix.join("lib"));
            }
            Some(prefix) if !is_wide(prefix, home) => {
                self.add(prefix);
            }
            _ if !is_wide(folder, home) => {
                self.add(folder);
            }
            _ => {
                self.add(file);
            }
        }
    }
}

/// Maximum number of entries of an agent's folder that are shown one by one. Each entry adds about 20
/// microseconds to an agent's start.
pub(super) const MAX_ENTRIES: usize = 8192;

/// Returns the entries of an agent's folder, or `None` if there are more than [`MAX_ENTRIES`]. If a folder is
/// shown entry by entry, the agent can't see files that are created in it later.
pub(super) fn entries(folder: &Path) -> Option<Vec<fs::DirEntry>> {
    let entries: Vec<fs::DirEntry> = fs::read_dir(folder).ok()?.take(MAX_ENTRIES + 1).collect::<Result<_, _>>().ok()?;
    (entries.len() <= MAX_ENTRIES).then_some(entries)
}

fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns true if all agents see this path.
pub fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder)) || top_level_lib(path)
}

/// Returns true if the path is in `/lib`, `/lib64` or another top-level `lib*` folder.
fn top_level_lib(path: &Path) -> bool {
    let first = path.components().nth(1).and_then(|component| component.as_os_str().to_str());
    first.is_some_and(|name| name.starts_with("lib"))
}

/// Returns true if the sandbox gives every agent its own file or folder at this path.
fn is_ours(path: &Path) -> bool {
    ["/", "/dev", "/proc", "/sys", "/tmp"].iter().any(|own| path == Path::new(own))
}

/// Returns true if a folder is too broad to be exposed because of one file in it.
pub fn is_wide(folder: &Path, home: Option<&Path>) -> bool {
    let is_a_home = folder.parent() == Some(Path::new("/home")) || folder.parent() == Some(Path::new("/Users"));
    WIDE.iter().any(|wide| folder == Path::new(wide)) || is_a_home || home.is_some_and(|home| home.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::process::{Limits, SandboxMode};

    fn executable(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the paths under `home` that an agent with this program sees, relative to `home`.
    fn shown(home: &Path, program: &str, folder: &str, search_path: &str) -> Vec<String> {
        let program = home.join(program);
        let order = Order {
            program: program.clone(),
            args: Vec::new(),
            folder: home.join(folder),
            env: Vec::new(),
            search_path: search_path.into(),
            home: Some(home.to_owned()),
            expose: Vec::new(),
            hidden: Vec::new(),
            sandbox: SandboxMode::On,
            limits: Limits::NONE,
            scratch_in: PathBuf::new(),
            setup: None,
        };
        let context = SearchContext { home: Some(home.to_owned()), search_path: search_path.as_ref() };
        let chosen = choose(&program, &order, &context).unwrap();
        let relative = |exposure: &Exposure| exposure.at.strip_prefix(home).ok().map(|path| path.display().to_string());
        let mut shown: Vec<_> = chosen.exposures.iter().filter_map(relative).collect();
        shown.sort();
        shown
    }

    #[test]
    fn each_step_from_a_virtual_environment_to_its_interpreter_is_shown_and_nothing_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let home = &fs::canonicalize(home.path()).unwrap();
        executable(&home.join(".pyenv/versions/3/bin/python3.11"), "\x7fELF");
        symlink("python3.11", home.join(".pyenv/versions/3/bin/python3")).unwrap();
        fs::create_dir_all(home.join("bots/venv/bin")).unwrap();
        symlink(home.join(".pyenv/versions/3/bin/python3"), home.join("bots/venv/bin/python")).unwrap();
        let first_line = format!("#!{}/bots/venv/bin/python\n", home.display());
        executable(&home.join("bots/mine/agent.py"), &first_line);
        executable(&home.join("bots/other/agent.py"), &first_line);
        let shown = shown(home, "bots/mine/agent.py", "bots/mine", "/usr/bin");
        assert_eq!(shown, [".pyenv/versions/3", "bots/mine", "bots/venv"]);
    }

    #[test]
    fn an_interpreter_that_env_finds_in_the_home_shows_neither_the_home_nor_its_data() {
        let home = tempfile::tempdir().unwrap();
        let home = &fs::canonicalize(home.path()).unwrap();
        for folder in ["bin", ".local/bin"] {
            executable(&home.join(folder).join("python9"), "\x7fELF");
            executable(&home.join("mine/agent.py"), "#!/usr/bin/env -S python9 -u\n");
            let search_path = format!("/usr/bin:{}", home.join(folder).display());
            assert_eq!(shown(home, "mine/agent.py", "mine", &search_path), [folder, "mine"]);
        }
    }

    #[test]
    fn an_agent_that_lies_in_the_home_shows_itself_alone() {
        let home = tempfile::tempdir().unwrap();
        let home = &fs::canonicalize(home.path()).unwrap();
        executable(&home.join("agent.py"), "#!/bin/sh\n");
        assert_eq!(shown(home, "agent.py", ".", "/usr/bin"), ["agent.py"]);
    }
}
