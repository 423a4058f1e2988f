"""Plays random chess moves, without draws by agreement: games continue until a rule ends them."""

import json
import random
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "ping" in message:
        reply = {"pong": "pong"}
    elif "set_agent_id" in message:
        agent_id = message["set_agent_id"]
        choice = random.Random(agent_id)
        reply = {"agent_id": agent_id}
    elif "world_state" in message:
        move = choice.choice(message["world_state"]["legal_moves"])
        reply = {"agent_id": agent_id, "actions": [{"action": "move", "move": move}]}
    else:
        break
    print(json.dumps(reply), flush=True)
