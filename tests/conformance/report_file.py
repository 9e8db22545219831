"""The report of a run: its results, what was run, on which broker; written and read as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from .harness import Result, Rule
from .identity import BrokerIdentity
from .verdict import Kind, Verdict

FORMAT: Final = "amqp-conformance-report-1"
"""The form of the file; another number means that older readers cannot read it."""


class ReportError(Exception):
    """A file is no report of a run."""


@dataclass(frozen=True)
class Report:
    """One run. `harness` is the program with its version, `began` the time in ISO 8601, UTC."""

    broker: BrokerIdentity
    harness: str
    began: str
    seconds: float
    options: dict[str, object]
    results: list[Result]

    @property
    def title(self) -> str:
        """A heading for people."""
        return f"AMQP 1.0 conformance of {self.broker.name}"


def write_json(report: Report, file: Path) -> None:
    """Write the whole report, an object with a list `cases`; a case has all of its frames."""
    content = {
        "format": FORMAT,
        "harness": report.harness,
        "began": report.began,
        "seconds": round(report.seconds, 3),
        "options": report.options,
        "broker": asdict(report.broker),
        "cases": [_written(result) for result in report.results],
    }
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    # a surrogate alone, which UTF-8 does not have, is then as JSON escapes it
    file.write_text(text, encoding="utf-8", errors="backslashreplace")


def _written(result: Result) -> dict[str, object]:
    return {
        "source": result.case.source,
        "clause": result.case.clause,
        "name": result.case.name,
        "sentence": result.case.sentence,
        "verdict": result.verdict.value,
        "kind": None if result.kind is None else result.kind.value,
        "reason": result.reason,
        "expected": result.expected,
        "got": result.got,
        "known": result.known,
        "died": result.died,
        "seconds": round(result.seconds, 3),
        "frames": result.conversation,
    }


def read_json(file: Path) -> Report:
    """Return the report in `file`. Raise ReportError if it is none."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return _report_of(content)
    except OSError as error:
        raise ReportError(f"{file}: it cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ReportError(f"{file}: it is no report that --json wrote: {error!r}") from None


def _report_of(content: Mapping[str, Any]) -> Report:
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']!r}, not {FORMAT!r}")
    return Report(
        broker=BrokerIdentity(**content["broker"]),
        harness=content["harness"],
        began=content["began"],
        seconds=content["seconds"],
        options=content["options"],
        results=[_result_of(case) for case in content["cases"]],
    )


def _result_of(case: Mapping[str, Any]) -> Result:
    return Result(
        Rule(case["name"], case["source"], case["clause"], case["sentence"]),
        Verdict(case["verdict"]),
        case["seconds"],
        case["frames"],
        expected=case["expected"],
        got=case["got"],
        reason=case["reason"],
        kind=None if case["kind"] is None else Kind(case["kind"]),
        known=case["known"],
        died=case["died"],
    )
