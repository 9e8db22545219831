"""`python -m tests.attacks`: attack a broker in many ways, and print the results as a table.

Each attack has a fresh broker, an attacker and a healthy client, all processes of their own on
127.0.0.1. The exit status is 1 if one of them failed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.attacks.attacker import FILES_WANTED
from tests.attacks.catalogue import ATTACKS, BOTH, GROUPS
from tests.attacks.run import Setup, run
from tests.attacks.verdict import ALLOWANCE_MIB, INTERPRETED_FACTOR, P99_MAX_MS, Result, table
from tests.bench import machine
from tests.bench.ours import INSTALLED
from tests.bench.places import BenchError

SECONDS: Final = 15.0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = "\n".join(f"  {name:<17} all of: {', '.join(group)}" for name, group in GROUPS.items())
    names += "\n" + "\n".join(f"  {name:<17} {attack.words}" for name, attack in ATTACKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks",
        description=f"{__doc__}\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=[*ATTACKS, *GROUPS],
        help="one, or one group (repeatable)",
    )
    parser.add_argument("--store", choices=BOTH, help="only on that one")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of each; default %(default)s"
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="of the logins and handshakes that attacks count; default all of them",
    )
    parser.add_argument(
        "--broker",
        type=Path,
        help=f"the jms-broker to attack, in place of {INSTALLED.name} in .venv",
    )
    parser.add_argument(
        "--interpreted", action="store_true", help="attack the .py files of this checkout"
    )
    return parser.parse_args(arguments)


def program(asked: argparse.Namespace) -> list[str]:
    """Return the command of the broker to attack; raise BenchError if there is none."""
    if asked.interpreted:
        return [sys.executable, "-m", "broker"]
    path: Path = (asked.broker or INSTALLED).absolute()
    if not path.exists():
        raise BenchError(f"{path} is missing: `make build` installs it, --interpreted does without")
    return [str(path)]


def chosen(only: Sequence[str] | None) -> list[str]:
    """Return the names of the attacks to run; `only` has names and groups, None for all."""
    return [name for each in only or ATTACKS for name in GROUPS.get(each, [each])]


def say(result: Result) -> None:
    """Print the result to standard error, as progress while the table is not complete."""
    print(f"{result.name} ({result.store}): {result.verdict()}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the requested attacks, one after another, and print the table."""
    asked = parsed(arguments)
    results = []
    try:
        setup = Setup(program=program(asked), seconds=asked.seconds, share=asked.share)
        facts = machine.description()
        machine.raise_file_limit(FILES_WANTED)
        for name in chosen(asked.only):
            attack = ATTACKS[name]
            for store in attack.stores:
                if asked.store in (None, store):
                    results.append(asyncio.run(run(name, attack, store, setup=setup)))
                    say(results[-1])
    except BenchError as error:
        print(f"attacks: {error}", file=sys.stderr)
        return 2
    facts["load after"] = machine.description()["load before"]
    print("Machine: " + "; ".join(f"{key} {value}" for key, value in facts.items()) + ".")
    print(legend(results, setup) + "\n")
    print(table(results))
    return 1 if any(result.is_failed() for result in results) else 0


def legend(results: Sequence[Result], setup: Setup) -> str:
    """Return the conditions of the run and the bounds, for the reader of the table."""
    compiled = all(result.is_compiled for result in results)
    factor = 1.0 if compiled else INTERPRETED_FACTOR
    bounds = ", ".join(f"{kind} {most * factor:,.0f} ms" for kind, most in P99_MAX_MS.items())
    return (
        f"The broker is {'compiled' if compiled else 'interpreted'}, memory_max"
        f" {setup.memory_max_mib} MiB; RSS in MiB, at most {ALLOWANCE_MIB:.0f} more than that;"
        f" p99 of healthy clients at most: {bounds}."
    )


if __name__ == "__main__":
    sys.exit(main())
