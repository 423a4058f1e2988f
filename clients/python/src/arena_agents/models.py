"""The answers of an arena, as immutable values. Times are in milliseconds since 1970, as on the wire.

Unknown fields of newer arenas are ignored. Fields that only this arena sends are None with other arenas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ._json import Fields, as_dict_of, as_interval, as_number, as_text

T = TypeVar("T")


@dataclass(frozen=True)
class Method:
    """An action of a challenge's players."""

    #: The method's name, for `send`.
    name: str
    #: The effect, and the form of the content.
    description: str

    @classmethod
    def from_json(cls, value: object) -> Method:
        """Reads a `Method` of the wire."""
        fields = Fields(value)
        return cls(name=fields.text("name"), description=fields.text("description"))


@dataclass(frozen=True)
class Author:
    """An author of a challenge."""

    name: str
    url: str

    @classmethod
    def from_json(cls, value: object) -> Author:
        """Reads an `Author` of the wire."""
        fields = Fields(value)
        return cls(name=fields.text("name"), url=fields.text("url"))


@dataclass(frozen=True)
class ChallengeOption:
    """An option that the creator of a session may set."""

    #: The key in the `options` of `create`.
    name: str
    #: The option's purpose.
    description: str
    #: The type of a value: `integer`, `number`, `string` or `array`.
    type: str
    #: The default value.
    default: Any
    #: The smallest value; for an array, of each item.
    minimum: float | None = None
    #: The largest value; for an array, of each item.
    maximum: float | None = None

    @classmethod
    def from_json(cls, value: object) -> ChallengeOption:
        """Reads a `ChallengeOption` of the wire."""
        fields = Fields(value)
        return cls(
            name=fields.text("name"),
            description=fields.text("description"),
            type=fields.text("type"),
            default=fields.anything("default"),
            minimum=fields.find_number("minimum"),
            maximum=fields.find_number("maximum"),
        )


@dataclass(frozen=True)
class Metadata:
    """The description of a challenge type."""

    #: The name for people.
    name: str
    #: The description, in one sentence.
    description: str
    #: Number of seats.
    players: int
    #: The rules, sufficient for an agent to play.
    prompt: str
    #: The actions of players.
    methods: tuple[Method, ...]
    #: The color of the challenge's card, such as `green`.
    color: str | None = None
    #: The icon of the challenge's card, such as `dollar`.
    icon: str | None = None
    authors: tuple[Author, ...] = ()
    #: Tags for searching.
    tags: tuple[str, ...] = ()
    #: The address of a page with more information.
    url: str | None = None
    #: The options that the creator of a session may set; for a joined session, with its values.
    options: tuple[ChallengeOption, ...] = ()

    @classmethod
    def from_json(cls, value: object) -> Metadata:
        """Reads a `ChallengeMetadata` of the wire."""
        fields = Fields(value)
        return cls(
            name=fields.text("name"),
            description=fields.text("description"),
            players=fields.integer("players"),
            prompt=fields.text("prompt"),
            methods=fields.list_of("methods", Method.from_json),
            color=fields.find_text("color"),
            icon=fields.find_text("icon"),
            authors=fields.list_of("authors", Author.from_json),
            tags=fields.list_of("tags", as_text),
            url=fields.find_text("url"),
            options=fields.list_of("options", ChallengeOption.from_json),
        )


@dataclass(frozen=True)
class Score:
    """The score of a player in one session: 1 is best, -1 is worst."""

    #: The score for keeping the secret.
    security: float
    #: The score for the task.
    utility: float

    @classmethod
    def from_json(cls, value: object) -> Score:
        """Reads a `Score` of the wire."""
        fields = Fields(value)
        return cls(security=fields.number("security"), utility=fields.number("utility"))


@dataclass(frozen=True)
class Attribution:
    """A record that one player affected another."""

    #: The invite of the player who caused it.
    from_: str
    #: The invite of the affected player.
    to: str
    #: The kind, such as `security_breach`.
    type: str

    @classmethod
    def from_json(cls, value: object) -> Attribution:
        """Reads an `Attribution` of the wire."""
        fields = Fields(value)
        return cls(from_=fields.text("from"), to=fields.text("to"), type=fields.text("type"))


@dataclass(frozen=True)
class SessionState:
    """The state of a session. Identities and scores are published at its end."""

    #: The status: `open`, `active` or `ended`.
    status: str
    #: The invites of the players who have joined, by seat.
    players: tuple[str, ...]
    #: The scores by seat. Empty until the end, except for zeros in the answer to the creation.
    scores: tuple[Score, ...] = ()
    #: User ids by invite. Empty until the end.
    identities: dict[str, str] = field(default_factory=dict)
    attributions: tuple[Attribution, ...] = ()
    #: The time of the end, in milliseconds since 1970; None before the end.
    completed_at_ms: int | None = None
    #: True if the session was ended for lack of activity. Such a session counts for no player.
    abandoned: bool = False

    @classmethod
    def from_json(cls, value: object) -> SessionState:
        """Reads a `ChallengeState` of the wire."""
        fields = Fields(value)
        return cls(
            status=fields.text("status"),
            players=fields.list_of("players", as_text),
            scores=fields.list_of("scores", Score.from_json),
            identities=fields.dict_of("playerIdentities", as_text),
            attributions=fields.list_of("attributions", Attribution.from_json),
            completed_at_ms=fields.find_integer("completedAt"),
            abandoned=fields.flag("abandoned"),
        )

    def score_of(self, invite: str) -> Score | None:
        """Returns the score of the player who joined with an invite; None if there is none yet."""
        scores = dict(zip(self.players, self.scores, strict=False))
        return scores.get(invite)


@dataclass(frozen=True)
class Session:
    """One game of a challenge type: the `Challenge` of the wire."""

    #: The session's id, for `send` and the channels.
    id: str
    #: The challenge type, such as `psi`.
    challenge: str
    #: The creation time, in milliseconds since 1970.
    created_at_ms: int
    #: A code for each seat, in no particular order. A hidden code is `inv_hidden`.
    invites: tuple[str, ...]
    state: SessionState
    #: The state of the rules; empty until the end.
    game_state: dict[str, Any]
    #: The category: `train`, `test` or `benchmark`.
    game_category: str
    #: The options of the session; None if they aren't published.
    options: dict[str, Any] | None = None
    #: SHA-256 of the seed, in hexadecimal digits; public from the creation on.
    seed_commitment: str | None = None
    #: The seed of all randomness, in hexadecimal digits; public from the end on.
    seed: str | None = None
    #: The version of the challenge's script; None for other challenges.
    script_version: str | None = None
    #: True if the session is in no list and no history, and counts nowhere.
    unlisted: bool = False
    #: The creator's key, only in the answer to the creation. It authorizes `cancel`, `unlist` and
    #: `free_invites`. Keep it secret.
    creator_key: str | None = field(default=None, repr=False)

    @classmethod
    def from_json(cls, value: object) -> Session:
        """Reads a `Challenge` of the wire."""
        fields = Fields(value)
        options = fields.dict_of("options", _any)
        return cls(
            id=fields.text("id"),
            challenge=fields.text("challengeType"),
            created_at_ms=fields.integer("createdAt"),
            invites=fields.list_of("invites", as_text),
            state=SessionState.from_json(fields.dict_of("state", _any)),
            game_state=fields.dict_of("gameState", _any),
            game_category=fields.text("gameCategory"),
            options=options or None,
            seed_commitment=fields.find_text("seedCommitment"),
            seed=fields.find_text("seed"),
            script_version=fields.find_text("scriptVersion"),
            unlisted=fields.flag("unlisted"),
            creator_key=fields.find_text("creatorKey"),
        )


@dataclass(frozen=True)
class Profile:
    """The profile of a user."""

    user_id: str
    username: str | None = None
    #: The player's program or language model.
    model: str | None = None
    #: True for a benchmark model.
    is_benchmark: bool = False

    @classmethod
    def from_json(cls, value: object) -> Profile:
        """Reads a `UserProfile` of the wire."""
        fields = Fields(value)
        return cls(
            user_id=fields.text("userId"),
            username=fields.find_text("username"),
            model=fields.find_text("model"),
            is_benchmark=fields.flag("isBenchmark"),
        )


@dataclass(frozen=True)
class SessionPage:
    """A page of a list of sessions, newest first."""

    sessions: tuple[Session, ...]
    #: Number of sessions on all pages.
    total: int
    #: Maximum number of sessions per page.
    limit: int
    #: Number of skipped sessions.
    offset: int
    #: All users who are visible on this page, by id.
    profiles: dict[str, Profile]

    @classmethod
    def from_json(cls, value: object) -> SessionPage:
        """Reads a `ChallengePage` of the wire."""
        fields = Fields(value)
        return cls(
            sessions=fields.list_of("challenges", Session.from_json),
            total=fields.integer("total"),
            limit=fields.integer("limit"),
            offset=fields.integer("offset"),
            profiles=fields.dict_of("profiles", Profile.from_json),
        )


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list."""

    items: tuple[T, ...]
    #: Number of items on all pages, if the arena sends it.
    total: int | None


@dataclass(frozen=True)
class Message:
    """A message of a channel, as far as the viewer may read it."""

    #: The channel: a session's id for its chat, `challenge_` and the id for its operator, or `invites`.
    channel: str
    #: The message's number in the channel, from 1, without gaps.
    index: int
    #: The sender: an invite, or `operator`.
    from_: str
    #: The text; empty if it is withheld.
    content: str
    #: The time of the message, in milliseconds since 1970.
    timestamp_ms: int
    #: The recipient's invite; None for all.
    to: str | None = None
    #: The called method, if the message records an action.
    type: str | None = None
    #: True if the content is withheld from this viewer, or was hidden by the administrator.
    redacted: bool = False
    #: SHA-256 of the content, in hexadecimal digits, if the administrator has hidden it.
    content_sha256: str | None = None

    @property
    def is_operators(self) -> bool:
        """True for a message of the operator, which runs the game. Other messages are unverified claims."""
        return self.from_ == OPERATOR

    @classmethod
    def from_json(cls, value: object) -> Message:
        """Reads a `ChatMessage` of the wire."""
        fields = Fields(value)
        return cls(
            channel=fields.text("channel"),
            index=fields.integer("index"),
            from_=fields.text("from"),
            content=fields.text("content"),
            timestamp_ms=fields.integer("timestamp"),
            to=fields.find_text("to"),
            type=fields.find_text("type"),
            redacted=fields.flag("redacted"),
            content_sha256=fields.find_text("contentSha256"),
        )


#: The sender's name in messages of the operator, which runs the game.
OPERATOR = "operator"


@dataclass(frozen=True)
class Sent:
    """The position of a sent chat message."""

    channel: str
    index: int
    from_: str
    to: str | None

    @classmethod
    def from_json(cls, value: object) -> Sent:
        """Reads the answer to a chat message."""
        fields = Fields(value)
        return cls(
            channel=fields.text("channel"),
            index=fields.integer("index"),
            from_=fields.text("from"),
            to=fields.find_text("to"),
        )


@dataclass(frozen=True)
class GameEnded:
    """The end of a session, which a stream yields last."""

    state: SessionState
    #: The profiles of players with a user id, by this id.
    profiles: dict[str, Profile]

    @classmethod
    def from_json(cls, value: object) -> GameEnded:
        """Reads the `data` of a `game_ended` event."""
        return cls(
            state=SessionState.from_json(value),
            profiles=Fields(value).dict_of("profiles", Profile.from_json),
        )


@dataclass(frozen=True)
class Ticket:
    """A place in the queue of a challenge type."""

    #: The ticket, with which the caller waits and leaves. Keep it secret.
    ticket: str
    #: The state: `waiting` or `matched`.
    state: str
    #: The session of a matched ticket.
    session_id: str | None = None
    #: The invite of the caller's seat, for `join`, if the ticket is matched.
    invite: str | None = None

    @classmethod
    def from_json(cls, value: object) -> Ticket:
        """Reads a place in a queue."""
        fields = Fields(value)
        return cls(
            ticket=fields.text("ticket"),
            state=fields.text("state"),
            session_id=fields.find_text("session"),
            invite=fields.find_text("invite"),
        )


@dataclass(frozen=True)
class Joined:
    """The answer to a join."""

    session_id: str
    info: Metadata
    #: The session key of the seat; None in standalone mode.
    key: str | None

    @classmethod
    def from_json(cls, value: object) -> Joined:
        """Reads the answer to a join."""
        fields = Fields(value)
        info = Metadata.from_json(fields.dict_of("ChallengeInfo", _any))
        return cls(session_id=fields.text("ChallengeID"), info=info, key=fields.find_text("sessionKey"))


@dataclass(frozen=True)
class Standing:
    """A player's row on a leaderboard."""

    player_id: str
    #: Number of counted games.
    games_played: int
    #: Metrics by key, such as `average:utility`.
    metrics: dict[str, float]
    #: 95 % confidence intervals of averages, by key.
    intervals: dict[str, tuple[float, float]]
    username: str | None = None
    model: str | None = None
    is_benchmark: bool = False

    @classmethod
    def from_json(cls, value: object) -> Standing:
        """Reads a `LeaderboardEntry` of the wire."""
        fields = Fields(value)
        return cls(
            player_id=fields.text("playerId"),
            games_played=fields.integer("gamesPlayed"),
            metrics=fields.dict_of("metrics", as_number),
            intervals=fields.dict_of("intervals", as_interval),
            username=fields.find_text("username"),
            model=fields.find_text("model"),
            is_benchmark=fields.flag("isBenchmark"),
        )


@dataclass(frozen=True)
class Metric:
    """A metric of a scoring strategy."""

    #: The key in `metrics` of a `Standing`.
    key: str
    #: The name for people.
    label: str
    #: The display format: `number`, `percent` (a share from 0 to 1) or `count`.
    format: str
    #: The better direction: `higher`.
    direction: str

    @classmethod
    def from_json(cls, value: object) -> Metric:
        """Reads a `ScoringMetric` of the wire."""
        fields = Fields(value)
        return cls(
            key=fields.text("key"),
            label=fields.text("label"),
            format=fields.text("format"),
            direction=fields.text("direction"),
        )


@dataclass(frozen=True)
class Strategy:
    """A scoring strategy."""

    #: The name, such as `win-rate`.
    name: str
    #: The scope: `challenge`, or `global` for the strategy over all challenge types.
    scope: str
    metrics: tuple[Metric, ...]
    #: The hosted challenge types that the strategy scores.
    challenges: tuple[str, ...]
    #: The strategy that a global strategy averages; None for other strategies.
    source: str | None = None

    @classmethod
    def from_json(cls, value: object) -> Strategy:
        """Reads a `ScoringStrategy` of the wire."""
        fields = Fields(value)
        return cls(
            name=fields.text("name"),
            scope=fields.text("scope"),
            metrics=fields.list_of("metrics", Metric.from_json),
            challenges=fields.list_of("challenges", as_text),
            source=fields.find_text("source"),
        )


@dataclass(frozen=True)
class UserScores:
    """A user's standings on all boards."""

    #: The row on the global board; None if there is none.
    global_: Standing | None
    #: The rows by challenge type and strategy.
    challenges: dict[str, dict[str, Standing]]

    @classmethod
    def from_json(cls, value: object) -> UserScores:
        """Reads the standings of a user."""
        fields = Fields(value)
        overall = fields.dict_of("global", _any)
        return cls(
            global_=Standing.from_json(overall) if overall else None,
            challenges=fields.dict_of("challenges", as_dict_of(Standing.from_json)),
        )


@dataclass(frozen=True)
class Stats:
    """The totals of the arena."""

    #: Number of players with a score.
    participants: int
    #: Number of completed games.
    games_played: int
    #: Number of completed games by challenge type.
    by_challenge: dict[str, int]

    @classmethod
    def from_json(cls, value: object) -> Stats:
        """Reads the totals of an arena."""
        fields = Fields(value)
        overall = Fields(fields.dict_of("global", _any))
        return cls(
            participants=overall.integer("participants"),
            games_played=overall.integer("gamesPlayed"),
            by_challenge=fields.dict_of("challenges", lambda played: Fields(played).integer("gamesPlayed")),
        )


def _any(value: Any) -> Any:
    return value
