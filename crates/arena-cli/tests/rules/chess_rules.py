"""Chess by python-chess: every position, its legal moves, and the end of each game."""

import chess
from difference import Difference, need
from wild import decide

SIDES = {chess.WHITE: "WHITE", chess.BLACK: "BLACK"}
TERMINATIONS = {
    chess.Termination.CHECKMATE: "CHECKMATE",
    chess.Termination.STALEMATE: "STALEMATE",
    chess.Termination.INSUFFICIENT_MATERIAL: "INSUFFICIENT_MATERIAL",
    chess.Termination.SEVENTYFIVE_MOVES: "SEVENTYFIVE_MOVES",
    chess.Termination.FIVEFOLD_REPETITION: "FIVEFOLD_REPETITION",
}


def describe(board):
    return {
        "fen": board.fen(),
        "epd": board.epd(),
        "turn": board.turn,
        "color": SIDES[board.turn],
        "last_move": board.peek().uci() if board.move_stack else None,
    }


def claimed(board):
    """Returns the result of a draw claim in this position; `None` if the claim is invalid."""
    if board.is_repetition(3):
        return "THREEFOLD_REPETITION"
    return "FIFTY_MOVES" if board.is_fifty_moves() else None


def check(lines):
    """Checks a replay. Returns the number of computed states."""
    header, *epochs, last = lines
    ids = [agent["agent_id"] for agent in header["agents"]]
    board, ended, white = chess.Board(), None, None
    for at, line in enumerate(epochs):
        try:
            need(ended is None, "goes on behind", ended)
            state = line["world_state"]
            for key, value in describe(board).items():
                need(state[key] == value, key, "is", value, "recorded", state[key])
            legal = sorted(move.uci() for move in board.legal_moves)
            need(sorted(state["legal_moves"]) == legal, "legal moves", legal, "recorded", state["legal_moves"])
            asked = [seat for seat, actions in enumerate(line["actions"]) if actions is not None]
            need(len(asked) == 1, "asked", asked)
            white = asked[0] if white is None else white
            need((asked[0] == white) == board.turn, "asked", asked)
            recorded = line["actions"][asked[0]]
            wanted = decide("chess", ids[asked[0]], state, header["config"])
            claims = any(action == {"action": "claim_draw"} for action in wanted)
            move = next(action for action in wanted if isinstance(action, dict) and action.get("action") == "move")
            ended = claimed(board) if claims else None
            if ended is None:
                need(move in recorded, "moved", move, "recorded", recorded)
                board.push_uci(move["move"])
                outcome = board.outcome()
                ended = TERMINATIONS[outcome.termination] if outcome else None
        except Difference as difference:
            raise Difference(f"epoch {at + 1}: {difference}") from None
    outcome, result = board.outcome(), last["result"]
    for key, value in describe(board).items():
        # No player is to move after the end, so the state names no color.
        need(
            key == "color" or last["world_state"][key] == value,
            "in the end",
            key,
            "is",
            value,
            "recorded",
            last["world_state"][key],
        )
    winner = SIDES[outcome.winner] if outcome and outcome.winner is not None else "DRAW"
    points = {"WHITE": [1, 0], "BLACK": [0, 1], "DRAW": [0.5, 0.5]}[winner]
    text = {"WHITE": "1-0", "BLACK": "0-1", "DRAW": "1/2-1/2"}[winner]
    need(result["outcome"]["termination"] == ended, "ended by", ended, "recorded", result["outcome"])
    need((result["outcome"]["winner"], result["outcome"]["result"]) == (winner, text), winner, "wins; recorded", result)
    need(result["scores"] == (points if white == 0 else points[::-1]), "scores", points, "recorded", result)
    return len(epochs)
