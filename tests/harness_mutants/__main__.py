"""Put each deliberate bug into a broker, and print which case of the harness finds it.

    make harness-mutants
    make harness-mutants ARGS="drain lease"

Words choose the bugs whose names have one of them. The status is 1 if a bug is not found, or if a
case fails on the broker without a bug; 2 if no bug is chosen.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.harness_mutants.all_mutants import MUTANTS, chosen_by
from tests.harness_mutants.hunt import Finding, cases_of, hunt
from tests.harness_mutants.mutant import Mutant
from tests.harness_mutants.patched_sources import PatchedSources

HEADER: Final = "| bug | clause | found by | seconds |\n|---|---|---|---|"


def main(mutants: Sequence[Mutant]) -> int:
    """Print a row for each bug, and the totals; return the exit status."""
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        sources = PatchedSources(Path(folder))
        survivors = [each for each in mutants if not _is_found(each, sources)]
        clauses = dict.fromkeys(clause for each in mutants for clause in each.clauses)
        innocent = hunt(sources, None, cases_of([*clauses]))
    for each in innocent.failed:
        print(f"failed without a bug: {each.case.source} {each.case.clause} {each.case.name}")
    print(
        f"{len(mutants) - len(survivors)} of {len(mutants)} bugs found; without a bug"
        f" {len(innocent.failed) or 'none'} of {len(innocent.results)} cases failed"
    )
    return 1 if survivors or innocent.failed else 0


def _is_found(mutant: Mutant, sources: PatchedSources) -> bool:
    found = hunt(sources, mutant, cases_of(mutant.clauses))
    print(row_of(mutant, found), flush=True)
    return bool(found.failed)


def row_of(mutant: Mutant, found: Finding) -> str:
    """Return a row of the table: the bug, the clause and the first case that found it, seconds."""
    if not found.failed:
        clauses = ", ".join(mutant.clauses)
        return f"| {mutant.name} | {clauses} | **not found** | {found.seconds:.1f} |"
    first = found.failed[0].case
    source = "" if first.source == "core" else f"{first.source}:"
    others = f" and {len(found.failed) - 1} more" if len(found.failed) > 1 else ""
    return (
        f"| {mutant.name} | {source}{first.clause} | `{first.name}`{others} | {found.seconds:.1f} |"
    )


if __name__ == "__main__":
    chosen = chosen_by(sys.argv[1:])
    if not chosen:
        print(f"none of {len(MUTANTS)} bugs has such a word in its name", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(chosen))
