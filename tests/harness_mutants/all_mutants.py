"""All deliberate bugs that the conformance harness must find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.harness_mutants import mutants_of_interplay, mutants_of_rules
from tests.harness_mutants.mutant import Mutant

MUTANTS: Final[tuple[Mutant, ...]] = (*mutants_of_rules.MUTANTS, *mutants_of_interplay.MUTANTS)


def chosen_by(words: Sequence[str]) -> list[Mutant]:
    """Return the bugs whose names have one of `words`; all of them without words."""
    return [each for each in MUTANTS if not words or any(word in each.name for word in words)]
