//! Reading a log from its files, which a closure fetches from a folder or over HTTP, and checking them.
//!
//! Files aren't trusted: proofs and the whole log are checked against the root of a signed checkpoint. The memory is
//! bounded by the tiles that are kept and by one bundle; the closure must bound the length of each file.

use std::collections::BTreeMap;

use arena_model::SessionId;

use crate::Hash;
use crate::log::checkpoint::SignedCheckpoint;
use crate::log::leaf::LeafError;
use crate::log::note::NoteError;
use crate::log::tile::{FULL_TILE, Frontier, TILE_HEIGHT, Tile, TileError, TileKind, bundle_leaves, tile_hashes};
use crate::log::tree::{TreeFault, complete_root, inclusion_path, leaf_hash, verify_inclusion};

/// The maximum number of tiles in memory: 4 MiB of hashes.
const MOST_TILES: usize = 512;

/// A fault that the files of a log show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogFault {
    #[error("leaf {leaf} isn't in the log of {size} leaves: {fault}")]
    NotIncluded { leaf: u64, size: u64, fault: TreeFault },
    #[error("{tile}: {fault}")]
    Tile { tile: Tile, fault: TileError },
    /// A tile whose hashes don't follow from the tiles below it.
    #[error("{tile}: its hashes don't match the leaves")]
    OtherHashes { tile: Tile },
    #[error("leaf {leaf} was changed: it doesn't match its hash in the log")]
    ChangedLeaf { leaf: u64 },
    #[error("the {size} leaves of the log don't give the root of the checkpoint")]
    OtherRoot { size: u64 },
    #[error("leaf {leaf}: {fault}")]
    Leaf { leaf: u64, fault: LeafError },
    #[error("leaf {leaf} ({kind}) of session {session}: {reason}")]
    Contradiction { leaf: u64, kind: &'static str, session: SessionId, reason: String },
    /// An arena with several deals for one day could show the seed of any of them.
    #[error("leaf {leaf}: {day} has a deal already")]
    SecondDeal { leaf: u64, day: String },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    #[error("cannot read {path} of the log: {reason}")]
    Unavailable {
        /// The file's path below the log's address.
        path: String,
        reason: String,
    },
    #[error("the log has no {path}; fetch it again, or ask its operator")]
    Missing { path: String },
    #[error("the log has {size} leaves and no leaf {leaf}")]
    NoLeaf { leaf: u64, size: u64 },
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error(transparent)]
    Fault(#[from] LogFault),
}

impl LogError {
    /// Returns true if the error shows a false claim, rather than a missing file or another log.
    pub fn is_lie(&self) -> bool {
        match self {
            LogError::Note(error) => error.is_lie(),
            LogError::Fault(_) => true,
            LogError::Unavailable { .. } | LogError::Missing { .. } | LogError::NoLeaf { .. } => false,
        }
    }
}

/// Fetches and parses the checkpoint of a log. Its signatures aren't verified. [`LogReader::new`] describes `fetch`.
///
/// # Errors
/// [`LogError::Unavailable`], [`LogError::Missing`] or [`LogError::Note`].
pub fn read_checkpoint<F>(fetch: &mut F) -> Result<SignedCheckpoint, LogError>
where
    F: FnMut(&str) -> Result<Option<Vec<u8>>, String>,
{
    let path = "checkpoint";
    let unavailable = |reason| LogError::Unavailable { path: path.to_owned(), reason };
    let bytes = fetch(path).map_err(unavailable)?.ok_or_else(|| LogError::Missing { path: path.to_owned() })?;
    let text = String::from_utf8(bytes).map_err(|_| NoteError::Note("it isn't UTF-8"))?;
    Ok(text.parse::<SignedCheckpoint>()?)
}

/// A reader of the log's files at one size.
pub struct LogReader<F> {
    fetch: F,
    size: u64,
    tiles: BTreeMap<Tile, Vec<Hash>>,
}

impl<F: FnMut(&str) -> Result<Option<Vec<u8>>, String>> LogReader<F> {
    /// Returns a reader of the log of `size` leaves, which the caller takes from a checkpoint.
    ///
    /// `fetch` returns the file at a path below the log's address, `None` if there is none, or the reason of a failure.
    /// It must refuse files longer than [`MOST_BUNDLE_BYTES`](crate::log::MOST_BUNDLE_BYTES).
    pub fn new(size: u64, fetch: F) -> LogReader<F> {
        LogReader { fetch, size, tiles: BTreeMap::new() }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the inclusion path of the leaf at `index`. The result isn't verified.
    ///
    /// # Errors
    /// [`LogError`] if there is no such leaf, or a tile is missing or malformed.
    pub fn inclusion_path(&mut self, index: u64) -> Result<Vec<Hash>, LogError> {
        let size = self.size;
        if index >= size {
            return Err(LogError::NoLeaf { leaf: index, size });
        }
        inclusion_path(index, size, &mut |level, index| self.subtree(level, index))
    }

    /// Returns the bytes of the leaf at `index` and its inclusion path, after verifying both against `root`.
    ///
    /// # Errors
    /// [`LogError`] if there is no such leaf, a file is missing or malformed, or the leaf isn't in the log.
    pub fn leaf(&mut self, index: u64, root: &Hash) -> Result<(Vec<u8>, Vec<Hash>), LogError> {
        let path = self.inclusion_path(index)?;
        let leaves = self.bundle(index / u64::from(FULL_TILE))?;
        let at = (index % u64::from(FULL_TILE)) as usize;
        let leaf = leaves.get(at).cloned().ok_or(LogError::NoLeaf { leaf: index, size: self.size })?;
        verify_inclusion(&leaf_hash(&leaf), index, self.size, &path, root).map_err(|fault| LogFault::NotIncluded {
            leaf: index,
            size: self.size,
            fault,
        })?;
        Ok((leaf, path))
    }

    /// Checks the whole log: all leaves match their hashes, all tiles follow from the leaves, and the root is that of
    /// a checkpoint. `on_leaf` gets each index and leaf in order, for example for a [`LogAudit`](crate::log::LogAudit).
    /// Returns the frontier, with which an observer can continue.
    ///
    /// # Errors
    /// The first fault, of the log or of `on_leaf`.
    pub fn check(
        &mut self,
        root: &Hash,
        mut on_leaf: impl FnMut(u64, &[u8]) -> Result<(), LogFault>,
    ) -> Result<Frontier, LogError> {
        let mut frontier = Frontier::new();
        for index in 0..self.size.div_ceil(u64::from(FULL_TILE)) {
            let leaves = self.bundle(index)?;
            let hashes = self.hashes(0, index)?.to_vec();
            for (leaf, hash) in leaves.iter().zip(hashes) {
                let number = frontier.size();
                if leaf_hash(leaf) != hash {
                    return Err(LogFault::ChangedLeaf { leaf: number }.into());
                }
                on_leaf(number, leaf)?;
                for (tile, hashes) in frontier.append(hash) {
                    self.check_tile(tile, &hashes)?;
                }
            }
        }
        for (tile, hashes) in frontier.partial_tiles() {
            self.check_tile(tile, hashes)?;
        }
        if frontier.root() == *root { Ok(frontier) } else { Err(LogFault::OtherRoot { size: self.size }.into()) }
    }

    fn check_tile(&mut self, tile: Tile, hashes: &[Hash]) -> Result<(), LogError> {
        let TileKind::Hashes { level } = tile.kind else { return Ok(()) };
        if self.hashes(level, tile.index)? == hashes { Ok(()) } else { Err(LogFault::OtherHashes { tile }.into()) }
    }

    fn subtree(&mut self, level: u32, index: u64) -> Result<Hash, LogError> {
        let full = u64::from(FULL_TILE);
        let start = index << (level % TILE_HEIGHT);
        let (tile, at) = (start / full, (start % full) as usize);
        let size = self.size;
        let hashes = self.hashes(level / TILE_HEIGHT, tile)?;
        // A complete subtree within the size is within the tile, so this fails for subtrees outside of the log only.
        let subtree = hashes.get(at..at + (1 << (level % TILE_HEIGHT)));
        subtree.map(complete_root).ok_or(LogError::NoLeaf { leaf: index << level, size })
    }

    /// Returns the hashes of a tile at the log's size.
    fn hashes(&mut self, level: u32, index: u64) -> Result<&[Hash], LogError> {
        let tile = self.tile(TileKind::Hashes { level }, index)?;
        if !self.tiles.contains_key(&tile) {
            let (found, bytes) = self.fetched(tile)?;
            let mut hashes = tile_hashes(&bytes, found.width).map_err(|fault| LogFault::Tile { tile: found, fault })?;
            hashes.truncate(usize::from(tile.width));
            if self.tiles.len() >= MOST_TILES {
                self.tiles.clear();
            }
            self.tiles.insert(tile, hashes);
        }
        Ok(&self.tiles[&tile])
    }

    /// Returns the leaves of a bundle at the log's size. They aren't verified.
    fn bundle(&mut self, index: u64) -> Result<Vec<Vec<u8>>, LogError> {
        let tile = self.tile(TileKind::Leaves, index)?;
        let (found, bytes) = self.fetched(tile)?;
        let leaves = bundle_leaves(&bytes, found.width).map_err(|fault| LogFault::Tile { tile: found, fault })?;
        Ok(leaves.into_iter().take(usize::from(tile.width)).map(<[u8]>::to_vec).collect())
    }

    fn tile(&self, kind: TileKind, index: u64) -> Result<Tile, LogError> {
        let none = LogError::NoLeaf { leaf: index.saturating_mul(u64::from(FULL_TILE)), size: self.size };
        Tile::of(kind, index, self.size).ok_or(none)
    }

    /// Fetches a tile. A log may have deleted a partial tile after the full one was there.
    fn fetched(&mut self, tile: Tile) -> Result<(Tile, Vec<u8>), LogError> {
        for candidate in [tile, tile.full()] {
            let path = candidate.to_string();
            match (self.fetch)(&path) {
                Ok(Some(bytes)) => return Ok((candidate, bytes)),
                Ok(None) => {}
                Err(reason) => return Err(LogError::Unavailable { path, reason }),
            }
            if tile.is_full() {
                break;
            }
        }
        Err(LogError::Missing { path: tile.to_string() })
    }
}
