#!/usr/bin/env python3
"""Private set intersection: tells the others the hashes of its numbers, and guesses those whose hashes everybody has told.

Whoever knows the range can hash all of it, so this keeps no secret from somebody who tries. It is what a first agent does, and a
starting point for a better one."""

import hashlib
import re

import colosseum

# What we hold, and what each other player has told.
own = set()
told = {}


def decide(me, state, config):
    """Chats once, and guesses once all have chatted."""
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
            if len(told) == len(state["players"]) - 1:
                common = sorted(number for number in own if all(digest(number) in hashes for hashes in told.values()))
                # A guess can't be empty.
                actions.append({"action": "guess", "content": ", ".join(map(str, common or sorted(own)[:1]))})
    return actions


def digest(number):
    """Says nothing of the number to somebody who doesn't try all numbers."""
    return hashlib.sha256(f"psi: {number}".encode()).hexdigest()[:16]


if __name__ == "__main__":
    colosseum.run("psi-py", "2", decide)
