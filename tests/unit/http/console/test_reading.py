"""Pages that change nothing: what they show of the broker of the test."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from pathlib import Path

import pytest

from broker.http import open_streams
from broker.http.console.forms import Form
from broker.http.console.reading import question_body
from broker.security.identity import MONITOR
from tests.support.access import ADA, OWNER, access_of
from tests.support.api import ApiClient, api_of
from tests.support.console import Browser
from tests.support.http import event_stream

pytestmark = pytest.mark.requirement("OPS-06")


async def owner(api: ApiClient) -> Browser:
    browser = Browser(api)
    await browser.log_in(OWNER)
    return browser


async def test_a_list_is_sorted_filtered_and_continued(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for number in range(5):
            await api.ask("PUT", f"/queues/orders.{number}")
        await api.ask("PUT", "/queues/others")
        browser = await owner(api)
        page = await browser.page("/queues?q=orders.*&limit=3&sort=-name")
        shown = [f"orders.{number}</a>" in page for number in range(5)]
        assert shown == [False, False, True, True, True]
        (following,) = re.findall(r'<a href="\?([^"]*)" rel="next"', page)
        rest = await browser.page(f"/queues?{unescape(following)}")
        assert "orders.1</a>" in rest
        assert "orders.4</a>" not in rest
        assert "others" not in rest


async def test_a_wrong_filter_is_explained(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        answer = await (await owner(api)).get("/queues?sort=x")
        assert answer.status == 400
        assert "no attribute x" in answer.body.decode()


async def test_the_first_page_has_tiles_and_curves(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("orders")
        browser = await owner(api)
        page = await browser.page("/")
        assert 'data-tile="ready">1<' in page
        live = await browser.get("/live")
        assert b'"ready":"1"' in live.body


async def test_the_tiles_are_streamed_while_the_session_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_streams, "EVERY_S", 0.01)
    async with api_of(tmp_path, "view management:metrics") as api:
        api.broker.fill("orders")
        browser = Browser(api)
        await browser.log_in(ADA)
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        async with event_stream(f"{api.url}/console/live-events", {"cookie": cookie}) as reader:
            event = await reader.readuntil(b"}}\n\n")
            assert b'data: {"tiles": {"received":' in event
            assert b'"ready": "1"' in event
            api.broker.container.access = access_of()
            await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), 5)


@pytest.mark.attack("Z7")
async def test_the_stream_of_tiles_ends_when_the_user_loses_the_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_streams, "EVERY_S", 0.01)
    async with api_of(tmp_path) as api:
        api.users.roles[ADA] = frozenset({MONITOR})
        browser = Browser(api)
        await browser.log_in(ADA)
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        async with event_stream(f"{api.url}/console/live-events", {"cookie": cookie}) as reader:
            await reader.readuntil(b"}}\n\n")
            api.users.roles[ADA] = frozenset()
            await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), 5)


async def test_the_page_of_a_queue_has_a_chart_from_its_first_view_on(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("orders")
        browser = await owner(api)
        assert "from now on: reload this page" in await browser.page("/queues/orders")
        assert "Last ten minutes" not in await browser.page("/users")


async def test_a_message_has_its_sections(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("orders")
        browser = await owner(api)
        items = (await api.get("/messages?queue=orders"))["items"]
        assert isinstance(items, list)
        page = await browser.page(f"/messages/{items[0]['identity']}?queue=orders")
        assert "<h2>Body</h2>" in page
        assert "has no message-id, by which events name it" in page
        missing = await browser.get("/messages/99?queue=orders")
        assert missing.status == 404


async def test_a_route_is_explained(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("orders")
        browser = await owner(api)
        properties = "a%3D1%0D%0Ab%3Dx"
        asked = f"/explain?question=route&address=orders&properties={properties}"
        page = await browser.page(asked)
        assert '<th scope="row">node</th><td>orders</td>' in page
        wrong = await browser.page("/explain?question=route")
        assert 'class="problem"' in wrong


async def test_consumers_of_an_explained_flow_are_a_table(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.session("stock").attach_receiver("orders", name="first")
        api.broker.fill("orders")
        page = await (await owner(api)).page("/explain?question=flow&queue=orders")
    assert "<h3>Consumers</h3>" in page
    assert "<td>stock</td><td>first</td>" in page


@pytest.mark.parametrize(
    ("pairs", "body"),
    [
        pytest.param([("address", "q")], {"address": "q"}, id="a text"),
        pytest.param([("address", " "), ("kind", "")], {}, id="empty fields"),
        pytest.param([("roles", "a, b c")], {"roles": ["a", "b", "c"]}, id="roles"),
        pytest.param(
            [("properties", "a=1\r\nb = x=y\n\nc=-2")],
            {"properties": {"a": 1, "b": "x=y", "c": -2}},
            id="properties",
        ),
    ],
)
def test_a_question_has_the_fields_of_its_form(
    pairs: list[tuple[str, str]], body: dict[str, object]
) -> None:
    assert question_body(Form(pairs), ("address", "kind", "roles", "properties")) == body
