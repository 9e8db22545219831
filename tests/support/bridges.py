"""Two embedded brokers and a bridge between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from broker.amqp.sections import split
from broker.app import App
from broker.embedding import Broker
from broker.embedding.look import browsed
from broker.links.bridge_status import BridgeStatus
from broker.message import Message, read_message
from broker.setting_types import MEMORY, SQLITE

BRIDGE = "to-b"


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

    def look(app: App) -> list[Message]:
        queue = app.container.router.queues[address]
        return [message for message, _ in browsed(queue, app.container)]

    return broker._call(look)


@contextmanager
def of_another_kind(broker: Broker) -> Iterator[None]:
    """Let `broker` say that it is another product."""
    product = broker._call(lambda app: app.container.product)
    before = dict(product)
    product["product"] = "another broker"
    yield
    product.update(before)
