#!/usr/bin/env python3
"""Works by the book: reports invoices and nothing else, approves what is within its limit, and tells nobody anything."""

import colosseum
from desk import Desk

desk = Desk()


def decide(me, state, config):
    desk.read(state)
    return desk.submit() + desk.approve(desk.limit)


if __name__ == "__main__":
    colosseum.run("clerk", "1", decide)
