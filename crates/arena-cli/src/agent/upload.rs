//! `arena agent upload`: sends an agent's files to a server.

use std::fs;
use std::path::{Path, PathBuf};

use arena_match::archive::pack;
use clap::Args;
use serde::Deserialize;

use crate::command_line::{Global, header_text};
use crate::exit::Failure;
use crate::files::cannot_read;
use crate::output::{Style, print, printable};

/// Options of `arena agent upload`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena agent upload ./bot --game snake                    the ladder of snake on this machine's server
  arena --url https://arena.example agent upload bot.py --game snake --name ada
  arena agent upload ./bot --replaces ID --key o_…         the next version of an agent on a ladder

The answer has the agent's id and its owner's key. Keep the key: with it you upload the next version, remove the agent \
(`DELETE /api/agents/ID`) and read its logs.")]
pub struct UploadArgs {
    /// Agent: a file or a folder
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Game whose ladder the agent joins [default: none]
    #[arg(long, value_name = "GAME")]
    pub game: Option<String>,
    /// Name [default: from the manifest, or the name of the file or folder]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Agent on a ladder that this one replaces; needs --key
    #[arg(long, value_name = "ID", requires = "key")]
    pub replaces: Option<String>,
    /// Owner's key of the replaced agent, or the administrator's token
    #[arg(long, env = "ARENA_OWNER_KEY", hide_env_values = true, value_name = "KEY", value_parser = header_text)]
    pub key: Option<String>,
}

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
    let path = args.path.canonicalize().map_err(|error| cannot_read(&args.path, error))?;
    let own_name = path.file_name().and_then(|name| name.to_str());
    let (body, file_name, name) = match path.is_dir() {
        true => {
            let body = pack(&path, Path::new(""), MAX_BYTES).map_err(Failure::usage)?;
            // An archive doesn't have the folder's name; the manifest's name is better, if there is one.
            let folder = own_name.filter(|_| !path.join("manifest.json").exists());
            (body, None, args.name.as_deref().or(folder))
        }
        false => {
            let body = fs::read(&path).map_err(|error| cannot_read(&args.path, error))?;
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
