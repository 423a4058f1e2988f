//! The files of a log (C2SP tlog-tiles): tiles of 256 hashes, and bundles of up to 256 leaves.
//!
//! [`Frontier`] appends leaves and makes their tiles with at most 256 hashes of each level in memory. [`Tree`] keeps
//! all hashes and also makes proofs. Both take leaf hashes, so neither reads leaves.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::Hash;
use crate::log::tree::{MOST_LEAVES, complete_root, empty_root, inclusion_path, node_hash, tree_root};

/// The number of hashes in a full tile, and of leaves in a full bundle.
pub const FULL_TILE: u16 = 256;

/// The binary logarithm of [`FULL_TILE`].
pub(super) const TILE_HEIGHT: u32 = 8;

/// The number of tile levels that a log of [`MOST_LEAVES`] needs.
const MOST_LEVELS: u32 = 7;

/// The maximum length of a leaf, in bytes. A bundle has two bytes for the length.
pub const MOST_LEAF_BYTES: usize = u16::MAX as usize;

/// The maximum length of a bundle, in bytes.
pub const MOST_BUNDLE_BYTES: usize = FULL_TILE as usize * (2 + MOST_LEAF_BYTES);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TileKind {
    Leaves,
    /// Hashes of complete subtrees over `256^level` leaves. Level 0 has the leaf hashes.
    Hashes {
        /// The tile level, from 0.
        level: u32,
    },
}

/// The address of a tile or bundle. `Display` and `FromStr` use its path below the log's address, such as
/// `tile/0/x001/234.p/5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tile {
    pub kind: TileKind,
    /// The tile's index in its level, from 0.
    pub index: u64,
    /// The number of hashes or leaves, from 1 to [`FULL_TILE`].
    pub width: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TileError {
    #[error("expected the path of a tile, such as tile/0/x001/234.p/5")]
    Path,
    #[error("a tile has {found} bytes instead of {expected}")]
    Length { expected: usize, found: usize },
    /// A bundle that ends within a leaf, or that has bytes after its last leaf.
    #[error("a bundle doesn't consist of {expected} leaves with their lengths")]
    Bundle { expected: u16 },
    #[error("a leaf has {found} bytes, more than 65535")]
    LongLeaf { found: usize },
}

impl Tile {
    /// Returns `None` if a log of `size` leaves has no such tile, full or partial.
    pub fn of(kind: TileKind, index: u64, size: u64) -> Option<Tile> {
        let level = match kind {
            TileKind::Leaves => 0,
            TileKind::Hashes { level } => level,
        };
        if level >= MOST_LEVELS || size > MOST_LEAVES {
            return None;
        }
        let hashes = size >> (TILE_HEIGHT * level);
        let before = index.checked_mul(u64::from(FULL_TILE))?;
        let rest = hashes.checked_sub(before).filter(|rest| *rest > 0)?;
        let width = u16::try_from(rest).unwrap_or(FULL_TILE).min(FULL_TILE);
        Some(Tile { kind, index, width })
    }

    /// Returns all tiles and bundles of a log of `size` leaves that aren't in a log of `old` leaves. A server writes
    /// these files after it has signed a checkpoint of `size` leaves.
    pub fn between(old: u64, size: u64) -> impl Iterator<Item = Tile> {
        let levels = (0..MOST_LEVELS).map(|level| (TileKind::Hashes { level }, level));
        std::iter::once((TileKind::Leaves, 0)).chain(levels).flat_map(move |(kind, level)| {
            let (old, new) = (old >> (TILE_HEIGHT * level), size >> (TILE_HEIGHT * level));
            let first = old / u64::from(FULL_TILE);
            let end = if old < new { new.div_ceil(u64::from(FULL_TILE)) } else { first };
            (first..end).filter_map(move |index| Tile::of(kind, index, size))
        })
    }

    /// Returns true if a log of `size` leaves has this tile. Narrower tiles, of earlier sizes, also count.
    pub fn is_in(&self, size: u64) -> bool {
        Tile::of(self.kind, self.index, size).is_some_and(|whole| self.width <= whole.width)
    }

    /// Returns true if the tile has [`FULL_TILE`] hashes or leaves. Such a tile never changes.
    pub fn is_full(&self) -> bool {
        self.width == FULL_TILE
    }

    #[must_use]
    pub fn full(self) -> Tile {
        Tile { width: FULL_TILE, ..self }
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TileKind::Leaves => f.write_str("tile/entries")?,
            TileKind::Hashes { level } => write!(f, "tile/{level}")?,
        }
        let digits = self.index.to_string();
        let width = digits.len().div_ceil(3) * 3;
        let padded = format!("{digits:0>width$}");
        let groups = padded.len() / 3;
        for group in 0..groups {
            let mark = if group + 1 < groups { "x" } else { "" };
            write!(f, "/{mark}{}", &padded[group * 3..group * 3 + 3])?;
        }
        if self.is_full() { Ok(()) } else { write!(f, ".p/{}", self.width) }
    }
}

impl FromStr for Tile {
    type Err = TileError;

    fn from_str(path: &str) -> Result<Self, TileError> {
        let rest = path.strip_prefix("tile/").ok_or(TileError::Path)?;
        let (kind, rest) = rest.split_once('/').ok_or(TileError::Path)?;
        let kind = match kind {
            "entries" => TileKind::Leaves,
            level => TileKind::Hashes { level: level.parse().map_err(|_| TileError::Path)? },
        };
        let (index, width) = match rest.split_once(".p/") {
            Some((index, width)) => (index, width.parse().map_err(|_| TileError::Path)?),
            None => (rest, FULL_TILE),
        };
        let mut number = 0_u64;
        for group in index.split('/') {
            let group = group.strip_prefix('x').unwrap_or(group);
            let value: u64 = group.parse().map_err(|_| TileError::Path)?;
            number = number.checked_mul(1000).and_then(|number| number.checked_add(value)).ok_or(TileError::Path)?;
        }
        let tile = Tile { kind, index: number, width };
        // Printing it again rejects other spellings: signs, missing or further zeros, and a misplaced `x`.
        let fits = (1..=FULL_TILE).contains(&tile.width) && tile.is_in(MOST_LEAVES) && tile.to_string() == path;
        if fits { Ok(tile) } else { Err(TileError::Path) }
    }
}

pub fn tile_bytes(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// Reads the hashes of a tile with `width` hashes.
///
/// # Errors
/// [`TileError::Length`] unless there are exactly `width` hashes.
pub fn tile_hashes(bytes: &[u8], width: u16) -> Result<Vec<Hash>, TileError> {
    let expected = usize::from(width) * 32;
    if bytes.len() != expected {
        return Err(TileError::Length { expected, found: bytes.len() });
    }
    let mut hashes = Vec::with_capacity(usize::from(width));
    for chunk in bytes.chunks_exact(32) {
        let mut hash = [0; 32];
        hash.copy_from_slice(chunk);
        hashes.push(Hash(hash));
    }
    Ok(hashes)
}

/// Returns the bytes of a bundle with these leaves: each leaf after its length as two bytes, the high byte first.
///
/// # Errors
/// [`TileError::LongLeaf`] if a leaf is longer than [`MOST_LEAF_BYTES`].
pub fn bundle_bytes<'l>(leaves: impl IntoIterator<Item = &'l [u8]>) -> Result<Vec<u8>, TileError> {
    let mut bytes = Vec::new();
    for leaf in leaves {
        let length = u16::try_from(leaf.len()).map_err(|_| TileError::LongLeaf { found: leaf.len() })?;
        bytes.extend(length.to_be_bytes());
        bytes.extend(leaf);
    }
    Ok(bytes)
}

/// Reads the leaves of a bundle with `width` leaves.
///
/// # Errors
/// [`TileError::Bundle`] unless there are exactly `width` leaves.
pub fn bundle_leaves(bytes: &[u8], width: u16) -> Result<Vec<&[u8]>, TileError> {
    let fault = TileError::Bundle { expected: width };
    let mut leaves = Vec::with_capacity(usize::from(width));
    let mut rest = bytes;
    while let [high, low, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if after.len() < length || leaves.len() == usize::from(width) {
            return Err(fault);
        }
        let (leaf, after) = after.split_at(length);
        leaves.push(leaf);
        rest = after;
    }
    if rest.is_empty() && leaves.len() == usize::from(width) { Ok(leaves) } else { Err(fault) }
}

/// The right edge of a log: enough to append leaves and to compute the root, in at most 256 hashes of each level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// The hashes of the partial tile of each level.
    partial: Vec<Vec<Hash>>,
}

impl Frontier {
    pub fn new() -> Frontier {
        Frontier::default()
    }

    /// Restores the frontier of a log of `size` leaves from its partial tiles, of which there is at most one in each
    /// level. `hashes` returns the hashes of a tile; a wrong number of hashes is an error of the caller.
    ///
    /// # Errors
    /// The errors of `hashes`.
    pub fn read<E>(size: u64, mut hashes: impl FnMut(Tile) -> Result<Vec<Hash>, E>) -> Result<Frontier, E> {
        let mut frontier = Frontier { size, partial: Vec::new() };
        for tile in frontier.partial_addresses() {
            frontier.partial.push(match tile {
                Some(tile) => hashes(tile)?,
                None => Vec::new(),
            });
        }
        Ok(frontier)
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf by its hash. Returns the tiles that it fills, the lowest level first: usually none.
    pub fn append(&mut self, leaf: Hash) -> Vec<(Tile, Vec<Hash>)> {
        let mut full = Vec::new();
        let mut hash = leaf;
        let mut level = 0_u32;
        loop {
            let at = level as usize;
            if self.partial.len() == at {
                self.partial.push(Vec::new());
            }
            self.partial[at].push(hash);
            if self.partial[at].len() < usize::from(FULL_TILE) {
                break;
            }
            let hashes = std::mem::take(&mut self.partial[at]);
            hash = complete_root(&hashes);
            let index = self.size >> (TILE_HEIGHT * (level + 1));
            full.push((Tile { kind: TileKind::Hashes { level }, index, width: FULL_TILE }, hashes));
            level += 1;
        }
        self.size += 1;
        full
    }

    pub fn root(&self) -> Hash {
        // The complete subtrees from right to left. Those of one tile have the sizes of the binary digits of its width.
        let mut root = None;
        for hashes in &self.partial {
            let mut end = hashes.len();
            while end > 0 {
                let width = 1 << end.trailing_zeros();
                let peak = complete_root(&hashes[end - width..end]);
                root = Some(root.map_or(peak, |right| node_hash(&peak, &right)));
                end -= width;
            }
        }
        root.unwrap_or_else(empty_root)
    }

    /// Returns the partial tiles at the current size, the lowest level first. A log serves them for each size of
    /// which it has signed a checkpoint.
    pub fn partial_tiles(&self) -> Vec<(Tile, &[Hash])> {
        let addresses = self.partial_addresses();
        addresses.iter().zip(&self.partial).filter_map(|(tile, hashes)| Some(((*tile)?, hashes.as_slice()))).collect()
    }

    /// Returns the address of the partial tile of each level, up to the highest level with a hash.
    fn partial_addresses(&self) -> Vec<Option<Tile>> {
        (0..MOST_LEVELS)
            .map(|level| (level, self.size >> (TILE_HEIGHT * level)))
            .take_while(|(_, hashes)| *hashes > 0)
            .map(|(level, hashes)| {
                let width = (hashes % u64::from(FULL_TILE)) as u16;
                let kind = TileKind::Hashes { level };
                (width > 0).then_some(Tile { kind, index: hashes >> TILE_HEIGHT, width })
            })
            .collect()
    }
}

/// All hashes of a log, by tile level: about 32 bytes for each leaf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    levels: Vec<Vec<Hash>>,
}

impl Tree {
    pub fn new() -> Tree {
        Tree::default()
    }

    pub fn size(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u64)
    }

    pub fn append(&mut self, leaf: Hash) {
        let mut hash = leaf;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let hashes = &mut self.levels[level];
            hashes.push(hash);
            if !hashes.len().is_multiple_of(usize::from(FULL_TILE)) {
                break;
            }
            hash = complete_root(&hashes[hashes.len() - usize::from(FULL_TILE)..]);
        }
    }

    /// Returns the hash of a leaf, or `None` if there is none.
    pub fn leaf(&self, index: u64) -> Option<Hash> {
        self.levels.first()?.get(usize::try_from(index).ok()?).copied()
    }

    /// Returns the hashes of a tile of hashes, or `None` if the tree has no such tile.
    pub fn tile(&self, tile: &Tile) -> Option<&[Hash]> {
        let TileKind::Hashes { level } = tile.kind else { return None };
        let start = usize::try_from(tile.index).ok()?.checked_mul(usize::from(FULL_TILE))?;
        self.levels.get(level as usize)?.get(start..start.checked_add(usize::from(tile.width))?)
    }

    pub fn root(&self) -> Hash {
        self.root_at(self.size()).unwrap_or_else(empty_root)
    }

    /// Returns the root of the first `size` leaves, or `None` if the log has fewer.
    pub fn root_at(&self, size: u64) -> Option<Hash> {
        (size <= self.size()).then(|| certain(tree_root(size, &mut |level, index| Ok(self.subtree(level, index)))))
    }

    /// Returns the inclusion path of a leaf in the log of the first `size` leaves, or `None` if there is none.
    pub fn inclusion_path(&self, index: u64, size: u64) -> Option<Vec<Hash>> {
        (index < size && size <= self.size())
            .then(|| certain(inclusion_path(index, size, &mut |level, index| Ok(self.subtree(level, index)))))
    }

    fn subtree(&self, level: u32, index: u64) -> Hash {
        let width = 1_usize << (level % TILE_HEIGHT);
        let start = index as usize * width;
        complete_root(&self.levels[(level / TILE_HEIGHT) as usize][start..start + width])
    }
}

impl Extend<Hash> for Tree {
    fn extend<I: IntoIterator<Item = Hash>>(&mut self, leaves: I) {
        leaves.into_iter().for_each(|leaf| self.append(leaf));
    }
}

fn certain<T>(result: Result<T, Infallible>) -> T {
    let Ok(value) = result;
    value
}
