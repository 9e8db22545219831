"""Questions of operators about rights."""

from __future__ import annotations

import pytest

from broker.security.access import AccessRules
from broker.security.question import AccessQuestion
from broker.security.resources import Resource
from broker.security.rules import rule_of

RULES = AccessRules(
    [
        rule_of(
            {
                "id": "own",
                "who": ["role:r"],
                "can": ["use"],
                "on": ["client-id:{client_id}"],
                "when": {"listener": ["l"], "from": ["10.0.0.0/8"], "tls": True},
            },
            "rule 1",
        )
    ],
    {"r": ["cert:u"]},
)
WHOLE = {
    "verb": "use",
    "user": "u",
    "mechanism": "EXTERNAL",
    "client_id": "c",
    "listener": "l",
    "host": "10.0.0.1",
    "is_tls": True,
}

LACKING = [
    pytest.param({}, True, id="nothing"),
    pytest.param({"roles": ("r",), "mechanism": ""}, True, id="the mechanism, with the role"),
    *(pytest.param({name: ""}, False, id=name) for name in WHOLE if name not in ("verb", "is_tls")),
    pytest.param({"is_tls": False}, False, id="TLS"),
]


@pytest.mark.parametrize(("lacking", "expected"), LACKING)
def test_each_part_of_a_question_counts(lacking: dict[str, object], expected: bool) -> None:
    question = AccessQuestion(**{**WHOLE, **lacking})  # type: ignore[arg-type]
    asked = Resource("client-id", "c")
    assert question.decided_by(RULES, asked).allowed is expected
    assert (question.explained_by(RULES, asked).decision == "allowed") is expected
