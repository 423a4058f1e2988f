"""What an arena tells, as immutable values. Times are in milliseconds since 1970, as on the wire.

Fields that a newer arena adds are ignored, and those that only this arena has are None where another leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ._json import Fields, as_dict_of, as_interval, as_number, as_text

T = TypeVar("T")


@dataclass(frozen=True)
class Method:
    """An action that players of a challenge have."""

    #: What `send` is given.
    name: str
    #: What it does, and what its content looks like.
    description: str

    @classmethod
    def from_json(cls, value: object) -> Method:
        """Reads a `Method` of the wire."""
        fields = Fields(value)
        return cls(name=fields.text("name"), description=fields.text("description"))


@dataclass(frozen=True)
class Author:
    """Somebody to be credited with a challenge."""

    name: str
    url: str

    @classmethod
    def from_json(cls, value: object) -> Author:
        """Reads an `Author` of the wire."""
        fields = Fields(value)
        return cls(name=fields.text("name"), url=fields.text("url"))


@dataclass(frozen=True)
class ChallengeOption:
    """An option that whoever creates a session may choose."""

    #: A key of the `options` of `create`.
    name: str
    #: What it is for.
    description: str
    #: What a value has to be: `integer`, `number`, `string` or `array`.
    type: str
    #: What it is unless somebody chooses.
    default: Any
    #: The least value; of an array, each item's.
    minimum: float | None = None
    #: The greatest value; of an array, each item's.
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
    """What is told of a challenge type: a kind of game."""

    #: For people to read.
    name: str
    #: One sentence.
    description: str
    #: Number of seats.
    players: int
    #: All that an agent needs to know to play.
    prompt: str
    #: What players can do.
    methods: tuple[Method, ...]
    #: Of its card on a page.
    color: str | None = None
    icon: str | None = None
    authors: tuple[Author, ...] = ()
    #: Words to find it by.
    tags: tuple[str, ...] = ()
    #: Where more is to be read.
    url: str | None = None
    #: The options that the creator of a session may choose; of a session that was joined, with its own values.
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
    """How a player did in one session: 1 is best, -1 is worst."""

    #: Whether it kept its secret.
    security: float
    #: Whether it did its task.
    utility: float

    @classmethod
    def from_json(cls, value: object) -> Score:
        """Reads a `Score` of the wire."""
        fields = Fields(value)
        return cls(security=fields.number("security"), utility=fields.number("utility"))


@dataclass(frozen=True)
class Attribution:
    """A record that one player did something to another."""

    #: The invite of whoever did it.
    from_: str
    #: The invite of whom it befell.
    to: str
    #: What it was, such as `security_breach`.
    type: str

    @classmethod
    def from_json(cls, value: object) -> Attribution:
        """Reads an `Attribution` of the wire."""
        fields = Fields(value)
        return cls(from_=fields.text("from"), to=fields.text("to"), type=fields.text("type"))


@dataclass(frozen=True)
class Usage:
    """What one step has cost a player, such as a request to a language model."""

    #: Tokens of the question, those from a cache included.
    input_tokens: int
    #: Tokens of the answer.
    output_tokens: int
    #: Tokens of the question that came from a cache.
    cached_tokens: int = 0
    #: US dollars.
    cost_usd: float | None = None
    #: How long it took, in milliseconds.
    ms: int | None = None
    #: The model's name.
    model: str | None = None
    #: Whether the tokens are an estimate.
    estimated: bool = False


@dataclass(frozen=True)
class UsageTotal:
    """What a player says that its play has cost. Nobody verifies it."""

    #: How many reports there are.
    reports: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    #: US dollars, of the reports that name them.
    cost_usd: float | None = None
    #: Milliseconds, of the reports that name them.
    ms: int | None = None
    #: Whether some of the tokens are estimates.
    estimated: bool = False
    #: The models' names, in the order in which they came.
    models: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: object) -> UsageTotal:
        """Reads a `UsageTotal` of the wire."""
        fields = Fields(value)
        return cls(
            reports=fields.integer("reports"),
            input_tokens=fields.integer("inputTokens"),
            output_tokens=fields.integer("outputTokens"),
            cached_tokens=fields.integer("cachedTokens"),
            cost_usd=fields.find_number("costUsd"),
            ms=fields.find_integer("ms"),
            estimated=fields.flag("estimated"),
            models=fields.list_of("models", as_text),
        )


@dataclass(frozen=True)
class SessionState:
    """How a session stands. Who the players were and how they did is told when it has ended."""

    #: `open`, `active` or `ended`.
    status: str
    #: The invites of those who have joined, by seat.
    players: tuple[str, ...]
    #: By seat. Empty until the end, but zeros in the answer to whoever created the session.
    scores: tuple[Score, ...] = ()
    #: User ids by invite. Empty until the end.
    identities: dict[str, str] = field(default_factory=dict)
    attributions: tuple[Attribution, ...] = ()
    #: What players say that their play has cost, by seat. Empty until the end, and where nobody has said so.
    reported_usage: tuple[UsageTotal, ...] = ()
    #: Milliseconds since 1970; None until the end.
    completed_at_ms: int | None = None
    #: Whether it was broken off since nobody did anything any more. It counts for nobody then.
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
            reported_usage=fields.list_of("reportedUsage", UsageTotal.from_json),
            completed_at_ms=fields.find_integer("completedAt"),
            abandoned=fields.flag("abandoned"),
        )

    def score_of(self, invite: str) -> Score | None:
        """The score of the player who joined with an invite; None if there is none, or not yet."""
        scores = dict(zip(self.players, self.scores, strict=False))
        return scores.get(invite)


@dataclass(frozen=True)
class Session:
    """One game of a challenge type: the `Challenge` of the wire."""

    #: What `send` and the channels go by.
    id: str
    #: The challenge type, such as `psi`.
    challenge: str
    #: Milliseconds since 1970.
    created_at_ms: int
    #: A code for each seat, in no order. One that isn't to be seen is `inv_hidden`.
    invites: tuple[str, ...]
    state: SessionState
    #: What the rules remember; empty until the end.
    game_state: dict[str, Any]
    #: `train`, `test` or `benchmark`.
    game_category: str
    #: The options that it is played with, or None where they aren't told.
    options: dict[str, Any] | None = None
    #: SHA-256 of the seed, in hexadecimal digits; told from the beginning.
    seed_commitment: str | None = None
    #: What everything was dealt from, in hexadecimal digits; told from the end on.
    seed: str | None = None
    #: Which version of the challenge's script it is played by, or None where it is no script.
    script_version: str | None = None

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
        )


@dataclass(frozen=True)
class Profile:
    """What is known of a user."""

    user_id: str
    username: str | None = None
    #: What plays, such as the name of a language model.
    model: str | None = None
    #: Whether it is one of those that others are measured against.
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
    #: Sessions on all pages.
    total: int
    #: Most sessions on a page.
    limit: int
    #: Sessions passed over.
    offset: int
    #: Of all users who are visible on this page, by their ids.
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
    #: Items on all pages, where the arena tells.
    total: int | None


@dataclass(frozen=True)
class Message:
    """A message of a channel, as far as the viewer may read it."""

    #: A session's id is its chat, `challenge_` and the id its operator's channel; or `invites`.
    channel: str
    #: Its place in the channel, from 1, without gaps.
    index: int
    #: An invite, or `operator`.
    from_: str
    #: Empty if it is withheld.
    content: str
    #: Milliseconds since 1970.
    timestamp_ms: int
    #: An invite; None if it is for everybody.
    to: str | None = None
    #: The method that it called, if it records an action.
    type: str | None = None
    #: Whether its content is withheld from this viewer, or was hidden by the administrator.
    redacted: bool = False
    #: SHA-256 of the content, in hexadecimal digits, where the administrator has hidden it.
    content_sha256: str | None = None

    @property
    def is_operators(self) -> bool:
        """Whether the operator says it, who runs the game. What others write proves nothing."""
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


#: Who runs every game.
OPERATOR = "operator"


@dataclass(frozen=True)
class Sent:
    """Where a chat message has its place."""

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
    """A session has ended: the last that a stream yields."""

    state: SessionState
    #: Of the players who said who they are, by their user ids.
    profiles: dict[str, Profile]

    @classmethod
    def from_json(cls, value: object) -> GameEnded:
        """Reads the `data` of a `game_ended` event."""
        return cls(
            state=SessionState.from_json(value),
            profiles=Fields(value).dict_of("profiles", Profile.from_json),
        )


@dataclass(frozen=True)
class Joined:
    """The answer to a join."""

    session_id: str
    info: Metadata
    #: The key to the seat; None in standalone mode.
    key: str | None

    @classmethod
    def from_json(cls, value: object) -> Joined:
        """Reads the answer to a join."""
        fields = Fields(value)
        info = Metadata.from_json(fields.dict_of("ChallengeInfo", _any))
        return cls(session_id=fields.text("ChallengeID"), info=info, key=fields.find_text("sessionKey"))


@dataclass(frozen=True)
class Standing:
    """How a player stands on a leaderboard."""

    player_id: str
    #: Games counted.
    games_played: int
    #: By key, such as `average:utility`.
    metrics: dict[str, float]
    #: By the key of an average: where the true average lies, with 95 % confidence.
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

    #: Its key in `metrics` of a `Standing`.
    key: str
    #: Its name for people.
    label: str
    #: How it is shown: `number`, `percent` (a share from 0 to 1) or `count`.
    format: str
    #: Which values are better: `higher`.
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
    """A strategy of scoring."""

    #: Its name, such as `win-rate`.
    name: str
    #: `challenge`, or `global` for the one over all challenge types.
    scope: str
    metrics: tuple[Metric, ...]
    #: The hosted challenge types whose games it counts.
    challenges: tuple[str, ...]
    #: Of the global strategy: the strategy whose metrics it averages.
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
    """How a user stands on every board."""

    #: On the global board; None if the user isn't on it.
    global_: Standing | None
    #: By challenge type, and by strategy.
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
    """How much has been played."""

    #: Players who have a score.
    participants: int
    #: Games that came to their end.
    games_played: int
    #: The same, by challenge type.
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
