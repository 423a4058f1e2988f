"""What the bots of the safe house have in common: what they are told, and where they go."""

import re

PLACES = ["bridge", "chapel", "cinema", "harbour", "library", "market", "museum", "station"]

# How many states a spy listens.
PATIENCE = 4


class House:
    """What a player knows so far."""

    def __init__(self):
        # Place by code word; empty for the spy.
        self.code = {}
        self.is_spy = self.has_proposed = self.has_gone = False
        # The place that was proposed first, by those who know the code, and the last one that was named in plain words.
        self.agreed = self.named = None
        self.seen = 0

    def read(self, state):
        """Takes in what is new. The chat has one order for all, so whoever listens to the first proposal agrees with the others."""
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
                self.named = plain[-1] if plain else self.named
                self.agreed = self.agreed or next(iter(coded + plain), None)

    def propose(self, state, in_code):
        """Says the place that the seat's number stands for, once."""
        if self.has_proposed or self.is_spy or not self.code:
            return []
        self.has_proposed = True
        place = PLACES[(sum(map(ord, state["you"]))) % len(PLACES)]
        word = next(word for word, meant in self.code.items() if meant == place)
        return [{"action": "chat", "content": f"Let's meet: {word if in_code else place}."}]

    def go(self, state):
        """Goes, once it is clear where to; a spy when it has listened for a while."""
        where = self.agreed
        if self.is_spy:
            guess = PLACES[sum(map(ord, state["you"])) % len(PLACES)]
            where = (self.named or guess) if self.seen > PATIENCE else None
        if where is None or self.has_gone:
            return []
        self.has_gone = True
        return [{"action": "go", "content": where}]
