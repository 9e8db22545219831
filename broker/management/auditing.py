"""Audit records of requests to management, and of the changes in routing that clients cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from broker.audit.audit import Audit
from broker.audit.record import AMQP, DONE, FAILED, HTTP, REFUSED, WEBSOCKET, Actor, AuditEvent
from broker.links.access import subscription_resource
from broker.management.configuration import SETTINGS
from broker.management.connections import CONNECTION
from broker.management.definitions import DEFINITIONS
from broker.management.entity import Caller, Denied, actor_of
from broker.management.login_sources import LOGIN_SOURCE
from broker.management.members import MEMBER
from broker.management.messages import MESSAGE
from broker.management.request import FAILURES_FROM, Request
from broker.management.response import Response
from broker.management.subscriptions import SUBSCRIPTION
from broker.management.tokens import TOKEN
from broker.management.users import USER
from broker.routing.context import RoutingChange, RoutingChanges
from broker.routing.queues.node import QUEUE, TOPIC
from broker.routing.topics.subscriptions import DELETED as SUBSCRIPTION_DELETED
from broker.security.decision import Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity
from broker.security.resources import Resource

ACCESS_DENIED: Final = "access.denied"
BROWSED: Final = "message.browsed"

ACTIONS: Final = {
    (QUEUE, "PURGE"): "node.purged",
    (TOPIC, "PURGE"): "node.purged",
    (SUBSCRIPTION, "PURGE"): "subscription.purged",
    (SUBSCRIPTION, "DELETE"): SUBSCRIPTION_DELETED,
    (MESSAGE, "READ"): BROWSED,
    (MESSAGE, "DELETE"): "message.deleted",
    (MESSAGE, "CANCEL"): "message.deleted",
    (MESSAGE, "DELIVER"): "message.delivered-early",
    (MESSAGE, "MOVE"): "message.moved",
    (MESSAGE, "COPY"): "message.copied",
    (MESSAGE, "RETRY"): "message.retried",
    (CONNECTION, "DELETE"): "connection.closed",
    (SETTINGS, "SET-LOG-LEVEL"): "log.level-changed",
    (LOGIN_SOURCE, "DELETE"): "login.failures-forgotten",
    (MEMBER, "SWITCH"): "member.switched",
    (MEMBER, "DELETE"): "member.forgotten",
    (TOKEN, "CREATE"): "token.created",
    (TOKEN, "DELETE"): "token.revoked",
    ("backup", "CREATE"): "backup.started",
}
"""The actions of operations, by type and operation; others are called `TYPE.OPERATION`."""

SECRETS: Final = frozenset({"password", "token", "definitions"})
"""Arguments of requests, and parts of responses, that are neither recorded nor logged.

Definitions may have verifiers of passwords.
"""

VIAS: Final = {"ws": WEBSOCKET, "wss": WEBSOCKET, "http": HTTP, "https": HTTP}
"""The value of `via`, by the kind of the listener; others are AMQP."""


def via_of(entrance: Entrance) -> str:
    """Return how a client came in."""
    return VIAS.get(entrance.kind, AMQP)


def actor_at(identity: Identity, entrance: Entrance) -> Actor:
    """Return the actor that a client is, which came in by `entrance`."""
    return actor_of(identity, via=via_of(entrance), address=entrance.address)


def denied(actor: Actor, verb: str, resource: Resource, *, decision: Decision) -> AuditEvent:
    """Return the event of a request for which the rights were missing."""
    text = resource.text()
    return AuditEvent(
        action=ACCESS_DENIED,
        resource=text,
        actor=actor,
        result=REFUSED,
        rule=decision.rule or None,
        after={"verb": verb},
        repeat_key=(ACCESS_DENIED, actor.user, verb, text),
    )


def event_of(
    change: RoutingChange,
    actor: Actor,
    request_id: str | None = None,
    *,
    host: str | None = None,
) -> AuditEvent:
    """Return the event of a change in routing; with a `host`, one a minute is recorded from it."""
    facts: dict[str, object] = {}
    resource = f"{change.kind}:{change.name}"
    if change.identity is not None:
        facts["address"] = change.name
        resource = subscription_resource(change.identity).text()
    if change.dropped:
        facts["dropped"] = int(change.dropped)
    return AuditEvent(
        action=change.action,
        resource=resource,
        actor=actor,
        after=facts or None,
        request_id=request_id,
        repeat_key=None if host is None else (change.action, actor.user, host, resource),
    )


class ManagementAudit:
    """Records what callers do by management. `users_changed` records changes of users."""

    def __init__(
        self, audit: Audit, changes: RoutingChanges, users_changed: UsersChanged | None
    ) -> None:
        self._audit: Final = audit
        self._changes: Final = changes
        self._users_changed: Final = users_changed

    def denied(self, caller: Caller, denial: Denied) -> None:
        """Record that a caller lacked a right."""
        if self._audit.is_on:
            actor, verb = caller.actor(), denial.verb
            event = denied(actor, verb, denial.resource, decision=denial.decision)
            self._audit.record(replace(event, request_id=caller.request_id))

    def queried(self, caller: Caller, request: Request, kind: str) -> None:
        """Record that messages were listed: their headers may be confidential."""
        if self._audit.is_on and kind == MESSAGE:
            event = _event(caller, request, BROWSED)
            place = event.resource
            self._audit.record(replace(event, repeat_key=(BROWSED, caller.identity.user, place)))

    def performed(self, caller: Caller, request: Request, response: Response) -> None:
        """Record an operation and the changes that it made, or that it failed."""
        if not self._audit.is_on:
            return
        found = self._changes.take()
        for change in found:
            self._audit.record(event_of(change, caller.actor(), caller.request_id))
        is_failed = response.status >= FAILURES_FROM
        if request.type in (USER, DEFINITIONS) and not is_failed:
            if self._users_changed is not None:
                self._users_changed(caller.actor(), caller.request_id)
            if request.type == USER:
                return
        if found and not is_failed and request.operation in ("CREATE", "DELETE"):
            return  # the changes are what the request was for
        action = ACTIONS.get((request.type, request.operation))
        if action is None:
            action = f"{request.type}.{request.operation.lower()}"
        event = _event(caller, request, action)
        after = {**_said(request), **_result(response)}
        if request.type == TOKEN and isinstance(response.body, Mapping):
            after |= {
                key: response.body[key] for key in ("owner", "identity") if key in response.body
            }
        result = FAILED if is_failed else DONE
        self._audit.record(replace(event, result=result, after=after or None))


UsersChanged = Callable[[Actor, str | None], None]
"""Records the changes of users since the last call, made by an actor in a request."""


def _event(caller: Caller, request: Request, action: str) -> AuditEvent:
    return AuditEvent(
        action=action,
        resource=_resource(request),
        actor=caller.actor(),
        after=_said(request) or None,
        request_id=caller.request_id,
    )


def _resource(request: Request) -> str:
    """Return the resource of a request: the queue or subscription of messages, else the entity."""
    place = request.arguments.get("subscription") or request.arguments.get("queue")
    if isinstance(place, str) and request.type not in (QUEUE, TOPIC):
        kind = SUBSCRIPTION if request.arguments.get("subscription") else QUEUE
        return f"{kind}:{place}"
    return f"{request.type}:{request.name or request.identity or ''}"


def _said(request: Request) -> dict[str, object]:
    """Return the arguments of a request, without secrets, and the entity if it has a place."""
    said = {key: value for key, value in request.arguments.items() if key not in SECRETS}
    name = request.name or request.identity
    if name is not None and request.type == MESSAGE:
        said["identity"] = name
    return said


def _result(response: Response) -> Mapping[str, object]:
    """Return the counts of a response, or why it failed."""
    if response.status >= FAILURES_FROM:
        return {"status": response.status, "reason": response.description}
    body = response.body
    if not isinstance(body, Mapping):
        return {}
    return {key: value for key, value in body.items() if isinstance(value, int) and value}
