"""One attack on a broker of its own: at rest, under attack and afterwards, with measurements."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.attacks.flooding import linger
from tests.attacks.latency import Sample, latency
from tests.attacks.plan import MEBIBYTE, MEMORY, Attack, Deadline, Site
from tests.attacks.probes import EVERY_MS
from tests.attacks.programs import Failure, Probe, attacked, peak_anew, resident_mib
from tests.attacks.verdict import Healthy, Resident, Result
from tests.bench.disk import disk_folder
from tests.bench.ours import manner_of
from tests.faults.full_disk import reason_not_to, small_disk
from tests.interop.broker_process import ROOT, BrokerProcess

REST_S: Final = 2.0
START_S: Final = 20.0
QUIET_S: Final = 4.0

OVERTIME_S: Final = 150.0
"""Seconds beyond `seconds` that an attack may take: to connect, and to drain its queues."""

RESUME_S: Final = 30.0
"""Maximum seconds after the quiet time until a healthy client is served again."""

LINES_SHOWN: Final = 3


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The command of the broker under attack, and the times of the phases in seconds.

    `share` is the fraction of their counts that counted attacks make.
    """

    program: Sequence[str]
    seconds: float
    memory_max_mib: int = 256
    rest_s: float = REST_S
    quiet_s: float = QUIET_S
    share: float = 1.0

    def environment(self) -> dict[str, str]:
        """Return the variables with which the checkout's broker is found, or an installed one."""
        return {"PYTHONPATH": str(ROOT) if "-m" in self.program else ""}


@contextmanager
def broker_for(attack: Attack, store: str, setup: Setup) -> Iterator[tuple[BrokerProcess, str]]:
    """Start the broker in a folder that is removed afterwards; yield it and its store's folder."""
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="attacks-", dir=disk_folder())
        folder = Path(stack.enter_context(made))
        config = folder / "broker.toml"
        program = [*setup.program, "serve", "--port", "0", "--config", str(config)]
        if attack.prepare is not None:
            attack.prepare(folder)
        place = folder / "store"
        place.mkdir()
        if attack.disk_mib:
            disk = stack.enter_context(small_disk(place, attack.disk_mib))
            program, seen = disk.program(*program), str(disk.within)
        else:
            seen = str(place)
        url = MEMORY if store == MEMORY else f"sqlite:///{place}/store.db"
        settings = f'store = "{url}"\nmemory_max = {setup.memory_max_mib * MEBIBYTE}\n'
        broker = BrokerProcess(
            folder,
            settings=settings + attack.settings,
            program=program,
            variables=setup.environment(),
        )
        stack.callback(_end, broker)
        yield broker, seen


def _end(broker: BrokerProcess) -> None:
    """Stop the broker if it still runs; how it ends is not tested here."""
    if broker.running:
        broker.kill()


@asynccontextmanager
async def healthy_clients(attack: Attack, broker: BrokerProcess) -> AsyncIterator[dict[str, Probe]]:
    """Start the clients that must be served all the time."""
    probes: dict[str, Probe] = {}
    try:
        for kind in attack.probes:
            probes[kind] = await Probe.start(
                kind, port_of(broker, kind), has_users=attack.has_users()
            )
        yield probes
    finally:
        for probe in probes.values():
            await probe.end()


def port_of(broker: BrokerProcess, kind: str = "") -> int:
    """Return the port for a kind of healthy client; 0 if the broker does not listen for it."""
    other = {"http": broker.http_url, "tls": broker.listeners.get("tls", "")}
    return urlsplit(other.get(kind, broker.url)).port or 0


def site_of(broker: BrokerProcess, setup: Setup, *, disk: str = "", share: float = 0.0) -> Site:
    """Return the arguments of an attacker; a `share` overrides that of `setup`."""
    return Site(
        port=port_of(broker),
        http_port=port_of(broker, "http"),
        tls_port=port_of(broker, "tls"),
        seconds=setup.seconds,
        memory_max=setup.memory_max_mib * MEBIBYTE,
        disk=disk,
        share=share or setup.share,
    )


def resident_of(broker: BrokerProcess, before_mib: float) -> Resident:
    """Return the resident memory before an attack, since then at its peak, and now."""
    return Resident(
        before_mib=before_mib,
        peak_mib=resident_mib(broker.pid, "VmHWM"),
        after_mib=resident_mib(broker.pid),
    )


async def run(name: str, attack: Attack, store: str, *, setup: Setup) -> Result:
    """Attack a fresh broker on that store, and return the measurements."""
    result = Result(name, attack, store, memory_max_mib=setup.memory_max_mib)
    reason = reason_not_to() if attack.disk_mib else None
    if reason is not None:
        result.skipped = reason
        return result
    try:
        with broker_for(attack, store, setup) as (broker, folder):
            result.is_compiled = manner_of(broker.pid) == "compiled"
            async with healthy_clients(attack, broker) as probes:
                await _attacked(result, setup, broker, probes=probes, folder=folder)
    except RuntimeError as error:
        result.broken.append(str(error))
    return result


async def _attacked(
    result: Result,
    setup: Setup,
    broker: BrokerProcess,
    *,
    probes: dict[str, Probe],
    folder: str,
) -> None:
    """Attack the running broker, and record the measurements in `result`."""
    await linger(Deadline(START_S), lambda: all(probe.samples for probe in probes.values()))
    await asyncio.sleep(setup.rest_s)
    peak_anew(broker.pid)
    before_mib = resident_mib(broker.pid)
    began_s = time.monotonic()
    site = site_of(broker, setup, disk=folder)
    try:
        patience_s = setup.seconds + OVERTIME_S + result.attack.lasts_s
        result.reached = await attacked(result.name, site, patience_s)
    except Failure as failure:
        result.broken.append(f"the attacker: {failure}")
    ended_s = time.monotonic()
    await _quiet(setup, probes.values())
    if not broker.running:
        lines = broker.log.read_text().splitlines()[-LINES_SHOWN:]
        result.broken.append(f"the broker ended with {broker.wait()}: {' / '.join(lines)}")
        return
    result.resident = resident_of(broker, before_mib)
    for kind, probe in probes.items():
        await probe.finish()
        result.healthy[kind] = healthy(kind, probe, attack=(began_s, ended_s))


async def _quiet(setup: Setup, probes: Iterable[Probe]) -> None:
    """Wait for a while, and then until every healthy client is served again, or RESUME_S."""
    ended_s = time.monotonic()
    await asyncio.sleep(setup.quiet_s)
    deadline = Deadline(RESUME_S)
    await linger(deadline, lambda: all(probe.served_since(ended_s) for probe in probes))


def healthy(kind: str, probe: Probe, *, attack: tuple[float, float]) -> Healthy:
    """Divide requests by their start: before, during and after the attack.

    A request that began before the end and was answered after it counts for the attack.
    """
    began_s, ended_s = attack
    parts: tuple[list[Sample], list[Sample], list[Sample]] = ([], [], [])
    for sample in probe.samples:
        parts[(sample.began_s >= began_s) + (sample.began_s >= ended_s)].append(sample)
    at_rest, during, afterwards = (latency(part, every_ms=EVERY_MS[kind]) for part in parts)
    return Healthy(at_rest, during, afterwards, probe.errors)
