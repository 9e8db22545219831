"""The faults by their names in `docs/design/faults.md`, with the number of cycles of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.faults import (
    bridging,
    crashes,
    cutting,
    database,
    disks,
    injection,
    leasing,
    leaving,
    resuming,
    staging,
    stopping,
    subscribing,
    takeovers,
    timers,
)
from tests.faults.leader_faults import LETTERS
from tests.faults.plan import Fault


@dataclass(frozen=True)
class Entry:
    """A fault and its numbers of cycles: `few` in the quick suite, `many` in `make faults`."""

    words: str
    fault: Fault
    few: int
    many: int


FAULTS: Final[dict[str, Entry]] = {
    "F1": Entry("kill -9 at random times under mixed load", crashes.killed_at_random, 3, 200),
    "F2": Entry("kill -9 at named points", injection.killed_at_points, 5, 140),
    "F3": Entry("power cuts, by images of what they leave", disks.power_cuts, 0, 10_000),
    "F4": Entry("syncs that fail", injection.syncs_that_fail, 3, 40),
    "F5": Entry("a full disk", disks.full, 1, 3),
    "F7": Entry("damaged files", disks.damaged_files, 0, 200),
    "F8": Entry("two brokers on one store", injection.two_on_one_store, 1, 20),
    "F9": Entry("syncs that take long", injection.slow_syncs, 2, 9),
    "F9-stall": Entry("one sync that takes 30 s", injection.stalled_sync, 0, 1),
    "F11": Entry("clients that are killed", leaving.clients_killed, 2, 30),
    "F13": Entry("outcomes that do not arrive", cutting.outcomes_cut_off, 4, 100),
    "F14": Entry("discharges whose answer does not arrive", cutting.discharges_cut_off, 4, 100),
    "F15": Entry("PostgreSQL is lost and comes back", database.database_lost, 4, 100),
    **{
        f"F17{name}": Entry(letter.words, takeovers.fault_of(name), 0, letter.many)
        for name, letter in LETTERS.items()
    },
    "F21": Entry("SIGTERM", stopping.told_to_stop, 3, 45),
    "F23": Entry("kill -9 again and again, even before it is ready", crashes.crash_loop, 3, 60),
    "F26": Entry("expiry and delivery times over a restart", timers.timers_over_restarts, 1, 12),
    "F27": Entry("kill after a subscriber's answer", subscribing.subscriptions_killed, 2, 60),
    "F28": Entry("kill around a sink's commit", staging.commits_killed, 0, 200),
    "F29": Entry("kill around a lease's requests", leasing.leases_killed, 0, 200),
    "F40": Entry("a bridge's brokers killed, its network cut", bridging.bridges_fail, 0, 104),
    "F41": Entry("the end under a receiver that resumes", resuming.receivers_killed, 0, 200),
}


def named(name: str) -> list[str]:
    """Return the faults of a name: F17 means F17a and so on. There are none of an unknown name."""
    if name in FAULTS:
        return [name]
    return [each for each in FAULTS if each[:-1] == name and each[-1].isalpha()]
