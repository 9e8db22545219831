"""The load client: built from load.c, and run as one process per role, whose report is read."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.bench.build import built
from tests.bench.places import BenchError

SOURCE_NAMES: Final = (
    *("load.c", "options.c", "options.h", "transaction.c", "transaction.h"),
    *("idle.c", "idle.h", "websocket.c", "websocket.h", "sockets.c", "sockets.h"),
    *("knocking.c", "knocking.h", "tls.c", "tls.h"),
    *("figures.c", "figures.h", "clock.h"),
)
# Debian's development package has the first name; elsewhere the library may come in two parts, or
# without link names at all.
LIBRARIES: Final = (
    ("-lqpid-proton", "-lssl"),
    ("-lqpid-proton-core", "-lqpid-proton-proactor", "-lssl"),
    ("-l:libqpid-proton.so.11", "-lssl"),
    ("-l:libqpid-proton-core.so.10", "-l:libqpid-proton-proactor.so.1", "-lssl"),
)
STOP_SECONDS: Final = 10.0
NICE: Final = "10"


@dataclass(frozen=True)
class Outcome:
    """The report of one client process about itself. Latencies are in microseconds."""

    count: int
    seconds: float
    per_second: float
    not_accepted: int
    disordered: int
    early: int
    lost: int
    failed: int
    unanswered: int
    crowded: int
    checked: int
    p50: float
    p99: float
    p999: float
    cpu_seconds: float
    first_ns: int
    last_ns: int
    complaint: str

    @classmethod
    def parse(cls, text: str, complaint: str) -> Self:
        """Read the JSON object that the client prints; figures that it does not report are 0.

        Raise BenchError, with `complaint`, if there is no such object.
        """
        try:
            report = json.loads(text)
        except ValueError:
            raise BenchError(f"the load client ended without a report: {complaint}") from None
        latency = report.get("latency_us", {})
        return cls(
            count=int(report["count"]),
            seconds=float(report["seconds"]),
            per_second=float(report.get("per_second", 0)),
            not_accepted=int(report.get("not_accepted", 0)),
            disordered=int(report.get("disordered", 0)),
            early=int(report.get("early", 0)),
            lost=int(report.get("lost", 0)),
            failed=int(report.get("failed", 0)),
            unanswered=int(report.get("unanswered", 0)),
            crowded=int(report.get("crowded", 0)),
            checked=int(report.get("checked", 0)),
            p50=float(latency.get("p50", 0)),
            p99=float(latency.get("p99", 0)),
            p999=float(latency.get("p999", 0)),
            cpu_seconds=float(report.get("cpu_seconds", 0)),
            first_ns=int(report.get("first_ns", 0)),
            last_ns=int(report.get("last_ns", 0)),
            complaint=complaint,
        )


class Client:
    """One running client process. It ends by itself, limited by its count and by its timeout."""

    def __init__(self, arguments: list[str]) -> None:
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(STOP_SECONDS)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def await_attached(self) -> None:
        """Return once every link is answered; a receiver has given credit by then.

        Raise BenchError if the client does not attach.
        """
        assert self._process.stderr is not None
        line = self._process.stderr.readline().strip()
        if line != "attached":
            raise BenchError(f"the load client did not attach: {line or 'it ended'}")

    def finish(self) -> Outcome:
        """Close the client's standard input as a sign to end; return its report at its end."""
        return self._reported(*self._process.communicate())

    def await_end(self) -> Outcome:
        """Return the report of a client that ends after its count."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        text = self._process.stdout.read()
        complaint = self._process.stderr.read()
        self._process.wait(STOP_SECONDS)
        return self._reported(text, complaint)

    def _reported(self, text: str, complaint: str) -> Outcome:
        lines = [line for line in complaint.splitlines() if line != "attached"]
        return Outcome.parse(text, "; ".join(lines[:3]))


class LoadClient:
    """The built program, of which clients are started against one peer."""

    def __init__(self, program: Path) -> None:
        self._program = program

    @classmethod
    def build(cls) -> Self:
        """Compile the client if it is missing or older than its sources."""
        return cls(built("load", SOURCE_NAMES, LIBRARIES))

    def start(
        self, role: str, peer: str, address: str, *, count: int, **options: float | str
    ) -> Client:
        """Start a sender, a receiver or a fanout of receivers; load.c lists the options."""
        arguments = [str(self._program), role, peer, address, str(count)]
        return Client(arguments + [f"{key}={value}" for key, value in options.items()])

    def start_idle(self, peer: str, count: int, *, tls: bool = False) -> Client:
        """Start `count` connections that do nothing until the client is finished."""
        return Client([str(self._program), "idle-tls" if tls else "idle", peer, str(count)])

    def start_knocking(
        self, what: str, peer: str, *, count: int, rate: float, sources: int
    ) -> Client:
        """Start short connections at a rate: `what` is "handshakes" or "logins" (knocking.c).

        The client has less right to the cores than all others: strangers have their own.
        """
        arguments = [str(self._program), what, peer, str(count), str(rate), str(sources)]
        return Client(["nice", "-n", NICE, *arguments])
