"""`Arena`, the blocking client; `AsyncArena` in `arena_agents.aio` has the same calls for asyncio."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
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
    Ticket,
    UserScores,
)

if TYPE_CHECKING:
    from .keys import Identity

T = TypeVar("T")

#: A function that is called with each message that is new to a player.
OnMessage = Callable[["Seat", Message], object]


class Arena:
    """An arena over HTTP.

    Calls are retried after transport errors and after temporary refusals (429, 503), for `patience_s` seconds. Writes
    carry an `Idempotency-Key`, so a repeated write happens once. To repeat a write from another process, pass the key
    yourself (`idempotency_key`).

    All calls raise `ApiError` if the arena refuses, `UnreachableError` if it can't be reached for longer than
    `patience_s`, and `UnexpectedAnswerError` if an answer doesn't follow the protocol.

    Several threads may share a client. Close it when done, or use it in a `with` statement.
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
        """Makes a client, without sending anything.

        Args:
            url: The arena's address, such as `http://127.0.0.1:3001`.
            from_: The player in standalone mode: the invite with which it joined.
            key: The player in authentication mode: a session key, which is valid for one session.
            timeout_s: Time limit of a single attempt.
            patience_s: Time to retry; 0 for a single attempt.
            headers: Additional headers of each request, for example for a proxy.

        Raises:
            ValueError: If `url` is not an address.
        """
        self._options = Options(url, Caller(from_, key), timeout_s, patience_s, dict(headers or {}))
        self._http = httpx.Client(base_url=url, headers=self._options.headers, timeout=self._options.timeout())

    def __enter__(self) -> Arena:
        """Returns the client, which is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the connections."""
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def acting_as(self, *, from_: str | None = None, key: str | None = None) -> Arena:
        """Returns a client of the same arena, on the same connections, for another player."""
        other = Arena.__new__(Arena)
        other._options, other._http = self._options.acting_as(Caller(from_, key)), self._http
        return other

    # Challenges and sessions.

    def metadata(self) -> dict[str, Metadata]:
        """Returns the hosted challenge types, by name."""
        return self._ask(_calls.metadata())

    def metadata_of(self, challenge: str) -> Metadata:
        """Returns one challenge type. The error is `CHALLENGE_NOT_FOUND` if it isn't hosted."""
        return self._ask(_calls.metadata_of(challenge))

    def create(
        self,
        challenge: str,
        options: Mapping[str, Any] | None = None,
        *,
        unlisted: bool = False,
        idempotency_key: str | None = None,
    ) -> Session:
        """Creates a session.

        Args:
            challenge: The challenge type, such as `psi`.
            options: Options that differ from the arena's, if the challenge type allows it.
            unlisted: True to keep the session out of all lists and histories. Its game is unrated.
            idempotency_key: A key with which repeated calls create one session: at least 16 characters that others
                can't guess.

        Returns:
            The session with all its invites, which are shown only here. Give them to the players. The session also has
            the creator's key for `cancel`, `unlist` and `free_invites`, which is shown only here too.
        """
        return self._ask(_calls.create(challenge, options, unlisted, idempotency_key))

    def sessions(
        self,
        challenge: str | None = None,
        *,
        status: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> SessionPage:
        """Returns sessions, newest first, as spectators see them.

        Args:
            challenge: The challenge type of the sessions; None for all.
            status: The status of the sessions, `open`, `active` or `ended`; None for all.
            limit: Sessions per page, up to 100.
            offset: Number of sessions to skip.
        """
        return self._ask(_calls.sessions(challenge, status, limit, offset))

    def cancel(self, session_id: str, *, creator_key: str) -> None:
        """Removes a session that has not ended, with its messages and invites.

        The arena's log shows the removal. The error is `RATED_GAME` if all players have joined a rated game: then only
        an administrator may remove it. If an answer is lost, the repeated call fails with `CHALLENGE_NOT_FOUND`.

        Args:
            session_id: The session.
            creator_key: The key of the session's creator, or the administrator's token.
        """
        self._ask(_calls.cancel(session_id, creator_key))

    def unlist(self, session_id: str, *, creator_key: str) -> None:
        """Takes a session that has not ended from all lists. Its game becomes unrated.

        The error is `RATED_GAME` if all players have joined a rated game: then only an administrator may unlist it.

        Args:
            session_id: The session.
            creator_key: The key of the session's creator, or the administrator's token.
        """
        self._ask(_calls.unlist(session_id, creator_key))

    def free_invites(self, session_id: str, *, creator_key: str) -> tuple[str, ...]:
        """Returns the invites of a session's free seats, without those that were announced to all.

        Args:
            session_id: The session.
            creator_key: The key of the session's creator, or the administrator's token.
        """
        return self._ask(_calls.free_invites(session_id, creator_key))

    def session_of(self, invite: str) -> Session:
        """Returns the session of an unused invite."""
        return self._ask(_calls.session_of(invite))

    def announce(self, invite: str, *, idempotency_key: str | None = None) -> None:
        """Offers an invite to all, on the public channel `invites`."""
        self._ask(_calls.announce(invite, idempotency_key))

    # Playing.

    def enqueue(
        self, challenge: str, *, house_after_s: int | None = None, idempotency_key: str | None = None
    ) -> Ticket:
        """Joins the queue of a challenge type. The first callers get the seats of a new session.

        Args:
            challenge: The challenge type, such as `psi`.
            house_after_s: Time after which house bots may take the missing seats, in seconds; None for never.
            idempotency_key: A key with which repeated calls get one ticket: at least 16 characters that others can't
                guess.

        Returns:
            The ticket. Pass it to `poll_ticket` until it is matched. The arena drops a ticket without a poll for 60 s.
        """
        return self._ask(_calls.enqueue(challenge, house_after_s, idempotency_key))

    def poll_ticket(self, challenge: str, ticket: str, *, wait_s: float | None = None) -> Ticket:
        """Returns the state of a ticket. The error is `TICKET_NOT_FOUND` if it was dropped or its caller has left.

        Args:
            challenge: The challenge type of the queue.
            ticket: The ticket.
            wait_s: Time to wait for a match, in seconds; 50 at most.
        """
        return self._ask(_calls.poll_ticket(challenge, ticket, wait_s))

    def leave_queue(self, challenge: str, ticket: str) -> None:
        """Leaves a queue. The error is `ALREADY_MATCHED` if the ticket has an invite."""
        self._ask(_calls.leave_queue(challenge, ticket))

    def find_opponent(self, challenge: str, *, house_after_s: int | None = None) -> str:
        """Waits in the queue of a challenge type until there are enough players, and returns the invite of a seat.

        Args:
            challenge: The challenge type, such as `psi`.
            house_after_s: Time after which house bots may take the missing seats, in seconds; None for never.
        """
        place = self.enqueue(challenge, house_after_s=house_after_s)
        while place.invite is None:
            place = self.poll_ticket(challenge, place.ticket, wait_s=20)
        return place.invite

    def join(
        self,
        invite: str,
        *,
        user_id: str | None = None,
        identity: Identity | None = None,
        idempotency_key: str | None = None,
    ) -> Seat:
        """Takes a seat. The game begins when all seats are taken.

        Args:
            invite: The code of the seat.
            user_id: In standalone mode, the user's id for the scores. Optional.
            identity: In authentication mode, the user.
            idempotency_key: A key with which repeated calls join once.
        """
        joined = self._ask(_calls.join(invite, user_id, identity, idempotency_key))
        seat = self.seat(joined.session_id, invite, key=joined.key)
        return replace(seat, info=joined.info)

    def seat(self, session_id: str, invite: str, *, key: str | None = None) -> Seat:
        """Returns a seat that was taken earlier, for example by a program that was stopped. Sends nothing.

        Args:
            session_id: The session.
            invite: The invite with which the player joined.
            key: In authentication mode, the session key from the join.
        """
        arena = self.acting_as(from_=invite if key is None else None, key=key)
        return Seat(arena, session_id, invite, key)

    def send(self, session_id: str, method: str | None, content: str, *, idempotency_key: str | None = None) -> None:
        """Acts in a session: sends the operator a message.

        The result arrives on the operator's channel. An `ApiError` with a code of the challenge, such as
        `INVALID_GUESS`, means that the action had no effect and can be corrected.

        Args:
            session_id: The session.
            method: The name of one of the challenge's methods.
            content: The content, in the form that the method's description requires.
            idempotency_key: A key with which repeated calls act once.
        """
        self._ask(_calls.send(self._options.caller, session_id, method, content, idempotency_key))

    def say(self, session_id: str, content: str, *, to: str | None = None, idempotency_key: str | None = None) -> Sent:
        """Sends a chat message to all other players, or to one of them.

        Args:
            session_id: The session.
            content: The text.
            to: The invite of the only player who may read it.
            idempotency_key: A key with which repeated calls send one message.
        """
        return self._ask(_calls.say(self._options.caller, session_id, content, to, idempotency_key))

    def sync_operator(
        self, session_id: str, *, index: int = 1, limit: int | None = None, wait_s: float | None = None
    ) -> tuple[Message, ...]:
        """Returns messages of a session's operator.

        Args:
            session_id: The session.
            index: The first index to return.
            limit: Maximum number of messages.
            wait_s: Time to wait if there is no message, in seconds; 50 at most.
        """
        return self._ask(_calls.sync_operator(self._options.caller, session_id, index, limit, wait_s))

    def sync_chat(
        self, channel: str, *, index: int = 1, limit: int | None = None, wait_s: float | None = None
    ) -> tuple[Message, ...]:
        """Returns messages of a session's chat, or of the public channel `invites`.

        Args:
            channel: The session's id, or `invites`.
            index: The first index to return.
            limit: Maximum number of messages.
            wait_s: Time to wait if there is no message, in seconds; 50 at most.
        """
        return self._ask(_calls.sync_chat(self._options.caller, channel, index, limit, wait_s))

    def stream_operator(
        self, session_id: str, *, after: int = 0, beyond_end: bool = False
    ) -> Generator[Message | GameEnded, None, None]:
        """Streams the messages of a session's operator: each message once, and `GameEnded` at the end.

        See `stream_chat`.
        """
        return self.stream_chat(_calls.operator_channel(session_id), after=after, beyond_end=beyond_end)

    def stream_chat(
        self, channel: str, *, after: int = 0, beyond_end: bool = False
    ) -> Generator[Message | GameEnded, None, None]:
        """Streams the messages of a chat: first the existing ones, then each new one, once and in order.

        If the connection breaks, the client reconnects and the stream continues after the last message. The stream ends
        with `GameEnded`.
        To stop earlier, close the stream, for example with `contextlib.closing`.

        Args:
            channel: The session's id, or `invites`.
            after: Index of the last message to skip.
            beyond_end: Continue after `GameEnded`, because players may still chat.
        """
        reader = ChannelReader(after)
        patience = Patience(self._options.patience_s)
        caller = self._options.caller
        while True:
            try:
                with self._http.stream(
                    "GET",
                    _calls.stream_path(channel),
                    params=caller.params(),
                    headers={**caller.headers(), **reader.connect()},
                    timeout=self._options.stream_timeout(),
                ) as response:
                    if response.status_code != 200:
                        raise _calls.refusal(response.status_code, response.read())
                    for chunk in response.iter_bytes():
                        patience.renew()
                        for item in reader.feed(chunk):
                            yield item
                            if isinstance(item, GameEnded) and not beyond_end:
                                return
                ended = UnreachableError(f"the arena at {self._options.url} closes the stream repeatedly")
                wait_s = patience.wait_after(ended)
            except (httpx.TransportError, ApiError) as error:
                wait_s = patience.wait_after(self._options.failure(error))
            time.sleep(wait_s)

    def play(
        self,
        invite: str | Seat,
        on_message: OnMessage,
        *,
        user_id: str | None = None,
        identity: Identity | None = None,
    ) -> GameEnded:
        """Plays a session to its end: joins, and calls a function with each message that is new to the player.

        The function receives the operator's messages to the player or to all, and the chat messages of other
        players: first the operator's messages so far, then new messages of both channels, each channel in order.
        The player's own messages and private messages of others are left out. The function acts through the seat
        that it receives (`seat.send`, `seat.say`). It is called in this thread, one message after the other.
        An exception in it ends the call.

        A move before all players have joined has no effect: the operator answers with `ERR_GAME_NOT_RUNNING`, and the
        player may send the move again later. A move after the end has no effect either.

        Args:
            invite: The invite of a free seat, or a seat that was taken earlier.
            on_message: The function, which receives the seat and a message.
            user_id: See `join`.
            identity: See `join`.
        """
        from ._play import follow

        seat = self.join(invite, user_id=user_id, identity=identity) if isinstance(invite, str) else invite
        with follow(seat) as items:
            for item in items:
                if isinstance(item, GameEnded):
                    return item
                on_message(seat, item)
        raise AssertionError("the stream ends with GameEnded or raises")

    # Scores and users.

    def leaderboard(
        self, *, sort: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> Page[Standing]:
        """Returns the board over all challenge types.

        Args:
            sort: The metric to sort by, largest first; with the suffix `:low`, the lower end of its interval.
            limit: Players per page; None for all.
            offset: Number of players to skip.
        """
        return self._ask(_calls.leaderboard(sort, limit, offset))

    def leaderboards(
        self,
        challenge: str,
        *,
        strategy: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> dict[str, tuple[Standing, ...]]:
        """Returns the boards of one challenge type, by strategy.

        Args:
            challenge: The challenge type.
            strategy: Only the board of this strategy.
            sort: See `leaderboard`.
            limit: Players per board; None for all.
            offset: Number of players to skip.
        """
        return self._ask(_calls.leaderboards(challenge, strategy, sort, limit, offset))

    def strategies(self) -> tuple[Strategy, ...]:
        """Returns the scoring strategies and their metrics."""
        return self._ask(_calls.strategies())

    def stats(self) -> Stats:
        """Returns the totals of the arena."""
        return self._ask(_calls.stats())

    def users(self, *, limit: int | None = None, offset: int | None = None) -> Page[Profile]:
        """Returns the known users, in the order of their first appearance."""
        return self._ask(_calls.users(limit, offset))

    def users_of(self, ids: Iterable[str]) -> dict[str, Profile]:
        """Returns the profiles of these users, by id, without unknown users."""
        return self._ask(_calls.users_of(ids))

    def user(self, user_id: str) -> Profile:
        """Returns one user. The error is `USER_NOT_FOUND` if the user is unknown."""
        return self._ask(_calls.user(user_id))

    def played(self, user_id: str, *, limit: int | None = None, offset: int | None = None) -> SessionPage:
        """Returns a user's ended sessions, newest first."""
        return self._ask(_calls.played(user_id, limit, offset))

    def scores(self, user_id: str) -> UserScores:
        """Returns a user's standings on all boards."""
        return self._ask(_calls.scores(user_id))

    def update_profile(
        self,
        user_id: str | None = None,
        *,
        identity: Identity | None = None,
        username: str | None = None,
        model: str | None = None,
        idempotency_key: str | None = None,
    ) -> Profile:
        """Changes a user's profile. Omitted fields stay; an empty text removes a field.

        Args:
            user_id: In standalone mode, the user.
            identity: In authentication mode, the user.
            username: The displayed name.
            model: The player's program or language model.
            idempotency_key: A key with which repeated calls change the profile once.
        """
        return self._ask(_calls.update_profile(user_id, identity, username, model, idempotency_key))

    def _ask(self, call: Call[T]) -> T:
        patience = Patience(self._options.patience_s)
        while True:
            try:
                response = self._http.request(
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
            time.sleep(wait_s)


@dataclass(frozen=True)
class Seat:
    """A player's seat in a session, with the player's calls."""

    #: The client, acting as the player.
    arena: Arena = field(repr=False)
    session_id: str
    #: The invite of the seat, which is the player's id in this game.
    invite: str
    #: The session key in authentication mode, which authorizes calls for this seat. Keep it secret.
    key: str | None = field(default=None, repr=False)
    #: The rules; None if another program took the seat.
    info: Metadata | None = field(default=None, repr=False)

    def send(self, method: str, content: str, *, idempotency_key: str | None = None) -> None:
        """Acts: see `Arena.send`."""
        self.arena.send(self.session_id, method, content, idempotency_key=idempotency_key)

    def say(self, content: str, *, to: str | None = None, idempotency_key: str | None = None) -> Sent:
        """Sends a chat message to all other players, or to one: see `Arena.say`."""
        return self.arena.say(self.session_id, content, to=to, idempotency_key=idempotency_key)

    def sync_operator(
        self, *, index: int = 1, limit: int | None = None, wait_s: float | None = None
    ) -> tuple[Message, ...]:
        """Returns the operator's messages: see `Arena.sync_operator`."""
        return self.arena.sync_operator(self.session_id, index=index, limit=limit, wait_s=wait_s)

    def sync_chat(
        self, *, index: int = 1, limit: int | None = None, wait_s: float | None = None
    ) -> tuple[Message, ...]:
        """Returns the players' messages: see `Arena.sync_chat`."""
        return self.arena.sync_chat(self.session_id, index=index, limit=limit, wait_s=wait_s)

    def stream_operator(
        self, *, after: int = 0, beyond_end: bool = False
    ) -> Generator[Message | GameEnded, None, None]:
        """Streams the operator's messages: see `Arena.stream_operator`."""
        return self.arena.stream_operator(self.session_id, after=after, beyond_end=beyond_end)

    def stream_chat(self, *, after: int = 0, beyond_end: bool = False) -> Generator[Message | GameEnded, None, None]:
        """Streams the players' messages: see `Arena.stream_chat`."""
        return self.arena.stream_chat(self.session_id, after=after, beyond_end=beyond_end)
