"""Rights of the built-in roles."""

from __future__ import annotations

import pytest

from broker.security.access import AccessRules
from broker.security.built_in import BUILT_IN_ROLES, built_in_rules
from broker.security.identity import Identity
from broker.security.resources import NAMES, VERBS, Resource, resource_of

RULES = AccessRules()


def may(role: str, verb: str, resource: Resource, client_id: str = "c1") -> bool:
    identity = Identity("ann", roles=frozenset({role}))
    return RULES.decide(identity, verb, resource, client_id=client_id).allowed


HAVE = [
    # verb, resource, roles
    ("send", "queue:orders", "admin application pipeline"),
    ("receive", "queue:orders", "admin application"),
    ("browse", "queue:orders", "admin application pipeline"),
    ("create", "queue:orders", "admin application pipeline"),
    ("delete", "queue:orders", "admin"),
    ("purge", "queue:orders", "admin"),
    ("view", "queue:orders", "admin monitor pipeline"),
    ("lease", "queue:orders", "admin pipeline"),
    ("stage", "queue:orders", "admin pipeline"),
    ("send", "queue:$own", "admin"),
    ("send", "topic:news", "admin application pipeline"),
    ("send", "topic:$own", "admin"),
    ("subscribe", "topic:news.#", "admin application"),
    ("subscribe", "topic:#", "admin application"),
    ("stage", "topic:news", "admin pipeline"),
    ("use", "subscription:c1/news", "admin application"),
    ("end", "subscription:c1/news", "admin application"),
    ("purge", "subscription:c1/news", "admin"),
    ("use", "subscription:c2/news", "admin"),
    ("lease", "subscription:c2/news", "admin pipeline"),
    ("share", "global-subscription:news", "admin application"),
    ("view", "global-subscription:news", "admin monitor pipeline"),
    ("create", "temporary:queue", "admin application monitor pipeline"),
    ("send", "temporary:topic", "admin application"),
    ("connect", "connection:amqps", "admin application monitor pipeline"),
    ("use", "client-id:c2", "admin"),
    ("impersonate", "user-id:bob", "admin pipeline"),
    ("view", "management:queues", "admin monitor"),
    ("view", "management:users", "admin"),
    ("view", "management:messages", "admin"),
    ("edit", "management:queues", "admin"),
    ("edit", "management:sinks", "admin pipeline"),
    ("view", "management:leases", "admin monitor pipeline"),
    ("view", "management:*", "admin"),
    ("edit", "management:*", "admin"),
]


@pytest.mark.parametrize("role", BUILT_IN_ROLES)
@pytest.mark.parametrize(
    ("verb", "text", "roles"), [pytest.param(*each, id=" ".join(each[:2])) for each in HAVE]
)
def test_a_role_has(verb: str, text: str, roles: str, role: str) -> None:
    assert may(role, verb, resource_of(text, verb)) is (role in roles.split())


@pytest.mark.parametrize("kind", VERBS)
def test_an_administrator_may_do_everything(kind: str) -> None:
    name = NAMES.get(kind, ("any.name",))[0]
    for verb in VERBS[kind]:
        assert may("admin", verb, Resource(kind, name, "key")), verb


@pytest.mark.parametrize("kind", VERBS)
def test_without_a_role_nothing_is_allowed(kind: str) -> None:
    for verb in VERBS[kind]:
        assert not may("none", verb, Resource(kind, NAMES.get(kind, ("x",))[0]))


def test_the_rules_of_roles_have_ids_of_their_own() -> None:
    ids = [rule.id for rule in built_in_rules()]
    assert len(set(ids)) == len(ids)
    assert {rule.who for rule in built_in_rules()} == {(f"role:{role}",) for role in BUILT_IN_ROLES}
