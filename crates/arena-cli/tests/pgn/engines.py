"""Reads games of engines with python-chess.

    engines.py PGN BOOK

Checks that python-chess reports no error or warning, that each game begins with a position of the book, and that both games of a pair
have one opening and swapped colors. Prints counts as a JSON object.
"""

import json
import logging
import sys

import chess
import chess.pgn


class Fails(logging.Handler):
    """A handler that fails on each message of python-chess."""

    def emit(self, record):
        raise AssertionError(record.getMessage())


logging.getLogger("chess.pgn").addHandler(Fails())
with open(sys.argv[2]) as book:
    openings = {chess.Board.from_epd(line)[0].epd() for line in book if line.strip()}
told = {"games": 0, "plies": 0, "scores": 0, "clocks": 0}
pairs = {}
with open(sys.argv[1]) as file:
    while (game := chess.pgn.read_game(file)) is not None:
        assert not game.errors, game.errors
        assert game.headers["SetUp"] == "1" and game.headers["TimeControl"] == "1+0.01", game.headers
        board = game.board()
        assert board.epd() in openings, board.epd()
        number = int(game.headers["Round"].split(".")[1])
        pairs.setdefault((number - 1) // 2, []).append((board.fen(), game.headers["White"], game.headers["Black"]))
        for node in game.mainline():
            told["plies"] += 1
            told["scores"] += node.eval() is not None
            if node.clock() is not None:
                told["clocks"] += 1
                assert 0 <= node.clock() <= 1.2, node.clock()
        told["games"] += 1
for one, other in pairs.values():
    assert one[0] == other[0] and one[1:] == other[:0:-1], (one, other)
told["openings"] = len({pair[0][0] for pair in pairs.values()})
print(json.dumps(told))
