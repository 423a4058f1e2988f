#!/usr/bin/python3
"""Chess engines that misbehave. The name of the file selects the behavior; `plays.py` plays a recorded game with either color, and
sends lines `info`. No engine knows the rules."""

import os
import sys
import time

NAME = os.path.basename(sys.argv[0]).removesuffix(".py")
# With the process id, this identifies a process, also in a namespace of its own.
BEGAN = time.monotonic_ns()
FOR_EVER = 600
GAME = """
a2a4 d7d6 d2d3 b7b5 b2b3 e7e5 e2e3 c7c5 g1f3 d6d5 b3b4 d8h4 b4c5 f8e7 g2g4 c8g4 f3d4 g4d7 h2h3 d7f5 a1a3 b5a4
d4b5 g7g6 a3b3 g8h6 f1e2 h4g4 e1f1 e7d6 h3g4 e8d7 b5c3 d7d8 b1d2 d8c8 b3b6 h8g8 b6b8 c8d7 c3d5 g8b8 d2f3 h6g8
h1h2 b8b2 c2c3 a7a5 h2h7 d7d8 d5b6 b2b3 f3h2 g8h6 e2f3 d6c5 f3a8 a4a3 h7f7 f5e4 f7f8 d8c7 b6a4 c7d7 f1e1 h6g8
e1e2 e4g2 h2f3 b3b8 f3h2 b8b4 c1a3 g2d5 a8c6 d7e7 c6b5 g8f6 e2d2 c5b6 f8g8 d5a8 d1f3 f6d7 f3f4 b6e3 f2e3 a8b7
a4b6 e7d6 c3b4 b7c8 d2e1 d7b8 b6c8 d6c7 f4f1 g6g5 e1f2 b8a6 f1c1 c7b7 c1c5 b7a8 f2g2 a6b4 c5e5 a8b7 e5g3 b4c6
b5c4 c6e5 h2f3 e5c4 f3h4 b7a6 g3h2 c4e5 d3d4 a6b5
""".split()


def say(line):
    print(line, flush=True)


def sleep():
    time.sleep(FOR_EVER)


def greet():
    """Answers `uci`."""
    if NAME == "never_uciok":
        say("id name Mute")
        sleep()
    if NAME == "floods_options":
        while True:
            say("option name X type string default <empty>")
    if NAME == "exits_at_uci":
        sys.exit(4)
    say(f"id name Stand-in {NAME}")
    say("option name Hash type spin default 16 min 1 max 1024")
    say("option name Style type combo default Solid var Solid var Sharp")
    say("option name Clear Hash type button")
    say("uciok")


def best(ply, games):
    """Answers `go` after this number of plies, in the game of this number since the start."""
    if NAME == "exits_in_second_game" and games == 2 and ply >= 4:
        sys.exit(5)
    if NAME == "exits_at_move_40" and ply >= 78:
        sys.exit(5)
    if NAME == "floods_info":
        while True:
            sys.stdout.write("info depth 1 score cp 1 nodes 1 pv a2a4\n" * 1000)
    if NAME == "endless_info":
        while True:
            sys.stdout.write("info string " + "x" * 100_000)
    if NAME == "never_answers":
        return
    if NAME == "blocks":
        sleep()
    if NAME == "plays_on_clocks":
        time.sleep(0.01)
    say(f"info depth {ply + 1} seldepth 9 score cp {-10 * ply if ply % 2 else 10 * ply} nodes {BEGAN} time {os.getpid()} pv {GAME[ply]}")
    say("info string a remark")
    say({
        "moves_illegally": "bestmove e1e5",
        "finds_no_move": "bestmove (none)",
        "plays_a_null_move": "bestmove 0000",
        "answers_without_a_move": "bestmove",
    }.get(NAME, f"bestmove {GAME[ply]} ponder a7a5"))


def main():
    if NAME == "speaks_first":
        say("Stand-in 1.0, the engine that speaks first")
        say("bestmove e1e5")
        say("readyok")
    ply, games, is_loaded = 0, 0, False
    for line in sys.stdin:
        words = line.split()
        match words[0] if words else "":
            case "uci":
                greet()
            case "isready":
                if NAME == "never_readyok":
                    sleep()
                if NAME == "slow_ready" and not is_loaded:
                    time.sleep(6)
                is_loaded = True
                if NAME == "slow_second_ready" and games == 2:
                    sleep()
                say("readyok")
            case "ucinewgame":
                ply, games = 0, games + 1
            case "setoption":
                print(line.strip(), file=sys.stderr, flush=True)
            case "position":
                ply = len(words) - words.index("moves") - 1 if "moves" in words else 0
            case "go":
                print(line.strip(), file=sys.stderr, flush=True)
                best(ply, games)
                if NAME == "speaks_between_moves":
                    say("bestmove e1e5")
            case "stop":
                if NAME == "never_answers":
                    continue
            case "quit":
                if NAME == "ignores_quit":
                    sleep()
                return


main()
