"""Messages that wait for their delivery time, by their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.http.console import scheduled
from broker.http.console.scheduled import PERIOD_MS, PERIODS, scheduled_messages
from tests.support.access import OWNER
from tests.support.api import api_of
from tests.support.broker import Broker
from tests.support.console import Browser
from tests.support.frames import Transfer, attach_sender, message
from tests.support.subscriptions import subscribe

pytestmark = pytest.mark.requirement("OPS-06")


def send_later(broker: Broker, address: str, *delays_ms: int) -> None:
    """Send a message for each of these times from now."""
    sender = broker.session(f"sender of {address}")
    sender.attach(attach_sender(address))
    now_ms = int(broker.clock.wall_ms())
    for number, delay_ms in enumerate(delays_ms):
        payload = message(b"later", annotations={"x-opt-delivery-time": now_ms + delay_ms})
        sender.send(Transfer(delivery_id=number, settled=True, payload=payload))


async def test_places_are_sorted_by_their_next_message() -> None:
    broker = Broker()
    broker.fill("other")
    subscribe(broker.session("shop"), "durable", "news", address="t")
    send_later(broker, "slow", 3 * PERIOD_MS, 2 * PERIOD_MS)
    send_later(broker, "topic://t", PERIOD_MS)
    send_later(broker, "late", 2 * PERIODS * PERIOD_MS)
    found = await scheduled_messages(broker.container)
    now_ms = int(broker.clock.wall_ms())
    assert [(each.kind, each.messages) for each in found.places] == [
        ("subscription", 1),
        ("queue", 2),
        ("queue", 1),
    ]
    assert [each.name for each in found.places][1:] == ["slow", "late"]
    slow = found.places[1]
    assert (slow.first_at, slow.last_at) == (now_ms + 2 * PERIOD_MS, now_ms + 3 * PERIOD_MS)
    assert [each.messages for each in found.hour] == [0, 1, 1, 1] + [0] * (PERIODS - 4)
    assert [each.minutes for each in found.hour][:3] == [0, 5, 10]
    assert not found.is_cut


async def test_too_many_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled, "EXAMINED_MAX", 1)
    broker = Broker()
    send_later(broker, "many", 1000, 2000)
    send_later(broker, "few", 3000)
    found = await scheduled_messages(broker.container)
    assert [(each.name, each.messages, each.first_at is None) for each in found.places] == [
        ("many", 2, True),
        ("few", 1, False),
    ]


async def test_places_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled, "SHOWN_MAX", 1)
    broker = Broker()
    send_later(broker, "a", 2000)
    send_later(broker, "b", 1000)
    found = await scheduled_messages(broker.container)
    assert [each.name for each in found.places] == ["b"]
    assert found.is_cut


async def test_a_message_is_delivered_now_in_the_console(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        send_later(api.broker, "q", 60_000)
        browser = Browser(api)
        await browser.log_in(OWNER)
        assert "Deliver now" in await browser.page("/messages?state=scheduled&queue=q")
        assert "Deliver now" not in await browser.page("/messages?queue=q")
        asked = await browser.page("/action?action=deliver&queue=q&ids=4")
        assert "Messages are delivered now" in asked
        assert "Choose messages in the list" in await browser.page("/action?action=deliver&queue=q")
        fields = {"action": "deliver", "queue": "q", "ids": "4", "step": "do", "typed": "q"}
        assert (await browser.post("/action", fields)).status == 303
        assert "None." in await browser.page("/messages?state=scheduled&queue=q")
        assert api.broker.queue("q").backlogs.waiting == 1


async def test_a_message_is_cancelled_in_the_console(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        send_later(api.broker, "q", 60_000)
        browser = Browser(api)
        await browser.log_in(OWNER)
        assert "/console/messages?state=scheduled&amp;queue=q" in await browser.page("/scheduled")
        listed = await browser.page("/messages?state=scheduled&queue=q")
        assert 'name="ids" value="4"' in listed
        fields = {"action": "delete", "queue": "q", "ids": "4", "step": "do", "typed": "q"}
        assert (await browser.post("/action", fields)).status == 303
        assert "None." in await browser.page("/messages?state=scheduled&queue=q")
