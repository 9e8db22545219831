"""Explain what an attach with given properties would lead to, without performing it.

Applies the rules of a real attach: the row of SUB-01 to SUB-12, the check for conflicts, and the
node that exists or would be created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.amqp.errors import NOT_FOUND, RESOURCE_LOCKED, LinkFault
from broker.links.attach import KINDS, kind_of
from broker.links.container import Container
from broker.links.refusal import as_link_fault
from broker.links.subscriber import check_name
from broker.management.entity import Caller, Operation
from broker.management.request import BAD_REQUEST, Refused, Request
from broker.management.response import Response
from broker.routing.addresses import address as addresses
from broker.routing.addresses import pattern
from broker.routing.addresses.address import Address
from broker.routing.addresses.identity import identity_of
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.errors import NoSuchNode, RoutingError
from broker.routing.queues.node import TOPIC, Node
from broker.routing.queues.queue import Queue
from broker.routing.selector import parse_selector
from broker.routing.topics.subscription import (
    REFUSALS,
    AttachVerdict,
    SubscriptionSpec,
    SubscriptionState,
    SubscriptionTraits,
    judge,
    row_of,
)

ATTACH: Final = "attach"

KNOWN: Final = (
    *("container_id", "link_name", "address", "lookup", "kind"),
    *("durable", "shared", "global", "selector", "no_local"),
)


class Explanations:
    """The operation EXPLAIN of the type `attach`: a receiver's attach, by what exists now."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def operations(self) -> Mapping[str, Operation]:
        return {"EXPLAIN": self._explain}

    def _explain(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Explain an attach: without a source if `lookup` is set, else with source `address`.

        The response has `verdict`, `node` (which one, and whether it would be created), and
        `refusal` with `description`, null if the attach would be accepted. Of a topic it has `row`
        (such as SUB-05) and `subscription`, which are null for a queue.
        """
        request.only(*KNOWN)
        told: dict[str, object] = dict.fromkeys(
            ("kind", "node", "row", "subscription", "verdict", "refusal", "description")
        )
        try:
            self._meet(request, told)
        except RoutingError as refusal:
            _refuse(told, as_link_fault(refusal))
        except LinkFault as fault:
            _refuse(told, fault)
        return Response(body=told)

    def _meet(self, request: Request, told: dict[str, object]) -> None:
        """Take the steps of an attach, and record their results in `told`."""
        lookup = request.flag("lookup")
        facts = SubscriptionTraits(
            has_source=not lookup,
            is_shared=request.flag("shared"),
            is_global=request.flag("global"),
            is_durable=request.flag("durable"),
        )
        text = request.text("address", "")
        if lookup == bool(text):
            raise Refused(BAD_REQUEST, "say either an address, or lookup")
        address = Address("") if lookup else self._address(request, facts, text)
        if not lookup:
            told["kind"] = address.kind
        if lookup or address.kind == TOPIC:
            self._judge(request, facts, address, told=told)
        else:
            self._consume(request, address, told=told)
        if not lookup and told["refusal"] is None:
            told["node"] = self._place(address)

    def _address(self, request: Request, facts: SubscriptionTraits, text: str) -> Address:
        """Return the address that `text` is, with the kind of node that an attach would get."""
        word = request.text("kind", "")
        if word and word not in KINDS:
            raise Refused(BAD_REQUEST, f"kind must be one of {', '.join(KINDS)}")
        wanted = kind_of([word] if word else [])
        if not wanted and (facts.is_shared or facts.is_global):
            wanted = TOPIC
        router = self._container.router
        address = router.parse(addresses.check(text), wanted)
        return address.of_kind(router.kind_of(address))

    def _judge(
        self,
        request: Request,
        facts: SubscriptionTraits,
        address: Address,
        *,
        told: dict[str, object],
    ) -> None:
        """Record the row, and the verdict of the rules SUB-21 to SUB-26, in `told`."""
        container_id = request.text("container_id", "")
        name = request.text("link_name", "")
        row = row_of(facts, link_name=name, container_id=container_id)
        told["row"] = f"SUB-{row.number:02}"
        told["subscription"] = None if row.identity is None else identity_of(row.identity)
        holder = self._container.holder(container_id, name)
        there = self._container.router.subscriptions.find(row)
        spec = self._spec(request, container_id, address)
        state = SubscriptionState(link=None if holder is None else holder.traits)
        if there is not None:
            state = SubscriptionState(
                link=state.link,
                exists=True,
                is_shared=there.is_shared,
                wants_the_same=not facts.has_source or there.spec.is_like(spec),
                consumers=len(there.queue.consumers.attached),
                holds=holder is not None and holder.subscription is there,
            )
        verdict = judge(facts, state)
        told["verdict"] = verdict.value
        if verdict in REFUSALS:
            _refuse(told, LinkFault(RESOURCE_LOCKED, verdict.value))
        elif verdict is AttachVerdict.MISSING:
            _refuse(told, LinkFault(NOT_FOUND, verdict.value))

    def _consume(self, request: Request, address: Address, *, told: dict[str, object]) -> None:
        """Record in `told` what a consumer of a queue would meet.

        Raise HeldExclusively if the link has the name of another one, NoSuchNode if there is no
        such queue and none may be created.
        """
        self._spec(request, request.text("container_id", ""), address)  # a wrong selector refuses
        container_id, name = request.text("container_id", ""), request.text("link_name", "")
        check_name(self._container.holder(container_id, name))
        self._place(address)
        node = self._container.router.find(address)
        told["verdict"] = _queue_verdict(node)

    def _place(self, address: Address) -> str:
        """Describe the node: it exists, it would be created, or it is a pattern of topics.

        Raise NoSuchNode if it does not exist and may not be created.
        """
        router, kind = self._container.router, address.kind
        if kind == TOPIC:
            pattern.check(address.key)
            if address.is_pattern:
                pattern.check(address.name)
                return f"every topic that {address.name} matches"
            address = address.topic()
        name = address.text
        node = router.find(address)
        if node is not None:
            owned = f", of connection {node.owner} alone" if node.is_exclusive else ""
            return f"the {kind} {name}, which is there{owned}"
        addresses.check_new(name)
        if not router.policy_of(name, kind).auto_create:
            raise NoSuchNode(f"no {kind} {name}, and it may not be created")
        return f"the {kind} {name}, which is created"

    def _spec(self, request: Request, container_id: str, address: Address) -> SubscriptionSpec:
        text = request.text("selector", "")
        selector = parse_selector(text) if text else None
        excluded = container_id if request.flag("no_local") else ""
        wanted = ConsumerFilter(selector, excluded) if selector is not None or excluded else None
        return SubscriptionSpec(address, wanted)


def _queue_verdict(node: Node | None) -> str:
    """Return what a consumer of a queue meets there; `node` is None if there is no queue yet."""
    if not isinstance(node, Queue):
        return "create the queue, and consume from it"
    if node.is_exclusive:
        return f"consume from the queue there is, on connection {node.owner}; others are refused"
    consumers = node.consumers
    others = len(consumers.attached)
    if others and consumers.exclusivity is not None and consumers.exclusivity.in_force:
        return "stand by: another consumer is served alone"
    if others:
        return f"consume from the queue there is, in turn with other consumers: {others}"
    return "consume from the queue there is, as its only consumer"


def _refuse(told: dict[str, object], fault: LinkFault) -> None:
    told["refusal"] = fault.condition
    told["description"] = fault.description
