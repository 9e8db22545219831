"""Seeded runs of the whole broker: no message is lost, duplicated or left over at the end.

The number of seeds is `--seeds`: 500 on the compiled broker, fewer on the .py files. `--seed` runs
one seed, `--operations` only those of its operations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from broker.amqp import connection
from tests.scenario.shrinking import report, shrunk

SEEDS: Final = 100
SEEDS_COMPILED: Final = 500
BATCH: Final = 50

COMMAND: Final = "{} tests/scenario/test_simulation.py"


def command() -> str:
    """Return the command that runs these tests on the broker that is tested now."""
    is_compiled = Path(str(connection.__file__)).suffix != ".py"
    return COMMAND.format(
        ".venv/bin/pytest --compiled" if is_compiled else ".venv/bin/python -m pytest"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for every fifty seeds, or for the one that `--seed` names."""
    if "seeds" not in metafunc.fixturenames:
        return
    config = metafunc.config
    one = config.getoption("--seed")
    if one is not None:
        metafunc.parametrize("seeds", [range(one, one + 1)], ids=[f"seed {one}"])
        return
    default = SEEDS_COMPILED if config.getoption("--compiled") else SEEDS
    given = config.getoption("--seeds")
    count = default if given is None else given
    batches = [range(at, min(at + BATCH, count)) for at in range(0, count, BATCH)]
    metafunc.parametrize(
        "seeds", batches, ids=[f"seeds {each.start} to {each.stop - 1}" for each in batches]
    )


@pytest.fixture
def operations(request: pytest.FixtureRequest) -> list[int] | None:
    """Return the numbers of the only operations to run; None for all."""
    given = request.config.getoption("--operations")
    return None if given is None else [int(each) for each in given.split(",")]


@pytest.mark.requirement(
    *("RCV-01", "RCV-02", "RCV-03", "RCV-04", "RCV-05", "RCV-06", "RCV-08", "PRD-03", "TMP-03"),
    *(
        "SUB-21",
        "SUB-22",
        "SUB-24",
        "SUB-25",
        "SUB-30",
        "SUB-31",
        "SUB-33",
        "SUB-34",
        "SUB-37",
        "SUB-40",
    ),
)
def test_a_broker_keeps_its_word(seeds: range, operations: list[int] | None) -> None:
    for seed in seeds:
        found = report(seed, command(), operations)
        assert found is None, found


SHRINKING: Final = [
    pytest.param({3, 70}, id="two operations, far from each other"),
    pytest.param({0}, id="the first operation"),
    pytest.param({99}, id="the last operation"),
    pytest.param(set(range(40, 50)), id="ten in a row"),
    pytest.param(set(), id="none is needed"),
]


@pytest.mark.parametrize("needed", SHRINKING)
def test_what_goes_wrong_is_shrunk_to_what_it_takes(needed: set[int]) -> None:
    assert shrunk(100, lambda kept: needed <= set(kept)) == sorted(needed)


def test_shrinking_is_bounded() -> None:
    runs: list[int] = []

    def fails(kept: list[int]) -> bool:
        runs.append(len(kept))
        return False

    assert shrunk(1000, fails, tries=30) == list(range(1000))
    assert len(runs) == 30
