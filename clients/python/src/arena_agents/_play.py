"""A session's two channels as one sequence: what an agent's loop goes through."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, suppress

from ._calls import OPERATOR_PREFIX
from ._options import Options
from .aio import AsyncArena, AsyncSeat
from .models import GameEnded, Message


async def merged(seat: AsyncSeat) -> AsyncGenerator[Message | GameEnded, None]:
    """What others say in both channels, each in its order, as far as the player may read it; `GameEnded` last."""
    inbox: asyncio.Queue[Message | GameEnded | Exception] = asyncio.Queue()

    async def listen(stream: AsyncIterator[Message | GameEnded]) -> None:
        try:
            async for item in stream:
                await inbox.put(item)
        except Exception as error:
            # Whoever reads the inbox raises it.
            await inbox.put(error)

    # First what the operator has said so far: who was dealt nothing yet can't make sense of what others say.
    said = await seat.sync_operator()
    for message in said:
        if _is_for(message, seat.invite):
            yield message
    streams = (seat.stream_operator(after=said[-1].index if said else 0), seat.stream_chat())
    listeners = [asyncio.create_task(listen(stream)) for stream in streams]
    try:
        # Both end with the session. What was said before the end is told before the end, in either.
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
        # They are closing their connections, in which they mustn't be broken off.
        await asyncio.gather(*listeners)
        yield ended
    finally:
        for listener in listeners:
            listener.cancel()
        await asyncio.gather(*listeners, return_exceptions=True)


def _is_for(message: Message, invite: str) -> bool:
    """Whether a message tells a player something that it may take for its own.

    Once a session has ended, its operator's channel shows everybody what was withheld: what others were dealt, and what
    they did. Who comes to it late, or is slow, mustn't take another's secret for its own, nor an action for chat.
    """
    if message.redacted or message.to not in (None, invite) or message.from_ == invite:
        return False
    return message.is_operators or not message.channel.startswith(OPERATOR_PREFIX)


@contextmanager
def follow(options: Options, session_id: str, invite: str) -> Iterator[Iterator[Message | GameEnded]]:
    """`merged` for programs without an event loop: one runs in a thread of its own, until the block is left.

    Waiting on two streams at once, and hanging up on both at any time, is what an event loop can do and threads that
    read from sockets can't.
    """
    inbox: queue.SimpleQueue[Message | GameEnded | Exception] = queue.SimpleQueue()
    leaving = asyncio.Event()

    async def read(arena: AsyncArena) -> None:
        seat = AsyncSeat(arena, session_id, invite, options.caller.key)
        async with aclosing(merged(seat)) as items:
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
            # Only what reads is broken off: a client that is broken off while it closes leaves connections open.
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
        # Generators that nobody holds any more are closed by tasks of their own.
        loop.run_until_complete(_others_end())
        loop.close()

    # A daemon, so that a program that is interrupted in the block ends.
    thread = threading.Thread(target=run, name="arena-listener", daemon=True)
    thread.start()
    try:
        yield _items(inbox)
    finally:
        with suppress(RuntimeError):  # It is over, and its loop closed.
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
