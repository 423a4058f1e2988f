"""Observations and actions of games as spaces: one class for each kind of game, and texts for all others."""

from __future__ import annotations

import json
import math
import string
from typing import Any

import numpy as np
from gymnasium import spaces

from arena_agents._rules import RulesMatch
from arena_agents.functions import DIRECTIONS, actions_of, text_of

#: The characters of observed texts. Others are shown as question marks.
_READABLE = "".join(map(chr, [*range(0x20, 0x7F), 0x0A, *range(0xA0, 0x3000)]))

#: The characters of texts that are sent.
_WRITABLE = string.printable


class Texts:
    """The spaces of challenges, and of games without spaces of their own: observations and actions are texts.

    An observation is a dictionary with a `text`. The first one contains the rules, and later ones contain the new
    messages. The action `guess: 1, 2` calls
    the method `guess`; any other text is chat.
    """

    def __init__(self, config: dict[str, Any], seats: int) -> None:
        """Makes the spaces of a game with these constants."""
        self._config = config
        self._readable = frozenset(_READABLE)
        # PettingZoo's checks require arrays, except in dictionaries.
        self.observation_space: spaces.Space[Any] = spaces.Dict(
            text=spaces.Text(1_000_000, min_length=0, charset=_READABLE)
        )
        self.action_space: spaces.Space[Any] = spaces.Text(2000, min_length=0, charset=_WRITABLE)

    def observe(self, match: RulesMatch, seat: int) -> Any:
        """Returns the observation of a seat."""
        state = self._state(match, seat)
        text = text_of(state, self._config, match.epochs() == 0)
        return {"text": "".join([char if char in self._readable else "?" for char in text])}

    def act(self, match: RulesMatch, seat: int, action: Any) -> str:
        """Returns the actions of the protocol, as JSON."""
        return json.dumps(actions_of(action, self._state(match, seat)))

    @staticmethod
    def _state(match: RulesMatch, seat: int) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(match.state(seat))
        state.setdefault("you", match.agents()[seat])
        return state


class Snake(Texts):
    """The spaces of snake: a board from the seat's view, and the number of a direction.

    The board has the rows of the grid. 0 is an empty cell, 1 is food, 2 to 4 are the own head, body and tail, 5 to 7
    those of opponents. The directions are UP, RIGHT, DOWN and LEFT.
    """

    _MOVES = tuple(json.dumps([{"action": "move", "move": word}]) for word in DIRECTIONS)

    def __init__(self, config: dict[str, Any], seats: int) -> None:
        """Makes the spaces of a game with these constants."""
        self._shape = (seats, config["grid_height"], config["grid_width"])
        self.observation_space = spaces.Box(0, 7, self._shape[1:], np.uint8)
        self.action_space = spaces.Discrete(4)
        self._seen: tuple[RulesMatch | None, int] = (None, 0)
        self._boards = np.zeros(self._shape, np.uint8)

    def observe(self, match: RulesMatch, seat: int) -> Any:
        """Returns the observation of a seat."""
        seen = (match, match.epochs())
        if self._seen != seen:
            # The boards of all seats are made at once.
            self._boards = np.frombuffer(bytearray(match.snake_boards()), np.uint8).reshape(self._shape)
            self._seen = seen
        return self._boards[seat]

    def act(self, match: RulesMatch, seat: int, action: Any) -> str:
        """Returns the actions of the protocol, as JSON."""
        move: str = self._MOVES[action]
        return move


class Chess(Texts):
    """The spaces of chess: the board and a mask of legal moves, and the number of a move.

    Own pieces are 1 (pawn) to 6 (king), those of the opponent are negative; row 0 is White's first rank. The move from
    square a to square b is 64 a + b, where a1 is 0, b1 is 1 and h8 is 63. A promotion to another piece than a queen
    is 4096 + 24 piece + 3 file + step + 1: the piece is 0 to 2 for rook, bishop and knight, and the step is -1 to 1.
    """

    ACTIONS = 4096 + 72
    _VALUES = {piece: value for value, piece in enumerate("PNBRQK", 1)}  # noqa: RUF012

    def __init__(self, config: dict[str, Any], seats: int) -> None:
        """Makes the spaces of a game with these constants."""
        self.observation_space = spaces.Dict(
            observation=spaces.Box(-6, 6, (8, 8), np.int8),
            action_mask=spaces.Box(0, 1, (self.ACTIONS,), np.int8),
        )
        self.action_space = spaces.Discrete(self.ACTIONS)

    @staticmethod
    def number_of(move: str) -> int:
        """Returns the number of a move in UCI notation."""
        start, end = (ord(square[0]) - 97 + 8 * (int(square[1]) - 1) for square in (move[:2], move[2:4]))
        if move[4:] in ("", "q"):
            return 64 * start + end
        return 4096 + 24 * "rbn".index(move[4]) + 3 * (start % 8) + end % 8 - start % 8 + 1

    def observe(self, match: RulesMatch, seat: int) -> Any:
        """Returns the observation of a seat."""
        state = self._state(match, seat)
        is_white = state["color"] == "WHITE"
        board = np.zeros((8, 8), np.int8)
        for row, line in enumerate(state["fen"].split(" ")[0].split("/")):
            column = 0
            for char in line:
                if char.isdigit():
                    column += int(char)
                    continue
                value = self._VALUES[char.upper()]
                board[7 - row, column] = value if char.isupper() == is_white else -value
                column += 1
        mask = np.zeros(self.ACTIONS, np.int8)
        if match.status()[1][seat]:
            mask[[self.number_of(move) for move in state["legal_moves"]]] = 1
        return {"observation": board, "action_mask": mask}

    def act(self, match: RulesMatch, seat: int, action: Any) -> str:
        """Returns the actions of the protocol, as JSON. An illegal move loses the game, as in a match."""
        moves = self._state(match, seat)["legal_moves"]
        found = [move for move in moves if self.number_of(move) == action]
        return json.dumps([{"action": "move", "move": found[0] if found else f"illegal move {action}"}])


class Foraging(Texts):
    """The spaces of food_catcher and cherry_picker: arrays of actors, bases and foods, and an order for each own one.

    Rows are `[present, own, x, y, food, health]` for actors and bases, and `[present, x, y, quantity]` for foods. Own
    actors come first, in the order of their ids, then those of others. The first 32 numbers of an action are the
    orders of the own actors: 0 none, 1 to 8 move by compass from UP clockwise, 9 take the nearest food, 10 deposit at
    the nearest own base, 11 attack the nearest enemy, 12 heal at the nearest own base, 13 make a base. The other 8 are
    those of the own bases: 1 spawns an actor.
    """

    ACTORS, BASES, FOODS = 32, 8, 64

    def __init__(self, config: dict[str, Any], seats: int) -> None:
        """Makes the spaces of a game with these constants."""
        self._seats = seats

        def box(rows: int, columns: int) -> spaces.Box:
            return spaces.Box(-np.inf, np.inf, (rows, columns), np.float32)

        self.observation_space = spaces.Dict(
            actors=box(self.ACTORS * seats, 6), bases=box(self.BASES * seats, 6), foods=box(self.FOODS, 4)
        )
        self.action_space = spaces.MultiDiscrete([14] * self.ACTORS + [2] * self.BASES)

    def observe(self, match: RulesMatch, seat: int) -> Any:
        """Returns the observation of a seat."""
        state = self._state(match, seat)
        entities = {}
        for kind, most in (("actors", self.ACTORS * self._seats), ("bases", self.BASES * self._seats)):
            own, others = self._sides(state, kind)
            rows = np.zeros((most, 6), np.float32)
            for row, one in enumerate([*own, *others][:most]):
                rows[row] = [1, row < len(own), *one["position"], one["food"], one["health"]]
            entities[kind] = rows
        foods = np.zeros((self.FOODS, 4), np.float32)
        for row, food in enumerate(state["foods"][: self.FOODS]):
            foods[row] = [1, *food["position"], food["quantity"]]
        return {**entities, "foods": foods}

    def act(self, match: RulesMatch, seat: int, action: Any) -> str:
        """Returns the actions of the protocol, as JSON. Orders that are impossible are left out."""
        state = self._state(match, seat)
        actors, rival_actors = self._sides(state, "actors")
        bases, rival_bases = self._sides(state, "bases")
        enemies = [*rival_actors, *rival_bases]
        actions: list[dict[str, Any]] = []
        for order, actor in zip(action[: self.ACTORS], actors, strict=False):
            actions += _order(int(order), actor, state["foods"], bases, enemies)
        for order, base in zip(action[self.ACTORS :], bases, strict=False):
            actions += [{"action": "spawn", "base_id": base["id"]}] if order else []
        return json.dumps(actions)

    @staticmethod
    def _sides(state: dict[str, Any], kind: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        entities = sorted(state[kind], key=lambda one: str(one["id"]))
        own = [one for one in entities if one["owner_id"] == state["you"]]
        return own, [one for one in entities if one["owner_id"] != state["you"]]


def _order(
    order: int,
    actor: dict[str, Any],
    foods: list[dict[str, Any]],
    bases: list[dict[str, Any]],
    enemies: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Returns the action that an order of an actor means, or nothing if it has no target."""
    x, y = actor["position"]

    def nearest(targets: list[dict[str, Any]]) -> str | None:
        closest = min(targets, key=lambda one: math.dist(one["position"], (x, y)), default=None)
        return None if closest is None else closest["id"]

    if 1 <= order <= 8:
        angle = (order - 1) * math.pi / 4
        return [{"action": "move", "actor_id": actor["id"], "target": [x + math.sin(angle), y - math.cos(angle)]}]
    if order == 13:
        return [{"action": "make_base", "actor_id": actor["id"]}]
    targets = {
        9: ("take_food", "food_id", foods),
        10: ("deposit_food", "base_id", bases),
        11: ("attack", "target", enemies),
        12: ("heal", "base_id", bases),
    }
    name, key, among = targets.get(order, ("", "", []))
    target = nearest(among)
    return [] if target is None else [{"action": name, "actor_id": actor["id"], key: target}]


#: The spaces by game. All other games and challenges have texts.
SPACES: dict[str, type[Texts]] = {
    "snake": Snake,
    "chess": Chess,
    "food_catcher": Foraging,
    "cherry_picker": Foraging,
}
