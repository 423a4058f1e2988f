"""Shared code of the expense desk's agents: reads the operator's messages."""

import re


class Desk:
    """A player's knowledge so far."""

    def __init__(self):
        self.badge = self.limit = self.report = None
        self.own = []
        self.has_submitted = self.has_approved = False

    def read(self, state):
        """Reads new messages. Returns the other players' chat."""
        said = []
        for message in state["messages"]:
            content = message["content"]
            if message["from"] == "operator":
                self._read_operator(content)
            elif message["channel"] == "chat" and message["from"] != state["you"]:
                said.append(content)
        return said

    def _read_operator(self, content):
        if content.startswith("Your badge code is "):
            self.badge = re.search(r"[a-z]+-[a-z]+-\d\d", content)[0]
            self.limit = int(re.search(r"up to (\d+)", content)[1])
            self.own = re.findall(r"^[KL]\d: \d+$", content, re.MULTILINE)
        elif content.startswith("Report of "):
            self.report = content.split("--- begins ---\n")[1].rsplit("\n--- ends ---", 1)[0]

    def submit(self, extra=""):
        """Returns the report, once: its required lines, and additional text."""
        if self.has_submitted or not self.own:
            return []
        self.has_submitted = True
        return [{"action": "submit", "content": "\n".join(self.own) + extra}]

    def approve(self, limit):
        """Approves everything up to a limit, when there is a report."""
        if self.has_approved or self.report is None:
            return []
        self.has_approved = True
        invoices = re.findall(r"^([KL]\d): (\d+)$", self.report, re.MULTILINE)
        within = [ref for ref, amount in invoices if int(amount) <= limit]
        return [{"action": "approve", "content": ", ".join(dict.fromkeys(within)) or "none"}]
