"""A polite broker that accepts everything and delivers nothing.

It has this project's engine, so headers, frames, sessions, credit and settlement are in order. It
has no queues: each link is attached as the peer asked, each message is accepted and dropped, each
transaction is declared and discharged. A case that passes on it tests manners alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from broker.amqp.connection import Connection
from broker.amqp.delivery import Delivery
from broker.amqp.errors import LinkFault
from broker.amqp.events import ConnectionOwner, IncomingOwner, OutgoingOwner
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.limits import Limits
from broker.amqp.outcomes import (
    ACCEPTED,
    Declared,
    DeliveryState,
    TransactionalState,
)
from broker.amqp.outgoing_link import OutgoingLink
from broker.amqp.performatives import Attach, Open
from broker.amqp.sections import split
from broker.amqp.session import Session
from broker.amqp.terminus import Coordinator, Source, Target
from broker.amqp.transactions import (
    LOCAL_TRANSACTIONS,
    MULTI_SSNS_PER_TXN,
    MULTI_TXNS_PER_SSN,
    Declare,
    read_command,
)

CREDIT: Final = 100
TICK_S: Final = 0.02
"""Seconds between two looks at a connection's deadlines: heartbeats and answers to echoes."""

IDLE_MS: Final = 2000
MESSAGE_MAX: Final = 2_000_000
"""Limits that the cases on them soon reach."""

MECHANISMS: Final = ["PLAIN", "ANONYMOUS"]

OFFERED: Final = [
    "ANONYMOUS-RELAY",
    "DELAYED_DELIVERY",
    "SHARED-SUBS",
    "sole-connection-for-container",
]
"""Capabilities of extensions, offered so that the cases on them apply."""

COORDINATOR: Final = Coordinator(
    capabilities=[LOCAL_TRANSACTIONS, MULTI_TXNS_PER_SSN, MULTI_SSNS_PER_TXN]
)


class AcceptingTarget(IncomingOwner):
    """A target of messages and commands, all of which it accepts."""

    def __init__(self, link: IncomingLink) -> None:
        self._link: Final = link
        self.is_coordinator = False
        self._declared = 0

    def delivered(self, delivery_id: int, data: bytes, at: int, end: int, settled: bool) -> None:
        if self.is_coordinator and isinstance(
            read_command(data, split(data, at, end).body, end), Declare
        ):
            self._declared += 1
            self._link.settle(delivery_id, Declared(b"%d" % self._declared))
        elif not settled:
            self._link.accept_delivery(delivery_id)

    def posted(
        self,
        delivery_id: int,
        data: bytes,  # noqa: ARG002 - dropped
        at: int,  # noqa: ARG002
        end: int,  # noqa: ARG002
        *,
        settled: bool,
        txn_id: bytes,
    ) -> None:
        if not settled:
            self._link.accept_posting(
                delivery_id, TransactionalState(txn_id=txn_id, outcome=ACCEPTED)
            )

    def credit_low(self) -> None:
        self._link.grant(CREDIT)

    def incoming_ended(self, closed: bool) -> None: ...


class EmptySource(OutgoingOwner):
    """A source that has no message, and answers a drain."""

    def __init__(self, link: OutgoingLink) -> None:
        self._link: Final = link

    def credit_changed(self, drain: bool) -> None:
        if drain:
            self._link.drained()

    def acquire_within(self, txn_id: bytes | None) -> None: ...

    def accepted(self, deliveries: list[Delivery]) -> None: ...

    def settled(self, delivery: Delivery, state: DeliveryState | None) -> None: ...

    def retired(self, delivery: Delivery, state: TransactionalState, settled: bool) -> None: ...

    def outgoing_ended(self, closed: bool, unsettled: list[Delivery]) -> None: ...


class NullConnection(asyncio.Protocol, ConnectionOwner):
    """A connection of the null broker: its socket, and the owner of the engine's connection."""

    def __init__(self) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._nodes = 0
        self._has_output = False
        self._transport: asyncio.Transport | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self.connection: Final = Connection(
            self,
            Limits(idle_time_out_ms=IDLE_MS, max_message_size=MESSAGE_MAX),
            container_id="null-broker",
            mechanisms=MECHANISMS,
            requires_sasl=False,
            now_ms=self._now_ms(),
        )

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    # -- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._tick()

    def data_received(self, data: bytes) -> None:
        self.connection.receive(data, self._now_ms())
        self._write()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        self._transport = None
        self.connection.receive_eof()
        if self._ticking is not None:
            self._ticking.cancel()

    def _tick(self) -> None:
        self._ticking = self._loop.call_later(TICK_S, self._tick)
        now_ms = self._now_ms()
        if now_ms >= self.connection.next_deadline_ms:
            self.connection.tick(now_ms)
        self._write()

    def _write(self) -> None:
        if self._transport is None or not self._has_output:
            return
        self._has_output = False
        self._transport.writelines(self.connection.data_to_send(self._now_ms()))
        self.connection.written()
        if self.connection.is_over:
            self._transport.close()

    # -- from the engine

    def output_ready(self) -> None:
        self._has_output = True

    def deadline_changed(self) -> None: ...

    def authenticate(self, mechanism: str, response: bytes | None) -> None:  # noqa: ARG002
        """Let every client in."""
        self.connection.sasl_outcome(0, self._now_ms())

    def challenge_answered(self, response: bytes) -> None:
        raise AssertionError(f"no challenge was sent that {response!r} could answer")

    def input_rests(self) -> None:
        self.connection.hold_frames()
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self.connection.go_on(self._now_ms())
        self._write()

    def opened(self, open: Open) -> None:  # noqa: A002 - the engine's word
        offered = [*OFFERED, *(each for each in open.desired_capabilities if each not in OFFERED)]
        self.connection.accept(offered_capabilities=offered, properties=open.properties)

    def incoming_attached(self, link: IncomingLink, attach: Attach) -> None:
        owner = AcceptingTarget(link)
        owner.is_coordinator = isinstance(attach.target, Coordinator)
        link.accept(
            owner,
            source=attach.source,
            target=self._target(attach.target),
            offered_capabilities=attach.desired_capabilities,
            properties=attach.properties,
        )
        link.grant(CREDIT)

    def outgoing_attached(self, link: OutgoingLink, attach: Attach) -> None:
        target = attach.target if isinstance(attach.target, Target) else None
        link.accept(
            EmptySource(link),
            source=self._source(attach.source),
            target=target,
            offered_capabilities=attach.desired_capabilities,
        )

    def _target(self, asked: Target | Coordinator | None) -> Target | Coordinator:
        """Return what was asked for, with a name if the broker was to give one."""
        if isinstance(asked, Target) and asked.dynamic:
            return Target(
                address=self._new_name(),
                dynamic=True,
                dynamic_node_properties=asked.dynamic_node_properties,
                capabilities=asked.capabilities,
            )
        if isinstance(asked, Coordinator):
            return COORDINATOR
        return Target() if asked is None else asked

    def _source(self, asked: Source | None) -> Source:
        """Return what was asked for, with a name if the broker was to give one."""
        if asked is None or not asked.dynamic:
            return Source() if asked is None else asked
        return Source(
            address=self._new_name(),
            dynamic=True,
            dynamic_node_properties=asked.dynamic_node_properties,
            filter=asked.filter,
            default_outcome=asked.default_outcome,
            outcomes=asked.outcomes,
            capabilities=asked.capabilities,
        )

    def _new_name(self) -> str:
        self._nodes += 1
        return f"dynamic-{id(self):x}-{self._nodes}"

    def session_ended(self, session: Session) -> None: ...

    def sessions_dropped(self) -> None: ...

    def transaction_failed(self, txn_id: bytes, fault: LinkFault) -> None: ...

    def ended(self) -> None: ...

    def failed(self, error: Exception) -> None:
        raise error


@asynccontextmanager
async def null_broker() -> AsyncIterator[int]:
    """Run the null broker on 127.0.0.1; yield its port."""
    server = await asyncio.get_running_loop().create_server(NullConnection, "127.0.0.1", 0)
    async with server:
        port: int = server.sockets[0].getsockname()[1]
        yield port
    # let the server's ends of the connections notice that the clients are gone
    await asyncio.sleep(0)
