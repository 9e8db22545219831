"""Attack classes S1, S4, S5, S8, S10 (docs/design/hostile-input.md) beside a healthy client."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.errors import INTERNAL_ERROR, INVALID_FIELD
from broker.amqp.performatives import Attach, Close, Detach, Flow, Open
from broker.amqp.terminus import Target
from broker.app import App
from broker.links.peer import Peer
from broker.links.service import Service
from broker.log_lines import configure_logging
from broker.message import Message
from broker.net.line_limit import LINES_PER_S
from broker.net.log import Log
from broker.routing.queues.judging import STEPS_PER_EVALUATION
from broker.routing.queues.selection import JUDGED_AT_ONCE
from broker.routing.selector.facts import STEPS_MAX
from broker.settings import given_settings
from tests.scenario.test_attacks_transport import running
from tests.support.broker import Broker, Client, entrance
from tests.support.frames import (
    Transfer,
    attach_receiver,
    attach_sender,
    body_of,
    frame,
    message,
    opening,
)
from tests.support.healthy import NoHarm
from tests.support.http import ask, served
from tests.support.management import MANAGEMENT, Manager
from tests.support.socket_client import SocketClient
from tests.support.stores import GatedStore
from tests.support.subscriptions import subscribing
from tests.unit.links.test_filters import BY_NAME, source, stated

ROOT: Final = Path(__file__).parents[2]
HEALTHY: Final = "127.0.0.9"
MOST: Final = JUDGED_AT_ONCE * STEPS_PER_EVALUATION + STEPS_MAX
"""Maximum steps of selectors in one dispatch."""


# -- S1


@pytest.mark.attack("S1")
def test_slow_selectors_leave_turns_to_other_clients(no_harm: NoHarm) -> None:
    """S1: long messages, and a selector that takes half of its steps on each of them."""
    broker = Broker()
    long = message(b"x", properties={"p": "ab" * (STEPS_MAX // 4)})
    with no_harm.beside(broker) as healthy:
        attacker = broker.session("attacker")
        attacker.attach_sender("q")
        for number in range(30):
            attacker.transfer(number, payload=long)
        attacker.transfer(30, payload=message(b"wanted", properties={"q": 1}))
        consumer = broker.session("consumer")
        selector = stated("selector", BY_NAME, "p LIKE '%a_b%' OR q = 1")
        consumer.attach_receiver("q", credit=100, source=source(selector))
        selection = broker.queue("q").delivery._selection
        assert selection is not None
        turns = 0
        while selection.judged < 31:
            turns += 1
            before = selection.steps
            healthy.exchange()
            broker.advance(0)
            assert selection.steps - before <= 2 * MOST
        assert turns > 3
        got = [body_of(each.payload) for each in consumer.bodies() if isinstance(each, Transfer)]
        assert got == [b"wanted"]


# -- S4


QUOTES: Final = (
    "x'; DROP TABLE node; --",
    'x"; DROP TABLE node; --',
    "x') OR ('1'='1",
    "x\\'",
    "x%_[a]^",
    "x$1 :name ?1 {0} %s",
    "\u202ex\u0301",
    "x" * 255,
)
"""Names that a statement with the text in it would take for something else."""

IMPOSSIBLE: Final = ("x\0y", "x\ny", "x\x1b[2J", "x\x7f", "x" * 256, "x" * 900_000)


@pytest.mark.attack("S4")
async def test_no_name_is_part_of_a_statement(no_harm: NoHarm, tmp_path: Path) -> None:
    """S4: queues and durable subscriptions with such names are stored, and found again."""
    file = tmp_path / "store.db"
    given = {"port": 0, "users_file": tmp_path / "none", "store": f"sqlite:///{file}"}
    app = App(given_settings(**given))
    async with (
        running(app),
        no_harm.beside_sockets(lambda: SocketClient(app.port, local=HEALTHY)) as healthy,
        SocketClient(app.port) as attacker,
    ):
        await attacker.open("attacker' OR 1=1 --")
        await attacker.begin()
        for number, name in enumerate(QUOTES):
            attacker.send(attach_sender(name, name=name, handle=number, kind="queue"))
            assert isinstance(await attacker.next(), Attach)
            assert isinstance(await attacker.next(), Flow)
            durable = message(durable=True, message_id=name)
            attacker.send_bytes(frame(Transfer(handle=number, delivery_id=number, payload=durable)))
            await attacker.next()
            attacker.send(subscribing("durable", name, handle=100 + number))
            assert isinstance(await attacker.next(), Attach)
            await healthy.exchange()
        await healthy.newcomer()
    again = App(given_settings(**given))
    async with running(again):
        assert set(QUOTES) <= set(again.container.router.queues)
        subscribed = {identity[1] for identity in again.container.router.subscriptions.named}
        assert subscribed == set(QUOTES)
    with closing(sqlite3.connect(file)) as stored:
        assert stored.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def is_no_name(text: str) -> bool:
    """Return whether no subscription has the name, either: JMS clients choose what they like."""
    return "\0" in text or len(text) > 255


@pytest.mark.attack("S4")
@pytest.mark.parametrize("name", IMPOSSIBLE, ids=["NUL", "LF", "ESC", "DEL", "256", "900,000"])
def test_names_that_cannot_be_are_refused(no_harm: NoHarm, name: str) -> None:
    """S4: control characters, and names that are too long."""
    broker = Broker()
    with no_harm.beside(broker) as healthy:
        attacker = broker.session("attacker")
        attaches = (
            attach_sender(name),
            attach_receiver(name, handle=1),
            subscribing("durable", "n", address=name, handle=2),
            *([subscribing("durable", name, handle=3)] if is_no_name(name) else []),
        )
        for attach in attaches:
            attacker.send(attach)
            healthy.exchange()
            told = [each for each in attacker.bodies() if isinstance(each, Detach | Close)]
            assert [str(each.error.condition) for each in told if each.error] == [INVALID_FIELD]
        assert set(broker.router.queues) == {"healthy"}
        assert not broker.router.subscriptions.named


# -- S5


def serialized(folder: Path) -> dict[str, bytes]:
    """Return objects that run a program when they are read by what they are made for."""
    program = f"touch {folder / 'run'}"
    return {
        "pickle": f"cos\nsystem\n(S'{program}'\ntR.".encode(),
        "YAML": f"!!python/object/apply:os.system ['{program}']".encode(),
        "Java": b"\xac\xed\x00\x05sr\x00\x11java.lang.Runtime" + program.encode(),
        "marshal": b"\xe3" + bytes(40),
    }


@pytest.mark.attack("S5")
def test_a_serialized_object_is_bytes(no_harm: NoHarm, tmp_path: Path) -> None:
    """S5: consumers get what was sent, and management tells of it without reading it."""
    broker = Broker()
    objects = list(serialized(tmp_path).values())
    with no_harm.beside(broker) as healthy:
        attacker = broker.session("attacker")
        attacker.attach_sender("q")
        for number, each in enumerate(objects):
            annotations: dict[str, object] = {"x-opt-jms-msg-type": 1}
            payload = message(
                each, annotations=annotations, properties={"p": each.decode("latin1")}
            )
            attacker.transfer(number, payload=payload)
        healthy.exchange()
        manager = Manager(broker)
        assert len(manager.query("message", queue="q").rows) == len(objects)
        selecting = broker.session("selecting")
        selecting.attach_receiver("q", credit=100)
        got = [body_of(each.payload) for each in selecting.bodies() if isinstance(each, Transfer)]
        assert got == objects
        assert not (tmp_path / "run").exists()


DESERIALIZERS: Final = {"pickle", "_pickle", "marshal", "shelve", "dill", "yaml", "jsonpickle"}


IMPORT: Final = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)


def imports_of(file: Path) -> set[str]:
    return set(IMPORT.findall(file.read_text()))


@pytest.mark.attack("S5")
@pytest.mark.parametrize("package", ["broker", "storage", "pyspark_amqp"])
def test_nothing_imports_what_could_deserialize(package: str) -> None:
    files = list((ROOT / package).rglob("*.py"))
    assert len(files) > 20
    assert {
        f"{file}: {each}" for file in files for each in imports_of(file) & DESERIALIZERS
    } == set()


# -- S8


@pytest.mark.attack("S8")
def test_an_address_that_is_refused_again_and_again_does_not_fill_the_log(no_harm: NoHarm) -> None:
    """S8: connections that open and end (two lines), or are refused (one)."""
    stream = io.StringIO()
    configure_logging("json", "info", stream)
    broker = Broker()
    broker.container.watcher = Log()

    def enter(host: str, container_id: str) -> Client:
        client = broker.dial()
        client.peer = Peer(broker.container, client.transport, entrance(host))
        client.send_bytes(opening(container_id))
        return client

    with no_harm.beside(broker) as healthy:
        stream.truncate(0)
        for _ in range(200):
            for container_id in ("enters", "refused\0"):
                enter("127.0.0.9", container_id).hang_up()
        healthy.exchange()
        enter("127.0.0.8", "another")
        events = [json.loads(line) for line in stream.getvalue().strip("\0").splitlines()]
        assert len(events) == LINES_PER_S + 1
        assert (events[-1]["event"], events[-1]["container_id"]) == ("connection opened", "another")
        broker.advance(1000)
        told = json.loads(stream.getvalue().splitlines()[-1])
        assert (told["address"], told["left_out"]) == ("127.0.0.9", 600 - LINES_PER_S)


# -- S10


SECRET: Final = "postgresql://ada:sesame@10.0.0.1/srv/broker/store.db line 42"


class FaultyService(Service):
    """A service with a bug, whose error says much about the machine."""

    def answer(self, peer: Peer, request: Message) -> None:  # noqa: ARG002
        raise RuntimeError(SECRET)


@pytest.mark.attack("S10")
def test_an_internal_error_tells_nothing(no_harm: NoHarm) -> None:
    """S10: the connection ends with the condition alone; the operator gets the rest."""
    broker = Broker()
    broker.container.service = FaultyService()
    with no_harm.beside(broker, errors=1) as healthy:
        attacker = broker.session("attacker")
        attacker.attach_sender(MANAGEMENT)
        attacker.attach(attach_receiver(MANAGEMENT, handle=1, target=Target(address="here")))
        attacker.transfer(body=b"a request")
        (close,) = [body for body in attacker.bodies() if isinstance(body, Close)]
        assert close.error is not None
        assert (close.error.condition, close.error.description) == (INTERNAL_ERROR, None)
        healthy.exchange()
    assert SECRET in str(broker.watcher.errors[0])


class FaultyStore(GatedStore):
    """A store with a bug."""

    async def event_bounds(self) -> tuple[int, int]:
        raise RuntimeError(SECRET)


@pytest.mark.attack("S10")
async def test_an_internal_error_over_http_tells_nothing(no_harm: NoHarm) -> None:
    """S10: neither path, nor the text of the error, nor a version of a library."""
    broker = Broker()
    with no_harm.beside(broker) as healthy:
        async with served(FaultyStore(), broker=broker) as url:
            answer = await ask(f"{url}/events/bounds")
            healthy.exchange()
            assert (answer.status, answer.error()) == (500, "internal error")
            missing = await ask(f"{url}/../../etc/passwd")
            assert missing.status in (400, 404)


@pytest.mark.attack("S10")
async def test_an_open_states_product_version_and_build(no_harm: NoHarm, tmp_path: Path) -> None:
    """S10: no name of the machine, no path, no operating system."""
    settings = given_settings(port=0, users_file=tmp_path / "none", store="memory")
    app = App(settings)
    async with (
        running(app),
        no_harm.beside_sockets(lambda: SocketClient(app.port, local=HEALTHY)) as healthy,
        SocketClient(app.port) as attacker,
    ):
        opened = await attacker.open("attacker")
        assert isinstance(opened, Open)
        assert {str(each) for each in opened.properties} == {"product", "version", "build"}
        assert str(tmp_path) not in str(opened.properties)
        await healthy.exchange()
