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
    you, others = state["you"], [name for name in state["players"] if name and name != state["you"]]
    salt = ",".join(sorted(name for name in state["players"] if name))
    actions = []
    for message in state["messages"]:
        if message["from"] == "operator":
            found = re.search(r"private set is: \{(.*)\}", message["content"])
            if found:
                own.update(int(number) for number in re.findall(r"\d+", found[1]))
                hashes = sorted(digest(salt, number) for number in own)
                actions.append({"action": "chat", "content": "hashes: " + " ".join(hashes)})
        elif message["from"] != you and message["content"].startswith("hashes: "):
            first = message["from"] not in told
            told[message["from"]] = set(message["content"].split()[1:])
            if first and all(name in told for name in others):
                common = sorted(n for n in own if all(digest(salt, n) in told[name] for name in others))
                # A guess can't be empty.
                actions.append({"action": "guess", "content": ", ".join(map(str, common or sorted(own)[:1]))})
    return actions


def digest(salt, number):
    """Says nothing of the number to somebody who doesn't try all numbers."""
    return hashlib.sha256(f"{salt}:{number}".encode()).hexdigest()[:16]


if __name__ == "__main__":
    colosseum.run("psi-py", "1", decide)
