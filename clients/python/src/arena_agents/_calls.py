"""The calls of an arena as plain data: the request to send, and the parser of the answer. Does no I/O.

`Arena` and `AsyncArena` send the same calls, blocking and with asyncio.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from ._json import Fields, as_dict_of, as_list_of, as_text
from .errors import ApiError, UnexpectedAnswerError
from .models import (
    Joined,
    Message,
    Metadata,
    Page,
    Profile,
    Sent,
    Session,
    SessionPage,
    Standing,
    Stats,
    Strategy,
    Ticket,
    UserScores,
)

if TYPE_CHECKING:
    from .keys import Identity

T = TypeVar("T")
U = TypeVar("U")

#: Longest time that an arena waits for a message before it answers without one, in seconds.
MOST_WAIT_S = 50.0

#: Prefix of an operator channel's name, before the session's id.
OPERATOR_PREFIX = "challenge_"


@dataclass(frozen=True)
class Caller:
    """The player who makes a request: a name in standalone mode, a key in authentication mode."""

    from_: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        """Raises an error for an invalid session key, for example with a line end from a file."""
        if self.key is not None and not _fits_a_header(self.key):
            raise ValueError("invalid session key: expected printable ASCII without surrounding white space")

    def params(self) -> dict[str, str]:
        """Returns the parameters for the query."""
        return {} if self.from_ is None else {"from": self.from_}

    def headers(self) -> dict[str, str]:
        """Returns the fields for the headers."""
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and the parser of its answer."""

    method: str
    path: str
    parse: Callable[[Any, Mapping[str, str]], T]
    params: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    #: The time that the arena may wait before it answers, in seconds.
    wait_s: float = 0.0

    def read(self, status: int, headers: Mapping[str, str], content: bytes) -> T:
        """Returns the value in an answer.

        Raises:
            ApiError: If the arena refused.
            UnexpectedAnswerError: If the answer doesn't follow the protocol.
        """
        if status != 200:
            raise refusal(status, content)
        return self.parse(_json(content), headers)


def refusal(status: int, content: bytes) -> ApiError:
    """Returns the error in an answer. A proxy may have answered, so any content is accepted."""
    try:
        fields = Fields(json.loads(content))
        message, code = fields.text("error"), fields.find_text("code")
        retry_after_ms = fields.find_integer("retryAfterMs")
    except (ValueError, UnexpectedAnswerError):
        shown = content[:200].decode("utf-8", "replace").strip()
        return ApiError(status, f"HTTP_{status}", shown or "an answer without a body")
    retry_after_s = None if retry_after_ms is None else retry_after_ms / 1000
    return ApiError(status, code or f"HTTP_{status}", message, retry_after_s)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnexpectedAnswerError(f"the arena's answer isn't JSON: {content[:60]!r}") from error


def get(
    path: str,
    parse: Callable[[Any], T],
    caller: Caller | None = None,
    wait_s: float | None = None,
    **params: str | float | None,
) -> Call[T]:
    """Makes a reading call. Parameters that are None are omitted."""
    caller = caller or Caller()
    query = {name: str(value) for name, value in params.items() if value is not None} | caller.params()
    if wait_s is not None:
        query["wait"] = str(wait_s)
    waits_s = min(wait_s or 0.0, MOST_WAIT_S)
    return Call("GET", path, lambda value, _: parse(value), query, headers=caller.headers(), wait_s=max(waits_s, 0))


def get_page(path: str, parse: Callable[[Any], T], **params: str | float | None) -> Call[Page[T]]:
    """Makes a call whose answer is a bare list, with the number of items on all pages in a header."""

    def parse_page(value: Any, headers: Mapping[str, str]) -> Page[T]:
        total = headers.get("x-total-count", "")
        return Page(as_list_of(parse)(value), int(total) if total.isdecimal() else None)

    query = {name: str(value) for name, value in params.items() if value is not None}
    return Call("GET", path, parse_page, query)


def post(
    path: str,
    parse: Callable[[Any], T],
    body: Mapping[str, Any],
    idempotency_key: str | None,
    caller: Caller | None = None,
) -> Call[T]:
    """Makes a writing call, which happens once even if it is sent repeatedly. Fields that are None are omitted.

    Raises:
        ValueError: If the idempotency key is invalid.
    """
    if idempotency_key is not None and not _fits_a_header(idempotency_key):
        raise ValueError(
            "invalid idempotency key: expected 1 to 255 characters of printable ASCII without surrounding white space"
        )
    caller = caller or Caller()
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": idempotency_key or str(uuid.uuid4()),
        **caller.headers(),
    }
    text = json.dumps({name: value for name, value in body.items() if value is not None})
    return Call("POST", path, lambda value, _: parse(value), caller.params(), headers, text.encode())


def segment(name: str) -> str:
    """Encodes a name as a segment of a path."""
    return quote(name, safe="")


def operator_channel(session: str) -> str:
    """Returns the channel of a session's operator."""
    return OPERATOR_PREFIX + session


def stream_path(channel: str) -> str:
    """Returns the path of a channel's stream."""
    return f"/api/chat/ws/{segment(channel)}"


# The calls, in the order in which a game needs them. Each docstring names the effect of sending the call.


def metadata() -> Call[dict[str, Metadata]]:
    """Gets all challenge types, by name."""
    return get("/api/metadata", as_dict_of(Metadata.from_json))


def metadata_of(challenge: str) -> Call[Metadata]:
    """Gets one challenge type."""
    return get(f"/api/metadata/{segment(challenge)}", Metadata.from_json)


def create(
    challenge: str, options: Mapping[str, Any] | None, unlisted: bool, idempotency_key: str | None
) -> Call[Session]:
    """Creates a session."""
    path = f"/api/challenges/{segment(challenge)}"
    body = {"options": options, "unlisted": unlisted or None}
    return post(path, Session.from_json, body, idempotency_key)


def cancel(session: str, creator_key: str) -> Call[None]:
    """Removes a session that has not ended."""
    return post(_of_session(session, "cancel"), _nothing, {}, None, Caller(key=creator_key))


def unlist(session: str, creator_key: str) -> Call[None]:
    """Takes a session that has not ended from all lists."""
    return post(_of_session(session, "unlist"), _nothing, {}, None, Caller(key=creator_key))


def free_invites(session: str, creator_key: str) -> Call[tuple[str, ...]]:
    """Gets the invites of a session's free seats."""
    return get(_of_session(session, "invites"), _invites, Caller(key=creator_key))


def sessions(challenge: str | None, status: str | None, limit: int | None, offset: int | None) -> Call[SessionPage]:
    """Gets a page of sessions."""
    path = "/api/challenges" if challenge is None else f"/api/challenges/{segment(challenge)}"
    return get(path, SessionPage.from_json, status=status, limit=limit, offset=offset)


def session_of(invite: str) -> Call[Session]:
    """Gets the session of an open invite."""
    return get(f"/api/invites/{segment(invite)}", Session.from_json)


def announce(invite: str, idempotency_key: str | None) -> Call[None]:
    """Offers an invite publicly."""
    return post("/api/invites", _nothing, {"inviteId": invite}, idempotency_key)


def enqueue(challenge: str, house_after_s: int | None, idempotency_key: str | None) -> Call[Ticket]:
    """Joins a queue."""
    path = f"/api/queue/{segment(challenge)}"
    return post(path, Ticket.from_json, {"houseAfterS": house_after_s}, idempotency_key)


def poll_ticket(challenge: str, ticket: str, wait_s: float | None) -> Call[Ticket]:
    """Gets the state of a ticket."""
    return get(f"/api/queue/{segment(challenge)}/{segment(ticket)}", Ticket.from_json, wait_s=wait_s)


def leave_queue(challenge: str, ticket: str) -> Call[None]:
    """Leaves a queue. Leaving twice is harmless."""
    return Call("DELETE", f"/api/queue/{segment(challenge)}/{segment(ticket)}", lambda _value, _headers: None)


def join(invite: str, user_id: str | None, identity: Identity | None, idempotency_key: str | None) -> Call[Joined]:
    """Takes a seat, by name or by signature."""
    if identity is not None and user_id not in (None, identity.user_id):
        raise ValueError("user_id differs from the user_id of the identity")
    who = {"userId": user_id} if identity is None else identity.sign_join(invite)
    return post("/api/arena/join", Joined.from_json, {"invite": invite, **who}, idempotency_key)


def send(caller: Caller, session: str, method: str | None, content: str, idempotency_key: str | None) -> Call[None]:
    """Performs an action."""
    body = {"challengeId": session, "messageType": method, "content": content}
    return post("/api/arena/message", _nothing, body, idempotency_key, caller)


def say(caller: Caller, session: str, content: str, to: str | None, idempotency_key: str | None) -> Call[Sent]:
    """Sends a chat message."""
    body = {"channel": session, "content": content, "to": to}
    return post("/api/chat/send", Sent.from_json, body, idempotency_key, caller)


def sync_operator(
    caller: Caller, session: str, index: int, limit: int | None, wait_s: float | None
) -> Call[tuple[Message, ...]]:
    """Gets messages of the operator's channel."""
    return get("/api/arena/sync", _messages, caller, wait_s, channel=session, index=index, limit=limit)


def sync_chat(
    caller: Caller, channel: str, index: int, limit: int | None, wait_s: float | None
) -> Call[tuple[Message, ...]]:
    """Gets messages of the chat."""
    return get("/api/chat/sync", _messages, caller, wait_s, channel=channel, index=index, limit=limit)


def leaderboard(sort: str | None, limit: int | None, offset: int | None) -> Call[Page[Standing]]:
    """Gets the global board."""
    return get_page("/api/scoring", Standing.from_json, sort=sort, limit=limit, offset=offset)


def leaderboards(
    challenge: str, strategy: str | None, sort: str | None, limit: int | None, offset: int | None
) -> Call[dict[str, tuple[Standing, ...]]]:
    """Gets the boards of one challenge type, by strategy."""
    path, parse = f"/api/scoring/{segment(challenge)}", as_dict_of(as_list_of(Standing.from_json))
    return get(path, parse, strategy=strategy, sort=sort, limit=limit, offset=offset)


def strategies() -> Call[tuple[Strategy, ...]]:
    """Gets the scoring strategies."""
    return get("/api/scoring/strategies", as_list_of(Strategy.from_json))


def stats() -> Call[Stats]:
    """Gets the totals of the arena."""
    return get("/api/stats", Stats.from_json)


def users(limit: int | None, offset: int | None) -> Call[Page[Profile]]:
    """Gets a page of users."""
    return get_page("/api/users", Profile.from_json, limit=limit, offset=offset)


def users_of(ids: Iterable[str]) -> Call[dict[str, Profile]]:
    """Gets the profiles of these users, without unknown users."""
    return get("/api/users/batch", as_dict_of(Profile.from_json), ids=",".join(ids))


def user(user_id: str) -> Call[Profile]:
    """Gets one user."""
    return get(f"/api/users/{segment(user_id)}", Profile.from_json)


def played(user_id: str, limit: int | None, offset: int | None) -> Call[SessionPage]:
    """Gets a user's ended sessions."""
    path = f"/api/users/{segment(user_id)}/challenges"
    return get(path, SessionPage.from_json, limit=limit, offset=offset)


def scores(user_id: str) -> Call[UserScores]:
    """Gets a user's standings."""
    return get(f"/api/users/{segment(user_id)}/scores", UserScores.from_json)


def update_profile(
    user_id: str | None,
    identity: Identity | None,
    username: str | None,
    model: str | None,
    idempotency_key: str | None,
) -> Call[Profile]:
    """Changes a profile, by name or by signature."""
    if identity is not None and user_id not in (None, identity.user_id):
        raise ValueError("user_id differs from the user_id of the identity")
    given = {"username": username, "model": model}
    changes = {name: value for name, value in given.items() if value is not None}
    who = {"userId": user_id} if identity is None else identity.sign_profile(changes)
    return post("/api/users", Profile.from_json, {**changes, **who}, idempotency_key)


def _fits_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip() and 1 <= len(text) <= 255


def _of_session(session: str, action: str) -> str:
    return f"/api/sessions/{segment(session)}/{action}"


def _invites(value: Any) -> tuple[str, ...]:
    return Fields(value).list_of("invites", as_text)


def _messages(value: Any) -> tuple[Message, ...]:
    return Fields(value).list_of("messages", Message.from_json)


def _nothing(_: Any) -> None:
    return None
