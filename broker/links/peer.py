"""One connected client: the owner of its `Connection`, and its use of the container."""

from __future__ import annotations

from typing import Final, NoReturn, final

from mypy_extensions import i64

from broker.amqp.connection import Connection
from broker.amqp.deadlines import NO_DEADLINE
from broker.amqp.errors import (
    CONNECTION_FORCED,
    UNAUTHORIZED_ACCESS,
    ConnectionFault,
    LinkFault,
)
from broker.amqp.events import ConnectionOwner
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.lifecycle import ConnectionState
from broker.amqp.link import Link
from broker.amqp.outgoing_link import OutgoingLink
from broker.amqp.performatives import Attach, Open
from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK, SASL_SYS_TEMP
from broker.amqp.session import Session
from broker.amqp.terminus import Coordinator
from broker.links.access import AT_ONCE, CONNECT, RelayRights, Right, demand_terminus
from broker.links.attach import DELAYED_DELIVERY, consume_request, publish_request
from broker.links.authenticator import Exchange
from broker.links.container import Container
from broker.links.coordinator import LinkCoordinator
from broker.links.dynamic import DynamicNodes
from broker.links.ending import ending_of_connection
from broker.links.incoming import ProducerEndpoint
from broker.links.late_outcomes import LateOutcomes
from broker.links.lookup import Lookup
from broker.links.outgoing import ConsumerEndpoint
from broker.links.peer_timers import ConnectionTimer, DeferredOutput, InputPause
from broker.links.refusal import as_link_fault
from broker.links.rights_review import LOGIN_ENDED
from broker.links.subscriber import OFFERED_BY_SUBSCRIPTIONS
from broker.links.transactions import Transactions
from broker.links.transport import Transport
from broker.links.uniqueness import SOLE_CONNECTION, Claim, agreed, claim_of
from broker.links.user_limits import Usage
from broker.routing.addresses.address import Address
from broker.routing.credit.quota import Quota
from broker.routing.errors import NotPermitted, RoutingError
from broker.routing.queues.node import Node
from broker.routing.queues.queue import Queue
from broker.routing.termini.acquisition_records import DeferrableOutput
from broker.security.decision import Decision
from broker.security.entrance import Entrance
from broker.security.identity import NOT_LOGGED_IN, Identity
from broker.security.resources import CONNECTION, Resource
from broker.stats import LOGIN_FAILED, LOGIN_OK, LOGIN_UNDECIDED

ANONYMOUS_RELAY: Final = "ANONYMOUS-RELAY"
ESTABLISHMENT_FAILED: Final = "amqp:connection-establishment-failed"

OFFERED: Final = (ANONYMOUS_RELAY, DELAYED_DELIVERY, SOLE_CONNECTION, *OFFERED_BY_SUBSCRIPTIONS)
"""Capabilities that the broker's open offers (CON-07)."""


@final
class Peer(ConnectionOwner, DeferrableOutput):
    """A connected client; `is_open` from its admission to its end.

    `identity` is who it is, from the end of its login on; `hostname` is what its open named, the
    host that it believes to be connected to. `quota` are the rates of its user, None without any.
    `blocked_since_ms` is when its socket stopped taking output, NO_DEADLINE while it takes output.
    `replies` are the queues in which the broker's responses wait for it, by reply-to address.
    `transactions` are those that it has declared and not discharged. `late_outcomes` are of links
    that it has detached, and whose deliveries it may still settle.
    `relay_rights` remembers to which addresses it may send through the anonymous relay.
    """

    def __init__(self, container: Container, transport: Transport, entrance: Entrance) -> None:
        self.container: Final = container
        self.entrance: Final = entrance
        self.id: Final[i64] = container.next_peer_id()
        self._counts: Final = container.stats.listener(entrance.listener)
        self._mechanism = ""  # of the login under way
        self.container_id = ""
        self.hostname = ""
        self.claim: Claim = Claim(exclusive=False)
        self.is_open = False
        self.usage: Usage | None = None  # of its user, while the connection is registered
        self.quota: Quota | None = None
        self.rests = False  # enough of its frames were handled in this turn of the event loop
        self.replies: Final[dict[str, Queue]] = {}
        self.transactions: Final = Transactions(container)
        self.dynamic: Final = DynamicNodes(self.id, container.router)
        self.late_outcomes: Final[dict[LateOutcomes, None]] = {}
        self.blocked_since_ms: i64 = NO_DEADLINE
        self._transport: Transport | None = transport
        self._withheld: i64 = 0
        self._is_due = False
        self._input_holds: i64 = 0
        self._alarm: Final = ConnectionTimer(self)
        exchange = container.authenticator.begin(entrance)
        anonymous = exchange.anonymous()
        self.identity: Identity = NOT_LOGGED_IN if anonymous is None else anonymous
        self._exchange: Exchange | None = exchange
        self.relay_rights: Final = RelayRights()
        # the rights that the attach under way demands; None outside of one
        self._needed: list[Right] | None = None
        self.connection: Final = Connection(
            self,
            container.limits,
            container_id=container.name,
            mechanisms=exchange.mechanisms(),
            requires_sasl=anonymous is None,
            now_ms=container.clock.now_ms(),
        )
        self.deadline_changed()

    def is_live(self) -> bool:
        """Return whether the connection is open, and neither end is closing it."""
        return self.connection.state is ConnectionState.OPENED

    # -- from the socket

    def cut_if_blocked(self) -> None:
        """End the connection at once if its client does not read what is sent."""
        transport = self._transport
        if transport is not None and transport.unsent_bytes() > 0:
            transport.abort()

    def receive(self, data: bytes) -> None:
        """Process `data` that the client sent, and run a round of work."""
        container = self.container
        size = i64(len(data))
        self._counts.received_bytes += size
        if self.quota is not None:
            self.quota.received(size)
        changes = self._begin_input()
        self.connection.receive(data, container.clock.now_ms())
        self._end_input(changes)
        container.run_round()

    def judged_enough(self) -> None:
        """Handle no more frames in this turn: messages to topics have cost enough evaluations."""
        if not self.rests:
            self.connection.hold_frames()
            self.input_rests()

    def input_rests(self) -> None:
        self.rests = True
        self.hold_input()
        self.container.router.timer_queue.at(self.container.clock.now_ms(), InputPause(self))

    def go_on(self, now_ms: i64) -> None:
        """Process the frames that wait since `input_rests`; a round of work follows the timers."""
        self.rests = False
        changes = self._begin_input()
        self.connection.go_on(now_ms)
        self._end_input(changes)
        self.release_input()

    def _begin_input(self) -> i64:
        """Begin to process input; return the changes of subscriptions that the page has so far."""
        container = self.container
        container.received_ms = container.clock.wall_ms()
        container.receiving = self
        return container.journal.batch.subscription_changes

    def _end_input(self, changes: i64) -> None:
        """Withhold the output if the input has changed subscriptions; report changes of routing.

        `changes` is the result of `_begin_input`. Input that changes subscriptions never turns the
        journal's page, so that all of it is counted on one. Only a login may turn it, by a round
        for another login that it displaces; its new page has no changes of subscriptions.
        """
        container = self.container
        container.receiving = None
        if container.journal.batch.subscription_changes > changes:
            self.withhold()
        if container.router.changes.found:
            container.pass_on_changes(self)

    def withhold(self) -> None:
        """Write nothing until the changes noted now are durable: the output reports them.

        A client that is told that it has subscribed must get what is published from then on, and
        a subscription that is reported as ended must not return after a crash (P1). All later
        output waits as well, to keep the order.
        """
        self._withheld += 1
        self.container.journal.submit(DeferredOutput(self))

    def withholds(self) -> bool:
        """Return whether there is output that the client may not get yet."""
        return self._withheld > 0

    def answers_are_durable(self) -> None:
        """Resume output, unless it reports further changes that are not durable yet."""
        self._withheld -= 1
        if self._withheld == 0 and self._is_due:
            self._is_due = False
            self.container.touched.append(self)

    def lost(self) -> None:
        """End the connection, because its socket is lost."""
        self._transport = None
        self.connection.receive_eof()
        self.container.run_round()

    def output_blocked(self) -> None:
        """Note that the socket takes no output for now: its client does not read."""
        self.blocked_since_ms = self.container.clock.now_ms()
        self.connection.output_blocked()

    def stalled(self, timeout_ms: i64) -> None:
        """Report that the connection is cut, since its client read nothing for `timeout_ms`."""
        container = self.container
        container.stats.connections_stalled += 1
        self.connection.end_reason = f"cut: its client read nothing for {timeout_ms} ms"
        container.watcher.stalled(self, int(timeout_ms))

    def output_drained(self) -> None:
        """Resume output: the socket takes it again."""
        self.blocked_since_ms = NO_DEADLINE
        self.connection.output_drained()
        self.container.run_round()

    def hold_input(self) -> None:
        """Stop reading from the client, which outpaces the broker; each hold must be released."""
        self._input_holds += 1
        if self._input_holds == 1 and self._transport is not None:
            self._transport.pause()
            self.connection.times.hold()

    def release_input(self) -> None:
        """Release one hold; read from the client again if it was the last."""
        self._input_holds -= 1
        if self._input_holds == 0 and self._transport is not None:
            self._transport.resume()
            times = self.connection.times
            times.release(self.container.clock.now_ms())
            self.connection.deadline_at(times.earliest())

    def write(self, now_ms: i64) -> None:
        """Pass all pending output to the socket, unless output is withheld."""
        if self._withheld > 0:
            self._is_due = True
            return
        connection = self.connection
        chunks = connection.data_to_send(now_ms)
        transport = self._transport
        if transport is None:
            return
        sent: i64 = 0
        for chunk in chunks:
            sent += i64(len(chunk))
        self._counts.sent_bytes += sent
        transport.write(chunks)
        if connection.is_over:
            self._transport = None
            transport.close()
        else:
            connection.written()

    # -- memory

    def holds_unsettled(self) -> bool:
        """Return whether the client has deliveries that it has not settled."""
        return self.connection.channels.hold_unsettled()

    def output_bytes(self) -> i64:
        """Return the bytes of output that wait here, or in the socket's buffer, for the client."""
        transport = self._transport
        unsent: i64 = 0 if transport is None else transport.unsent_bytes()
        return self.connection.output.pending() + unsent

    def unfinished_changed(self, size: i64) -> None:
        self.container.router.memory.unfinished += size

    # -- from the connection

    def output_ready(self) -> None:
        self.container.touched.append(self)

    def deadline_changed(self) -> None:
        self._alarm.set(self.container.router.timer_queue, self.connection.next_deadline_ms)

    def authenticate(self, mechanism: str, response: bytes | None) -> None:
        self._mechanism = mechanism
        if self._exchange is not None:
            self._exchange.start(self, mechanism, response)

    def challenge_answered(self, response: bytes) -> None:
        if self._exchange is not None:
            self._exchange.answer(self, response)

    def challenged(self, challenge: bytes) -> None:
        """Send the client a challenge of its mechanism."""
        self.connection.sasl_challenge(challenge, self.container.clock.now_ms())

    def authenticated(self, identity: Identity) -> None:
        """Let the client in."""
        self.identity = identity
        self._exchange = None
        self._entered()
        self.container.stats.by.logins.add(self._mechanism, LOGIN_OK)
        self.container.watcher.authenticated(self)
        self.connection.sasl_outcome(SASL_OK, self.container.clock.now_ms())

    def _entered(self) -> None:
        if self._transport is not None:
            self._transport.entered()

    def rejected(self, reason: str) -> None:
        """Refuse the client: wrong credentials, or a way of login that is not allowed."""
        self.container.stats.authentication_failures += 1
        self.container.stats.by.logins.add(self._mechanism, LOGIN_FAILED)
        self.container.watcher.rejected(self, reason)
        self.connection.sasl_outcome(SASL_AUTH, self.container.clock.now_ms())

    def undecided(self, reason: str) -> None:
        """Refuse the client for now: its login cannot be checked yet (sasl-code sys-temp)."""
        self.container.stats.by.logins.add(self._mechanism, LOGIN_UNDECIDED)
        self.container.watcher.undecided(self, reason)
        self.connection.sasl_outcome(SASL_SYS_TEMP, self.container.clock.now_ms())

    def opened(self, open: Open) -> None:
        container = self.container
        self._exchange = None
        self.container_id = open.container_id
        self.hostname = open.hostname or ""
        if container.group is None or container.group.leads:
            self.enter(open)
        else:
            container.group.arrived(self, open, container.clock.now_ms())

    def enter(self, open: Open) -> None:
        """Answer the client's open: the connection is open, or refused."""
        container = self.container
        try:
            container.check_open(open)
            self.claim = claim_of(open)
            self._check_login()
            self.demand(CONNECT, Resource(CONNECTION, self.entrance.listener))
            container.admit(self, open, self.claim)
        except ConnectionFault as fault:
            self.refuse_connection(fault)
            return
        except NotPermitted as refusal:
            self.refuse_connection(ConnectionFault(UNAUTHORIZED_ACCESS, str(refusal)))
            return
        self.is_open = True
        container.login_expiries.watch(self)
        self.dynamic.creator = self.identity.user
        self._entered()
        container.stats.connections_opened += 1
        self._counts.opened += 1
        self.connection.accept(
            offered_capabilities=list(OFFERED),
            properties={**container.properties(self.entrance.kind), **agreed(self.claim)},
        )
        container.watcher.opened(self)

    def _check_login(self) -> None:
        """Raise ConnectionFault if the login has ended since: reviews leave such a client out."""
        current = self.container.authenticator.current(self.identity)
        if current is None:
            raise ConnectionFault(CONNECTION_FORCED, LOGIN_ENDED)
        self.identity = current

    def refuse_connection(self, fault: ConnectionFault) -> None:
        """Answer the client's open with the broker's, and with a close."""
        stats = self.container.stats
        stats.connections_refused += 1
        stats.by.connections_refused.add(fault.condition)
        self.container.watcher.refused(self, str(fault))
        self.connection.refuse(fault, properties={ESTABLISHMENT_FAILED: True})

    def incoming_attached(self, link: IncomingLink, attach: Attach) -> None:
        try:
            self.container.check_attach(self, link, incoming=True)
            if isinstance(attach.target, Coordinator):
                LinkCoordinator(self, link).attach(attach)
                return
            request = publish_request(attach)
            self._needed = []
            demand_terminus(self, link, incoming=True)
            ProducerEndpoint(self, link, request).attach(attach)
            self._attached(link, incoming=True)
        except RoutingError as refusal:
            self._refuse(link, as_link_fault(refusal))
        except LinkFault as fault:
            self._refuse(link, fault)

    def outgoing_attached(self, link: OutgoingLink, attach: Attach) -> None:
        try:
            self.container.check_attach(self, link, incoming=False)
            self._needed = []
            if attach.source is None:
                Lookup(self, link).attach(attach)
            else:
                demand_terminus(self, link, incoming=False)
                ConsumerEndpoint(self, link).attach(attach, consume_request(attach))
            self._attached(link, incoming=False)
        except RoutingError as refusal:
            self._refuse(link, as_link_fault(refusal))
        except LinkFault as fault:
            self._refuse(link, fault)

    # -- rights

    def may(self, verb: str, resource: Resource) -> Decision:
        """Decide whether the client may do that: all rights of AMQP clients are decided here."""
        return self.container.decide(
            self.identity, verb, resource, entrance=self.entrance, client_id=self.container_id
        )

    def demand(self, verb: str, resource: Resource) -> None:
        """Raise NotPermitted unless the client may do that; count and report the refusal.

        During an attach, the right is noted as one that the link needs for as long as it lives.
        """
        decision = self.may(verb, resource)
        if not decision.allowed:
            self.deny(Right(verb, resource), decision)
        if self._needed is not None and verb not in AT_ONCE:
            self._needed.append(Right(verb, resource))

    def may_any(self, verb: str, kind: str) -> bool:
        """Return whether a rule lets the client do that with some resource of `kind`."""
        return self.container.access.may_any(self.identity, verb, kind, entrance=self.entrance)

    def deny(self, right: Right, decision: Decision) -> NoReturn:
        """Count and report that the client lacks `right`; raise NotPermitted."""
        self.container.stats.denied(right.resource.kind, right.verb)
        self.container.watcher.denied(self, right, decision)
        raise NotPermitted(decision.text(right.verb, right.resource))

    def limited(self, refusal: str) -> None:
        """Report that a limit of its user refused a request; `refusal` names the limit."""
        self.container.watcher.limited(self, refusal)

    def resolve(self, address: Address, *, create: bool = True) -> Node:
        """Return the node of `address` as `Router.resolve` does, created for this client."""
        container = self.container
        return container.router.resolve(
            address,
            container.journal.batch,
            owner=self.id,
            create=create,
            creator=self.identity.user,
        )

    def _attached(self, link: Link, *, incoming: bool) -> None:
        """Register the rights that the attach of `link` needed."""
        if self._needed:
            self.container.note_rights(self, link, self._needed, incoming=incoming)
        self._needed = None

    def transaction_failed(self, txn_id: bytes, fault: LinkFault) -> None:
        joined = self.transactions.join(txn_id)
        if joined is not None:
            joined.work.doom(fault)

    def _refuse(self, link: Link, fault: LinkFault) -> None:
        self._needed = None
        self.container.stats.links_refused += 1
        link.refuse(fault)

    def session_begun(self, session: Session) -> None:
        self.container.user_limits.check_session(self, session)

    def session_ended(self, session: Session) -> None:
        container = self.container
        for late in list(self.late_outcomes):
            if late.session is session:
                late.session_ended()
        container.router.expiries.session_ended(self.id, session.channel, container.journal.batch)

    def sessions_dropped(self) -> None:
        router, batch = self.container.router, self.container.journal.batch
        self.dynamic.connection_ended()
        for late in list(self.late_outcomes):
            late.session_ended()
        router.connection_ended(self.id, ending_of_connection(self.connection), batch)

    def ended(self) -> None:
        self._alarm.end(self.container.router.timer_queue)
        if self.container.group is not None:
            self.container.group.left(self)
        if self.is_open:
            self.is_open = False
            self.container.leave(self)
            self.container.login_expiries.forget(self)
            self.container.stats.connections_closed += 1
            self._counts.closed += 1
            self.container.watcher.closed(self, self.connection.end_reason)

    def failed(self, error: Exception) -> None:
        self.container.watcher.failed(self, error)
