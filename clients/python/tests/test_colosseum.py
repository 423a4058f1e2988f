"""Bots: the protocol over stdin and stdout, line by line, and in matches that the arena plays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import PACKAGE, PATIENCE_S, command

PING = '{"ping":"ping"}'
ID = '{"set_agent_id":"a1","config":{"n_epochs":3}}'
STOP = '{"stop":{"reason":"end_of_game"}}'
HELLO = ['{"pong": "pong"}', '{"agent_id": "a1", "agent_name": "bot", "agent_version": "1"}']


def talk(tmp_path: Path, decide: str, *lines: str | bytes) -> tuple[list[str], str]:
    """Returns a bot's answers on stdout, and its log on stderr."""
    bot = tmp_path / "bot.py"
    bot.write_text(f"from arena_agents.colosseum import run\n{decide}\nrun(decide)\n")
    sent = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
    done = subprocess.run(
        [sys.executable, "-B", bot],
        input=sent,
        capture_output=True,
        timeout=PATIENCE_S,
        env=os.environ | {"PYTHONPATH": str(PACKAGE / "src")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines(), done.stderr.decode()


ECHO = "def decide(me, state, config):\n    return [{'me': me, 'state': state, 'config': config}]"


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ('{"world_state":{"epoch":1},"epoch":1}', '{"agent_id": "a1", "actions": [%s]}'),
        ('{"world_state":{"epoch":1}}', '{"agent_id": "a1", "actions": [%s]}'),
        ('{"epoch":1}', '{"agent_id": "a1", "actions": [%s]}'),
        ('{"epoch":1,"ping":"x"}', '{"pong": "pong", "agent_id": "a1", "actions": [%s]}'),
        ('{"world_state":{"epoch":1},"ping":"x"}\r', '{"pong": "pong", "agent_id": "a1", "actions": [%s]}'),
        ('{"of tomorrow":1}', None),
        ("[1]", None),
        ("{", None),
        ("[" * 100_000, None),
        (b'{"world_state":"\xff"}', None),
    ],
)
def test_states_are_found_in_every_dialect_and_rubbish_is_passed_over(
    tmp_path: Path, message: str | bytes, answer: str | None
) -> None:
    told, _ = talk(tmp_path, ECHO, PING, ID, message, STOP)
    echo = '{"me": "a1", "state": {"epoch": 1}, "config": {"n_epochs": 3}}'
    assert told == [*HELLO, *([] if answer is None else [answer % echo])]


def test_the_end_of_stdin_is_the_end_too(tmp_path: Path) -> None:
    assert talk(tmp_path, ECHO, PING, ID)[0] == HELLO
    assert talk(tmp_path, ECHO, PING, STOP, ID)[0] == HELLO[:1]


@pytest.mark.parametrize(
    ("body", "log"),
    [
        ("raise RuntimeError('lost')", "RuntimeError: lost"),
        ("return [{'x': float('nan')}]", "ValueError"),
        ("return [{'x': object()}]", "TypeError: a value of type object cannot be written as JSON"),
        ("return None", "TypeError"),
        ("return {'action': 'move'}", "must return a list of actions"),
        ("return [{'x': 'y' * 1024 * 1024}]", "at most 1048576 are allowed"),
    ],
)
def test_what_goes_wrong_in_an_epoch_costs_that_epoch(tmp_path: Path, body: str, log: str) -> None:
    decide = f"def decide(me, state, config):\n    if state['epoch'] > 1: return [{{'ok': 1}}]\n    {body}"
    told, said = talk(tmp_path, decide, PING, ID, '{"epoch":1}', '{"epoch":2}', STOP)
    assert told == [*HELLO, '{"agent_id": "a1", "actions": []}', '{"agent_id": "a1", "actions": [{"ok": 1}]}']
    assert log in said


def test_nothing_that_is_printed_gets_between_the_answers(tmp_path: Path) -> None:
    decide = (
        "import os, subprocess, sys\n"
        "from arena_agents.colosseum import guard_stdout\n"
        "guard_stdout()\n"
        "print('imported')\n"
        "def decide(me, state, config):\n"
        "    print('thinking')\n"
        "    os.write(1, b'from C\\n')\n"
        "    subprocess.run([sys.executable, '-c', 'print(\"child\")'])\n"
        "    return []"
    )
    told, said = talk(tmp_path, decide, PING, ID, '{"epoch":1}', STOP)
    assert told == [*HELLO, '{"agent_id": "a1", "actions": []}']
    assert sorted(said.split("\n")) == ["", "child", "from C", "imported", "thinking"]


def test_numbers_of_libraries_are_understood(tmp_path: Path) -> None:
    decide = (
        "class Scalar:\n    def tolist(self): return 7\n"
        "def decide(me, state, config):\n    yield {'target': Scalar()}"
    )  # fmt: skip
    assert talk(tmp_path, decide, ID, '{"epoch":1}')[0][1] == '{"agent_id": "a1", "actions": [{"target": 7}]}'


BOT = """
from arena_agents.colosseum import run

def decide(me, state, config):
    print("epoch", state["epoch"])
    return [{"action": "move", "move": "UP"}]

run(decide, name="upwards", version="2")
"""


@pytest.mark.parametrize("dialect", ["both", "spec", "flat"])
def test_the_arena_plays_bots_that_bring_the_installed_package(tmp_path: Path, installed: Path, dialect: str) -> None:
    assert (installed / "arena_agents/py.typed").is_file()
    bot = tmp_path / "bot"
    shutil.copytree(installed, bot)
    (bot / "agent.py").write_text(BOT)
    (bot / "manifest.json").write_text(json.dumps({"dialect": dialect}))
    checked = command("agent", "check", str(bot), "--game", "snake")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    played = command("match", "run", "snake", "--agent", str(bot), "--agent", str(bot), "--seed", "3", "--json")
    assert played.returncode == 0, played.stderr
    result = json.loads(played.stdout)
    assert not result["has_tainted_agent"]
    assert [(seat["name"], seat["version"], seat["faults"]) for seat in result["scores"]] == [("upwards", "2", 0)] * 2
