"""The simulation finds deliberate bugs; a simulation that finds none would prove nothing.

Bugs that let one client into what is another's are found by files of tests. `make mutations` runs
these files; here it is checked that the sources still have the places of those bugs.

The simulation runs interpreted even if the compiled broker is tested: each bug is in a copy that
runs in a process of its own.
"""

from __future__ import annotations

import pytest

from tests.scenario import leadership_mutations, security_mutations
from tests.scenario.mutations import MUTATIONS, ROOT, Mutation, mutated, simulate
from tests.scenario.security_mutations import COPIED

pytestmark = pytest.mark.incompatible_with_mypyc

CONTROLS = (*security_mutations.CONTROLS, *leadership_mutations.CONTROLS)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[each.name for each in MUTATIONS])
def test_the_simulation_finds(mutation: Mutation) -> None:
    assert simulate(mutation) is not None


def test_a_bug_without_a_place_is_told() -> None:
    """A bug without its place raises an error; else changed sources would be tested without it."""
    with pytest.raises(ValueError, match="0 times"):
        mutated(MUTATIONS[0], "something else")


def test_bugs_change_what_they_say() -> None:
    for each in (*MUTATIONS, *(control.mutation for control in CONTROLS)):
        text = (ROOT / each.path).read_text()
        assert mutated(each, text) != text


def test_bugs_of_security_have_tests_in_the_copy() -> None:
    for each in CONTROLS:
        assert (ROOT / each.file).is_file()
        assert each.tests.startswith(COPIED), each.tests
        name = each.tests.partition("::")[2].partition("[")[0]
        assert f"{name}(" in (ROOT / each.file).read_text() or not name, each.tests
