"""Training environments over the rules of the arena, in process: no server, no processes, no clock.

    from arena_agents import env

    zoo = env.parallel("snake", seats=2)           # PettingZoo, all agents at once
    aec = env.aec("chess")                         # PettingZoo, one agent after the other
    gym = env.single("snake", opponents="house")   # Gymnasium, against house bots

Each game and each challenge is an environment. A seed determines the match: `arena match run --seed 7` and
`reset(seed=7)` start the same match. The sum of an agent's rewards is its score. The module needs numpy, gymnasium and
pettingzoo, and the extension module in the wheel of a release.
"""

from __future__ import annotations

import json
from typing import Any

try:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
    from pettingzoo import AECEnv, ParallelEnv

    from arena_agents._rules import RulesMatch
    from arena_agents._rules import games as _games
    from arena_agents._spaces import SPACES, Texts
except ImportError as error:
    raise ImportError(
        f"{error}; environments need the wheel of a release with its packages: pip install 'arena-agents[envs]'"
    ) from error

__all__ = ["GymEnv", "RulesMatch", "ZooAecEnv", "ZooParallelEnv", "aec", "games", "parallel", "single"]


def games() -> list[str]:
    """Returns the names of all games and challenges."""
    return [name for name, *_ in _games()]


def _find(game: str) -> tuple[str, int, str]:
    """Returns the name, the smallest number of seats and the update mode of a game."""
    for name, least, _, mode in _games():
        if name.replace("-", "_") == game.replace("-", "_"):
            return name, least, mode
    raise ValueError(f"there is no game `{game}`; the games are {', '.join(games())}")


class _Table:
    """A match, and the data that its environments share."""

    def __init__(self, game: str, seats: int | None, options: dict[str, Any], bots: dict[int, str]) -> None:
        name, least, mode = _find(game)
        self.game = name
        self.seats = least if seats is None else seats
        self.is_alternating = mode == "ALTERNATING"
        self.names = [f"player_{seat}" for seat in range(self.seats)]
        self._options = json.dumps(options)
        self._bots = bots
        self._random = np.random.default_rng()
        self.match = self._new("0")
        self.config: dict[str, Any] = json.loads(self.match.config())
        made = [SPACES.get(name, Texts)(self.config, self.seats) for _ in range(self.seats)]
        self.codec = made[0]
        # Each seat has spaces of its own, which are seeded separately.
        self.observation_spaces = [one.observation_space for one in made]
        self.action_spaces = [one.action_space for one in made]
        self.scores, self.asked, self.end = self.match.status()

    def _new(self, seed: str) -> RulesMatch:
        match = RulesMatch(self.game, self._options, seed, self.seats)
        for seat, bot in self._bots.items():
            match.seat_bot(seat, bot)
        return match

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> None:
        """Starts a new match. `options` may contain the 64 digits of a `seed`."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        else:
            seed = int(self._random.integers(2**63))
        self.match = self._new(str((options or {}).get("seed", seed)))
        self.scores, self.asked, self.end = self.match.status()

    def load(self, saved: str) -> None:
        """Continues a saved match."""
        self.match = RulesMatch.load(saved)
        self.scores, self.asked, self.end = self.match.status()

    def step(self, actions: dict[int, Any]) -> list[float]:
        """Plays an epoch with the actions of these seats, and returns the rewards of all seats."""
        replies: list[str | None] = [None] * self.seats
        for seat, action in actions.items():
            if self.asked[seat]:
                replies[seat] = self.codec.act(self.match, seat, action)
        before = self.scores
        self.scores, self.asked, self.end = self.match.step(replies)
        return [now - then for now, then in zip(self.scores, before, strict=True)]

    def is_out(self, seat: int) -> bool:
        """Returns true if a seat has no more decisions in the match."""
        return self.end is not None or not (self.is_alternating or self.asked[seat])

    def observe(self, seat: int) -> Any:
        """Returns the observation of a seat."""
        return self.codec.observe(self.match, seat)

    def info(self) -> dict[str, Any]:
        """Returns the result after the end of the match."""
        return {} if self.end is None else {"result": json.loads(self.match.result())}


class _OnTable:
    """The methods that all environments have."""

    _table: _Table

    def world_state(self, seat: int = 0) -> dict[str, Any]:
        """Returns the state that an agent on this seat receives in a match."""
        state: dict[str, Any] = json.loads(self._table.match.state(seat))
        return state

    def save(self) -> str:
        """Returns the match as a text, with which `load` continues it in any environment of the game."""
        return self._table.match.save()

    def render(self) -> Any:
        """Returns the state of seat 0 as a text."""
        state = self.world_state()
        rows = state.get("grid", {}).get("grid_string") if isinstance(state.get("grid"), dict) else None
        return "\n".join(rows) if rows else state.get("fen") or json.dumps(state, indent=1)

    def close(self) -> None:
        """Does nothing: an environment holds memory only."""


def _metadata(game: str) -> dict[str, Any]:
    return {"name": f"arena_{game}_v0", "render_modes": ["ansi"], "is_parallelizable": True, "render_fps": 4}


class ZooParallelEnv(_OnTable, ParallelEnv[str, Any, Any]):
    """A game as a parallel environment of PettingZoo: all agents act in each epoch.

    An agent leaves when it has no more decisions, for example with a dead snake. In games whose agents move in turn,
    the actions of the others are ignored.
    """

    def __init__(self, table: _Table, render_mode: str | None = None) -> None:
        """Makes the environment; `parallel` is easier."""
        self._table, self.render_mode, self.metadata = table, render_mode, _metadata(table.game)
        self.possible_agents = table.names
        self.agents: list[str] = []
        self._seats = {name: seat for seat, name in enumerate(table.names)}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Returns the observation space of an agent."""
        return self._table.observation_spaces[self._seats[agent]]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Returns the action space of an agent."""
        return self._table.action_spaces[self._seats[agent]]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Starts a new match. Equal seeds start equal matches."""
        self._table.reset(seed, options)
        return self._begin()

    def load(self, saved: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Continues a saved match."""
        self._table.load(saved)
        return self._begin()

    def _begin(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        table = self._table
        self.agents = [name for seat, name in enumerate(table.names) if not table.is_out(seat)]
        return {name: table.observe(self._seats[name]) for name in self.agents}, {name: {} for name in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Plays an epoch."""
        table, seats, agents = self._table, self._seats, self.agents
        rewards = table.step({seats[name]: action for name, action in actions.items()})
        out = {name: table.is_out(seats[name]) for name in agents}
        self.agents = [name for name in agents if not out[name]]
        info = table.info()
        return (
            {name: table.observe(seats[name]) for name in agents},
            {name: rewards[seats[name]] for name in agents},
            out,
            dict.fromkeys(agents, False),
            {name: dict(info) for name in agents},
        )


class ZooAecEnv(_OnTable, AECEnv[str, Any, Any]):
    """A game as a sequential environment of PettingZoo: the agents of an epoch act one after the other.

    The epoch is played when all agents that are asked have acted. They don't see each other's actions before.
    """

    def __init__(self, table: _Table, render_mode: str | None = None) -> None:
        """Makes the environment; `aec` is easier."""
        super().__init__()
        self._table, self.render_mode, self.metadata = table, render_mode, _metadata(table.game)
        self.possible_agents = table.names
        self.agents: list[str] = []
        self._seats = {name: seat for seat, name in enumerate(table.names)}
        self._actions: dict[int, Any] = {}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Returns the observation space of an agent."""
        return self._table.observation_spaces[self._seats[agent]]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Returns the action space of an agent."""
        return self._table.action_spaces[self._seats[agent]]

    def observe(self, agent: str) -> Any:
        """Returns the observation of an agent."""
        return self._table.observe(self._seats[agent])

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts a new match. Equal seeds start equal matches."""
        self._table.reset(seed, options)
        self._begin()

    def load(self, saved: str) -> None:
        """Continues a saved match."""
        self._table.load(saved)
        self._begin()

    def save(self) -> str:
        """Returns the match as a text.

        Raises:
            ValueError: In the middle of an epoch, after the actions of some agents.
        """
        if self._actions:
            raise ValueError("the epoch isn't complete: save before the first action of an epoch")
        return super().save()

    def _begin(self) -> None:
        table = self._table
        self.agents = [name for seat, name in enumerate(table.names) if not table.is_out(seat)]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {name: {} for name in self.agents}
        self._actions = {}
        self._select()

    def _select(self) -> None:
        """Selects the next agent that is asked and hasn't acted."""
        waiting = [seat for seat, is_asked in enumerate(self._table.asked) if is_asked and seat not in self._actions]
        if waiting:
            self.agent_selection = self._table.names[waiting[0]]
        elif self.agents:
            self.agent_selection = self.agents[0]

    def step(self, action: Any) -> None:
        """Takes the action of the selected agent."""
        agent, table = self.agent_selection, self._table
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._actions[self._seats[agent]] = action
        self._clear_rewards()
        if any(is_asked and seat not in self._actions for seat, is_asked in enumerate(table.asked)):
            self._select()
            return
        rewards = table.step(self._actions)
        self._actions = {}
        info = table.info()
        for name in self.agents:
            seat = self._seats[name]
            self.rewards[name] = rewards[seat]
            self.terminations[name] = table.is_out(seat)
            self.infos[name] = dict(info)
        self._accumulate_rewards()
        self._select()
        self._deads_step_first()


class GymEnv(_OnTable, gymnasium.Env[Any, Any]):
    """One seat of a game as an environment of Gymnasium. Bots play the other seats."""

    def __init__(self, table: _Table, seat: int, render_mode: str | None = None) -> None:
        """Makes the environment; `single` is easier."""
        self._table, self.render_mode, self.metadata = table, render_mode, _metadata(table.game)
        self._seat = seat
        self.observation_space = table.observation_spaces[seat]
        self.action_space = table.action_spaces[seat]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts a new match. Equal seeds start equal matches."""
        super().reset(seed=seed)
        self._table.reset(seed, options)
        self._advance()
        return self._table.observe(self._seat), self._info()

    def load(self, saved: str) -> tuple[Any, dict[str, Any]]:
        """Continues a saved match."""
        self._table.load(saved)
        self._advance()
        return self._table.observe(self._seat), self._info()

    def _advance(self) -> float:
        """Lets the house bots move until this seat is asked, and returns this seat's rewards."""
        reward = 0.0
        while not self._table.asked[self._seat] and not self._table.is_out(self._seat):
            reward += self._table.step({})[self._seat]
        return reward

    def _info(self) -> dict[str, Any]:
        return {"scores": list(self._table.scores), **self._table.info()}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays an epoch, and the moves of the house bots until this seat is asked again."""
        reward = self._table.step({self._seat: action})[self._seat] + self._advance()
        is_out = self._table.is_out(self._seat)
        return self._table.observe(self._seat), reward, is_out, False, self._info()


def parallel(game: str, seats: int | None = None, render_mode: str | None = None, **options: Any) -> ZooParallelEnv:
    """Makes a parallel environment of PettingZoo.

    Args:
        game: The game or challenge, such as `snake`; `games()` has all names.
        seats: The number of agents; by default the smallest.
        render_mode: `ansi`, or None.
        options: The game's constants, as in `arena match run --set`.

    Raises:
        ValueError: If the game, the number of agents or an option is wrong.
    """
    return ZooParallelEnv(_Table(game, seats, options, {}), render_mode)


def aec(game: str, seats: int | None = None, render_mode: str | None = None, **options: Any) -> ZooAecEnv:
    """Makes a sequential environment of PettingZoo, with the arguments of `parallel`."""
    return ZooAecEnv(_Table(game, seats, options, {}), render_mode)


def single(
    game: str,
    opponents: str | list[str] = "house",
    seat: int = 0,
    seats: int | None = None,
    render_mode: str | None = None,
    **options: Any,
) -> GymEnv:
    """Makes an environment of Gymnasium for one seat.

    Args:
        game: The game or challenge, such as `snake`; `games()` has all names.
        opponents: The house bots at the other seats: `house`, `house:easy` or `random`, or a list of them.
        seat: The seat of the environment's agent.
        seats: The number of agents; by default the smallest.
        render_mode: `ansi`, or None.
        options: The game's constants, as in `arena match run --set`.

    Raises:
        ValueError: If the game, a house bot, a seat, the number of agents or an option is wrong.
    """
    count = _find(game)[1] if seats is None else seats
    if not 0 <= seat < count:
        raise ValueError(f"there is no seat {seat} among {count} seats")
    others = [other for other in range(count) if other != seat]
    bots = [opponents] * len(others) if isinstance(opponents, str) else opponents
    if len(bots) != len(others):
        raise ValueError(f"{len(bots)} opponents for {len(others)} other seats")
    return GymEnv(_Table(game, count, options, dict(zip(others, bots, strict=True))), seat, render_mode)
