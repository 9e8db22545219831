"""A broker as a process: the log of its start and its end, and the effect of SIGHUP."""

import asyncio
import gc
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker import __version__
from broker.compiled import COMPILED, SLOWER
from broker.security.users import Users
from broker.serving import serve
from broker.settings import given_settings

PATIENCE_S = 30.0


class Process:
    """A `jms-broker serve` with a settings file, and a log file beside it."""

    def __init__(self, folder: Path, standard_input: int, variables: Mapping[str, str]) -> None:
        self.config = folder / "broker.toml"
        self.log = folder / "log"
        if not self.config.exists():
            self.config.write_text("")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-c", "from broker.cli import main; main()", "serve"),
                    *("--port", "0", "--store", "memory", "--config", str(self.config)),
                ],
                stdin=standard_input,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,
                env={
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "PATH": os.environ.get("PATH", ""),
                    "JMS_BROKER_LOG_FORMAT": "json",
                    **variables,
                },
            )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert re.match(r"^ready amqp://127\.0\.0\.1:\d+ store=memory pid=\d+$", ready), ready

    def events(self) -> list[dict[str, object]]:
        """Return the lines of the log so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def until(self, claim: Callable[[list[str]], bool]) -> list[str]:
        """Wait until `claim` is true of the log's events; return their names."""
        ends = time.monotonic() + PATIENCE_S
        while not claim(told := [str(line["event"]) for line in self.events()]):
            assert time.monotonic() < ends, told
            os.sched_yield()
        return told

    def wait(self) -> int:
        return self.process.wait(PATIENCE_S)


@contextmanager
def served(
    folder: Path,
    standard_input: int = subprocess.DEVNULL,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Process]:
    """Run a broker, and kill it at the end of the block."""
    running = Process(folder, standard_input, variables or {})
    try:
        yield running
    finally:
        running.process.kill()
        running.wait()
        assert running.process.stdout is not None
        running.process.stdout.close()


STOPS = [
    pytest.param(signal.SIGTERM, "SIGTERM", id="a service manager"),
    pytest.param(signal.SIGINT, "SIGINT", id="Control-C"),
]


@pytest.mark.parametrize(("number", "reason"), STOPS)
def test_the_log_tells_start_and_stop(tmp_path: Path, number: signal.Signals, reason: str) -> None:
    with served(tmp_path) as running:
        running.process.send_signal(number)
        assert running.wait() == 0
        starting, ready, stopping, stopped = running.events()
    assert starting["event"] == "broker starting"
    assert starting["version"] == __version__
    assert starting["build"] in (COMPILED, SLOWER)
    assert starting["store"] == "memory"
    assert starting["settings"] == str(running.config)
    assert ready["event"] == "broker ready"
    assert str(ready["url"]).startswith("amqp://127.0.0.1:")
    assert (stopping["event"], stopping["reason"]) == ("broker stopping", reason)
    assert (stopped["event"], stopped["reason"]) == ("broker stopped", reason)


def test_a_service_reloads_at_sighup_and_goes_on(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        running.config.write_text("credit = 7\nhold_ms = 7\n")
        Users(tmp_path / "jms-broker.users").add("ada", "engine")
        running.process.send_signal(signal.SIGHUP)
        running.until(lambda told: "changed settings need a restart of the broker" in told)
        reloaded = next(line for line in running.events() if line["event"] == "settings reloaded")
        assert (reloaded["applied"], reloaded["users"], reloaded["anonymous"]) == (
            *("credit", 1),
            False,
        )
        running.config.write_text("credit = 0\n")
        running.process.send_signal(signal.SIGHUP)
        running.until(lambda told: told[-1] == "settings not reloaded, the old ones stay")
        assert "credit = 0" in str(running.events()[-1]["reason"])
        running.process.send_signal(signal.SIGTERM)
        assert running.wait() == 0


def test_a_broker_whose_terminal_is_closed_stops_in_order(tmp_path: Path) -> None:
    master, terminal = pty.openpty()
    try:
        with served(tmp_path, terminal) as running:
            running.process.send_signal(signal.SIGHUP)
            running.process.send_signal(signal.SIGHUP)
            assert running.wait() == 0
            told = [line.get("reason") for line in running.events()]
    finally:
        os.close(master)
        os.close(terminal)
    assert told[2:] == ["SIGHUP: the terminal was closed"] * 2


@pytest.mark.requirement("OPS-16")
def test_a_service_notifier_is_told_of_start_reload_and_stop(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(PATIENCE_S)
        manager.bind(str(tmp_path / "notify"))
        variables = {
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "JMS_BROKER_DRAIN_ON_SIGTERM": "true",
            "JMS_BROKER_DRAIN_ANNOUNCE_MS": "0",
        }
        with served(tmp_path, variables=variables) as running:

            def told() -> list[str]:
                return manager.recv(1000).decode().splitlines()

            state, status = told()
            assert state == "READY=1"
            assert status.startswith("STATUS=serving at amqp://127.0.0.1:")
            running.process.send_signal(signal.SIGHUP)
            state, moment = told()
            assert (state, moment.partition("=")[0]) == ("RELOADING=1", "MONOTONIC_USEC")
            assert told()[0] == "READY=1"
            running.process.send_signal(signal.SIGTERM)
            assert told() == ["STOPPING=1", "STATUS=draining"]
            assert told() == ["STOPPING=1", "STATUS=stopping: SIGTERM"]
            assert running.wait() == 0


async def test_a_standby_collects_garbage_however_long_it_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A start does not collect any; but a standby may try for years to reach its database."""
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    settings = given_settings(port=0, store=nowhere, ha={"enabled": True})
    serving = asyncio.create_task(serve(settings, None, lambda: settings))
    said = ""
    async with asyncio.timeout(PATIENCE_S):
        while "broker cannot stand by now" not in said:
            await asyncio.sleep(0)
            said += capsys.readouterr().err
    assert gc.isenabled()
    signal.raise_signal(signal.SIGTERM)
    await serving
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.remove_signal_handler(number)
    gc.unfreeze()
