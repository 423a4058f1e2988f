"""What both clients are told when they are made, and what they make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import httpx

from ._calls import Caller
from ._retry import is_transient
from .errors import ApiError, ArenaError, UnreachableError

#: A stream on which nothing comes for so long, not even the comment that an arena sends every 30 s, is dead.
SILENCE_S = 75.0


@dataclass(frozen=True)
class Options:
    """How to reach an arena, and as whom."""

    url: str
    caller: Caller
    timeout_s: float
    patience_s: float
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses addresses that can't be meant."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{self.url!r} is no address of an arena; one looks like http://127.0.0.1:3001")

    def acting_as(self, caller: Caller) -> Options:
        """The same arena, as somebody else."""
        return replace(self, caller=caller)

    def timeout(self, wait_s: float = 0.0) -> httpx.Timeout:
        """How long a call may take that waits for `wait_s` seconds at the arena."""
        return httpx.Timeout(self.timeout_s, read=self.timeout_s + wait_s)

    def stream_timeout(self) -> httpx.Timeout:
        """How long a stream may be silent."""
        return httpx.Timeout(self.timeout_s, read=SILENCE_S)

    def failure(self, error: httpx.TransportError | ApiError) -> ArenaError:
        """What a try came to, if another makes sense.

        Raises:
            ApiError: If it doesn't, since the arena has refused.
        """
        if isinstance(error, ApiError):
            if is_transient(error):
                return error
            raise error
        reason = str(error) or type(error).__name__
        failure = UnreachableError(f"the arena at {self.url} can't be reached: {reason}")
        failure.__cause__ = error
        return failure
