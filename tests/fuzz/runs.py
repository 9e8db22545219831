"""Start the processes that run inputs, and evaluate how they ended.

A process that ends badly has found something: its input is saved, with a text about its end.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.fuzz.child import SHARED_SIZE
from tests.fuzz.mutation import SIZE_MAX
from tests.fuzz.targets import CPU_SECONDS_MAX, EntryPoint

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
FOUND: Final = ROOT / "build" / "fuzz" / "found"

GRACE_SECONDS: Final = 30
"""Seconds after its time at which a process is stuck in a way that uses no CPU time."""

GUIDED_SECONDS_MAX: Final = 10
"""Maximum seconds for one input, instrumented and interpreted."""

FINAL_LINE: Final = re.compile(r"^#(\d+)\s+DONE\s+cov: (\d+)", re.MULTILINE)

UNDER_ATHERIS: Final = re.compile(r"(?:=== Uncaught|==\d+==).*?(?=\nMS: |\n==|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """An input that ended a process: its entry point, the kind of end, and the saved file."""

    entry_point: str
    how: str
    file: Path
    words: str


@dataclass(frozen=True)
class Run:
    """The results of one process: figures for each entry point, and its finding."""

    figures: list[dict[str, object]] = field(default_factory=list)
    finding: Finding | None = None


def mutations(
    names: list[str],
    *,
    compiled: bool,
    count: int,
    seconds: float,
    seed: int,
    script: str = "child.py",
    found_in: Path = FOUND,
) -> Run:
    """Run `count` inputs through each of the entry points, in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        shared = Path(folder) / "input"
        shared.write_bytes(bytes(SHARED_SIZE))
        facts = ["--count", str(count), "--seconds", str(seconds), "--seed", str(seed)]
        code, out, words = _ended(
            [script, str(shared), *names, *facts, *(["--compiled"] if compiled else [])],
            seconds * len(names) + GRACE_SECONDS,
        )
        figures = [json.loads(line) for line in out.splitlines()]
        if code == 0:
            return Run(figures)
        if len(figures) == len(names):
            raise RuntimeError(f"a process that was done ended with {code}: {words}")
        name = names[len(figures)]
        size = int.from_bytes(shared.read_bytes()[:4])
        data = shared.read_bytes()[4 : 4 + size]
    return Run(figures, found(name, data, how=_how(code), words=words, folder=found_in))


def replay(name: str, file: Path, *, compiled: bool) -> str:
    """Run one input again; return how that failed, or "" if it did not."""
    options = ["--input", str(file), *(["--compiled"] if compiled else [])]
    with tempfile.NamedTemporaryFile() as shared:
        shared.truncate(SHARED_SIZE)
        code, _, words = _ended(["child.py", shared.name, name, *options], GRACE_SECONDS)
    return "" if code == 0 else f"{_how(code)}\n{words}"


def refusal(*, compiled: bool) -> str:
    """Return why that build cannot run here, or "" if it can."""
    with tempfile.NamedTemporaryFile() as shared:
        shared.truncate(SHARED_SIZE)
        options = ["--count", "0", *(["--compiled"] if compiled else [])]
        code, _, words = _ended(["child.py", shared.name, "decoder", *options], GRACE_SECONDS)
    return "" if code == 0 else words.strip().splitlines()[-1]


def found(name: str, data: bytes, *, how: str, words: str, folder: Path = FOUND) -> Finding:
    """Save an input in a file named after its entry point and its bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    file.write_bytes(data)
    return Finding(name, how, file, words)


def _ended(arguments: list[str], seconds: float) -> tuple[int, str, str]:
    """Return exit code, output and errors of a script in this folder, killed if it is stuck."""
    script, *others = arguments
    command = [sys.executable, "-P", str(HERE / script), *others]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        try:
            out, words = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, words = process.communicate()
    return process.returncode, out, words


def _how(code: int) -> str:
    if code == -signal.SIGVTALRM:
        return f"more than {CPU_SECONDS_MAX} s of CPU time"
    if code == -signal.SIGKILL:
        return "stuck, or killed"
    if code < 0:
        return f"died of {signal.Signals(-code).name}"
    return "raised"


# -- with atheris


def has_atheris() -> bool:
    return importlib.util.find_spec("atheris") is not None


def guided(entry_point: EntryPoint, *, seconds: int, seed: int, folder: Path) -> Run:
    """Let atheris search for inputs; interesting ones are collected in `folder`."""
    name = entry_point.name
    seeds = folder / "seeds" / name
    gathered = folder / "gathered" / name
    artifacts = folder / "artifacts" / name
    for each in (seeds, gathered, artifacts):
        each.mkdir(parents=True, exist_ok=True)
    for old in (*seeds.iterdir(), *artifacts.iterdir()):
        old.unlink()
    for data in entry_point.seeds():
        (seeds / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    options = [
        f"-max_total_time={seconds}",
        f"-seed={seed % 0xFFFF_FFFF + 1}",
        f"-max_len={SIZE_MAX}",
        f"-timeout={GUIDED_SECONDS_MAX}",
        "-rss_limit_mb=1024",
        f"-artifact_prefix={artifacts}/",
    ]
    code, _, words = _ended(
        ["guided.py", name, *options, str(gathered), str(seeds)], seconds + 2 * GRACE_SECONDS
    )
    done = FINAL_LINE.search(words)
    if code == 0 and done:
        inputs, reached = done.groups()
        return Run([{"entry_point": name, "inputs": int(inputs), "reached": int(reached)}])
    kept = [each.read_bytes() for each in artifacts.iterdir()]
    said = UNDER_ATHERIS.search(words)
    return Run(
        [],
        found(
            name,
            kept[0] if kept else b"",
            how="raised, took too long or too much memory under atheris",
            words=said[0] if said else words[-4000:],
        ),
    )
