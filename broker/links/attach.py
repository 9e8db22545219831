"""Functions that read from an attach what it asks for, or refuse it. They change nothing."""

from typing import Final, final

from broker.amqp.descriptors import (
    BY_SYMBOL,
    DELETE_ON_CLOSE,
    DELETE_ON_NO_LINKS,
    DELETE_ON_NO_LINKS_OR_MESSAGES,
    DELETE_ON_NO_MESSAGES,
)
from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.performatives import Attach
from broker.amqp.terminus import COPY, MOVE, NEVER, NOT_DURABLE, Coordinator, Source
from broker.amqp.types import Described, ULong
from broker.links.filters import FiltersInForce, filters_of
from broker.links.staging import task_of
from broker.routing.batches.staged_transaction import Task
from broker.routing.queues.node import QUEUE, TOPIC
from broker.routing.topics.dynamic import DeletePolicy
from broker.routing.topics.subscription import SubscriptionExpiry, SubscriptionTraits

KINDS: Final[dict[str, str]] = {
    "queue": QUEUE,
    "topic": TOPIC,
    "temporary-queue": QUEUE,
    "temporary-topic": TOPIC,
}
"""Capabilities of a terminus, and the kind of node that each requests (WD10 5.2)."""

JMS_TEMPORARY: Final = ("temporary-queue", "temporary-topic")
"""Capabilities of temporary destinations of JMS, from which no other connection ever receives."""

SHARED: Final = "shared"
GLOBAL: Final = "global"
REJECTED_OUTCOME: Final = "amqp:rejected:list"
OUTCOMES: Final = (
    "amqp:accepted:list",
    "amqp:rejected:list",
    "amqp:released:list",
    "amqp:modified:list",
)

DISCARD_UNROUTABLE: Final = "DISCARD_UNROUTABLE"

EXISTING_NODE: Final = "jms-broker:existing-node"
"""Capability of a source: refuse the link if its node does not exist; do not create the node."""

DELAYED_DELIVERY: Final = "DELAYED_DELIVERY"
"""Capability offered on every connection and to each sender that desires it (CON-07, DLY-02)."""

LIFETIME_POLICY: Final = "lifetime-policy"
DELETE_POLICIES: Final[dict[int, DeletePolicy]] = {
    DELETE_ON_CLOSE: DeletePolicy.ON_CLOSE,
    DELETE_ON_NO_LINKS: DeletePolicy.ON_NO_LINKS,
    DELETE_ON_NO_MESSAGES: DeletePolicy.ON_NO_MESSAGES,
    DELETE_ON_NO_LINKS_OR_MESSAGES: DeletePolicy.ON_NO_LINKS_OR_MESSAGES,
}


@final
class PublishRequest:
    """The request of an attach for a link on which the client sends.

    `address` is None for the anonymous relay, and for a `dynamic` node that is to be created.
    `kind` is empty if the client names none. A refused message that was sent settled is
    discarded silently if `discard_unroutable`. If there is a `task`, messages are staged for it.
    """

    def __init__(
        self,
        *,
        address: str | None,
        kind: str,
        dynamic: bool,
        discard_unroutable: bool,
        task: Task | None = None,
    ) -> None:
        self.address: Final = address
        self.kind: Final = kind
        self.dynamic: Final = dynamic
        self.discard_unroutable: Final = discard_unroutable
        self.task: Final = task


@final
class ConsumeRequest:
    """The request of an attach for a link on which the client receives.

    `address` is None if a `dynamic` node is to be created. `kind` is empty if the client names
    none. `traits` and `terms` matter only if the node is a topic. `copies` asks for a browser.
    `creates` is False if the link is to be refused unless its node exists.
    """

    def __init__(
        self,
        *,
        address: str | None,
        kind: str,
        dynamic: bool,
        copies: bool,
        traits: SubscriptionTraits,
        terms: SubscriptionExpiry,
        filters: FiltersInForce,
        creates: bool = True,
    ) -> None:
        self.address: Final = address
        self.kind: Final = kind
        self.dynamic: Final = dynamic
        self.copies: Final = copies
        self.traits: Final = traits
        self.terms: Final = terms
        self.filters: Final = filters
        self.creates: Final = creates


def publish_request(attach: Attach) -> PublishRequest:
    """Return what a sender's attach asks for; raise LinkFault if it is to be refused."""
    target = attach.target
    if target is None:
        raise LinkFault(INVALID_FIELD, "a sender's attach has a target")
    assert not isinstance(target, Coordinator)
    if target.dynamic:
        check_dynamic(target.address, target.dynamic_node_properties)
    return PublishRequest(
        address=target.address,
        kind=kind_of(target.capabilities),
        dynamic=target.dynamic,
        discard_unroutable=DISCARD_UNROUTABLE in target.capabilities,
        task=task_of(attach.properties, target),
    )


def is_jms_temporary(capabilities: list[str]) -> bool:
    """Return whether a dynamic terminus asks for a temporary destination of JMS (TMP-04)."""
    return any(each in JMS_TEMPORARY for each in capabilities)


def offered_to_sender(desired: list[str]) -> list[str]:
    """Return the `desired` capabilities that the answer to a sender's attach offers."""
    return [DELAYED_DELIVERY] if DELAYED_DELIVERY in desired else []


def consume_request(attach: Attach) -> ConsumeRequest:
    """Return what a receiver's attach asks for; raise LinkFault or InvalidSelector to refuse it."""
    source = attach.source
    if source is None:
        raise LinkFault(INVALID_FIELD, "a receiver's attach without a source is a lookup")
    if source.dynamic:
        check_dynamic(source.address, source.dynamic_node_properties)
    elif source.address is None:
        raise LinkFault(INVALID_FIELD, "a source has an address, or is dynamic")
    copies = _copies(source)
    filters = filters_of(source)
    if filters.part is not None and not copies:
        raise LinkFault(INVALID_FIELD, "browse-slice is for distribution-mode copy")
    return ConsumeRequest(
        address=source.address,
        kind=kind_of(source.capabilities),
        dynamic=source.dynamic,
        copies=copies,
        # no client can name the subscription to a dynamic topic
        traits=SubscriptionTraits() if source.dynamic else subscription_traits(source),
        terms=terms_of(source),
        filters=filters,
        creates=EXISTING_NODE not in source.capabilities,
    )


def may_reject(source: Source | None) -> bool:
    """Return whether a sender takes the outcome `rejected`: its source names it, or names none."""
    return source is None or not source.outcomes or REJECTED_OUTCOME in source.outcomes


def subscription_traits(source: Source) -> SubscriptionTraits:
    """Return the traits of the subscription that `source` requests; not for a dynamic source."""
    return SubscriptionTraits(
        is_shared=SHARED in source.capabilities,
        is_global=GLOBAL in source.capabilities,
        is_durable=source.durable != NOT_DURABLE,
    )


def lookup_traits(attach: Attach) -> SubscriptionTraits:
    """Return the traits of the subscription that an attach without a source looks up."""
    return SubscriptionTraits(
        has_source=False,
        is_shared=SHARED in attach.desired_capabilities,
        is_global=GLOBAL in attach.desired_capabilities,
    )


def terms_of(source: Source) -> SubscriptionExpiry:
    """Return the terms of a subscription; a durable one never expires unless `source` says so."""
    for_good = source.durable != NOT_DURABLE and not source.tells_expiry_policy
    return SubscriptionExpiry(
        durability=source.durable,
        expiry_policy=NEVER if for_good else source.expiry_policy,
        timeout_s=source.timeout,
    )


def kind_of(capabilities: list[str]) -> str:
    """Return the kind of node that a terminus requests, empty for none (DST-01, DST-02).

    Raise LinkFault if its capabilities request both a queue and a topic.
    """
    kind = ""
    for capability in capabilities:
        found = KINDS.get(capability, "")
        if found and kind and found != kind:
            raise LinkFault(INVALID_FIELD, "a node is a queue or a topic, not both")
        kind = found or kind
    return kind


def in_force(capabilities: list[str]) -> list[str]:
    """Return the requested capabilities that apply to a queue; ["queue"] if none (core 2.6.3)."""
    return [each for each in capabilities if each in KINDS] or [QUEUE]


def check_dynamic(address: str | None, properties: dict[str, object]) -> None:
    """Raise LinkFault if a dynamic node has a name or an unknown lifetime (TMP-01, TMP-02)."""
    if address is not None:
        raise LinkFault(INVALID_FIELD, "a dynamic node is named by the broker")
    delete_policy(properties)


def delete_policy(properties: dict[str, object]) -> DeletePolicy:
    """Return the lifetime policy of a dynamic node, ON_CLOSE by default; LinkFault if unknown."""
    policy = properties.get(LIFETIME_POLICY)
    if policy is None:
        return DeletePolicy.ON_CLOSE
    found = DELETE_POLICIES.get(policy_code(policy))
    if found is None:
        raise LinkFault(INVALID_FIELD, "lifetime-policy is one of core 3.5.10 to 3.5.13")
    return found


def policy_code(policy: object) -> int:
    """Return the descriptor of a lifetime policy; -1 if `policy` is not an empty described list."""
    if not isinstance(policy, Described) or policy.value != []:
        return -1
    descriptor = policy.descriptor
    if isinstance(descriptor, ULong):
        return descriptor.value
    return BY_SYMBOL.get(descriptor.text.encode(), -1)


def _copies(source: Source) -> bool:
    mode = source.distribution_mode
    if mode is not None and mode != MOVE and mode != COPY:
        raise LinkFault(INVALID_FIELD, "distribution-mode is move or copy")
    return mode == COPY
