"""An embedded broker within its `with` block: on the caller's loop, and on a loop of its own."""

import asyncio
import threading
from functools import partial

import pytest

import broker
from broker.amqp.descriptors import TRANSFER
from broker.amqp.outcomes import ACCEPTED, RELEASED, Modified, Rejected
from broker.embedding import Broker
from broker.settings import SettingsError
from tests.support.embedded import consume, port_of, put, settle, waiting
from tests.support.frames import flow
from tests.support.socket_client import SocketClient


def test_the_package_offers_it_by_name() -> None:
    assert broker.Broker is Broker
    with pytest.raises(AttributeError, match="Brokr"):
        broker.Brokr  # type: ignore[attr-defined]  # noqa: B018 - the attribute is what is tested


async def test_on_the_loop_of_its_caller() -> None:
    before = threading.active_count()
    async with Broker() as running:
        assert running.url == f"amqp://127.0.0.1:{port_of(running)}"
        assert threading.active_count() == before
        put(running, "orders", b"a")
        assert waiting(running, "orders") == [b"a"]


def test_on_a_loop_of_its_own() -> None:
    with Broker() as running:
        put(running, "orders", b"a")
        assert waiting(running, "orders") == [b"a"]
        assert "jms-broker" in [thread.name for thread in threading.enumerate()]
    assert "jms-broker" not in [thread.name for thread in threading.enumerate()]


async def test_several_side_by_side_share_nothing() -> None:
    async with Broker() as one, Broker() as other:
        put(one, "orders", b"a")
        assert waiting(other, "orders") == []
        assert one.url != other.url


def test_a_second_run_begins_with_nothing() -> None:
    again = Broker()
    with again:
        put(again, "orders", b"a")
    with again:
        assert waiting(again, "orders") == []


def test_it_runs_within_its_block_only() -> None:
    idle = Broker()
    for use in (lambda: idle.url, lambda: idle.messages("q"), lambda: idle.settled("q")):
        with pytest.raises(RuntimeError, match="within its `with` block"):
            use()
    with idle, pytest.raises(RuntimeError, match="runs already"), idle:
        pass


async def test_the_end_of_the_block_closes_connections() -> None:
    async with Broker() as running:
        client = SocketClient(port_of(running))
        await client.__aenter__()
        await client.open()
    assert (await client.closed()).error is not None
    assert await client.eof()
    client.writer.close()


async def test_how_deliveries_ended() -> None:
    async with Broker() as running, SocketClient(port_of(running)) as client:
        put(running, "orders", b"a", b"b", b"c", b"d")
        await consume(client, "orders", count=4)
        assert running.messages("orders") == []
        settle(client, 1, ACCEPTED)
        settle(client, 0, Rejected(None))
        settle(client, 3, Modified(delivery_failed=True))
        settle(client, 2, RELEASED)
        ends = await running.until(
            lambda: running.settled("orders")[3:] and running.settled("orders")
        )
        assert [(end.message.body, end.outcome) for end in ends] == [
            (b"b", "accepted"),
            (b"a", "rejected"),
            (b"d", "modified"),
            (b"c", "released"),
        ]
        assert waiting(running, "orders") == [b"c", b"d"]
        assert waiting(running, "DLQ") == [b"a"]
        assert running.settled("others") == []


SPELLINGS = [
    pytest.param("news", [b"a", b"b"], id="no kind"),
    pytest.param("queue://news", [b"a"], id="the queue"),
    pytest.param("topic://news", [b"b"], id="the topic"),
]


@pytest.mark.parametrize(("address", "bodies"), SPELLINGS)
async def test_settlements_of_a_queue_and_a_topic_by_prefix(
    address: str, bodies: list[bytes]
) -> None:
    async with Broker() as running:
        for kind, body in (("queue", b"a"), ("topic", b"b")):
            async with SocketClient(port_of(running)) as client:
                await consume(client, f"{kind}://news", count=0)
                put(running, "news", body, kind=kind)
                client.send(flow(handle=0, delivery_count=0, credit=1))
                assert await client.next() == TRANSFER
                settle(client, 0, ACCEPTED)
                await running.until(partial(running.settled, f"{kind}://news"))
        assert [end.message.body for end in running.settled(address)] == bodies


def test_settings_as_in_the_configuration() -> None:
    with Broker(
        default_kind="topic", address=[{"pattern": "small.*", "max_messages": 1}]
    ) as running:
        app = running._app()
        assert app.settings.default_kind == "topic"
        assert app.settings.address[0].max_messages == 1


WRONG = [
    pytest.param({"colour": "red"}, "argument: colour = 'red'", id="unknown"),
    pytest.param({"store": "papyrus"}, "argument: store = 'papyrus'", id="no such store"),
    pytest.param({"port": 70000}, "argument: port = 70000", id="out of range"),
]


@pytest.mark.parametrize(("settings", "told"), WRONG)
def test_a_wrong_setting_is_told(settings: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        Broker(**settings)  # type: ignore[arg-type]


async def test_an_address_that_cannot_be_had_leaves_no_task() -> None:
    async with Broker() as holder:
        before = asyncio.all_tasks()
        with pytest.raises(OSError, match="in use"):
            async with Broker(port=port_of(holder)):
                pass
        assert asyncio.all_tasks() == before


def test_an_address_that_cannot_be_had_leaves_no_thread() -> None:
    with Broker() as holder, pytest.raises(OSError, match="in use"), Broker(port=port_of(holder)):
        pass
    assert "jms-broker" not in [thread.name for thread in threading.enumerate()]


def test_neither_variables_nor_users_of_the_machine_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("home")
    (folder / "jms-broker.users").write_text("this is no users file\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("JMS_BROKER_MAX_DELIVERY_COUNT", "1")
    with Broker() as running:
        assert running._app().settings.model_dump()["max_delivery_count"] == 20


def test_the_address_with_a_user() -> None:
    with Broker(users={"a/b@c": "p:w"}) as running:
        port = port_of(running)
        assert running.url_for("a/b@c") == f"amqp://a%2Fb%40c:p%3Aw@127.0.0.1:{port}"
        with pytest.raises(KeyError):
            running.url_for("nobody")


def test_waiting_for_what_comes() -> None:
    with Broker() as running:
        attempts = iter([0, 0, 3])
        assert running.wait_until(lambda: next(attempts)) == 3
        with pytest.raises(TimeoutError, match=r"not within 0.01 s: the last result was \[\]"):
            running.wait_until(lambda: running.messages("orders"), within_s=0.01)


async def test_waiting_in_a_coroutine_lets_the_loop_go_on() -> None:
    async with Broker() as running:
        asyncio.get_running_loop().call_soon(put, running, "orders", b"a")
        found = await running.until(lambda: running.messages("orders"))
        assert [each.body for each in found] == [b"a"]
        with pytest.raises(TimeoutError, match="False"):
            await running.until(lambda: False, within_s=0.01)


async def test_a_coroutine_may_ask_a_broker_in_a_thread() -> None:
    with Broker() as running:
        async with SocketClient(port_of(running)) as client:
            put(running, "orders", b"a")
            await consume(client, "orders", count=1)
            settle(client, 0, ACCEPTED)
            (end,) = await running.until(lambda: running.settled("orders"))
            assert end.outcome == "accepted"
