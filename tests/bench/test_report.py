"""The marks of the table, in particular those that are relative to another broker."""

import pytest

from tests.bench import report
from tests.bench.report import Series
from tests.bench.work import Measure, Run, Work

RATE = Measure("per_second", "messages/s", None, more_is_better=True, times_artemis=1.5)
WORK = Work("ws-small", "a row", (RATE,), lambda _: Run({}))


def series(broker: str, rate: float) -> Series:
    return Series(WORK, broker, "compiled", [Run({"per_second": rate})])


@pytest.mark.parametrize(
    ("rate", "reached"), [(150, "yes"), (149, "**no**")], ids=["at the mark", "below it"]
)
def test_a_relative_mark_is_judged_by_the_figure_of_artemis(rate: float, reached: str) -> None:
    beside = {"broker-j-9": [series("broker-j-9", 1)], "artemis-2": [series("artemis-2", 100)]}
    row = report.table([series("ours", rate)], beside).splitlines()[-1]
    assert row == f"| a row | messages/s | ≥ 1.5 x Artemis | {rate} | {reached} | 1 | 100 |"


def test_a_relative_mark_without_artemis_is_not_judged() -> None:
    row = report.table([series("ours", 150)], {}).splitlines()[-1]
    assert row == "| a row | messages/s | ≥ 1.5 x Artemis | 150 | - |"
