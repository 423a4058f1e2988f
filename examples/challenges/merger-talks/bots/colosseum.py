"""The protocol: JSON objects on lines, read from stdin and answered on stdout. The agent decides the actions."""

import json
import sys
import traceback

# Stdout is reserved for the protocol. From here on, print() writes to stderr, which is the agent's log.
_out = sys.stdout
sys.stdout = sys.stderr


def run(name, version, decide):
    """Plays one match. `decide(me, state, config)` receives the agent's id, the state, and the constants of the game, and
    returns a list of actions."""
    me, config = None, {}
    for line in sys.stdin.buffer:
        message = _read(line)
        if "stop" in message:
            return
        reply = {}
        if "ping" in message:
            reply["pong"] = "pong"
        if "set_agent_id" in message:
            me, config = message["set_agent_id"], message.get("config", {})
            reply.update(agent_id=me, agent_name=name, agent_version=version)
        if "world_state" in message:
            reply.update(agent_id=me, actions=_decide(decide, me, message["world_state"], config))
        if reply:
            # One write and a flush, because the arena doesn't receive an answer in a buffer.
            _out.write(json.dumps(reply) + "\n")
            _out.flush()


def _read(line):
    try:
        message = json.loads(line)
    except ValueError as error:
        print(f"not JSON: {error}", file=sys.stderr)
        message = None
    return message if isinstance(message, dict) else {}


def _decide(decide, me, state, config):
    # An epoch without actions is better than a crash, which ends the match.
    try:
        return decide(me, state, config)
    except Exception:
        traceback.print_exc()
        return []
