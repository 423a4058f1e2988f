"""The two channels of a session as one sequence, for the loop of an agent."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, suppress

from ._calls import OPERATOR_PREFIX
from .aio import AsyncArena, AsyncSeat
from .client import Seat
from .models import GameEnded, Message


def follow_async(seat: AsyncSeat) -> aclosing[AsyncGenerator[Message | GameEnded, None]]:
    """Opens both channels until the block is left."""
    return aclosing(merged(seat))


async def merged(seat: AsyncSeat) -> AsyncGenerator[Message | GameEnded, None]:
    """Yields the messages that others send and the player may read, per channel in order; `GameEnded` last."""
    inbox: asyncio.Queue[Message | GameEnded | Exception] = asyncio.Queue()

    async def listen(stream: AsyncIterator[Message | GameEnded]) -> None:
        try:
            async for item in stream:
                await inbox.put(item)
        except Exception as error:
            # The reader of the inbox raises the error.
            await inbox.put(error)

    # The operator's messages so far come first, because a player needs its deal to understand the chat.
    said = await seat.sync_operator()
    for message in said:
        if _is_for(message, seat.invite):
            yield message
    streams = (seat.stream_operator(after=said[-1].index if said else 0), seat.stream_chat())
    listeners = [asyncio.create_task(listen(stream)) for stream in streams]
    try:
        # Both streams end with the session, after all messages before its end.
        running = len(listeners)
        while running:
            item = await inbox.get()
            if isinstance(item, Exception):
                raise item
            if isinstance(item, GameEnded):
                running -= 1
                ended = item
            elif _is_for(item, seat.invite):
                yield item
        # The listeners are closing their connections, and must not be canceled meanwhile.
        await asyncio.gather(*listeners)
        yield ended
    finally:
        for listener in listeners:
            listener.cancel()
        await asyncio.gather(*listeners, return_exceptions=True)


def _is_for(message: Message, invite: str) -> bool:
    """Returns True if a message is addressed to the player, directly or with all others.

    After the end of a session, the operator's channel shows all players the private deals and actions of others. A late
    or slow player must not take another's secret for its own, nor an action for chat.
    """
    if message.redacted or message.to not in (None, invite) or message.from_ == invite:
        return False
    return message.is_operators or not message.channel.startswith(OPERATOR_PREFIX)


@contextmanager
def follow(seat: Seat) -> Iterator[Iterator[Message | GameEnded]]:
    """Opens both channels for programs without an event loop, in a thread of its own, until the block is left.

    An event loop can wait on two streams and close both at any time; threads that read from sockets can't.
    """
    inbox: queue.SimpleQueue[Message | GameEnded | Exception] = queue.SimpleQueue()
    leaving = asyncio.Event()
    options = seat.arena._options

    async def read(arena: AsyncArena) -> None:
        async with follow_async(AsyncSeat(arena, seat.session_id, seat.invite, options.caller.key)) as items:
            async for item in items:
                inbox.put(item)

    async def listen() -> None:
        caller = options.caller
        async with AsyncArena(
            options.url,
            from_=caller.from_,
            key=caller.key,
            timeout_s=options.timeout_s,
            patience_s=options.patience_s,
            headers=options.headers,
        ) as arena:
            # Only the reader is canceled: a client that is canceled while it closes leaves connections open.
            tasks = [asyncio.create_task(read(arena)), asyncio.create_task(leaving.wait())]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            [read_to, _] = await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(read_to, Exception):
            raise read_to

    loop = asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_until_complete(listen())
        except Exception as error:
            inbox.put(error)
        loop.run_until_complete(loop.shutdown_asyncgens())
        # Unreferenced generators are closed by tasks of their own.
        loop.run_until_complete(_others_end())
        loop.close()

    # A daemon thread, so that a program that is interrupted in the block can exit.
    thread = threading.Thread(target=run, name="arena-listener", daemon=True)
    thread.start()
    try:
        yield _items(inbox)
    finally:
        with suppress(RuntimeError):  # The loop has ended and is closed.
            loop.call_soon_threadsafe(leaving.set)
        thread.join()


async def _others_end() -> None:
    await asyncio.sleep(0)
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.gather(*others, return_exceptions=True)


def _items(inbox: queue.SimpleQueue[Message | GameEnded | Exception]) -> Iterator[Message | GameEnded]:
    while True:
        item = inbox.get()
        if isinstance(item, Exception):
            raise item
        yield item
        if isinstance(item, GameEnded):
            return
