"""Definitions of durable subscriptions, without their messages."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.errors import Fault, LinkFault
from broker.amqp.terminus import (
    CONNECTION_CLOSE,
    LINK_DETACH,
    NEVER,
    SESSION_END,
    SourceFilter,
    filter_from,
)
from broker.amqp.types import Described, Symbol
from broker.journal import Journal
from broker.links.filters import FiltersInForce, in_force
from broker.management.definition import (
    ADDED,
    CHANGED,
    REFUSED,
    UNCHANGED,
    Definition,
    DefinitionError,
    DefinitionKind,
    DefinitionReader,
    ImportOutcome,
    ImportTerms,
    name_in,
    paged,
)
from broker.routing.addresses import address as addresses
from broker.routing.errors import RoutingError
from broker.routing.queues.node import TOPIC
from broker.routing.router import Router
from broker.routing.topics.lifetime import Ending
from broker.routing.topics.subscription import (
    AttachRule,
    Subscription,
    SubscriptionExpiry,
    SubscriptionSpec,
    SubscriptionTraits,
    row_of,
)

KEYS: Final = (
    *("name", "container_id", "shared", "address", "selector", "no_local", "filters"),
    *("durability", "expiry_policy", "timeout_s", "owner"),
)
POLICIES: Final = (LINK_DETACH, SESSION_END, CONNECTION_CLOSE, NEVER)
DURABILITIES: Final = (1, 2)
TIMEOUT_MAX: Final = 2**32 - 1

SELECTOR_KEY: Final = "jms-selector"
NO_LOCAL_KEY: Final = "no-local"
"""Keys of filters that an operator has written as `selector` and `no_local` only."""

SELECTOR: Final = Symbol("apache.org:selector-filter:string")
NO_LOCAL: Final = Symbol("apache.org:no-local-filter:list")

IN_USE: Final = (
    "there is one with another address, filter, lifetime or owner, which has messages or consumers:"
    " let it run dry, or delete it (`jms-broker subscription delete`)"
)


class WantedSubscription:
    """A subscription that a definition describes."""

    def __init__(self, definition: Definition, router: Router) -> None:
        """Raise DefinitionError or RoutingError if the definition is wrong."""
        reader = DefinitionReader(definition, *KEYS)
        container_id = reader.optional("container_id", str)
        self.row: Final = _row(reader, container_id)
        filters = _filters(reader)
        text = reader.required("address", str)
        self.spec: Final = SubscriptionSpec(
            router.parse(addresses.check(text), TOPIC).of_kind(TOPIC),
            filters.of(container_id or ""),
            filters.stated,
        )
        self.terms: Final = _terms(reader)
        self.owner: Final = reader.optional("owner", str) or ""

    def is_like(self, there: Subscription) -> bool:
        """Return whether `there` takes the same messages for as long, and has the same owner."""
        mine, others = self.terms, there.terms
        return (
            there.spec.is_like(self.spec)
            and there.owner == self.owner
            and mine.durability == others.durability
            and mine.expiry_policy == others.expiry_policy
            and mine.timeout_s == others.timeout_s
        )


def _row(reader: DefinitionReader, container_id: str | None) -> AttachRule:
    """Return the row of the table of subscriptions by which a client would attach to it."""
    name = reader.required("name", str)
    traits = SubscriptionTraits(
        is_shared=reader.optional("shared", bool) is True,
        is_global=container_id is None,
        is_durable=True,
    )
    row = row_of(traits, link_name=name, container_id=container_id or "")
    if row.identity is None or row.identity[1] != name:
        reader.refuse(f"{name:.100} is not the name of a shared subscription: it has no |")
    return row


def _terms(reader: DefinitionReader) -> SubscriptionExpiry:
    durability = reader.optional("durability", int)
    durability = DURABILITIES[-1] if durability is None else durability
    policy = reader.optional("expiry_policy", str)
    policy = NEVER if policy is None else policy
    timeout_s = reader.optional("timeout_s", int) or 0
    if durability not in DURABILITIES:
        reader.refuse("durability must be 1 or 2")
    if policy not in POLICIES:
        reader.refuse(f"expiry_policy must be one of {', '.join(POLICIES)}")
    if not 0 <= timeout_s <= TIMEOUT_MAX:
        reader.refuse(f"timeout_s must be from 0 to {TIMEOUT_MAX}")
    return SubscriptionExpiry(durability=durability, expiry_policy=policy, timeout_s=timeout_s)


def _filters(reader: DefinitionReader) -> FiltersInForce:
    """Return the filters: those of `filters` if it is there, else of `selector` and `no_local`.

    Raise DefinitionError if they contradict each other.
    """
    selector = reader.optional("selector", str)
    no_local = reader.optional("no_local", bool)
    given = reader.optional("filters", list)
    stated = _written(selector, no_local=no_local) if given is None else _read(reader, given)
    try:
        found = in_force(stated)
    except LinkFault as fault:
        reader.refuse(f"filters: {fault.description}")
    if given is None:
        return found
    text = None if found.selector is None else found.selector.text
    if selector not in (None, text) or no_local not in (None, found.no_local):
        reader.refuse("selector or no_local differ from filters: correct one, or remove filters")
    return found


def _written(selector: str | None, *, no_local: bool | None) -> list[SourceFilter]:
    """Return the filters of a definition that an operator wrote by hand."""
    stated = []
    if selector is not None:
        stated.append(filter_from(SELECTOR_KEY, _encoded(Described(SELECTOR, selector))))
    if no_local:
        stated.append(filter_from(NO_LOCAL_KEY, _encoded(Described(NO_LOCAL, []))))
    return stated


def _encoded(value: object) -> bytes:
    out = BytesWriter()
    put_value(out, value)
    return out.getvalue()


def _read(reader: DefinitionReader, given: list[object]) -> list[SourceFilter]:
    """Return the filters in a definition: a key, and the client's own bytes in base64."""
    stated = []
    for each in given:
        if not isinstance(each, dict):
            reader.refuse("filters must be a list of objects")
        inner = DefinitionReader(each, "key", "encoded")
        try:
            encoded = b64decode(inner.required("encoded", str), validate=True)
            stated.append(filter_from(inner.required("key", str), encoded))
        except (ValueError, Fault) as error:
            reader.refuse(f"filters: not an AMQP value in base64: {error}")
    return stated


class SubscriptionDefinitions(DefinitionKind):
    """The durable subscriptions. Their names are identities: two clients may use the same name."""

    name = part = "subscriptions"

    def __init__(self, router: Router, journal: Journal) -> None:
        self._router: Final = router
        self._journal: Final = journal

    def page(self, offset: int, count: int, *, secrets: bool) -> tuple[list[Definition], int]:  # noqa: ARG002
        named = self._router.subscriptions.named
        chosen = [each for each in paged(named.values(), offset, count) if each.is_durable()]
        return [definition_of(each) for each in chosen], len(named)

    async def take(
        self, definitions: Sequence[Definition], terms: ImportTerms
    ) -> list[ImportOutcome]:
        return [self._take(each, terms) for each in definitions]

    def _take(self, definition: Definition, terms: ImportTerms) -> ImportOutcome:
        name = _shown_name(definition)
        try:
            wanted = WantedSubscription(definition, self._router)
            there = self._router.subscriptions.find(wanted.row)
            if there is not None and wanted.is_like(there):
                return ImportOutcome(name=name, result=UNCHANGED)
            if there is not None and not _may_be_replaced(there):
                return ImportOutcome(name=name, result=REFUSED, note=IN_USE)
            if not terms.dry_run:
                self._begin(wanted)
        except (RoutingError, DefinitionError) as error:
            return ImportOutcome(name=name, result=REFUSED, note=str(error))
        return ImportOutcome(name=name, result=ADDED if there is None else CHANGED)

    def _begin(self, wanted: WantedSubscription) -> None:
        """Begin a subscription; an empty one of its identity ends. It has no consumer for now."""
        router, batch = self._router, self._journal.batch
        topic = router.topic_of(wanted.spec.address, batch)
        begun = router.subscriptions.begin(
            wanted.row, wanted.spec, wanted.terms, topic=topic, batch=batch, owner=wanted.owner
        )
        router.expiries.link_ended(
            begun.expiry, Ending.CONNECTION_LOST, batch, connection=-1, session=-1
        )


def definition_of(subscription: Subscription) -> Definition:
    """Return the definition of a durable subscription."""
    identity = subscription.identity
    assert identity is not None
    wanted, terms = subscription.spec.filter, subscription.terms
    selector = None if wanted is None else wanted.selector
    return {
        "name": identity[1],
        "container_id": identity[0],
        "shared": subscription.is_shared,
        "address": subscription.spec.address.text,
        "selector": None if selector is None else selector.text,
        "no_local": wanted is not None and wanted.excluded_publisher != "",
        "filters": [_filter_shown(each) for each in subscription.spec.stated],
        "durability": int(terms.durability),
        "expiry_policy": terms.expiry_policy,
        "timeout_s": int(terms.timeout_s),
        "owner": subscription.owner,
    }


def _filter_shown(stated: SourceFilter) -> Mapping[str, object]:
    return {"key": stated.key, "encoded": b64encode(stated.encoded).decode()}


def _may_be_replaced(there: Subscription) -> bool:
    """Return whether nothing is lost if a subscription ends: neither messages nor consumers."""
    return there.queue.contents() == 0 and not there.queue.consumers.attached


def _shown_name(definition: Definition) -> str:
    """Return the name of a definition's subscription, with the client that it belongs to."""
    client = definition.get("container_id")
    name = name_in(definition)
    return f"{client}/{name}" if isinstance(client, str) else name
