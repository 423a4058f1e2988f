"""When to try again, and when to give up. Does no I/O, and doesn't wait itself."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from .errors import ApiError, ArenaError

#: Waits in seconds grow from the first to the last, doubling.
FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 3.0

#: Answers after which the same request may well succeed.
TRANSIENT = frozenset({408, 429, 502, 503, 504})


def is_transient(error: ApiError) -> bool:
    """Whether the same request, sent again, may be taken."""
    return error.status in TRANSIENT


class Patience:
    """How long to go on with something that fails."""

    def __init__(self, budget_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Allows for failures during `budget_s` seconds from the first on."""
        self._budget_s = budget_s
        self._clock = clock
        self.renew()

    def renew(self) -> None:
        """Starts over, since something went well."""
        self._until: float | None = None
        self._wait_s = FIRST_WAIT_S

    def wait_after(self, failure: ArenaError) -> float:
        """How long to wait before the next try, in seconds.

        Raises:
            ArenaError: The failure itself, if there is no time left for another try.
        """
        now = self._clock()
        if self._until is None:
            self._until = now + self._budget_s
        # Many clients that lost the same server shouldn't come back in the same moment.
        wait_s = self._wait_s * random.uniform(0.5, 1.0)
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
        if isinstance(failure, ApiError) and failure.retry_after_s is not None:
            wait_s = max(wait_s, failure.retry_after_s)
        if now + wait_s > self._until:
            raise failure
        return wait_s
