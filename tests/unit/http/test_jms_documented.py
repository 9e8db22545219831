"""The page about JMS over HTTP names every path, field, fault and limit, and no others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from starlette.requests import Request
from starlette.responses import Response

from broker.http import jms, limits, soap_jms
from broker.http.jms_fields import NAMES, SOAP_NAMES, TYPES
from broker.http.jms_problems import REFUSALS
from broker.jms.soap import REFUSED
from tests.support.broker import Broker

pytestmark = pytest.mark.requirement("MAP-09")

PAGE: Final = (Path(__file__).resolve().parents[3] / "docs" / "jms" / "http.md").read_text()


def rows(header: str) -> list[list[str]]:
    """Return the cells of the table whose first column is `header`."""
    table = PAGE.partition(f"\n| {header} |")[2].partition("\n\n")[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def names_in(cell: str) -> list[str]:
    """Return the texts in code style."""
    return re.findall(r"`([^`]+)`", cell)


async def unused(_: Request) -> Response:
    """Respond to nothing: the paths alone are looked at."""
    raise AssertionError


def test_the_page_has_the_paths() -> None:
    routes = jms.JmsRoutes(Broker().container, lambda _: unused)
    found = {
        f"{sorted(route.methods - {'HEAD'})[0]} {route.path.replace(':path', '')}"
        for route in routes.routes()
        if route.methods is not None
    }
    named = {name for cells in rows("request") for name in names_in(cells[0])}
    assert {each for each in named if "=" not in each and "Prefer" not in each} == found


def test_the_page_has_the_names_that_a_sender_may_give() -> None:
    named = {name for cells in rows("name") for name in names_in(cells[0])}
    assert named - {"JMS-Property"} == set(NAMES) - set(SOAP_NAMES)
    assert {name for cells in rows("property") for name in names_in(cells[0])} == set(SOAP_NAMES)


def test_the_page_has_the_names_that_are_refused() -> None:
    sentence = " ".join(PAGE.split()).partition("The broker sets ")[2].partition(". It refuses")[0]
    assert set(names_in(sentence)) == REFUSED


def test_the_page_has_the_types_of_properties() -> None:
    sentence = " ".join(PAGE.split()).partition("The types of properties are ")[2]
    assert set(names_in(sentence.partition(". ")[0])) == set(TYPES)


def test_the_page_has_the_faults() -> None:
    source = Path(soap_jms.__file__).read_text()
    raised = set(re.findall(r'SoapFault\(\s*"(\w+)"', source))
    assert {names_in(cells[1])[0] for cells in rows("rule")} == raised


def test_the_page_has_the_statuses() -> None:
    told = {int(status) for cells in rows("status") for status in re.findall(r"\d+", cells[0])}
    assert {status for status, _ in REFUSALS.values()} <= told
    assert {408, 410, 413, 429, 504} <= told


def test_the_page_has_the_limits() -> None:
    assert {cells[0]: cells[1] for cells in rows("limit")} == {
        "properties of a message": f"{limits.JMS_PROPERTIES_MAX}",
        "headers, settings and properties of a message together": (
            f"{limits.JMS_FIELDS_BYTES_MAX // 1024} KiB"
        ),
        "body of a posted message": (
            f"{limits.JMS_BODY_BYTES_MAX // 1024**2} MiB, or `max_message_size` if that is less;"
            " send larger ones by AMQP"
        ),
        "time for a client to send the body": f"{limits.JMS_BODY_MAX_MS // 1000} s",
        "requests that wait or browse at the same time": (
            f"{limits.JMS_WAITING_MAX}; {limits.JMS_WAITING_PER_USER_MAX} of one user"
        ),
        "receipts of one user": f"{limits.JMS_RECEIPTS_PER_USER_MAX:,}",
        "messages in a response to a browser": f"{limits.JMS_BROWSED_MAX}",
    }
    assert f"holds the message for {limits.JMS_LOCK_MS // 1000} s" in PAGE
    assert f"(0 to {limits.JMS_WAIT_MAX_S} s" in PAGE
    assert f"in the first {limits.XML_BYTES_MAX // 1024} KiB" in PAGE
    assert f"of more than {limits.JMS_DECODED_BYTES_MAX // 1024} KiB" in PAGE
    assert f"a body of more than {limits.JMS_SHOWN_BYTES_MAX // 1024} KiB is null" in PAGE
