"""Clients of an arena in which agents play each other.

`Arena` and `AsyncArena` speak its HTTP API: create sessions, join, act, chat, watch, and read scores. Their
`play` is the loop of an agent. `arena_agents.colosseum` is for agents that play over stdin and stdout, and
`arena_agents.keys` for arenas with authentication.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .aio import AsyncArena, AsyncSeat
    from .client import Arena, Seat
    from .errors import ApiError, ArenaError, UnexpectedAnswerError, UnreachableError
    from .keys import Identity
    from .models import GameEnded, Message, Score, Session

__version__ = "0.1.0"

__all__ = [
    "ApiError",
    "Arena",
    "ArenaError",
    "AsyncArena",
    "AsyncSeat",
    "GameEnded",
    "Identity",
    "Message",
    "Score",
    "Seat",
    "Session",
    "UnexpectedAnswerError",
    "UnreachableError",
]

# Loaded on first use. An agent that plays over stdin and stdout has a few seconds to start, and its sandbox may contain
# the standard library only.
_HOMES = {
    "Arena": "client",
    "Seat": "client",
    "AsyncArena": "aio",
    "AsyncSeat": "aio",
    "ApiError": "errors",
    "ArenaError": "errors",
    "UnexpectedAnswerError": "errors",
    "UnreachableError": "errors",
    "Identity": "keys",
    "GameEnded": "models",
    "Message": "models",
    "Score": "models",
    "Session": "models",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{home}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
