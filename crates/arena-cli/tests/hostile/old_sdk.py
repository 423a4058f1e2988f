#!/usr/bin/python3
"""Agents in the form of the older kit of the protocol: messages without `world_state`, one answer to each message of any kind,
`move` beside `agent_id` in snake and chess. The name of the file is the game."""

import json
import math
import os
import sys

GAME = os.path.basename(sys.argv[0]).removesuffix(".py")


class Agent:
    """The base class of the older kit."""

    def __init__(self):
        self.agent_id = None
        self.config = {}

    def step(self, state):
        raise NotImplementedError

    def answer(self, message):
        """Returns the answer to a message. Every key is handled, in any order of messages."""
        reply = {}
        if "set_agent_id" in message:
            self.agent_id = message["set_agent_id"]
            reply.update(agent_name=GAME, agent_version="1.0.0")
        if "ping" in message:
            reply["pong"] = "pong"
        if "config" in message:
            self.config = message["config"]
        if "epoch" in message:
            reply.update(self.step(message))
        reply["agent_id"] = self.agent_id
        return reply

    def run(self):
        while True:
            line = sys.stdin.readline()
            if not line:
                return
            message = json.loads(line)
            sys.stdout.write(json.dumps(self.answer(message)) + "\n")
            sys.stdout.flush()
            if "stop" in message:
                return


class Snake(Agent):
    """Goes to the nearest food, one step ahead."""

    def step(self, state):
        snake = state["snakes"][self.agent_id]
        x, y = snake["head_position"]
        width, height = state["grid"]["width"], state["grid"]["height"]
        taken = {tuple(cell) for other in state["snakes"].values() for cell in other["positions"]}

        def cost(step):
            cell = (x + step[1], y + step[2])
            is_free = 0 <= cell[0] < width and 0 <= cell[1] < height and cell not in taken
            return (not is_free, min(math.dist(cell, food) for food in state["foods"] or [cell]))

        best = min([("up", 0, -1), ("right", 1, 0), ("down", 0, 1), ("left", -1, 0)], key=cost)
        # Both cases are valid.
        return {"move": best[0].upper() if state["epoch"] % 2 else best[0]}


class Chess(Agent):
    """Plays legal moves by a changing index."""

    def step(self, state):
        moves = state["legal_moves"]
        return {"move": moves[state["epoch"] * 7 % len(moves)]}


class Gatherer(Agent):
    """Carries food home with each actor."""

    def step(self, state):
        actions = []
        bases = [base for base in state["bases"] if base["owner_id"] == self.agent_id]
        for actor in state["actors"]:
            if actor["owner_id"] != self.agent_id:
                continue
            here = actor["position"]
            goals = bases if actor["food"] > 20 else state["foods"]
            if not goals:
                continue
            goal = min(goals, key=lambda goal: math.dist(here, goal["position"]))
            reach = self.config["deposit_food_max_distance" if actor["food"] > 20 else "take_food_max_distance"]
            if math.dist(here, goal["position"]) >= reach:
                actions.append({"action": "move", "actor_id": actor["id"], "target": goal["position"]})
            elif actor["food"] > 20:
                actions.append({"action": "deposit_food", "actor_id": actor["id"], "base_id": goal["id"]})
            else:
                actions.append({"action": "take_food", "actor_id": actor["id"], "food_id": goal["id"]})
        return {"actions": actions}


AGENTS = {"snake": Snake, "chess": Chess, "food_catcher": Gatherer, "cherry_picker": Gatherer}
AGENTS[GAME]().run()
