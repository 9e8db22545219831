"""Lists of numbers to be removed or read: mostly in ascending order, and without gaps."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from mypy_extensions import i64

from storage.sql.yielding import YIELD_EVERY, yield_interpreter

Range = tuple[int, int]
"""First and last number, both included."""

SORTED_AT_ONCE: Final = 16_384
"""Maximum numbers that are sorted without a break."""


def ascending(numbers: list[int]) -> list[int]:
    """Return the numbers in ascending order, each once: the same list if they are so already."""
    previous: i64 = -1
    left: i64 = YIELD_EVERY
    for each in numbers:
        number = i64(each)
        if number <= previous:
            return _sorted(numbers)
        previous = number
        left -= 1
        if left == 0:
            left = YIELD_EVERY
            yield_interpreter()
    return numbers


def _sorted(numbers: list[int]) -> list[int]:
    """Return the numbers in ascending order, each once; many are sorted in parts."""
    if len(numbers) <= SORTED_AT_ONCE:
        return sorted(set(numbers))
    parts: dict[int, list[int]] = {}
    left: i64 = YIELD_EVERY
    for number in numbers:
        part = number // SORTED_AT_ONCE
        if part in parts:
            parts[part].append(number)
        else:
            parts[part] = [number]
        left -= 1
        if left == 0:
            left = YIELD_EVERY
            yield_interpreter()
    found: list[int] = []
    for part in sorted(parts):
        found.extend(sorted(set(parts[part])))
        yield_interpreter()
    return found


def index_of(numbers: list[int], number: i64, near: i64) -> i64:
    """Return the index of the first of the ascending `numbers` that is not below `number`.

    As a rule it is the index `near`, or the next.
    """
    count = i64(len(numbers))
    if 0 < near <= count and i64(numbers[near - 1]) < number:
        if near == count or i64(numbers[near]) >= number:
            return near
        if near + 1 == count or i64(numbers[near + 1]) >= number:
            return near + 1
    return i64(bisect_left(numbers, int(number)))


def ranges(numbers: list[int]) -> list[Range]:
    """Return the numbers as ranges, in ascending order: few statements for many rows."""
    ordered = ascending(numbers)
    if ordered and ordered[-1] - ordered[0] == len(ordered) - 1:
        return [(ordered[0], ordered[-1])]
    return joined([(number, number) for number in ordered])


def joined(apart: list[Range]) -> list[Range]:
    """Return ascending ranges as fewer ones: those that follow each other directly are joined."""
    found: list[Range] = []
    for first, last in apart:
        if found and first == found[-1][1] + 1:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found
