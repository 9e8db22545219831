"""The report of a run: its results, what was run, on which broker; written and read as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Final

from .harness import Result, Rule
from .identity import BrokerIdentity
from .verdict import Kind, Verdict

FORMAT: Final = "amqp-conformance-report-1"
"""The form of the file; another number means that older readers cannot read it."""


NO_REPORT: Final = "it is no report that --json wrote"


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
    except RecursionError:
        raise ReportError(f"{file}: {NO_REPORT}: it is nested too deeply") from None
    except ValueError as error:
        raise ReportError(f"{file}: {NO_REPORT}: {error}") from None


def _report_of(content: object) -> Report:
    """Return the report. Raise ValueError for another form."""
    report = _Fields(content, "the report")
    if (found := report.text("format")) != FORMAT:
        raise ValueError(f"its format is {found!r:.60}, not {FORMAT!r}")
    return Report(
        broker=_broker_of(_Fields(report.of("broker", dict), "broker")),
        harness=report.text("harness"),
        began=report.text("began"),
        seconds=report.of("seconds", int, float),
        options=report.of("options", dict),
        results=[_result_of(_Fields(case, "a case")) for case in report.of("cases", list)],
    )


def _broker_of(broker: _Fields) -> BrokerIdentity:
    properties = _Fields(broker.of("properties", dict), "properties of the broker")
    return BrokerIdentity(
        broker.text("place"),
        product=broker.text("product"),
        version=broker.text("version"),
        container_id=broker.text("container_id"),
        properties={name: properties.text(name) for name in properties.names},
        capabilities=broker.texts("capabilities"),
    )


def _result_of(case: _Fields) -> Result:
    return Result(
        Rule(*(case.text(name) for name in ("name", "source", "clause", "sentence"))),
        Verdict(case.text("verdict")),
        case.of("seconds", int, float),
        case.texts("frames"),
        expected=case.text("expected"),
        got=case.text("got"),
        reason=case.text("reason"),
        kind=None if case.of("kind", str, NoneType) is None else Kind(case.text("kind")),
        known=case.text("known"),
        died=case.of("died", bool),
    )


class _Fields:
    """An object of JSON, whose fields are read with the types that they should have.

    Each reader raises ValueError without the field, or for another type.
    """

    def __init__(self, content: object, place: str) -> None:
        if not isinstance(content, dict):
            raise ValueError(f"{place} is no object")  # noqa: TRY004 - of the file, not of a caller
        self._content: Final[dict[str, Any]] = content
        self._place: Final = place

    @property
    def names(self) -> list[str]:
        """The names of all fields."""
        return list(self._content)

    def of(self, name: str, *types: type) -> Any:
        """Return a field of one of `types`."""
        if name not in self._content:
            raise ValueError(f"{self._place} has no {name}")
        value = self._content[name]
        # not isinstance: a bool is no number
        if type(value) not in types:
            raise ValueError(f"{self._place}: {name} is {json.dumps(value):.60}")
        return value

    def text(self, name: str) -> str:
        """Return a field that is a text."""
        return str(self.of(name, str))

    def texts(self, name: str) -> list[str]:
        """Return a field that is a list of texts."""
        found: list[str] = self.of(name, list)
        if not all(isinstance(each, str) for each in found):
            raise ValueError(f"{self._place}: {name} has something else than texts")
        return found
