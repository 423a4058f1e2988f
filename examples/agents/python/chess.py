#!/usr/bin/env python3
"""Chess, one ply deep: counts captures and the opponent's recaptures. The arena lists the legal moves, so
this agent knows only the attacks of pieces, not the rules of chess."""

import colosseum

# The values of pieces in hundredths of a pawn: all values are integers, so a sum doesn't depend on its order.
VALUES = {"p": 100, "n": 300, "b": 300, "r": 500, "q": 900, "k": 10000}

# The boards after our own moves. A repeated board leads to a draw.
seen = {}


def decide(me, state, config):
    """Returns the best move. Boards are dicts from (file, rank), each from 0, to pieces as in FEN."""
    board = read_fen(state["fen"])
    is_white = state["turn"]
    best, best_score, best_key = None, None, None
    for move in state["legal_moves"]:
        after, gain = play(board, move)
        key = str(sorted(after.items()))
        score = gain + outlook(after, is_white, square(move[2:4])) - 50 * seen.get(key, 0)
        if best is None or score > best_score:
            best, best_score, best_key = move, score, key
    if best is None:
        return []
    seen[best_key] = seen.get(best_key, 0) + 1
    return [{"action": "move", "move": best}]


def read_fen(fen):
    """Reads the board of a FEN, which lists ranks from the eighth to the first."""
    board = {}
    for row, pieces in enumerate(fen.split()[0].split("/")):
        file = 0
        for char in pieces:
            if char.isdigit():
                file += int(char)
            else:
                board[file, 7 - row] = char
                file += 1
    return board


def square(name):
    """Returns the coordinates of a square such as e4."""
    return ord(name[0]) - ord("a"), int(name[1]) - 1


def play(board, move):
    """Returns the board after a legal move in UCI notation, and the move's gain."""
    start, end = square(move[:2]), square(move[2:4])
    after = dict(board)
    piece = after.pop(start)
    gain = VALUES[after[end].lower()] if end in after else 0
    if piece in "Pp" and start[0] != end[0] and end not in after:
        # En passant: the captured pawn is beside the start.
        after.pop((end[0], start[1]), None)
        gain = VALUES["p"]
    if piece in "Kk" and abs(start[0] - end[0]) == 2:
        # Castling: the rook jumps over the king.
        is_short = end[0] > start[0]
        rook = after.pop((7 if is_short else 0, start[1]), None)
        if rook:
            after[5 if is_short else 3, start[1]] = rook
    if len(move) > 4:
        gain += VALUES[move[4]] - VALUES["p"]
        piece = move[4].upper() if piece == "P" else move[4]
    after[end] = piece
    return after, gain


def outlook(board, is_white, moved):
    """Rates a board for the side that has just moved a piece to the square `moved`."""
    ours = [(at, piece) for at, piece in board.items() if piece.isupper() == is_white]
    theirs = [(at, piece) for at, piece in board.items() if piece.isupper() != is_white]
    score, threat = 0, 0
    for at, piece in ours:
        attackers = [VALUES[other.lower()] for start, other in theirs if attacks(board, start, at)]
        if attackers and piece not in "Kk":
            # A capture of a guarded piece is answered by a recapture.
            is_guarded = any(attacks(board, start, at) for start, _ in ours if start != at)
            threat = max(threat, VALUES[piece.lower()] - (min(attackers) if is_guarded else 0))
        # Pieces are stronger in the center, pawns when advanced.
        if piece in "Pp":
            score += 3 * (at[1] if is_white else 7 - at[1])
        elif piece not in "Kk":
            score -= abs(2 * at[0] - 7) + abs(2 * at[1] - 7)
    is_check = any(piece in "Kk" and attacks(board, moved, at) for at, piece in theirs)
    return score - threat + (20 if is_check else 0)


def attacks(board, start, end):
    """True if the piece on `start` could capture on `end`."""
    kind = board[start].lower()
    dx, dy = end[0] - start[0], end[1] - start[1]
    far, near = max(abs(dx), abs(dy)), min(abs(dx), abs(dy))
    if kind == "p":
        return abs(dx) == 1 and dy == (1 if board[start] == "P" else -1)
    if kind == "n":
        return (far, near) == (2, 1)
    if kind == "k":
        return far == 1
    is_straight, is_diagonal = near == 0 and far > 0, near == far > 0
    if not (is_straight and kind in "rq" or is_diagonal and kind in "bq"):
        return False
    x, y = dx // far, dy // far
    return all((start[0] + x * step, start[1] + y * step) not in board for step in range(1, far))


if __name__ == "__main__":
    colosseum.run("chess-py", "1", decide)
