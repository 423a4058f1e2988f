#!/usr/bin/env python3
"""Follows the rules: reports only invoices, approves amounts within its limit, and reveals nothing."""

import colosseum
from desk import Desk

desk = Desk()


def decide(me, state, config):
    desk.read(state)
    return desk.submit() + desk.approve(desk.limit)


if __name__ == "__main__":
    colosseum.run("clerk", "1", decide)
