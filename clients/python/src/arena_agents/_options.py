"""The options of both clients, and the values derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import httpx

from ._calls import Caller
from ._retry import is_transient
from .errors import ApiError, ArenaError, UnreachableError

#: Time without data after which a stream counts as dead, in seconds. An arena sends a comment every 30 s.
SILENCE_S = 75.0


@dataclass(frozen=True)
class Options:
    """The address of an arena, the caller, and time limits."""

    url: str
    caller: Caller
    timeout_s: float
    patience_s: float
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises an error for an invalid address."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"{self.url!r} isn't the address of an arena; expected a URL such as http://127.0.0.1:3001"
            )

    def acting_as(self, caller: Caller) -> Options:
        """Returns the options of the same arena for another caller."""
        return replace(self, caller=caller)

    def timeout(self, wait_s: float = 0.0) -> httpx.Timeout:
        """Returns the timeout of a call that waits `wait_s` seconds at the arena."""
        return httpx.Timeout(self.timeout_s, read=self.timeout_s + wait_s)

    def stream_timeout(self) -> httpx.Timeout:
        """Returns the timeout of a stream."""
        return httpx.Timeout(self.timeout_s, read=SILENCE_S)

    def failure(self, error: httpx.TransportError | ApiError) -> ArenaError:
        """Returns the error of an attempt that may be repeated.

        Raises:
            ApiError: If the arena refused for good.
        """
        if isinstance(error, ApiError):
            if is_transient(error):
                return error
            raise error
        reason = str(error) or type(error).__name__
        failure = UnreachableError(f"the arena at {self.url} cannot be reached: {reason}")
        failure.__cause__ = error
        return failure
