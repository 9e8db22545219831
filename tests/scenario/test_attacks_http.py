"""Attack classes S6, S7 and S9 (docs/design/hostile-input.md), each beside a healthy client."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from broker.http.limits import API_BODY_BYTES_MAX, CONSOLE_FORM_BYTES_MAX
from broker.security.identity import ADMIN
from tests.support.access import OWNER, RuledUsers
from tests.support.api import PASSWORD, api_of
from tests.support.broker import Broker
from tests.support.console import Browser
from tests.support.frames import message
from tests.support.healthy import NoHarm

HOSTILE = "\"><img src=x onerror=alert(1)><script>alert(2)</script>'{{7*7}}"


def site() -> Broker:
    """Return a broker whose owner has a password."""
    users = RuledUsers({"": {ADMIN}})
    users.passwords = {OWNER: PASSWORD}
    return Broker(authenticator=users)


@pytest.mark.attack("S6")
async def test_markup_of_a_client_stays_text(no_harm: NoHarm, tmp_path: Path) -> None:
    """S6: container-id, queue, subject, properties and body are markup, on all pages with them."""
    broker = site()
    async with api_of(tmp_path, broker=broker) as api:
        with no_harm.beside(broker) as healthy:
            client = broker.session(HOSTILE)
            client.attach_sender(HOSTILE)
            payload = message(
                HOSTILE.encode(), subject=HOSTILE, message_id=HOSTILE, properties={"a": HOSTILE}
            )
            client.transfer(0, payload=payload, settled=True)
            browser = Browser(api)
            await browser.log_in(OWNER)
            place = f"queue={quote(HOSTILE, safe='')}"
            items = (await api.get(f"/messages?{place}"))["items"]
            assert isinstance(items, list)
            for path in (
                *("/", "/queues", "/connections", "/links", "/topology", "/audit"),
                f"/queues/{quote(HOSTILE, safe='')}",
                f"/messages?{place}",
                f"/messages/{items[0]['identity']}?{place}",
                f"/explain?question=flow&{place}",
            ):
                page = await browser.page(path)
                assert "<img" not in page
                assert "<script>" not in page
                healthy.exchange()


@pytest.mark.attack("S7")
async def test_another_site_changes_nothing(no_harm: NoHarm, tmp_path: Path) -> None:
    """S7: forms and requests of another page, with the cookie or the password of an operator."""
    broker = site()
    async with api_of(tmp_path, broker=broker) as api:
        with no_harm.beside(broker) as healthy:
            browser = Browser(api)
            await browser.log_in(OWNER)
            for headers in (
                {"origin": "http://evil.example"},
                {"origin": "null"},
                {"sec-fetch-site": "cross-site"},
            ):
                form = await browser.post("/queues", {"name": "made"}, headers=headers)
                removal = await browser.post(
                    "/remove/queues/healthy", {"typed": "healthy"}, headers=headers
                )
                request = await api.ask("DELETE", "/queues/healthy", headers=headers)
                assert (form.status, removal.status, request.status) == (403, 403, 403)
                healthy.exchange()
            assert broker.router.names("queue") == ["healthy"]


@pytest.mark.attack("S9")
async def test_large_uploads_are_refused(no_harm: NoHarm, tmp_path: Path) -> None:
    """S9: bodies beyond the limits, and JSON that is nested very deeply."""
    broker = site()
    async with api_of(tmp_path, broker=broker) as api:
        with no_harm.beside(broker) as healthy:
            browser = Browser(api)
            await browser.log_in(OWNER)
            large = await api.ask("POST", "/backups", b" " * (API_BODY_BYTES_MAX + 1))
            assert large.status == 413
            healthy.exchange()
            form = await browser.post("/queues", {"name": "x" * CONSOLE_FORM_BYTES_MAX})
            assert form.status == 413
            healthy.exchange()
            nested = b'{"arguments":' * 50_000
            deep = await api.ask("POST", "/management", nested)
            assert deep.status == 400
            healthy.exchange()
