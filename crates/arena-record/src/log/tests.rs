//! Tests of the log. The reference values are in `tests/reference/log.json`, which a Python program computes.

use std::collections::BTreeMap;

use arena_model::{Timestamp, hex};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::Value;

use crate::handover::signed;
use crate::log::*;
use crate::{Hash, KeyHandover, KeyKind, LogProof, RecordKey};

type Files = BTreeMap<String, Vec<u8>>;

fn reference() -> Value {
    serde_json::from_str(include_str!("../../tests/reference/log.json")).expect("JSON")
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name}"))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no {name}"))
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn hash(value: &Value, name: &str) -> Hash {
    text(value, name).parse().expect("a hash")
}

fn numbered(count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|index| format!("leaf {index}").into_bytes()).collect()
}

fn tree(leaves: &[Vec<u8>]) -> Tree {
    let mut tree = Tree::new();
    tree.extend(leaves.iter().map(|leaf| leaf_hash(leaf)));
    tree
}

fn concatenated(paths: impl IntoIterator<Item = Vec<Hash>>) -> Hash {
    let bytes: Vec<u8> = paths.into_iter().flat_map(|path| tile_bytes(&path)).collect();
    Hash::of(&bytes)
}

/// Returns all files of a log but the checkpoint.
fn files(leaves: &[Vec<u8>]) -> Files {
    let tree = tree(leaves);
    let bytes = |tile: &Tile| match tile.kind {
        TileKind::Leaves => {
            let start = tile.index as usize * usize::from(FULL_TILE);
            let leaves = &leaves[start..start + usize::from(tile.width)];
            bundle_bytes(leaves.iter().map(Vec::as_slice)).expect("short leaves")
        }
        TileKind::Hashes { .. } => tile_bytes(tree.tile(tile).expect("a tile of the log")),
    };
    Tile::between(0, leaves.len() as u64).map(|tile| (tile.to_string(), bytes(&tile))).collect()
}

fn reader(files: &Files, size: u64) -> LogReader<impl FnMut(&str) -> Result<Option<Vec<u8>>, String>> {
    LogReader::new(size, move |path: &str| Ok(files.get(path).cloned()))
}

fn checkpoint(leaves: &[Vec<u8>]) -> Checkpoint {
    Checkpoint { origin: "arena.example.com/log".to_owned(), size: leaves.len() as u64, root: tree(leaves).root() }
}

#[test]
fn roots_are_those_of_rfc_6962() {
    let reference = reference();
    let leaves: Vec<Hash> = rows(&reference["rfc"]["leaves"])
        .iter()
        .map(|leaf| {
            let digits = leaf.as_str().expect("text");
            let mut bytes = vec![0; digits.len() / 2];
            hex::decode_into(digits, &mut bytes).expect("digits");
            leaf_hash(&bytes)
        })
        .collect();
    assert_eq!(root_of(&[]).to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(Frontier::new().root(), empty_root());
    assert_eq!(Tree::new().root(), empty_root());
    let (mut tree, mut frontier) = (Tree::new(), Frontier::new());
    for (count, root) in (1..).zip(rows(&reference["rfc"]["roots"])) {
        tree.append(leaves[count - 1]);
        assert!(frontier.append(leaves[count - 1]).is_empty());
        let root = root.as_str().expect("text");
        assert_eq!(root_of(&leaves[..count]).to_string(), root, "{count} leaves");
        assert_eq!(tree.root().to_string(), root, "{count} leaves");
        assert_eq!(frontier.root().to_string(), root, "{count} leaves");
    }
}

#[test]
fn proofs_are_those_of_the_reference_and_verify() {
    let reference = reference();
    let leaves = numbered(40);
    let tree = tree(&leaves);
    for row in rows(&reference["sizes"]) {
        let size = number(row, "size");
        let root = tree.root_at(size).expect("a size of the log");
        assert_eq!(root, hash(row, "root"), "{size} leaves");
        let inclusion: Vec<Vec<Hash>> = (0..size).map(|index| tree.inclusion_path(index, size).unwrap()).collect();
        assert_eq!(concatenated(inclusion.clone()), hash(row, "inclusion"), "{size} leaves");
        for (index, path) in (0..).zip(&inclusion) {
            let leaf = leaf_hash(&leaves[index as usize]);
            assert_eq!(verify_inclusion(&leaf, index, size, path, &root), Ok(()), "leaf {index} of {size}");
        }
    }
    assert_eq!(tree.root_at(41), None);
    assert_eq!(tree.inclusion_path(40, 40), None);
}

/// Returns the path with one hash changed, removed, doubled or added, in all ways.
fn damaged(path: &[Hash]) -> Vec<Vec<Hash>> {
    let mut all = Vec::new();
    for at in 0..path.len() {
        let mut changed = path.to_vec();
        changed[at].0[31] ^= 1;
        all.push(changed);
        let mut removed = path.to_vec();
        removed.remove(at);
        all.push(removed);
        let mut doubled = path.to_vec();
        doubled.insert(at, path[at]);
        all.push(doubled);
        if at > 0 && path[at] != path[at - 1] {
            let mut swapped = path.to_vec();
            swapped.swap(at, at - 1);
            all.push(swapped);
        }
    }
    let mut longer = path.to_vec();
    longer.push(empty_root());
    all.push(longer);
    all
}

#[test]
fn damaged_proofs_are_refused() {
    let leaves = numbered(21);
    let tree = tree(&leaves);
    for size in 1..=21 {
        let root = tree.root_at(size).unwrap();
        for index in 0..size {
            let leaf = leaf_hash(&leaves[index as usize]);
            let path = tree.inclusion_path(index, size).unwrap();
            for damaged in damaged(&path) {
                assert!(verify_inclusion(&leaf, index, size, &damaged, &root).is_err(), "leaf {index} of {size}");
            }
            for other in (0..size).filter(|other| *other != index) {
                assert!(verify_inclusion(&leaf, other, size, &path, &root).is_err(), "leaf {index} as {other}");
            }
            assert_eq!(
                verify_inclusion(&leaf, size, size, &path, &root),
                Err(TreeFault::OutsideOfTree { index: size, size })
            );
            assert!(verify_inclusion(&leaf_hash(b"other"), index, size, &path, &root).is_err());
        }
    }
}

#[test]
fn tiles_are_those_of_the_reference() {
    let reference = reference();
    for row in rows(&reference["logs"]) {
        let size = number(row, "size");
        let leaves = numbered(size);
        let tree = tree(&leaves);
        assert_eq!(tree.root(), hash(row, "root"), "{size} leaves");
        let files = files(&leaves);
        assert_eq!(files.len() as u64, number(row, "files"), "{size} leaves");
        let order = Tile::between(0, size).map(|tile| tile.to_string());
        let list: String = order.map(|path| format!("{path} {}\n", Hash::of(&files[&path]))).collect();
        assert_eq!(Hash::of(list.as_bytes()), hash(row, "digest"), "{size} leaves");

        let mut frontier = Frontier::new();
        let mut tiles = Files::new();
        for leaf in &leaves {
            for (tile, hashes) in frontier.append(leaf_hash(leaf)) {
                tiles.insert(tile.to_string(), tile_bytes(&hashes));
            }
        }
        assert_eq!(frontier.root(), tree.root(), "{size} leaves");
        for (tile, hashes) in frontier.partial_tiles() {
            tiles.insert(tile.to_string(), tile_bytes(hashes));
        }
        let expected: Files = files.into_iter().filter(|(path, _)| !path.starts_with("tile/entries/")).collect();
        assert!(tiles == expected, "{size} leaves: the frontier gives other tiles");

        let restored = Frontier::read(size, |tile| tile_hashes(&tiles[&tile.to_string()], tile.width));
        assert_eq!(restored, Ok(frontier), "{size} leaves");
    }
}

#[test]
fn new_tiles_are_those_that_changed() {
    let check = |old: u64, size: u64, expected: Expect| {
        let paths: Vec<String> = Tile::between(old, size).map(|tile| tile.to_string()).collect();
        expected.assert_eq(&paths.join(" "));
    };
    check(0, 0, expect![""]);
    check(5, 5, expect![""]);
    check(0, 1, expect!["tile/entries/000.p/1 tile/0/000.p/1"]);
    check(1, 3, expect!["tile/entries/000.p/3 tile/0/000.p/3"]);
    check(255, 256, expect!["tile/entries/000 tile/0/000 tile/1/000.p/1"]);
    check(256, 257, expect!["tile/entries/001.p/1 tile/0/001.p/1"]);
    check(250, 300, expect!["tile/entries/000 tile/entries/001.p/44 tile/0/000 tile/0/001.p/44 tile/1/000.p/1"]);
}

#[test]
fn a_tile_has_one_path() {
    let tile = |kind, index, width| Tile { kind, index, width };
    let level = |level| TileKind::Hashes { level };
    for (path, expected) in [
        ("tile/0/000", tile(level(0), 0, 256)),
        ("tile/0/000.p/1", tile(level(0), 0, 1)),
        ("tile/1/999.p/255", tile(level(1), 999, 255)),
        ("tile/2/x001/x234/067", tile(level(2), 1_234_067, 256)),
        ("tile/entries/x001/000.p/17", tile(TileKind::Leaves, 1000, 17)),
        ("tile/entries/x999/999", tile(TileKind::Leaves, 999_999, 256)),
    ] {
        assert_eq!(path.parse::<Tile>(), Ok(expected), "{path}");
        assert_eq!(expected.to_string(), path);
    }
    let paths = "|tile|tile/0|tile/0/|tile/0/0|tile/0/00|tile/0/0000|tile/0/+00|tile/0/x000|tile/0/x000/000|\
        tile/0/001/234|tile/0/x001/x234|tile/0/000.p/0|tile/0/000.p/256|tile/0/000.p/01|tile/0/000.p/+1|\
        tile/0/000.p/|tile/0/000.p/1.p/1|tile/0/000/|tile/00/000|tile/7/000|tile/64/000|tile/-1/000|\
        tile/data/000|tile/6/001|tile/entries/x999/x999/x999/x999/999|/tile/0/000|tile/../secret|tile/0/000 ";
    for path in paths.split('|') {
        assert_eq!(path.parse::<Tile>(), Err(TileError::Path), "{path}");
    }
}

#[test]
fn bundles_have_exactly_their_leaves() {
    let leaves: [&[u8]; 3] = [b"", b"a", &[7; 300]];
    let bytes = bundle_bytes(leaves).expect("short leaves");
    assert_eq!(bytes[..7], [0, 0, 0, 1, b'a', 1, 44]);
    assert_eq!(bundle_leaves(&bytes, 3), Ok(leaves.to_vec()));
    for width in [1, 2, 4] {
        assert_eq!(bundle_leaves(&bytes, width), Err(TileError::Bundle { expected: width }));
    }
    for end in 0..bytes.len() {
        assert_eq!(bundle_leaves(&bytes[..end], 3), Err(TileError::Bundle { expected: 3 }), "{end} bytes");
    }
    let longest = vec![0; MOST_LEAF_BYTES];
    assert_eq!(bundle_bytes([longest.as_slice()]).map(|bytes| bytes.len()), Ok(MOST_LEAF_BYTES + 2));
    let too_long = vec![0; MOST_LEAF_BYTES + 1];
    let found = too_long.len();
    assert_eq!(bundle_bytes([too_long.as_slice()]), Err(TileError::LongLeaf { found }));
    assert_eq!(tile_hashes(&[0; 63], 2), Err(TileError::Length { expected: 64, found: 63 }));
}

#[test]
fn a_note_of_another_program_verifies() {
    let reference = reference();
    let (key, note) = (text(&reference["note"], "key"), text(&reference["note"], "note"));
    let key: NoteKey = key.parse().expect("a key");
    assert_eq!(key.to_string(), text(&reference["note"], "key"));
    let parsed: SignedNote = note.parse().expect("a note");
    assert_eq!(parsed.to_string(), note);
    assert_eq!(parsed.verify(&key), Ok(()));
    for at in 0..note.len() {
        for bit in [1, 32, 128] {
            let mut bytes = note.as_bytes().to_vec();
            bytes[at] ^= bit;
            let verified = String::from_utf8(bytes).ok().and_then(|note| note.parse::<SignedNote>().ok());
            let verified = verified.is_some_and(|note| note.verify(&key).is_ok());
            assert!(!verified, "bit {bit} of byte {at} can be changed");
        }
    }
    for end in 0..note.len() {
        let is_cut = note.is_char_boundary(end) && note[..end].parse::<SignedNote>().is_ok();
        assert!(!is_cut, "the note can be cut to {end} bytes");
    }
}

#[test]
fn other_texts_are_no_notes() {
    let check = |note: &str, expected: Expect| {
        expected.assert_eq(&note.parse::<SignedNote>().expect_err("no note").to_string());
    };
    check("", expect!["not a signed note: it has no empty line"]);
    check("a\n", expect!["not a signed note: it has no empty line"]);
    check("a\n\n", expect!["not a signed note: it ends without a line end"]);
    check("a\n\n\n", expect!["not a signed note: it ends without a line end"]);
    check("a\tb\n\n\u{2014} x AAAAAAA=\n", expect!["not a signed note: it has a control character"]);
    let line = "not a signed note: a signature's line isn't a dash, a name and base64";
    for signature in
        ["- x AAAAAAA=", "\u{2014} x", "\u{2014}  AAAAAAA=", "\u{2014} x+y AAAAAAA=", "\u{2014} x AAAAAAB="]
    {
        assert_eq!(
            format!("a\n\n{signature}\n").parse::<SignedNote>().map_err(|e| e.to_string()),
            Err(line.to_owned())
        );
    }
    check("a\n\n\u{2014} x AAAAAA==\n", expect!["not a signed note: a signature is too short"]);
    let many = "\u{2014} x AAAAAAA=\n".repeat(MOST_SIGNATURES);
    assert!(format!("a\n\n{many}").parse::<SignedNote>().is_ok());
    check(&format!("a\n\n{many}\u{2014} x AAAAAAA=\n"), expect!["not a signed note: it has too many signatures"]);
    check(&"a".repeat(1_000_000), expect!["not a signed note: it is too long"]);
}

#[test]
fn checkpoints_are_those_of_the_reference() {
    let reference = &reference()["checkpoint"];
    let key = |name| RecordKey::from_hex(text(reference, name)).expect("a key");
    let signer = key("logSeed");
    let log: NoteKey = text(reference, "logKey").parse().expect("a key");
    let name = "arena.example.com/log";
    assert_eq!(NoteKey::new(name, signer.public_key()), Ok(log.clone()));

    let checkpoint = checkpoint(&numbered(40));
    let signed = checkpoint.sign(&signer).expect("signed");
    assert_eq!(signed.to_string(), text(reference, "signed"));
    assert_eq!(signed.verify(&log), Ok(&checkpoint));
    // Other keys may have signed too, in ways that this program doesn't know.
    let parsed: SignedCheckpoint = text(reference, "cosigned").parse().expect("a checkpoint");
    assert_eq!(parsed.to_string(), text(reference, "cosigned"));
    assert_eq!(parsed.verify(&log), Ok(&checkpoint));

    let other = NoteKey::new("other.example.com", signer.public_key()).expect("a key");
    let (expected, found) = ("other.example.com".to_owned(), name.to_owned());
    assert_eq!(parsed.verify(&other), Err(NoteError::OtherLog { expected, found }));
    let other = NoteKey::new(name, key("witnessSeed").public_key()).expect("a key");
    assert_eq!(parsed.verify(&other), Err(NoteError::Unsigned(other)));
    let forged = text(reference, "cosigned").replacen("\n40\n", "\n41\n", 1);
    let forged: SignedCheckpoint = forged.parse().expect("a checkpoint");
    assert_eq!(forged.verify(&log), Err(NoteError::Forged(log)));
}

#[test]
fn a_verifier_key_has_one_spelling() {
    let good = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    assert!(good.parse::<NoteKey>().is_ok());
    for at in 0..good.len() {
        let mut bytes = good.as_bytes().to_vec();
        bytes[at] ^= 1;
        let text = String::from_utf8(bytes).expect("ASCII");
        assert!(text.parse::<NoteKey>().is_err(), "{text}");
        assert!(good[..at].parse::<NoteKey>().is_err(), "{}", &good[..at]);
    }
    for bad in [good.to_uppercase(), format!("{good}="), format!(" {good}"), format!("{good}\n")] {
        assert!(bad.parse::<NoteKey>().is_err(), "{bad:?}");
    }
}

#[test]
fn other_texts_are_no_checkpoints() {
    let root = text(&reference()["checkpoint"], "signed").split('\n').nth(2).expect("a root").to_owned();
    let check = |text: String, expected: Expect| {
        let note = format!("{text}\n\u{2014} x AAAAAAA=\n");
        let result = note.parse::<SignedCheckpoint>();
        expected.assert_eq(&result.map_or_else(|error| error.to_string(), |it| it.unverified().size.to_string()));
    };
    check(format!("a\n40\n{root}\n"), expect!["40"]);
    check(format!("a\n40\n{root}\nan extension\n"), expect!["40"]);
    check(format!("a\n0\n{root}\n"), expect!["0"]);
    check("a\n40\n".to_owned(), expect!["not a checkpoint: it has fewer than three lines"]);
    check(format!("\n40\n{root}\n"), expect!["not a checkpoint: it has an empty line"]);
    check(format!("a\n040\n{root}\n"), expect!["not a checkpoint: the second line isn't a number of leaves"]);
    check(format!("a\n-1\n{root}\n"), expect!["not a checkpoint: the second line isn't a number of leaves"]);
    check(
        format!("a\n281474976710657\n{root}\n"),
        expect!["not a checkpoint: the second line isn't a number of leaves"],
    );
    check("a\n40\nAAAA\n".to_owned(), expect!["not a checkpoint: the third line isn't a hash in base64"]);
}

#[test]
fn a_proof_is_that_of_the_reference_and_verifies() {
    let reference = reference();
    let log: NoteKey = text(&reference["checkpoint"], "logKey").parse().expect("a key");
    let (leaf, written) = (text(&reference["proof"], "leaf"), text(&reference["proof"], "text"));
    let proof: TlogProof = written.parse().expect("a proof");
    assert_eq!(proof.to_string(), written);
    assert_eq!(proof.verify(leaf.as_bytes(), &log), Ok(&checkpoint(&numbered(40))));
    let (leaf_number, path) = (proof.index, proof.path.clone());
    let mut record = LogProof { leaf: leaf_number, size: 40, path, checkpoint: proof.checkpoint.to_string() };
    assert_eq!(TlogProof::of_record(&record), Ok(proof.clone()));
    let with_extra = TlogProof { extra: vec![1, 2, 3], ..proof.clone() };
    assert_eq!(with_extra.to_string().parse::<TlogProof>(), Ok(with_extra));

    let error = proof.verify(b"leaf 6", &log).expect_err("another leaf");
    assert_eq!(error.to_string(), "leaf 5 isn't in the log of 40 leaves: the proof leads to another root");
    assert!(error.is_lie());
    record.size = 41;
    assert_eq!(TlogProof::of_record(&record), Err(NoteError::Proof("its checkpoint has another size")));
    // The last line is the signature of another key, which isn't checked.
    let covered = written.rfind('\u{2014}').expect("a signature");
    for at in 0..covered {
        for bit in [1, 32, 128] {
            let mut bytes = written.as_bytes().to_vec();
            bytes[at] ^= bit;
            let changed = String::from_utf8(bytes).ok().and_then(|proof| proof.parse::<TlogProof>().ok());
            let verified = changed.is_some_and(|proof| proof.verify(leaf.as_bytes(), &log).is_ok());
            assert!(!verified, "bit {bit} of byte {at} can be changed");
        }
    }
}

#[test]
fn leaves_have_one_spelling() {
    for row in rows(&reference()["leaves"]) {
        let line = text(row, "line");
        let leaf: Leaf = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(leaf.to_string(), line);
        assert_eq!(leaf.hash(), hash(row, "hash"), "{line}");
        assert!(line.starts_with(&format!("{{\"leaf\":\"{}\"", leaf.kind())), "{line}");
        assert_eq!(leaf.session().is_none(), matches!(leaf.kind(), "key" | "deal"));
        for other in [
            format!("{line}\n"),
            format!(" {line}"),
            line.replacen(',', ", ", 1),
            line.replacen("\"at\"", "\"note\":1,\"at\"", 1),
            line.replacen("\"at\":", "\"at\":0,\"at\":", 1),
            line.replacen(":\"", ":\"\\u0020", 1),
            line.replacen('e', "\\u0065", 1),
        ] {
            assert!(other.parse::<Leaf>().is_err(), "{other}");
        }
        for at in 0..line.len() {
            let mut bytes = line.as_bytes().to_vec();
            bytes[at] ^= 1;
            assert_ne!(Leaf::from_bytes(&bytes), Ok(leaf.clone()), "byte {at} of {line}");
        }
    }
}

#[test]
fn a_log_is_checked_from_its_files() {
    for size in [0, 1, 2, 255, 256, 257, 600] {
        let leaves = numbered(size);
        let files = files(&leaves);
        let mut seen = Vec::new();
        let mut reader = reader(&files, size);
        let frontier = reader.check(&tree(&leaves).root(), |index, leaf| {
            seen.push((index, leaf.to_vec()));
            Ok(())
        });
        assert_eq!(frontier.map(|frontier| frontier.size()), Ok(size));
        assert_eq!(seen, (0..).zip(leaves.clone()).collect::<Vec<_>>());
    }
    let leaves = numbered(600);
    let (files, root) = (files(&leaves), tree(&leaves).root());
    for index in [0, 255, 256, 511, 512, 599] {
        let (leaf, path) = reader(&files, 600).leaf(index, &root).expect("a leaf of the log");
        assert_eq!(leaf, leaves[index as usize]);
        assert_eq!(Some(path), tree(&leaves).inclusion_path(index, 600));
    }
    assert_eq!(reader(&files, 600).leaf(600, &root), Err(LogError::NoLeaf { leaf: 600, size: 600 }));
}

#[test]
fn a_partial_tile_may_be_replaced_by_the_full_one() {
    let leaves = numbered(600);
    let files = files(&leaves);
    assert!(!files.contains_key("tile/0/001.p/44"));
    let root = tree(&leaves[..300]).root();
    let frontier = reader(&files, 300).check(&root, |_, _| Ok(()));
    // Only full tiles replace a partial one; the tile of level 1 with one hash is gone.
    assert_eq!(frontier, Err(LogError::Missing { path: "tile/1/000.p/1".to_owned() }));
    let mut files = files;
    files.insert("tile/1/000.p/1".to_owned(), files["tile/1/000.p/2"][..32].to_vec());
    assert!(reader(&files, 300).check(&root, |_, _| Ok(())).is_ok());
}

#[test]
fn changed_logs_are_found() {
    let leaves = numbered(600);
    let root = tree(&leaves).root();
    let changed = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut leaves = leaves.clone();
        change(&mut leaves);
        let size = leaves.len() as u64;
        (files(&leaves), size)
    };
    // The files of another log, with right hashes: only the root differs.
    type Change<'c> = &'c dyn Fn(&mut Vec<Vec<u8>>);
    let changes: [(&str, Change<'_>); 5] = [
        ("dropped", &|leaves| drop(leaves.remove(300))),
        ("reordered", &|leaves| leaves.swap(300, 301)),
        ("truncated", &|leaves| drop(leaves.pop())),
        ("doubled", &|leaves| leaves.insert(300, leaves[300].clone())),
        ("changed", &|leaves| leaves[599] = b"other".to_vec()),
    ];
    for (what, change) in changes {
        let (files, size) = changed(change);
        let expected = format!("the {size} leaves of the log don't give the root of the checkpoint");
        let error = reader(&files, size).check(&root, |_, _| Ok(())).expect_err(what);
        assert_eq!((error.to_string(), error.is_lie()), (expected, true), "{what}");
    }

    // The log with one changed file, or without it.
    type FileChange<'c> = Option<&'c dyn Fn(&mut Vec<u8>)>;
    let changes: [(&str, &str, FileChange<'_>); 6] = [
        ("a leaf", "tile/entries/001", Some(&|bytes| bytes[6] ^= 1)),
        ("a leaf hash", "tile/0/002.p/88", Some(&|bytes| bytes[0] ^= 1)),
        ("an upper hash", "tile/1/000.p/2", Some(&|bytes| bytes[63] ^= 1)),
        ("a short tile", "tile/0/001", Some(&|bytes| bytes.truncate(8191))),
        ("a short bundle", "tile/entries/001", Some(&|bytes| bytes.truncate(100))),
        ("a missing tile", "tile/0/001", None),
    ];
    let transcript = changes.map(|(what, path, change)| {
        let mut files = files(&leaves);
        let mut bytes = files.remove(path).expect("a file of the log");
        if let Some(change) = change {
            change(&mut bytes);
            files.insert(path.to_owned(), bytes);
        }
        let error = reader(&files, 600).check(&root, |_, _| Ok(())).expect_err(what);
        format!("{what}: {}: {error}\n", if error.is_lie() { "lie" } else { "no lie" })
    });
    expect![[r#"
        a leaf: lie: leaf 256 was changed: it doesn't match its hash in the log
        a leaf hash: lie: leaf 512 was changed: it doesn't match its hash in the log
        an upper hash: lie: tile/1/000.p/2: its hashes don't match the leaves
        a short tile: lie: tile/0/001: a tile has 8191 bytes instead of 8192
        a short bundle: lie: tile/entries/001: a bundle doesn't consist of 256 leaves with their lengths
        a missing tile: no lie: the log has no tile/0/001; fetch it again, or ask its operator
    "#]]
    .assert_eq(&transcript.concat());
    let error = LogReader::new(600, |_: &str| Err("timeout".to_owned())).check(&root, |_, _| Ok(()));
    assert_eq!(error.unwrap_err().to_string(), "cannot read tile/entries/000 of the log: timeout");
}

#[test]
fn a_checkpoint_is_read_from_its_file() {
    let signed = text(&reference()["checkpoint"], "signed").to_owned();
    let read = |file: Result<Option<Vec<u8>>, String>| {
        read_checkpoint(&mut |path: &str| {
            assert_eq!(path, "checkpoint");
            file.clone()
        })
    };
    assert_eq!(read(Ok(Some(signed.clone().into_bytes()))).map(|it| it.to_string()), Ok(signed));
    let check = |file, expected: Expect| expected.assert_eq(&read(file).expect_err("no checkpoint").to_string());
    check(Ok(None), expect!["the log has no checkpoint; fetch it again, or ask its operator"]);
    check(Ok(Some(vec![255])), expect!["not a signed note: it isn't UTF-8"]);
    check(Err("timeout".to_owned()), expect!["cannot read checkpoint of the log: timeout"]);
}

#[test]
fn contradictions_between_leaves_are_found() {
    let session = "018f6b2e-0000-7000-8000-00000000abcd";
    let leaf = |kind: &str| {
        let rest = match kind {
            "created" => r#""challenge":"psi","seedCommitment":null,"rated":false"#.to_owned(),
            "ended" => format!("\"ending\":\"completed\",\"record\":\"{}\"", "22".repeat(32)),
            "unlisted" => r#""reason":"unlisted""#.to_owned(),
            _ => r#""reason":"a reason""#.to_owned(),
        };
        let kind = if kind == "unlisted" { "excluded" } else { kind };
        format!(r#"{{"leaf":"{kind}","session":"{session}",{rest},"at":1}}"#)
    };
    for (kinds, expected) in [
        ("created", "1 unfinished"),
        ("created ended", "0 unfinished"),
        ("created removed", "0 unfinished"),
        ("removed", "0 unfinished"),
        ("created ended removed", "0 unfinished"),
        ("created ended excluded excluded removed excluded", "0 unfinished"),
        ("created unlisted", "1 unfinished"),
        ("created ended unlisted", "leaf 2 (excluded) of session S: leaf 1 says that the session had ended before"),
        // An import after the removal.
        ("created ended removed created", "1 unfinished"),
        ("created ended removed created ended removed", "0 unfinished"),
        ("created ended removed created ended ended", "leaf 5 (ended) of session S: leaf 4 already says so"),
        ("created ended removed ended", "leaf 3 (ended) of session S: leaf 1 already says so"),
        ("created created", "leaf 1 (created) of session S: leaf 0 already says so"),
        ("created ended ended", "leaf 2 (ended) of session S: leaf 1 already says so"),
        ("ended", "leaf 0 (ended) of session S: no earlier leaf has its creation"),
        ("excluded", "leaf 0 (excluded) of session S: no earlier leaf has its creation"),
        ("created removed ended", "leaf 2 (ended) of session S: leaf 1 says that the session was removed"),
    ] {
        let mut audit = LogAudit::new();
        let fault = (0..).zip(kinds.split(' ')).find_map(|(index, kind)| audit.add(index, leaf(kind).as_bytes()).err());
        let unfinished = format!("{} unfinished", audit.unfinished().count());
        let found = fault.map_or(unfinished, |fault| fault.to_string().replace(session, "S"));
        assert_eq!(found, expected, "{kinds}");
    }
    let fault = LogAudit::new().add(7, b"{}").unwrap_err();
    assert!(fault.to_string().starts_with("leaf 7: not a leaf: "), "{fault}");
    let mut audit = LogAudit::new();
    let key = rows(&reference()["leaves"])[6].clone();
    audit.add(0, text(&key, "line").as_bytes()).expect("a leaf");
    assert_eq!(audit.keys().len(), 1);
    assert!(audit.sessions().is_empty());
}

#[test]
fn base64_is_that_of_rfc_4648() {
    for (bytes, text) in
        [("", ""), ("f", "Zg=="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy")]
    {
        assert_eq!(base64::encode(bytes.as_bytes()), text);
        assert_eq!(base64::decode(text).as_deref(), Some(bytes.as_bytes()));
    }
    for bad in ["Z", "Zg", "Zg=", "Zh==", "Zg===", "Zm9=", "Zm9v=", "====", "Zm 9v", "Zm9v\n", "Zm-_", "é"] {
        assert_eq!(base64::decode(bad), None, "{bad:?}");
    }
}

proptest! {
    #[test]
    fn base64_decoding_inverts_encoding(bytes: Vec<u8>) {
        prop_assert_eq!(base64::decode(&base64::encode(&bytes)), Some(bytes));
    }

    #[test]
    fn proofs_of_all_sizes_verify(new in 1_u64..600, at in 0_u64..600) {
        let index = at % new;
        let leaves = numbered(new);
        let tree = tree(&leaves);
        let root = tree.root();
        let path = tree.inclusion_path(index, new).unwrap();
        prop_assert_eq!(verify_inclusion(&leaf_hash(&leaves[index as usize]), index, new, &path, &root), Ok(()));
    }

    #[test]
    fn a_tiles_path_is_read_back(level in 0_u32..7, index in 0_u64..2_000_000_000, width in 1_u16..=256) {
        let tile = Tile { kind: TileKind::Hashes { level }, index, width };
        prop_assume!(tile.is_in(MOST_LEAVES));
        prop_assert_eq!(tile.to_string().parse::<Tile>(), Ok(tile));
    }
}

#[test]
fn a_leaf_of_a_key_has_a_valid_handover_to_that_key_or_none() {
    let [old, new, other] = [1, 2, 3].map(|seed| RecordKey::from_random([seed; 32]));
    let at = Timestamp(1_790_000_000_000);
    let sign = |kind: KeyKind| signed(kind, &old, &new, at);
    let leaf = |key: &RecordKey, handover: Option<KeyHandover>| {
        Leaf::Key { record_key: key.public_key(), handover, at }.to_string()
    };
    let valid = leaf(&new, Some(sign(KeyKind::Record)));
    assert!(
        valid.starts_with("{\"leaf\":\"key\",\"recordKey\":") && valid.contains("\"handover\":{\"kind\":\"record\"")
    );
    let parsed: Leaf = valid.parse().expect("a leaf");
    assert_eq!(parsed.to_string(), valid);
    assert!(leaf(&other, None).parse::<Leaf>().is_ok());
    let forged = KeyHandover { at: Timestamp(at.0 + 1), ..sign(KeyKind::Record) };
    for (what, line, expected) in [
        ("another key", leaf(&other, Some(sign(KeyKind::Record))), "the handover is to another key than the leaf's"),
        ("a key of the log", leaf(&new, Some(sign(KeyKind::Log))), "the handover is to another key than the leaf's"),
        ("another time", leaf(&new, Some(forged)), "no valid signature of the old key"),
    ] {
        let mut audit = LogAudit::new();
        let fault = audit.add(7, line.as_bytes()).expect_err(what);
        assert!(fault.to_string().starts_with("leaf 7: "), "{what}: {fault}");
        assert!(fault.to_string().contains(expected), "{what}: {fault}");
    }
}
