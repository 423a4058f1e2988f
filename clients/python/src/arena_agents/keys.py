"""Ed25519 keys of players, for arenas with authentication. Needs the extra `keys`."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

try:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
        load_der_private_key,
        load_pem_private_key,
    )
except ImportError as error:
    raise ImportError("signing needs the package cryptography: install arena-agents[keys]") from error


def default_folder() -> Path:
    """Returns the folder in which `arena identity new` keeps keys: `~/.arena/keys`."""
    return Path.home() / ".arena" / "keys"


class Identity:
    """A user of an arena: a key pair. Keep the private key secret: its holder is the user.

    Attributes:
        public_key: SPKI in DER, 44 bytes, as hexadecimal digits.
        user_id: SHA-256 of the digits of `public_key`, in hexadecimal digits. Scores belong to this id.
    """

    def __init__(self, private_key: Ed25519PrivateKey) -> None:
        """Creates an identity from a key of the package `cryptography`."""
        self._private_key = private_key
        public = private_key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.public_key = public.hex()
        self.user_id = hashlib.sha256(self.public_key.encode()).hexdigest()

    def __repr__(self) -> str:
        """Shows the user id, without the private key."""
        return f"Identity(user_id={self.user_id!r})"

    @classmethod
    def generate(cls) -> Identity:
        """Creates a new user with a new key. Only `save` stores the key."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Identity:
        """Reads a user's private key from a file, as `arena identity new` and `save` write it.

        Raises:
            OSError: If the file can't be read.
            ValueError: If the file isn't an Ed25519 key: PKCS8 in PEM, or in DER as hexadecimal digits.
        """
        text = Path(path).read_bytes()
        try:
            if text.startswith(b"-----BEGIN"):
                key = load_pem_private_key(text, password=None)
            else:
                key = load_der_private_key(bytes.fromhex(text.decode("ascii").strip()), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ValueError(f"{path} isn't a private key in the format of `arena identity new`") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError(f"{path} isn't an Ed25519 key")
        return cls(key)

    @classmethod
    def find(cls, user_id: str, folder: str | os.PathLike[str] | None = None) -> Identity:
        """Reads the key of a user id from a folder of keys, by default `~/.arena/keys`.

        Raises:
            OSError: If there is no such key.
            ValueError: If the file is damaged.
        """
        return cls.load((default_folder() if folder is None else Path(folder)) / f"{user_id}.key")

    def save(self, folder: str | os.PathLike[str] | None = None) -> Path:
        """Writes both keys into a folder of keys, by default `~/.arena/keys`.

        The command line of the arena finds them there: `arena challenges join INVITE --sign USERID`.

        Returns:
            The path of the private key, which only its owner can read.

        Raises:
            OSError: If the file can't be written, or exists already.
        """
        home = default_folder() if folder is None else Path(folder)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        private = self._private_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        path = home / f"{self.user_id}.key"
        # The private key is written first, because the public key is useless without it.
        _write_new(path, private.hex())
        _write_new(home / f"{self.user_id}.pub", self.public_key)
        return path

    def sign_join(self, invite: str) -> dict[str, Any]:
        """Returns the signed fields of a join. They are valid for five minutes."""
        at = _now_ms()
        return self._proof(f"arena:v1:join:{invite}:{at}", at)

    def sign_profile(self, changes: dict[str, str]) -> dict[str, Any]:
        """Returns the signed fields of a profile change; valid once, for these changes, for five minutes."""
        at = _now_ms()
        canonical = json.dumps(changes, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        return self._proof(f"arena:v1:user-update:{at}:{digest}", at)

    def _proof(self, statement: str, at_ms: int) -> dict[str, Any]:
        signature = self._private_key.sign(statement.encode()).hex()
        return {"publicKey": self.public_key, "signature": signature, "timestamp": at_ms}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _write_new(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(text + "\n")
