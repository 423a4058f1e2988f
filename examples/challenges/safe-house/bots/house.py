"""Shared code of the safe house's agents: their knowledge, and the choice of a place."""

import re

PLACES = ["bridge", "chapel", "cinema", "harbour", "library", "market", "museum", "station"]

# Number of states for which a spy listens.
PATIENCE = 4


class House:
    """A player's knowledge so far."""

    def __init__(self):
        # Places by code word; empty for the spy.
        self.code = {}
        self.is_spy = self.has_proposed = self.has_gone = False
        # The first proposed place, and the first place that was named in plain words.
        self.agreed = self.named = None
        self.seen = 0

    def read(self, state):
        """Reads new messages. The chat has the same order for all players, so all who follow the first proposal agree."""
        self.seen += 1
        for message in state["messages"]:
            words = re.findall(r"[a-z]+", message["content"].lower())
            if message["from"] == "operator":
                self.is_spy = self.is_spy or message["content"].startswith("You are the spy")
                pairs = re.findall(r"(\w+) = (\w+)", message["content"])
                self.code.update({word: place for place, word in pairs})
            elif message["to"] is None:
                plain = [word for word in words if word in PLACES]
                coded = [self.code[word] for word in words if word in self.code]
                self.named = self.named or next(iter(plain), None)
                self.agreed = self.agreed or next(iter(coded + plain), None)

    def propose(self, state, in_code):
        """Proposes the place of the seat's number, once."""
        if self.has_proposed or self.is_spy or not self.code:
            return []
        self.has_proposed = True
        place = PLACES[(sum(map(ord, state["you"]))) % len(PLACES)]
        word = next(word for word, meant in self.code.items() if meant == place)
        return [{"action": "chat", "content": f"Let's meet: {word if in_code else place}."}]

    def go(self, state):
        """Goes to the agreed place; a spy after it has listened for a while."""
        where = self.agreed
        if self.is_spy:
            guess = PLACES[sum(map(ord, state["you"])) % len(PLACES)]
            where = (self.named or guess) if self.seen > PATIENCE else None
        if where is None or self.has_gone:
            return []
        self.has_gone = True
        return [{"action": "go", "content": where}]
