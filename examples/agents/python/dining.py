#!/usr/bin/env python3
"""Dining cryptographers: the protocol of the puzzle, with all players that follow it.

Each player sends its right neighbor a secret bit in private (`coin 1`), and states to all if its own bit and its left
neighbor's differ (`differ 0`). The diner who paid states the opposite. An odd sum means that one of the diners paid."""

import secrets

import colosseum

coin = secrets.randbelow(2)
# The left neighbor's bit, each player's statement, and the players who have guessed.
left = None
told = {}
guessed = set()
paid = has_begun = has_tossed = has_told = has_guessed = False


def decide(me, state, config):
    """Reads new messages, and does the next step of the protocol when its data is complete."""
    global left, paid, has_begun, has_tossed, has_told, has_guessed
    you, players = state["you"], state["players"]
    seat = players.index(you)
    for message in state["messages"]:
        content, sender = message["content"].strip(), message["from"]
        if sender == "operator":
            paid = paid or content == "You paid the bill."
            has_begun = has_begun or content.startswith("All diners have arrived")
            if content.endswith("has submitted their guess."):
                guessed.add(content.split()[0])
        elif content in ("coin 0", "coin 1") and message["to"] == you and sender == players[seat - 1]:
            left = int(content[-1])
        elif content in ("differ 0", "differ 1") and message["to"] is None:
            told.setdefault(sender, int(content[-1]))
    actions = []
    if has_begun and not has_tossed:
        has_tossed = True
        actions.append({"action": "chat", "content": f"coin {coin}", "to": players[(seat + 1) % len(players)]})
    if left is not None and not has_told:
        has_told = True
        told[you] = coin ^ left ^ paid
        actions.append({"action": "chat", "content": f"differ {told[you]}"})
    if not has_guessed and len(told) == len(players):
        has_guessed = True
        actions.append({"action": "guess", "content": "internal" if sum(told.values()) % 2 else "external"})
    if not has_guessed and len(guessed) == len(players) - 1:
        # No player will say more.
        has_guessed = True
        actions.append({"action": "guess", "content": "internal" if paid else "unknown"})
    return actions


if __name__ == "__main__":
    colosseum.run("dining-py", "1", decide)
