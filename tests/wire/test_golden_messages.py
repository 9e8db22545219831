"""Golden messages: routing decodes them at any position, and keeps their bytes unchanged."""

import pytest

from broker.amqp.decode import descriptor_at, take_value
from broker.amqp.descriptors import DELIVERY_ANNOTATIONS, HEADER
from broker.amqp.encode import BytesWriter
from broker.amqp.errors import LinkFault
from broker.amqp.sections import Sections, put_header, split
from tests.wire.golden_messages import MESSAGES, GoldenMessage

CASES = [pytest.param(message, id=f"{message.who}: {message.name}") for message in MESSAGES]


def check(data: bytes, sections: Sections, golden: GoldenMessage) -> None:
    """Assert that the sections decoded from `data` have the values of `golden`."""
    assert sections.durable == golden.durable
    assert sections.priority == golden.priority
    assert sections.ttl == golden.ttl
    assert sections.absolute_expiry_time == golden.absolute_expiry_time
    assert sections.to(data) == golden.to
    assert sections.subject(data) == golden.subject
    for key, value in golden.annotations.items():
        assert sections.annotation(data, key.encode()) == value
    assert sections.annotation(data, b"x-opt-delivery-time") is None
    if golden.body < 0:
        assert sections.body == -1
    else:
        code, value_at = descriptor_at(data, sections.body, sections.end)
        assert code == golden.body
        if golden.value is not None:
            assert take_value(data, value_at, sections.end) == (golden.value, sections.end)


@pytest.mark.parametrize("golden", CASES)
def test_a_message_is_understood(golden: GoldenMessage) -> None:
    check(golden.data, split(golden.data, 0, len(golden.data)), golden)


@pytest.mark.parametrize("golden", CASES)
def test_a_message_is_understood_among_neighbours(golden: GoldenMessage) -> None:
    data = b"\x00\x53\x75\xa0" + golden.data + b"\x00\x53\x73\x45"
    check(data, split(data, 4, 4 + len(golden.data)), golden)


@pytest.mark.parametrize("golden", CASES)
def test_nothing_is_left_of_the_message_before(golden: GoldenMessage) -> None:
    sections = Sections()
    first = MESSAGES[0].data
    sections.read(first, 0, len(first))
    sections.read(golden.data, 0, len(golden.data))
    check(golden.data, sections, golden)


@pytest.mark.parametrize("golden", CASES)
def test_a_message_that_is_cut_is_a_fault_unless_at_a_section(golden: GoldenMessage) -> None:
    data = golden.data
    borders = [0]
    while borders[-1] < len(data):
        borders.append(take_value(data, borders[-1], len(data))[1])
    for end in range(len(data)):
        if end in borders:
            assert split(data, 0, end).end == end
            continue
        with pytest.raises(LinkFault):
            split(data[:end], 0, end)
        with pytest.raises(LinkFault):
            split(data, 0, end)


@pytest.mark.requirement("PRD-05")
@pytest.mark.parametrize("golden", CASES)
def test_what_is_kept_is_all_but_header_and_delivery_annotations(golden: GoldenMessage) -> None:
    data = golden.data
    sections = split(data, 0, len(data))
    kept = 0
    for section in (HEADER, DELIVERY_ANNOTATIONS):
        if data[kept + 2] == section:
            kept = take_value(data, kept, len(data))[1]
    assert data[sections.start_kept : sections.end] == data[kept:]


@pytest.mark.parametrize("golden", CASES)
def test_the_header_that_we_write_says_the_same(golden: GoldenMessage) -> None:
    data = golden.data
    sections = split(data, 0, len(data))
    out = BytesWriter()
    put_header(
        out,
        durable=sections.durable,
        priority=sections.priority,
        ttl=sections.ttl,
        first_acquirer=True,
        delivery_count=3,
    )
    rewritten = out.getvalue() + data[sections.start_kept : sections.end]
    check(rewritten, split(rewritten, 0, len(rewritten)), golden)
