#!/usr/bin/python3
"""One simple player behind several interfaces: a program, a function, an HTTP server, a command-line agent.

The first argument is the interface. Servers print their port.
"""

import http.server
import json
import os
import re
import sys
import urllib.request


def decide(state):
    """Returns the actions: the first legal move, or a guess as soon as the game has begun."""
    if "legal_moves" in state:
        return [{"action": "move", "move": state["legal_moves"][0]}]
    actions = []
    for message in state["messages"]:
        numbers = re.search(r"private set is: \{(.*)\}", message["content"])
        if numbers:
            actions.append({"action": "guess", "content": numbers[1].split(",")[0].strip()})
        if message["content"].startswith("All diners have arrived"):
            actions.append({"action": "guess", "content": "unknown"})
    return actions


def agent(state):
    """The player as a function."""
    return decide(state)


class Colosseum:
    """The player's answers to the lines of a match."""

    me = None

    def answer(self, message):
        if "ping" in message:
            return {"pong": message["ping"]}
        if "set_agent_id" in message:
            self.me = message["set_agent_id"]
            return {"agent_id": self.me, "agent_name": "player"}
        if "world_state" in message:
            return {"agent_id": self.me, "actions": decide(message["world_state"])}
        return {}


def play_lines():
    player = Colosseum()
    for line in sys.stdin:
        message = json.loads(line)
        print(json.dumps(player.answer(message)), flush=True)
        if "stop" in message:
            return


def serve(post):
    """Answers requests with `post`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.reply(post(json.loads(self.rfile.read(int(self.headers["content-length"])))))

        def reply(self, value):
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


def play_tools():
    """Plays by the tools of the MCP server in `mcp.json`."""
    server = json.load(open("mcp.json"))["mcpServers"]["arena"]

    def send(method, **params):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers |= {"mcp-protocol-version": "2025-06-18"} | server["headers"]
        request = urllib.request.Request(server["url"], json.dumps(body).encode(), headers)
        return json.load(urllib.request.urlopen(request, timeout=60))["result"]

    def call(name, **arguments):
        return send("tools/call", name=name, arguments=arguments)["structuredContent"]

    send("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "player", "version": "1"})
    while True:
        news = call("challenge_sync")
        if news["ended"]:
            return
        state = news.get("state") or {"messages": news["messages"]}
        if "legal_moves" in state and not news["yourTurn"]:
            continue
        for action in decide(state):
            content = action.get("move") or action["content"]
            result = call("challenge_message", messageType=action["action"], content=content)
            assert "ok" in result, result


if __name__ == "__main__":
    match sys.argv[1:2]:
        case ["http"]:
            serve(Colosseum().answer)
        case ["cli"]:
            play_tools()
        case _:
            play_lines()
