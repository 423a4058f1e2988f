"""Environments: the checks of PettingZoo and Gymnasium, and the same matches as `arena match run` plays."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, seed_test
from pettingzoo.test.seed_test import parallel_seed_test

from arena_agents import env
from arena_agents._rules import RulesMatch
from arena_agents._spaces import Chess
from conftest import PACKAGE, command

#: The options that make each game short enough for tests. All other games are short.
SHORT: dict[str, dict[str, Any]] = {
    "snake": {"n_epochs": 60},
    "food_catcher": {"n_epochs": 60},
    "cherry_picker": {"n_epochs": 60},
}

#: Warnings of the checks that concern spaces other than arrays, and environments without a window.
pytestmark = pytest.mark.filterwarnings("ignore")

GAMES = env.games()


@pytest.mark.parametrize("game", GAMES)
def test_checks_of_pettingzoo_pass(game: str) -> None:
    options = SHORT.get(game, {})
    api_test(env.aec(game, **options), num_cycles=100)
    parallel_api_test(env.parallel(game, **options), num_cycles=100)
    seed_test(lambda: env.aec(game, **options), num_cycles=50)
    parallel_seed_test(lambda: env.parallel(game, **options), num_cycles=50)


@pytest.mark.parametrize("game", GAMES)
def test_checks_of_gymnasium_pass(game: str) -> None:
    check_env(env.single(game, opponents="random", **SHORT.get(game, {})), skip_render_check=True)


@pytest.mark.parametrize("game", GAMES)
def test_a_match_of_the_binary_and_an_environment_agree_state_by_state(tmp_path: Path, game: str) -> None:
    replay, options, seats = (
        tmp_path / "game.jsonl",
        SHORT.get(game, {}),
        max(2, len(env.parallel(game).possible_agents)),
    )
    bots = ["house", *["random"] * (seats - 1)]
    args = [arg for bot in bots for arg in ("--agent", bot)]
    args += [arg for key, value in options.items() for arg in ("--set", f"{key}={value}")]
    played = command("match", "run", game, *args, "--seed", "7", "--replay", str(replay), "--json")
    assert played.returncode == 0, played.stderr
    result = json.loads(played.stdout)
    epochs = [line for line in map(json.loads, replay.read_text().splitlines()) if line.get("epoch")]
    assert len(epochs) > 1
    # One match repeats the recorded actions. In the other, the same bots play.
    of_actions, of_bots = (RulesMatch(game, json.dumps(options), "7", seats) for _ in range(2))
    for seat, bot in enumerate(bots):
        of_bots.seat_bot(seat, bot)
    for line in epochs:
        for match in (of_actions, of_bots):
            _, asked, end = match.status()
            assert end is None
            for seat in range(seats):
                if asked[seat]:
                    state = json.loads(match.state(seat))
                    expected = line["world_state"] if "world_state" in line else line["worlds"][seat]
                    # A replay contains accepted actions only.
                    if match is of_actions and "rejected" in state:
                        state["rejected"] = expected["rejected"]
                    assert state == expected
        of_actions.step([None if one is None else json.dumps(one) for one in line["actions"]])
        of_bots.step([None] * seats)
    for match in (of_actions, of_bots):
        assert json.loads(match.result())["outcome"] == result["outcome"]
        by_seat = {score["agent_id"]: score["score"] for score in result["scores"]}
        assert match.status()[0] == [by_seat[agent] for agent in match.agents()]


def test_a_saved_match_goes_on_as_it_would_have() -> None:
    one, other = env.single("snake", opponents="house"), env.single("snake", opponents="house")
    one.reset(seed=5)
    for action in (1, 1, 2):
        one.step(action)
    other.load(one.save())
    for action in (2, 3, 3, 0):
        left, right = one.step(action), other.step(action)
        assert (left[0] == right[0]).all()
        assert left[1:] == right[1:]
    again = env.aec("chess")
    again.reset(seed=1)
    assert again.save() == RulesMatch.load(again.save()).save()


def test_rewards_add_up_to_scores_and_the_board_shows_the_seat() -> None:
    zoo = env.parallel("snake", seats=3, n_epochs=40)
    boards, _ = zoo.reset(seed=11)
    for seat, name in enumerate(zoo.possible_agents):
        state = zoo.world_state(seat)
        [x, y] = state["snakes"][state["agent_ids"][seat]]["head_position"]
        assert boards[name][y, x] == 2
        assert (boards[name] == 5).sum() == 2
        assert (boards[name] == 1).sum() == len(state["foods"])
    total = dict.fromkeys(zoo.possible_agents, 0.0)
    random = np.random.default_rng(1)
    infos: dict[str, Any] = {}
    while zoo.agents:
        _, rewards, _, _, infos = zoo.step({name: random.integers(4) for name in zoo.agents})
        for name, reward in rewards.items():
            total[name] += reward
    [info] = [one for one in infos.values() if one][:1]
    assert [seat["score"] for seat in info["result"]["seats"]] == list(total.values())


def test_moves_of_chess_have_numbers_of_their_own() -> None:
    moves = [a + b + c + d for a in "abcdefgh" for b in "12345678" for c in "abcdefgh" for d in "12345678"]
    steps = [(a, b) for a in "abcdefgh" for b in "abcdefgh" if abs(ord(a) - ord(b)) <= 1]
    moves += [f"{a}7{b}8{piece}" for a, b in steps for piece in "rbn"]
    numbers = [Chess.number_of(move) for move in moves]
    assert len(set(numbers)) == len(moves)
    assert max(numbers) < Chess.ACTIONS
    assert Chess.number_of("a7a8q") == Chess.number_of("a7a8")
    game = env.single("chess", opponents="random")
    seen, _ = game.reset(seed=2)
    for _ in range(20):
        seen, _, is_over, _, _ = game.step(int(np.flatnonzero(seen["action_mask"])[0]))
        assert not is_over


def test_an_illegal_move_loses_as_in_a_match() -> None:
    game = env.single("chess", opponents="random")
    game.reset(seed=2)
    _, reward, is_over, _, info = game.step(0)
    assert (reward, is_over, info["result"]["seats"][0]["verdict"]) == (-10.0, True, "ILLEGAL_MOVE")


def test_a_challenge_is_played_with_texts() -> None:
    game = env.single("millionaire", opponents="house")
    seen, _ = game.reset(seed=3)
    assert seen["text"].startswith(game.world_state(0)["prompt"][:20])
    seen, *_ = game.step("hello there")
    assert "hello there" in seen["text"]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: env.parallel("golf"), "there is no game `golf`; the games are snake"),
        (lambda: env.parallel("snake", seats=9), "snake is played by 2 to 8 agents, not by 9"),
        (lambda: env.parallel("snake", width=5), "unknown field `width`"),
        (lambda: env.single("snake", opponents="stockfish"), "there is no house bot `stockfish`"),
        (lambda: env.single("snake", seat=2), "there is no seat 2 among 2 seats"),
        (lambda: env.single("snake", opponents=["house", "house"]), "2 opponents for 1 other seats"),
    ],
)
def test_mistakes_are_named(make: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        make()


def example() -> ModuleType:
    path = PACKAGE.parents[1] / "examples/environments/train_snake.py"
    spec = importlib.util.spec_from_file_location("train_snake", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_snake"] = module
    spec.loader.exec_module(module)
    return module


def test_the_example_trains_a_policy_that_beats_the_house_bot() -> None:
    train_snake = example()

    def lead(weights: Any) -> int:
        wins, _, losses = train_snake.evaluate(weights, 20, epochs=120)
        return int(wins - losses)

    assert lead(np.zeros(6)) < -10
    assert lead(train_snake.train(generations=3, seed=1, epochs=80)) > 5
