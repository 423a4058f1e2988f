"""The calls of an arena as plain data: what to send, and how to read what comes back. Does no I/O.

`Arena` and `AsyncArena` send them, each in its way, so that both say the same.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from ._json import Fields, as_dict_of, as_list_of
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
    Usage,
    UsageTotal,
    UserScores,
)

if TYPE_CHECKING:
    from .keys import Identity

T = TypeVar("T")
U = TypeVar("U")

#: Seconds for which an arena waits at most before it answers that there is nothing.
MOST_WAIT_S = 50.0


#: What the name of an operator's channel has before the session's id.
OPERATOR_PREFIX = "challenge_"


@dataclass(frozen=True)
class Caller:
    """As whom requests are made: by name in standalone mode, by key in authentication mode."""

    from_: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        """Refuses what can't be a session key: a file's line end at the end of one, say."""
        if self.key is not None and not _fits_a_header(self.key):
            raise ValueError("a session key is printable ASCII, without white space around it")

    def params(self) -> dict[str, str]:
        """What goes into the query."""
        return {} if self.from_ is None else {"from": self.from_}

    def headers(self) -> dict[str, str]:
        """What goes into the headers."""
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and how to read the answer to it."""

    method: str
    path: str
    parse: Callable[[Any, Mapping[str, str]], T]
    params: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    #: How much longer than usual the answer may take, in seconds.
    wait_s: float = 0.0

    def read(self, status: int, headers: Mapping[str, str], content: bytes) -> T:
        """The value in an answer.

        Raises:
            ApiError: If the arena refused.
            UnexpectedAnswerError: If the answer isn't what the protocol says.
        """
        if status != 200:
            raise refusal(status, content)
        return self.parse(_json(content), headers)


def refusal(status: int, content: bytes) -> ApiError:
    """The error in an answer. Whatever stands between may answer too, so anything goes."""
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
        raise UnexpectedAnswerError(f"an answer isn't JSON: {content[:60]!r}") from error


def get(
    path: str,
    parse: Callable[[Any], T],
    caller: Caller | None = None,
    wait_s: float | None = None,
    **params: str | float | None,
) -> Call[T]:
    """A reading call. Parameters that are None are left out."""
    caller = caller or Caller()
    query = {name: str(value) for name, value in params.items() if value is not None} | caller.params()
    if wait_s is not None:
        query["wait"] = str(wait_s)
    waits_s = min(wait_s or 0.0, MOST_WAIT_S)
    return Call("GET", path, lambda value, _: parse(value), query, headers=caller.headers(), wait_s=max(waits_s, 0))


def get_page(path: str, parse: Callable[[Any], T], **params: str | float | None) -> Call[Page[T]]:
    """A call that answers with a bare list, and with the number of items on all pages in a header."""

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
    """A writing call, which happens once however often it is sent. Fields that are None are left out.

    Raises:
        ValueError: If the idempotency key can't be one.
    """
    if idempotency_key is not None and not _fits_a_header(idempotency_key):
        raise ValueError("an idempotency key is 1 to 255 characters of printable ASCII, without white space around it")
    caller = caller or Caller()
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": idempotency_key or str(uuid.uuid4()),
        **caller.headers(),
    }
    text = json.dumps({name: value for name, value in body.items() if value is not None})
    return Call("POST", path, lambda value, _: parse(value), caller.params(), headers, text.encode())


def segment(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")


def operator_channel(session: str) -> str:
    """The channel on which a session's operator speaks."""
    return OPERATOR_PREFIX + session


def stream_path(channel: str) -> str:
    """Where a channel is streamed."""
    return f"/api/chat/ws/{segment(channel)}"


# The calls themselves, in the order in which a game needs them.


def metadata() -> Call[dict[str, Metadata]]:
    """All challenge types, by their names."""
    return get("/api/metadata", as_dict_of(Metadata.from_json))


def metadata_of(challenge: str) -> Call[Metadata]:
    """One challenge type."""
    return get(f"/api/metadata/{segment(challenge)}", Metadata.from_json)


def create(challenge: str, options: Mapping[str, Any] | None, idempotency_key: str | None) -> Call[Session]:
    """A new session."""
    path = f"/api/challenges/{segment(challenge)}"
    return post(path, Session.from_json, {"options": options}, idempotency_key)


def sessions(challenge: str | None, status: str | None, limit: int | None, offset: int | None) -> Call[SessionPage]:
    """A page of sessions."""
    path = "/api/challenges" if challenge is None else f"/api/challenges/{segment(challenge)}"
    return get(path, SessionPage.from_json, status=status, limit=limit, offset=offset)


def session_of(invite: str) -> Call[Session]:
    """The session of an open invite."""
    return get(f"/api/invites/{segment(invite)}", Session.from_json)


def announce(invite: str, idempotency_key: str | None) -> Call[None]:
    """An invite for whoever wants it."""
    return post("/api/invites", _nothing, {"inviteId": invite}, idempotency_key)


def join(invite: str, user_id: str | None, identity: Identity | None, idempotency_key: str | None) -> Call[Joined]:
    """A seat, by name or by signature."""
    if identity is not None and user_id not in (None, identity.user_id):
        raise ValueError("the user_id of whoever signs is that of the identity")
    who = {"userId": user_id} if identity is None else identity.sign_join(invite)
    return post("/api/arena/join", Joined.from_json, {"invite": invite, **who}, idempotency_key)


def send(caller: Caller, session: str, method: str | None, content: str, idempotency_key: str | None) -> Call[None]:
    """An action."""
    body = {"challengeId": session, "messageType": method, "content": content}
    return post("/api/arena/message", _nothing, body, idempotency_key, caller)


def report_usage(caller: Caller, session: str, usage: Usage, idempotency_key: str | None) -> Call[UsageTotal]:
    """What a step of one's play has cost."""
    body = {
        "challengeId": session,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedTokens": usage.cached_tokens,
        "costUsd": usage.cost_usd,
        "ms": usage.ms,
        "model": usage.model,
        "estimated": usage.estimated,
    }
    return post("/api/arena/usage", UsageTotal.from_json, body, idempotency_key, caller)


def say(caller: Caller, session: str, content: str, to: str | None, idempotency_key: str | None) -> Call[Sent]:
    """A chat message."""
    body = {"channel": session, "content": content, "to": to}
    return post("/api/chat/send", Sent.from_json, body, idempotency_key, caller)


def sync_operator(
    caller: Caller, session: str, index: int, limit: int | None, wait_s: float | None
) -> Call[tuple[Message, ...]]:
    """Messages of the operator's channel."""
    return get("/api/arena/sync", _messages, caller, wait_s, channel=session, index=index, limit=limit)


def sync_chat(
    caller: Caller, channel: str, index: int, limit: int | None, wait_s: float | None
) -> Call[tuple[Message, ...]]:
    """Messages of the chat."""
    return get("/api/chat/sync", _messages, caller, wait_s, channel=channel, index=index, limit=limit)


def leaderboard(sort: str | None, limit: int | None, offset: int | None) -> Call[Page[Standing]]:
    """The global board."""
    return get_page("/api/scoring", Standing.from_json, sort=sort, limit=limit, offset=offset)


def leaderboards(
    challenge: str, strategy: str | None, sort: str | None, limit: int | None, offset: int | None
) -> Call[dict[str, tuple[Standing, ...]]]:
    """The boards of one challenge type, by strategy."""
    path, parse = f"/api/scoring/{segment(challenge)}", as_dict_of(as_list_of(Standing.from_json))
    return get(path, parse, strategy=strategy, sort=sort, limit=limit, offset=offset)


def strategies() -> Call[tuple[Strategy, ...]]:
    """The scoring strategies."""
    return get("/api/scoring/strategies", as_list_of(Strategy.from_json))


def stats() -> Call[Stats]:
    """How much has been played."""
    return get("/api/stats", Stats.from_json)


def users(limit: int | None, offset: int | None) -> Call[Page[Profile]]:
    """A page of users."""
    return get_page("/api/users", Profile.from_json, limit=limit, offset=offset)


def users_of(ids: Iterable[str]) -> Call[dict[str, Profile]]:
    """Those of these users who are known."""
    return get("/api/users/batch", as_dict_of(Profile.from_json), ids=",".join(ids))


def user(user_id: str) -> Call[Profile]:
    """One user."""
    return get(f"/api/users/{segment(user_id)}", Profile.from_json)


def played(user_id: str, limit: int | None, offset: int | None) -> Call[SessionPage]:
    """What a user has played to the end."""
    path = f"/api/users/{segment(user_id)}/challenges"
    return get(path, SessionPage.from_json, limit=limit, offset=offset)


def scores(user_id: str) -> Call[UserScores]:
    """How a user stands."""
    return get(f"/api/users/{segment(user_id)}/scores", UserScores.from_json)


def update_profile(
    user_id: str | None,
    identity: Identity | None,
    username: str | None,
    model: str | None,
    idempotency_key: str | None,
) -> Call[Profile]:
    """A change of a profile, by name or by signature."""
    if identity is not None and user_id not in (None, identity.user_id):
        raise ValueError("the user_id of whoever signs is that of the identity")
    given = {"username": username, "model": model}
    changes = {name: value for name, value in given.items() if value is not None}
    who = {"userId": user_id} if identity is None else identity.sign_profile(changes)
    return post("/api/users", Profile.from_json, {**changes, **who}, idempotency_key)


def _fits_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip() and 1 <= len(text) <= 255


def _messages(value: Any) -> tuple[Message, ...]:
    return Fields(value).list_of("messages", Message.from_json)


def _nothing(_: Any) -> None:
    return None
