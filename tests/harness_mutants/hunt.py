"""A run of the harness against a broker with a bug: which cases find it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conformance.conftest import SETTINGS
from tests.conformance.harness import Case, Result, all_cases, chosen, is_of, judge
from tests.conformance.verdict import Kind, Options, Verdict
from tests.harness_mutants.mutant import Mutant
from tests.harness_mutants.patched_sources import PatchedSources
from tests.harness_mutants.runs import judge_together, options
from tests.interop.broker_process import PASSWORD, USER
from tests.interop.restarted_broker import RestartedBroker

TIMEOUT_S: Final = 3.0
"""Seconds for each answer: a bug often shows in that none comes."""


@dataclass(frozen=True)
class Finding:
    """The results of the cases of a bug's clauses, and the seconds that they took."""

    results: list[Result]
    seconds: float

    @property
    def failed(self) -> list[Result]:
        return [each for each in self.results if each.verdict is Verdict.FAILED]


def cases_of(clauses: Sequence[str]) -> list[Case]:
    """Return the cases of `clauses`; raise ValueError if one has none."""
    for clause in clauses:
        if not any(is_of(each, clause) for each in all_cases()):
            raise ValueError(f"no case belongs to the clause {clause}")
    return chosen(all_cases(), clauses)


def hunt(sources: PatchedSources, mutant: Mutant | None, cases: list[Case]) -> Finding:
    """Run `cases` against a broker with the bug of `mutant`, None for none."""
    began = time.monotonic()
    mutation = None if mutant is None else mutant.mutation
    with tempfile.TemporaryDirectory() as folder, sources.patched(mutation):
        broker = RestartedBroker(
            Path(folder),
            settings=f'store = "sqlite:///store.db"\n{SETTINGS}',
            program=[sys.executable, "-m", "jms_broker"],
            variables={
                "PYTHONPATH": str(sources.folder),
                "JMS_BROKER_USER": USER,
                "JMS_BROKER_PASSWORD": PASSWORD,
            },
        )
        try:
            results = asyncio.run(_judged(cases, broker))
        finally:
            broker.kill()
    return Finding(results, time.monotonic() - began)


async def _judged(cases: list[Case], broker: RestartedBroker) -> list[Result]:
    """Run cases together; if none fails, those that restart the broker, one after another."""
    alone = options(broker.port, timeout_s=TIMEOUT_S)
    together = await judge_together(cases, alone)
    results = await _confirmed(cases, together, alone)
    if any(each.verdict is Verdict.FAILED for each in results):
        return results
    with_restart = options(broker.port, timeout_s=TIMEOUT_S, restart=broker.restart)
    return [
        await judge(case, with_restart) if result.kind is Kind.OPTION_MISSING else result
        for case, result in zip(cases, results, strict=True)
    ]


async def _confirmed(cases: list[Case], results: list[Result], alone: Options) -> list[Result]:
    """Run failed cases again, one after another, until one fails again.

    On a busy machine a case may wait in vain beside seven others; that is no bug of the broker.
    """
    confirmed: list[Result] = []
    for case, result in zip(cases, results, strict=True):
        is_confirmed = any(each.verdict is Verdict.FAILED for each in confirmed)
        if result.verdict is Verdict.FAILED and not is_confirmed:
            result = await judge(case, alone)
        confirmed.append(result)
    return confirmed
