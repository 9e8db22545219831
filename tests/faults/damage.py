"""Damaged files: bits flipped, files cut short, pages zeroed, files of another time or database.

    python -m tests.faults.damage --count 200 --seed 1

Each damage is done to a copy of a store whose messages are known, and the real store opens the
result. It must never return bytes that were not stored (P10). A line is printed for each kind; the
exit status is 1 if that promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from storage.api import StoreError
from storage.batch import Batch
from storage.records import StoredMessage, StoredNode, StoredSubscription
from storage.sql.sqlite.store import SqliteStore
from tests.faults.power_cut import scratch, write_image

DATABASE: Final = "store.db"
LOG: Final = "store.db-wal"
QUEUES: Final = ("a", "b", "$subscription/1", "$subscription/2")
PAGE: Final = 4096

Files = dict[str, bytes]
Told = dict[int, StoredMessage]


@dataclass(frozen=True)
class Sample:
    """A store's files at one time, the messages that it held then, and those that it ever held."""

    files: Files
    messages: Told
    ever: Told


async def samples_of(folder: Path, seed: int) -> tuple[Sample, Sample, Sample]:
    """Return one store at three times: early and later, with a log, and closed, without a log."""
    draw = random.Random(seed)
    store = SqliteStore(folder / DATABASE)
    await store.open()
    batch = Batch()
    for address in QUEUES[:2]:
        batch.add_node(StoredNode(address=address, kind="queue"))
    for at, queue in enumerate(QUEUES[2:]):
        batch.add_subscription(_subscription(queue, f"name {at}"))
    await store.commit(batch)
    samples: list[Sample] = []
    ever: Told = {}
    for _ in range(2):
        await _fill(store, draw, ever)
        samples.append(Sample(_files(folder), await _messages(store), ever))
    messages = await _messages(store)
    await store.close()
    return samples[0], samples[1], Sample(_files(folder), messages, ever)


async def _fill(store: SqliteStore, draw: random.Random, ever: Told) -> None:
    """Make forty rounds of two commits: one adds messages, the other removes and counts some.

    In about three of ten rounds the messages are copies in two queues, which share their bytes.
    """
    for _ in range(40):
        batch = Batch()
        encoded = draw.randbytes(draw.choice((20, 200, 900, 6000)))
        for queue in QUEUES[2:] if draw.random() < 0.3 else (draw.choice(QUEUES[:2]),):
            message = _stored(len(ever) + 1, queue, encoded)
            ever[int(message.number)] = message
            batch.append(message)
        await store.commit(batch)
        batch = Batch()
        batch.remove(draw.randint(1, len(ever)))
        batch.count(draw.randint(1, len(ever)), draw.randint(1, 5))
        await store.commit(batch)


def _stored(number: int, queue: str, encoded: bytes) -> StoredMessage:
    return StoredMessage(
        number=number,
        queue=queue,
        position=number * 10,
        encoded=encoded,
        priority=number % 10,
        ttl_ms=60_000,
        arrived_ms=1_750_000_000_000 + number,
        expires_at_ms=1_950_000_060_000,
        deliver_at_ms=0,
        delivery_count=0,
    )


def _subscription(queue: str, name: str) -> StoredSubscription:
    return StoredSubscription(
        queue=queue,
        container_id="shop",
        name=name,
        is_shared=False,
        address="news",
        filters=[("selector", b"\xa1\x01x")],
        excluded_publisher="",
        durability=2,
        expiry_policy="never",
        timeout_s=0,
    )


def _files(folder: Path) -> Files:
    return {
        name: (folder / name).read_bytes() for name in (DATABASE, LOG) if (folder / name).exists()
    }


async def _messages(store: SqliteStore) -> Told:
    held: Told = {}
    while part := await store.messages(max(held, default=0)):
        held.update({int(each.number): each for each in part})
    return held


# -- what is done to the files


@dataclass(frozen=True)
class Damage:
    """One way to damage files; a random generator picks the place in them."""

    name: str
    to: Callable[[Files, random.Random], Files]
    has_log: bool


def _flipped(name: str) -> Callable[[Files, random.Random], Files]:
    def flip(files: Files, draw: random.Random) -> Files:
        content = bytearray(files[name])
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        return {**files, name: bytes(content)}

    return flip


def _cut(name: str) -> Callable[[Files, random.Random], Files]:
    def cut(files: Files, draw: random.Random) -> Files:
        return {**files, name: files[name][: draw.randrange(len(files[name]))]}

    return cut


def _zeroed(files: Files, draw: random.Random) -> Files:
    content = bytearray(files[DATABASE])
    at = draw.randrange(len(content) // PAGE) * PAGE
    content[at : at + PAGE] = bytes(PAGE)
    return {**files, DATABASE: bytes(content)}


DAMAGES: Final = (
    Damage("bit flipped in the database", _flipped(DATABASE), has_log=False),
    Damage("bit flipped in the log", _flipped(LOG), has_log=True),
    Damage("database cut short", _cut(DATABASE), has_log=False),
    Damage("log cut short", _cut(LOG), has_log=True),
    Damage("page of the database zeroed", _zeroed, has_log=False),
)


# -- what comes out


@dataclass
class Outcome:
    """The results of all trials of one kind of damage: numbers, and an example of each result."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, what: str) -> None:
        self.counts[kind] += 1
        self.examples.setdefault(kind, what)


async def look(folder: Path, files: Files, sample: Sample, outcome: Outcome) -> None:
    """Open the store with these files, compare its messages with `sample`; record the result."""
    write_image(folder, files)
    store = SqliteStore(folder / DATABASE)
    outcome.counts["tried"] += 1
    try:
        try:
            await store.open()
            held = await _messages(store)
        finally:
            await store.close()
    except StoreError as error:
        outcome.add("refused", str(error))
        if "\n" in str(error) or str(folder) not in str(error):
            outcome.add("not said in one line", str(error))
        return
    except Exception as error:  # noqa: BLE001 - every other error is a finding
        outcome.add("unforeseen error", f"{type(error).__name__}: {error}")
        return
    _compare(held, store.quarantined, sample, outcome)


def _compare(held: Told, quarantined: int, sample: Sample, outcome: Outcome) -> None:
    newest = sample.messages
    for number, message in held.items():
        stored = sample.ever.get(number)
        if stored is None or message.encoded != stored.encoded:
            outcome.add("wrongly delivered", f"message {number} has other bytes")
        elif _facts(message) != _facts(stored):
            outcome.add("other facts", f"message {number}: {_facts(message)}")
    if quarantined:
        outcome.counts["quarantined"] += quarantined
        outcome.counts["noticed"] += 1
    elif missing := len(newest.keys() - held.keys()):
        outcome.add("gone without a word", f"{missing} of {len(newest)} messages")
    elif back := len(held.keys() - newest.keys()):
        outcome.add("back without a word", f"{back} messages that had been consumed")
    else:
        outcome.counts["harmless"] += 1
    outcome.counts["served"] += len(held)


def _facts(message: StoredMessage) -> tuple[object, ...]:
    return (
        message.queue,
        int(message.position),
        int(message.priority),
        int(message.ttl_ms),
        int(message.expires_at_ms),
        int(message.deliver_at_ms),
        message.durable,
    )


async def run(*, count: int, seed: int) -> dict[str, Outcome]:
    """Try each kind of damage `count` times, each mixture of files once; return the outcomes."""
    found: dict[str, Outcome] = {}
    with (
        tempfile.TemporaryDirectory(dir=scratch()) as one,
        tempfile.TemporaryDirectory(dir=scratch()) as two,
        tempfile.TemporaryDirectory(dir=scratch()) as three,
    ):
        early, later, closed = await samples_of(Path(one), seed)
        other, _, _ = await samples_of(Path(two), seed + 1)
        place = Path(three) / "left"
        for damage in DAMAGES:
            outcome = found[damage.name] = Outcome()
            sample = later if damage.has_log else closed
            for trial in range(count):
                draw = random.Random(f"{seed} {damage.name} {trial}")
                await look(place, damage.to(sample.files, draw), sample, outcome)
        for name, files, sample in (
            ("log of another database", {**closed.files, LOG: other.files[LOG]}, other),
            ("old log, new database", {**closed.files, LOG: early.files[LOG]}, closed),
            ("old database, new log", {**early.files, LOG: later.files[LOG]}, closed),
            ("rolled back to an old copy", early.files, early),
        ):
            outcome = found[name] = Outcome()
            await look(place, files, sample, outcome)
    return found


MUST_NOT: Final = ("wrongly delivered", "unforeseen error", "not said in one line")


def broken(found: dict[str, Outcome]) -> list[str]:
    """Return a line for each result that must not occur."""
    return [
        f"{name}: {kind}: {outcome.examples[kind]}"
        for name, outcome in found.items()
        for kind in MUST_NOT
        if kind in outcome.counts
    ]


def lines(found: dict[str, Outcome]) -> list[str]:
    """Return the verdict, a line for each kind of damage, and one for each broken promise."""
    wrong = broken(found)
    tried = sum(outcome.counts["tried"] for outcome in found.values())
    delivered = sum(outcome.counts["wrongly delivered"] for outcome in found.values())
    verdict = "FAILED" if wrong else "passed"
    told = [f"{verdict}: F7 damaged files: {tried} tried, wrongly delivered {delivered}"]
    for name, outcome in found.items():
        counts = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.counts.items()))
        told.append(f"    {name}: {counts}")
    return told + [f"    {each}" for each in wrong]


def main() -> int:
    """Print the verdict; return the exit status."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    found = asyncio.run(run(count=given.count, seed=given.seed))
    print(*lines(found), sep="\n")
    for name, outcome in found.items():
        for kind in ("refused", "other facts", "gone without a word"):
            if kind in outcome.examples:
                print(f"    {name}: {kind}, such as: {outcome.examples[kind]}")
    return 1 if broken(found) else 0


if __name__ == "__main__":
    sys.exit(main())
