"""The rights that an attach, a message or an open needs.

Every question goes through `Peer.may`. It names a canonical resource, so that no spelling of an
address gives more rights (`docs/design/hostile-input.md` Z3), and it is asked before a node is
looked for: a refusal does not tell what exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from broker.amqp.link import Link
from broker.links.refusal import as_link_fault
from broker.routing.addresses import pattern
from broker.routing.addresses.address import MANAGEMENT, SUBSCRIPTION_PREFIX, Address
from broker.routing.addresses.identity import SubscriptionIdentity, identity_in
from broker.routing.batches.lease import BatchLease
from broker.routing.errors import NotPermitted
from broker.routing.queues.node import QUEUE, TOPIC, Node
from broker.routing.router import Router
from broker.routing.topics.subscription import AttachRule, Subscription, SubscriptionKind
from broker.security.decision import DEFAULT, Decision
from broker.security.identity import Identity
from broker.security.resources import (
    CLIENT_ID,
    DYNAMIC,
    GLOBAL_SUBSCRIPTION,
    SUBSCRIPTION,
    TEMPORARY,
    USER_ID,
    Resource,
)
from broker.security.resources import MANAGEMENT as MANAGEMENT_PARTS

if TYPE_CHECKING:
    from broker.links.linkless import Client
    from broker.links.peer import Peer

SEND: Final = "send"
RECEIVE: Final = "receive"
BROWSE: Final = "browse"
SUBSCRIBE: Final = "subscribe"
CREATE: Final = "create"
USE: Final = "use"
SHARE: Final = "share"
END: Final = "end"
LEASE: Final = "lease"
STAGE: Final = "stage"
CONNECT: Final = "connect"
IMPERSONATE: Final = "impersonate"
EDIT: Final = "edit"

SINKS: Final = "sinks"
"""The part of management whose right lets a client commit what all queries have staged."""

SENDING: Final = {QUEUE: SEND, TOPIC: SEND}
RECEIVING: Final = {QUEUE: RECEIVE, TOPIC: SUBSCRIBE}
BROWSING: Final = {QUEUE: BROWSE, TOPIC: SUBSCRIBE}
"""The verbs of senders, receivers and browsers, by the kind of the node."""

SENDING_ANYWHERE: Final = (
    *((SEND, kind) for kind in (QUEUE, TOPIC, TEMPORARY)),
    *((verb, MANAGEMENT_PARTS) for verb in ("view", "edit")),
)
"""The rights of which a client of the anonymous relay needs one; requests are messages, too."""

AT_ONCE: Final = frozenset({CREATE, END, CONNECT})
"""Verbs of one act; the others are needed for as long as a link lives."""

RELAY_ADDRESSES_MAX: Final = 1024
"""Maximum addresses of the anonymous relay whose rights a connection remembers, 0.4 KiB each."""


@final
class Right:
    """A verb and the resource that it is for."""

    def __init__(self, verb: str, resource: Resource) -> None:
        self.verb: Final = verb
        self.resource: Final = resource


def node_resource(address: Address) -> Resource:
    """Return the resource of a queue or topic; `address` says its kind."""
    if address.is_temporary:
        return Resource(TEMPORARY, address.kind)
    if address.kind == TOPIC:
        return Resource(TOPIC, address.words, address.key)
    # in a queue's name a / begins no key
    return Resource(QUEUE, address.text[len(address.begins) :])


def dynamic_resource(node: Node) -> Resource:
    """Return the resource of another connection's dynamic node, for receiving from it (TMP-04)."""
    return Resource(TEMPORARY, DYNAMIC, creator=node.creator)


def subscription_resource(identity: SubscriptionIdentity) -> Resource:
    """Return the resource of a named subscription."""
    scope, name, _ = identity
    if scope is None:
        return Resource(GLOBAL_SUBSCRIPTION, name)
    return Resource(SUBSCRIPTION, scope, name)


def is_nobodys(address: Address) -> bool:
    """Return whether no node can have the address: it is one of the broker's own."""
    return address.text.startswith(SUBSCRIPTION_PREFIX) or address.text == MANAGEMENT


def lease_resource(lease: BatchLease) -> Resource:
    """Return the resource of the queue or subscription from which a lease takes messages."""
    subscription = lease.subscription
    if subscription is not None and subscription.identity is not None:
        return subscription_resource(subscription.identity)
    return node_resource(Address(lease.queue.address, QUEUE))


def named_resource(router: Router, text: str) -> Resource:
    """Return the resource that a client means by the address of a queue, or by the identity of a
    subscription, whether there is one or not.
    """
    identity = identity_in(text)
    if identity is not None and router.find_named(text, QUEUE) is None:
        return subscription_resource(identity)
    return node_resource(router.parse(text, QUEUE))


def demand_node(peer: Client, verb: str, address: Address, *, creates: bool = True) -> None:
    """Raise NotPermitted unless the client may use a node so, and create it if it does not exist.

    `address` says its kind. Receiving from a temporary node is decided once it is found
    (`demand_consumable`): its address cannot be guessed.
    """
    if is_nobodys(address) or (address.is_temporary and verb != SEND):
        return
    peer.demand(verb, node_resource(address))
    if creates:
        demand_creating(peer, address)


def demand_consumable(peer: Client, node: Node) -> None:
    """Raise an error unless the client may receive from `node`, or browse it, as far as owners go.

    That is HeldExclusively for another connection's temporary destination, and NotPermitted for
    another connection's dynamic node on which the client has no right (TMP-04).
    """
    peer.container.router.check_consumable(node, peer.id)
    if node.is_temporary and node.owner != peer.id:
        peer.demand(RECEIVE, dynamic_resource(node))


def demand_creating(peer: Client, address: Address) -> None:
    """Raise NotPermitted if there is no node of `address`, and the client may not create it.

    Raise LimitReached if its user has created too many.
    """
    if address.is_temporary or is_nobodys(address):
        return
    if existing_node(peer.container.router, address) is None:
        node = address.topic() if address.kind == TOPIC else address
        peer.demand(CREATE, node_resource(node))
        peer.container.user_limits.check_node(peer)


def demand_relay(peer: Peer) -> None:
    """Raise NotPermitted unless there is an address to which the client may send.

    The rights on each address are asked for with the messages (`RelayRights`).
    """
    if not any(peer.may_any(verb, kind) for verb, kind in SENDING_ANYWHERE):
        nowhere = Decision(allowed=False, rule="", because=DEFAULT)
        peer.deny(Right(SEND, Resource(QUEUE, "#")), nowhere)


def conceal_kind(peer: Client, address: Address, kind: str, *, verbs: dict[str, str]) -> None:
    """Raise NotPermitted as if there were no node of `address`, if the client has no right on it.

    `kind` is that of the node. An address that says no kind means a node that exists, else one of
    the default kind: the refusal must not tell which. `verbs` are those that are needed, by kind.
    """
    default = peer.container.router.policies.default_kind
    if address.kind or kind == default or address.is_temporary or is_nobodys(address):
        return
    if not peer.may(verbs[kind], asked_resource(address, kind, verbs)).allowed:
        peer.demand(verbs[default], asked_resource(address, default, verbs))


def demand_staging(peer: Peer, query: str, address: Address) -> None:
    """Raise NotPermitted unless the client may stage messages of `query` for a node.

    `address` says its kind. A query belongs to the user that staged for it first: another user
    could change what a commit finds, so it needs the right to edit sinks.
    """
    peer.demand(STAGE, node_resource(address))
    owner = peer.container.router.staging_area.owner_of(query)
    if owner is not None and owner != peer.identity.user:
        peer.demand(EDIT, Resource(MANAGEMENT_PARTS, SINKS))


def demand_responding(peer: Peer, address: Address) -> None:
    """Raise NotPermitted unless the client may send to `address`, where it wants a response.

    The broker writes it for the client: else a request would reach nodes that the client must not
    send to. The client's own temporary nodes need no right.
    """
    router = peer.container.router
    node = router.find(address)
    if node is None or node.owner != peer.id:
        kind = router.kind_of(address)
        conceal_kind(peer, address, kind, verbs=SENDING)
        demand_node(peer, SEND, address.of_kind(kind), creates=False)


def may_be_responded_at(peer: Peer, node: Node) -> bool:
    """Return whether the client may still have a response at `node`, for which it has waited."""
    if node.owner == peer.id:
        return True
    return peer.may(SEND, node_resource(Address(node.address, node.kind))).allowed


def kind_to_receive(peer: Peer, address: Address, *, copies: bool) -> str:
    """Return the kind of the node from which a client is to receive, or to browse (`copies`)."""
    kind = peer.container.router.kind_of(address)
    conceal_kind(peer, address, kind, verbs=BROWSING if copies else RECEIVING)
    return kind


def asked_resource(address: Address, kind: str, verbs: dict[str, str]) -> Resource:
    """Return the resource of a node of `kind`, for the verb of that kind."""
    if kind == TOPIC and verbs[kind] == SUBSCRIBE:
        return Resource(TOPIC, address.words, address.key, is_pattern=True)
    return node_resource(address.of_kind(kind))


def demand_receiving(peer: Client, address: Address, *, copies: bool, creates: bool) -> None:
    """Raise NotPermitted unless the client may receive from a queue, or browse it (`copies`)."""
    demand_node(peer, BROWSE if copies else RECEIVE, address, creates=creates)


def find_identified(peer: Peer, verb: str, text: str) -> Subscription | None:
    """Return the subscription of the identity `text`, None if there is none.

    Raise NotPermitted unless the client may use it so, whether it exists or not.
    """
    identity = identity_in(text)
    router = peer.container.router
    if identity is not None and router.find_named(text, QUEUE) is None:
        peer.demand(verb, subscription_resource(identity))
    found = router.subscriptions.identified(text)
    if found is not None:
        demand_subscription(peer, verb, found)
    return found


def demand_temporary(peer: Client, kind: str) -> None:
    """Raise NotPermitted unless the client may have the broker create a node of `kind` for it.

    Raise LimitReached if its user has created too many nodes.
    """
    peer.demand(CREATE, Resource(TEMPORARY, kind))
    peer.container.user_limits.check_node(peer)


def demand_subscription(peer: Peer, verb: str, subscription: Subscription) -> None:
    """Raise NotPermitted unless the client may use a subscription so. Private ones have no name."""
    if subscription.identity is not None:
        peer.demand(verb, subscription_resource(subscription.identity))


def demand_ownership(peer: Peer, subscription: Subscription) -> None:
    """Raise NotPermitted if the subscription belongs to another user (Z11).

    A user needs the right to `use` the client id of another's subscription. One without an owner
    belongs to the first user that uses it, unless the setting `ownership` is strict: then that
    user needs the right, too. Global ones belong to all users that have their rights.
    """
    identity, user = subscription.identity, peer.identity.user
    if identity is None or identity[0] is None or subscription.owner == user:
        return
    container = peer.container
    if not subscription.owner and container.adopts_subscriptions:
        container.router.subscriptions.adopt(subscription, user, container.journal.batch)
        return
    peer.demand(USE, Resource(CLIENT_ID, identity[0]))


def demand_link_name(peer: Peer, name: str) -> None:
    """Raise NotPermitted if a subscription without a name, of a link `name`, is another user's.

    It waits for its subscriber by container-id and link name (`KeptSubscriptions`), or its link is
    one of a connection that is ending. An attach of that name would resume or end it (Z11).
    """
    container = peer.container
    holder = container.holder(peer.container_id, name)
    held = None if holder is None else holder.subscription
    kept = container.router.subscriptions.kept.find((peer.container_id, name))
    for subscription in (held, kept):
        if subscription is None or subscription.identity is not None:
            continue
        user = peer.identity.user
        if not subscription.owner and container.adopts_subscriptions:
            subscription.owner = user
        elif subscription.owner != user:
            peer.demand(USE, Resource(CLIENT_ID, peer.container_id))


def demand_terminus(peer: Peer, link: Link, *, incoming: bool) -> None:
    """Raise NotPermitted if the suspended terminus that `link` would resume or end is another
    user's (Z11).

    Call it before an attach changes anything. One without an owner may be resumed by the first
    user that attaches to it, unless the setting `ownership` is strict.
    """
    container = peer.container
    found = container.router.termini.find((peer.container_id, link.name, incoming))
    if found is None or found.user == peer.identity.user:
        return
    if found.user or not container.adopts_subscriptions:
        peer.demand(USE, Resource(CLIENT_ID, peer.container_id))


def authorize_end(peer: Peer, link: Link, subscription: Subscription) -> bool:
    """Authorize the closing detach of `link` to end its subscription; return whether it may.

    If not, set the error of the broker's detach. Only durable subscriptions need the right.
    """
    if not subscription.is_durable():
        return True
    try:
        demand_subscription(peer, END, subscription)
    except NotPermitted as refusal:
        link.detach_error = as_link_fault(refusal)
        return False
    return True


def demand_subscribing(
    peer: Peer, address: Address, row: AttachRule, *, there: Subscription | None, creates: bool
) -> None:
    """Raise NotPermitted unless the client may subscribe to the topics of `address`.

    A named subscription also needs a right on its name, and the right to create it if it does not
    exist. A topic that does not exist needs the right to create it if the attach `creates` it.
    """
    pattern.check(address.words)
    pattern.check(address.key)
    if not address.is_temporary:
        peer.demand(SUBSCRIBE, Resource(TOPIC, address.words, address.key, is_pattern=True))
    if row.identity is not None:
        resource = subscription_resource(row.identity)
        peer.demand(SHARE if row.use is SubscriptionKind.SHARED else USE, resource)
        if there is None:
            peer.demand(CREATE, resource)
        else:
            demand_ownership(peer, there)
    if creates and not address.is_pattern:
        demand_creating(peer, address.of_kind(TOPIC))


def existing_node(router: Router, address: Address) -> Node | None:
    """Return the node that messages to `address` reach, None if it is still to be created.

    `address` says its kind; that of a topic may have a key.
    """
    node: Node | None = router.find(address)
    if node is None and address.kind == TOPIC:
        node = router.topics.get(address.name)
    return node


@final
class UserIdRight:
    """The user-id that the client of a link may name in its messages (Z8).

    It may name its own user, and others if a rule lets it `impersonate` them. The last one is
    remembered, since most senders name one.
    """

    def __init__(self) -> None:
        self._allowed: bytes | None = None
        self._version = -1
        self._identity: Identity | None = None

    def demand(self, peer: Peer, user_id: bytes | None) -> None:
        """Raise NotPermitted unless the client may send messages with `user_id`."""
        version = peer.container.access.version
        if version != self._version or peer.identity is not self._identity:
            self._allowed = None
            self._version = version
            self._identity = peer.identity
        if user_id is None or user_id == self._allowed:
            return
        if user_id != peer.identity.user.encode():
            peer.demand(IMPERSONATE, Resource(USER_ID, user_id.decode(errors="replace")))
        self._allowed = user_id


@final
class RelayRights:
    """The addresses to which one connection may send through the anonymous relay.

    Asking the rules for each message would take longer than routing it, and so would parsing its
    address. New rules, or other roles of the client, clear the memory.
    """

    def __init__(self) -> None:
        # by canonical text; each of the kind of its node
        self._queues: Final[dict[str, Address]] = {}
        self._topics: Final[dict[str, Address]] = {}
        self._version = -1
        self._identity: Identity | None = None

    def find(self, peer: Peer, to: str, kind: str) -> Address | None:
        """Return the address that `to` is, of its node's kind, if the client may send there.

        `kind` is what the message says, or empty: then an existing queue comes first, as in
        `Router.kind_of`. Return None if the address is not remembered, or not spelled so.
        """
        self._forget_if_outdated(peer)
        if kind == QUEUE:
            return self._queues.get(to)
        if kind == TOPIC:
            return self._topics.get(to)
        if to in peer.container.router.queues:
            return self._queues.get(to)
        return self._topics.get(to)

    def demand(self, peer: Peer, address: Address, kind: str) -> None:
        """Raise NotPermitted unless the client may send to `address`, whose node is of `kind`."""
        self._forget_if_outdated(peer)
        remembered = self._topics if kind == TOPIC else self._queues
        meant = remembered.get(address.text)
        if meant is None:
            meant = address.of_kind(kind)
            conceal_kind(peer, address, kind, verbs=SENDING)
            demand_node(peer, SEND, meant, creates=False)
            if len(self._queues) + len(self._topics) >= RELAY_ADDRESSES_MAX:
                full = remembered or self._queues or self._topics
                del full[next(iter(full))]
            remembered[address.text] = meant
        demand_creating(peer, meant)

    def _forget_if_outdated(self, peer: Peer) -> None:
        version = peer.container.access.version
        if version != self._version or peer.identity is not self._identity:
            self._queues.clear()
            self._topics.clear()
            self._version = version
            self._identity = peer.identity
