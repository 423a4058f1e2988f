"""Plays a game of PSI over MCP with the official client, as two agents that use only the tools.

One player uses the protocol's newest revision, and the other the revision with `initialize`, at the same time. Both are
honest, so each must get 1 for utility and 1 for security within eight calls.

    python play_psi.py URL [--keys]

`--keys` is for an arena in authentication mode: one player joins with an identity that a tool creates, the other with a
signature of its own, and then both use session keys.

Prints each player's scores and number of calls as JSON. An unexpected result ends the script with a traceback and a
status other than 0.
"""

import argparse
import asyncio
import json
import re
import time
import urllib.request

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mcp.client.client import Client

# Maximum number of calls for a game.
MOST_CALLS = 8


class Player:
    """A seat in a session with its agent's two connections."""

    def __init__(self, invite: str, arena: Client, chat: Client, keys: bool, signs: bool):
        self.invite, self.keys, self.signs = invite, keys, signs
        self.clients = dict.fromkeys(["challenge_join", "challenge_message", "challenge_sync"], arena)
        self.clients |= dict.fromkeys(["send_chat", "sync"], chat)
        self.identity: dict[str, str] = {"from": invite}
        self.calls = 0
        self.session = ""
        self.heard = 0

    async def call(self, tool: str, **arguments):
        """Returns the JSON of a tool's result. No call of this game may be refused."""
        self.calls += 1
        result = await self.clients[tool].call_tool(tool, arguments)
        assert not result.is_error and len(result.content) == 1, result
        answer = json.loads(result.content[0].text)
        assert "error" not in answer, (tool, answer)
        return answer

    async def join(self):
        if not self.keys:
            proof = {"userId": f"agent of {self.invite[-4:]}"}
        elif self.signs:
            proof = signature(self.invite)
        else:
            # An agent creates its identity once, so the call isn't one of the game.
            created = await self.clients["challenge_join"].call_tool("identity_create", {})
            assert created.structured_content == json.loads(created.content[0].text), created
            assert len(created.structured_content["userId"]) == 64, created
            proof = {"identity": created.structured_content["identity"]}
        joined = await self.call("challenge_join", invite=self.invite, **proof)
        if self.keys:
            self.identity = {"key": joined["sessionKey"]}
        self.session = joined["ChallengeID"]
        methods = [method["name"] for method in joined["ChallengeInfo"]["methods"]]
        assert methods == ["guess"] and "private set" in joined["ChallengeInfo"]["prompt"], joined

    async def hear(self) -> list[dict]:
        """Returns the operator's new messages, after the tool's default wait at most."""
        answer = await self.call("challenge_sync", channel=self.session, index=self.heard + 1, **self.identity)
        messages = answer["messages"]
        assert messages and messages[0]["index"] == self.heard + 1, answer
        self.heard = messages[-1]["index"]
        return messages

    async def read(self, index: int) -> str:
        """Returns the chat message at an index."""
        answer = await self.call("sync", channel=self.session, index=index, wait=25, **self.identity)
        return answer["messages"][0]["content"]

    async def say(self, content: str, to: str | None = None):
        sent = await self.call("send_chat", channel=self.session, to=to, content=content, **self.identity)
        assert sent["from"] == self.invite and sent["to"] is None, sent

    async def guess(self, numbers: set[int]):
        move = {"challengeId": self.session, "messageType": "guess", "content": ", ".join(map(str, sorted(numbers)))}
        assert await self.call("challenge_message", **move, **self.identity) == {"ok": "Message sent"}


def signature(invite: str) -> dict:
    """Returns the proof fields of a join, with a new key each time."""
    key = Ed25519PrivateKey.generate()
    timestamp = time.time_ns() // 1_000_000
    return {
        "publicKey": key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo).hex(),
        "signature": key.sign(f"arena:v1:join:{invite}:{timestamp}".encode()).hex(),
        "timestamp": timestamp,
    }


def numbers_in(text: str) -> set[int]:
    return {int(digits) for digits in re.findall(r"\d+", text)}


def find(messages: list[dict], part: str) -> str | None:
    return next((message["content"] for message in messages if part in message["content"]), None)


async def play(player: Player, opens: bool):
    """Plays one agent's game. The agent that opens the chat sends its numbers; the other replies with the common ones."""
    await player.join()
    mine = numbers_in(find(await player.hear(), "Your private set is") or "")
    assert mine, "the operator tells each player its set first"
    if opens:
        await player.say("Mine are " + ", ".join(map(str, sorted(mine))) + ". Which of them do you have?")
        common = numbers_in(await player.read(2))
    else:
        common = mine & numbers_in(await player.read(1))
        await player.say("In common: " + ", ".join(map(str, sorted(common))))
    await player.guess(common)
    outcome = None
    while True:
        messages = await player.hear()
        outcome = outcome or find(messages, "Intersection Found")
        if end := find(messages, "Game ended."):
            assert outcome and "Intersection Found: true" in outcome and end.startswith("Game ended."), messages
            return end


async def agent(url: str, invite: str, mode: str, keys: bool, opens: bool):
    arena, chat = Client(f"{url}/api/arena/mcp", mode=mode), Client(f"{url}/api/v1/chat/mcp", mode=mode)
    async with arena, chat:
        assert "challenge_sync" in arena.instructions and "send_chat" in chat.instructions
        player = Player(invite, arena, chat, keys, signs=opens)
        end = await play(player, opens)
        assert player.calls <= MOST_CALLS, f"{player.calls} calls for one game"
        return {"calls": player.calls, "end": end}


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--keys", action="store_true")
    arguments = parser.parse_args()
    create = urllib.request.Request(f"{arguments.url}/api/challenges/psi", method="POST")
    with urllib.request.urlopen(create) as answer:
        first, second = json.load(answer)["invites"]
    agents = await asyncio.gather(
        agent(arguments.url, first, "auto", arguments.keys, opens=True),
        agent(arguments.url, second, "legacy", arguments.keys, opens=False),
    )
    scores = [json.loads(score) for score in re.findall(r"\{.*\}", agents[0]["end"])]
    assert agents[0]["end"] == agents[1]["end"], agents
    print(json.dumps({"scores": scores, "calls": [agent["calls"] for agent in agents]}))


asyncio.run(main())
