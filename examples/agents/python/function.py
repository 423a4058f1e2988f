"""Agents that are functions. The arena runs them without a protocol file:

    arena match run snake --agent py:examples/agents/python/function.py:agent --agent house

`agent` reads the state, `kaggle` has the arguments of kaggle_environments, and `Texts` reads and returns texts, as in
TextArena. Each one goes where its snake survives the step; `Texts` plays challenges, too.
"""

MOVES = {"UP": (0, -1), "RIGHT": (1, 0), "DOWN": (0, 1), "LEFT": (-1, 0)}


def agent(state):
    """Returns a direction in which nothing is in the way."""
    snakes, grid = state["snakes"], state["grid"]
    x, y = snakes[state["you"]]["head_position"]
    taken = {tuple(cell) for snake in snakes.values() for cell in snake["positions"]}
    for move, (dx, dy) in MOVES.items():
        cell = (x + dx, y + dy)
        if 0 <= cell[0] < grid["width"] and 0 <= cell[1] < grid["height"] and cell not in taken:
            return move
    return "UP"


def kaggle(observation, configuration):
    """Returns the same, in the form of Kaggle's competitions."""
    me = observation.agent_ids[observation.player]
    return agent({"snakes": observation.snakes, "grid": observation.grid, "you": me})


class Texts:
    """Greets the other players of a challenge once."""

    def __init__(self):
        self.has_spoken = False

    def __call__(self, observation: str) -> str:
        """Returns a chat message; `METHOD: CONTENT` would call a method."""
        if self.has_spoken:
            return ""
        self.has_spoken = True
        return "Hello! What do you propose?"
