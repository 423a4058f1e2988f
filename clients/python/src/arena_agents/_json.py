"""Conversion of JSON to checked values, used for all answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .errors import UnexpectedAnswerError

T = TypeVar("T")


class Fields:
    """The fields of a JSON object. A missing field, or one of another type, raises `UnexpectedAnswerError`."""

    def __init__(self, value: object) -> None:
        """Takes a parsed JSON value, which must be an object."""
        if not isinstance(value, Mapping):
            raise UnexpectedAnswerError(f"the arena sent {_shown(value)} instead of an object")
        self._fields: Mapping[str, Any] = value

    def _get(self, name: str, kinds: type | tuple[type, ...], what: str) -> Any:
        value = self._find(name, kinds, what)
        if value is None:
            raise UnexpectedAnswerError(f"the arena sent no field {name}")
        return value

    def _find(self, name: str, kinds: type | tuple[type, ...], what: str) -> Any:
        value = self._fields.get(name)
        # In Python, `True` is an `int`.
        if value is None or (isinstance(value, kinds) and (kinds is bool or not isinstance(value, bool))):
            return value
        raise UnexpectedAnswerError(f"the arena sent {_shown(value)} as {name}, which must be {what}")

    def text(self, name: str) -> str:
        """Returns a required text."""
        return str(self._get(name, str, "a text"))

    def find_text(self, name: str) -> str | None:
        """Returns an optional text; None if it is missing or null."""
        value = self._find(name, str, "a text")
        return None if value is None else str(value)

    def integer(self, name: str) -> int:
        """Returns a required integer."""
        return int(self._get(name, int, "a whole number"))

    def find_integer(self, name: str) -> int | None:
        """Returns an optional integer; None if it is missing or null."""
        value = self._find(name, int, "a whole number")
        return None if value is None else int(value)

    def number(self, name: str) -> float:
        """Returns a required number."""
        return float(self._get(name, (int, float), "a number"))

    def find_number(self, name: str) -> float | None:
        """Returns an optional number; None if it is missing or null."""
        value = self._find(name, (int, float), "a number")
        return None if value is None else float(value)

    def flag(self, name: str) -> bool:
        """Returns a boolean; False if it is missing."""
        return bool(self._find(name, bool, "true or false"))

    def anything(self, name: str) -> Any:
        """Returns any value; None if it is missing."""
        return self._fields.get(name)

    def list_of(self, name: str, parse: Callable[[Any], T]) -> tuple[T, ...]:
        """Returns a list, parsed item by item; empty if it is missing."""
        items = self._find(name, list, "a list")
        return tuple(parse(item) for item in items or ())

    def dict_of(self, name: str, parse: Callable[[Any], T]) -> dict[str, T]:
        """Returns an object with arbitrary keys, parsed value by value; empty if it is missing."""
        values = self._find(name, Mapping, "an object")
        return {key: parse(value) for key, value in (values or {}).items()}


def as_text(value: object) -> str:
    """Returns an item of a list or an object, which must be a text."""
    if not isinstance(value, str):
        raise UnexpectedAnswerError(f"the arena sent {_shown(value)} instead of a text")
    return value


def as_number(value: object) -> float:
    """Returns an item of a list or an object, which must be a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnexpectedAnswerError(f"the arena sent {_shown(value)} instead of a number")
    return float(value)


def as_interval(value: object) -> tuple[float, float]:
    """Returns the two ends of an interval."""
    if not isinstance(value, list) or len(value) != 2:
        raise UnexpectedAnswerError(f"the arena sent {_shown(value)} instead of two numbers")
    return as_number(value[0]), as_number(value[1])


def as_dict_of(parse: Callable[[Any], T]) -> Callable[[object], dict[str, T]]:
    """Returns a parser of objects with arbitrary keys."""

    def parse_all(value: object) -> dict[str, T]:
        if not isinstance(value, Mapping):
            raise UnexpectedAnswerError(f"the arena sent {_shown(value)} instead of an object")
        return {key: parse(item) for key, item in value.items()}

    return parse_all


def as_list_of(parse: Callable[[Any], T]) -> Callable[[object], tuple[T, ...]]:
    """Returns a parser of lists."""

    def parse_all(value: object) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise UnexpectedAnswerError(f"the arena sent {_shown(value)} instead of a list")
        return tuple(parse(item) for item in value)

    return parse_all


def _shown(value: object) -> str:
    """Returns a value's text, shortened for a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
