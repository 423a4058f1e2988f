//! `arena replay export --format html`: a folder with the viewer, the replay and its index, for any web host.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use arena_match::{HeaderLine, OutputFile, Summary, index};
use arena_web::{ASSETS, ViewerUrls, replay_page};

use super::export::is_same;
use super::{explain, open, open_file};
use crate::exit::{Exit, Failure};
use crate::files::cannot_write;
use crate::output::{note, one_line};

const ASSETS_FOLDER: &str = "assets";

/// The names of a replay's files in the folder of its page. The server uses the same names.
pub const REPLAY: &str = "replay.jsonl";
pub const INDEX: &str = "replay.index";
pub const SUMMARY: &str = "replay.json";

pub fn run(file: &Path, folder: &Path) -> Result<(), Failure> {
    if is_same(file, &folder.join(REPLAY)) {
        return Err(Failure::usage(format_args!("--out contains the replay itself as {REPLAY}; give another folder")));
    }
    // The replay is opened first, so that nothing is written if it is unreadable.
    let title = title(&open(file)?.header);
    let mut entries = Vec::new();
    let summary = index(open_file(file)?, &mut entries).map_err(|error| explain(file, &error))?;
    note_incomplete(file, &summary);
    let make = |path: &Path| {
        fs::create_dir_all(path).map_err(|error| {
            Failure::new(Exit::CannotWrite, format_args!("cannot create the folder {}: {error}", path.display()))
        })
    };
    make(folder)?;
    write(&folder.join(REPLAY), |to| {
        // The copy has default permissions: the replay may be readable by its owner only, but web hosts must be able to
        // read the copy.
        io::copy(&mut File::open(file)?, to).map(|_| ())
    })?;
    write(&folder.join(INDEX), |to| to.write_all(&entries))?;
    write(&folder.join(SUMMARY), |to| serde_json::to_writer(to, &summary).map_err(io::Error::from))?;
    for asset in &*ASSETS {
        let path = folder.join(ASSETS_FOLDER).join(asset.path);
        make(path.parent().expect("it was joined to a folder"))?;
        write(&path, |to| to.write_all(asset.text.as_bytes()))?;
    }
    // The page is written last: if it exists, the export is complete.
    let urls = ViewerUrls { assets: "assets/", replay: REPLAY, index: INDEX, summary: SUMMARY, list: None };
    write(&folder.join("index.html"), |to| to.write_all(replay_page(&title, &urls).as_bytes()))
}

/// Returns the title of a replay's page: the game and its players.
pub fn title(header: &HeaderLine) -> String {
    let names: Vec<&str> = header.agents.iter().map(|agent| agent.name.as_str()).collect();
    one_line(&format!("{}: {}", header.game, names.join(" – ")))
}

/// Prints a note if a replay is incomplete. It is shown nevertheless.
pub fn note_incomplete(file: &Path, summary: &Summary) {
    if summary.result.is_none() {
        let last = summary.first_epoch + summary.frames.saturating_sub(1);
        let file = file.display();
        note(&format!("{file} ends after epoch {last}, without a result; the epochs before it are shown"));
    }
}

fn write(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let written = OutputFile::create(path).and_then(|file| {
        let mut to = BufWriter::new(file);
        content(&mut to)?;
        to.into_inner()?.keep().map(|_| ())
    });
    written.map_err(|error| cannot_write(path, &error))
}
