"""Shared code of the merger talks' agents: their knowledge, and the value of an offer."""

import re

ISSUES = ["price", "control", "timing", "staff"]


class Talks:
    """A firm's knowledge so far."""

    def __init__(self):
        self.worth = None
        # The other firm's demands, offer by offer.
        self.wanted = []
        self.is_over = self.has_guessed = False

    def read(self, state):
        """Reads new messages."""
        own = state["players"].index(state["you"]) + 1
        for message in state["messages"]:
            content = message["content"]
            if message["from"] != "operator":
                continue
            if content.startswith("To your firm the issues are worth: "):
                self.worth = [int(number) for number in re.findall(r"\d+", content)]
            elif content.startswith(f"Player {3 - own} offers: "):
                self.wanted.append(shares(content, 3 - own))
            elif "Now guess" in content:
                self.is_over = True

    def points(self, parts):
        """Returns the value of shares of the issues, out of 100."""
        return sum(part * worth for part, worth in zip(parts, self.worth)) / 10

    def offered(self):
        """Returns the value of the other's last offer to us."""
        return self.points([10 - part for part in self.wanted[-1]]) if self.wanted else 0

    def guess(self, order):
        """Returns the guess, after the end of the talks."""
        if not self.is_over or self.has_guessed:
            return []
        self.has_guessed = True
        return [{"action": "guess", "content": ", ".join(order) or "none"}]


def shares(content, number):
    """Returns a player's shares in an offer."""
    part = re.search(rf"Player {number} gets ([^;.]*)", content)[1]
    return [int(amount) for amount in re.findall(r"\d+", part)]
