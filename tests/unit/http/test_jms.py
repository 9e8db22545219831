"""JMS over HTTP on a real socket: its paths, who is admitted, and the form of errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from broker.security.identity import ADMIN
from storage.memory import MemoryStore
from tests.support.access import ADA, RuledUsers, guarded
from tests.support.broker import Broker, Doorman
from tests.support.http import basic, served
from tests.support.jms_http import call, post
from tests.unit.http.test_soap_jms import ENVELOPE_11, ENVELOPE_12

pytestmark = pytest.mark.requirement("MAP-09")

SOAP = ("SOAPJMS-bindingVersion", "9")


async def test_it_is_off_unless_it_is_set() -> None:
    async with served(MemoryStore()) as url:
        answer = await post(f"{url}/jms/queue/q")
    assert answer.status == 404


def test_a_server_without_it_has_not_imported_it() -> None:
    modules = "broker.http.server", "broker.http.jms", "broker.links.posting"
    program = f"import sys, {modules[0]}; print([each in sys.modules for each in {modules}])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[True, False, False]\n"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/jms/queue/q"),
        ("GET", "/jms/receive/queue/q"),
        ("POST", "/jms/receipts/x"),
        ("GET", "/jms/receipts/x/release"),
        ("DELETE", "/jms/browse/queue/q"),
    ],
)
async def test_each_path_has_its_methods(method: str, path: str) -> None:
    async with served(MemoryStore(), jms=True) as url:
        answer = await call(method, url + path)
    assert answer.status == 405


@pytest.mark.requirement("OPS-08")
@pytest.mark.attack("S7")
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([("Origin", "http://evil.example")], id="another origin"),
        pytest.param([("Origin", "null")], id="no origin at all"),
        pytest.param([("Sec-Fetch-Site", "cross-site")], id="another site"),
        pytest.param([("Sec-Fetch-Site", "same-site")], id="another origin of the site"),
    ],
)
async def test_pages_of_other_origins_send_nothing(headers: list[tuple[str, str]]) -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/queue/q", headers, b"x")
        assert answer.problem()[:2] == (403, "foreign-origin")
        own = await post(f"{url}/jms/queue/q", [("Origin", url)], b"x")
    assert own.status == 201
    assert broker.queue().contents() == 1


@pytest.mark.requirement("OPS-08")
async def test_a_login_is_needed_where_one_is() -> None:
    broker = Broker(authenticator=Doorman({"owner": "sesame"}, anonymous=False))
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/queue/q", [], b"x")
        assert answer.problem()[:2] == (401, "login-needed")
        assert answer.header("www-authenticate") is not None
        login = list(basic("owner", "sesame").items())
        assert (await post(f"{url}/jms/queue/q", login, b"x")).status == 201


@pytest.mark.requirement("OPS-08")
@pytest.mark.parametrize(
    ("rights", "method", "path", "missing"),
    [
        ((), "POST", "/jms/queue/q", "send queue:q"),
        (("send queue:q",), "POST", "/jms/queue/q", "create queue:q"),
        (("send queue:q",), "POST", "/jms/topic/q", "send topic:q"),
        (("send,browse queue:q",), "POST", "/jms/receive/queue/q", "receive queue:q"),
        (("send,receive queue:q",), "GET", "/jms/browse/queue/q", "browse queue:q"),
    ],
)
async def test_each_right_is_needed(
    rights: tuple[str, ...], method: str, path: str, missing: str
) -> None:
    broker = guarded(*rights)
    users = broker.container.authenticator
    assert isinstance(users, RuledUsers)
    users.passwords[ADA] = "sesame"
    login = list(basic(ADA, "sesame").items())
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await call(method, url + path, login)
    status, slug, detail = answer.problem()
    assert (status, slug) == (403, "not-permitted")
    assert detail.startswith(f"not allowed to {missing} ")
    assert not broker.router.queues


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/jms/queue/%ff"),
        ("POST", "/jms/topic/a/%e9"),
        ("POST", "/jms/receive/queue/%ff"),
        ("GET", "/jms/browse/queue/%ff"),
    ],
)
async def test_a_name_that_is_not_utf8_is_no_name_of_another_queue(method: str, path: str) -> None:
    broker = Broker()
    broker.fill("\ufffd")
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await call(method, url + path)
    told = "the path must be UTF-8, percent-encoded"
    assert answer.problem() == (400, "bad-request", told)
    assert list(broker.router.queues) == ["\ufffd"]


async def test_all_responses_keep_browsers_from_running_a_body() -> None:
    async with served(MemoryStore(), jms=True) as url:
        for answer in (await post(f"{url}/jms/queue/q"), await post(f"{url}/jms/queue/$tmp/x")):
            assert answer.header("x-content-type-options") == "nosniff"
            assert answer.header("content-security-policy") == "default-src 'none'; sandbox"
            assert answer.header("cache-control") == "no-store"


@pytest.mark.parametrize(
    ("headers", "body", "status", "content_type"),
    [
        pytest.param(
            [SOAP, ("Content-Type", "text/xml")],
            ENVELOPE_11,
            500,
            "text/xml; charset=utf-8",
            id="SOAP 1.1",
        ),
        pytest.param(
            [SOAP, ("Content-Type", "application/soap+xml")],
            ENVELOPE_12,
            400,
            "application/soap+xml; charset=utf-8",
            id="SOAP 1.2",
        ),
        pytest.param(
            [SOAP, ("Content-Type", "text/plain")],
            b"",
            400,
            "application/problem+json",
            id="another type",
        ),
        pytest.param(
            [("SOAPAction", '"a"'), ("Content-Type", "text/xml")],
            b"",
            400,
            "application/problem+json",
            id="no name of SOAPJMS",
        ),
    ],
)
async def test_errors_are_faults_only_for_soap_over_jms(
    headers: list[tuple[str, str]], body: bytes, status: int, content_type: str
) -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/queue/q", headers, body)
    assert (answer.status, answer.header("content-type")) == (status, content_type)
    assert not broker.router.queues


async def test_a_refused_header_is_named_in_a_fault_too() -> None:
    headers = [
        ("SOAPJMS-bindingVersion", "1.0"),
        ("Content-Type", "text/xml"),
        ("Prefer", "wait=x"),
    ]
    async with served(MemoryStore(), jms=True) as url:
        answer = await post(f"{url}/jms/queue/q", headers, ENVELOPE_11)
    assert b"Prefer: wait is 0 to 60 seconds" in answer.body


async def test_a_broker_that_stops_takes_no_message() -> None:
    broker = Broker(authenticator=RuledUsers({"": {ADMIN}}))
    async with served(broker.store, broker=broker, jms=True) as url:
        broker.container.closing = True
        answer = await post(f"{url}/jms/queue/q")
    assert answer.problem() == (503, "busy", "the broker is stopping")
