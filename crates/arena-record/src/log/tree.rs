//! The Merkle tree of RFC 6962, section 2.1: hashes, roots, and proofs of inclusion.
//!
//! Roots and proofs are computed from the hashes of complete subtrees, which a closure returns. Memory, tiles and
//! databases therefore share this code. Verification follows RFC 9162, section 2.1.3.2.

use std::convert::Infallible;

use sha2::{Digest, Sha256};

use crate::Hash;

/// The maximum number of leaves of a log. Shifts of indexes below this number can't overflow.
pub const MOST_LEAVES: u64 = 1 << 48;

/// The maximum number of hashes in a proof.
pub(super) const MOST_HASHES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeFault {
    #[error("leaf {index} is outside of a log of {size} leaves")]
    OutsideOfTree { index: u64, size: u64 },
    #[error("the proof has the wrong number of hashes")]
    PathLength,
    #[error("the proof leads to another root")]
    OtherRoot,
}

/// Returns the hash of a leaf: SHA-256 of a zero byte and the data.
pub fn leaf_hash(data: &[u8]) -> Hash {
    Hash(Sha256::new().chain_update([0_u8]).chain_update(data).finalize().into())
}

/// Returns the hash of an inner node: SHA-256 of a one byte, the left hash and the right hash.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let digest = Sha256::new().chain_update([1_u8]).chain_update(left.0).chain_update(right.0);
    Hash(digest.finalize().into())
}

/// Returns the root of the tree without leaves: SHA-256 of nothing.
pub fn empty_root() -> Hash {
    Hash(Sha256::digest(b"").into())
}

pub fn root_of(leaves: &[Hash]) -> Hash {
    let Ok(root) = tree_root(leaves.len() as u64, &mut |level, index| {
        let width = 1_usize << level;
        let start = index as usize * width;
        Ok::<Hash, Infallible>(complete_root(&leaves[start..start + width]))
    });
    root
}

/// Returns the root of the complete tree over these hashes, whose number is a power of two.
pub(super) fn complete_root(hashes: &[Hash]) -> Hash {
    debug_assert!(hashes.len().is_power_of_two(), "{} hashes", hashes.len());
    match hashes {
        [] => empty_root(),
        [hash] => *hash,
        _ => {
            let mut row: Vec<Hash> = hashes.chunks_exact(2).map(|pair| node_hash(&pair[0], &pair[1])).collect();
            while row.len() > 1 {
                row = row.chunks_exact(2).map(|pair| node_hash(&pair[0], &pair[1])).collect();
            }
            row[0]
        }
    }
}

/// Returns the root of the tree of the first `size` leaves.
///
/// `subtree(level, index)` returns the hash of the complete subtree over the `2^level` leaves from `index * 2^level`.
///
/// # Errors
/// The errors of `subtree`.
pub fn tree_root<E>(size: u64, subtree: &mut dyn FnMut(u32, u64) -> Result<Hash, E>) -> Result<Hash, E> {
    if size == 0 { Ok(empty_root()) } else { range_root(0, size, subtree) }
}

/// `end` is exclusive. `start` is a multiple of a power of two that is at least the number of leaves.
fn range_root<E>(start: u64, end: u64, subtree: &mut dyn FnMut(u32, u64) -> Result<Hash, E>) -> Result<Hash, E> {
    let width = end - start;
    if width.is_power_of_two() {
        let level = width.trailing_zeros();
        return subtree(level, start >> level);
    }
    let middle = start + split(width);
    let left = range_root(start, middle, subtree)?;
    let right = range_root(middle, end, subtree)?;
    Ok(node_hash(&left, &right))
}

/// Returns the largest power of two below `width`, which is at least 2.
fn split(width: u64) -> u64 {
    1 << (63 - (width - 1).leading_zeros())
}

/// Returns the inclusion path of the leaf at `index` in the tree of the first `size` leaves, from the leaf's sibling
/// up. An index outside of the tree has an empty path. [`tree_root`] describes `subtree`.
///
/// # Errors
/// The errors of `subtree`.
pub fn inclusion_path<E>(
    index: u64,
    size: u64,
    subtree: &mut dyn FnMut(u32, u64) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    let mut path = Vec::new();
    if index >= size {
        return Ok(path);
    }
    let (mut start, mut end) = (0, size);
    while end - start > 1 {
        let middle = start + split(end - start);
        if index < middle {
            path.push(range_root(middle, end, subtree)?);
            end = middle;
        } else {
            path.push(range_root(start, middle, subtree)?);
            start = middle;
        }
    }
    path.reverse();
    Ok(path)
}

/// Checks that the leaf with `hash` is at `index` of the tree with `size` leaves and `root`.
///
/// # Errors
/// The first fault of the proof.
pub fn verify_inclusion(hash: &Hash, index: u64, size: u64, path: &[Hash], root: &Hash) -> Result<(), TreeFault> {
    if index >= size {
        return Err(TreeFault::OutsideOfTree { index, size });
    }
    let (mut node, mut last, mut found) = (index, size - 1, *hash);
    for sibling in path {
        if last == 0 {
            return Err(TreeFault::PathLength);
        }
        if node & 1 == 1 || node == last {
            found = node_hash(sibling, &found);
            while node & 1 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            found = node_hash(&found, sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    if last != 0 {
        return Err(TreeFault::PathLength);
    }
    if found == *root { Ok(()) } else { Err(TreeFault::OtherRoot) }
}
