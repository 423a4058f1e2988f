//! `arena agent new`: a folder with a sample agent.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::exit::Failure;
use crate::files::cannot_write;
use crate::matches::settings::find_game;
use crate::output::{Style, print, print_line};

/// Options of `arena agent new`.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  arena agent new snake mybot                          an agent in Python that plays snake
  arena agent new chess rival --language javascript
  arena agent new ultimatum haggler --template         protocol code only, for games without a sample

Samples in Python: {}
Samples in JavaScript: {}", samples("py"), samples("js")))]
pub struct NewAgentArgs {
    /// Name of the game
    #[arg(value_name = "GAME")]
    pub game: String,
    /// Folder to create
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Programming language
    #[arg(long, value_name = "LANGUAGE", default_value = "python")]
    pub language: Language,
    /// Create an agent without a strategy instead of the sample
    #[arg(long)]
    pub template: bool,
}

/// Programming language of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Python 3
    #[value(alias = "py")]
    Python,
    /// JavaScript, for Node.js
    #[value(name = "javascript", alias = "js")]
    JavaScript,
}

/// Lists the games with a sample in the language of this file extension.
fn samples(extension: &str) -> String {
    arena_games::sampled(extension).collect::<Vec<_>>().join(", ")
}

/// A file of the folder: its name and its text.
type File = (&'static str, &'static str);

macro_rules! example {
    ($path:literal) => {
        include_str!(concat!("../../../../examples/agents/", $path))
    };
}

/// Returns the file of an agent without a strategy, and the file of the protocol.
fn template(language: Language) -> (File, File) {
    match language {
        Language::Python => {
            (("agent.py", example!("python/template.py")), ("colosseum.py", example!("python/colosseum.py")))
        }
        Language::JavaScript => {
            (("agent.js", example!("javascript/template.js")), ("colosseum.js", example!("javascript/colosseum.js")))
        }
    }
}

pub fn run(args: &NewAgentArgs, style: Style) -> Result<(), Failure> {
    let folder = &args.folder;
    let files = files(args)?;
    if folder.symlink_metadata().is_ok() {
        return Err(Failure::usage(format_args!("{} exists already; give another name", folder.display())));
    }
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    for (name, text) in &files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| cannot_write(&path, &error))?;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    if style == Style::Json {
        return print_line(&json!({"folder": folder, "game": args.game, "files": names}));
    }
    // The prefix `./` makes the text a path: on a command line, a word without a slash is searched for in PATH.
    let shown_path = if folder.is_absolute() || folder.starts_with(".") || folder.starts_with("..") {
        folder.display().to_string()
    } else {
        format!("./{}", folder.display())
    };
    let game = &args.game;
    print(&format!(
        "{shown_path} is an agent for {game}: {}\n\n  \
         arena agent check {shown_path} --game {game}\n  \
         arena match run {game} --agent {shown_path} --agent {shown_path}",
        names.join(", "),
    ))
}

fn files(args: &NewAgentArgs) -> Result<Vec<File>, Failure> {
    let (empty, protocol) = template(args.language);
    let (_, extension) = empty.0.rsplit_once('.').expect("both files have an ending");
    let named = arena_games::find(&args.game).filter(|playable| playable.game.name == args.game);
    if let Some(files) = named.and_then(|playable| playable.sample(extension)).filter(|_| !args.template) {
        return Ok([files, &[protocol][..]].concat());
    }
    find_game(&args.game)?;
    if args.template {
        return Ok(vec![empty, protocol]);
    }
    Err(Failure::usage(format_args!(
        "there is no sample for {} in this language, only for {}; use --template to create an agent without a strategy",
        args.game,
        samples(extension)
    )))
}
