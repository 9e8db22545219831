"""A broker in shards, started by one command."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, Self

from tests.interop.broker_process import READY_SECONDS, STOP_SECONDS, command, environment
from tests.support.ports import free_port

STARTED: Final = re.compile(r"^shard (?P<name>\w+): ready \S+:(?P<port>\d+) .*pid=(?P<pid>\d+)")
"""The line by which the supervisor hands on that a shard is ready."""


class ShardedBroker:
    """`jms-broker serve` with shards; a with-block ends with all of its processes.

    `ports` and `pids` are those of the shards by their names, `stores` what their settings say.
    A shard has the host `NAME.example`, unless `hosts` has another one. `settings` is the text of
    settings that all share.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        stores: Mapping[str, str],
        hosts: Mapping[str, str] | None = None,
        settings: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._hosts: Final = hosts or {}
        self.ports: Final = {name: free_port() for name in stores}
        self.pids: Final[dict[str, int]] = {}
        self.output: Final[list[str]] = []
        self._lines: Final[SimpleQueue[str]] = SimpleQueue()
        config = folder / "broker.toml"
        tables = [self._table(name, store) for name, store in stores.items()]
        config.write_text("".join([settings, *tables]))
        self.process: Final = subprocess.Popen(
            [*command(), "serve", "--config", str(config), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=environment(**(variables or {})),
        )
        self._reader: Final = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _table(self, name: str, store: str) -> str:
        return (
            f'[[shard]]\nname = "{name}"\n'
            f'hosts = ["{self._hosts.get(name, f"{name}.example")}"]\n'
            f'port = {self.ports[name]}\nstore = "{store}"\n'
        )

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self._lines.put(line)
        self._lines.put("")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.ended()

    def until(self, *beginnings: str) -> list[str]:
        """Wait for a line with each of the `beginnings`; return the lines, in their order."""
        found: list[str] = []
        missing = list(beginnings)
        ends = time.monotonic() + READY_SECONDS
        while missing:
            line = self._next(ends - time.monotonic())
            assert line, "".join(self.output)
            for each in missing:
                if line.startswith(each):
                    missing.remove(each)
                    found.append(line.rstrip())
                    break
        return found

    def ready(self) -> None:
        """Wait until all shards are ready."""
        self.until("ready ")

    def _next(self, seconds: float) -> str:
        """Return the next line; an empty one after `seconds`, or behind the last."""
        try:
            line = self._lines.get(timeout=max(0.0, seconds))
        except Empty:
            return ""
        self.output.append(line)
        if started := STARTED.match(line):
            self.pids[started["name"]] = int(started["pid"])
        return line

    def status(self, signals: Sequence[signal.Signals] = ()) -> int:
        """Send `signals` to the supervisor, wait for its end and return its exit status."""
        for number in signals:
            self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)

    def ended(self) -> str:
        """Wait until no process is left that could write; return all that was written."""
        self._reader.join(STOP_SECONDS)
        assert not self._reader.is_alive(), "a shard has outlived its supervisor"
        while self._next(0):
            pass
        return "".join(self.output)
