//! `arena agent upload`: sends an agent's files to a server.

use std::fs;
use std::path::Path;

use arena_match::archive::pack;
use serde::Deserialize;

use crate::args::{Global, UploadArgs};
use crate::exit::{Exit, Failure};
use crate::output::{Style, print, printable};
use crate::record::unreadable;

/// The largest size of a folder, in bytes. A server may allow less.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Uploaded {
    id: String,
    name: String,
    ladder: Option<String>,
    owner_key: String,
}

pub fn run(args: &UploadArgs, global: &Global, style: Style) -> Result<(), Failure> {
    let path = args.path.canonicalize().map_err(|error| unreadable(&args.path, &error))?;
    let own_name = path.file_name().and_then(|name| name.to_str());
    let (body, file_name, name) = match path.is_dir() {
        true => {
            let body = pack(&path, Path::new(""), MAX_BYTES).map_err(|error| Failure::new(Exit::Usage, error))?;
            // An archive doesn't have the folder's name; the manifest's name is better, if there is one.
            let folder = own_name.filter(|_| !path.join("manifest.json").exists());
            (body, None, args.name.as_deref().or(folder))
        }
        false => {
            let body = fs::read(&path).map_err(|error| unreadable(&args.path, &error))?;
            (body, own_name, args.name.as_deref())
        }
    };
    let query = [
        ("game", args.game.as_deref()),
        ("name", name),
        ("filename", file_name),
        ("replaces", args.replaces.as_deref()),
    ];
    let arena = global.observer_of(&global.url)?.uploading(args.key.as_deref());
    let answer = arena.upload(&query, &body)?;
    if style == Style::Json {
        return print(answer.text());
    }
    let Uploaded { id, name, ladder, owner_key } = answer.read()?;
    let (sentence, page) = match ladder {
        Some(game) => (format!("{name} joins the ladder of {game}"), format!("/ladders/{game}")),
        None => (format!("{name} is uploaded"), format!("/agents/{id}")),
    };
    let url = &global.url;
    print(&printable(&format!("{sentence}\nid    {id}\nkey   {owner_key}\npage  {url}{page}")))
}
