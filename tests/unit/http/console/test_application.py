"""The console over a real socket: logins, rights, headers, forms of other sites, hostile names."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from broker.http.console import entry, forms
from broker.http.console.listings import LISTINGS
from broker.http.console.rendering import HEADERS, STATIC, PageTemplates
from broker.http.limits import CONSOLE_FORM_BYTES_MAX, CONSOLE_FORM_FIELDS_MAX
from tests.support.access import ADA, OWNER, RuledUsers
from tests.support.api import api_of
from tests.support.console import FORM, Browser
from tests.support.http import ask, socket_to

pytestmark = pytest.mark.requirement("OPS-06")

HOSTILE = '"><img src=x onerror=alert(1)>{{7*7}}'

PAGES = (
    *("/", "/topology", "/scheduled", "/dead-letters", "/config", "/explain", "/live"),
    *(f"/{key}" for key in LISTINGS),
    "/messages?queue=q",
    "/action?action=retry&queue=q",
    "/remove/queues/q",
    "/queues/q",
    "/explain?question=route&address=q&properties=a%3D1",
    "/explain?question=access&verb=send&resource=queue%3Aq&roles=admin",
    "/explain?question=attach&address=q",
)


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_there_for_an_administrator(path: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q")
        browser = Browser(api)
        assert (await browser.log_in(OWNER)).status == 303
        answer = await browser.get(path)
        assert answer.status == 200, answer
        assert HEADERS.items() <= answer.headers.items()
        assert "strict-transport-security" not in answer.headers


@pytest.mark.parametrize(
    ("path", "told"),
    [
        pytest.param("/", "view management:metrics", id="overview"),
        pytest.param("/queues", "view management:queues", id="a list"),
        pytest.param("/queues/q", "view management:queues", id="an entity"),
        pytest.param("/messages?queue=q", "view management:messages", id="messages"),
        pytest.param("/messages/1?queue=q", "view management:messages", id="a message"),
        pytest.param("/scheduled", "view management:messages", id="scheduled messages"),
        pytest.param("/dead-letters", "view management:messages", id="dead letters"),
        pytest.param("/config", "view management:config", id="settings"),
        pytest.param("/audit", "view management:audit", id="audit"),
        pytest.param("/topology", "view management:connections", id="topology"),
        pytest.param("/remove/queues/q", "view management:queues", id="a removal"),
    ],
)
async def test_each_page_needs_its_right(path: str, told: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q")
        browser = Browser(api)
        await browser.log_in(ADA)
        answer = await browser.get(path)
        assert answer.status == 403
        assert f"not allowed to {told}" in answer.body.decode()


@pytest.mark.parametrize("key", [key for key, each in LISTINGS.items() if not each.entity])
async def test_a_list_whose_entities_have_no_page_says_so(key: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser = Browser(api)
        await browser.log_in(OWNER)
        answer = await browser.get(f"/{key}/1")
    assert answer.status == 404
    assert "has a page of its own" in answer.body.decode()


async def test_a_client_has_to_log_in(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        users = api.broker.container.authenticator
        assert isinstance(users, RuledUsers)
        users.anonymous = False
        browser = Browser(api)
        answer = await browser.get("/queues?q=a")
        assert answer.status == 303
        assert answer.headers["location"].startswith("/console/login?next=%2Fconsole%2Fqueues%3Fq")
        wrong = await browser.log_in(OWNER, "wrong")
        assert wrong.status == 401
        assert "the password is wrong" in wrong.body.decode()
        assert not browser.cookies
        right = await browser.post(
            "/login", {"user": OWNER, "password": "sesame", "next": "/console/queues?q=a"}, token=""
        )
        assert (right.status, right.headers["location"]) == (303, "/console/queues?q=a")
        assert await browser.page("/queues")


@pytest.mark.parametrize(
    "following",
    ["//evil.example", "https://evil.example", "/\\evil", "/other", "/console/\r\nx: y"],
)
async def test_a_login_leads_to_the_console_alone(following: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        fields = {"user": OWNER, "password": "sesame", "next": following}
        answer = await Browser(api).post("/login", fields, token="")
        assert answer.headers["location"] == "/console/"


@pytest.mark.requirement("OPS-07")
async def test_the_cookie_is_kept_from_scripts_and_other_sites(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser = Browser(api)
        await browser.log_in(OWNER)
        ((name, key),) = browser.cookies.items()
        assert name == entry.PLAIN_COOKIE
        assert len(key) >= 43  # 256 bits in base64
        assert set(browser.set_cookie.lower().split("; ")[1:]) == {
            *("httponly", "path=/", "samesite=strict")
        }
        await browser.log_in(OWNER)
        assert browser.cookies[name] != key, "a login begins a new session"


async def test_a_client_that_needs_no_login_gets_a_session(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser = Browser(api)
        assert "no login needed" in await browser.page("/")
        assert browser.cookies
        await browser.page("/queues")
        assert (await browser.post("/queues", {"name": "made"})).status == 303
        users = api.broker.container.authenticator
        assert isinstance(users, RuledUsers)
        users.anonymous = False
        assert (await browser.get("/queues")).status == 303, "its session ends with that"


async def test_without_a_login_only_names_of_this_machine_are_taken(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        answer = await ask(f"{api.url}/console/", {"host": "evil.example"})
        assert answer.status == 403
        assert "by the name localhost" in answer.body.decode()


async def test_a_session_ends_with_its_user_and_by_a_logout(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser, other, third = Browser(api), Browser(api), Browser(api)
        for each in (browser, other, third):
            await each.log_in(OWNER)
        assert (await browser.post("/logout", {})).status == 303
        assert not browser.cookies
        assert await other.page("/queues")
        users = api.broker.container.authenticator
        assert isinstance(users, RuledUsers)
        users.ended.add(OWNER)
        login = (await other.get("/queues")).headers["location"]
        assert login == "/console/login?next=%2Fconsole%2Fqueues&why=ended"
        assert entry.REASONS["ended"] in await other.page(login.removeprefix("/console"))
        refused = await third.post("/queues", {"name": "made"})
        assert refused.status == 401
        assert entry.REASONS["ended"] in refused.body.decode()


@pytest.mark.parametrize("why", ["", "unknown", "ENDED", "Call 555-0100 for help", HOSTILE])
async def test_a_link_puts_no_text_on_the_login_page(why: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser = Browser(api)
        shown = await browser.page(f"/login?why={quote(why)}")
        assert shown == await browser.page("/login")
        assert 'class="problem"' not in shown


@pytest.mark.attack("S7")
@pytest.mark.requirement("OPS-07")
@pytest.mark.parametrize(
    ("headers", "token", "status"),
    [
        pytest.param({}, None, 303, id="a page of the console"),
        pytest.param({"origin": "http://evil.example"}, None, 403, id="another origin"),
        pytest.param({"origin": "null"}, None, 403, id="no origin by name"),
        pytest.param({"sec-fetch-site": "cross-site"}, None, 403, id="another site"),
        pytest.param({"sec-fetch-site": "same-site"}, None, 403, id="a sister site"),
        pytest.param({}, "", 403, id="no token"),
        pytest.param({}, "x", 403, id="a wrong token"),
        pytest.param({}, "\u00e4", 403, id="a token that is not ASCII"),
        pytest.param({"content-type": "text/plain"}, None, 400, id="not a form"),
    ],
)
async def test_a_form_must_come_from_a_page_of_the_session(
    headers: dict[str, str], token: str | None, status: int, tmp_path: Path
) -> None:
    async with api_of(tmp_path) as api:
        browser = Browser(api)
        await browser.log_in(OWNER)
        answer = await browser.post("/queues", {"name": "made"}, headers=headers, token=token)
        assert answer.status == status, answer
        assert api.broker.router.names("queue") == (["made"] if status == 303 else [])


@pytest.mark.requirement("OPS-07")
async def test_without_the_check_of_tokens_another_site_could_change_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of the test above."""
    monkeypatch.setattr(entry.ConsoleEntry, "check", lambda *_: None)
    async with api_of(tmp_path) as api:
        browser = Browser(api)
        await browser.log_in(OWNER)
        evil = {"origin": "http://evil.example"}
        await browser.post("/queues", {"name": "made"}, headers=evil, token="x")
        assert api.broker.router.names("queue") == ["made"]


async def test_a_token_of_another_session_is_not_taken(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser, other = Browser(api), Browser(api)
        for each in (browser, other):
            await each.log_in(OWNER)
        answer = await browser.post("/queues", {"name": "made"}, token=other.token)
        assert answer.status == 403


async def test_a_form_has_little_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "CONSOLE_FORM_MAX_S", 0.05)
    async with api_of(tmp_path) as api:
        browser = Browser(api)
        await browser.log_in(OWNER)
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        async with socket_to(api.url) as (reader, writer):
            head = f"POST /console/queues HTTP/1.1\r\nhost: localhost\r\ncookie: {cookies}\r\n"
            writer.write(f"{head}content-type: {FORM}\r\ncontent-length: 9\r\n\r\n".encode())
            assert await reader.readuntil(b"\r\n") == b"HTTP/1.1 408 Request Timeout\r\n"


async def test_a_form_has_a_limit(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser = Browser(api)
        await browser.log_in(OWNER)
        large = await browser.post("/queues", {"name": "x" * CONSOLE_FORM_BYTES_MAX})
        assert large.status == 413
        many = await browser.post("/queues", [("name", "")] * (CONSOLE_FORM_FIELDS_MAX + 1))
        assert many.status == 400


@pytest.mark.attack("S6")
@pytest.mark.requirement("OPS-07")
@pytest.mark.parametrize(
    "path",
    ["/queues", f"/queues/{quote(HOSTILE, safe='')}", "/dead-letters", "/topology", "/audit"],
)
async def test_names_are_text(path: str, tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        await api.ask("PUT", f"/queues/{quote(HOSTILE, safe='')}")
        browser = Browser(api)
        await browser.log_in(OWNER)
        page = await browser.page(path)
        assert "<img" not in page
        assert "49" not in re.sub(r"<[^>]*>", "", page), "a name is no template"


@pytest.mark.requirement("OPS-07")
def test_without_escaping_a_name_would_be_markup() -> None:
    """The negative control of the test above."""
    pages = PageTemplates()
    values = {
        "title": HOSTILE,
        "problem": "",
        "has_session": False,
        "notice": "",
        "path": "/",
        "user": "",
        "token": "",
    }
    assert "<img" not in pages.text("problem", **values)
    pages = PageTemplates()
    pages.environment.autoescape = False
    assert "<img" in pages.text("problem", **values)


@pytest.mark.requirement("OPS-07")
def test_no_page_has_a_script_in_its_text() -> None:
    folder = Path(entry.__file__).parent
    for template in (folder / "templates").glob("*.html"):
        text = template.read_text()
        assert not re.search(r"\son\w+\s*=|javascript:|<style|\sstyle=|\|\s*safe", text), template
        assert re.findall(r"<script[^>]*>([^<]*)", text) in ([], [""]), template
    scripts = list((folder / "static").glob("*.js"))
    assert {each.name for each in scripts} == {name for name in STATIC if name.endswith(".js")}
    for script in scripts:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|eval|Function\(|document\.write",
            script.read_text(),
        ), script


async def test_unknown_pages_and_files(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        browser = Browser(api)
        await browser.log_in(OWNER)
        for path in ("/nothing", "/queues/missing", "/static/none", "/static/..%2Fentry.py"):
            answer = await browser.get(path)
            assert answer.status == 404, path
            assert answer.headers["content-type"].startswith("text/html")
        assert (
            (await browser.get("/static/console.css"))
            .headers["content-type"]
            .startswith("text/css")
        )
