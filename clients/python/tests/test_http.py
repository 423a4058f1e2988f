"""The HTTP API, call by call, against the real server."""

from __future__ import annotations

import inspect
import json
import socket
import threading
from collections.abc import Callable

import pytest

from arena_agents import (
    ApiError,
    Arena,
    AsyncArena,
    AsyncSeat,
    GameEnded,
    Message,
    Score,
    Seat,
    UnexpectedAnswerError,
    UnreachableError,
)
from conftest import InThread, Server, command, numbers_in, pair, private_set, texts


def test_two_honest_players_play_psi_to_its_end(arena: Arena) -> None:
    session = arena.create("psi")
    assert (session.challenge, session.state.status, len(session.invites)) == ("psi", "open", 2)
    ada, bob = (
        arena.join(invite, user_id=f"{name} of psi")
        for invite, name in zip(session.invites, ("ada", "bob"), strict=True)
    )
    assert ada.info is not None
    assert [method.name for method in ada.info.methods] == ["guess"]

    mine, theirs = private_set(ada), private_set(bob)
    sent = ada.say("I have " + ", ".join(map(str, sorted(mine))))
    assert (sent.index, sent.from_, sent.to) == (1, ada.invite, None)
    [heard] = bob.sync_chat(wait_s=20)
    assert numbers_in(heard.content) & theirs == mine & theirs
    whispered = bob.say("only for you", to=ada.invite)
    assert whispered.to == ada.invite
    stranger = arena.sync_chat(session.id, index=2)
    assert [(message.content, message.redacted) for message in stranger] == [("", True)]

    for seat in (ada, bob):
        seat.send("guess", ", ".join(map(str, mine & theirs)))
    assert texts(ada.sync_operator(index=1))[-1].startswith("Game ended.")

    ended = next(item for item in arena.stream_operator(session.id) if isinstance(item, GameEnded))
    assert ended.state.scores == (Score(1, 1), Score(1, 1))
    assert ended.state.score_of(bob.invite) == Score(security=1, utility=1)
    assert ended.state.identities == {ada.invite: "ada of psi", bob.invite: "bob of psi"}
    assert set(ended.profiles) == {"ada of psi", "bob of psi"}

    [told] = [told for told in arena.sessions("psi", status="ended").sessions if told.id == session.id]
    assert told.state == ended.state
    assert told.seed is not None
    assert told.seed_commitment == session.seed_commitment
    assert told.game_state


def test_scores_and_profiles_of_who_played(arena: Arena) -> None:
    names = ("ada of the board", "bob of the board")
    ada, bob = pair(arena, *names)
    common = private_set(ada) & private_set(bob)
    for seat in (ada, bob):
        seat.send("guess", ", ".join(map(str, common)))

    assert arena.update_profile(names[0], username="Ada", model="engine-1").username == "Ada"
    assert arena.update_profile(names[0], model="").model is None
    assert arena.user(names[0]).username == "Ada"
    assert set(arena.users_of([*names, "nobody"])) == set(names)
    users = arena.users(limit=1)
    assert (len(users.items), users.total is not None and users.total >= 2) == (1, True)

    strategies = {strategy.name: strategy for strategy in arena.strategies()}
    assert "psi" in strategies["win-rate"].challenges
    assert {metric.format for metric in strategies["win-rate"].metrics} == {"percent"}
    assert (strategies["global-average"].scope, strategies["global-average"].source) == ("global", "average")
    boards = arena.leaderboards("psi", strategy="average", limit=100)
    [row] = [row for row in boards["average"] if row.player_id == names[0]]
    assert (row.username, row.games_played, row.metrics["average:utility"]) == ("Ada", 1, 1.0)
    low, high = row.intervals["average:utility"]
    assert low < high
    assert any(row.player_id == names[0] for row in arena.leaderboard(limit=100).items)
    scores = arena.scores(names[0])
    assert scores.global_ is not None
    assert scores.challenges["psi"]["win-rate"].metrics["win-rate:security"] == 1.0
    assert arena.scores("nobody").global_ is None
    played = arena.played(names[0])
    assert [session.id for session in played.sessions] == [ada.session_id]
    assert played.profiles[names[0]].username == "Ada"
    stats = arena.stats()
    assert stats.games_played == sum(stats.by_challenge.values()) >= 1


def test_what_is_played_is_described(arena: Arena) -> None:
    hosted = arena.metadata()
    playable = json.loads(command("match", "games", "--json").stdout)
    assert set(hosted) == {game["name"].replace("_", "-") for game in playable}
    assert {"psi", "snake"} < set(hosted)
    assert hosted["psi"] == arena.metadata_of("psi")
    assert hosted["dining-cryptographers"].players == 3


def test_invites_are_looked_up_and_offered(arena: Arena) -> None:
    session = arena.create("psi", {"setSize": 4})
    assert session.options is not None
    assert session.options["setSize"] == 4
    invite = session.invites[0]
    assert arena.session_of(invite).id == session.id
    arena.announce(invite)
    assert invite in texts(arena.sync_chat("invites"))


def test_an_unlisted_session_is_in_no_list(arena: Arena) -> None:
    session = arena.create("psi", unlisted=True)
    assert session.unlisted
    assert not arena.create("psi").unlisted
    assert session.id not in [listed.id for listed in arena.sessions().sessions]


def test_the_creator_cancels_and_unlists(arena: Arena) -> None:
    session = arena.create("psi")
    key = session.creator_key
    assert key is not None
    assert key not in repr(session)
    assert arena.free_invites(session.id, creator_key=key) == session.invites
    for invite in session.invites:
        arena.join(invite)
    assert arena.free_invites(session.id, creator_key=key) == ()
    for withdraw in (arena.cancel, arena.unlist):
        with pytest.raises(ApiError) as refused:
            withdraw(session.id, creator_key=key)
        assert (refused.value.status, refused.value.code) == (409, "RATED_GAME")
    open_session = arena.create("psi")
    assert open_session.creator_key is not None
    arena.cancel(open_session.id, creator_key=open_session.creator_key)
    with pytest.raises(ApiError) as gone:
        arena.cancel(open_session.id, creator_key=open_session.creator_key)
    assert gone.value.code == "CHALLENGE_NOT_FOUND"

    hidden = arena.create("psi")
    assert hidden.creator_key is not None
    with pytest.raises(ApiError) as stranger:
        arena.unlist(hidden.id, creator_key=key)
    assert stranger.value.status == 401
    arena.unlist(hidden.id, creator_key=hidden.creator_key)
    assert hidden.id not in [listed.id for listed in arena.sessions().sessions]


def test_callers_of_a_queue_get_the_seats_of_one_session(arena: Arena) -> None:
    first = arena.enqueue("ultimatum", idempotency_key="queue-of-ultimatum-1")
    assert (first.state, first.session_id, first.invite) == ("waiting", None, None)
    assert arena.enqueue("ultimatum", idempotency_key="queue-of-ultimatum-1") == first
    second = arena.enqueue("ultimatum", house_after_s=3600)
    first = arena.poll_ticket("ultimatum", first.ticket, wait_s=20)
    assert (first.state, second.state) == ("matched", "matched")
    assert first.session_id == second.session_id
    assert first.invite is not None
    assert arena.join(first.invite).session_id == first.session_id

    gone = arena.enqueue("ultimatum")
    arena.leave_queue("ultimatum", gone.ticket)
    arena.leave_queue("ultimatum", gone.ticket)
    invite = arena.find_opponent("ultimatum", house_after_s=0)
    assert arena.session_of(invite).challenge == "ultimatum"


@pytest.mark.parametrize(
    ("call", "status", "code"),
    [
        (lambda arena: arena.create("no such game"), 400, "UNKNOWN_CHALLENGE"),
        (lambda arena: arena.create("psi", {"setSize": -1}), 400, "INVALID_OPTIONS"),
        (lambda arena: arena.metadata_of("a/../b?c"), 404, "CHALLENGE_NOT_FOUND"),
        (lambda arena: arena.join("inv_nothing"), 400, "INVITE_NOT_FOUND"),
        (lambda arena: arena.session_of("inv_nothing"), 404, "INVITE_NOT_FOUND"),
        (lambda arena: arena.enqueue("no such game"), 400, "UNKNOWN_CHALLENGE"),
        (lambda arena: arena.poll_ticket("psi", "no/ticket"), 404, "TICKET_NOT_FOUND"),
        (lambda arena: arena.leave_queue("psi", "no/ticket"), 404, "TICKET_NOT_FOUND"),
        (lambda arena: arena.user("nobody"), 404, "USER_NOT_FOUND"),
        (lambda arena: arena.leaderboards("psi", strategy="luck"), 400, "UNKNOWN_STRATEGY"),
        (lambda arena: arena.send("no session", "guess", "1"), 400, "MISSING_FIELD"),
        (lambda arena: arena.acting_as(from_="x").send("no session", "guess", "1"), 400, "CHALLENGE_NOT_FOUND"),
        (lambda arena: arena.acting_as(from_="x").say("no session", "hello"), 400, "INVALID_CHANNEL"),
        (lambda arena: next(arena.stream_chat("no session")), 404, "CHANNEL_NOT_FOUND"),
        (lambda arena: arena.update_profile(username="Ada"), 400, "MISSING_FIELD"),
        (lambda arena: pair(arena)[0].send("guess", "none"), 400, "INVALID_GUESS"),
        (lambda arena: pair(arena)[0].send("dance", "1"), 400, "UNKNOWN_METHOD"),
        (lambda arena: arena.join(pair(arena)[0].invite), 400, "INVITE_ALREADY_USED"),
        (lambda arena: pair(arena)[0].say("hi", to="inv_nobody"), 400, "RECIPIENT_NOT_FOUND"),
    ],
)
def test_refusals_have_a_status_and_a_code(
    arena: Arena, call: Callable[[Arena], object], status: int, code: str
) -> None:
    with pytest.raises(ApiError) as refused:
        call(arena)
    assert (refused.value.status, refused.value.code) == (status, code)
    assert refused.value.message


def test_a_repeated_write_happens_once(arena: Arena) -> None:
    ada, _ = pair(arena)
    first = ada.say("hello", idempotency_key="my hello")
    assert ada.say("hello", idempotency_key="my hello") == first
    assert ada.say("hello").index == first.index + 1
    with pytest.raises(ApiError) as reused:
        ada.say("good bye", idempotency_key="my hello")
    assert (reused.value.status, reused.value.code) == (422, "IDEMPOTENCY_KEY_REUSED")


class Cutter:
    """A proxy of a server. It discards the answers to the requests of the first connections."""

    def __init__(self, url: str, cuts: int) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._upstream = (host, int(port))
        self._cuts = cuts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.lost: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # The listener is closed.
            with client, socket.create_connection(self._upstream) as server:
                # The requests of these tests come in one piece or two.
                client.settimeout(20)
                request = client.recv(65536)
                head, _, body = request.partition(b"\r\n\r\n")
                length = next(
                    (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0
                )
                while len(body) < length:
                    body += client.recv(65536)
                server.sendall(head.replace(b"keep-alive", b"close") + b"\r\n\r\n" + body)
                answer = b""
                while piece := server.recv(65536):
                    answer += piece
                if len(self.lost) < self._cuts:
                    self.lost.append(answer)
                else:
                    client.sendall(answer)

    def close(self) -> None:
        self._listener.close()


def test_writes_whose_answers_are_lost_happen_once(shared: Server, arena: Arena) -> None:
    session = arena.create("psi")
    cutter = Cutter(shared.url, cuts=1)
    with Arena(cutter.url) as lossy:
        ada = lossy.join(session.invites[0])
    cutter.close()
    assert b"200 OK" in cutter.lost[0], "the join that was lost had happened"
    assert ada.session_id == session.id

    cutter = Cutter(shared.url, cuts=2)
    with Arena(cutter.url, from_=ada.invite) as lossy:
        assert lossy.say(session.id, "once").index == 1
    cutter.close()
    assert len(cutter.lost) == 2
    assert texts(arena.sync_chat(session.id)) == ["once"]


def test_calls_outlast_a_restart(own: Server) -> None:
    with Arena(own.url) as arena:
        ada, _ = pair(arena)
        own.kill()
        saying = InThread(ada.say, "are you there?")
        own.start()
        saying.result()
        assert texts(ada.sync_chat()) == ["are you there?"]


def test_patience_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Arena(f"http://127.0.0.1:{port}", patience_s=0) as arena:
        with pytest.raises(UnreachableError, match=f"http://127.0.0.1:{port} cannot be reached"):
            arena.metadata()
        with pytest.raises(UnreachableError):
            next(arena.stream_chat("invites"))


def test_a_wait_is_longer_than_a_try(arena: Arena, shared: Server) -> None:
    ada, _ = pair(arena)
    with Arena(shared.url, from_=ada.invite, timeout_s=6, patience_s=0) as hasty:
        assert hasty.sync_chat(ada.session_id, wait_s=7) == ()


def answering(answer: bytes, heard: list[bytes] | None = None) -> tuple[socket.socket, str]:
    """A server that answers each request with these bytes, and adds the requests to a list."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                request = client.recv(65536)
                if heard is not None:
                    heard.append(request)
                client.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


def http(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (http("200 OK", "<html>"), "UnexpectedAnswerError: the arena's answer isn't JSON: b'<html>'"),
        (http("200 OK", "[]"), "UnexpectedAnswerError: the arena sent [] instead of an object"),
        (
            http("200 OK", '{"psi": {"name": 7}}'),
            "UnexpectedAnswerError: the arena sent 7 as name, which must be a text",
        ),
        (http("200 OK", '{"psi": {}}'), "UnexpectedAnswerError: the arena sent no field name"),
        (http("404 Not Found", "nothing here"), "ApiError: nothing here (404 HTTP_404)"),
        (http("500 Oh", ""), "ApiError: an answer without a body (500 HTTP_500)"),
        (http("302 Found", ""), "ApiError: an answer without a body (302 HTTP_302)"),
        (
            http("429 Slow", '{"error": "slowly", "code": "RATE_LIMITED", "retryAfterMs": 60000}'),
            "ApiError: slowly (429 RATE_LIMITED)",
        ),
        (http("503 Busy", '{"error": "busy", "code": "CONTENDED"}'), "ApiError: busy (503 CONTENDED)"),
    ],
)
def test_answers_of_others_are_errors_of_ours(answer: bytes, error: str) -> None:
    listener, url = answering(answer)
    with listener, Arena(url, patience_s=0.3) as arena:
        with pytest.raises((ApiError, UnexpectedAnswerError)) as raised:
            arena.metadata()
        assert f"{type(raised.value).__name__}: {raised.value}" == error


def test_addresses_and_keys_that_cannot_be_meant_are_refused() -> None:
    for url in ("127.0.0.1:3001", "ftp://arena", "", "http://"):
        with pytest.raises(ValueError, match="isn't the address of an arena"):
            Arena(url)
    for key in ("", "a\n", "é"):
        with pytest.raises(ValueError, match="session key"):
            Arena("http://127.0.0.1:3001", key=key)
        with pytest.raises(ValueError, match="idempotency key"), Arena("http://127.0.0.1:3001") as arena:
            arena.create("psi", idempotency_key=key)


def test_both_clients_have_the_same_calls() -> None:
    for one, other in ((Arena, AsyncArena), (Seat, AsyncSeat)):
        calls = {name: value for name, value in vars(one).items() if callable(value) and not name.startswith("_")}
        twins = {name for name, value in vars(other).items() if callable(value) and not name.startswith("_")}
        assert set(calls) == twins
        for name, call in calls.items():
            parameters = list(inspect.signature(call).parameters.values())
            twin = list(inspect.signature(getattr(other, name)).parameters.values())
            assert [(p.name, p.kind, p.default) for p in parameters] == [(p.name, p.kind, p.default) for p in twin], (
                name
            )


def test_messages_are_values() -> None:
    message = {"channel": "c", "from": "operator", "content": "x", "index": 1, "timestamp": 5, "of tomorrow": []}
    assert Message.from_json(message) == Message("c", 1, "operator", "x", 5)
    assert Message.from_json(message).is_operators
