"""The page of a report: the links from numbers to messages, and the time that it takes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NoReturn

import pytest

from pyspark_amqp.jobs.report import PERCENTILES, STAGES, Report, Span
from pyspark_amqp.jobs.report_page import page

START: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
COUNTS: Final = (
    *("enqueued", "given", "accepted", "released", "modified"),
    *("expired", "deadlettered", "redelivered", "mostGiven"),
)


class Unsearched(list[dict[str, object]]):
    """Rows in which none is searched for: with n addresses, n searches take n² steps."""

    def index(self, *_: object) -> NoReturn:
        raise AssertionError


@pytest.mark.requirement("PIP-66")
def test_links_of_many_addresses_are_numbered_in_one_pass() -> None:
    times = {f"{stage}_{name}": 1.0 for stage in STAGES for name in PERCENTILES}
    names = ["none", "one", "two"]
    rows = Unsearched({"address": name, **dict.fromkeys(COUNTS, 1), **times} for name in names)
    message = {"subscription": "", "position": 4, "messageId": "m", "given": 2}
    late = {"enqueuedAt": START, "total": 1000}
    behind = [{"address": name, **message, **late} for name in names[1:]]
    span = Span(START, START + timedelta(seconds=9), 1)
    counts = dict.fromkeys(("enqueued", "given", "accepted", "backlog"), 1)
    points = [{"address": "one", "at": START, **counts}]
    html = page(Report(span, rows, points, {"redelivered": behind}))
    assert re.findall(r'href="#redelivered-(\d)"', html) == ["2", "3"]
    assert re.findall(r'id="redelivered-(\d)"', html) == ["2", "3"]
