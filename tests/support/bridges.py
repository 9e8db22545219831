"""Two embedded brokers and a bridge between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from broker.amqp.sections import split
from broker.app import App
from broker.embedding import Broker
from broker.links.bridge_status import BridgeStatus
from broker.message import Message, read_message
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer
from broker.setting_types import MEMORY, SQLITE

BRIDGE = "to-b"


class MessageBrowser(Consumer):
    """A browser that records the messages themselves in `seen`."""

    def __init__(self) -> None:
        self.seen: list[Message] = []

    def has_room(self) -> bool:
        return True

    def has_credit(self) -> bool:
        return True

    def deliver(self, entry: QueueEntry) -> None:  # noqa: ARG002 - required of consumers
        raise AssertionError("a browser acquires nothing")

    def browsed(self, entry: QueueEntry) -> None:
        self.seen.append(entry.message)

    def nothing_waits(self) -> None:
        pass

    def node_deleted(self) -> None:
        pass


def store_in(folder: Path, kind: str, name: str) -> str:
    """Return the URL of a store of that kind, memory or sqlite."""
    return MEMORY if kind == MEMORY else f"{SQLITE}{folder / name}.db"


def bridge_to(target: Broker | str, **changes: object) -> dict[str, object]:
    """Return the settings of a bridge from `q` to `there` of the broker `target`, or of a URL."""
    url = target if isinstance(target, str) else target.url
    return {"name": BRIDGE, "from": "q", "to": "there", "url": url, **changes}


@asynccontextmanager
async def two_brokers(
    folder: Path,
    kind: str = MEMORY,
    *,
    here: Mapping[str, object] | None = None,
    there: Mapping[str, object] | None = None,
    bridge: Mapping[str, object] | None = None,
) -> AsyncIterator[tuple[Broker, Broker]]:
    """Run a broker with a bridge, and the broker that it leads to; yield both.

    `here` and `there` are further settings of each, `bridge` those of the bridge.
    """
    target = Broker(store=store_in(folder, kind, "b"), **(there or {}))  # type: ignore[arg-type]
    async with target:
        source = Broker(
            store=store_in(folder, kind, "a"),
            bridge=[bridge_to(target, **(bridge or {}))],
            **(here or {}),  # type: ignore[arg-type]
        )
        async with source:
            yield source, target


def status_of(broker: Broker, name: str = BRIDGE) -> BridgeStatus:
    """Return the state of a bridge."""
    return broker._call(lambda app: app.container.bridges[name])


def put_encoded(broker: Broker, address: str, *messages: bytes, kind: str = "queue") -> None:
    """Put encoded messages into a node."""

    def publish(app: App) -> None:
        container = app.container
        batch = container.journal.batch
        for data in messages:
            sections = split(data, 0, len(data))
            node = container.router.resolve(container.router.parse(address, kind), batch)
            node.put(read_message(sections, data, container.clock), batch)
        container.run_round()

    broker._call(publish)


def stored_messages(broker: Broker, address: str) -> list[Message]:
    """Return the ready messages of a queue as the broker has them."""
    browser = MessageBrowser()

    def look(app: App) -> None:
        queue = app.container.router.queues[address]
        queue.attach_browser(browser)
        queue.consumer_ready(browser, drain=False)
        app.container.run_round()
        queue.detach_consumer(browser, queue, app.container.journal.batch)

    broker._call(look)
    return browser.seen


@contextmanager
def of_another_kind(broker: Broker) -> Iterator[None]:
    """Let `broker` say that it is another product."""
    product = broker._call(lambda app: app.container.product)
    before = dict(product)
    product["product"] = "another broker"
    yield
    product.update(before)
