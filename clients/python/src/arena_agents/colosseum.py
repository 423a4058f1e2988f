"""Bots that an arena plays over their standard input and output: a JSON object on a line, and one back.

    from arena_agents.colosseum import run

    def decide(me, state, config):
        return [{"action": "move", "move": "UP"}]

    run(decide)

Needs nothing but the standard library. What a bot sees and can do in which game is in `docs/agents.md` of the arena.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO

#: What a bot sees of a game.
State = dict[str, Any]
#: Something that a bot does, such as `{"action": "move", "move": "UP"}`.
Action = Mapping[str, Any]
#: From the bot's id, what it sees, and the constants of the game, to what it does.
Decide = Callable[[str, State, dict[str, Any]], Iterable[Action]]

#: Longer answers are faults, so none is sent: 1 MiB, with its end of line.
MOST_BYTES = 1024 * 1024

#: Keys of the protocol, which are no game's.
_PROTOCOL = frozenset({"ping", "set_agent_id", "config", "world_state", "stop"})

_answers: BinaryIO | None = None


def guard_stdout() -> BinaryIO:
    """Keeps stdout for the protocol: from now on all that is printed goes to stderr, which is the bot's log.

    That holds for `print`, for libraries that aren't written in Python, and for programs that the bot starts. `run`
    does it by itself; call it first thing if something is printed before, as by an import.

    Returns:
        Where answers are written. The same each time.
    """
    global _answers
    if _answers is None:
        sys.stdout.flush()
        _answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        sys.stdout = sys.stderr
    return _answers


def run(decide: Decide, *, name: str | None = None, version: str = "1") -> None:
    """Plays one match, and returns when it is over.

    Whatever goes wrong in an epoch is logged to stderr and costs that epoch alone: an exception in `decide`, actions
    that can't be written as JSON, a line that can't be read.

    Args:
        decide: Called in each epoch in which the bot is to act, with its id, the state and the game's constants.
            Returns actions, which may be none. Numbers of NumPy are understood.
        name: What the bot is called in results; the name of its file unless it is said.
        version: Which version of it plays.
    """
    bot = _Bot(decide, name or _own_name(), version)
    answers = guard_stdout()
    try:
        for line in sys.stdin.buffer:
            message = _read(line)
            if "stop" in message:
                return
            answer = bot.answer(message)
            if answer is not None:
                # At once and as a whole: what stays in a buffer counts as silence.
                answers.write(answer)
                answers.flush()
    except BrokenPipeError:
        # The arena has gone, and so has the match.
        return


class _Bot:
    def __init__(self, decide: Decide, name: str, version: str) -> None:
        self._decide = decide
        self._name = name
        self._version = version
        self._me: str | None = None
        self._config: dict[str, Any] = {}

    def answer(self, message: dict[str, Any]) -> bytes | None:
        """The line that answers a message; None where none is due."""
        reply: dict[str, Any] = {}
        if "ping" in message:
            reply["pong"] = "pong"
        if "set_agent_id" in message:
            self._me = str(message["set_agent_id"])
            config = message.get("config")
            self._config = config if isinstance(config, dict) else {}
            reply |= {"agent_id": self._me, "agent_name": self._name, "agent_version": self._version}
        state = _state_in(message)
        if state is None or self._me is None:
            return _written(reply) if reply else None
        reply["agent_id"] = self._me
        try:
            return _written({**reply, "actions": _listed(self._decide(self._me, state, self._config))})
        except Exception:
            # An epoch without actions is better than a match without a bot.
            traceback.print_exc(file=sys.stderr)
            return _written({**reply, "actions": []})


def _read(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        print(f"a line that isn't JSON: {error}", file=sys.stderr)
        return {}
    return message if isinstance(message, dict) else {}


def _state_in(message: dict[str, Any]) -> State | None:
    """The state in a message: in `world_state`, or in the dialect `flat` all that isn't the protocol's."""
    state = message.get("world_state")
    if isinstance(state, dict):
        return state
    flat = {key: value for key, value in message.items() if key not in _PROTOCOL}
    # Every state has its epoch. Keys that are unknown may come with any message.
    return flat if "epoch" in flat else None


def _listed(actions: Iterable[Action]) -> list[Action]:
    if isinstance(actions, (Mapping, str)):
        raise TypeError(f"decide returned {actions!r}; it has to return a list of actions")
    return list(actions)


def _written(reply: dict[str, Any]) -> bytes:
    line = json.dumps(reply, allow_nan=False, default=_plain).encode("ascii") + b"\n"
    if len(line) > MOST_BYTES:
        raise ValueError(f"an answer of {len(line)} bytes is too long; {MOST_BYTES} is the most")
    return line


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy and its like as Python's own."""
    plain = getattr(value, "tolist", None)
    if plain is None:
        raise TypeError(f"{type(value).__name__} can't be written as JSON")
    return plain()


def _own_name() -> str:
    file = getattr(sys.modules.get("__main__"), "__file__", None) or "bot"
    return os.path.splitext(os.path.basename(file))[0]
