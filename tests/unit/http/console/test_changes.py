"""Changes by the console: what destroys something needs a typed name, or a trial before."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.security.api_tokens import PREFIX
from tests.support.access import ADA, OWNER
from tests.support.api import ApiClient, api_of
from tests.support.console import Browser

pytestmark = pytest.mark.requirement("OPS-07")


async def owner(api: ApiClient) -> Browser:
    """Return a browser that has logged in."""
    browser = Browser(api)
    assert (await browser.log_in(OWNER)).status == 303
    return browser


def waiting(api: ApiClient, queue: str) -> int:
    return int(api.broker.router.queues[queue].backlogs.waiting)


@pytest.mark.parametrize("typed", ["", "orders ", "Orders", "q"])
async def test_a_queue_is_deleted_only_by_its_name(typed: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("a/orders")
        browser = await owner(api)
        page = await browser.page("/remove/queues/a%2Forders")
        assert "It has 1 messages" in page
        wrong = await browser.post("/remove/queues/a%2Forders", {"typed": typed})
        assert (wrong.status, waiting(api, "a/orders")) == (400, 1)
        right = await browser.post("/remove/queues/a%2Forders", {"typed": "a/orders"})
        assert (right.status, right.headers["location"]) == (303, "/console/queues")
        assert api.broker.router.names("queue") == []
        assert "queue a/orders, done" in await browser.page("/queues")
        assert "done." not in await browser.page("/queues"), "a notice is shown once"
        deletions = [each for each in api.audit.events if each.action == "node.deleted"]
        assert [(each.actor.user, each.actor.via) for each in deletions] == [(OWNER, "http")]


async def test_a_client_without_the_right_deletes_nothing(tmp_path: Path) -> None:
    async with api_of(tmp_path, "view management:queues") as api:
        api.broker.fill("orders")
        browser = Browser(api)
        await browser.log_in(ADA)
        await browser.page("/remove/queues/orders")
        answer = await browser.post("/remove/queues/orders", {"typed": "orders"})
        assert (answer.status, waiting(api, "orders")) == (403, 1)
        assert "not allowed to edit management:queues" in answer.body.decode()


async def test_messages_are_deleted_after_a_trial(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for _ in range(3):
            api.broker.fill("orders")
        browser = await owner(api)
        fields = {"action": "delete", "queue": "orders", "selector": ""}
        refused = await browser.post("/action", {**fields, "step": "do"})
        assert (refused.status, waiting(api, "orders")) == (400, 3)
        tried = await browser.post("/action", {**fields, "step": "trial"})
        assert "3 messages would be affected" in tried.body.decode()
        assert waiting(api, "orders") == 3
        other = {**fields, "selector": "JMSPriority > 0"}
        assert (await browser.post("/action", {**other, "step": "do"})).status == 400, "not tried"
        done = await browser.post("/action", {**fields, "step": "do"})
        assert (done.status, done.headers["location"]) == (303, "/console/jobs")
        assert waiting(api, "orders") == 0
        assert "Action 2 has begun" in await browser.page("/jobs")


async def test_a_trial_is_good_for_one_action(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("orders")
        browser = await owner(api)
        fields = {"action": "delete", "queue": "orders"}
        await browser.post("/action", {**fields, "step": "trial"})
        await browser.post("/action", {**fields, "step": "do"})
        api.broker.fill("orders")
        again = await browser.post("/action", {**fields, "step": "do"})
        assert (again.status, waiting(api, "orders")) == (400, 1)


async def test_chosen_messages_are_moved_with_the_name_typed_in(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for queue in ("orders", "orders", "others"):
            api.broker.fill(queue)
        browser = await owner(api)
        items = (await api.get("/messages?queue=orders"))["items"]
        assert isinstance(items, list)
        fields = [("action", "move"), ("queue", "orders"), ("ids", items[0]["identity"])]
        fields += [("to", "others"), ("step", "do"), ("typed", "orders")]
        assert (await browser.post("/action", fields)).status == 303
        assert (waiting(api, "orders"), waiting(api, "others")) == (1, 2)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param({"action": "burn", "queue": "q"}, "action must be one of", id="action"),
        pytest.param({"action": "delete"}, "queue or subscription is needed", id="no place"),
        pytest.param(
            {"action": "delete", "queue": "q", "subscription": "s"}, "one of them", id="two places"
        ),
        pytest.param(
            {"action": "delete", "queue": "q", "selector": "a =", "step": "trial"},
            "sel",
            id="selector",
        ),
        pytest.param(
            {"action": "delete", "queue": "missing", "step": "trial"},
            "no queue missing",
            id="queue",
        ),
    ],
)
async def test_wrong_actions_are_explained(
    fields: dict[str, str], told: str, tmp_path: Path
) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q")
        browser = await owner(api)
        answer = await browser.post("/action", fields)
        assert answer.status in (400, 404)
        assert told in answer.body.decode()


async def test_users_are_made_and_disabled(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser = await owner(api)
        made = {"name": "bob", "password": "a good password", "roles": "application, monitor"}
        assert (await browser.post("/users", made)).headers["location"] == "/console/users/bob"
        found = await api.get("/users/bob")
        assert (found["enabled"], found["roles"]) == (True, ["application", "monitor"])
        assert (await browser.post("/users", {"name": "bob", "enabled": "no"})).status == 303
        assert (await api.get("/users/bob"))["enabled"] is False
        page = await browser.page("/users/bob")
        assert "a good password" not in page
        assert (await browser.post("/remove/users/bob", {"typed": "bob"})).status == 303
        assert await api.names("/users") == []


async def test_a_reload_is_tried_first(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser = await owner(api)
        first = (await browser.post("/config", {"step": "do"})).body.decode()
        assert "A reload would have these effects" in first, "a trial, whatever was asked for"
        second = (await browser.post("/config", {"step": "do"})).body.decode()
        assert "applied" in second
        third = (await browser.post("/config", {"step": "do"})).body.decode()
        assert "A reload would have these effects" in third


@pytest.mark.parametrize("path", ["/remove/rules/x", "/remove/nothing/x"])
async def test_what_the_console_does_not_remove(path: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser = await owner(api)
        assert (await browser.get(path)).status == 404
        assert (await browser.post(path, {"typed": "x"})).status == 404
        assert (await browser.post("/rules", {"name": "x"})).status == 404


async def test_a_token_is_made_and_shown_once(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        await api.ask("PUT", "/users/eve", {"password": "a long password", "roles": ["sales"]})
        browser = await owner(api)
        assert "New API token" in await browser.page("/tokens")
        form = {"owner": "eve", "description": "<nightly>", "roles": "sales", "days": "7"}
        made = await browser.post("/tokens", form)
        (record,) = await api.items("/tokens")
        page = await browser.page("/tokens")
    assert (made.status, made.headers["cache-control"]) == (200, "no-store")
    assert made.body.count(PREFIX.encode()) == 1
    assert PREFIX not in page
    assert (record["owner"], record["description"], record["roles"]) == (
        "eve",
        "<nightly>",
        ["sales"],
    )


@pytest.mark.parametrize("days", ["", "0", "-1", "3651", "9" * 5000, "x"])
async def test_a_token_ends_within_a_number_of_days(days: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser = await owner(api)
        refused = await browser.post("/tokens", {"days": days})
        assert refused.status == 400
        assert "after 1 to 3650 days" in refused.body.decode()
        assert await api.items("/tokens") == []


async def test_messages_are_copied_after_a_trial(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("orders", 2)
        api.broker.fill("copies")
        browser = await owner(api)
        assert "the messages stay" in await browser.page("/action?action=copy&queue=orders")
        form = {"action": "copy", "queue": "orders", "to": "copies"}
        trial = await browser.post("/action", {**form, "step": "trial"})
        assert "2 messages would be affected" in trial.body.decode()
        begun = await browser.post("/action", form)
        assert begun.status == 303
        while (await api.items("/jobs"))[0]["state"] == "running":
            pass
        assert (waiting(api, "orders"), waiting(api, "copies")) == (2, 3)
