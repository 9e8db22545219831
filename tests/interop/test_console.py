"""The console in a browser: hostile content, accessibility, and the keyboard alone."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import pytest

from tests.interop.broker_process import ROOT, BrokerProcess
from tests.support.jms_http import request

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page

pytestmark = [pytest.mark.requirement("OPS-06"), pytest.mark.requirement("OPS-07")]

SETTINGS: Final = (
    'store = "sqlite:///data/store.db"\nevent_log = true\n[http]\nport = 0\njms = true\n'
)

HOSTILE: Final = "\"><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}'"

SERIOUS: Final = ("serious", "critical")

ORDERS: Final = "orders"

IMAGES: Final = ROOT / "docs" / "images"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield a broker with messages, hostile names, and a dead letter from `orders`."""
    process = BrokerProcess(tmp_path_factory.mktemp("console"), settings=SETTINGS)
    for queue in (ORDERS, HOSTILE):
        send(process, queue)
    receive = f"{process.http_url}/jms/receive/queue/{ORDERS}"
    receipt = request("POST", receive, [], b"").header("JMS-Receipt")
    refused = request("POST", f"{process.http_url}/jms/receipts/{receipt}/reject", [], b"")
    assert refused.status < 300, refused
    send(process, ORDERS)
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


def send(broker: BrokerProcess, queue: str) -> None:
    """Send a message whose properties and body are hostile."""
    query = urlencode({"jms.messageType": "TextMessage", "JMSCorrelationID": HOSTILE})
    headers = [("JMS-Property", f"note={quote(HOSTILE)}"), ("content-type", "text/html")]
    url = f"{broker.http_url}/jms/queue/{quote(queue, safe='')}?{query}"
    answer = request("POST", url, headers, HOSTILE.encode())
    assert answer.status == 201, answer


class Witness:
    """Notes what a page should not do: run a script of a message, or break the policy."""

    def __init__(self, page: Page) -> None:
        self.found: list[str] = []
        page.on("dialog", self._asked)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.found.append(str(error)))

    def _asked(self, dialog: Dialog) -> None:
        self.found.append(dialog.message)
        dialog.dismiss()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.found.append(message.text)


def pages_of(broker: BrokerProcess) -> list[str]:
    """Return the paths of all pages, with one message and one queue of each kind."""
    url = f"{broker.http_url}/api/v1/messages?{urlencode({'queue': HOSTILE})}"
    with urllib.request.urlopen(url) as answer:
        number = answer.read().decode().split('"identity": "')[1].split('"')[0]
    hostile = quote(HOSTILE, safe="")
    place = urlencode({"queue": HOSTILE})
    lists = ("queues", "topics", "subscriptions", "connections", "links", "leases", "sinks")
    others = ("users", "tokens", "roles", "rules", "jobs", "audit", "quarantined-messages")
    return [
        *("/", "/topology", "/scheduled", "/dead-letters", "/config", "/explain"),
        *("/transactions", "/logins", "/pipeline-audit", "/login", "/nothing"),
        *(f"/{each}" for each in (*lists, *others)),
        *(f"/queues/{hostile}", f"/remove/queues/{hostile}", f"/messages?{place}"),
        *(f"/messages/{number}?{place}", f"/action?action=delete&{place}"),
        f"/explain?question=route&{urlencode({'address': HOSTILE})}",
    ]


@pytest.mark.attack("S6")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_pages_are_accessible_and_run_nothing_hostile(
    console: BrokerProcess, chromium: Browser, theme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = chromium.new_context(color_scheme="dark" if theme == "dark" else "light")
    page = context.new_page()
    witness = Witness(page)
    for path in pages_of(console):
        page.goto(f"{console.http_url}/console{path}")
        found = axe.run(page).response["violations"]
        serious = [each for each in found if each["impact"] in SERIOUS]
        assert not serious, (path, [(each["id"], each["nodes"][0]["html"]) for each in serious])
        missing = [each for each in witness.found if "404" in each]
        assert bool(missing) is (path == "/nothing")
        assert not [each for each in witness.found if each not in missing], (path, witness.found)
        witness.found.clear()
    context.close()


def focus_on(page: Page, name: str) -> None:
    """Press Tab until the focus is on a link, button or field of that name."""
    for _ in range(80):
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.textContent || document.activeElement.name")
        if str(focused).strip().startswith(name):
            return
    raise AssertionError(f"the keyboard does not reach {name}")


def test_a_dead_letter_is_retried_and_its_life_is_read_by_the_keyboard(
    console: BrokerProcess, chromium: Browser
) -> None:
    context = chromium.new_context(java_script_enabled=True)
    page = context.new_page()
    page.goto(f"{console.http_url}/console/")
    focus_on(page, "Dead letters")
    page.keyboard.press("Enter")
    page.wait_for_url("**/dead-letters")
    assert "rejected" in page.inner_text("main")
    focus_on(page, "Retry")
    page.keyboard.press("Enter")
    page.wait_for_url("**/action?*")
    focus_on(page, "Count the messages")
    page.keyboard.press("Enter")
    page.get_by_text("1 messages would be affected").wait_for()
    focus_on(page, "Retry messages")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs")
    focus_on(page, "Queues")
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues")
    focus_on(page, ORDERS)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/queues/{ORDERS}")
    focus_on(page, "Messages")
    page.keyboard.press("Enter")
    page.wait_for_url("**/messages?*")
    numbers = page.locator("tbody td a").all_inner_texts()
    assert len(numbers) == 2
    focus_on(page, numbers[-1])
    page.keyboard.press("Enter")
    page.wait_for_url("**/messages/*")
    assert "enqueued" in page.inner_text("main")
    context.close()


def test_pages_work_without_scripts(console: BrokerProcess, chromium: Browser) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{console.http_url}/console/queues")
    page.fill("main form[method=post] input[name=name]", "made")
    page.click("main form[method=post] button")
    assert page.url.endswith("/console/queues/made")
    assert "The queue made was created" in page.inner_text("main")
    page.click("a.danger")
    page.fill("input[name=typed]", "made")
    page.click("button.danger")
    assert "queue made, done" in page.inner_text("main")
    context.close()


@pytest.mark.parametrize(
    ("name", "path", "theme"),
    [
        pytest.param("console-overview", "/", "light", id="the first page"),
        pytest.param("console-queue", "/queues/orders", "dark", id="a queue, in the dark theme"),
    ],
)
def test_pictures_for_the_documentation(
    chromium: Browser, tmp_path: Path, name: str, path: str, theme: str
) -> None:
    """Make the pictures of docs/operations/console.md, of a broker without hostile names."""
    process = BrokerProcess(tmp_path, settings=SETTINGS)
    for queue in ("orders", "orders", "invoices", "shipping"):
        headers = [("jms.messageType", "TextMessage"), ("JMS-Property", "books=2;type=int")]
        answer = request("POST", f"{process.http_url}/jms/queue/{queue}", headers, b"two books")
        assert answer.status == 201, answer
    context = chromium.new_context(
        color_scheme="dark" if theme == "dark" else "light", viewport={"width": 1100, "height": 700}
    )
    page = context.new_page()
    page.goto(f"{process.http_url}/console{path}")
    folder = Path(os.environ.get("CONSOLE_PICTURES", str(tmp_path)))
    picture = page.screenshot(path=folder / f"{name}.png")
    assert picture.startswith(b"\x89PNG")
    assert (IMAGES / f"{name}.png").is_file()
    context.close()
    assert process.stop() == 0
