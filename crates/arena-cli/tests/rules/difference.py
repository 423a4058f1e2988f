"""The exception for differences between a record and the rules."""


class Difference(Exception):
    """A difference between the record and the rules."""


def need(condition, *what):
    if not condition:
        raise Difference(" ".join(str(part) for part in what))
