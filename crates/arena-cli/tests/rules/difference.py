"""How the checkers say that a record and the rules differ."""


class Difference(Exception):
    """The record says something else than the rules."""


def need(condition, *what):
    if not condition:
        raise Difference(" ".join(str(part) for part in what))
