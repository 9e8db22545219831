"""The arithmetic of the benchmark of the pipeline: rates, comparisons, aims."""

import pytest

from tests.bench.spark_table import LOOP, Aim, Figure, line, rounded, table

LOOP_FIGURE = Figure(LOOP, "loop", 100_000, 10.0)


def figure(rows: int, seconds: float, *, problem: str = "", aim: Aim | None = None) -> Figure:
    return Figure("lease-http", "x", rows, seconds, problem=problem, aim=aim or Aim())


@pytest.mark.parametrize(
    ("aim", "rows", "seconds", "expected"),
    [
        pytest.param(Aim(per_second=50_000), 100_000, 2.0, True, id="as many rows as the aim"),
        pytest.param(Aim(per_second=50_000), 100_000, 2.01, False, id="a few less"),
        pytest.param(Aim(times_loop=8), 80_000, 1.0, True, id="eight times the loop"),
        pytest.param(Aim(times_loop=8), 79_000, 1.0, False, id="not quite"),
        pytest.param(Aim(per_second=1, times_loop=8), 70_000, 1.0, False, id="one of two"),
        pytest.param(Aim(seconds_a_million=10), 1_000_000, 10.0, True, id="a million in time"),
        pytest.param(Aim(seconds_a_million=10), 2_000_000, 20.0, True, id="two in twice that"),
        pytest.param(Aim(seconds_a_million=10), 1_000_000, 10.1, False, id="a million too late"),
        pytest.param(Aim(seconds_a_million=10), 20_000, 1.0, None, id="too few rows to say"),
        pytest.param(Aim(seconds=3), 3, 3.0, True, id="few rows in time"),
        pytest.param(Aim(seconds=3), 3, 3.01, False, id="few rows too late"),
        pytest.param(Aim(), 1, 1.0, None, id="no aim"),
    ],
)
def test_whether_an_aim_is_reached(
    aim: Aim, rows: int, seconds: float, expected: bool | None
) -> None:
    assert aim.reached(figure(rows, seconds), LOOP_FIGURE) is expected


def test_without_a_loop_nothing_is_compared_with_it() -> None:
    broken = Figure(LOOP, "loop", 0, 1.0, problem="ended")
    for loop in (None, broken):
        assert Aim(times_loop=8).reached(figure(1_000_000, 1.0), loop) is None
        both = Aim(per_second=50_000, times_loop=8)
        assert both.reached(figure(49_000, 1.0), loop) is False
        assert both.reached(figure(51_000, 1.0), loop) is None


def test_what_reads_no_messages_is_not_compared_with_the_loop() -> None:
    events = Figure("events-http", "x", 1_000_000, 1.0, is_of_messages=False)
    assert "| 1,000,000 | 1.00 | - | 1,000,000 | - | - | - | - |" in table([events, LOOP_FIGURE])


def test_what_went_wrong_reaches_no_aim() -> None:
    fast = figure(1_000_000, 1.0, problem="rows are missing", aim=Aim(per_second=1))
    assert fast.aim.reached(fast, LOOP_FIGURE) is False
    assert line(fast) == "lease-http: !! rows are missing"
    assert "| - | - | - | ≥ 1 rows/s | **no** |" in table([fast, LOOP_FIGURE])


def test_a_stream_has_a_rate_without_its_start() -> None:
    stream = Figure("lease-http", "x", 60_000, 3.0, batch_seconds=1.0)
    assert stream.batch_per_second == 60_000
    assert line(stream) == (
        "lease-http: 60,000 rows in 3.00 s, 20,000 rows/s (60,000 in its batches)"
    )


def test_a_command_has_its_processor_time() -> None:
    command = Figure("duckdb-audit", "x", 3, 2.0, is_of_messages=False, cpu_seconds=1.5)
    assert line(command) == "duckdb-audit: 3 rows in 2.00 s, 1.50 s of processor time, 2 rows/s"
    assert "| 3 | 2.00 | 1.50 | 2 | - | - | - | - |" in table([command])


@pytest.mark.parametrize(
    ("value", "expected"),
    [(9_999.4, "9,999"), (12_345.0, "12,300"), (123_456.0, "123,000"), (0.0, "0")],
)
def test_rates_have_no_more_digits_than_they_bear(value: float, expected: str) -> None:
    assert rounded(value) == expected


def test_the_table_compares_with_the_loop() -> None:
    aim = Aim(per_second=50_000, times_loop=8)
    told = table([figure(1_000_000, 12.5, aim=aim), LOOP_FIGURE]).splitlines()
    assert told[2] == (
        "| `lease-http` | x | 1,000,000 | 12.50 | - | 80,000 | - | 8.0 |"
        " ≥ 50,000 rows/s, ≥ 8 x the loop | yes |"
    )
    assert told[3].endswith("| 1.0 | - | - |")
