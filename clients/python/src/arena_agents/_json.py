"""From JSON to values that are known good: the edge at which answers are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .errors import UnexpectedAnswerError

T = TypeVar("T")


class Fields:
    """The fields of a JSON object. A field that is missing or of another type is an `UnexpectedAnswerError`."""

    def __init__(self, value: object) -> None:
        """Takes a parsed JSON value, which has to be an object."""
        if not isinstance(value, Mapping):
            raise UnexpectedAnswerError(f"the arena sent {_shown(value)} where an object belongs")
        self._fields: Mapping[str, Any] = value

    def _get(self, name: str, kinds: type | tuple[type, ...], what: str) -> Any:
        value = self._find(name, kinds, what)
        if value is None:
            raise UnexpectedAnswerError(f"the arena sent no {name}")
        return value

    def _find(self, name: str, kinds: type | tuple[type, ...], what: str) -> Any:
        value = self._fields.get(name)
        # For Python, true is the number 1.
        if value is None or (isinstance(value, kinds) and (kinds is bool or not isinstance(value, bool))):
            return value
        raise UnexpectedAnswerError(f"the arena sent {_shown(value)} as {name}, which should be {what}")

    def text(self, name: str) -> str:
        """A text that has to be there."""
        return str(self._get(name, str, "a text"))

    def find_text(self, name: str) -> str | None:
        """A text that may be missing or null."""
        value = self._find(name, str, "a text")
        return None if value is None else str(value)

    def integer(self, name: str) -> int:
        """A whole number that has to be there."""
        return int(self._get(name, int, "a whole number"))

    def find_integer(self, name: str) -> int | None:
        """A whole number that may be missing or null."""
        value = self._find(name, int, "a whole number")
        return None if value is None else int(value)

    def number(self, name: str) -> float:
        """A number that has to be there."""
        return float(self._get(name, (int, float), "a number"))

    def find_number(self, name: str) -> float | None:
        """A number that may be missing or null."""
        value = self._find(name, (int, float), "a number")
        return None if value is None else float(value)

    def flag(self, name: str) -> bool:
        """True or false; false where it is missing."""
        return bool(self._find(name, bool, "true or false"))

    def anything(self, name: str) -> Any:
        """Whatever is there; None where nothing is."""
        return self._fields.get(name)

    def list_of(self, name: str, parse: Callable[[Any], T]) -> tuple[T, ...]:
        """A list, item by item; empty where it is missing."""
        items = self._find(name, list, "a list")
        return tuple(parse(item) for item in items or ())

    def dict_of(self, name: str, parse: Callable[[Any], T]) -> dict[str, T]:
        """An object whose keys aren't fixed, value by value; empty where it is missing."""
        values = self._find(name, Mapping, "an object")
        return {key: parse(value) for key, value in (values or {}).items()}


def as_text(value: object) -> str:
    """A text in a list or an object."""
    if not isinstance(value, str):
        raise UnexpectedAnswerError(f"the arena sent {_shown(value)} where a text belongs")
    return value


def as_number(value: object) -> float:
    """A number in a list or an object."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnexpectedAnswerError(f"the arena sent {_shown(value)} where a number belongs")
    return float(value)


def as_interval(value: object) -> tuple[float, float]:
    """Two numbers: the ends of an interval."""
    if not isinstance(value, list) or len(value) != 2:
        raise UnexpectedAnswerError(f"the arena sent {_shown(value)} where two numbers belong")
    return as_number(value[0]), as_number(value[1])


def as_dict_of(parse: Callable[[Any], T]) -> Callable[[object], dict[str, T]]:
    """A parser of objects whose keys aren't fixed."""

    def parse_all(value: object) -> dict[str, T]:
        if not isinstance(value, Mapping):
            raise UnexpectedAnswerError(f"the arena sent {_shown(value)} where an object belongs")
        return {key: parse(item) for key, item in value.items()}

    return parse_all


def as_list_of(parse: Callable[[Any], T]) -> Callable[[object], tuple[T, ...]]:
    """A parser of lists."""

    def parse_all(value: object) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise UnexpectedAnswerError(f"the arena sent {_shown(value)} where a list belongs")
        return tuple(parse(item) for item in value)

    return parse_all


def _shown(value: object) -> str:
    """A value, short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
