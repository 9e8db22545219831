"""The throttle of failed logins: buckets of sources, growing delays, and reports of sprays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.throttle import (
    DEBT_MAX,
    DELAYS_MAX,
    DELAYS_MS,
    FAILURES_PER_MINUTE,
    FORGOTTEN_AFTER_MS,
    HOUR_MS,
    MINUTE_MS,
    SLOT_MS,
    SOURCES_MAX,
    SPRAY_FAILURES,
    SPRAYED_USERS_MAX,
    TOKEN_MS,
    LoginThrottle,
)

pytestmark = [pytest.mark.requirement("SEC-02"), pytest.mark.attack("A5")]
NOW = 50_000_000
SECOND = 1_000

WAITS = [
    # failures as (seconds, source, user); who asks at second 100; the seconds to wait
    ("nothing has failed", [], ("x", "a"), 0),
    ("one failure costs no delay", [(100, "x", "a")], ("x", "a"), 0),
    ("the second costs a second", [(100, "x", "a")] * 2, ("x", "a"), 1),
    ("the third two", [(100, "x", "a")] * 3, ("x", "a"), 2),
    ("the fourth four", [(100, "x", "a")] * 4, ("x", "a"), 4),
    ("the seventh thirty", [(100, "x", "a")] * 7, ("x", "a"), 30),
    ("and every one behind it", [(100, "x", "a")] * 9, ("x", "a"), 30),
    (
        "a delay counts from the last failure",
        [(91, "x", "a")] * 5 + [(95, "x", "a")],
        ("x", "a"),
        11,
    ),
    ("another user of the source has none", [(100, "x", "a")] * 9, ("x", "b"), 0),
    ("nor has that user from another source", [(100, "x", "a")] * 9, ("y", "a"), 0),
    ("nine failures leave a token", [(100, "x", str(n)) for n in range(9)], ("x", "z"), 0),
    (
        "ten leave none: the next comes in six seconds",
        [(100, "x", str(n)) for n in range(10)],
        ("x", "z"),
        6,
    ),
    ("which another source does not feel", [(100, "x", str(n)) for n in range(10)], ("y", "z"), 0),
    ("a token comes back each six seconds", [(94, "x", str(n)) for n in range(10)], ("x", "z"), 0),
    ("failures at once are a debt", [(100, "x", str(n)) for n in range(13)], ("x", "z"), 24),
    ("a debt has an end", [(100, "x", str(n)) for n in range(99)], ("x", "z"), 66),
    ("loopback is a source like any other", [(100, "127.0.0.1", "a")] * 3, ("127.0.0.1", "a"), 2),
]


@pytest.mark.parametrize(
    ("failures", "asking", "wait_s"), [case[1:] for case in WAITS], ids=[case[0] for case in WAITS]
)
def test_how_long_a_login_waits(
    failures: list[tuple[int, str, str]], asking: tuple[str, str], wait_s: int
) -> None:
    throttle = LoginThrottle()
    for at_s, source, user in failures:
        throttle.failed(source, user, NOW + at_s * SECOND)
    now_ms = NOW + 100 * SECOND
    assert throttle.allowed_at(*asking, now_ms) == now_ms + wait_s * SECOND


def test_the_failures_of_each_source_are_counted_and_can_be_forgotten() -> None:
    throttle = LoginThrottle()
    for number in range(12):
        throttle.failed("x", "a", NOW + number)
    throttle.failed("y", "a", NOW + 5)
    kept = {name: (each.failures, each.last_ms - NOW) for name, each in throttle.sources.items()}
    assert kept == {"x": (12, 11), "y": (1, 5)}
    assert throttle.allowed_at("x", "a", NOW + 11) > NOW + 11
    assert throttle.forget("x")
    assert throttle.allowed_at("x", "a", NOW + 11) == NOW + 11
    assert list(throttle.sources) == ["y"]
    assert not throttle.forget("x")


def test_a_success_ends_the_delay_and_not_the_bucket() -> None:
    throttle = LoginThrottle()
    for _ in range(FAILURES_PER_MINUTE):
        throttle.failed("x", "a", NOW)
    throttle.succeeded("x", "a")
    assert throttle.allowed_at("x", "a", NOW) == NOW + TOKEN_MS
    throttle.succeeded("y", "nobody")


def test_a_long_pause_ends_the_row() -> None:
    throttle = LoginThrottle()
    for _ in range(len(DELAYS_MS)):
        throttle.failed("x", "a", NOW)
    later = NOW + FORGOTTEN_AFTER_MS
    throttle.failed("x", "a", later)
    assert throttle.allowed_at("x", "a", later) == later + DELAYS_MS[0]


def test_a_debt_is_not_more_than_debt_max() -> None:
    throttle = LoginThrottle()
    for number in range(1_000):
        throttle.failed("x", str(number), NOW)
    assert throttle.allowed_at("x", "z", NOW) == NOW + (DEBT_MAX + 1) * TOKEN_MS


@given(st.lists(st.integers(0, 30_000), max_size=200))
def test_no_source_fails_more_often_than_the_bucket_allows(pauses_ms: list[int]) -> None:
    """A client that obeys `allowed_at` has at most a full bucket and its refill in any minute."""
    throttle = LoginThrottle()
    failed_ms: list[int] = []
    now_ms = NOW
    for number, pause_ms in enumerate(pauses_ms):
        now_ms = throttle.allowed_at("x", str(number), now_ms + pause_ms)
        throttle.failed("x", str(number), now_ms)
        failed_ms.append(now_ms)
    for first_ms in failed_ms:
        within = sum(first_ms <= at_ms < first_ms + MINUTE_MS for at_ms in failed_ms)
        assert within <= 2 * FAILURES_PER_MINUTE


def test_sources_max_sources_are_kept_and_the_oldest_is_dropped() -> None:
    throttle = LoginThrottle()
    for _ in range(FAILURES_PER_MINUTE):
        throttle.failed("first", "a", NOW)
    for number in range(SOURCES_MAX - 1):
        throttle.failed(str(number), "b", NOW)
    assert len(throttle.sources) == SOURCES_MAX
    assert throttle.allowed_at("first", "z", NOW) > NOW
    throttle.failed("one more", "b", NOW)
    assert len(throttle.sources) == SOURCES_MAX
    assert throttle.allowed_at("first", "z", NOW) == NOW


def test_a_source_that_fails_again_is_not_the_oldest() -> None:
    throttle = LoginThrottle(sources_max=2)
    for source in [*["x"] * FAILURES_PER_MINUTE, "y", "x", "z"]:
        throttle.failed(source, "a", NOW)
    assert throttle.allowed_at("x", "b", NOW) > NOW


def test_delays_max_delays_are_kept() -> None:
    throttle = LoginThrottle()
    for _ in range(4):
        throttle.failed("x", "a", NOW)
    for number in range(DELAYS_MAX - 1):
        throttle.failed(f"s{number % 5_000}", f"{number}", NOW)
    assert throttle.allowed_at("x", "a", NOW) == NOW + DELAYS_MS[3]
    throttle.failed("y", "b", NOW)
    assert throttle.allowed_at("x", "a", NOW) == NOW


# ---- sprays ---------------------------------------------------------------------------------


def reports(throttle: LoginThrottle, times_ms: list[int], user: str = "a") -> list[tuple[int, int]]:
    """Let logins fail from ever other sources; return each report as its index and its count."""
    counts = [
        (index, throttle.failed(f"source {index}", user, at_ms))
        for index, at_ms in enumerate(times_ms)
    ]
    return [each for each in counts if each[1]]


SPRAYS = [
    # the times of failures in seconds; the reports as (index, count)
    ("one too few", [0] * (SPRAY_FAILURES - 1), []),
    ("a hundred at once", [0] * SPRAY_FAILURES, [(99, 100)]),
    ("reported once", [0] * 5 * SPRAY_FAILURES, [(99, 100)]),
    ("a hundred within an hour", [35 * each for each in range(100)], [(99, 100)]),
    ("a hundred in two hours", [72 * each for each in range(100)], []),
    ("again an hour later", [0] * 100 + [3_600] * 100, [(99, 100), (199, 100)]),
    ("a pause of a day", [0] * 99 + [86_400] * 99, []),
]


@pytest.mark.parametrize(
    ("times_s", "expected"), [case[1:] for case in SPRAYS], ids=[case[0] for case in SPRAYS]
)
def test_a_spray_is_reported(times_s: list[int], expected: list[tuple[int, int]]) -> None:
    times_ms = [NOW // HOUR_MS * HOUR_MS + at_s * SECOND for at_s in times_s]
    assert reports(LoginThrottle(), times_ms) == expected


def test_each_user_is_counted_for_itself() -> None:
    throttle = LoginThrottle()
    assert reports(throttle, [NOW] * 99, "a") == []
    assert reports(throttle, [NOW] * 99, "b") == []
    assert reports(throttle, [NOW], "a") == [(0, 100)]


def test_a_long_spray_is_reported_once_an_hour() -> None:
    times_ms = list(range(NOW, NOW + 3 * HOUR_MS, MINUTE_MS // 2))
    assert len(reports(LoginThrottle(), times_ms)) == 3


def test_sprayed_users_max_users_are_counted() -> None:
    throttle = LoginThrottle()
    reports(throttle, [NOW] * 99, "a")
    for number in range(SPRAYED_USERS_MAX):
        throttle.failed("x", str(number), NOW)
    assert reports(throttle, [NOW], "a") == [], "the count of `a` was dropped as the oldest"


@given(st.lists(st.integers(0, SLOT_MS), max_size=300))
def test_a_report_means_so_many_failures_in_little_more_than_an_hour(pauses_ms: list[int]) -> None:
    throttle = LoginThrottle()
    times_ms: list[int] = []
    at_ms = NOW
    for pause_ms in pauses_ms:
        at_ms += pause_ms // 20
        times_ms.append(at_ms)
        count = throttle.failed("x", "a", at_ms)
        assert count == 0 or count <= sum(at_ms - HOUR_MS < each for each in times_ms)
