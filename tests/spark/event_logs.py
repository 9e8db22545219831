"""Event logs made by hand and by a small model, as rows of the archive, for audits and reports."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_amqp.engines.engine import Engine, Table
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS, schema_of

START: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
MS: Final = timedelta(milliseconds=1)

DEAD: Final = "dead"
"""The queue of the model's dead letters."""

FIRST: Final = "given first"

ODDS: Final = {"dead letter": 0.5, "recorded": 0.02, FIRST: 0.02}
"""Odds with which a wanted fault is planted where it fits; few messages are dead-lettered."""

Row = tuple[object, ...]


@dataclass
class Writer:
    """Makes rows as the broker does: ids ascend, times are a millisecond apart."""

    boot: str = "b1"
    rows: list[Row] = field(default_factory=list)
    id: int = 0
    now: datetime = START

    def note(
        self,
        kind: str,
        message: int | str = 1,
        *,
        address: str = "q",
        subscription: str = "",
        position: int | None = None,
        consumer: str = "",
        deliver_at: datetime | None = None,
        reason: str = "",
        source: str = "",
    ) -> int:
        """Add a row about message number `message`, at a position of its own; return its id.

        `source` is the queue that gave the position. Rows of an old broker have none.
        """
        self.id += 1
        self.now += MS
        place = (message if isinstance(message, int) else 1) * 10 + 4
        name = f"ID:{message}" if isinstance(message, int) else message
        link = "lease" if kind in {"leased", "settled"} else f"{consumer}-link"
        session = source if kind in {"enqueued", "scheduled"} else "1/0"
        self.rows.append(
            (
                *(self.id, self.now, kind, "", address, subscription, name),
                *(place if position is None else position, consumer, link, session),
                *(0, deliver_at, "", reason, self.boot),
            )
        )
        return self.id

    def restart(self) -> None:
        """Start the rows of another broker process."""
        self.boot = f"b{int(self.boot[1:]) + 1}"

    def table(self, engine: Engine) -> Table:
        return engine.table(EVENT_LOG_COLUMNS, self.rows)


def as_parquet(told: Writer, engine: Engine, folder: Path) -> Table:
    """Write an event log to the file `part.parquet` of a folder, and return its rows from there."""
    schema = schema_of(EVENT_LOG_COLUMNS)
    columns = [list(column) for column in zip(*told.rows, strict=True)]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), folder / "part.parquet")
    return engine.parquet(folder, EVENT_LOG_COLUMNS)


@dataclass
class Busy:
    """The event log of a busy broker, and its faults: each as the check and the message.

    A message is its id, or its address and position if no row has its id.
    """

    told: Writer
    faults: set[tuple[str, str]]


class Model:
    """Queues that fill, are consumed, fail and are restarted at random, with planted faults.

    Each message has at most one fault, and one that no row begins is always followed by another.
    """

    def __init__(self, seed: int, plant: list[str]) -> None:
        self.chance = random.Random(seed)
        self.told = Writer()
        self.plant = plant
        self.faults: set[tuple[str, str]] = set()
        self.faulty: set[int] = set()
        self.waiting: dict[str, list[int]] = {"q0": [], "q1": [], "q2": [], DEAD: []}
        self.places = dict.fromkeys(self.waiting, 0)
        self.begun: set[str] = set()
        self.at: dict[tuple[str, int], int] = {}
        self.held: list[tuple[str, int, str]] = []
        self.given: set[int] = set()
        self.made = 0

    def run(self, messages: int) -> Busy:
        while self.made < messages or any(self.waiting.values()) or self.held:
            address = self.chance.choice(list(self.waiting))
            step = self.chance.random()
            if step < 0.4 and self.made < messages and address != DEAD:
                self.send(address)
            elif step < 0.7 and self.waiting[address]:
                self.give(address)
            elif self.held:
                self.settle(*self.held.pop(self.chance.randrange(len(self.held))))
            if self.chance.random() < 0.002:
                self.restart()
        assert not self.plant, "the model had no room for all faults"
        return Busy(self.told, self.faults)

    def wants(self, check: str, number: int) -> bool:
        """Return whether message `number` is to have that fault; if so, it is planted."""
        if (
            check not in self.plant
            or number in self.faulty
            or self.chance.random() > ODDS.get(check, 0.05)
        ):
            return False
        self.plant.remove(check)
        self.faulty.add(number)
        self.faults.add((check, f"ID:{number}"))
        return True

    def tell(self, kind: str, number: int, address: str, **more: Any) -> None:
        self.told.note(kind, number, address=address, position=self.at[address, number], **more)

    def take_place(self, address: str, number: int) -> None:
        self.places[address] += 1
        self.at[address, number] = self.places[address] * 10 + 4

    def begin(self, kind: str, number: int, address: str, due: datetime | None = None) -> None:
        """Give message `number` the next position of the queue, and tell it."""
        self.take_place(address, number)
        self.begun.add(address)
        self.tell(kind, number, address, source=f"queue/{address}", deliver_at=due)

    def send(self, address: str) -> None:
        self.made += 1
        number = self.made
        if address in self.begun and self.wants("recorded", number):
            self.take_place(address, number)
            self.faults.remove(("recorded", f"ID:{number}"))
            self.faults.add(("recorded", f"{address}/{self.at[address, number]}"))
            self.send(address)
            return
        if address in self.begun and self.chance.random() < 0.5 and self.wants(FIRST, number):
            self.take_place(address, number)
            self.waiting[address].append(number)
            self.send(address)
            return
        if self.chance.random() < 0.1:
            is_early = self.wants("not early", number)
            due = self.told.now + timedelta(hours=1) if is_early else self.told.now
            self.begin("scheduled", number, address, due)
        self.begin("enqueued", number, address)
        self.waiting[address].append(number)

    def give(self, address: str) -> None:
        consumer = self.chance.choice(["c0", "c1"])
        here = self.waiting[address]
        is_new = not (self.given | self.faulty) & set(here[:2])
        if len(here) > 1 and is_new and self.wants("order", here[0]):
            self.deliver(address, here.pop(1), consumer)
        number = here.pop(0)
        if number not in self.given and self.wants(FIRST, number):
            self.tell("accepted", number, address, consumer=consumer)
            return
        self.deliver(address, number, consumer)

    def deliver(self, address: str, number: int, consumer: str) -> None:
        self.tell("delivered", number, address, consumer=consumer)
        self.given.add(number)
        if self.wants("exclusive", number):
            self.tell("delivered", number, address, consumer="c2")
        if self.wants("no loss", number):
            return
        self.held.append((address, number, consumer))

    def settle(self, address: str, number: int, consumer: str) -> None:
        kinds = ["accepted", "released", "modified", "rejected"]
        (kind,) = self.chance.choices(kinds, [90, 5, 3, 0 if address == DEAD else 2])
        if kind == "accepted" and self.wants("by its holder", number):
            consumer = "c3"
        self.tell(kind, number, address, consumer=consumer)
        if kind in {"released", "modified"}:
            self.put_back(address, number)
        elif kind == "rejected":
            self.tell("deadlettered", number, address, reason=f"rejected, to queue {DEAD}")
            if not self.wants("dead letter", number):
                self.begin("enqueued", number, DEAD)
                self.given.discard(number)
                self.waiting[DEAD].append(number)
        elif self.wants("no duplicate", number):
            self.tell("accepted", number, address, consumer=consumer)

    def put_back(self, address: str, number: int) -> None:
        self.waiting[address].append(number)
        self.waiting[address].sort(key=lambda each: self.at[address, each])

    def restart(self) -> None:
        self.told.restart()
        self.begun.clear()
        for address, number, _ in self.held:
            self.put_back(address, number)
        self.held.clear()
