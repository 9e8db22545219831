"""Dead letters and the events of messages over the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.api import api_of, problem
from tests.unit.http.api.test_message_life import fill, logging

pytestmark = pytest.mark.requirement("OPS-01")


async def test_dead_letter_queues_with_their_origins(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("orders")
        name = api.broker.router.queues["orders"].policy.dead_letter
        assert await api.items("/dead-letters") == []
        api.broker.fill(name)
        (found,) = await api.items("/dead-letters")
    unknown = {"source": "(unknown)", "reason": "(unknown)", "first_at": 0, "last_at": 0}
    assert found == {
        "name": name,
        "messages": 1,
        "examined": 1,
        "origins": [{**unknown, "messages": 1}],
    }


async def test_the_events_of_a_message_by_its_id(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=logging()) as api:
        fill(api.broker, "ID:a/b", "other")
        life: dict[str, Any] = await api.get("/message-lives/ID:a%2Fb?address=q")
        none = await api.get("/message-lives/missing?address=q")
        nameless = await api.ask("GET", "/message-lives/ID:a%2Fb")
    assert [(each["message_id"], each["kind"]) for each in life["events"]] == [
        ("ID:a/b", "enqueued")
    ]
    assert life["note"] == ""
    assert none == {"events": [], "note": "The event log has no row of it."}
    assert problem(nameless)["detail"] == "address is needed"
