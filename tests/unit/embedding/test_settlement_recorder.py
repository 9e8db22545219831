"""The record of settlements: what each line contains, and its limits."""

import pytest

from broker.embedding.settlement_recorder import OUTCOMES, SettlementRecorder
from broker.routing.addresses.address import Address
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from storage.batch import Batch
from tests.support.encoded import section
from tests.support.routing import Routing, new_message


def body(text: str) -> bytes:
    return bytes.fromhex(section(0x75, f"a0{len(text):02x}{text.encode().hex()}"))


def entry(queue: Queue, text: str, position: int = 0) -> QueueEntry:
    return QueueEntry(queue, new_message(body(text)), position)


@pytest.mark.parametrize("disposal", list(Disposal), ids=[each.name for each in Disposal])
def test_every_disposal_has_the_name_of_an_outcome(disposal: Disposal) -> None:
    record = SettlementRecorder()
    record.settled(entry(Routing().queue(), "a"), disposal, Batch())
    (line,) = record.of(Address("q"))
    assert line.outcome == OUTCOMES[disposal]
    assert line.outcome in {"accepted", "released", "modified", "rejected"}


def test_a_line_keeps_the_message_as_it_was_delivered() -> None:
    record = SettlementRecorder()
    held = entry(Routing().queue(), "a")
    held.delivery_count = 2
    record.settled(held, Disposal.FAIL, Batch())
    held.delivery_count = 3
    held.message = new_message(body("b"))
    (line,) = record.of(Address("q"))
    assert (line.message.body, line.message.delivery_count) == (b"a", 2)


def texts(record: SettlementRecorder, address: str = "q") -> list[object]:
    return [line.message.body for line in record.of(Address(address))]


def test_addresses_are_told_apart() -> None:
    record, routing = SettlementRecorder(), Routing()
    record.settled(entry(routing.queue("q"), "a"), Disposal.REMOVE, Batch())
    record.settled(entry(routing.queue("r"), "b"), Disposal.REMOVE, Batch())
    assert texts(record, "r") == [b"b"]
    assert texts(record, "unknown") == []


def test_the_oldest_lines_go_where_there_are_too_many() -> None:
    record, queue = SettlementRecorder(lines_max=2), Routing().queue()
    for text in "abc":
        record.settled(entry(queue, text), Disposal.REMOVE, Batch())
    assert texts(record) == [b"b", b"c"]


def test_the_oldest_lines_go_where_they_take_too_many_bytes() -> None:
    size = len(body("a"))
    record, queue = SettlementRecorder(bytes_max=3 * size), Routing().queue()
    for text in "abcd":
        record.settled(entry(queue, text), Disposal.REMOVE, Batch())
    assert texts(record) == [b"b", b"c", b"d"]
    record.settled(entry(queue, "x" * 100), Disposal.REMOVE, Batch())
    assert texts(record) == [], "larger than all the room there is"
    record.settled(entry(queue, "e"), Disposal.REMOVE, Batch())
    assert texts(record) == [b"e"]
