"""The file of expected failures of `--known`: names of cases, each with a reason."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from .asked import CannotRun
from .harness import Result
from .verdict import Verdict

TABLE: Final = "failures"


def known_failures(file: Path, names: Collection[str]) -> Mapping[str, str]:
    """Return the reasons in `file` by the name of the case; `names` are those of all cases.

    Raise CannotRun if the file cannot be read, has another form, or names a case that does not
    exist: a case that was renamed would fail again without a word about its reason.
    """
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRun(f"--known {file}: it cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise CannotRun(f"--known {file}: it is no TOML: {error}") from None
    reasons = content.get(TABLE)
    if not isinstance(reasons, dict) or set(content) != {TABLE}:
        raise CannotRun(f"--known {file}: it has one table, [{TABLE}], and nothing else")
    for name, reason in reasons.items():
        if name not in names:
            raise CannotRun(f"--known {file}: no case is called {name}")
        if not isinstance(reason, str) or not reason.strip():
            raise CannotRun(f"--known {file}: {name} needs a reason in words")
    return reasons


def with_known(results: list[Result], reasons: Mapping[str, str]) -> list[Result]:
    """Return the results, with the reason of each case that was expected to fail."""
    return [replace(each, known=reasons.get(each.case.name, "")) for each in results]


def is_unexpected_failure(result: Result) -> bool:
    """Return whether the case failed, and was not expected to."""
    return result.verdict is Verdict.FAILED and not result.known


def is_unexpected_pass(result: Result) -> bool:
    """Return whether the case passed, and was expected to fail."""
    return result.verdict is Verdict.PASSED and bool(result.known)
