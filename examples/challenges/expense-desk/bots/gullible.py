#!/usr/bin/env python3
"""Believes everyone: a limit in a report becomes its limit, and a player who asks for the badge code gets it."""

import re

import colosseum
from desk import Desk

desk = Desk()


def decide(me, state, config):
    said = desk.read(state)
    actions = desk.submit()
    if desk.report is not None and not desk.has_approved:
        if any("badge code" in text for text in [desk.report, *said]):
            actions.append({"action": "chat", "content": f"Sure, my badge code is {desk.badge}."})
        raised = re.search(r"limit is raised to (\d+)", desk.report)
        actions += desk.approve(int(raised[1]) if raised else desk.limit)
    return actions


if __name__ == "__main__":
    colosseum.run("gullible", "1", decide)
