"""Explain why the producers of an address get no credit, by what is so now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.links.access import existing_node
from broker.links.container import Container
from broker.links.credited_producer import CreditedProducer
from broker.management.credit_reasons import (
    DISK,
    MEMORY,
    STORE_BEHIND,
    TEXTS,
    CreditFacts,
    reason_of_producer,
    reason_of_producers,
)
from broker.management.entity import Caller, Operation
from broker.management.flow_reasons import DRAINING
from broker.management.producer_address import producer_address
from broker.management.request import NOT_FOUND, Refused, Request
from broker.management.response import Response
from broker.routing.credit.credit_policy import CreditPolicy
from broker.routing.queues.node import TOPIC
from broker.security.resources import MANAGEMENT, Resource

CREDIT: Final = "credit"

VIEWED: Final = ("queues", "topics", "connections")
"""The parts of management that a client must be allowed to view: the response names all three."""

PRODUCERS_MAX: Final = 100
"""Maximum producers that a response explains; the others are counted."""


class Credits:
    """The operation EXPLAIN of the type `credit`."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def operations(self) -> Mapping[str, Operation]:
        return {"EXPLAIN": self._explain}

    def _explain(self, request: Request, caller: Caller) -> Response:
        """Explain the credit of the producers of `address`; `kind` is their capability.

        The response has `room`, for how many more messages the node has room (null without a limit
        that makes producers wait), `promised`, for how many producers have credit, `reason` with
        its `explanation`, and `producers`, each with its client, link, `credit`, `unsettled`,
        `reason` and `explanation`.
        """
        request.only("address", "kind")
        for part in VIEWED:
            caller.demand("view", Resource(MANAGEMENT, part))
        router = self._container.router
        address = producer_address(router, request)
        node = existing_node(router, address)
        if node is None:
            raise Refused(NOT_FOUND, f"no {address.kind} {address.text}")
        shortage = _shortage_of(router.credit_policy)
        # counted once: the room of a topic is that of all its subscriptions
        pool = node.credit_pool
        room = None if pool is None else int(node.room_for_more())
        promised = 0 if pool is None else int(pool.granted)
        attached = [each for each in node.producers if isinstance(each, CreditedProducer)]
        producers = [
            _told(
                each,
                CreditFacts(
                    credit=int(each.outstanding()),
                    shortage=shortage,
                    is_over_quota=each.is_over_quota(),
                    room=room,
                    promised=promised,
                    is_paced=node.is_paced(each),
                    window=int(each.window),
                    unsettled=int(each.unsettled),
                ),
            )
            for each in attached[:PRODUCERS_MAX]
        ]
        reason = reason_of_producers([str(each["reason"]) for each in producers])
        told = {
            "kind": address.kind,
            "node": address.name if address.kind == TOPIC else address.text,
            "room": room,
            "promised": promised,
            "reason": reason,
            "explanation": TEXTS[reason],
            "producers": producers,
            "not_listed": len(attached) - len(producers),
        }
        return Response(body=told)


def _told(producer: CreditedProducer, facts: CreditFacts) -> Mapping[str, object]:
    """Return the credit of a producer, and the reason if it has none."""
    reason, label = reason_of_producer(facts), producer.label()
    return {
        "container_id": label.container_id,
        "link": label.link,
        "session": label.session,
        "credit": facts.credit,
        "unsettled": facts.unsettled,
        "reason": reason,
        "explanation": TEXTS[reason],
    }


def _shortage_of(policy: CreditPolicy) -> str | None:
    """Return the reason for which no producer gets credit now; None if there is none."""
    shortage = policy.shortage()
    if shortage is None:
        return None
    if shortage is policy.draining:
        return DRAINING
    if shortage is policy.store_backpressure.waiting:
        return STORE_BEHIND
    return MEMORY if shortage is policy.memory.producers else DISK
