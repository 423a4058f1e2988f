"""Writes `client.py`, the client without asyncio, from `aio.py`: `python tools/make_client.py`.

The two clients differ in the words below and in nothing else. Change `aio.py` and run this script;
a test fails while `client.py` is out of date. Needs ruff, which formats the result.
"""

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "arena_agents"

# Patterns in `aio.py` and their replacements in `client.py`, in the order of application.
WORDS = [
    (
        r"`AsyncArena`, the client for asyncio; `Arena` in `arena_agents.client` has the same calls, blocking.",
        "`Arena`, the blocking client; `!Arena` in `arena_agents.aio` has the same calls for !io.",
    ),
    (r"A client belongs to one event loop\.", "Several threads may share a client."),
    (r"an `async with` statement", "a `with` statement"),
    (r" for example with `contextlib\.aclosing`", " for example with `contextlib.closing`"),
    (r"It is awaited, one message", "It is called in this thread, one message"),
    (r"async (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAwaitable, ", ""),
    (r"\bAwaitable\[object\]", "object"),
    (r"\bAsyncGenerator\[([^\[\]]*)\]", r"Generator[\1, None]"),
    (r"\bAsync(Arena|Seat|Generator|Client)\b", r"\1"),
    (r"!Arena", "AsyncArena"),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\basyncio\b", "time"),
    (r"!io", "asyncio"),
    (r"\bfollow_async\b", "follow"),
]


def client(aio: str) -> str:
    """Returns the text of `client.py` for a text of `aio.py`."""
    for pattern, replacement in WORDS:
        aio = re.sub(pattern, replacement, aio)
    for tool in (["check", "--select", "I", "--fix-only", "--quiet"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *tool, "--no-cache", "--stdin-filename", "client.py", "-"]
        aio = subprocess.run(command, input=aio, capture_output=True, text=True, check=True).stdout
    return aio


if __name__ == "__main__":
    (PACKAGE / "client.py").write_text(client((PACKAGE / "aio.py").read_text()))
