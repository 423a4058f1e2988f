//! `arena agent new`: a folder with a sample agent, to play against and to start from.

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

/// The samples: language, game, and the files beside `colosseum`. The first one is the agent.
const SAMPLES: [(Language, &str, &[File]); 10] = [
    (Language::Python, "snake", &[("agent.py", example!("python/snake.py"))]),
    (Language::Python, "chess", &[("agent.py", example!("python/chess.py"))]),
    (
        Language::Python,
        "food_catcher",
        &[("agent.py", example!("python/food_catcher.py")), ("foraging.py", example!("python/foraging.py"))],
    ),
    (
        Language::Python,
        "cherry_picker",
        &[("agent.py", example!("python/cherry_picker.py")), ("foraging.py", example!("python/foraging.py"))],
    ),
    (Language::Python, "psi", &[("agent.py", example!("python/psi.py"))]),
    (Language::Python, "dining-cryptographers", &[("agent.py", example!("python/dining.py"))]),
    (Language::JavaScript, "snake", &[("agent.js", example!("javascript/snake.js"))]),
    (Language::JavaScript, "chess", &[("agent.js", example!("javascript/chess.js"))]),
    (
        Language::JavaScript,
        "food_catcher",
        &[("agent.js", example!("javascript/food_catcher.js")), ("foraging.js", example!("javascript/foraging.js"))],
    ),
    (
        Language::JavaScript,
        "cherry_picker",
        &[("agent.js", example!("javascript/cherry_picker.js")), ("foraging.js", example!("javascript/foraging.js"))],
    ),
];

/// The agent that does nothing yet, and the file of the protocol.
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

/// Writes the folder.
pub fn run(args: &NewAgentArgs, style: Style) -> Result<(), Failure> {
    let folder = &args.folder;
    let files = files(args)?;
    if folder.symlink_metadata().is_ok() {
        return Err(Failure::new(
            Exit::Usage,
            format_args!("{} is there already; give another name", folder.display()),
        ));
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
    // A path without a slash in it would be looked for among the programs where it stands in a command line.
    let told = if folder.is_absolute() || folder.starts_with(".") || folder.starts_with("..") {
        folder.display().to_string()
    } else {
        format!("./{}", folder.display())
    };
    let game = &args.game;
    print(&format!(
        "{told} is an agent for {game}: {}\n\n  \
         arena agent check {told} --game {game}\n  \
         arena match run {game} --agent {told} --agent {told}",
        names.join(", "),
    ))
}

/// The files of the folder.
fn files(args: &NewAgentArgs) -> Result<Vec<File>, Failure> {
    let language = args.language;
    let (empty, protocol) = template(language);
    if args.template {
        crate::matches::settings::find_game(&args.game)?;
        return Ok(vec![empty, protocol]);
    }
    let sample = SAMPLES.iter().find(|(of, game, _)| *of == language && *game == args.game);
    match sample {
        Some((_, _, files)) => Ok([files, &[protocol][..]].concat()),
        None => {
            crate::matches::settings::find_game(&args.game)?;
            let there = SAMPLES.iter().filter(|(of, ..)| *of == language).map(|(_, game, _)| *game);
            let there: Vec<&str> = there.collect();
            let sentence = format!(
                "there is no sample for {} in this language, but for {}; --template writes an agent that does nothing yet",
                args.game,
                there.join(", ")
            );
            Err(Failure::new(Exit::Usage, sentence))
        }
    }
}
