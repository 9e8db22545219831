"""The dashboard of docs/spark/lag.md shows what Spark's progress has, in both themes."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from urllib.request import urlopen

import pytest

from tests.interop.broker_process import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

listener = pytest.importorskip("pyspark.sql.streaming.listener")

pytestmark = pytest.mark.requirement("PIP-78")

PAGE: Final = ROOT / "docs" / "spark" / "lag.md"
PROGRAM: Final = re.compile(
    r"^```python\n(# lag_dashboard\.py\n.*?)^```$", re.MULTILINE | re.DOTALL
)
PICTURE: Final = "spark-lag"
QUERY: Final = "00000000-0000-0000-0000-00000000000"


@pytest.fixture
def dashboard() -> ModuleType:
    """Return the page's program as a module."""
    (program,) = PROGRAM.findall(PAGE.read_text())
    module = ModuleType("lag_dashboard")
    exec(compile(program, str(PAGE), "exec"), module.__dict__)
    return module


def progress(name: str, told: dict[str, Any], rows: int, number: int = 1) -> Any:
    """Return an event as Spark makes it from a query's progress."""
    source = dict.fromkeys(("startOffset", "endOffset", "inputRowsPerSecond")) | {
        "description": "amqp",
        "latestOffset": json.dumps(told),
        "numInputRows": rows,
        "processedRowsPerSecond": 0.0,
        "metrics": {},
    }
    given = {
        "id": f"{QUERY}{number}",
        "runId": f"{QUERY}{number}",
        "name": name,
        "timestamp": "2026-01-31T12:00:00.000Z",
        "batchId": 1,
        "batchDuration": 1,
        "stateOperators": [],
        "sources": [source],
        "sink": {"description": "amqp", "numOutputRows": rows, "metrics": {}},
    }
    return listener.QueryProgressEvent.fromJson({"progress": given})


def fill(lag: Any) -> None:
    """Report two queries: one falls behind and catches up, one follows its event log."""
    for at in range(120):
        behind = max(0, round(40_000 * math.sin(at / 25)))
        told = {"messagesBehind": behind, "oldestAgeMs": behind * 3, "leaseState": "open"}
        lag.onQueryProgress(progress("orders to Parquet", told, min(10_000, behind + 900)))
        rows = {"rowsBehind": at % 7 * 30, "oldestAgeMs": at % 7 * 100}
        lag.onQueryProgress(progress("event log", rows, 2000 + at % 11 * 50, 2))


@pytest.fixture
def served(dashboard: ModuleType) -> Iterator[str]:
    """Yield the URL of a dashboard with two queries."""
    lag = dashboard.Lag()
    fill(lag)
    server = dashboard.serve(lag, port=0)
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_curves_are_those_of_the_progress(dashboard: ModuleType) -> None:
    lag = dashboard.Lag()
    assert "No query has reported a lag yet" in dashboard.page(lag.queries)
    lag.onQueryProgress(progress("q", {"v": 1, "lease": "l"}, 3))
    assert not lag.queries, "the broker has not told"
    lag.onQueryProgress(progress("q", {"messagesBehind": 2000, "oldestAgeMs": 7000}, 10))
    lag.onQueryProgress(progress("q", {"messagesBehind": 0, "oldestAgeMs": 0}, 2000))
    lag.onQueryProgress(progress("", {"rowsBehind": 5, "oldestAgeMs": 1234}, 1))
    lag.onQueryProgress(progress("<b>", {"rowsBehind": 0}, 1))
    assert list(lag.queries["q"]) == [(2000, 7.0, 10), (0, 0.0, 2000)]
    page = dashboard.page(lag.queries)
    assert "<b>0</b>, at most 2,000" in page
    assert "<b>0</b>, at most 7<" in page
    assert 'points="0,0.0 1,100.0"' in page
    assert f"<h2>{QUERY}1</h2>" in page
    assert "<h2>&lt;b&gt;</h2>" in page
    assert "<b>1.2</b>, at most 1.2" in page


def test_old_points_are_forgotten(dashboard: ModuleType) -> None:
    lag = dashboard.Lag()
    for number in range(dashboard.POINTS + 7):
        lag.onQueryProgress(progress("q", {"rowsBehind": number}, 1))
    assert len(lag.queries["q"]) == dashboard.POINTS


def test_the_page_is_served(served: str) -> None:
    with urlopen(served, timeout=10) as answer:
        text = answer.read().decode()
    assert "<h2>event log</h2>" in text
    assert text.count("<polyline") == 6


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_for_the_documentation(
    chromium: Browser, served: str, tmp_path: Path, theme: str
) -> None:
    context = chromium.new_context(
        color_scheme="dark" if theme == "dark" else "light", viewport={"width": 1100, "height": 520}
    )
    page = context.new_page()
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.goto(served)
    folder = Path(os.environ.get("LAG_PICTURES", str(tmp_path)))
    suffix = "" if theme == "light" else f"-{theme}"
    assert page.screenshot(path=folder / f"{PICTURE}{suffix}.png").startswith(b"\x89PNG")
    assert (ROOT / "docs" / "images" / f"{PICTURE}.png").is_file()
    assert found == []
    context.close()
