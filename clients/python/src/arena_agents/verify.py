"""Verification of records and of an arena's log, in plain Python.

A record is the file of one session: JSON lines, each with the hash of the line before. The log is an append-only Merkle
tree with a leaf for each created, ended or removed session. This module shares no code with the server and needs no
other package. If `cryptography` is installed, it checks signatures faster.

    python -m arena_agents.verify game.jsonl
    python -m arena_agents.verify season --keys arena.json --log https://arena.example

It checks the form of each line, the chain, the opened contents, the seed, the signature, and the place in the log. It
doesn't play the game again, as `arena verify` does. Hashes are SHA-256 in lower-case hexadecimal digits, times are in
milliseconds since 1970, and seats count from 0.

The exit codes are those of `arena verify`: 0 if nothing false was found, 11 if a record or the log is false, 16 if
something can't be checked completely with the given keys and log, and 2 if a file can't be read or has another format.
For a log's server, it is 3 (HTTP 4xx), 4 (no answer) or 5 (HTTP 5xx).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.client
import io
import json
import math
import re
import sys
import time
import unicodedata
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

#: The version of the record's format that this module reads.
VERSION = 1

#: The longest line of a record, in bytes. A longer line is refused before it is in memory.
MAX_LINE = 16 * 1024 * 1024

#: The longest record, in bytes.
MAX_RECORD = 256 * 1024 * 1024

#: The reason of a check that needs the log's key.
NO_LOG_KEY = "no key of the log was given"

#: The exit code for files that can't be read or have another format.
EXIT_USAGE = 2

#: The exit code for a server's refusal, HTTP 4xx.
EXIT_REFUSED = 3

#: The exit code for a server without an answer.
EXIT_UNREACHABLE = 4

#: The exit code for a server's failure, HTTP 5xx.
EXIT_SERVER = 5

#: The exit code for false records and logs.
EXIT_FALSE = 11

#: The exit code for files that can't be checked completely.
EXIT_INCOMPLETE = 16

#: The number of hashes or entries in a full tile of the log.
TILE = 256

#: The largest file of the log that is read, in bytes: a full tile of the longest entries.
MAX_TILE = TILE * (2 + 0xFFFF)

#: The longest time without an answer of a log's server, in seconds.
PATIENCE_S = 30.0

#: The time after which caches have no older checkpoint of a log's server, in seconds.
FRESH_S = 2.0

#: The beginning of each record.
_START = b'{"arenaRecord":'

_HASH = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_OPENED = re.compile(r"(chat|operator|usage|user)/(0|[1-9][0-9]*)")
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INVITE = re.compile(f"inv_{_SESSION.pattern}")
_KINDS = ("join", "action", "chat", "deadline", "failed", "abandon", "wake", "usage", "announce", "notice")
_CAUSES = ("normal", "forfeited", "resigned", "invalid", "provider", "host", "abandoned", "removed")

#: The most seats of a session.
MAX_SEATS = 1000

#: The largest integer that a number without a fraction may have in a score.
_EXACT = 2**53


class UncheckedError(Exception):
    """A file that can't be checked: unreadable, not a record, or of a later version.

    Attributes:
        exit_code: The exit code of the command.
    """

    def __init__(self, reason: str, exit_code: int = EXIT_USAGE) -> None:
        """Creates an error with a reason."""
        self.exit_code = exit_code
        super().__init__(reason)


class FalseRecordError(Exception):
    """A record that contradicts itself, its signature, its key or the log.

    Attributes:
        line: The number of the first false line, from 1. None if the whole record is meant.
        event: The number of the event that the line is or belongs to, from 1. None for other lines.
        reason: The contradiction, in one sentence.
    """

    def __init__(self, reason: str, line: int | None = None, event: int | None = None) -> None:
        """Creates an error about a line and event."""
        self.line = line
        self.event = event
        self.reason = reason
        place = "" if line is None else f"line {line}: " if event is None else f"line {line} (event {event}): "
        super().__init__(place + reason)


class FalseLogError(Exception):
    """A log that contradicts itself, its checkpoint, its key or an earlier checkpoint."""


@dataclass(frozen=True)
class Report:
    """The result of the verification of one record.

    Attributes:
        session: The session's id.
        challenge: The name of the session's challenge.
        events: The number of events.
        messages: The number of messages.
        opened: The number of messages whose content is in the record and agrees with its commitment.
        end: "completed" or "abandoned". None if the record has no end.
        hash: The hash that the signature and the log contain: of the end, or of the last event.
        key: The key that signed the record, 32 bytes in hexadecimal digits. None if the record has no signature.
        scores: For each seat, security and utility. Empty without an end.
        checked: The names of the checks that passed.
        unchecked: For each check that wasn't possible, its name and the reason.
        is_complete: False if the record has a part that can't be checked with the given keys and log. Contents that are
            withheld, and a missing log, don't count.
    """

    session: str
    challenge: str
    events: int
    messages: int
    opened: int
    end: str | None
    hash: str
    key: str | None
    scores: tuple[tuple[float, float], ...] = ()
    checked: tuple[str, ...] = ()
    unchecked: Mapping[str, str] = field(default_factory=dict)
    is_complete: bool = True

    @property
    def withheld(self) -> int:
        """The number of messages without their content."""
        return self.messages - self.opened


# Signatures: Ed25519 (RFC 8032). Verification handles public data only, so it may take a varying time.

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P

#: A point of the curve in extended coordinates: X, Y, Z and T, with x = X/Z, y = Y/Z and x·y = T/Z.
_Point = tuple[int, int, int, int]


def _add(a: _Point, b: _Point) -> _Point:
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % _P, (a[1] + a[0]) * (b[1] + b[0]) % _P
    g, h = 2 * a[3] * b[3] * _D % _P, 2 * a[2] * b[2] % _P
    e, f, g, h = f - e, h - g, h + g, f + e
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _multiply(factor: int, point: _Point) -> _Point:
    product = (0, 1, 1, 0)
    while factor:
        if factor & 1:
            product = _add(product, point)
        point = _add(point, point)
        factor >>= 1
    return product


def _decode_point(data: bytes) -> _Point | None:
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    x = x if x & 1 == sign else _P - x
    return (x, y, 1, x * y % _P)


def _encode_point(point: _Point) -> bytes:
    inverse = pow(point[2], -1, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


_BASE = _decode_point(bytes.fromhex("58" + "66" * 31))


def verify_plain(key: bytes, signature: bytes, text: bytes) -> bool:
    """Checks an Ed25519 signature without other packages. Takes about 10 ms.

    Args:
        key: The public key, 32 bytes.
        signature: 64 bytes.
        text: The signed bytes.
    """
    if len(key) != 32 or len(signature) != 64 or _BASE is None:
        return False
    point, s = _decode_point(key), int.from_bytes(signature[32:], "little")
    if point is None or s >= _ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), "little") % _ORDER
    minus = (_P - point[0], point[1], 1, _P - point[3])
    return _encode_point(_add(_multiply(s, _BASE), _multiply(k, minus))) == signature[:32]


def verify_signature(key: bytes, signature: bytes, text: bytes) -> bool:
    """Checks an Ed25519 signature, with `cryptography` if it is installed.

    Args:
        key: The public key, 32 bytes.
        signature: 64 bytes.
        text: The signed bytes.
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return verify_plain(key, signature, text)
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


# Handovers: a new key replaces an old one, and both sign the change.


class ForgedHandoverError(ValueError):
    """A handover that isn't signed by both keys."""


@dataclass(frozen=True)
class Handover:
    """A change of one of the arena's keys, which both keys have signed.

    Attributes:
        kind: "record" or "log".
        old: The replaced key, 32 bytes in hexadecimal digits.
        new: The key that replaces it.
    """

    kind: str
    old: str
    new: str

    @classmethod
    def parse(cls, value: Any) -> Handover:
        """Parses a handover, and checks its signatures.

        Args:
            value: The parsed JSON object with the fields kind, old, new, at, signedByOld and signedByNew.

        Raises:
            ForgedHandoverError: If a signature is wrong.
            ValueError: If the value isn't a handover.
        """
        try:
            kind, old, new, at = value["kind"], value["old"], value["new"], value["at"]
            signatures = [(old, "old", value["signedByOld"]), (new, "new", value["signedByNew"])]
            is_well_formed = (
                kind in ("record", "log")
                and type(at) is int
                and all(_HASH.fullmatch(key) and _SIGNATURE.fullmatch(signature) for key, _, signature in signatures)
            )
        except (KeyError, TypeError) as error:
            raise ValueError("the handover has another format") from error
        if not is_well_formed:
            raise ValueError("the handover has another format")
        text = f"arena key handover\n{kind}\n{old}\n{new}\n{at}\n".encode()
        for key, name, signature in signatures:
            if not verify_signature(bytes.fromhex(key), bytes.fromhex(signature), text):
                raise ForgedHandoverError(f"the handover from {old} to {new} has no valid signature of the {name} key")
        return cls(kind, old, new)


def connected_keys(kind: str, trusted: Iterable[str], handovers: Iterable[Handover]) -> list[str]:
    """Returns the trusted keys, followed by those that handovers connect with them, in either direction.

    Args:
        kind: The kind of the keys: "record" or "log".
        trusted: The keys, each 32 bytes in hexadecimal digits.
        handovers: The handovers. Those of another kind are ignored.
    """
    keys = list(dict.fromkeys(key.lower() for key in trusted))
    pairs = [(handover.old, handover.new) for handover in handovers if handover.kind == kind]
    found = True
    while found:
        found = False
        for old, new in pairs:
            if (old in keys) != (new in keys):
                keys.append(new if old in keys else old)
                found = True
    return keys


# Merkle trees (RFC 6962).


def leaf_hash(data: bytes) -> bytes:
    """Returns the hash of a leaf with this data."""
    return hashlib.sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Returns the hash of an inner node above these two nodes."""
    return hashlib.sha256(b"\1" + left + right).digest()


class Frontier:
    """A growing Merkle tree with the hashes of all complete subtrees, about 64 bytes for each leaf.

    Attributes:
        size: The number of leaves.
    """

    def __init__(self) -> None:
        """Creates an empty tree."""
        self.size = 0
        #: For each height, the hashes of the complete subtrees of this height, one after the other.
        self._levels: list[bytearray] = []

    def append(self, leaf: bytes) -> None:
        """Adds a leaf by its hash."""
        node = leaf
        for level in range(self.size.bit_length() + 1):
            if level == len(self._levels):
                self._levels.append(bytearray())
            hashes = self._levels[level]
            hashes += node
            if len(hashes) % 64:
                break
            node = node_hash(bytes(hashes[-64:-32]), node)
        self.size += 1

    def root(self) -> bytes:
        """Returns the root hash, 32 bytes."""
        return self.root_at(self.size)

    def root_at(self, size: int) -> bytes:
        """Returns the root hash of the first `size` leaves."""
        root = b""
        for level in range(size.bit_length()):
            if size >> level & 1:
                at = 32 * ((size >> level) - 1)
                node = bytes(self._levels[level][at : at + 32])
                root = node_hash(node, root) if root else node
        return root or hashlib.sha256().digest()

    def leaf(self, number: int) -> bytes:
        """Returns the hash of a leaf. It is empty if there is none."""
        return bytes(self._levels[0][32 * number : 32 * number + 32]) if self._levels else b""

    def hashes(self, level: int, number: int) -> bytes:
        """Returns the hashes of a tile (C2SP tlog-tiles): at most 256, each over 256 of the level below."""
        at = 32 * TILE * number
        return bytes(self._levels[8 * level][at : at + 32 * TILE]) if 8 * level < len(self._levels) else b""


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Checks that a leaf is in a tree (RFC 9162, 2.1.3.2).

    Args:
        leaf: The hash of the leaf.
        index: The leaf's number, from 0.
        size: The number of leaves of the tree.
        path: The inclusion proof, from the leaf upwards.
        root: The root hash of the tree.
    """
    if not 0 <= index < size:
        return False
    node, first, last = leaf, index, size - 1
    for sibling in path:
        if last == 0:
            return False
        if first & 1 or first == last:
            node = node_hash(sibling, node)
            while first and not first & 1:
                first, last = first >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        first, last = first >> 1, last >> 1
    return last == 0 and node == root


# Checkpoints (C2SP tlog-checkpoint and signed-note).


@dataclass(frozen=True)
class NoteKey:
    """A public key of a log, as `name+keyid+key` in the form of signed-note.

    Attributes:
        name: The log's origin.
        id: The first 4 bytes of the key's hash.
        key: The Ed25519 key, 32 bytes.
    """

    name: str
    id: bytes
    key: bytes

    @classmethod
    def parse(cls, text: str) -> NoteKey:
        """Parses the text of a key.

        Raises:
            ValueError: If the text isn't a key, or its id isn't the key's.
        """
        try:
            name, id_text, key_text = text.strip().split("+", 2)
            data = base64.b64decode(key_text, validate=True)
            key_id = bytes.fromhex(id_text)
        except ValueError as error:
            raise ValueError(f"{text!r:.100} isn't a key in the form name+keyid+key") from error
        if len(data) != 33 or data[0] != 1 or not name:
            raise ValueError(f"{text!r:.100} isn't an Ed25519 key of a log")
        if hashlib.sha256(name.encode() + b"\n" + data).digest()[:4] != key_id:
            raise ValueError(f"the id in {text!r:.100} isn't the id of its key")
        return cls(name, key_id, data[1:])

    def connected(self, handovers: Iterable[Handover]) -> list[NoteKey]:
        """Returns this key, followed by the keys of the same log that handovers connect with it."""
        keys = [bytes.fromhex(key) for key in connected_keys("log", [self.key.hex()], handovers)]
        ids = [hashlib.sha256(self.name.encode() + b"\n\x01" + key).digest()[:4] for key in keys]
        return [NoteKey(self.name, key_id, key) for key_id, key in zip(ids, keys, strict=True)]


@dataclass(frozen=True)
class Checkpoint:
    """A signed statement about a log: its name, size and root hash.

    Attributes:
        origin: The log's name.
        size: The number of leaves.
        root: The root hash, 32 bytes.
        body: The signed text.
        signatures: For each signature, the signer's name, the key's id (4 bytes) and the signature itself.
    """

    origin: str
    size: int
    root: bytes
    body: bytes
    signatures: tuple[tuple[str, bytes, bytes], ...]

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Parses a signed checkpoint.

        Raises:
            ValueError: If the text isn't a checkpoint.
        """
        body, mark, tail = text.rpartition("\n\n")
        lines = body.split("\n")
        if not mark or len(lines) < 3 or not lines[0] or not tail.endswith("\n"):
            raise ValueError("the text isn't a checkpoint with signatures")
        if not re.fullmatch(r"0|[1-9][0-9]{0,18}", lines[1]):
            raise ValueError("the checkpoint's second line isn't a size")
        root = base64.b64decode(lines[2], validate=True)
        if len(root) != 32:
            raise ValueError("the checkpoint's third line isn't a root hash")
        signatures = []
        for line in tail[:-1].split("\n"):
            parts = line.split(" ")
            if len(parts) != 3 or parts[0] != "—":
                raise ValueError("a line below the checkpoint isn't a signature")
            data = base64.b64decode(parts[2], validate=True)
            signatures.append((parts[1], data[:4], data[4:]))
        return cls(lines[0], int(lines[1]), root, f"{body}\n".encode(), tuple(signatures))

    def is_signed_by(self, key: NoteKey) -> bool:
        """Returns true if the key signed this checkpoint. Signatures of other keys are ignored.

        Raises:
            FalseLogError: If a signature has the name and the id of the key, and another key has made it.
        """
        if key.name != self.origin:
            return False
        made = [data for name, key_id, data in self.signatures if (name, key_id) == (key.name, key.id)]
        for data in made:
            if not verify_signature(key.key, data, self.body):
                raise FalseLogError(f"the signature of {key.name} below the checkpoint is forged")
        return bool(made)


# The log: leaves in tiles (C2SP tlog-tiles).


def tile_path(number: int, width: int = TILE, level: int | None = None) -> str:
    """Returns the path of a tile, relative to the log.

    Args:
        number: The tile's number, from 0.
        width: The number of entries or hashes in the tile, if it isn't full.
        level: The level of a tile of hashes. None for a tile of entries.
    """
    groups = [f"{number % 1000:03}"]
    while number >= 1000:
        number //= 1000
        groups.insert(0, f"x{number % 1000:03}")
    kind = "entries" if level is None else str(level)
    return f"tile/{kind}/" + "/".join(groups) + ("" if width == TILE else f".p/{width}")


def _unreadable(address: str, error: Exception) -> UncheckedError:
    """Returns the error for a file that a server didn't send."""
    if isinstance(error, urllib.error.HTTPError):
        code = EXIT_SERVER if error.code >= 500 else EXIT_REFUSED
        return UncheckedError(f"cannot read {address}: HTTP status {error.code}", code)
    return UncheckedError(f"cannot read {address}: {error}", EXIT_UNREACHABLE)


def _reader(place: str) -> Callable[[str], bytes | None]:
    """Returns a function that reads a file of a log by its path. The function returns None for a missing file."""
    if re.match(r"https?://", place):
        base = place.rstrip("/").removesuffix("/log")

        def fetch(path: str) -> bytes | None:
            address = f"{base}/log/{path}"
            try:
                with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
                    return bytes(answer.read(MAX_TILE + 1))
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, urllib.error.HTTPError) and error.code == 404:
                    return None
                raise _unreadable(address, error) from error

        return fetch

    def load(path: str) -> bytes | None:
        try:
            with open(Path(place) / path, "rb") as file:
                return file.read(MAX_TILE + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UncheckedError(f"cannot read {Path(place) / path}: {error.strerror}") from error

    return load


def _tile(
    read: Callable[[str], bytes | None], number: int, width: int, level: int | None = None
) -> tuple[str, bytes, int]:
    """Reads a tile. Returns its path, its content and its width."""
    # A server may delete a partial tile when the full one exists.
    for found in (width, TILE):
        path = tile_path(number, found, level)
        data = read(path)
        if data is not None:
            return path, data, found
    raise UncheckedError(f"cannot check the log: {tile_path(number, width, level)} is missing")


def _entries(data: bytes) -> list[bytes]:
    entries, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 2], "big")
        entry = data[at + 2 : at + 2 + length]
        if len(entry) != length or at + 2 > len(data):
            raise FalseLogError("a tile of entries is truncated")
        entries.append(entry)
        at += 2 + length
    return entries


@dataclass
class Log:
    """The verified leaves of a log.

    Attributes:
        checkpoint: The checkpoint that the leaves agree with.
        created: For each created session, its leaf.
        ended: For each ended session, its leaf.
        removed: For each removed session, the leaf of its removal.
        excluded: For each excluded session, the first leaf of its exclusion.
        former: For each session that was imported after its removal, the leaves of its earlier creations and ends.
        deals: For each day with a deal, its leaf.
        record_keys: The record keys that the log names, in hexadecimal digits.
        handovers: The handovers of record keys in the leaves.
        signers: The names of the given keys that signed the checkpoint.
        keys: The keys that may have signed older checkpoints, for each given key of the log.
        tree: The hashes of the leaves.
        place: The folder or address of the log.
        read_at: The time of the reading on a clock of the machine, in seconds.
    """

    checkpoint: Checkpoint
    created: dict[str, dict[str, Any]] = field(default_factory=dict)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    removed: dict[str, dict[str, Any]] = field(default_factory=dict)
    excluded: dict[str, dict[str, Any]] = field(default_factory=dict)
    former: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = field(default_factory=dict)
    deals: dict[str, dict[str, Any]] = field(default_factory=dict)
    record_keys: set[str] = field(default_factory=set)
    handovers: list[Handover] = field(default_factory=list)
    signers: list[str] = field(default_factory=list)
    keys: list[list[NoteKey]] = field(default_factory=list)
    tree: Frontier = field(default_factory=Frontier)
    place: str = ""
    read_at: float = field(default_factory=time.monotonic)

    @classmethod
    def read(
        cls,
        place: str,
        keys: Sequence[NoteKey] = (),
        earlier: Sequence[str] = (),
        handovers: Sequence[Handover] = (),
    ) -> Log:
        """Reads all leaves of a log, and compares their root hash with the checkpoint's.

        Args:
            place: A folder with the file `checkpoint` and the tiles, or the address of an arena.
            keys: Keys of the log. Each must have signed the checkpoint, or one that handovers connect with it.
            earlier: Texts of earlier checkpoints. The log must begin with their leaves.
            handovers: Handovers of the log's key.

        Raises:
            FalseLogError: If the leaves contradict a checkpoint, or each other, or a signature is wrong.
            UncheckedError: If the log can't be read.
        """
        read = _reader(place)
        text = read("checkpoint")
        if text is None:
            raise UncheckedError(f"cannot check the log: {place} has no file named checkpoint")
        try:
            checkpoint = Checkpoint.parse(text.decode())
            known = [Checkpoint.parse(text) for text in earlier]
        except ValueError as error:
            raise UncheckedError(f"cannot check the log: {error}") from error
        log = cls(checkpoint, place=place)
        for key in keys:
            connected = key.connected(handovers)
            if not any(checkpoint.is_signed_by(one) for one in connected):
                raise UncheckedError(f"the checkpoint has no signature of {key.name}")
            log.signers.append(key.name)
            log.keys.append(connected)
        log._take(read)
        for old in known:
            log._compare_earlier(old)
        return log

    def _compare_earlier(self, old: Checkpoint) -> None:
        """Checks that the log begins with the leaves of an earlier checkpoint."""
        if self.keys and not any(old.is_signed_by(key) for signer in self.keys for key in signer):
            # Anyone can write such a file, so it can't refute a log.
            raise UncheckedError(f"the earlier checkpoint of size {old.size} has no signature of the log")
        if old.origin != self.checkpoint.origin:
            raise UncheckedError(f"the earlier checkpoint is of {old.origin!r}, the log is {self.checkpoint.origin!r}")
        if old.size > self.tree.size:
            raise FalseLogError(f"the log has lost leaves: it had {old.size}, and has {self.tree.size}")
        if self.tree.root_at(old.size) != old.root:
            raise FalseLogError(f"the first {old.size} leaves differ from the earlier checkpoint of that size")

    def _take(self, read: Callable[[str], bytes | None]) -> None:
        size = self.checkpoint.size
        for start in range(0, size, TILE):
            number, width = start // TILE, min(TILE, size - start)
            path, data, found = _tile(read, number, width)
            entries = _entries(data)
            if len(entries) != found:
                raise FalseLogError(f"{path} has {len(entries)} entries instead of {found}")
            for entry in entries[:width]:
                self.tree.append(leaf_hash(entry))
                self._learn(self.tree.size - 1, entry)
            # The tiles that this one has completed.
            count, level = self.tree.size, 0
            while count % TILE == 0:
                self._compare_tile(read, level, count // TILE - 1, TILE)
                count, level = count // TILE, level + 1
        # The incomplete tile of each level.
        count, level = size, 0
        while count > 0:
            if count % TILE:
                self._compare_tile(read, level, count // TILE, count % TILE)
            count, level = count // TILE, level + 1
        if self.tree.root() != self.checkpoint.root:
            raise FalseLogError("the leaves don't have the checkpoint's root hash")

    def _compare_tile(self, read: Callable[[str], bytes | None], level: int, number: int, width: int) -> None:
        """Compares a tile of hashes with the leaves."""
        path, data, found = _tile(read, number, width, level)
        if len(data) != 32 * found or data[: 32 * width] != self.tree.hashes(level, number)[: 32 * width]:
            raise FalseLogError(f"{path} doesn't have the hashes of the leaves")

    def leaf_text(self, number: int) -> str:
        """Returns the data of a leaf, or its hash if the log isn't there anymore."""
        digest = self.tree.leaf(number)
        try:
            first = number // TILE * TILE
            _, data, _ = _tile(_reader(self.place), first // TILE, min(TILE, self.tree.size - first))
            entry = _entries(data)[number - first]
        except (UncheckedError, FalseLogError, IndexError):
            entry = b""
        return entry.decode(errors="replace") if leaf_hash(entry) == digest else digest.hex()

    def _compare_longer(self, size: int) -> str:
        """Compares the log with the size in a proof that its key signed. Returns the reason if it is an older copy.

        Raises:
            FalseRecordError: If the address of the log has a checkpoint with fewer leaves.
        """
        here = self.tree.size
        if not re.match(r"https?://", self.place):
            have = f"the log has {here} leaves, fewer than the {size} of the record's proof"
            return f"{have}: the copy is older than the record; save the log again"
        if not self.keys:
            return f"the log has {here} leaves, and its key may have signed {size}; give the key with --log-key"
        # The record may be newer than the checkpoint, and a cache may keep that for a second.
        time.sleep(max(0.0, self.read_at + FRESH_S - time.monotonic()))
        try:
            newest = Checkpoint.parse((_reader(self.place)("checkpoint") or b"").decode())
        except (UncheckedError, ValueError) as error:
            return str(error)
        if newest.size >= size:
            return "the log has grown since it was read; verify the record again"
        proof = "both checkpoints are signed, which proves it"
        raise FalseRecordError(
            f"the log went back from {size} leaves, which the record's proof has, to {here}: {proof}"
        )

    def _learn(self, number: int, entry: bytes) -> None:
        leaf = _leaf(number, entry)
        kind = leaf["leaf"]
        if kind == "key":
            self.record_keys.add(leaf["recordKey"])
            if leaf.get("handover") is not None:
                try:
                    handover = Handover.parse(leaf["handover"])
                except ValueError as error:
                    raise FalseLogError(f"leaf {number}: {error}") from error
                if (handover.kind, handover.new) != ("record", leaf["recordKey"]):
                    raise FalseLogError(f"leaf {number}: the handover is to another key than the leaf's")
                self.handovers.append(handover)
            return
        if kind == "deal":
            if leaf["day"] in self.deals:
                raise FalseLogError(f"leaf {number}: {leaf['day']} has a deal already")
            self.deals[leaf["day"]] = leaf
            return
        session = leaf["session"]
        if kind == "created" and session in self.removed:
            # An administrator can import a removed session from an export.
            if session in self.created and session in self.ended:
                self.former.setdefault(session, []).append((self.created[session], self.ended[session]))
            for leaves in (self.created, self.ended, self.excluded, self.removed):
                leaves.pop(session, None)
        place = {
            "created": self.created, "ended": self.ended, "removed": self.removed, "excluded": self.excluded,
        }[kind]  # fmt: skip
        if kind != "excluded":
            if session in place:
                raise FalseLogError(f"leaf {number} repeats that session {session} was {kind}")
            if session in self.removed:
                raise FalseLogError(f"leaf {number} is about session {session}, which was removed before")
        # A session that was removed soon after its creation may have only the leaf of its removal.
        if kind in ("ended", "excluded") and session not in self.created:
            raise FalseLogError(f"leaf {number} is about session {session}, which wasn't created before")
        if kind == "excluded" and leaf["reason"] == "unlisted" and session in self.ended:
            # Otherwise, an arena could drop a bad result with the reason of a game without a result.
            raise FalseLogError(f"leaf {number} says that session {session} was unlisted, but it had ended before")
        place.setdefault(session, leaf)

    def without_record(self, sessions: Iterable[str]) -> list[str]:
        """Returns the ids of the ended sessions in the log that aren't among `sessions`.

        Removed sessions have no record. Excluded ones that ended have a record, which shows that the reason is true.
        """
        given = set(sessions)
        return [session for session in self.ended if session not in given and session not in self.removed]


# Records.


def _float_text(value: float) -> str:
    """Returns a number in the record's form: the shortest decimal digits, with a point, or with an exponent."""
    text = repr(value)
    digits, _, exponent = text.partition("e")
    if not exponent:
        return text
    if exponent == "-05":
        sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
        return f"{sign}0.0000{digits.replace('.', '')}"
    return f"{digits}e{int(exponent):+d}"


def _canonical(value: Any) -> str:
    """Returns the record's form of a parsed JSON value."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_canonical(name)}:{_canonical(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueError("the integer is too large")
    return _encode(value)


def _refuse(text: str) -> float:
    raise ValueError(f"{text} isn't a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse).decode
_encode = json.JSONEncoder(ensure_ascii=False).encode


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64


def _is_version(value: object) -> bool:
    return _is_count(value) and value < 2**32  # type: ignore[operator]


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_score(value: object) -> bool:
    """Returns true for a number in the form of scores: integers up to 2^53 have no point."""
    if isinstance(value, float):
        return not value.is_integer() or abs(value) > _EXACT
    return _is_integer(value) and abs(value) <= _EXACT  # type: ignore[arg-type]


def _is_cost(value: object) -> bool:
    return isinstance(value, float)


def _is_session(value: object) -> bool:
    return isinstance(value, str) and _SESSION.fullmatch(value) is not None


def _is_invite(value: object) -> bool:
    return isinstance(value, str) and _INVITE.fullmatch(value) is not None


def _is_model(value: object) -> bool:
    """Returns true for the name of a model: at most 200 bytes without control characters."""
    is_short = isinstance(value, str) and len(value.encode()) <= 200
    return is_short and not any(unicodedata.category(letter) == "Cc" for letter in str(value))


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _is_party(value: object) -> bool:
    return value in ("operator", "other") or _is_count(value)


_Check = Callable[[object], bool]


def _or_null(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _one_of(*words: str) -> _Check:
    return lambda value: isinstance(value, str) and value in words


def _list_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _object(**fields: _Check) -> _Check:
    """Returns a check for an object with exactly these fields, in this order."""
    return lambda value: (
        isinstance(value, dict)
        and list(value) == [name.rstrip("_") for name in fields]
        and all(check(item) for check, item in zip(fields.values(), value.values(), strict=True))
    )


_RULES = (_object(version=_is_version, prompt=_is_hash), _object(script=_is_hash))

_HEADER: dict[str, _Check] = {
    "arenaRecord": _is_count,
    "session": _is_session,
    "challenge": _is_text,
    "rules": lambda value: any(check(value) for check in _RULES),
    "release": _is_text,
    "options": lambda value: isinstance(value, dict) and _is_sorted(value),
    "seats": _is_count,
    "seedCommitment": _or_null(_is_hash),
    "createdAt": _is_integer,
    "recordKey": _or_null(_is_hash),
    "inputs": _one_of("stored", "missing", "withheld"),
    "fork": _or_null(_object(of=_is_session, at=_is_count, reseeded=_is_bool)),
}

_MESSAGE = _object(
    channel=_one_of("chat", "operator", "usage"),
    index=_is_count,
    from_=_is_party,
    to=_or_null(_is_party),
    content=_or_null(_is_hash),
)

_EVENT: dict[str, _Check] = {
    "event": _is_count,
    "previous": _is_hash,
    "at": _is_integer,
    "kind": _one_of(*_KINDS),
    "seat": _or_null(_is_count),
    "version": _or_null(_is_count),
    "invite": _or_null(_is_invite),
    "user": _or_null(_is_hash),
    "messages": _list_of(_MESSAGE),
}


def _is_sorted(value: object) -> bool:
    """Returns true if the names in all objects of the value are sorted."""
    if isinstance(value, dict):
        return list(value) == sorted(value) and all(map(_is_sorted, value.values()))
    return not isinstance(value, list) or all(map(_is_sorted, value))


def _is_attribution(value: object) -> bool:
    """Returns true for a causing seat, an affected seat and a kind."""
    return isinstance(value, list) and len(value) == 3 and all(map(_is_count, value[:2])) and _is_text(value[2])


#: The fields of a seat's usage, with true for those that may be absent.
_USAGE: dict[str, tuple[_Check, bool]] = {
    "reports": (_is_count, False),
    "inputTokens": (_is_count, False),
    "outputTokens": (_is_count, False),
    "cachedTokens": (_is_count, False),
    "costUsd": (_is_cost, True),
    "ms": (_is_count, True),
    "estimated": (lambda value: value is True, True),
    "models": (_list_of(_is_model), False),
}


def _is_usage(value: object) -> bool:
    """Returns true for the totals of a seat's usage reports."""
    if not isinstance(value, dict):
        return False
    expected = [name for name, (_, is_optional) in _USAGE.items() if name in value or not is_optional]
    return list(value) == expected and all(_USAGE[name][0](item) for name, item in value.items())


_END: dict[str, _Check] = {
    "end": _one_of("completed", "abandoned"),
    "previous": _is_hash,
    "at": _is_integer,
    "seed": _or_null(_is_hash),
    "invites": _list_of(_is_invite),
    "scores": _list_of(_object(security=_is_score, utility=_is_score)),
    "attributions": _list_of(_is_attribution),
    "causes": _list_of(_one_of(*_CAUSES)),
    "state": _is_hash,
    "category": _one_of("train", "test", "benchmark"),
    "usage": _list_of(_or_null(_is_usage)),
}

_OPENING: dict[str, _Check] = {"open": _is_text, "salt": _is_hash, "content": _is_text}

_SEAL: dict[str, _Check] = {
    "seal": _is_hash,
    "session": _is_session,
    "key": _is_hash,
    "signature": lambda value: isinstance(value, str) and _SIGNATURE.fullmatch(value) is not None,
}

_PROOF: dict[str, _Check] = {
    "leaf": _is_count,
    "size": _is_count,
    "path": _list_of(_is_hash),
    "checkpoint": _is_text,
}

_HANDOVER = _object(
    kind=_one_of("record", "log"),
    old=_is_hash,
    new=_is_hash,
    at=_is_integer,
    signedByOld=lambda value: isinstance(value, str) and _SIGNATURE.fullmatch(value) is not None,
    signedByNew=lambda value: isinstance(value, str) and _SIGNATURE.fullmatch(value) is not None,
)

_SESSION_LEAF: dict[str, _Check] = {"leaf": _is_text, "session": _is_session}
_GONE: dict[str, _Check] = {**_SESSION_LEAF, "reason": _is_text, "at": _is_integer}

#: The fields of the log's leaves, by their kind.
_LEAVES: dict[str, dict[str, _Check]] = {
    "created": {
        **_SESSION_LEAF,
        "challenge": _is_text,
        "seedCommitment": _or_null(_is_hash),
        "rated": _is_bool,
        "at": _is_integer,
    },
    "ended": {**_SESSION_LEAF, "ending": _one_of("completed", "abandoned"), "record": _is_hash, "at": _is_integer},
    "removed": _GONE,
    "excluded": _GONE,
    "key": {"leaf": _is_text, "recordKey": _is_hash, "at": _is_integer},
    "deal": {
        "leaf": _is_text,
        "day": _is_text,
        "challenge": _is_text,
        "seedCommitment": _is_hash,
        "at": _is_integer,
    },
}


def _leaf(number: int, entry: bytes) -> dict[str, Any]:
    """Parses a leaf in its only permitted form."""
    try:
        text = entry.decode()
        leaf: dict[str, Any] = _decode(text)
        is_canonical = isinstance(leaf, dict) and text == _canonical(leaf)
    except (ValueError, RecursionError) as error:
        raise FalseLogError(f"leaf {number} isn't a JSON object") from error
    kind = leaf.get("leaf") if is_canonical else None
    fields = _LEAVES.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise FalseLogError(f"leaf {number} isn't a known leaf in the only permitted form")
    if kind == "key" and "handover" in leaf:
        # The leaf of a key that replaces another one.
        fields = {"leaf": _is_text, "recordKey": _is_hash, "handover": _HANDOVER, "at": _is_integer}
    if list(leaf) != list(fields) or not all(check(leaf[name]) for name, check in fields.items()):
        raise FalseLogError(f"leaf {number} doesn't have the fields of a leaf of the kind {kind}")
    return leaf


#: The parts of a record in their order, by the first field of their lines.
_PARTS = {"arenaRecord": 0, "event": 1, "end": 2, "open": 3, "seal": 4, "leaf": 5}

_FIELDS = {"arenaRecord": _HEADER, "event": _EVENT, "end": _END, "open": _OPENING, "seal": _SEAL, "leaf": _PROOF}


def _lines(file: BinaryIO, max_bytes: int | None) -> Iterator[bytes]:
    """Yields the lines of a record without their line breaks."""
    most = MAX_RECORD if max_bytes is None else max_bytes
    most_of_line = max(MAX_LINE, 0 if max_bytes is None else max_bytes // 16)
    number = size = 0
    while line := file.readline(most_of_line + 1):
        number += 1
        size += len(line)
        if size > most:
            raise UncheckedError(f"the record is longer than {most} bytes")
        if len(line) > most_of_line:
            raise UncheckedError(f"line {number} is longer than {most_of_line} bytes")
        if not line.endswith(b"\n"):
            if number == 1 and not line.startswith(_START):
                raise UncheckedError("the file isn't a record: its first line isn't complete")
            raise FalseRecordError("the line has no line break: the record is truncated", number)
        yield line[:-1]


def seal_text(session: str, hash: str) -> bytes:  # noqa: A002 (the name of the value)
    """Returns the bytes that an arena signs for a session's record with this hash."""
    return f"arena record seal\n{session}\n{hash}\n".encode()


class _Reader:
    """The verification of one record, line by line."""

    def __init__(self) -> None:
        self.line = 0
        self.event: int | None = None
        self.part = -1
        self.header: dict[str, Any] = {}
        self.end: dict[str, Any] | None = None
        self.seal: dict[str, Any] | None = None
        self.proof: dict[str, Any] | None = None
        #: The checkpoint of the proof.
        self.checkpoint: Checkpoint | None = None
        self.last = ""
        self.events = 0
        self.version = 1
        self.last_activity = 0
        self.last_transition: int | None = None
        self.indexes = {"chat": 0, "operator": 0}
        self.messages = 0
        self.opened = 0
        #: For each content, its commitment and the number of its event.
        self.commitments: dict[str, tuple[str, int]] = {}
        self.joined: list[str] = []
        self.opening: tuple[str, int] = ("", -1)

    def fail(self, reason: str) -> FalseRecordError:
        return FalseRecordError(reason, self.line, self.event)

    def require(self, condition: bool, reason: str) -> None:
        if not condition:
            raise self.fail(reason)

    def take(self, line: bytes) -> None:
        self.line += 1
        # An opened content names its event later.
        self.event = self.events + 1 if line.startswith(b'{"event":') else None
        if self.line == 1:
            self._check_version(line)
        try:
            text = line.decode()
            value = _decode(text)
            is_canonical = isinstance(value, dict) and text == _canonical(value)
        except (ValueError, RecursionError):
            raise self.fail("the line isn't JSON in UTF-8") from None
        self.require(is_canonical, "the line isn't in the only permitted form")
        name = next(iter(value), "")
        fields = _FIELDS.get(name)
        if fields is None:
            raise self.fail("the line is no known part of a record")
        self.require(list(value) == list(fields), f"the fields aren't {', '.join(fields)}")
        for field_name, check in fields.items():
            self.require(check(value[field_name]), f"the field {field_name} has an unexpected value")
        part = _PARTS[name]
        once = name not in ("event", "open")
        self.require(part > self.part or (part == self.part and not once), f"the part `{name}` isn't in its place")
        self.part = part
        getattr(self, f"_take_{name}")(value)
        if part <= _PARTS["end"]:
            self.last = hashlib.sha256(line).hexdigest()

    def _check_version(self, line: bytes) -> None:
        """Distinguishes files of other formats from false records."""
        if not line.startswith(_START):
            raise UncheckedError("the file isn't a record: its first line doesn't begin with the format's version")
        try:
            version = _decode(line.decode())["arenaRecord"]
        except (ValueError, RecursionError):
            version = VERSION
        # The check of the fields names another kind of value.
        if _is_version(version) and version != VERSION:
            reason = f"the record has version {version}; this program reads version {VERSION}"
            raise UncheckedError(reason, EXIT_INCOMPLETE)

    def _take_arenaRecord(self, value: dict[str, Any]) -> None:  # noqa: N802 (named after the field)
        self.require(value["seats"] <= MAX_SEATS, f"more than {MAX_SEATS} seats are impossible")
        self.header = value
        self.last_activity = value["createdAt"]

    def _chain(self, value: dict[str, Any]) -> None:
        self.require(value["previous"] == self.last, "`previous` isn't the hash of the line before")

    def _check_seat(self, seat: object) -> None:
        is_known = not isinstance(seat, int) or seat < self.header["seats"]
        self.require(is_known, f"seat {seat} doesn't exist: the session has {self.header['seats']} seats")

    def _take_event(self, value: dict[str, Any]) -> None:
        self.events += 1
        self.require(value["event"] == self.events, f"the event has the number {value['event']}, not {self.events}")
        self._chain(value)
        self._check_seat(value["seat"])
        is_stored, is_missing = (self.header["inputs"] == word for word in ("stored", "missing"))
        # Old and imported sessions may have wrong times.
        is_in_time = is_missing or value["at"] >= self.last_activity
        self.require(is_in_time, "the time of the event is before the creation or an earlier message")
        is_transition = value["kind"] not in ("chat", "notice")
        self.version += is_transition
        version = self.version if is_stored and is_transition else None
        self.require(value["version"] == version, f"the version is {value['version']}, not {version}")
        if version is not None:
            self.last_transition = value["at"]
        if value["kind"] == "join":
            self.require(value["seat"] == len(self.joined), "the players didn't join in the order of their seats")
            is_new = value["invite"] is not None and value["invite"] not in self.joined
            self.require(is_new, "the player's name is missing, or belongs to another player")
            self.joined.append(value["invite"])
        else:
            self.require(value["user"] is None, "only a join has a user")
            has_name = value["invite"] is not None and value["kind"] != "announce"
            self.require(not has_name, f"an event of the kind {value['kind']} has no invite")
        if value["user"] is not None:
            self._commit(f"user/{value['seat']}", value["user"])
        for message in value["messages"]:
            channel, index = message["channel"], message["index"]
            if channel == "usage":
                # A report is no message of a player. The session's version is its index.
                is_own = value["kind"] == "usage" and index == self.version
                self.require(is_own, f"the report usage/{index} isn't in its place")
            else:
                expected = self.indexes[channel] + 1
                # Imported sessions may lack messages.
                follows = index == expected or (is_missing and index > expected)
                self.require(follows, f"the message {channel}/{index} should be {channel}/{expected}")
                self.indexes[channel] = index
                self.messages += 1
                self.last_activity = max(self.last_activity, value["at"])
            self._check_seat(message["from"])
            self._check_seat(message["to"])
            # A message that was hidden before the arena kept commitments can't be opened.
            if message["content"] is not None:
                self._commit(f"{channel}/{index}", message["content"])

    def _commit(self, name: str, commitment: str) -> None:
        self.require(name not in self.commitments, "two contents have the same name")
        self.commitments[name] = (commitment, self.events)

    def _take_end(self, value: dict[str, Any]) -> None:
        self._chain(value)
        self.end = value
        seats, inputs = self.header["seats"], self.header["inputs"]
        self.require(inputs != "withheld", "a record with withheld inputs has no end")
        is_in_time = inputs == "missing" or value["at"] == self.last_transition
        self.require(is_in_time, "the time of the end isn't that of the last transition")
        for name in ("invites", "scores", "causes", "usage"):
            self.require(len(value[name]) == seats, f"{name} of the end don't have one entry for each seat")
        self.require(len(set(value["invites"])) == seats, "an invite is listed twice")
        self.require(set(self.joined) <= set(value["invites"]), "a player joined without an invite")
        for row in value["attributions"]:
            self.require(max(row[:2]) < seats, "an attribution names an unknown seat")
        commitment, seed = self.header["seedCommitment"], value["seed"]
        self.require((seed is None) == (commitment is None), "the end and the header don't both have the seed")
        if seed is not None:
            is_committed = hashlib.sha256(bytes.fromhex(seed)).hexdigest() == commitment
            self.require(is_committed, "the seed isn't the one that the header commits to")

    def _take_open(self, value: dict[str, Any]) -> None:
        found = _OPENED.fullmatch(value["open"])
        if found is None:
            raise self.fail("the opened content has no known name")
        opening = (found[1], int(found[2]))
        self.require(opening > self.opening, "the opened contents aren't in their order")
        self.opening = opening
        commitment, self.event = self.commitments.get(value["open"], (None, None))
        self.require(commitment is not None, f"no event has the content {value['open']}")
        digest = hashlib.sha256(bytes.fromhex(value["salt"]) + value["content"].encode()).hexdigest()
        self.require(digest == commitment, f"the content {value['open']} isn't the one that its event commits to")
        self.opened += opening[0] in self.indexes

    def _take_seal(self, value: dict[str, Any]) -> None:
        self.seal = value
        self.require(value["seal"] == self.last, "the signed hash isn't this record's")
        self.require(value["session"] == self.header["session"], "the signature is of another session")
        self.require(value["key"] == self.header["recordKey"], "the signature's key isn't the one in the header")
        text = seal_text(value["session"], value["seal"])
        is_valid = verify_signature(bytes.fromhex(value["key"]), bytes.fromhex(value["signature"]), text)
        self.require(is_valid, "the signature is wrong")

    def _take_leaf(self, value: dict[str, Any]) -> None:
        if self.end is None or self.header["recordKey"] is None:
            raise self.fail("a proof needs an end before it, and a key in the header")
        self.proof = value
        try:
            checkpoint = Checkpoint.parse(value["checkpoint"])
        except ValueError as error:
            raise self.fail(str(error)) from None
        self.require(checkpoint.size == value["size"], "the checkpoint has another size")
        path = [bytes.fromhex(node) for node in value["path"]]
        leaf = leaf_hash(self.ended_leaf())
        self.checkpoint = checkpoint
        is_in = verify_inclusion(leaf, value["leaf"], value["size"], path, checkpoint.root)
        self.require(is_in, "the proof doesn't lead from the record to the checkpoint")

    def ended_leaf(self) -> bytes:
        """Returns the data of the leaf that the log has for this record."""
        end = self.end or {}
        leaf = {
            "leaf": "ended",
            "session": self.header["session"],
            "ending": end["end"],
            "record": self.last,
            "at": end["at"],
        }
        return _canonical(leaf).encode()


def verify(
    source: str | Path | BinaryIO | bytes,
    *,
    keys: Sequence[str] = (),
    log: Log | None = None,
    log_keys: Sequence[NoteKey] = (),
    handovers: Sequence[Handover] = (),
    max_bytes: int | None = None,
    may_be_old: bool = False,
) -> Report:
    """Verifies a record.

    Args:
        source: The path of the file, an open binary file, or its content.
        keys: The arena's record keys, each 32 bytes in hexadecimal digits. One of them must have signed the record, or
            a key that handovers connect with one.
        log: A log in which the record must be. Its handovers count too.
        log_keys: Keys of the log. Each must have signed the checkpoint in the record's proof, or a key that handovers
            connect with it.
        handovers: Handovers of the arena's keys.
        max_bytes: The length up to which the record is read. Default: MAX_RECORD.
        may_be_old: True if the keys are from a file that the arena published at some time, so it may have newer keys.

    Raises:
        FalseRecordError: At the first contradiction.
        UncheckedError: If the file can't be read, isn't a record, or is of a later version.
    """
    reader = _Reader()
    try:
        if isinstance(source, bytes):
            source = io.BytesIO(source)
        if isinstance(source, (str, Path)):
            with open(source, "rb") as file:
                for line in _lines(file, max_bytes):
                    reader.take(line)
        else:
            for line in _lines(source, max_bytes):
                reader.take(line)
    except OSError as error:
        raise UncheckedError(f"cannot read the file: {error.strerror or error}") from error
    if reader.line == 0:
        raise UncheckedError("the file isn't a record: it is empty")
    _require_seal(reader)
    known = [*handovers, *(log.handovers if log is not None else [])]
    signers = [key.connected(known) for key in log_keys]
    return _conclude(reader, connected_keys("record", keys, known), may_be_old, log, signers)


def _require_seal(reader: _Reader) -> None:
    """Refuses a record without the signature that its header announces: its end was cut off.

    If the arena has lost the key, the record has a proof of its place in the log instead.
    """
    if reader.header["recordKey"] is not None and reader.seal is None and reader.proof is None:
        raise FalseRecordError("the signature is missing: the record is truncated", reader.line + 1)


def _conclude(
    reader: _Reader, keys: Sequence[str], may_be_old: bool, log: Log | None, log_keys: Sequence[Sequence[NoteKey]]
) -> Report:
    """Compares a consistent record with the keys and the log, and lists the checks.

    Each item of `log_keys` has the keys of one signer, of which one must have signed.
    """
    checked = ["form", "chain"]
    unchecked = {"rules": "the game wasn't played again; use `arena verify`"}
    is_complete = True
    header, end, seal = reader.header, reader.end, reader.seal
    if reader.opened:
        checked.append("contents")
    if reader.opened < reader.messages:
        unchecked["contents"] = f"{reader.messages - reader.opened} of {reader.messages} contents are withheld"
    if end is not None and end["seed"] is not None and header["seedCommitment"] is not None:
        checked.append("seed")
    else:
        unchecked["seed"] = "the record doesn't have the seed and its commitment"
        # An arena that has all inputs has the seed too, so a record without it hides something.
        is_complete = end is None or header["inputs"] == "missing"
    # If the arena has lost its key, only the log confirms the record.
    needs_log = header["recordKey"] is not None and seal is None
    if seal is None:
        unchecked["signature"] = "the record has no signature"
        is_complete &= (not keys or needs_log) and (log is None or end is not None)
    else:
        checked.append("signature")
        reason = _compare_key(seal["key"], keys, may_be_old, log, header["session"])
        if reason is None:
            checked.append("key")
        else:
            unchecked["key"] = reason
            is_complete &= not keys and (log is None or not log.record_keys)
    if end is None:
        unchecked["end"] = "the record has no end"
    if reader.checkpoint is not None:
        checked.append("proof")
        reasons = _compare_proof(reader, reader.checkpoint, log, log_keys)
        unchecked.update(reasons)
        if "checkpoint" not in reasons:
            checked.append("checkpoint")
        is_complete &= reasons.get("checkpoint", NO_LOG_KEY) == NO_LOG_KEY
    elif log is None:
        unchecked["log"] = "the record has no proof, and no log was given"
    if log is not None:
        reason = _compare(reader, log)
        if reason is None:
            checked.append("log")
        else:
            unchecked["log"] = reason
            is_complete = False
    # Anyone can write the arena's key in a header, and a proof with a checkpoint of another log.
    is_complete &= not needs_log or bool({"checkpoint", "log"} & set(checked))
    scores = tuple((score["security"], score["utility"]) for score in (end or {}).get("scores", []))
    return Report(
        session=header["session"],
        challenge=header["challenge"],
        events=reader.events,
        messages=reader.messages,
        opened=reader.opened,
        end=None if end is None else end["end"],
        hash=reader.last,
        key=None if seal is None else seal["key"],
        scores=scores,
        checked=tuple(checked),
        unchecked=unchecked,
        is_complete=is_complete,
    )


def _compare_key(key: str, keys: Sequence[str], may_be_old: bool, log: Log | None, session: str) -> str | None:
    """Compares the key of a signature with the given keys, or else with those of the log.

    Returns the reason if no key was given, or a newer key may be the arena's.
    """
    known = keys or sorted(log.record_keys if log is not None else [])
    if key in known:
        return None
    if not known:
        return "no key of the arena was given to compare with"
    if keys and may_be_old and log is None:
        # A forger has another key too. Only a newer file or the log can tell them apart.
        return f"{key} signed the record, and isn't in the given keys; get a newer arena.json, or give the log"
    if not keys and log is not None and session not in log.ended:
        # A copy of the log may be older than the key, and the record may be of another arena.
        return f"the log doesn't name the key {key}"
    if not keys:
        raise FalseRecordError("the log doesn't name the record's key")
    raise FalseRecordError("another key than the given ones signed the record")


def _compare_proof(
    reader: _Reader, checkpoint: Checkpoint, log: Log | None, log_keys: Sequence[Sequence[NoteKey]]
) -> dict[str, str]:
    """Compares the checkpoint in a record with the keys of the log, and with the log.

    Returns the check "checkpoint" with the reason if it wasn't possible.
    """
    reasons: dict[str, str] = {}
    given = log_keys if log is None else [*log.keys] or log_keys
    try:
        for signer in given:
            if not any(checkpoint.is_signed_by(key) for key in signer):
                reasons["checkpoint"] = f"the checkpoint in the record has no signature of {signer[0].name}"
    except FalseLogError as error:
        raise FalseRecordError(f"{error} in the record") from error
    if not given:
        reasons["checkpoint"] = NO_LOG_KEY
    if log is None or (given and "checkpoint" in reasons):
        return reasons
    if checkpoint.origin != log.checkpoint.origin:
        reasons["checkpoint"] = f"the proof in the record is of the log {checkpoint.origin}"
        return reasons
    # The log may have been changed after the record was written, even if its own key signed it again.
    number, own = (reader.proof or {})["leaf"], reader.ended_leaf()
    if log.tree.leaf(number) not in (b"", leaf_hash(own)):
        proven = f"by the record's proof it is the end of session {reader.header['session']}: {own.decode()}"
        raise FalseRecordError(f"the log forked: its leaf {number} is {log.leaf_text(number)}, but {proven}")
    if checkpoint.size > log.tree.size:
        reasons["checkpoint"] = log._compare_longer(checkpoint.size)
    elif log.tree.root_at(checkpoint.size) != checkpoint.root:
        reason = f"the log forked: its first {checkpoint.size} leaves have another root hash than the record's proof"
        raise FalseRecordError(reason)
    return reasons


def _compare(reader: _Reader, log: Log) -> str | None:
    """Compares a record with the leaves of its session. Returns the reason if the log doesn't have them."""
    header, session = reader.header, reader.header["session"]
    created, ended = log.created.get(session), log.ended.get(session)
    for former_created, former_ended in log.former.get(session, []):
        if reader.end is not None and former_ended["record"] == reader.last:
            # The session was removed, and imported later.
            created, ended = former_created, former_ended
    if created is None and ended is None:
        return "the log doesn't have the session: it is unlisted, or newer than the checkpoint"
    for name in ("challenge", "seedCommitment"):
        if created is not None and created.get(name) != header[name]:
            raise FalseRecordError(f"the log has another {name} for the session: {created.get(name)!r:.80}")
    if ended is None:
        return None if reader.end is None else "the log has the session, but not its end"
    if reader.end is None:
        # The arena gave it to a player during the game.
        return "by the log, the session has ended, but the record has no end"
    if ended["record"] != reader.last:
        raise FalseRecordError("the log has another hash for the session's record")
    if _canonical(ended).encode() != reader.ended_leaf():
        raise FalseRecordError("the log has another kind or time of the session's end")
    return None


# The command.


def _files(paths: Iterable[str]) -> Iterator[Path]:
    """Yields the files, and all files `*.jsonl` in the folders and below."""
    for path in map(Path, paths):
        if path.is_dir():
            # A folder or a pipe may have such a name too.
            yield from sorted(found for found in path.rglob("*.jsonl") if found.is_file())
        else:
            yield path


def _sentence(report: Report) -> str:
    contents = f"{report.opened} of {report.messages} contents"
    return f"{report.challenge} {report.session}, {report.events} events, {contents}; {', '.join(report.checked)}"


def _parse(args: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m arena_agents.verify", description="Verify records of sessions, and the log of an arena."
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="record, or folder of records (*.jsonl)")
    parser.add_argument("--key", action="append", default=[], metavar="HEX", help="record key of the arena")
    parser.add_argument("--keys", metavar="PLACE", help="the arena's keys: its /.well-known/arena.json, or a copy")
    parser.add_argument("--log", metavar="PLACE", help="folder or address of the arena's log")
    parser.add_argument("--log-key", action="append", default=[], metavar="VKEY", help="key of the log")
    parser.add_argument("--since", action="append", default=[], metavar="FILE", help="earlier checkpoint of the log")
    parser.add_argument("--max-mib", type=int, default=None, metavar="MIB", help="maximum length of a record")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parsed = parser.parse_args(args)
    if not parsed.files and parsed.log is None:
        parser.error("a FILE or --log is needed")
    if parsed.since and parsed.log is None:
        parser.error("--since needs --log")
    for key in parsed.key:
        if not _HASH.fullmatch(key.lower()):
            parser.error("--key needs 64 hexadecimal digits")
    try:
        parsed.log_key = [NoteKey.parse(key) for key in parsed.log_key]
    except ValueError as error:
        parser.error(str(error))
    parsed.published = None
    if parsed.keys is not None:
        try:
            parsed.published = _published(parsed.keys)
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, ForgedHandoverError):
                raise
            parser.error(f"cannot read the keys of {parsed.keys}: {error}")
        parsed.key += parsed.published.keys
        parsed.log_key += parsed.published.log_keys
    return parsed


def _place_of(log: str) -> str:
    """Returns the address of a log, or the folder with its checkpoint: the given one, or its subfolder `log`."""
    inner = Path(log) / "log"
    is_address = re.match(r"https?://", log) is not None
    is_inner = not is_address and not (Path(log) / "checkpoint").exists() and (inner / "checkpoint").exists()
    return str(inner) if is_inner else log


def _published_by(place: str, is_needed: bool) -> _Published | None:
    """Reads the keys that the owner of a log publishes beside it. Returns None if there are none.

    Args:
        place: The folder or address of the log.
        is_needed: False if another key of the log was given, so that only handovers are missing.
    """
    is_address = re.match(r"https?://", place) is not None
    beside = f"{place.rstrip('/').removesuffix('/log')}/.well-known/arena.json" if is_address else f"{place}/arena.json"
    if not is_address and not Path(beside).exists():
        return None
    try:
        return _published(beside)
    except ForgedHandoverError:
        raise
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
        if not is_needed or (isinstance(error, urllib.error.HTTPError) and error.code == 404):
            return None
        if isinstance(error, (OSError, http.client.HTTPException)) and is_address:
            raise _unreadable(beside, error) from error
        raise UncheckedError(f"cannot read the keys of {beside}: {error}") from error


@dataclass(frozen=True)
class _Published:
    """The keys that an arena publishes."""

    keys: list[str]
    log_keys: list[NoteKey]
    handovers: list[Handover]


def _published(place: str) -> _Published:
    """Reads the keys that an arena publishes, from an address or a file."""
    if re.match(r"https?://", place):
        with urllib.request.urlopen(place, timeout=PATIENCE_S) as answer:
            published = json.loads(answer.read(MAX_LINE))
    else:
        published = json.loads(Path(place).read_bytes())
    keys: list[str] = [published["recordKey"]]
    log_keys: list[NoteKey] = []
    log = published.get("log")
    if log is not None:
        keys += [key["recordKey"] for key in log["recordKeys"]]
        log_keys.append(NoteKey.parse(log["verifierKey"]))
    return _Published(keys, log_keys, [Handover.parse(value) for value in published.get("handovers", [])])


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command. Returns the exit code."""
    try:
        options = _parse(args)
    except ForgedHandoverError as error:
        print(f"FALSE  keys: {error}", file=sys.stderr)
        return EXIT_FALSE
    handovers: list[Handover] = [] if options.published is None else options.published.handovers
    log: Log | None = None
    result: dict[str, Any] = {"log": None, "records": []}
    reports: list[Report] = []
    #: The exit codes of the log and of the records; 0 for those without a fault.
    log_code, codes = 0, [0]

    def show(text: str) -> None:
        if not options.json:
            print(text)

    if options.log is not None:
        try:
            earlier = [_text_of(path) for path in options.since]
            has_key = bool(options.log_key)
            place = _place_of(options.log)
            beside = _published_by(place, not has_key)
            own = beside.log_keys if beside is not None and not has_key else []
            handovers = [*handovers, *(beside.handovers if beside is not None else [])]
            log = Log.read(place, [*own, *options.log_key], earlier, handovers)
            size, root = log.checkpoint.size, log.checkpoint.root.hex()
            result["log"] = {"origin": log.checkpoint.origin, "size": size, "root": root, "signers": log.signers}
            signed = f"signed by {', '.join(log.signers)}" if log.signers else "signature not checked: no --log-key"
            signed += ", whose key the log itself publishes" if own else ""
            show(f"ok     log {log.checkpoint.origin}, {size} leaves, {signed}")
        except (FalseLogError, ForgedHandoverError) as error:
            result["log"], log_code = {"false": str(error)}, EXIT_FALSE
            show(f"FALSE  log {options.log}: {error}")
        except UncheckedError as error:
            result["log"], log_code = {"error": str(error)}, error.exit_code
            show(f"error  log {options.log}: {error}")
    for path in _files(options.files):
        line: dict[str, Any] = {"file": str(path)}
        try:
            most = None if options.max_mib is None else options.max_mib << 20
            report = verify(
                path,
                keys=options.key,
                log=log,
                log_keys=options.log_key,
                handovers=handovers,
                max_bytes=most,
                may_be_old=options.keys is not None,
            )
            reports.append(report)
            line.update(asdict(report), withheld=report.withheld)
            codes.append(0 if report.is_complete else EXIT_INCOMPLETE)
            show(f"{'ok    ' if report.is_complete else 'part  '} {path}: {_sentence(report)}")
        except FalseRecordError as error:
            line.update(false=error.reason, line=error.line, event=error.event)
            codes.append(EXIT_FALSE)
            show(f"FALSE  {path}: {error}")
        except UncheckedError as error:
            line.update(error=str(error))
            codes.append(error.exit_code)
            show(f"error  {path}: {error}")
        result["records"].append(line)
    if options.files and not result["records"]:
        codes.append(EXIT_USAGE)
        show("error  there is nothing to verify: the folders contain no records")
    reasons = sorted({f"{name}: {reason}" for report in reports for name, reason in report.unchecked.items()})
    for reason in reasons[:20]:
        show(f"not checked: {reason}")
    if log is not None and options.files:
        missing = log.without_record(report.session for report in reports)
        result["withoutRecord"] = missing
        show(f"{len(missing)} of {len(log.ended)} ended sessions in the log have no verified record here")
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    if EXIT_FALSE in (log_code, *codes):
        return EXIT_FALSE
    return log_code or (EXIT_USAGE if EXIT_USAGE in codes else max(codes))


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UncheckedError(f"cannot read {path}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
