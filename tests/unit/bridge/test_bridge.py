"""Bridges between embedded brokers: on real sockets, and on both stores."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from time import monotonic
from typing import cast

import pytest

from broker.amqp.sections import split
from broker.cli.client import receive, send
from broker.embedding import Broker
from broker.links.bridge_status import (
    AT_LEAST_ONCE,
    BLOCKED,
    EXACTLY_ONCE,
    PAUSED,
    RUNNING,
    WAITING,
)
from broker.routing.queues.queue_inspection import purge
from broker.setting_types import MEMORY
from storage.contents import CHUNK_SIZE
from tests.interop.broker_process import environment
from tests.support.bridges import (
    BRIDGE,
    bridge_to,
    of_another_kind,
    put_encoded,
    status_of,
    store_in,
    stored_messages,
    two_brokers,
)
from tests.support.certificates import Authority
from tests.support.embedded import put, waiting
from tests.support.frames import message


def _empty(broker: Broker) -> None:
    broker._call(lambda app: purge(app.container.router.queues["there"], 99, app.journal.batch))
    broker._call(lambda app: app.container.run_round())


def _is_at(broker: Broker, body: bytes) -> bool:
    return body in waiting(broker, "there")


STORES = pytest.mark.parametrize("kind", [MEMORY, "sqlite"])


@STORES
@pytest.mark.requirement("BRG-01")
async def test_messages_move_in_their_order_each_once(kind: str, tmp_path: Path) -> None:
    sent = [b"%d" % number for number in range(700)]
    async with two_brokers(tmp_path, kind, bridge={"batch": 50}) as (here, there):
        put(here, "q", *sent, durable=True)
        status = status_of(here)
        await here.until(lambda: status.moved == len(sent))
        assert waiting(there, "there") == sent
        assert waiting(here, "q") == []
        assert (status.state, status.delivery, status.held) == (RUNNING, EXACTLY_ONCE, 0)
        assert status.batches >= 14


@pytest.mark.requirement("BRG-02")
async def test_the_bare_message_stays_byte_for_byte(tmp_path: Path) -> None:
    body = message(
        b"body", subject="s", message_id="ID:1", properties={"a": 1}, to="q", user_id=None
    )
    cases = {
        # the encoded message that is sent: its annotations afterwards
        message(b"z", durable=True, priority=7, annotations={"k": "v" * 300}): {"k": "v" * 300},
        message(): {},
        body: {},
        message(b"x", annotations={"x-opt-jms-msg-type": 5}): {"x-opt-jms-msg-type": 5},
        message(b"y", annotations={"x-opt-bridges": ["a", "b"]}): {},
    }
    async with two_brokers(tmp_path) as (here, there):
        put_encoded(here, "q", *cases)
        await here.until(lambda: status_of(here).moved == len(cases))
        found = there.messages("there")
        passed = [each.message_annotations.pop("x-opt-bridges") for each in found]
        assert passed == [[BRIDGE], [BRIDGE], [BRIDGE], [BRIDGE], ["a", "b", BRIDGE]]
        assert [each.message_annotations for each in found] == list(cases.values())
        for data, stored in zip(cases, stored_messages(there, "there"), strict=True):
            sections = split(data, 0, len(data))
            first = min(at for at in (sections.properties, sections.body + 3) if at >= 0)
            assert stored.encoded.endswith(data[first - 3 :])
        assert (found[0].durable, found[0].priority) == (True, 7)


@pytest.mark.requirement("BRG-03")
async def test_a_message_that_came_back_stays() -> None:
    async with Broker() as there, Broker(bridge=[bridge_to(there, to="q")]) as here:
        eight = [f"bridge-{number}" for number in range(8)]
        put_encoded(
            here,
            "q",
            message(b"passed before", annotations={"x-opt-bridges": ["other", BRIDGE]}),
            message(b"passed eight", annotations={"x-opt-bridges": eight}),
            message(b"unreadable", annotations={"x-opt-bridges": 7}),
            message(b"passed seven", annotations={"x-opt-bridges": eight[:7]}),
        )
        await here.until(lambda: status_of(here).moved == 1)
        assert waiting(there, "q") == [b"passed seven"]
        assert waiting(here, "q") == [b"passed before", b"passed eight", b"unreadable"]


@pytest.mark.requirement("BRG-03")
async def test_a_loop_of_two_bridges_ends(tmp_path: Path) -> None:
    first = Broker(store=store_in(tmp_path, "sqlite", "a"))
    async with first:
        url = first.url
        port = int(url.rpartition(":")[2])
    async with Broker(bridge=[bridge_to(url, name="back", to="q")]) as there:
        here = Broker(
            port=port, store=store_in(tmp_path, "sqlite", "a"), bridge=[bridge_to(there, to="q")]
        )
        async with here:
            put(here, "q", b"round trip")
            await here.until(lambda: status_of(there, "back").moved == 1)
            await here.until(lambda: waiting(here, "q") == [b"round trip"])
            assert status_of(here).moved == 1
            (back,) = here.messages("q")
            assert back.message_annotations["x-opt-bridges"] == [BRIDGE, "back"]


@STORES
@pytest.mark.requirement("BRG-04")
async def test_a_topic_is_copied(kind: str, tmp_path: Path) -> None:
    copying = {"from": "prices", "keep": "copy", "selector": "n > 1"}
    async with two_brokers(tmp_path, kind, bridge=copying) as (here, there):
        status = status_of(here)
        await here.until(lambda: status.state == RUNNING)
        put_encoded(
            here,
            "prices",
            *(message(b"%d" % n, properties={"n": n}) for n in range(4)),
            message(b"loop", properties={"n": 9}, annotations={"x-opt-bridges": [BRIDGE]}),
            kind="topic",
        )
        await here.until(lambda: status.moved + status.looped == 3)
        assert waiting(there, "there") == [b"2", b"3"]
        assert (status.moved, status.looped) == (2, 1)
        assert waiting(here, "prices") == []


@pytest.mark.requirement("BRG-01")
async def test_a_selector_leaves_the_others_in_the_queue(tmp_path: Path) -> None:
    async with two_brokers(tmp_path, bridge={"selector": "n > 1"}) as (here, there):
        put_encoded(here, "q", *(message(b"%d" % n, properties={"n": n}) for n in range(4)))
        await here.until(lambda: status_of(here).moved == 2)
        assert waiting(there, "there") == [b"2", b"3"]
        assert waiting(here, "q") == [b"0", b"1"]


@pytest.mark.requirement("BRG-01")
async def test_a_durable_subscription_is_emptied(tmp_path: Path) -> None:
    """The subscription is one that a bridge with `copy` has begun."""
    store = store_in(tmp_path, "sqlite", "a")
    async with Broker() as there:
        copying = bridge_to(there, **{"from": "prices", "keep": "copy"})
        async with Broker(store=store, bridge=[copying]) as here:
            await here.until(lambda: status_of(here).state == RUNNING)
        moving = bridge_to(there, **{"name": "second", "from": f"durable//bridge%2F{BRIDGE}"})
        async with Broker(store=store, bridge=[moving]) as here:
            put(here, "prices", b"a", b"b", kind="topic", durable=True)
            await here.until(lambda: status_of(here, "second").moved == 2)
            assert waiting(there, "there") == [b"a", b"b"]


@pytest.mark.requirement("BRG-05")
async def test_what_the_other_broker_never_takes_is_dead_lettered(tmp_path: Path) -> None:
    async with two_brokers(tmp_path, there={"max_message_size": 1000}) as (here, there):
        put(here, "q", b"small", b"x" * 2000, b"last")
        await here.until(lambda: status_of(here).moved == 2)
        assert waiting(there, "there") == [b"small", b"last"]
        (dead,) = here.messages("DLQ")
        assert dead.body == b"x" * 2000
        assert dead.message_annotations["x-opt-dead-letter-condition"] == (
            "amqp:link:message-size-exceeded"
        )
        assert status_of(here).refused == 1


async def test_large_messages_go_part_by_part(tmp_path: Path) -> None:
    large = b"L" * (5 * CHUNK_SIZE + 77)
    async with two_brokers(tmp_path, "sqlite") as (here, there):
        bodies = [b"before", large, b"after"]
        sending = partial(send, here.url, "q", bodies, capability=None, timeout_s=5)
        await asyncio.to_thread(sending, confirmed=lambda: None)
        await here.until(lambda: status_of(here).moved == 3)
        assert waiting(here, "q") == []
        receiving = partial(receive, there.url, "there", capability=None, count=3, timeout_s=5)
        # copied at once: Proton frees the memory of a body with its message
        read = partial(map, lambda each: bytes(cast(bytes, each.body)))
        assert await asyncio.to_thread(lambda: list(read(receiving()))) == bodies


@pytest.mark.requirement("BRG-06")
async def test_a_full_target_holds_the_bridge_back(tmp_path: Path) -> None:
    small, few = {"max_messages": 3}, {"batch": 2}
    async with two_brokers(tmp_path, there=small, bridge=few) as (here, there):
        put(here, "q", *[b"%d" % n for n in range(6)])
        status = status_of(here)
        await here.until(lambda: status.state == BLOCKED)
        assert waiting(there, "there") == [b"0", b"1"]
        _empty(there)
        await here.until(lambda: waiting(there, "there") == [b"2", b"3"])
        await here.until(lambda: status.state == BLOCKED)
        status.control.pause()
        await here.until(lambda: status.state == PAUSED)
        assert status.held == 2


WRONG = [
    # settings of the bridge, what its state says
    pytest.param({"url": "amqp://127.0.0.1:1"}, "cannot connect", id="nobody listens"),
    pytest.param({"from": "durable//no"}, "no such subscription", id="no such subscription"),
    pytest.param({"credentials_file": "/none"}, "cannot be read", id="no credentials"),
]


@pytest.mark.parametrize(("settings", "said"), WRONG)
@pytest.mark.requirement("BRG-06")
async def test_it_waits_and_says_why(
    settings: dict[str, object], said: str, tmp_path: Path
) -> None:
    async with two_brokers(tmp_path, bridge=settings) as (here, _):
        status = status_of(here)
        await here.until(lambda: status.state == WAITING)
        assert said in status.error
        await here.until(lambda: status.failures > 1)


@pytest.mark.requirement("BRG-06")
async def test_a_wrong_password_is_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("ann:wrong\n")
    async with two_brokers(
        tmp_path,
        there={"users": {"ann": "right-password"}},
        bridge={"credentials_file": str(file)},
    ) as (here, there):
        status = status_of(here)
        put(here, "q", b"a")
        await here.until(lambda: status.state == WAITING)
        assert "the login of user 'ann' was refused" in status.error
        file.write_text("ann:right-password\n")
        status.control.resume()
        await here.until(lambda: waiting(there, "there") == [b"a"])


@pytest.mark.requirement("BRG-06")
async def test_pauses_follow_a_connection_that_this_side_has_closed(tmp_path: Path) -> None:
    """The end of the last connection is reported during the pause, which goes on."""
    file = tmp_path / "credentials"
    file.write_text("ann:wrong\n")
    async with two_brokers(
        tmp_path,
        there={"users": {"ann": "right-password"}},
        bridge={"credentials_file": str(file)},
    ) as (here, _):
        status = status_of(here)
        await here.until(lambda: status.failures > 0)
        ends_s = monotonic() + 1.0
        before = status.failures
        await here.until(lambda: monotonic() > ends_s)
        assert status.failures - before <= 3


@pytest.mark.requirement("BRG-07")
async def test_a_paused_bridge_takes_nothing(tmp_path: Path) -> None:
    async with two_brokers(tmp_path) as (here, there):
        status = status_of(here)
        await here.until(lambda: status.state == RUNNING)
        status.control.pause()
        await here.until(lambda: status.state == PAUSED)
        put(here, "q", b"a")
        assert waiting(here, "q") == [b"a"]
        status.control.resume()
        await here.until(lambda: waiting(there, "there") == [b"a"])
        assert status.connects == 2


@pytest.mark.requirement("BRG-01")
async def test_a_restored_source_begins_a_new_sequence(tmp_path: Path) -> None:
    """The store is older than what it has sent: none of its new messages is dropped there."""
    store = store_in(tmp_path, "sqlite", "a")
    async with Broker() as there:
        async with Broker(store=store, bridge=[bridge_to(there)]) as here:
            await here.until(lambda: status_of(here).state == RUNNING)
        backup = tmp_path / "backup"
        shutil.copy(tmp_path / "a.db", backup)
        async with Broker(store=store, bridge=[bridge_to(there)]) as here:
            for body in (b"1", b"2"):  # a batch each
                put(here, "q", body, durable=True)
                await here.until(partial(_is_at, there, body))
            before = status_of(here).lease
        shutil.copy(backup, tmp_path / "a.db")
        async with Broker(store=store, bridge=[bridge_to(there)]) as here:
            put(here, "q", b"3", durable=True)
            await here.until(lambda: b"3" in waiting(there, "there"))
            assert status_of(here).lease != before
        assert waiting(there, "there") == [b"1", b"2", b"3"]


async def test_another_source_leaves_nothing_behind(tmp_path: Path) -> None:
    """Messages of the former queue that the other broker does not have return to it."""
    store = store_in(tmp_path, "sqlite", "a")
    async with Broker(max_messages=2) as there:
        async with Broker(store=store, bridge=[bridge_to(there)]) as here:
            put(here, "q", *[b"%d" % n for n in range(5)], durable=True)
            await here.until(lambda: status_of(here).state == BLOCKED)
        async with Broker(store=store, bridge=[bridge_to(there, **{"from": "r"})]) as here:
            await here.until(lambda: status_of(here).state == RUNNING)
            assert len(waiting(here, "q")) + len(waiting(there, "there")) == 5


@STORES
@pytest.mark.requirement("BRG-08")
async def test_a_broker_of_another_kind_gets_each_at_least_once(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    async with Broker(users={"ann": "right-password"}) as there:
        store = store_in(tmp_path, kind, "a")
        bridge = bridge_to(there, credentials_file=str(file), batch=10)
        async with Broker(store=store, bridge=[bridge]) as here:
            with of_another_kind(there):
                sent = [b"%d" % number for number in range(45)]
                put(here, "q", *sent, durable=True)
                file.write_text("ann:right-password")
                status = status_of(here)
                await here.until(lambda: status.moved == len(sent), within_s=10)
                assert status.delivery == AT_LEAST_ONCE
                found = there.messages("there")
                assert [each.body for each in found] == sent
                ids = {str(each.message_annotations["x-opt-bridge-id"]) for each in found}
                assert len(ids) == len(sent)
                assert all(each.startswith(f"{status.lease}/") for each in ids)


@pytest.mark.requirement("BRG-08")
async def test_another_kind_and_another_source_leave_no_lease_behind(tmp_path: Path) -> None:
    store, file = store_in(tmp_path, "sqlite", "a"), tmp_path / "credentials"
    file.write_text("ann:right-password")
    full = {"pattern": "there", "max_messages": 1}
    async with Broker(users={"ann": "right-password"}, address=[full]) as there:
        bridge = bridge_to(there, credentials_file=str(file))
        with of_another_kind(there):
            async with Broker(store=store, bridge=[bridge]) as here:
                put(here, "q", b"1", b"2", durable=True)
                await here.until(lambda: status_of(here).state == BLOCKED)
            async with Broker(store=store, bridge=[{**bridge, "from": "r"}]) as here:
                await here.until(lambda: status_of(here).state == RUNNING)
                assert waiting(here, "q") == [b"1", b"2"]
                leases = here._call(lambda app: list(app.container.router.leases.all()))
                assert leases == [status_of(here).lease]


@pytest.mark.requirement("BRG-08")
async def test_an_id_is_the_same_each_time() -> None:
    """The connection is lost with messages whose outcomes have not arrived."""
    async with Broker(max_messages=25) as there:
        with of_another_kind(there):
            async with Broker(bridge=[bridge_to(there, batch=20)]) as here:
                sent = [b"%d" % number for number in range(40)]
                put(here, "q", *sent, durable=True)
                await here.until(lambda: len(there.messages("there")) == 25)
                there.faults.drop_connections()
                before = _ids(there)
                _empty(there)
                await here.until(lambda: status_of(here).moved == len(sent), within_s=10)
                assert {body: before[body] for body in _ids(there) if body in before} == {
                    body: each for body, each in _ids(there).items() if body in before
                }
                assert set(before) | set(_ids(there)) == set(sent)


def _ids(broker: Broker) -> dict[object, object]:
    return {
        each.body: each.message_annotations["x-opt-bridge-id"] for each in broker.messages("there")
    }


@pytest.mark.requirement("BRG-05")
async def test_what_another_broker_rejects_is_dead_lettered() -> None:
    small = {"pattern": "there", "max_messages": 1, "full": "reject"}
    async with Broker(address=[small]) as there:
        with of_another_kind(there):
            async with Broker(bridge=[bridge_to(there)]) as here:
                put(here, "q", b"first", b"second")
                await here.until(lambda: status_of(here).refused == 1)
                assert waiting(there, "there") == [b"first"]
                assert waiting(here, "DLQ") == [b"second"]
                assert status_of(here).moved == 1


def encrypted(folder: Path, authority: Authority) -> Broker:
    """Return a broker with a listener of TLS, whose certificate is from `authority`."""
    certificate, key = authority.issue("localhost").write(folder, "server")
    return Broker(
        listener=[{"name": "secure", "kind": "amqps", "port": 0}],
        tls={"certificate": str(certificate), "key": str(key)},
        users={"ann": "right-password"},
    )


async def test_over_tls_to_a_broker_whose_authority_is_trusted(tmp_path: Path) -> None:
    authority, credentials = Authority(), tmp_path / "credentials"
    credentials.write_text("ann:right-password\n")
    async with encrypted(tmp_path, authority) as there:
        port = there._call(lambda app: app.listeners.each[1].port)
        bridge = bridge_to(f"amqps://localhost:{port}", credentials_file=str(credentials))
        trusted = {**bridge, "tls": {"ca": str(authority.write(tmp_path))}}
        strange = {**bridge, "name": "other", "from": "r"}
        async with Broker(bridge=[trusted, strange]) as here:
            put(here, "q", b"a")
            await here.until(lambda: waiting(there, "there") == [b"a"])
            await here.until(lambda: status_of(here, "other").state == WAITING)
            assert "the certificate is not trusted" in status_of(here, "other").error


LOOKING = """
import asyncio, sys
from broker.app import App
from broker.settings import given_settings

async def run():
    app = App(given_settings(store="memory", port=0))
    await app.start()
    await app.stop(0)

asyncio.run(run())
print([name for name in sys.modules if name.startswith("broker.bridge.")])
"""


def test_a_broker_without_bridges_imports_nothing_of_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOKING],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
