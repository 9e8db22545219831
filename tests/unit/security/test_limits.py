"""Limits of users: how they are read, and that the strictest that matches counts."""

from __future__ import annotations

from typing import Final

import pytest

from broker.security.access import AccessRules
from broker.security.identity import Identity
from broker.security.limits import (
    AMOUNT_MAX,
    AMOUNTS,
    CONNECTIONS,
    LINKS,
    NONE,
    SESSIONS,
    UserLimits,
    limit_of,
)
from broker.security.rules import WHO_MAX, RuleError

pytestmark = pytest.mark.requirement("SEC-05")

RECORD: Final[dict[str, object]] = {"who": ["role:app"], "connections": 50}


def test_a_limit_is_read() -> None:
    record: dict[str, object] = {"who": ["user:ann", "anonymous"]}
    amounts = {name: number for number, name in enumerate(AMOUNTS, start=1)}
    limit = limit_of({**record, **amounts}, 7)
    assert (limit.name(), limit.who, limit.amounts) == (
        "limit 7",
        ("user:ann", "anonymous"),
        amounts,
    )
    assert limit_of({**RECORD, "connections": AMOUNT_MAX}, 1).amounts == {CONNECTIONS: AMOUNT_MAX}


WRONG = [
    pytest.param({"id": "a"}, "limit 3: unknown key 'id'; only who, connections, ", id="an id"),
    pytest.param({"who": []}, "limit 3: who must be a list", id="for nobody"),
    pytest.param({"who": ["ann"]}, "limit 3: who: 'ann': only user:NAME", id="no kind of user"),
    pytest.param({"who": ["user:*"]}, "limit 3: who: '*': a name has", id="a wildcard"),
    pytest.param(
        {"who": [f"user:u{number}" for number in range(WHO_MAX + 1)]},
        f"limit 3: who has {WHO_MAX + 1} values, at most {WHO_MAX}",
        id="too many users",
    ),
    pytest.param({"connections": 0}, "limit 3: connections = 0: from 1 to", id="none allowed"),
    pytest.param({"connections": AMOUNT_MAX + 1}, f"from 1 to {AMOUNT_MAX}", id="too much"),
    pytest.param({"connections": True}, "limit 3: connections must be a whole number", id="a flag"),
    pytest.param({"connections": 1.5}, "connections must be a whole number", id="a fraction"),
    pytest.param({"connections": "5"}, "connections must be a whole number", id="a text"),
]


@pytest.mark.parametrize(("changed", "told"), WRONG)
def test_a_wrong_limit_is_told(changed: dict[str, object], told: str) -> None:
    with pytest.raises(RuleError) as caught:
        limit_of({**RECORD, **changed}, 3)
    assert told in str(caught.value)


def test_a_limit_of_nothing_is_told() -> None:
    with pytest.raises(RuleError, match=r"limit 3: limits nothing; give one of connections, "):
        limit_of({"who": ["anonymous"]}, 3)


LIMITS: Final = [
    limit_of({"who": ["authenticated"], "connections": 50, "sessions": 9}, 1),
    limit_of({"who": ["role:app"], "connections": 20, "links": 7}, 2),
    limit_of({"who": ["user:ann", "anonymous"], "connections": 30}, 3),
]

MATCHING = [
    pytest.param(Identity("bob", roles=frozenset()), {CONNECTIONS: 50, SESSIONS: 9}, id="a user"),
    pytest.param(
        Identity("bob", roles=frozenset({"app"})),
        {CONNECTIONS: 20, SESSIONS: 9, LINKS: 7},
        id="a role of the login",
    ),
    pytest.param(
        Identity("carl", roles=frozenset()),
        {CONNECTIONS: 20, SESSIONS: 9, LINKS: 7},
        id="a role of the file",
    ),
    pytest.param(
        Identity("ann", roles=frozenset({"app"})),
        {CONNECTIONS: 20, SESSIONS: 9, LINKS: 7},
        id="the strictest of three",
    ),
    pytest.param(Identity("", roles=frozenset()), {CONNECTIONS: 30}, id="a client without a login"),
]


@pytest.mark.parametrize(("identity", "expected"), MATCHING)
def test_the_strictest_limit_that_matches_counts(
    identity: Identity, expected: dict[str, int]
) -> None:
    limits = AccessRules(roles={"app": ["carl"]}, limits=LIMITS).limits_of(identity)
    assert limits.amounts == expected
    assert {name: limits.most(name) for name in AMOUNTS} == {
        name: expected.get(name, NONE) for name in AMOUNTS
    }


def test_limits_are_told_in_one_line() -> None:
    assert UserLimits(LIMITS[:2]).text() == "connections = 20, sessions = 9, links = 7"
    assert UserLimits().text() == ""
