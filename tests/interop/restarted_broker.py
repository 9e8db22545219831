"""A broker that a shell command kills and starts again on the same port, with the same store."""

from __future__ import annotations

import shlex
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.interop.broker_process import BrokerProcess
from tests.support.ports import free_port

ASKING: Final = "import socket; socket.create_connection(('127.0.0.1', {port})).recv(1)"
"""A program that asks the test to restart its broker, and ends when the broker is back."""

WAIT_S: Final = 0.2


class RestartedBroker:
    """A broker with its files in `folder`, and a command that kills it and starts it again.

    `program` is the command `jms-broker`, with `variables` in its environment; without one it is
    that of the broker under test.
    """

    def __init__(
        self,
        folder: Path,
        *,
        settings: str,
        program: Sequence[str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._folder: Final = folder
        self._settings: Final = settings
        self._program: Final = program
        self._variables: Final = variables
        self.port: Final = free_port()
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
        return BrokerProcess(
            self._folder,
            settings=self._settings,
            port=self.port,
            program=[*self._program, *words] if self._program else None,
            variables=self._variables,
        )

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

    def _take_no_more(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._control.close()

    def stop(self) -> None:
        """Stop the broker, which must end well."""
        self._take_no_more()
        assert self.process.stop() == 0

    def kill(self) -> None:
        """End the broker, however it is."""
        self._take_no_more()
        self.process.kill()
