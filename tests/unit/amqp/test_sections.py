"""The sections of a message: found in any encoding, only in their order, within their limits."""

import re
from collections.abc import Callable
from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.decode import descriptor_at, take_value
from broker.amqp.descriptors import (
    AMQP_SEQUENCE,
    AMQP_VALUE,
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
)
from broker.amqp.errors import DECODE_ERROR, RESOURCE_LIMIT_EXCEEDED, LinkFault
from broker.amqp.limits import SECTIONS_BEFORE_BODY_MAX, SECTIONS_MAX
from broker.amqp.sections import PRIORITY_DEFAULT, REPLY_TO, Sections, split
from broker.amqp.types import Int, Map, Symbol
from tests.support.encoded import EMPTY, NULL, TRUE, listed, mapped, section, string, symbol

NAMES = {
    HEADER: "amqp:header:list",
    DELIVERY_ANNOTATIONS: "amqp:delivery-annotations:map",
    MESSAGE_ANNOTATIONS: "amqp:message-annotations:map",
    PROPERTIES: "amqp:properties:list",
    APPLICATION_PROPERTIES: "amqp:application-properties:map",
    DATA: "amqp:data:binary",
    AMQP_SEQUENCE: "amqp:amqp-sequence:list",
    AMQP_VALUE: "amqp:amqp-value:*",
    FOOTER: "amqp:footer:map",
}
EXPIRY = "83 0000000000000064"

# a section of each kind, by the letter that stands for it in tests of the order
ONE = {
    "h": section(HEADER, listed(TRUE, "5007", "5264", TRUE, "5203")),
    "d": section(DELIVERY_ANNOTATIONS, mapped(symbol("z"), "5401")),
    "m": section(MESSAGE_ANNOTATIONS, mapped(symbol("ab"), NULL, symbol("xy"), "5402")),
    "p": section(
        PROPERTIES,
        listed(NULL, NULL, string("q"), string("s"), *[NULL] * 4, EXPIRY, NULL, string("g")),
    ),
    "a": section(APPLICATION_PROPERTIES, mapped(string("k"), "5403")),
    "D": section(DATA, "a00161"),
    "S": section(AMQP_SEQUENCE, listed("5404")),
    "V": section(AMQP_VALUE, string("v")),
    "f": section(FOOTER, mapped(symbol("f"), "5405")),
    "?": section(0x79, EMPTY),
    "<": section(0x6F, EMPTY),
}


def message(kinds: str) -> str:
    return "".join(ONE[kind] for kind in kinds)


def read(raw: str) -> tuple[Sections, bytes]:
    data = bytes.fromhex(raw)
    return split(data, 0, len(data)), data


def refused(raw: str) -> str:
    """Return the error condition with which the message `raw` is refused."""
    data = bytes.fromhex(raw)
    with pytest.raises(LinkFault) as caught:
        split(data, 0, len(data))
    return caught.value.condition


def value_at(data: bytes, at: int) -> object:
    return take_value(data, at, len(data))[0] if at >= 0 else None


def section_at(data: bytes, at: int) -> tuple[int, object] | None:
    """Return the code and value of the section that starts at `at`, None if there is none."""
    if not 0 <= at < len(data):
        return None
    code, value = descriptor_at(data, at, len(data))
    return int(code), value_at(data, int(value))


def seen(raw: str) -> dict[str, object]:
    """Return all facts that can be asked of a message; they do not depend on its encoding."""
    sections, data = read(raw)
    return {
        "durable": sections.durable,
        "priority": sections.priority,
        "ttl": sections.ttl,
        "absolute-expiry-time": sections.absolute_expiry_time,
        "to": sections.to(data),
        "subject": sections.subject(data),
        "group-id": sections.group_id(data),
        "annotation": sections.annotation(data, b"xy"),
        "message-annotations": value_at(data, int(sections.message_annotations)),
        "properties": value_at(data, int(sections.properties)),
        "application-properties": value_at(data, int(sections.application_properties)),
        "kept from": section_at(data, int(sections.start_kept)),
        "body": section_at(data, int(sections.body)),
        "footer": section_at(data, int(sections.footer)),
    }


NOTHING: dict[str, object] = {
    **dict.fromkeys(seen("")),
    "durable": False,
    "priority": PRIORITY_DEFAULT,
    "ttl": -1,
    "absolute-expiry-time": -1,
}


# -- sections and fields that are found


@pytest.mark.requirement("RCV-03", "DST-14", "PRD-04")
def test_every_section_is_found() -> None:
    found = seen(message("hdmpaDf"))
    properties = found.pop("properties")
    assert isinstance(properties, list)
    assert len(properties) == 11
    annotations = Map([(Symbol("ab"), None), (Symbol("xy"), Int(2))])
    assert found == {
        "durable": True,
        "priority": 7,
        "ttl": 100,
        "absolute-expiry-time": 100,
        "to": "q",
        "subject": "s",
        "group-id": "g",
        "annotation": Int(2),
        "message-annotations": annotations,
        "application-properties": Map([("k", Int(3))]),
        "kept from": (MESSAGE_ANNOTATIONS, annotations),
        "body": (DATA, b"a"),
        "footer": (FOOTER, Map([(Symbol("f"), Int(5))])),
    }


def test_what_is_not_there_is_absent_or_holds_its_default() -> None:
    assert seen("") == NOTHING


def test_nothing_is_left_of_the_message_before() -> None:
    sections, data = read(message("hdmpaDf"))
    sections.read(data, len(data), len(data))
    assert (sections.durable, sections.priority) == (False, PRIORITY_DEFAULT)
    assert (sections.ttl, sections.absolute_expiry_time) == (-1, -1)
    assert sections.start_kept == sections.end == len(data)
    assert sections.message_annotations == sections.properties == -1
    assert sections.application_properties == sections.body == sections.footer == -1


@pytest.mark.requirement("PRD-05")
@pytest.mark.parametrize("kinds", ["mpaDf", "D", "m", "", "f"])
@pytest.mark.parametrize("ours", ["", "h", "d", "hd"], ids=["bare", "header", "annotated", "both"])
def test_all_is_kept_but_the_header_and_the_delivery_annotations(ours: str, kinds: str) -> None:
    sections, data = read(message(ours + kinds))
    assert data[sections.start_kept : sections.end] == bytes.fromhex(message(kinds))


# -- encodings

DESCRIPTORS = {
    "ulong": lambda code: f"0080{code:016x}",
    "short symbol": lambda code: "00" + symbol(NAMES[code]),
    "long symbol": lambda code: f"00b3{len(NAMES[code]):08x}{NAMES[code].encode().hex()}",
}


@pytest.mark.parametrize("form", DESCRIPTORS)
@pytest.mark.parametrize("code", NAMES, ids=NAMES.values())
def test_a_descriptor_means_the_same_in_each_of_its_forms(code: int, form: str) -> None:
    body = {AMQP_SEQUENCE: "S", AMQP_VALUE: "V"}.get(code, "D")
    usual = message("hdmpa" + body + "f")
    short = section(code, "")
    assert usual.count(short) == 1
    assert seen(usual.replace(short, DESCRIPTORS[form](code))) == seen(usual)


def long(short: str) -> str:
    """Return the long form of a list, map or binary."""
    raw = bytes.fromhex(short)
    code = f"{raw[0] | 0x10:02x}"
    if raw[0] < 0xC0:
        return f"{code}{raw[1]:08x}{raw[2:].hex()}"
    return f"{code}{raw[1] + 3:08x}{raw[2]:08x}{raw[3:].hex()}"


@pytest.mark.parametrize("kind", "hdmpaDSVf")
def test_a_long_section_means_the_same_as_a_short_one(kind: str) -> None:
    short = ONE[kind]
    assert seen(short[:6] + long(short[6:])) == seen(short)


SAME = [
    pytest.param(section(HEADER, EMPTY), "", id="an empty header and none"),
    pytest.param(section(HEADER, listed()), "", id="a header of no fields and none"),
    pytest.param(section(HEADER, listed(NULL, NULL, NULL)), "", id="a header of nulls and none"),
    pytest.param(
        section(HEADER, listed("5601", "43", "70 00000000")),
        section(HEADER, listed(TRUE, "5000", "43")),
        id="other forms of a header's fields",
    ),
    pytest.param(
        section(HEADER, listed(TRUE)),
        section(HEADER, listed(TRUE, NULL, NULL, TRUE, "5209")),
        id="what a header says of earlier deliveries is not a sender's to say",
    ),
    pytest.param(
        section(AMQP_SEQUENCE, EMPTY), section(AMQP_SEQUENCE, listed()), id="empty sequences"
    ),
    pytest.param(section(PROPERTIES, EMPTY), section(PROPERTIES, listed()), id="no properties"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_encodings_mean_the_same(one: str, other: str) -> None:
    assert seen(one) == seen(other)


@pytest.mark.parametrize(
    "value",
    [NULL, TRUE, "5201", string("v"), "a000", EMPTY, mapped(), "00532445"],
    ids=["null", "true", "uint", "string", "binary", "list", "map", "described"],
)
def test_a_value_may_be_of_any_type(value: str) -> None:
    sections, data = read(section(AMQP_VALUE, value))
    assert (sections.body, sections.end) == (0, len(data))


# -- order

ORDER = re.compile("h?d?m?p?a?(D*|S*|V?)f?")


def is_accepted(kinds: str) -> bool:
    data = bytes.fromhex(message(kinds))
    try:
        sections = split(data, 0, len(data))
    except LinkFault:
        return False
    assert (sections.body >= 0) == any(kind in "DSV" for kind in kinds)
    assert (sections.footer >= 0) == ("f" in kinds)
    return True


def test_up_to_three_sections_are_accepted_in_their_order_only() -> None:
    """Of all combinations, those with a repeated section, a wrong order or a section after the body
    are refused (`docs/design/hostile-input.md` C9).
    """
    for length in range(4):
        for kinds in product(ONE, repeat=length):
            text = "".join(kinds)
            assert is_accepted(text) == bool(ORDER.fullmatch(text)), text


BODIES = st.sampled_from(["", "D", "DDD", "S", "SS", "V", "VV", "DS", "DfD"])
IN_ORDER = st.tuples(
    *[st.sampled_from(["", kind]) for kind in "hdmpa"], BODIES, st.sampled_from("f?")
)


@given(st.text("".join(ONE), max_size=12) | IN_ORDER.map("".join))
def test_any_sections_are_accepted_in_their_order_only(kinds: str) -> None:
    assert is_accepted(kinds) == bool(ORDER.fullmatch(kinds))


# -- malformed messages

MALFORMED = [
    pytest.param("00", id="half a descriptor"),
    pytest.param("005370", id="a header's descriptor alone"),
    pytest.param("005375", id="a data section's descriptor alone"),
    pytest.param("00" + symbol(NAMES[AMQP_VALUE]), id="a symbolic descriptor alone"),
    pytest.param("a00161", id="no descriptor"),
    pytest.param("00a0016145", id="a descriptor of another type"),
    pytest.param("00" + symbol("amqp:data:binaryX") + "a000", id="a name that is only alike"),
    pytest.param(section(DATA, section(DATA, "a000")), id="a section within a section"),
    pytest.param(section(HEADER, mapped()), id="a header that is a map"),
    pytest.param(section(HEADER, NULL), id="a header that is null"),
    pytest.param(section(HEADER, listed(*[NULL] * 6)), id="a header of six fields"),
    pytest.param(section(HEADER, listed("5201")), id="durable that is a number"),
    pytest.param(section(HEADER, listed("5602")), id="a boolean that is neither"),
    pytest.param(section(HEADER, listed(NULL, TRUE)), id="a priority that is a boolean"),
    pytest.param(section(HEADER, listed(NULL, NULL, string("1"))), id="a ttl that is a string"),
    pytest.param(section(HEADER, "c00105"), id="a header with more fields than bytes"),
    pytest.param(section(HEADER, "c0020202"), id="a header whose second field is cut"),
    pytest.param(section(HEADER, "c0030240b0"), id="a header's field that is cut"),
    pytest.param(section(HEADER, "c003024050"), id="a header's field that ends with its data"),
    pytest.param(
        section(HEADER, "c003024050") + section(DATA, "a000"),
        id="a header's field that reaches into the next section",
    ),
    pytest.param(section(HEADER, "c0ff0141"), id="a header that is larger than its message"),
    pytest.param(section(DELIVERY_ANNOTATIONS, EMPTY), id="delivery-annotations that are a list"),
    pytest.param(section(MESSAGE_ANNOTATIONS, EMPTY), id="message-annotations that are a list"),
    pytest.param(section(MESSAGE_ANNOTATIONS, "c1020140"), id="annotations: a key without a value"),
    pytest.param(section(PROPERTIES, mapped()), id="properties that are a map"),
    pytest.param(section(PROPERTIES, listed(*[NULL] * 14)), id="fourteen properties"),
    pytest.param(section(PROPERTIES, "c00a09" + NULL * 8 + "b0"), id="an expiry that is cut"),
    pytest.param(section(PROPERTIES, listed(*[NULL] * 8, "5201")), id="an expiry that is a uint"),
    pytest.param(section(APPLICATION_PROPERTIES, listed()), id="application-properties: a list"),
    pytest.param(section(DATA, string("a")), id="a data section that is a string"),
    pytest.param(section(DATA, "a00261"), id="a data section that is cut"),
    pytest.param(section(AMQP_SEQUENCE, mapped()), id="a sequence that is a map"),
    pytest.param(section(AMQP_VALUE, "ff"), id="a value of no constructor"),
    pytest.param(section(FOOTER, listed()), id="a footer that is a list"),
]


@pytest.mark.parametrize("raw", MALFORMED)
def test_a_malformed_message_is_refused(raw: str) -> None:
    assert refused(raw) == DECODE_ERROR


WRONG_HEADER = [
    pytest.param("durable", listed("5201"), id="durable is a number"),
    pytest.param("priority", listed(TRUE, string("9")), id="priority is a string"),
    pytest.param("priority", listed(TRUE, "600100"), id="priority does not fit its 8 bits"),
    pytest.param("ttl", listed(TRUE, "5004", string("1")), id="ttl is a string"),
    pytest.param("ttl", listed(TRUE, "5004", "800000000100000000"), id="ttl is beyond 32 bits"),
]


@pytest.mark.requirement("RCV-03", "PRD-04", "MAP-04")
@pytest.mark.parametrize(("field", "fields"), WRONG_HEADER)
def test_the_error_names_the_field_of_the_header(field: str, fields: str) -> None:
    data = bytes.fromhex(section(HEADER, fields))
    with pytest.raises(LinkFault, match=f"message: header: {field}: "):
        split(data, 0, len(data))


@pytest.mark.requirement("PRD-04")
def test_the_error_names_the_expiry_time() -> None:
    data = bytes.fromhex(section(PROPERTIES, listed(*[NULL] * 8, "5201")))
    with pytest.raises(LinkFault, match="message: properties: absolute-expiry-time: "):
        split(data, 0, len(data))


WRONG_PROPERTIES: list[tuple[str, int, Callable[[Sections, bytes], object]]] = [
    ("user-id", 1, Sections.user_id),
    ("to", 2, Sections.to),
    ("subject", 3, Sections.subject),
    ("reply-to", 4, lambda sections, data: sections.text(data, REPLY_TO)),
    ("group-id", 10, Sections.group_id),
    ("group-sequence", 11, Sections.closes_group),
]


@pytest.mark.requirement("PRD-01", "RCV-07")
@pytest.mark.parametrize(
    ("field", "place", "read"), WRONG_PROPERTIES, ids=[row[0] for row in WRONG_PROPERTIES]
)
def test_the_error_names_the_field_that_routing_asks_for(
    field: str, place: int, read: Callable[[Sections, bytes], object]
) -> None:
    data = bytes.fromhex(section(PROPERTIES, listed(*[NULL] * place, TRUE)))
    with pytest.raises(LinkFault, match=f"properties: {field}: "):
        read(split(data, 0, len(data)), data)


def test_what_lies_behind_the_message_is_not_its_own() -> None:
    data = bytes.fromhex(message("hpD"))
    for end in (3, 10, len(data) - 1):
        with pytest.raises(LinkFault, match="decode-error"):
            split(data, 0, end)


# -- limits


def test_the_body_has_no_more_sections_than_its_limit() -> None:
    most = section(DATA, "a000") * SECTIONS_MAX
    assert read(most + message("f"))[0].footer == len(most) // 2
    assert refused(most + section(DATA, "a000")) == RESOURCE_LIMIT_EXCEEDED


def test_what_routing_reads_lies_within_so_many_bytes_of_the_start() -> None:
    size = SECTIONS_BEFORE_BODY_MAX - 3 - 9
    padding = f"d1{size + 4:08x}00000002b0{size - 6:08x}" + "00" * (size - 6) + NULL
    most = section(APPLICATION_PROPERTIES, padding)
    assert len(most) == 2 * SECTIONS_BEFORE_BODY_MAX
    behind = section(DATA, f"b0{2 * size:08x}" + "00" * 2 * size)
    data = bytes.fromhex(ONE["h"] + most + behind)
    start = len(ONE["h"]) // 2
    assert split(data, start, len(data)).body == start + SECTIONS_BEFORE_BODY_MAX
    with pytest.raises(LinkFault, match=RESOURCE_LIMIT_EXCEEDED):
        split(data, 0, len(data))


# -- arbitrary bytes


def ask_everything(data: bytes) -> None:
    """Read `data` and all fields of it; only a LinkFault may be raised on the way."""
    try:
        sections = split(data, 0, len(data))
    except LinkFault:
        return
    for field in range(13):
        with suppress(LinkFault):
            sections.text(data, field)
    with suppress(LinkFault):
        sections.annotation(data, b"xy")


@given(st.binary(max_size=64))
def test_any_bytes_are_a_message_or_a_fault(data: bytes) -> None:
    ask_everything(data)


@given(st.data())
def test_a_message_with_bytes_changed_is_a_message_or_a_fault(choose: st.DataObject) -> None:
    data = bytearray.fromhex(message("hdmpa" + choose.draw(st.sampled_from("DSV")) + "f"))
    for _ in range(choose.draw(st.integers(1, 3))):
        data[choose.draw(st.integers(0, len(data) - 1))] = choose.draw(st.integers(0, 255))
    ask_everything(bytes(data))
