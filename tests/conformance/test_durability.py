"""The cases on what outlives a restart, on this project's broker: killed, and started again."""

from __future__ import annotations

import shlex
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.asked import Asked, options_of
from tests.conformance.harness import Case, all_cases, judge
from tests.conformance.report import in_text
from tests.conformance.test_running import ASKING
from tests.conformance.test_this_broker import RESTARTING
from tests.conformance.verdict import Verdict
from tests.interop.broker_process import BrokerProcess, command

pytestmark = pytest.mark.slow

WAIT_S: Final = 0.2


class RestartedBroker:
    """A broker with its store in a file, and a command that kills it and starts it again."""

    def __init__(self, folder: Path, store: str) -> None:
        self._folder: Final = folder
        self._store: Final = store
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: Final[int] = free.getsockname()[1]
        self._control: Final = socket.create_server(("127.0.0.1", 0))
        self._control.settimeout(WAIT_S)
        self._is_over: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._serve)
        self.process = self._started()
        self._thread.start()

    @property
    def restart(self) -> str:
        """The command, which ends when the broker is back."""
        program = ASKING.format(port=self._control.getsockname()[1])
        return f"{sys.executable} -c {shlex.quote(program)}"

    def _started(self) -> BrokerProcess:
        words = ["serve", "--port", str(self.port), "--config", "broker.toml"]
        settings = f'store = "{self._store}"\n'
        return BrokerProcess(self._folder, settings=settings, program=[*command(), *words])

    def _serve(self) -> None:
        while not self._is_over.is_set():
            try:
                asking, _ = self._control.accept()
            except TimeoutError:
                continue
            with asking:
                self.process.kill()
                self.process = self._started()
                asking.sendall(b"!")

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._control.close()
        assert self.process.stop() == 0


@pytest.fixture(scope="module")
def durable_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartedBroker]:
    broker = RestartedBroker(tmp_path_factory.mktemp("durable"), "sqlite:///data/store.db")
    yield broker
    broker.stop()


@pytest.mark.parametrize(
    "case", [each for each in all_cases() if each.name in RESTARTING], ids=lambda case: case.name
)
async def test_case(case: Case, durable_broker: RestartedBroker) -> None:
    options = options_of(
        Asked(f"amqp://127.0.0.1:{durable_broker.port}", restart=durable_broker.restart)
    )
    result = await judge(case, options)
    assert result.verdict is Verdict.PASSED, in_text(result, frames=True)


async def test_no_case_passes_on_a_broker_that_forgets(tmp_path: Path) -> None:
    """With its store in memory, the broker loses everything."""
    broker = RestartedBroker(tmp_path, "memory")
    options = options_of(Asked(f"amqp://127.0.0.1:{broker.port}", restart=broker.restart))
    try:
        results = [
            await judge(case, replace(options, timeout_s=2.0))
            for case in all_cases()
            if case.name in RESTARTING
        ]
    finally:
        broker.stop()
    passed = [result.case.name for result in results if result.verdict is Verdict.PASSED]
    assert passed == []
