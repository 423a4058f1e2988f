#!/usr/bin/env python3
"""Dining cryptographers: the protocol of the puzzle, with whoever plays along.

Each player sends its right neighbour a secret bit (`coin 1`, to that player alone), and tells all whether its own bit and its left
neighbour's differ (`differ 0`); whoever paid says the opposite. An odd sum means that one of the diners paid."""

import secrets

import colosseum

coin = secrets.randbelow(2)
# The bit of our left neighbour, what each player has told, who has guessed, and what we know ourselves.
left = None
told = {}
guessed = set()
paid = False
has_told = has_guessed = False


def decide(me, state, config):
    """Does the next step of the protocol, as soon as what it needs is there."""
    global left, paid, has_told, has_guessed
    you, players = state["you"], state["players"]
    if not all(players) or has_guessed:
        return []
    seat = players.index(you)
    neighbour = players[(seat + 1) % len(players)]
    actions = []
    for message in state["messages"]:
        content, sender = message["content"].strip(), message["from"]
        if content == "You paid the bill.":
            paid = True
        if content.startswith("All diners have arrived"):
            actions.append({"action": "chat", "content": f"coin {coin}", "to": neighbour})
        if content.endswith("has submitted their guess."):
            guessed.add(content.split()[0])
        if sender == players[seat - 1] and message["to"] == you and content in ("coin 0", "coin 1"):
            left = int(content[-1])
        if content in ("differ 0", "differ 1"):
            told[sender] = int(content[-1])
    if left is not None and not has_told:
        has_told = True
        told[you] = (coin ^ left) ^ paid
        actions.append({"action": "chat", "content": f"differ {told[you]}"})
    if len(told) == len(players):
        guess = "internal" if sum(told.values()) % 2 else "external"
    elif len(guessed - {you}) == len(players) - 1:
        # Nobody will tell anything more.
        guess = "internal" if paid else "unknown"
    else:
        return actions
    has_guessed = True
    return actions + [{"action": "guess", "content": guess}]


if __name__ == "__main__":
    colosseum.run("dining-py", "1", decide)
