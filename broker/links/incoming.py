"""Incoming messages: from a link to a node, and their outcomes back to the sender."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import (
    MESSAGE_SIZE_EXCEEDED,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    UNKNOWN_ID,
    Fault,
    LinkFault,
)
from broker.amqp.events import IncomingOwner, Intake
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.limits import STREAMED_FROM
from broker.amqp.outcomes import ACCEPTED, Rejected, TransactionalState, error_of
from broker.amqp.performatives import SND_SETTLED, Attach
from broker.amqp.sections import Sections
from broker.amqp.terminus import LINK_DETACH, NOT_DURABLE, UNSETTLED_STATE, Target
from broker.amqp.types import Symbol
from broker.amqp.unsettled_map import read_unsettled_map
from broker.journal import YIELD_EVERY, Waiter
from broker.large_body import LargeBody
from broker.links.access import (
    SEND,
    SENDING,
    UserIdRight,
    conceal_kind,
    demand_node,
    demand_relay,
    demand_staging,
    demand_temporary,
    existing_node,
)
from broker.links.addressed import kind_of_destination, unaddressed
from broker.links.attach import (
    PublishRequest,
    delete_policy,
    is_jms_temporary,
    may_reject,
    offered_to_sender,
)
from broker.links.credited_producer import LARGE_FROM, CreditedProducer
from broker.links.dynamic import DynamicTerminus, dynamic_properties, dynamic_terms
from broker.links.kept_source import claim_terminus
from broker.links.kept_target import KeptTarget, lasting_target
from broker.links.large import LargeIntake
from broker.links.refusal import ToldFault, as_fault, as_link_fault
from broker.links.service import REQUEST_CREDIT, ServiceNode
from broker.links.staging import stated
from broker.links.transactions import OpenTransaction
from broker.message import Message, Origin, opaque_message, read_message
from broker.routing.batches.staged_transaction import StagedTransaction
from broker.routing.credit.credit_pool import CreditPool
from broker.routing.errors import RoutingError
from broker.routing.queues.node import QUEUE, Node
from broker.routing.topics.lifetime import ExpiryPolicy

if TYPE_CHECKING:
    from broker.links.peer import Peer


@final
class Receipt(Waiter):
    """A delivery that is accepted once its message is durable, or consumed (PRD-03)."""

    def __init__(self, credit: CreditedProducer, delivery_id: i64) -> None:
        self._credit: Final = credit
        self._delivery_id: Final[i64] = delivery_id
        credit.unsettled += 1

    def committed(self) -> None:
        self._credit.accept(self._delivery_id)


@final
class ProducerEndpoint(IncomingOwner):
    """The owner of an incoming link to one node or, as the anonymous relay, to any node."""

    def __init__(self, peer: Peer, link: IncomingLink, request: PublishRequest) -> None:
        self._peer: Final = peer
        self._container: Final = peer.container
        self._link: Final = link
        self._request: Final = request
        container = peer.container
        self._credit: Final = CreditedProducer(peer, link, container.credit)
        self._origin = Origin(peer.container_id)
        self._user_id_right: Final = UserIdRight()
        self._node: Node | None = None
        self._dynamic_terminus: DynamicTerminus | None = None
        self._may_reject = True
        self._within: OpenTransaction | None = None
        self._credit_pool: CreditPool | None = None
        self._kept: KeptTarget | None = None

    def attach(self, attach: Attach) -> None:
        """Find or create the node, and answer; raise LinkFault or RoutingError to refuse."""
        request = self._request
        batch = self._container.journal.batch
        asked = attach.target
        assert isinstance(asked, Target)
        theirs = read_unsettled_map(attach.unsettled)
        made: DynamicTerminus | None = None
        if request.dynamic:
            demand_temporary(self._peer, request.kind or QUEUE)
            made = self._peer.dynamic.make(
                request.kind,
                delete_policy(asked.dynamic_node_properties),
                dynamic_terms(asked.expiry_policy, asked.timeout),
                exclusive=is_jms_temporary(asked.capabilities),
            )
        elif request.address is not None:
            self._node = self._resolve(request.address)
        else:
            demand_relay(self._peer)
        self._may_reject = may_reject(attach.source)
        self._container.claim_link(self._peer.container_id, self._link, self._node, incoming=True)
        made = self._peer.dynamic.claim(self._link, self._node, batch, made=made, incoming=True)
        self._dynamic_terminus = made
        if made is not None:
            self._node = made.node
        if self._node is not None:
            self._node = self._join(self._node, settles=attach.snd_settle_mode == SND_SETTLED)
            self._credit.node = self._node
            self._credit_pool = self._node.credit_pool
        if isinstance(self._node, ServiceNode):
            self._credit.credit = min(self._credit.credit, REQUEST_CREDIT)
            self._credit.wait_for_nothing()
        if made is None and request.task is None and not isinstance(self._node, ServiceNode):
            self._kept = lasting_target(self._peer, self._link, asked, has_map=theirs is not None)
        former = claim_terminus(self._peer, self._link.name, incoming=True)
        incomplete, kept = attach.incomplete_unsettled, self._kept
        if former is not None and kept is None:
            former.give_up(batch)
        self._link.accept(
            self,
            source=attach.source,
            target=self._target(asked),
            unsettled=None if kept is None else kept.resume(former, theirs, incomplete=incomplete),
            offered_capabilities=offered_to_sender(attach.desired_capabilities),
            properties=stated(attach.properties),
        )
        self._credit.resume()

    def _resolve(self, text: str) -> Node:
        """Return the node of an address, which is created if it does not exist."""
        request = self._request
        peer, container = self._peer, self._container
        router = container.router
        address = router.parse(text, request.kind)
        service = container.service_node(peer, address)
        if service is not None:
            return service
        kind = router.kind_of(address)
        conceal_kind(peer, address, kind, verbs=SENDING)
        address = address.of_kind(kind)
        demand_node(peer, SEND, address)
        if request.task is not None:
            demand_staging(peer, request.task.query, address)
        node = peer.resolve(address)
        self._origin = self._origin_under(router.publishing_key(address, node))
        if request.task is not None:
            router.staging_area.check(request.task, node, text)
        return node

    def _join(self, node: Node, *, settles: bool) -> Node:
        """Join the producers of `node`, or of a stage for it; return the node that was joined.

        `settles`: the link sends its messages settled.
        """
        task, given = self._request.task, self._request.address
        if task is None or given is None:
            node.producers.append(self._credit)
            return node
        area, user = self._container.router.staging_area, self._peer.identity.user
        stage = area.begin(task, node, given, origin=self._origin, owner=user)
        stage.join(self._credit, settles=settles)
        return stage

    def take_back_credit(self) -> None:
        self._credit.take_back()

    def address(self) -> str:
        """Return the address that this link sends to, empty for the anonymous relay."""
        return "" if self._node is None else self._node.address

    def _target(self, asked: Target) -> Target:
        """Return the actual target: only outcomes, or a dynamic node, outlive the link."""
        made = self._dynamic_terminus
        if made is None:
            terms = ExpiryPolicy(LINK_DETACH) if self._kept is None else self._kept.terms
            stored = self._kept is not None and self._kept.is_stored
            return Target(
                address=asked.address,
                durable=UNSETTLED_STATE if stored else NOT_DURABLE,
                expiry_policy=terms.policy,
                timeout=terms.timeout_s,
                capabilities=asked.capabilities,
            )
        return Target(
            address=made.node.address,
            expiry_policy=made.expiry.terms.policy,
            timeout=made.expiry.terms.timeout_s,
            dynamic=asked.dynamic,
            dynamic_node_properties=dynamic_properties(made.policy) if asked.dynamic else None,
            capabilities=asked.capabilities,
        )

    # -- from the link

    def delivered(self, delivery_id: i64, data: bytes, at: i64, end: i64, settled: bool) -> None:
        if self._credit_pool is not None:
            self._credit_pool.used(self._credit)
        if end - at > LARGE_FROM or self._credit.mean_size > LARGE_FROM:
            self._credit.learn(end - at)
        try:
            node = self._node
            if node is None or self._link.message_format != 0:
                message, node = self._read(data, at, end)
            else:  # the part of `_read` that most messages need
                sections = self._container.sections
                sections.read(data, at, end)
                if sections.has_user_id:
                    self._check_user_id(sections, data)
                message = read_message(
                    sections,
                    data,
                    self._container.clock,
                    origin=self._origin,
                    arrived_ms=self._container.received_ms,
                )
            if self._within is not None:
                self._post(delivery_id, node, message, size=end - at, settled=settled)
                return
            self._put(message, node)
        except RoutingError as refusal:
            self._reject(delivery_id, as_link_fault(refusal), settled)
            return
        except LinkFault as fault:
            self._reject(delivery_id, fault, settled)
            return
        self._taken(delivery_id, message, node, size=end - at, settled=settled)

    def _read(
        self,
        data: bytes,
        at: i64,
        end: i64,
        *,
        large: LargeBody | None = None,
        opaque: bool = False,
    ) -> tuple[Message, Node]:
        """Return the message in `data[at:end]`, whose body may be `large`, and its node.

        A message that is `opaque`, or of another format and cannot be parsed, stays as it came.
        Raise LinkFault or RoutingError if it cannot be routed, LinkFault if it has the usual
        format and is malformed.
        """
        container = self._container
        sections = container.sections
        message_format = self._link.message_format
        try:
            if not opaque:
                sections.read(data, at, end)
        except LinkFault:
            if message_format == 0:
                raise
            opaque = True
        node, origin = self._node, self._origin
        if opaque:
            if node is None:
                raise unaddressed(message_format)
            message = opaque_message(
                data[at:end],
                message_format=message_format,
                origin=origin,
                large=large,
                arrived_ms=container.received_ms,
            )
            return message, node
        self._check_user_id(sections, data)
        if node is None:
            node, origin = self._addressed(sections, data)
        message = read_message(
            sections,
            data,
            container.clock,
            origin=origin,
            large=large,
            arrived_ms=container.received_ms,
            message_format=message_format,
        )
        return message, node

    def _check_user_id(self, sections: Sections, data: bytes) -> None:
        """Raise NotPermitted if the message names a user that its sender may not name."""
        if sections.has_user_id:
            self._user_id_right.demand(self._peer, sections.user_id(data))

    def _put(self, message: Message, node: Node) -> None:
        batch = self._container.journal.batch
        if node.duplicates is not None:
            node.duplicates.put(message, batch)
        elif self._credit.is_beyond_room and self._credit.use_credit_beyond_room(message, node):
            node.publish(message, batch)
        else:
            node.put(message, batch)

    def _taken(
        self, delivery_id: i64, message: Message, node: Node, *, size: i64, settled: bool
    ) -> None:
        """Count a message that `node` has taken, and accept it once that is durable."""
        self._container.stats.published += 1
        self._container.stats.published_bytes += size
        if self._container.stats.published % YIELD_EVERY == 0:
            self._container.journal.yield_to_writer()
        if settled:
            return
        if not message.durable and not node.stores_all:
            self._link.accept_delivery(delivery_id)
            return
        if self._kept is not None and self._kept.is_stored:
            self._kept.note(delivery_id, ACCEPTED)
        if node.duplicates is None:
            self._container.journal.submit_receipt(Receipt(self._credit, delivery_id))
        else:  # a duplicate changes nothing, but waits until its original is durable
            self._container.journal.submit(Receipt(self._credit, delivery_id))

    def posted(
        self, delivery_id: i64, data: bytes, at: i64, end: i64, *, settled: bool, txn_id: bytes
    ) -> None:
        within = self._peer.transactions.join(txn_id)
        if within is None:
            raise LinkFault(UNKNOWN_ID, "no such transaction on this connection")
        self._within = within
        try:
            self.delivered(delivery_id, data, at, end, settled)
        except LinkFault as fault:
            within.work.doom(fault)
            raise
        finally:
            self._within = None

    def large(self) -> Intake | None:
        contents = self._container.contents
        if contents is None or isinstance(self._node, ServiceNode):
            return None
        may_be_opaque = self._link.message_format != 0
        return LargeIntake(self, self._peer, contents, may_be_opaque=may_be_opaque)

    def delivered_large(
        self,
        delivery_id: i64,
        head: bytes,
        large: LargeBody | None,
        *,
        fault: LinkFault | None,
        opaque: bool,
        size: i64,
        settled: bool,
        txn_id: bytes | None,
    ) -> None:
        """Like `delivered`, or `posted` with a `txn_id`, for a message whose body is `large`.

        `large` is None if there is a `fault`. Of an `opaque` message, it is all that follows
        `head`. `size` is that of the whole message in bytes.
        """
        if self._credit_pool is not None:
            self._credit_pool.used(self._credit)
        if txn_id is not None:
            self._within = self._peer.transactions.join(txn_id)
            if self._within is None:
                raise LinkFault(UNKNOWN_ID, "no such transaction on this connection")
        try:
            if fault is not None:
                raise fault
            message, node = self._read(head, 0, i64(len(head)), large=large, opaque=opaque)
            self._put_large(delivery_id, message, node, size=size, settled=settled)
        except RoutingError as refusal:
            self._reject(delivery_id, as_link_fault(refusal), settled)
        except LinkFault as reason:
            self._reject(delivery_id, reason, settled)
        finally:
            self._within = None

    def _put_large(
        self, delivery_id: i64, message: Message, node: Node, *, size: i64, settled: bool
    ) -> None:
        if isinstance(node, ServiceNode):
            raise LinkFault(MESSAGE_SIZE_EXCEEDED, f"requests have at most {STREAMED_FROM} bytes")
        if self._within is not None:
            size = message.encoded_size  # the body is not in memory
            self._post(delivery_id, node, message, size=size, settled=settled)
            return
        self._put(message, node)
        self._taken(delivery_id, message, node, size=size, settled=settled)

    def _post(
        self, delivery_id: i64, node: Node, message: Message, *, size: i64, settled: bool
    ) -> None:
        """Post a message to its transaction and accept it, or report why that is doomed."""
        within = self._within
        assert within is not None
        if isinstance(node, ServiceNode):
            raise LinkFault(NOT_IMPLEMENTED, f"requests to {node.address} within a transaction")
        if isinstance(node, StagedTransaction):
            raise LinkFault(NOT_IMPLEMENTED, "messages to a stage within a transaction")
        credit = self._credit
        beyond = credit.is_beyond_room and credit.use_credit_beyond_room(message, node)
        within.work.post(node, message, size, beyond_limit=beyond)
        if self._credit_pool is not None:
            credit.go_on_beyond_room(node)
        cause = within.work.doomed_by
        if cause is not None:
            self._tell(delivery_id, as_fault(cause), settled)
        elif not settled:
            self._link.accept_posting(delivery_id, within.accepted)

    def _origin_under(self, key: str) -> Origin:
        """Return the origin of the link's messages with the routing key `key`, mostly empty."""
        return Origin(self._origin.publisher, key) if key else self._origin

    def _addressed(self, sections: Sections, data: bytes) -> tuple[Node, Origin]:
        """Return the node that a message to the relay names, and its origin (PRD-01, DST-05)."""
        to = sections.to(data)
        if not to:
            raise LinkFault(NOT_FOUND, "a message to the anonymous relay names its address in `to`")
        router = self._container.router
        said = kind_of_destination(sections, data)
        known = self._peer.relay_rights.find(self._peer, to, said)
        if known is not None:
            found = existing_node(router, known)
            if found is not None:
                return found, self._origin_under(router.publishing_key(known, found))
        address = router.parse(to, said)
        service = self._container.service_node(self._peer, address)
        if service is not None:
            return service, self._origin
        kind = router.kind_of(address)
        self._peer.relay_rights.demand(self._peer, address, kind)
        address = address.of_kind(kind)
        node = self._peer.resolve(address)
        return node, self._origin_under(router.publishing_key(address, node))

    def _reject(self, delivery_id: i64, fault: Fault, settled: bool) -> None:
        """Refuse a message by its outcome or, if that is not possible, by a detach (PRD-02)."""
        if isinstance(fault, ToldFault):
            raise fault  # of a doomed transaction: the message itself could be routed
        self._container.stats.unroutable += 1
        self._container.stats.by.unroutable.add(fault.condition)
        if settled and self._request.discard_unroutable:
            return
        if self._within is not None:
            self._within.work.doom(fault)
        self._tell(delivery_id, fault, settled)

    def _tell(self, delivery_id: i64, fault: Fault, settled: bool) -> None:
        within = self._within
        if settled and within is not None:
            return  # the commit will report it
        info: dict[Symbol, object] = {Symbol("delivery-tag"): self._link.delivery_tag()}
        told = ToldFault(fault.condition, fault.description, info)
        if settled or not self._may_reject:
            raise told
        outcome = Rejected(error_of(told))
        if within is None:
            self._link.reject(delivery_id, outcome)
        else:
            self._link.settle(delivery_id, TransactionalState(txn_id=within.id, outcome=outcome))

    def settled_by_sender(self, tag: bytes) -> None:
        if self._kept is not None:
            self._kept.settled(tag)

    def credit_low(self) -> None:
        self._credit.ask()

    def incoming_ended(self, closed: bool) -> None:
        self._container.forget_link(self._peer.container_id, self._link, incoming=True)
        self._credit.leave()
        if self._kept is not None:
            self._kept.end(closed=closed)
            self._kept = None
        node = self._node
        self._node = None
        if node is None:
            return
        self._credit.node = None
        self._credit_pool = None
        node.leave(self._credit)
        made = self._dynamic_terminus
        if made is None:
            node.note_use_ended()
        else:
            batch = self._container.journal.batch
            self._peer.dynamic.link_ended(made, self._link, batch, closed=closed, incoming=True)
