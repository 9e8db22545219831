"""Probes tell whether the broker has started and serves clients, to anybody."""

from pathlib import Path

import pytest

from broker.app import App
from broker.http.probes import Probes
from broker.http.server import HttpServer
from broker.http_settings import HttpSettings
from broker.management.management import Management
from broker.settings import MEMORY, given_settings
from storage.api import StoreError
from storage.memory import MemoryStore
from tests.support.access import RuledUsers
from tests.support.broker import Broker
from tests.support.http import ask, server_of

PROBES = ("/livez", "/readyz", "/startupz", "/leaderz")


def state_of(app: App) -> tuple[list[str], bool]:
    """Return what the probes of `app` would tell."""
    assert app.http is not None
    return app.http.site.obstacles(), app.http.site.has_started()


@pytest.mark.requirement("OPS-03")
async def test_a_broker_is_ready_from_its_last_listener_to_its_stop(tmp_path: Path) -> None:
    app = App(given_settings(port=0, users_file=tmp_path / "u", store=MEMORY, http={"port": 0}))
    assert state_of(app) == (["the listeners are not up"], False)
    await app.start()
    assert state_of(app) == ([], True)
    await app.stop()
    assert state_of(app) == (["the broker is stopping"], True)


@pytest.mark.requirement("OPS-03")
async def test_a_broker_whose_store_failed_is_not_ready(tmp_path: Path) -> None:
    app = App(given_settings(port=0, users_file=tmp_path / "u", store=MEMORY, http={"port": 0}))
    await app.start()
    app.failure = StoreError("gone")
    assert state_of(app) == (["the store failed"], True)
    app.failure = None
    await app.stop()


@pytest.mark.requirement("OPS-03")
@pytest.mark.parametrize(
    ("obstacles", "started", "statuses"),
    [
        pytest.param([], True, [200, 200, 200, 200], id="in service"),
        pytest.param(["the listeners are not up"], False, [200, 503, 503, 200], id="starting"),
        pytest.param(["the store failed", "it stops"], True, [200, 503, 200, 200], id="failed"),
    ],
)
async def test_each_probe_has_its_status(
    obstacles: list[str], started: bool, statuses: list[int]
) -> None:
    broker = Broker(authenticator=RuledUsers())
    management = broker.container.service
    assert isinstance(management, Management)
    server = HttpServer(
        HttpSettings(port=0),
        broker.container,
        MemoryStore(),
        management=management,
        obstacles=lambda: obstacles,
        has_started=lambda: started,
    )
    await server.start()
    answers = [await ask(server.url() + path) for path in PROBES]
    await server.stop()
    assert [answer.status for answer in answers] == statuses
    assert answers[1].body.decode().splitlines() == (obstacles or ["ok"])
    assert {answer.headers["cache-control"] for answer in answers} == {"no-store"}


def test_the_probes_are_these() -> None:
    assert [each.path for each in Probes(server_of(MemoryStore()).site).routes()] == list(PROBES)
