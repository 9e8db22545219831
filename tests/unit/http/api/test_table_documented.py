"""The page of reference names every endpoint, parameter, status and limit, and no others."""

import re
from pathlib import Path
from typing import Final

from broker.http import limits
from broker.http.api import jobs, models
from broker.http.api.entities import OF_LISTS
from broker.http.api.event_stream import SnapshotStreams
from broker.http.api.problems import SLUGS
from broker.http.api.table import endpoints

PAGE: Final = (
    Path(__file__).resolve().parents[4] / "docs" / "reference" / "http-api.md"
).read_text()

CONVERTER: Final = re.compile(r":\w+}")

OF_ALL_LISTS: Final = {each.name for each in OF_LISTS}


def rows(header: str) -> list[list[str]]:
    """Return the cells of the table whose first column is `header`."""
    table = PAGE.partition(f"| {header} |")[2].partition("\n\n")[0]
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]
    ]


def code_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_page_has_the_endpoints() -> None:
    expected = {
        f"{each.method} {CONVERTER.sub('}', each.path)}": (
            each.summary,
            [one.name for one in each.parameters if one.name not in OF_ALL_LISTS],
            each.right,
        )
        for each in endpoints()
    }
    told = {
        code_in(cells[0])[0]: (cells[1], code_in(cells[2]), cells[3].strip(" `"))
        for cells in rows("endpoint")
    }
    assert told == expected


def test_the_page_has_the_problems() -> None:
    told = {int(cells[0]): code_in(cells[1])[0] for cells in rows("status")}
    assert told == SLUGS


def test_the_page_has_the_fields_of_actions() -> None:
    told = {name for cells in rows("field") for name in code_in(cells[0])}
    fields = models.MessageActionBody.model_fields
    assert told == {info.alias or name for name, info in fields.items()}


def test_the_page_has_the_topics_of_streams() -> None:
    told = {code_in(cells[0])[0] for cells in rows("topic")}
    assert told == set(SnapshotStreams(jobs.Jobs().list).topics)


def test_the_page_has_the_limits() -> None:
    told = {cells[0]: cells[1].strip(" |") for cells in rows("limit")}
    assert told == {
        "body of a request": f"{limits.API_BODY_BYTES_MAX:,} bytes",
        "time for a client to send a body": f"{limits.API_BODY_MAX_S} s",
        "requests that are carried out at a time": f"{limits.API_REQUESTS_MAX}",
        "of these, requests of one user": f"{limits.API_REQUESTS_PER_USER_MAX}",
        "jobs that run at a time": f"{jobs.RUNNING_MAX}",
        "streams of events at a time": f"{limits.EVENT_STREAMS_MAX}",
        "of these, streams of one user": f"{limits.EVENT_STREAMS_PER_USER_MAX}",
        "bytes of one snapshot": f"{limits.SNAPSHOT_BYTES_MAX:,}",
    }
    assert f"portions of {jobs.PORTION}," in PAGE
    assert f"The last {jobs.KEPT_MAX} jobs" in PAGE
