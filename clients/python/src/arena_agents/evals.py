"""Results of `arena eval`: reads the folder of a run, and exports it for other programs.

The folder has these files of JSON lines: `journal.jsonl` (results of games), `calls.jsonl` (answers of models) and
`transcripts.jsonl` (messages of games). This module reads version 1 of them.
It needs no other package; the export to Parquet needs pyarrow, and the export to Inspect logs needs inspect_ai:
`pip install 'arena-agents[evals]'`. Seats and seeds are numbered from 0 here, as in the files.

    python -m arena_agents.evals DIR --format parquet --out tables
    python -m arena_agents.evals DIR --format inspect --out logs
    python -m arena_agents.evals DIR --format every-eval-ever --out results

A finished game stays in the folder when the user removes or changes its model or challenge in the run file. As in
`arena eval report`, such games are left out; `EvalRun.outdated` has them.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, TypeVar

T = TypeVar("T")

#: The version of the run's files that this module reads.
VERSION = 1

#: The version of the schema of Every Eval Ever (https://github.com/evaleval/every_eval_ever) that is written.
EVERY_EVAL_EVER = "0.2.1"

#: The smallest number of seeds with a standard error, as in `arena eval report`.
MIN_SEEDS = 10

#: The number of rows that are in memory when a table is written.
ROWS = 4096

#: The relationships between evaluator and model in Every Eval Ever.
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")

#: The ending of the name of a model that plays under a second name.
AGAIN = " (again)"


class EvalFileError(Exception):
    """A file of a run that is missing, malformed or of another version. The text names the file and the line."""


class MissingPackageError(ImportError):
    """An optional package that an export needs. The text has the command that installs it."""


class _Object:
    """A JSON object. A missing field, or one of another type, raises `ValueError`."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"expected an object, not {value!r:.60}")
        self._fields: Mapping[str, Any] = value

    def find(self, name: str, *kinds: type) -> Any:
        value = self._fields.get(name)
        # In Python, `True` is an `int`.
        if value is None or (isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))):
            return value
        raise ValueError(f"unexpected {name}: {value!r:.60}")

    def _get(self, name: str, *kinds: type) -> Any:
        value = self.find(name, *kinds)
        if value is None:
            raise ValueError(f"{name} is missing")
        return value

    def text(self, name: str) -> str:
        return str(self._get(name, str))

    def find_text(self, name: str) -> str | None:
        value = self.find(name, str)
        return None if value is None else str(value)

    def integer(self, name: str) -> int:
        return int(self._get(name, int))

    def find_integer(self, name: str) -> int | None:
        value = self.find(name, int)
        return None if value is None else int(value)

    def number(self, name: str) -> float:
        return float(self._get(name, int, float))

    def find_number(self, name: str) -> float | None:
        value = self.find(name, int, float)
        return None if value is None else float(value)

    def flag(self, name: str) -> bool:
        return bool(self.find(name, bool))

    def list_of(self, name: str, parse: Callable[[Any], T]) -> tuple[T, ...]:
        return tuple(parse(item) for item in self.find(name, list) or ())

    def object(self, name: str) -> dict[str, Any]:
        return dict(self.find(name, dict) or {})


@dataclass(frozen=True)
class Usage:
    """Numbers of tokens. `input` includes `cached`, and `output` includes `reasoning`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    #: True if the endpoint counted no tokens for a part of these numbers.
    is_estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        """Adds two numbers of tokens."""
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.reasoning + other.reasoning,
            self.is_estimated or other.is_estimated,
        )

    @classmethod
    def _of(cls, value: object) -> Usage:
        fields = _Object(value)
        return cls(
            input=fields.integer("input"),
            cached=fields.integer("cached"),
            output=fields.integer("output"),
            reasoning=fields.integer("reasoning"),
            is_estimated=fields.flag("is_estimated"),
        )


@dataclass(frozen=True)
class Measured:
    """The numbers of a seat that depend on the endpoint and the clock."""

    calls: int
    retries: int
    invalid: int
    refusals: int
    truncated: int
    usage: Usage
    #: The cost in US dollars; None without known prices.
    usd: float | None
    #: The total time of the calls in milliseconds.
    ms: int

    @classmethod
    def _of(cls, value: object) -> Measured:
        fields = _Object(value)
        return cls(
            calls=fields.integer("calls"),
            retries=fields.integer("retries"),
            invalid=fields.integer("invalid"),
            refusals=fields.integer("refusals"),
            truncated=fields.integer("truncated"),
            usage=Usage._of(fields.find("usage", dict)),
            usd=fields.find_number("usd"),
            ms=fields.integer("ms"),
        )


@dataclass(frozen=True)
class SeatResult:
    """The result of a seat."""

    agent: str
    #: The cause of the end: completed, timeout, refused, truncated, invalid, idle, limit or crashed.
    cause: str
    #: The detail of the cause in one sentence.
    detail: str | None
    security: float
    utility: float
    measured: Measured

    @classmethod
    def _of(cls, value: object) -> SeatResult:
        fields = _Object(value)
        return cls(
            agent=fields.text("agent"),
            cause=fields.text("cause"),
            detail=fields.find_text("detail"),
            security=fields.number("security"),
            utility=fields.number("utility"),
            measured=Measured._of(fields.find("measured", dict)),
        )


@dataclass(frozen=True)
class Attribution:
    """An effect of a seat on another one, such as a revealed secret."""

    causing: int
    affected: int
    kind: str

    @classmethod
    def _of(cls, value: object) -> Attribution:
        if not isinstance(value, list) or [type(item) for item in value] != [int, int, str]:
            raise ValueError(f"unexpected attribution: {value!r:.60}")
        return cls(*value)


@dataclass(frozen=True)
class Game:
    """A finished game."""

    #: The id: 12 hexadecimal digits.
    id: str
    #: The label of the challenge.
    challenge: str
    #: The number of the seed. Games of a challenge with equal seeds have the same deal.
    seed: int
    seats: tuple[SeatResult, ...]
    #: The end: completed, or stalled if no player acted any more.
    end: str
    attributions: tuple[Attribution, ...]
    #: The result as a sentence.
    result: str
    rounds: int

    @classmethod
    def _of(cls, fields: _Object) -> Game:
        return cls(
            id=fields.text("game"),
            challenge=fields.text("challenge"),
            seed=fields.integer("seed"),
            seats=fields.list_of("seats", SeatResult._of),
            end=fields.text("end"),
            attributions=fields.list_of("attributions", Attribution._of),
            result=fields.text("told"),
            rounds=fields.integer("rounds"),
        )


@dataclass(frozen=True)
class VoidGame:
    """A game that was given up without a fault of a player. It doesn't count and is played again."""

    game: str
    #: The agent whose endpoint failed, if any.
    agent: str | None
    #: The class of the fault, such as unpaid; or host.
    fault: str
    reason: str
    #: The time in milliseconds since 1970.
    time: int

    @classmethod
    def _of(cls, fields: _Object) -> VoidGame:
        texts = (fields.text("game"), fields.find_text("agent"), fields.text("class"), fields.text("why"))
        return cls(*texts, fields.integer("time"))


@dataclass(frozen=True)
class Change:
    """A change of an agent or challenge during the run, which the user accepted."""

    name: str
    #: The SHA-256 of the settings before the change.
    before: str
    #: The SHA-256 of the settings after the change.
    after: str
    #: The time in milliseconds since 1970.
    time: int

    @classmethod
    def _of(cls, fields: _Object) -> Change:
        return cls(fields.text("name"), fields.text("before"), fields.text("after"), fields.integer("time"))


@dataclass(frozen=True)
class ToolCall:
    """A model's call of a tool."""

    id: str
    name: str
    #: The arguments; None if they are invalid.
    arguments: dict[str, Any] | None
    #: The reason why the arguments are invalid; None if they are valid.
    error: str | None

    @classmethod
    def _of(cls, value: object) -> ToolCall:
        fields = _Object(value)
        result = _Object(fields.find("arguments", dict))
        arguments, error = result.find("Ok", dict), result.find_text("Err")
        if (arguments is None) == (error is None):
            raise ValueError("arguments must have either Ok or Err")
        return cls(fields.text("id"), fields.text("name"), arguments, error)


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool call."""

    #: The id of the call.
    id: str
    text: str
    is_error: bool

    @classmethod
    def _of(cls, value: object) -> ToolResult:
        fields = _Object(value)
        return cls(fields.text("id"), fields.text("text"), fields.flag("is_error"))


@dataclass(frozen=True)
class Reply:
    """An answer of a model."""

    #: The text outside of tool calls, or the text of a refusal.
    text: str
    calls: tuple[ToolCall, ...]
    #: The answer in the format of the API.
    raw: Any
    usage: Usage
    #: The reason for the end of the answer: done, length or refused.
    finish: str
    #: The provider's id of the request.
    request_id: str | None

    @classmethod
    def _of(cls, value: object) -> Reply:
        fields = _Object(value)
        return cls(
            text=fields.text("text"),
            calls=fields.list_of("calls", ToolCall._of),
            raw=fields.find("raw", object, bool),
            usage=Usage._of(fields.find("usage", dict)),
            finish=fields.text("finish"),
            request_id=fields.find_text("request_id"),
        )


@dataclass(frozen=True)
class Turn:
    """A turn of a conversation: a message to the model, an answer, or results of tools. One field isn't None."""

    told: str | None = None
    answered: Reply | None = None
    results: tuple[ToolResult, ...] | None = None

    @classmethod
    def _of(cls, value: object) -> Turn:
        fields = _Object(value)
        answered = fields.find("answered", dict)
        results = fields.find("results", list)
        turn = cls(
            told=fields.find_text("told"),
            answered=None if answered is None else Reply._of(answered),
            results=None if results is None else fields.list_of("results", ToolResult._of),
        )
        if [turn.told, turn.answered, turn.results].count(None) != 2:
            raise ValueError("a turn must have one of told, answered and results")
        return turn


@dataclass(frozen=True)
class Retry:
    """A failed attempt of a call."""

    #: The class of the fault, such as busy.
    fault: str
    sentence: str
    #: The pause before the next attempt in milliseconds.
    pause_ms: int

    @classmethod
    def _of(cls, value: object) -> Retry:
        fields = _Object(value)
        return cls(fields.text("class"), fields.text("sentence"), fields.integer("pause_ms"))


@dataclass(frozen=True)
class Call:
    """An answered call of a model."""

    #: The SHA-256 of endpoint, API, request and sample.
    key: str
    #: The id of the game.
    game: str
    #: The seat; None for a judge of an earlier program.
    seat: int | None
    #: The number of the seat's call, from 1.
    number: int
    #: The name of the agent.
    agent: str
    #: The name of the model at the endpoint.
    model: str
    #: The SHA-256 of the harness.
    harness: str
    #: The SHA-256 of the system prompt; `EvalRun.text` returns the prompt.
    system: str
    #: The SHA-256 of the tools; `EvalRun.text` returns them as JSON.
    tools: str
    #: The turns since the seat's last call. The answer of that call may be among them.
    new: tuple[Turn, ...]
    reply: Reply
    #: The cost in US dollars; None without known prices.
    usd: float | None
    first_byte_ms: int
    ms: int
    request_bytes: int
    retries: tuple[Retry, ...]
    #: The time of the answer in milliseconds since 1970.
    time: int

    @classmethod
    def _of(cls, fields: _Object) -> Call:
        return cls(
            key=fields.text("key"),
            game=fields.text("game"),
            seat=fields.find_integer("seat"),
            number=fields.integer("number"),
            agent=fields.text("agent"),
            model=fields.text("model"),
            harness=fields.text("harness"),
            system=fields.text("system"),
            tools=fields.text("tools"),
            new=fields.list_of("new", Turn._of),
            reply=Reply._of(fields.find("reply", dict)),
            usd=fields.find_number("usd"),
            first_byte_ms=fields.integer("first_byte_ms"),
            ms=fields.integer("ms"),
            request_bytes=fields.integer("request_bytes"),
            retries=fields.list_of("retries", Retry._of),
            time=fields.integer("time"),
        )


@dataclass(frozen=True)
class TranscriptMessage:
    """A message of a game."""

    #: The round; 0 for messages before the first answer.
    round: int
    #: True for the chat, False for the operator channel.
    is_chat: bool
    #: The sending seat; None is the operator.
    sender: int | None
    #: The receiving seat; None is everyone, or the operator for an action.
    receiver: int | None
    content: str
    #: The called method of an action.
    method: str | None
    #: The number of the sender's call that caused the message, from 1.
    call: int | None

    @classmethod
    def _of(cls, value: object) -> TranscriptMessage:
        fields = _Object(value)
        return cls(
            round=fields.integer("round"),
            is_chat=fields.flag("chat"),
            sender=fields.find_integer("from"),
            receiver=fields.find_integer("to"),
            content=fields.text("content"),
            method=fields.find_text("method"),
            call=fields.find_integer("call"),
        )


@dataclass(frozen=True)
class Transcript:
    """All messages of a finished game."""

    game: str
    #: The public names of the players by seat.
    players: tuple[str, ...]
    messages: tuple[TranscriptMessage, ...]
    #: The final state of the rules as JSON text.
    state: str

    @classmethod
    def _of(cls, fields: _Object) -> Transcript:
        messages = fields.list_of("messages", TranscriptMessage._of)
        return cls(fields.text("game"), fields.list_of("players", str), messages, fields.text("state"))


@dataclass(frozen=True)
class Model:
    """A model of the run file."""

    #: The name in tables.
    name: str
    #: The name at the endpoint.
    model: str
    #: The URL of the endpoint, or the name of a preset.
    endpoint: str
    api: str | None
    #: The parameters of each request.
    params: dict[str, Any]
    #: The name of the harness.
    harness: str

    @classmethod
    def _of(cls, value: object) -> Model:
        fields = _Object(value)
        return cls(
            name=fields.text("name"),
            model=fields.text("model"),
            endpoint=fields.text("endpoint"),
            api=fields.find_text("api"),
            params=fields.object("params"),
            harness=fields.find_text("harness") or "default",
        )


@dataclass(frozen=True)
class Mean:
    """A mean with its standard error over seeds, since games with the same seed depend on each other."""

    mean: float
    values: int
    seeds: int
    #: The standard error (CR2); None below 10 seeds.
    error: float | None

    @classmethod
    def of(cls, values: Iterable[tuple[int, float]]) -> Mean | None:
        """Computes the mean of values with their seeds; None without values."""
        clusters: dict[int, list[float]] = {}
        for seed, value in values:
            clusters.setdefault(seed, []).append(value)
        count = sum(map(len, clusters.values()))
        if count == 0:
            return None
        mean = math.fsum(value for cluster in clusters.values() for value in cluster) / count
        error = None
        if len(clusters) >= MIN_SEEDS:
            # Bell and McCaffrey (2002), for a model that has an intercept only.
            squares = ((math.fsum(of) - len(of) * mean) ** 2 / (1 - len(of) / count) for of in clusters.values())
            error = math.sqrt(math.fsum(squares)) / count
        return cls(mean, count, len(clusters), error)


class EvalRun:
    """The folder of a run. It may be read while the run goes on.

    The results of games are in memory. Calls and transcripts are read from their files when they are
    needed, since the files may be large.
    """

    def __init__(self, folder: str | Path) -> None:
        """Reads the journal.

        Raises:
            EvalFileError: If the folder has no journal, or the journal is malformed or of another version.
        """
        #: The folder.
        self.folder = Path(folder)
        #: The run file that was accepted last, as parsed JSON.
        self.file: dict[str, Any] = {}
        #: The finished games in the order of their ends.
        self.games: dict[str, Game] = {}
        #: The games that were given up.
        self.voids: list[VoidGame] = []
        #: The changes that the user accepted.
        self.changes: list[Change] = []
        #: The starts of the run in milliseconds since 1970.
        self.started: list[int] = []
        #: Finished games that don't belong to the run file any more: with other settings, agents or seeds.
        self.outdated: dict[str, Game] = {}
        #: The SHA-256 of all settings, by `model NAME`, `baseline NAME` and `challenge NAME`; also the seed.
        self.identities: dict[str, str] = {}
        self._identities_of: dict[str, dict[str, str]] = {}
        self._call_places: tuple[dict[tuple[str, int | None], dict[int, int]], dict[str, int]] | None = None

        path = self.folder / "journal.jsonl"
        if not path.is_file():
            raise EvalFileError(f"{path} is missing; the folder of a run contains it")
        for _ in self._parse("journal.jsonl", self._learn):
            pass
        if not self.started:
            raise EvalFileError(f"{path} is empty")
        self.outdated = {game.id: game for game in self.games.values() if not self._is_planned(game)}
        for name in self.outdated:
            del self.games[name]
        #: The models of the run file.
        self.models: tuple[Model, ...] = ()
        try:
            self.models = _Object(self.file).list_of("models", Model._of)
        except ValueError as error:
            raise EvalFileError(f"{path}: the run file: {error}") from None

    @property
    def name(self) -> str:
        """The name of the run."""
        return str(self.file.get("name", ""))

    def _learn(self, line: _Object) -> None:
        kind = line.text("type")
        if not self.started and kind != "start":
            raise ValueError("the first line must be the start of a run")
        if kind == "start" and (version := line.integer("arena_eval")) != VERSION:
            raise ValueError(f"version {version}, but this module reads version {VERSION}; update arena-agents")
        if kind in ("start", "resume"):
            self.started.append(line.integer("time"))
            self.file = line.object("file") or self.file
            self.identities = dict(line.list_of("identities", _pair))
        elif kind == "game":
            game = Game._of(line)
            self.games[game.id] = game
            self._identities_of[game.id] = self.identities
        elif kind == "void":
            self.voids.append(VoidGame._of(line))
        elif kind == "change":
            self.changes.append(Change._of(line))
        else:
            raise ValueError(f"unknown type {kind!r}")

    def _is_planned(self, game: Game) -> bool:
        """Returns True if the run file still has the game's seed, challenge and agents with the same settings."""
        before, after = self._identities_of[game.id], self.identities
        names = ["seed", f"challenge {game.challenge}"]
        for seat in game.seats:
            name = _identity_name(before, seat.agent)
            if name is None:
                return False
            is_second_name = name not in (f"model {seat.agent}", f"baseline {seat.agent}")
            if is_second_name and name != f"model {self.file.get('null_variant')}":
                return False
            names.append(name)
        are_same = all(name in after and before.get(name) == after[name] for name in names)
        return are_same and game.seed < int(self.file.get("seeds", 0))

    def counts(self, game: Game) -> bool:
        """Returns True if the scores of a game count: all seats ended by causes that count."""
        spec = self.file.get("counts") or {}
        causes = {"completed", "timeout", "invalid", "idle", "crashed"}
        causes |= {name for name in ("truncated", "refused", "limit") if spec.get(name)}
        return all(seat.cause in causes for seat in game.seats)

    def find_model(self, agent: str) -> Model | None:
        """Returns the model of an agent, also under its second name; None for other agents."""
        names = (agent, agent.removesuffix(AGAIN))
        return next((model for name in names for model in self.models if model.name == name), None)

    def calls(self) -> Iterator[Call]:
        """Yields all calls in the order of their answers, also calls of unfinished games."""
        return self._parse("calls.jsonl", lambda line: Call._of(line) if line.text("type") == "call" else None)

    def calls_of(self, game: str, seat: int | None) -> list[Call]:
        """Returns the calls of a seat in their order; with the seat None, those of judges of earlier programs."""
        places = self._places()[0].get((game, seat), {})
        path = self.folder / "calls.jsonl"
        if not places:
            return []
        with path.open("rb") as file:
            return [self._at(file, place, Call._of) for _, place in sorted(places.items())]

    def text(self, sha256: str) -> str | None:
        """Returns a system prompt, or tools as JSON, by its SHA-256."""
        place = self._places()[1].get(sha256)
        if place is None:
            return None
        with (self.folder / "calls.jsonl").open("rb") as file:
            return self._at(file, place, lambda line: line.text("text"))

    def transcripts(self) -> Iterator[Transcript]:
        """Yields the transcripts of finished games."""
        return self._parse("transcripts.jsonl", Transcript._of)

    def _places(self) -> tuple[dict[tuple[str, int | None], dict[int, int]], dict[str, int]]:
        """Returns the places of calls by game, seat and number, and the places of texts."""
        if self._call_places is None:
            calls: dict[tuple[str, int | None], dict[int, int]] = {}
            texts: dict[str, int] = {}
            for place, line in self._lines("calls.jsonl"):
                if line.text("type") == "text":
                    texts[line.text("sha256")] = place
                else:
                    # A judge has a single call for each game, so judges are told apart by the place.
                    seat = line.find_integer("seat")
                    number = place if seat is None else line.integer("number")
                    calls.setdefault((line.text("game"), seat), {})[number] = place
            self._call_places = (calls, texts)
        return self._call_places

    def _at(self, file: Any, place: int, parse: Callable[[_Object], T]) -> T:
        file.seek(place)
        try:
            return parse(_Object(json.loads(file.readline())))
        except ValueError as error:
            raise EvalFileError(f"{self.folder / 'calls.jsonl'}, byte {place}: {error}") from None

    def _parse(self, name: str, parse: Callable[[_Object], T | None]) -> Iterator[T]:
        for number, (_, line) in enumerate(self._lines(name), 1):
            try:
                value = parse(line)
            except ValueError as error:
                raise EvalFileError(f"{self.folder / name}, line {number}: {error}") from None
            if value is not None:
                yield value

    def _lines(self, name: str) -> Iterator[tuple[int, _Object]]:
        """Yields the place and the object of each complete line. A missing file has no lines."""
        path = self.folder / name
        if not path.exists():
            return
        place = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                # A last line without its end is still being written, or its write was interrupted.
                if not line.endswith(b"\n"):
                    return
                try:
                    value = _Object(json.loads(line))
                except ValueError as error:
                    raise EvalFileError(f"{path}, line {number}: {error}") from None
                yield place, value
                place += len(line)


def _identity_name(identities: Mapping[str, str], agent: str) -> str | None:
    """Returns the key of an agent's identity. A second name has that of its model."""
    names = (f"model {agent}", f"baseline {agent}", f"model {agent.removesuffix(AGAIN)}")
    return next((name for name in names if name in identities), None)


def _pair(value: object) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"unexpected identity: {value!r:.60}")
    return str(value[0]), str(value[1])


# Tables


def game_rows(run: EvalRun) -> Iterator[dict[str, Any]]:
    """Yields a row for each finished game."""
    for game in run.games.values():
        attributions = [[of.causing, of.affected, of.kind] for of in game.attributions]
        yield {
            "game": game.id,
            "challenge": game.challenge,
            "seed": game.seed,
            "seats": len(game.seats),
            "agents": [seat.agent for seat in game.seats],
            "end": game.end,
            "counts": run.counts(game),
            "rounds": game.rounds,
            "result": game.result,
            "attributions": _json(attributions),
        }


def seat_rows(run: EvalRun) -> Iterator[dict[str, Any]]:
    """Yields a row for each seat of each finished game."""
    for game in run.games.values():
        for at, seat in enumerate(game.seats):
            measured = seat.measured
            yield {
                "game": game.id,
                "challenge": game.challenge,
                "seed": game.seed,
                "seat": at,
                "agent": seat.agent,
                "opponents": [other.agent for place, other in enumerate(game.seats) if place != at],
                "counts": run.counts(game),
                "cause": seat.cause,
                "detail": seat.detail,
                "utility": seat.utility,
                "security": seat.security,
                "calls": measured.calls,
                "retries": measured.retries,
                "invalid": measured.invalid,
                "refusals": measured.refusals,
                "truncated": measured.truncated,
                **_token_columns(measured.usage),
                "usd": measured.usd,
                "ms": measured.ms,
            }


def call_rows(run: EvalRun) -> Iterator[dict[str, Any]]:
    """Yields a row for each call. Turns and tool calls are JSON texts."""
    for call in run.calls():
        reply = call.reply
        yield {
            "key": call.key,
            "game": call.game,
            "seat": call.seat,
            "number": call.number,
            "agent": call.agent,
            "model": call.model,
            "harness": call.harness,
            "system": call.system,
            "tools": call.tools,
            "told": _json([turn.told for turn in call.new if turn.told is not None]),
            "text": reply.text,
            "tool_calls": _json([_tool_call(of) for of in reply.calls]),
            "finish": reply.finish,
            **_token_columns(reply.usage),
            "usd": call.usd,
            "first_byte_ms": call.first_byte_ms,
            "ms": call.ms,
            "request_bytes": call.request_bytes,
            "retries": len(call.retries),
            "request_id": reply.request_id,
            "time": call.time,
        }


def _token_columns(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "cached_tokens": usage.cached,
        "output_tokens": usage.output,
        "reasoning_tokens": usage.reasoning,
        "is_estimated": usage.is_estimated,
    }


def _tool_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments, "error": call.error}


_TOKENS = {
    "input_tokens": "int64",
    "cached_tokens": "int64",
    "output_tokens": "int64",
    "reasoning_tokens": "int64",
    "is_estimated": "bool",
}

#: The columns of each table with their types: names of pyarrow's types; `strings` is a list, `time` is in UTC.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "games": {
        "game": "string",
        "challenge": "string",
        "seed": "int64",
        "seats": "int32",
        "agents": "strings",
        "end": "string",
        "counts": "bool",
        "rounds": "int32",
        "result": "string",
        "attributions": "string",
    },
    "seats": {
        "game": "string",
        "challenge": "string",
        "seed": "int64",
        "seat": "int32",
        "agent": "string",
        "opponents": "strings",
        "counts": "bool",
        "cause": "string",
        "detail": "string",
        "utility": "float64",
        "security": "float64",
        "calls": "int64",
        "retries": "int64",
        "invalid": "int64",
        "refusals": "int64",
        "truncated": "int64",
        **_TOKENS,
        "usd": "float64",
        "ms": "int64",
    },
    "calls": {
        "key": "string",
        "game": "string",
        "seat": "int32",
        "number": "int64",
        "agent": "string",
        "model": "string",
        "harness": "string",
        "system": "string",
        "tools": "string",
        "told": "string",
        "text": "string",
        "tool_calls": "string",
        "finish": "string",
        **_TOKENS,
        "usd": "float64",
        "first_byte_ms": "int64",
        "ms": "int64",
        "request_bytes": "int64",
        "retries": "int64",
        "request_id": "string",
        "time": "time",
    },
}

_ROWS: Mapping[str, Callable[[EvalRun], Iterator[dict[str, Any]]]] = {
    "games": game_rows,
    "seats": seat_rows,
    "calls": call_rows,
}


def export_parquet(run: EvalRun, folder: str | Path) -> list[Path]:
    """Writes the tables games, seats and calls as Parquet files. Returns their paths.

    Raises:
        MissingPackageError: If pyarrow is not installed.
    """
    arrow = _import("pyarrow")
    parquet = _import("pyarrow.parquet")
    kinds = {"strings": arrow.list_(arrow.string()), "time": arrow.timestamp("ms", tz="UTC")}
    paths = []
    for table, columns in COLUMNS.items():
        fields = [
            (name, kinds[kind] if kind in kinds else getattr(arrow, _MAKERS.get(kind, kind))())
            for name, kind in columns.items()
        ]
        schema = arrow.schema(fields)
        path = _folder(folder) / f"{table}.parquet"
        with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            for rows in _batches(_ROWS[table](run), ROWS):
                writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
        paths.append(path)
    return paths


#: The functions of pyarrow whose names differ from the types.
_MAKERS = {"bool": "bool_"}


def _batches(rows: Iterator[T], size: int) -> Iterator[list[T]]:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


# Inspect


def inspect_logs(run: EvalRun) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields a log for each challenge and model: a file name without ending, and the log in Inspect's JSON form.

    A sample is a seat of a finished game, with the conversation of the model, both scores and the usage. The form was
    checked with inspect_ai 0.3.285.
    """
    names: set[str] = set()
    for challenge, agent, seats in _cells(run):
        model = run.find_model(agent)
        if model is None:
            continue
        name = _unique(_file_name(f"{challenge}_{agent}"), names)
        yield name, _inspect_log(run, challenge, agent, model, seats)


def export_inspect(run: EvalRun, folder: str | Path) -> list[Path]:
    """Writes an Inspect log (`.eval`) for each challenge and model. Returns the paths.

    Raises:
        MissingPackageError: If inspect_ai is not installed.
    """
    log = _import("inspect_ai.log")
    paths = []
    for name, value in inspect_logs(run):
        path = _folder(folder) / f"{name}.eval"
        log.write_eval_log(log.EvalLog.model_validate(value), str(path))
        paths.append(path)
    return paths


def _cells(run: EvalRun) -> Iterator[tuple[str, str, list[tuple[Game, int]]]]:
    """Yields the seats of each agent in each challenge."""
    cells: dict[tuple[str, str], list[tuple[Game, int]]] = {}
    for game in run.games.values():
        for at, seat in enumerate(game.seats):
            cells.setdefault((game.challenge, seat.agent), []).append((game, at))
    for (challenge, agent), seats in cells.items():
        yield challenge, agent, seats


def _inspect_log(
    run: EvalRun, challenge: str, agent: str, model: Model, seats: Sequence[tuple[Game, int]]
) -> dict[str, Any]:
    samples = [_inspect_sample(run, model, game, at) for game, at in seats]
    usage = _inspect_usage(
        sum((game.seats[at].measured.usage for game, at in seats), Usage()),
        _sum_usd(game.seats[at].measured.usd for game, at in seats),
    )
    generation = {
        name: model.params[name] for name in ("temperature", "top_p", "max_tokens", "seed") if name in model.params
    }
    counted = [(game, at) for game, at in seats if run.counts(game)]
    run_id = _hash(run.name, run.started[0])
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": _hash(run_id, challenge, agent),
            "run_id": run_id,
            "created": _utc(run.started[0]),
            "task": challenge,
            "task_id": _hash(run_id, challenge),
            "task_display_name": f"{run.name}: {challenge}",
            "dataset": {"name": challenge, "samples": len(samples), "sample_ids": [of["id"] for of in samples]},
            "model": model.model,
            "model_base_url": model.endpoint,
            "model_generate_config": generation,
            "model_args": model.params,
            "config": {"epochs": 1},
            "metadata": {
                "agent": agent,
                "harness": model.harness,
                "agent_sha256": run.identities.get(_identity_name(run.identities, agent) or ""),
                "challenge_sha256": run.identities.get(f"challenge {challenge}"),
            },
        },
        "results": {
            "total_samples": len(samples),
            "completed_samples": len(samples),
            "scores": [_inspect_score(name, counted, len(samples)) for name in ("utility", "security")],
        },
        "stats": {
            "started_at": _utc(run.started[0]),
            "completed_at": max((of["completed_at"] for of in samples if "completed_at" in of), default=""),
            "model_usage": {model.model: usage},
        },
        "samples": samples,
    }


def _inspect_score(name: str, counted: Sequence[tuple[Game, int]], samples: int) -> dict[str, Any]:
    mean = Mean.of((game.seed, float(getattr(game.seats[at], name))) for game, at in counted)
    metrics = {}
    if mean is not None:
        metrics["mean"] = {"name": "mean", "value": mean.mean}
        if mean.error is not None:
            metrics["stderr"] = {"name": "stderr", "value": mean.error, "params": {"cluster": "seed"}}
    scored = len(counted)
    return {
        "name": name,
        "scorer": name,
        "scored_samples": scored,
        "unscored_samples": samples - scored,
        "metrics": metrics,
    }


def _inspect_sample(run: EvalRun, model: Model, game: Game, at: int) -> dict[str, Any]:
    seat = game.seats[at]
    calls = run.calls_of(game.id, at)
    messages = list(_inspect_messages(run, calls))
    opening = [of for of in messages[:2] if of["role"] in ("system", "user")]
    counts = run.counts(game)
    explanation = f"{seat.cause}: {seat.detail}" if seat.detail else seat.cause
    sample: dict[str, Any] = {
        "id": f"{game.id}/{at}",
        "epoch": 1,
        "input": opening,
        "target": "",
        "messages": messages,
        "scores": {
            name: {"value": value, "explanation": explanation, "metadata": {"counts": counts}}
            for name, value in (("utility", seat.utility), ("security", seat.security))
        },
        "metadata": {
            "game": game.id,
            "seed": game.seed,
            "seat": at,
            "opponents": [other.agent for place, other in enumerate(game.seats) if place != at],
            "cause": seat.cause,
            "counts": counts,
            "end": game.end,
            "rounds": game.rounds,
            "result": game.result,
            "retries": seat.measured.retries,
            "invalid_answers": seat.measured.invalid,
        },
        "model_usage": {model.model: _inspect_usage(seat.measured.usage, seat.measured.usd)},
        "total_time": seat.measured.ms / 1000,
    }
    if calls:
        last = calls[-1]
        answer = next(of for of in reversed(messages) if of["role"] == "assistant")
        sample["started_at"] = _utc(calls[0].time - calls[0].ms)
        sample["completed_at"] = _utc(last.time)
        sample["output"] = {
            "model": model.model,
            "choices": [{"message": answer, "stop_reason": _stop_reason(last.reply)}],
            "completion": last.reply.text,
            "usage": _inspect_usage(last.reply.usage, last.usd),
            "time": last.ms / 1000,
        }
    return sample


def _inspect_messages(run: EvalRun, calls: Sequence[Call]) -> Iterator[dict[str, Any]]:
    names: dict[str, str] = {}
    for at, call in enumerate(calls):
        if at == 0 and (system := run.text(call.system)) is not None:
            yield {"id": f"{call.key[:16]}-system", "role": "system", "content": system}
        for place, turn in enumerate(call.new):
            # The answers among the new turns are those of earlier calls.
            if turn.told is not None:
                yield {"id": f"{call.key[:16]}-{place}", "role": "user", "content": turn.told, "source": "input"}
            for result in turn.results or ():
                message: dict[str, Any] = {
                    "id": f"{call.key[:16]}-{place}-{result.id}",
                    "role": "tool",
                    "content": result.text,
                    "tool_call_id": result.id,
                    "function": names.get(result.id),
                }
                if result.is_error:
                    message["error"] = {"type": "unknown", "message": result.text}
                yield message
        names.update((of.id, of.name) for of in call.reply.calls)
        yield {
            "id": f"{call.key[:16]}-answer",
            "role": "assistant",
            "content": call.reply.text,
            "source": "generate",
            "model": call.model,
            "tool_calls": [
                {"id": of.id, "function": of.name, "arguments": of.arguments or {}, "parse_error": of.error}
                for of in call.reply.calls
            ],
            "metadata": {"call": call.key, "number": call.number, "retries": len(call.retries)},
        }


def _stop_reason(reply: Reply) -> str:
    reasons = {"length": "max_tokens", "refused": "content_filter"}
    return reasons.get(reply.finish) or ("tool_calls" if reply.calls else "stop")


def _inspect_usage(usage: Usage, usd: float | None) -> dict[str, Any]:
    # Inspect's input tokens don't include cached ones.
    return {
        "input_tokens": usage.input - usage.cached,
        "input_tokens_cache_read": usage.cached,
        "output_tokens": usage.output,
        "reasoning_tokens": usage.reasoning,
        "total_tokens": usage.input + usage.output,
        "total_cost": usd,
    }


def _sum_usd(costs: Iterable[float | None]) -> float | None:
    known = [usd for usd in costs if usd is not None]
    return math.fsum(known) if known else None


# Every Eval Ever


def every_eval_ever(
    run: EvalRun, organization: str = "unknown", relationship: str = "other", now: float | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields a record for each model: a file name without ending, and the record for Every Eval Ever 0.2.1.

    A record has two results for each challenge, utility and security, with the standard error over seeds. Only games
    that count are in them. Models under a second name are left out.

    Args:
        run: The run.
        organization: The organization that made the run.
        relationship: Its relationship to the models: first_party, third_party, collaborative or other.
        now: The time of the export in seconds since 1970; the default is the clock.
    """
    if relationship not in RELATIONSHIPS:
        raise ValueError(f"unknown relationship {relationship!r}; use one of {', '.join(RELATIONSHIPS)}")
    retrieved = str(int(time.time() if now is None else now))
    names: set[str] = set()
    cells = list(_cells(run))
    for model in run.models:
        results = [
            result
            for challenge, agent, seats in cells
            if agent == model.name
            for result in _eee_results(run, challenge, model, seats)
        ]
        if not results:
            continue
        info: dict[str, Any] = {
            "name": model.name,
            "id": model.model,
            "inference_platform": model.endpoint,
            "additional_details": {
                "api": model.api or "default",
                "agent_sha256": run.identities.get(f"model {model.name}", ""),
            },
        }
        if "/" in model.model:
            info["developer"] = model.model.split("/", 1)[0]
        yield (
            _unique(_file_name(model.name), names),
            {
                "schema_version": EVERY_EVAL_EVER,
                "evaluation_id": f"{run.name}/{model.model}/{retrieved}",
                "evaluation_timestamp": str(run.started[0] // 1000),
                "retrieved_timestamp": retrieved,
                "source_metadata": {
                    "source_name": run.name,
                    "source_type": "evaluation_run",
                    "source_organization_name": organization,
                    "evaluator_relationship": relationship,
                },
                "eval_library": {
                    "name": "arena",
                    "version": "unknown",
                    "additional_details": {"command": "arena eval", "files_version": str(VERSION)},
                },
                "model_info": info,
                "evaluation_results": results,
            },
        )


def export_every_eval_ever(
    run: EvalRun, folder: str | Path, organization: str = "unknown", relationship: str = "other"
) -> list[Path]:
    """Writes a JSON file for each model, in the schema of Every Eval Ever 0.2.1. Returns the paths."""
    paths = []
    for name, record in every_eval_ever(run, organization, relationship):
        path = _folder(folder) / f"{name}.json"
        path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        paths.append(path)
    return paths


def _eee_results(
    run: EvalRun, challenge: str, model: Model, seats: Sequence[tuple[Game, int]]
) -> Iterator[dict[str, Any]]:
    counted = [(game, at) for game, at in seats if run.counts(game)]
    specs: list[dict[str, Any]] = run.file.get("challenges", [])
    spec = next((of for of in specs if challenge in (of.get("label"), of.get("name"))), {})
    causes = [game.seats[at].cause for game, at in seats]
    details = {
        "finished_seats": str(len(seats)),
        "counted_seats": str(len(counted)),
        **{f"ended_by_{cause}": str(causes.count(cause)) for cause in sorted(set(causes))},
    }
    for name in ("utility", "security"):
        values = [(game.seed, float(getattr(game.seats[at], name))) for game, at in counted]
        mean = Mean.of(values)
        if mean is None:
            continue
        uncertainty: dict[str, Any] = {"num_samples": mean.values}
        if mean.error is not None:
            uncertainty["standard_error"] = {"value": mean.error, "method": f"CR2, {mean.seeds} seeds as clusters"}
        yield {
            "evaluation_name": f"{challenge}/{name}",
            "source_data": {
                "dataset_name": challenge,
                "source_type": "other",
                "additional_details": {
                    "options": _json(spec.get("options") or {}),
                    "challenge_sha256": run.identities.get(f"challenge {challenge}", ""),
                    "seeds": str(mean.seeds),
                    "opponents": ", ".join(_opponents(counted)),
                },
            },
            "metric_config": {
                "evaluation_description": _DESCRIPTIONS[name],
                "lower_is_better": False,
                "score_type": "continuous",
                # The built-in challenges give scores from -1 to 1. Scores of scripts may exceed that range.
                "min_score": min(-1.0, *(value for _, value in values)),
                "max_score": max(1.0, *(value for _, value in values)),
            },
            "score_details": {"score": mean.mean, "details": details, "uncertainty": uncertainty},
            "generation_config": _eee_generation(model),
        }


_DESCRIPTIONS = {
    "utility": "Mean utility in games against the opponents: success in the player's own task",
    "security": "Mean security in games against the opponents: the player's secret was kept",
}


def _eee_generation(model: Model) -> dict[str, Any]:
    known = ("temperature", "top_p", "top_k", "max_tokens")
    others = {name: value for name, value in model.params.items() if name not in known}
    return {
        "generation_args": {name: model.params[name] for name in known if name in model.params},
        "additional_details": {
            "harness": model.harness,
            **{name: value if isinstance(value, str) else _json(value) for name, value in others.items()},
        },
    }


def _opponents(seats: Iterable[tuple[Game, int]]) -> list[str]:
    return sorted({of.agent for game, at in seats for place, of in enumerate(game.seats) if place != at})


# Common parts


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.split(".", 1)[0]
        # A missing dependency of an installed package is another fault.
        if error.name is None or error.name.split(".", 1)[0] != package:
            raise
        raise MissingPackageError(
            f"this format needs {package}, which is not installed; run: pip install 'arena-agents[evals]'"
        ) from None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _hash(*parts: object) -> str:
    return hashlib.sha256(_json([str(part) for part in parts]).encode()).hexdigest()[:22]


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds")


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "eval"


def _unique(name: str, used: set[str]) -> str:
    """Returns a file name that isn't used yet, also where the case of letters doesn't matter."""
    unique, number = name, 1
    while unique.casefold() in used:
        number += 1
        unique = f"{name}-{number}"
    used.add(unique.casefold())
    return unique


def _folder(path: str | Path) -> Path:
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def export(
    run: EvalRun,
    format: Literal["parquet", "inspect", "every-eval-ever"],  # noqa: A002 (the name of the option)
    folder: str | Path,
    organization: str = "unknown",
    relationship: str = "other",
) -> list[Path]:
    """Writes a run in a format. Returns the paths of the files. The last two arguments are for every-eval-ever only."""
    if format == "parquet":
        return export_parquet(run, folder)
    if format == "inspect":
        return export_inspect(run, folder)
    return export_every_eval_ever(run, folder, organization, relationship)


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command. Returns the exit code."""
    parser = argparse.ArgumentParser("python -m arena_agents.evals", description="Export a run of `arena eval`.")
    parser.add_argument("dir", metavar="DIR", help="folder of the run")
    parser.add_argument("--format", required=True, choices=("parquet", "inspect", "every-eval-ever"))
    parser.add_argument("--out", required=True, metavar="PATH", help="folder for the files")
    parser.add_argument("--organization", default="unknown", metavar="NAME", help="every-eval-ever: the evaluator")
    parser.add_argument(
        "--relationship", default="other", choices=RELATIONSHIPS, help="every-eval-ever: of evaluator and models"
    )
    parsed = parser.parse_args(args)
    try:
        run = EvalRun(parsed.dir)
        paths = export(run, parsed.format, parsed.out, parsed.organization, parsed.relationship)
    except (EvalFileError, MissingPackageError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not paths:
        print("error: the run has no finished games of a model", file=sys.stderr)
        return 1
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
