"""Management requests: what they ask for, and the errors for those that cannot be read."""

import pytest

from broker.amqp.errors import LinkFault
from broker.amqp.sections import Sections
from broker.amqp.types import Int, Map, Symbol, UByte
from broker.clock import SystemClock
from broker.management.request import (
    BODY_BYTES_MAX,
    TEXT_BYTES_MAX,
    Refused,
    Request,
    read_envelope,
    read_request,
)
from broker.message import Message, read_message
from tests.support.frames import message
from tests.support.management import request


def as_message(payload: bytes) -> Message:
    sections = Sections()
    sections.read(payload, 0, len(payload))
    return read_message(sections, payload, SystemClock())


def test_operation_type_name_and_arguments() -> None:
    read = read_request(as_message(request("CREATE", "queue", "orders", body={"a": 1})))
    assert (read.operation, read.type, read.name, read.identity) == (
        "CREATE",
        "queue",
        "orders",
        None,
    )
    assert read.arguments == {"a": 1}


def test_symbols_serve_as_strings() -> None:
    body = Map([(Symbol("filter"), Symbol("a*"))])
    read = read_request(as_message(request("QUERY", "queue", Symbol("x"), body=body)))
    assert (read.name, read.text("filter")) == ("x", "a*")


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(request("READ", "queue", "q", without_body=True), id="no body"),
        pytest.param(
            request("READ", "queue", "q", without_body=True) + b"\x00\x53\x77\x40", id="null"
        ),
    ],
)
def test_arguments_may_be_left_out(payload: bytes) -> None:
    assert read_request(as_message(payload)).arguments == {}


UNREADABLE = [
    pytest.param(message(b"x", to="a"), "application properties", id="nothing at all"),
    pytest.param(request(None, "queue"), "property operation", id="no operation"),
    pytest.param(request("READ"), "property type", id="no type"),
    pytest.param(request("", "queue"), "property operation", id="an empty operation"),
    pytest.param(
        request("READ", "queue", Int(1)), "name must be a string", id="a number for a name"
    ),
    pytest.param(
        request("READ", "queue", identity=b"x"), "identity must be a string", id="identity"
    ),
    pytest.param(request("READ", "queue", "x" * (TEXT_BYTES_MAX + 1)), "bytes", id="a long name"),
    pytest.param(request("READ", "queue", body=[1]), "the body must be a map", id="a list"),
    pytest.param(request("READ", "queue", body=Map([(1, 2)])), "strings", id="a number as key"),
    pytest.param(
        request("READ", "queue", body={"a": b"x" * BODY_BYTES_MAX}), "at most", id="a large body"
    ),
    pytest.param(
        request("READ", "queue", body={"a": [0] * 10_001}), "too many values", id="many values"
    ),
    pytest.param(
        request("READ", "queue", without_body=True) + b"\x00\x53\x75\xa0\x01x",
        "as an AMQP value",
        id="a data section",
    ),
    pytest.param(
        request("READ", "queue", without_body=True)
        + b"\x00\x53\x77\xc1\x09\x04\xa1\x01a\x40\xa1\x01a\x40",
        "the body",
        id="a key twice",
    ),
]


@pytest.mark.parametrize(("payload", "told"), UNREADABLE)
def test_what_cannot_be_read_is_a_bad_request(payload: bytes, told: str) -> None:
    with pytest.raises(Refused, match=told) as refused:
        read_request(as_message(payload))
    assert refused.value.status == 400


ENVELOPES = [
    pytest.param(request(correlation_id="c", message_id="m"), b"\xa1\x01c", id="correlation-id"),
    pytest.param(request(message_id="m"), b"\xa1\x01m", id="else message-id"),
    pytest.param(request(message_id=b"\x00"), b"\xa0\x01\x00", id="as it was written"),
    pytest.param(request(), None, id="neither"),
]


@pytest.mark.parametrize(("payload", "correlation_id"), ENVELOPES)
def test_what_ties_a_response_to_its_request(payload: bytes, correlation_id: bytes | None) -> None:
    envelope = read_envelope(as_message(payload))
    assert (envelope.reply_to, envelope.correlation_id) == ("here", correlation_id)


UNANSWERABLE = [
    pytest.param(request(reply_to=None), "reply-to", id="no reply-to"),
    pytest.param(request(reply_to=""), "reply-to", id="an empty one"),
    pytest.param(request(reply_to="x" * (TEXT_BYTES_MAX + 1)), "reply-to", id="a long one"),
    pytest.param(request(message_id="x" * TEXT_BYTES_MAX), "an id must have", id="a long id"),
]


@pytest.mark.parametrize(("payload", "told"), UNANSWERABLE)
def test_what_cannot_be_answered_is_a_fault(payload: bytes, told: str) -> None:
    with pytest.raises(LinkFault, match=told):
        read_envelope(as_message(payload))


def asked(**arguments: object) -> Request:
    return Request(operation="X", type="queue", arguments=arguments)


def test_arguments_have_their_types() -> None:
    given = asked(text="a", flag=True, number=UByte(3), texts=["a", "b"])
    assert given.text("text") == "a"
    assert given.flag("flag") is True
    assert given.number("number", 0, high=3) == 3
    assert given.texts("texts", at_most=2) == ["a", "b"]


def test_arguments_have_defaults() -> None:
    assert asked().text("text", "x") == "x"
    assert asked().flag("flag") is False
    assert asked().number("number", 7, high=9) == 7
    assert asked().texts("texts", at_most=2) == []


WRONG = [
    pytest.param(lambda: asked().text("a"), "a must be a string", id="a string that must be"),
    pytest.param(lambda: asked(a=1).text("a"), "a must be a string", id="a number for a string"),
    pytest.param(lambda: asked(a="x" * 2000).text("a"), "at most", id="a long string"),
    pytest.param(lambda: asked(a=1).flag("a"), "true or false", id="a number for a flag"),
    pytest.param(lambda: asked(a="1").number("a", 0, high=1), "number", id="a string for a number"),
    pytest.param(lambda: asked(a=True).number("a", 0, high=1), "number", id="true for a number"),
    pytest.param(lambda: asked(a=2).number("a", 0, high=1), "from 0 to 1", id="too much"),
    pytest.param(lambda: asked(a=-1).number("a", 0, high=1), "from 0 to 1", id="too little"),
    pytest.param(lambda: asked(a="b").texts("a", at_most=1), "a list", id="no list"),
    pytest.param(lambda: asked(a=["b", "c"]).texts("a", at_most=1), "at most 1", id="a long list"),
    pytest.param(lambda: asked(a=[1]).texts("a", at_most=1), "list of strings", id="numbers in it"),
    pytest.param(lambda: asked(a=1).only("b", "c"), "known: b, c", id="one nobody knows"),
    pytest.param(lambda: asked(a=1).only(), "known: none", id="one where there is none"),
    pytest.param(lambda: asked().subject(), "name or identity", id="nobody named"),
]


@pytest.mark.parametrize(("call", "told"), WRONG)
def test_an_argument_of_another_kind_is_a_bad_request(call: object, told: str) -> None:
    assert callable(call)
    with pytest.raises(Refused, match=told) as refused:
        call()
    assert refused.value.status == 400


def test_name_or_identity_says_which() -> None:
    assert Request(operation="X", type="t", identity="i").subject() == "i"
    assert Request(operation="X", type="t", name="n", identity="i").subject() == "n"
