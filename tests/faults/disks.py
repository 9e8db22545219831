"""F3, F5 and F7 for the catalogue: faults of the store's disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.faults import damage, full_disk, power_cut, power_trace
from tests.faults.plan import Impossible, Plan, Report

WORK: Final = 6
"""Amount of work of the clients before the power cut; it causes a checkpoint of the log."""


async def power_cuts(plan: Plan) -> Report:
    """F3: judge `plan.cycles` images of what a power cut may leave."""
    reason = power_trace.reason_not_to()
    if reason is not None:
        raise Impossible(reason)
    if not plan.place.is_sqlite:
        raise Impossible("it is SQLite's files whose writes are known")
    installed = [str(Path(sys.executable).with_name("jms-broker"))]
    program = installed if plan.place.compiled else ()
    result = await power_cut.run(
        images=plan.cycles, seed=plan.seed, size=WORK, program=program, step=plan.step
    )
    report = Report(lines=[result.line()])
    report.problems += [example.strip() for example in result.examples()]
    return report


async def full(plan: Plan) -> Report:
    """F5: fill a disk with messages and a foreign file, `plan.cycles` times."""
    reason = full_disk.reason_not_to()
    if reason is not None:
        raise Impossible(reason)
    if not plan.place.is_sqlite:
        raise Impossible("it is SQLite's disk that is full")
    report = Report()
    for _ in range(plan.cycles):
        verdict = await full_disk.run()
        report.lines.append(verdict)
        report.check(verdict.startswith("passed"), verdict)
        plan.step()
    return report


async def damaged_files(plan: Plan) -> Report:
    """F7: do damage of each kind `plan.cycles` times."""
    if not plan.place.is_sqlite:
        raise Impossible("it is SQLite's files that are damaged")
    found = await damage.run(count=plan.cycles, seed=plan.seed)
    return Report(lines=damage.lines(found), problems=damage.broken(found))
