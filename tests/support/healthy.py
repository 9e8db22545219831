"""A healthy client beside an attack: it must be served before, during and after it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from broker.amqp.frames import SASL_HEADER
from broker.amqp.outcomes import ACCEPTED, Accepted
from broker.amqp.performatives import RECEIVER, Attach, Flow, Open
from broker.amqp.sasl import PLAIN
from broker.amqp.sasl_frames import SASL_OK, SaslInit, SaslMechanisms, SaslOutcome
from tests.conformance.frames import Body, read_frame
from tests.support.access import OWNER, RuledUsers, session_as
from tests.support.broker import Broker, Client, Doorman
from tests.support.frames import (
    Disposition,
    Header,
    Transfer,
    attach_receiver,
    attach_sender,
    body_of,
    flow,
    frame,
    message,
    opening,
    sasl_frame,
)
from tests.support.socket_client import SocketClient

QUEUE: Final = "healthy"
"""The queue of the healthy client, which no attack names."""

EXCHANGE_CPU_S: Final = 1.0
"""Maximum CPU seconds of an exchange with a broker without sockets: about 1,000 times its time."""

EXCHANGE_S: Final = 5.0
"""Maximum seconds of an exchange on a socket, on a machine that does other things, too."""

Dial = Callable[[], SocketClient]
Login = tuple[str, bytes]
"""A SASL mechanism and its initial response."""


class HealthyClient:
    """A client of a broker without sockets that sends messages to its queue and receives them."""

    def __init__(self, broker: Broker) -> None:
        self.exchanges = 0
        self.client: Final[Client] = session_of(broker, "healthy")
        self.client.attach_sender(QUEUE)
        self.client.attach_receiver(QUEUE, handle=1)

    def exchange(self) -> None:
        """Send a message, receive and settle it; nothing else may come but credit."""
        number, client = self.exchanges, self.client
        began_s = time.thread_time()
        client.flow(handle=1, credit=1, delivery_count=number)
        client.transfer(number, b"%d" % number)
        check_exchange(client.bodies(), number)
        client.send(Disposition(role=RECEIVER, first=number, settled=True, state=ACCEPTED))
        check_exchange(client.bodies(), None)
        assert time.thread_time() - began_s < EXCHANGE_CPU_S
        self.exchanges += 1


def session_of(broker: Broker, container_id: str) -> Client:
    """Return a client with a session; it logs in if it must, and has every right there is."""
    users = broker.container.authenticator
    if isinstance(users, RuledUsers):
        return session_as(broker, OWNER, container_id)
    if not isinstance(users, Doorman) or users.anonymous:
        return broker.session(container_id)
    user, password = next(iter(users.passwords.items()))
    client = broker.dial()
    response = f"\0{user}\0{password}".encode()
    init = sasl_frame(SaslInit(mechanism=PLAIN, initial_response=response))
    client.send_bytes(SASL_HEADER + init + opening(container_id))
    kinds = [type(body) for body in client.bodies()]
    assert kinds == [Header, SaslMechanisms, SaslOutcome, Header, Open]
    client.begin()
    return client


def check_exchange(bodies: list[Body | None], number: int | None) -> None:
    """Check that message `number` was accepted and delivered, and that nothing else came."""
    rest = [body for body in bodies if not isinstance(body, Flow) and body is not None]
    delivered = [body_of(each.payload) for each in rest if isinstance(each, Transfer)]
    settled = [each.state for each in rest if isinstance(each, Disposition)]
    expected = [] if number is None else [b"%d" % number]
    assert delivered == expected, rest
    assert len(settled) == len(expected), rest
    assert all(isinstance(state, Accepted) for state in settled), rest
    assert len(rest) == 2 * len(expected), rest


class HealthySocketClient:
    """A healthy client on sockets: `dial` makes its connections, `login` is None without one."""

    def __init__(self, dial: Dial, login: Login | None) -> None:
        self.exchanges = 0
        """Messages that were sent and received, by newcomers, too."""
        self._sent = 0
        self._dial: Final = dial
        self._login: Final = login
        self._client: Final = dial()

    async def enter(self) -> None:
        await self._client.__aenter__()
        await self._begin(self._client, "healthy", QUEUE)

    async def leave(self) -> None:
        await self._client.__aexit__(None, None, None)

    async def exchange(self) -> None:
        """Send a message, receive and settle it."""
        async with asyncio.timeout(EXCHANGE_S):
            await self._exchange(self._client, self._sent)
        self._sent += 1
        self.exchanges += 1

    async def newcomer(self) -> None:
        """Connect and log in once more, and exchange a message there."""
        async with asyncio.timeout(EXCHANGE_S), self._dial() as client:
            await self._begin(client, "newcomer", "newcomer")
            await self._exchange(client, 0)
        self.exchanges += 1

    async def _begin(self, client: SocketClient, container_id: str, queue: str) -> None:
        if self._login is not None:
            client.login(*self._login)
            await client.header()
            await client.next()  # the mechanisms
            outcome = await client.next()
            assert isinstance(outcome, SaslOutcome)
            assert outcome.code == SASL_OK
        await client.open(container_id)
        await client.begin()
        client.send(attach_sender(queue), attach_receiver(queue, handle=1))
        attached = [await self._next(client) for _ in range(3)]
        assert sorted(type(each).__name__ for each in attached) == ["Attach", "Attach", "Flow"]
        assert all(each.target and each.source for each in attached if isinstance(each, Attach))

    async def _exchange(self, client: SocketClient, number: int) -> None:
        credit = flow(
            handle=1,
            credit=1,
            delivery_count=number,
            next_incoming_id=number,
            next_outgoing_id=number,
        )
        transfer = Transfer(delivery_id=number, tag=b"%d" % number, payload=message(b"%d" % number))
        client.send_bytes(frame(credit) + frame(transfer))
        got: list[Body | None] = []
        while sum(isinstance(each, Transfer | Disposition) for each in got) < 2:
            got.append(await self._next(client))
        check_exchange(got, number)
        client.send_bytes(
            frame(Disposition(role=RECEIVER, first=number, settled=True, state=ACCEPTED))
        )

    async def _next(self, client: SocketClient) -> Body | None:
        return read_frame(await client.frame()).body


class NoHarm:
    """The proof of a test of an attack that a healthy client was not harmed by it.

    The client is served when the block begins and when it ends; between, the test calls `exchange`
    at least once, while the attack goes on.
    """

    def __init__(self) -> None:
        self.was_asked = False

    @contextmanager
    def beside(self, broker: Broker, *, errors: int = 0) -> Iterator[HealthyClient]:
        """Have a healthy client; the broker must not report more than `errors` bugs."""
        self.was_asked = True
        healthy = HealthyClient(broker)
        healthy.exchange()
        yield healthy
        check_that_it_was_served(healthy.exchanges)
        healthy.exchange()
        assert len(broker.watcher.errors) == errors, broker.watcher.errors

    @asynccontextmanager
    async def beside_sockets(
        self, dial: Dial, login: Login | None = None
    ) -> AsyncIterator[HealthySocketClient]:
        """Have a healthy client on a socket."""
        self.was_asked = True
        healthy = HealthySocketClient(dial, login)
        await healthy.enter()
        try:
            await healthy.exchange()
            yield healthy
            check_that_it_was_served(healthy.exchanges)
            await healthy.exchange()
        finally:
            await healthy.leave()


def check_that_it_was_served(exchanges: int) -> None:
    """Check that there was more than the exchange before the attack."""
    assert exchanges > 1, "the healthy client was not served during the attack"
