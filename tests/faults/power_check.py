"""Checks of a store that was opened after a power cut: promises P1, P3, P4, P5, P6, P10."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from storage.api import Store, StoreError
from storage.records import StoredMessage
from storage.sql.sqlite.store import SqliteStore
from tests.faults.power_wire import NUMBER_SIZE, Copy, History, subscription_queue
from tests.support.frames import body_of

COUNTED: Final = (
    "lost",
    "unexpected",
    "resurrected",
    "duplicated",
    "torn",
    "reordered",
    "unflagged",
    "repeated numbers",
    "lost subscriptions",
    "ghost subscriptions",
    "unopenable",
)


@dataclass
class Held:
    """The content of an opened store, under the names that the history uses.

    A message's key is its queue and number. `twice` has the keys found more than once; `unflagged`
    those that would be delivered without a redelivered flag.
    """

    messages: dict[tuple[str, int], StoredMessage] = field(default_factory=dict)
    twice: list[tuple[str, int]] = field(default_factory=list)
    subscriptions: set[str] = field(default_factory=set)
    unflagged: set[tuple[str, int]] = field(default_factory=set)
    first_number: int = 0


@dataclass
class Findings:
    """The number of violations of each promise, and an example of each."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, what: str) -> None:
        self.counts[kind] += 1
        self.examples.setdefault(kind, what)

    def merge(self, other: Findings) -> None:
        self.counts += other.counts
        self.examples = {**other.examples, **self.examples}


async def held_in(database: Path) -> Held:
    """Open the store as a broker does and return its content; raise StoreError if that fails."""
    store = SqliteStore(database)
    try:
        await store.open()
        return await _read(store)
    finally:
        await store.close()


async def _read(store: Store) -> Held:
    held = Held(first_number=store.first_number)
    names = {}
    for each in await store.subscriptions():
        names[each.queue] = subscription_queue(each.container_id, each.name)
    held.subscriptions.update(names.values())
    delivered = await store.delivered()
    behind = 0
    while part := await store.messages(behind):
        behind = int(part[-1].number)
        for message in part:
            queue = names.get(message.queue, message.queue)
            key = queue, int(body_of(message.encoded)[:NUMBER_SIZE])
            if key in held.messages:
                held.twice.append(key)
            held.messages[key] = message
            up_to = delivered.get(message.queue, -1)
            if message.position > up_to and int(message.delivery_count) == 0:
                held.unflagged.add(key)
    return held


class Judge:
    """Compares a store's content after a cut with what was promised before the cut."""

    def __init__(self, history: History, stops: Sequence[int]) -> None:
        """Use `history`; `stops` are the events at which a broker was stopped cleanly."""
        self._history: Final = history
        self._stops: Final = stops
        self._publications: Final[dict[int, list[Copy]]] = defaultdict(list)
        for copy in history.copies:
            if copy.group:
                self._publications[copy.group].append(copy)

    def acknowledged(self, cut: int) -> int:
        """Return the number of copies that had been promised before `cut`."""
        return sum(copy.promised < cut for copy in self._history.copies)

    def judge(self, cut: int, held: Held) -> Findings:
        found = Findings()
        for kind, what in self._wrong(cut, held):
            found.add(kind, what)
        return found

    def _wrong(self, cut: int, held: Held) -> Iterator[tuple[str, str]]:
        for copy in self._history.copies:
            yield from self._wrong_with(copy, cut, held)
        for key in held.messages.keys() - self._history.by_name.keys():
            yield "unexpected", f"{key} was never sent"
        for key in held.twice:
            yield "duplicated", f"{key}"
        yield from self._torn(cut, held)
        yield from self._reordered(held)
        yield from self._subscriptions(cut, held)
        numbers = [int(message.number) for message in held.messages.values()]
        if numbers and max(numbers) >= held.first_number:
            yield "repeated numbers", f"{max(numbers)} is to be given again"

    def _wrong_with(self, copy: Copy, cut: int, held: Held) -> Iterator[tuple[str, str]]:
        name = f"{copy.number:07d} of {copy.queue}"
        message = held.messages.get((copy.queue, copy.number))
        if message is None:
            if copy.promised < cut <= copy.taken and not self._has_left(copy, cut):
                yield "lost", f"{name}, promised at {copy.promised}"
            return
        if copy.offered >= cut:
            yield "unexpected", f"{name}, offered at {copy.offered}"
        if copy.gone < cut:
            yield "resurrected", f"{name}, gone at {copy.gone}"
        if message.encoded != copy.encoded:
            yield "torn", f"{name} has other bytes"
        if self._must_say_so(copy, cut) and (copy.queue, copy.number) in held.unflagged:
            yield "unflagged", f"{name}, given at {copy.given}"

    def _must_say_so(self, copy: Copy, cut: int) -> bool:
        """Return whether the copy must be flagged: a consumer may have processed it by `cut`."""
        has_been_stopped = any(copy.given < stop <= cut for stop in self._stops)
        return copy.taken < cut or (copy.given < cut and not has_been_stopped)

    def _has_left(self, copy: Copy, cut: int) -> bool:
        subscribed = self._history.subscriptions.get(copy.queue)
        return subscribed is not None and subscribed.leaving < cut

    def _torn(self, cut: int, held: Held) -> Iterator[tuple[str, str]]:
        for transaction in self._history.transactions:
            sent = [copy for copy in transaction.sent if copy.taken >= cut]
            there = {(copy.queue, copy.number) in held.messages for copy in sent}
            if transaction.fails or transaction.discharged >= cut:
                if True in there:
                    numbers = [copy.number for copy in sent]
                    yield "unexpected", f"{numbers} were not committed"
                there = set()
            # one that its sender was not told of at the cut may be missing for that reason
            stored = [copy for copy in transaction.retired if copy.promised < cut]
            there |= {(copy.queue, copy.number) not in held.messages for copy in stored}
            if len(there) == 2:
                yield "torn", f"the transaction that was discharged at {transaction.discharged}"
        for group, copies in self._publications.items():
            left = [each for each in copies if each.taken >= cut and not self._has_left(each, cut)]
            if len({(each.queue, each.number) in held.messages for each in left}) == 2:
                yield "torn", f"the publication of {copies[0].number} at {group}"

    def _reordered(self, held: Held) -> Iterator[tuple[str, str]]:
        queues: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for (queue, number), message in held.messages.items():
            copy = self._history.by_name.get((queue, number))
            if copy is not None and not copy.is_scheduled:
                queues[queue].append((int(message.position), copy.order, number))
        for queue, found in queues.items():
            for before, after in pairwise(sorted(found)):
                if before[1] > after[1]:
                    yield "reordered", f"{queue}: {before[2]} before {after[2]}"

    def _subscriptions(self, cut: int, held: Held) -> Iterator[tuple[str, str]]:
        for name, each in self._history.subscriptions.items():
            if each.answered < cut <= each.leaving and name not in held.subscriptions:
                yield "lost subscriptions", f"{name}, answered at {each.answered}"
            if name in held.subscriptions and (each.asked >= cut or each.left < cut):
                yield "ghost subscriptions", f"{name}, left at {each.left}"


async def findings_of(folder: Path, name: str, cut: int, judge: Judge) -> Findings:
    """Return the violations in the store `name`, which a cut has left in `folder`."""
    try:
        held = await held_in(folder / name)
    except StoreError as error:
        found = Findings()
        found.add("unopenable", str(error))
        return found
    return judge.judge(cut, held)
