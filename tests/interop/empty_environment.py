"""A virtual environment with the installed wheel and its requirements, and nothing else.

It is made without a network: the wheel's requirements are copied from the environment that runs the
tests, distribution by distribution, as metadata names them. So a package that the wheel needs and
does not require is missing there, as for any user.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.interop.broker_process import ROOT, from_checkout

SECONDS: Final = 120


def wheel(folder: Path) -> Path:
    """Return the wheel under test: that of `make build`, or a pure one of the checkout."""
    if not from_checkout():
        (built,) = (ROOT / "build" / "wheel").glob("*.whl")
        return built
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    # the hook that compiles is off by default, and leaves nothing in the tree then
    subprocess.run([*pip, "-w", str(folder), str(ROOT)], check=True, timeout=SECONDS)
    (built,) = folder.glob("*.whl")
    return built


class EmptyEnvironment:
    """The environment in `folder`; `run` starts programs that are installed there."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self._folder: Final = folder
        venv.create(folder, with_pip=False, symlinks=True)
        self._bin: Final = folder / ("Scripts" if os.name == "nt" else "bin")
        self._packages: Final = next(folder.glob("lib/python*/site-packages"))
        pip = [sys.executable, "-m", "pip", "--python", str(self._bin / "python"), "install"]
        offline = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
        unmoved = {name: each for name, each in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([*pip, *offline, str(wheel)], check=True, timeout=SECONDS, env=unmoved)

    def add(self, *requirements: str) -> None:
        """Install the distributions that `requirements` name, with all that these require."""
        for found in closure([Requirement(each) for each in requirements], self._packages):
            self._copy(found)

    def _copy(self, found: Distribution) -> None:
        for file in found.files or []:
            source = Path(str(found.locate_file(file)))
            if ".." in file.parts or not source.exists():
                continue  # commands, for which `python -m` serves as well
            target = self._packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)  # keeps the time that compiled modules check

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment to its end, with PATH and HOME as only variables."""
        command, *rest = arguments
        return subprocess.run(
            [str(self._bin / command), *rest],
            cwd=cwd,
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", str(cwd))},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


def closure(wanted: list[Requirement], there: Path) -> Iterator[Distribution]:
    """Yield the distributions that `wanted` names and requires, but those that are in `there`."""
    seen: set[tuple[str, str]] = set()
    while wanted:
        requirement = wanted.pop()
        for extra in ["", *requirement.extras]:
            key = canonicalize_name(requirement.name), extra
            if key in seen:
                continue
            seen.add(key)
            own = next(iter(Distribution.discover(name=requirement.name, path=[str(there)])), None)
            found = own or _installed(requirement.name)
            wanted += _required_by(found, extra)
            if own is None and extra == "":
                yield found


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise LookupError(f"{name} is asked for, and is not installed here either") from None


def _required_by(found: Distribution, extra: str) -> Iterator[Requirement]:
    for line in found.requires or []:
        requirement = Requirement(line)
        if requirement.marker is None:
            if extra == "":
                yield requirement
        elif requirement.marker.evaluate({"extra": extra}):
            yield requirement
