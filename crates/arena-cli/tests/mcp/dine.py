"""Plays dining cryptographers over MCP with the official client, by the protocol in the prompt.

    python dine.py URL INVITE

Prints the guess. An unexpected answer ends the program with a traceback and a nonzero status.
"""

import asyncio
import json
import re
import sys

from mcp.client.client import Client


async def call(client: Client, tool: str, **arguments) -> dict:
    """Calls a tool and returns its JSON; a refusal fails the program."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error and len(result.content) == 1, result
    return json.loads(result.content[0].text)


async def dine(url: str, you: str) -> str:
    async with Client(f"{url}/api/arena/mcp") as arena, Client(f"{url}/api/chat/mcp") as talk:
        session = (await call(arena, "challenge_join", invite=you))["ChallengeID"]
        paid, players, heard = False, [], 0
        while not players:
            answer = await call(arena, "challenge_sync", channel=session, index=heard + 1, **{"from": you})
            for message in answer["messages"]:
                heard = message["index"]
                paid = paid or message["content"] == "You paid the bill."
                if message["content"].startswith("All diners have arrived"):
                    players = re.findall(r"inv_[0-9a-f-]+", message["content"])
        seat = players.index(you)
        right = players[(seat + 1) % len(players)]
        await call(talk, "send_chat", channel=session, to=right, content="coin 1", **{"from": you})
        left, told, read = None, {}, 0
        while len(told) < len(players):
            answer = await call(talk, "sync", channel=session, index=read + 1, wait=25, **{"from": you})
            for message in answer["messages"]:
                read = message["index"]
                content = message["content"]
                if content.startswith("coin ") and message["from"] == players[seat - 1] and message.get("to") == you:
                    left = int(content[-1])
                    differ = 1 ^ left ^ paid
                    await call(talk, "send_chat", channel=session, content=f"differ {differ}", **{"from": you})
                if content.startswith("differ "):
                    told[message["from"]] = int(content[-1])
        guess = "internal" if sum(told.values()) % 2 else "external"
        act = {"challengeId": session, "messageType": "guess", "content": guess, "from": you}
        assert await call(arena, "challenge_message", **act) == {"ok": "Message sent"}
        return guess


print(asyncio.run(dine(sys.argv[1], sys.argv[2])))
