"""Functions as agents: the forms of functions, their results, and matches that the arena plays with them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from arena_agents import functions
from arena_agents.functions import Player, actions_of
from conftest import PATIENCE_S, command

SNAKE: dict[str, Any] = {"epoch": 1, "snakes": {}, "agent_ids": ["b", "me"], "remaining_overage_ms": 1500}
CHESS: dict[str, Any] = {"epoch": 3, "legal_moves": ["e2e4", "d2d4"]}
PSI: dict[str, Any] = {
    "epoch": 1,
    "you": "inv_1",
    "prompt": "Find common numbers.",
    "methods": [{"name": "guess", "description": "numbers"}],
    "messages": [{"from": "operator", "to": "inv_1", "content": "Your private set is: {1}"}],
    "rejected": [],
}


class Scalar:
    """A number as NumPy has it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def tolist(self) -> Any:
        return self._value


@pytest.mark.parametrize(
    ("value", "state", "actions"),
    [
        ("UP", SNAKE, [{"action": "move", "move": "UP"}]),
        (" my answer: [LEFT]\n", SNAKE, [{"action": "move", "move": "LEFT"}]),
        (2, SNAKE, [{"action": "move", "move": "DOWN"}]),
        (Scalar(1), CHESS, [{"action": "move", "move": "d2d4"}]),
        (Scalar([0]), SNAKE, [{"action": "move", "move": "UP"}]),
        ("claim_draw", CHESS, [{"action": "claim_draw"}]),
        ({"move": "UP"}, SNAKE, [{"action": "move", "move": "UP"}]),
        ([{"action": "a"}, {"action": "b"}], SNAKE, [{"action": "a"}, {"action": "b"}]),
        ([], SNAKE, []),
        ("guess: 1, 2", PSI, [{"action": "guess", "content": "1, 2"}]),
        ("[guess: 1]", PSI, [{"action": "guess", "content": "1"}]),
        ("I guess: no", PSI, [{"action": "chat", "content": "I guess: no"}]),
        ("", PSI, []),
        (["hello", "guess: 1"], PSI, [{"action": "chat", "content": "hello"}, {"action": "guess", "content": "1"}]),
    ],
)
def test_results_mean_actions(value: Any, state: dict[str, Any], actions: list[dict[str, Any]]) -> None:
    assert actions_of(value, state) == actions


@pytest.mark.parametrize(
    ("value", "state", "what"),
    [
        (None, SNAKE, "None"),
        (True, SNAKE, "type bool"),
        (4, SNAKE, "4 directions"),
        (-1, CHESS, "2 moves"),
        (1.5, SNAKE, "type float"),
        ({"direction": "UP"}, SNAKE, "without `action`"),
        ([None], SNAKE, "None"),
    ],
)
def test_other_results_mean_none(value: Any, state: dict[str, Any], what: str) -> None:
    with pytest.raises(TypeError, match=what):
        actions_of(value, state)


def seen(function: Any, state: dict[str, Any], config: dict[str, Any] | None = None) -> Any:
    """Returns the function's result in a state."""
    player = Player(function)
    player.sit("me", config or {})
    return player.call(dict(state))


def test_a_plain_function_receives_the_state() -> None:
    told = seen(lambda state: (state["you"], state.you, state.config.width), SNAKE, {"width": 5})
    assert told == ("me", "me", 5)
    assert seen(lambda: "UP", SNAKE) == "UP"


def test_a_function_of_kaggle_receives_observation_and_configuration() -> None:
    def agent(observation: Any, configuration: Any) -> Any:
        return (
            observation.step,
            observation["player"],
            observation.remainingOverageTime,
            configuration.episodeSteps,
            configuration["actTimeout"],
            observation.nested.deep[0].x,
        )

    state = SNAKE | {"nested": {"deep": [{"x": 1}]}}
    assert seen(agent, state, {"n_epochs": 9, "step_time_limit": 2000}) == (0, 1, 1.5, 9, 2.0, 1)


def test_an_agent_of_textarena_receives_texts() -> None:
    class Agent:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, observation: str) -> str:
            self.calls += 1
            return f"{self.calls}: {observation}"

    player = Player(Agent)
    player.sit("me", {"game_name": "psi"})
    first = player.call(dict(PSI))
    assert first.startswith("1: Find common numbers.")
    assert "- guess: numbers" in first
    assert "operator to inv_1: Your private set is: {1}" in first
    news = PSI | {"messages": [{"from": "b", "content": "hi"}], "rejected": [{"code": "BAD", "error": "no"}]}
    second = player.call(news)
    assert second.startswith("2: Find common numbers.")
    assert second.endswith("Your private set is: {1}\nb: hi\nRefused, BAD: no")
    assert '"snakes"' in seen(Agent(), SNAKE)

    def reads_text(state: str) -> str:
        return state

    assert isinstance(seen(reads_text, CHESS), str)


def shim(tmp_path: Path, code: str, states: list[dict[str, Any]], function: str = "") -> tuple[list[Any], str, int]:
    """Returns the answers of the program to a handshake and states, its log, and its exit code."""
    (tmp_path / "bot.py").write_text(code)
    messages = [{"ping": "ping"}, {"set_agent_id": "me", "config": {}}, *({"world_state": one} for one in states)]
    done = subprocess.run(
        [sys.executable, "-c", Path(functions.__file__).read_text(), str(tmp_path / "bot.py"), "", function, "bot"],
        input="".join(json.dumps(message) + "\n" for message in messages),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd="/",
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr, done.returncode


@pytest.mark.parametrize(
    ("body", "fault", "log"),
    [
        ("raise ValueError('bad')", "agent raised ValueError: bad", 'bot.py", line'),
        ("raise SystemExit(3)", "agent raised SystemExit: 3", "SystemExit"),
        ("input()", "agent raised EOFError: EOF when reading a line", "EOFError"),
        ("return None", "agent returned None", "returned None"),
        ("return {'action': float('nan')}", "agent returned Out of range float values", "Out of range"),
        ("return {'action': object()}", "agent returned a value of type object in an action", "type object"),
        ("loop = []; loop.append(loop); return {'action': loop}", "agent returned Circular reference", "Circular"),
        ("return {'action': 'x' * 1048576}", "agent returned actions of 10486", ""),
    ],
)
def test_errors_are_faults_and_leave_the_agent_in_the_game(tmp_path: Path, body: str, fault: str, log: str) -> None:
    code = f"def agent(state):\n    if state.epoch > 1: return 'UP'\n    {body}\n"
    answers, told, exit_code = shim(tmp_path, code, [SNAKE, SNAKE | {"epoch": 2}])
    assert answers[0] == {"pong": "pong"}
    assert answers[1]["agent_name"] == "bot"
    assert answers[2]["actions"] == []
    assert answers[2]["fault"].startswith(fault)
    assert answers[3] == {"agent_id": "me", "actions": [{"action": "move", "move": "UP"}]}
    assert log in told
    assert "<string>" not in told
    assert exit_code == 0


def test_output_of_functions_and_of_their_children_goes_to_the_log(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys\nprint('imported')\n"
        "def agent(state):\n    print('thinking')\n    os.write(1, b'from C\\n')\n"
        "    subprocess.run([sys.executable, '-c', 'print(\"child\")'])\n    return 'UP'\n"
    )
    answers, told, _ = shim(tmp_path, code, [SNAKE])
    assert len(answers) == 3
    assert sorted(told.split()) == ["C", "child", "from", "imported", "thinking"]


def test_a_copy_of_the_process_doesnt_answer(tmp_path: Path) -> None:
    code = "import os\ndef agent(state):\n    os.fork()\n    return 'UP'\n"
    answers, _, exit_code = shim(tmp_path, code, [SNAKE, SNAKE | {"epoch": 2}])
    assert (len(answers), exit_code) == (4, 0)


def test_the_last_callable_plays_if_no_function_is_named(tmp_path: Path) -> None:
    code = "def first(state): return 'UP'\nclass Team:\n    @staticmethod\n    def left(state): return 'LEFT'\n"
    code += "def last(state): return 'DOWN'\nnumber = 1\n"
    for function, move in (("", "DOWN"), ("first", "UP"), ("Team.left", "LEFT")):
        answers, _, _ = shim(tmp_path, code, [SNAKE], function)
        assert answers[2]["actions"] == [{"action": "move", "move": move}]
    answers, told, exit_code = shim(tmp_path, code, [SNAKE], "absent")
    assert (answers, exit_code) == ([], 1)
    assert "contains no function `absent`" in told
    assert "Traceback" not in told


def written(tmp_path: Path, code: str) -> str:
    """Returns the agent that is a function of a new file. Agents read files in folders that all users may read."""
    folder = tmp_path / "bots"
    folder.mkdir()
    (folder / "bot.py").write_text(code)
    return f"py:{folder}/bot.py:agent"


def match(tmp_path: Path, code: str, game: str = "snake", *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the results of a function and of the house bot in a match between them."""
    agents = ["--agent", written(tmp_path, code), "--agent", "house"]
    played = command("match", "run", game, *agents, "--seed", "3", "--json", *options)
    assert played.returncode == 0, played.stderr
    scores = {score["agent_path"]: score for score in json.loads(played.stdout)["scores"]}
    return scores[agents[1]], scores["house"]


def test_the_arena_plays_functions(tmp_path: Path) -> None:
    code = "import random\nprint('noise')\n"
    code += "def agent(observation, configuration):\n    return observation.legal_moves[0]\n"
    seat, _ = match(tmp_path, code, "chess")
    assert (seat["name"], seat["faults"], seat["tainted"]) == ("bot", 0, False)


def test_the_arena_plays_functions_from_texts_to_texts(tmp_path: Path) -> None:
    code = "def agent(observation: str) -> str:\n    return 'hello' if 'hello' not in observation else 'guess: 1'\n"
    seat, _ = match(tmp_path, code, "psi")
    assert (seat["faults"], seat["tainted"]) == (0, False)


@pytest.mark.parametrize(
    ("code", "verdict", "detail"),
    [
        ("def agent(state): raise ValueError('bad')", "TOO_MANY_ERRORS", "agent raised ValueError: bad"),
        ("def agent(state): return None", "TOO_MANY_ERRORS", "agent returned None"),
        ("import os\ndef agent(state): os._exit(5)", "CRASHED", "exited with code 5"),
        ("import time\ndef agent(state): time.sleep(60)", "TIMEOUT", ""),
        ("import absent_module", "STARTUP_FAIL", "exited with code 1"),
    ],
)
def test_functions_are_blamed_for_their_errors(tmp_path: Path, code: str, verdict: str, detail: str) -> None:
    options = ["--set", "n_epochs=40", "--step-ms", "2000", "--bank-ms", "0"]
    seat, other = match(tmp_path, code, "food_catcher", *options)
    assert seat["tainted_reason"] == verdict
    assert detail in json.dumps(seat)
    assert not other["tainted"]


def test_the_check_names_the_error_of_a_function(tmp_path: Path) -> None:
    agent = written(tmp_path, "def agent(state):\n    return 7\n")
    checked = command("agent", "check", agent, "--game", "snake")
    assert checked.returncode == 12
    assert "agent returned 7, but there are 4 directions" in checked.stdout
    (tmp_path / "bots/bot.py").write_text("def agent(state):\n    return 0\n")
    checked = command("agent", "check", agent, "--game", "snake")
    assert checked.returncode == 0, checked.stdout


def test_functions_of_packages_play_tournaments_which_notice_changes_of_the_package(tmp_path: Path) -> None:
    package = tmp_path / "agents/pack"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("MOVE = 'UP'\n")
    (package / "mod.py").write_text("from .helper import MOVE\ndef agent(state):\n    return MOVE\n")
    agents = ["--agent", f"py:{tmp_path}/agents/pack.mod:agent", "--agent", "house"]
    folder = tmp_path / "cup"
    run = ["tournament", "run", "snake", *agents, "--rounds", "1", "--out", str(folder), "--set", "n_epochs=30"]
    played = command(*run)
    assert played.returncode == 0, played.stderr
    [journal] = folder.glob("*.jsonl")
    plan = json.loads(journal.read_text().splitlines()[0])
    assert plan["agents"][0]["files"] == [str(package.resolve())]
    # The tournament is resumed without its last game.
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    (package / "helper.py").write_text("MOVE = 'DOWN'\n")
    again = command("tournament", "resume", str(folder))
    assert again.returncode != 0
    assert "have changed" in again.stderr
