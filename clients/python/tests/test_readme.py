"""The README's programs run and print the expected output."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from arena_agents import Arena
from conftest import PACKAGE, PATIENCE_S, Server, command, environment

#: The programs by the headings above them.
PROGRAMS = dict(
    re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", (PACKAGE / "README.md").read_text(), re.M | re.S)
)


#: Starts a program of the README against an arena, with arguments.
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs that are ended with the test."""
    with ExitStack() as programs:

        def start(program: str, url: str, *args: str) -> subprocess.Popen[str]:
            text = program.replace("http://127.0.0.1:3001", url)
            assert text != program, "the program names no address"
            env = environment() | {"PYTHONPATH": str(PACKAGE / "src")}
            command = [sys.executable, "-B", "-c", text, *args]
            process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            programs.enter_context(process)
            programs.callback(process.kill)
            return process

        yield start


def printed(process: subprocess.Popen[str]) -> str:
    told, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    return told


def test_there_is_a_program_under_each_of_these_headings() -> None:
    assert list(PROGRAMS) == [
        "An agent",
        "Games from one program",
        "Many at once",
        "Watching",
        "With keys",
        "When something goes wrong",
        "An agent over stdin and stdout",
    ]


def test_two_agents_play(start: Start, shared: Server, arena: Arena) -> None:
    agents = [
        start(PROGRAMS["An agent"], shared.url, invite, f"agent {number}")
        for number, invite in enumerate(arena.create("psi").invites)
    ]
    assert [printed(agent) for agent in agents] == ["Score(security=1.0, utility=1.0)\n"] * 2


@pytest.mark.parametrize(
    ("heading", "prints"),
    [
        ("Games from one program", r"Your wealth is .*I am rather poor\..*Score\(.*ada 1 \{'average:security': "),
        ("Many at once", r"(\(Score\([^\n]*\)\)\n){20}"),
        ("Watching", r"1 inv_.*: (I am rather poor\.)?\nthe end"),
        ("When something goes wrong", r"400 UNKNOWN_CHALLENGE Unknown challenge type: no such game None"),
    ],
)
def test_programs_print_what_they_are_about(start: Start, own: Server, heading: str, prints: str) -> None:
    if heading == "Watching":
        printed(start(PROGRAMS["Games from one program"], own.url))
    told = printed(start(PROGRAMS[heading], own.url))
    assert re.search(prints, told, re.S), told


def test_identities_are_shown(start: Start, shared_with_keys: Server) -> None:
    assert printed(start(PROGRAMS["With keys"], shared_with_keys.url)) == "1 Ada\n"


def test_the_bot_plays(tmp_path: Path, installed: Path) -> None:
    bot = tmp_path / "bot"
    shutil.copytree(installed, bot)
    (bot / "agent.py").write_text(PROGRAMS["An agent over stdin and stdout"])
    played = command("match", "run", "snake", "--agent", str(bot), "--agent", str(bot), "--seed", "1", "--json")
    result = json.loads(played.stdout)
    assert [(seat["name"], seat["faults"], seat["tainted"]) for seat in result["scores"]] == [("coward", 0, False)] * 2
