"""Messages over HTTP: they are looked at, and none is acquired."""

import json
from pathlib import Path

import pytest

from broker.http.api import messages
from tests.support.api import ApiClient, api_of, problem
from tests.support.frames import Transfer, attach_sender, message

pytestmark = pytest.mark.requirement("OPS-01")

HTML = "<script>alert(1)</script>"


def send(api: ApiClient, *payloads: bytes, address: str = "q") -> None:
    sender = api.broker.session("sender")
    sender.attach(attach_sender(address))
    for number, payload in enumerate(payloads):
        sender.send(Transfer(delivery_id=number, settled=True, payload=payload))


async def test_a_list_has_pages_of_portions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "MATCHES", 3)
    async with api_of(tmp_path) as api:
        api.broker.fill("q", 10)
        first = await api.get("/messages?queue=q&limit=7")
        second = await api.get(f"/messages?queue=q&limit=7&cursor={first['next']}")
        assert api.broker.queue().backlogs.waiting == 10
    found = [item["identity"] for page in (first, second) for item in page["items"]]  # type: ignore[attr-defined]
    assert found == [str(number * 10 + 4) for number in range(10)]
    assert second["next"] is None


async def test_a_selector_looks_far_for_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "SCANNED", 2)
    async with api_of(tmp_path) as api:
        send(api, *(message(b"x", subject="s" if number == 7 else None) for number in range(9)))
        page = await api.get("/messages?queue=q&selector=JMSType='s'")
        monkeypatch.setattr(messages, "SCAN_MAX", 4)
        cut = await api.get("/messages?queue=q&selector=JMSType='s'")
    assert [item["identity"] for item in page["items"]] == ["74"]  # type: ignore[attr-defined]
    assert (cut["items"], cut["next"]) == ([], "34")


@pytest.mark.parametrize(
    ("state", "expected"), [("ready", ["4"]), ("scheduled", ["14"]), ("held", [])]
)
async def test_states(state: str, expected: list[str], tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        later = int(api.broker.clock.wall_ms()) + 60_000
        send(api, message(b"now"), message(b"later", annotations={"x-opt-delivery-time": later}))
        assert await api.names(f"/messages?queue=q&state={state}", "identity") == expected


async def test_a_scheduled_message_is_listed_and_cancelled(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        later = int(api.broker.clock.wall_ms()) + 60_000
        send(api, message(b"later", annotations={"x-opt-delivery-time": later}))
        assert await api.names("/scheduled?queue=q", "identity") == ["4"]
        assert (await api.ask("DELETE", "/scheduled/4?queue=q")).status == 204
        again = await api.ask("DELETE", "/scheduled/4?queue=q")
    assert (again.status, "waits for its time" in str(problem(again))) == (404, True)


async def test_a_message_and_its_body(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        send(api, message(HTML.encode(), subject="s"))
        found = await api.get("/messages/4?queue=q")
        body = await api.ask("GET", "/messages/4/body?queue=q")
    assert (found["subject"], found["body_kind"], "body" in found) == ("s", "bytes", False)
    assert (body.body, body.headers["content-type"]) == (HTML.encode(), "application/octet-stream")
    assert body.headers["content-disposition"] == 'attachment; filename="message-4"'
    assert body.headers["content-security-policy"] == "sandbox"
    assert body.headers["x-content-type-options"] == "nosniff"


async def test_a_long_body_is_cut_and_says_so(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        send(api, message(b"x" * 70_000))
        body = await api.ask("GET", "/messages/4/body?queue=q")
    assert (len(body.body), body.headers["jms-broker-truncated"]) == (65_536, "true")


@pytest.mark.parametrize("query", ["", "?queue=q&subscription=s"])
async def test_messages_are_of_one_place(query: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for path in ("/messages", "/messages/4", "/messages/4/body", "/scheduled"):
            assert (await api.ask("GET", path + query)).status == 400


async def test_a_message_is_json_whatever_it_has(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        send(api, message(b"x", annotations={"x-opt-big": 2**60, "x-opt-bytes": b"\x00"}))
        found = json.loads((await api.ask("GET", "/messages/4?queue=q")).body)
    assert found["annotations"]["x-opt-big"] == str(2**60)
