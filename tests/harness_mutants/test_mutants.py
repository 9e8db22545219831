"""The conformance harness finds deliberate bugs; `make harness-mutants` tries all of them.

The brokers run interpreted, in processes of their own, whichever broker is under test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.harness_mutants import mutants_of_interplay, mutants_of_rules
from tests.harness_mutants.__main__ import main, row_of
from tests.harness_mutants.all_mutants import MUTANTS, chosen_by
from tests.harness_mutants.hunt import Finding, cases_of, hunt
from tests.harness_mutants.mutant import Mutant
from tests.harness_mutants.patched_sources import PatchedSources
from tests.scenario.mutations import ROOT, Mutation, mutated

TRIED: Final = chosen_by(
    [
        "a drain leaves the delivery-count as it is",
        "a rejected message is available again",
        "what follows the bar",
        "staged and committed again",
    ]
)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> PatchedSources:
    return PatchedSources(tmp_path_factory.mktemp("sources"))


@pytest.mark.parametrize("mutant", TRIED, ids=lambda mutant: mutant.name)
def test_the_harness_finds(mutant: Mutant, sources: PatchedSources) -> None:
    assert hunt(sources, mutant, cases_of(mutant.clauses)).failed != []


def test_the_harness_finds_nothing_without_a_bug(sources: PatchedSources) -> None:
    found = hunt(sources, None, cases_of([clause for each in TRIED for clause in each.clauses]))
    assert found.failed == []
    assert "**not found**" in row_of(TRIED[0], found)


def test_a_bug_that_no_case_finds_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    harmless = Mutation(
        "no bug", "broker/links/outcome.py", "case Rejected():", "case Rejected() :"
    )
    assert main([Mutant(harmless, ("3.4.3",))]) == 1
    assert "0 of 1 bugs found; without a bug none of" in capsys.readouterr().out


def test_there_are_forty_bugs_and_four_are_tried() -> None:
    assert len(TRIED) == 4
    assert (len(mutants_of_rules.MUTANTS), len(mutants_of_interplay.MUTANTS)) == (25, 15)
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)


def test_bugs_change_what_they_say_and_can_run() -> None:
    for each in MUTANTS:
        text = (ROOT / each.mutation.path).read_text()
        patched = mutated(each.mutation, text)
        assert patched != text
        compile(patched, each.mutation.path, "exec")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_clauses_of_a_bug_have_cases(mutant: Mutant) -> None:
    assert cases_of(mutant.clauses)


def test_a_clause_without_cases_is_told() -> None:
    with pytest.raises(ValueError, match=r"jms:99"):
        cases_of(["2.6.7", "jms:99"])


def test_a_patch_is_taken_back(sources: PatchedSources) -> None:
    mutation = MUTANTS[0].mutation
    file: Path = sources.folder / mutation.path
    whole = file.read_text()
    with sources.patched(mutation):
        assert file.read_text() == mutated(mutation, whole)
    assert file.read_text() == whole


def test_the_table_names_clause_and_case() -> None:
    assert row_of(MUTANTS[0], Finding([], 1.0)).endswith("| 2.6.7 | **not found** | 1.0 |")
