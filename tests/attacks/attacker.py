"""Run one attack as a program of its own; print what it reached to standard output as JSON.

python -m tests.attacks.attacker hoarding '{"port": 5672, "seconds": 10}'
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Final

from tests.attacks.catalogue import ATTACKS
from tests.attacks.plan import Site
from tests.bench.machine import raise_file_limit

FILES_WANTED: Final = 8192


def main() -> None:
    """Run the attack that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.attacker", description=__doc__)
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("site", type=Site.decoded, help="a JSON object with the fields of Site")
    asked = parser.parse_args()
    raise_file_limit(FILES_WANTED)
    reached = asyncio.run(ATTACKS[asked.attack].work(asked.site))
    print(reached.encoded())


if __name__ == "__main__":
    main()
