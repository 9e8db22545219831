"""Management commands over HTTP: they print what they print over AMQP, and need no proton."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.security.users import Users
from tests.interop.broker_process import BrokerProcess, environment
from tests.interop.typed import SECONDS, Client
from tests.support.jms_http import request

pytestmark = pytest.mark.requirement("OPS-15")

SETTINGS = 'store = "sqlite:///data/store.db"\nevent_log = true\n[http]\nport = 0\njms = true\n'

COMMANDS = [
    ("node", "list"),
    ("node", "list", "--json"),
    ("node", "show", "orders", "--json"),
    ("message", "list", "orders", "--json"),
    ("subscription", "list"),
    ("lease", "list", "--json"),
    ("sink", "list"),
    ("store", "info", "--json"),
    ("events", "--json"),
    ("user", "list", "--json"),
    ("acl", "check"),
    ("acl", "explain", "queue:orders", "--verb", "send", "--json"),
    ("explain", "attach", "orders", "--json"),
    ("explain", "route", "orders", "--json"),
    ("config", "show", "--json"),
    ("reload", "--dry-run"),
    ("definitions", "export"),
]
"""Commands that change nothing, whose output does not depend on the time."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield a broker with the API and a few messages."""
    process = BrokerProcess(tmp_path_factory.mktemp("http"), settings=SETTINGS)
    for body in (b"one", b"\x00\xff"):
        assert request("POST", f"{process.http_url}/jms/queue/orders", [], body).status == 201
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


def without_moving(text: bytes) -> list[str]:
    """Return lines without values that differ from one request to the next."""
    moving = {
        *("free_bytes", "memory_used", "log_bytes", "file_bytes"),
        *("exported_at", "at", "oldest_ms"),
    }
    lines = []
    for line in text.decode().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            lines.append(line)
            continue
        lines.append(json.dumps({key: each for key, each in record.items() if key not in moving}))
    return lines


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_prints_the_same(served: BrokerProcess, arguments: tuple[str, ...]) -> None:
    over_amqp = Client(served.url).run(*arguments)
    over_http = Client(served.http_url).run(*arguments)
    assert over_amqp.returncode == 0, over_amqp.stderr
    assert over_http.returncode == 0, over_http.stderr
    told = over_http.stdout.replace(served.http_url.encode(), served.url.encode())
    assert without_moving(told) == without_moving(over_amqp.stdout)
    assert over_http.stderr == over_amqp.stderr


def without_proton(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a Python that has no proton."""
    hidden = "import sys; sys.modules['proton'] = sys.modules['cproton'] = None"
    return subprocess.run(
        [sys.executable, "-c", f"{hidden}; from broker.cli import main; main()", *arguments],
        env=environment(JMS_BROKER_URL=url),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_commands_need_no_proton(served: BrokerProcess) -> None:
    url = served.http_url
    made = without_proton(url, "node", "create", "made")
    assert (made.returncode, made.stdout, made.stderr) == (0, "created queue made\n", "")
    assert without_proton(url, "node", "delete", "made").stdout == "deleted queue made\n"
    missing = without_proton(url, "node", "show", "missing")
    assert missing.returncode == 3
    doctor = without_proton(url, "doctor", "--url", url, "--watch", "0", "--json")
    assert doctor.returncode in (0, 1), doctor.stderr
    assert len(doctor.stdout.splitlines()) == 20
    sent = without_proton(url, "send", "orders", "x")
    assert sent.returncode == 1
    assert "the client library proton is missing" in sent.stderr


def test_messages_are_not_sent_over_http(served: BrokerProcess) -> None:
    done = Client(served.http_url).run("send", "orders", "x")
    assert done.returncode == 2
    assert b"http:// is not AMQP" in done.stderr


def test_errors(served: BrokerProcess) -> None:
    refused = Client(served.http_url).run("node", "delete", "missing")
    assert refused.returncode == 3
    nowhere = Client("http://127.0.0.1:1").run("node", "list")
    assert (nowhere.returncode, nowhere.stdout) == (5, b"")
    assert b"Connection refused" in nowhere.stderr
    no_api = Client(served.url.replace("amqp://", "http://")).run("node", "list")
    assert no_api.returncode == 5
    far = Client("http://user:secret@broker.example").run("node", "list")
    assert far.returncode == 2
    assert b"would send the login readable" in far.stderr
    assert b"secret" not in far.stderr
    token = Client(served.url).run("node", "list", "--token", "x")
    assert token.returncode == 1
    assert b"--token (JMS_BROKER_TOKEN) is for https://" in token.stderr


def test_a_drain_is_awaited_over_http(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path, settings=SETTINGS)
    done = Client(process.http_url).run("drain", "--wait")
    assert done.returncode == 0, done.stderr
    pid = f"{process.pid}".encode()
    assert done.stdout == b"the broker has stopped: its process " + pid + b" has ended\n"
    assert process.wait() == 0


@pytest.mark.requirement("OPS-02")
def test_an_api_token_is_made_used_and_revoked(tmp_path: Path) -> None:
    Users(tmp_path / "users").add("root", "a long password", administrator=True)
    process = BrokerProcess(tmp_path, settings=f'users_file = "users"\n{SETTINGS}')
    try:
        url = process.http_url
        root = Client(url.replace("://", "://root:a%20long%20password@"))
        made = root.run("token", "create", "--description", "nightly", "--expires", "12h")
        token = made.stdout.decode().strip()
        assert token.startswith("jmsb_"), made.stderr
        assert b"of user root" in made.stderr
        listed = root.run("token", "list", "--json")
        (record,) = [json.loads(line) for line in listed.stdout.splitlines()]
        assert (record["description"], token in listed.stdout.decode()) == ("nightly", False)
        used = Client(url).run("node", "list", "--token", token)
        assert (used.returncode, used.stderr) == (0, b"")
        revoked = root.run("token", "revoke", record["name"])
        assert revoked.stdout.decode() == f"revoked {record['name']}\n"
        refused = Client(url).run("node", "list", "--token", token)
        assert refused.returncode == 4, refused.stderr
        assert root.run("token", "show", record["name"]).returncode == 3
        assert root.run("token", "create", "--expires", "soon").returncode == 2
    finally:
        assert process.stop() == 0
