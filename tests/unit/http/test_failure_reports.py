"""Faults of the broker in requests over HTTP: the operator is told of them, and of nothing else."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
from starlette.requests import ClientDisconnect

from broker.http.api import application
from broker.http.failure_reports import FailureReports
from broker.http.jms_content import BrokenBody
from broker.log_lines import configure_logging
from broker.management.request import BUSY, Refused
from broker.net.log import Log
from storage.api import StoreError
from tests.support.broker import Broker
from tests.support.http import ask, served
from tests.support.stores import GatedStore

pytestmark = pytest.mark.requirement("OPS-01")


class FaultyStore(GatedStore):
    """A store with a fault in its program."""

    async def event_bounds(self) -> tuple[int, int]:
        raise ZeroDivisionError("a bug")


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    configure_logging("json", "info", stream)
    yield stream
    configure_logging("console", "info")


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        pytest.param("/events/bounds", "ZeroDivisionError", id="a reading"),
        pytest.param("/api/v1/queues", "TypeError", id="the API, whose responses are its own"),
    ],
)
async def test_a_fault_is_logged_with_its_traceback(
    path: str, fault: str, lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "read_parameters", None)
    broker = Broker()
    broker.container.watcher = Log()
    store = FaultyStore()
    async with served(store, broker=broker) as url:
        broken = await ask(url + path)
        assert (await ask(f"{url}/livez")).status == 200
    assert broken.status == 500
    (line,) = [json.loads(each) for each in lines.getvalue().splitlines()]
    assert (line["code"], line["level"], line["via"]) == ("BRK-007", "error", "http")
    assert line["address"] == "127.0.0.1"
    assert fault in str(line["exception"])


def in_a_response(cause: Exception) -> RuntimeError:
    """Return what starlette makes of an error in the middle of a response."""
    error = RuntimeError("Caught handled exception, but response already started.")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ClientDisconnect(), id="the client is gone"),
        pytest.param(BrokenBody("damaged"), id="a damaged body"),
        pytest.param(in_a_response(Refused(BUSY, "later")), id="a stream that is refused"),
        pytest.param(in_a_response(StoreError("away")), id="a store that is away"),
    ],
)
async def test_what_is_no_fault_or_was_told_is_not_logged(
    error: Exception, lines: io.StringIO
) -> None:
    broker = Broker()
    broker.container.watcher = Log()

    async def fail(*_: object) -> None:
        raise error

    with pytest.raises(type(error)):
        await FailureReports(fail, broker.container)({}, fail, fail)  # type: ignore[arg-type]
    assert lines.getvalue() == ""
