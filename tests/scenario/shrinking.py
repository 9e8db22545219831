"""Delta debugging: reduce the operations of a failing run to a few that still make it fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tests.scenario.simulation import failure_of, operations_of

TRIES: Final = 300


def shrunk(count: int, fails: Callable[[list[int]], bool], *, tries: int = TRIES) -> list[int]:
    """Return a short list of the indexes below `count` for which `fails` is true, as it is for all.

    Leave out halves, then smaller parts, until no single index can be left out or `tries` calls of
    `fails` are used up.
    """
    kept = list(range(count))
    size = max(1, count // 2)
    while True:
        start = 0
        before = len(kept)
        while start < len(kept) and tries > 0:
            fewer = kept[:start] + kept[start + size :]
            tries -= 1
            if fails(fewer):
                kept = fewer
            else:
                start += size
        if tries == 0 or (size == 1 and len(kept) == before):
            return kept
        size = max(1, size // 2)


def report(seed: int, command: str, chosen: Sequence[int] | None = None) -> str | None:
    """Return None if the run of the seed is correct, else its failure with few operations.

    `command` is the shell command that runs the test again. If `chosen` is given, only operations
    of these indexes are run.
    """
    setting, operations = operations_of(seed)
    if chosen is not None:
        operations = [operations[each] for each in chosen]
    failure = failure_of(setting, operations)
    if failure is None:
        return None

    def fails(indexes: list[int]) -> bool:
        return failure_of(setting, [operations[each] for each in indexes]) is not None

    indexes = shrunk(len(operations), fails)
    few = failure_of(setting, [operations[each] for each in indexes])
    names = [each if chosen is None else chosen[each] for each in indexes]
    lines = [
        f"seed {seed}: {type(failure).__name__}: {failure}",
        f"with {len(indexes)} of {len(operations)} operations: {few}",
        *[f"{name:5}: {operations[each]}" for name, each in zip(names, indexes, strict=True)],
        f"  and {setting}",
        f"to run it again: {command} --seed {seed}",
        f"the short one: {command} --seed {seed} --operations {','.join(map(str, names))}",
    ]
    return "\n".join(lines)
