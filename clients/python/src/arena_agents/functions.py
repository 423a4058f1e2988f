"""Python functions as agents: the program behind `py:FILE.py:FUNCTION`, which loads a function and plays with it.

The arena contains this file and runs it with `python3 -c`, so it needs the standard library only. The arena's
`docs/python-functions.md` describes the accepted functions and their results.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

#: The maximum length of an answer with its line end: 1 MiB. Longer answers are faults.
MOST_BYTES = 1024 * 1024

#: The directions of snake, in the order of their numbers.
DIRECTIONS = ("UP", "RIGHT", "DOWN", "LEFT")

_BRACKETED = re.compile(r"\[([^\[\]]+)\]\s*$")


class Struct(dict[str, Any]):
    """A dictionary whose keys are also attributes, as Kaggle's agents expect it."""

    def __getattr__(self, name: str) -> Any:
        """Returns the value of a key; dictionaries in it have attributes, too."""
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        if type(value) is dict:
            value = self[name] = Struct(value)
        elif type(value) is list:
            value = self[name] = [Struct(item) if type(item) is dict else item for item in value]
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets the value of a key."""
        self[name] = value


def actions_of(value: Any, state: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the actions of the protocol that a function's result means in a state.

    Args:
        value: An action, a plain value, or a list of them. NumPy's types are accepted.
        state: The state that the function received.

    Raises:
        TypeError: If the value means no action.
    """
    value = plain(value)
    if isinstance(value, (list, tuple)):
        return [action for item in value for action in _action_of(plain(item), state)]
    return _action_of(value, state)


def plain(value: Any) -> Any:
    """Converts a number or array of NumPy or a similar library to Python's own; returns other values unchanged."""
    convert = None if isinstance(value, str) else getattr(value, "tolist", None)
    return value if convert is None else convert()


def _action_of(value: Any, state: dict[str, Any]) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        if "action" in value:
            return [value]
        if "move" in value:
            return [{"action": "move", **value}]
        raise TypeError("a dictionary without `action`")
    moves = state.get("legal_moves")
    if isinstance(value, int) and not isinstance(value, bool):
        if isinstance(moves, list):
            value = moves[value] if 0 <= value < len(moves) else _refuse(f"{value}, but there are {len(moves)} moves")
        elif "snakes" in state:
            value = DIRECTIONS[value] if 0 <= value < 4 else _refuse(f"{value}, but there are 4 directions")
    if not isinstance(value, str):
        raise TypeError("None" if value is None else f"a value of type {type(value).__name__}: {value!r:.80}")
    if isinstance(state.get("methods"), list):
        return _spoken(value, [method.get("name") for method in state["methods"]])
    if value == "claim_draw":
        return [{"action": value}]
    found = _BRACKETED.search(value)
    return [{"action": "move", "move": (found[1] if found else value).strip()}]


def _spoken(text: str, methods: list[Any]) -> list[dict[str, Any]]:
    """Returns the actions of a text in a challenge: `METHOD: CONTENT` calls a method, other text is chat."""
    text = text.strip()
    inner = text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
    name, colon, content = inner.partition(":")
    if name.strip() in methods and (colon or inner == name):
        return [{"action": name.strip(), "content": content.strip()}]
    return [{"action": "chat", "content": text}] if text else []


def _refuse(what: str) -> Any:
    raise TypeError(what)


class NoFunctionError(Exception):
    """The error for a module without the function."""


class Player:
    """A function on the seat of one match."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Determines the arguments that the function expects.

        Args:
            function: A function, a class that makes a callable object, or such an object.
        """
        if isinstance(function, type):
            function = function()
        self.function = function
        self.name = str(getattr(function, "__name__", type(function).__name__))
        is_object = not inspect.isroutine(function)
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        self._takes_any = any(one.kind is one.VAR_POSITIONAL for one in parameters)
        self._places = len(places)
        first = places[0] if len(places) == 1 else None
        #: True if the function receives a text and returns one.
        self.reads_text = first is not None and (
            first.annotation in (str, "str")
            or (is_object and first.name == "observation" and first.annotation is first.empty)
        )
        self.config = self._configuration = Struct()
        self._me = ""
        self._heard: list[str] = []

    def sit(self, me: str, config: dict[str, Any]) -> None:
        """Gives the function its agent's id and the game's constants."""
        self._me, self.config = me, Struct(config)
        self._configuration = Struct(config, actTimeout=config.get("step_time_limit", 0) / 1000)
        if config.get("n_epochs", 0) > 0:
            self._configuration["episodeSteps"] = config["n_epochs"]
        self._heard = []

    def call(self, state: dict[str, Any]) -> Any:
        """Calls the function with a state, in the form that it expects, and returns its result."""
        state.setdefault("you", self._me)
        if self.reads_text:
            return self.function(self._text(state))
        if self._takes_any or self._places >= 2:
            return self.function(*self._kaggle(state))
        if self._places == 1:
            state["config"] = self.config
            return self.function(Struct(state))
        return self.function()

    def _kaggle(self, state: dict[str, Any]) -> list[Struct]:
        """Returns `observation` and `configuration`."""
        ids = state.get("agent_ids", [])
        observation = Struct(
            state,
            step=state.get("epoch", 1) - 1,
            player=ids.index(self._me) if self._me in ids else 0,
            remainingOverageTime=state.get("remaining_overage_ms", 0) / 1000,
        )
        return [observation, self._configuration]

    def _text(self, state: dict[str, Any]) -> str:
        """Returns the state as a text. In challenges, it begins with the rules and all earlier messages."""
        text = text_of(state, self.config, not self._heard)
        if not isinstance(state.get("methods"), list):
            return text
        self._heard.append(text)
        return "\n".join(filter(None, self._heard))


def text_of(state: dict[str, Any], config: dict[str, Any], is_first: bool) -> str:
    """Returns a state as a text, for functions and models that read texts.

    Args:
        state: The state, with the agent's id as `you`.
        config: The game's constants.
        is_first: True for the agent's first state. In challenges, its text contains the rules, and later texts
            contain only news.
    """
    if not isinstance(state.get("methods"), list):
        shown = json.dumps({key: value for key, value in state.items() if key != "agent_ids"})
        return f"You are {state['you']} in {config.get('game_name')}. The state:\n{shown}\nAnswer with your move."
    lines = []
    if is_first:
        methods = [f"- {method.get('name')}: {method.get('description', '')}" for method in state["methods"]]
        lines = [str(state.get("prompt", "")), "Methods:", *methods, f"You are {state['you']}."]
        lines.append("Answer with `METHOD: CONTENT` to call a method. Any other text is chat with all players.")
    for message in state.get("messages", []):
        to = f" to {message['to']}" if message.get("to") else ""
        lines.append(f"{message.get('from')}{to}: {message.get('content')}")
    for refused in state.get("rejected", []):
        lines.append(f"Refused, {refused.get('code')}: {refused.get('error')}")
    return "\n".join(lines)


def load(file: str, module: str, function: str) -> Callable[..., Any]:
    """Loads a function.

    Args:
        file: The path of the Python file.
        module: The name under which the file is imported, such as `package.module`. If empty, the file is loaded by
            its path.
        function: The function's name in the module. If empty, the last callable of the module is loaded.

    Raises:
        NoFunctionError: If the module has no such function.
    """
    file = os.path.abspath(file)
    folder = os.path.dirname(file)
    for _ in range(module.count(".") + (os.path.basename(file) == "__init__.py" and module != "")):
        folder = os.path.dirname(folder)
    if sys.path[:1] == [""]:
        del sys.path[0]
    sys.path.insert(0, folder)
    if module:
        loaded = importlib.import_module(module)
    else:
        # A name of its own, because a file may have the name of a module that it imports.
        spec = importlib.util.spec_from_file_location("__agent__", file)
        if spec is None or spec.loader is None:
            raise NoFunctionError(f"{file} is no Python file")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules["__agent__"] = loaded
        spec.loader.exec_module(loaded)
    if function:
        found: Any = loaded
        for part in function.split("."):
            found = getattr(found, part, None)
    else:
        found = next((one for one in reversed(list(vars(loaded).values())) if callable(one)), None)
    if not callable(found):
        what = f"no function `{function}`" if function else "no function at all"
        raise NoFunctionError(f"{module or file} contains {what}")
    return found  # type: ignore[no-any-return]


def main(file: str, module: str, function: str, name: str) -> None:
    """Plays one match over stdin and stdout, and returns at its end.

    Stdin and stdout are reserved for the protocol. The function's own output goes to stderr, and its input is empty.
    """
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    sys.argv = [file]
    process = os.getpid()
    try:
        player = Player(load(file, module, function))
    except NoFunctionError as error:
        sys.exit(str(error))
    version = str(getattr(sys.modules.get(module or "__agent__"), "__version__", "1"))
    me: str | None = None
    for line in requests:
        message = json.loads(line)
        if "stop" in message:
            return
        reply: dict[str, Any] = {}
        if "ping" in message:
            reply["pong"] = "pong"
        if "set_agent_id" in message:
            me = message["set_agent_id"]
            player.sit(me, message.get("config") or {})
            reply.update(agent_id=me, agent_name=name, agent_version=version)
        state = message.get("world_state", message if "epoch" in message else None)
        if state is None or me is None:
            answer = json.dumps(reply)
        else:
            reply["agent_id"] = me
            answer = _answer(player, state, json.dumps(reply))
            if os.getpid() != process:
                os._exit(1)
        answers.write(answer.encode("ascii") + b"\n")
        answers.flush()


def _answer(player: Player, state: dict[str, Any], reply: str) -> str:
    """Adds the actions to a reply. After an error, adds a fault, and prints the traceback to stderr."""
    try:
        value = player.call(state)
    except (Exception, SystemExit) as error:
        # The frames of this file explain nothing to the function's author.
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == _HERE:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        return _with_fault(reply, f"{player.name} raised {type(error).__name__}: {error}")
    try:
        actions = _ENCODE(actions_of(value, state))
    except (TypeError, ValueError, RecursionError) as error:
        fault = f"{player.name} returned {error}"
        print(fault, file=sys.stderr)
        return _with_fault(reply, fault)
    answer = f'{reply[:-1]},"actions":{actions}}}'
    if len(answer) >= MOST_BYTES:
        return _with_fault(reply, f"{player.name} returned actions of {len(answer)} bytes; {MOST_BYTES} are allowed")
    return answer


def _with_fault(reply: str, fault: str) -> str:
    return f'{reply[:-1]},"actions":[],"fault":{json.dumps(fault[:300])}}}'


def _number(value: Any) -> Any:
    converted = plain(value)
    if converted is value:
        raise TypeError(f"a value of type {type(value).__name__} in an action")
    return converted


_ENCODE = json.JSONEncoder(allow_nan=False, default=_number, separators=(",", ":")).encode
_HERE = _number.__code__.co_filename

if __name__ == "__main__":
    main(*sys.argv[1:])
