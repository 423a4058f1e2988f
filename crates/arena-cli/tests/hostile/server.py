#!/usr/bin/python3
"""Agents that are HTTP servers. The argument is the behavior; the port is the first line of stdout. Each serves one match."""

import http.server
import json
import sys
import time

BEHAVIOR = sys.argv[1]
me = None


class Agent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global me
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_state = "world_state" in message
        if is_state and BEHAVIOR == "hangs":
            time.sleep(600)
        if BEHAVIOR == "never_answers":
            time.sleep(600)
        if is_state and BEHAVIOR == "answers_five_megabytes":
            return self.answer(b" " * (5 << 20) + b"{}")
        if is_state and BEHAVIOR == "trickles":
            self.send_response(200)
            self.send_header("content-length", "1000")
            self.end_headers()
            while True:
                self.wfile.write(b" ")
                time.sleep(0.01)
        reply = {"agent_id": me, "actions": []}
        if "ping" in message:
            reply = {"pong": "pong"}
        if "set_agent_id" in message:
            me = message["set_agent_id"]
            reply = {"agent_id": me, "agent_name": "far-away"}
        # Indented JSON, on several lines.
        self.answer(json.dumps(reply, indent=2).encode())

    def answer(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Ignores errors: the client may have disconnected."""


server = Server(("127.0.0.1", 0), Agent)
print(server.server_port, flush=True)
server.serve_forever()
