"""Write the tables of the page that compares brokers, from `docs/conformance/results.json`.

`python -m config.brokers_page REPORT.json ...` makes that file of reports that `--json` wrote; the
brokers are in the order of the reports.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from config.settings_texts import ROOT
from tests.conformance.harness import Result, Rule
from tests.conformance.report import by_clause
from tests.conformance.report_file import Report, read_json
from tests.conformance.verdict import Kind, Verdict

RESULTS: Final = ROOT / "docs" / "conformance" / "results.json"
PAGE: Final = ROOT / "docs" / "conformance" / "brokers.md"

BEGIN: Final = "<!-- totals -->\n"
END: Final = "<!-- end: totals -->\n"

COUNTED: Final = (Verdict.PASSED, Verdict.FAILED, Verdict.NOT_APPLICABLE)


@dataclass(frozen=True)
class Run:
    """A run on one broker: its day, and the options that say how the broker was addressed."""

    broker: str
    day: str
    seconds: int
    options: dict[str, object]


@dataclass(frozen=True)
class Results:
    """The verdicts of all runs: `verdicts` has those of each case by `source clause name`.

    A verdict is `passed`, `failed` or the kind of one that is not applicable; None if the case was
    not run on that broker.
    """

    runs: list[Run]
    verdicts: dict[str, list[str | None]]

    def of(self, at: int) -> list[Result]:
        """Return the results of the run at that place, without frames and reasons."""
        return [
            Result(_rule(case), _verdict(verdict), 0.0, [])
            for case, verdicts in self.verdicts.items()
            if (verdict := verdicts[at]) is not None
        ]


def _rule(case: str) -> Rule:
    """Return the rule that `source clause name` says; a clause may have spaces."""
    source, rest = case.split(" ", 1)
    clause, name = rest.rsplit(" ", 1)
    return Rule(name, source, clause, "")


def _verdict(text: str) -> Verdict:
    return Verdict(text) if text in {"passed", "failed"} else Verdict.NOT_APPLICABLE


def results_of(reports: Sequence[Report]) -> Results:
    """Return the verdicts of reports, cases in the order of the first report that has them."""
    runs = [
        Run(report.broker.name, report.began[:10], round(report.seconds), _told(report.options))
        for report in reports
    ]
    verdicts: dict[str, list[str | None]] = {}
    for at, report in enumerate(reports):
        for result in report.results:
            case = f"{result.case.source} {result.case.clause} {result.case.name}"
            row = verdicts.setdefault(case, [None] * len(reports))
            kind = result.kind
            row[at] = result.verdict.value if kind is None else kind.value
    return Results(runs, verdicts)


def _told(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options without the command of `--restart`, which is the machine's own."""
    return {name: value if name != "restart" else True for name, value in options.items()}


def read_results() -> Results:
    """Return what is in the file."""
    content = json.loads(RESULTS.read_text())
    return Results([Run(**run) for run in content["runs"]], content["verdicts"])


def write_results(results: Results) -> None:
    """Write the file, with a line for each case."""
    runs = [json.dumps(asdict(run), ensure_ascii=False) for run in results.runs]
    cases = [f"{json.dumps(case)}: {json.dumps(row)}" for case, row in results.verdicts.items()]
    text = '{\n"runs": [\n' + ",\n".join(runs) + '\n],\n"verdicts": {\n' + ",\n".join(cases)
    RESULTS.write_text(text + "\n}\n}\n")


def page_text(text: str) -> str:
    """Return the page with its tables made from the results."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(read_results())}\n{END}{behind}"


def tables(results: Results) -> str:
    """Return the totals of each broker, and those of each clause."""
    # the suite of JMS is no part of these runs
    kinds = [kind.value for kind in Kind if kind is not Kind.CLIENT]
    lines = _row("broker", "tested", "cases", "passed", "failed", *kinds, "time")
    lines += ["|---|" + "---|" * (5 + len(kinds))]
    for at, run in enumerate(results.runs):
        counts = Counter(row[at] for row in results.verdicts.values() if row[at] is not None)
        numbers = [counts.total(), counts["passed"], counts["failed"]]
        numbers += [counts[kind] for kind in kinds]
        lines += _row(run.broker, run.day, *map(str, numbers), f"{run.seconds} s")
    lines += ["", "Passed / failed / not applicable, by clause:", ""]
    lines += _row("clause", *(run.broker for run in results.runs))
    lines += ["|---|" + "---|" * len(results.runs)]
    counted = [by_clause(results.of(at)) for at in range(len(results.runs))]
    for group in dict.fromkeys(group for each in counted for group in each):
        cells = [" / ".join(str(each[group][verdict]) for verdict in COUNTED) for each in counted]
        lines += _row(group, *cells)
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> list[str]:
    return [f"| {' | '.join(cells)} |"]


def write() -> None:
    """Write the tables into the page."""
    PAGE.write_text(page_text(PAGE.read_text()))


def main() -> None:
    """Make the results of the reports that are named, then the tables."""
    write_results(results_of([read_json(Path(name)) for name in sys.argv[1:]]))
    write()


if __name__ == "__main__":
    main()
