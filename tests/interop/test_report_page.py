"""The page of a report in a browser: its charts, accessibility, both themes, and its print."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pyspark_amqp.engines.duckdb_engine import duckdb_engine
from pyspark_amqp.jobs.audit import Look
from pyspark_amqp.jobs.auditing import judged_by
from pyspark_amqp.jobs.extent import bounds
from pyspark_amqp.jobs.report import gather
from pyspark_amqp.jobs.report_page import write
from pyspark_amqp.jobs.verdict import judge
from tests.interop.broker_process import ROOT
from tests.spark.event_logs import Model

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.requirement("PIP-66")

PICTURE: Final = "spark-report"
A4_PX: Final = 718
"""Pixels of CSS between the margins of a page of A4, 1 cm wide each."""

SERIOUS: Final = ("serious", "critical")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a report on a busy broker, with a message that was accepted twice."""
    with duckdb_engine() as engine:
        events = Model(3, ["no duplicate"]).run(messages=2000).told.table(engine)
        judged = judged_by(*judge(events, bounds(events), look=Look(drained=True)))
        found = gather(events)
        assert found is not None
        return write(found, tmp_path_factory.mktemp("report"), judged)[0]


def opened(chromium: Browser, report: Path, theme: str) -> tuple[Page, list[str]]:
    """Open the page; return it, and a list of its errors and of files that it requests."""
    context = chromium.new_context(
        color_scheme="dark" if theme == "dark" else "light",
        viewport={"width": 1150, "height": 1000},
    )
    page = context.new_page()
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda message: found.append(message.text))
    page.on("request", lambda request: found.append(request.url))
    page.goto(report.as_uri())
    assert found == [report.as_uri()], "it needs no other file"
    found.clear()
    return page, found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_charts_can_be_asked_and_the_page_is_accessible(
    chromium: Browser, report: Path, tmp_path: Path, theme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, errors = opened(chromium, report, theme)
    violations = axe.run(page).response["violations"]
    serious = [each for each in violations if each["impact"] in SERIOUS]
    assert not serious, [(each["id"], each["nodes"][0]["html"]) for each in serious]

    throughput = page.locator("figure").first
    throughput.locator("svg").hover()
    enqueued = throughput.locator("button").first
    assert enqueued.inner_text().startswith("enqueued ")
    assert enqueued.locator("output").inner_text().replace(",", "").isdecimal()
    enqueued.click()
    assert throughput.locator(".line").first.is_hidden()
    enqueued.press("Enter")
    assert throughput.locator(".line").first.is_visible()

    page.click("text='NOT all checks hold' >> nth=0")
    assert page.url.endswith("#audit")
    page.go_back()
    page.mouse.move(0, 0)
    folder = Path(os.environ.get("REPORT_PICTURES", str(tmp_path)))
    suffix = "" if theme == "light" else f"-{theme}"
    assert page.screenshot(path=folder / f"{PICTURE}{suffix}.png").startswith(b"\x89PNG")
    assert (ROOT / "docs" / "images" / f"{PICTURE}.png").is_file()
    assert errors == []
    page.context.close()


def test_the_printed_page_is_light_and_has_all_charts(
    chromium: Browser, report: Path, tmp_path: Path
) -> None:
    page, errors = opened(chromium, report, "dark")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": A4_PX, "height": 1000})
    wide = "[...document.querySelectorAll('main *')].filter(e => e.scrollWidth > innerWidth).length"
    assert page.evaluate(wide) == 0, "no table is cut off at the edge of the paper"
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(255, 255, 255)"
    assert page.locator("figure").count() == 4
    printed = page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert printed.startswith(b"%PDF")
    assert errors == []
    page.context.close()
