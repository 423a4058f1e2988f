"""A game of PSI, played with a client generated from /openapi.json by openapi-python-client. It is type-checked, so every field
used here must be in the description."""

import json
import re
import sys
from typing import TypeVar

from generated import AuthenticatedClient
from generated.api.challenges import create_session, find_metadata, list_sessions_of_type
from generated.api.chat import send_chat
from generated.api.play import act_in_session, join_session, sync_operator
from generated.api.scoring import list_global
from generated.api.users import find_user, list_users
from generated.models import (
    Action,
    ChallengeInfo,
    ChallengePage,
    ChatRequest,
    JoinRequest,
    Joined,
    Status,
    Messages,
    NewChallenge,
    NewChallengeOptions,
    NewSession,
)

T = TypeVar("T")


def told(answer: object, kind: type[T]) -> T:
    """Returns the answer, which must have the expected type."""
    if not isinstance(answer, kind):
        raise SystemExit(f"not {kind.__name__}, but {answer}")
    return answer


def numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d+", text)}


def main() -> None:
    # The routes of play also take a session key, so the generated functions want a token. This server ignores it.
    client = AuthenticatedClient(base_url=sys.argv[1], token="none")
    metadata = told(find_metadata.sync("psi", client=client), ChallengeInfo)
    options = NewChallengeOptions.from_dict({"setSize": 10})
    session = told(create_session.sync("psi", client=client, body=NewChallenge(options=options)), NewSession)
    sets = []
    for seat, invite in enumerate(session.invites):
        joined = told(join_session.sync(client=client, body=JoinRequest(invite=invite, user_id=f"py-{seat}")), Joined)
        size = next(option.default for option in joined.challenge_info.options if option.name == "setSize")
        assert joined.challenge_id == session.id and joined.challenge_info.players == metadata.players and size == 10
    for invite in session.invites:
        heard = told(sync_operator.sync(client=client, channel=str(session.id), from_=invite, index=1), Messages)
        secret = next(m.content for m in heard.messages if m.to == invite and m.content.startswith("Your private set"))
        sets.append(numbers(secret))
    for invite in session.invites:
        send_chat.sync(client=client, body=ChatRequest(channel=str(session.id), content="hello", from_=invite))
    common = ", ".join(str(number) for number in sorted(sets[0] & sets[1]))
    for invite in session.invites:
        act = Action(challenge_id=str(session.id), message_type="guess", content=common, from_=invite)
        act_in_session.sync(client=client, body=act)
    status = Status.ENDED
    page = told(list_sessions_of_type.sync("psi", client=client, status=status, limit=1), ChallengePage)
    state = page.challenges[0].state
    users = told(list_users.sync(client=client), list)
    board = told(list_global.sync(client=client), list)
    print(
        json.dumps(
            {
                "status": str(state.status.value),
                "scores": [score.to_dict() for score in state.scores],
                "identities": list(state.player_identities.additional_properties.values()),
                "users": [user.user_id for user in users],
                "board": [
                    [entry.player_id, entry.games_played, entry.metrics["global-average:utility"]] for entry in board
                ],
            }
        )
    )
    refused = find_user.sync_detailed("nobody", client=client)
    assert refused.status_code == 404 and "USER_NOT_FOUND" in refused.content.decode()


main()
