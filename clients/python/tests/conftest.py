"""A real arena for the tests: the binary, on a free port of the loopback, with its store in a temporary folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import arena_agents
from arena_agents import Arena, Message, Seat

#: The package under test.
PACKAGE = Path(__file__).parents[1]

#: The binary under test. `cargo test` sets the variable; without it, the binary of `cargo build` is used.
BINARY = os.environ.get("ARENA_BINARY") or str(Path(__file__).parents[3] / "target/debug/arena")

#: The extension module: `cargo test` sets the variable; without it, that of `cargo build -p arena-python` is used. A
#: link gives it the name under which Python imports it.
RULES = os.environ.get("ARENA_RULES") or str(Path(BINARY).with_name("libarena_python.so"))
_MODULES = tempfile.TemporaryDirectory()
(Path(_MODULES.name) / "_rules.abi3.so").symlink_to(RULES)
arena_agents.__path__.append(_MODULES.name)

#: Longest time for any operation, in seconds. It is generous because build machines are slow.
PATIENCE_S = 60.0

#: Environment variables that would change the behavior of the binary or the client.
UNWANTED = re.compile(r"ARENA_.*|AUTH_SECRET|ADMIN_TOKEN|PORT|(https?|all|no)_proxy", re.IGNORECASE)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not UNWANTED.fullmatch(name)}


def command(*args: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the binary to its end."""
    env = environment() | ({} if home is None else {"HOME": str(home)})
    return subprocess.run(
        [BINARY, *args], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * PATIENCE_S
    )


class Server:
    """An arena that runs until it is stopped, and may be started again at the same address."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self.options = options
        self.url = ""
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        address = self.url.removeprefix("http://") or "127.0.0.1:0"
        self._process = subprocess.Popen(
            [BINARY, "serve", "--listen", address, "--data", str(self.data), *self.options],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("arena listens on "):
                self.url = line.removeprefix("arena listens on ").strip()
                return
        raise AssertionError(f"the server ended with {self._process.wait()}")

    def end(self, how: signal.Signals) -> None:
        """Ends the process, by its id."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(PATIENCE_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def stop(self) -> None:
        if self._process is not None:
            self.kill()


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if UNWANTED.fullmatch(name) and name != "ARENA_BINARY"]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that tests share if they don't depend on the data of other tests."""
    server = Server(tmp_path_factory.mktemp("shared"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def shared_with_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server in authentication mode, for all tests."""
    server = Server(tmp_path_factory.mktemp("keys"), "--auth")
    yield server
    server.stop()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server for one test, which may kill it."""
    server = Server(tmp_path / "data")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built package, installed as a bot's author does it: without httpx."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheel = ["wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder / "wheel")]
    subprocess.run([*pip, *wheel, str(PACKAGE)], check=True, timeout=2 * PATIENCE_S)
    [built] = (folder / "wheel").glob("*.whl")
    target = ["install", "--no-index", "--no-deps", "--target", str(folder / "bot"), str(built)]
    subprocess.run([*pip, *target], check=True, timeout=2 * PATIENCE_S)
    return folder / "bot"


@pytest.fixture
def arena(shared: Server) -> Iterator[Arena]:
    with Arena(shared.url) as arena:
        yield arena


@pytest.fixture
def arena_with_keys(shared_with_keys: Server) -> Iterator[Arena]:
    with Arena(shared_with_keys.url) as arena:
        yield arena


def numbers_in(text: str) -> set[int]:
    return {int(digits) for digits in re.findall(r"\d+", text)}


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.content for message in messages]


def private_set(seat: Seat) -> set[int]:
    """Returns the numbers that the operator dealt to a player of PSI."""
    [told] = [text for text in texts(seat.sync_operator(wait_s=20)) if text.startswith("Your private set is: ")]
    return numbers_in(told)


def pair(arena: Arena, *names: str) -> list[Seat]:
    """A game of PSI that has begun."""
    session = arena.create("psi")
    return [
        arena.join(invite, user_id=name) for invite, name in zip(session.invites, names or ("ada", "bob"), strict=True)
    ]


class InThread:
    """A function that runs in a thread, and its result."""

    def __init__(self, work: object, *args: object) -> None:
        self._error: BaseException | None = None
        self._result: object = None

        def run() -> None:
            try:
                assert callable(work)
                self._result = work(*args)
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def result(self) -> object:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the thread goes on"
        if self._error is not None:
            raise self._error
        return self._result
