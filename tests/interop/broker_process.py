"""A broker in a process of its own.

Within pytest it is forked by preloaded.py, since a start takes half a second of a core. Elsewhere,
and where a test names a program, it is started as a user starts it: `jms-broker serve`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Final

from tests.interop.preloaded_process import PreloadedProcess

ROOT: Final = Path(__file__).resolve().parents[2]

USER: Final = "alice"
PASSWORD: Final = "sesame"
"""The name and the password of the user whom the strict broker knows."""

READY: Final = re.compile(
    r"^ready (?P<url>amqp://\S+) store=(?P<store>\S+) pid=(?P<pid>\d+)( http=(?P<http>\S+))?"
    r"( \S+=(amqp|ws)s?://\S+)*$"
)
LISTENER: Final = re.compile(r" (\S+)=((?:amqps?|wss?)://\S+)")
READY_SECONDS: Final = 30
STOP_SECONDS: Final = 15
"""Maximum number of seconds for a stop; the broker promises ten."""

STRICT: Final = """\
# Refuses what the defaults allow: a user's name is asked for, and time and room are short.
idle_time_out_ms = 2000
handshake_timeout_ms = 4000
max_message_size = 1_000_000
transaction_operations_max = 500
transaction_timeout_ms = 4000

[[address]]
pattern = "closed.*"
auto_create = false

[[address]]
pattern = "small.*"
max_messages = 3
full = "reject"

[[address]]
pattern = "blocking.*"
max_messages = 3
full = "block"

[[address]]
pattern = "exclusive.*"
exclusive = true

[[address]]
pattern = "mortal.*"
expiry = "expired"

[[address]]
pattern = "retried.*"
max_delivery_count = 3
dead_letter = "retried-in-vain"
redelivery_delay_ms = 150
redelivery_backoff = 2.0

[[address]]
pattern = "dropped.*"
max_delivery_count = 2
dead_letter = ""
"""


def from_checkout() -> bool:
    """Return whether the tests import the checkout's broker, not the installed (`--compiled`)."""
    found = importlib.util.find_spec("broker")
    return found is not None and Path(str(found.origin)).is_relative_to(ROOT / "broker")


def command() -> list[str]:
    """Return the command `jms-broker` that belongs to the broker under test."""
    if from_checkout():
        return [sys.executable, "-m", "jms_broker"]
    return [str(Path(sys.executable).with_name("jms-broker"))]


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without its broker settings, and with `variables`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JMS_BROKER_")}
    if from_checkout():
        kept["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [kept.get("PYTHONPATH")])])
    return kept | variables


def forks_brokers() -> bool:
    """Return whether a broker may be forked: by hand, only what a user would start is started."""
    return "PYTEST_VERSION" in os.environ


def _started(
    program: Sequence[str] | None,
    serve: Sequence[str],
    *,
    folder: Path,
    variables: Mapping[str, str],
) -> tuple[subprocess.Popen[str] | PreloadedProcess, IO[str]]:
    """Start `program`, or else a broker with the arguments `serve`; return it and its output."""
    if program is None and forks_brokers():
        forked = PreloadedProcess(command(), serve, folder=folder, variables=variables)
        return forked, os.fdopen(forked.output)
    process = subprocess.Popen(
        program or [*command(), *serve],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=variables,
    )
    assert process.stdout is not None
    return process, process.stdout


class Broker:
    """A broker at `url`, started by these tests or elsewhere."""

    def __init__(self, url: str) -> None:
        self.url: Final = url


class BrokerProcess(Broker):
    """One running broker. `url` is where it listens, `log` the file with everything it printed.

    `http_url` is empty unless the settings have a port for HTTP. `listeners` has the URLs of its
    further listeners by their names.
    """

    def __init__(
        self,
        folder: Path,
        *,
        settings: str = "",
        variables: Mapping[str, str] | None = None,
        port: int = 0,
        program: Sequence[str] | None = None,
    ) -> None:
        """Start it and wait until it is ready; its store is in memory, unless `settings` name one.

        `program` is run in place of `jms-broker serve`, which listens at `port`, 0 for a free one.
        """
        config = folder / "broker.toml"
        config.write_text(settings if "store = " in settings else f'store = "memory"\n{settings}')
        self.log: Final = folder / "broker.log"
        self.http_url = ""
        self.listeners: Final[dict[str, str]] = {}
        self._lines: Final[SimpleQueue[str]] = SimpleQueue()
        serve = ["serve", "--port", str(port), "--config", str(config)]
        self._process, self._output = _started(
            program, serve, folder=folder, variables=environment(**(variables or {}))
        )
        self._reader: Final = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        super().__init__(self._ready_url())

    def _read(self) -> None:
        with self.log.open("w") as log, self._output as output:
            for line in output:
                log.write(line)
                log.flush()
                self._lines.put(line)
        self._lines.put("")

    def _ready_url(self) -> str:
        """Return the address in the ready line; without one, stop and raise RuntimeError."""
        printed = ""
        try:
            while line := self._lines.get(timeout=READY_SECONDS):
                printed += line
                if ready := READY.match(line.rstrip()):
                    self.http_url = ready["http"] or ""
                    self.listeners.update(LISTENER.findall(line))
                    return ready["url"]
        except Empty:
            pass
        self.stop()
        raise RuntimeError(f"the broker did not get ready; it printed:\n{printed}")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def terminate(self) -> None:
        """Ask the broker to stop, as an operator does."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait for its end and return its exit code; `log` has the last of its output then."""
        code = self._process.wait(timeout=STOP_SECONDS)
        self._reader.join(timeout=STOP_SECONDS)
        return code

    def kill(self) -> None:
        """Kill the broker without a warning (`kill -9`), and wait for its end."""
        self._process.kill()
        self.wait()

    def stop(self) -> int:
        """Stop the broker; return its exit code.

        A broker that does not stop when asked is killed, and subprocess.TimeoutExpired is raised.
        """
        self.terminate()
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self._process.kill()
            self.wait()
            raise
