"""The page `/metrics/detailed`: metrics of single queues, and of subscriptions by their names.

Subscriptions of several clients that have the same topic and name are one sample: a client id is
never a label. Temporary nodes are left out.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Final

from broker.http.metric_table import DETAILED, TRUNCATED, Metric
from broker.http.metric_text import escaped, head, sample
from broker.http.stretches import Stretches
from broker.links.container import Container
from broker.management.nodes import oldest_ms_of
from broker.routing.addresses import pattern
from broker.routing.queues.queue import Queue
from broker.routing.topics.subscription import Subscription

FAMILIES: Final = {metric.name: metric for metric in DETAILED}
OF_SUBSCRIPTIONS: Final = "subscription_"

LIMIT: Final = 1000
LIMIT_MAX: Final = 100_000
"""Queues, and names of subscriptions, of one response: without an argument, and at most."""


class NodeSelection:
    """The metrics and nodes of a request.

    `families` are names, empty for all; `match` is a pattern of words.

    Raise InvalidAddress if `match` can be no pattern.
    """

    def __init__(self, families: Sequence[str] = (), match: str = "", limit: int = LIMIT) -> None:
        self.families: Final = [
            metric for metric in DETAILED if not families or metric.name in families
        ]
        self.limit: Final = limit
        self._pattern: Final = pattern.normal(pattern.check(match)) if match else None

    def has(self, kind: str) -> bool:
        """Return whether a family of that kind, `queue` or `subscription`, is wanted."""
        return any(metric.name.startswith(kind) for metric in self.families)

    def matches(self, name: str) -> bool:
        """Return whether the request asks for the node of that name."""
        return self._pattern is None or pattern.matches(self._pattern, pattern.words_of(name))


class NamedSubscriptions:
    """The subscriptions of one topic and name, as they were when they were counted."""

    def __init__(self, topic: str, name: str) -> None:
        self.labels: Final = f'{{topic="{escaped(topic)}",subscription="{escaped(name)}"'
        self.ready = 0
        self.unsettled = 0
        self.held = 0
        self.consumers = 0

    def add(self, queue: Queue) -> None:
        """Count the queue of one of these subscriptions."""
        state = queue.state
        self.ready += int(state.backlogs.waiting)
        self.unsettled += int(state.acquired)
        self.held += int(state.held())
        self.consumers += len(queue.consumers.attached)


class NodeMetrics:
    """Writes the page in pieces of a stretch of nodes each."""

    def __init__(self, container: Container, stretches: Stretches) -> None:
        self._container: Final = container
        self._stretches: Final = stretches

    async def pieces(self, wanted: NodeSelection) -> AsyncGenerator[bytes, None]:
        """Yield the page. All families are of the same queues, not of the same moment."""
        left_out = {"queue": 0, "subscription": 0}
        queues: list[Queue] = []
        named: list[NamedSubscriptions] = []
        if wanted.has("queue"):
            queues, left_out["queue"] = await self._queues(wanted)
        if wanted.has("subscription"):
            named, left_out["subscription"] = await self._subscriptions(wanted)
        for metric in wanted.families:
            yield head(metric).encode()
            if metric.name.startswith(OF_SUBSCRIPTIONS):
                async for some in self._stretches.of(named):
                    yield "".join(_subscription_lines(metric, some)).encode()
            else:
                write = self._writers()[metric.name]
                async for part in self._stretches.of(queues):
                    yield "".join(write(metric.full_name(), part)).encode()
        lines = [sample(TRUNCATED, (kind,), count) for kind, count in left_out.items()]
        yield (head(TRUNCATED) + "".join(lines)).encode()

    async def _queues(self, wanted: NodeSelection) -> tuple[list[Queue], int]:
        """Return the queues that a request asks for, and how many more there are."""
        found: list[Queue] = []
        left_out = 0
        async for part in self._stretches.of(list(self._container.router.queues.values())):
            for queue in part:
                if queue.is_temporary or not wanted.matches(queue.address):
                    continue
                if len(found) < wanted.limit:
                    found.append(queue)
                else:
                    left_out += 1
        return found, left_out

    async def _subscriptions(self, wanted: NodeSelection) -> tuple[list[NamedSubscriptions], int]:
        """Return the subscriptions by topic and name, and how many more names there are."""
        found: dict[tuple[str, str], NamedSubscriptions] = {}
        left_out: set[tuple[str, str]] = set()
        async for part in self._stretches.of(
            list(self._container.router.subscriptions.of.values())
        ):
            for subscription in part:
                self._count(subscription, wanted, found, left_out=left_out)
        return list(found.values()), len(left_out)

    def _count(
        self,
        subscription: Subscription,
        wanted: NodeSelection,
        found: dict[tuple[str, str], NamedSubscriptions],
        *,
        left_out: set[tuple[str, str]],
    ) -> None:
        topic, name = subscription.spec.address.text, subscription.name()
        if not wanted.matches(topic):
            return
        key = (topic, name)
        named = found.get(key)
        if named is None:
            if len(found) >= wanted.limit:
                left_out.add(key)
                return
            named = found[key] = NamedSubscriptions(topic, name)
        named.add(subscription.queue)

    def _writers(self) -> dict[str, Callable[[str, Sequence[Queue]], Iterator[str]]]:
        return {
            "queue_messages": _messages,
            "queue_oldest_seconds": self._oldest,
            "queue_consumers": _consumers,
            "queue_received_total": _received,
        }

    def _oldest(self, name: str, queues: Sequence[Queue]) -> Iterator[str]:
        for queue in queues:
            yield f'{name}{{queue="{escaped(queue.address)}"}} {oldest_ms_of(queue) / 1000}\n'


def _messages(name: str, queues: Sequence[Queue]) -> Iterator[str]:
    for queue in queues:
        state = queue.state
        begin = f'{name}{{queue="{escaped(queue.address)}",state='
        yield (
            f'{begin}"ready"}} {state.backlogs.waiting}\n'
            f'{begin}"unsettled"}} {state.acquired}\n'
            f'{begin}"scheduled"}} {state.held()}\n'
            f'{begin}"staged"}} {queue.staged}\n'
        )


def _consumers(name: str, queues: Sequence[Queue]) -> Iterator[str]:
    for queue in queues:
        yield f'{name}{{queue="{escaped(queue.address)}"}} {len(queue.consumers.attached)}\n'


def _received(name: str, queues: Sequence[Queue]) -> Iterator[str]:
    for queue in queues:
        yield f'{name}{{queue="{escaped(queue.address)}"}} {queue.published}\n'


def _subscription_lines(metric: Metric, named: Sequence[NamedSubscriptions]) -> Iterator[str]:
    name = metric.full_name()
    for each in named:
        begin = name + each.labels
        if metric.name == "subscription_consumers":
            yield f"{begin}}} {each.consumers}\n"
            continue
        yield (
            f'{begin},state="ready"}} {each.ready}\n'
            f'{begin},state="unsettled"}} {each.unsettled}\n'
            f'{begin},state="scheduled"}} {each.held}\n'
        )
