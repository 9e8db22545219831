"""Deliberate bugs in the sources, to test whether the simulation finds them.

    make mutations

A check that never fails proves nothing. Each bug is a slip that a developer could make; the sources
with the bug run interpreted, in a process of their own, until a seed fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SEEDS: Final = 300
TIMEOUT_S: Final = 120


@dataclass(frozen=True)
class Mutation:
    """A bug: replace `old`, which occurs exactly once in the file `path`, by `new`."""

    name: str
    path: str
    old: str
    new: str


MUTATIONS: Final = (
    Mutation(
        "what a suspended source has kept stays acquired when its time is over",
        "broker/routing/termini/suspended.py",
        'time is over."""\n        self._remove(terminus)\n        terminus.give_up(batch)',
        'time is over."""\n        self._remove(terminus)',
    ),
    Mutation(
        "a link without a map leaves acquired what the former one has kept",
        "broker/links/kept_source.py",
        "former.give_up(self._peer.container.journal.batch)",
        "pass",
    ),
    Mutation(
        "a delivery of both unsettled maps is not resumed",
        "broker/links/kept_source.py",
        "elif verdict is Resumption.RESUME:\n            self._due.append((delivery, verdict))",
        "elif verdict is Resumption.RESUME:\n            pass",
    ),
    Mutation(
        "an outcome that comes behind a detach is lost",
        "broker/links/late_outcomes.py",
        "isinstance(each, QueueEntry) and self._take(each) is not None",
        "isinstance(each, QueueEntry) and self._take(each) is None",
    ),
    Mutation(
        "an entry that comes back goes to the end of the queue",
        "broker/routing/queues/backlogs.py",
        "backlog.put_back(entry)",
        "entry.position = backlog.next_position; backlog.append(entry)",
    ),
    Mutation(
        "a failed delivery does not raise delivery-count",
        "broker/routing/entries/delivery_attempt.py",
        "entry.delivery_count += 1",
        "entry.delivery_count += 0",
    ),
    Mutation(
        "a producer to the relay gets no more credit",
        "broker/links/credited_producer.py",
        "if node is None or node.request_credit(",
        "if node is not None and node.request_credit(",
    ),
    Mutation(
        "a disposition of a range leaves out the last delivery",
        "broker/amqp/unsettled.py",
        "end = min(end + 1, self._next)",
        "end = min(end, self._next)",
    ),
    Mutation(
        "a link that is stolen or lost keeps its unsettled entries",
        "broker/amqp/outgoing_link.py",
        "self.session.unsettled_out.take_all_of(owner)",
        "[]",
    ),
    Mutation(
        "an expired message is delivered, unless the sweep comes first",
        "broker/routing/queues/queue_delivery.py",
        "if entry.message.expires_at_ms != NEVER and self._state.expire(entry, backlog, batch):",
        "if False:",
    ),
    Mutation(
        "a scheduled message comes a little before its time, where others are due",
        "broker/routing/queues/schedule.py",
        "if at_ms == NOTHING or at_ms > now_ms:",
        "if at_ms == NOTHING or at_ms > now_ms + 400:",
    ),
    Mutation(
        "the priority of an entry that comes back is ignored",
        "broker/routing/queues/backlogs.py",
        "backlog.put_back(entry)\n        self.count_in(entry.message.priority)",
        "backlog.put_back(entry)\n        self.waiting += 1",
    ),
    Mutation(
        "the bytes of what is consumed still count",
        "broker/routing/queues/queue_state.py",
        "self.bytes -= message.size\n        self.memory.dropped(message)",
        "self.memory.dropped(message)",
    ),
    Mutation(
        "the session's window is not refilled",
        "broker/amqp/session.py",
        "if self.incoming_window.wants_refill():",
        "if False:",
    ),
    Mutation(
        "a delivery that was settled can be settled again",
        "broker/amqp/unsettled.py",
        "self._ring[number & self._mask] = None\n            self.count -= 1",
        "self.count -= 1",
    ),
    Mutation(
        "a durable message is accepted before it is on disk",
        "broker/links/incoming.py",
        "journal.submit_receipt(Receipt(self._credit, delivery_id))",
        "self._link.accept_delivery(delivery_id)",
    ),
    Mutation(
        "the journal goes on when the store has failed",
        "broker/journal.py",
        "await self._store.commit(batch)",
        "await asyncio.wait([asyncio.ensure_future(self._store.commit(batch))])",
    ),
    Mutation(
        "what is to end with its link goes on without it",
        "broker/routing/topics/lifetime.py",
        "if policy == LINK_DETACH:\n        return ExpiryDecision.EXPIRES",
        "if policy == LINK_DETACH:\n        return ExpiryDecision.STAYS",
    ),
    Mutation(
        "a subscriber gets what its selector does not want",
        "broker/routing/topics/topic.py",
        "if bindings.are_selective:",
        "if False:",
    ),
    Mutation(
        "what was acknowledged in a transaction is gone, though that is rolled back",
        "broker/routing/transaction.py",
        "retirement.roll_back(batch)",
        "retirement.commit(batch)",
    ),
    Mutation(
        "what a lease holds is lost when it ends",
        "broker/routing/batches/lease.py",
        "                entry.queue.dispose(entry, disposal, batch)",
        "                entry.queue.accept(entry, batch)",
    ),
    Mutation(
        "the batch of a lease is not stored",
        "broker/routing/batches/leases.py",
        "changes.acquire(builder.as_stored(lease.name))",
        "pass",
    ),
    Mutation(
        "the number of a sink's last batch is not stored",
        "broker/routing/batches/staging_area.py",
        "batch.stage_changes().keep(kept)",
        "pass",
    ),
    Mutation(
        "a transaction that can only be rolled back is committed as far as it came",
        "broker/routing/transaction.py",
        "if self.doomed_by is not None:\n            raise self.doomed_by",
        "if False:\n            raise self.doomed_by",
    ),
)


def mutated(mutation: Mutation, text: str) -> str:
    """Return `text` with the bug; raise ValueError unless `mutation.old` occurs once in it."""
    if text.count(mutation.old) != 1:
        found = text.count(mutation.old)
        raise ValueError(f"{mutation.path} has {mutation.old!r} {found} times, not once")
    return text.replace(mutation.old, mutation.new)


def copy_to(folder: Path, names: Sequence[str]) -> None:
    """Copy the files and folders `names` of the checkout to `folder`, for a bug to be put there."""
    for name in names:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            # bytecode comes along, as do the times of its sources: only the bug is compiled anew
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.so"))
        else:
            shutil.copy(source, target)


def simulate(mutation: Mutation | None) -> str | None:
    """Return the failure of the simulation on sources with `mutation`; None if no seed fails.

    The result is one line of output. Without a mutation, the sources are unchanged. A run of more
    than TIMEOUT_S counts as a failure. Raise RuntimeError if the simulation could not run.
    """
    program = ["tests.scenario.simulation"]
    if mutation is not None:
        program = ["tests.scenario.mutated_simulation", mutation.name]
    command = [sys.executable, "-m", *program, str(SEEDS)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no end within {TIMEOUT_S} s"
    if done.returncode == 0:
        return None
    if not done.stdout.startswith("seed "):
        raise RuntimeError(f"the simulation did not run:\n{done.stderr}")
    return done.stdout.strip().splitlines()[0]


def main() -> int:
    """Print a line for each bug; return 0 if all are found and unchanged sources pass, else 1."""
    found = 0
    for mutation in MUTATIONS:
        began = time.monotonic()
        said = simulate(mutation)
        found += said is not None
        seconds = time.monotonic() - began
        print(f"{'found' if said else 'MISSED'} in {seconds:4.1f} s: {mutation.name}\n    {said}")
        sys.stdout.flush()
    innocent = simulate(None)
    print(f"without a bug: {innocent or f'{SEEDS} seeds, nothing'}")
    print(f"{found} of {len(MUTATIONS)} found")
    return 0 if found == len(MUTATIONS) and innocent is None else 1


if __name__ == "__main__":
    sys.exit(main())
