//! Playing a tournament: its matches are spread over the cores, and each is in the journal as soon as it ends.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arena_tournament::Fixture;

use super::REPLAYS;
use super::journal::{Journal, JournalError};
use super::line::GameLine;
use super::plan::PlanError;
use super::watch::FileWatch;
use crate::agent::Agent;
use crate::contest::{Confinement, Contest, Plan, hold};
use crate::output::OutputFile;
use crate::placement::spread;
use crate::places::{OpenPlace, Place, own_apart, private};
use crate::play::MatchError;
use crate::process::Launcher;

/// How a tournament is played; nothing that a result depends on.
#[derive(Debug, Clone, Copy)]
pub struct How<'a> {
    /// The program that starts agents.
    pub launcher: &'a Launcher,
    /// How many matches are played beside each other.
    pub concurrency: usize,
    /// The cores that they are spread over; anywhere, if that is empty.
    pub cores: &'a [usize],
    /// No match is begun once this is raised.
    pub stop: &'a AtomicBool,
    /// Matches under way end without a result once this is raised.
    pub called_off: &'a AtomicBool,
}

/// How playing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All has been played.
    Complete,
    /// It was stopped, and can be gone on with.
    Stopped,
}

/// The files of these agents, by name, aren't what they were.
#[derive(Debug, thiserror::Error)]
#[error("the files of {} have changed since the tournament began (or are gone)", .0.join(" and "))]
pub struct FilesChanged(pub Vec<String>);

/// A tournament can't go on.
#[derive(Debug, thiserror::Error)]
pub enum PlayError<E> {
    /// It can't be played so.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A result can't be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A match came to no result.
    #[error("game {number}")]
    Match {
        /// Which.
        number: usize,
        /// Why.
        source: MatchError,
    },
    /// Files of agents aren't what they were. What these agents were playing meanwhile doesn't count.
    #[error(transparent)]
    Changed(#[from] FilesChanged),
    /// A place that is written to can't be kept from an agent.
    #[error(transparent)]
    Open(#[from] OpenPlace),
    /// Replays and logs can't be written.
    #[error("{} can't be written: {source}", path.display())]
    Replay {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The caller's.
    #[error("{0}")]
    Told(E),
}

/// Plays what is left of a tournament. `keep` is handed what came of each match, on the thread that played it, and the path of its
/// replay, if replays are kept; `told` is told when it is in the journal.
///
/// # Errors
/// See [`PlayError`]. Matches that are under way then are finished and kept.
pub fn play<E: Send>(
    journal: &mut Journal,
    how: &How<'_>,
    keep: impl Fn(&Contest, &Path) -> io::Result<()> + Sync,
    mut told: impl FnMut(&Journal, usize) -> Result<(), E>,
) -> Result<Ended, PlayError<E>> {
    let plan = journal.record().plan.clone();
    let folder = journal.folder().to_owned();
    let replays = plan.replays.then(|| folder.join(REPLAYS));
    if let Some(path) = &replays {
        std::fs::create_dir_all(path).map_err(|source| PlayError::Replay { path: path.clone(), source })?;
    }
    let agents: Vec<Agent> = plan.agents.iter().map(super::Entrant::agent).collect();
    let private = places(&plan, &folder)?;
    let confinement = Confinement {
        launcher: how.launcher.clone(),
        private,
        mode: plan.sandbox,
        limits: plan.sandbox_limits,
        expose: plan.expose.clone(),
        public_only: plan.public_only,
    };
    let room = Room {
        game: plan.game()?,
        plan: &plan,
        agents: &agents,
        files: FileWatch::new(&plan.agents, &folder),
        confinement: &confinement,
        replays,
    };
    // Wave after wave: what comes next may depend on all that came before.
    while !journal.record().schedule.is_complete() {
        let fixtures: Vec<Fixture> = journal.record().schedule.pending().cloned().collect();
        let mut failed = None;
        let job = |number: usize| {
            let is_wanted = !how.stop.load(Ordering::Relaxed) && !how.called_off.load(Ordering::Relaxed);
            is_wanted.then(|| room.play(&fixtures[number], how.called_off, &keep))
        };
        spread(fixtures.len(), how.concurrency, how.cores, job, |number, played| {
            let kept = match played {
                None | Some(Err(PlayError::Match { source: MatchError::CalledOff, .. })) => return false,
                // Ctrl-C reaches all processes of the terminal, and so also one that is just being started. That match hasn't begun.
                Some(Err(PlayError::Match { source: MatchError::Start(_), .. }))
                    if how.stop.load(Ordering::Relaxed) =>
                {
                    return false;
                }
                Some(Err(error)) => Err(error),
                Some(Ok((contest, took))) => {
                    let Fixture { number, round, agents, .. } = &fixtures[number];
                    let names = agents.iter().map(|agent| plan.agents[*agent].name.clone()).collect();
                    let line = GameLine::of(*number, *round, names, &contest, took);
                    let kept = journal.add(line).map_err(PlayError::Journal);
                    kept.and_then(|()| told(journal, *number).map_err(PlayError::Told))
                }
            };
            match (&mut failed, kept) {
                (_, Ok(())) => {}
                (Some(PlayError::Changed(FilesChanged(names))), Err(PlayError::Changed(FilesChanged(more)))) => {
                    names.extend(more);
                    names.sort();
                    names.dedup();
                }
                // What comes after the first failure is most often its consequence.
                (Some(_), Err(_)) => {}
                (None, Err(error)) => failed = Some(error),
            }
            // What ends a tournament ends it within a wave too.
            failed.is_none() && !journal.record().schedule.is_complete()
        });
        let is_complete = journal.record().schedule.is_complete();
        match failed {
            Some(error) => return Err(error),
            None if is_complete => {}
            None if !fixtures.iter().all(|fixture| journal.record().game(fixture.number).is_some()) => {
                return Ok(Ended::Stopped);
            }
            None => {}
        }
    }
    Ok(Ended::Complete)
}

/// Places that are hidden from the agents of a tournament: its folder, and files of the arena in theirs.
///
/// # Errors
/// When the folder can't be kept from one of them.
pub fn places(plan: &super::Plan, folder: &Path) -> Result<Vec<PathBuf>, OpenPlace> {
    let agents: Vec<Agent> = plan.agents.iter().map(super::Entrant::agent).collect();
    let replays = folder.join(REPLAYS);
    private(&agents, &plan.expose, plan.sandbox, &[Place::Folder(folder), Place::Folder(&replays)])
}

/// Refuses a tournament's folder that is the folder, or a file, of one of its agents, wherever they are played.
///
/// # Errors
/// When it is.
pub fn check_folder(plan: &super::Plan, folder: &Path) -> Result<(), OpenPlace> {
    let agents: Vec<Agent> = plan.agents.iter().map(super::Entrant::agent).collect();
    own_apart(&agents, &[Place::Folder(folder)])
}

/// What all matches of a tournament have in common.
struct Room<'a> {
    game: &'static arena_model::GameType,
    plan: &'a super::Plan,
    agents: &'a [Agent],
    files: FileWatch<'a>,
    confinement: &'a Confinement,
    replays: Option<PathBuf>,
}

impl Room<'_> {
    fn play<E>(
        &self,
        fixture: &Fixture,
        called_off: &AtomicBool,
        keep: &impl Fn(&Contest, &Path) -> io::Result<()>,
    ) -> Result<(Contest, Duration), PlayError<E>> {
        self.check_files(fixture)?;
        let began = Instant::now();
        let plan = Plan {
            game: self.game,
            options: &self.plan.options,
            seed: fixture.seed.clone(),
            limits: self.plan.limits,
            agents: fixture.agents.iter().map(|agent| &self.agents[*agent]).collect(),
            confinement: self.confinement,
        };
        let path = self.replays.as_ref().map(|folder| folder.join(format!("{}.jsonl", fixture.number)));
        let cannot = |source: io::Error| PlayError::Replay { path: path.clone().unwrap_or_default(), source };
        let mut file = path.as_ref().map(|path| OutputFile::create(path)).transpose().map_err(cannot)?;
        let out = file.as_mut().map(|file| file as &mut (dyn Write + Send));
        let contest = hold(&plan, out, None, called_off);
        // Nobody knows which of its versions an agent played this with; and what is gone most often couldn't be started either.
        if !matches!(contest, Err(MatchError::CalledOff)) {
            self.check_files(fixture)?;
        }
        let contest = contest.map_err(|source| PlayError::Match { number: fixture.number, source })?;
        if let (Some(path), Some(file)) = (&path, file) {
            file.keep().map_err(cannot)?;
            keep(&contest, path).map_err(cannot)?;
        }
        Ok((contest, began.elapsed()))
    }
    fn check_files<E>(&self, fixture: &Fixture) -> Result<(), PlayError<E>> {
        let changed = self.files.changed(&fixture.agents);
        if changed.is_empty() {
            return Ok(());
        }
        let names = changed.into_iter().map(|agent| self.plan.agents[agent].name.clone()).collect();
        Err(FilesChanged(names).into())
    }
}
