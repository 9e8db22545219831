"""After any kill, nothing is lost, and nothing is duplicated while the lease lives.

Each row really kills a process (SIGKILL), and counts before and after the restart. A driver that is
killed or hangs is a process of its own. The one that goes on after it is pytest's own session: a
start of Spark takes ten seconds. The counts of all rows are printed as a table at the end of the
run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import CRASH_ROW
from tests.spark.crashes import BATCH, MESSAGES, WHOLE, Count, Scene
from tests.spark.driver import running, stream

pytestmark = [pytest.mark.requirement("PIP-71"), pytest.mark.usefixtures("quick_drivers")]

ASKED_FOR = pytest.mark.whole_matrix
"""Mark of rows that only `make crashes` runs: most start a driver, so `make test` has few."""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.close()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Iterator[dict[str, Count]]:
    """Yield a dict for counts, by the name of the moment; they become lines of the table."""
    counts: dict[str, Count] = {}
    yield counts
    request.node.user_properties += [
        (CRASH_ROW, f"{request.node.name:60} {name:10} {count}") for name, count in counts.items()
    ]


@dataclass(frozen=True)
class Kill:
    """The driver dies at a place of its third batch; the counts that are expected then."""

    place: str
    acked: int
    sink: int


KILLS = [
    pytest.param(
        Kill("asking", 2 * BATCH, 2 * BATCH), id="before it asks for a batch", marks=ASKED_FOR
    ),
    pytest.param(
        Kill("acquired", 2 * BATCH, 2 * BATCH),
        id="between acquire and Spark's log",
        marks=ASKED_FOR,
    ),
    pytest.param(Kill("written", 2 * BATCH, 2 * BATCH), id="with rows staged", marks=ASKED_FOR),
    pytest.param(
        Kill("committing", 2 * BATCH, 2 * BATCH), id="before the sink's commit", marks=ASKED_FOR
    ),
    pytest.param(Kill("committed", 2 * BATCH, 3 * BATCH), id="after the sink's commit"),
]


@pytest.mark.parametrize("kill", KILLS)
def test_a_driver_killed(
    kill: Kill, spark: SparkSession, scene: Scene, tell: dict[str, Count]
) -> None:
    with running(scene.plan(scene.fault(kill.place, 2, "kill-driver"))) as driver:
        assert driver.wait() == "it was killed"
    tell["killed"] = scene.count()
    assert tell["killed"].sink == kill.sink
    # the question for a batch settles the batch before it
    assert tell["killed"].acked in (kill.acked, kill.acked - BATCH)
    assert stream(spark, scene.plan()) is None
    tell["restarted"] = scene.count()
    assert tell["restarted"] == WHOLE


@pytest.mark.parametrize(
    ("place", "action"),
    [
        pytest.param("reading", "kill-worker", id="an executor's Python killed while it reads"),
        pytest.param(
            "written", "kill-worker", id="one killed with its rows staged", marks=ASKED_FOR
        ),
        pytest.param("written", "fail", id="a task that fails once", marks=ASKED_FOR),
    ],
)
def test_a_task_lost(
    place: str, action: str, spark: SparkSession, scene: Scene, tell: dict[str, Count]
) -> None:
    assert stream(spark, scene.plan(scene.fault(place, 1, action))) is None
    assert scene.struck()
    tell["ended"] = scene.count()
    assert tell["ended"] == WHOLE


@pytest.mark.requirement("PIP-55")
@pytest.mark.parametrize(
    ("place", "away_s"),
    [
        pytest.param("asking", 0, id="between batches", marks=ASKED_FOR),
        pytest.param("reading", 1, id="before a task reads", marks=ASKED_FOR),
        pytest.param("written", 3, id="with rows staged", marks=ASKED_FOR),
        pytest.param("committing", 30, id="before the sink's commit", marks=ASKED_FOR),
    ],
)
def test_a_broker_killed(place: str, away_s: float, scene: Scene, tell: dict[str, Count]) -> None:
    """The query goes on by itself, though Spark repeats no task (`local[2]`)."""
    plan = scene.plan(scene.fault(place, 2, "pause"), master="local[2]", timeout="60s")
    with running(plan) as driver:
        scene.wait_until_paused()
        scene.restart_broker(away_s=away_s, meanwhile=scene.let_go)
        assert driver.wait() is None
    tell["ended"] = scene.count()
    assert tell["ended"] == WHOLE


MORE = 1600
LATER = 100
LARGE_BATCH = 400


@pytest.mark.requirement("PIP-55")
@pytest.mark.parametrize(
    ("busy", "idle"),
    [
        pytest.param((1, 3), (1, 3), id="for seconds"),
        pytest.param((30,), (30,), id="for half a minute", marks=ASKED_FOR),
    ],
)
def test_a_query_goes_on_whenever_its_broker_was_away(
    busy: tuple[int, ...], idle: tuple[int, ...], scene: Scene, tell: dict[str, Count]
) -> None:
    """One driver for all kills, and `local[2]`: a task that failed would end the query."""
    scene.fill(MESSAGES, MORE)
    sent = MESSAGES + MORE
    plan = scene.plan(
        master="local[2]",
        available_now=False,
        timeout="60s",
        maxMessagesPerTrigger=str(LARGE_BATCH),
    )
    with running(plan) as driver:
        for at, away_s in enumerate(busy):
            scene.wait_for_sink((1 + 2 * at) * LARGE_BATCH)
            scene.restart_broker(away_s=away_s)
            assert scene.left("in") > 0
        scene.wait_for_sink(sent)
        tell["was busy"] = scene.count(sent)
        for away_s in idle:
            scene.restart_broker(away_s=away_s)
            scene.fill(sent, LATER)
            sent += LATER
            scene.wait_for_sink(sent)
        assert driver.running
    tell["was idle"] = scene.count(sent)
    assert (tell["was busy"].lost, tell["was busy"].duplicates) == (0, 0)
    assert (tell["was idle"].sink, tell["was idle"].duplicates) == (sent, 0)


def test_a_lease_that_runs_out_is_not_lost(
    spark: SparkSession, scene: Scene, tell: dict[str, Count]
) -> None:
    """From there on, delivery is at least once: the sink may get messages of the lost batch again.

    If that is not wanted, the query ends with an error: `test_lease_stream`.
    """
    fault = scene.fault("committed", 2, "kill-driver")
    with running(scene.plan(fault, leaseTtl="1s")) as driver:
        assert driver.wait() == "it was killed"
    scene.wait_until_returned(MESSAGES - 2 * BATCH)
    tell["run out"] = scene.count()
    assert stream(spark, scene.plan(leaseTtl="1m", failOnLeaseLoss="false")) is None
    tell["went on"] = scene.count()
    assert (tell["went on"].acked, tell["went on"].lost) == (MESSAGES, 0)
    assert tell["went on"].duplicates <= BATCH


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("asking", id="while it asks", marks=ASKED_FOR),
        pytest.param("committing", id="about to commit to the sink"),
    ],
)
def test_a_zombie_driver(
    place: str, spark: SparkSession, scene: Scene, tell: dict[str, Count]
) -> None:
    """A driver that hangs while another takes its place is refused afterwards."""
    with running(scene.plan(scene.fault(place, 2, "pause"))) as zombie:
        scene.wait_until_paused()
        assert stream(spark, scene.plan()) is None
        tell["the other"] = scene.count()
        scene.let_go()
        error = zombie.wait()
    assert error is not None
    tell["the zombie"] = scene.count()
    assert tell["the zombie"] == tell["the other"] == WHOLE
