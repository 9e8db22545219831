"""Rules in one line each, users that have only those rights, and what a refused client is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from broker.amqp.errors import UNAUTHORIZED_ACCESS
from broker.amqp.outcomes import Rejected, TransactionalState
from broker.amqp.performatives import Attach, Close, Detach, Flow, Open
from broker.security.access import AccessRules
from broker.security.conditions import NO_ENTRANCE
from broker.security.decision import Decision
from broker.security.entrance import Entrance
from broker.security.identity import ADMIN, Identity
from broker.security.limits import UserLimits
from broker.security.resources import Resource
from broker.security.rules import Rule, rule_of
from tests.support.broker import Broker, Client, Doorman
from tests.support.frames import Disposition, Header, Transfer, opening

ADA = "ada"
"""The user whose rights a test names."""

OWNER = "owner"
"""A user with every right, which makes what a test needs before."""

CONNECTING = ("connect connection:amqp", "create temporary:queue")
"""Rights of every user, unless a test leaves them out: management answers on temporary queues."""


SOMEWHERE = "send queue:other"
"""A right without which a client cannot attach to the anonymous relay at all."""


class RuledUsers(Doorman):
    """An authenticator whose users have only the rights that rules give them, but for the owner.

    `roles` are those of a user by name. The logins of users in `ended` are no longer valid.
    """

    def __init__(self, roles: Mapping[str, Iterable[str]] | None = None) -> None:
        super().__init__()
        self.roles: dict[str, frozenset[str]] = {OWNER: frozenset({ADMIN})}
        self.roles.update({user: frozenset(given) for user, given in (roles or {}).items()})
        self.ended: set[str] = set()

    def identity(self, user: str) -> Identity:
        return Identity(user, roles=self.roles.get(user, frozenset()))

    def current(self, identity: Identity) -> Identity | None:
        return None if identity.user in self.ended else self.identity(identity.user)


def rule(id_: str, right: str, *, who: str = f"user:{ADA}", effect: str = "allow") -> Rule:
    """Return a rule for a right such as `send queue:a`; verbs are separated by commas."""
    verbs, resource = right.split()
    record = {"id": id_, "who": [who], "can": verbs.split(","), "on": [resource], "effect": effect}
    return rule_of(record, "rule")


def access_of(*rights: str, connecting: Iterable[str] = CONNECTING) -> AccessRules:
    """Return rules that give `ada` these rights, and the rights `connecting` to every user."""
    rules = [
        rule(f"c{number}-{who}", right, who=who)
        for number, right in enumerate(connecting)
        for who in ("authenticated", "anonymous")
    ]
    rules += [rule(f"r{number}", right) for number, right in enumerate(rights)]
    return AccessRules(rules)


def guarded(*rights: str, **fields: object) -> Broker:
    """Return a broker in which `ada` has these rights."""
    return Broker(authenticator=RuledUsers(), access=access_of(*rights), **fields)  # type: ignore[arg-type]


class RecordedRules:
    """Rules that record each decision: `decided` has user, right and whether it is allowed."""

    def __init__(self, rules: AccessRules) -> None:
        self.rules = rules
        self.version = rules.version
        self.limits = rules.limits
        self.decided: list[tuple[str, str, bool]] = []

    def decide(
        self,
        identity: Identity,
        verb: str,
        resource: Resource,
        *,
        entrance: Entrance = NO_ENTRANCE,
        client_id: str = "",
    ) -> Decision:
        """Decide by the rules, and record it."""
        decision = self.rules.decide(
            identity, verb, resource, entrance=entrance, client_id=client_id
        )
        self.decided.append((identity.user, f"{verb} {resource.text()}", decision.allowed))
        return decision

    def may_any(
        self, identity: Identity, verb: str, kind: str, *, entrance: Entrance = NO_ENTRANCE
    ) -> bool:
        return self.rules.may_any(identity, verb, kind, entrance=entrance)

    def limits_of(self, identity: Identity) -> UserLimits:
        return self.rules.limits_of(identity)

    def names_client_id(self, client_id: str) -> bool:
        return self.rules.names_client_id(client_id)

    def taken(self, user: str = ADA) -> list[tuple[str, bool]]:
        """Return the decisions about a user since the last call."""
        found = [(right, allowed) for whom, right, allowed in self.decided if whom == user]
        self.decided.clear()
        return found


def recorded(rules: AccessRules) -> tuple[RecordedRules, AccessRules]:
    """Return rules that record each decision, twice: as what they are, and for a broker."""
    found = RecordedRules(rules)
    return found, cast(AccessRules, found)


def dial_as(broker: Broker, user: str) -> Client:
    """Return a client of `user` that has logged in, and sent no open."""
    client = broker.dial()
    users = broker.container.authenticator
    assert isinstance(users, RuledUsers)
    client.peer.identity = users.identity(user)
    return client


def session_as(broker: Broker, user: str = ADA, container_id: str = "", **fields: object) -> Client:
    """Return a client of `user` with a session; its container-id is its name by default."""
    client = dial_as(broker, user)
    client.send_bytes(opening(container_id or user, **fields))
    client.expect(Header)
    client.expect(Open)
    assert client.peer.is_open, "not let in"
    client.begin()
    return client


def refusal_of_open(client: Client, container_id: str, **fields: object) -> str | None:
    """Open the connection; return why that is not permitted, None if it is."""
    client.send_bytes(opening(container_id, **fields))
    client.expect(Header)
    ours = client.expect(Open)
    if client.peer.is_open:
        client.expect_nothing()
        return None
    assert ours.properties["amqp:connection-establishment-failed"] is True
    return _text(client.expect_last(Close))


def refusal_of_attach(client: Client, attach: Attach) -> str | None:
    """Attach a link; return why that is not permitted, None if it is."""
    client.send(attach)
    answer = client.expect(Attach)
    if (answer.target if answer.role else answer.source) is not None:
        client.frames()
        return None
    detach = client.expect_last(Detach)
    assert detach.closed
    return _text(detach)


def refusal_of_message(client: Client) -> str | None:
    """Return why the message that was sent is not permitted, None if it is."""
    found = [body for body in client.bodies() if not isinstance(body, Flow | Transfer)]
    if not found:
        return None  # it was sent settled
    (told,) = found
    if isinstance(told, Detach):
        return _text(told)
    assert isinstance(told, Disposition), told
    state = told.state.outcome if isinstance(told.state, TransactionalState) else told.state
    if not isinstance(state, Rejected):
        return None
    assert state.error is not None
    assert state.error.condition == UNAUTHORIZED_ACCESS, state.error.description
    assert "delivery-tag" in {str(key) for key in state.error.info}
    return state.error.description


def refusal_of_detach(client: Client, handle: int = 0, *, closed: bool = True) -> str | None:
    """Detach a link; return why what that would end is not permitted, None if it is."""
    client.send(Detach(handle=handle, closed=closed))
    answer = client.expect_last(Detach)
    assert answer.closed is closed
    return None if answer.error is None else _text(answer)


def _text(ending: Detach | Close) -> str:
    assert ending.error is not None
    assert ending.error.condition == UNAUTHORIZED_ACCESS, ending.error.description
    assert ending.error.description is not None
    return ending.error.description


def refusal(right: str) -> str:
    """Return the text with which a client is refused a right that no rule gives it."""
    verb, resource = right.split()
    return f"not allowed to {verb} {resource} (no rule allows it)"


def things(broker: Broker) -> dict[str, list[str]]:
    """Return what there is in a broker, to compare before and after a refusal."""
    router = broker.router
    return {
        "queues": sorted(router.queues),
        "topics": sorted(router.topics),
        "subscriptions": sorted(str(identity) for identity in router.subscriptions.named),
        "links": sorted(link.name for link in broker.container.links()),
        "messages": [f"{each.address} {each.contents()}" for each in broker.queues()],
        "sinks": sorted(router.staging_area.sinks),
    }


def own_subscriptions(broker: Broker, user: str) -> None:
    """Make `user` the owner of all named subscriptions, as if that user had begun them."""
    subscriptions = broker.router.subscriptions
    for subscription in subscriptions.named.values():
        subscriptions.adopt(subscription, user, broker.journal.batch)
