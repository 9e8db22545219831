"""The harness on a broker that accepts everything and delivers nothing.

A case that passes there, and is not on the list of courtesy, says nothing about the rule that it
names: it would pass on a broker that loses every message.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.conformance.harness import all_cases
from tests.conformance.report import in_text
from tests.conformance.verdict import Verdict
from tests.harness_mutants.courtesy import line_of, listed
from tests.harness_mutants.null_broker import null_broker
from tests.harness_mutants.runs import judge_together, options

SHORT_S: Final = 0.3
"""Seconds for each answer: most cases wait in vain, and the null broker is not slow."""

LONG_S: Final = 10.0


async def test_only_cases_of_courtesy_pass_on_a_broker_that_delivers_nothing() -> None:
    async with null_broker() as port:
        results = await judge_together(all_cases(), options(port, timeout_s=SHORT_S))
    passed = {line_of(each.case) for each in results if each.verdict is Verdict.PASSED}
    assert sorted(passed - set(listed())) == []
    assert any(each.verdict is Verdict.FAILED for each in results)


async def test_cases_of_courtesy_pass_on_a_broker_that_delivers_nothing() -> None:
    """Without this, a null broker that answers nothing would do, and the list could grow stale."""
    cases = [each for each in all_cases() if line_of(each) in listed()]
    async with null_broker() as port:
        results = await judge_together(cases, options(port, timeout_s=LONG_S))
    other = [in_text(each, frames=True) for each in results if each.verdict is not Verdict.PASSED]
    assert not other, "\n".join(other)


def test_the_list_names_each_case_once_and_as_it_is() -> None:
    counts = Counter(listed())
    assert [line for line, count in counts.items() if count > 1] == []
    assert sorted(set(counts) - {line_of(each) for each in all_cases()}) == []
