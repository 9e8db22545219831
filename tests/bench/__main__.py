"""`python -m tests.bench`: measure the broker, and others beside it, and print one table."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.bench import machine, ratios, report, work
from tests.bench.client import LoadClient
from tests.bench.ours import ours_on
from tests.bench.peers import peer_of
from tests.bench.places import BenchError
from tests.bench.report import Series
from tests.bench.rows import ALL
from tests.bench.server import AMQP, Server

FILES_WANTED: Final = 10_000 + 500
FILES_SPARE: Final = 300
CALM_SHARE: Final = 0.03  # share of one core, for all brokers together
CALM_CHECK_SECONDS: Final = 0.5
CALM_SECONDS_MAX: Final = 20.0


def say(text: str) -> None:
    """Print a line of progress, to standard error, apart from the results."""
    print(text, file=sys.stderr, flush=True)


def await_calm(servers: Sequence[Server]) -> None:
    """Return once no broker is busy: a JVM compiles and collects for seconds after its load.

    Give up after CALM_SECONDS_MAX seconds.
    """
    deadline = time.monotonic() + CALM_SECONDS_MAX
    while time.monotonic() < deadline:
        before = sum(server.cpu_seconds() for server in servers)
        time.sleep(CALM_CHECK_SECONDS)
        spent = sum(server.cpu_seconds() for server in servers) - before
        if spent < CALM_SHARE * CALM_CHECK_SECONDS:
            return
    say("a broker does not come to rest; going on")


class Bench:
    """One invocation: the brokers, the scale, and the figures measured so far."""

    def __init__(
        self,
        servers: Sequence[Server],
        client: LoadClient,
        *,
        scale: work.Scale,
        warm: int,
        repeat: int,
        fresh: bool,
    ) -> None:
        self._servers = servers
        self._client = client
        self._scale = scale
        self._warm = warm
        self._repeat = repeat
        self._fresh = fresh
        self.series: list[Series] = []

    def run(self, works: Sequence[work.Work]) -> None:
        """Run every work: first those on shared, running brokers, then those on fresh ones."""
        with ExitStack() as running:
            shared = [one for one in works if not (one.fresh or self._fresh or one.alone)]
            if shared:
                for server in self._servers:
                    server.wanted = server.kinds & {AMQP, *(one.listener for one in shared)}
                for server in self._servers:
                    say(f"starting {server.name}")
                    running.enter_context(server)
            for one in shared:
                self._in_turn(one)
        for one in works:
            if one.alone:
                self._without_broker(one)
            elif one.fresh or self._fresh:
                self._on_fresh_brokers(one)

    def _site(self, server: Server | None) -> work.Site:
        return work.Site(self._client, server, self._scale)

    def _counted(self, series: Series, number: str, run: work.Run) -> None:
        series.runs.append(run)
        print(report.run_line(series, number, run), flush=True)

    def _in_turn(self, one: work.Work) -> None:
        """Do discarded runs on each broker, then counted ones on the brokers in turn.

        Every second turn is the other way round (A B, B A): a broker that always ran first would
        always run behind the same work.
        """
        sites = [
            (Series(one, server.name, server.manner()), self._site(server))
            for server in self._able(one)
        ]
        self.series += [series for series, _ in sites]
        for series, site in sites:
            for _ in range(self._warm):
                say(f"{one.name}: warming {series.broker}")
                await_calm(self._servers)
                say(report.run_line(series, "discarded", one.run(site)))
        for number in range(1, self._repeat + 1):
            for series, site in sites if number % 2 else reversed(sites):
                await_calm(self._servers)
                self._counted(series, f"{number}/{self._repeat}", one.run(site))

    def _able(self, one: work.Work) -> list[Server]:
        """Return the brokers that can do that work."""
        return [
            server
            for server in self._servers
            if (server.has_topics or not one.topics)
            and (server.is_ours or not one.ours)
            and one.listener in server.kinds
        ]

    def _on_fresh_brokers(self, one: work.Work) -> None:
        """Do counted runs on the brokers in turn, each run on a broker of its own."""
        pairs = [(Series(one, server.name, ""), server) for server in self._able(one)]
        self.series += [series for series, _ in pairs]
        for number in range(1, self._repeat + 1):
            for series, server in pairs if number % 2 else reversed(pairs):
                say(f"{one.name}: starting a fresh {server.name}")
                server.wanted = frozenset({AMQP, one.listener})
                with server:
                    series.manner = server.manner()
                    site = self._site(server)
                    for _ in range(0 if one.fresh else self._warm):
                        say(report.run_line(series, "discarded", one.run(site)))
                    run = one.run(site)
                self._counted(series, f"{number}/{self._repeat}", run)

    def _without_broker(self, one: work.Work) -> None:
        series = Series(one, self._servers[0].name, "in process")
        self.series.append(series)
        for number in range(1, self._repeat + 1):
            self._counted(series, f"{number}/{self._repeat}", one.run(self._site(None)))


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = [one.name for one in ALL]
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--stores", default="sqlite", help="of ours, in turn: sqlite, postgresql, memory"
    )
    parser.add_argument(
        "--peers",
        default="",
        help="run in turn: artemis, broker-j, a path; rules (ours with 100), group (ours on"
        " PostgreSQL, in a group)",
    )
    parser.add_argument("--only", action="append", choices=names, help="one row (repeatable)")
    parser.add_argument(
        "--repeat", type=int, default=3, help="counted runs of each row; from 5 on also ratios"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="start the brokers anew for each counted run"
    )
    parser.add_argument("--warm", type=int, default=1, help="discarded runs before them")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work: figures to try")
    parser.add_argument("--json", type=Path, help="write every run to this file")
    parser.add_argument("--without-ours", action="store_true", help="measure only the peers")
    return parser.parse_args(arguments)


def written(path: Path, bench: Bench, facts: dict[str, str]) -> None:
    """Write every run with all its figures to `path`, for later comparison."""
    runs = [
        {
            "work": series.work.name,
            "broker": series.broker,
            "manner": series.manner,
            "runs": [{"figures": run.figures, "problems": run.problems} for run in series.runs],
        }
        for series in bench.series
    ]
    path.write_text(json.dumps({"machine": facts, "series": runs}, indent=2) + "\n")


def summary(bench: Bench, facts: dict[str, str]) -> str:
    """Return the table and the facts beside it. If ours was left out, a peer takes its column.

    A work that was interrupted has fewer runs, down to none.
    """
    measured = [series for series in bench.series if series.runs]
    names = list(dict.fromkeys(series.broker for series in measured))
    first, others = names[0], names[1:]
    by_name = {name: [s for s in measured if s.broker == name] for name in names}
    runs = max(len(series.runs) for series in measured)
    legend = f"best of {runs} by a row's first figure; in brackets the range of all runs."
    lines = [
        f"{first} ({by_name[first][0].manner}); {legend}",
        "Machine: " + "; ".join(f"{key} {value}" for key, value in facts.items()) + ".",
        "",
        report.table(by_name[first], {name: by_name[name] for name in others}),
    ]
    for name in others:
        compared = ratios.lines(by_name[first], by_name[name])
        lines += ["", *compared] if compared else []
    found = report.problems(bench.series)
    return "\n".join(lines + [""] * bool(found) + [f"PROBLEM {text}" for text in found])


def bench_of(options: argparse.Namespace) -> Bench:
    """Return the bench of the brokers that the options name. BenchError if one is missing."""
    files = machine.raise_file_limit(FILES_WANTED)
    ours = [] if options.without_ours else options.stores.split(",")
    servers: list[Server] = [ours_on(store) for store in ours if store]
    servers += [peer_of(name) for name in options.peers.split(",") if name]
    for server in servers:
        server.idle_connections = min(server.idle_connections, files - FILES_SPARE)
    return Bench(
        servers,
        LoadClient.build(),
        scale=work.QUICK if options.quick else work.FULL,
        warm=options.warm,
        repeat=max(options.repeat, 1),
        fresh=options.fresh,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line names; return the exit status.

    Failures decide the status, figures never do. What was measured before a failure, or before an
    interruption, is printed and written like the rest.
    """
    options = parsed(arguments)
    works = [one for one in ALL if options.only is None or one.name in options.only]
    if options.without_ours:
        works = [one for one in works if not one.alone]
    facts = machine.description()
    try:
        bench = bench_of(options)
    except BenchError as error:
        say(f"bench: {error}")
        return 1
    status = 0
    try:
        bench.run(works)
    except BenchError as error:
        say(f"bench: {error}")
        status = 1
    except KeyboardInterrupt:
        say("bench: interrupted; the brokers are stopped")
        status = 130
    if any(series.runs for series in bench.series):
        facts["speed after"] = machine.speed()
        print("\n" + summary(bench, facts))
        if options.json is not None:
            written(options.json, bench, facts)
    return status


if __name__ == "__main__":
    sys.exit(main())
