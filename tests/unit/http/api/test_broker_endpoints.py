"""Definitions and the level of the log over the API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import api_of, problem

pytestmark = pytest.mark.requirement("OPS-01")


@pytest.mark.requirement("OPS-12")
async def test_definitions_are_exported_and_imported_kind_by_kind(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with api_of(tmp_path / "one") as api:
        for name in ("orders", "bills"):
            await api.ask("PUT", f"/queues/{name}")
        assert "queues" in await api.names("/definitions")
        page: dict[str, Any] = await api.get("/definitions/queues?limit=1")
        rest: dict[str, Any] = await api.get(f"/definitions/queues?offset={page['next']}")
        whole = await api.get("/definitions/queues")
    assert page["definitions"] + rest["definitions"] == whole["definitions"]
    assert (page["next"], rest["next"]) == (1, None)
    body = {"version": whole["version"], "definitions": whole["definitions"]}
    async with api_of(tmp_path / "two") as api:
        tried = await api.ask("POST", "/definitions/queues", {**body, "dry_run": True})
        assert json.loads(tried.body)["added"] == 2
        assert await api.names("/queues") == []
        taken = await api.ask("POST", "/definitions/queues", body)
        assert json.loads(taken.body)["added"] == 2
        assert await api.get("/definitions/queues") == whole
        unknown = await api.ask("POST", "/definitions/weather", body)
    assert "no definitions weather" in str(problem(unknown)["detail"])


async def test_the_level_of_the_log_is_read_and_changed(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        assert await api.get("/log-level") == {"level": "info"}
        changed = await api.ask("PUT", "/log-level", {"level": "debug"})
        assert (changed.status, json.loads(changed.body)) == (200, {"level": "debug"})
        assert await api.get("/log-level") == {"level": "debug"}
        unknown = await api.ask("PUT", "/log-level", {"level": "loud"})
        events = [each.action for each in api.audit.events if each.action.startswith("log.")]
    assert problem(unknown)["status"] == 400
    assert events == ["log.level-changed", "log.level-changed"]
