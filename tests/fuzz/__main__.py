"""`python -m tests.fuzz`: run the guided and the compiled half in parallel, on a core each.

Exit with 1 if anything was found. Each finding is an input in build/fuzz/found, printed with the
command that runs it again.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.fuzz import runs
from tests.fuzz.targets import ENTRY_POINTS

FOLDER: Final = runs.ROOT / "build" / "fuzz"
MUTATIONS: Final = 1_000_000


QUICKEST_FIRST: Final = [
    *("proxy", "sections", "frames", "decoder", "scram", "websocket"),
    *("sasl", "connection", "rules", "tokens", "api"),
]
"""The order of the entry points: time that one of them does not use is left to later ones."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--mutations", type=int, default=MUTATIONS)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--input", type=Path, help="run again what was found")
    asked = parser.parse_args()
    if asked.input:
        return again(asked.input)
    print(f"seed {asked.seed}, {asked.seconds} s", flush=True)
    with ThreadPoolExecutor(2) as lanes:
        halves = [lanes.submit(mutated, asked), lanes.submit(guided, asked)]
        findings = [finding for half in halves for finding in half.result()]
    for finding in findings:
        print(f"\nFOUND {finding.entry_point}: {finding.how}\n{finding.words.rstrip()}")
        print(f"again: {sys.executable} -m tests.fuzz --input {finding.file}")
    print(f"\n{len(findings) or 'nothing'} found")
    return 1 if findings else 0


def again(file: Path) -> int:
    """Run one saved input through both builds; return 1 if it fails in one of them, else 0."""
    name = file.name.split("-")[0]
    bad = 0
    for compiled in (False, True):
        ended = runs.replay(name, file, compiled=compiled)
        print(f"{'compiled' if compiled else 'interpreted'}: {ended or 'as it should be'}")
        bad += bool(ended)
    return 1 if bad else 0


def mutated(asked: argparse.Namespace) -> list[runs.Finding]:
    """Run the seeds and their mutations, on the compiled build if there is one."""
    refusal = runs.refusal(compiled=True)
    build = "interpreted" if refusal else "compiled"
    if refusal:
        print(f"the mutations run interpreted: {refusal}", flush=True)
    until = time.monotonic() + asked.seconds
    total = 0
    findings: list[runs.Finding] = []
    for left, name in zip(range(len(QUICKEST_FIRST), 0, -1), QUICKEST_FIRST, strict=True):
        run = runs.mutations(
            [name],
            compiled=not refusal,
            count=asked.mutations * ENTRY_POINTS[name].share // 100,
            seconds=max(1.0, (until - time.monotonic()) / left),
            seed=asked.seed,
        )
        findings += [run.finding] if run.finding else []
        for figures in run.figures:
            total += int(str(figures["inputs"]))
            print(_line(build, figures), flush=True)
    end = "" if findings or total >= asked.mutations else ", then the time was up"
    print(f"{build:<12}{total:>10} of {asked.mutations} inputs{end}", flush=True)
    return findings


def guided(asked: argparse.Namespace) -> list[runs.Finding]:
    """Run each entry point under atheris for its share of the time."""
    if not runs.has_atheris():
        print("atheris is not installed: the guided half is left out", flush=True)
        return []
    findings: list[runs.Finding] = []
    for entry_point in ENTRY_POINTS.values():
        run = runs.guided(
            entry_point,
            seconds=max(1, asked.seconds // len(ENTRY_POINTS)),
            seed=asked.seed,
            folder=FOLDER,
        )
        findings += [run.finding] if run.finding else []
        for figures in run.figures:
            print(_line("guided", figures), flush=True)
    return findings


def _line(kind: str, figures: dict[str, object]) -> str:
    return " ".join(
        [f"{kind:<12}{figures['inputs']:>10} {figures['entry_point']:<11}", *_words(figures)]
    )


def _words(figures: dict[str, object]) -> Iterator[str]:
    """Yield further figures of a run."""
    if "slowest_ms" in figures:
        yield f"slowest {figures['slowest_ms']} ms, at most {figures['memory']} bytes of memory"
    if "reached" in figures:
        yield f"reached {figures['reached']} places"


if __name__ == "__main__":
    sys.exit(main())
