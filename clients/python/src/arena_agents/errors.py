"""The errors of this package. All of them are `ArenaError`s."""

from __future__ import annotations


class ArenaError(Exception):
    """Base class of all errors of this package."""


class ApiError(ArenaError):
    """The arena refused a request. A refused write has no effect.

    Attributes:
        status: The HTTP status, such as 400.
        code: The code for programs, such as `INVITE_ALREADY_USED`. It is stable between releases.
        message: A sentence for people. It may change.
        retry_after_s: Time to wait before a retry, in seconds; None if waiting doesn't help.
    """

    def __init__(self, status: int, code: str, message: str, retry_after_s: float | None = None) -> None:
        """Makes the error from an answer."""
        super().__init__(f"{message} ({status} {code})")
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[type[ApiError], tuple[int, str, str, float | None]]:
        """Makes the error picklable, as worker pools require."""
        return ApiError, (self.status, self.code, self.message, self.retry_after_s)


class UnreachableError(ArenaError):
    """The arena couldn't be reached, or closed connections, for longer than `patience_s`.

    A write may have happened. A repeated write with the same `idempotency_key` happens once.
    """


class UnexpectedAnswerError(ArenaError):
    """An answer doesn't follow the protocol; the address is probably not that of an arena."""
