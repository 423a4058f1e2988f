#!/usr/bin/env python3
"""Repeats the deals of ended sessions from their seeds, and compares. Supports the built-in challenges.

    curl -s localhost:3001/api/challenges/psi?status=ended | python3 docs/verify-deal.py

Reads a page of sessions (or one session) from standard input. Needs the standard library of Python 3 only.

Derivation of numbers from a seed: the stream for a purpose is ChaCha20 (RFC 8439 rounds, 64-bit counter, nonce 0) keyed
with HMAC-SHA-256(seed, purpose), read as little-endian 64-bit words. A number below n is the first word below the
largest multiple of n that fits, modulo n.
"""

import hashlib
import hmac
import json
import struct
import sys

MASK = 0xFFFFFFFF


def chacha20_block(key: bytes, counter: int) -> bytes:
    constants = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    state = constants + list(struct.unpack("<8I", key)) + [counter & MASK, counter >> 32, 0, 0]
    work = state[:]

    def rotate(value: int, bits: int) -> int:
        return ((value << bits) | (value >> (32 - bits))) & MASK

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            work[x] = (work[x] + work[y]) & MASK
            work[z] = rotate(work[z] ^ work[x], bits)

    for _ in range(10):
        for column in range(4):
            quarter(column, column + 4, column + 8, column + 12)
        for row in range(4):
            quarter(row, (row + 1) % 4 + 4, (row + 2) % 4 + 8, (row + 3) % 4 + 12)
    return struct.pack("<16I", *((a + b) & MASK for a, b in zip(work, state)))


def words(seed: bytes, purpose: str):
    key = hmac.new(seed, purpose.encode(), hashlib.sha256).digest()
    counter = 0
    while True:
        yield from struct.unpack("<8Q", chacha20_block(key, counter))
        counter += 1


def below(stream, n: int) -> int:
    limit = (2**64 - 1) - (2**64 - 1) % n
    return next(word for word in stream if word < limit) % n


def distinct(seed: bytes, purpose: str, count: int, low: int, high: int, taken: set[int]) -> set[int]:
    stream, drawn = words(seed, purpose), set()
    while len(drawn) < count:
        number = low + below(stream, high - low + 1)
        if number not in taken:
            drawn.add(number)
    return drawn


def deal_psi(seed: bytes, options: dict) -> dict:
    low, high = options["range"]
    common = distinct(seed, "psi/common", options["intersectionSize"], low, high, set())
    taken, sets = set(common), []
    for seat in range(options["players"]):
        own = distinct(seed, f"psi/seat/{seat}", options["setSize"], low, high, taken)
        taken |= own
        sets.append(sorted(common | own))
    return {"intersectionSet": sorted(common), "userSets": sets}


def deal_ultimatum(seed: bytes, options: dict) -> dict:
    values = options["reservationMax"] + 1
    streams = [words(seed, f"ultimatum/seat/{seat}") for seat in range(options["players"])]
    return {"reservationValues": [below(stream, values) for stream in streams]}


def deal_millionaire(seed: bytes, options: dict) -> dict:
    streams = [words(seed, f"millionaire/seat/{seat}") for seat in range(options["players"])]
    return {"wealth": [1 + below(stream, 100) for stream in streams]}


def deal_dining_cryptographers(seed: bytes, options: dict) -> dict:
    payer = below(words(seed, "dining-cryptographers/payer"), options["players"] + 1)
    return {"payer": payer if payer < options["players"] else None}


# The dealt parts of gameState, by challenge type.
DEALS = {
    "psi": deal_psi,
    "ultimatum": deal_ultimatum,
    "millionaire": deal_millionaire,
    "dining-cryptographers": deal_dining_cryptographers,
}


def check(session: dict) -> str:
    if "seed" not in session:
        return "not ended yet: the seed is still secret"
    seed = bytes.fromhex(session["seed"])
    if hashlib.sha256(seed).hexdigest() != session["seedCommitment"]:
        return "WRONG: the seed isn't the one that was committed to"
    deal = DEALS.get(session["challengeType"])
    if deal is None:
        return f"unknown: the seed is the committed one, but how {session['challengeType']} deals isn't known here"
    game = session["gameState"]
    for name, dealt in deal(seed, session["options"]).items():
        if name not in game or game[name] != dealt:
            return f"WRONG: {name} doesn't follow from the seed"
    return "right: the seed is the committed one, and the deal follows from it"


def main() -> int:
    page = json.load(sys.stdin)
    results = [(session["id"], check(session)) for session in page.get("challenges", [page])]
    for session_id, result in results:
        print(f"{session_id}  {result}")
    return any(result.startswith("WRONG") for _, result in results)


if __name__ == "__main__":
    sys.exit(main())
