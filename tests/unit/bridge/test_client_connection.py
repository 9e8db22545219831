"""The client's end of a connection: what a hostile or strange broker may send, and flow control."""

from __future__ import annotations

import random

import pytest

from broker.amqp.encode import BytesWriter
from broker.amqp.frames import AMQP_HEADER, SASL_HEADER, put_frame, put_sasl_frame
from broker.amqp.outcomes import ACCEPTED, RELEASED, DeliveryState, Error, Received, Rejected
from broker.amqp.performatives import (
    RECEIVER,
    SENDER,
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Flow,
    Open,
    Performative,
)
from broker.amqp.sasl_frames import SaslMechanisms, SaslOutcome
from broker.amqp.terminus import Source, Target
from broker.bridge.client_connection import ClientConnection
from broker.bridge.client_frames import FRAME_SIZE_MAX, HANDLE_MAX
from broker.bridge.client_links import RESPONSE_BYTES_MAX, RESPONSES, SendingLink
from tests.support.frames import Disposition, Transfer, frame, frames_in, message


def frames(*bodies: Performative, sasl: bool = False) -> bytes:
    """Return frames on channel 0."""
    out = BytesWriter()
    for body in bodies:
        (put_sasl_frame(out, body) if sasl else put_frame(out, 0, body))
    return out.getvalue()


OPEN = Open(container_id="there", max_frame_size=1000)
BEGIN = Begin(remote_channel=0, next_outgoing_id=5, incoming_window=10, outgoing_window=10)


def connected(*, window: int = 10) -> ClientConnection:
    """Return a connection that is open, without a login."""
    connection = ClientConnection(container_id="here", host="there", logs_in=False)
    begin = Begin(remote_channel=0, next_outgoing_id=5, incoming_window=window, outgoing_window=10)
    connection.receive(AMQP_HEADER + frames(OPEN, begin))
    connection.take()
    return connection


def attached(connection: ClientConnection, *, credit: int = 100, settled: bool) -> SendingLink:
    """Return a link on which messages can be sent."""
    link = connection.sender("out", "q", {}, settled=settled)
    connection.receive(
        frames(
            Attach(name="out", handle=7, role=RECEIVER, target=Target(address="q")),
            Flow(
                next_incoming_id=0,
                incoming_window=int(connection.window_left),
                next_outgoing_id=5,
                outgoing_window=10,
                handle=7,
                delivery_count=0,
                link_credit=credit,
            ),
        )
    )
    connection.take()
    return link


def test_a_login_and_an_open_piece_by_piece() -> None:
    connection = ClientConnection(container_id="here", host="there", logs_in=True)
    assert connection.take() == SASL_HEADER
    for byte in SASL_HEADER + frames(SaslMechanisms(["PLAIN"]), sasl=True):
        connection.receive(bytes([byte]))
    assert connection.mechanisms == ["PLAIN"]
    connection.choose("PLAIN", b"x")
    connection.receive(frames(SaslOutcome(0), sasl=True))
    assert connection.outcome == 0
    assert AMQP_HEADER in connection.take()
    connection.receive(AMQP_HEADER + frames(OPEN, BEGIN))
    assert connection.remote is not None
    assert (connection.has_begun, connection.failure) == (True, "")


ENDS = [
    # the input behind the open, a part of the failure
    pytest.param(frames(Close()), "has ended the connection", id="close"),
    pytest.param(frames(End()), "has ended the session", id="end"),
    pytest.param(
        frames(Close(error=Error(condition="amqp:not-allowed", description="no"))),
        "amqp:not-allowed: no",
        id="close with an error",
    ),
    pytest.param(
        frames(Open(container_id="there", max_frame_size=511)), "at least 512", id="tiny frames"
    ),
    pytest.param(b"\xff\xff\xff\xff\x02\x00\x00\x00", "a frame of", id="too large a frame"),
    pytest.param(b"\x00\x00\x00\x04\x02\x00\x00\x00", "a frame of", id="too small a frame"),
    pytest.param(b"\x00\x00\x00\x09\x02\x01\x00\x00\x40", "of type 1", id="a SASL frame"),
    pytest.param(b"\x00\x00\x00\x09\x02\x00\x00\x00\x40", "decode", id="no performative"),
    pytest.param(
        frames(Attach(name="x", handle=0, role=SENDER, source=Source(address="q"))),
        "nobody has asked for",
        id="an attach",
    ),
    pytest.param(frame(Transfer(handle=0, delivery_id=0)), "receives nothing", id="a transfer"),
]


@pytest.mark.parametrize(("data", "said"), ENDS)
def test_what_ends_a_connection(data: bytes, said: str) -> None:
    connection = connected()
    connection.receive(data)
    assert said in connection.failure
    before = connection.failure
    connection.receive(frames(OPEN))
    assert connection.failure == before


VALID = frames(
    Attach(name="out", handle=7, role=RECEIVER, target=Target(address="q")),
    Flow(next_incoming_id=0, incoming_window=9, next_outgoing_id=5, outgoing_window=9, handle=7),
) + frame(Disposition(role=True, first=0, last=3, settled=True, state=ACCEPTED))


def test_damaged_frames_end_the_connection_or_are_read() -> None:
    chosen = random.Random(7)
    ended = 0
    for _ in range(2000):
        connection = connected()
        connection.sender("out", "q", {}, settled=False)
        data = bytearray(VALID)
        for _ in range(chosen.randint(1, 4)):
            data[chosen.randrange(len(data))] = chosen.randrange(256)
        connection.receive(bytes(data))
        ended += bool(connection.failure)
        assert "cannot be read" not in connection.failure
    assert ended > 500


def test_a_redirect_is_not_followed() -> None:
    connection = connected()
    there: dict[str, object] = {"network-host": "elsewhere", "port": 1}
    error = Error(condition="amqp:connection:redirect", description="go", info=there)
    connection.receive(frames(Close(error=error)))
    assert connection.failure == "amqp:connection:redirect: go"


def test_something_else_than_a_broker() -> None:
    connection = ClientConnection(container_id="here", host="there", logs_in=True)
    connection.receive(b"HTTP/1.1 400 Bad Request\r\n")
    assert "no broker of AMQP 1.0" in connection.failure


def test_messages_within_credit_window_and_frame_size() -> None:
    connection = connected(window=4)
    link = attached(connection, credit=3, settled=True)
    link.send(b"", b"a", 0)
    link.send(b"h", b"b" * 1500, 1)  # two frames
    assert connection.window_left == 1
    link.send(b"", b"c" * 1500, 2)  # one frame fits into the window
    assert not link.is_whole()
    assert not link.has_room()
    assert [each.size <= 1000 for each in frames_in(connection.take())] == [True] * 4
    connection.receive(
        frames(Flow(next_incoming_id=4, incoming_window=4, next_outgoing_id=5, outgoing_window=10))
    )
    assert link.go_on()
    assert link.is_whole()
    assert not link.go_on()
    assert (link.sent, link.credit) == (3, 0)
    assert not link.has_room()


NOT_ALLOWED = Error(condition="amqp:not-allowed", description="no")

OUTCOMES = [
    # the outcome of the second of three messages, the refused places, whether it was given back
    (ACCEPTED, [], False),
    (Rejected(NOT_ALLOWED), [(1, "amqp:not-allowed: no")], False),
    (Rejected(), [(1, "rejected")], False),
    (RELEASED, [], True),
    (Received(section_number=0, section_offset=0), [], True),
    (None, [], True),
]


@pytest.mark.parametrize(("state", "refused", "is_returned"), OUTCOMES)
@pytest.mark.requirement("BRG-08")
def test_outcomes(
    state: DeliveryState | None, refused: list[tuple[int, str]], is_returned: bool
) -> None:
    connection = connected()
    link = attached(connection, settled=False)
    for place in range(3):
        link.send(b"", message(), place)
    for first, last, outcome in ((0, 0, ACCEPTED), (1, 1, state), (2, 2, ACCEPTED)):
        connection.receive(
            frame(Disposition(role=True, first=first, last=last, settled=True, state=outcome))
        )
    assert (link.unsettled, link.refused, link.is_returned) == ({}, refused, is_returned)


RANGES = [
    # first and last of a disposition, the delivery-ids of four messages that stay unsettled
    (2**32 - 2, 1, []),
    (2**32 - 1, 0, [2**32 - 2, 1]),
    (0, 2**32 - 1, []),
    (2**31, 1, []),
    (1, 2**32 - 2, [2**32 - 1, 0]),
    (2, 2**31, [2**32 - 2, 2**32 - 1, 0, 1]),
]


@pytest.mark.parametrize(("first", "last", "left"), RANGES)
def test_delivery_ids_are_serial_numbers(first: int, last: int, left: list[int]) -> None:
    connection = connected()
    link = attached(connection, settled=False)
    connection.next_delivery_id = 2**32 - 2
    for place in range(4):
        link.send(b"", message(), place)
    connection.receive(
        frame(Disposition(role=True, first=first, last=last, settled=True, state=ACCEPTED))
    )
    assert list(link.unsettled) == left


def test_a_delivery_that_is_not_settled_yet_stays() -> None:
    connection = connected()
    link = attached(connection, settled=False)
    link.send(b"", message(), 0)
    for state in (None, Received(section_number=0, section_offset=0)):
        connection.receive(
            frame(Disposition(role=True, first=0, last=0, settled=False, state=state))
        )
    assert (list(link.unsettled), link.is_returned) == ([0], False)
    assert connection.take().count(b"\x53\x15") == 0


def test_a_refused_link() -> None:
    connection = connected()
    link = connection.sender("out", "q", {}, settled=True)
    error = Error(condition="amqp:not-found", description="no q")
    connection.receive(
        frames(
            Attach(name="out", handle=7, role=RECEIVER),
            Detach(handle=7, closed=True, error=error),
        )
    )
    assert (link.is_attached, link.is_over) == (False, True)
    assert (link.condition, link.refusal) == ("amqp:not-found", "amqp:not-found: no q")


def test_a_drain_takes_the_credit() -> None:
    connection = connected()
    link = attached(connection, settled=True)
    connection.receive(
        frames(
            Flow(
                next_incoming_id=0,
                incoming_window=10,
                next_outgoing_id=5,
                outgoing_window=10,
                handle=7,
                delivery_count=0,
                link_credit=100,
                drain=True,
            )
        )
    )
    assert (link.credit, link.delivery_count) == (0, 100)


def test_an_answer_has_a_maximum_size() -> None:
    connection = connected()
    connection.receiver("in", "$management", "answers")
    connection.receive(
        frames(Attach(name="in", handle=1, role=SENDER, source=Source(address="$management")))
    )
    part = frame(Transfer(handle=1, delivery_id=0, more=True, payload=b"x" * 60_000))
    connection.receive(part)
    assert not connection.failure
    assert RESPONSE_BYTES_MAX < 2 * 60_000
    connection.receive(part)
    assert "too large" in connection.failure


ANSWERS_FROM = Attach(name="in", handle=1, role=SENDER, source=Source(address="$management"))


def test_answers_are_few_until_they_are_taken() -> None:
    connection = connected()
    link = connection.receiver("in", "$management", "answers")
    connection.receive(frames(ANSWERS_FROM))
    answer = frame(Transfer(handle=1, delivery_id=0, payload=b"x"))
    connection.receive(answer * int(RESPONSES))
    assert (connection.failure, len(link.answers)) == ("", RESPONSES)
    link.answers.clear()
    connection.receive(answer * int(RESPONSES))
    assert connection.failure == ""
    connection.receive(answer)
    assert "more answers than requests" in connection.failure


ATTACHED_TWICE = [
    pytest.param([ANSWERS_FROM, ANSWERS_FROM], "nobody has asked for", id="again"),
    pytest.param(
        [
            ANSWERS_FROM,
            Attach(name="in", handle=2, role=SENDER, source=Source(address="$management")),
        ],
        "nobody has asked for",
        id="again, with another handle",
    ),
    pytest.param(
        [ANSWERS_FROM, Attach(name="out", handle=1, role=RECEIVER, target=Target(address="q"))],
        "the handle 1",
        id="a handle that another link has",
    ),
    pytest.param(
        [Attach(name="out", handle=HANDLE_MAX + 1, role=RECEIVER, target=Target(address="q"))],
        f"the handle {HANDLE_MAX + 1}",
        id="too large a handle",
    ),
    pytest.param(
        [
            Attach(name="out", handle=1, role=RECEIVER),
            Detach(handle=1, closed=True),
            Attach(name="out", handle=1, role=RECEIVER),
        ],
        "nobody has asked for",
        id="after its detach",
    ),
]


@pytest.mark.parametrize(("sent", "said"), ATTACHED_TWICE)
def test_an_attach_comes_once(sent: list[Performative], said: str) -> None:
    connection = connected()
    connection.receiver("in", "$management", "answers")
    connection.sender("out", "q", {}, settled=True)
    connection.receive(frames(*sent))
    assert said in connection.failure


def test_handles_are_few() -> None:
    connection = connected()
    for number in range(HANDLE_MAX + 1):
        connection.sender(f"link-{number}", "q", {}, settled=True)
    with pytest.raises(Exception, match="too many links"):
        connection.sender("one more", "q", {}, settled=True)
    assert FRAME_SIZE_MAX == 65_536
