"""Refused calls of the official MCP client, in each revision of the protocol that it supports.

    python refusals.py URL

Prints the number of checked results. An unexpected result ends the script with a traceback and a status other than 0.
"""

import asyncio
import json
import sys
import urllib.error
import urllib.request

from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

TOOLS = {
    "arena": {
        "challenge_join": ["invite"],
        "challenge_message": ["challengeId", "from", "messageType", "content"],
        "challenge_sync": ["channel", "from"],
        "queue_join": ["challenge"],
        "queue_sync": ["challenge", "ticket"],
    },
    "chat": {
        "send_chat": ["channel", "from", "content"],
        "sync": ["channel", "from"],
    },
}

NOBODY = "inv_00000000-0000-7000-8000-000000000000"
NOTHING = "00000000-0000-7000-8000-000000000000"

# Endpoint, tool, arguments, and the expected result: true for an error, and the `code`, if any.
# $session is an active session with the players $ada and $bob.
CALLS = [
    # The arena refuses a valid call.
    ("arena", "challenge_join", {"invite": NOBODY}, False, "INVITE_NOT_FOUND"),
    ("arena", "challenge_join", {"invite": "hello"}, False, "INVITE_NOT_FOUND"),
    ("arena", "challenge_join", {"invite": "$ada"}, False, "INVITE_ALREADY_USED"),
    ("arena", "challenge_join", {"invite": "$ada", "userId": ""}, False, "INVALID_FIELD"),
    ("arena", "challenge_message", {"challengeId": "$session", "from": "$ada", "messageType": "shout", "content": "x"}, False, "UNKNOWN_METHOD"),
    ("arena", "challenge_message", {"challengeId": "$session", "from": "$ada", "messageType": "guess", "content": "none"}, False, "INVALID_GUESS"),
    ("arena", "challenge_message", {"challengeId": "$session", "from": NOBODY, "messageType": "guess", "content": "1"}, False, "PLAYER_NOT_FOUND"),
    ("arena", "challenge_message", {"challengeId": "$session", "from": "operator", "messageType": "guess", "content": "1"}, False, "FORBIDDEN_SENDER"),
    ("arena", "challenge_message", {"challengeId": NOTHING, "from": "$ada", "messageType": "guess", "content": "1"}, False, "CHALLENGE_NOT_FOUND"),
    ("chat", "send_chat", {"channel": "challenge_$session", "from": "$ada", "content": "x"}, False, "INVALID_CHANNEL"),
    ("chat", "send_chat", {"channel": "$session", "from": "operator", "content": "x"}, False, "FORBIDDEN_SENDER"),
    ("chat", "send_chat", {"channel": "$session", "from": "$ada", "to": NOBODY, "content": "x"}, False, "RECIPIENT_NOT_FOUND"),
    ("arena", "queue_join", {"challenge": "golf"}, False, "UNKNOWN_CHALLENGE"),
    ("arena", "queue_join", {"challenge": "psi", "houseAfterS": -1}, False, "INVALID_FIELD"),
    ("arena", "queue_sync", {"challenge": "psi", "ticket": "../psi"}, False, "TICKET_NOT_FOUND"),
    # An empty result is not an error.
    ("arena", "challenge_sync", {"channel": NOTHING, "from": "$ada"}, False, None),
    ("arena", "challenge_sync", {"channel": "$session", "from": "viewer", "index": 1}, False, None),
    ("arena", "challenge_sync", {"channel": "$session", "from": "$ada", "index": 1000, "wait": 0}, False, None),
    ("arena", "challenge_sync", {"channel": "$session", "from": "$ada", "index": 1.0, "wait": None}, False, None),
    ("chat", "sync", {"channel": "$session", "from": "$bob", "index": -1}, False, None),
    ("chat", "sync", {"channel": "$session", "from": "$bob", "index": 1, "wait": 0.01, "mood": "curious"}, False, None),
    # Null means a missing argument.
    ("chat", "send_chat", {"channel": "$session", "from": "$ada", "to": None, "content": "x"}, False, None),
    # Invalid arguments.
    ("arena", "challenge_join", {}, True, "MISSING_FIELD"),
    ("arena", "challenge_join", {"invite": None}, True, "MISSING_FIELD"),
    ("arena", "challenge_join", {"invite": ["$bob"]}, True, "INVALID_FIELD"),
    ("arena", "challenge_message", {"challengeId": "$session", "from": "$ada", "messageType": "guess"}, True, "MISSING_FIELD"),
    ("arena", "challenge_message", {"challengeId": "$session", "messageType": "guess", "content": "1"}, True, "MISSING_FIELD"),
    ("arena", "challenge_message", {"challengeId": "$session", "from": 1, "messageType": "guess", "content": "1"}, True, "INVALID_FIELD"),
    ("arena", "challenge_sync", {"channel": "$session", "from": "$ada", "index": "first"}, True, "INVALID_FIELD"),
    ("arena", "challenge_sync", {"channel": "$session", "from": "$ada", "index": 1.5}, True, "INVALID_FIELD"),
    ("arena", "challenge_sync", {"channel": "$session", "from": "$ada", "wait": -1}, True, "INVALID_FIELD"),
    ("arena", "challenge_sync", {"channel": "x" * 70_000, "from": "$ada"}, True, "INVALID_FIELD"),
    ("arena", "queue_join", {}, True, "MISSING_FIELD"),
    ("arena", "queue_sync", {"challenge": "", "ticket": "x"}, True, "INVALID_FIELD"),
    ("chat", "sync", {"from": "$ada", "index": 1}, True, "MISSING_FIELD"),
    ("chat", "send_chat", {"channel": "$session", "from": "$ada", "to": {}, "content": "x"}, True, "INVALID_FIELD"),
    # Unknown tools.
    ("arena", "send_chat", {"channel": "$session", "from": "$ada", "content": "x"}, True, "UNKNOWN_TOOL"),
    ("chat", "challenge_sync", {"channel": "$session", "from": "$ada"}, True, "UNKNOWN_TOOL"),
    ("chat", "", {}, True, "UNKNOWN_TOOL"),
]


def rest(url: str, method: str, path: str, body: dict | None = None) -> tuple[int, dict]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, json.load(refusal)


def filled(value, names: dict[str, str]):
    """Replaces the names in the texts of a value."""
    text = json.dumps(value)
    for name, meaning in names.items():
        text = text.replace(name, meaning)
    return json.loads(text)


async def check_tools(client: Client, expected: dict[str, list[str]]):
    tools = (await client.list_tools()).tools
    assert {tool.name: tool.input_schema["required"] for tool in tools} == expected, tools
    for tool in tools:
        assert tool.title and tool.description, tool
        assert all(argument["description"] for argument in tool.input_schema["properties"].values()), tool


async def check_calls(client: Client, endpoint: str, names: dict[str, str]) -> int:
    calls = [call for call in CALLS if call[0] == endpoint]
    for _, tool, arguments, is_error, code in calls:
        result = await client.call_tool(tool, filled(arguments, names))
        told = json.loads(result.content[0].text)
        shown = (tool, arguments, result)
        assert len(result.content) == 1 and result.content[0].type == "text", shown
        assert result.is_error is is_error and told.get("code") == code, shown
        assert (code is None) or told["error"], shown
    return len(calls)


async def check_other_methods(client: Client):
    """The server refuses unsupported methods and continues."""
    for ask in [client.list_prompts, client.list_resources]:
        try:
            await ask()
        except MCPError:
            continue
    await client.list_tools()


async def check_endpoint(url: str, endpoint: str, mode: str, names: dict[str, str]) -> int:
    for api in ["api", "api/v1"]:
        for method in ["GET", "DELETE", "PUT"]:
            status, body = rest(url, method, f"/{api}/{endpoint}/mcp")
            assert status == 405 and body["error"] and body["code"] == "METHOD_NOT_ALLOWED", (status, body)
    async with Client(f"{url}/api/{endpoint}/mcp", mode=mode) as client:
        # A client with a fixed revision sends no request before its first call.
        assert mode == "2026-07-28" or client.instructions and client.server_info.version, client.server_info
        await check_tools(client, TOOLS[endpoint])
        await check_other_methods(client)
        return await check_calls(client, endpoint, names)


async def main(url: str):
    _, session = rest(url, "POST", "/api/challenges/psi")
    ada, bob = session["invites"]
    for invite in [ada, bob]:
        assert rest(url, "POST", "/api/arena/join", {"invite": invite})[0] == 200
    names = {"$session": session["id"], "$ada": ada, "$bob": bob}
    checked = 0
    for mode in ["auto", "legacy", "2026-07-28"]:
        for endpoint in TOOLS:
            checked += await check_endpoint(url, endpoint, mode, names)
    print(checked)


asyncio.run(main(sys.argv[1]))
