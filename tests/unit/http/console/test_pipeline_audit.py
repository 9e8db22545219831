"""The result of a pipeline's audit: shown as it is, and not trusted."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from broker.http.console import pipeline_audit
from broker.http.console.pipeline_audit import read_audit
from broker.http.console.rendering import PageTemplates
from tests.support.access import ADA
from tests.support.api import api_of
from tests.support.console import Browser

pytestmark = pytest.mark.requirement("OPS-06")

HOSTILE = '"><img src=x onerror=alert(1)>'

RESULT = {
    "events": 10,
    "messages": 4,
    "open": 1,
    "missing_rows": 0,
    "holds": False,
    "checks": [{"check": "no loss", "judged": 4, "broken": 1, "verdict": "broken", "more": 1}],
    "offenders": [{"check": "no loss", "address": HOSTILE, "detail": {"a": [1]}}],
}


async def test_a_result_is_read(tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    file.write_text(json.dumps(RESULT))
    found = await read_audit(file)
    assert (found.problem, found.holds) == ("", False)
    assert found.counts == {"events": 10, "messages": 4, "open": 1, "missing_rows": 0}
    assert [dict(each) for each in found.checks] == [
        {"check": "no loss", "judged": 4, "broken": 1, "verdict": "broken"}
    ]
    assert found.made_at > 1_700_000_000_000
    page = PageTemplates().text(
        "pipeline_audit", audit=found, title="x", path="/", notice="", has_session=False
    )
    assert "<img" not in page
    assert "Offending messages" in page


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("{", "it is not JSON", id="half of it"),
        pytest.param("[" * 100_000, "it is not JSON", id="deep"),
        pytest.param("\udcff", "it is not JSON", id="not UTF-8"),
        pytest.param("[]", "it has no checks", id="a list"),
        pytest.param('{"checks": 1}', "no list of objects", id="no table"),
        pytest.param('{"checks": [1]}', "no list of objects", id="no rows"),
        pytest.param('{"checks": []' + " " * 200, "more than 100 bytes", id="too large"),
    ],
)
async def test_files_that_are_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    if "more" in reason:
        monkeypatch.setattr(pipeline_audit, "AUDIT_REPORT_BYTES_MAX", 100)
    file = tmp_path / "audit.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    # else what earlier tests have left might be finalized where the parser has used up the stack
    gc.collect()
    assert reason in (await read_audit(file)).problem
    assert "is no result of an audit" in (await read_audit(file)).problem


async def test_a_missing_file_and_a_missing_setting_are_explained(tmp_path: Path) -> None:
    assert "No audit has been made" in (await read_audit(tmp_path / "none")).problem
    assert "cannot be read: Is a directory" in (await read_audit(tmp_path)).problem
    assert "http.audit_report names the file" in (await read_audit(None)).problem


async def test_the_page_needs_the_right_on_events(tmp_path: Path) -> None:
    async with api_of(tmp_path, "view management:events") as api:
        browser = Browser(api)
        await browser.log_in(ADA)
        assert "http.audit_report" in await browser.page("/pipeline-audit")
    async with api_of(tmp_path, "view management:queues") as api:
        browser = Browser(api)
        await browser.log_in(ADA)
        assert (await browser.get("/pipeline-audit")).status == 403
