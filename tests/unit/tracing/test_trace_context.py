"""The trace context of a message: where it may be, its forms, and bytes that are none."""

from __future__ import annotations

import pytest

from broker.amqp.types import Symbol
from broker.tracing.trace_context import STATE_MAX, sampled_context
from tests.support.frames import message
from tests.support.routing import new_message
from tests.support.traces import PARENT, SENDER, TRACE, UNSAMPLED

pytestmark = pytest.mark.requirement("OPS-09")

OTHER_TRACE = "0af7651916cd43dd8448eb211c80319c"
BINARY = bytes([0, 0, *bytes.fromhex(TRACE), 1, *bytes.fromhex(SENDER), 2, 1])


def read(
    annotations: dict[str, object] | None = None, properties: dict[str, object] | None = None
) -> tuple[str, str, str] | None:
    """Return trace, span and state of a message's context."""
    data = message(annotations=annotations, properties=properties)
    found = sampled_context(new_message(data))
    return None if found is None else (found.trace_id, found.span_id, found.state)


@pytest.mark.parametrize(
    "parent",
    [
        pytest.param(PARENT, id="a string"),
        pytest.param(PARENT.encode(), id="the text in binary"),
        pytest.param(Symbol(PARENT), id="a symbol"),
        pytest.param(BINARY, id="the binary form"),
        pytest.param(f"00-{TRACE}-{SENDER}-03", id="with a further flag"),
        pytest.param(f"01-{TRACE}-{SENDER}-01-new", id="a later version with more fields"),
    ],
)
def test_a_context(parent: object) -> None:
    expected = (TRACE, SENDER, "")
    assert read(properties={"traceparent": parent}) == expected
    assert read(annotations={"traceparent": parent}) == expected


WRONG = [
    pytest.param(UNSAMPLED, id="not sampled"),
    pytest.param(b"\0" + BINARY[1:28] + b"\0", id="not sampled, in binary"),
    pytest.param("", id="nothing"),
    pytest.param(7, id="a number"),
    pytest.param(None, id="null"),
    pytest.param(PARENT.upper(), id="capital letters"),
    pytest.param(PARENT[:-1], id="too short"),
    pytest.param(f"{PARENT}-more", id="too long for its version"),
    pytest.param(f"ff{PARENT[2:]}", id="the version that is none"),
    pytest.param(f"00-{'0' * 32}-{SENDER}-01", id="no trace"),
    pytest.param(f"00-{TRACE}-{'0' * 16}-01", id="no span"),
    pytest.param(b"\x01" + BINARY[1:], id="an unknown binary version"),
    pytest.param(b"\0\x01" + BINARY[2:], id="binary fields in another order"),
    pytest.param(b"\xff" * 29, id="bytes"),
    pytest.param("\N{FULLWIDTH DIGIT ZERO}0" + PARENT[2:], id="digits of another alphabet"),
]


@pytest.mark.parametrize("parent", WRONG)
def test_no_context(parent: object) -> None:
    assert read(properties={"traceparent": parent}) is None
    assert read(annotations={"traceparent": parent}) is None


def test_an_annotation_is_nearer_than_a_property() -> None:
    nearer = f"00-{OTHER_TRACE}-{SENDER}-01"
    context = read(
        annotations={"traceparent": nearer, "tracestate": "a=1"},
        properties={"traceparent": PARENT, "tracestate": "b=2"},
    )
    assert context == (OTHER_TRACE, SENDER, "a=1")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("a=1,b=2", "a=1,b=2"),
        (b"a=1", "a=1"),
        (b"\xff", ""),
        (7, ""),
        ("a" * STATE_MAX, "a" * STATE_MAX),
        ("a" * (STATE_MAX + 1), ""),
    ],
)
def test_the_state_of_a_trace(state: object, expected: str) -> None:
    context = read(properties={"traceparent": PARENT, "tracestate": state})
    assert context == (TRACE, SENDER, expected)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="an empty message"),
        pytest.param(b"traceparent", id="no section"),
        pytest.param(message(PARENT.encode() + b"traceparent"), id="in the body"),
        pytest.param(message(properties={"traceparent": PARENT})[:-40], id="a broken section"),
        pytest.param(message(properties={"xtraceparent": PARENT}), id="another name with it"),
    ],
)
def test_bytes_without_a_context(data: bytes) -> None:
    assert sampled_context(new_message(data)) is None
