"""The HTTP server starts and stops with its broker, and is not loaded unless it is configured."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from broker.app import App
from broker.embedding import Broker
from broker.security.authenticate import admits_anonymous, open_users
from broker.serving import ready_line
from broker.settings import MEMORY, SettingsError, given_settings
from storage.memory import MemoryStore
from tests.support.http import ask, served

HTTP = {"port": 0}


@pytest.mark.requirement("PIP-20")
async def test_it_listens_while_the_broker_runs(tmp_path: Path) -> None:
    app = App(given_settings(port=0, users_file=tmp_path / "users", store=MEMORY, http=HTTP))
    await app.start()
    assert app.http is not None
    url = app.http.url()
    assert ready_line(app).endswith(f" http={url}")
    assert (await ask(f"{url}/events/bounds")).status == 200
    await app.stop()
    with pytest.raises(ConnectionRefusedError):
        await ask(f"{url}/livez")


async def test_an_embedded_broker_tells_where() -> None:
    async with Broker(http=HTTP) as running:
        assert (await ask(f"{running.http_url}/livez")).status == 200
    async with Broker() as running:
        with pytest.raises(RuntimeError, match="has no HTTP"):
            _ = running.http_url


async def test_it_leaves_signals_alone() -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    async with served(MemoryStore()):
        during = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    assert during == before


async def test_it_leaves_nothing_behind() -> None:
    before = asyncio.all_tasks()
    async with served(MemoryStore()) as url:
        await ask(f"{url}/livez")
    assert asyncio.all_tasks() == before


async def test_hundreds_of_connections_may_come_before_the_broker_accepts_one() -> None:
    async with served(MemoryStore()) as url:
        port = urlsplit(url).port
        # The event loop does not run here, so the kernel must keep all the connections.
        with ExitStack() as open_ones:
            for _ in range(400):
                each = socket.create_connection(("127.0.0.1", port), timeout=0.5)
                open_ones.enter_context(each)
        assert (await ask(f"{url}/livez")).status == 200


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = given_settings(
            port=0, users_file=tmp_path / "users", store=MEMORY, http={"port": port}
        )
        app = App(settings)
        with pytest.raises(OSError, match="in use") as caught:
            await app.start()
        assert caught.value.filename == f"http://127.0.0.1:{port}"
        await app.stop(0)


def test_other_machines_need_a_user(tmp_path: Path) -> None:
    settings = given_settings(
        users_file=tmp_path / "users", store=MEMORY, http={"port": 0, "host": "0.0.0.0"}
    )
    with pytest.raises(SettingsError, match=r"^http\.host = '0\.0\.0\.0' lets other machines in"):
        admits_anonymous(settings, open_users(settings))


ASK = """
import sys
from broker.app import App
from broker.settings import given_settings
App(given_settings(store="memory", users_file="none"{more}))
loaded = {{name.partition(".")[0] for name in sys.modules}}
print(*sorted(loaded & {{"starlette", "uvicorn", "h11", "pyarrow"}}))
"""


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of Python in `folder`."""
    return subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.requirement("PIP-20")
@pytest.mark.parametrize(
    ("more", "loaded"),
    [
        pytest.param("", "", id="where it is not asked for, nothing of it"),
        pytest.param(
            *(", http={'port': 0, 'arrow': False}", "h11 starlette uvicorn"), id="without streams"
        ),
        pytest.param(", http={'port': 0}", "h11 starlette uvicorn", id="where it is"),
    ],
)
def test_what_a_broker_carries(tmp_path: Path, more: str, loaded: str) -> None:
    done = run(ASK.format(more=more), tmp_path)
    assert (done.stdout.strip(), done.stderr) == (loaded, "")


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    done = run(
        "import sys; sys.modules['starlette'] = None\n" + ASK.format(more=", http={'port': 0}"),
        tmp_path,
    )
    assert "pip install 'jms-broker[http]'" in done.stderr
