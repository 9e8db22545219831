"""What an attach asks for, or why it is refused. Facts in, verdict out; nothing is changed here."""

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
"""The capabilities of a terminus that say what kind of node is meant (WD10 5.2)."""

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
"""A capability of a source: refuse the link if its node does not exist, do not create the node."""

DELAYED_DELIVERY: Final = "DELAYED_DELIVERY"
"""Offered on every connection, and on a sender's link that asks (CON-07, DLY-02)."""

LIFETIME_POLICY: Final = "lifetime-policy"
DELETE_POLICIES: Final[dict[int, DeletePolicy]] = {
    DELETE_ON_CLOSE: DeletePolicy.ON_CLOSE,
    DELETE_ON_NO_LINKS: DeletePolicy.ON_NO_LINKS,
    DELETE_ON_NO_MESSAGES: DeletePolicy.ON_NO_MESSAGES,
    DELETE_ON_NO_LINKS_OR_MESSAGES: DeletePolicy.ON_NO_LINKS_OR_MESSAGES,
}


@final
class PublishRequest:
    """A link to send on. `address` None is the anonymous relay, unless a node is to be made.

    What comes for a `task` is staged.
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
    """A link to receive on. `address` None where a node is to be made.

    `facts` and `terms` matter where that is a topic. `creates` is false for a client that wants
    an existing node or none.
    """

    def __init__(
        self,
        *,
        address: str | None,
        kind: str,
        dynamic: bool,
        copies: bool,
        facts: SubscriptionTraits,
        terms: SubscriptionExpiry,
        filters: FiltersInForce,
        creates: bool = True,
    ) -> None:
        self.address: Final = address
        self.kind: Final = kind
        self.dynamic: Final = dynamic
        self.copies: Final = copies
        self.facts: Final = facts
        self.terms: Final = terms
        self.filters: Final = filters
        self.creates: Final = creates


def publish_request(attach: Attach) -> PublishRequest:
    """What a sender's attach asks for; LinkFault where it is to be refused."""
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


def offered_to_sender(desired: list[str]) -> list[str]:
    """What the answer to a sender's attach offers of that."""
    return [DELAYED_DELIVERY] if DELAYED_DELIVERY in desired else []


def consume_request(attach: Attach) -> ConsumeRequest:
    """What a receiver's attach asks for; LinkFault or InvalidSelector where it is refused."""
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
        facts=SubscriptionTraits() if source.dynamic else subscription_facts(source),
        terms=terms_of(source),
        filters=filters,
        creates=EXISTING_NODE not in source.capabilities,
    )


def may_reject(source: Source | None) -> bool:
    """Whether a sender takes `rejected` as an outcome: its source names it, or names none."""
    return source is None or not source.outcomes or REJECTED_OUTCOME in source.outcomes


def subscription_facts(source: Source) -> SubscriptionTraits:
    """What a source says of the subscription that it means; nobody can name a dynamic node's."""
    return SubscriptionTraits(
        is_shared=SHARED in source.capabilities,
        is_global=GLOBAL in source.capabilities,
        is_durable=source.durable != NOT_DURABLE,
    )


def lookup_facts(attach: Attach) -> SubscriptionTraits:
    """What an attach without a source says of the subscription that it looks for."""
    return SubscriptionTraits(
        has_source=False,
        is_shared=SHARED in attach.desired_capabilities,
        is_global=GLOBAL in attach.desired_capabilities,
    )


def terms_of(source: Source) -> SubscriptionExpiry:
    """How long a subscription is to last. A durable one does for good, unless its source tells."""
    for_good = source.durable != NOT_DURABLE and not source.tells_expiry_policy
    return SubscriptionExpiry(
        durability=source.durable,
        expiry_policy=NEVER if for_good else source.expiry_policy,
        timeout_s=source.timeout,
    )


def kind_of(capabilities: list[str]) -> str:
    """The kind of node that a terminus expects, empty where it does not say (DST-01, DST-02)."""
    kind = ""
    for capability in capabilities:
        found = KINDS.get(capability, "")
        if found and kind and found != kind:
            raise LinkFault(INVALID_FIELD, "a node is a queue or a topic, not both")
        kind = found or kind
    return kind


def in_force(capabilities: list[str]) -> list[str]:
    """Of what the source of a queue's link asks for, that which it is (2.6.3)."""
    return [each for each in capabilities if each in KINDS] or [QUEUE]


def check_dynamic(address: str | None, properties: dict[str, object]) -> None:
    """Refuse a dynamic node that is named, or lives by an unknown policy (TMP-01, TMP-02)."""
    if address is not None:
        raise LinkFault(INVALID_FIELD, "a dynamic node is named by the broker")
    delete_policy(properties)


def delete_policy(properties: dict[str, object]) -> DeletePolicy:
    """How long a dynamic node is to live; delete-on-close where that is not said."""
    policy = properties.get(LIFETIME_POLICY)
    if policy is None:
        return DeletePolicy.ON_CLOSE
    found = DELETE_POLICIES.get(policy_code(policy))
    if found is None:
        raise LinkFault(INVALID_FIELD, "lifetime-policy is one of core 3.5.10 to 3.5.13")
    return found


def policy_code(policy: object) -> int:
    """The descriptor of a lifetime policy, -1 where it is none: an empty described list."""
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
