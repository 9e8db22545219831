"""The result of the last audit by the pipeline, as the console shows it.

The file is what `jms-broker pipeline audit --json` has printed. It comes from another program, so
nothing in it is trusted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import JSONDecodeError
from pathlib import Path
from typing import Final

from broker.http.limits import AUDIT_REPORT_BYTES_MAX

CHECKS: Final = ("check", "judged", "broken", "verdict")
OFFENDERS: Final = ("check", "address", "subscription", "position", "messageId", "at", "detail")
COUNTS: Final = ("events", "messages", "open", "missing_rows")

Row = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class PipelineAudit:
    """The result of an audit, or why there is none: `problem`.

    `made_at` is when the file was written, in ms since 1970.
    """

    problem: str = ""
    made_at: int = 0
    holds: bool = False
    counts: Row = field(default_factory=dict)
    checks: Sequence[Row] = ()
    offenders: Sequence[Row] = ()


async def read_audit(path: Path | None) -> PipelineAudit:
    """Return the result in a file, which is read in a thread."""
    if path is None:
        return PipelineAudit(
            problem="The setting http.audit_report names the file that this page shows: what"
            " `jms-broker pipeline audit --json` prints."
        )
    try:
        return await asyncio.to_thread(_read, path)
    except FileNotFoundError:
        return PipelineAudit(problem=f"No audit has been made: there is no file {path}.")
    except OSError as error:
        return PipelineAudit(problem=f"{path} cannot be read: {error.strerror}.")
    except ValueError as error:
        return PipelineAudit(problem=f"{path} is no result of an audit: {error}.")


def _read(path: Path) -> PipelineAudit:
    """Return the result in a file; ValueError if it has none."""
    with path.open("rb") as file:
        data = file.read(AUDIT_REPORT_BYTES_MAX + 1)
        made_at = int(path.stat().st_mtime * 1000)
    if len(data) > AUDIT_REPORT_BYTES_MAX:
        raise ValueError(f"it has more than {AUDIT_REPORT_BYTES_MAX} bytes")
    try:
        found = json.loads(data)
    except (JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict) or "checks" not in found:
        raise ValueError("it has no checks")
    return PipelineAudit(
        made_at=made_at,
        holds=found.get("holds") is True,
        counts={name: found.get(name) for name in COUNTS},
        checks=_rows(found["checks"], CHECKS),
        offenders=_rows(found.get("offenders", []), OFFENDERS),
    )


def _rows(value: object, columns: Sequence[str]) -> Sequence[Row]:
    """Return the rows of a table; ValueError if it is none."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("a table of it is no list of objects")
    return [{name: each.get(name) for name in columns} for each in value]
