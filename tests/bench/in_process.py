"""Rows without sockets: scripts that use parts of the installed broker."""

import json
import subprocess
import sys
from typing import Final

from tests.bench.places import SOURCES, BenchError
from tests.bench.work import Run, Site

IN_PROCESS_SECONDS: Final = 120


def engine(site: Site) -> Run:
    """Measure the engine without sockets."""
    return in_process("engine.py", site.scale.messages, ("cpu_us", "settling_us"))


def selectors(site: Site) -> Run:
    """Measure a queue with a hundred selective consumers, without sockets."""
    keys = ("waiting_us", "arriving_us", "longest_ms", "judged")
    return in_process("selectors.py", site.scale.to_topics, keys)


def attach_rules(site: Site) -> Run:
    """Measure decisions about rights by a thousand rules, and attaches with them."""
    keys = ("plain_us", "wildcard_us", "slowest_ms", "tangled_ms")
    return in_process(
        "attaching.py", site.scale.transacted // 10, (*keys, "attach_us", "attach_without_us")
    )


def in_process(script: str, count: int, keys: tuple[str, ...]) -> Run:
    """Run a script of this folder, in a process of its own with the installed broker."""
    ran = subprocess.run(
        [sys.executable, "-P", str(SOURCES / script), str(count)],
        capture_output=True,
        text=True,
        timeout=IN_PROCESS_SECONDS,
    )
    if ran.returncode != 0:
        raise BenchError(f"{script} does not run:\n{ran.stderr[-2000:]}")
    figures = json.loads(ran.stdout)
    problems = [] if figures["compiled"] else ["the broker is interpreted"]
    return Run({key: float(figures[key]) for key in keys}, problems)
