"""Limits that a broker announces: a case that needs more does not apply, on any broker."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.conformance.harness import all_cases, judge
from tests.conformance.verdict import Kind, Options, Verdict
from tests.support.embedded import serving

SMALL: Final[dict[str, Any]] = {
    "channel_max": 0,
    "handle_max": 0,
    "max_frame_size": 512,
    "max_message_size": 1000,
    "credit": 2,
}

NEEDS: Final = [
    pytest.param(
        "begin_is_answered_with_remote_channel",
        "the broker's channel-max is 0, and the case needs channel 3",
        id="a channel",
    ),
    pytest.param(
        "delivery_tag_has_32_bytes_at_most",
        "the broker's channel-max is 0, and the case needs channel 7",
        id="a channel for frames that are malformed",
    ),
    pytest.param(
        "pipelined_attaches_are_all_answered",
        "the broker's handle-max is 0, and the case needs handle 1",
        id="a handle",
    ),
    pytest.param(
        "session_error_leaves_other_sessions_alone",
        "the broker's channel-max is 0, and the case needs channel 1",
        id="a second session",
    ),
    pytest.param(
        "longest_extended_header_is_ignored",
        "the broker's max-frame-size is 512, and the case needs a frame of 1032 bytes",
        id="a frame",
    ),
    pytest.param(
        "large_messages_come_in_frames_that_fit",
        "the broker's max-message-size is 1000, and the case needs a message of ",
        id="a message",
    ),
    pytest.param(
        "settled_deliveries_may_share_the_empty_tag",
        "the broker's credit is 2, and the case needs 3 at once",
        id="credit",
    ),
]

KEEPING: Final = [
    "unsettled_deliveries_wait_for_their_link",
    "outcome_behind_a_detach_counts",
]

BEYOND: Final = [
    "channel_beyond_the_limit_is_refused",
    "empty_frame_beyond_the_limit_is_refused",
    "oversized_frame_is_refused",
    "handle_above_handle_max_closes",
    "message_above_the_maximum_is_refused",
]


async def verdict_on(settings: dict[str, Any], name: str) -> tuple[Verdict, Kind | None, str]:
    """Judge the case `name` on a broker with `settings`."""
    (case,) = (each for each in all_cases() if each.name == name)
    async with serving(**settings) as port:
        result = await judge(case, Options("127.0.0.1", port, timeout_s=0.5))
    return result.verdict, result.kind, result.reason or f"{result.expected}: {result.got}"


@pytest.mark.parametrize(("name", "reason"), NEEDS)
async def test_what_a_broker_does_not_offer_does_not_fail_it(name: str, reason: str) -> None:
    verdict, kind, told = await verdict_on(SMALL, name)
    assert (verdict, kind) == (Verdict.NOT_APPLICABLE, Kind.DID_NOT_HAPPEN), told
    assert told.startswith(reason)


@pytest.mark.parametrize("name", BEYOND)
async def test_a_case_may_go_beyond_a_limit_on_purpose(name: str) -> None:
    verdict, _, told = await verdict_on(SMALL, name)
    assert verdict is Verdict.PASSED, told


@pytest.mark.parametrize("name", KEEPING)
async def test_a_broker_that_tells_that_it_keeps_nothing_does_not_fail(name: str) -> None:
    verdict, kind, told = await verdict_on({"resume_max_s": 0}, name)
    assert (verdict, kind) == (Verdict.NOT_APPLICABLE, Kind.NOT_OFFERED), told
