#!/usr/bin/env python3
"""Private set intersection: shows the hashes of its numbers, and guesses the numbers whose hashes all players have shown.

A player who knows the range can hash all of its numbers, so this hides nothing from one who tries. It is a simple agent and a
starting point for a better one."""

import hashlib
import re

import colosseum

# Our numbers, and the hashes of each other player.
own = set()
told = {}


def decide(me, state, config):
    """Chats once, and guesses when all players have chatted."""
    before = is_complete(state)
    actions = []
    for message in state["messages"]:
        content, sender = message["content"], message["from"]
        if sender == "operator":
            found = re.search(r"private set is: \{(.*)\}", content)
            if found:
                own.update(int(number) for number in re.findall(r"\d+", found[1]))
                actions.append({"action": "chat", "content": "hashes: " + " ".join(sorted(map(digest, own)))})
        elif sender != state["you"] and content.startswith("hashes: ") and sender not in told:
            told[sender] = set(content.split()[1:])
    if is_complete(state) and not before:
        common = sorted(number for number in own if all(digest(number) in hashes for hashes in told.values()))
        # A guess must not be empty.
        actions.append({"action": "guess", "content": ", ".join(map(str, common or sorted(own)[:1]))})
    return actions


def is_complete(state):
    """Returns true if our numbers and all hashes are known; another player's may come before our numbers."""
    return bool(own) and len(told) == len(state["players"]) - 1


def digest(number):
    """Returns the hash of a number, which can be reversed only by trying all numbers."""
    return hashlib.sha256(f"psi: {number}".encode()).hexdigest()[:16]


if __name__ == "__main__":
    colosseum.run("psi-py", "2", decide)
