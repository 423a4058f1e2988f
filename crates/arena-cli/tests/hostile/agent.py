#!/usr/bin/python3
"""Agents that misbehave, and agents with unusual but allowed behavior. The name of the file selects the behavior: silent.py is
silent, honest.py plays normally. Each behavior replaces an honest agent's reaction to the start, the ping, the id or a state; a
behavior that returns HONESTLY is followed by the honest reaction."""

import json
import os
import signal
import socket
import sys
import time

NAME = os.path.basename(sys.argv[0]).removesuffix(".py")
FOLDER = os.path.dirname(os.path.abspath(sys.argv[0]))
MOVES = {"UP": (0, -1), "RIGHT": (1, 0), "DOWN": (0, 1), "LEFT": (-1, 0)}
HONESTLY = True
FOR_EVER = 600

out = sys.stdout.buffer
me = None
hooks = {}


def on(event):
    """Registers a behavior if the file name selects it."""
    def note(function):
        if function.__name__ == NAME:
            hooks[event] = function
        return function
    return note


def write(data):
    """Writes bytes and flushes."""
    out.write(data)
    out.flush()


def say(**keys):
    """Writes an object as a line of JSON."""
    write(json.dumps(keys).encode() + b"\n")


def actions(state):
    """Returns honest actions: the first legal move in chess, no crash in snake, nothing elsewhere."""
    if "legal_moves" in state:
        return [{"action": "move", "move": state["legal_moves"][0]}]
    if "snakes" in state and state["snakes"][me]["alive"]:
        taken = [cell for snake in state["snakes"].values() for cell in snake["positions"]]
        size = (state["grid"]["width"], state["grid"]["height"])
        x, y = state["snakes"][me]["head_position"]
        for move, (dx, dy) in MOVES.items():
            cell = [x + dx, y + dy]
            if cell not in taken and 0 <= cell[0] < size[0] and 0 <= cell[1] < size[1]:
                return [{"action": "move", "move": move}]
    return []


def main():
    global me
    call("start", None, lambda _: None)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "stop" in message:
            return call("stop", message, lambda _: None)
        if "ping" in message:
            call("ping", message, lambda _: say(pong="pong"))
        elif "set_agent_id" in message:
            me = message["set_agent_id"]
            call("id", message, lambda _: say(agent_id=me, agent_name=NAME))
        else:
            call("state", message["world_state"], lambda state: say(agent_id=me, actions=actions(state)))


def call(event, message, honest):
    hook = hooks.get(event)
    if hook is None or hook(message):
        honest(message)


# --- the start -------------------------------------------------------------------------------------------------------------------


@on("start")
def silent(_):
    time.sleep(FOR_EVER)


@on("start")
def exits_at_once(_):
    sys.exit(0)


@on("start")
def talks_on_stdout(_):
    write(b"Hello, I am an agent.\n")
    return HONESTLY


@on("ping")
def no_pong(_):
    say(ready=True)


@on("ping")
def pong_of_null(_):
    say(pong=None)


@on("id")
def exits_after_the_ping(_):
    sys.exit(3)


# --- answers ---------------------------------------------------------------------------------------------------------------------


@on("state")
def mute(_):
    pass


@on("state")
def late(state):
    time.sleep(0 if state["epoch"] < 3 else 2)
    return HONESTLY


@on("state")
def speaks_as_its_opponent(state):
    say(agent_id=next(other for other in state["agent_ids"] if other != me), actions=[])


@on("state")
def makes_up_an_id(_):
    say(agent_id="8b2f7c9e-0000-4000-8000-000000000000", actions=[])


@on("state")
def spells_its_id_in_capitals(state):
    say(agent_id=me.upper(), actions=actions(state))


@on("state")
def has_an_empty_id(state):
    say(agent_id="", actions=actions(state))


@on("state")
def leaves_out_its_id(state):
    say(actions=actions(state))


@on("state")
def has_a_number_for_an_id(_):
    say(agent_id=7, actions=[])


@on("state")
def rubbish(_):
    write(b"certainly not JSON\n")


@on("state")
def sends_a_list(_):
    write(b'[{"agent_id": "me"}]\n')


@on("state")
def invalid_utf8(_):
    write(b'{"agent_id": "\xff\xfe", "actions": []}\n')


@on("state")
def not_a_number(_):
    write(b'{"agent_id": "%s", "actions": [{"action": "move", "target": [NaN, Infinity]}]}\n' % me.encode())


@on("state")
def half_a_line(_):
    write(b'{"agent_id": "')
    time.sleep(FOR_EVER)


@on("state")
def endless_line(_):
    while True:
        write(b"x" * 65536)


@on("state")
def fifty_megabytes(_):
    write(b"[" + b"1," * (25 << 20) + b"1]\n")


@on("state")
def endless_nesting(_):
    while True:
        write(b'{"a":[' * 10000)


def says_good_bye(message):
    time.sleep(0.02)
    print("told to stop:", message["stop"]["reason"], file=sys.stderr, flush=True)


@on("state")
def cheats_and_says_good_bye(state):
    speaks_as_its_opponent(state)


@on("stop")
def cheats_and_says_good_bye(message):
    says_good_bye(message)


@on("state")
def errs_and_says_good_bye(_):
    write(b"oops\n")


@on("stop")
def errs_and_says_good_bye(message):
    says_good_bye(message)


# --- floods ----------------------------------------------------------------------------------------------------------------------


@on("state")
def floods_with_answers(_):
    line = json.dumps({"agent_id": me, "actions": []}).encode() + b"\n"
    while True:
        write(line * 1000)


@on("state")
def floods_with_blank_lines(_):
    while True:
        write(b"\r\n" * 32768)


@on("state")
def floods_stderr(_):
    while True:
        os.write(2, b"and again, and again, and again\n" * 2000)


@on("state")
def floods_stderr_and_plays(_):
    if os.fork() == 0:
        while True:
            os.write(2, b"and again, and again, and again\n" * 2000)
    hooks.clear()
    return HONESTLY


# --- ends ------------------------------------------------------------------------------------------------------------------------


@on("start")
def never_reads(_):
    say(pong="pong")
    time.sleep(FOR_EVER)


@on("state")
def closes_stdin(_):
    os.close(0)
    time.sleep(FOR_EVER)


@on("state")
def closes_stdout(_):
    os.close(1)
    time.sleep(FOR_EVER)


@on("state")
def exits_with_3(state):
    if state["epoch"] == 3:
        sys.exit(3)
    return HONESTLY


@on("state")
def segfaults(state):
    if state["epoch"] == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    return HONESTLY


@on("state")
def stops_itself(_):
    stop()


# --- processes, memory, time -----------------------------------------------------------------------------------------------------


def descend(prepare):
    """Starts a child process that keeps the pipes open."""
    if os.fork() == 0:
        prepare()
        time.sleep(FOR_EVER)
        os._exit(0)


def leave():
    """Leaves the parent: by a new session, or by a new process group where a sandbox allows no session."""
    try:
        os.setsid()
    except PermissionError:
        os.setpgid(0, 0)


def twice():
    leave()
    if os.fork():
        os._exit(0)


def deaf():
    for number in range(1, 32):
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            pass


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def family():
    for prepare in [lambda: None, leave, twice, deaf, lambda: (twice(), deaf()), stop]:
        descend(prepare)
    time.sleep(0.1)


@on("state")
def leaves_a_family_behind(_):
    family()
    os._exit(3)


@on("start")
def has_a_family(_):
    family()
    return HONESTLY


@on("start")
def ignores_signals(_):
    deaf()
    return HONESTLY


@on("stop")
def ignores_the_end(_):
    deaf()
    time.sleep(FOR_EVER)


@on("state")
def eats_memory(_):
    eaten = []
    while True:
        eaten.append(bytearray(os.urandom(1 << 20)))


@on("state")
def eats_memory_in_many_processes(_):
    for _ in range(20):
        if os.fork() == 0:
            eaten = bytearray(os.urandom(1 << 20)) * 60
            time.sleep(FOR_EVER)
    time.sleep(FOR_EVER)


@on("state")
def forks_without_end(_):
    while True:
        try:
            os.fork()
        except OSError:
            pass


@on("start")
def burns_the_processor(_):
    for _ in range(50):
        if os.fork() == 0:
            leave()
            while True:
                pass
    return HONESTLY


@on("id")
def fills_the_disk(_):
    with open("big", "wb", buffering=0) as file:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            while True:
                file.write(bytes(1 << 20))
        except OSError:
            pass
    return HONESTLY


@on("id")
def hides_files(_):
    os.makedirs("a/b/c", 0o700)
    open("a/b/c/file", "w").close()
    os.symlink("/", "a/root")
    os.mkdir("a/closed", 0)
    for folder in ["a/b/c", "a/b", "a"]:
        try:
            os.chmod(folder, 0)
        except PermissionError:
            pass
    return HONESTLY


# --- forbidden resources ---------------------------------------------------------------------------------------------------------


@on("id")
def snoops(_):
    """Lists in its name the resources it could access."""
    pid_file = os.path.join(FOLDER, "late", "runner.pid")
    while not os.path.exists(pid_file) or not open(pid_file).read().endswith("\n"):
        time.sleep(0.01)
    pid = int(open(pid_file).read())
    targets = json.load(open(os.path.join(FOLDER, "targets.json")))
    found = []

    def attempt(name, what):
        try:
            what()
            found.append(name)
        except OSError:
            pass

    def connect():
        socket.create_connection(("127.0.0.1", targets["port"]), 20).close()

    attempt("secret", lambda: open(targets["secret"]).read())
    attempt("opponent", lambda: open(targets["opponent"]).read())
    attempt("network", connect)
    attempt("signal", lambda: os.kill(pid, 0))
    attempt("environ", lambda: open(f"/proc/{pid}/environ").read())
    attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    attempt("affinity", lambda: os.sched_setaffinity(pid, os.sched_getaffinity(pid)))
    say(agent_id=me, agent_name=" ".join(["got:"] + found))


# --- in chess --------------------------------------------------------------------------------------------------------------------


@on("state")
def moves_a_king_by_five(_):
    say(agent_id=me, actions=[{"action": "move", "move": "e1e6"}])


@on("state")
def moves_by_a_number(_):
    say(agent_id=me, actions=[{"action": "move", "move": 5}])


@on("state")
def does_not_move(_):
    say(agent_id=me, actions=[])


@on("state")
def moves_by_nonsense(_):
    say(agent_id=me, move="\u2654\u0000" * 1000)


# --- unusual, but within the protocol --------------------------------------------------------------------------------------------


@on("state")
def ends_lines_as_on_windows(state):
    write(json.dumps({"agent_id": me, "actions": actions(state)}).encode() + b"\r\n")


@on("start")
def begins_with_a_byte_order_mark(_):
    write(b"\xef\xbb\xbf")
    return HONESTLY


@on("state")
def moves_north(_):
    say(agent_id=me, actions=[{"action": "move", "move": "NORTH"}])


@on("state")
def answers_in_two_pieces(state):
    line = json.dumps({"agent_id": me, "actions": actions(state)}).encode() + b"\n"
    write(line[:20])
    time.sleep(0.01)
    write(line[20:])


@on("state")
def adds_keys(state):
    say(thoughts=["hm"], agent_id=me, actions=actions(state), stop={}, ping="ping", world_state=None)


@on("state")
def adds_a_megabyte(state):
    say(agent_id=me, actions=actions(state), padding="x" * 500000, more=[{"n": 1}] * 50000)


@on("state")
def chatters(state):
    print("thinking about it \u001b[31m" * 5000, file=sys.stderr, flush=True)
    return HONESTLY


@on("state")
def chatters_and_exits(state):
    chatters(state)
    sys.exit(3)


@on("state")
def thinks_long(state):
    if state["epoch"] <= 4:
        time.sleep(0.35)
    return HONESTLY


@on("id")
def keeps_its_name_to_itself(_):
    pass


@on("id")
def keeps_its_name_to_itself_and_passes(_):
    pass


@on("state")
def keeps_its_name_to_itself_and_passes(_):
    say(agent_id=me)


@on("id")
def says_its_name_late(_):
    time.sleep(0.7)
    return HONESTLY


@on("state")
def answers_by_a_move_alone(state):
    say(agent_id=me, move=(actions(state) or [{"move": "up"}])[0]["move"])


@on("state")
def answers_twice(state):
    line = json.dumps({"agent_id": me, "actions": actions(state)}).encode() + b"\n"
    write(line + line)


@on("state")
def counts_epochs_in_its_own_way(state):
    say(agent_id=me, actions=actions(state), epoch=state["epoch"] - 1)


@on("state")
def spells_its_id_with_escapes(state):
    spelled = "".join(f"\\u{ord(char):04x}" for char in me)
    write(b'{"agent_id": "%s", "actions": %s}\n' % (spelled.encode(), json.dumps(actions(state)).encode()))


@on("state")
def sends_blank_lines(state):
    write(b"\n\r\n  \n" + json.dumps({"agent_id": me, "actions": actions(state)}).encode() + b"\n\n")


@on("id")
def has_a_name_that_steers_terminals(_):
    say(agent_id=me, agent_name="\u001b[2J\u001b]0;owned\u0007evil\r\n\u202ebot", agent_version="\u009b31m1")


@on("state")
def acts_wildly(_):
    deep = "[" * 100000 + "]" * 100000
    wild = ["null", "7", "true", '"up"', "[]", "{}", '{"action": null}', '{"action": "fly"}', '{"action": "move"}', deep]
    wild += ['{"action": "move", "move": %s}' % value for value in ["null", "1e999", "-1e999", "[]", '"\\u0000"', deep]]
    wild += ['{"action": "move", "actor_id": %s, "target": %s}' % (value, target)
             for value in ["1", '"x"', "9" * 400] for target in ["[1e999, 0]", "[0]", "null", "[%s, 1]" % ("9" * 400)]]
    write(b'{"agent_id": "%s", "epoch": %s, "actions": [%s]}\n' % (me.encode(), b"9" * 400, ", ".join(wild).encode()))


@on("state")
def has_no_list_of_actions(state):
    line = ["null", "7", '"up"', "{}", "9" * 400, "1e999"][state["epoch"] % 6]
    write(b'{"agent_id": "%s", "actions": %s}\n' % (me.encode(), line.encode()))


if __name__ == "__main__":
    main()
