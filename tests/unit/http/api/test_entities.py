"""Entities as resources: each kind is listed, read and ended by its operations."""

from pathlib import Path
from urllib.parse import quote

import pytest

from broker.amqp.performatives import Close
from tests.support.api import api_of, problem
from tests.support.frames import attach_receiver
from tests.support.subscriptions import subscribe

pytestmark = pytest.mark.requirement("OPS-01")


async def test_connections_and_links(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        client = api.broker.session("shop")
        client.attach(attach_receiver("q", name="in"))
        api.broker.session("other")
        [identity] = await api.names("/connections?client_id=shop", "identity")
        assert (await api.get(f"/connections/{identity}"))["links"] == 1
        assert await api.names(f"/links?connection={identity}") == ["in"]
        assert await api.names("/links?role=sender") == []
        assert await api.names("/links?stalled=true") == []
        assert await api.names("/connections?sort=-links&fields=name&limit=1") == ["shop"]
        gone = await api.ask("DELETE", f"/connections/{identity}?reason=maintenance")
        assert (gone.status, client.expect_last(Close).error is None) == (204, False)
        again = await api.ask("DELETE", "/connections/99")
    assert (again.status, problem(again)["condition"]) == (404, "amqp:not-found")


async def test_subscriptions(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        client = api.broker.session("shop")
        subscribe(client, "durable", address="news")
        [identity] = await api.names("/subscriptions", "identity")
        path = f"/subscriptions/{quote(str(identity))}"
        assert (await api.get(path))["address"] == "news"
        for query, found in (
            ("active=true", 1),
            ("active=false", 0),
            ("durable=true", 1),
            ("shared=true", 0),
            ("client_id=shop", 1),
            ("client_id=x", 0),
            ("topic=news", 1),
        ):
            assert len(await api.names(f"/subscriptions?{query}")) == found, query
        assert (await api.ask("DELETE", path)).status == 409
        assert (await api.ask("DELETE", f"{path}?force=true")).status == 204
        assert (await api.ask("GET", path)).status == 404


async def test_queues_and_topics_of_one_name_are_two(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for kind in ("queues", "topics"):
            assert (await api.ask("PUT", f"/{kind}/x")).status == 201
            assert (await api.ask("PUT", f"/{kind}/x")).status == 200
            assert await api.names(f"/{kind}?temporary=false") == ["x"]
        assert (await api.ask("DELETE", "/queues/x?if_empty=true&if_unused=true")).status == 204
        assert (await api.names("/queues"), await api.names("/topics")) == ([], ["x"])


async def test_stores_and_backups(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        assert await api.names("/stores", "type") == ["store"]
        assert await api.names("/backups") == []
        assert await api.names("/quarantined-messages") == []
        body = {"file": "relative.db"}
        assert (await api.ask("POST", "/backups", body)).status == 400
        file = tmp_path / "copy.db"
        begun = await api.ask("POST", "/backups", {"file": str(file)})
        assert begun.status == 202
        assert await api.names("/backups") == [str(file)]


async def test_rules_and_roles(tmp_path: Path) -> None:
    async with api_of(tmp_path, "send queue:a") as api:
        assert await api.names("/rules?q=r0") == ["r0"]
        assert (await api.get("/rules/r0"))["can"] == ["send"]
        assert await api.names("/roles?built_in=true&q=mon") == ["monitor"]
        assert "built-in:" in str((await api.get("/roles/monitor"))["rules"])
        body = {"verb": "send", "resource": "queue:a", "user": "ada"}
        explained = await api.ask("POST", "/access/explain", body)
        assert (explained.status, b'"rule": "r0"' in explained.body) == (200, True)
        wrong = await api.ask("POST", "/access/explain", {"verb": "send", "resource": "a"})
        assert (wrong.status, "no resource" in str(problem(wrong)["detail"])) == (400, True)


async def test_what_an_attach_would_lead_to(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        answer = await api.ask("POST", "/explain/attach", {"address": "q", "global": False})
    assert (answer.status, b"which is created" in answer.body) == (200, True)


async def test_settings_and_their_reload(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        assert (await api.get("/config"))["settings"]["credit"]["value"] == 7  # type: ignore[index]
        for query, effect in (("?dry_run=true", b"unchanged"), ("", b"applied")):
            answer = await api.ask("POST", f"/config/reload{query}", {})
            assert (answer.status, effect in answer.body) == (200, True)


async def test_an_overview(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q", 3)
        found = await api.get("/overview")
    assert (found["state"], found["messages"], found["queues"]) == ("running", 3, 1)


async def test_the_bounds_of_the_event_log(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        assert await api.get("/events/bounds") == {"first": 0, "last": 0}
