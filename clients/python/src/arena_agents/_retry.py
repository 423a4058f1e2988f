"""The decision to retry or to give up. Does no I/O, and doesn't wait itself."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from .errors import ApiError, ArenaError

#: First and longest wait, in seconds; waits double in between.
FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 3.0

#: Statuses after which the same request may succeed.
TRANSIENT = frozenset({408, 429, 502, 503, 504})


def is_transient(error: ApiError) -> bool:
    """Returns True if the same request may succeed later."""
    return error.status in TRANSIENT


class Patience:
    """The time to continue with a failing operation."""

    def __init__(self, budget_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Allows failures for `budget_s` seconds after the first one."""
        self._budget_s = budget_s
        self._clock = clock
        self.renew()

    def renew(self) -> None:
        """Resets the budget after a success."""
        self._until: float | None = None
        self._wait_s = FIRST_WAIT_S

    def wait_after(self, failure: ArenaError) -> float:
        """Returns the wait before the next attempt, in seconds.

        Raises:
            ArenaError: The failure itself, if no time is left for another attempt.
        """
        now = self._clock()
        if self._until is None:
            self._until = now + self._budget_s
        # The random factor prevents many clients from reconnecting to a restarted server at the same moment.
        wait_s = self._wait_s * random.uniform(0.5, 1.0)
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
        if isinstance(failure, ApiError) and failure.retry_after_s is not None:
            wait_s = max(wait_s, failure.retry_after_s)
        if now + wait_s > self._until:
            raise failure
        return wait_s
