"""`python -m tests.bench.instructions`: count the instructions of the broker per message.

Valgrind's callgrind runs the broker and counts. The figures do not depend on what else runs on the
machine, so they show a difference of 2 % where rates need a hundred pairs of runs. They say nothing
about the cost of the memory, and nothing about the kernel.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from statistics import fmean
from typing import Final

from tests.bench.client import LoadClient
from tests.bench.ours import INSTALLED, OurBroker
from tests.bench.places import BenchError
from tests.bench.rows import ALL
from tests.bench.work import QUICK, Scale, Site, Work

NAMES: Final = (
    *("small", "large", "topic", "topics", "transacted", "competing", "shared", "relay"),
    *("durable", "durable-small", "durable-many"),
)
"""Rows whose figure is for each message, and whose speed is the broker's own."""

ROWS: Final = [one for one in ALL if one.name in NAMES]

WARM: Final = 0.1
LITTLE: Final = 0.2
MUCH: Final = 0.5
"""Shares of the work of a quick run: callgrind makes a broker some fifty times slower."""

COUNTS: Final = "callgrind"
TOTAL: Final = re.compile(r"^totals: (\d+)$", re.MULTILINE)
DUMP_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.05


class CountedBroker(OurBroker):
    """A broker within callgrind."""

    start_seconds = 900.0

    def __init__(self, program: Path) -> None:
        super().__init__(program.absolute(), name=str(program))
        self._dumps = 0

    def command(self) -> list[str]:
        if shutil.which("valgrind") is None:
            raise BenchError("no valgrind: apt-get install valgrind")
        self._dumps = 0
        counting = [f"--callgrind-out-file={self.folder / COUNTS}", "--compress-strings=yes"]
        # not the script: the kernel would start its Python without valgrind
        python = str(self._program.with_name("python"))
        return ["valgrind", "--quiet", "--tool=callgrind", *counting, python, *super().command()]

    def instructions(self) -> int:
        """Return the number of instructions since the last call, of all threads."""
        self._dumps += 1
        ask = ["callgrind_control", "--dump", str(self.pid)]
        subprocess.run(ask, check=True, capture_output=True)
        return total_of(self.folder / f"{COUNTS}.{self._dumps}")


def total_of(dump: Path) -> int:
    """Return the number in a dump, which is written meanwhile; BenchError if it is never there."""
    deadline = time.monotonic() + DUMP_SECONDS
    while time.monotonic() < deadline:
        found = TOTAL.search(dump.read_text()) if dump.exists() else None
        if found is not None:
            return int(found[1])
        time.sleep(POLL_SECONDS)
    raise BenchError(f"callgrind has not written {dump} within {DUMP_SECONDS:.0f} s")


def share_of(scale: Scale, share: float) -> Scale:
    """Return a scale with that share of all numbers of messages."""
    counts = [field.name for field in fields(scale) if field.type is int or field.type == "int"]
    return replace(scale, **{name: int(getattr(scale, name) * share) for name in counts})


def slope(little: tuple[int, int], much: tuple[int, int]) -> float:
    """Return the instructions per message of two runs, each its messages and its instructions.

    What a run costs however many messages it has, such as its links, is in both and cancels out.
    """
    return (much[1] - little[1]) / (much[0] - little[0])


def measured(row: Work, server: CountedBroker, client: LoadClient) -> float:
    """Return the instructions per message of one row, from a short and a long run."""

    def run(share: float) -> tuple[int, int]:
        server.instructions()
        found = row.run(Site(client, server, share_of(QUICK, share)))
        for problem in found.problems:
            print(f"!! {row.name} on {server.name}: {problem}", flush=True)
        return round(found.figures["per_second"] * found.figures["seconds"]), server.instructions()

    return slope(run(LITTLE), run(MUCH))


def all_measured(
    rows: Sequence[Work], program: Path, *, repeat: int
) -> Iterator[tuple[str, list[float]]]:
    """Yield the figures of each row on one broker, which runs all of them."""
    client = LoadClient.build()
    with CountedBroker(program) as server:
        for number, row in enumerate(rows, start=1):
            print(f"{number}/{len(rows)} {row.name} on {program}", file=sys.stderr, flush=True)
            row.run(Site(client, server, share_of(QUICK, WARM)))
            yield row.name, [measured(row, server, client) for _ in range(repeat)]


def table(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> list[str]:
    """Return a Markdown table: the means with their ranges and, with `theirs`, their ratios."""
    lines = [
        "| work | instructions per message | the other broker's | ratio |",
        "|---|---|---|---|",
    ]
    for name, found in ours.items():
        other = theirs.get(name, [])
        ratio = f"{fmean(found) / fmean(other):.3f}" if other else "-"
        lines.append(f"| {name} | {_ranged(found)} | {_ranged(other)} | {ratio} |")
    return lines


def _ranged(found: Sequence[float]) -> str:
    if not found:
        return "-"
    return f"{fmean(found):,.0f} ({min(found):,.0f} to {max(found):,.0f})"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.instructions", description=__doc__)
    parser.add_argument("--peer", type=Path, help="another installation: the path of jms-broker")
    parser.add_argument("--only", action="append", choices=NAMES, help="one row (repeatable)")
    parser.add_argument("--repeat", type=int, default=3, help="counted pairs of runs of each row")
    options = parser.parse_args(arguments)
    rows = [row for row in ROWS if not options.only or row.name in options.only]
    try:
        ours = dict(all_measured(rows, INSTALLED, repeat=options.repeat))
        theirs: dict[str, list[float]] = {}
        if options.peer is not None:
            theirs = dict(all_measured(rows, options.peer, repeat=options.repeat))
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print("\n".join(table(ours, theirs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
