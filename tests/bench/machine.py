"""Facts about the machine that a reader of the figures must know."""

import hashlib
import os
import platform
import resource
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

from tests.bench.disk import disk_folder, file_system_of
from tests.bench.places import ROOT

HASHED_BYTES: Final = 4_000_000
PINGS: Final = 2_000
SPEED_TRIES: Final = 5


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def revision() -> str:
    """Return the commit measured, with a plus if files differ from it."""
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], cwd=ROOT, capture_output=True, text=True
    )
    return asked.stdout.strip() or "no commit"


def speed() -> str:
    """Return how fast the machine is now: a virtual one varies by half, even if it seems idle.

    A hash measures the processor, a byte to and fro between two sockets the kernel.
    """
    hashing, calls = float("inf"), float("inf")
    block = bytes(HASHED_BYTES)
    near, far = socket.socketpair()
    with near, far:
        for _ in range(SPEED_TRIES):
            start = time.perf_counter()
            hashlib.sha256(block)
            hashed = time.perf_counter()
            for _ in range(PINGS):
                near.send(b"x")
                far.recv(1)
                far.send(b"x")
                near.recv(1)
            hashing = min(hashing, hashed - start)
            calls = min(calls, time.perf_counter() - hashed)
    megabytes = HASHED_BYTES / 1e6 / hashing
    return f"SHA-256 {megabytes:,.0f} MB/s, four socket calls {calls / PINGS * 1e6:.1f} µs"


def description() -> dict[str, str]:
    """Return facts by name, in the order in which they are printed."""
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    hypervisor = "virtual machine" if "hypervisor" in Path("/proc/cpuinfo").read_text() else "bare"
    return {
        "cores": f"{os.cpu_count()}, shared by broker and load clients",
        "CPU": f"{cpu_model()} ({hypervisor})",
        "memory": f"{memory_kib / 2**20:.0f} GiB",
        "stores on": file_system_of(disk_folder()).kind,
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "revision": revision(),
        "load before": f"{os.getloadavg()[0]:.2f}",
        "speed before": speed(),
    }


def busy_seconds() -> float:
    """Return the CPU time in s that all processes and the hypervisor have taken so far."""
    user, nice, system, _, _, irq, softirq, steal = (
        int(ticks) for ticks in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def raise_file_limit(wanted: int) -> int:
    """Allow this process and its children `wanted` open files; return the limit that holds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft
