"""`jms-broker load` as typed: patterns, rates, transactions, TLS, and what makes it fail."""

from __future__ import annotations

import csv
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.broker_process import Broker, BrokerProcess
from tests.interop.secured_broker import SHOP, SHOP_PASSWORD, SecuredBroker
from tests.interop.typed import SECONDS, Client

pytestmark = pytest.mark.requirement("OPS-18")

SHORT = ("--duration", "0.3", "--warm-up", "0.1")
SMALL = """
[[address]]
pattern = "small"
max_messages = 10
full = "reject"
"""


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker.url)


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Yield a broker that the test may stop, or whose queue `small` may fill."""
    process = BrokerProcess(tmp_path, settings=SMALL)
    yield process
    if process.running:
        process.stop()


def measured(client: Client, *arguments: str) -> dict[str, Any]:
    """Return the report of a load that must succeed."""
    report: dict[str, Any] = json.loads(client.prints("load", *arguments, *SHORT, "--json"))
    assert (report["refused"], report["lost"]) == (0, 0)
    return report


@pytest.mark.parametrize(
    ("options", "copies"),
    [
        pytest.param((), 1, id="one sender, one receiver, one queue"),
        pytest.param(("--senders", "3", "--receivers", "2"), 1, id="several, in two processes"),
        pytest.param(
            ("--senders", "3", "--receivers", "3", "--processes", "2"), 1, id="in four processes"
        ),
        pytest.param(("--pattern", "topic", "--receivers", "3"), 3, id="fan-out"),
        pytest.param(("--tx", "7", "--durable"), 1, id="durable messages in transactions"),
        pytest.param(("--size", "100000"), 1, id="large messages"),
        pytest.param(("--in-flight", "1", "--credit", "1"), 1, id="one message at a time"),
        pytest.param(("--pattern", "request-reply"), 1, id="a request at a time"),
        pytest.param(
            (
                "--pattern",
                "request-reply",
                "--senders",
                "2",
                "--receivers",
                "2",
                "--in-flight",
                "9",
            ),
            1,
            id="many requests at a time",
        ),
    ],
)
def test_every_accepted_message_is_received(
    client: Client, address: str, options: tuple[str, ...], copies: int
) -> None:
    report = measured(client, address, *options)
    assert report["accepted"] == report["sent"] > 0
    assert report["received"] == copies * report["accepted"]
    assert report["latency_ms"]["p50"] > 0


@pytest.mark.parametrize("pattern", ["queue", "topic", "request-reply"])
def test_messages_are_sent_at_their_rate(client: Client, address: str, pattern: str) -> None:
    report = measured(client, address, "--pattern", pattern, "--rate", "200", "--senders", "2")
    # 0.4 s at 200 messages a second, however fast the machine is
    assert report["sent"] + report["unsent"] == 80
    assert report["delay_ms"]["p50"] >= 0


def test_a_broker_that_makes_messages_wait_has_the_latency_of_the_wait(
    client: Client, address: str
) -> None:
    # one message at a time cannot be confirmed 100,000 times a second
    report = measured(client, address, "--rate", "100000", "--in-flight", "1")
    assert report["unsent"] > 1000
    assert report["latency_ms"]["max"] > 100


def test_people_read_lines(client: Client, address: str) -> None:
    printed = client.prints("load", address, "--rate", "100", *SHORT).decode()
    assert [line.split()[0] for line in printed.splitlines()[:5]] == [
        *("load", "sent", "received", "latency", "own"),
    ]


def test_the_figures_of_each_second_are_in_a_file(
    client: Client, address: str, tmp_path: Path
) -> None:
    table = tmp_path / "seconds.csv"
    report = measured(client, address, "--csv", str(table), "--rate", "100")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["received"]) for row in rows) == report["received"]
    assert float(rows[0]["p50_ms"]) > 0


def test_a_load_over_tls(secured_broker: SecuredBroker, address: str) -> None:
    client = Client(secured_broker.tls_url(f"{SHOP}:{SHOP_PASSWORD}"))
    assert measured(client, address, "--ca", secured_broker.file("ca.pem"))["received"] > 0


def test_an_interrupt_ends_it_with_the_figures_so_far(client: Client, address: str) -> None:
    with client.started("load", address, "--json", "--warm-up", "0", "--duration", "100") as load:
        with client.started("top", "--json", "--interval", "0.2") as top:
            assert top.stdout is not None
            while not _is_sent_to(address, json.loads(top.stdout.readline())):
                pass
        load.send_signal(signal.SIGINT)
        printed, errors = load.communicate(timeout=SECONDS)
    assert (load.returncode, errors) == (130, b"")
    report = json.loads(printed)
    assert report["accepted"] == report["received"] > 0
    assert 0 < report["measured_s"] < 100


def _is_sent_to(address: str, figures: dict[str, list[dict[str, object]]]) -> bool:
    """Return whether a reading of `top` has messages for `address`: its load has begun."""
    return any(each["name"] == address and each["published"] for each in figures["queues"])


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_a_broker_that_ends(own_broker: BrokerProcess, role: str) -> None:
    rate = ("--rate", "0.001") if role == "receiver" else ()
    client = Client(own_broker.url)
    with client.started("load", "--warm-up", "0", "--duration", "100", *rate) as load:
        with client.started("top", "--json", "--interval", "0.1") as top:
            assert top.stdout is not None
            while json.loads(top.stdout.readline())["broker"]["links"] < 3:
                pass
        own_broker.kill()
        _, errors = load.communicate(timeout=SECONDS)
    assert load.returncode == 1
    assert errors.startswith(b"jms-broker: the connection is lost")


def test_refused_messages_fail_it(own_broker: BrokerProcess) -> None:
    done = Client(own_broker.url).run("load", "small", "--credit", "1", *SHORT)
    assert (done.returncode, done.stdout[:4]) == (1, b"load")
    assert b"messages were refused, 0 were lost" in done.stderr


def test_the_messages_of_another_program_stay_where_they_are(client: Client, address: str) -> None:
    client.prints("send", address, "precious")
    done = client.run("load", address, *SHORT)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Name an address of which the load is the only user" in done.stderr
    assert b"precious\n" in client.prints("browse", address)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("--url", "amqp://127.0.0.1:1"), 5, b"127.0.0.1:1"),
        (("--pattern", "request-reply", "--tx", "2"), 2, b"requests are not transacted"),
        (("--size", "15"), 2, b"16"),
        (("--csv", "/none/here.csv"), 1, b"/none/here.csv: No such file"),
        (("--ca", "/none"), 2, b"--ca is for TLS"),
    ],
)
def test_a_load_that_cannot_begin(
    client: Client, arguments: tuple[str, ...], status: int, said: bytes
) -> None:
    done = client.run("load", *arguments, *SHORT)
    assert (done.returncode, done.stdout) == (status, b"")
    assert said in done.stderr


def test_a_user_without_rights(secured_broker: SecuredBroker) -> None:
    client = Client(secured_broker.tls_url(f"{SHOP}:{SHOP_PASSWORD}"))
    done = client.run("load", "closed.orders", "--ca", secured_broker.file("ca.pem"), *SHORT)
    assert (done.returncode, done.stdout) == (4, b"")
    assert b"not allowed" in done.stderr
