"""The beginning of a connection: protocol headers in every state, and the broker's open."""

import pytest

from broker.amqp.frames import AMQP_HEADER, SASL_HEADER, TLS_HEADER
from broker.amqp.handshake import expects_header, header_event, our_open, wanted_header
from broker.amqp.lifecycle import ConnectionEvent, ConnectionState
from broker.amqp.limits import Limits
from broker.amqp.performatives import Open
from broker.amqp.sasl_frames import SaslMechanisms
from tests.support.broker import Broker, Doorman
from tests.support.frames import Header, opening

NOT_OURS = [
    pytest.param(TLS_HEADER, id="TLS"),
    pytest.param(b"AMQP\x00\x00\x09\x01", id="AMQP 0-9-1"),
    pytest.param(b"AMQP\x00\x01\x00\x01", id="AMQP 1.0.1"),
    pytest.param(b"AMQP\x03\x01\x01\x00", id="SASL 1.1"),
    pytest.param(b"AMQP\x01\x01\x00\x00", id="a protocol that does not exist"),
    pytest.param(b"amqp\x00\x01\x00\x00", id="AMQP in small letters"),
    pytest.param(b"GET / HT", id="HTTP"),
    pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01", id="a TLS ClientHello"),
    pytest.param(bytes(8), id="zeros"),
]


# -- which header is expected, and when


@pytest.mark.parametrize("state", ConnectionState, ids=lambda state: state.value)
def test_eight_bytes_are_a_header_while(state: ConnectionState) -> None:
    """The broker expects a header at the start, and again after SASL (5.3.2)."""
    beginnings = (ConnectionState.START, ConnectionState.AUTHENTICATED)
    assert expects_header(state) is (state in beginnings)


@pytest.mark.parametrize(
    ("header", "state", "requires_sasl", "expected"),
    [
        pytest.param(
            AMQP_HEADER,
            ConnectionState.START,
            False,
            ConnectionEvent.AMQP_HEADER_IN,
            id="AMQP at once, where nobody must authenticate",
        ),
        pytest.param(
            AMQP_HEADER, ConnectionState.START, True, None, id="AMQP at once, where one must"
        ),
        pytest.param(
            SASL_HEADER,
            ConnectionState.START,
            True,
            ConnectionEvent.SASL_HEADER_IN,
            id="SASL, where one must authenticate",
        ),
        pytest.param(
            SASL_HEADER,
            ConnectionState.START,
            False,
            ConnectionEvent.SASL_HEADER_IN,
            id="SASL, where one need not",
        ),
        pytest.param(
            AMQP_HEADER,
            ConnectionState.AUTHENTICATED,
            True,
            ConnectionEvent.AMQP_HEADER_IN,
            id="AMQP after SASL that was required",
        ),
        pytest.param(
            AMQP_HEADER,
            ConnectionState.AUTHENTICATED,
            False,
            ConnectionEvent.AMQP_HEADER_IN,
            id="AMQP after SASL that was not",
        ),
        pytest.param(SASL_HEADER, ConnectionState.AUTHENTICATED, True, None, id="SASL twice"),
        pytest.param(
            SASL_HEADER,
            ConnectionState.AUTHENTICATED,
            False,
            None,
            id="SASL twice, where once was more than enough",
        ),
    ],
)
def test_a_header_of_ours(
    header: bytes,
    state: ConnectionState,
    requires_sasl: bool,
    expected: ConnectionEvent | None,
) -> None:
    assert header_event(header, state, requires_sasl=requires_sasl) is expected


@pytest.mark.parametrize("header", NOT_OURS)
@pytest.mark.parametrize(
    "state", [ConnectionState.START, ConnectionState.AUTHENTICATED], ids=lambda each: each.value
)
@pytest.mark.parametrize(
    "requires_sasl", [pytest.param(True, id="SASL"), pytest.param(False, id="no SASL")]
)
def test_a_header_that_is_never_right(
    header: bytes, state: ConnectionState, requires_sasl: bool
) -> None:
    assert header_event(header, state, requires_sasl=requires_sasl) is None


@pytest.mark.parametrize(
    ("state", "requires_sasl", "header"),
    [
        pytest.param(ConnectionState.START, True, SASL_HEADER, id="SASL first, where required"),
        pytest.param(ConnectionState.START, False, AMQP_HEADER, id="AMQP where SASL is not"),
        pytest.param(ConnectionState.AUTHENTICATED, True, AMQP_HEADER, id="AMQP behind SASL"),
        pytest.param(
            ConnectionState.AUTHENTICATED, False, AMQP_HEADER, id="AMQP behind needless SASL"
        ),
    ],
)
def test_what_we_had_hoped_for(state: ConnectionState, requires_sasl: bool, header: bytes) -> None:
    assert wanted_header(state, requires_sasl=requires_sasl) == header
    assert header_event(header, state, requires_sasl=requires_sasl) is not None


# -- headers on the wire


@pytest.mark.parametrize("header", NOT_OURS)
def test_a_header_that_we_do_not_speak_is_answered_with_ours(header: bytes) -> None:
    client = Broker().dial()
    client.send_bytes(header + b"whatever comes behind it")
    assert client.expect_last(Header).data == AMQP_HEADER
    assert client.is_closed()


@pytest.mark.parametrize("header", [*NOT_OURS, pytest.param(AMQP_HEADER, id="AMQP")])
def test_where_one_must_authenticate_the_answer_is_the_sasl_header(header: bytes) -> None:
    broker = Broker(authenticator=Doorman({"alice": "sesame"}, anonymous=False))
    client = broker.dial()
    client.send_bytes(header + opening()[8:])
    assert client.expect_last(Header).data == SASL_HEADER
    assert client.is_closed()
    assert broker.container.peer_count() == 0


def test_a_header_may_come_byte_by_byte() -> None:
    client = Broker().dial()
    for at in range(7):
        client.send_bytes(SASL_HEADER[at : at + 1])
        client.expect_nothing()
    client.send_bytes(SASL_HEADER[7:])
    assert client.expect(Header).data == SASL_HEADER
    client.expect_last(SaslMechanisms)


def test_whatever_comes_after_the_end_is_ignored() -> None:
    client = Broker().dial()
    client.send_bytes(TLS_HEADER)
    client.expect_last(Header)
    client.send_bytes(opening())
    client.expect_nothing()


# -- the broker's open


def test_the_open_tells_what_we_are() -> None:
    limits = Limits(max_frame_size=4096, channel_max=7, idle_time_out_ms=30_000)
    client = Broker(limits=limits, product={"product": "x", "version": "1.0"}).dial()
    client.send_bytes(opening())
    assert client.expect(Header).data == AMQP_HEADER
    ours = client.expect_last(Open)
    assert ours.container_id == "broker"
    assert ours.max_frame_size == 4096
    assert ours.channel_max == 7
    assert ours.idle_time_out == 15_000  # half of the silence that the broker tolerates
    assert {"ANONYMOUS-RELAY", "sole-connection-for-container"} <= set(ours.offered_capabilities)
    assert ours.properties == {"product": "x", "version": "1.0"}


@pytest.mark.parametrize(
    ("patience", "announced"),
    [
        pytest.param(60_000, 30_000, id="half of what we bear"),
        pytest.param(60_001, 30_000, id="rather less than more than half"),
        pytest.param(0, -1, id="none"),
    ],
)
def test_the_idle_time_out_that_is_announced(patience: int, announced: int) -> None:
    """A peer that keeps the announced time by its own clock is not late by the broker's (2.4.5)."""
    ours = our_open(
        "broker",
        Limits(idle_time_out_ms=patience),
        offered_capabilities=[],
        properties={},
    )
    assert ours.idle_time_out == announced
