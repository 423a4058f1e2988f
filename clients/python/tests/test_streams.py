"""Live channels: each message once and in order, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import queue
import signal
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from arena_agents import ApiError, Arena, AsyncArena, GameEnded, Message, UnexpectedAnswerError
from arena_agents._retry import Patience
from arena_agents._sse import ChannelReader, EventDecoder
from conftest import PATIENCE_S, InThread, Server, pair, private_set


def contents(items: Iterator[Message | GameEnded]) -> list[str]:
    return [item.content if isinstance(item, Message) else "the end" for item in items]


def test_a_stream_goes_on_where_it_was_after_the_server_was_killed_and_restarted(own: Server) -> None:
    with Arena(own.url) as arena:
        ada, bob = pair(arena)
        common = private_set(ada) & private_set(bob)
        heard: queue.Queue[str] = queue.Queue()

        def listen() -> None:
            for item in bob.stream_chat():
                heard.put(f"{item.index} {item.content}" if isinstance(item, Message) else "the end")

        listening = InThread(listen)
        ada.say("before")
        assert heard.get(timeout=PATIENCE_S) == "1 before"
        for how in (signal.SIGKILL, signal.SIGTERM):
            own.end(how)
            own.start()
            ada.say(f"after {how.name}")
        for seat in (ada, bob):
            seat.send("guess", ", ".join(map(str, common)))
        listening.result()
        rest = [heard.get_nowait() for _ in range(heard.qsize())]
        assert rest == ["2 after SIGKILL", "3 after SIGTERM", "the end"]


def test_a_stream_begins_where_one_wants(arena: Arena) -> None:
    ada, bob = pair(arena)
    for number in range(1, 6):
        ada.say(str(number))
    common = private_set(ada) & private_set(bob)
    for seat in (ada, bob):
        seat.send("guess", ", ".join(map(str, common)))
    assert contents(bob.stream_chat()) == ["1", "2", "3", "4", "5", "the end"]
    assert contents(bob.stream_chat(after=3)) == ["4", "5", "the end"]
    assert contents(bob.stream_operator())[-2].startswith("Game ended.")

    beyond = bob.stream_chat(after=5, beyond_end=True)
    assert isinstance(next(beyond), GameEnded)
    ada.say("well played")
    later = next(beyond)
    assert isinstance(later, Message)
    assert (later.index, later.content) == (6, "well played")
    beyond.close()


def test_asyncio_streams_likewise(own: Server) -> None:
    async def story() -> list[str]:
        async with AsyncArena(own.url) as arena:
            session = await arena.create("psi")
            seats = [await arena.join(invite) for invite in session.invites]
            heard: list[str] = []
            async with aclosing(arena.stream_chat(session.id)) as stream:
                for number in range(3):
                    await seats[0].say(str(number))
                    item = await anext(stream)
                    assert isinstance(item, Message)
                    heard.append(f"{item.index} {item.content}")
                    own.kill()
                    own.start()
            with pytest.raises(ApiError) as refused:
                await anext(arena.stream_chat("no session"))
            assert refused.value.code == "CHANNEL_NOT_FOUND"
            return heard

    assert asyncio.run(story()) == ["1 0", "2 1", "3 2"]


def test_events_may_be_cut_anywhere() -> None:
    text = (
        ': ping\n\nid: 1\ndata: {"a":\ndata: "é"}\n\ndata:x\r\nid:2.ended\r\n\r\nretry: 5\nid\n\ndata: y\n\ndata: lost'
    )
    whole = [(event.data, event.id) for event in EventDecoder().feed(text.encode())]
    assert whole == [('{"a":\n"é"}', "1"), ("x", "2.ended"), ("y", "")]
    for size in (1, 2, 3, 7, 20):
        decoder, data = EventDecoder(), text.encode()
        pieces = [decoder.feed(data[at : at + size]) for at in range(0, len(data), size)]
        assert [(event.data, event.id) for piece in pieces for event in piece] == whole


def event(kind: str, rest: str, id_: str = "") -> bytes:
    return f'data: {{"type": "{kind}", {rest}}}\n{id_}\n'.encode()


def message(index: int) -> str:
    return f'{{"channel": "c", "from": "operator", "content": "{index}", "index": {index}, "timestamp": 0}}'


def test_arenas_that_cannot_resume_are_heard_once_all_the_same() -> None:
    reader = ChannelReader()
    assert "Last-Event-ID" not in reader.connect()
    assert contents(iter(reader.feed(event("initial", f'"messages": [{message(1)}, {message(2)}]')))) == ["1", "2"]
    reader.connect()
    again = f'"messages": [{message(1)}, {message(2)}, {message(3)}]'
    assert contents(iter(reader.feed(event("initial", again)))) == ["3"]


def test_the_latest_id_is_what_a_reader_comes_back_with() -> None:
    reader = ChannelReader(after=4)
    assert reader.connect()["Last-Event-ID"] == "4"
    reader.feed(event("new_message", f'"message": {message(5)}', "id: 5\n"))
    reader.feed(event("of tomorrow", '"x": 1', "id: 6\n"))
    reader.feed(event("new_message", f'"message": {message(7)}', "id: 7\n")[:-1])
    assert reader.connect()["Last-Event-ID"] == "6", "an event that was cut off hasn't happened"
    state = '"data": {"status": "ended", "players": [], "scores": []}'
    [ended] = reader.feed(event("game_ended", state, "id: 6.ended\n"))
    assert isinstance(ended, GameEnded)
    assert reader.connect()["Last-Event-ID"] == "6.ended"


@pytest.mark.parametrize("data", [b"data: <html>\n\n", b"data: []\n\n", event("new_message", '"message": {}')])
def test_events_of_others_are_errors_of_ours(data: bytes) -> None:
    with pytest.raises(UnexpectedAnswerError):
        ChannelReader().feed(data)


def test_patience_is_counted_from_the_first_failure_and_renewed() -> None:
    now = 1000.0
    patience = Patience(10, clock=lambda: now)
    failure = ApiError(503, "CONTENDED", "busy")
    slow = ApiError(429, "RATE_LIMITED", "slowly", retry_after_s=4)
    now = 2000.0
    assert 0 < patience.wait_after(failure) <= 0.1
    assert 0 < patience.wait_after(failure) <= 0.2
    assert patience.wait_after(slow) == 4
    now = 2007.0
    with pytest.raises(ApiError, match="RATE_LIMITED"):
        patience.wait_after(slow)
    patience.renew()
    assert patience.wait_after(slow) == 4
