//! `arena eval show`: runs in the browser.

use super::load;
use crate::args::ShowEvalArgs;
use crate::exit::Failure;
use crate::local_pages;
use crate::output::Style;

pub fn run(args: &ShowEvalArgs, style: Style) -> Result<(), Failure> {
    // If a folder is unreadable, the command fails here, before a browser opens it.
    for dir in &args.dirs {
        load(dir).map_err(|failure| failure.about(&dir.display()))?;
    }
    local_pages::serve("evaluations", args.port, arena_server::evals::router(args.dirs.clone()), style)
}
