"""Messages of a load: a client of JMS understands them, and the load knows its own."""

from __future__ import annotations

import pytest

pytest.importorskip("proton")

from proton import Message

from broker.cli.load.load_message import LoadMessage, is_of_run, time_ns_of
from broker.cli.load.plan import SIZE_MIN

pytestmark = pytest.mark.requirement("OPS-18")

RUN = b"RUN-1234"
ANNOTATION = b"\x00\x53\x72\xc1\x08\x02\xa3\x03abc\x54\x07"
"""A section of message annotations as a broker may add it."""


@pytest.mark.parametrize("size", [SIZE_MIN, 100, 300, 70_000])
@pytest.mark.parametrize("durable", [False, True])
def test_a_message_is_one_of_bytes(size: int, durable: bool) -> None:
    data = LoadMessage(size=size, run_id=RUN, durable=durable).timed(12_345)
    decoded = Message()
    decoded.decode(data)
    assert isinstance(decoded.body, bytes | memoryview)
    assert (len(decoded.body), decoded.durable, decoded.inferred) == (size, durable, True)
    assert (time_ns_of(data), is_of_run(data, RUN, size)) == (12_345, True)


def test_a_request_names_the_address_of_its_reply() -> None:
    data = LoadMessage(size=20, run_id=RUN, durable=False, to="there", reply_to="here").timed(0)
    decoded = Message()
    decoded.decode(data)
    assert (decoded.address, decoded.reply_to) == ("there", "here")


def test_what_a_broker_adds_in_front_changes_nothing() -> None:
    data = ANNOTATION + LoadMessage(size=50, run_id=RUN, durable=False).timed(99)
    assert (time_ns_of(data), is_of_run(data, RUN, 50)) == (99, True)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x00\x53\x77\xa1\x05hello", id="a short text"),
        pytest.param(
            LoadMessage(size=50, run_id=b"RUN-0000", durable=False).timed(99), id="of another run"
        ),
        pytest.param(
            LoadMessage(size=51, run_id=RUN, durable=False).timed(99), id="of another size"
        ),
    ],
)
def test_a_message_of_somebody_else(data: bytes) -> None:
    assert not is_of_run(data, RUN, 50)
