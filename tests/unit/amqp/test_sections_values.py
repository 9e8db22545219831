"""Values that routing reads from sections, and the header section that the broker writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.descriptors import HEADER, MESSAGE_ANNOTATIONS, PROPERTIES
from broker.amqp.encode import BytesWriter
from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED, LinkFault
from broker.amqp.limits import FIELD_VALUES_MAX
from broker.amqp.sections import (
    PRIORITY_DEFAULT,
    Sections,
    annotation_at,
    property_at,
    put_header,
    split,
)
from broker.amqp.types import Int
from tests.support.encoded import EMPTY, FALSE, NULL, TRUE, listed, mapped, section, string, symbol


def read(raw: str) -> tuple[Sections, bytes]:
    data = bytes.fromhex(raw)
    return split(data, 0, len(data)), data


# -- header and expiry

PRIORITIES = [
    pytest.param("5000", 0, id="the lowest"),
    pytest.param("5009", 9, id="the highest"),
    pytest.param("500a", 9, id="a higher one"),
    pytest.param("50ff", 9, id="the highest ubyte"),
    pytest.param(NULL, PRIORITY_DEFAULT, id="none"),
]


@pytest.mark.requirement("RCV-03")
@pytest.mark.parametrize(("field", "expected"), PRIORITIES)
def test_priority(field: str, expected: int) -> None:
    assert read(section(HEADER, listed(NULL, field)))[0].priority == expected


EXPIRIES = [
    pytest.param("83 0000000000000001", 1, id="a moment after the epoch"),
    pytest.param("83 7fffffffffffffff", 2**63 - 1, id="the last moment"),
    pytest.param("83 0000000000000000", 0, id="zero, which is never"),
    pytest.param("83 ffffffffffffffff", 0, id="before the epoch"),
    pytest.param(NULL, -1, id="null"),
]


@pytest.mark.requirement("PRD-04")
@pytest.mark.parametrize(("field", "expected"), EXPIRIES)
def test_absolute_expiry_time(field: str, expected: int) -> None:
    fields = [*[NULL] * 8, field]
    assert read(section(PROPERTIES, listed(*fields)))[0].absolute_expiry_time == expected


def test_no_absolute_expiry_time_where_the_properties_end_before_it() -> None:
    assert read(section(PROPERTIES, listed(*[NULL] * 8)))[0].absolute_expiry_time == -1


# -- properties and annotations


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param(string(""), "", id="an empty one"),
        pytest.param("a102c3a9", "é", id="a short one"),
        pytest.param("b100000002c3a9", "é", id="a long one"),
        pytest.param(NULL, None, id="none"),
    ],
)
def test_a_text_of_the_properties(field: str, expected: str | None) -> None:
    sections, data = read(section(PROPERTIES, listed(NULL, NULL, field)))
    assert sections.to(data) == expected


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(listed(NULL, NULL, symbol("q")), id="a symbol"),
        pytest.param(listed(NULL, NULL, "a00171"), id="binary"),
        pytest.param(listed(NULL, NULL, "a101ff"), id="no UTF-8"),
        pytest.param(listed(NULL, NULL, "a1ff71"), id="cut"),
    ],
)
def test_an_address_that_is_no_text_is_a_fault(fields: str) -> None:
    sections, data = read(section(PROPERTIES, fields))
    with pytest.raises(LinkFault, match="decode-error: properties"):
        sections.to(data)


def test_a_message_with_a_field_that_is_cut_before_its_user_id_is_refused_whole() -> None:
    with pytest.raises(LinkFault, match="decode-error: message"):
        read(section(PROPERTIES, listed("a1ff71", NULL, NULL)))


def test_the_place_of_a_property() -> None:
    data = bytes.fromhex("ff" + listed("5201", NULL, string("q")))
    found = [property_at(data, 1, len(data), field) for field in range(4)]
    assert found == [4, -1, 7, -1]
    assert property_at(data, -1, len(data), 0) == -1


ANNOTATIONS = [
    pytest.param(mapped(symbol("xy"), "5402"), Int(2), id="a short key"),
    pytest.param(mapped("b3000000027879", "5402"), Int(2), id="a long key"),
    pytest.param(mapped(symbol("ab"), "5401", symbol("xy"), "5402"), Int(2), id="the second"),
    pytest.param(mapped(symbol("xy"), "5402", symbol("xy"), "5403"), Int(2), id="the first of two"),
    pytest.param(mapped(symbol("xy"), NULL), None, id="null"),
    pytest.param(mapped(symbol("xyz"), "5402", symbol("x"), "5402"), None, id="others alike"),
    pytest.param(mapped(string("xy"), "5402", "44", "5402"), None, id="keys that are no symbols"),
    pytest.param(mapped("5401", symbol("xy")), None, id="a value that looks like the key"),
    pytest.param(mapped(), None, id="none at all"),
]


@pytest.mark.parametrize(("annotations", "expected"), ANNOTATIONS)
def test_an_annotation(annotations: str, expected: object) -> None:
    sections, data = read(section(MESSAGE_ANNOTATIONS, annotations))
    assert sections.annotation(data, b"xy") == expected


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param(mapped("a3ff78", "5402"), id="a key that is cut"),
        pytest.param(mapped(symbol("ab"), "a1ff"), id="a value that is cut"),
        pytest.param(mapped(symbol("xy"), "a1ff"), id="the value that is asked for, cut"),
        pytest.param(mapped(symbol("xy"), "a101ff"), id="the value that is asked for, no UTF-8"),
    ],
)
def test_malformed_annotations_are_a_fault_where_they_are_read(annotations: str) -> None:
    sections, data = read(section(MESSAGE_ANNOTATIONS, annotations))
    with pytest.raises(LinkFault, match="decode-error: annotations"):
        sections.annotation(data, b"xy")


def test_an_annotation_contains_only_so_many_values() -> None:
    nulls = NULL * FIELD_VALUES_MAX
    value = f"d0{FIELD_VALUES_MAX + 4:08x}{FIELD_VALUES_MAX:08x}{nulls}"
    content = symbol("xy") + value
    annotations = f"d1{len(content) // 2 + 4:08x}00000002{content}"
    sections, data = read(section(MESSAGE_ANNOTATIONS, annotations))
    assert annotation_at(data, sections.message_annotations, sections.end, b"xy") > 0
    with pytest.raises(LinkFault, match=RESOURCE_LIMIT_EXCEEDED):
        sections.annotation(data, b"xy")


# -- the header that the broker writes


def header(
    *,
    durable: bool = False,
    priority: int = PRIORITY_DEFAULT,
    ttl: int = -1,
    first_acquirer: bool = False,
    delivery_count: int = 0,
) -> bytes:
    """Return a header section with these values, as the broker writes it."""
    out = BytesWriter()
    put_header(
        out,
        durable=durable,
        priority=priority,
        ttl=ttl,
        first_acquirer=first_acquirer,
        delivery_count=delivery_count,
    )
    return out.getvalue()


HEADERS = [
    pytest.param(header(), EMPTY, id="defaults alone"),
    pytest.param(header(durable=True), listed(TRUE), id="durable"),
    pytest.param(header(priority=0), listed(FALSE, "5000"), id="a priority"),
    pytest.param(header(ttl=0), listed(FALSE, "5004", "43"), id="a ttl of zero"),
    pytest.param(
        header(first_acquirer=True), listed(FALSE, "5004", NULL, TRUE), id="first-acquirer"
    ),
    pytest.param(
        header(delivery_count=1), listed(FALSE, "5004", NULL, FALSE, "5201"), id="delivery-count"
    ),
    pytest.param(
        header(
            durable=True,
            priority=9,
            ttl=2**32 - 1,
            first_acquirer=True,
            delivery_count=2**32 - 1,
        ),
        listed(TRUE, "5009", "70ffffffff", TRUE, "70ffffffff"),
        id="all of it, at its largest",
    ),
]


@pytest.mark.requirement("RCV-01")
@pytest.mark.parametrize(("written", "expected"), HEADERS)
def test_trailing_defaults_of_a_header_are_left_out(written: bytes, expected: str) -> None:
    assert written.hex() == section(HEADER, expected)


UINTS = st.integers(0, 2**32 - 1)


@given(st.booleans(), st.integers(0, 9), UINTS | st.just(-1), UINTS)
def test_a_header_that_was_written_says_the_same(
    durable: bool, priority: int, ttl: int, delivery_count: int
) -> None:
    written = header(durable=durable, priority=priority, ttl=ttl, delivery_count=delivery_count)
    sections = split(written, 0, len(written))
    assert (sections.durable, sections.priority, sections.ttl) == (durable, priority, ttl)
    assert sections.start_kept == len(written)
