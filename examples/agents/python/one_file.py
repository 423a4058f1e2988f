#!/usr/bin/env python3
"""A complete agent in one file, for every game. Fill in `decide`."""

import json
import sys


def decide(me, state, config):
    """Returns the actions of this epoch."""
    if "legal_moves" in state:  # chess
        return [{"action": "move", "move": state["legal_moves"][0]}]
    if "snakes" in state:
        return [{"action": "move", "move": "UP"}]
    return []


me, config = None, {}
for line in sys.stdin:
    message, reply = json.loads(line), {}
    if "stop" in message:
        break
    if "ping" in message:
        reply["pong"] = "pong"
    if "set_agent_id" in message:
        me, config = message["set_agent_id"], message.get("config", {})
        reply["agent_id"] = me
    if "world_state" in message:
        reply.update(agent_id=me, actions=decide(me, message["world_state"], config))
    print(json.dumps(reply), flush=True)
