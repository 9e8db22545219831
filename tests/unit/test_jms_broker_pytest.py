"""The pytest plugin in a pytest of its own, as a project uses it in its tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STRICT = ("-W", "error", "--strict-markers", "--strict-config")

FIXTURES = """
import socket

import pytest

HEADER = b"AMQP" + bytes([3, 1, 0, 0])

seen = []


def port(url):
    return int(url.rpartition(":")[2])


def test_a_broker_runs(amqp_broker, amqp_url):
    assert amqp_url == amqp_broker.url
    with socket.create_connection(("127.0.0.1", port(amqp_url))) as client:
        client.sendall(HEADER)
        assert client.recv(8) == HEADER
    seen.append(amqp_broker)


def test_the_next_test_has_another(amqp_broker):
    assert amqp_broker is not seen[0]
    with pytest.raises(RuntimeError):
        seen[0].url


@pytest.mark.amqp_broker(max_delivery_count=3)
class TestMarked:
    @pytest.mark.amqp_broker(users={"eve": "apple"})
    def test_markers_add_up(self, amqp_broker, amqp_url):
        assert amqp_broker._app().settings.max_delivery_count == 3
        assert amqp_url.startswith("amqp://eve:apple@127.0.0.1:")

    @pytest.mark.amqp_broker(max_delivery_count=4)
    def test_the_nearest_wins(self, amqp_broker):
        assert amqp_broker._app().settings.max_delivery_count == 4
"""

CONFIGURED = """
def test_users(amqp_broker, amqp_url, request):
    assert amqp_broker.users == {users}
    assert "@" in amqp_url


def test_without_a_broker():
    pass
"""


def run(folder: Path, test: str, *arguments: str, ini: str = "") -> str:
    """Run pytest with the plugin and nothing else of this project; return its output."""
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}")
    (folder / "test_it.py").write_text(test)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "jms_broker_pytest", *STRICT, *arguments],
        cwd=folder,
        env={
            "PYTHONPATH": ":".join(filter(None, sys.path)),
            "PATH": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_fixtures_and_markers(tmp_path: Path) -> None:
    assert "4 passed" in run(tmp_path, FIXTURES)


OPTIONS = [
    pytest.param([], "amqp_users =\n    ada:engine\n    bob:a:b\n", id="configured"),
    pytest.param(["--amqp-user=ada:engine", "--amqp-user=bob:a:b"], "", id="on the command line"),
    pytest.param(
        ["--amqp-user=ada:engine", "--amqp-user=bob:a:b"],
        "amqp_users = eve:apple\n",
        id="the command line wins",
    ),
]


@pytest.mark.parametrize(("arguments", "ini"), OPTIONS)
def test_users(tmp_path: Path, arguments: list[str], ini: str) -> None:
    expected = {"ada": "engine", "bob": "a:b"}
    printed = run(tmp_path, CONFIGURED.format(users=expected), *arguments, ini=ini)
    assert "2 passed" in printed


WRONG = [
    pytest.param(["--amqp-user=ada"], "", "a user is NAME:PASSWORD, not 'ada'", id="no password"),
    pytest.param(["--amqp-store=papyrus"], "", "argument: store = 'papyrus'", id="store, option"),
    pytest.param([], "amqp_store = papyrus\n", "argument: store = 'papyrus'", id="store, file"),
]


@pytest.mark.parametrize(("arguments", "ini", "told"), WRONG)
def test_what_is_wrong_is_told_by_the_tests_that_want_a_broker(
    tmp_path: Path, arguments: list[str], ini: str, told: str
) -> None:
    printed = run(tmp_path, CONFIGURED.format(users={}), *arguments, ini=ini)
    assert told in printed
    assert "1 passed, 1 error" in printed


def test_no_broker_is_imported_before_one_is_wanted() -> None:
    program = "import jms_broker_pytest, sys; print('broker' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "False\n"


MARKED = """
import pytest


@pytest.mark.amqp_broker({marker})
def test_it(amqp_broker):
    pass
"""


@pytest.mark.parametrize(
    ("marker", "reason"),
    [
        ("3", "takes settings by name, such as max_delivery_count=3, not 3"),
        ("{'max_delivery_count': 3}", "takes settings by name"),
        ("users=['ada']", "users of the marker amqp_broker is a dict of passwords by name"),
        ("users={'ada': 1}", "users of the marker amqp_broker is a dict of passwords by name"),
    ],
)
def test_a_wrong_marker_is_told(tmp_path: Path, marker: str, reason: str) -> None:
    told = run(tmp_path, MARKED.format(marker=marker))
    assert "1 error" in told
    assert f"UsageError: {reason}" in told or f"UsageError: the marker amqp_broker {reason}" in told
