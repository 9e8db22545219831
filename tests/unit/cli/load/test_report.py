"""The report of a load: rates of the measured time, losses, and the limits of the load itself."""

from __future__ import annotations

import pytest

from broker.cli.load.counts import LoadCounts, LoadSample
from broker.cli.load.plan import SECOND_NS, LoadPattern, Role
from broker.cli.load.report import LoadTimeline
from tests.unit.cli.load.plans import plan_of

pytestmark = pytest.mark.requirement("OPS-18")

START_NS = 100 * SECOND_NS


def timeline_of(*samples: LoadSample, **changes: object) -> LoadTimeline:
    """Return the timeline of a load with a warm-up of 1 s and 2 s that are measured."""
    timeline = LoadTimeline(plan_of(warm_up_s=1.0, duration_s=2.0, **changes), START_NS)
    for each in samples:
        timeline.add(each)
    return timeline


def sample(
    until_s: float,
    role: Role = Role.SENDER,
    *,
    process: int = 0,
    busy_s: float = 0.0,
    latency_ms: int | None = None,
    **counts: int,
) -> LoadSample:
    counted = LoadCounts(**counts)
    if latency_ms is not None:
        counted.latencies.add(latency_ms * 1_000_000)
    return LoadSample(
        process=process,
        role=role,
        until_ns=START_NS + round(until_s * SECOND_NS),
        counts=counted,
        busy_ns=round(busy_s * SECOND_NS),
    )


def test_rates_are_of_the_measured_time_and_counts_of_the_whole_run() -> None:
    report = timeline_of(
        sample(0.5, sent=1000, accepted=900),
        sample(1.0, sent=1000, accepted=900),
        sample(2.0, sent=30, accepted=200),
        sample(3.0, sent=50, accepted=100),
        sample(3.1, sent=0, accepted=-20),
        sample(3.0, Role.RECEIVER, received=60),
        sample(3.5, Role.RECEIVER, received=2020),
    ).report()
    assert (report.sent, report.accepted, report.received) == (2080, 2080, 2080)
    assert (report.sent_rate, report.received_rate, report.measured_s) == (40.0, 30.0, 2.0)
    assert report.lost == 0


@pytest.mark.parametrize(
    ("pattern", "received", "lost"),
    [
        pytest.param(LoadPattern.QUEUE, 10, 0, id="each message to one receiver"),
        pytest.param(LoadPattern.QUEUE, 7, 3, id="three messages too few"),
        pytest.param(LoadPattern.QUEUE, 11, 0, id="one delivered again"),
        pytest.param(LoadPattern.TOPIC, 30, 0, id="each message to all three receivers"),
        pytest.param(LoadPattern.TOPIC, 10, 20, id="a topic with one receiver of three"),
    ],
)
def test_lost_messages(pattern: LoadPattern, received: int, lost: int) -> None:
    timeline = timeline_of(
        sample(2.0, accepted=10),
        sample(2.0, Role.RECEIVER, received=received),
        pattern=pattern,
        receivers=3,
    )
    assert timeline.report().lost == lost
    assert (timeline.received < timeline.expected) == (lost > 0)


def test_replies_are_no_messages_of_their_own() -> None:
    report = timeline_of(
        sample(2.0, Role.REQUESTER, sent=5, accepted=5, received=4),
        sample(2.0, Role.RESPONDER, accepted=4, refused=1),
        pattern=LoadPattern.REQUEST_REPLY,
    ).report()
    assert (report.accepted, report.received, report.refused, report.lost) == (5, 4, 1, 1)


def test_latencies_count_after_the_warm_up_and_however_late_a_message_came() -> None:
    report = timeline_of(
        sample(1.0, Role.RECEIVER, received=1, latency_ms=700),
        sample(2.0, Role.RECEIVER, received=1, latency_ms=10),
        sample(9.0, Role.RECEIVER, received=1, latency_ms=500),
    ).report()
    assert report.latency_ms["p50"] == pytest.approx(10, rel=0.01)
    assert report.latency_ms["max"] == pytest.approx(500, rel=0.01)
    assert report.delay_ms["p50"] is None


@pytest.mark.parametrize(
    ("busy_s", "limits"),
    [((0.5, 1.0), []), ((0.5, 1.9), ["sender"]), ((1.9, 0.1), ["sender"])],
)
def test_the_busiest_process_of_a_role_tells_whether_the_load_is_the_limit(
    busy_s: tuple[float, float], limits: list[str]
) -> None:
    report = timeline_of(
        sample(1.0, busy_s=5.0),
        *[sample(3.0, process=process, busy_s=each) for process, each in enumerate(busy_s)],
        sample(3.0, Role.RECEIVER, process=2, busy_s=0.2),
    ).report()
    assert report.busy == {"sender": max(busy_s) / 2, "receiver": 0.1}
    assert report.limits == limits


def test_an_interrupt_ends_the_measured_time() -> None:
    timeline = timeline_of(sample(1.5, sent=50), sample(2.9, sent=50))
    timeline.end_at(START_NS + 3 * SECOND_NS // 2)
    report = timeline.report()
    assert (report.measured_s, report.sent) == (0.5, 100)


def test_an_interrupt_during_the_warm_up_measures_nothing() -> None:
    timeline = timeline_of(sample(0.5, sent=50))
    timeline.end_at(START_NS + SECOND_NS // 2)
    assert (timeline.report().measured_s, timeline.report().sent_rate) == (0.0, 0.0)


def test_each_second_has_its_figures() -> None:
    seconds = list(
        timeline_of(
            sample(0.9, sent=1),
            sample(1.0, sent=2),
            sample(1.1, sent=3),
            sample(2.7, Role.RECEIVER, received=4, latency_ms=8),
            sample(3.2, Role.RECEIVER, received=5),
        ).seconds()
    )
    assert [(each.second, each.measured, each.sent, each.received) for each in seconds] == [
        (1, False, 3, 0),
        (2, True, 3, 0),
        (3, True, 0, 4),
        (4, False, 0, 5),
    ]
    assert [each.p50_ms is not None for each in seconds] == [False, False, True, False]
