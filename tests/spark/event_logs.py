"""Event logs made by hand and by a small model, as rows of the archive, for audits and reports."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS, ddl_of

START: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
MS: Final = timedelta(milliseconds=1)

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
        count: int = 0,
    ) -> int:
        """Add a row about message number `message`, at a position of its own; return its id."""
        self.id += 1
        self.now += MS
        place = (message if isinstance(message, int) else 1) * 10 + 4
        name = f"ID:{message}" if isinstance(message, int) else message
        self.rows.append(
            (
                *(self.id, self.now, kind, "", address, subscription, name),
                *(place if position is None else position, consumer, f"{consumer}-link", "1/0"),
                *(count, deliver_at, "", reason, self.boot),
            )
        )
        return self.id

    def restart(self) -> None:
        """Start the rows of another broker process."""
        self.boot = f"b{int(self.boot[1:]) + 1}"

    def frame(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(self.rows, ddl_of(EVENT_LOG_COLUMNS))


@dataclass
class Busy:
    """The event log of a busy broker, and its faults, each as the check and the message."""

    told: Writer
    faults: set[tuple[str, str]]


class Model:
    """Queues that fill, are consumed, fail and are restarted at random, with planted faults."""

    def __init__(self, seed: int, plant: list[str]) -> None:
        self.chance = random.Random(seed)
        self.told = Writer()
        self.plant = plant
        self.faults: set[tuple[str, str]] = set()
        self.waiting: dict[str, list[int]] = {"q0": [], "q1": [], "q2": []}
        self.held: list[tuple[str, int, str]] = []
        self.given: set[int] = set()
        self.made = 0

    def run(self, messages: int) -> Busy:
        while self.made < messages or any(self.waiting.values()) or self.held:
            address = self.chance.choice(list(self.waiting))
            step = self.chance.random()
            if step < 0.4 and self.made < messages:
                self.send(address)
            elif step < 0.7 and self.waiting[address]:
                self.give(address)
            elif self.held:
                self.settle(*self.held.pop(self.chance.randrange(len(self.held))))
            if self.chance.random() < 0.002:
                self.restart()
        assert not self.plant, "the model had no room for all faults"
        return Busy(self.told, self.faults)

    def wants(self, check: str) -> bool:
        """Return whether a fault of that kind is to be planted now; if so, it is used up."""
        if check not in self.plant or self.chance.random() > 0.05:
            return False
        self.plant.remove(check)
        return True

    def send(self, address: str) -> None:
        self.made += 1
        number = self.made
        if self.chance.random() < 0.1:
            is_early = self.wants("not early")
            due = self.told.now + timedelta(hours=1) if is_early else self.told.now
            self.told.note("scheduled", number, address=address, position=4, deliver_at=due)
            if is_early:
                self.faults.add(("not early", f"ID:{number}"))
        self.told.note("enqueued", number, address=address)
        self.waiting[address].append(number)

    def give(self, address: str) -> None:
        consumer = self.chance.choice(["c0", "c1"])
        here = self.waiting[address]
        if len(here) > 1 and not self.given & set(here[:2]) and self.wants("order"):
            self.faults.add(("order", f"ID:{here[0]}"))
            self.deliver(address, here.pop(1), consumer)
        self.deliver(address, here.pop(0), consumer)

    def deliver(self, address: str, number: int, consumer: str) -> None:
        self.told.note("delivered", number, address=address, consumer=consumer)
        self.given.add(number)
        if self.wants("exclusive"):
            self.told.note("delivered", number, address=address, consumer="c2")
            self.faults.add(("exclusive", f"ID:{number}"))
        if self.wants("no loss"):
            self.faults.add(("no loss", f"ID:{number}"))
            return
        self.held.append((address, number, consumer))

    def settle(self, address: str, number: int, consumer: str) -> None:
        kinds = ["accepted", "released", "modified", "rejected"]
        (kind,) = self.chance.choices(kinds, [90, 5, 3, 2])
        self.told.note(kind, number, address=address, consumer=consumer)
        if kind in {"released", "modified"}:
            self.put_back(address, number)
        elif kind == "rejected":
            self.told.note("deadlettered", number, address=address, reason="rejected")
        elif self.wants("no duplicate"):
            self.told.note("accepted", number, address=address, consumer=consumer)
            self.faults.add(("no duplicate", f"ID:{number}"))

    def put_back(self, address: str, number: int) -> None:
        self.waiting[address].append(number)
        self.waiting[address].sort()

    def restart(self) -> None:
        self.told.restart()
        for address, number, _ in self.held:
            self.put_back(address, number)
        self.held.clear()
