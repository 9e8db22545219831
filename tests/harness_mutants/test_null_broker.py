"""The harness on a broker that accepts everything and delivers nothing.

A case that passes there, and is not on the list of courtesy, says nothing about the rule that it
names: it would pass on a broker that loses every message.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import pytest

from tests.conformance.harness import Result, all_cases
from tests.conformance.report import in_text
from tests.conformance.verdict import Kind, Verdict
from tests.harness_mutants.courtesy import line_of, listed
from tests.harness_mutants.null_broker import null_broker
from tests.harness_mutants.runs import judge_together, options

SHORT_S: Final = 0.3
"""Seconds for each answer: most cases wait in vain, and the null broker is not slow."""

LONG_S: Final = 10.0

NO_RESTART: Final = "true"
"""The command in place of a restart: the null broker has nothing that could get lost."""


@pytest.fixture(scope="module")
def results() -> list[Result]:
    """Return the results of all cases."""

    async def judged() -> list[Result]:
        async with null_broker() as port:
            given = options(port, timeout_s=SHORT_S, restart=NO_RESTART)
            return await judge_together(all_cases(), given)

    return asyncio.run(judged())


def test_only_cases_of_courtesy_pass_on_a_broker_that_delivers_nothing(
    results: list[Result],
) -> None:
    passed = {line_of(each.case) for each in results if each.verdict is Verdict.PASSED}
    assert sorted(passed - set(listed())) == []
    assert any(each.verdict is Verdict.FAILED for each in results)


async def test_no_case_excuses_a_broker_that_delivers_nothing(results: list[Result]) -> None:
    """A case does not apply for want of an offer alone, not because nothing came."""
    hasty = {each.case.name for each in results if is_excuse(each)}
    cases = [each for each in all_cases() if each.name in hasty]
    async with null_broker() as port:
        patient = await judge_together(cases, options(port, timeout_s=LONG_S, restart=NO_RESTART))
    assert [f"{each.case.name}: {each.reason}" for each in patient if is_excuse(each)] == []


def is_excuse(result: Result) -> bool:
    """Return whether a case does not apply, though the broker offers what it is about."""
    return result.verdict is Verdict.NOT_APPLICABLE and result.kind is not Kind.NOT_OFFERED


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
