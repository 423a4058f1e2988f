"""`AsyncArena`, the client for programs that run on asyncio; `Arena` in `arena_agents.client` is its twin."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from . import _calls
from ._calls import Call, Caller
from ._options import Options
from ._retry import Patience
from ._sse import ChannelReader
from .errors import ApiError, UnreachableError
from .models import (
    GameEnded,
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

#: Called with each message that is new to a player.
OnMessage = Callable[["AsyncSeat", Message], Awaitable[object]]


class AsyncArena:
    """An arena over HTTP.

    Calls that fail on the way are sent again, and so are those that the arena puts off (429, 503), until
    `patience_s` is over. Writes carry an `Idempotency-Key`, so what is sent twice happens once; name one yourself
    (`idempotency_key`) to repeat a write from another process.

    All calls raise `ApiError` if the arena refuses, `UnreachableError` if it can't be reached for longer than
    `patience_s`, and `UnexpectedAnswerError` if it answers something else than the protocol says.

    Belongs to one event loop. Close it when done, or use it in an `async with` statement.
    """

    def __init__(
        self,
        url: str,
        *,
        from_: str | None = None,
        key: str | None = None,
        timeout_s: float = 10.0,
        patience_s: float = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Makes a client; nothing is sent yet.

        Args:
            url: Where the arena is, such as `http://127.0.0.1:3001`.
            from_: As whom to act in standalone mode: the invite of a player who has joined.
            key: As whom to act in authentication mode: a session key. It is for one session only.
            timeout_s: How long a single try may take.
            patience_s: How long to go on trying; 0 tries once.
            headers: To be sent with each request, as a proxy may want them.

        Raises:
            ValueError: If `url` is no address.
        """
        self._options = Options(url, Caller(from_, key), timeout_s, patience_s, dict(headers or {}))
        self._http = httpx.AsyncClient(base_url=url, headers=self._options.headers, timeout=self._options.timeout())

    async def __aenter__(self) -> AsyncArena:
        """The client itself; closed at the end of the block."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the connections."""
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    def acting_as(self, *, from_: str | None = None, key: str | None = None) -> AsyncArena:
        """The same arena and the same connections, as somebody else."""
        other = AsyncArena.__new__(AsyncArena)
        other._options, other._http = self._options.acting_as(Caller(from_, key)), self._http
        return other

    # What is played.

    async def metadata(self) -> dict[str, Metadata]:
        """What can be played here: challenge types by name."""
        return await self._ask(_calls.metadata())

    async def metadata_of(self, challenge: str) -> Metadata:
        """One challenge type; `CHALLENGE_NOT_FOUND` if it isn't played here."""
        return await self._ask(_calls.metadata_of(challenge))

    async def create(
        self,
        challenge: str,
        options: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Session:
        """Sets up a session.

        Args:
            challenge: The challenge type, such as `psi`.
            options: Those that shall differ from the arena's, as far as the challenge type allows it.
            idempotency_key: What makes a repeated call one session: at least 16 characters that others can't guess.

        Returns:
            The session with all its invites, which are shown this once: hand them out to the players.
        """
        return await self._ask(_calls.create(challenge, options, idempotency_key))

    async def sessions(
        self,
        challenge: str | None = None,
        *,
        status: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> SessionPage:
        """Sessions, newest first, as strangers see them.

        Args:
            challenge: Only those of this challenge type.
            status: Only those that are `open`, `active` or `ended`.
            limit: Most sessions on the page, up to 100.
            offset: Sessions to pass over.
        """
        return await self._ask(_calls.sessions(challenge, status, limit, offset))

    async def session_of(self, invite: str) -> Session:
        """The session of an invite that nobody has used yet."""
        return await self._ask(_calls.session_of(invite))

    async def announce(self, invite: str, *, idempotency_key: str | None = None) -> None:
        """Offers an invite to whoever wants to play, on the public channel `invites`."""
        await self._ask(_calls.announce(invite, idempotency_key))

    # Playing.

    async def join(
        self,
        invite: str,
        *,
        user_id: str | None = None,
        identity: Identity | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncSeat:
        """Takes a seat. When the last is taken, the game begins.

        Args:
            invite: The code of the seat.
            user_id: In standalone mode, who the player is beyond this game, for the scores. May be left out.
            identity: In authentication mode, who joins.
            idempotency_key: What makes a repeated call one join.
        """
        joined = await self._ask(_calls.join(invite, user_id, identity, idempotency_key))
        seat = self.seat(joined.session_id, invite, key=joined.key)
        return replace(seat, info=joined.info)

    def seat(self, session_id: str, invite: str, *, key: str | None = None) -> AsyncSeat:
        """A seat that has been taken before, as by a program that goes on where another stopped. Sends nothing.

        Args:
            session_id: The session.
            invite: The invite with which the player joined.
            key: In authentication mode, the session key that the join was answered with.
        """
        arena = self.acting_as(from_=invite if key is None else None, key=key)
        return AsyncSeat(arena, session_id, invite, key)

    async def send(
        self, session_id: str, method: str | None, content: str, *, idempotency_key: str | None = None
    ) -> None:
        """Acts in a session: sends the operator a message.

        What comes of it is told on the operator's channel. An `ApiError` with a code of the challenge, such as
        `INVALID_GUESS`, says that it hasn't happened and may be mended.

        Args:
            session_id: The session.
            method: The name of one of the challenge's methods.
            content: What the method's description asks for.
            idempotency_key: What makes a repeated call one action.
        """
        await self._ask(_calls.send(self._options.caller, session_id, method, content, idempotency_key))

    async def report_usage(self, session_id: str, usage: Usage, *, idempotency_key: str | None = None) -> UsageTotal:
        """Says what a step of one's play has cost, such as a request to a language model.

        Nobody else learns of it before the session has ended; then `SessionState.reported_usage` shows everybody what
        the players have reported. `SESSION_ENDED` if it has ended already.

        Args:
            session_id: The session.
            usage: What it has cost.
            idempotency_key: What makes a repeated call one report.

        Returns:
            What the player's reports come to so far.
        """
        return await self._ask(_calls.report_usage(self._options.caller, session_id, usage, idempotency_key))

    async def say(
        self, session_id: str, content: str, *, to: str | None = None, idempotency_key: str | None = None
    ) -> Sent:
        """Says something to the other players, or to one of them alone.

        Args:
            session_id: The session.
            content: The text.
            to: The invite of the one player who may read it.
            idempotency_key: What makes a repeated call one message.
        """
        return await self._ask(_calls.say(self._options.caller, session_id, content, to, idempotency_key))

    async def sync_operator(
        self, session_id: str, *, index: int = 1, limit: int | None = None, wait_s: float | None = None
    ) -> tuple[Message, ...]:
        """Messages of a session's operator.

        Args:
            session_id: The session.
            index: Messages from this index on.
            limit: Most messages.
            wait_s: How long to wait for a message if there is none, in seconds; 50 at most.
        """
        return await self._ask(_calls.sync_operator(self._options.caller, session_id, index, limit, wait_s))

    async def sync_chat(
        self, channel: str, *, index: int = 1, limit: int | None = None, wait_s: float | None = None
    ) -> tuple[Message, ...]:
        """Messages of a session's chat, or of the public channel `invites`.

        Args:
            channel: The session's id, or `invites`.
            index: Messages from this index on.
            limit: Most messages.
            wait_s: How long to wait for a message if there is none, in seconds; 50 at most.
        """
        return await self._ask(_calls.sync_chat(self._options.caller, channel, index, limit, wait_s))

    def stream_operator(
        self, session_id: str, *, after: int = 0, beyond_end: bool = False
    ) -> AsyncGenerator[Message | GameEnded, None]:
        """What a session's operator says, as it comes: each message once, and `GameEnded` at the end.

        See `stream_chat`.
        """
        return self.stream_chat(_calls.operator_channel(session_id), after=after, beyond_end=beyond_end)

    async def stream_chat(
        self, channel: str, *, after: int = 0, beyond_end: bool = False
    ) -> AsyncGenerator[Message | GameEnded, None]:
        """What is said in a chat, as it comes: first what is there, then each message once and in order.

        A connection that breaks is made again, and the stream goes on where it was. It ends with `GameEnded`. Who
        stops before that closes it, as with `contextlib.aclosing`.

        Args:
            channel: The session's id, or `invites`.
            after: Begin behind the message with this index.
            beyond_end: Go on after `GameEnded`, as players may still chat, until you stop.
        """
        reader = ChannelReader(after)
        patience = Patience(self._options.patience_s)
        caller = self._options.caller
        while True:
            try:
                async with self._http.stream(
                    "GET",
                    _calls.stream_path(channel),
                    params=caller.params(),
                    headers={**caller.headers(), **reader.connect()},
                    timeout=self._options.stream_timeout(),
                ) as response:
                    if response.status_code != 200:
                        raise _calls.refusal(response.status_code, await response.aread())
                    async for chunk in response.aiter_bytes():
                        patience.renew()
                        for item in reader.feed(chunk):
                            yield item
                            if isinstance(item, GameEnded) and not beyond_end:
                                return
                ended = UnreachableError(f"the arena at {self._options.url} ends the stream again and again")
                wait_s = patience.wait_after(ended)
            except (httpx.TransportError, ApiError) as error:
                wait_s = patience.wait_after(self._options.failure(error))
            await asyncio.sleep(wait_s)

    async def play(
        self,
        invite: str | AsyncSeat,
        on_message: OnMessage,
        *,
        user_id: str | None = None,
        identity: Identity | None = None,
    ) -> GameEnded:
        """Plays a session to its end: joins, and calls a function with each message that is new to the player.

        These are what the operator says to the player or to all, and what the other players say in the chat: first
        what the operator has said so far, then both as they come, each channel in its order. What the player says
        itself and what is for others is left out. The function acts through the seat that it is given (`seat.send`,
        `seat.say`). It is awaited, one message after the other, and what it raises ends the play.

        A move before the last player has joined doesn't count: the operator answers with `ERR_GAME_NOT_RUNNING`, and
        the same move may be sent later. A move after the end has no effect either.

        Args:
            invite: The seat to take, or a seat that has been taken.
            on_message: Called with the seat and a message.
            user_id: As for `join`.
            identity: As for `join`.
        """
        from ._play import merged

        seat = invite
        if isinstance(seat, str):
            seat = await self.join(seat, user_id=user_id, identity=identity)
        async with aclosing(merged(seat)) as items:
            async for item in items:
                if isinstance(item, GameEnded):
                    return item
                await on_message(seat, item)
        raise AssertionError("what is followed ends with GameEnded or raises")

    # Scores and users.

    async def leaderboard(
        self, *, sort: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> Page[Standing]:
        """The board over all challenge types.

        Args:
            sort: By which metric, the largest first; with `:low` behind it, by the lower end of its interval.
            limit: Most players on the page; all of them if None.
            offset: Players to pass over.
        """
        return await self._ask(_calls.leaderboard(sort, limit, offset))

    async def leaderboards(
        self,
        challenge: str,
        *,
        strategy: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> dict[str, tuple[Standing, ...]]:
        """The boards of one challenge type, by strategy.

        Args:
            challenge: The challenge type.
            strategy: This board only.
            sort: As for `leaderboard`.
            limit: Most players of each board; all of them if None.
            offset: Players to pass over.
        """
        return await self._ask(_calls.leaderboards(challenge, strategy, sort, limit, offset))

    async def strategies(self) -> tuple[Strategy, ...]:
        """The scoring strategies, with what their metrics mean."""
        return await self._ask(_calls.strategies())

    async def stats(self) -> Stats:
        """How much has been played."""
        return await self._ask(_calls.stats())

    async def users(self, *, limit: int | None = None, offset: int | None = None) -> Page[Profile]:
        """Who is known here, in the order in which they became known."""
        return await self._ask(_calls.users(limit, offset))

    async def users_of(self, ids: Iterable[str]) -> dict[str, Profile]:
        """Those of these users who are known, by their ids."""
        return await self._ask(_calls.users_of(ids))

    async def user(self, user_id: str) -> Profile:
        """One user; `USER_NOT_FOUND` if nobody has heard of it."""
        return await self._ask(_calls.user(user_id))

    async def played(self, user_id: str, *, limit: int | None = None, offset: int | None = None) -> SessionPage:
        """Sessions that a user has played to their end, newest first."""
        return await self._ask(_calls.played(user_id, limit, offset))

    async def scores(self, user_id: str) -> UserScores:
        """How a user stands on every board."""
        return await self._ask(_calls.scores(user_id))

    async def update_profile(
        self,
        user_id: str | None = None,
        *,
        identity: Identity | None = None,
        username: str | None = None,
        model: str | None = None,
        idempotency_key: str | None = None,
    ) -> Profile:
        """Changes what is told of a user. What is left out stays; an empty text takes back what was there.

        Args:
            user_id: In standalone mode, the user.
            identity: In authentication mode, the user.
            username: The name to be shown.
            model: What plays, such as the name of a language model.
            idempotency_key: What makes a repeated call one change.
        """
        return await self._ask(_calls.update_profile(user_id, identity, username, model, idempotency_key))

    async def _ask(self, call: Call[T]) -> T:
        patience = Patience(self._options.patience_s)
        while True:
            try:
                response = await self._http.request(
                    call.method,
                    call.path,
                    params=call.params,
                    headers=call.headers,
                    content=call.body,
                    timeout=self._options.timeout(call.wait_s),
                )
                return call.read(response.status_code, response.headers, response.content)
            except (httpx.TransportError, ApiError) as error:
                wait_s = patience.wait_after(self._options.failure(error))
            await asyncio.sleep(wait_s)


@dataclass(frozen=True)
class AsyncSeat:
    """A player's place in a session, and all that the player can do there."""

    #: The client, acting as the player.
    arena: AsyncArena = field(repr=False)
    session_id: str
    #: The code that the seat was taken with: the player's name in this game.
    invite: str
    #: The session key of authentication mode, which opens this seat: keep it to yourself.
    key: str | None = field(default=None, repr=False)
    #: The rules; None if the seat wasn't taken by this program.
    info: Metadata | None = field(default=None, repr=False)

    async def send(self, method: str, content: str, *, idempotency_key: str | None = None) -> None:
        """Acts: see `AsyncArena.send`."""
        await self.arena.send(self.session_id, method, content, idempotency_key=idempotency_key)

    async def report_usage(self, usage: Usage, *, idempotency_key: str | None = None) -> UsageTotal:
        """Says what a step of one's play has cost: see `AsyncArena.report_usage`."""
        return await self.arena.report_usage(self.session_id, usage, idempotency_key=idempotency_key)

    async def say(self, content: str, *, to: str | None = None, idempotency_key: str | None = None) -> Sent:
        """Says something to the other players, or to one of them alone: see `AsyncArena.say`."""
        return await self.arena.say(self.session_id, content, to=to, idempotency_key=idempotency_key)

    async def sync_operator(
        self, *, index: int = 1, limit: int | None = None, wait_s: float | None = None
    ) -> tuple[Message, ...]:
        """What the operator has said: see `AsyncArena.sync_operator`."""
        return await self.arena.sync_operator(self.session_id, index=index, limit=limit, wait_s=wait_s)

    async def sync_chat(
        self, *, index: int = 1, limit: int | None = None, wait_s: float | None = None
    ) -> tuple[Message, ...]:
        """What the players have said: see `AsyncArena.sync_chat`."""
        return await self.arena.sync_chat(self.session_id, index=index, limit=limit, wait_s=wait_s)

    def stream_operator(self, *, after: int = 0, beyond_end: bool = False) -> AsyncGenerator[Message | GameEnded, None]:
        """What the operator says, as it comes: see `AsyncArena.stream_operator`."""
        return self.arena.stream_operator(self.session_id, after=after, beyond_end=beyond_end)

    def stream_chat(self, *, after: int = 0, beyond_end: bool = False) -> AsyncGenerator[Message | GameEnded, None]:
        """What the players say, as it comes: see `AsyncArena.stream_chat`."""
        return self.arena.stream_chat(self.session_id, after=after, beyond_end=beyond_end)
