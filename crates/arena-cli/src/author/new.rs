//! `arena author new`: a template folder that is a playable challenge.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::types::TYPES;
use crate::exit::Failure;
use crate::files::cannot_write;
use crate::output::{Style, print, print_line};

/// Options of `arena author new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena author new number-duel             create ./number-duel, in TypeScript
  arena author new games/number-duel --js  in JavaScript, in another folder
  arena author new my-game --empty         without the sample, to write all of it yourself
  arena author new scoring/elo --scoring   create a scoring strategy

The folder's name is the id of the challenge or strategy: lowercase letters, digits and hyphens. Existing files are never overwritten.")]
pub struct NewArgs {
    /// Folder to create; its name is the id.
    #[arg(value_name = "NAME")]
    pub folder: PathBuf,
    /// Write JavaScript instead of TypeScript.
    #[arg(long)]
    pub js: bool,
    /// Leave out the sample challenge and its agent; write only the protocol library for agents, and the types for your editor.
    #[arg(long, conflicts_with = "js")]
    pub empty: bool,
    /// Create a scoring strategy instead of a challenge, in TypeScript.
    #[arg(long, conflicts_with_all = ["js", "empty"])]
    pub scoring: bool,
}

/// The files in the order of the output: path, text, and true for an executable.
const DESCRIPTION: [(&str, &str, bool); 2] = [
    ("challenge.json", include_str!("template/challenge.json"), false),
    ("prompt.md", include_str!("template/prompt.md"), false),
];
const SAMPLE: [(&str, &str, bool); 2] = [
    ("README.md", include_str!("template/README.md"), false),
    ("bots/guesser.py", include_str!("template/guesser.py"), true),
];
/// The files that don't depend on the sample.
const COMMON: [(&str, &str, bool); 3] = [
    ("bots/colosseum.py", include_str!("../../../../examples/agents/python/colosseum.py"), false),
    ("tsconfig.json", include_str!("template/tsconfig.json"), false),
    ("types/arena.d.ts", TYPES, false),
];
const TYPESCRIPT: (&str, &str, bool) = ("index.ts", include_str!("template/index.ts"), false);
const JAVASCRIPT: (&str, &str, bool) = ("index.js", include_str!("template/index.js"), false);

pub fn run(args: &NewArgs, style: Style) -> Result<(), Failure> {
    let folder = &args.folder;
    let name = name_of(folder)?;
    if arena_games::challenges().any(|other| other == name) || arena_games::game(&name).is_some() {
        return Err(Failure::usage(format_args!("{name} is a built-in challenge; give another name")));
    }
    let script = if args.js { JAVASCRIPT } else { TYPESCRIPT };
    let shown_path = folder.display().to_string();
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = parent.display().to_string();
    let files = if args.empty { COMMON.to_vec() } else { [&DESCRIPTION[..], &[script], &SAMPLE, &COMMON].concat() };
    for &(path, text, is_program) in &files {
        // Only these files of the template contain placeholders.
        let text = match path {
            "README.md" => text
                .replace("NAME", &title(&name))
                .replace("SCRIPT", script.0)
                .replace("FOLDER", &shown_path)
                .replace("PARENT", &parent),
            "challenge.json" => text.replace("NAME", &title(&name)),
            _ => text.to_owned(),
        };
        let path = folder.join(path);
        write(&path, &text, is_program).map_err(|error| cannot_write(&path, &error))?;
    }
    let files: Vec<&str> = files.iter().map(|file| file.0).collect();
    if style == Style::Json {
        return print_line(&json!({"folder": folder, "files": files}));
    }
    if args.empty {
        return print(&format!(
            "{shown_path} has {}\n\n\
             Write challenge.json, prompt.md and index.ts; docs/writing-challenges.md in the repository shows how.\n\n  \
             arena author check {shown_path}",
            files.join(", "),
        ));
    }
    print(&format!(
        "{shown_path} is a challenge: {}\n\n\
         challenge.json and prompt.md describe the challenge to players, {} contains the rules, and bots/guesser.py is a sample agent.\n\n  \
         arena author check {shown_path}\n  \
         arena author play {shown_path} --agent 2={shown_path}/bots/guesser.py\n  \
         arena serve --challenges {parent}",
        files.join(", "),
        script.0,
    ))
}

/// Returns the name of a folder to create.
pub(super) fn name_of(folder: &Path) -> Result<String, Failure> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    let fits = (1..=64).contains(&name.len()) && name.chars().all(plain) && name.starts_with(|c: char| c != '-');
    if !fits {
        let sentence = format!(
            "{name:?} cannot be the name of a challenge or strategy; use 1 to 64 lowercase letters, digits and hyphens"
        );
        return Err(Failure::usage(sentence));
    }
    if folder.symlink_metadata().is_ok() {
        return Err(Failure::usage(format_args!("{} exists already; give another name", folder.display())));
    }
    Ok(name.to_owned())
}

/// Returns the title for a name: "Number Duel" for `number-duel`.
pub(super) fn title(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('-').filter(|word| !word.is_empty()).map(capital).collect::<Vec<_>>().join(" ")
}

/// Writes a new file; never overwrites one.
pub(super) fn write(path: &PathBuf, text: &str, is_program: bool) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    if is_program {
        file.set_permissions(Permissions::from_mode(0o755))?;
    }
    Ok(())
}
