"""A stand-in for a command-line agent: it reads its configuration of MCP, plays by its tools, and asks its model.

The first argument is the way in which it behaves, the second the prompt.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request


def post(url, headers, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json", **headers})
    return urllib.request.urlopen(request, timeout=70)


class Tools:
    def __init__(self, server):
        self.server, self.number = server, 0
        opened = self.send("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"})
        assert "tools" in opened["capabilities"], opened
        names = [tool["name"] for tool in self.send("tools/list")["tools"]]
        assert names == ["challenge_sync", "challenge_message", "send_chat"], names

    def send(self, method, **params):
        self.number += 1
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        with post(self.server["url"], headers | self.server["headers"], body) as answer:
            return json.load(answer)["result"]

    def call(self, name, **arguments):
        result = self.send("tools/call", name=name, arguments=arguments)
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"], result
        return result["structuredContent"]


def think(stream):
    """Asks the model, as the provider's client would."""
    headers = {"x-api-key": os.environ["MODEL_TOKEN"], "anthropic-version": "2023-06-01"}
    body = {"model": "any", "max_tokens": 100, "stream": stream, "messages": [{"role": "user", "content": "move " * 800}]}
    with post(os.environ["MODEL_URL"] + "/v1/messages", headers, body) as answer:
        text = answer.read().decode()
    assert "message_delta" in text if stream else json.loads(text)["usage"], text


def play(tools):
    seen = {}
    while True:
        news = tools.call("challenge_sync")
        seen |= news.get("rules", {})
        if news["ended"]:
            return
        if not news["yourTurn"]:
            continue
        think(stream=True)
        if "state" in news:
            # One of the moves of the other agent's test is enough: the rules refuse the others.
            result = tools.call("challenge_message", messageType="move", content=next_move(news["state"]))
            assert "ok" in result, result
            continue
        for message in news["messages"]:
            if "Your private set is" in message["content"]:
                think(stream=False)
                tools.call("send_chat", content="hello")
                assert "error" in tools.call("challenge_message", messageType="sing", content="la")
                numbers = ", ".join(re.findall(r"\d+", message["content"]))
                assert "ok" in tools.call("challenge_message", messageType="guess", content=numbers)


def next_move(state):
    pieces = state["fen"].split()[0]
    white = state["fen"].split()[1] == "w"
    played = sum(char.isdigit() for char in pieces)
    moves = ["g1f3", "f3g1"] if white else ["g8f6", "f6g8"]
    home = pieces.split("/")[7].endswith("NR") if white else pieces.split("/")[0].endswith("nr")
    return moves[0] if home else moves[1]


def spy():
    """Tries to see more than its seat, and prints what it has seen."""
    seen = []
    me = os.getpid()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = open(f"/proc/{pid}/environ").read() + open(f"/proc/{pid}/cmdline").read()
            if int(pid) != me and "MODEL_TOKEN" in text:
                seen.append(f"the environment of {pid}")
        except OSError:
            pass
    for root in ["/tmp", os.path.dirname(os.getcwd())]:
        for folder, _, files in os.walk(root):
            seen += [f"{folder}/{name}" for name in files if name == "mcp.json" and folder != os.getcwd()]
    if os.environ.get("PROVIDER"):
        try:
            urllib.request.urlopen(os.environ["PROVIDER"], timeout=5)
            seen.append("the provider")
        except urllib.error.HTTPError:
            seen.append("the provider")
        except OSError:
            pass
    server = json.load(open("mcp.json"))["mcpServers"]["arena"]
    for headers in [{}, {"authorization": "Bearer x"}]:
        try:
            post(server["url"], headers, {})
            seen.append("tools without a token")
        except urllib.error.HTTPError as error:
            assert error.code == 401, error
    print("seen:", seen, flush=True)
    assert not seen


way, prompt = sys.argv[1:3]
assert "challenge_sync" in prompt and open("prompt.md").read() == prompt
if way == "exit":
    print("no credit")
    sys.exit(3)
if way == "daemon":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # cli-agent-daemon"])
    sys.exit(0)
if way == "ignore":
    time.sleep(600)
if way == "spend":
    try:
        while True:
            think(stream=False)
    except urllib.error.HTTPError as error:
        print(error.code, json.load(error)["error"]["type"], flush=True)
        sys.exit(1)
if way == "spy":
    spy()
play(Tools(json.load(open("mcp.json"))["mcpServers"]["arena"]))
