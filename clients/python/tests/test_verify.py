"""Verification of records and logs that the tests write by hand, without the arena."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import re
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from arena_agents import Arena, GameEnded, verify
from arena_agents.verify import (
    Checkpoint,
    FalseLogError,
    FalseRecordError,
    Frontier,
    Log,
    NoteKey,
    UncheckedError,
    leaf_hash,
    node_hash,
    verify_inclusion,
    verify_plain,
)
from conftest import PATIENCE_S, Server, pair, private_set

TIME = 1_790_000_000_000
SESSION = "0191d0a0-0000-7000-8000-000000000001"
INV_A, INV_B, INV_C = (f"inv_{SESSION[:-1]}{digit}" for digit in "abc")
SEED = "5e" * 32
PROMPT = hashlib.sha256(b"the prompt").hexdigest()
STATE = hashlib.sha256(b"{}").hexdigest()

RECORD_KEY = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
LOG_KEY = Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(b"\x03" * 32)
ORIGIN = "arena.example/log"


def sha(data: str | bytes) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def vkey(name: str, algorithm: int, key: Ed25519PrivateKey) -> str:
    data = bytes([algorithm]) + public(key)
    key_id = hashlib.sha256(name.encode() + b"\n" + data).hexdigest()[:8]
    return f"{name}+{key_id}+{base64.b64encode(data).decode()}"


LOG_VKEY = vkey(ORIGIN, 1, LOG_KEY)
OTHER_VKEY = vkey("other.example", 4, OTHER_KEY)


def text_of(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def salt(what: str) -> bytes:
    secret = hmac.digest(b"the arena's secret", SESSION.encode(), "sha256")
    return hmac.digest(secret, what.encode(), "sha256")


def commit(what: str, content: str) -> str:
    return sha(salt(what) + content.encode())


#: The messages of the test's session: name, sender, recipient, content.
CONTENTS = {
    "user/0": "ada",
    "user/1": "bob",
    "operator/1": "Your secret is 17.",
    "operator/2": "Your secret is 23.",
    "chat/1": 'hello "you" \\ \n é 😀 \x7f \x01',
    "operator/3": "(guess) 23",
    "operator/4": "The game is over.",
    "usage/4": '{"inputTokens":12}',
}


def message(name: str, sender: object, to: object) -> dict[str, Any]:
    channel, index = name.split("/")
    content = commit(name, CONTENTS[name])
    return {"channel": channel, "index": int(index), "from": sender, "to": to, "content": content}


HEADER: dict[str, Any] = {
    "arenaRecord": 1,
    "session": SESSION,
    "challenge": "psi",
    "rules": {"version": 3, "prompt": PROMPT},
    "release": "0.9.0",
    "options": {"setSize": 7, "weight": 0.5},
    "seats": 2,
    "seedCommitment": sha(bytes.fromhex(SEED)),
    "createdAt": TIME,
    "recordKey": public(RECORD_KEY).hex(),
    "inputs": "stored",
    "fork": None,
}

#: Events without number, hash and time.
EVENTS: list[dict[str, Any]] = [
    {"kind": "join", "seat": 0, "version": 2, "invite": INV_A, "user": commit("user/0", "ada"),
     "messages": [message("operator/1", "operator", 0)]},
    {"kind": "join", "seat": 1, "version": 3, "invite": INV_B, "user": commit("user/1", "bob"),
     "messages": [message("operator/2", "operator", 1)]},
    {"kind": "chat", "seat": 0, "version": None, "invite": None, "user": None,
     "messages": [message("chat/1", 0, None)]},
    {"kind": "usage", "seat": 0, "version": 4, "invite": None, "user": None,
     "messages": [message("usage/4", 0, None)]},
    {"kind": "action", "seat": 1, "version": 5, "invite": None, "user": None,
     "messages": [message("operator/3", 1, None), message("operator/4", "operator", None)]},
]  # fmt: skip

END: dict[str, Any] = {
    "end": "completed",
    "previous": "",
    "at": TIME + 50,
    "seed": SEED,
    "invites": [INV_A, INV_B],
    "scores": [{"security": 1, "utility": 0.5}, {"security": -1, "utility": 0}],
    "attributions": [[1, 0, "security_breach"]],
    "causes": ["normal", "normal"],
    "state": STATE,
    "category": "train",
    "usage": [
        {"reports": 1, "inputTokens": 12, "outputTokens": 3, "cachedTokens": 0, "costUsd": 0.5, "models": ["opus"]},
        None,
    ],
}


#: The events as a player gets them before the end.
WITHHELD = [{**event, "version": None, "user": None} for event in EVENTS if event["kind"] != "usage"]


def chained(header: dict[str, Any], events: list[dict[str, Any]], end: dict[str, Any] | None) -> list[str]:
    lines = [text_of(header)]
    for number, event in enumerate(events, 1):
        start = {"event": number, "previous": sha(lines[-1]), "at": TIME + 10 * number}
        lines.append(text_of({**start, **event}))
    if end is not None:
        lines.append(text_of({**end, "previous": sha(lines[-1])}))
    return lines


def opened(*left_out: str) -> list[str]:
    names = sorted(name for name in CONTENTS if name not in left_out)
    return [text_of({"open": name, "salt": salt(name).hex(), "content": CONTENTS[name]}) for name in names]


def sealed(last: str, key: Ed25519PrivateKey = RECORD_KEY) -> str:
    seal = sha(last)
    signature = key.sign(f"arena record seal\n{SESSION}\n{seal}\n".encode()).hex()
    return text_of({"seal": seal, "session": SESSION, "key": public(key).hex(), "signature": signature})


def file_of(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


CHAIN = chained(HEADER, EVENTS, END)
RECORD = [*CHAIN, *opened(), sealed(CHAIN[-1])]


# Trees by their recursive definition in RFC 6962, section 2.1.


def tree_root(leaves: list[bytes]) -> bytes:
    if len(leaves) < 2:
        return leaf_hash(leaves[0]) if leaves else hashlib.sha256().digest()
    middle = half(len(leaves))
    return node_hash(tree_root(leaves[:middle]), tree_root(leaves[middle:]))


def root_over(hashes: list[bytes]) -> bytes:
    middle = len(hashes) // 2
    return node_hash(root_over(hashes[:middle]), root_over(hashes[middle:])) if middle else hashes[0]


def half(size: int) -> int:
    return 1 << ((size - 1).bit_length() - 1)


def inclusion(index: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) < 2:
        return []
    middle = half(len(leaves))
    if index < middle:
        return [*inclusion(index, leaves[:middle]), tree_root(leaves[middle:])]
    return [*inclusion(index - middle, leaves[middle:]), tree_root(leaves[:middle])]


def checkpoint_of(leaves: list[bytes], origin: str = ORIGIN, key: Ed25519PrivateKey = LOG_KEY) -> str:
    body = f"{origin}\n{len(leaves)}\n{base64.b64encode(tree_root(leaves)).decode()}\n"
    key_id = bytes.fromhex(vkey(origin, 1, key).split("+")[1])
    signature = base64.b64encode(key_id + key.sign(body.encode())).decode()
    return f"{body}\n— {origin} {signature}\n"


def cosigned(checkpoint: str, time: int = 1_790_000_000) -> str:
    body = checkpoint.partition("\n\n")[0] + "\n"
    signature = OTHER_KEY.sign(f"cosignature/v1\ntime {time}\n{body}".encode())
    key_id = bytes.fromhex(OTHER_VKEY.split("+")[1])
    line = base64.b64encode(key_id + time.to_bytes(8, "big") + signature).decode()
    return f"{checkpoint}— other.example {line}\n"


def entry(**fields: Any) -> bytes:
    return text_of(fields).encode()


CREATED = entry(
    leaf="created", session=SESSION, challenge="psi", seedCommitment=HEADER["seedCommitment"], rated=True, at=TIME
)
ENDED = entry(leaf="ended", session=SESSION, ending="completed", record=sha(CHAIN[-1]), at=TIME + 50)
REMOVED = entry(leaf="removed", session=SESSION, reason="administrator", at=TIME + 60)
KEY = entry(leaf="key", recordKey=HEADER["recordKey"], at=TIME - 1)


def other(number: int) -> str:
    return f"0191d0a0-0000-7000-9000-{number:012x}"


OTHER = other(7)


def others(count: int) -> list[bytes]:
    return [
        entry(leaf="created", session=other(n), challenge="psi", seedCommitment=None, rated=True, at=n)
        for n in range(count)
    ]


LEAVES = [KEY, *others(300), CREATED, ENDED, entry(leaf="ended", session=OTHER, ending="completed", record=STATE, at=9)]


def proof_of(leaves: list[bytes], number: int, key: Ed25519PrivateKey = LOG_KEY) -> str:
    path = [node.hex() for node in inclusion(number, leaves)]
    return text_of({"leaf": number, "size": len(leaves), "path": path, "checkpoint": checkpoint_of(leaves, key=key)})


def write_log(folder: Path, leaves: list[bytes], checkpoint: str | None = None) -> Path:
    hashes, level = [leaf_hash(leaf) for leaf in leaves], 0
    while hashes:
        for start in range(0, len(hashes), 256):
            tile = hashes[start : start + 256]
            path = folder / verify.tile_path(start // 256, len(tile), level)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(tile))
        # A hash above is the root of 256 hashes, by the recursive definition.
        full = range(0, len(hashes) - 255, 256)
        hashes, level = [root_over(hashes[start : start + 256]) for start in full], level + 1
    for start in range(0, len(leaves), 256):
        part = leaves[start : start + 256]
        path = folder / verify.tile_path(start // 256, len(part))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(len(leaf).to_bytes(2, "big") + leaf for leaf in part))
    (folder / "checkpoint").write_text(checkpoint or checkpoint_of(leaves), encoding="utf-8")
    return folder


def test_a_record_is_verified_with_the_arenas_key() -> None:
    report = verify.verify(file_of(*RECORD), keys=[HEADER["recordKey"]])
    assert (report.session, report.challenge, report.end) == (SESSION, "psi", "completed")
    assert (report.events, report.messages, report.opened, report.withheld) == (5, 5, 5, 0)
    assert (report.hash, report.key) == (sha(CHAIN[-1]), HEADER["recordKey"])
    assert report.scores == ((1.0, 0.5), (-1.0, 0.0))
    assert report.checked == ("form", "chain", "contents", "seed", "signature", "key")
    assert list(report.unchecked) == ["rules", "log"]


def test_withheld_contents_and_parts_are_reported_as_unchecked() -> None:
    report = verify.verify(file_of(*CHAIN, *opened("operator/1", "user/0"), RECORD[-1]))
    assert (report.messages, report.withheld) == (5, 1)
    assert "1 of 5" in report.unchecked["contents"]
    unsigned = chained({**HEADER, "recordKey": None}, EVENTS, END)
    assert {"signature", "log"} < set(verify.verify(file_of(*unsigned)).unchecked)
    assert verify.verify(file_of(*unsigned)).is_complete
    # The record doesn't say that the arena signed it, so the missing signature is no lie.
    assert not verify.verify(file_of(*unsigned), keys=[HEADER["recordKey"]]).is_complete
    unfinished = chained(HEADER, EVENTS[:2], None)
    report = verify.verify(file_of(*unfinished, sealed(unfinished[-1])))
    assert (report.end, report.hash, report.events) == (None, sha(unfinished[-1]), 2)
    assert {"end", "seed"} < set(report.unchecked)


def test_every_changed_byte_is_found() -> None:
    data, rng = file_of(*RECORD), random.Random(23)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]
        with pytest.raises((FalseRecordError, UncheckedError)) as found:
            verify.verify(changed)
        # A change of the format's name or version makes a file of another format.
        assert found.type is FalseRecordError or at < len('{"arenaRecord":1,')


def reordered(lines: list[str], *order: int) -> list[str]:
    return [lines[at] for at in order] + lines[len(order) :]


def with_event(number: int, **changes: Any) -> list[str]:
    events = [{**event, **changes} if at == number else event for at, event in enumerate(EVENTS)]
    return chained(HEADER, events, END)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (reordered(RECORD, 0, 2, 1), "line 2 (event 1): the event has the number 2, not 1"),
        (reordered(RECORD, 0, 1, 1), "line 3 (event 2): the event has the number 1, not 2"),
        (reordered(RECORD, 0, 1, 3), "line 3 (event 2): the event has the number 3, not 2"),
        ([RECORD[0], *RECORD], "line 2: the part `arenaRecord` isn't in its place"),
        ([*CHAIN, CHAIN[-1]], "line 8: the part `end` isn't in its place"),
        ([*RECORD, RECORD[-1]], "the part `seal` isn't in its place"),
        (CHAIN[:3] + CHAIN[-1:], "line 4: `previous` isn't the hash of the line before"),
        ([*CHAIN[:2], CHAIN[2].replace(sha(CHAIN[1]), STATE)], "line 3 (event 2): `previous` isn't the hash"),
        ([CHAIN[0].replace('"seats":2', '"seats": 2')], "line 1: the line isn't in the only permitted form"),
        ([CHAIN[0].replace("0.5", "5e-1")], "line 1: the line isn't in the only permitted form"),
        ([CHAIN[0].replace("0.5", "0.50")], "line 1: the line isn't in the only permitted form"),
        ([CHAIN[0].replace('"psi"', '"\\u0070si"')], "line 1: the line isn't in the only permitted form"),
        ([CHAIN[0].replace('"seats":2', '"seats":2,"seats":2')], "line 1: the line isn't in the only permitted form"),
        ([CHAIN[0] + "\r"], "line 1: the line isn't in the only permitted form"),
        ([CHAIN[0].replace("0.5", "NaN")], "line 1: the line isn't JSON in UTF-8"),
        ([CHAIN[0].replace("0.5", "1e999")], "line 1: the line isn't JSON in UTF-8"),
        ([CHAIN[0].replace('"seats":2', '"seats":true')], "line 1: the field seats has an unexpected value"),
        ([CHAIN[0].replace('"fork":null', '"more":1')], "line 1: the fields aren't arenaRecord, session"),
        ([CHAIN[0], "[1]"], "line 2: the line isn't in the only permitted form"),
        ([CHAIN[0], '{"more":1}'], "line 2: the line is no known part of a record"),
        (with_event(1, version=4), "line 3 (event 2): the version is 4, not 3"),
        (with_event(4, seat=2), "line 6 (event 5): seat 2 doesn't exist: the session has 2 seats"),
        (with_event(1, seat=0), "line 3 (event 2): the players didn't join in the order"),
        (with_event(1, invite=INV_A), "line 3 (event 2): the player's name is missing, or belongs to another"),
        (with_event(2, version=4), "line 4 (event 3): the version is 4, not None"),
        (with_event(2, invite=INV_A), "line 4 (event 3): an event of the kind chat has no invite"),
        (with_event(2, user=STATE), "line 4 (event 3): only a join has a user"),
        (chained(HEADER, EVENTS, {**END, "invites": [INV_A, INV_C]}), "line 7: a player joined without an invite"),
        (chained(HEADER, EVENTS, {**END, "seed": None}), "line 7: the end and the header don't both have the seed"),
        (CHAIN, "line 8: the signature is missing: the record is truncated"),
        ([*CHAIN, proof_of(LEAVES, 301)], "line 8: the proof doesn't lead from the record to the checkpoint"),
        (with_event(1, kind="vote"), "line 3 (event 2): the field kind has an unexpected value"),
        (with_event(2, messages=EVENTS[4]["messages"] + EVENTS[2]["messages"])[:4] + CHAIN[4:],
         "line 5 (event 4): `previous` isn't the hash"),
        (with_event(3, messages=[message("usage/4", 0, None), message("usage/4", 0, None)]),
         "line 5 (event 4): two contents have the same name"),
        (with_event(4, at=TIME + 29), "line 6 (event 5): the time of the event is before the creation or an earlier"),
        (with_event(0, at=TIME - 1), "line 2 (event 1): the time of the event is before the creation or an earlier"),
        (with_event(0, invite="inv_a"), "line 2 (event 1): the field invite has an unexpected value"),
        (chained({**HEADER, "inputs": "withheld"}, WITHHELD, END), "line 6: a record with withheld inputs has no end"),
        (chained({**HEADER, "seats": 1001}, [], None), "line 1: more than 1000 seats are impossible"),
        (chained({**HEADER, "options": {"weight": 1, "setSize": 7}}, [], None), "the field options has an unexpected"),
        (chained({**HEADER, "options": {"n": 2**64}}, [], None), "line 1: the line isn't JSON in UTF-8"),
        (chained({**HEADER, "session": SESSION.upper()}, [], None), "line 1: the field session has an unexpected"),
        (with_event(2, messages=[message("usage/4", 0, None)]), "line 4 (event 3): the report usage/4"),
        (with_event(4, messages=EVENTS[4]["messages"][1:]), "(event 5): the message operator/4 should be operator/3"),
        (chained(HEADER, EVENTS, {**END, "seed": STATE}), "line 7: the seed isn't the one that the header commits to"),
        *(
            (chained(HEADER, EVENTS, {**END, name: value}), f"line 7: {reason}")
            for name, value, reason in [
                ("at", TIME + 51, "the time of the end isn't that of the last transition"),
                ("invites", [INV_A], "invites of the end don't have one entry for each seat"),
                ("invites", [INV_A, INV_A], "an invite is listed twice"),
                ("invites", [INV_A, "bob"], "the field invites has an unexpected value"),
                ("scores", END["scores"][:1], "scores of the end don't have one entry for each seat"),
                ("scores", [*END["scores"][:1], {"security": 1, "utility": 1.0}], "the field scores has an unexpected"),
                ("causes", ["normal"], "causes of the end don't have one entry for each seat"),
                ("causes", ["normal", "tired"], "the field causes has an unexpected value"),
                ("usage", [None], "usage of the end don't have one entry for each seat"),
                ("usage", None, "the field usage has an unexpected value"),
                ("usage", [None, {}], "the field usage has an unexpected value"),
                ("usage", [None, {**END["usage"][0], "costUsd": 1}], "the field usage has an unexpected value"),
                ("usage", [None, {**END["usage"][0], "models": ["a\nb"]}], "the field usage has an unexpected value"),
                ("attributions", [[2, 0, "x"]], "an attribution names an unknown seat"),
                ("attributions", [[INV_B, INV_A, "x"]], "the field attributions has an unexpected value"),
                ("category", None, "the field category has an unexpected value"),
                ("category", "other", "the field category has an unexpected value"),
                ("end", "lost", "the field end has an unexpected value"),
            ]
        ),
        ([*chained({**HEADER, "recordKey": None}, EVENTS, END), proof_of(LEAVES, 302)],
         "line 8: a proof needs an end before it, and a key in the header"),
        ([*CHAIN, *reversed(opened())], "line 9: the opened contents aren't in their order"),
        ([*CHAIN, opened()[0], opened()[0]], "line 9: the opened contents aren't in their order"),
        ([*CHAIN, text_of({"open": "chat/9", "salt": STATE, "content": ""})], "no event has the content chat/9"),
        ([*CHAIN, text_of({"open": "text/1", "salt": STATE, "content": ""})], "the opened content has no known name"),
        ([*CHAIN, opened()[0].replace("hello", "hullo")], "line 8 (event 3): the content chat/1 isn't the one"),
        ([*CHAIN, sealed(CHAIN[-2])], "line 8: the signed hash isn't this record's"),
        ([*CHAIN, sealed(CHAIN[-1], LOG_KEY)], "line 8: the signature's key isn't the one in the header"),
        ([*CHAIN, re.sub('signature":"..', 'signature":"00', sealed(CHAIN[-1]))], "line 8: the signature is wrong"),
        ([*RECORD, proof_of(LEAVES, 301)], "the proof doesn't lead from the record to the checkpoint"),
        ([*RECORD, proof_of(LEAVES, 302).replace('"size":304', '"size":303')], "the checkpoint has another size"),
    ],
)  # fmt: skip
def test_the_first_contradiction_is_named(lines: list[str], expected: str) -> None:
    with pytest.raises(FalseRecordError) as found:
        verify.verify(file_of(*lines))
    assert expected in str(found.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('{"arenaRecord":1,', '{"arenaRecord": 1,'),
        lambda text: text.replace('{"arenaRecord":1,', '{"arenaRecord":1.0,'),
        lambda text: text.replace('{"arenaRecord":1,', '{"arenaRecord":01,'),
        lambda text: text.replace('{"arenaRecord":1,', '{"arenaRecord":"1",'),
        lambda text: text.replace('{"event":1,', '{"event": 1,'),
        lambda text: text.replace('"seats":2', '"seats":2,"seats":2'),
    ],
)
def test_a_line_in_another_form_is_false(tmp_path: Path, change: Callable[[str], str]) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text(change(file_of(*RECORD).decode()), encoding="utf-8")
    assert verify.main([str(path)]) == verify.EXIT_FALSE


def test_a_truncated_record_is_false() -> None:
    data = file_of(*RECORD)
    for size in range(len('{"arenaRecord":'), len(data)):
        with pytest.raises(FalseRecordError):
            verify.verify(data[:size])


def handover(kind: str, old: Ed25519PrivateKey, new: Ed25519PrivateKey, at: int = TIME) -> dict[str, Any]:
    text = f"arena key handover\n{kind}\n{public(old).hex()}\n{public(new).hex()}\n{at}\n".encode()
    signatures = {"signedByOld": old.sign(text).hex(), "signedByNew": new.sign(text).hex()}
    return {"kind": kind, "old": public(old).hex(), "new": public(new).hex(), "at": at, **signatures}


def test_handovers_connect_keys_in_both_directions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, later = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (8, 9, 10))
    to_record, from_record = handover("record", first, RECORD_KEY), handover("record", RECORD_KEY, second)
    known = [verify.Handover.parse(value) for value in (from_record, to_record, handover("record", second, later))]
    for key in (first, RECORD_KEY, second, later):
        report = verify.verify(file_of(*RECORD), keys=[public(key).hex()], handovers=known)
        assert report.checked[-1] == "key"
    with pytest.raises(FalseRecordError, match="another key"):
        verify.verify(file_of(*RECORD), keys=[public(later).hex()], handovers=known[:2])
    log_handover = verify.Handover.parse(handover("log", LOG_KEY, later))
    proved = file_of(*RECORD, proof_of(LEAVES, 302))
    later_key = NoteKey.parse(vkey(ORIGIN, 1, later))
    report = verify.verify(proved, log_keys=[later_key], handovers=[log_handover])
    assert report.checked[-1] == "checkpoint"
    for unconnected in ([], known):
        report = verify.verify(proved, log_keys=[later_key], handovers=unconnected)
        assert "no signature" in report.unchecked["checkpoint"]
        assert not report.is_complete

    # The log and the published keys have handovers too.
    season = tmp_path / "season.jsonl"
    season.write_bytes(file_of(*RECORD))
    leaves = [*LEAVES, entry(leaf="key", recordKey=public(second).hex(), handover=from_record, at=TIME)]
    folder = write_log(tmp_path / "log", leaves)
    options = ["--key", public(second).hex()]
    assert verify.main([str(season), *options]) == verify.EXIT_FALSE
    assert verify.main([str(season), *options, "--log", str(folder)]) == 0
    published = tmp_path / "arena.json"

    def publish(value: dict[str, Any]) -> None:
        published.write_text(json.dumps({"recordKey": public(second).hex(), "handovers": [value]}))

    publish(from_record)
    assert verify.main([str(season), "--keys", str(published)]) == 0
    forgeries: list[dict[str, Any]] = [
        {"kind": "log"},
        {"at": TIME + 1},
        {"old": public(first).hex()},
        {"signedByOld": from_record["signedByNew"]},
        {"signedByNew": to_record["signedByNew"]},
    ]
    for changed in forgeries:
        publish({**from_record, **changed})
        assert verify.main([str(season), "--keys", str(published)]) == verify.EXIT_FALSE, changed
        assert "FALSE  keys" in capsys.readouterr().err
    # Another format is no forgery.
    for other_form in ({"kind": "seat"}, {"at": "1"}, {"signedByNew": 1}):
        publish({**from_record, **other_form})
        with pytest.raises(SystemExit) as ended:
            verify.main([str(season), "--keys", str(published)])
        assert ended.value.code == verify.EXIT_USAGE, other_form
    for recorded, value in ((second, {**from_record, "at": 1}), (later, from_record)):
        false_leaf = entry(leaf="key", recordKey=public(recorded).hex(), handover=value, at=TIME)
        false_log = write_log(tmp_path / f"false {value['at']}", [*LEAVES, false_leaf])
        assert verify.main(["--log", str(false_log)]) == verify.EXIT_FALSE
        assert "handover" in capsys.readouterr().out


def test_a_proof_replaces_the_signature_of_a_lost_key() -> None:
    keys = [NoteKey.parse(LOG_VKEY)]
    report = verify.verify(file_of(*CHAIN, proof_of(LEAVES, 302)), keys=[STATE], log_keys=keys)
    assert report.checked[-2:] == ("proof", "checkpoint")
    assert (report.key, "signature" in report.unchecked) == (None, True)
    assert report.is_complete
    report = verify.verify(file_of(*CHAIN, proof_of(LEAVES, 302)), keys=[STATE])
    assert (report.unchecked["checkpoint"], report.is_complete) == (verify.NO_LOG_KEY, False)


def test_a_session_without_inputs_may_lack_messages() -> None:
    header = {**HEADER, "inputs": "missing", "recordKey": None}
    events = [{**event, "version": None} for event in EVENTS if event["kind"] != "usage"]
    events[3] = {**events[3], "messages": events[3]["messages"][1:]}
    assert verify.verify(file_of(*chained(header, events, END))).messages == 4
    with pytest.raises(FalseRecordError, match="operator/4 should be operator/3"):
        verify.verify(file_of(*with_event(4, messages=EVENTS[4]["messages"][1:])))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "it is empty"),
        (b"\n", "isn't a record"),
        (b'{"arena', "isn't a record"),
        (b"\x89PNG\r\n\x1a\n", "isn't a record"),
        (b'{"replay":1}\n', "isn't a record"),
        (b"[" * 100_000 + b"\n", "isn't a record"),
        (b'{"arenaRecord":2,"new":{}}\n', "version 2; this program reads version 1"),
    ],
)
def test_other_files_are_unchecked_and_not_false(data: bytes, expected: str) -> None:
    with pytest.raises(UncheckedError, match=expected):
        verify.verify(data)


def test_a_long_line_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "MAX_LINE", 1000)
    with pytest.raises(UncheckedError, match="line 2 is longer than 1000 bytes"):
        verify.verify(file_of(CHAIN[0], "x" * 2000))
    monkeypatch.setattr(verify, "MAX_RECORD", 2000)
    with pytest.raises(UncheckedError, match="the record is longer than 2000 bytes"):
        verify.verify(file_of(*RECORD))
    monkeypatch.setattr(verify, "MAX_LINE", 2000)
    assert verify.verify(file_of(*RECORD), max_bytes=100_000).end == "completed"


def test_numbers_have_one_form() -> None:
    cases = [
        ("1.0", True), ("1e16", False), ("1e+16", True), ("1000000000000000.0", True), ("1.5e+300", True),
        ("0.00001", True), ("1e-05", False), ("1e-5", False), ("0.000015", True), ("1e-6", True), ("1e-06", False),
        ("-0.0", True), ("-0.00001", True), ("-0", False), ("0", True), ("01", False), ("18446744073709551615", True),
    ]  # fmt: skip
    for text, expected in cases:
        header = text_of({**HEADER, "recordKey": None}).replace("0.5", text)
        try:
            verify.verify(file_of(header))
            is_accepted = True
        except FalseRecordError:
            is_accepted = False
        assert is_accepted == expected, text


def test_signatures_agree_with_another_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first two vectors of RFC 8032, section 7.1.
    vectors = [
        ("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
         "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"),
        ("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
         "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"),
    ]  # fmt: skip
    for key, text, signature in vectors:
        assert verify_plain(bytes.fromhex(key), bytes.fromhex(signature), bytes.fromhex(text))
    rng = random.Random(7)
    for _ in range(8):
        private = Ed25519PrivateKey.from_private_bytes(rng.randbytes(32))
        text_bytes = rng.randbytes(rng.randrange(200))
        good = private.sign(text_bytes)
        assert verify_plain(public(private), good, text_bytes)
        at = rng.randrange(64)
        bad = good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1 :]
        for check in (verify_plain, verify.verify_signature):
            assert not check(public(private), bad, text_bytes)
            assert not check(public(private), good, text_bytes + b"x")
            assert not check(public(private), good[:63], text_bytes)
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    assert "signature" in verify.verify(file_of(*RECORD)).checked
    with pytest.raises(FalseRecordError, match="the signature is wrong"):
        verify.verify(file_of(*CHAIN, re.sub('signature":"..', 'signature":"00', sealed(CHAIN[-1]))))


def test_trees_agree_with_the_definition() -> None:
    # The root of the eight leaves is published with the reference implementation of RFC 6962.
    eight = [bytes.fromhex(leaf) for leaf in (
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
    )]  # fmt: skip
    assert tree_root(eight).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
    leaves = [bytes([n]) * 3 for n in range(34)]
    frontier = Frontier()
    for size in range(len(leaves) + 1):
        root = tree_root(leaves[:size])
        assert frontier.root() == root
        for index in range(size):
            path = inclusion(index, leaves[:size])
            leaf = leaf_hash(leaves[index])
            assert verify_inclusion(leaf, index, size, path, root)
            assert not verify_inclusion(leaf_hash(b"x"), index, size, path, root)
            assert not verify_inclusion(leaf, size, size, path, root)
            assert not verify_inclusion(leaf, index, size, [*path, root], root)
            assert size == 1 or not verify_inclusion(leaf, index, size, path[:-1], root)
            assert size == 1 or not verify_inclusion(leaf, index ^ 1, size, path, root)
        if size < len(leaves):
            frontier.append(leaf_hash(leaves[size]))


def test_tiles_have_the_paths_of_the_format() -> None:
    cases = [
        (0, 256, "tile/entries/000"), (5, 256, "tile/entries/005"), (5, 12, "tile/entries/005.p/12"),
        (1234, 256, "tile/entries/x001/234"), (1_234_067, 255, "tile/entries/x001/x234/067.p/255"),
    ]  # fmt: skip
    for number, width, path in cases:
        assert verify.tile_path(number, width) == path


def test_a_record_is_found_in_the_log(tmp_path: Path) -> None:
    checkpoint = cosigned(checkpoint_of(LEAVES))
    keys = [NoteKey.parse(LOG_VKEY)]
    earlier = [checkpoint_of(LEAVES[:size]) for size in (1, 100, 256, 303)]
    log = Log.read(str(write_log(tmp_path, LEAVES, checkpoint)), keys, earlier)
    assert (log.checkpoint.size, log.signers) == (304, [ORIGIN])
    assert set(log.ended) == {SESSION, OTHER}
    assert log.without_record([SESSION]) == [OTHER]
    report = verify.verify(file_of(*RECORD, proof_of(LEAVES, 302)), log=log, log_keys=keys)
    assert report.checked[-3:] == ("proof", "checkpoint", "log")


def test_all_sessions_but_removed_ones_have_records(tmp_path: Path) -> None:
    for kind, expected in [("excluded", [SESSION, OTHER]), ("removed", [OTHER])]:
        gone = entry(leaf=kind, session=SESSION, reason="self-play", at=TIME + 60)
        log = Log.read(str(write_log(tmp_path / kind, [*LEAVES, gone])))
        assert log.without_record([]) == expected


def test_a_removed_session_may_be_imported_again(tmp_path: Path) -> None:
    other = entry(leaf="ended", session=SESSION, ending="completed", record=STATE, at=TIME + 50)
    log = Log.read(str(write_log(tmp_path / "once", [*LEAVES, REMOVED, CREATED, other])))
    assert (log.ended[SESSION]["record"], log.removed) == (STATE, {})
    # The removal may come before the creation is in the log.
    assert set(Log.read(str(write_log(tmp_path / "soon", [KEY, REMOVED]))).removed) == {SESSION}
    with pytest.raises(FalseLogError, match="repeats that session"):
        Log.read(str(write_log(tmp_path / "twice", [*LEAVES, REMOVED, CREATED, other, CREATED])))


def test_a_log_that_changes_its_past_is_found(tmp_path: Path) -> None:
    swapped = [LEAVES[1], LEAVES[0], *LEAVES[2:]]
    cases: list[tuple[list[bytes], str | None, list[str], str]] = [
        (LEAVES[:-1], None, [checkpoint_of(LEAVES)], "the log has lost leaves: it had 304, and has 303"),
        ([KEY, ENDED], None, [], f"leaf 1 is about session {SESSION}, which wasn't created before"),
        (swapped, None, [checkpoint_of(LEAVES[:10])], "the first 10 leaves differ"),
        (swapped, checkpoint_of(LEAVES), [], "the leaves don't have the checkpoint's root hash"),
        ([*LEAVES, LEAVES[0], ENDED], None, [], f"leaf 305 repeats that session {SESSION} was ended"),
        ([*LEAVES, b"text"], None, [], "leaf 304 isn't a JSON object"),
        ([*LEAVES, b"[1]"], None, [], "leaf 304 isn't a known leaf in the only permitted form"),
        ([*LEAVES, KEY.replace(b":", b": ")], None, [], "leaf 304 isn't a known leaf in the only permitted form"),
        ([*LEAVES, entry(leaf="vote", at=1)], None, [], "leaf 304 isn't a known leaf in the only permitted form"),
        ([*LEAVES, entry(leaf="key", recordKey="x", at=1)], None, [], "leaf 304 doesn't have the fields of a leaf"),
        ([*LEAVES, entry(leaf="key", recordKey=STATE)], None, [], "leaf 304 doesn't have the fields of a leaf"),
        ([entry(**{**json.loads(CREATED), "rated": 1})], None, [], "leaf 0 doesn't have the fields of a leaf"),
        ([entry(**{**json.loads(CREATED), "session": "s1"})], None, [], "leaf 0 doesn't have the fields of a leaf"),
        ([CREATED, entry(**{**json.loads(ENDED), "ending": "lost"})], None, [], "leaf 1 doesn't have the fields"),
        ([*LEAVES, REMOVED, REMOVED], None, [], f"leaf 305 repeats that session {SESSION} was removed"),
        ([CREATED, REMOVED, ENDED], None, [], f"leaf 2 is about session {SESSION}, which was removed before"),
        ([KEY, entry(**{**json.loads(REMOVED), "leaf": "excluded"})], None, [], "which wasn't created before"),
        (
            [*LEAVES, entry(leaf="excluded", session=SESSION, reason="unlisted", at=TIME + 60)],
            None,
            [],
            "was unlisted, but it had ended before",
        ),
        (LEAVES, forged(checkpoint_of(LEAVES)), [], f"the signature of {ORIGIN} below the checkpoint is forged"),
        (LEAVES, None, [forged(checkpoint_of(LEAVES[:3]))], "is forged"),
        (LEAVES, None, [checkpoint_of(LEAVES[:3]), checkpoint_of(swapped[:3])], "the first 3 leaves differ"),
    ]
    for number, (leaves, checkpoint, earlier, expected) in enumerate(cases):
        folder = write_log(tmp_path / str(number), leaves, checkpoint)
        with pytest.raises(FalseLogError, match=re.escape(expected)):
            Log.read(str(folder), [NoteKey.parse(LOG_VKEY)], earlier)
    # Other logs, and files that anyone can write, refute nothing.
    for name, checkpoint, since, expected in [
        (
            "since",
            None,
            checkpoint_of(swapped[:3], key=RECORD_KEY),
            "the earlier checkpoint of size 3 has no signature",
        ),
        ("other", None, checkpoint_of(LEAVES[:3], origin="other"), "the earlier checkpoint of size 3 has no signature"),
        ("unsigned", checkpoint_of(LEAVES, key=RECORD_KEY), checkpoint_of(LEAVES), f"no signature of {ORIGIN}"),
    ]:
        folder = write_log(tmp_path / name, LEAVES, checkpoint)
        with pytest.raises(UncheckedError, match=re.escape(expected)) as found:
            Log.read(str(folder), [NoteKey.parse(LOG_VKEY)], [since])
        assert found.value.exit_code == verify.EXIT_USAGE
    with pytest.raises(UncheckedError, match="the earlier checkpoint is of 'other'"):
        Log.read(str(tmp_path / "since"), [], [checkpoint_of(LEAVES[:3], origin="other")])
    folder = write_log(tmp_path / "cut", LEAVES)
    tile = folder / verify.tile_path(1, 48)
    tile.write_bytes(tile.read_bytes()[:-1])
    with pytest.raises(FalseLogError, match="truncated"):
        Log.read(str(folder))
    tile.unlink()
    with pytest.raises(UncheckedError, match="is missing"):
        Log.read(str(folder))


def forged(checkpoint: str) -> str:
    """Returns the checkpoint with another signature under the name and the id of its key."""
    before, _, signature = checkpoint.rpartition(" ")
    data = bytearray(base64.b64decode(signature))
    data[-1] ^= 1
    return f"{before} {base64.b64encode(data).decode()}\n"


def test_tiles_of_hashes_are_compared_with_the_leaves(tmp_path: Path) -> None:
    for count in (1, 255, 256, 257, 600):
        folder = write_log(tmp_path / str(count), others(count))
        assert Log.read(str(folder)).tree.root() == tree_root(others(count))
        tiles = sorted(path for path in folder.rglob("tile/[0-9]/**/*") if path.is_file())
        # Level 0, and level 1 of logs with a full tile.
        assert len(tiles) == -(-count // 256) + (count >= 256), tiles
        for tile in tiles:
            good = tile.read_bytes()
            for bad in (
                good[:-1] + bytes([good[-1] ^ 1]),
                bytes([good[0] ^ 1]) + good[1:],
                good[:-32],
                good + good[:32],
            ):
                tile.write_bytes(bad)
                with pytest.raises(FalseLogError, match="doesn't have the hashes"):
                    Log.read(str(folder))
            tile.unlink()
            with pytest.raises(UncheckedError, match="is missing"):
                Log.read(str(folder))
            tile.write_bytes(good)
        assert Log.read(str(folder)).tree.size == count


def test_a_log_that_was_changed_and_signed_again_contradicts_the_proofs_in_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The log without one of the other sessions, signed with the real key. Its leaves don't contradict each other.
    changed = [leaf for leaf in LEAVES if leaf != LEAVES[5]]
    record = file_of(*RECORD, proof_of(LEAVES, 302))
    for number, leaves in enumerate([changed + others(301)[300:], [*changed, entry(**{**json.loads(KEY), "at": 1})]]):
        folder = write_log(tmp_path / str(number), leaves)
        for keys in ([], [NoteKey.parse(LOG_VKEY)]):
            log = Log.read(str(folder), keys)
            with pytest.raises(FalseRecordError, match=f"the log forked: its leaf 302 is .*, but .* session {SESSION}"):
                verify.verify(record, log=log)
    path = tmp_path / "record.jsonl"
    path.write_bytes(record)
    assert verify.main([str(path), "--log", str(tmp_path / "0"), "--log-key", LOG_VKEY]) == verify.EXIT_FALSE
    assert "the log forked" in capsys.readouterr().out
    later = [*LEAVES[:303], *others(301)[300:]]
    log = Log.read(str(write_log(tmp_path / "later", later)), [NoteKey.parse(LOG_VKEY)])
    with pytest.raises(FalseRecordError, match="the log forked: its first 304 leaves have another root"):
        verify.verify(record, log=log)
    # Nobody knows the signer of this proof, so it refutes nothing.
    log = Log.read(str(write_log(tmp_path / "other", changed + others(301)[300:])), [NoteKey.parse(LOG_VKEY)])
    foreign = file_of(*RECORD, proof_of(LEAVES, 302, OTHER_KEY))
    assert "no signature of" in verify.verify(foreign, log=log).unchecked["checkpoint"]
    # A proof of another log refutes nothing.
    renamed = checkpoint_of(LEAVES, origin="other.example/log")
    log = Log.read(str(write_log(tmp_path / "renamed", LEAVES, renamed)))
    report = verify.verify(record, log=log)
    assert "is of the log arena.example/log" in report.unchecked["checkpoint"]
    assert (report.checked[-1], report.is_complete) == ("log", False)


class Shown:
    """A server of a log whose files a test can replace.

    Attributes:
        folder: The folder with the files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = outer.folder / self.path.removeprefix("/log/")
                self.send_response(200 if path.is_file() else 404)
                self.end_headers()
                self.wfile.write(path.read_bytes() if path.is_file() else b"")

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


def test_a_log_that_lost_leaves_contradicts_the_proofs_in_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify, "FRESH_S", 0.01)
    record = tmp_path / "record.jsonl"
    record.write_bytes(file_of(*RECORD, proof_of(LEAVES, 302)))
    without = [leaf for leaf in LEAVES if leaf not in (CREATED, ENDED)]
    # The end is the last of these leaves, so no other leaf has its place.
    last = tmp_path / "last.jsonl"
    last.write_bytes(file_of(*RECORD, proof_of(LEAVES[:303], 302)))
    moved = [LEAVES[0], *LEAVES[2:]]
    cases = [
        ("no games", record, without, "older", "shorter"),
        ("another game", record, moved, "the log forked: its leaf 302 is", "the log forked: its leaf 302 is"),
        ("a cut end", record, LEAVES[:303], "older", "shorter"),
        ("a cut game", last, LEAVES[:301], "older", "shorter"),
    ]
    sentences = {
        "older": "fewer than the {size} of the record's proof: the copy is older than the record; save the log again",
        "shorter": "the log went back from {size} leaves, which the record's proof has, to ",
    }
    shown = Shown(tmp_path)
    for name, path, leaves, in_folder, by_address in cases:
        folder = write_log(tmp_path / name, leaves)
        size = 303 if path == last else 304
        for place, kind in ((str(folder), in_folder), (shown.url, by_address)):
            shown.folder = folder
            code = verify.main([str(path), "--log", place, "--log-key", LOG_VKEY])
            assert code == (verify.EXIT_INCOMPLETE if kind == "older" else verify.EXIT_FALSE), (name, place)
            assert sentences.get(kind, kind).format(size=size) in capsys.readouterr().out, (name, place)
    # A log that has grown since it was read has lost nothing.
    shown.folder = write_log(tmp_path / "before", LEAVES[:301])
    log = Log.read(shown.url, [NoteKey.parse(LOG_VKEY)])
    shown.folder = write_log(tmp_path / "after", LEAVES)
    report = verify.verify(record, log=log)
    assert "the log has grown since it was read" in report.unchecked["checkpoint"]
    assert not report.is_complete
    # Without a key of the log, nothing shows that it signed the proof.
    shown.folder = tmp_path / "before"
    report = verify.verify(record, log=Log.read(shown.url))
    assert "--log-key" in report.unchecked["checkpoint"]
    assert not report.is_complete


def test_a_record_that_contradicts_the_log_is_found(tmp_path: Path) -> None:
    changed = {**json.loads(CREATED), "seedCommitment": STATE}
    other_record = {**json.loads(ENDED), "record": STATE}
    other_end = {**json.loads(ENDED), "ending": "abandoned"}
    other_key = {**json.loads(KEY), "recordKey": STATE}
    without = [leaf for leaf in LEAVES if leaf not in (CREATED, ENDED)] + 2 * [KEY]
    cases = [
        (without, [*RECORD, proof_of(LEAVES, 302)], 'the log forked: its leaf 302 is {"leaf":"key",'),
        ([entry(**changed), ENDED], RECORD, "the log has another seedCommitment"),
        ([CREATED, entry(**other_record)], RECORD, "the log has another hash for the session's record"),
        ([CREATED, entry(**other_end)], RECORD, "the log has another kind or time of the session's end"),
        ([entry(**other_key), CREATED, ENDED], RECORD, "the log doesn't name the record's key"),
    ]
    for number, (leaves, record, expected) in enumerate(cases):
        log = Log.read(str(write_log(tmp_path / str(number), leaves)))
        with pytest.raises(FalseRecordError, match=re.escape(expected)):
            verify.verify(file_of(*record), log=log)


def test_a_session_that_the_log_lacks_is_unchecked(tmp_path: Path) -> None:
    unfinished = chained(HEADER, EVENTS[:2], None)
    cases = [
        (LEAVES[:2], RECORD, "doesn't have the session"),
        # The copy of the log is older than the record's proof.
        (LEAVES[:2], [*RECORD, proof_of(LEAVES, 302)], "doesn't have the session"),
        ([CREATED], RECORD, "but not its end"),
        ([entry(**{**json.loads(KEY), "recordKey": STATE}), CREATED], RECORD, "but not its end"),
        ([CREATED, ENDED], [*unfinished, sealed(unfinished[-1])], "the session has ended, but the record has no end"),
    ]
    for number, (leaves, record, expected) in enumerate(cases):
        log = Log.read(str(write_log(tmp_path / str(number), leaves)))
        report = verify.verify(file_of(*record), log=log)
        assert expected in report.unchecked["log"]
        assert "log" not in report.checked
        assert not report.is_complete


def test_keys_and_checkpoints_in_other_forms_are_refused() -> None:
    for key in ("", "a+b", LOG_VKEY.replace("+", " "), LOG_VKEY[:-4], "x" + LOG_VKEY, vkey(ORIGIN, 2, LOG_KEY)):
        with pytest.raises(ValueError, match="key"):
            NoteKey.parse(key)
    good = checkpoint_of(LEAVES)
    changes: list[Callable[[str], str]] = [
        lambda text: "",
        lambda text: text.partition("\n\n")[0],
        lambda text: text[:-1],
        lambda text: text.replace("\n304\n", "\n0304\n"),
        lambda text: text.replace("\n304\n", "\n-1\n"),
        lambda text: text.replace("— ", "- "),
    ]
    for change in changes:
        with pytest.raises(ValueError, match="checkpoint"):
            Checkpoint.parse(change(good))
    assert Checkpoint.parse(good).is_signed_by(NoteKey.parse(LOG_VKEY))
    with pytest.raises(FalseLogError, match="is forged"):
        Checkpoint.parse(good.replace("\n304\n", "\n303\n")).is_signed_by(NoteKey.parse(LOG_VKEY))
    assert Checkpoint.parse(cosigned(good)).is_signed_by(NoteKey.parse(LOG_VKEY))
    assert not Checkpoint.parse(good).is_signed_by(NoteKey.parse(vkey(ORIGIN, 1, OTHER_KEY)))


def test_the_command_has_an_exit_code_for_false_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_log(tmp_path / "log", LEAVES)
    season = tmp_path / "season"
    season.mkdir()
    (season / "good.jsonl").write_bytes(file_of(*RECORD))
    key = ["--key", HEADER["recordKey"]]
    assert verify.main([str(season), *key, "--log", str(folder), "--log-key", LOG_VKEY]) == 0
    shown = capsys.readouterr().out
    assert f"ok     log {ORIGIN}, 304 leaves, signed by {ORIGIN}" in shown
    assert "1 of 2 ended sessions in the log have no verified record here" in shown

    published = tmp_path / "arena.json"
    logged = {"origin": ORIGIN, "verifierKey": LOG_VKEY, "recordKeys": [{"leaf": 0, "recordKey": HEADER["recordKey"]}]}
    published.write_text(json.dumps({"release": "0.9.0", "recordKey": STATE, "log": logged}))
    assert verify.main([str(season), "--keys", str(published), "--log", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert f"signed by {ORIGIN}" in shown
    assert "signature, key, log" in shown

    assert verify.main([str(season), "--key", STATE]) == verify.EXIT_FALSE
    assert "another key" in capsys.readouterr().out
    (season / "foreign.jsonl").write_bytes(b"{}\n")
    assert verify.main([str(season)]) == verify.EXIT_USAGE
    (season / "bad.jsonl").write_bytes(file_of(*reordered(RECORD, 0, 2, 1)))
    assert verify.main([str(season), "--json"]) == verify.EXIT_FALSE
    capsys_text = capsys.readouterr().out.splitlines()[-1]
    bad, foreign, good = json.loads(capsys_text)["records"]
    assert (bad["line"], bad["event"]) == (2, 1)
    assert "isn't a record" in foreign["error"]
    assert (good["session"], good["withheld"]) == (SESSION, 0)
    assert verify.main([str(tmp_path / "none.jsonl")]) == verify.EXIT_USAGE
    assert verify.main(["--log", "http://127.0.0.1:1"]) == verify.EXIT_UNREACHABLE
    (tmp_path / "empty").mkdir()
    assert verify.main(["--log", str(tmp_path / "empty")]) == verify.EXIT_USAGE
    assert verify.main([str(tmp_path / "empty")]) == verify.EXIT_USAGE

    # A newer key than those in a published file may be the arena's or a forger's.
    good_record = tmp_path / "season/good.jsonl"
    published.write_text(json.dumps({"release": "0.9.0", "recordKey": STATE}))
    capsys.readouterr()
    assert verify.main([str(good_record), "--keys", str(published)]) == verify.EXIT_INCOMPLETE
    assert "get a newer arena.json" in capsys.readouterr().out
    future = tmp_path / "future.jsonl"
    future.write_bytes(good_record.read_bytes().replace(b'{"arenaRecord":1', b'{"arenaRecord":2', 1))
    assert verify.main([str(future)]) == verify.EXIT_INCOMPLETE
    # A log is found in a subfolder, and its own key is used if it publishes one.
    assert verify.main([str(good_record), "--log", str(tmp_path)]) == 0
    for log_key, expected in ((LOG_VKEY, 0), (vkey(ORIGIN, 1, OTHER_KEY), verify.EXIT_USAGE)):
        logged = {"origin": ORIGIN, "verifierKey": log_key, "recordKeys": []}
        (folder / "arena.json").write_text(json.dumps({"recordKey": STATE, "log": logged}))
        assert verify.main(["--log", str(folder)]) == expected
    for wrong in ([], ["--since", "x", "y"], ["--key", "zz", "y"], ["--keys", "none", "y"], ["--log-key", "zz", "y"]):
        with pytest.raises(SystemExit) as ended:
            verify.main(wrong)
        assert ended.value.code == 2


def test_the_records_and_the_log_of_a_server_are_verified(arena: Arena, shared: Server, tmp_path: Path) -> None:
    ada, bob = pair(arena, "ada of records", "bob of records")
    common = ", ".join(map(str, private_set(ada) & private_set(bob)))
    ada.say("for all")
    ada.say("only for you", to=bob.invite)
    for seat in (ada, bob):
        seat.send("guess", common)
    [*_, ended] = bob.stream_operator()
    assert isinstance(ended, GameEnded)

    def get(path: str) -> bytes:
        with urllib.request.urlopen(shared.url + path, timeout=PATIENCE_S) as answer:
            return bytes(answer.read())

    # The log gets the end of a session within a second.
    path = f"/api/sessions/{ada.session_id}/record"
    deadline = time.monotonic() + PATIENCE_S
    while b'\n{"leaf":' not in (record := get(path)):
        assert time.monotonic() < deadline, "the record has no proof"
        time.sleep(0.1)
    published = json.loads(get("/.well-known/arena.json"))
    key = NoteKey.parse(published["log"]["verifierKey"])
    log = Log.read(shared.url, [key])
    report = verify.verify(record, keys=[published["recordKey"]], log=log, log_keys=[key])
    expected = ("form", "chain", "contents", "seed", "signature", "key", "proof", "checkpoint", "log")
    assert report.checked == expected, report.unchecked
    assert (report.challenge, report.end, report.withheld) == ("psi", "completed", 1)
    assert b"only for you" not in record
    assert report.scores == ((1, 1), (1, 1))

    (tmp_path / "season").mkdir()
    (tmp_path / "season/one.jsonl").write_bytes(record)
    keys = ["--keys", f"{shared.url}/.well-known/arena.json"]
    assert verify.main([str(tmp_path / "season"), *keys, "--log", shared.url]) == 0
    forged = record.replace(b'"content":"for all"', b'"content":"for some"')
    with pytest.raises(FalseRecordError, match="isn't the one that its event commits to"):
        verify.verify(forged)
