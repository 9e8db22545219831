"""The broker of docs/operations/secure-broker.md: what the page cannot run, and what it promises.

The page sends with Qpid JMS over mutual TLS. It promises that no connection is lost while the
certificate is replaced, and that a link is detached within five seconds after a rule is removed.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from signal import SIGHUP
from threading import Condition, Thread
from typing import Final
from urllib.parse import urlsplit

import pytest
from proton import Message, SSLDomain
from proton.utils import BlockingConnection, LinkDetached

from broker.security.users import Users
from tests.docs.page import Block, Command, blocks, commands
from tests.docs.visit import Visit
from tests.interop.broker_process import ROOT, BrokerProcess
from tests.interop.junit import JUnit
from tests.support.certificates import SERVER_NAME, Authority

pytestmark = pytest.mark.slow

PAGE: Final = "docs/operations/secure-broker.md"
NEEDS_JDK: Final = "keytool"
RECEIVE: Final = (
    '. ./shop.env; jms-broker receive orders.eu --count 2 --url "$BILLING"; rm -f billing.txt'
)


@pytest.mark.requirement("SEC-01")
@pytest.mark.requirement("SEC-02")
@pytest.mark.requirement("SEC-03")
def test_the_java_program_of_the_page(junit: JUnit, tmp_path: Path) -> None:
    """The page is followed up to its Java program; `billing` then receives what that has sent."""
    visit = Visit(tmp_path, PAGE)
    try:
        for block in until_java(list(blocks((ROOT / PAGE).read_text()))):
            if NEEDS_JDK in block.text:
                for command in commands(block):
                    visit.run(command)
            else:
                visit.follow(block)
        url = visit.here("amqps://localhost:5671")
        stores = {"broker.secured.folder": str(tmp_path)}
        junit.phase("SecurePhases#send", tmp_path, url=url, properties=stores)
        visit.run(Command(line=0, text=RECEIVE, output=["a book", "a map"], status=0))
    finally:
        visit.end()


def until_java(found: list[Block]) -> list[Block]:
    """Return the blocks before the one in Java."""
    languages = [block.language for block in found]
    return found[: languages.index("java")]


# ---- certificates and rules, replaced under load

SWAPS: Final = 12
OPENED_PER_SWAP: Final = 2
"""New connections that must have been opened after each swap, before the next."""

SOON_S: Final = 60.0
DETACHED_S: Final = 5.0

SETTINGS: Final = """
users_file = "users"
acl_file = "acl.toml"

[[listener]]
name = "internet"
kind = "amqps"
port = 0

[listener.tls]
certificate = "server.pem"
key = "server.key"
client_certificates = "require"
client_ca = "ca.pem"
"""

SENDING: Final = """
[roles]
orders-sender = ["shop"]
orders-reader = ["billing"]

[[rule]]
id = "orders-connect"
who = ["role:orders-sender", "role:orders-reader"]
can = ["connect"]
on = ["connection:internet"]

[[rule]]
id = "orders-send"
who = ["role:orders-sender"]
can = ["send", "create"]
on = ["queue:orders.#"]
"""

RECEIVING: Final = """
[[rule]]
id = "orders-receive"
who = ["role:orders-reader"]
can = ["receive"]
on = ["queue:orders.#"]
"""

LOGINS: Final = {"shop": "tulip", "billing": "daisy"}


class Site:
    """The broker of the page, with an authority that issues further certificates for it."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.authority: Final = Authority()
        self.authority.write(folder)
        self.shown: Final = self.authority.issue("shop-1")
        self.shown.write(folder, "shop")
        self.authority.issue(SERVER_NAME).write(folder, "server")
        users = Users(folder / "users")
        users.add("shop", LOGINS["shop"], roles=["orders-sender"])
        users.add("billing", LOGINS["billing"], roles=["orders-reader"])
        (folder / "acl.toml").write_text(SENDING + RECEIVING)
        self.broker: Final = BrokerProcess(folder, settings=SETTINGS)
        self.port: Final = urlsplit(self.broker.listeners["internet"]).port

    def connected(self, user: str) -> BlockingConnection:
        """Return a new connection of `user`, which shows the certificate of its machine."""
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(str(self.folder / "ca.pem"))
        domain.set_credentials(str(self.folder / "shop.pem"), str(self.folder / "shop.key"), None)
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        url = f"amqps://{user}:{LOGINS[user]}@{SERVER_NAME}:{self.port}"
        return BlockingConnection(url, timeout=SOON_S, ssl_domain=domain)

    def replace_certificate(self) -> None:
        """Replace the certificate, and return once the broker shows the new one."""
        issued = self.authority.issue(SERVER_NAME)
        issued.write(self.folder, "server")
        context = self.authority.client(self.shown)
        deadline = time.monotonic() + SOON_S
        os.kill(self.broker.pid, SIGHUP)
        while self._certificate(context) != issued.der:
            assert time.monotonic() < deadline, "the broker does not use the new certificate"

    def _certificate(self, context: ssl.SSLContext) -> bytes | None:
        where = (SERVER_NAME, self.port)
        with (
            socket.create_connection(where, timeout=SOON_S) as plain,
            context.wrap_socket(plain, server_hostname=SERVER_NAME) as encrypted,
        ):
            return encrypted.getpeercert(binary_form=True)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Yield a broker of this test alone."""
    made = Site(tmp_path)
    yield made
    assert made.broker.stop() == 0


@dataclass
class Tally:
    """Counts of the clients of a load; `changed` is notified after each new connection."""

    changed: Condition
    opened: int = 0
    sent: int = 0
    stopping: bool = False
    lost: str = ""

    def await_opened(self, count: int) -> None:
        """Wait until `count` more connections are opened, or one is lost."""
        with self.changed:
            wanted = self.opened + count
            is_over = self.changed.wait_for(
                lambda: self.lost or self.opened >= wanted, timeout=SOON_S
            )
        assert is_over, "no new connection"


def keep_sending(site: Site, tally: Tally) -> None:
    """Send over one connection until `tally` stops."""
    connection = site.connected("shop")
    sender = connection.create_sender("orders.kept")
    while not tally.stopping:
        sender.send(Message("an order"))
        with tally.changed:
            tally.sent += 1
    connection.close()


def keep_opening(site: Site, tally: Tally) -> None:
    """Open connections one after the other, and send a message over each."""
    while not tally.stopping:
        connection = site.connected("shop")
        connection.create_sender("orders.new").send(Message("an order"))
        connection.close()
        with tally.changed:
            tally.opened += 1
            tally.changed.notify_all()


def counted(work: Callable[[Site, Tally], None], site: Site, tally: Tally) -> None:
    """Do `work`; an error is a lost connection."""
    try:
        work(site, tally)
    except Exception as error:  # noqa: BLE001 - any error is a lost connection
        with tally.changed:
            tally.lost = f"{work.__name__}: {error!r}"
            tally.changed.notify_all()


@pytest.mark.requirement("SEC-01")
def test_no_connection_is_lost_while_certificates_are_replaced(site: Site) -> None:
    tally = Tally(Condition())
    works = (keep_sending, keep_opening)
    clients = [Thread(target=counted, args=(work, site, tally)) for work in works]
    for client in clients:
        client.start()
    try:
        for _ in range(SWAPS):
            site.replace_certificate()
            tally.await_opened(OPENED_PER_SWAP)
            assert not tally.lost
    finally:
        tally.stopping = True
        for client in clients:
            client.join()
    assert not tally.lost
    assert tally.opened >= SWAPS * OPENED_PER_SWAP
    assert tally.sent >= SWAPS


@pytest.mark.requirement("SEC-03")
def test_a_removed_rule_detaches_an_open_link(site: Site) -> None:
    sending = site.connected("shop")
    sending.create_sender("orders.eu")  # which creates the queue
    connection = site.connected("billing")
    receiver = connection.create_receiver("orders.eu", credit=1)
    with pytest.raises(LinkDetached, match="not allowed to send queue:orders"):
        connection.create_sender("orders.eu")
    (site.folder / "acl.toml").write_text(SENDING)
    begun = time.monotonic()
    os.kill(site.broker.pid, SIGHUP)
    with pytest.raises(LinkDetached, match="not allowed to receive queue:orders"):
        receiver.receive(timeout=SOON_S)
    assert time.monotonic() - begun <= DETACHED_S
    with pytest.raises(LinkDetached, match="not allowed to receive queue:orders"):
        connection.create_receiver("orders.eu")
    connection.close()
    sending.close()
