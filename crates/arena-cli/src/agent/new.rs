//! `arena agent new`: a folder with a sample agent.

use std::fs;

use serde_json::json;

use crate::args::{Language, NewAgentArgs};
use crate::exit::{Exit, Failure};
use crate::matches::cannot_write;
use crate::output::{Style, print};

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
        return Err(Failure::new(Exit::Usage, format_args!("{} exists already; give another name", folder.display())));
    }
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    for (name, text) in &files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| cannot_write(&path, &error))?;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    if style == Style::Json {
        return print(&json!({"folder": folder, "game": args.game, "files": names}).to_string());
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
    let language = args.language;
    let (empty, protocol) = template(language);
    if args.template {
        crate::matches::settings::find_game(&args.game)?;
        return Ok(vec![empty, protocol]);
    }
    let (_, extension) = empty.0.rsplit_once('.').expect("both files have an ending");
    let named = arena_games::find(&args.game).filter(|playable| playable.game.name == args.game);
    match named.and_then(|playable| playable.sample(extension)) {
        Some(files) => Ok([files, &[protocol][..]].concat()),
        None => {
            crate::matches::settings::find_game(&args.game)?;
            let there: Vec<&str> = arena_games::sampled(extension).collect();
            let sentence = format!(
                "there is no sample for {} in this language, only for {}; use --template to create an agent without a strategy",
                args.game,
                there.join(", ")
            );
            Err(Failure::new(Exit::Usage, sentence))
        }
    }
}
