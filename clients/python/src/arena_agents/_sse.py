"""Server-Sent Events: from bytes to events, and from events to the messages of a channel. Does no I/O.

Source: the HTML standard, section 9.2.6, "Interpreting an event stream".
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from ._json import Fields
from .errors import UnexpectedAnswerError
from .models import GameEnded, Message


@dataclass(frozen=True)
class Event:
    """An event of a stream."""

    #: The content of the `data:` lines.
    data: str
    #: The latest `id:` of the stream; None if there was none yet.
    id: str | None


class EventDecoder:
    """Assembles events from the bytes of one connection, cut at any position."""

    def __init__(self) -> None:
        """Starts a stream."""
        self._rest = bytearray()
        # Offset at which the search for the next line end continues.
        self._searched = 0
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """Returns the events that these bytes complete. An incomplete event at the end of the connection is dropped."""
        self._rest += chunk
        events: list[Event] = []
        start = 0
        while (end := self._rest.find(b"\n", max(start, self._searched))) >= 0:
            # The arena ends lines with LF; a proxy might change that to CR LF.
            line = bytes(self._rest[start:end]).removesuffix(b"\r").decode("utf-8", "replace")
            start = end + 1
            event = self._take(line)
            if event is not None:
                events.append(event)
        del self._rest[:start]
        self._searched = len(self._rest)
        return events

    def _take(self, line: str) -> Event | None:
        if not line:
            data, self._data = self._data, []
            return Event("\n".join(data), self._id) if data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        return None


class ChannelReader:
    """The messages of a channel, once each and in order, over several connections if necessary."""

    def __init__(self, after: int = 0) -> None:
        """Starts after the message with index `after`."""
        self._index = after
        self._id = str(after) if after > 0 else None
        self._decoder = EventDecoder()

    def connect(self) -> dict[str, str]:
        """Starts a connection. Returns the headers with which it continues after the last received message."""
        self._decoder = EventDecoder()
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._id is not None:
            headers["Last-Event-ID"] = self._id
        return headers

    def feed(self, chunk: bytes) -> list[Message | GameEnded]:
        """Returns the messages in these bytes.

        Raises:
            UnexpectedAnswerError: If an event doesn't follow the protocol.
        """
        return [item for event in self._decoder.feed(chunk) for item in self._read(event)]

    def _read(self, event: Event) -> list[Message | GameEnded]:
        try:
            fields = Fields(json.loads(event.data))
        except ValueError as error:
            raise UnexpectedAnswerError(f"an event of the stream isn't JSON: {event.data[:60]!r}") from error
        kind = fields.find_text("type")
        messages: tuple[Message, ...] = ()
        ended: list[Message | GameEnded] = []
        if kind == "initial":
            messages = fields.list_of("messages", Message.from_json)
        elif kind == "new_message":
            messages = (Message.from_json(fields.dict_of("message", lambda value: value)),)
        elif kind == "game_ended":
            ended = [GameEnded.from_json(fields.dict_of("data", lambda value: value))]
        if event.id is not None:
            self._id = event.id
        # An arena without support for Last-Event-ID starts from the beginning again.
        fresh = [message for message in messages if message.index > self._index]
        if fresh:
            self._index = fresh[-1].index
        return [*fresh, *ended]
