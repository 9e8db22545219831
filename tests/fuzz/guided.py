"""A process in which atheris chooses inputs by the code that they reach, interpreted.

It is started by file name, like `child.py`; the arguments after the entry point are libFuzzer's.
"""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path
from typing import Final

import atheris

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
with atheris.instrument_imports(include=["broker", "storage"]):
    from tests.fuzz.mutation import Mutator
    from tests.fuzz.targets import ENTRY_POINTS, MEASURED, examine


FRAMES_BYTES: Final = 512 * 1024
"""Additional bytes of memory, because frames of instrumented functions are larger.

The deepest nesting took 460 KiB, and 90 KiB without instrumentation.
"""


def main() -> None:
    entry_point = ENTRY_POINTS[sys.argv.pop(1)]
    mutator = Mutator(entry_point.seeds(), seed=0, framed=entry_point.framed)
    numbers = itertools.count(1)

    def run(data: bytes) -> None:
        if next(numbers) % MEASURED == 0:
            examine(entry_point, data, beside=FRAMES_BYTES)
        else:
            entry_point.run(data)

    def mutate(data: bytes, size_max: int, seed: int) -> bytes:
        """Mutate by our mutator, which knows values and frames, or by libFuzzer's.

        The latter knows the comparisons that the code made.
        """
        rng = random.Random(seed)
        if rng.random() < 0.5:
            mutated: bytes = atheris.Mutate(data, size_max)
            return mutated
        return mutator.changed(data)[:size_max]

    atheris.Setup(sys.argv, run, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
