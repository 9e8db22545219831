"""`python -m tests.faults F1 --cycles 200 --seed 7`: run faults as often as you like.

Without names, all faults are run. The exit status is 1 if a promise was broken. For each fault its
verdict is printed: attempts / acked / lost / dup(flagged) / dup(unflagged) / reordered / torn /
indeterminate / max-unavailability-ms, and the figures of that fault.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from tests.faults.catalogue import FAULTS, Entry, named
from tests.faults.plan import Impossible, Plan, Report
from tests.faults.server import DEFAULT_STORE, Place
from tests.support import postgres


def main() -> int:
    """Run the faults that the command line names, one after another; return the exit status."""
    names = "\n".join(f"  {name:<4} {entry.words}" for name, entry in FAULTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=f"{__doc__}\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "faults", nargs="*", metavar="FAULT", help="F1 and so on; F17 for all its letters"
    )
    parser.add_argument("--cycles", type=int, help="how often, in place of what is usual for each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", default=DEFAULT_STORE, help="as for `serve --store`")
    parser.add_argument(
        "--postgres", action="store_true", help="on a PostgreSQL server that is started for it"
    )
    parser.add_argument("--compiled", action="store_true", help="the installed jms-broker")
    parser.add_argument("--keep", type=Path, help="a folder for stores and histories, to be kept")
    asked = parser.parse_args()
    unknown = [name for name in asked.faults if not named(name)]
    if unknown:
        parser.error(f"no fault is called {', '.join(unknown)}: {', '.join(FAULTS)}")
    if asked.postgres and postgres.binaries() is None:
        print("SKIPPED: there is no PostgreSQL here")
        return 0
    if asked.postgres:
        own = postgres.server()
        asked.store = own.url(own.database())
    problems = 0
    for name in [each for asked_for in asked.faults for each in named(asked_for)] or FAULTS:
        problems += len(run(name, FAULTS[name], asked).problems)
    if asked.postgres:
        postgres.stop_servers()
    print(f"{problems or 'no'} problems")
    return 1 if problems else 0


def run(name: str, entry: Entry, asked: argparse.Namespace) -> Report:
    """Run one fault in a folder of its own; return its report, empty if it is impossible here."""
    with (
        tempfile.TemporaryDirectory(prefix="faults-") as made,
        Progress(
            console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True
        ) as progress,
    ):
        folder = Path(made) if asked.keep is None else asked.keep / name
        folder.mkdir(parents=True, exist_ok=True)
        cycles = asked.cycles or entry.many
        task = progress.add_task(f"{name} {entry.words}", total=cycles)
        plan = Plan(
            place=Place(folder, store=asked.store, compiled=asked.compiled),
            cycles=cycles,
            seed=asked.seed,
            step=lambda: progress.advance(task),
        )
        started = time.monotonic()
        try:
            report = asyncio.run(entry.fault(plan))
        except Impossible as reason:
            print(f"{name} SKIPPED: {reason}", flush=True)
            return Report()
    for line in report.lines:
        print(line)
    for problem in report.problems:
        print(f"BROKEN {problem}")
    print(
        f"   {name} --cycles {cycles} --seed {asked.seed}: {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return report


if __name__ == "__main__":
    sys.exit(main())
