"""Descriptions of refusals."""

import pytest

from broker.security.decision import DEFAULT, OVERLAP, UNDECIDED, Decision
from broker.security.resources import Resource

TEXTS = [
    pytest.param("no-payroll", OVERLAP, "(rule no-payroll)", id="a deny rule"),
    pytest.param("", DEFAULT, "(no rule allows it)", id="no rule"),
    pytest.param("", UNDECIDED, "(no rule allows it)", id="a limit"),
]


@pytest.mark.parametrize(("rule", "because", "expected"), TEXTS)
def test_a_refusal_names_verb_resource_and_rule(rule: str, because: str, expected: str) -> None:
    decision = Decision(allowed=False, rule=rule, because=because)
    text = decision.text("send", Resource("topic", "hr.payroll", "june"))
    assert text == f"not allowed to send topic:hr.payroll/june {expected}"
