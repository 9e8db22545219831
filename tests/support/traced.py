"""Count the calls and the files of seven operations of the broker, without sockets.

    python -m tests.support.traced [--calls OPERATION | --write]

A newcomer who follows an operation through the code opens these files and reads these functions.
Functions of the codec are left out, and so are those of the tests. Runs interpreted code only.
`--write` writes the numbers into the tables of `docs/design/operations.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

from broker.amqp.outcomes import Accepted
from broker.amqp.performatives import RECEIVER, Attach, Detach
from broker.compiled import is_compiled
from broker.links.recovery import Recovery
from storage.api import StoreError
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, message
from tests.support.stores import GatedStore
from tests.support.subscriptions import leave, looking_up, subscribe, subscribing

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "design" / "operations.md"
PRODUCT: Final = tuple(str(ROOT / name) for name in ("broker", "storage"))
CODEC: Final = frozenset(
    str(ROOT / "broker" / "amqp" / f"{name}.py")
    for name in (
        *("accepted", "body", "composite", "constructors", "decode", "descriptors", "encode"),
        *("frames", "outcomes", "performatives", "sasl_frames", "sections", "terminus"),
        *("transactions", "transfer", "types"),
    )
)


@dataclass
class Trace:
    """The functions of the product that were called, in order, and their files."""

    calls: list[tuple[str, str]] = field(default_factory=list)

    def files(self) -> set[str]:
        """Return the files of the calls."""
        return {file for file, _ in self.calls}

    @contextmanager
    def on(self) -> Iterator[None]:
        """Count the calls in the block."""

        def called(frame: FrameType, event: str, _: object) -> None:
            code = frame.f_code
            if (
                event == "call"
                and code.co_filename.startswith(PRODUCT)
                and code.co_filename not in CODEC
                and not code.co_name.startswith("<")
            ):
                file = str(Path(code.co_filename).relative_to(ROOT))
                self.calls.append((file, code.co_qualname))

        sys.setprofile(called)
        try:
            yield
        finally:
            sys.setprofile(None)


def transfer(trace: Trace) -> None:
    """Send a message to a queue whose consumer has credit."""
    broker = Broker()
    receiver, sender = broker.session("receiver"), broker.session("sender")
    receiver.attach_receiver(credit=10)
    sender.attach_sender()
    sender.transfer(0)
    with trace.on():
        sender.transfer(1)
    assert len(receiver.frames()) == 2


def disposition(trace: Trace) -> None:
    """Accept a delivery."""
    broker = Broker()
    broker.fill("q", 2)
    client = broker.session()
    client.attach_receiver(credit=10)
    client.frames()
    _accept(client, 0)
    with trace.on():
        _accept(client, 1)
    assert broker.queue().state.acquired == 0


def _accept(client: Client, number: int) -> None:
    client.send(
        Disposition(role=RECEIVER, first=number, last=number, settled=True, state=Accepted())
    )


def lookup(trace: Trace) -> None:
    """Look up a durable subscription with a null source, as JMS' unsubscribe begins."""
    broker, client = _subscribed()
    with trace.on():
        client.send(looking_up(handle=1))
    assert client.expect(Attach).source is not None
    assert len(broker.router.subscriptions.named) == 1


def unsubscribe(trace: Trace) -> None:
    """End a durable subscription by closing its link."""
    broker, client = _subscribed()
    client.send(looking_up(handle=1))
    client.expect(Attach)
    with trace.on():
        client.send(Detach(handle=1, closed=True))
    assert len(broker.router.subscriptions.named) == 0


def _subscribed() -> tuple[Broker, Client]:
    """Return a broker with a durable subscription that no link holds, and its client."""
    broker = Broker()
    client = broker.session()
    subscribe(client, "durable")
    leave(client)
    return broker, client


def attach(trace: Trace) -> None:
    """Attach a new durable subscription."""
    broker = Broker()
    subscribe(broker.session("other"), "durable")
    client = broker.session()
    with trace.on():
        client.send(subscribing("durable"))
    client.expect(Attach)
    assert len(broker.router.subscriptions.named) == 2


def commit(trace: Trace) -> None:
    """Send a durable message, commit it, and answer its sender."""
    asyncio.run(_commit(trace))


async def _commit(trace: Trace) -> None:
    store = GatedStore()
    broker = Broker(store=store)
    client = broker.session()
    client.attach_sender()
    committing = asyncio.ensure_future(broker.journal.run(broker.container.run_round))
    with trace.on():
        client.transfer(0, payload=message(durable=True))
        await _settle()
        store.let_through()
        await _settle()
    assert isinstance(client.expect(Disposition).state, Accepted)
    committing.cancel()
    with suppress(asyncio.CancelledError, StoreError):
        await committing


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def restart(trace: Trace) -> None:
    """Restore a queue and a durable subscription from the store."""
    asyncio.run(_restart(trace))


async def _restart(trace: Trace) -> None:
    broker, _ = _subscribed()
    broker.fill("q", 1)
    broker.container.run_round()
    again = Broker(store=broker.store)
    nodes, subscriptions = await broker.store.nodes(), await broker.store.subscriptions()
    leases = await broker.store.leases()
    with trace.on():
        recovery = Recovery(again.router, again.journal.batch)
        recovery.nodes(nodes, leases)
        for subscription in subscriptions:
            recovery.subscription(subscription)
        recovery.finish()
    assert len(again.router.subscriptions.named) == 1


OPERATIONS: Final[dict[str, Callable[[Trace], None]]] = {
    "transfer": transfer,
    "disposition": disposition,
    "lookup": lookup,
    "unsubscribe": unsubscribe,
    "commit": commit,
    "attach": attach,
    "restart": restart,
}


def traced(operation: str) -> Trace:
    """Return the calls of an operation."""
    trace = Trace()
    OPERATIONS[operation](trace)
    return trace


def title_of(operation: str) -> str:
    """Return what the page calls an operation."""
    return (OPERATIONS[operation].__doc__ or "").strip().rstrip(".")


def parts_of(calls: list[str], firsts: list[str]) -> list[int]:
    """Return the number of calls from each of `firsts` up to the next; ValueError if one lacks."""
    starts = [calls.index(first) for first in firsts]
    if starts != sorted(starts) or starts[:1] != [0]:
        raise ValueError(f"calls in another order: {firsts}")
    ends = [*starts[1:], len(calls)]
    return [end - start for start, end in zip(starts, ends, strict=True)]


def page(text: str) -> str:
    """Return the page with today's numbers: calls and files of each operation, parts of an attach.

    Rows are found by the title of an operation, and by the function with which a part begins.
    """
    for name in OPERATIONS:
        trace = traced(name)
        today = f"| {title_of(name)} | {len(trace.calls)} | {len(trace.files())} |"
        row = rf"^\| {re.escape(title_of(name))} \| \d+ \| \d+ \|"
        text, found = re.subn(row, today, text, flags=re.MULTILINE)
        if found != 1:
            raise ValueError(f"{found} rows of {title_of(name)!r}")
    part = re.compile(r"^(\| [^|]+ \| `([\w.]+)` \| )\d+ \|$", re.MULTILINE)
    firsts = [match[2] for match in part.finditer(text)]
    counts = iter(parts_of([name for _, name in traced("attach").calls], firsts))
    return part.sub(lambda match: f"{match[1]}{next(counts)} |", text)


def main() -> int:
    """Print a table of all operations, or the calls of one; or write the numbers of the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.traced", description=__doc__)
    parser.add_argument("--calls", choices=OPERATIONS, help="print the calls of one operation")
    parser.add_argument("--write", action="store_true", help=f"write the numbers of {PAGE.name}")
    options = parser.parse_args()
    if is_compiled():
        print("compiled code has no calls to count: run this in an interpreted checkout")
        return 1
    if options.write:
        PAGE.write_text(page(PAGE.read_text()))
        return 0
    if options.calls is not None:
        for file, name in traced(options.calls).calls:
            print(f"{file}: {name}")
        return 0
    print("| operation | calls | files |\n|---|---|---|")
    for name in OPERATIONS:
        trace = traced(name)
        print(f"| {title_of(name)} | {len(trace.calls)} | {len(trace.files())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
