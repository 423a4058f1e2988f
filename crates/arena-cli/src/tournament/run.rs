//! `arena tournament run` and `arena tournament resume`.

use std::path::Path;

use arena_runner::{Journal, check_folder, format_of, private_paths};
use arena_tournament::JournalLine;

use super::args::{ResumeArgs, TournamentArgs};
use super::failures::{no_entrant, not_created, refused};
use super::plan::{load_rules, plan};
use super::play::{check_sign_key, note_cut_off, play};
use super::{ending, league, workers};
use crate::exit::{Exit, Failure};
use crate::files::dated_folder;
use crate::matches::seal;
use crate::output::{self, Style};

pub fn begin(args: &TournamentArgs, style: Style) -> Result<(), Failure> {
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        // The path is made absolute, since the folder may be given as `.`.
        None => match Path::new(&args.game).canonicalize().ok().and_then(|path| Some(path.file_name()?.to_owned())) {
            Some(name) => dated_folder(&name.to_string_lossy()),
            None => dated_folder(&args.game),
        },
    };
    let sign_key = args.sign_key.as_deref().map(seal::read_key).transpose()?;
    let plan = plan(args, &folder)?;
    // The plan is checked before the folder is created.
    let checked = match args.pool.nats_url {
        // On workers, agents can't see this machine's files.
        Some(_) => check_folder(&plan, &folder),
        None => private_paths(&plan, &folder).map(drop),
    };
    checked.map_err(Failure::usage)?;
    if plan.format.is_open_ended() {
        return league::begin(args, plan, &folder, sign_key.as_ref(), style);
    }
    let pool = workers::prepare(&args.pool, &plan, &folder)?;
    let journal = Journal::create(&folder, plan).map_err(|error| not_created(error, &folder))?;
    play(journal, pool, args.table_every, sign_key.as_ref(), style)
}

pub fn resume(args: &ResumeArgs, style: Style) -> Result<(), Failure> {
    workers::check_resume(args)?;
    let sign_key = args.sign_key.as_deref().map(seal::read_key).transpose()?;
    if format_of(&args.folder).map_err(refused)?.is_open_ended() {
        return league::resume(args, sign_key.as_ref(), style);
    }
    ending::check_resume(args)?;
    let mut journal = Journal::open(&args.folder).map_err(refused)?;
    check_sign_key(sign_key.as_ref(), &journal.record().plan)?;
    note_cut_off(journal.record().cut_off);
    if let Some(rules) = load_rules(&journal.record().plan)? {
        journal.set_rules(rules).map_err(refused)?;
    }
    let changed = journal.changed().map_err(no_entrant)?;
    if !changed.is_empty() && !args.accept_changed {
        let names: Vec<&str> = changed.iter().map(|changed| changed.agent.as_str()).collect();
        let sentence = format!(
            "the files of {} have changed since their results were played; use --accept-changed to continue with the current files",
            names.join(" and ")
        );
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    for changed in changed {
        output::note(&format!("the files of {} have changed; later games count for the same name", changed.agent));
        journal.append(JournalLine::Changed(changed)).map_err(refused)?;
    }
    if let Some(concurrency) = args.concurrency {
        journal.set_concurrency(concurrency as usize);
    }
    let pool = workers::prepare(&args.pool, &journal.record().plan, &args.folder)?;
    play(journal, pool, args.table_every, sign_key.as_ref(), style)
}
