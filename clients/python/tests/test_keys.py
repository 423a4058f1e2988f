"""Authentication mode: signed joins and profiles, and session keys."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from arena_agents import ApiError, Arena, GameEnded, Identity, Score
from conftest import Server, command, private_set


def test_two_players_with_keys_play_psi(arena_with_keys: Arena) -> None:
    arena = arena_with_keys
    people = [Identity.generate(), Identity.generate()]
    session = arena.create("psi")
    ada, bob = (arena.join(invite, identity=who) for invite, who in zip(session.invites, people, strict=True))
    assert ada.key is not None
    assert ada.key.startswith("s_0.")
    assert ada.key not in repr(ada)

    common = private_set(ada) & private_set(bob)
    assert ada.say("for you", to=bob.invite).from_ == ada.invite
    assert [message.content for message in bob.sync_chat()] == ["for you"]
    assert [message.content for message in arena.sync_chat(session.id)] == [""]
    assert next(bob.stream_chat()).content == "for you"  # type: ignore[union-attr]
    for seat in (ada, bob):
        seat.send("guess", ", ".join(map(str, common)))
    [*_, ended] = bob.stream_operator()
    assert isinstance(ended, GameEnded)
    assert ended.state.scores == (Score(1, 1), Score(1, 1))
    assert ended.state.identities == {ada.invite: people[0].user_id, bob.invite: people[1].user_id}


def test_a_key_opens_its_seat_and_no_other(arena_with_keys: Arena) -> None:
    arena = arena_with_keys
    session, other = arena.create("psi"), arena.create("psi")
    ada = arena.join(session.invites[0], identity=Identity.generate())
    again = arena.seat(session.id, ada.invite, key=ada.key)
    assert again.say("from another program").from_ == ada.invite
    for stolen in (
        arena.seat(other.id, ada.invite, key=ada.key),
        arena.seat(session.id, ada.invite, key="s_0." + "0" * 64),
    ):
        for call in (lambda: stolen.say("x"), stolen.sync_operator, lambda: next(stolen.stream_chat())):  # noqa: B023
            with pytest.raises(ApiError) as refused:
                call()
            assert (refused.value.status, refused.value.code) == (401, "AUTHENTICATION_REQUIRED")
    with pytest.raises(ApiError) as unsigned:
        arena.join(session.invites[1], user_id="bob")
    assert unsigned.value.code == "MISSING_FIELD"


def test_profiles_are_signed(arena_with_keys: Arena) -> None:
    ada = Identity.generate()
    strange = 'Ada "L" \\ é \u2028 😀 </script>'
    profile = arena_with_keys.update_profile(identity=ada, username=strange, model="engine-1")
    assert (profile.user_id, profile.username, profile.model) == (ada.user_id, strange, "engine-1")
    assert arena_with_keys.update_profile(identity=ada, model="engine-2").username == strange
    with pytest.raises(ValueError, match="user_id"):
        arena_with_keys.update_profile("somebody else", identity=ada, model="engine-3")


def test_keys_are_those_of_the_command_line(shared_with_keys: Server, arena_with_keys: Arena, tmp_path: Path) -> None:
    made = json.loads(command("identity", "new", home=tmp_path).stdout)
    ada = Identity.load(made["privateKey"])
    assert ada.user_id == made["userId"]
    assert Identity.find(made["userId"], tmp_path / ".arena/keys").public_key == ada.public_key
    assert "key" not in repr(ada)

    bob = Identity.generate()
    path = bob.save(tmp_path / "keys of bob" / ".arena/keys")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Identity.load(path).user_id == bob.user_id
    with pytest.raises(FileExistsError):
        bob.save(path.parent)
    session = arena_with_keys.create("psi")
    joined = command(
        "challenges", "join", session.invites[0], "--sign", bob.user_id, "--url", shared_with_keys.url,
        home=tmp_path / "keys of bob",
    )  # fmt: skip
    assert joined.returncode == 0, joined.stderr


def test_files_that_hold_no_key_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.key"
    for text in ("", "zz", "00", "302e020100300506032b656e04220420" + "11" * 32, "é"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=r"x\.key isn't a"):
            Identity.load(path)
    with pytest.raises(FileNotFoundError):
        Identity.find("nobody", tmp_path)
