"""Projects that have modules `broker` or `storage` of their own: what works, and the errors."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import jms_broker

SECONDS = 60
HOME = str(jms_broker.HOME)

OWN_BROKER = {"broker.py": "PRICE = 3\n"}
OWN_STORAGE = {"storage/__init__.py": "SHELVES = 4\n"}
BOTH = OWN_BROKER | OWN_STORAGE

OWN_TEST = {
    "test_own.py": """
import broker, storage
def test_own_modules():
    assert (broker.PRICE, storage.SHELVES) == (3, 4)
"""
}
WITH_FIXTURE = {
    "test_it.py": """
def test_with_a_broker(amqp_url):
    assert amqp_url
"""
}
SCRIPT = {"script.py": "from broker import Broker\nwith Broker() as it: print(it.url[:16])\n"}


def project(folder: Path, *parts: dict[str, str]) -> Path:
    """Write the files of all `parts` into `folder`; return it."""
    for part in parts:
        for name, text in part.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
    return folder


def run(folder: Path, *arguments: str, first: str = "") -> subprocess.CompletedProcess[str]:
    """Run python in `folder`, with jms-broker and its requirements after `first` on the path."""
    path = [first, HOME, *(each for each in sys.path if each not in ("", HOME))]
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "PATH": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def hides(name: str, file: Path) -> str:
    return f"the module {name!r} is {file}, and hides the package {name!r} of jms-broker in {HOME}"


def test_here_the_names_are_ours() -> None:
    jms_broker.check_names()


# -- pytest

PYTEST = ("-m", "pytest", "-p", "jms_broker_pytest", "-W", "error")


def test_the_plugin_stops_no_test_of_a_project_with_such_modules(tmp_path: Path) -> None:
    done = run(project(tmp_path, BOTH, OWN_TEST), *PYTEST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


CLASHES = [
    pytest.param(OWN_BROKER, "broker", "broker.py", id="a module broker"),
    pytest.param(OWN_STORAGE, "storage", "storage/__init__.py", id="a package storage"),
    pytest.param({"storage.py": ""}, "storage", "storage.py", id="a module storage"),
]


@pytest.mark.parametrize(("own", "name", "file"), CLASHES)
def test_a_fixture_tells_which_module_is_in_the_way(
    tmp_path: Path, own: dict[str, str], name: str, file: str
) -> None:
    done = run(project(tmp_path, own, WITH_FIXTURE), *PYTEST)
    assert done.returncode == 1
    assert hides(name, tmp_path / file) in done.stdout
    assert "Traceback" not in done.stdout
    assert "1 error" in done.stdout


def test_a_module_that_was_imported_before_is_told_too(tmp_path: Path) -> None:
    own = {"conftest.py": "import storage\n"}
    done = run(project(tmp_path, OWN_STORAGE, own, WITH_FIXTURE), *PYTEST)
    assert hides("storage", tmp_path / "storage/__init__.py") in done.stdout


def test_a_folder_that_is_no_package_is_in_nobodys_way(tmp_path: Path) -> None:
    own = {"storage/data.txt": "", "broker/data.txt": ""}
    done = run(project(tmp_path, own, WITH_FIXTURE), *PYTEST)
    assert "1 passed" in done.stdout, done.stdout


# -- a script


def test_a_script_beside_a_foreign_storage_is_told(tmp_path: Path) -> None:
    done = run(project(tmp_path, OWN_STORAGE, SCRIPT), "script.py")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        f"jms_broker.ShadowedError: {hides('storage', tmp_path / 'storage/__init__.py')}"
    )


def test_a_script_in_a_folder_of_its_own_runs(tmp_path: Path) -> None:
    done = run(project(tmp_path, SCRIPT), "script.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "amqp://127.0.0.1\n", "")


# -- the command

COMMAND = {"bin/jms-broker": "from jms_broker import main\nmain()\n"}
"""The script that pip makes of the entry point.

Python puts the script's folder first on its path, instead of the current folder.
"""


def test_the_command_works_in_such_a_folder(tmp_path: Path) -> None:
    done = run(project(tmp_path, BOTH, COMMAND), "bin/jms-broker", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("jms-broker ")


@pytest.mark.parametrize(("own", "name", "file"), CLASHES)
@pytest.mark.parametrize("arguments", [["serve", "--port", "0"], ["send", "a", "x"]])
def test_the_command_tells_which_module_is_in_its_way(
    tmp_path: Path, own: dict[str, str], name: str, file: str, arguments: list[str]
) -> None:
    project(tmp_path, own, COMMAND)
    done = run(tmp_path, "bin/jms-broker", *arguments, first=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"jms-broker: {hides(name, tmp_path / file)}")


def test_a_package_that_is_missing_is_told(tmp_path: Path) -> None:
    project(tmp_path, {"jms_broker.py": Path(jms_broker.__file__).read_text()})
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from jms_broker import main; main()"
    )
    done = run(tmp_path, "-I", "-S", "-c", program)
    assert done.returncode == 1
    assert done.stderr == (
        f"jms-broker: the package 'broker' of jms-broker is missing in {tmp_path}\n"
    )


# -- without standard streams, as some supervisors start a process

CLOSED = ["<&-", ">&-", "<&- >&-"]
MAIN = (sys.executable, "-m", "jms_broker")


def with_closed(streams: str, *command: str) -> subprocess.Popen[str]:
    """Start `command` with `streams` closed; its standard error is a pipe."""
    return subprocess.Popen(
        ["/bin/sh", "-c", f'exec "$@" {streams}', "sh", *command],
        cwd=HOME,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("streams", CLOSED)
def test_a_broker_without_standard_streams_outlives_its_clients(streams: str) -> None:
    with with_closed(streams, *MAIN, "serve", "--port", "0", "--store", "memory") as process:
        assert process.stderr is not None
        ready = next(line for line in process.stderr if "amqp://127.0.0.1:" in line)
        port = int(ready.rpartition("127.0.0.1:")[2].split()[0])
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), SECONDS) as client:
                client.sendall(b"not AMQP")
                while client.recv(1024):
                    pass
        process.terminate()
        assert process.wait(SECONDS) == 0, process.stderr.read()


def test_a_command_without_standard_output_tells_that_and_does_nothing() -> None:
    with with_closed(">&-", *MAIN, "receive", "orders", "--url", "amqp://127.0.0.1:1") as process:
        _, told = process.communicate(timeout=SECONDS)
    assert (process.returncode, told) == (1, "jms-broker: standard output is closed\n")


def test_a_command_without_standard_input_reads_nothing() -> None:
    with with_closed("<&-", *MAIN, "send", "orders", "--url", "amqp://127.0.0.1:1") as process:
        _, told = process.communicate(timeout=SECONDS)
    assert (process.returncode, "Connection refused" in told) == (5, True), told
