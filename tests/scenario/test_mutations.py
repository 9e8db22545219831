"""The simulation finds deliberate bugs; one that finds nothing would pass for ever.

Interpreted, whatever is tested: a process of its own runs a copy with the bug.
"""

from __future__ import annotations

import pytest

from tests.scenario.mutations import MUTATIONS, ROOT, Mutation, mutated, simulate

pytestmark = pytest.mark.incompatible_with_mypyc


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[each.name for each in MUTATIONS])
def test_the_simulation_finds(mutation: Mutation) -> None:
    assert simulate(mutation) is not None


def test_a_bug_without_a_place_is_told() -> None:
    """Or else a source that has changed would be tested without its bug."""
    with pytest.raises(ValueError, match="0 times"):
        mutated(MUTATIONS[0], "something else")


def test_bugs_change_what_they_say() -> None:
    for each in MUTATIONS:
        text = (ROOT / each.path).read_text()
        assert mutated(each, text) != text
