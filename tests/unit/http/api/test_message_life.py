"""The life of a message, from an event log that has rows of it and of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.http.api import message_life
from broker.routing.addresses.policy import AddressPolicy
from broker.security.identity import ADMIN
from tests.support.access import OWNER, RuledUsers
from tests.support.api import PASSWORD, ApiClient, api_of
from tests.support.broker import Broker
from tests.support.console import Browser
from tests.support.frames import attach_sender, message

pytestmark = pytest.mark.requirement("OPS-06")


def logging() -> Broker:
    """Return a broker whose event log is on."""
    users = RuledUsers({"": {ADMIN}})
    users.passwords = {OWNER: PASSWORD}
    return Broker(policy=AddressPolicy(event_log=True), authenticator=users)


async def page_of(api: ApiClient, message_id: str) -> str:
    """Return the page of the message in the queue `q` with a message-id."""
    browser = Browser(api)
    await browser.log_in(OWNER)
    items = (await api.get("/messages?queue=q"))["items"]
    assert isinstance(items, list)
    (number,) = (each["identity"] for each in items if each["name"] == message_id)
    return await browser.page(f"/messages/{number}?queue=q")


def fill(broker: Broker, *message_ids: str) -> None:
    client = broker.session("shop")
    client.attach(attach_sender("q"))
    for number, message_id in enumerate(message_ids):
        client.transfer(number, payload=message(message_id=message_id), settled=True)


async def test_only_the_events_of_the_message_are_shown(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=logging()) as api:
        fill(api.broker, "a", "b")
        page = await page_of(api, "b")
        assert page.count("<td>enqueued</td>") == 1
        assert "were searched" not in page


async def test_the_search_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_life, "ROWS", 1)
    monkeypatch.setattr(message_life, "SEARCHED_MAX", 2)
    async with api_of(tmp_path, broker=logging()) as api:
        fill(api.broker, "a", "b", "c", "d")
        page = await page_of(api, "d")
        assert "<td>enqueued</td>" not in page
        assert "Only the first 2 rows were searched" in page


async def test_without_an_event_log_there_is_a_note(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        fill(api.broker, "a")
        assert "The event log has no row of it" in await page_of(api, "a")
