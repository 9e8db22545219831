"""The means for the cases of pyamqp: clients that end with their case, and a relay.

pyamqp works with any broker if its clients are made with `use_tls=False`; ANONYMOUS without Azure's
claims needs the three lines of `Anonymous`.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from azure.servicebus._pyamqp import ReceiveClient, SendClient
from azure.servicebus._pyamqp.authentication import SASLPlainAuth
from azure.servicebus._pyamqp.constants import ReceiverSettleMode
from azure.servicebus._pyamqp.error import AMQPException
from azure.servicebus._pyamqp.message import Message
from azure.servicebus._pyamqp.sasl import SASLAnonymousCredential

SOON: Final = 20.0
"""Maximum number of seconds to wait; long enough for a loaded machine."""

Case = Callable[["Scene"], None]
CASES: Final[dict[str, Case]] = {}
PRINTING: Final = threading.Lock()


def shows(name: str, requirements: str) -> Callable[[Case], Case]:
    """Register a case: its name, the requirements that it proves, and the function that runs it."""

    def add(body: Case) -> Case:
        CASES[name] = body
        return body

    del requirements  # pytest reads them
    return add


class Anonymous:
    """The credentials of a client without a login."""

    auth_type = "sasl_anonymous"
    sasl = SASLAnonymousCredential()


class Inbox:
    """A receiver for which the case gives credit and settles messages itself."""

    def __init__(self, client: ReceiveClient) -> None:
        self.client = client
        client.open()
        deadline = time.monotonic() + SOON
        while not client.client_ready():
            assert time.monotonic() < deadline, "the link is not attached"

    def credit(self, count: int, **flags: bool) -> None:
        self.client._link.flow(link_credit=count, **flags)

    def turn(self) -> None:
        """Read what has arrived without giving credit, which `do_work` would do as well."""
        self.client._connection.listen(wait=0.2)
        self.client._link.get_state()

    def take(self) -> tuple[Any, Message]:
        """Return the next transfer and its message."""
        deadline = time.monotonic() + SOON
        while self.client._received_messages.empty():
            assert time.monotonic() < deadline, "nothing came"
            self.turn()
        transfer, message = self.client._received_messages.get()
        return transfer, message

    def values(self, count: int) -> list[Any]:
        """Accept the next messages; return their values."""
        found = []
        for _ in range(count):
            transfer, message = self.take()
            self.settle(transfer, "accepted")
            found.append(message.value)
        return found

    def settle(self, transfer: Any, outcome: str, **more: Any) -> None:
        self.client.settle_messages(transfer[1], transfer[2], outcome, **more)


class Scene:
    """The means of one case: an address of its own, and clients that end with it."""

    def __init__(self, endings: ExitStack) -> None:
        self.endings = endings
        self.address = f"pyamqp-{uuid.uuid4()}"
        self.host = urlsplit(os.environ["BROKER_URL"]).netloc
        self.strict = urlsplit(os.environ["BROKER_STRICT_URL"]).netloc
        self.user = SASLPlainAuth(os.environ["BROKER_USER"], os.environ["BROKER_PASSWORD"])

    def sender(self, target: Any = None, **options: Any) -> SendClient:
        # by default it asks its peer to settle second, and then ignores the answers of such a peer
        first = {"receive_settle_mode": ReceiverSettleMode.First}
        wanted = {"hostname": self.host, "auth": Anonymous(), "use_tls": False} | first | options
        client = SendClient(target=target or self.address, **wanted)
        self.endings.callback(client.close)
        return client

    def receiver(self, source: Any = None, **options: Any) -> Inbox:
        wanted = {"hostname": self.host, "auth": Anonymous(), "use_tls": False} | options
        client = ReceiveClient(source=source or self.address, **wanted)
        self.endings.callback(client.close)
        return Inbox(client)

    def fill(self, *values: Any, **options: Any) -> None:
        sender = self.sender(**options)
        for value in values:
            sender.send_message(Message(value=value), timeout=SOON)

    def rest(self) -> list[Any]:
        """Consume everything that is left, up to a last message that is sent for this."""
        self.fill(b"the last one")
        inbox = self.receiver()
        inbox.credit(1000)
        found = list(iter(lambda: inbox.values(1)[0], b"the last one"))
        inbox.client.close()
        return found


@contextmanager
def refused(condition: bytes) -> Iterator[None]:
    with pytest.raises(AMQPException) as refusal:
        yield
    found = refusal.value.condition
    assert getattr(found, "value", found) == condition, found


class Relay:
    """A port that forwards everything to the broker; `cut` breaks its connections."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._cut = threading.Event()
        self._wake, self._woken = socket.socketpair()
        self.host = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def cut(self) -> None:
        """Break the present connections; later ones work."""
        self._cut.clear()
        self._wake.send(b"!")
        assert self._cut.wait(SOON)

    def _run(self) -> None:
        others: dict[socket.socket, socket.socket] = {}
        while True:
            for ready in select.select([self._listener, self._woken, *others], [], [])[0]:
                if ready is self._listener:
                    client = self._listener.accept()[0]
                    host, port = self._broker.split(":")
                    server = socket.create_connection((host, int(port)))
                    others |= {client: server, server: client}
                elif ready is self._woken:
                    self._woken.recv(1)
                    for broken in others:
                        # a reset, as when the other machine is gone
                        linger = struct.pack("ii", 1, 0)
                        broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                        broken.close()
                    others = {}
                    self._cut.set()
                    break
                elif ready in others:
                    data = ready.recv(65536)
                    if data:
                        others[ready].sendall(data)
                    else:
                        others.pop(others.pop(ready)).close()


def problem(name: str) -> str | None:
    """Run the case `name`; return what is wrong with the broker, None if nothing is."""
    try:
        with ExitStack() as endings:
            CASES[name](Scene(endings))
    except Exception:  # noqa: BLE001 - any error means that the case has failed
        return traceback.format_exc()
    return None


def run(name: str) -> None:
    line = json.dumps({"case": name, "problem": problem(name)})
    with PRINTING:
        print(line, flush=True)


def run_all(names: list[str]) -> None:
    """Run the cases with these names side by side, and print the result of each."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, names))
