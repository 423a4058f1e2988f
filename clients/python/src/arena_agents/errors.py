"""What can go wrong between a program and an arena. Everything here is an `ArenaError`."""

from __future__ import annotations


class ArenaError(Exception):
    """Any failure that this package tells of."""


class ApiError(ArenaError):
    """The arena refused a request. A refused write hasn't happened.

    Attributes:
        status: The HTTP status, such as 400.
        code: What programs go by, such as `INVITE_ALREADY_USED`. It stays the same between releases.
        message: A sentence for people. It may change.
        retry_after_s: How long to wait before asking again, in seconds; None where waiting doesn't help.
    """

    def __init__(self, status: int, code: str, message: str, retry_after_s: float | None = None) -> None:
        """Makes the error of an answer."""
        super().__init__(f"{message} ({status} {code})")
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[type[ApiError], tuple[int, str, str, float | None]]:
        """Lets the error cross between processes, as those of worker pools do."""
        return ApiError, (self.status, self.code, self.message, self.retry_after_s)


class UnreachableError(ArenaError):
    """The arena couldn't be reached, or hung up, for longer than the client has patience.

    Whether a write has happened isn't known. Repeated with the same `idempotency_key`, it happens once.
    """


class UnexpectedAnswerError(ArenaError):
    """An answer isn't what the protocol says: probably it isn't an arena that answers."""
