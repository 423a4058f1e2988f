"""Reads games with python-chess and compares each with its tournament.

    read.py FOLDER PGN

FOLDER contains the tournament's journal and replays. Moves come from the replays' actions and results from the journal, not from
the arena's own representation of moves or positions. Prints counts as a JSON object.
"""

import json
import sys
from pathlib import Path

import chess.pgn

folder, pgn = Path(sys.argv[1]), Path(sys.argv[2])


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


games = {line["fixture"]: line for line in lines(folder / "tournament.jsonl")[1:]}


def played(number):
    """Returns the moves of a game as its agents sent them, and the seat that moved first."""
    moves, first = [], None
    for line in lines(folder / "replays" / f"{number}.jsonl")[1:]:
        for seat, actions in enumerate(line.get("actions") or []):
            for action in actions or []:
                moves.append(action["move"])
                first = seat if first is None else first
    return moves, first


told = {"games": 0, "plies": 0, "quiet": 0, "endings": {}}
with pgn.open() as file:
    while (game := chess.pgn.read_game(file)) is not None:
        assert not game.errors, game.errors
        number = int(game.headers["Round"].split(".")[1])
        line = games.pop(number)
        moves, white = played(number)
        assert [move.uci() for move in game.mainline_moves()] == moves, f"game {number}: other moves"
        players = [game.headers["White"], game.headers["Black"]]
        assert players == [line["agents"][white], line["agents"][1 - white]], f"game {number}: {players}"
        own, other = line["ranks"][white], line["ranks"][1 - white]
        result = "1/2-1/2" if own == other else "1-0" if own < other else "0-1"
        assert game.headers["Result"] == result, f"game {number}: {game.headers['Result']}"
        board = game.end().board()
        outcome = board.outcome()
        assert outcome is not None and outcome.result() == result, f"game {number}: {outcome} at {board.fen()}"
        assert outcome.termination.name == line["outcome"]["termination"], f"game {number}: {outcome}"
        told["games"] += 1
        told["plies"] += len(moves)
        told["quiet"] = max([told["quiet"], *(node.board().halfmove_clock for node in game.mainline())])
        ending = outcome.termination.name
        told["endings"][ending] = told["endings"].get(ending, 0) + 1
assert not games, f"missing games: {sorted(games)}"
print(json.dumps(told))
