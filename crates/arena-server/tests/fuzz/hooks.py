"""Hooks of schemathesis for an arena: keys, signatures and short waits.

tests/http/services/fuzz.rs runs schemathesis and writes the server's ids to the file that ARENA_FUZZ_SEEDS names. All choices depend
only on the case, so that a run is reproducible.
"""

import hashlib
import json
import os

import schemathesis

with open(os.environ["ARENA_FUZZ_SEEDS"], encoding="utf-8") as file:
    SEEDS = json.load(file)

# Maximum wait of a sync, in seconds. The description allows longer waits, which would only make the run longer.
PATIENCE = 0.05


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Closes the schemas, so that an undescribed field of a response is an error, and drops fields of requests that this
    server ignores."""
    schemas = raw_schema["components"]["schemas"]
    for operations in raw_schema["paths"].values():
        for operation in operations.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            fields = schemas.get(body.get("$ref", "").rsplit("/", 1)[-1], {}).get("properties", {})
            for name in SEEDS["ignored"]:
                fields.pop(name, None)
    parts = {part.get("$ref", "").rsplit("/", 1)[-1] for schema in schemas.values() for part in schema.get("allOf", [])}
    for name, schema in schemas.items():
        is_whole = "properties" in schema or "allOf" in schema
        # Schemas of request bodies allow unknown fields on purpose, and schemas within `allOf` are incomplete.
        if is_whole and "additionalProperties" not in schema and name not in parts and name != "Error":
            schema["unevaluatedProperties"] = False


@schemathesis.serializer("application/x-ndjson")
def as_lines(context, value):
    return value.encode(errors="replace") if isinstance(value, str) else json.dumps(value).encode()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Adds a key, signs joins, and shortens waits."""
    shorten_wait(case.query)
    number = number_of(case)
    security = case.operation.definition.raw.get("security", [])
    if {"sessionKey": []} in security and number % 8:
        # The key usually belongs to the case's session, and sometimes to any session.
        keys = SEEDS["keys"].get(session_of(case) if number % 8 > 1 else None) or sum(SEEDS["keys"].values(), [])
        if keys:
            case.headers["Authorization"] = "Bearer " + choose(keys, number // 8)
    path = case.operation.path
    for signed_path, bodies in SEEDS["signed"].items():
        if path == signed_path and number % 2 and is_positive(case):
            case.body = {**case.body, **choose(bodies, number // 2)}


def shorten_wait(query):
    try:
        if query and float(query.get("wait", 0)) > PATIENCE:
            query["wait"] = str(PATIENCE)
    except (TypeError, ValueError):
        pass


def is_positive(case):
    return isinstance(case.body, dict) and case.meta is not None and not case.meta.generation.mode.is_negative


def session_of(case):
    """Returns the session that a case names."""
    fields = {**(case.query or {}), **(case.body if isinstance(case.body, dict) else {})}
    name = fields.get("challengeId", fields.get("channel"))
    return name.removeprefix("challenge_") if isinstance(name, str) else None


def choose(items, number):
    return items[number % len(items)]


def number_of(case):
    """Returns a deterministic number for a case."""
    asked = repr((case.operation.label, case.path_parameters, case.query, case.body))
    return int.from_bytes(hashlib.sha256(asked.encode(errors="replace")).digest()[:8])
