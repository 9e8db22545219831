"""`python -m tests.bench.spark`: how fast the pipeline is on Spark, and how fast it should be."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.bench import machine
from tests.bench.disk import disk_folder
from tests.bench.ours import INSTALLED
from tests.bench.places import ROOT, BenchError
from tests.interop.broker_process import from_checkout

COMPILED: Final = "broker/amqp/decode.cpython*.so"


def say(text: str) -> None:
    """Print a line of progress to standard error."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def installed_python(program: Path) -> Path:
    """Return the Python of an installed broker; raise BenchError unless that is compiled."""
    if not program.exists():
        raise BenchError(f"{program} is missing: `make build` installs it")
    folder = program.absolute().parent
    if not list(folder.parent.glob(f"lib/python3*/site-packages/{COMPILED}")):
        raise BenchError(f"the broker of {program} is not compiled: `make build`")
    return folder / "python"


def run_installed(program: Path, arguments: Sequence[str], pipeline: Path | None) -> int:
    """Run this program once more, with the installation and without the checkout's code."""
    python = installed_python(program)
    with tempfile.TemporaryDirectory(prefix="bench-path-", dir=disk_folder()) as name:
        folder = Path(name)
        (folder / "tests").symlink_to(ROOT / "tests")
        if pipeline is not None:
            subprocess.run(["cp", "-r", str(pipeline), str(folder / "pyspark_amqp")], check=True)
        return subprocess.run(
            [python, "-m", "tests.bench.spark", *arguments],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder), "PYSPARK_PYTHON": str(python)},
        ).returncode


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="messages, and events")
    parser.add_argument(
        "--executors", type=int, default=0, help="tasks that run at a time; by default one per core"
    )
    parser.add_argument("--only", action="append", help="one row (repeatable)")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds that a row may take")
    parser.add_argument(
        "--broker", type=Path, default=INSTALLED, help="the compiled jms-broker to be measured"
    )
    parser.add_argument(
        "--pipeline",
        type=Path,
        help="a folder pyspark_amqp/ in place of the installed one, all of it interpreted",
    )
    parser.add_argument(
        "--checkout", action="store_true", help="measure the checkout, interpreted: to try it"
    )
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace) -> None:
    """Measure the rows and print the table."""
    from tests.bench.spark_rows import ROWS, Run
    from tests.bench.spark_site import Site
    from tests.bench.spark_table import line, table

    names = [row.name for row in ROWS]
    strangers = set(options.only or ()) - set(names)
    if strangers:
        raise BenchError(f"no row {', '.join(sorted(strangers))}; there are {', '.join(names)}")
    chosen = [row for row in ROWS if options.only is None or row.name in options.only]
    facts = machine.description()
    with tempfile.TemporaryDirectory(prefix="bench-spark-", dir=disk_folder()) as name:
        site = Site(Path(name), options.rows, options.executors)
        run = Run(site, say, options.limit)
        figures = []
        try:
            begun = time.perf_counter()
            if any(row.is_of_spark for row in chosen):
                site.messages()
            site.events()
            say(f"stores filled in {time.perf_counter() - begun:.1f} s")
            if any(row.is_of_spark for row in chosen):
                say("starting Spark")
                _ = site.spark
            for row in chosen:
                say(f"{row.name}: {row.title}")
                figures.append(row.figure(run))
                say(line(figures[-1]))
        finally:
            site.close()
    facts["speed after"] = machine.speed()
    manner = "interpreted" if from_checkout() else "compiled"
    print(
        f"{options.rows:,} messages of 1 KiB with ten properties, and as many events; SQLite; "
        f"the broker is {manner}; {site.executors} executors."
    )
    print("Machine: " + "; ".join(f"{key} {value}" for key, value in facts.items()) + ".\n")
    print(table(figures))


def main(arguments: Sequence[str]) -> int:
    """Measure what the command line names; return the exit status.

    Failures decide the status, figures never do.
    """
    options = parsed(arguments)
    try:
        if from_checkout() and not options.checkout:
            return run_installed(options.broker, arguments, options.pipeline)
        measure(options)
    except BenchError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; what was started is stopped")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
