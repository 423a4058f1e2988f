//! The arena's append-only log: a Merkle tree over leaves, each of which is one line of JSON.
//!
//! The tree is that of RFC 6962, the files are those of C2SP's tlog-tiles, and the signatures are those of C2SP's
//! signed-note and tlog-checkpoint. Programs for other logs can therefore read this one. Everything
//! here is pure: files come from a closure, and keys and times are arguments.
//!
//! Limits: Ed25519 only, no extension lines in own checkpoints, and at most [`MOST_LEAVES`] leaves.

mod audit;
mod base64;
mod checkpoint;
mod leaf;
mod note;
mod outcome;
mod proof;
mod reader;
mod tile;
mod tree;

#[cfg(test)]
mod tests;

pub use audit::{LogAudit, SessionLeaves};
pub use checkpoint::{Checkpoint, SignedCheckpoint};
pub use leaf::{Leaf, LeafError};
pub use note::{MOST_SIGNATURES, NoteError, NoteKey, NoteSignature, SignedNote};
pub use outcome::{LogOutcomes, OutcomeCounts, SessionOutcome};
pub use proof::TlogProof;
pub use reader::{LogError, LogFault, LogReader, read_checkpoint};
pub use tile::{
    FULL_TILE, Frontier, MOST_BUNDLE_BYTES, MOST_LEAF_BYTES, Tile, TileError, TileKind, Tree, bundle_bytes,
    bundle_leaves, tile_bytes, tile_hashes,
};
pub use tree::{
    MOST_LEAVES, TreeFault, empty_root, inclusion_path, leaf_hash, node_hash, root_of, tree_root, verify_inclusion,
};
