"""The page `/metrics`, of a real broker and over a real socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.app import App
from broker.http.metric_table import BROKER, COUNTER, DETAILED, EVERY, HISTOGRAM, Metric
from broker.security.resources import OWNED_VERBS, TEMPORARY, VERBS
from broker.security.users import Users
from broker.settings import given_settings
from broker.stats import (
    CAUSES,
    CONDITIONS,
    LOGIN_RESULTS,
    MECHANISMS,
    OTHER,
    Breakdown,
    ListenerStats,
    Stats,
)
from storage.memory import MemoryStore
from tests.support.broker import Broker
from tests.support.http import Answer, ask, basic, served
from tests.support.metrics import page_of, read_page
from tests.support.socket_client import SocketClient

pytestmark = pytest.mark.requirement("OPS-04")

SERIES_MAX = 400


# -- what the page has


async def test_the_page_has_each_metric_of_the_table_with_its_type_and_text() -> None:
    page = await page_of(Broker())
    # the library names a counter without the end of its samples
    names = {each.full_name().removesuffix("_total"): each for each in BROKER}
    assert page.types == {name: each.type for name, each in names.items()}
    assert page.texts == {name: each.help for name, each in names.items()}


def everything(stats: Stats) -> None:
    """Count with every label that there is, and four listeners with TLS."""
    for breakdown in (
        *(stats.by.unroutable, stats.by.connections_refused, stats.by.dead_lettered),
        *(stats.by.dropped, stats.by.logins),
    ):
        fill(breakdown)
    for kind, verbs in VERBS.items():
        for verb in (*verbs, *(OWNED_VERBS if kind == TEMPORARY else ()), "*"):
            stats.denied(kind, verb)
    for name in ("amqp", "amqps", "ws", "wss"):
        stats.listener(name).certificate_end_s = 1.0


def fill(breakdown: Breakdown) -> None:
    first, *others = breakdown.values
    for value in (*first, "unknown"):
        if others:
            for other in (*others[0], "unknown"):
                breakdown.add(value, other)
        else:
            breakdown.add(value)


async def test_it_has_less_than_400_series_whatever_was_counted_and_is_queued() -> None:
    broker = Broker()
    everything(broker.stats)
    for number in range(500):
        broker.fill(f"queue-{number}")
    page = await page_of(broker)
    assert page.value("queues", kind="named") == 500
    assert page.value("messages", state="ready") == 500
    assert len(page.values) < SERIES_MAX


FORBIDDEN = {"user", "peer", "client", "client_id", "container_id", "message", "error", "address"}


@pytest.mark.parametrize("metric", EVERY, ids=lambda metric: metric.name)
def test_no_label_is_a_user_a_client_a_message_or_an_error(metric: Metric) -> None:
    assert not FORBIDDEN & set(metric.labels)
    assert metric.type != COUNTER or metric.name.endswith("_total")
    assert metric.type != HISTOGRAM or not metric.labels
    if metric not in DETAILED:
        assert not {"queue", "topic", "subscription"} & set(metric.labels)


def test_the_names_are_different() -> None:
    assert len({metric.name for metric in EVERY}) == len(EVERY)


def test_what_a_peer_sends_adds_no_label() -> None:
    breakdown = Breakdown(("PLAIN",), LOGIN_RESULTS)
    for number in range(1000):
        breakdown.add(f"MECHANISM-{number}", "ok")
    assert breakdown.counts == {(OTHER, "ok"): 1000}
    assert len({*MECHANISMS}) == len(MECHANISMS)
    assert (len(CONDITIONS), len(CAUSES)) == (15, 2)


# -- on real sockets, with users


def guarded(folder: Path, **http: object) -> App:
    """Return a broker with users, and with a store on the disk."""
    users = Users(folder / "users")
    users.add("owner", "sesame", roles=["admin"])
    users.add("watcher", "lens", roles=["monitor"])
    users.add("clerk", "pencil", roles=["application"])
    store = f"sqlite:///{folder / 'store.db'}"
    settings = given_settings(port=0, users_file=users.file, store=store, http={"port": 0, **http})
    return App(settings)


async def asked(app: App, path: str, headers: dict[str, str]) -> Answer:
    assert app.http is not None
    return await ask(app.http.url() + path, headers)


async def test_who_may_see_metrics_and_what_a_real_broker_counts(tmp_path: Path) -> None:
    app = guarded(tmp_path)
    await app.start()
    try:
        async with SocketClient(app.port) as client:
            client.login("PLAIN", b"\0clerk\0pencil")
            await client.header()
            await client.next()  # the mechanisms
            await client.next()  # the outcome
            await client.open("shop")
            for path in ("/metrics", "/metrics/detailed"):
                assert (await asked(app, path, basic("clerk", "pencil"))).status == 403
                assert (await asked(app, path, {})).status == 401
                assert (await asked(app, path, basic("owner", "sesame"))).status == 200
            answer = await asked(app, "/metrics", basic("watcher", "lens"))
            assert (await asked(app, "/metrics?x=1", basic("owner", "sesame"))).status == 400
    finally:
        await app.stop()
    page = read_page(answer.body.decode())
    assert page.value("connections", listener="amqp") == 1
    assert page.value("connections_opened_total", listener="amqp") == 1
    assert page.value("logins_total", mechanism="PLAIN", result="ok") == 1
    assert page.value("access_denied_total", kind="management", verb="view") == 2
    assert page.value("network_bytes_total", direction="in", listener="amqp") > 50
    assert page.value("network_bytes_total", direction="out", listener="amqp") > 50
    assert 0 < page.value("store_bytes") < page.value("store_disk_bytes")
    assert page.value("build_info", **page.labels("build_info")[0]) == 1
    assert app.http is not None


async def test_commits_of_a_store_on_the_disk_are_measured(tmp_path: Path) -> None:
    app = guarded(tmp_path)
    await app.start()
    try:
        router, journal = app.container.router, app.journal
        router.create(router.parse("q", "queue").of_kind("queue"), journal.batch)
        journal.batch.is_urgent = True
        journal.flush()
        while not sum(app.stats.measured.commit_us.counts):
            await asked(app, "/livez", {})
        answer = await asked(app, "/metrics", basic("owner", "sesame"))
    finally:
        await app.stop()
    page = read_page(answer.body.decode())
    assert page.value("connections", listener="amqp") == 0
    assert page.value("commits_total") >= 1
    assert page.value("commit_duration_seconds_count") == page.value("commits_total")
    assert page.value("commit_duration_seconds_sum") > 0


async def test_metrics_can_be_switched_off(tmp_path: Path) -> None:
    app = guarded(tmp_path, metrics=False)
    await app.start()
    try:
        for path in ("/metrics", "/metrics/detailed"):
            answer = await asked(app, path, basic("owner", "sesame"))
            assert (answer.status, answer.error()) == (404, f"GET {path} is not known here")
    finally:
        await app.stop()


async def test_the_head_alone() -> None:
    async with served(MemoryStore()) as url:
        for path in ("/metrics", "/metrics/detailed"):
            answer = await ask(url + path, method="HEAD")
            assert (answer.status, answer.body) == (200, b"")


def test_a_listener_of_which_nothing_is_known_begins_at_zero() -> None:
    stats = Stats()
    assert isinstance(stats.listener("amqp"), ListenerStats)
    assert stats.listener("amqp") is stats.listener("amqp")
