"""Identifiers, row for row as in the tables of WD10 3.2.1.1 and EARLY 4.2.1.1."""

from __future__ import annotations

import uuid
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.types import Symbol, ULong
from broker.jms import MappingError, Profile
from broker.jms.ids import (
    correlation_id_bytes,
    correlation_id_text,
    correlation_id_value,
    is_message_id,
    message_id_text,
    message_id_value,
)

SOME: Final = uuid.UUID("12345678-9abc-def0-1234-56789abcdef0")
SOME_TEXT: Final = "12345678-9abc-def0-1234-56789abcdef0"
EARLY: Final = Profile.EARLY

MESSAGE_IDS: Final[list[tuple[object, str]]] = [
    ("ID:my-string-id", "ID:my-string-id"),
    ("non-prefixed-string-id", "ID:AMQP_NO_PREFIX:non-prefixed-string-id"),
    (SOME, f"ID:AMQP_UUID:{SOME_TEXT}"),
    (ULong(42), "ID:AMQP_ULONG:42"),
    (b"\xab\xcd\xef", "ID:AMQP_BINARY:ABCDEF"),
    ("ID:AMQP_ULONG:string-id", "ID:AMQP_STRING:ID:AMQP_ULONG:string-id"),
]
"""WD10: a message-id, and the JMSMessageID derived from it."""

APPLICATION_CORRELATION_IDS: Final = ["application-specific", "AMQP_ULONG:42", "AMQP_ULONG:foo"]
"""WD10: JMSCorrelationIDs that are sent as the strings that they are."""

CORRELATION_IDS: Final[list[tuple[object, str]]] = [
    ("ID:my-string-id", "ID:my-string-id"),
    ("non-prefixed-string-id", "non-prefixed-string-id"),
    (SOME, f"ID:AMQP_UUID:{SOME_TEXT}"),
    (ULong(42), "ID:AMQP_ULONG:42"),
    (b"\xab\xcd\xef", "ID:AMQP_BINARY:ABCDEF"),
    ("ID:AMQP_ULONG:string-id", "ID:AMQP_STRING:ID:AMQP_ULONG:string-id"),
    ("AMQP_ULONG:foo", "AMQP_ULONG:foo"),
]
"""WD10: a correlation-id, and the JMSCorrelationID derived from it."""

EARLY_CORRELATION_IDS: Final[list[tuple[str, object, bool]]] = [
    ("ID:foo", "foo", False),
    ("ID:42", "42", False),
    ("ID:AMQP_STRING:AMQP_ULONG:42", "AMQP_ULONG:42", False),
    ("ID:AMQP_STRING:AMQP_STRING:foo", "AMQP_STRING:foo", False),
    ("app-spec", "app-spec", True),
    ("AMQP_ULONG:42", "AMQP_ULONG:42", True),
    ("AMQP_ULONG:foo", "AMQP_ULONG:foo", True),
    ("ID:AMQP_ULONG:42", ULong(42), False),
    (f"ID:AMQP_UUID:{SOME_TEXT}", SOME, False),
    ("ID:AMQP_BINARY:0123ABCD", b"\x01\x23\xab\xcd", False),
]
"""EARLY: JMSCorrelationID, correlation-id, and the value of x-opt-app-correlation-id."""


@pytest.mark.requirement("MAP-01")
@pytest.mark.parametrize(("value", "text"), MESSAGE_IDS, ids=[text for _, text in MESSAGE_IDS])
def test_a_message_id_is_told_as_text_and_taken_back(value: object, text: str) -> None:
    assert message_id_text(value) == text
    assert message_id_value(text) == value


@pytest.mark.requirement("MAP-02")
@pytest.mark.parametrize(("value", "text"), MESSAGE_IDS, ids=[text for _, text in MESSAGE_IDS])
def test_a_jms_message_id_as_correlation_id_gives_the_value_that_it_came_from(
    value: object, text: str
) -> None:
    assert correlation_id_value(text) == value


@pytest.mark.requirement("MAP-02")
@pytest.mark.parametrize("text", APPLICATION_CORRELATION_IDS)
def test_an_applications_own_correlation_id_is_a_string_as_it_is(text: str) -> None:
    assert correlation_id_value(text) == text
    assert not is_message_id(text)


@pytest.mark.requirement("MAP-02")
@pytest.mark.parametrize(
    ("value", "text"), CORRELATION_IDS, ids=[text for _, text in CORRELATION_IDS]
)
def test_a_correlation_id_is_told_as_text_and_taken_back(value: object, text: str) -> None:
    assert correlation_id_text(value) == text
    assert correlation_id_value(text) == value


@pytest.mark.requirement("MAP-02")
@pytest.mark.parametrize(
    ("text", "value", "is_application"),
    EARLY_CORRELATION_IDS,
    ids=[row[0] for row in EARLY_CORRELATION_IDS],
)
def test_early_sends_a_correlation_id_without_its_prefix(
    text: str, value: object, is_application: bool
) -> None:
    assert correlation_id_value(text, EARLY) == value
    assert is_message_id(text) is not is_application
    assert correlation_id_text(value, EARLY, is_application=is_application) == text


@pytest.mark.requirement("MAP-01")
@pytest.mark.parametrize(
    ("text", "value"),
    [row[:2] for row in EARLY_CORRELATION_IDS if not row[2]],
    ids=[row[0] for row in EARLY_CORRELATION_IDS if not row[2]],
)
def test_early_sends_a_message_id_without_its_prefix(text: str, value: object) -> None:
    assert message_id_value(text, EARLY) == value
    assert message_id_text(value, EARLY) == text


@pytest.mark.requirement("MAP-01")
def test_early_takes_away_one_prefix_and_knows_no_other_escape() -> None:
    assert message_id_value("ID:ID:x", EARLY) == "ID:x"
    assert message_id_value("ID:AMQP_NO_PREFIX:x", EARLY) == "AMQP_NO_PREFIX:x"
    assert message_id_text("AMQP_NO_PREFIX:x", EARLY) == "ID:AMQP_NO_PREFIX:x"


@pytest.mark.requirement("MAP-01", "MAP-02")
@pytest.mark.parametrize("kind", ["BINARY", "UUID", "ULONG", "STRING", "NO_PREFIX"])
def test_every_prefix_of_the_table_is_escaped(kind: str) -> None:
    text = f"ID:AMQP_{kind}:x"
    assert message_id_text(text) == correlation_id_text(text) == f"ID:AMQP_STRING:{text}"
    assert message_id_value(f"ID:AMQP_STRING:{text}") == text


@pytest.mark.requirement("MAP-01")
@pytest.mark.parametrize("text", ["ID:AMQP_FOO:x", "ID:AMQP_", "ID:", "ID:AMQP_ULONG"])
def test_nothing_else_is_escaped(text: str) -> None:
    assert message_id_text(text) == text
    assert message_id_value(text) == text


INVALID: Final = [
    "ID:AMQP_ULONG:foo",
    "ID:AMQP_ULONG:042",
    "ID:AMQP_ULONG:00",
    "ID:AMQP_ULONG:",
    "ID:AMQP_ULONG:+1",
    "ID:AMQP_ULONG:-1",
    "ID:AMQP_ULONG:1_0",
    "ID:AMQP_ULONG: 1",
    "ID:AMQP_ULONG:\u0661",
    "ID:AMQP_ULONG:18446744073709551616",
    f"ID:AMQP_ULONG:{'9' * 10_000}",
    "ID:AMQP_BINARY:ABC",
    "ID:AMQP_BINARY:0G",
    "ID:AMQP_BINARY:AB CD",
    "ID:AMQP_UUID:foo",
    "ID:AMQP_UUID:",
    "ID:AMQP_UUID:123456789abcdef0123456789abcdef0",
    "ID:AMQP_UUID:{12345678-9abc-def0-1234-56789abcdef0}",
    "ID:AMQP_UUID:12345678-9abc-def0-1234-56789abcde_0",
]


@pytest.mark.requirement("MAP-01", "MAP-02")
@pytest.mark.parametrize("text", INVALID, ids=[text[:60] for text in INVALID])
@pytest.mark.parametrize("profile", list(Profile), ids=[profile.value for profile in Profile])
def test_what_only_looks_like_another_type_is_refused(text: str, profile: Profile) -> None:
    with pytest.raises(MappingError, match="is not"):
        message_id_value(text, profile)
    with pytest.raises(MappingError, match="is not"):
        correlation_id_value(text, profile)


@pytest.mark.requirement("MAP-01", "MAP-02")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ID:AMQP_BINARY:abcdef", b"\xab\xcd\xef"),
        ("ID:AMQP_BINARY:", b""),
        (f"ID:AMQP_UUID:{SOME_TEXT.upper()}", SOME),
        ("ID:AMQP_ULONG:0", ULong(0)),
        ("ID:AMQP_ULONG:18446744073709551615", ULong(2**64 - 1)),
    ],
)
def test_capitals_and_extremes_are_fine(text: str, value: object) -> None:
    assert message_id_value(text) == correlation_id_value(text) == value
    assert message_id_value(text, EARLY) == value


@pytest.mark.requirement("MAP-01")
@pytest.mark.parametrize("text", ["", "x", "id:x", "AMQP_ULONG:42"])
def test_a_jms_message_id_begins_with_its_prefix(text: str) -> None:
    with pytest.raises(MappingError, match="begins with ID:"):
        message_id_value(text)


@pytest.mark.requirement("MAP-02")
def test_bytes_are_those_of_a_binary_correlation_id() -> None:
    assert correlation_id_bytes("ID:AMQP_BINARY:0123ABCD") == b"\x01\x23\xab\xcd"
    for text in ("ID:AMQP_ULONG:42", "ID:x", "0123ABCD", "ID:AMQP_BINARY:ABC"):
        with pytest.raises(MappingError):
            correlation_id_bytes(text)


@pytest.mark.parametrize("value", [None, 42, True, 1.5, Symbol("x"), []])
def test_what_no_identifier_can_be_has_no_text(value: object) -> None:
    assert message_id_text(value) is None
    assert correlation_id_text(value) is None


VALUES: Final = (
    st.text()
    | st.text(max_size=4).map("ID:".__add__)
    | st.sampled_from(["ID:AMQP_STRING:", "ID:AMQP_NO_PREFIX:x", "AMQP_UUID:", "AMQP_STRING:x"])
    | st.uuids()
    | st.binary()
    | st.integers(0, 2**64 - 1).map(ULong)
)


@pytest.mark.requirement("MAP-01", "MAP-02")
@given(VALUES, st.sampled_from(Profile))
def test_no_identifier_changes_on_its_way_through_jms(value: object, profile: Profile) -> None:
    text = message_id_text(value, profile)
    assert text is not None
    assert message_id_value(text, profile) == correlation_id_value(text, profile) == value
    is_application = isinstance(value, str) and not value.startswith("ID:")
    text = correlation_id_text(value, profile, is_application=is_application)
    assert text is not None
    assert correlation_id_value(text, profile) == value
