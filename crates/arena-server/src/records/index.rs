//! The Merkle tree of the log in memory: enough hashes for tiles and proofs without a read of the whole log.
//!
//! The index holds the hashes of complete subtrees with 256, 256², … leaves, and the hashes of the last, incomplete
//! block of 256 leaves. This is one hash for each 255 leaves. The store has the other leaf hashes.

use arena_record::Hash;
use arena_record::log::{inclusion_path, root_of, tree_root};

/// The number of hashes in a full tile.
pub(super) const TILE_WIDTH: usize = 256;

/// The number of tree levels in a tile: 256 is 2 to this power.
const TILE_HEIGHT: u32 = 8;

/// The hashes of the log's upper tiles and of its last leaves.
#[derive(Debug, Clone, Default)]
pub(super) struct TreeIndex {
    /// The hashes of tile level `i + 1`: roots of complete subtrees with 256 to the power of `i + 1` leaves.
    levels: Vec<Vec<Hash>>,
    /// The leaf hashes after the last complete block of 256 leaves.
    tail: Vec<Hash>,
}

/// The leaf hashes of one block of 256 leaves.
pub(super) struct Block {
    /// The number of the block's first leaf.
    pub(super) first: u64,
    pub(super) hashes: Vec<Hash>,
}

impl TreeIndex {
    pub(super) fn size(&self) -> u64 {
        self.tail_start() + self.tail.len() as u64
    }

    /// Returns the number of the first leaf that isn't in a complete block.
    fn tail_start(&self) -> u64 {
        self.levels.first().map_or(0, |blocks| (blocks.len() * TILE_WIDTH) as u64)
    }

    pub(super) fn push(&mut self, leaf: Hash) {
        self.tail.push(leaf);
        if self.tail.len() < TILE_WIDTH {
            return;
        }
        let mut root = root_of(&self.tail);
        self.tail.clear();
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let hashes = &mut self.levels[level];
            hashes.push(root);
            if !hashes.len().is_multiple_of(TILE_WIDTH) {
                return;
            }
            root = root_of(&hashes[hashes.len() - TILE_WIDTH..]);
        }
    }

    pub(super) fn root(&self) -> Hash {
        let root = tree_root(self.size(), &mut |level, index| self.subtree(level, index, None).ok_or(()));
        root.expect("the right edge of the tree is in memory")
    }

    /// Returns the first `width` hashes of a tile of level 1 or higher; `None` if the tree doesn't have them.
    pub(super) fn tile(&self, level: usize, n: u64, width: usize) -> Option<&[Hash]> {
        let start = usize::try_from(n).ok()?.checked_mul(TILE_WIDTH)?;
        self.levels.get(level.checked_sub(1)?)?.get(start..start.checked_add(width)?)
    }

    /// Returns the first `width` leaf hashes of the block with the number `n` if they are in memory.
    pub(super) fn tail_tile(&self, n: u64, width: usize) -> Option<&[Hash]> {
        (n.checked_mul(TILE_WIDTH as u64)? == self.tail_start()).then(|| self.tail.get(..width)).flatten()
    }

    /// Returns the path from a leaf to the root: the hashes of the siblings, from the leaf on. `block` is the block
    /// with the leaf. Returns `None` if there is no such leaf, or if the block is another one.
    pub(super) fn inclusion_path(&self, leaf: u64, block: &Block) -> Option<Vec<Hash>> {
        if leaf >= self.size() {
            return None;
        }
        inclusion_path(leaf, self.size(), &mut |level, index| self.subtree(level, index, Some(block)).ok_or(())).ok()
    }

    /// Returns the root of the complete subtree over the `2^level` leaves from `index * 2^level` on.
    fn subtree(&self, level: u32, index: u64, block: Option<&Block>) -> Option<Hash> {
        // The subtree consists of 1 to 128 neighbors on the highest tile level that it reaches.
        let (tile_level, shift) = (level / TILE_HEIGHT, level % TILE_HEIGHT);
        let (start, count) = (index << shift, 1 << shift);
        let slice = |hashes: &[Hash], first: u64| {
            let start = usize::try_from(start.checked_sub(first)?).ok()?;
            hashes.get(start..start + count).map(root_of)
        };
        match tile_level {
            0 => slice(&self.tail, self.tail_start())
                .or_else(|| block.and_then(|block| slice(&block.hashes, block.first))),
            _ => slice(self.levels.get(tile_level as usize - 1)?, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    fn leaf(n: u64) -> Hash {
        Hash::of(&n.to_le_bytes())
    }

    /// Folds a path as a verifier of RFC 9162 does, independently of the tree's recursive definition.
    fn root_from(leaf: Hash, n: u64, size: u64, path: &[Hash]) -> Option<[u8; 32]> {
        let join = |left: &[u8; 32], right: &[u8; 32]| -> [u8; 32] {
            Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
        };
        let (mut number, mut last, mut root) = (n, size - 1, leaf.0);
        for sibling in path {
            if last == 0 {
                return None;
            }
            if number % 2 == 1 || number == last {
                root = join(&sibling.0, &root);
                while number % 2 == 0 && number > 0 {
                    (number, last) = (number >> 1, last >> 1);
                }
            } else {
                root = join(&root, &sibling.0);
            }
            (number, last) = (number >> 1, last >> 1);
        }
        (last == 0).then_some(root)
    }

    #[test]
    fn every_leaf_has_a_path_to_the_root_at_the_edges_of_tiles() {
        let mut index = TreeIndex::default();
        let sizes = [1, 2, 3, 255, 256, 257, 511, 512, 513, 700, 65_535, 65_536, 65_537, 66_000];
        for size in sizes {
            while index.size() < size {
                index.push(leaf(index.size()));
            }
            let root = index.root().0;
            for n in [0, 1, 2, 100, 254, 255, 256, 257, 511, 512, size / 2, size.saturating_sub(2), size - 1] {
                if n >= size {
                    continue;
                }
                let first = n / 256 * 256;
                let block = Block { first, hashes: (first..size.min(first + 256)).map(leaf).collect() };
                let path = index.inclusion_path(n, &block).expect("the tree has the leaf");
                assert_eq!(root_from(leaf(n), n, size, &path), Some(root), "leaf {n} of {size}");
                let wrong = root_from(leaf(n + 1), n, size, &path);
                assert_ne!(wrong, Some(root), "leaf {n} of {size}");
            }
        }
    }

    #[test]
    fn tiles_hold_the_roots_of_the_tiles_below() {
        let mut index = TreeIndex::default();
        (0..600).for_each(|n| index.push(leaf(n)));
        let below: Vec<Hash> = (256..512).map(leaf).collect();
        assert_eq!(index.tile(1, 0, 2), Some(&[root_of(&(0..256).map(leaf).collect::<Vec<_>>()), root_of(&below)][..]));
        assert_eq!(index.tail_tile(2, 88), Some(&(512..600).map(leaf).collect::<Vec<_>>()[..]));
        for (level, n, width) in [(0, 0, 1), (1, 0, 3), (1, 1, 1), (2, 0, 1), (1, u64::MAX, 1), (usize::MAX, 0, 1)] {
            assert_eq!(index.tile(level, n, width), None, "{level} {n} {width}");
        }
        for (n, width) in [(1, 1), (2, 89), (3, 1), (u64::MAX, 1)] {
            assert_eq!(index.tail_tile(n, width), None, "{n} {width}");
        }
    }
}
