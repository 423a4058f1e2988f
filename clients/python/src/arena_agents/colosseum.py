"""Agents that play over stdin and stdout. Each request and each answer is a JSON object on one line.

    from arena_agents.colosseum import run

    def decide(me, state, config):
        return [{"action": "move", "move": "UP"}]

    run(decide)

Needs the standard library only. The arena's `docs/agents.md` describes the states and actions of each game.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO

#: A game's state, as an agent sees it.
State = dict[str, Any]
#: An action, such as `{"action": "move", "move": "UP"}`.
Action = Mapping[str, Any]
#: A function from the agent's id, the state and the game's constants to actions.
Decide = Callable[[str, State, dict[str, Any]], Iterable[Action]]

#: The maximum length of an answer with its line end: 1 MiB. Longer answers are faults, so they aren't sent.
MOST_BYTES = 1024 * 1024

#: Keys of the protocol, which no game uses.
_PROTOCOL = frozenset({"ping", "set_agent_id", "config", "world_state", "stop"})

_answers: BinaryIO | None = None


def guard_stdout() -> BinaryIO:
    """Reserves stdout for the protocol: all other output goes to stderr, which is the agent's log.

    This includes `print`, native libraries, and programs that the agent starts. `run` calls it; call it earlier if
    something is printed before `run`, for example by an import.

    Returns:
        The stream for answers; the same at each call.
    """
    global _answers
    if _answers is None:
        sys.stdout.flush()
        _answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        sys.stdout = sys.stderr
    return _answers


def run(decide: Decide, *, name: str | None = None, version: str = "1") -> None:
    """Plays one match, and returns at its end.

    After an error, the agent sends no actions in that epoch and logs the error to stderr. Errors are an exception in
    `decide`, actions that can't be written as JSON, and a line that can't be read.

    Args:
        decide: The function that is called in each epoch in which the agent acts, with the agent's id, the state and
            the game's constants. Returns actions, possibly none. NumPy numbers are accepted.
        name: The agent's name in results; by default the name of its file.
        version: The agent's version.
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
                # The arena doesn't receive an answer that stays in the buffer.
                answers.write(answer)
                answers.flush()
    except BrokenPipeError:
        # The arena has exited, so the match is over.
        return


class _Bot:
    def __init__(self, decide: Decide, name: str, version: str) -> None:
        self._decide = decide
        self._name = name
        self._version = version
        self._me: str | None = None
        self._config: dict[str, Any] = {}

    def answer(self, message: dict[str, Any]) -> bytes | None:
        """Returns the answer to a message; None if none is expected."""
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
            # An agent that ends or sends no answer is disqualified.
            traceback.print_exc(file=sys.stderr)
            return _written({**reply, "actions": []})


def _read(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        print(f"ignored a line that isn't JSON: {error}", file=sys.stderr)
        return {}
    return message if isinstance(message, dict) else {}


def _state_in(message: dict[str, Any]) -> State | None:
    """Returns the state in a message: `world_state`, or in the dialect `flat` all keys outside the protocol."""
    state = message.get("world_state")
    if isinstance(state, dict):
        return state
    flat = {key: value for key, value in message.items() if key not in _PROTOCOL}
    # Every state has an epoch. Unknown keys may come with any message.
    return flat if "epoch" in flat else None


def _listed(actions: Iterable[Action]) -> list[Action]:
    if isinstance(actions, (Mapping, str)):
        raise TypeError(f"decide must return a list of actions, not {actions!r}")
    return list(actions)


def _written(reply: dict[str, Any]) -> bytes:
    line = json.dumps(reply, allow_nan=False, default=_plain).encode("ascii") + b"\n"
    if len(line) > MOST_BYTES:
        raise ValueError(f"the answer has {len(line)} bytes; at most {MOST_BYTES} are allowed")
    return line


def _plain(value: Any) -> Any:
    """Converts numbers and arrays of NumPy and similar libraries to Python's own."""
    plain = getattr(value, "tolist", None)
    if plain is None:
        raise TypeError(f"a value of type {type(value).__name__} cannot be written as JSON")
    return plain()


def _own_name() -> str:
    file = getattr(sys.modules.get("__main__"), "__file__", None) or "bot"
    return os.path.splitext(os.path.basename(file))[0]
