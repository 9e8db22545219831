"""The result of one check of the doctor: a level, what was found, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

CheckLevel = Literal["SKIP", "OK", "WARN", "FAIL"]

SKIP: Final[CheckLevel] = "SKIP"
OK: Final[CheckLevel] = "OK"
WARN: Final[CheckLevel] = "WARN"
FAIL: Final[CheckLevel] = "FAIL"

SEVERITY: Final[Mapping[CheckLevel, int]] = {OK: 0, SKIP: 1, WARN: 2, FAIL: 3}

NAMED_MAX: Final = 5
"""Maximum names in one line; the others are counted."""


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """Level and finding of one check, and the remedy, empty if all is well. Each is one line."""

    level: CheckLevel
    finding: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class DoctorFinding(CheckResult):
    """The result of the check with that code, such as D05."""

    code: str
    check: str

    def record(self) -> dict[str, object]:
        """Return the finding for print and JSON."""
        return {
            "code": self.code,
            "level": self.level,
            "check": self.check,
            "finding": self.finding,
            "remedy": self.remedy,
        }


def well(finding: str) -> CheckResult:
    """Return the result of a check that found no fault."""
    return CheckResult(level=OK, finding=finding)


def not_checked(reason: str) -> CheckResult:
    """Return the result of a check that could not be made: its subject is missing."""
    return CheckResult(level=SKIP, finding=f"not checked: {reason}")


def warning(finding: str, remedy: str) -> CheckResult:
    """Return the result of a check that found something to attend to."""
    return CheckResult(level=WARN, finding=finding, remedy=remedy)


def failure(finding: str, remedy: str) -> CheckResult:
    """Return the result of a check that found a fault."""
    return CheckResult(level=FAIL, finding=finding, remedy=remedy)


def joined(results: Iterable[CheckResult], sound: str) -> CheckResult:
    """Return one result of several: the worst level, with the findings and remedies of that level.

    `sound` is the finding if all are well, and without any result.
    """
    found = list(results)
    levels = [each.level for each in found]
    worst = max(levels, key=SEVERITY.__getitem__) if levels else OK
    if worst == OK:
        return well(sound)
    chosen = [each for each in found if each.level == worst]
    return CheckResult(
        level=worst,
        finding="; ".join(dict.fromkeys(each.finding for each in chosen)),
        remedy="; ".join(dict.fromkeys(each.remedy for each in chosen)),
    )


def named(names: Iterable[str]) -> str:
    """Return names as a list in one line, at most NAMED_MAX of them."""
    listed = sorted(names)
    shown = ", ".join(listed[:NAMED_MAX])
    more = len(listed) - NAMED_MAX
    return f"{shown} and {more} more" if more > 0 else shown
