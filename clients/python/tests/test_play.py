"""Agents: the loop that calls a function with each message, in both clients and both modes."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from arena_agents import ApiError, Arena, AsyncArena, AsyncSeat, GameEnded, Identity, Message, Score, Seat
from conftest import InThread, Server, numbers_in, pair


class Honest:
    """A player of PSI that shows its numbers, and guesses the common numbers."""

    def __init__(self) -> None:
        self.mine: set[int] = set()
        self.heard: list[tuple[str, str]] = []

    def __call__(self, seat: Seat, message: Message) -> None:
        self.heard.append((message.from_, message.content))
        if message.is_operators:
            if message.content.startswith("Your private set is"):
                self.mine = numbers_in(message.content)
                seat.say(", ".join(map(str, self.mine)))
        else:
            seat.send("guess", ", ".join(map(str, self.mine & numbers_in(message.content))))


def check(players: list[Honest], results: list[object], invites: tuple[str, ...]) -> None:
    for player, result, invite, other in zip(players, results, invites, reversed(invites), strict=True):
        assert isinstance(result, GameEnded)
        assert result.state.scores == (Score(1, 1), Score(1, 1))
        senders = [sender for sender, _ in player.heard]
        assert senders.count(other) == 1
        assert invite not in senders
        assert player.heard[-1][1].startswith("Game ended.")
        assert all(content for _, content in player.heard)


@pytest.mark.parametrize("keys", [False, True])
def test_two_agents_play_psi_in_threads(shared: Server, shared_with_keys: Server, keys: bool) -> None:
    with Arena((shared_with_keys if keys else shared).url) as arena:
        invites = arena.create("psi").invites
        players = [Honest(), Honest()]
        playing = [
            InThread(lambda invite=invite, player=player: arena.play(
                invite, player, identity=Identity.generate() if keys else None
            ))
            for invite, player in zip(invites, players, strict=True)
        ]  # fmt: skip
        check(players, [play.result() for play in playing], invites)
    assert not [thread for thread in threading.enumerate() if thread.name == "arena-listener"]


def test_who_has_played_hangs_up_in_peace(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[AsyncArena] = []
    close = AsyncArena.close

    async def close_slowly(client: AsyncArena) -> None:
        await asyncio.sleep(0.1)
        await close(client)
        closed.append(client)

    monkeypatch.setattr(AsyncArena, "close", close_slowly)
    invites = arena.create("psi").invites
    players = [Honest(), Honest()]
    playing = [InThread(arena.play, invite, player) for invite, player in zip(invites, players, strict=True)]
    check(players, [play.result() for play in playing], invites)
    assert len(closed) == 2


def test_who_has_played_leaves_nothing_undone(arena: Arena, caplog: pytest.LogCaptureFixture) -> None:
    # The event loop logs unfinished tasks when they are garbage-collected.
    for _ in range(5):
        invites = arena.create("psi").invites
        players = [Honest(), Honest()]
        playing = [InThread(arena.play, invite, player) for invite, player in zip(invites, players, strict=True)]
        check(players, [play.result() for play in playing], invites)
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_two_agents_play_psi_on_asyncio(shared: Server) -> None:
    async def agent(arena: AsyncArena, invite: str, player: Honest) -> GameEnded:
        async def on_message(seat: AsyncSeat, message: Message) -> None:
            player.heard.append((message.from_, message.content))
            if message.content.startswith("Your private set is"):
                player.mine = numbers_in(message.content)
                await seat.say(", ".join(map(str, player.mine)))
            elif not message.is_operators:
                await seat.send("guess", ", ".join(map(str, player.mine & numbers_in(message.content))))

        return await arena.play(invite, on_message, user_id=f"agent of {invite}")

    async def story() -> None:
        async with AsyncArena(shared.url) as arena:
            invites = (await arena.create("psi")).invites
            players = [Honest(), Honest()]
            results = await asyncio.gather(
                *(agent(arena, invite, player) for invite, player in zip(invites, players, strict=True))
            )
            check(players, list(results), invites)
            assert results[0].state.identities == {invite: f"agent of {invite}" for invite in invites}

    asyncio.run(story())


def test_an_agent_goes_on_where_another_stopped(arena: Arena) -> None:
    ada, bob = pair(arena)

    class StoppedError(Exception):
        pass

    def stop(seat: Seat, message: Message) -> None:
        raise StoppedError(message.content)

    with pytest.raises(StoppedError, match="Your private set is"):
        arena.play(ada, stop)
    assert not [thread for thread in threading.enumerate() if thread.name == "arena-listener"]
    players = [Honest(), Honest()]
    seats = (arena.seat(ada.session_id, ada.invite), bob)
    playing = [InThread(arena.play, seat, player) for seat, player in zip(seats, players, strict=True)]
    check(players, [play.result() for play in playing], (ada.invite, bob.invite))


def test_what_the_arena_refuses_ends_the_play(arena: Arena) -> None:
    ada, _ = pair(arena)

    def dance(seat: Seat, message: Message) -> None:
        seat.send("dance", "1")

    with pytest.raises(ApiError) as refused:
        arena.play(ada, dance)
    assert refused.value.code == "UNKNOWN_METHOD"
    with pytest.raises(ApiError) as unknown:
        arena.play(arena.seat("no session", ada.invite), dance)
    assert unknown.value.code == "CHANNEL_NOT_FOUND"


def test_who_comes_late_takes_nobody_elses_secret_for_its_own(arena: Arena) -> None:
    ada, bob = pair(arena)
    ada.say("hello")
    for seat in (ada, bob):
        seat.send("guess", "1")
    heard: list[Message] = []
    arena.play(bob, lambda seat, message: heard.append(message))
    assert heard[0].is_operators, "what one was dealt comes before what others say"
    [dealt] = [message for message in heard if message.content.startswith("Your private set is")]
    assert dealt.to == bob.invite
    assert [message.content for message in heard if not message.is_operators] == ["hello"]
