"""The API over a real socket: names of any characters, conditions, and each kind of error."""

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from broker.http.api import application, bodies
from broker.http.api.problems import SLUGS
from broker.http.limits import API_BODY_BYTES_MAX
from broker.http.server import HttpServer
from broker.http_settings import HttpSettings
from storage.api import StoreError
from storage.facts import StoreFacts
from storage.memory import MemoryStore
from tests.support.access import ADA
from tests.support.api import ApiClient, api_of, problem
from tests.support.http import ask, server_of, socket_to
from tests.support.stores import GatedStore

pytestmark = pytest.mark.requirement("OPS-01")

TYPE = "urn:jms-broker:problem:"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a/b", id="a slash"),
        pytest.param("a//b/", id="slashes"),
        pytest.param("../x", id="dots"),
        pytest.param("a%2Fb?c=d&e#f", id="what URLs are made of"),
        pytest.param("\u00e4\U0001f600 x", id="not ASCII"),
        pytest.param('"><img src=x onerror=alert(1)>', id="HTML"),
        pytest.param("body", id="a word of paths"),
    ],
)
async def test_a_name_may_have_any_characters(name: str, tmp_path: Path) -> None:
    path = f"/queues/{quote(name, safe='')}"
    async with api_of(tmp_path) as api:
        made = await api.ask("PUT", path)
        assert made.status == 201
        assert api.broker.router.names("queue") == [name]
        assert (await api.get(path))["name"] == name
        assert await api.names("/queues") == [name]
        assert (await api.ask("DELETE", path)).status == 204
        assert api.broker.router.names("queue") == []


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "told"),
    [
        pytest.param("GET", "/queues?lim=1", None, {}, 400, "no parameter lim", id="parameter"),
        pytest.param("GET", "/queues?limit=501", None, {}, 400, "limit must be", id="limit"),
        pytest.param("GET", "/queues?cursor=x", None, {}, 400, "cursor must be", id="cursor"),
        pytest.param("GET", "/queues?sort=x", None, {}, 400, "no attribute x", id="sort"),
        pytest.param("GET", "/queues/%ff", None, {}, 400, "must be UTF-8", id="path"),
        pytest.param("GET", "/queues/a%0Ab", None, {}, 404, "no queue a", id="a line end"),
        pytest.param("GET", "/messages", None, {}, 400, "queue or subscription", id="place"),
        pytest.param(
            "GET", "/messages?queue=q&selector=a+%3D", None, {}, 400, "sel", id="selector"
        ),
        pytest.param("POST", "/message-actions", b"{", {}, 400, "the body: ", id="no JSON"),
        pytest.param(
            *("PUT", "/queues/x", None, {"if-none-match": '"x"'}, 400, "can only be *"),
            id="condition",
        ),
        pytest.param("GET", "/queues/missing", None, {}, 404, "no queue missing", id="entity"),
        pytest.param("GET", "/queues/", None, {}, 404, "", id="no name"),
        pytest.param("GET", "/messages/7?queue=q", None, {}, 404, "no message 7", id="message"),
        pytest.param("GET", "/jobs/7", None, {}, 404, "no job 7", id="job"),
        pytest.param("GET", "/nothing", None, {}, 404, "is not known here", id="unknown path"),
        pytest.param("DELETE", "/queues", None, {}, 405, "is not known here", id="method"),
        pytest.param("OPTIONS", "/queues", None, {}, 405, "is not known here", id="preflight"),
        pytest.param(
            *("DELETE", "/queues/q?if_empty=true", None, {}, 409, "holds 1 messages"), id="conflict"
        ),
        pytest.param("GET", "/leases/missing", None, {}, 410, "missing", id="gone"),
        pytest.param(
            *("DELETE", "/queues/q", None, {"if-match": '"x"'}, 412, "not as If-Match says"),
            id="another tag",
        ),
        pytest.param(
            *("PUT", "/queues/x", None, {"if-match": "*"}, 412, "not as If-Match says"),
            id="nothing to match",
        ),
        pytest.param(
            *("PUT", "/queues/q", None, {"if-none-match": "*"}, 412, "there is such an entity"),
            id="something there",
        ),
        pytest.param(
            *("POST", "/backups", b" " * (API_BODY_BYTES_MAX + 1), {}, 413, "at most 1048576"),
            id="too large a body",
        ),
        pytest.param(
            *("POST", "/backups", b"x", {"content-type": "text/plain"}, 415, "must be JSON"),
            id="no JSON by its type",
        ),
        pytest.param("POST", "/config/reload", None, {}, 415, "must be JSON", id="no body"),
        pytest.param("POST", "/backups", {"file": 7}, {}, 422, "see errors", id="field"),
        pytest.param(
            *("POST", "/backups", {"file": "/x", "name": 1}, {}, 422, "see errors"), id="unknown"
        ),
        pytest.param(
            *(
                "DELETE",
                "/queues/q",
                None,
                {"origin": "http://evil.example"},
                403,
                "another origin",
            ),
            id="another origin",
        ),
        pytest.param(
            *("PUT", "/queues/x", None, {"sec-fetch-site": "cross-site"}, 403, "another site"),
            id="another site",
        ),
    ],
)
async def test_each_error_is_a_problem(
    method: str,
    path: str,
    body: object,
    headers: dict[str, str],
    status: int,
    told: str,
    tmp_path: Path,
) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q")
        answer = await api.ask(method, path, body, headers=headers)
        assert api.broker.router.names("queue") == ["q"]
    found = problem(answer)
    assert (answer.status, found["type"]) == (status, TYPE + SLUGS[status])
    assert told in str(found["detail"])


async def test_a_wrong_body_is_told_field_by_field(tmp_path: Path) -> None:
    body = {"action": "burn", "from": {"queue": 1}, "all": True, "a/b": 1}
    async with api_of(tmp_path) as api:
        found = problem(await api.ask("POST", "/message-actions", body))
    errors = found["errors"]
    assert isinstance(errors, list)
    assert {each["pointer"] for each in errors} == {"/action", "/from/queue", "/a~1b"}
    assert found["condition"] == "amqp:invalid-field"


async def test_a_problem_never_repeats_a_password(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for body in ({"password": "hunter2-secret", "x": 1}, {"password": ["hunter2-secret"]}):
            answer = await api.ask("PUT", "/users/x", body)
            assert (answer.status, b"hunter2" in answer.body) == (422, False)
        assert (await api.ask("PUT", "/users/x", {"password": "hunter2-secret"})).status == 201
        assert "hunter2" not in str(api.audit.events)


async def test_a_refusal_has_its_condition(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        found = problem(await api.ask("GET", "/queues", user=ADA))
    assert (found["condition"], found["title"]) == ("amqp:unauthorized-access", "Forbidden")
    assert found["detail"] == "not allowed to view management:queues (no rule allows it)"


async def test_too_many_requests_are_told_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.http.api.slots.API_REQUESTS_MAX", 0)
    async with api_of(tmp_path) as api:
        answer = await api.ask("GET", "/queues")
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    assert problem(answer)["type"] == f"{TYPE}too-many-requests"


class LostDisk(GatedStore):
    """A store that cannot be read."""

    async def facts(self) -> StoreFacts:
        raise StoreError("the disk is gone")


async def test_a_store_that_fails_and_a_broker_that_stops(tmp_path: Path) -> None:
    async with api_of(tmp_path, store=LostDisk()) as api:
        failed = await api.ask("GET", "/stores")
        api.broker.container.closing = True
        stopping = await api.ask("GET", "/queues")
    assert (problem(failed)["type"], failed.status) == (f"{TYPE}internal", 500)
    assert (problem(stopping)["detail"], stopping.status) == ("the broker is stopping", 503)
    assert stopping.headers["retry-after"] == "1"


async def test_a_bug_is_an_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with api_of(tmp_path) as api:
        monkeypatch.setattr(application, "read_parameters", None)
        answer = await api.ask("GET", "/queues")
    assert (problem(answer)["detail"], answer.status) == ("internal error", 500)


async def test_a_body_has_little_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "API_BODY_MAX_S", 0.05)
    async with api_of(tmp_path) as api, socket_to(api.url) as (reader, writer):
        login = "authorization: Basic b3duZXI6c2VzYW1l\r\ncontent-type: application/json\r\n"
        head = f"POST /api/v1/backups HTTP/1.1\r\nhost: localhost\r\n{login}content-length: 9\r\n"
        writer.write(f"{head}\r\n{{".encode())
        line = await asyncio.wait_for(reader.readline(), 5)
    assert line.startswith(b"HTTP/1.1 408 ")


@pytest.mark.attack("S9")
async def test_a_body_without_a_length_is_limited(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api, socket_to(api.url) as (reader, writer):
        login = "authorization: Basic b3duZXI6c2VzYW1l\r\ncontent-type: application/json\r\n"
        head = f"POST /api/v1/backups HTTP/1.1\r\nhost: localhost\r\n{login}"
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        piece = b"%x\r\n" % 65536 + b" " * 65536 + b"\r\n"
        for _ in range(API_BODY_BYTES_MAX // 65536 + 1):
            writer.write(piece)
        line = await asyncio.wait_for(reader.readline(), 5)
    assert line.startswith(b"HTTP/1.1 413 ")


async def test_nested_json_is_refused(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        answer = await api.ask("POST", "/backups", b'{"file":' + b"[" * 400_000)
    assert answer.status == 400


@pytest.mark.parametrize("headers", [{"origin": ""}, {"sec-fetch-site": "same-origin"}])
async def test_a_page_of_the_broker_may_change_something(
    headers: dict[str, str], tmp_path: Path
) -> None:
    async with api_of(tmp_path) as api:
        given = {"origin": api.url} if "origin" in headers else headers
        assert (await api.ask("PUT", "/queues/x", headers=given)).status == 201


async def test_every_response_has_an_id_and_is_not_kept(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        answers = [await api.ask("GET", path) for path in ("/queues", "/queues/x", "/x")]
        await api.ask("PUT", "/queues/x")
        events = api.audit.events
    ids = {each.headers["x-request-id"] for each in answers}
    assert len(ids) == 3
    assert {each.headers["cache-control"] for each in answers} == {"no-store"}
    assert {each.headers["x-content-type-options"] for each in answers} == {"nosniff"}
    made = next(each for each in events if each.action == "node.created")
    assert (made.actor.via, made.request_id is None) == ("http", False)


async def test_a_head_has_no_body(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        answer = await api.ask("HEAD", "/queues")
    assert (answer.status, answer.body) == (200, b"")


async def test_an_etag_is_that_of_the_settings(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        made = await api.ask("PUT", "/queues/q")
        api.broker.fill("q", 3)
        read = await api.ask("GET", "/queues/q")
        tag = read.headers["etag"]
        again = await api.ask("PUT", "/queues/q", headers={"if-match": f'"x", {tag}'})
        gone = await api.ask("DELETE", "/queues/q", headers={"if-match": tag})
    assert made.headers["etag"] == tag == again.headers["etag"]
    assert (again.status, gone.status) == (200, 204)


async def test_a_post_with_a_key_is_done_once(tmp_path: Path) -> None:
    body = {"action": "delete", "from": {"queue": "q"}, "all": True, "limit": 1}
    async with api_of(tmp_path) as api:
        api.broker.fill("q", 3)
        first = await api.ask("POST", "/message-actions", body, headers={"idempotency-key": "k"})
        again = await api.ask("POST", "/message-actions", body, headers={"idempotency-key": "k"})
        other = await api.ask("POST", "/message-actions", body, headers={"idempotency-key": "l"})
        body["limit"] = 2
        changed = await api.ask("POST", "/message-actions", body, headers={"idempotency-key": "k"})
        assert api.broker.queue().backlogs.waiting == 1
    assert (first.body, "idempotency-replayed" in first.headers) == (again.body, False)
    assert again.headers["idempotency-replayed"] == "true"
    assert first.headers["location"] == again.headers["location"] != other.headers["location"]
    assert (changed.status, problem(changed)["type"]) == (422, f"{TYPE}invalid")


async def test_without_the_setting_there_is_no_api() -> None:
    site = server_of(MemoryStore()).site
    server = HttpServer(
        HttpSettings(port=0, api=False),
        site.container,
        MemoryStore(),
        management=site.container.service,  # type: ignore[arg-type]
    )
    await server.start()
    statuses = [
        (await ask(server.url() + path)).status
        for path in ("/livez", "/api/v1/queues", "/openapi.json", "/docs")
    ]
    await server.stop()
    assert statuses == [200, 404, 404, 404]


async def names(api: ApiClient, path: str) -> list[object]:
    """Return the names on all pages of a list."""
    found: list[object] = []
    cursor: object = ""
    while cursor is not None:
        page = await api.get(f"{path}&cursor={cursor}")
        items = page["items"]
        assert isinstance(items, list)
        found += [item["name"] for item in items]
        cursor = page["next"]
    return found


async def test_a_long_list_is_read_page_by_page(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        router = api.broker.router
        for number in range(250):
            router.create(router.parse(f"q{number:03}", "queue"), api.broker.journal.batch)
        found = await names(api, "/queues?limit=100&sort=-name&fields=name")
        page = await api.get("/queues?q=q1*&count=true&limit=1&fields=name,messages")
    assert found == [f"q{number:03}" for number in reversed(range(250))]
    assert page["items"] == [{"name": "q100", "messages": 0}]
    assert (page["total"], page["relation"]) == (100, "eq")


async def test_the_description_and_its_page_need_a_login(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for path in ("/openapi.json", "/docs"):
            answer = await ask(api.url + path, {"authorization": "Basic eDp5"})
            assert answer.status == 401
        described = await api.ask("GET", "/../../openapi.json")
        assert described.status == 404
        login = {"authorization": "Basic b3duZXI6c2VzYW1l"}
        assert "paths" in json.loads((await ask(f"{api.url}/openapi.json", login)).body)
        page = await ask(f"{api.url}/docs", login)
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src")
