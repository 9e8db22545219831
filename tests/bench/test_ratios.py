"""The arithmetic of paired runs: mean ratios, their bounds, and the table of them."""

import pytest

from tests.bench import ratios
from tests.bench.report import Series
from tests.bench.work import Measure, Run, Work

RATE = Measure("per_second", "messages/s", None, more_is_better=True)
WORK = Work("small", "a row", (RATE,), lambda _: Run({}))


def series(broker: str, *rates: float) -> Series:
    return Series(WORK, broker, "compiled", [Run({"per_second": rate}) for rate in rates])


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(4, 2.132), (9, 1.833), (19, 1.729), (99, 1.660)],  # from printed tables
)
def test_the_quantile_is_that_of_the_tables(degrees: int, expected: float) -> None:
    assert ratios.student_quantile(0.95, degrees) == pytest.approx(expected, rel=0.002)


def test_equal_runs_have_the_ratio_one_without_a_doubt() -> None:
    found = ratios.ratio_of([5, 6, 7, 8, 9], [5, 6, 7, 8, 9])
    assert found == ratios.Ratio(pairs=5, mean=1, low=1, high=1)


def test_the_mean_is_geometric_so_that_both_directions_agree() -> None:
    one, other = [2.0, 8, 2, 8, 4], [1.0, 2, 4, 8, 2]
    there, back = ratios.ratio_of(one, other), ratios.ratio_of(other, one)
    assert there is not None
    assert back is not None
    assert there.mean == pytest.approx(1 / back.mean)
    assert there.low == pytest.approx(1 / back.high)
    assert there.low < there.mean < there.high


def test_a_drift_of_the_machine_that_both_runs_of_a_pair_have_does_not_count() -> None:
    found = ratios.ratio_of([1.1, 2.2, 4.4, 8.8, 17.6], [1, 2, 4, 8, 16])
    assert found is not None
    assert found.low == pytest.approx(1.1)
    assert found.high == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param([1.0, 2, 3, 4], [1.0, 2, 3, 4], id="four pairs are too few"),
        pytest.param([1.0, 2, 3, 4, 0], [1.0, 2, 3, 4, 5], id="a run without a figure"),
    ],
)
def test_what_cannot_be_compared(ours: list[float], theirs: list[float]) -> None:
    assert ratios.ratio_of(ours, theirs) is None


def test_the_table_has_a_row_for_each_figure_that_both_have() -> None:
    assert ratios.lines(
        [series("new", 220, 110, 220, 110, 220)], [series("old", 200, 100, 200, 100, 200)]
    ) == [
        "Ratios, new to old, one-sided bounds of 95 %:",
        "",
        "| work | figure | pairs | mean ratio | lower bound | upper bound |",
        "| --- | --- | --- | --- | --- | --- |",
        "| small | messages/s (more is better) | 5 | 1.100 | 1.100 | 1.100 |",
    ]
    assert ratios.lines([series("new", 1, 2, 3)], [series("old", 1, 2, 3)]) == []


def test_a_run_whose_counterpart_the_interrupted_bench_did_not_measure_is_left_out() -> None:
    found = ratios.lines([series("new", 2, 2, 2, 2, 2, 9)], [series("old", 1, 1, 1, 1, 1)])
    assert found[-1] == "| small | messages/s (more is better) | 5 | 2.000 | 2.000 | 2.000 |"
