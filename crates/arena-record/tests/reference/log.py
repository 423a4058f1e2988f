"""Creates or checks `log.json`: trees, tiles, notes and proofs of logs, computed without this repository's code.

The quick tests compare this crate's log with the file. To create the file again, in an environment with the packages
of `xtask/python-requirements.txt`:

    python log.py

With `--check`, the program fails unless it computes the contents of the file again.

- Trees: the recursive definitions of RFC 6962, section 2.1.
- Tiles: the definition of C2SP's tlog-tiles by ranges of leaves.
- Signatures: Ed25519 of the package `cryptography`, in the forms of C2SP's signed-note, tlog-checkpoint,
  tlog-cosignature and tlog-proof.

The roots of `RFC_LEAVES` are also in the tests of Certificate Transparency, and the note of `PeterNeumann` is in the
documentation of Go's package `sumdb/note`. The program checks that it computes the same.
"""

import base64
import hashlib
import json
import sys
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

FILE = Path(__file__).parent / "log.json"

RFC_LEAVES = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
]

# The roots of the first one to eight of these leaves, in the tests of Certificate Transparency.
RFC_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]

GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n"
    "\u2014 PeterNeumann "
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)

SMALL = 40
# Two levels of full tiles, each with a partial tile after them.
LARGE = 65_536 + 257


def sha256(data):
    return hashlib.sha256(data).digest()


def split(count):
    power = 1
    while power * 2 < count:
        power *= 2
    return power


class Log:
    """A tree over leaves, by the recursive definitions of RFC 6962."""

    def __init__(self, leaves):
        self.leaves = leaves
        self.root = cache(self.root)

    def root(self, start, end):
        if start == end:
            return sha256(b"")
        if end - start == 1:
            return sha256(b"\0" + self.leaves[start])
        middle = start + split(end - start)
        return sha256(b"\1" + self.root(start, middle) + self.root(middle, end))

    def inclusion(self, index, start, end):
        if end - start == 1:
            return []
        middle = start + split(end - start)
        if index < middle:
            return self.inclusion(index, start, middle) + [self.root(middle, end)]
        return self.inclusion(index, middle, end) + [self.root(start, middle)]

    def files(self):
        """Yields the paths and bytes of all tiles and bundles."""
        size = len(self.leaves)
        for start in range(0, size, 256):
            leaves = self.leaves[start : start + 256]
            bundle = b"".join(len(leaf).to_bytes(2, "big") + leaf for leaf in leaves)
            yield path("entries", start // 256, len(leaves)), bundle
        level = 0
        while size >> (8 * level):
            hashes = size >> (8 * level)
            for start in range(0, hashes, 256):
                width = min(256, hashes - start)
                span = 256**level
                tile = b"".join(
                    self.root((start + at) * span, (start + at + 1) * span) for at in range(width)
                )
                yield path(level, start // 256, width), tile
            level += 1


def path(level, index, width):
    groups = [f"{index % 1000:03}"]
    while index >= 1000:
        index //= 1000
        groups.insert(0, f"x{index % 1000:03}")
    suffix = "" if width == 256 else f".p/{width}"
    return f"tile/{level}/{'/'.join(groups)}{suffix}"


def files_digest(log):
    """Returns the hash of a list with the path and the hash of each file."""
    lines = [f"{path} {sha256(data).hex()}\n" for path, data in log.files()]
    return len(lines), sha256("".join(lines).encode()).hex()


def encode(data):
    return base64.b64encode(data).decode()


class Key:
    """An Ed25519 key with a name."""

    def __init__(self, name, seed, kind):
        self.name, self.kind = name, kind
        self.private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.id = sha256(name.encode() + b"\n" + bytes([kind]) + self.public)[:4]
        self.verifier = f"{name}+{self.id.hex()}+{encode(bytes([kind]) + self.public)}"

    def line(self, text, at=None):
        if at is None:
            signature = self.private.sign(text.encode())
        else:
            cosigned = f"cosignature/v1\ntime {at}\n{text}"
            signature = at.to_bytes(8, "big") + self.private.sign(cosigned.encode())
        return f"\u2014 {self.name} {encode(self.id + signature)}\n"


def check_go_note():
    name, key_id, key = GO_KEY.split("+", 2)
    key = base64.b64decode(key)
    assert sha256(name.encode() + b"\n" + key)[:4].hex() == key_id
    text, line = GO_NOTE.rsplit("\n\n", 1)
    signature = base64.b64decode(line.split(" ")[2])
    assert signature[:4].hex() == key_id
    Ed25519PublicKey.from_public_bytes(key[1:]).verify(signature[4:], (text + "\n").encode())


def compute():
    rfc = Log([bytes.fromhex(leaf) for leaf in RFC_LEAVES])
    assert [rfc.root(0, size).hex() for size in range(1, 9)] == RFC_ROOTS
    check_go_note()

    small = Log([f"leaf {index}".encode() for index in range(SMALL)])
    sizes = []
    for size in range(1, SMALL + 1):
        inclusion = b"".join(b"".join(small.inclusion(index, 0, size)) for index in range(size))
        sizes.append(
            {
                "size": size,
                "root": small.root(0, size).hex(),
                "inclusion": sha256(inclusion).hex(),
            }
        )

    logs = []
    for size in [1, 255, 256, 257, LARGE]:
        log = Log([f"leaf {index}".encode() for index in range(size)])
        count, digest = files_digest(log)
        logs.append(
            {"size": size, "root": log.root(0, size).hex(), "files": count, "digest": digest}
        )

    log_key = Key("arena.example.com/log", bytes([7]) * 32, 1)
    witness = Key("witness.example.com/w1", bytes([8]) * 32, 4)
    text = f"{log_key.name}\n{SMALL}\n{encode(small.root(0, SMALL))}\n"
    signed = f"{text}\n{log_key.line(text)}"
    cosigned = signed + witness.line(text, 1_700_000_000)
    hashes = "".join(encode(hash) + "\n" for hash in small.inclusion(5, 0, SMALL))
    proof = f"c2sp.org/tlog-proof@v1\nindex 5\n{hashes}\n{cosigned}"

    session = "018f6b2e-0000-7000-8000-00000000abcd"
    lines = [
        {
            "leaf": "created",
            "session": session,
            "challenge": "psi",
            "seedCommitment": "11" * 32,
            "rated": True,
            "at": 1_700_000_000_000,
        },
        {
            "leaf": "created",
            "session": session,
            "challenge": 'é "quoted"',
            "seedCommitment": None,
            "rated": False,
            "at": 0,
        },
        {
            "leaf": "ended",
            "session": session,
            "ending": "completed",
            "record": "22" * 32,
            "at": 1_700_000_000_001,
        },
        {
            "leaf": "ended",
            "session": session,
            "ending": "abandoned",
            "record": "33" * 32,
            "at": 1_700_000_000_002,
        },
        {"leaf": "removed", "session": session, "reason": "never joined", "at": 1_700_000_000_003},
        {
            "leaf": "excluded",
            "session": session,
            "reason": "a provider failed",
            "at": 1_700_000_000_004,
        },
        {"leaf": "key", "recordKey": log_key.public.hex(), "at": 1_700_000_000_005},
        {
            "leaf": "deal",
            "day": "2023-11-15",
            "challenge": "psi",
            "seedCommitment": "44" * 32,
            "at": 1_700_000_000_006,
        },
    ]
    lines = [json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines]
    return {
        "rfc": {"leaves": RFC_LEAVES, "roots": RFC_ROOTS},
        "sizes": sizes,
        "logs": logs,
        "note": {"key": GO_KEY, "note": GO_NOTE},
        "checkpoint": {
            "logSeed": "07" * 32,
            "logKey": log_key.verifier,
            "witnessSeed": "08" * 32,
            "witnessKey": witness.verifier,
            "at": 1_700_000_000,
            "signed": signed,
            "cosigned": cosigned,
        },
        "proof": {"leaf": "leaf 5", "text": proof},
        "leaves": [{"line": line, "hash": sha256(b"\0" + line.encode()).hex()} for line in lines],
    }


def main():
    text = json.dumps(compute(), indent=1, ensure_ascii=False) + "\n"
    if sys.argv[1:] == ["--check"]:
        if FILE.read_text(encoding="utf-8") != text:
            sys.exit(f"{FILE.name} has other contents; create it again and read the difference")
    else:
        FILE.write_text(text, encoding="utf-8")


main()
