"""A stream of snapshots of the broker as server-sent events, which all viewers share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final, final

from broker.http.api.endpoint import Call, CallResult
from broker.http.api.json_values import encoded, encoded_in_portions
from broker.http.limits import SNAPSHOT_BYTES_MAX
from broker.http.open_streams import MEDIA_TYPE, NO_END
from broker.http.shared_reading import SharedReading
from broker.management.entity import VIEW
from broker.management.overview import BROKER
from broker.management.request import BAD_REQUEST, Refused, Request
from broker.security.resources import MANAGEMENT, Resource

ID_DIGITS_MAX: Final = 18


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A snapshot of one topic as it is sent. Its `id` is above those of all earlier ones."""

    id: int
    data: bytes


@final
class SnapshotTopic:
    """A subject of snapshots: viewers need the right to view `part` of management."""

    def __init__(self, name: str, part: str, read: Callable[[Call], Awaitable[object]]) -> None:
        self.name: Final = name
        self.right: Final = Resource(MANAGEMENT, part)
        self._read: Final = read
        self._shared: Final = SharedReading[Snapshot](perf_counter)
        self._last_id = 0

    async def snapshot(self, call: Call) -> Snapshot:
        """Return the snapshot that all viewers share for now."""

        async def make() -> Snapshot:
            body = await encoded_in_portions(await self._read(call))
            if len(body) > SNAPSHOT_BYTES_MAX:
                told = f"more than {SNAPSHOT_BYTES_MAX} bytes: read the list, page by page"
                body = encoded({"error": told})
            self._last_id = max(self._last_id + 1, int(call.site.container.clock.wall_ms()))
            head = f"id: {self._last_id}\nevent: {self.name}\ndata: ".encode()
            return Snapshot(id=self._last_id, data=head + body + b"\n\n")

        return await self._shared.get(make)


async def _broker(call: Call) -> object:
    return (await call.ask(Request(operation="READ", type=BROKER))).body


@final
class SnapshotStreams:
    """The topics of one broker, and the streams of their snapshots."""

    def __init__(self, jobs: Callable[[Call], Awaitable[CallResult]]) -> None:
        """`jobs` returns the page of message actions."""

        async def job_page(call: Call) -> object:
            return (await jobs(call)).body

        topics = (
            SnapshotTopic("broker", "metrics", _broker),
            SnapshotTopic("jobs", "messages", job_page),
        )
        self.topics: Final[Mapping[str, SnapshotTopic]] = {each.name: each for each in topics}

    async def open(self, call: Call) -> CallResult:
        """Begin a stream of the topics that a call names, all of them if it names none."""
        chosen = self._chosen(call.arguments.get("topics"))
        for topic in chosen:
            call.demand(VIEW, topic.right)
        streams, viewer = call.site.event_streams, call
        streams.check_room(call.visitor.user)
        seen = dict.fromkeys((topic.name for topic in chosen), _since(call))

        async def new_events() -> Sequence[bytes]:
            found = []
            for topic in chosen:
                snapshot = await topic.snapshot(viewer)
                if snapshot.id > seen[topic.name]:
                    seen[topic.name] = snapshot.id
                    found.append(snapshot.data)
            return found

        def may_go_on() -> bool:
            nonlocal viewer
            current = viewer.now()
            if current is None:
                return False
            viewer = current
            return all(viewer.visitor.may(VIEW, topic.right) for topic in chosen)

        count = call.arguments.get("limit", NO_END)
        assert isinstance(count, int)
        sent = streams.sent(call.visitor.user, new_events, may_go_on, count=count)
        return CallResult(stream=sent, media_type=MEDIA_TYPE)

    def _chosen(self, names: object) -> Sequence[SnapshotTopic]:
        if not isinstance(names, list) or not names:
            return list(self.topics.values())
        for name in names:
            if name not in self.topics:
                known = ", ".join(self.topics)
                raise Refused(BAD_REQUEST, f"no topic {name:.50}; there are {known}")
        return [self.topics[name] for name in dict.fromkeys(names)]


def _since(call: Call) -> int:
    """Return the id of the last snapshot that the client has, 0 if it has none."""
    given = call.arguments.get("since")
    if isinstance(given, int):
        return given
    # a browser that connects again says so
    last = call.headers.get("last-event-id", "")
    is_number = last.isascii() and last.isdigit() and len(last) <= ID_DIGITS_MAX
    return int(last) if is_number else 0
