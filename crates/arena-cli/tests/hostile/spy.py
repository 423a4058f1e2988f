#!/usr/bin/python3
"""An agent that plays honestly and meanwhile reads every file it can open. It searches for the lines of needles.txt beside it, which
are written backwards, so that the file itself is no match. When it finds one, it crashes, which the result shows."""

import json
import os
import stat
import sys
import threading

FOLDER = os.path.dirname(os.path.abspath(sys.argv[0]))
NEEDLES = [line.strip()[::-1].encode() for line in open(os.path.join(FOLDER, "needles.txt"))]
# The system's programs, and devices, which have no end.
LEFT_OUT = {"/usr", "/lib", "/lib64", "/bin", "/sbin", "/sys", "/dev", "/proc"}
MOST = 8 << 20


def files():
    """Yields all files that can be listed, and those of processes."""
    starts = ["/", FOLDER, os.getcwd(), os.path.dirname(FOLDER), "/tmp", "/var/tmp", os.environ.get("HOME", "/")]
    for start in starts:
        for folder, folders, names in os.walk(start):
            folders[:] = [name for name in folders if os.path.join(folder, name) not in LEFT_OUT]
            for name in names:
                yield os.path.join(folder, name)
    try:
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        processes = []
    for process in ["self"] + processes:
        for name in ["cmdline", "environ", "mountinfo"]:
            yield f"/proc/{process}/{name}"
        for name in ["fd", "cwd", "root"]:
            folder = f"/proc/{process}/{name}"
            if process == "self" and name != "cwd":
                continue
            try:
                entries = os.listdir(folder)
            except OSError:
                continue
            for entry in entries:
                yield os.path.join(folder, entry)


def look():
    """Crashes if any readable file contains a needle."""
    for path in files():
        try:
            if not path.startswith("/proc/") and not stat.S_ISREG(os.stat(path).st_mode):
                continue
            if path.startswith("/proc/") and "/fd/" in path and not stat.S_ISREG(os.stat(path).st_mode):
                continue
            with open(path, "rb") as file:
                content = file.read(MOST)
        except OSError:
            continue
        for needle in NEEDLES:
            if needle in content:
                print("found", needle[::-1].decode(), "in", path, file=sys.stderr, flush=True)
                os._exit(3)


def watch():
    while True:
        look()


def main():
    # The arena writes this log beside the replay.
    print("whispered by", "a spy", file=sys.stderr, flush=True)
    threading.Thread(target=watch, daemon=True).start()
    me = None
    for line in sys.stdin:
        message = json.loads(line)
        look()
        if "ping" in message:
            reply = {"pong": "pong"}
        elif "set_agent_id" in message:
            me = message["set_agent_id"]
            reply = {"agent_id": me}
        elif "world_state" in message:
            reply = {"agent_id": me, "actions": []}
        else:
            break
        print(json.dumps(reply), flush=True)
    look()


main()
