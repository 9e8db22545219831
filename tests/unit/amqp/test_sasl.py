"""SASL: what a PLAIN response contains, and the exchange from its header to its outcome."""

import pytest

from broker.amqp.errors import DECODE_ERROR, ConnectionFault
from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.limits import (
    BUFFER_BEFORE_OPEN,
    FRAME_BEFORE_OPEN,
    FRAME_OF_TOKEN_LOGIN,
    Limits,
)
from broker.amqp.performatives import Begin, Open
from broker.amqp.sasl import ANONYMOUS, PLAIN, plain_credentials
from broker.amqp.sasl_frames import (
    SASL_AUTH,
    SASL_OK,
    SASL_SYS_TEMP,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from broker.security.identity import Identity
from tests.support.broker import Broker, Client, Doorman
from tests.support.frames import Body, Header, frame, opening, raw_frame, sasl_frame

PASSWORDS = {"alice": "sesame"}
ALICE = SaslInit(mechanism=PLAIN, initial_response=b"\0alice\0sesame", hostname="broker")
ALICES = Identity("alice", roles=frozenset())
MALLORY = SaslInit(mechanism=PLAIN, initial_response=b"\0alice\0guess")


def negotiating(*, anonymous: bool = False, slow: bool = False) -> tuple[Client, Doorman]:
    """Return a client to which mechanisms were offered, and the authenticator that answers it."""
    doorman = Doorman(PASSWORDS, anonymous=anonymous, slow=slow)
    client = Broker(authenticator=doorman).dial()
    client.send_bytes(SASL_HEADER)
    assert client.expect(Header).data == SASL_HEADER
    client.expect_last(SaslMechanisms)
    return client, doorman


# -- PLAIN


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(b"\0alice\0sesame", ("", "alice", "sesame"), id="user and password"),
        pytest.param(b"bob\0alice\0sesame", ("bob", "alice", "sesame"), id="acting for another"),
        pytest.param("\0älicé\0sësame€".encode(), ("", "älicé", "sësame€"), id="UTF-8"),
        pytest.param(b"\0a b\0 c ", ("", "a b", " c "), id="blanks are kept"),
        pytest.param(b"\0a\0" + b"x" * 5000, ("", "a", "x" * 5000), id="a long password"),
    ],
)
def test_plain_carries(response: bytes, expected: tuple[str, str, str]) -> None:
    credentials = plain_credentials(response)
    assert (credentials.authorization, credentials.user, credentials.password) == expected


@pytest.mark.attack("A4")
@pytest.mark.parametrize(
    "response",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"alice", id="no NUL"),
        pytest.param(b"alice\0sesame", id="one NUL"),
        pytest.param(b"\0alice\0sesame\0", id="three NULs"),
        pytest.param(b"\0\0", id="NULs alone"),
        pytest.param(b"\0\0sesame", id="no user"),
        pytest.param(b"\0alice\0", id="no password"),
        pytest.param(b"\0alice\0\xff\xfe", id="a password that is not UTF-8"),
        pytest.param(b"\0\xc0\x80\0sesame", id="an overlong NUL in the user"),
        pytest.param(b"\xed\xa0\x80\0alice\0sesame", id="a surrogate in the identity"),
        pytest.param(bytes(1024 * 1024), id="a mebibyte of NULs"),
    ],
)
def test_plain_is_refused_with(response: bytes) -> None:
    with pytest.raises(ConnectionFault) as caught:
        plain_credentials(response)
    assert caught.value.condition == DECODE_ERROR
    assert "sesame" not in str(caught.value), "a fault is logged"


# -- the exchange


@pytest.mark.parametrize(
    ("doorman", "mechanisms"),
    [
        pytest.param(Doorman(), [ANONYMOUS], id="anybody"),
        pytest.param(Doorman(PASSWORDS, anonymous=False), [PLAIN], id="users"),
        pytest.param(Doorman(PASSWORDS), [PLAIN, ANONYMOUS], id="users and anybody"),
    ],
)
def test_the_mechanisms_on_offer_are_for(doorman: Doorman, mechanisms: list[str]) -> None:
    client = Broker(authenticator=doorman).dial()
    client.send_bytes(SASL_HEADER)
    assert client.expect(Header).data == SASL_HEADER
    frames = client.frames()
    assert [each.size <= 512 for each in frames] == [True], "no SASL frame is larger (5.3.1)"
    offer = frames[0].body
    assert isinstance(offer, SaslMechanisms)
    assert offer.mechanisms == mechanisms


def test_who_knows_the_password_comes_in() -> None:
    client, _ = negotiating()
    client.send_bytes(sasl_frame(ALICE))
    assert client.expect_last(SaslOutcome).code == SASL_OK
    client.send_bytes(AMQP_HEADER)
    assert client.expect_last(Header).data == AMQP_HEADER
    client.send(Open(container_id="client"))
    client.expect_last(Open)
    assert client.peer.identity.user == "alice"


def test_the_identity_is_empty_for_anonymous() -> None:
    client, _ = negotiating(anonymous=True)
    client.send_bytes(sasl_frame(SaslInit(mechanism=ANONYMOUS, initial_response=b"a trace")))
    assert client.expect_last(SaslOutcome).code == SASL_OK
    assert client.peer.identity.user == ""


def test_the_whole_exchange_may_come_in_one_piece() -> None:
    """A client need not wait for headers, mechanisms or outcome (5.3.2, RFC 4422)."""
    client = Broker(authenticator=Doorman(PASSWORDS, anonymous=False)).dial()
    begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    client.send_bytes(SASL_HEADER + sasl_frame(ALICE) + opening() + frame(begin))
    kinds = [type(body) for body in client.bodies()]
    assert kinds == [Header, SaslMechanisms, SaslOutcome, Header, Open, Begin]


@pytest.mark.attack("A5")
@pytest.mark.parametrize(
    "init",
    [
        pytest.param(MALLORY, id="a wrong password"),
        pytest.param(SaslInit(mechanism=PLAIN, initial_response=b"\0bob\0x"), id="a stranger"),
        pytest.param(SaslInit(mechanism=ANONYMOUS), id="ANONYMOUS, which is not offered"),
        pytest.param(SaslInit(mechanism="plain"), id="a mechanism in small letters"),
        pytest.param(SaslInit(mechanism="EXTERNAL"), id="a mechanism that does not exist"),
        pytest.param(SaslInit(mechanism=""), id="no mechanism"),
    ],
)
def test_who_does_not_come_in(init: SaslInit) -> None:
    """All refused clients get the same answer, which does not reveal what was wrong.

    `docs/design/hostile-input.md` A5.
    """
    client, _ = negotiating()
    client.send_bytes(sasl_frame(init) + opening())
    assert client.expect_last(SaslOutcome).code == SASL_AUTH
    assert client.is_closed()
    assert client.broker.stats.authentication_failures == 1
    assert [event.partition(":")[0] for event in client.broker.watcher.events] == ["refused "]


def test_a_peer_that_cannot_be_judged_may_try_again() -> None:
    client, _ = negotiating(slow=True)
    client.send_bytes(sasl_frame(ALICE))
    client.peer.undecided("the check is out of order")
    client.broker.container.run_round()
    assert client.expect_last(SaslOutcome).code == SASL_SYS_TEMP
    assert client.is_closed()


@pytest.mark.attack("A3")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(opening(), id="open instead of init"),
        pytest.param(frame(Open(container_id="x")), id="open without a header"),
        pytest.param(SASL_HEADER, id="the header again"),
        pytest.param(sasl_frame(SaslOutcome(SASL_OK)), id="the outcome"),
        pytest.param(sasl_frame(SaslMechanisms([ANONYMOUS])), id="mechanisms"),
        pytest.param(sasl_frame(SaslChallenge(b"x")), id="a challenge"),
        pytest.param(sasl_frame(SaslResponse(b"x")), id="a response to no challenge"),
        pytest.param(sasl_frame(Open(container_id="x")), id="open in a SASL frame"),
        pytest.param(raw_frame(b"\x00\x53\x41\xc0\x03\x01\xa3\x00"), id="init in an AMQP frame"),
        pytest.param(raw_frame(b"", kind=0), id="an empty AMQP frame"),
        pytest.param(
            raw_frame(b"", kind=1),
            id="an empty SASL frame",
        ),
        pytest.param(raw_frame(b"\x00\x53\x41\x45", kind=1), id="init without a mechanism"),
        pytest.param(raw_frame(b"\x00\x53\x41", kind=1), id="init without a list"),
        pytest.param(raw_frame(b"\x00", kind=1), id="half a descriptor"),
        pytest.param(
            int(FRAME_BEFORE_OPEN + 1).to_bytes(4) + b"\x02\x01\x00\x00", id="too large a frame"
        ),
    ],
)
def test_nobody_comes_in_by_sending(data: bytes) -> None:
    """The stream ends without an outcome, since no close exists outside of AMQP frames.

    A client cannot repair it: the broker does not read the init that follows
    (`docs/design/hostile-input.md` A3).
    """
    client, doorman = negotiating(anonymous=True)
    client.send_bytes(data + sasl_frame(SaslInit(mechanism=ANONYMOUS)))
    client.expect_nothing()
    assert client.is_closed()
    assert doorman.waiting == []
    assert client.broker.watcher.events == []
    assert client.broker.watcher.errors == []


@pytest.mark.parametrize(
    ("size", "taken"),
    [
        pytest.param(FRAME_OF_TOKEN_LOGIN, True, id="the largest"),
        pytest.param(FRAME_OF_TOKEN_LOGIN + 1, False, id="too large"),
    ],
)
@pytest.mark.requirement("SEC-07")
def test_frames_of_a_login_are_larger_where_tokens_log_in(size: int, taken: bool) -> None:
    limits = Limits(login_frame_max=FRAME_OF_TOKEN_LOGIN)
    client = Broker(limits=limits, authenticator=Doorman(slow=True)).dial()
    client.send_bytes(SASL_HEADER)
    client.bodies()
    client.send_bytes(int(size).to_bytes(4) + b"\x02\x01\x00\x00" + bytes(1000))
    assert client.is_closed() is not taken


@pytest.mark.requirement("SEC-07")
def test_an_open_is_no_larger_where_tokens_log_in() -> None:
    client = Broker(limits=Limits(login_frame_max=FRAME_OF_TOKEN_LOGIN)).dial()
    client.send_bytes(AMQP_HEADER)
    client.expect(Header)
    client.send_bytes(int(FRAME_BEFORE_OPEN + 1).to_bytes(4) + b"\x02\x00\x00\x00")
    client.expect(Open)
    client.expect_close("amqp:connection:framing-error")


@pytest.mark.parametrize(
    ("response", "kept"),
    [
        pytest.param(None, b"", id="absent"),
        pytest.param(b"", b"", id="empty"),
        pytest.param(b"\0a\0b", b"\0a\0b", id="there"),
    ],
)
def test_an_initial_response_that_is(response: bytes | None, kept: bytes) -> None:
    client, doorman = negotiating(slow=True)
    client.send_bytes(sasl_frame(SaslInit(mechanism=PLAIN, initial_response=response)))
    assert doorman.waiting == [(client.peer, PLAIN, kept)]


def test_a_malformed_response_ends_the_stream() -> None:
    client, _ = negotiating()
    client.send_bytes(sasl_frame(SaslInit(mechanism=PLAIN, initial_response=b"alice")))
    client.expect_nothing()
    assert client.is_closed()
    assert client.broker.watcher.errors == []


@pytest.mark.parametrize(
    "next_frame",
    [
        pytest.param(ALICE, id="a second init"),
        pytest.param(SaslOutcome(SASL_OK), id="an outcome of its own"),
    ],
)
def test_nothing_of_sasl_comes_behind_the_outcome(next_frame: Body) -> None:
    """The broker answers anything but the AMQP header with the AMQP header, and closes (2.2)."""
    client, doorman = negotiating()
    client.send_bytes(sasl_frame(ALICE) + sasl_frame(next_frame) + opening())
    assert client.expect(SaslOutcome).code == SASL_OK
    assert client.expect_last(Header).data == AMQP_HEADER
    assert client.is_closed()
    assert doorman.waiting == []


def test_sasl_is_not_begun_anew() -> None:
    client, _ = negotiating()
    client.send_bytes(sasl_frame(ALICE) + SASL_HEADER)
    client.expect(SaslOutcome)
    assert client.expect_last(Header).data == AMQP_HEADER
    assert client.is_closed()


# -- a late outcome


def test_input_waits_for_the_outcome() -> None:
    client, doorman = negotiating(slow=True)
    client.send_bytes(sasl_frame(ALICE))
    for at in range(len(opening())):
        client.send_bytes(opening()[at : at + 1])
    client.expect_nothing()
    doorman.answer()
    assert [type(body) for body in client.bodies()] == [SaslOutcome, Header, Open]


def test_nothing_may_wait_for_the_outcome() -> None:
    client, doorman = negotiating(slow=True)
    client.send_bytes(sasl_frame(ALICE))
    doorman.answer()
    assert client.expect_last(SaslOutcome).code == SASL_OK
    client.send_bytes(opening())
    client.expect(Header)
    client.expect_last(Open)


def test_what_waits_for_a_refusal_is_dropped() -> None:
    client, doorman = negotiating(slow=True)
    client.send_bytes(sasl_frame(MALLORY) + opening())
    client.expect_nothing()
    doorman.answer()
    assert client.expect_last(SaslOutcome).code == SASL_AUTH
    assert client.is_closed()


def test_a_second_init_does_not_reach_the_authenticator() -> None:
    client, doorman = negotiating(slow=True)
    client.send_bytes(sasl_frame(MALLORY) + sasl_frame(ALICE))
    client.send_bytes(sasl_frame(ALICE))
    assert len(doorman.waiting) == 1
    doorman.answer()
    assert client.expect_last(SaslOutcome).code == SASL_AUTH


def test_an_outcome_for_a_peer_that_has_gone_is_lost() -> None:
    client, doorman = negotiating(slow=True)
    client.send_bytes(sasl_frame(ALICE))
    client.hang_up()
    doorman.answer()
    client.expect_nothing()
    assert client.broker.watcher.errors == []


def test_a_second_outcome_is_lost() -> None:
    client, _ = negotiating(slow=True)
    client.send_bytes(sasl_frame(ALICE))
    client.peer.authenticated(ALICES)
    client.peer.authenticated(ALICES)
    client.broker.container.run_round()
    assert client.expect_last(SaslOutcome).code == SASL_OK
    assert not client.is_closed()


@pytest.mark.attack("A2")
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(BUFFER_BEFORE_OPEN + 1, id="in one piece"),
        pytest.param(8192, id="in large pieces"),
        pytest.param(777, id="in small pieces"),
    ],
)
def test_little_is_kept_of_a_peer_that_is_not_authenticated(size: int) -> None:
    """Input after an unanswered init is kept up to 64 KiB (`docs/design/hostile-input.md` A2)."""
    client, doorman = negotiating(slow=True)
    client.send_bytes(sasl_frame(ALICE))
    kept = 0
    while kept + size <= BUFFER_BEFORE_OPEN:
        client.send_bytes(bytes(size))
        kept += size
    assert not client.is_closed()
    client.send_bytes(bytes(size))
    client.expect_nothing()
    assert client.is_closed()
    doorman.answer()
    client.expect_nothing()
