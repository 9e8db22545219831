"""Endpoints that explain what links and messages meet, with their bodies and responses."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from broker.http.api.endpoint import POST, Endpoint
from broker.http.api.entities import stated
from broker.http.api.models import NAMES_MAX, MessagePlace, RequestBody, Text
from broker.management.credit import CREDIT
from broker.management.explain import ATTACH
from broker.management.flow import FLOW
from broker.management.route import ROUTE


class AttachBody(RequestBody):
    """An attach of a receiver that is to be explained."""

    container_id: Text | None = None
    link_name: Text | None = None
    address: Text | None = None
    lookup: bool | None = None
    kind: Text | None = None
    durable: bool | None = None
    shared: bool | None = None
    is_global: bool | None = Field(default=None, alias="global")
    selector: Text | None = None
    no_local: bool | None = None


class AttachRecord(BaseModel):
    """The result that an attach would have; `refusal` is null if it would be accepted."""

    kind: str | None
    node: str | None
    row: str | None
    subscription: str | None
    verdict: str | None
    refusal: str | None
    description: str | None


class FlowConsumer(BaseModel):
    """A consumer of a queue, and why it gets messages or none.

    `served` is `CONTAINER-ID/LINK` of the consumer that has the queue or `group` in its place.
    """

    container_id: str
    link: str
    session: str
    selected: int
    selector: str | None
    group: str | None
    served: str | None
    reason: str
    explanation: str


class FlowRecord(BaseModel):
    """The flow from a queue: its messages by state, and why consumers get them or none.

    `selected` of the first `examined` ready messages pass the filter of a consumer.
    """

    queue: str
    ready: int
    unsettled: int
    scheduled: int
    paused: int
    held: int
    examined: int
    reason: str
    explanation: str
    consumers: list[FlowConsumer]
    not_listed: int


class CreditBody(RequestBody):
    """Producers that are to be explained: `kind` is the capability that they give."""

    address: Text
    kind: Text | None = None


class CreditProducer(BaseModel):
    """A producer, and why it has credit or none."""

    container_id: str
    link: str
    session: str
    credit: int
    unsettled: int
    reason: str
    explanation: str


class CreditRecord(BaseModel):
    """The credit of the producers of a node.

    `room` is for how many more messages it has room, null for any number; `promised` are those for
    which producers have credit.
    """

    kind: str
    node: str
    room: int | None
    promised: int
    reason: str
    explanation: str
    producers: list[CreditProducer]
    not_listed: int


class RouteBody(RequestBody):
    """A message that is to be explained: `kind` is the capability that its producer gives."""

    address: Text
    kind: Text | None = None
    publisher: Text | None = Field(default=None, description="the client id of the producer")
    properties: (
        Annotated[dict[Text, str | int | float | bool], Field(max_length=NAMES_MAX)] | None
    ) = Field(default=None, description="the application properties")


class RouteRecord(BaseModel):
    """The way of a message. A node that `is_there` not would be made, or the message refused.

    `subscriptions` are the identities of those that would get it, at most 500 of them.
    """

    kind: str
    node: str
    is_there: bool
    key: str
    subscriptions: list[str]
    unnamed: int
    not_listed: int


def explain_endpoints() -> list[Endpoint]:
    return [
        Endpoint(
            method=POST,
            path="/explain/attach",
            summary="Say what an attach of a receiver would lead to",
            right="view some part of management",
            work=stated(ATTACH, "EXPLAIN"),
            body=AttachBody,
            result=AttachRecord,
        ),
        Endpoint(
            method=POST,
            path="/explain/route",
            summary="Say where a message would go: the node, and the subscriptions of a topic",
            right="view management:queues, topics and subscriptions",
            work=stated(ROUTE, "EXPLAIN"),
            body=RouteBody,
            result=RouteRecord,
        ),
        Endpoint(
            method=POST,
            path="/explain/flow",
            summary="Say why the consumers of a queue or subscription get no messages",
            right="view management:queues, subscriptions and connections",
            work=stated(FLOW, "EXPLAIN"),
            body=MessagePlace,
            result=FlowRecord,
        ),
        Endpoint(
            method=POST,
            path="/explain/credit",
            summary="Say why the producers of an address get no credit",
            right="view management:queues, topics and connections",
            work=stated(CREDIT, "EXPLAIN"),
            body=CreditBody,
            result=CreditRecord,
        ),
    ]
