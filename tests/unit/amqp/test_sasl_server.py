"""Challenges and responses: whose turn it is, how many there are, and how large (core 5.3.2)."""

from collections.abc import Sequence

import pytest

from broker.amqp.frames import SASL_HEADER
from broker.amqp.limits import SASL_CHALLENGE_SIZE_MAX, SASL_CHALLENGES_MAX, Limits
from broker.amqp.performatives import Open
from broker.amqp.sasl_frames import (
    SASL_OK,
    SASL_SYS,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from broker.links.authenticator import Exchange
from broker.links.peer import Peer
from broker.security.entrance import Entrance
from broker.security.identity import APPLICATION, Identity
from tests.support.broker import Broker, Client, Doorman
from tests.support.frames import Body, Header, opening, sasl_frame

MECHANISM = "QUESTIONS"


class Questions(Exchange):
    """Asks its questions one after another, and lets any client in that answers them all."""

    def __init__(self, questions: Sequence[bytes]) -> None:
        self.questions = list(questions)
        self.answers: list[bytes | None] = []

    def mechanisms(self) -> list[str]:
        return [MECHANISM]

    def anonymous(self) -> Identity | None:
        return None

    def start(self, peer: Peer, mechanism: str, response: bytes | None) -> None:
        assert mechanism == MECHANISM
        self._go_on(peer, response)

    def answer(self, peer: Peer, response: bytes) -> None:
        self._go_on(peer, response)

    def _go_on(self, peer: Peer, response: bytes | None) -> None:
        self.answers.append(response)
        if self.questions:
            peer.challenged(self.questions.pop(0))
        else:
            peer.authenticated(Identity("ada", roles=frozenset({APPLICATION}), mechanism=MECHANISM))


class Asking(Doorman):
    """Begins every login with the same exchange."""

    def __init__(self, exchange: Questions) -> None:
        super().__init__()
        self.exchange = exchange

    def begin(self, entrance: Entrance) -> Exchange:  # noqa: ARG002
        return self.exchange

    def current(self, identity: Identity) -> Identity:
        return identity


def asking(*questions: bytes, limits: Limits | None = None) -> tuple[Client, Questions]:
    """Return a client that has been offered MECHANISM, and the exchange with it."""
    exchange = Questions(questions)
    client = Broker(authenticator=Asking(exchange), limits=limits).dial()
    client.send_bytes(SASL_HEADER)
    assert client.expect(Header).data == SASL_HEADER
    assert client.expect_last(SaslMechanisms).mechanisms == [MECHANISM]
    return client, exchange


INIT = sasl_frame(SaslInit(mechanism=MECHANISM, initial_response=b"hello"))


def response(data: bytes) -> bytes:
    return sasl_frame(SaslResponse(data))


def test_a_client_answers_challenges_and_enters() -> None:
    client, exchange = asking(b"first?", b"second?")
    client.send_bytes(INIT)
    assert client.expect_last(SaslChallenge).challenge == b"first?"
    client.send_bytes(response(b"1"))
    assert client.expect_last(SaslChallenge).challenge == b"second?"
    client.send_bytes(response(b"2"))
    assert client.expect_last(SaslOutcome).code == SASL_OK
    assert exchange.answers == [b"hello", b"1", b"2"]
    client.send_bytes(opening())
    client.expect(Header)
    client.expect_last(Open)
    assert (client.peer.identity.user, client.peer.identity.mechanism) == ("ada", MECHANISM)


def test_an_absent_initial_response_is_not_an_empty_one() -> None:
    client, exchange = asking(b"?")
    client.send_bytes(sasl_frame(SaslInit(mechanism=MECHANISM)))
    client.send_bytes(response(b""))
    assert exchange.answers == [None, b""]


def test_responses_may_be_sent_ahead() -> None:
    client, exchange = asking(b"first?", b"second?")
    client.send_bytes(INIT + response(b"1") + response(b"2") + opening())
    bodies = [type(body) for body in client.bodies()]
    assert bodies == [SaslChallenge, SaslChallenge, SaslOutcome, Header, Open]
    assert exchange.answers == [b"hello", b"1", b"2"]


OUT_OF_TURN: list[Body] = [
    SaslInit(mechanism=MECHANISM),
    SaslMechanisms([MECHANISM]),
    SaslChallenge(b"x"),
    SaslOutcome(SASL_OK),
]


@pytest.mark.parametrize("body", OUT_OF_TURN, ids=lambda body: type(body).__name__)
def test_instead_of_a_response_the_stream_ends_at(body: Body) -> None:
    client, exchange = asking(b"first?")
    client.send_bytes(INIT)
    client.expect_last(SaslChallenge)
    client.send_bytes(sasl_frame(body) + response(b"1"))
    client.expect_nothing()
    assert client.is_closed()
    assert exchange.answers == [b"hello"]
    assert client.broker.watcher.errors == []


def test_an_exchange_has_a_limited_number_of_challenges() -> None:
    client, exchange = asking(*[b"more?"] * (SASL_CHALLENGES_MAX + 1))
    client.send_bytes(INIT)
    for _ in range(SASL_CHALLENGES_MAX):
        client.expect_last(SaslChallenge)
        client.send_bytes(response(b"no"))
    assert client.expect_last(SaslOutcome).code == SASL_SYS
    assert client.is_closed()
    assert len(exchange.answers) == SASL_CHALLENGES_MAX + 1


def test_the_largest_challenge_fits_into_a_frame_of_512_bytes() -> None:
    client, _ = asking(bytes(SASL_CHALLENGE_SIZE_MAX))
    client.send_bytes(INIT)
    (frame,) = client.frames()
    assert isinstance(frame.body, SaslChallenge)
    assert frame.size <= 512


def test_a_larger_challenge_ends_the_exchange() -> None:
    client, _ = asking(bytes(SASL_CHALLENGE_SIZE_MAX + 1))
    client.send_bytes(INIT)
    assert client.expect_last(SaslOutcome).code == SASL_SYS
    assert client.is_closed()


def test_all_rounds_have_one_deadline() -> None:
    client, _ = asking(*[b"more?"] * SASL_CHALLENGES_MAX, limits=Limits(handshake_timeout_ms=1000))
    client.send_bytes(INIT)
    for _ in range(4):
        client.expect_last(SaslChallenge)
        client.broker.advance(240)
        client.send_bytes(response(b"no"))
    client.expect_last(SaslChallenge)
    client.broker.advance(40)
    assert client.is_closed()


def test_a_challenge_for_a_client_that_has_gone_is_lost() -> None:
    client, _ = asking()
    client.hang_up()
    client.peer.challenged(b"still there?")
    client.expect_nothing()
    assert client.broker.watcher.errors == []
