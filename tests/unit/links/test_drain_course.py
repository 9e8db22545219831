"""The phases of a drain by time, and by the work that clients have not finished."""

from __future__ import annotations

from typing import Final

import pytest

from broker.links.drain_course import STILL_MS, DrainCourse, DrainPhase

pytestmark = pytest.mark.requirement("OPS-14")

STILL: Final = int(STILL_MS)
PAUSE: Final = 50
NEVER: Final = -1

SERVING, ANNOUNCED = DrainPhase.SERVING, DrainPhase.ANNOUNCED
FINISHING, OVER = DrainPhase.FINISHING, DrainPhase.OVER

Step = tuple[int, bool, DrainPhase]
"""The time of a look, whether a client has unfinished work, and the phase after it."""

COURSES: Final[list[tuple[str, int, int, list[Step], bool]]] = [
    # name, announce_ms, finish_ms, looks, whether the drain is complete
    (
        "clients that have no work are waited for until the announcement is old",
        *(5000, 20_000),
        [
            *((0, False, ANNOUNCED), (4999, False, ANNOUNCED), (5000, False, FINISHING)),
            *((5050, False, FINISHING), (5050 + STILL, False, OVER)),
        ],
        True,
    ),
    (
        "the time for finishing ends the drain though a client works",
        *(5000, 20_000),
        [(5000, True, FINISHING), (24_999, True, FINISHING), (25_000, True, OVER)],
        False,
    ),
    (
        "work that begins again is waited for again",
        *(0, 20_000),
        [
            *((0, True, FINISHING), (50, False, FINISHING), (50 + STILL - 1, True, FINISHING)),
            *((50 + STILL, False, FINISHING), (50 + 2 * STILL, False, OVER)),
        ],
        True,
    ),
    (
        "a late look gives clients their whole time",
        *(5000, 20_000),
        [(9000, True, FINISHING), (28_999, True, FINISHING), (29_000, True, OVER)],
        False,
    ),
    (
        "without time for finishing nothing is waited for",
        *(0, 0),
        [(0, True, FINISHING), (0, True, OVER)],
        False,
    ),
    (
        "a drain that is over stays over",
        *(0, 0),
        [(0, False, FINISHING), (0, False, OVER), (1, True, OVER)],
        True,
    ),
]


@pytest.mark.parametrize(
    ("announce_ms", "finish_ms", "looks", "is_complete"),
    [each[1:] for each in COURSES],
    ids=[each[0] for each in COURSES],
)
def test_a_drain(announce_ms: int, finish_ms: int, looks: list[Step], is_complete: bool) -> None:
    course = DrainCourse()
    course.begin(0, announce_ms=announce_ms, finish_ms=finish_ms)
    phases = [course.look(at_ms, is_busy=busy) for at_ms, busy, _ in looks]
    assert phases == [phase for _, _, phase in looks]
    assert course.is_complete == is_complete


def test_a_broker_that_is_not_drained_serves() -> None:
    course = DrainCourse()
    assert course.look(1_000_000, is_busy=True) is SERVING
    assert course.next_look_ms(0, PAUSE) == NEVER


def test_an_announcement_alone_goes_no_further() -> None:
    course = DrainCourse()
    course.begin(0, announce_ms=5000, finish_ms=20_000, announce_only=True)
    assert course.look(1_000_000, is_busy=False) is ANNOUNCED
    assert course.next_look_ms(1_000_000, PAUSE) == NEVER


def test_the_time_of_an_earlier_announcement_counts() -> None:
    course = DrainCourse()
    course.begin(0, announce_ms=5000, finish_ms=20_000, announce_only=True)
    course.begin(4000, announce_ms=5000, finish_ms=20_000)
    assert course.look(4999, is_busy=False) is ANNOUNCED
    assert course.look(5000, is_busy=False) is FINISHING


def test_a_second_request_changes_no_time() -> None:
    course = DrainCourse()
    course.begin(0, announce_ms=5000, finish_ms=100)
    course.begin(4000, announce_ms=9000, finish_ms=20_000)
    assert course.look(5000, is_busy=True) is FINISHING
    course.begin(5000, announce_ms=9000, finish_ms=20_000)
    assert course.look(5100, is_busy=True) is OVER


def test_it_says_when_to_look_next() -> None:
    course = DrainCourse()
    course.begin(0, announce_ms=5000, finish_ms=70)
    assert course.next_look_ms(0, PAUSE) == 5000
    course.look(5000, is_busy=True)
    assert course.next_look_ms(5000, PAUSE) == 5050
    assert course.next_look_ms(5050, PAUSE) == 5070, "not later than the end"
    course.look(5070, is_busy=True)
    assert course.next_look_ms(5070, PAUSE) == NEVER
