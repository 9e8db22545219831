"""Compiles the C sources of this folder into the cache when they have changed."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.bench.places import SOURCES, BenchError, cache_folder

PACKAGES: Final = "gcc libqpid-proton11-dev libssl-dev"


def built(name: str, sources: Sequence[str], variants: Sequence[Sequence[str]]) -> Path:
    """Compile `sources` to the file `name` unless that is newer than they are; return its path.

    The first variant of compiler options that works is used; raise BenchError if none works.
    """
    target = cache_folder("bench") / name
    paths = [SOURCES / source for source in sources]
    if target.exists() and all(target.stat().st_mtime > path.stat().st_mtime for path in paths):
        return target
    command = ["cc", "-O2", "-Wall", "-Wextra", "-o", str(target)]
    command += [str(path) for path in paths if path.suffix == ".c"]
    errors = ""
    for options in variants:
        ran = subprocess.run([*command, *options], capture_output=True, text=True)
        if ran.returncode == 0:
            return target
        errors = errors or ran.stderr
    raise BenchError(f"{sources[0]} does not build (apt-get install {PACKAGES}):\n{errors[:2000]}")
