//! `arena log prove`: the proof that a log contains a session's creation or end.

use std::path::PathBuf;

use arena_model::SessionId;
use arena_record::log::{Leaf, TlogProof};
use clap::Args;
use serde_json::json;

use super::LogSourceArgs;
use super::head::{LogHead, signer_of};
use super::source::LogSource;
use super::whole::WholeLog;
use crate::command_line::Global;
use crate::exit::{Exit, Failure};
use crate::files::write;
use crate::output::{Style, print_line};

/// Options of `arena log prove`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena log prove ID --log https://arena.example
  arena log prove ID --log log --out game.proof
  arena log prove ID --created                 the leaf of the session's creation

The proof is text in the format C2SP tlog-proof: the leaf's index, the hashes from the leaf to the root, and the checkpoint.")]
pub struct ProveArgs {
    /// Session id.
    pub id: String,
    #[command(flatten)]
    pub source: LogSourceArgs,
    /// Prove the leaf of the creation instead of the end.
    #[arg(long)]
    pub created: bool,
    /// Output file [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

pub fn run(args: &ProveArgs, global: &Global, style: Style) -> Result<(), Failure> {
    let ProveArgs { id, source, created, out } = args;
    let session: SessionId = id.parse().map_err(|error| Failure::usage(format_args!("{id} is {error}")))?;
    let (keys, source) = (&source.keys, LogSource::find(source.log.as_deref(), global)?);
    let kind = if *created { "created" } else { "ended" };
    let name = source.name();
    let missing = || Failure::new(Exit::OtherRules, format_args!("log {name}: it has no leaf {kind} of session {id}"));
    // A server finds the leaf by an index. Otherwise, all leaves are read.
    let (proof, leaf) = match source.find_proof(session, kind)? {
        Some(proof) => {
            let head = LogHead::read(&source, keys)?;
            let proof = TlogProof::of_record(&proof).map_err(|error| source.explain(error))?;
            signer_of(&proof.checkpoint, &head.keys).map_err(|error| source.explain(error))?;
            let checkpoint = proof.checkpoint.unverified();
            let (leaf, path) = source.leaf(proof.index, checkpoint.size, &checkpoint.root)?;
            (TlogProof { path, ..proof }, leaf)
        }
        None => {
            let log = WholeLog::read(source, keys)?;
            let index = log.find_leaf(session, *created).ok_or_else(missing)?;
            let proof = log.prove(index).ok_or_else(missing)?;
            let (leaf, _) = log.source.leaf(index, log.size(), &log.head.checkpoint.unverified().root)?;
            (proof, leaf)
        }
    };
    // The proof is about the bytes of a leaf, so the leaf must be about the session.
    let parsed = Leaf::from_bytes(&leaf).ok();
    if parsed.is_none_or(|leaf| leaf.session() != Some(session) || leaf.kind() != kind) {
        let sentence = format!("log {name}: leaf {} isn't the leaf {kind} of session {id}", proof.index);
        return Err(Failure::new(Exit::BadReplay, sentence));
    }
    if style == Style::Json && out.is_none() {
        return print_line(&json!({
            "session": session,
            "leaf": proof.index,
            "size": proof.checkpoint.unverified().size,
            "path": proof.path,
            "data": String::from_utf8_lossy(&leaf),
            "checkpoint": proof.checkpoint.to_string(),
        }));
    }
    write(out.as_deref(), proof.to_string().as_bytes(), false, style)
}
