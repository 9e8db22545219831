"""A deliberate bug of the broker that the conformance harness must find."""

from __future__ import annotations

from dataclasses import dataclass

from tests.scenario.mutations import Mutation


@dataclass(frozen=True)
class Mutant:
    """A bug, and the clauses that it breaks, as `--clause` takes them: 2.6.7, jms:10.3.

    The bug is found if a case of one of these clauses fails.
    """

    mutation: Mutation
    clauses: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.mutation.name
